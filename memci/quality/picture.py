"""The figures as a picture: what a call costs, against how much of the answers it shows. SVG, written by hand."""

import math
from collections.abc import Iterator, Sequence
from html import escape

import attrs

from memci.quality.measuring import Row
from memci.quality.report import Figures, figures

_COLOURS = ("#c2410c", "#64748b", "#2563eb", "#0891b2", "#16a34a", "#9333ea", "#b45309", "#be185d")
_INK, _FAINT, _GRID = "#1e293b", "#64748b", "#e2e8f0"
_WIDTH, _HEIGHT = 440, 300  # of a panel, in pixels, as all sizes here
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 40, 46
_LEGEND_LINE = 18
_FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
_RADII = (3.0, 7.0)
_MARGIN = 1.15  # a little room behind the outermost points


@attrs.frozen
class _Point:
    row: Row
    x: float
    y: float


@attrs.frozen
class _Panel:
    """One set: a point for each engine and budget."""

    name: str
    axis: str
    share: bool
    points: tuple[_Point, ...]


def draw(rows: Sequence[Row]) -> str:
    """Return an SVG document: a panel for each set, in which an engine is a line over its budgets; its dots grow with them.

    To the right a call costs more (a logarithmic scale). Upwards stands how much of the answers is shown at their pages; for a
    set without questions, how many of the conversation's own tokens are in a window word for word. Hollow dots: windows that
    were over their budget; one that is higher than all others stands at the upper edge.
    """
    panels = [_panel(rows, name) for name in dict.fromkeys(row.set for row in rows)]
    engines = list(dict.fromkeys(row.engine for row in rows))
    budgets = sorted({row.budget for row in rows})
    columns = min(len(panels), 2)
    lines = _legend_lines(engines, columns * _WIDTH)
    above = _LEGEND_LINE * (len(lines) + 1) + 8
    width, height = columns * _WIDTH, above + math.ceil(len(panels) / columns) * _HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<g font-family="{_FONT}" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_legend(lines, engines, budgets),
    ]
    for number, panel in enumerate(panels):
        left, top = number % columns * _WIDTH, above + number // columns * _HEIGHT
        parts += [f'<g transform="translate({left} {top})">', *_drawn(panel, engines, budgets), "</g>"]
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _panel(rows: Sequence[Row], name: str) -> _Panel:
    shown = [(row, figures(row)) for row in rows if row.set == name]
    share = any(found.at_page is not None for _, found in shown)
    points = [
        _Point(row, found.cost_per_call, value) for row, found in shown if (value := _height(found, share=share)) is not None
    ]
    axis = "of the answers, shown at their pages" if share else "verbatim tokens a call, once outgrown"
    return _Panel(name, axis, share, tuple(points))


def _height(found: Figures, *, share: bool) -> float | None:
    return found.at_page if share else found.verbatim_tokens


def _legend_lines(engines: Sequence[str], width: int) -> list[list[tuple[int, str]]]:
    """Return where each name stands, line by line."""
    lines: list[list[tuple[int, str]]] = [[]]
    x = _LEFT
    for name in engines:
        step = 28 + 7 * len(name)
        if lines[-1] and x + step > width:
            lines.append([])
            x = _LEFT
        lines[-1].append((x, name))
        x += step
    return lines


def _legend(lines: Sequence[Sequence[tuple[int, str]]], engines: Sequence[str], budgets: Sequence[int]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        y = number * _LEGEND_LINE
        for x, name in line:
            yield f'<circle cx="{x}" cy="{y}" r="5" fill="{_colour(engines.index(name))}"/>'
            yield _text(x + 10, y + 4, name, _INK)
    words = f"budgets of {budgets[0]:,} (small dots) to {budgets[-1]:,} tokens (large); hollow: over budget"
    yield _text(_LEFT - 5, (len(lines) + 1) * _LEGEND_LINE + 4, words)


def _drawn(panel: _Panel, engines: Sequence[str], budgets: Sequence[int]) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    yield _text(_LEFT, 26, panel.name, _INK, more='font-size="13" font-weight="600"')
    yield _text(right, 26, panel.axis, anchor="end")
    if not panel.points:
        yield _text(_LEFT, _TOP + 20, "no conversation outgrew a budget")
        return
    low, high = min(point.x for point in panel.points) / _MARGIN, max(point.x for point in panel.points) * _MARGIN
    top = 1.0 if panel.share else _round_top(_highest(panel.points))
    for step in range(5):
        value, y = top * step / 4, bottom - (bottom - _TOP) * step / 4
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{_GRID}"/>'
        yield _text(_LEFT - 8, y + 4, f"{value:.0%}" if panel.share else f"{value:,.0f}", anchor="end")
    for value in _ticks(low, high):
        x = _across(value, low, high)
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{_GRID}"/>'
        yield _text(x, bottom + 16, f"{value:,.0f}", anchor="middle")
    yield _text((_LEFT + right) / 2, bottom + 34, "cost a call, in tokens of plain input", anchor="middle")
    for number, name in enumerate(engines):
        places = [
            (_across(point.x, low, high), bottom - (bottom - _TOP) * min(point.y / top, 1.0), point.row)
            for point in panel.points
            if point.row.engine == name
        ]
        yield from _line(places, _colour(number), budgets)


def _text(x: float, y: float, words: str, colour: str = _FAINT, *, anchor: str = "start", more: str = "") -> str:  # noqa: PLR0913 (of one element)
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def _line(places: Sequence[tuple[float, float, Row]], colour: str, budgets: Sequence[int]) -> Iterator[str]:
    if len(places) > 1:
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        yield f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-opacity="0.55"/>'
    least, most = _RADII
    for x, y, row in places:
        radius = least + (most - least) * budgets.index(row.budget) / max(len(budgets) - 1, 1)
        fill = "#ffffff" if row.played.faults.over_budget else colour
        title = f"{row.engine}, {row.budget:,} tokens"
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}" stroke="{colour}" stroke-width="1.5">'
            f"<title>{escape(title)}</title></circle>"
        )


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _ticks(low: float, high: float) -> list[int]:
    """Return the round numbers on the scale: 1, 2 and 5 times a power of ten."""
    return [number for power in range(8) for first in (1, 2, 5) if low <= (number := first * 10**power) <= high]


def _highest(points: Sequence[_Point]) -> float:
    """Return the highest point of a window within its budget; of any where there is none."""
    return max([point.y for point in points if not point.row.played.faults.over_budget] or [point.y for point in points])


def _round_top(most: float) -> float:
    """Return the least number above *most* whose quarters are round."""
    power = 10.0 ** math.floor(math.log10(max(most, 1.0)))
    return next(first * power for first in (1, 2, 4, 8, 10, 20) if first * power > most)


def _across(value: float, low: float, high: float) -> float:
    return _LEFT + (_WIDTH - _RIGHT - _LEFT) * math.log(value / low) / math.log(high / low)
