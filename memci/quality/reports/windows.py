"""What was measured, as rows of tables, as JSON, and as a picture in SVG: what a call costs, against what it shows."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

import attrs

from memci.engine.settings.config import Prices
from memci.quality.conversation import FILE, KINDS
from memci.quality.measuring import Row
from memci.quality.played import Played
from memci.quality.reports import svg
from memci.quality.scoring.reading import ReadRow

NOTHING = "-"  # stands where an engine has nothing to measure
PRICES = Prices()  # of tokens that are written to a provider's cache, and read from it; a plain token costs 1

_HEIGHTS = {  # figures that a panel shows upwards: the first that there is
    "evidence_in_view": "of the answers, in view when asked",
    "file_needs": "of the files that were needed next, shown",
    "verbatim_tokens": "verbatim tokens a call, once outgrown",
}
_WIDTH, _HEIGHT = 440, 300  # of a panel, in pixels, as all sizes here
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 40, 46
_RADII = (3.0, 7.0)
_MARGIN = 1.15  # a little room around the outermost points


def _met(kind: str, row: Played) -> float | None:
    needs = row.needs.get(kind)
    return None if needs is None else needs.met / needs.asked


def _openable(row: Played) -> float | None:
    needs = row.needs.get(FILE)
    return None if needs is None or not needs.paths else needs.openable / needs.paths


def _mean(total: float, number: int) -> float | None:
    return total / number if number else None


@attrs.frozen
class Figure:
    """A figure of one engine on one set at one budget; docs/quality.md says what each is."""

    name: str  # in JSON
    heading: str  # in a table, where a share has ``%``
    of: Callable[[Played], float | None]  # takes it from what was measured; ``None`` where there is nothing to measure

    def write(self, played: Played) -> str:
        """Return it as a table shows it."""
        value = self.of(played)
        if value is None:
            return NOTHING
        return f"{100 * value:.1f}" if self.heading.endswith("%") else f"{value:,.0f}"


FIGURES = (  # in the order of the tables
    Figure("evidence_in_view", "evidence in view %", lambda row: _mean(row.asked.in_view, row.asked.questions)),
    Figure("asking_cost", "cost of asking", lambda row: row.asked.cost(PRICES)),
    Figure("asked_at_page", "at page, asked %", lambda row: _mean(row.asked.at_page, row.asked.questions)),
    Figure("asked_owned", "owned, asked %", lambda row: _mean(row.asked.owned, row.asked.owners)),
    Figure("at_page", "at page %", lambda row: _mean(row.evidence.at_page, row.evidence.questions)),
    Figure("owned_at_page", "owned at page %", lambda row: _mean(row.evidence.owned, row.evidence.owners)),
    Figure("owned_in_rows", "owned in rows %", lambda row: _mean(row.evidence.row_owned, row.evidence.row_owners)),
    Figure("anchored", "anchored %", lambda row: _mean(row.evidence.anchored, row.evidence.questions)),
    Figure("coincidence", "coincidence %", lambda row: _mean(row.evidence.coincidence, row.evidence.foreign)),
    Figure("verbatim", "verbatim %", lambda row: _mean(row.evidence.verbatim, row.evidence.pages)),
    Figure("indexed", "indexed %", lambda row: _mean(row.evidence.indexed, row.evidence.pages)),
    Figure("named", "named %", lambda row: _mean(row.evidence.named, row.evidence.pages)),
    Figure("line_recall_5", "line R@5 %", lambda row: _mean(row.evidence.chosen, row.evidence.folded)),
    Figure("listed", "listed %", lambda row: _mean(row.evidence.listed, row.evidence.left)),
    Figure("falsified", "falsified", lambda row: row.evidence.falsified if row.evidence.listed else None),
    Figure("inverted", "inverted", lambda row: row.evidence.inverted if row.evidence.listed else None),
    *(
        Figure(f"{kind}_needs", f"{plural} %", partial(_met, kind))
        for kind, plural in zip(KINDS, ("files", "identifiers", "hashes"), strict=True)
    ),
    Figure("openable", "openable %", _openable),
    Figure("recall_1", "R@1 %", lambda row: _mean(row.all_recall.first, row.all_recall.questions)),
    Figure("recall_5", "R@5 %", lambda row: _mean(row.all_recall.five, row.all_recall.questions)),
    Figure("recall_10", "R@10 %", lambda row: _mean(row.all_recall.ten, row.all_recall.questions)),
    Figure("recall_1000_tokens", "R@1k tokens %", lambda row: _mean(row.all_recall.within, row.all_recall.questions)),
    Figure("answer_in_snippets", "in snippets %", lambda row: _mean(row.all_recall.told, row.all_recall.asked)),
    Figure("tokens_per_call", "tokens a call", lambda row: row.calls.tokens_per_call),
    Figure("prefix_reuse", "reuse %", lambda row: row.calls.prefix_reuse),
    Figure("cost_per_call", "cost a call", lambda row: row.calls.cost_per_call(PRICES)),
    Figure("verbatim_tokens", "verbatim tokens", lambda row: row.calls.verbatim_tokens),
    Figure("verbatim_share", "verbatim share %", lambda row: row.calls.verbatim_share),
    Figure("over_budget", "over budget", lambda row: row.faults.over_budget),
    Figure("no_window", "no window", lambda row: row.faults.no_window),
    Figure("broken_pairs", "broken pairs", lambda row: row.faults.broken_pairs),
    Figure("lost", "lost", lambda row: row.faults.lost),
)
_RECALLS = [figure for figure in FIGURES if figure.heading.startswith("R@")]

# Names of the columns of ``category_rows``; those of numbers end with ``#``.
CATEGORY_COLUMNS = ("set", "budget#", "engine", "category", "questions#", *(f"{figure.heading}#" for figure in _RECALLS))


READING_COLUMNS = (
    *("set", "budget#", "engine", "reads", "F1 %#", "±#", "questions#", "false answers#", "of adversarial#", "failed#"),
)


def figures(row: Row) -> dict[str, float | None]:
    """Return the figures of a row, by name."""
    return {figure.name: figure.of(row.played) for figure in FIGURES}


def to_mapping(rows: Sequence[Row], settings: dict[str, Any], readings: Sequence[ReadRow] = ()) -> dict[str, Any]:
    """Return everything as a JSON value: what was asked for, and of each row the figures, and the sums they are made of."""
    mapped = [
        {
            **attrs.asdict(row, filter=attrs.filters.exclude("played")),
            "ok": row.played.faults.ok,
            **{name: round(value, 4) if isinstance(value, float) else value for name, value in figures(row).items()},
            "questions": row.played.evidence.questions,
            "calls": row.played.calls.calls,
            "needs": {kind: attrs.asdict(needs) for kind, needs in row.played.needs.items()},
            "recall_by_category": {name: attrs.asdict(recall) for name, recall in row.played.recall.items()},
        }
        for row in rows
    ]
    answers = [{**attrs.asdict(row), "f1": row.reading.mean, "margin": row.reading.margin} for row in readings]
    return {**settings, "prices": attrs.asdict(PRICES), "rows": mapped, **({"answers": answers} if answers else {})}


def table(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield the names of columns, then set, budget and engine of each row, and its figures; without those that no row has."""
    measured = [figure for figure in FIGURES if any(figure.of(row.played) is not None for row in rows)]
    yield ["set", "budget#", "engine", *(f"{figure.heading}#" for figure in measured)]
    for row in rows:
        yield [row.set, f"{row.budget:,}", row.engine, *(figure.write(row.played) for figure in measured)]


def reading_rows(rows: Iterable[ReadRow]) -> Iterator[list[str]]:
    """Yield what a model answered, a line for each source: the mean F1 in per cent, and half of its interval."""
    for row in rows:
        reading = row.reading
        scores = [NOTHING if value is None else f"{100 * value:.1f}" for value in (reading.mean, reading.margin)]
        counts = [f"{value}" for value in (reading.questions, reading.false_answers, reading.adversarial, reading.failed)]
        yield [row.set, f"{row.budget:,}", row.engine, row.source, *scores, *counts]


def category_rows(rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield what the search found, a line for each category of questions, and for all of them."""
    for row in rows:
        everything = {"all": row.played.all_recall} if row.played.recall else {}
        for category, recall in [*row.played.recall.items(), *everything.items()]:
            cells = (figure.write(Played(recall={category: recall})) for figure in _RECALLS)
            yield [row.set, f"{row.budget:,}", row.engine, category, f"{recall.questions}", *cells]


def draw(rows: Sequence[Row]) -> str:
    """Return an SVG document: a panel for each set, in which an engine is a line over its budgets; its dots grow with them.

    To the right a call costs more, on a logarithmic scale; upwards more of the answers is shown at their pages, or of the needs,
    or of the conversation word for word. Hollow dots were over their budget; one above all others stands at the edge.
    """
    panels = list(dict.fromkeys(row.set for row in rows))
    colours = svg.colours(row.engine for row in rows)
    budgets = sorted({row.budget for row in rows})
    columns = min(len(panels), 2)
    above = svg.LEGEND_LINE * (len(colours) + 1) + 8
    width, height = columns * _WIDTH, above + math.ceil(len(panels) / columns) * _HEIGHT
    parts = [*svg.legend(colours, _LEFT)]
    words = f"budgets of {budgets[0]:,} (small dots) to {budgets[-1]:,} tokens (large); hollow: over budget"
    parts.append(svg.text(_LEFT - 5, above - 4, words))
    for number, name in enumerate(panels):
        left, top = number % columns * _WIDTH, above + number // columns * _HEIGHT
        panel = _panel(name, [row for row in rows if row.set == name], colours, budgets)
        parts += [f'<g transform="translate({left} {top})">', *panel, "</g>"]
    return svg.document(width, height, parts)


def _panel(name: str, rows: Sequence[Row], colours: Mapping[str, str], budgets: Sequence[int]) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    shown = [(row, figures(row)) for row in rows]
    height = next((name for name in _HEIGHTS if any(found[name] is not None for _, found in shown)), "verbatim_tokens")
    share = height != "verbatim_tokens"
    points = [(found["cost_per_call"] or 0.0, value, row) for row, found in shown if (value := found[height]) is not None]
    yield svg.text(_LEFT, 26, name, svg.INK, more='font-size="13" font-weight="600"')
    yield svg.text(right, 26, _HEIGHTS[height], anchor="end")
    if not points:
        yield svg.text(_LEFT, _TOP + 20, "no conversation outgrew a budget")
        return
    low, high = min(x for x, _, _ in points) / _MARGIN, max(x for x, _, _ in points) * _MARGIN
    within = [y for _, y, row in points if not row.played.faults.over_budget]
    top = 1.0 if share else _round_top(max(within or [y for _, y, _ in points]))
    for step in range(5):
        value, y = top * step / 4, bottom - (bottom - _TOP) * step / 4
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{svg.GRID}"/>'
        yield svg.text(_LEFT - 8, y + 4, f"{value:.0%}" if share else f"{value:,.0f}", anchor="end")
    for value in svg.ticks(low, high):
        x = svg.across(value, low, high, _LEFT, right)
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{svg.GRID}"/>'
        yield svg.text(x, bottom + 16, f"{value:,.0f}", anchor="middle")
    yield svg.text((_LEFT + right) / 2, bottom + 34, "cost a call, in tokens of plain input", anchor="middle")
    for engine, colour in colours.items():
        places = [
            (svg.across(x, low, high, _LEFT, right), bottom - (bottom - _TOP) * min(y / top, 1.0), row)
            for x, y, row in points
            if row.engine == engine
        ]
        yield from _line(places, colour, budgets)


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


def _round_top(most: float) -> float:
    """Return the least number above *most* whose quarters are round."""
    power = 10.0 ** math.floor(math.log10(max(most, 1.0)))
    return next(first * power for first in (1, 2, 4, 8, 10, 20) if first * power > most)
