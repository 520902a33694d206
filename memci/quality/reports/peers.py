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


TABLES = {  # by what their figures are of
    "turns, in µs": (
        Measure("turn CPU", lambda row: row["cpu_us"]["median"]),
        Measure("all CPU", lambda row: row["all_cpu_us"]),
        Measure("mean wait", lambda row: row["wait_us"]["mean"]),
        Measure("median wait", lambda row: row["wait_us"]["median"]),
        Measure("p99 wait", lambda row: row["wait_us"]["p99"]),
        Measure("longest wait", lambda row: row["wait_us"]["max"]),
        Measure("growth", lambda row: row["cpu_us"]["median"] / row["before"]["cpu_us"]["median"], 2),
    ),
    "other operations, CPU in ms": (
        Measure("import of a turn", lambda row: row["fill_us"] / 1e3, 2),
        Measure("reopening", lambda row: row["reopen_us"]["cpu"] / 1e3, 2),
        Measure("first request", lambda row: row["first_us"]["cpu"] / 1e3),
        Measure("reading an old turn", lambda row: row["read_us"]["cpu"] / 1e3, 3),
        Measure("search", lambda row: row["search_us"]["cpu"] / 1e3, 2),
    ),
    "disk and memory": (
        Measure("bytes a turn", lambda row: row["bytes"]),
        Measure("syncs a turn", lambda row: row["syncs"], 1),
        Measure("process, MB", lambda row: row["rss"] / 1e6),
    ),
    "promises": (
        Measure("windows", lambda row: row["windows"]),
        Measure("largest window", lambda row: row["largest_window"]),
        Measure("over budget", lambda row: row["over_budget"]),
        Measure("broken pairs", lambda row: row["broken_pairs"]),
        Measure("lost by kill -9", lambda row: _lost(row, "killed_lost")),
        Measure("lost by four writers", lambda row: _lost(row, "writers_lost")),
    ),
}
_NO_PRICE = {"windows", "largest window", "growth"}  # how many were looked at, how full they are; growth has its turn beside it


_FLUSH, _MEMORY, _SQLITE, _FTS5 = "memci, flush", "memci, memory", "sqlite3, NORMAL", "sqlite3, FTS5"
_AGENTS, _STRANDS = "OpenAI Agents SDK, limit", "Strands, files"


def _paired(key: str) -> Callable[[Row, Row], float]:
    """Return the median of the ratios of rounds that were taken one after the other."""
    return lambda one, other: statistics.median(a[key] / b[key] for a, b in zip(one["rounds"], other["rounds"], strict=True))


def _times(name: str) -> Callable[[Row, Row], float]:
    return lambda one, other: float(one[name]["cpu"] / other[name]["cpu"])


_RATIOS: tuple[tuple[str, str, str, Callable[[Row, Row], float]], ...] = (
    ("turn CPU, folds left out", _FLUSH, _SQLITE, _paired("cpu_us")),
    ("turn CPU, folds left out", _MEMORY, "list, o200k", _paired("cpu_us")),
    ("all CPU", _FLUSH, _SQLITE, lambda one, other: one["all_cpu_us"] / other["all_cpu_us"]),
    *(("mean wait, folds included", _FLUSH, peer, _paired("wait_us")) for peer in (_SQLITE, _AGENTS, _STRANDS)),
    ("p99 wait over median wait", _FLUSH, _FLUSH, lambda one, _: one["wait_us"]["p99"] / one["wait_us"]["median"]),
    ("reading an old turn", _FLUSH, _SQLITE, _times("read_us")),
    ("reopening", _FLUSH, _SQLITE, _times("reopen_us")),
    ("search", _FLUSH, _FTS5, _times("search_us")),
    ("import of a turn", _FLUSH, _STRANDS, lambda one, other: one["fill_us"] / other["fill_us"]),
    ("bytes written over the JSON of the messages", _FLUSH, _FLUSH, lambda one, _: one["bytes"] / one["message_bytes"]),
)


def ratios(rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield what is compared, whose figures, and the ratio, at the longest chat that memci was measured at."""
    chats = [row for row in rows if row["work"] == "chat" and "cpu_us" in row]
    longest = max((row["turns"] for row in chats if row["peer"] == _FLUSH), default=0)
    measured = {row["peer"]: row for row in chats if row["turns"] == longest}
    for heading, one, other, of in _RATIOS:
        with suppress(KeyError):  # of what one of them was not measured in
            ratio = of(measured[one], measured[other])
            yield [heading, one if one == other else f"{one} / {other}", f"{ratio:.2f}"]


def rows_of(result: dict[str, Any]) -> list[Row]:
    """Return the rows of a result, in its order; those of the shortest chat have what was measured once a peer, too."""
    others = {row["peer"]: row for row in result["others"]}
    chat = {(row["peer"], row["turns"]): row for row in result["rows"] if row["work"] == "chat" and "cpu_us" in row}
    return [
        {
            **row,
            **(others.get(row["peer"], {}) if (row["work"], row["turns"]) == ("chat", result["lengths"][0]) else {}),
            **({"before": chat[place]} if row["work"] == "chat" and (place := (row["peer"], row["turns"] // 10)) in chat else {}),
        }
        for row in result["rows"]
    ]


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
    lines += [[row["peer"], *(measure.write(row) for measure in shown)] for row in rows if "cpu_us" in row]
    return lines if shown else []


def better(result: dict[str, Any], rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield work and peer, and in what the peer is better than the memci that keeps as much: its share of memci's figure."""
    for heading, part in parts_of(rows):
        by_name = {row["peer"]: row for row in part}
        for row in part:
            ours = by_name.get(result["peers"][row["peer"]]["beside"], {})
            if won := [words for measures in TABLES.values() for measure in measures if (words := _won(measure, row, ours))]:
                yield [heading, row["peer"], ", ".join(won)]


def _won(measure: Measure, row: Row, ours: Row) -> str:
    theirs, own = measure.value(row), measure.value(ours)
    if measure.heading in _NO_PRICE or theirs is None or own is None or theirs >= own * _BETTER:
        return ""
    return f"{measure.heading} {theirs / own:.2g}"


def problems(rows: Iterable[Row]) -> Iterator[str]:
    """Yield what was not reached, or failed."""
    for heading, part in parts_of(rows):
        yield from (f"{row['peer']}, {heading}: {row['problem']}" for row in part if "problem" in row)


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
