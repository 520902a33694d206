"""What is read of a session: its pages, its messages, what a search finds, and why a page is where it is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from datetime import date
from typing import Any, TypeVar

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.chapters.address import is_note
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.reading import pages
from memci.engine.reading.explain import Explanation, explain
from memci.engine.reading.searching import Hit, search

_Answer = TypeVar("_Answer")


class ReadSession(ABC):
    """The part of a session for reading; nothing of it writes."""

    _core: Core

    @abstractmethod
    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command."""

    def pages(self, state: PageState | str | None = None) -> list[PageFacts]:
        """Return the facts of all pages, or of those in a state, oldest first, system pages included, but no notes. O(pages)."""
        wanted = None if state is None else pages.page_state(state)

        def found(core: Core) -> list[PageFacts]:
            known = (facts for facts in core.all_facts() if not is_note(facts.index))
            return [facts for facts in known if wanted is None or facts.state is wanted]

        return self._run(found)

    def page_range(self, start: int, limit: int) -> tuple[list[PageFacts], int]:
        """Return the facts of at most *limit* pages after the first *start*, oldest first, and how many pages there are."""
        return self._run(lambda core: pages.page_range(core, start, limit))

    def page(self, index: str | int) -> Page:
        """Return a page with all its messages; it does not count as a recall. O(its size).

        A root (``usr-0``) or a range (``usr-12..15``) has no messages: ``.pages`` are the facts of its pages, oldest first,
        without those that are evicted and in no window.
        """
        return self._run(lambda core: pages.read(core, pages.page_index(index)))

    def facts(self, index: str | int) -> PageFacts:
        """Return the facts of one page, O(1); or of a root or a range of pages, O(its pages)."""
        return self._run(lambda core: pages.read_facts(core, pages.page_index(index)))

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield every message of the conversation, in order, page by page. Messages that were rewound are not there."""
        for facts in self.pages():
            yield from self.page(facts.index).messages

    def search(  # noqa: PLR0913 (each narrows it in another way)
        self,
        query: str,
        limit: int = 10,
        include_visible: bool = False,  # noqa: FBT001, FBT002 (the published signature)
        *,
        turns: tuple[int, int] | None = None,
        roles: str | Collection[str] | None = None,
        states: str | Collection[PageState | str] | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
    ) -> list[Hit]:
        """Return at most *limit* pages that fit some words best, best first.

        Any text in any language is a query, none of it syntax. Pages that stand in the window are left out, unless
        *include_visible* or *states* names them. *turns* are the first and the last in which a page was opened, *roles* who said
        it, such as ``"user"`` or ``["assistant", "tool"]``. *since* and *until* are a first and a last day or time that
        the time of a page, from its earliest message to its latest, has to touch: ISO 8601, a date or a datetime, in UTC where
        they name no zone. With ``search.vectors`` in the config, pages with a similar meaning are found too; then a search also
        makes vectors that are missing, of 256 pages at most. ``ConfigError`` where an argument cannot be used: no text, no such
        role, no turn in the range, no time.
        """

        def command(core: Core) -> list[Hit]:
            vectors = core.config.search.vectors
            only: dict[str, Any] = {"turns": turns, "roles": roles, "states": states, "since": since, "until": until}
            return search(core, query, limit, include_visible, vectors=vectors, **only)

        return self._run(command)

    def explain(self, index: str | int) -> Explanation:
        """Say why a page, a root or a range of pages is where it is."""
        return self._run(lambda core: explain(core, pages.page_index(index)))
