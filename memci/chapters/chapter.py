"""A chapter: one message list and the ordered pages over it."""

from collections.abc import Iterator

from memci.chapters.message_list import MessageList, MessageNode
from memci.chapters.page import Page


class Chapter:
    """Owns one message list and the pages that view it. Adding, removing and finding a page is O(1)."""

    def __init__(self) -> None:
        self._list = MessageList()
        self._pages: dict[str, Page] = {}
        self._first: Page | None = None
        self._last: Page | None = None

    @property
    def message_list(self) -> MessageList:
        """The list itself, never a copy."""
        return self._list

    @property
    def tokens(self) -> int:
        """Sum of the tokens of its pages. O(1)."""
        return self._list.tokens

    @property
    def first_page(self) -> Page | None:
        """The oldest page."""
        return self._first

    @property
    def last_page(self) -> Page | None:
        """The newest page."""
        return self._last

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
        """Yield the pages, oldest first. Pages behind the iterator, and the page just given, may be removed meanwhile."""
        page = self._first
        while page is not None:
            following = page.next
            yield page
            page = following

    def find_page(self, index: str) -> Page | None:
        """Return the page of this index, or ``None``. O(1)."""
        return self._pages.get(index)

    def add_page(self, page: Page, *, before: Page | None = None) -> None:
        """Attach a detached page at the end, or in front of *before*. O(1), whatever the length of list and page.

        Raises:
            ValueError: The page is attached already, its index stands here, or *before* is not a page of this chapter.
        """
        if page.chapter is not None or page.index in self._pages:
            message = f"page {page.index} is attached already: detach it first"
            raise ValueError(message)
        if before is not None and before.chapter is not self:
            message = f"page {before.index} is not a page of this chapter"
            raise ValueError(message)
        previous = self._last if before is None else before.previous
        page.previous, page.next = previous, before
        if previous is None:
            self._first = page
        else:
            previous.next = page
        if before is None:
            self._last = page
        else:
            before.previous = page
        self._pages[page.index] = page
        page.chapter = self
        self._list.link(page.run, after=self.tail_before(page))

    def remove_page(self, page: Page) -> None:
        """Detach a page: its neighbours are joined, its own run stays linked. O(1), whatever the length of list and page.

        Raises:
            ValueError: It is not a page of this chapter.
        """
        if page.chapter is not self:
            message = f"page {page.index} is not a page of this chapter"
            raise ValueError(message)
        self._list.unlink(page.run)
        if page.previous is None:
            self._first = page.next
        else:
            page.previous.next = page.next
        if page.next is None:
            self._last = page.previous
        else:
            page.next.previous = page.previous
        page.previous = page.next = page.chapter = None
        del self._pages[page.index]

    def tail_before(self, page: Page) -> MessageNode | None:
        """Return the last node in front of a page. O(pages without entries in front of it), of which there is at most one."""
        before = page.previous
        while before is not None and before.tail is None:
            before = before.previous
        return before.tail if before is not None else None

    def _check(self) -> None:
        """Assert that pages and list agree: the pages' runs, one after the other, are the list. O(n)."""
        self._list._check()  # noqa: SLF001 (the list's own invariants)
        viewed = [node for page in self.pages() for node in page.nodes()]
        assert list(map(id, self._list)) == list(map(id, viewed))
        assert {page.index: page for page in self.pages()} == self._pages
        for page in self.pages():
            nodes = list(page.nodes())
            assert page.chapter is self, page
            assert (len(nodes), sum(node.tokens for node in nodes)) == (len(page), page.tokens), page
            assert page.head is (nodes[0] if nodes else None), page
            assert page.tail is (nodes[-1] if nodes else None), page
