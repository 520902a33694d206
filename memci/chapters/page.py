"""A page: a view on a run of nodes in a chapter's message list."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import attrs

from memci.chapters.message_list import MessageNode, Run
from memci.messages.message import Call

if TYPE_CHECKING:
    from memci.chapters.chapter import Chapter


class Opening(StrEnum):
    """Why a page was opened."""

    TURN = "turn"
    CONTINUATION = "continuation"


@attrs.frozen
class Entry:
    """A handle on one message, addressed inside its page.

    Attributes:
        page: The page it belongs to.
        position: Its place in the page, counted from 1, when the handle was made.
    """

    page: "Page"
    position: int
    node: MessageNode = attrs.field(repr=False)

    @property
    def address(self) -> str:
        """Such as ``usr-12/3``."""
        return f"{self.page.index}/{self.position}"

    @property
    def message(self) -> dict[str, Any]:
        """The message as a new dict. O(its size)."""
        return self.node.message.value()

    @property
    def role(self) -> str:
        """The provider's role."""
        return self.node.message.role

    @property
    def tokens(self) -> int:
        """Its size as it is sent, whole."""
        return self.node.tokens


@attrs.define(eq=False)
class Page:
    """One turn, or a part of a long turn. It copies nothing: it knows where its run of nodes begins and ends.

    Attributes:
        index: Such as ``usr-12``.
        turn: The turn it was opened in.
        opened_by: A turn of the user (or ``begin_page``), or the page before it having grown too long.
        name: The name that ``begin_page`` gave it.
        chapter: The chapter it stands in; ``None`` while it is detached.
        previous: The page before it in its chapter.
        next: The page after it in its chapter.
        open_calls: For each call id, the nodes of this page whose call of that id has no result yet, oldest first.
        pages: Of a root or a range of pages, the facts of the pages in it that are listed, oldest first; else empty.
    """

    index: str
    turn: int
    opened_by: Opening = Opening.TURN
    name: str | None = None
    run: Run = attrs.field(factory=Run, repr=False)
    chapter: "Chapter | None" = attrs.field(default=None, repr=False)
    previous: "Page | None" = attrs.field(default=None, repr=False)
    next: "Page | None" = attrs.field(default=None, repr=False)
    open_calls: dict[str, list[MessageNode]] = attrs.field(factory=dict, repr=False)
    pages: tuple[Any, ...] = attrs.field(default=(), repr=False)

    @property
    def head(self) -> MessageNode | None:
        """The first node, ``None`` for a page without entries."""
        return self.run.head

    @property
    def tail(self) -> MessageNode | None:
        """The last node, ``None`` for a page without entries."""
        return self.run.tail

    @property
    def tokens(self) -> int:
        """Sum of its entries' tokens. O(1)."""
        return self.run.tokens

    def __len__(self) -> int:
        """Return the number of entries. O(1)."""
        return self.run.length

    def __bool__(self) -> bool:
        """Return True: a page without entries is a page too."""
        return True

    def nodes(self) -> Iterator[MessageNode]:
        """Yield its nodes, oldest first."""
        node, left = self.run.head, self.run.length
        while node is not None and left:
            following = node.next
            yield node
            node, left = following, left - 1

    @property
    def entries(self) -> list[Entry]:
        """Its entries, oldest first, built at each call. O(entries)."""
        return [Entry(self, position, node) for position, node in enumerate(self.nodes(), start=1)]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its messages as new dicts, oldest first. O(its size)."""
        return [node.message.value() for node in self.nodes()]

    @property
    def only_user(self) -> bool:
        """Whether nobody but the user spoke in it so far; True for a page without entries. O(1).

        The last entry tells: a user's message joins a page only while this holds.
        """
        last = self.run.tail
        return last is None or (last.message.from_user and not last.message.answers)

    def add(self, node: MessageNode, *, after: MessageNode | None = None) -> int:
        """Add a node behind *after*, or at the end, and return its position. O(1) at the end.

        A detached page only links the node to its own run.
        """
        at_end = after is None or after is self.run.tail
        position = self.run.length + 1 if after is None else self.position_behind(after)
        if self.chapter is None:
            self._link(node, after if after is not None else self.run.tail)
        else:
            anchor = after if after is not None else self.run.tail
            self.chapter.message_list.link(Run(node, node, 1, node.tokens), after=anchor or self.chapter.tail_before(self))
        if self.run.head is None:
            self.run.head = node
        if at_end:
            self.run.tail = node
        self.run.length += 1
        self.run.tokens += node.tokens
        for call in node.message.calls:
            self.open_calls.setdefault(call.id, []).append(node)
        return position

    def position_behind(self, node: MessageNode) -> int:
        """Return the position that a message gets behind one of the page's nodes. O(1) behind the last, else O(entries)."""
        if node is self.run.tail:
            return self.run.length + 1
        return 2 + next(number for number, other in enumerate(self.nodes()) if other is node)

    def join(self, node: MessageNode, answers: Sequence[tuple[str, int]]) -> int:
        """Add a message and return its position: a result behind the call it answers, any other at the end.

        Args:
            node: The message.
            answers: For each call that it answers: the id, and the ``seq`` of the message that made the call.
        """
        if not answers:
            return self.add(node)
        position = self.add(node, after=self.results_end(self.find_seq(answers[0][1])))
        for call_id, _ in answers:
            self.answer(call_id)
        return position

    def find_seq(self, seq: int) -> MessageNode:
        """Return the node that came with the event *seq*. O(entries behind it).

        Raises:
            ValueError: It is not in the page.
        """
        node, left = self.run.tail, self.run.length
        while node is not None and left and node.seq != seq:
            node, left = node.previous, left - 1
        if node is None or not left:
            message = f"page {self.index} has no entry of event {seq}"
            raise ValueError(message)
        return node

    def answer(self, call_id: str) -> None:
        """Note that the latest open call of this id has its result."""
        nodes = self.open_calls[call_id]
        nodes.pop()
        if not nodes:
            del self.open_calls[call_id]

    def unanswered(self, node: MessageNode) -> list[Call]:
        """Return the calls of a node that have no result. O(its calls)."""
        if not self.open_calls:
            return []
        return [call for call in node.message.calls if any(other is node for other in self.open_calls.get(call.id, ()))]

    def results_end(self, node: MessageNode) -> MessageNode:
        """Return the last node of the results that follow the calls of *node*, or *node* itself. O(its results).

        Where an answer of the model is several messages, the results of all its calls follow the last one.
        """
        ids = {call.id for call in node.message.calls}
        last = node
        while node.message.partial and (part := self._next(last)) is not None and part.message.partial:
            last = part
        while (found := self._next(last)) is not None and found.message.answers:
            if not node.message.partial and not ids & set(found.message.answers):
                break
            last = found
        return last

    def _next(self, node: MessageNode) -> MessageNode | None:
        return None if node is self.run.tail else node.next

    def cut(self, position: int) -> None:
        """Drop the entries from *position* on (counted from 1). O(entries).

        Raises:
            ValueError: The position is not in the page.
        """
        nodes = list(self.nodes())
        if not 1 <= position <= len(nodes):
            message = f"page {self.index} has {len(nodes)} entries, not {position}"
            raise ValueError(message)
        dropped = nodes[position - 1 :]
        run = Run(dropped[0], dropped[-1], len(dropped), sum(node.tokens for node in dropped))
        if self.chapter is not None:
            self.chapter.message_list.unlink(run)
        elif run.head is not None and run.head.previous is not None:
            run.head.previous.next = None
        kept = nodes[: position - 1]
        tail = kept[-1] if kept else None
        self.run = Run(kept[0] if kept else None, tail, len(kept), self.run.tokens - run.tokens)
        self.open_calls = {}
        for node in kept:
            for answered in node.message.answers:
                self.answer(answered)
            for call in node.message.calls:
                self.open_calls.setdefault(call.id, []).append(node)

    def detach(self) -> None:
        """Take the page out of its chapter. O(1), whatever the length of list and page.

        Its nodes stay linked to each other, so that it can be attached again; its outer links are gone.
        """
        if self.chapter is not None:
            self.chapter.remove_page(self)

    def _link(self, node: MessageNode, after: MessageNode | None) -> None:
        if after is None:
            return
        node.previous, node.next = after, after.next
        if after.next is not None:
            after.next.previous = node
        after.next = node
