"""Tables of measurements, as Markdown."""

from collections.abc import Iterable, Iterator, Sequence


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table, a line after the other; a column whose heading ends with ``#`` holds numbers, which is not shown."""
    yield f"| {' | '.join(name.removesuffix('#') for name in columns)} |\n|{'---|' * len(columns)}\n"
    yield from (f"| {' | '.join(row)} |\n" for row in rows)
