"""The parts that pictures of measurements are drawn with, as SVG."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

INK, FAINT, GRID = "#1e293b", "#64748b", "#e2e8f0"
LEGEND_LINE = 18  # its height, in pixels as all sizes here

_COLOURS = ("#c2410c", "#64748b", "#2563eb", "#0891b2", "#16a34a", "#9333ea", "#b45309", "#be185d")
_FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"


def document(width: int, height: int, parts: Iterable[str]) -> str:
    """Return a document of elements."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<g font-family="{_FONT}" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    )
    return "\n".join([*head, *parts, "</g>", "</svg>", ""])


def colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name."""
    return dict(zip(dict.fromkeys(names), itertools.cycle(_COLOURS), strict=False))


def legend(named: Mapping[str, str], left: float) -> Iterator[str]:
    """Yield the names beside dots in their colours, one below the other."""
    for number, (name, colour) in enumerate(named.items(), start=1):
        yield f'<circle cx="{left}" cy="{number * LEGEND_LINE}" r="5" fill="{colour}"/>'
        yield text(left + 10, number * LEGEND_LINE + 4, name, INK)


def text(x: float, y: float, words: str, colour: str = FAINT, *, anchor: str = "start", more: str = "") -> str:  # noqa: PLR0913 (of one element)
    """Return words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def across(value: float, low: float, high: float, left: float, right: float) -> float:
    """Return the place of a value on a logarithmic scale."""
    return left + (right - left) * math.log(value / low) / math.log(high / low)


def ticks(low: float, high: float) -> Iterator[int]:
    """Yield the round numbers between two, for a logarithmic scale."""
    numbers = (first * 10**power for power in range(9) for first in (1, 2, 5))
    return (number for number in numbers if low <= number <= high)


def line(places: Sequence[tuple[float, float]], colour: str, name: str, dashes: str = "") -> Iterator[str]:
    """Yield a line through places, with dots that show the name when pointed at; *dashes* as SVG writes them."""
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dashes}"/>'
    yield from (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(name)}</title></circle>' for x, y in places
    )
