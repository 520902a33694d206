"""The tables of docs/quality.md, from the JSON file that ``memci bench quality`` writes.

python -m benchmarks.quality.tables .benchmarks/quality.json
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.result import markdown

_BUDGET = 8_000
# Columns and their keys.
_EVIDENCE = {
    "in view, asked": "evidence_in_view",
    "at page, asked": "asked_at_page",
    "owned, asked": "asked_owned",
    "at page": "at_page",
    "anchored": "anchored",
    "coincidence": "coincidence",
    "verbatim": "verbatim",
    "indexed": "indexed",
    "named": "named",
    "line R@5": "line_recall_5",
}
_SEARCH = {
    "R@1": "recall_1",
    "R@5": "recall_5",
    "R@10": "recall_10",
    "R@1k tokens": "recall_1000_tokens",
    "in snippets": "answer_in_snippets",
}
_NEEDS = {"files": "file_needs", "identifiers": "identifier_needs", "hashes": "hash_needs", "openable": "openable"}
_MONEY = {
    "tokens a call": "tokens_per_call",
    "reuse": "prefix_reuse",
    "cost a call": "cost_per_call",
    "verbatim tokens": "verbatim_tokens",
    "verbatim share": "verbatim_share",
    "listed": "listed",
    "over budget": "over_budget",
    "no window": "no_window",
    "broken pairs": "broken_pairs",
    "lost": "lost",
}
_COUNTS = {"tokens_per_call", "cost_per_call", "verbatim_tokens", "over_budget", "no_window", "broken_pairs", "lost"}


def tables(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield Markdown: evidence, search, needs, cost and faults at one budget; then what changes with the budget."""
    listed = list(rows)
    budgets = sorted({row["budget"] for row in listed})
    shown = [row for row in listed if row["budget"] == (_BUDGET if _BUDGET in budgets else budgets[0])]
    for name, columns in (("Evidence", _EVIDENCE), ("Search", _SEARCH), ("Needs", _NEEDS), ("Cost and faults", _MONEY)):
        yield f"{name}, {shown[0]['budget']:,} tokens:\n\n"
        yield from _table([row for row in shown if any(row[key] is not None for key in columns.values())], columns)
    yield "By budget: in view / at page (asked) / cost a call; files / identifiers / cost; else verbatim tokens / cost:\n"
    yield "\n"
    yield from _by_budget(listed, budgets)


def _by_budget(rows: list[dict[str, Any]], budgets: list[int]) -> Iterator[str]:
    cells = {(row["set"], row["engine"], row["budget"]): _together(row) for row in rows}
    names = dict.fromkeys((row["set"], row["engine"]) for row in rows)
    lines = [[*name, *(cells[*name, budget] for budget in budgets)] for name in names]
    yield from markdown(["set", "engine", *(f"{budget:,}" for budget in budgets)], lines)
    yield "\n"


def _together(row: dict[str, Any]) -> str:
    keys = ("file_needs", "identifier_needs", "cost_per_call") if row["needs"] else ("verbatim_tokens", "cost_per_call")
    if row["questions"]:
        keys = ("evidence_in_view", "asked_at_page", "cost_per_call")
    return " / ".join(_cell(row[key], key) for key in keys)


def _table(rows: list[dict[str, Any]], columns: dict[str, str]) -> Iterator[str]:
    lines = [[row["set"], row["engine"], *(_cell(row[key], key) for key in columns.values())] for row in rows]
    yield from markdown(["set", "engine", *columns], lines)
    yield "\n"


def _cell(value: float | None, key: str) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if key in _COUNTS else f"{value:.1%}"


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.writelines(tables(found["rows"]))
