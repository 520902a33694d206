"""The archive chapter: the contents page; its raw pages live in the store."""

from collections.abc import Iterable, Sequence
from itertools import filterfalse, groupby
from operator import itemgetter

from memci.archive.contents.contents_page import ContentsEntry, ContentsPage, Directory, Item, Outlined, Span
from memci.chapters.address import is_range, page_number, segment_of
from memci.chapters.page import Chapter, MessageNode, Page
from memci.messages.message import Message


class ArchiveChapter(Chapter):
    """Owns the contents page as it is now, and, in its message list, the one message that the window shows of it."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root  # index of the root contents page
        self._segment = segment_of(root)
        self.published: frozenset[str] = frozenset()  # what the shown message lists; each of these indexes can be recalled
        self.shown_directories: tuple[Directory, ...] = ()  # those that the shown message holds, as they were then
        self._entries: dict[str, Item] = {}

    @property
    def contents(self) -> ContentsPage:
        """The contents page as it is now. O(entries)."""
        return self.preview(self._entries.values())

    @property
    def entries(self) -> tuple[Item, ...]:
        """Its entries, oldest first. O(entries)."""
        return tuple(self._entries.values())

    def said(self, since: int) -> dict[int, list[Span]]:
        """Return what directories say of their pages, and may say of the others, by number, *since* one at least. O(words)."""
        entries = (entry for entry in self._entries.values() if entry.covers[-1][1] >= since)
        return {number: list(spans) for entry in entries for number, spans in groupby(entry.spans, itemgetter(0))}

    def preview(self, entries: Iterable[Item], outline: Sequence[Outlined] = ()) -> ContentsPage:
        """Return the contents page as it would be with these entries, below what was made."""
        shown = tuple(entries)
        tokens = sum(entry.contents_tokens for entry in shown)
        return ContentsPage(index=self.root, entries=(*outline, *shown), tokens=tokens)

    def find_entry(self, index: str) -> ContentsEntry | None:
        """Return a page's entry, or ``None`` when it is evicted, in a directory, or not archived. O(1)."""
        entry = self._entries.get(index)
        return entry if isinstance(entry, ContentsEntry) else None

    def find_directory(self, index: str) -> Directory | None:
        """Return the directory of this index, or the one that groups a page, or the first page of a range. O(directories)."""
        known = self._entries.get(index)
        if isinstance(known, Directory):
            return known
        if segment_of(index) != self._segment:
            return None
        number = page_number(index)
        return next((each for each in self._entries.values() if isinstance(each, Directory) and each.holds(number)), None)

    def ranges(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the numbers of pages from one to another that are listed, or that the window shows, as ranges. O(entries)."""
        singly = filterfalse(is_range, self.published.difference(self._entries))
        shown = (page_number(index) for index in singly if segment_of(index) == self._segment)
        covers = [(number, number) for number in shown]
        covers += [each for item in (*self.shown_directories, *self._entries.values()) for each in item.covers]
        return [(max(low, first), min(high, last)) for low, high in covers if low <= last and high >= first]

    def shows(self, index: str) -> bool:
        """Return whether the window shows a page's index, or a directory with the page in its ranges. O(directories)."""
        number = page_number(index)
        grouped = any(directory.holds(number) for directory in self.shown_directories)
        return index in self.published or (grouped and segment_of(index) == self._segment)

    def put(self, entry: Item) -> None:
        """Put an entry in its place by age, or over the one of the same index. O(1) for the newest, else O(entries)."""
        newest = next(reversed(self._entries), entry.index)
        in_order = entry.index in self._entries or page_number(newest) <= page_number(entry.index)
        self._entries[entry.index] = entry
        if not in_order:
            self.replace(sorted(self._entries.values(), key=lambda each: page_number(each.index)))

    def drop(self, index: str) -> Item | None:
        """Take an entry out and return it, or ``None`` where there is none. O(1)."""
        return self._entries.pop(index, None)

    def replace(self, entries: Iterable[Item]) -> None:
        """Put these entries in the place of all there are. O(entries)."""
        self._entries = {entry.index: entry for entry in entries}

    def publish(
        self, message: Message | None, tokens: int, indexes: Iterable[str], directories: Iterable[Directory] = ()
    ) -> None:
        """Show this message in the window, which lists these indexes; ``None`` for none. O(indexes)."""
        for page in self.pages():
            self.remove_page(page)
        self.published = frozenset(indexes)
        self.shown_directories = tuple(directories)
        if message is not None:
            page = Page(index=self.root, turn=0)
            page.add(MessageNode(message=message, tokens=tokens))
            self.add_page(page)

    def recount(self, tokens: int) -> None:
        """Set the size of the message that the window shows, under another counter. O(1)."""
        for node in self.message_list:
            self.publish(node.message, tokens, self.published, self.shown_directories)
