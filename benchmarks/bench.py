"""Times an operation, and counts apart from that what it asks of store and counter."""

from collections.abc import Callable
from typing import Any

import attrs
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.opened import Counts, Opened
from benchmarks.report import Report, Row

_COUNTED_SHARE = 5


@attrs.frozen
class Bench:
    """Runs the rounds of one operation at one length."""

    benchmark: BenchmarkFixture
    report: Report

    def run(  # noqa: PLR0913 (what a measurement is)
        self,
        operation: str,
        turns: int,
        action: Callable[..., object],
        *,
        rounds: int,
        prepare: Callable[[], tuple[Any, ...]] = tuple,
        per_round: int = 1,
        opened: Opened | None = None,
    ) -> None:
        """Time *rounds* rounds and note the median of one operation; then count what a fifth as many rounds ask for.

        The time is that of the process on the processor: other processes, and a disk that is slow, are not in it.

        Args:
            operation: What is done.
            turns: Length of the history.
            action: One round.
            rounds: How many.
            prepare: Makes ready for a round, untimed and uncounted, and returns the arguments of the action.
            per_round: How many operations a round holds.
            opened: The session whose store and counter are used.
        """
        self.benchmark.group = operation
        run: Callable[..., object] = self.benchmark.pedantic  # which has no types
        run(action, setup=lambda: (prepare(), {}), rounds=rounds, warmup_rounds=max(1, rounds // 20))
        counts = None
        if opened is not None:
            spent = []
            for _ in range(max(1, rounds // _COUNTED_SHARE)):
                arguments = prepare()
                before = opened.counts()
                action(*arguments)
                spent.append(opened.counts() - before)
            counts = Counts.mean(spent, per_round)
            self.benchmark.extra_info.update(attrs.asdict(counts))
        assert self.benchmark.stats is not None
        median_us = 1e6 * self.benchmark.stats.stats.median / per_round
        self.benchmark.extra_info.update(turns=turns, median_us=median_us)
        self.report.rows.append(Row(operation=operation, turns=turns, median_us=median_us, counts=counts))
