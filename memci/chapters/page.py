"""Pages, views on runs of linked messages, and the chapters that own the lists of them, but for archive and recall."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

import attrs

from memci.chapters.dates import span
from memci.messages.headline import spoken
from memci.messages.message import Call, Message


@attrs.define(eq=False)
class MessageNode:
    """One link: a message and what the engine knows of it; ``None`` stands before the head and after the tail."""

    message: Message
    tokens: int  # as it is sent
    seq: int = 0  # of the event that brought it
    stub_tokens: int = 0  # maximum size of the stub that can stand for it; 0 where it is too small for one
    at: str = ""  # when it came in, in UTC, as ISO 8601
    trimmed: tuple[int, ...] = ()  # of a result shown in part: tokens of that, and the bounds of each stretch of its text
    stub: "ShownInPart | None" = attrs.field(default=None, repr=False)  # the last one
    brings: frozenset[str] | None = attrs.field(default=None, repr=False)  # the kinds of latest notes of its calls
    previous: "MessageNode | None" = attrs.field(default=None, repr=False)
    next: "MessageNode | None" = attrs.field(default=None, repr=False)


@attrs.define(eq=False)
class ShownInPart:
    """A message that was sent in the place of a longer one."""

    made_by: object  # what it was made by, besides that one
    message: Message
    tokens: int | None = None  # as it is; unknown until it was sent


class StoredNode(MessageNode):
    """A message of a page that was read back: its sizes are counted when somebody first asks for one of them."""

    count: Callable[[Message], tuple[int, int]]  # gives both
    sizes: Any = cached_property(lambda node: node.count(node.message))
    tokens: Any = cached_property(lambda node: node.sizes[0])
    stub_tokens: Any = cached_property(lambda node: node.sizes[1])


@attrs.define(eq=False)
class Run:
    """Linked nodes with their count and the sum of their tokens, both known in O(1); empty when ``head`` is ``None``."""

    head: MessageNode | None = attrs.field(default=None, repr=False, kw_only=True)  # the oldest
    tail: MessageNode | None = attrs.field(default=None, repr=False, kw_only=True)
    length: int = attrs.field(default=0, kw_only=True)
    tokens: int = attrs.field(default=0, kw_only=True)

    def __len__(self) -> int:
        """Return the number of nodes. O(1)."""
        return self.length

    def nodes(self) -> Iterator[MessageNode]:
        """Yield the nodes, oldest first. Those that were yielded may be unlinked meanwhile."""
        node, left = self.head, self.length
        while node is not None and left:
            following = node.next
            yield node
            node, left = following, left - 1


@attrs.define(eq=False)
class MessageList(Run):
    """A doubly linked list of messages. Linking and unlinking are O(1), whatever the length of list or run."""

    __iter__ = Run.nodes

    def link(self, run: Run, *, after: MessageNode | None) -> None:
        """Link a run of nodes after *after*, or at the head when it is ``None``."""
        if run.head is None:
            return
        following = self.head if after is None else after.next
        _chain(after, run.head)
        _chain(run.tail, following)
        if after is None:
            self.head = run.head
        if following is None:
            self.tail = run.tail
        self.length += run.length
        self.tokens += run.tokens

    def unlink(self, run: Run) -> None:
        """Take a run of nodes out and join its neighbours; the nodes stay linked to each other."""
        if run.head is None or run.tail is None:
            return
        before, after = run.head.previous, run.tail.next
        _chain(before, after)
        if before is None:
            self.head = after
        if after is None:
            self.tail = before
        run.head.previous = run.tail.next = None
        self.length -= run.length
        self.tokens -= run.tokens

    def _check(self) -> None:
        """Assert that links, count and sum agree. O(n)."""
        nodes = list(self)
        assert [node.previous for node in nodes] == [None, *nodes[:-1]][: len(nodes)]
        assert (nodes[-1] if nodes else None) is self.tail
        assert self.tail is None or self.tail.next is None
        assert (len(nodes), sum(node.tokens for node in nodes)) == (self.length, self.tokens), self


class Opening(StrEnum):
    """Why a page was opened: a turn of the user (or ``begin_page``), or the page before it having grown too long."""

    TURN = "turn"
    CONTINUATION = "continuation"


@attrs.frozen
class Entry:
    """A handle on one message, addressed inside its page: *position* counts from 1, and is of when the handle was made."""

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
    def text(self) -> str:
        """What a user reads of it: its texts and results, without calls, pictures and a headline of the model's. O(its size)."""
        return spoken(self.node.message)

    @property
    def role(self) -> str:
        """The provider's role."""
        return self.node.message.role

    @property
    def tokens(self) -> int:
        """Its size as it is sent, whole."""
        return self.node.tokens


@attrs.define(eq=False)
class Page(Run):
    """One turn, or a part of a long turn. It copies nothing: it knows where its run of nodes begins and ends."""

    index: str
    turn: int  # in which it was opened
    opened_by: Opening = Opening.TURN
    name: str | None = None  # as begin_page gave it
    chapter: "Chapter | None" = attrs.field(default=None, repr=False)  # None while it is detached
    previous: "Page | None" = attrs.field(default=None, repr=False)
    next: "Page | None" = attrs.field(default=None, repr=False)
    open_calls: dict[str, list[MessageNode]] = attrs.field(factory=dict, repr=False)  # by id, nodes whose call has no result yet
    pages: tuple[Any, ...] = attrs.field(default=(), repr=False)  # of a root or a range, the facts of its listed pages

    def __bool__(self) -> bool:
        """Return True: a page without entries is a page too."""
        return True

    @property
    def entries(self) -> list[Entry]:
        """Its entries, oldest first, built at each call. O(entries)."""
        return [Entry(self, position, node) for position, node in enumerate(self.nodes(), start=1)]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its messages as new dicts, oldest first. O(its size)."""
        return [node.message.value() for node in self.nodes()]

    @property
    def times(self) -> tuple[str, str]:
        """The earliest and the latest time of its entries, in whatever order they stand; empty for none. O(entries)."""
        return span(node.at for node in self.nodes())

    @property
    def only_user(self) -> bool:
        """Whether only the user spoke in it so far, as its last entry tells; True for a page without entries. O(1)."""
        last = self.tail
        return last is None or (last.message.from_user and not last.message.answers)

    def add(self, node: MessageNode, *, after: MessageNode | None = None) -> int:
        """Add a node after *after*, or at the end, and return its position. O(1) at the end."""
        self.tokens += node.tokens  # first: a stored page adds up those that are there
        before = after or self.tail
        position = self.length + 1 if before is self.tail else self.position_after(before)
        if self.chapter is not None:
            link = Run(head=node, tail=node, length=1, tokens=node.tokens)
            self.chapter.message_list.link(link, after=before or self.tail_before())
        elif before is not None:
            _chain(node, before.next)
            _chain(before, node)
        if self.head is None:
            self.head = node
        if before is self.tail:
            self.tail = node
        self.length += 1
        self._open(node)
        return position

    def _open(self, node: MessageNode) -> None:
        for call in node.message.calls:
            self.open_calls.setdefault(call.id, []).append(node)

    def position_after(self, node: MessageNode | None) -> int:
        """Return the position that a message gets after one of the page's nodes. O(1) after the last, else O(entries)."""
        if node is self.tail:
            return self.length + 1
        return 2 + next(number for number, other in enumerate(self.nodes()) if other is node)

    def join(self, node: MessageNode, answers: Sequence[tuple[str, int]]) -> int:
        """Add a message, a result after its call, and return the position; *answers*: id and ``seq`` of each call it answers."""
        if not answers:
            return self.add(node)
        position = self.add(node, after=self.results_end(self.find_seq(answers[0][1])))
        for call_id, _ in answers:
            self.answer(call_id)
        return position

    def find_seq(self, seq: int) -> MessageNode:
        """Return the node that came with the event *seq*; ``ValueError`` where it is not in the page. O(entries after it)."""
        node, left = self.tail, self.length
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
        """Return the last of the results that follow the calls of *node*, or of its answer in parts; else *node*. O(results)."""
        ids = {call.id for call in node.message.calls}
        last = node
        while node.message.partial and (part := self._next(last)) is not None and part.message.partial:
            last = part
        while (found := self._next(last)) is not None and found.message.answers:
            if not node.message.partial and ids.isdisjoint(found.message.answers):
                break
            last = found
        return last

    def _next(self, node: MessageNode) -> MessageNode | None:
        return None if node is self.tail else node.next

    def cut(self, position: int) -> None:
        """Drop the entries from *position* on (counted from 1); ``ValueError`` where it is not in the page. O(entries)."""
        nodes = list(self.nodes())
        if not 1 <= position <= len(nodes):
            message = f"page {self.index} has {len(nodes)} entries, not {position}"
            raise ValueError(message)
        kept, dropped = nodes[: position - 1], nodes[position - 1 :]
        run = Run(head=dropped[0], tail=self.tail, length=len(dropped), tokens=sum(node.tokens for node in dropped))
        self.tokens -= run.tokens  # first, as above
        if self.chapter is not None:
            self.chapter.message_list.unlink(run)
        elif kept:
            kept[-1].next = None
        self.head, self.tail = (kept[0], kept[-1]) if kept else (None, None)
        self.length -= run.length
        self.open_calls = {}
        for node in kept:
            for answered in node.message.answers:
                self.answer(answered)
            self._open(node)

    def tail_before(self) -> MessageNode | None:
        """Return the last node of the chapter before this page. O(pages without entries before it), at most one."""
        before = self.previous
        while before is not None and before.tail is None:
            before = before.previous
        return before.tail if before is not None else None

    def copy(self) -> "Page":
        """Return a detached page with copies of its nodes. O(entries)."""
        copy = Page(index=self.index, turn=self.turn, opened_by=self.opened_by, name=self.name)
        copies = {id(node): attrs.evolve(node, previous=None, next=None) for node in self.nodes()}
        for node in copies.values():
            copy.add(node)
        copy.open_calls = {call_id: [copies[id(node)] for node in nodes] for call_id, nodes in self.open_calls.items()}
        return copy

    def detach(self) -> None:
        """Take the page out of its chapter; its nodes stay linked, so that it can be attached again. O(1), at any length."""
        if self.chapter is not None:
            self.chapter.remove_page(self)


class StoredPage(Page):
    """A page that was read back; the sum of its tokens is worked out when somebody first asks for it."""

    tokens: Any = cached_property(lambda page: sum(node.tokens for node in page.nodes()))


class Chapter:
    """Owns one message list and the pages over it, ``first_page`` to ``last_page``. Adding, removing and finding one is O(1)."""

    def __init__(self) -> None:
        self.message_list = MessageList()
        self._pages: dict[str, Page] = {}
        self.first_page: Page | None = None
        self.last_page: Page | None = None

    @property
    def tokens(self) -> int:
        """Sum of the tokens of its pages. O(1)."""
        return self.message_list.tokens

    def __len__(self) -> int:
        """Return the number of pages. O(1)."""
        return len(self._pages)

    def __bool__(self) -> bool:
        """Return True: a chapter without pages is a chapter too."""
        return True

    def __contains__(self, index: object) -> bool:
        """Return whether a page of this index stands in it. O(1)."""
        return index in self._pages

    def pages(self) -> Iterator[Page]:
        """Yield the pages, oldest first. Those given so far may be removed meanwhile."""
        page = self.first_page
        while page is not None:
            following = page.next
            yield page
            page = following

    def find_page(self, index: str) -> Page | None:
        """Return the page of this index, or ``None``. O(1)."""
        return self._pages.get(index)

    def add_page(self, page: Page, *, before: Page | None = None) -> None:
        """Attach a detached page at the end, or in front of *before*, or raise ``ValueError``. O(1), whatever the lengths."""
        if page.chapter is not None or page.index in self._pages:
            message = f"page {page.index} is attached already: detach it first"
            raise ValueError(message)
        if before is not None:
            self._refuse_other(before)
        previous = self.last_page if before is None else before.previous
        _chain(previous, page)
        _chain(page, before)
        if previous is None:
            self.first_page = page
        if before is None:
            self.last_page = page
        self._pages[page.index] = page
        page.chapter = self
        self.message_list.link(page, after=page.tail_before())

    def remove_page(self, page: Page) -> None:
        """Detach a page, or raise ``ValueError``: its neighbours are joined, its own run stays linked. O(1) as above."""
        self._refuse_other(page)
        self.message_list.unlink(page)
        _chain(page.previous, page.next)
        if page.previous is None:
            self.first_page = page.next
        if page.next is None:
            self.last_page = page.previous
        page.previous = page.next = page.chapter = None
        del self._pages[page.index]

    def _refuse_other(self, page: Page) -> None:
        if page.chapter is not self:
            message = f"page {page.index} is not a page of this chapter"
            raise ValueError(message)

    def _check(self) -> None:
        """Assert that pages and list agree: the pages' runs, one after the other, are the list. O(n)."""
        self.message_list._check()  # noqa: SLF001 (the list's own invariants)
        viewed = [node for page in self.pages() for node in page.nodes()]
        assert list(map(id, self.message_list)) == list(map(id, viewed))
        assert {page.index: page for page in self.pages()} == self._pages
        for page in self.pages():
            nodes = list(page.nodes())
            assert page.chapter is self, page
            assert (len(nodes), sum(node.tokens for node in nodes)) == (len(page), page.tokens), page
            assert page.head is (nodes[0] if nodes else None), page
            assert page.tail is (nodes[-1] if nodes else None), page


def _chain(left: Any, right: Any) -> None:  # noqa: ANN401 (two nodes, or two pages)
    """Link two neighbours, either of which may be ``None``."""
    if left is not None:
        left.next = right
    if right is not None:
        right.previous = left


class SystemChapter(Chapter):
    """The system prompt and the tool instructions: what stands first in every window. Never folded."""

    def replace(self, pages: Iterable[Page]) -> None:
        """Put these pages in the place of all there are. O(pages)."""
        for page in self.pages():
            self.remove_page(page)
        for page in pages:
            self.add_page(page)


class ActiveChapter(Chapter):
    """The last pages of the conversation, verbatim; the newest is the open page."""

    @property
    def open_page(self) -> Page | None:
        """The page that the next message joins, unless it opens another."""
        return self.last_page

    def find_call(self, call_id: str) -> tuple[Page, MessageNode] | None:
        """Return the nearest open call of this id, with its page. O(1) when it is in the open page, else O(pages)."""
        page = self.last_page
        while page is not None:
            nodes = page.open_calls.get(call_id)
            if nodes:
                return page, nodes[-1]
            page = page.previous
        return None
