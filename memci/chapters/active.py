"""The active chapter: the last pages, verbatim."""

from memci.chapters.message_list import MessageNode
from memci.chapters.page import Chapter, Page


class ActiveChapter(Chapter):
    """The last pages of the conversation; the newest is the open page."""

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
