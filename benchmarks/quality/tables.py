"""The tables of docs/quality.md, from the JSON file that ``memci bench quality`` writes.

python -m benchmarks.quality.tables .benchmarks/quality.json
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_BUDGET = 8_000
_SHARES = (
    *("anchored", "at_page", "verbatim", "indexed"),
    *("recall_1", "recall_5", "recall_10", "recall_1000_tokens", "answer_in_snippets"),
)
_COUNTS = ("tokens_per_call", "prefix_reuse", "cost_per_call", "verbatim_tokens")
_FAULTS = ("over_budget", "no_window", "broken_pairs", "lost")

_EVIDENCE = ("anchored", "at page", "verbatim", "indexed", "R@1", "R@5", "R@10", "R@1k tokens", "in snippets")
_MONEY = ("tokens a call", "reuse", "cost a call", "verbatim tokens", "over budget", "no window", "broken pairs", "lost")


def tables(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield Markdown: evidence and search, cost and faults at one budget; then what changes with the budget."""
    listed = list(rows)
    budgets = sorted({row["budget"] for row in listed})
    shown = [row for row in listed if row["budget"] == (_BUDGET if _BUDGET in budgets else budgets[0])]
    yield f"Evidence and search, {shown[0]['budget']:,} tokens:\n"
    yield from _table([row for row in shown if row["questions"]], _EVIDENCE, _SHARES)
    yield f"Cost and faults, {shown[0]['budget']:,} tokens:\n"
    yield from _table(shown, _MONEY, (*_COUNTS, *_FAULTS))
    yield "Anchored / at page / cost a call, by budget; without questions verbatim tokens / cost a call:\n"
    yield from _by_budget(listed, budgets)


def _by_budget(rows: list[dict[str, Any]], budgets: list[int]) -> Iterator[str]:
    cells = {(row["set"], row["engine"], row["budget"]): _together(row) for row in rows}
    yield f"| set | engine | {' | '.join(f'{budget:,}' for budget in budgets)} |"
    yield f"|---|---|{'---|' * len(budgets)}"
    for name, engine in dict.fromkeys((row["set"], row["engine"]) for row in rows):
        yield f"| {name} | {engine} | {' | '.join(cells[name, engine, budget] for budget in budgets)} |"
    yield ""


def _together(row: dict[str, Any]) -> str:
    keys = ("anchored", "at_page", "cost_per_call") if row["questions"] else ("verbatim_tokens", "cost_per_call")
    return " / ".join(_cell(row[key], key) for key in keys)


def _table(rows: list[dict[str, Any]], heads: tuple[str, ...], keys: tuple[str, ...]) -> Iterator[str]:
    yield f"| set | engine | {' | '.join(heads)} |"
    yield f"|---|---|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {row['set']} | {row['engine']} | {' | '.join(_cell(row[key], key) for key in keys)} |"
    yield ""


def _cell(value: float | None, key: str) -> str:
    if value is None:
        return "-"
    return f"{value:.1%}" if key in _SHARES or key == "prefix_reuse" else f"{value:,.0f}"


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write("\n".join(tables(found["rows"])) + "\n")
