"""Whether the length of the history matters: the same turns in two sessions, one ten times as long as the other."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from time import process_time

import attrs

from benchmarks import history
from benchmarks.conftest import Open
from benchmarks.opened import Counts, Opened
from benchmarks.report import Report

ROUNDS = 12
ROUND_TURNS = 50
MOST_TIMES_AS_MUCH = 1.5
MOST_MEMORY_SHARE = 1.1
MOST_TIMES_TO_REOPEN = 5
REOPENINGS = 30
FULL_TURNS = 500
"""From here on window and contents page are full, folds are alike, and an open session holds all that it ever holds."""

Pair = tuple[int, int]


def test_a_turn_costs_the_same(pair: Pair, open_copy: Open, report: Report) -> None:
    """A turn takes at most 1.5 times the CPU time in a history ten times as long, and asks as much of store and counter.

    Rounds of 50 turns, folds included, alternate between both sessions; the median of the paired ratios counts. Sessions that are
    still filling their window are left out. All that a turn needs is done by its commands, nothing ahead of them in a thread.
    """
    with open_copy(pair[0]) as short, open_copy(pair[1]) as long:
        for opened in (short, long):
            opened.work_alone()
        times: list[tuple[float, float]] = []
        for number in range(ROUNDS + 1):
            order = (short, long) if number % 2 else (long, short)
            spent = {opened: _round(opened) for opened in order}
            if number:  # the first round warms up
                times.append((spent[short], spent[long]))
            else:
                before = short.counts(), long.counts()
        counts = [
            Counts.mean([opened.counts() - then], ROUNDS * ROUND_TURNS)
            for opened, then in zip((short, long), before, strict=True)
        ]
    ratios = sorted(long_s / short_s for short_s, long_s in times)
    report.growth.append(
        {
            "turn, compared": list(pair),
            "CPU_us": [1e6 * statistics.median(column) / ROUND_TURNS for column in zip(*times, strict=True)],
            "ratio": statistics.median(ratios),
            "ratios": [ratios[0], ratios[-1]],
            **{name: [getattr(count, name) for count in counts] for name in attrs.fields_dict(Counts)},
        }
    )
    if pair[0] >= FULL_TURNS:
        assert statistics.median(ratios) <= MOST_TIMES_AS_MUCH
        for name in ("syncs", "reads", "counter_calls"):
            few, many = (getattr(count, name) for count in counts)
            assert many <= 1.05 * few, (name, few, many)  # where the folds fall may differ


def test_reopening_costs_as_much(pair: Pair, open_copy: Open, report: Report) -> None:
    """A session reopens by its snapshot in at most five times the CPU time of one a tenth as long.

    Of each length the median of many openings counts; they alternate. Sessions without a snapshot are left out.
    """
    with open_copy(pair[0]) as short, open_copy(pair[1]) as long:
        spent: dict[Opened, list[float]] = {short: [], long: []}
        for opened in spent:
            opened.session.close()
        for _ in range(REOPENINGS):
            for opened, times in spent.items():
                start = process_time()
                opened.open().close()
                times.append(process_time() - start)
        medians = [statistics.median(times) for times in spent.values()]
    report.growth.append(
        {"reopening, compared": list(pair), "CPU_us": [1e6 * each for each in medians], "ratio": medians[1] / medians[0]}
    )
    assert pair[0] < FULL_TURNS or medians[1] <= MOST_TIMES_TO_REOPEN * medians[0]


def test_an_open_session_takes_the_same_memory(pair: Pair, histories: dict[int, Path], scratch: Path, report: Report) -> None:
    """An open session takes at most a tenth more memory in a history ten times as long, after turns, a search and a recall."""
    found: dict[str, list[dict[str, int]]] = {"RSS": [], "traced": []}
    for turns in pair:
        for name, options in (("RSS", ()), ("traced", ("--traced",))):
            root = history.copy(histories[turns], scratch / f"{name}-{turns}")
            command = [sys.executable, "-m", "benchmarks.memory", str(root), str(turns), *options]
            done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)  # noqa: S603
            found[name].append(json.loads(done.stdout))
    report.growth.append(
        {
            "memory, compared": list(pair),
            **{
                f"{name} MB, {step.replace('_', ' ')}": [taken[step] / 1e6 for taken in pairs]
                for name, pairs in found.items()
                for step in pairs[0]
            },
        }
    )
    for small, large in found.values():
        assert pair[0] < FULL_TURNS or all(large[step] <= MOST_MEMORY_SHARE * small[step] for step in small), (small, large)


def _round(opened: Opened) -> float:
    messages = opened.next_messages(ROUND_TURNS)
    start = process_time()
    opened.take(messages)
    return process_time() - start
