"""What turns cost in memci and beside it, as tables and as a picture in SVG, from the file that benchmarks/peers writes."""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import attrs

from memci.quality.reports import svg

Row = dict[str, Any]  # of one peer, at one kind of work and length

_BETTER = 0.95  # of memci's figure: what is less is better, and what lies between may be chance
_WIDTH, _HEIGHT = 880, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 40, 46
_DASHES = ("none", "6 3", "1 3")  # colours are used again


@attrs.frozen
class Measure:
    """A figure of a peer; less is better.

    Attributes:
        heading: In a table.
        of: Takes it from a row; ``KeyError`` or ``None`` where it was not measured.
        digits: How many decimals are shown.
    """

    heading: str
    of: Callable[[Row], float | None]
    digits: int = 0

    def value(self, row: Row) -> float | None:
        """Return it; ``None`` where it was not measured."""
        try:
            return self.of(row)
        except KeyError:
            return None

    def write(self, row: Row) -> str:
        """Return it as a table shows it."""
        value = self.value(row)
        if value is None:
            return "-"
        return "all" if value == math.inf else f"{value:,.{self.digits}f}"


def _lost(row: Row, key: str) -> float:
    """Return how much was lost; of what is kept in memory only, all."""
    return math.inf if "first_us" in row and not row["keeps"] else float(row[key])


_TURN = (
    Measure("turn CPU", lambda row: row["cpu_us"]["median"]),
    Measure("all CPU", lambda row: row["all_cpu_us"]),
    Measure("mean wait", lambda row: row["wait_us"]["mean"]),
    Measure("median wait", lambda row: row["wait_us"]["median"]),
    Measure("p99 wait", lambda row: row["wait_us"]["p99"]),
    Measure("longest wait", lambda row: row["wait_us"]["max"]),
)


_PAUSED = ("all CPU", "mean wait", "p99 wait")


def _paused(measure: Measure) -> Measure:
    """Return a measure of a turn, of the rounds in which a model took its time."""
    return Measure(f"{measure.heading} with pauses", lambda row: measure.of(row["paused"]))


TURNS = (*_TURN, Measure("growth", lambda row: row["cpu_us"]["median"] / row["before"]["cpu_us"]["median"], 2))
TABLES = {  # by what their figures are of
    "turns, in µs": TURNS,
    "turns with a pause after each window, in µs": tuple(_paused(measure) for measure in _TURN if measure.heading in _PAUSED),
    "other operations, CPU in ms": (
        Measure("import of a turn", lambda row: row["fill_us"] / 1e3, 2),
        Measure("reopening", lambda row: row["reopen_us"]["cpu"] / 1e3, 2),
        Measure("reading an old turn", lambda row: row["read_us"]["cpu"] / 1e3, 3),
        Measure("search", lambda row: row["search_us"]["cpu"] / 1e3, 2),
    ),
    "disk and memory": (
        Measure("bytes a turn", lambda row: row["bytes"]),
        Measure("process, MB", lambda row: row["rss"] / 1e6),
    ),
}
ONCE = (  # of a peer, over all works
    Measure("windows", lambda row: row["windows"]),
    Measure("largest window", lambda row: row["largest_window"]),
    Measure("over budget", lambda row: row["over_budget"]),
    Measure("broken pairs", lambda row: row["broken_pairs"]),
    Measure("lost by kill -9", lambda row: _lost(row, "killed_lost")),
    Measure("lost by four writers", lambda row: _lost(row, "writers_lost")),
    Measure("syncs a turn", lambda row: row["syncs"], 1),
    Measure("first request, ms", lambda row: row["first_us"]["cpu"] / 1e3),
)
RATIO_COLUMNS = ("figure", "of", "back to back#", "with pauses#")
_NO_PRICE = {"windows", "largest window", "growth"}  # how many were looked at, how full they are; growth has its turn beside it


_FLUSH, _MEMORY, _SQLITE, _FTS5 = "memci, flush", "memci, memory", "sqlite3, NORMAL", "sqlite3, FTS5"
_AGENTS, _STRANDS = "OpenAI Agents SDK, limit", "Strands, files"


Ratio = Callable[[Row, Row], float]


def _over(of: Callable[[Row], float]) -> Ratio:
    return lambda one, other: of(one) / of(other)


def _paired(key: str) -> Ratio:
    """Return the median of the ratios of rounds that were taken one after the other."""
    return lambda one, other: statistics.median(a[key] / b[key] for a, b in zip(one["rounds"], other["rounds"], strict=True))


_RATIOS: tuple[tuple[str, str, str, Ratio], ...] = (  # of what a row of turns has, back to back or with pauses
    ("turn CPU, folds left out", _FLUSH, _SQLITE, _paired("cpu_us")),
    ("turn CPU, folds left out", _MEMORY, "list, o200k", _paired("cpu_us")),
    ("all CPU", _FLUSH, _SQLITE, _over(lambda row: row["all_cpu_us"])),
    *(("mean wait, folds included", _FLUSH, peer, _paired("wait_us")) for peer in (_SQLITE, _AGENTS, _STRANDS)),
    ("p99 wait over median wait", _FLUSH, _FLUSH, lambda one, _: one["wait_us"]["p99"] / one["wait_us"]["median"]),
)
_OTHER_RATIOS: tuple[tuple[str, str, str, Ratio], ...] = (
    ("reading an old turn", _FLUSH, _SQLITE, _over(lambda row: row["read_us"]["cpu"])),
    ("reopening, with a window", _FLUSH, _SQLITE, _over(lambda row: row["reopen_us"]["cpu"])),
    ("import of 1,000 messages", _FLUSH, _STRANDS, _over(lambda row: row["fill_us"])),
    ("first request, CPU", _FLUSH, _SQLITE, _over(lambda row: row["first_us"]["cpu"])),
    ("bytes written over the JSON of the messages", _FLUSH, _FLUSH, lambda one, _: one["bytes"] / one["message_bytes"]),
    (
        "the same, without the search index",
        _FLUSH,
        _FLUSH,
        lambda one, _: one["bytes"] * (1 - one["index_share"]) / one["message_bytes"],
    ),
)
_WINDOW_RATIOS = (  # of memci over itself: what, and the work and window of both
    ("wait at a fold", ("chat", 128_000), ("chat", 8_000), lambda row: row["fold_us"]),
    ("turn CPU with results of 20,000 characters", ("results", 28_000), ("chat", 28_000), lambda row: row["cpu_us"]["median"]),
    ("all CPU with results of 20,000 characters", ("results", 28_000), ("chat", 28_000), lambda row: row["all_cpu_us"]),
)


def ratios(result: dict[str, Any]) -> Iterator[list[str]]:
    """Yield what is compared, whose figures, and the ratio back to back and with pauses, at the longest chat of memci."""
    chats = [row for row in result["rows"] if row["work"] == "chat" and "cpu_us" in row]
    longest = max((row["turns"] for row in chats if row["peer"] == _FLUSH), default=0)
    once = {row["peer"]: row for row in result["others"]}
    measured = {row["peer"]: {**once.get(row["peer"], {}), **row} for row in chats if row["turns"] == longest}
    if _FLUSH in measured and "index_share" in result:
        measured[_FLUSH]["index_share"] = result["index_share"]  # as it is at this length
    paused = {peer: row["paused"] for peer, row in measured.items() if "paused" in row}
    for heading, one, other, of in _RATIOS:
        found = [_ratio(of, rows.get(one), rows.get(other)) for rows in (measured, paused)]
        yield [heading, _of(one, other), *found]
    for heading, one, other, of in _OTHER_RATIOS:
        yield [heading, _of(one, other), _ratio(of, measured.get(one), measured.get(other)), ""]
    for turns in sorted({row["turns"] for row in chats}, reverse=True):
        found_by = {row["peer"]: row for row in chats if row["turns"] == turns}
        ratio = _ratio(_over(lambda row: row["search_us"]["cpu"]), found_by.get(_FLUSH), found_by.get(_FTS5))
        yield [f"search in {turns:,} turns", _of(_FLUSH, _FTS5), ratio, ""]
    windows = {(row["work"], row["window"]): row for row in result.get("windows", ())}
    for heading, first, second, figure in _WINDOW_RATIOS:
        words = " / ".join(f"{work}, window of {window:,}" for work, window in (first, second))
        yield [heading, f"{_FLUSH}: {words}", _ratio(_over(figure), windows.get(first), windows.get(second)), ""]


def _of(one: str, other: str) -> str:
    return one if one == other else f"{one} / {other}"


def _ratio(of: Ratio, one: Row | None, other: Row | None) -> str:
    """Return a ratio; "-" where one of the two was not measured."""
    with suppress(KeyError):
        if one is not None and other is not None:
            return f"{of(one, other):.2f}"
    return "-"


def rows_of(result: dict[str, Any]) -> list[Row]:
    """Return the rows of a result, in its order, each chat with that of a tenth of its length, *before*."""
    chat = {(row["peer"], row["turns"]): row for row in result["rows"] if row["work"] == "chat" and "cpu_us" in row}
    return [
        {
            **row,
            **({"before": chat[place]} if row["work"] == "chat" and (place := (row["peer"], row["turns"] // 10)) in chat else {}),
        }
        for row in result["rows"]
    ]


def once_of(result: dict[str, Any]) -> list[Row]:
    """Return a row for each peer: what was measured once, and its promises over all works."""
    found: dict[str, Row] = {}
    for row in (row for row in result["rows"] if "windows" in row):
        whole = found.setdefault(row["peer"], {"peer": row["peer"], "keeps": row["keeps"], "largest_window": 0})
        whole["largest_window"] = max(whole["largest_window"], row["largest_window"])
        for key in ("windows", "over_budget", "broken_pairs"):
            whole[key] = whole.get(key, 0) + row[key]
    return [found.get(row["peer"], {}) | row for row in result["others"]]


def parts_of(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each kind of work and length, with a heading."""
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(f"{row['work']}, {row['turns']:,} turns", []).append(row)
    yield from parts.items()


def table(measures: Sequence[Measure], rows: Sequence[Row]) -> list[list[str]]:
    """Return the names of columns and a line for each row; without figures that no row has, and empty where none has any."""
    shown = [measure for measure in measures if any(measure.value(row) is not None for row in rows)]
    lines = [["peer", *(f"{measure.heading}#" for measure in shown)]]
    lines += [[row["peer"], *cells] for row in rows if set(cells := [measure.write(row) for measure in shown]) - {"-"}]
    return lines if shown else []


def better(result: dict[str, Any], rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield a library, and in what it is better than the memci that keeps as much, as shares of memci's figure over all works."""
    won: dict[str, dict[str, list[float]]] = {}
    of_turns = [measure for measures in TABLES.values() for measure in measures]
    for part, measures in (*((part, of_turns) for _, part in parts_of(rows)), (once_of(result), ONCE)):
        by_name = {row["peer"]: row for row in part}
        for row in part:
            library = row["peer"].partition(",")[0]
            ours = by_name.get(result["peers"][row["peer"]]["beside"], {})
            for measure in measures:
                if (share := _won(measure, row, ours)) is not None:
                    won.setdefault(library, {}).setdefault(measure.heading, []).append(share)
    order = [measure.heading for measure in (*of_turns, *ONCE)]
    for library, shares in won.items():
        yield [library, ", ".join(f"{heading} {_range(shares[heading])}" for heading in order if heading in shares)]


def _range(shares: Sequence[float]) -> str:
    low, high = f"{min(shares):.2g}", f"{max(shares):.2g}"
    return low if low == high else f"{low}–{high}"


def _won(measure: Measure, row: Row, ours: Row) -> float | None:
    """Return a peer's share of our figure where that is better, and else ``None``."""
    theirs, own = measure.value(row), measure.value(ours)
    if measure.heading in _NO_PRICE or theirs is None or own is None or theirs >= own * _BETTER:
        return None
    return theirs / own


def problems(rows: Iterable[Row]) -> Iterator[str]:
    """Yield what was not reached, or failed: peer, works and reason."""
    failed: dict[tuple[str, str], list[str]] = {}
    for heading, part in parts_of(rows):
        for row in part:
            if "problem" in row:
                failed.setdefault((row["peer"], row["problem"]), []).append(heading)
    yield from (f"{peer}, {'; '.join(works)}: {problem}" for (peer, problem), works in failed.items())


def draw(rows: Iterable[Row]) -> str:
    """Return an SVG document: a line for each peer, which shows how long a turn of chat takes as its history grows."""
    measured = [row for row in rows if row["work"] == "chat" and "cpu_us" in row]
    points: dict[str, list[tuple[float, float]]] = {row["peer"]: [] for row in measured}
    for row in measured:
        points[row["peer"]].append((row["turns"], row["wait_us"]["median"]))
    colours = svg.colours(points)
    above, right, bottom = svg.LEGEND_LINE * (len(colours) + 1), _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    lengths, costs = (sorted({point[axis] for line in points.values() for point in line}) for axis in (0, 1))
    parts = [*svg.legend(colours, _LEFT), f'<g transform="translate(0 {above})">']
    parts.append(
        svg.text(_LEFT, 26, "µs a turn that a user waits, median; dashed from the ninth on, dotted from the seventeenth", svg.INK)
    )
    low, high = costs[0] / 1.5, costs[-1] * 1.5
    for value in svg.ticks(low, high):
        y = svg.across(value, low, high, bottom, _TOP)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{svg.GRID}"/>')
        parts.append(svg.text(_LEFT - 8, y + 4, f"{value:,}", anchor="end"))
    across = [svg.across(value, lengths[0] / 1.2, lengths[-1] * 1.2, _LEFT, right) for value in lengths]
    parts += [svg.text(x, bottom + 16, f"{value:,}", anchor="middle") for x, value in zip(across, lengths, strict=True)]
    parts.append(svg.text((_LEFT + right) / 2, bottom + 34, "turns of history", anchor="middle"))
    for number, (peer, line) in enumerate(points.items()):
        places = [(across[lengths.index(turns)], svg.across(cost, low, high, bottom, _TOP)) for turns, cost in line]
        parts += svg.line(places, colours[peer], peer, _DASHES[number // len(set(colours.values())) % len(_DASHES)])
    return svg.document(_WIDTH, above + _HEIGHT, [*parts, "</g>"])
