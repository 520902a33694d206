"""What calls would have sent in two simpler ways: everything so far, and the last messages that fit."""

import math
from bisect import bisect_right

import attrs

from memci.chapters.address import page_number
from memci.messages.tokens.message_tokens import REPLY_TOKENS
from memci.page.journal import Appended, Change, Journal, is_system
from memci.quality.played import Calls
from memci.quality.prompt_meter import PromptMeter, SentMessage


@attrs.frozen(eq=False)
class _Said:
    """A message after all before it, which what is said in its place later shares; sums are of all up to it."""

    before: "_Said | None"
    page: str
    position: int
    tokens: int
    length: int
    depth: int


class Spending:
    """Follows a conversation; each call is measured in both ways. What was taken back is sent no more."""

    def __init__(self, journal: Journal, meter: PromptMeter, margin: float) -> None:
        self.whole, self.sliding = Calls(), Calls()
        self._meter, self._margin = meter, margin
        self._events: list[Appended | Change] = sorted([*journal.said.values(), *journal.changes], key=lambda each: each.seq)
        self._place = 0  # of the event that comes next
        self._heads: list[tuple[int, _Said | None]] = [(0, None)]  # the last message, by the event since which it is
        self._system: list[SentMessage] = []
        self._last: tuple[list[SentMessage], _Said | None, _Said | None] = ([], None, None)  # of the call before

    def call(self, seq: int, room: int) -> int:
        """Take in what came until an event, and a call then, of at most *room* tokens; return the tokens of all so far."""
        self._follow(seq)
        head, (former_system, former, former_left) = self._heads[-1][1], self._last
        begins_alike = former_system is self._system
        system = Calls(tokens=sum(each.tokens for each in self._system), length=sum(len(each.sequence) for each in self._system))
        left = _left(head, int(room / self._margin) - REPLY_TOKENS - system.tokens)
        shared = _common(head, former) if begins_alike else None
        prefix = system.length if begins_alike else 0
        every, gone, same = _sums(head), _sums(left), _sums(shared)
        tokens = self._size(system.tokens + every.tokens)
        self.whole += Calls(1, tokens, system.length + every.length, prefix + same.length)
        slid = same.length - gone.length if left is former_left else 0
        self.sliding += Calls(
            1,
            self._size(system.tokens + every.tokens - gone.tokens),
            system.length + every.length - gone.length,
            prefix + max(slid, 0),
        )
        self._last = self._system, head, left
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

    def _after(self, head: _Said | None, event: Appended) -> _Said:
        known, sums = self._meter.added(event.value), _sums(head)
        depth = 1 if head is None else head.depth + 1
        tokens, length = sums.tokens + known.tokens, sums.length + len(known.sequence)
        return _Said(head, event.page, event.position, tokens, length, depth)

    def _at(self, seq: int) -> _Said | None:
        """Return the last message of the conversation as it was after an event."""
        return self._heads[bisect_right(self._heads, seq, key=lambda pair: pair[0]) - 1][1]


def _sums(head: _Said | None) -> Calls:
    return Calls() if head is None else Calls(tokens=head.tokens, length=head.length)


def _before(head: _Said | None, change: Change) -> _Said | None:
    """Return the last message before an entry. O(those that are taken back)."""
    place = page_number(change.page), change.position
    while head is not None and (page_number(head.page), head.position) >= place:
        head = head.before
    return head


def _left(head: _Said | None, room: int) -> _Said | None:
    """Return the last message that has no room in a sliding window, ``None`` where all have. O(those that have)."""
    node, end = head, _sums(head).tokens
    while node is not None and end - _sums(node.before).tokens <= room:
        node = node.before
    return node


def _common(one: _Said | None, other: _Said | None) -> _Said | None:
    """Return the last message that two conversations share. O(what differs)."""
    while one is not other:
        if one is not None and (other is None or one.depth >= other.depth):
            one = one.before
        elif other is not None:
            other = other.before
    return one
