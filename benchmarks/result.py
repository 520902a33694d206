"""Results of measurements: kept as JSON, shown as Markdown."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any


def keep(path: Path, result: dict[str, Any]) -> None:
    """Write a result, with four significant digits of each number that is no whole one."""
    path.write_text(json.dumps(_rounded(result), indent=1) + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:  # noqa: ANN401 (a JSON value)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table, a line after the other; a column whose heading ends with ``#`` holds numbers, which is not shown."""
    yield f"| {' | '.join(name.removesuffix('#') for name in columns)} |\n|{'---|' * len(columns)}\n"
    yield from (f"| {' | '.join(row)} |\n" for row in rows)
