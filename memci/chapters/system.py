"""The system chapter: what stands first in every window."""

from collections.abc import Iterable

from memci.chapters.page import Chapter, Page


class SystemChapter(Chapter):
    """The system prompt and the tool instructions. Never folded."""

    def replace(self, pages: Iterable[Page]) -> None:
        """Put these pages in the place of all there are. O(pages)."""
        for page in self.pages():
            self.remove_page(page)
        for page in pages:
            self.add_page(page)
