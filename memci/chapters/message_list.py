"""The doubly linked list of messages that a chapter owns."""

from collections.abc import Iterator
from typing import Any

import attrs

from memci.messages.message import Message


@attrs.define(eq=False)
class MessageNode:
    """One link: a message and what the engine knows of it; ``None`` stands before the head and after the tail."""

    message: Message
    tokens: int  # as it is sent
    seq: int = 0  # of the event that brought it
    stub_tokens: int = 0  # maximum size of the stub that can stand for it; 0 where it is too small for one
    at: str = ""  # when it came in, in UTC, as ISO 8601
    previous: "MessageNode | None" = attrs.field(default=None, repr=False)
    next: "MessageNode | None" = attrs.field(default=None, repr=False)


@attrs.define(eq=False)
class Run:
    """Linked nodes from ``head`` to ``tail`` with their count and token sum; empty when ``head`` is ``None``."""

    head: MessageNode | None = attrs.field(default=None, repr=False)
    tail: MessageNode | None = attrs.field(default=None, repr=False)
    length: int = 0
    tokens: int = 0


def chain(left: Any, right: Any) -> None:  # noqa: ANN401 (two nodes, or two pages)
    """Link two neighbours, either of which may be ``None``. O(1)."""
    if left is not None:
        left.next = right
    if right is not None:
        right.previous = left


class MessageList:
    """A doubly linked list of messages. Everything but iterating is O(1), whatever the length of list or run."""

    def __init__(self) -> None:
        self.run = Run()

    @property
    def head(self) -> MessageNode | None:
        """The oldest node."""
        return self.run.head

    @property
    def tail(self) -> MessageNode | None:
        """The newest node."""
        return self.run.tail

    @property
    def tokens(self) -> int:
        """Sum of the nodes' tokens. O(1)."""
        return self.run.tokens

    def __len__(self) -> int:
        """Return the number of nodes. O(1)."""
        return self.run.length

    def __iter__(self) -> Iterator[MessageNode]:
        """Yield the nodes, oldest first. Runs that the iterator has passed may be unlinked meanwhile."""
        node = self.run.head
        while node is not None:
            following = node.next
            yield node
            node = following

    def link(self, run: Run, *, after: MessageNode | None) -> None:
        """Link a run of nodes after *after*, or at the head when it is ``None``. O(1)."""
        if run.head is None:
            return
        following = self.run.head if after is None else after.next
        chain(after, run.head)
        chain(run.tail, following)
        if after is None:
            self.run.head = run.head
        if following is None:
            self.run.tail = run.tail
        self.run.length += run.length
        self.run.tokens += run.tokens

    def unlink(self, run: Run) -> None:
        """Take a run of nodes out and join its neighbours; the nodes stay linked to each other. O(1)."""
        if run.head is None or run.tail is None:
            return
        before, after = run.head.previous, run.tail.next
        chain(before, after)
        if before is None:
            self.run.head = after
        if after is None:
            self.run.tail = before
        run.head.previous = run.tail.next = None
        self.run.length -= run.length
        self.run.tokens -= run.tokens

    def _check(self) -> None:
        """Assert that links, count and sum agree. O(n)."""
        nodes = list(self)
        assert [node.previous for node in nodes] == [None, *nodes[:-1]][: len(nodes)]
        assert (nodes[-1] if nodes else None) is self.run.tail
        assert (len(nodes), sum(node.tokens for node in nodes)) == (self.run.length, self.run.tokens), self.run
