"""The windows of a conversation, call by call: tokens by part, what a cache had of each, and what the calls cost."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from memci.engine.hosting.past import PastWindow, past_windows
from memci.engine.session import Session
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.page.journal import Journal
from memci.page.spending import Spending
from memci.page.window import shared
from memci.quality.played import Calls
from memci.quality.prompt_meter import PromptMeter

_MISSED_SHARE = 0.1  # of the prompt before, that a call does not begin with: from then on it is told as a miss


@attrs.frozen(kw_only=True)
class SeenWindow:
    """A window that was sent: its *number* among the calls, and how many of its messages the call before began with as well."""

    number: int
    past: PastWindow
    cached: int


@attrs.define(eq=False)
class Band:
    """All calls of a conversation, a column for each figure; *windows* are those that were asked for."""

    columns: dict[str, list[Any]] = attrs.field(factory=dict)
    parts: dict[str, list[int]] = attrs.field(factory=dict)
    misses: list[list[Any]] = attrs.field(factory=list)  # the number of a call, and why it began otherwise
    ways: dict[str, Calls] = attrs.field(factory=dict)
    windows: list[SeenWindow] = attrs.field(factory=list)

    def to_mapping(self) -> dict[str, Any]:
        """Return the columns as a JSON value; parts that no window has are left out."""
        return {**self.columns, "parts": {name: tokens for name, tokens in self.parts.items() if any(tokens)}}


def read_band(
    session: Session,
    journal: Journal,
    wanted: Collection[int] = (),
    advance: Callable[[int, int], None] = lambda _done, _all: None,
) -> Band:
    """Make the windows of all calls again, one after the other, and measure them; keep those with a *wanted* number.

    The last one is the window now, which is no call: it counts in no sum. O(events, and what each window shows).
    """
    config, band, former = session.config, Band(), None
    counter = get_counter(config.counter)
    meter = PromptMeter(counter, formats.get(config.format), config.budget.tokens)
    spending, last = Spending(journal, meter, counter.margin), len(journal.calls) - 1
    names = ("seq", "turn", "answer", "tokens", "budget", "cached", "whole")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    before, whole_before, sent = 0, (spending.whole, spending.sliding), Calls()
    for number, past in enumerate(past_windows(session._open, journal.calls)):  # noqa: SLF001 (the windows of one walk)
        window, seq = past.window, past.window.seq
        system = [] if window.system is None else [{"role": "system", "content": window.system}]
        prompt = meter.call([*system, *window.messages], window.tokens)
        share = prompt.prefix / prompt.length if prompt.length else 0.0
        whole_before = spending.whole, spending.sliding
        whole = spending.call(seq, window.budget)
        row = (seq, journal.turns.get(seq, 0), journal.answers.get(seq, ""), window.tokens, window.budget)
        for name, value in zip(names, (*row, round(share * window.tokens), whole), strict=True):
            columns[name].append(value)
        _add_parts(band.parts, window.breakdown, number)
        if number and prompt.prefix < (1 - _MISSED_SHARE) * before:
            band.misses.append([number, _why(journal, journal.calls[number - 1], seq)])
        if number in wanted:
            band.windows.append(SeenWindow(number=number, past=past, cached=shared(former, past) if former is not None else 0))
        if number < last:
            sent += Calls(1, window.tokens, prompt.length, prompt.prefix)
        before, former = prompt.length, past
        advance(number + 1, last + 1)
    whole_sums, sliding_sums = whole_before
    band.columns, band.ways = columns, {"memci": sent, "whole": whole_sums, "sliding": sliding_sums}
    return band


def _add_parts(parts: dict[str, list[int]], breakdown: Mapping[str, int], number: int) -> None:
    for name in breakdown:
        if name not in parts:
            parts[name] = [0] * number
    for name, tokens in parts.items():
        tokens.append(breakdown.get(name, 0))


def _why(journal: Journal, after: int, until: int) -> str:
    """Return what happened between two calls. O(marks)."""
    words = [mark.words for mark in journal.marks if after < mark.seq <= until]
    return "; ".join(words) or "something before the end of the prompt changed"


def savings(session: Session, band: Band) -> list[dict[str, Any]]:
    """Return what calls sent and cost, and what they would have in the other ways, each as a JSON value."""
    prices, rows = session.config.prices, list[dict[str, Any]]()
    for name, sums in band.ways.items():
        cost = sums.cost_per_call(prices) * sums.calls
        rows.append(
            {"way": name, "calls": sums.calls, "tokens": sums.tokens, "reuse": round(sums.prefix_reuse, 4), "cost": round(cost)}
        )
    return rows


def chosen(journal: Journal, most: int) -> list[int]:
    """Return which windows stand in a file of at most *most*: the first, the last, those around what happened, and between.

    Where all fit, it is all. Else half of the room is for calls around marks, evenly thinned, the rest is spread evenly.
    """
    total = len(journal.calls)
    if total <= most:
        return list(range(total))
    around = sorted({place for number in _marked(journal) for place in (number - 1, number) if 0 <= place < total})
    marked = _thinned(around, (most - 2) // 2)
    return sorted({0, total - 1, *marked, *_thinned(range(total), most - 2 - len(marked))})


def _marked(journal: Journal) -> Iterator[int]:
    """Yield the number of the first call after each mark, in order."""
    number = 0
    for mark in journal.marks:
        while number < len(journal.calls) and journal.calls[number] < mark.seq:
            number += 1
        yield number


def _thinned(values: Sequence[int], most: int) -> list[int]:
    if len(values) <= most:
        return list(values)
    return [values[place * len(values) // most] for place in range(most)]
