"""The doubly linked list of messages that a chapter owns."""

from collections.abc import Iterator

import attrs

from memci.messages.message import Message


@attrs.define(eq=False)
class MessageNode:
    """One link: a message and what the engine knows of it.

    Attributes:
        message: The message.
        tokens: Its size as it is sent.
        seq: Sequence number of the event that brought it.
        stub_tokens: At most so many tokens has the stub that can stand for it; 0 where it is too small for one.
        at: When the message came in, in UTC, as ISO 8601.
        previous: The link before, ``None`` at the head.
        next: The link after, ``None`` at the tail.
    """

    message: Message
    tokens: int
    seq: int = 0
    stub_tokens: int = 0
    at: str = ""
    previous: "MessageNode | None" = attrs.field(default=None, repr=False)
    next: "MessageNode | None" = attrs.field(default=None, repr=False)


@attrs.define(eq=False)
class Run:
    """Linked nodes from ``head`` to ``tail`` with their count and token sum; empty when ``head`` is ``None``."""

    head: MessageNode | None = attrs.field(default=None, repr=False)
    tail: MessageNode | None = attrs.field(default=None, repr=False)
    length: int = 0
    tokens: int = 0


class MessageList:
    """A doubly linked list of messages. Everything but iterating is O(1), whatever the length of list or run."""

    def __init__(self) -> None:
        self._run = Run()

    @property
    def head(self) -> MessageNode | None:
        """The oldest node."""
        return self._run.head

    @property
    def tail(self) -> MessageNode | None:
        """The newest node."""
        return self._run.tail

    @property
    def tokens(self) -> int:
        """Sum of the nodes' tokens. O(1)."""
        return self._run.tokens

    def __len__(self) -> int:
        """Return the number of nodes. O(1)."""
        return self._run.length

    def __iter__(self) -> Iterator[MessageNode]:
        """Yield the nodes, oldest first. Runs behind the iterator may be unlinked meanwhile."""
        node = self._run.head
        while node is not None:
            following = node.next
            yield node
            node = following

    def link(self, run: Run, *, after: MessageNode | None) -> None:
        """Link a run of nodes behind *after*, or at the head when it is ``None``. O(1)."""
        if run.head is None or run.tail is None:
            return
        before = self._run.head if after is None else after.next
        run.head.previous = after
        run.tail.next = before
        if after is None:
            self._run.head = run.head
        else:
            after.next = run.head
        if before is None:
            self._run.tail = run.tail
        else:
            before.previous = run.tail
        self._run.length += run.length
        self._run.tokens += run.tokens

    def unlink(self, run: Run) -> None:
        """Take a run of nodes out and join its neighbours; the nodes stay linked to each other. O(1)."""
        if run.head is None or run.tail is None:
            return
        before, behind = run.head.previous, run.tail.next
        if before is None:
            self._run.head = behind
        else:
            before.next = behind
        if behind is None:
            self._run.tail = before
        else:
            behind.previous = before
        run.head.previous = run.tail.next = None
        self._run.length -= run.length
        self._run.tokens -= run.tokens

    def _check(self) -> None:
        """Assert that links, count and sum agree. O(n)."""
        count = tokens = 0
        previous = None
        for node in self:
            assert node.previous is previous, (node, previous)
            previous = node
            count += 1
            tokens += node.tokens
        assert previous is self._run.tail
        assert (count, tokens) == (self._run.length, self._run.tokens), (count, tokens, self._run)
