"""The windows of a conversation, call by call: tokens by part, what a cache had of each, and what the calls cost."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import attrs

from memci.engine.hosting.past import Past, PastWindow
from memci.engine.session import Session
from memci.engine.settings.config import Config
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.page.journal import Journal
from memci.page.rules import RuleCourse
from memci.page.spending import Spending
from memci.page.window import shared
from memci.quality.played import Calls
from memci.quality.prompt_meter import PromptMeter

_COLUMNS = ("seq", "turn", "answer", "tokens", "budget", "cached", "whole")
_MISSED_SHARE = 0.1  # of the prompt before, that a call does not begin with: from then on it is told as a miss


@attrs.frozen(kw_only=True)
class SeenWindow:
    """A window that was sent: its *number* among the calls, and how many of its messages the call before began with as well."""

    number: int
    past: PastWindow
    cached: int


class Band:
    """All calls of a conversation, a column for each figure, and the window now; *windows* are those that were asked for."""

    def __init__(self, config: Config, journal: Journal) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self.parts: dict[str, list[int]] = {}
        self.misses: list[list[Any]] = []  # the number of a call, and why it began otherwise
        self.windows: list[SeenWindow] = []
        self.rules = RuleCourse()
        self.journal, self.counter = journal, config.counter
        counter = get_counter(config.counter)
        self._past, self._sent = Past(), Calls()
        self._meter = PromptMeter(counter, formats.get(config.format), config.budget.tokens)
        self._spending = Spending(journal.course, self._meter, counter.margin)
        self._former: PastWindow | None = None  # of the last call
        self._length = self._tools = 0  # of its prompt

    @property
    def ways(self) -> dict[str, Calls]:
        """What the calls sent, and would have in the simpler ways, by name; the window now is no call, and counts in none."""
        return {"memci": self._sent, "whole": self._spending.whole, "sliding": self._spending.sliding}

    def to_mapping(self) -> dict[str, Any]:
        """Return the columns as a JSON value of its own; parts that no window has are left out."""
        parts = {name: [*tokens] for name, tokens in self.parts.items() if any(tokens)}
        return {**{name: [*values] for name, values in self.columns.items()}, "parts": parts}

    def read(
        self,
        session: Session,
        wanted: Collection[int] = (),
        advance: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> None:
        """Make the windows again that the journal has more of, in order, and measure them; keep those with a *wanted* number.

        The last one is made each time. O(events since the last time, and what each window shows).
        """
        calls, first = self.journal.calls, max(len(self.columns["seq"]) - 1, 0)
        last, sourced = len(calls) - 1, {calls[number] for number in wanted}
        for values in (*self.columns.values(), *self.parts.values()):
            del values[first:]
        self.rules.cut(first)
        self.misses = [miss for miss in self.misses if miss[0] < first]
        self.windows = [seen for seen in self.windows if seen.number < first]
        for number, past in enumerate(self._past.windows(session._open, calls[first:], sourced), start=first):  # noqa: SLF001 (of one walk)
            if number in wanted:
                cached = shared(self._former, past) if self._former is not None else 0
                self.windows.append(SeenWindow(number=number, past=past, cached=cached))
            self.rules.add(number, past.rules)
            self._measure(number, past, is_sent=number < last)
            advance(number + 1, last + 1)

    def _measure(self, number: int, past: PastWindow, *, is_sent: bool) -> None:
        """Add a row for a window; one that was not sent is not what the next is compared with."""
        window, journal = past.window, self.journal
        seq, system = window.seq, [] if window.system is None else [{"role": "system", "content": window.system}]
        tools = window.breakdown.get("tools", 0)  # whose schemas stand first in a prompt
        whole = self._spending.call(seq, window.budget, tools, is_sent=is_sent)
        prompt = (self._meter if is_sent else copy(self._meter)).call([*system, *window.messages], window.tokens)
        length, prefix = tools + prompt.length, tools + prompt.prefix if tools == self._tools else 0
        cached = round(prefix / length * window.tokens) if length else 0
        row = (seq, journal.turns.get(seq, 0), journal.answers.get(seq, ""), window.tokens, window.budget, cached, whole)
        for name, value in zip(_COLUMNS, row, strict=True):
            self.columns[name].append(value)
        _add_parts(self.parts, window.breakdown, number)
        if number and prefix < (1 - _MISSED_SHARE) * self._length:
            self.misses.append([number, _why(journal, journal.calls[number - 1], seq)])
        if is_sent:
            self._sent += Calls(1, window.tokens, length, prefix)
            self._former, self._length, self._tools = past, length, tools


def read_band(
    session: Session,
    journal: Journal,
    wanted: Collection[int] = (),
    advance: Callable[[int, int], None] = lambda _done, _all: None,
) -> Band:
    """Return the windows of all calls that a journal tells of; see ``Band.read``."""
    band = Band(session.config, journal)
    band.read(session, wanted, advance)
    return band


def _add_parts(parts: dict[str, list[int]], breakdown: Mapping[str, int], number: int) -> None:
    for name in breakdown:
        if name not in parts:
            parts[name] = [0] * number
    for name, tokens in parts.items():
        tokens.append(breakdown.get(name, 0))


def _why(journal: Journal, after: int, until: int) -> str:
    """Return what happened between two calls. O(that)."""
    first, end = (bisect_right(journal.marks, seq, key=lambda mark: mark.seq) for seq in (after, until))
    words = [mark.words for mark in journal.marks[first:end]]
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
