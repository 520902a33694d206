"""The recall chapter: pages brought back for a few turns."""

import attrs

from memci.chapters.chapter import Chapter
from memci.chapters.page import Page
from memci.messages.message import Message


@attrs.frozen(kw_only=True)
class Attachment:
    """How a recalled page stands in the window.

    Attributes:
        anchor: Index of the page that was open when it was recalled; the block stands in front of that page.
        turn: The turn it was recalled in, or renewed last.
        block: The one message that shows the page.
        tokens: Size of the block.
        prefetched: Where nobody asked for it, the sequence number of the user's message that it matches, else 0. It then fades
            with the next turn.
        used_seq: The event that attached it, or renewed it last: the least recently used one fades first.
        media: Whether the block carries the pictures, sound and files of the page.
    """

    anchor: str
    turn: int
    block: Message
    tokens: int
    prefetched: int = 0
    used_seq: int = 0
    media: bool = False


class RecallChapter(Chapter):
    """Archived pages that are attached again, in the order they were recalled."""

    def __init__(self) -> None:
        super().__init__()
        self.attachments: dict[str, Attachment] = {}

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
