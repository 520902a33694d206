"""What calls would have sent in two simpler ways: everything so far, and the last messages that fit."""

import math
from bisect import bisect_right
from collections.abc import Sequence

import attrs

from memci.chapters.address import page_number
from memci.messages.tokens.message_tokens import REPLY_TOKENS
from memci.page.journal import Appended, Change, is_system
from memci.quality.played import Calls
from memci.quality.prompt_meter import PromptMeter, SentMessage


@attrs.frozen(eq=False)
class _Said:
    """A message after all before it, which what is said in its place later shares; sums are of all up to it."""

    before: "_Said | None" = None
    page: str = ""
    position: int = 0
    tokens: int = 0
    length: int = 0
    depth: int = 0  # how many messages come before it; 0 for the beginning, which is none


class Spending:
    """Follows a conversation; each call is measured in both ways. What was taken back is sent no more. More *events* may come."""

    def __init__(self, events: Sequence[Appended | Change], meter: PromptMeter, margin: float) -> None:
        self.whole, self.sliding = Calls(), Calls()
        self._events, self._meter, self._margin = events, meter, margin
        self._place = 0  # of the event that comes next
        self._heads: list[tuple[int, _Said]] = [(0, _Said())]  # the last message, by the event since which it is
        self._system: list[SentMessage] = []
        self._last = (0, self._system, self._heads[0][1], self._heads[0][1])  # of the call before

    def call(self, seq: int, room: int, tools: int, *, is_sent: bool = True) -> int:
        """Take in what came until an event, and return the tokens of all so far, with those of *tools*, which stand before it.

        Where it *is_sent*, take in a call then, of at most *room* tokens.
        """
        self._follow(seq)
        head, (former_tools, former_system, former, former_left) = self._heads[-1][1], self._last
        system = Calls(tokens=sum(each.tokens for each in self._system), length=sum(len(each.sequence) for each in self._system))
        tokens, first = tools + self._size(system.tokens + head.tokens), tools + system.length
        if is_sent:
            left = _left(head, int((room - tools) / self._margin) - REPLY_TOKENS - system.tokens)
            begins_alike = former_tools == tools and former_system is self._system
            prefix, same = (first, _common(head, former).length) if begins_alike else (0, 0)
            slid = same - left.length if left is former_left else 0
            self.whole += Calls(1, tokens, first + head.length, prefix + same)
            shown, length = system.tokens + head.tokens - left.tokens, first + head.length - left.length
            self.sliding += Calls(1, tools + self._size(shown), length, prefix + max(slid, 0))
            self._last = tools, self._system, head, left
        return tokens

    def _size(self, tokens: int) -> int:
        return math.ceil((tokens + REPLY_TOKENS) * self._margin)

    def _follow(self, seq: int) -> None:
        while self._place < len(self._events) and self._events[self._place].seq <= seq:
            event, head = self._events[self._place], self._heads[-1][1]
            self._place += 1
            if isinstance(event, Appended) and is_system(event.page):
                self._system = [*self._system, self._meter.added(event.value)]
            elif isinstance(event, Appended):
                self._heads.append((event.seq, self._after(head, event)))
            elif event.system is not None:
                self._system = list(map(self._meter.added, event.system))
            elif event.target is not None:
                self._heads.append((event.seq, self._at(event.target)))
            else:
                self._heads.append((event.seq, _before(head, event)))

    def _after(self, head: _Said, event: Appended) -> _Said:
        known = self._meter.added(event.value)
        tokens, length = head.tokens + known.tokens, head.length + len(known.sequence)
        return _Said(head, event.page, event.position, tokens, length, head.depth + 1)

    def _at(self, seq: int) -> _Said:
        """Return the last message of the conversation as it was after an event."""
        return self._heads[bisect_right(self._heads, seq, key=lambda pair: pair[0]) - 1][1]


def _before(head: _Said, change: Change) -> _Said:
    """Return the last message before an entry. O(those that are taken back)."""
    place = page_number(change.page), change.position
    while head.before is not None and (page_number(head.page), head.position) >= place:
        head = head.before
    return head


def _left(head: _Said, room: int) -> _Said:
    """Return the last message that has no room in a sliding window, the beginning where all have. O(those that have)."""
    node = head
    while node.before is not None and head.tokens - node.before.tokens <= room:
        node = node.before
    return node


def _common(one: _Said, other: _Said) -> _Said:
    """Return the last message that two conversations share. O(what differs)."""
    while one is not other:
        if one.before is not None and one.depth >= other.depth:
            one = one.before
        elif other.before is not None:
            other = other.before
    return one
