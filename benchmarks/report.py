"""What a run of the benchmarks found, as a table and as JSON."""

from collections.abc import Iterator
from typing import Any

import attrs

from benchmarks.opened import Counts

_FORMAT = "{:<34}{:>9}{:>13}{:>8}{:>8}{:>11}{:>9}"


@attrs.frozen(kw_only=True)
class Row:
    """One operation at one length.

    Attributes:
        operation: What was done.
        turns: Length of the history.
        median_us: Median time of one operation on the processor, in microseconds.
        counts: What one operation asked of the store and the counter; ``None`` where neither is used.
    """

    operation: str
    turns: int
    median_us: float
    counts: Counts | None


@attrs.define(eq=False)
class Report:
    """What was found.

    Attributes:
        rows: One for each operation and length.
        growth: Comparisons of two lengths.
    """

    rows: list[Row] = attrs.field(factory=list)
    growth: list[dict[str, Any]] = attrs.field(factory=list)

    def to_mapping(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return attrs.asdict(self)

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        if self.rows:
            yield ""
            yield _FORMAT.format("operation", "turns", "CPU µs", "syncs", "reads", "written B", "counted")
        last = ""
        for row in self.rows:
            yield _FORMAT.format(
                "" if row.operation == last else row.operation, f"{row.turns:,}", f"{row.median_us:,.1f}", *_cells(row.counts)
            )
            last = row.operation
        for comparison in self.growth:
            yield ""
            for name, value in comparison.items():
                yield f"{name.replace('_', ' '):<34}{_shown(value)}"


def _cells(counts: Counts | None) -> list[str]:
    if counts is None:
        return [""] * 4
    values = (counts.syncs, counts.reads, counts.bytes_written, counts.counter_calls)
    return [f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.2f}" for value in values]  # noqa: PLR2004


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return " / ".join(map(_shown, value))
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
