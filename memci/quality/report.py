"""What was measured, as rows of tables and as JSON."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs

from memci.engine.settings.config import Prices
from memci.quality.measuring import Row, all_categories

NOTHING = "-"
"""Stands where an engine has nothing to measure."""

PRICES = Prices()
"""Cost of a token that is written to a provider's cache, and of one that is read from it; a plain token costs 1."""


@attrs.frozen(kw_only=True)
class Figures:
    """The figures of one engine on one set at one budget; ``None`` where there is nothing to measure.

    Attributes:
        anchored: Mean share of an answer that stands anywhere in the last window.
        at_page: Mean share of it that stands where its evidence pages are shown.
        verbatim: Share of the evidence pages that are in the last window word for word.
        indexed: Share of them that its contents page lists by themselves.
        recall_1: Mean share of a question's evidence pages that are the first hit of a search.
        recall_5: That are among the first five.
        recall_10: That are among the first ten.
        recall_1000_tokens: That are among the first 1,000 tokens that the search returns.
        answer_in_snippets: Mean share of an answer that stands in the passages of the first five hits.
        tokens_per_call: Mean size of a call.
        prefix_reuse: Share of the sent tokens that stood at the same place in the call before, from the beginning on.
        cost_per_call: Mean cost of a call, in tokens of plain input.
        verbatim_tokens: Mean tokens of the conversation's own messages, word for word, in calls since it outgrew the budget.
        over_budget: Windows above their budget.
        no_window: Calls for which no window was found.
        broken_pairs: Calls and results that were parted.
        lost: Messages that do not come back.
    """

    anchored: float | None
    at_page: float | None
    verbatim: float | None
    indexed: float | None
    recall_1: float | None
    recall_5: float | None
    recall_10: float | None
    recall_1000_tokens: float | None
    answer_in_snippets: float | None
    tokens_per_call: float
    prefix_reuse: float
    cost_per_call: float
    verbatim_tokens: float | None
    over_budget: int
    no_window: int
    broken_pairs: int
    lost: int


def figures(row: Row) -> Figures:
    """Return the figures of a row."""
    played = row.played
    evidence, calls, faults = played.evidence, played.calls, played.faults
    recall = all_categories(played.recall)
    traffic = calls.traffic(PRICES)
    return Figures(
        anchored=_mean(evidence.anchored, evidence.questions),
        at_page=_mean(evidence.at_page, evidence.questions),
        verbatim=_mean(evidence.verbatim, evidence.pages),
        indexed=_mean(evidence.indexed, evidence.pages),
        recall_1=_mean(recall.first, recall.questions),
        recall_5=_mean(recall.five, recall.questions),
        recall_10=_mean(recall.ten, recall.questions),
        recall_1000_tokens=_mean(recall.within, recall.questions),
        answer_in_snippets=_mean(recall.told, recall.asked),
        tokens_per_call=traffic.tokens_per_call,
        prefix_reuse=traffic.prefix_reuse,
        cost_per_call=traffic.cost_per_call,
        verbatim_tokens=_mean(calls.verbatim, calls.outgrown),
        over_budget=faults.over_budget,
        no_window=faults.no_window,
        broken_pairs=faults.broken_pairs,
        lost=faults.lost,
    )


def to_mapping(rows: Sequence[Row], settings: dict[str, Any]) -> dict[str, Any]:
    """Return everything as a JSON value: what was asked for, and of each row the figures, and the sums they are made of."""
    return {**settings, "prices": attrs.asdict(PRICES), "rows": [_row_mapping(row) for row in rows]}


def _row_mapping(row: Row) -> dict[str, Any]:
    shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in attrs.asdict(figures(row)).items()}
    categories = {name: attrs.asdict(recall) for name, recall in row.played.recall.items()}
    return {
        "set": row.set,
        "conversations": row.conversations,
        "engine": row.engine,
        "budget": row.budget,
        "ok": row.played.faults.ok,
        **shown,
        "questions": row.played.evidence.questions,
        "calls": row.played.calls.calls,
        "recall_by_category": categories,
    }


def _mean(total: float, number: int) -> float | None:
    return total / number if number else None


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f}"


def _count(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}"


COLUMNS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("anchored %", lambda row: _share(row.anchored)),
    ("at page %", lambda row: _share(row.at_page)),
    ("verbatim %", lambda row: _share(row.verbatim)),
    ("indexed %", lambda row: _share(row.indexed)),
    ("R@1 %", lambda row: _share(row.recall_1)),
    ("R@5 %", lambda row: _share(row.recall_5)),
    ("R@10 %", lambda row: _share(row.recall_10)),
    ("R@1k tokens %", lambda row: _share(row.recall_1000_tokens)),
    ("in snippets %", lambda row: _share(row.answer_in_snippets)),
    ("tokens a call", lambda row: _count(row.tokens_per_call)),
    ("reuse %", lambda row: _share(row.prefix_reuse)),
    ("cost a call", lambda row: _count(row.cost_per_call)),
    ("verbatim tokens", lambda row: _count(row.verbatim_tokens)),
    ("over budget", lambda row: _count(row.over_budget)),
    ("no window", lambda row: _count(row.no_window)),
    ("broken pairs", lambda row: _count(row.broken_pairs)),
    ("lost", lambda row: _count(row.lost)),
)
"""Names of the figures in a table, and how each is written."""


def table_rows(rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield set, budget and engine of each row, and its figures as ``COLUMNS`` writes them."""
    for row in rows:
        shown = figures(row)
        yield [row.set, f"{row.budget:,}", row.engine, *(write(shown) for _, write in COLUMNS)]


CATEGORY_COLUMNS = ("set", "budget", "engine", "category", "questions", "R@1 %", "R@5 %", "R@10 %", "R@1k tokens %")
"""Names of the columns of ``category_rows``."""


def category_rows(rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield what the search found, a line for each category of questions, and for all of them."""
    for row in rows:
        if not row.played.recall:
            continue
        for category, recall in [*row.played.recall.items(), ("all", all_categories(row.played.recall))]:
            shares = (recall.first, recall.five, recall.ten, recall.within)
            cells = (_share(_mean(value, recall.questions)) for value in shares)
            yield [row.set, f"{row.budget:,}", row.engine, category, f"{recall.questions}", *cells]
