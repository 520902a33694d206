"""The chapters that only keep their pages in order: the system's and the active one."""

from collections.abc import Iterable

from memci.chapters.page import Chapter, MessageNode, Page


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
