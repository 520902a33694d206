"""The recall chapter: pages brought back for a few turns, and passages that are quoted unasked."""

from collections.abc import Callable, Mapping, Sequence

import attrs

from memci.chapters.page import Chapter, Page
from memci.messages.message import Message


@attrs.frozen(kw_only=True)
class Attachment:
    """How a recalled page stands in the window, as one message, *block*."""

    anchor: str  # index of the page that was open when it was recalled; the block stands in front of that page
    turn: int  # in which it was recalled, or renewed last
    block: Message
    tokens: int
    prefetched: int = 0  # of older journals: seq of the user's message for which it came unasked, and with which it goes
    used_seq: int = 0  # of the event that attached it, or renewed it last: the least recently used one fades first
    media: bool = False  # whether the block carries the pictures, sound and files of the page
    dated: int = 0  # whether the block says when the page was said, and of which entries it takes that
    lasting: bool = False  # whether somebody opened it: no turn lets it fade


@attrs.frozen(kw_only=True)
class Quotes:
    """Passages that stand beside a message of the window, as one *block*."""

    passages: Sequence[Mapping[str, str]]  # each with page, address, role, time (``at``) and text
    block: Message
    tokens: int


class RecallChapter(Chapter):
    """Archived pages that are attached again, in the order they were recalled; and passages, by the message they stand beside."""

    def __init__(self) -> None:
        super().__init__()
        self.attachments: dict[str, Attachment] = {}
        self.quotes: dict[int, Quotes] = {}  # by seq of the message

    def attach(self, page: Page, attachment: Attachment) -> None:
        """Attach a page, or renew the attachment of one that stands here. O(1)."""
        if page.index not in self:
            self.add_page(page)
        self.attachments[page.index] = attachment

    def least_used(self) -> list[tuple[str, Attachment]]:
        """Return the attachments by index, the least recently used one first. O(attached)."""
        return sorted(self.attachments.items(), key=lambda item: item[1].used_seq)

    def fade(self, index: str) -> None:
        """Let a page go; nothing happens when it is not here. O(1)."""
        page = self.find_page(index)
        if page is not None:
            self.remove_page(page)
            del self.attachments[index]

    def keep_quotes(self, beside: Callable[[int], bool]) -> None:
        """Let passages go, but for those beside messages with these sequence numbers. O(quotes)."""
        self.quotes = {seq: quotes for seq, quotes in self.quotes.items() if beside(seq)}
