"""What a search costs beside one plain FTS5 query of the same terms on one column, by kind of query and by filter."""

import gc
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks import haystack
from benchmarks.haystack import Haystack
from benchmarks.report import Report

ROUNDS = 10
QUERIES = 6
MOST_TIMES_A_QUESTION = 2
LARGE = 100_000
"""With so many pages a question takes the database longer than what does not grow takes Python."""

_SEED = 20_261_123
_VERY_COMMON, _COMMON, _LESS_COMMON, _RARE = (0, 20), (20, 500), (500, 3_000), (10_000, 50_000)

Filters = dict[str, Any]


def test_search_beside_a_plain_query(turns: int, bench_dir: Path, report: Report) -> None:
    """Questions take at most twice the CPU time of the plain query, in a history that is not short.

    Rounds of six queries alternate between memci and the table; of each kind the median of the paired ratios counts.
    """
    ratios: dict[str, dict[str, float]] = {}
    with haystack.opened(bench_dir, turns) as hay:
        for kind, queries in _queries().items():
            found = {name: _compared(hay, queries, filters) for name, filters in _filters(hay).items()}
            ratios[kind] = {name: ratio for name, (_, _, ratio) in found.items()}
            times = {name: [memci, plain] for name, (memci, plain, _) in found.items()}
            report.growth.append({"search, pages": turns, "for": kind, "ms, memci and FTS5": times, "ratio": ratios[kind]})
    questions = ("very common words", "common words", "Chinese")
    assert turns < LARGE or all(ratios[kind]["all"] <= MOST_TIMES_A_QUESTION for kind in questions), ratios


def _queries() -> dict[str, list[str]]:
    """Return some queries of each kind."""
    chance = random.Random(_SEED)  # noqa: S311 (words, not secrets)

    def word(ranks: tuple[int, int]) -> str:
        return haystack.word(chance.randrange(*ranks))

    kinds: dict[str, Callable[[], str]] = {
        "very common words": lambda: f"what is the {word(_VERY_COMMON)} of {word(_VERY_COMMON)} and {word(_VERY_COMMON)}?",
        "common words": lambda: f"what did we do about the {word(_COMMON)} and the {word(_COMMON)} of {word(_COMMON)}?",
        "mixed": lambda: f"when did {word(_RARE)} say that about the {word(_COMMON)} and {word(_LESS_COMMON)}?",
        "three rare words": lambda: f"{word(_RARE)} {word(_RARE)} {word(_RARE)}",
        "one common word": lambda: word(_COMMON),
        "one rare word": lambda: word(_RARE),
        "Chinese": lambda: "".join(haystack.chinese_word(chance.randrange(1_000)) for _ in range(4)),
    }
    return {kind: [make() for _ in range(QUERIES)] for kind, make in kinds.items()}


def _filters(hay: Haystack) -> dict[str, Filters]:
    """Return what narrows a search, by name."""
    first, last = hay.turns
    return {
        "all": {},
        "visible too": {"include_visible": True},
        "a tenth of turns": {"turns": (last - (last - first) // 10, last)},
        "user": {"roles": "user"},
        "assistant": {"roles": "assistant"},
        "tool": {"roles": "tool"},
        "evicted": {"states": "evicted"},
        "archived": {"states": "archived"},
    }


def _compared(hay: Haystack, queries: list[str], filters: Filters) -> list[float]:
    """Return medians of the CPU time of memci's search and of the plain query, in milliseconds, and of their ratio."""
    ways: tuple[Callable[[str], object], ...] = (lambda query: hay.session.search(query, **filters), hay.ask_table)
    gc.collect()
    gc.disable()
    rounds = [_round(ways, queries, number) for number in range(ROUNDS + 1)][1:]  # the first one warms up
    gc.enable()
    memci, plain = ([spent[place] for spent in rounds] for place in range(2))
    ratios = [spent[0] / spent[1] for spent in rounds]
    return [1e3 * statistics.median(memci), 1e3 * statistics.median(plain), statistics.median(ratios)]


def _round(ways: tuple[Callable[[str], object], ...], queries: list[str], number: int) -> list[float]:
    """Return the seconds of a query in each way, beginning with the other one each time."""
    spent = [0.0] * len(ways)
    for place in sorted(range(len(ways)), reverse=number % 2 == 1):
        start = process_time()
        for query in queries:
            ways[place](query)
        spent[place] = (process_time() - start) / len(queries)
    return spent
