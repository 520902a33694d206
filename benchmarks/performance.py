"""The tables of docs/performance.md: ``python -m benchmarks.performance [.benchmarks/memci.json .benchmarks/detach.json]``.

What `make bench` wrote is kept beside this file, and each table of the page made of it anew; without files, of what is kept.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.result import keep, markdown
from memci.quality.detaching import Cost
from memci.quality.reports import detaching

PAGE, KEPT = Path("docs/performance.md"), Path("benchmarks/performance.json")

_OPERATIONS = {  # as the report names them, and as the page does
    "turn, folds included": "turn: append, window, append; with its share of folds and snapshots",
    "append": "append one message (no fold)",
    "window": "window",
    "fold of 20 pages": "fold of 20 pages",
    "read a page file": "read an archived page from its page file",
    "recall": "recall it (read, attach, note it in the journal)",
    "reopen": "reopen the session",
    "search": "search for three words",
    "list, characters": "*a plain list: the same turn*",
    "sqlite3, NORMAL": "*one table of SQLite, WAL, `synchronous = NORMAL`: the same turn*",
}
_COUNTS = {"syncs": "syncs", "reads": "reads", "bytes_written": "bytes written", "counter_calls": "texts counted"}
_SHORT = 10  # what is less has a decimal

Result = dict[str, Any]


def written(page: str, result: Result) -> str:
    """Return the page with its tables made of a result: each stands between a comment with its name and one with ``end``."""
    made = {name: "".join(make(result)) for name, make in TABLES.items()}

    def table(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n{made.pop(found[1])}<!-- end -->"

    page = re.sub(rf"<!-- ({'|'.join(TABLES)}) -->\n.*?<!-- end -->", table, page, flags=re.DOTALL)
    if made:
        message = f"{PAGE} has no place for {', '.join(made)}"
        raise LookupError(message)
    return page


def _operations(result: Result) -> Iterator[str]:
    spent = {(row["operation"], row["turns"]): row["median_us"] for row in result["rows"]}
    lengths = sorted({turns for _, turns in spent})
    rows = [[words, *(_number(spent[name, turns]) for turns in lengths)] for name, words in _OPERATIONS.items()]
    return markdown(["", *(f"{turns:,} turns" for turns in lengths)], rows)


def _counts(result: Result) -> Iterator[str]:
    counts = {(row["operation"], row["turns"]): row["counts"] for row in result["rows"] if row["counts"]}
    lengths = sorted({turns for _, turns in counts})[-2:]
    rows = [
        [words, *(" / ".join(_number(counts[name, turns][key]) for turns in lengths) for key in _COUNTS)]
        for name, words in _OPERATIONS.items()
        if (name, lengths[0]) in counts
    ]
    return markdown([" / ".join(f"{turns:,} turns" for turns in lengths), *_COUNTS.values()], rows)


def _growth(result: Result) -> Iterator[str]:
    turns, reopened = (_compared(result, what) for what in ("turn", "reopening"))
    rows = [
        ["CPU time of a turn, the longer over the shorter", *(f"{each['ratio']:.2f}" for each in turns)],
        *(
            [f"{words} a turn", *(" / ".join(f"{count:,.2f}" for count in each[key]) for each in turns)]
            for key, words in _COUNTS.items()
        ),
        ["CPU time of reopening, the longer over the shorter", *(f"{each['ratio']:.2f}" for each in reopened)],
    ]
    return markdown(["", *(" / ".join(f"{length:,}" for length in each["turn, compared"]) for each in turns)], rows)


def _memory(result: Result) -> Iterator[str]:
    each = _compared(result, "memory")[-1]
    lengths = " / ".join(f"{length:,} turns" for length in each["memory, compared"])
    rows = [[name, " / ".join(f"{size:.1f}" for size in sizes)] for name, sizes in each.items() if "MB" in name]
    return markdown(["", lengths], rows)


def _first(result: Result) -> Iterator[str]:
    each = next(each for each in result["growth"] if "first request, CPU ms" in each)
    return markdown(["", "ms"], [[words, _number(spent)] for words, spent in each["first request, CPU ms"].items()])


def _search(result: Result) -> Iterator[str]:
    searched = [each for each in result["growth"] if "search, pages" in each]
    most = max(each["search, pages"] for each in searched)
    shown = [each for each in searched if each["search, pages"] == most]
    rows = [
        [
            each["for"],
            *(f"{spent:.1f}" for spent in each["ms, memci and FTS5"]["all"][:2]),
            *(f"{ratio:.2g}" for ratio in each["ratio"].values()),
        ]
        for each in shown
    ]
    return markdown([f"{most:,} pages", "memci, ms", "plain, ms", *(f"ratio, {name}" for name in shown[0]["ratio"])], rows)


def _detach(result: Result) -> Iterator[str]:
    for heading, cells in detaching.tables([Cost(**cost) for cost in result["detach"]]):
        yield f"\n{heading.capitalize()}:\n\n"
        yield from markdown(cells[0], cells[1:])
    yield "\n"


TABLES = {
    "operations": _operations,
    "counts": _counts,
    "growth": _growth,
    "memory": _memory,
    "first": _first,
    "search": _search,
    "detach": _detach,
}


def _compared(result: Result, what: str) -> list[Result]:
    return [each for each in result["growth"] if f"{what}, compared" in each]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= _SHORT or value == int(value) else f"{value:.2g}"


def main(files: Iterable[str]) -> None:
    """Keep what was measured, where files are given, and write the page."""
    if given := [json.loads(Path(file).read_text(encoding="utf-8")) for file in files]:
        run, detach = given
        keep(KEPT, {**run["memci"], "detach": detach})
    result = json.loads(KEPT.read_text(encoding="utf-8"))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), result), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
