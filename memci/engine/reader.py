"""What can be read of a session."""

from collections.abc import Collection, Iterator
from typing import Any

from memci.archive.catalogue.checkpoint import Checkpoint
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.chapters.page import Page
from memci.engine.commands import checkpointing
from memci.engine.commands.explain import Explanation, explain
from memci.engine.commands.window import Window, render_at
from memci.engine.handle import Handle
from memci.engine.reading import pages
from memci.engine.reading.listing import page_range, page_state
from memci.engine.reading.searching import Hit, search
from memci.engine.upkeep.verify import Report, verify
from memci.errors import ConfigError, shown


class Reader(Handle):
    """The calls of a session that write nothing."""

    def render(self, at: int) -> Window:
        """Return the window as it was after the event *at*, byte for byte. Costs a snapshot and the events behind it.

        Raises:
            ConfigError: There is no such event.
        """
        with self._open() as core:
            if type(at) is not int or not 0 <= at <= core.state.seq:
                message = f"there is no event {shown(at)}: the session is at {core.state.seq}"
                raise ConfigError(message, path="at")
            return render_at(core, at)

    def pages(self, state: PageState | str | None = None) -> list[PageFacts]:
        """Return the facts of all pages, or of those in a state, oldest first, system pages included. O(pages)."""
        wanted = None if state is None else page_state(state)
        return self._run(lambda core: [facts for facts in core.all_facts() if wanted is None or facts.state is wanted])

    def page_range(self, start: int, limit: int) -> tuple[list[PageFacts], int]:
        """Return the facts of at most *limit* pages behind the first *start*, oldest first, and how many pages there are."""
        return self._run(lambda core: page_range(core, start, limit))

    def page(self, index: str | int) -> Page:
        """Return a page with all its messages; it does not count as a recall. O(its size).

        A root, such as ``usr-0``, and a range of pages, such as ``usr-12..15``, have no messages of their own: ``.pages`` are the
        facts of the pages in it, oldest first, without those that are evicted and that no window shows any more.

        Raises:
            PageNotFoundError: No page has this index.
        """
        return self._run(lambda core: pages.read(core, pages.page_index(index)))

    def facts(self, index: str | int) -> PageFacts:
        """Return the facts of one page, O(1); or of a root or a range of pages, O(its pages).

        Raises:
            PageNotFoundError: No page has this index.
        """
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
    ) -> list[Hit]:
        """Return the best pages for some words, best first; any text is a query, and none of it is syntax.

        With ``search.vectors`` in the config, pages that mean the like are found too, whatever their words; then a search also
        makes the vectors that are missing, of 256 pages at most.

        Args:
            query: Words, in any language.
            limit: At most so many.
            include_visible: Whether pages that stand in the window are searched too.
            turns: Only pages opened in these turns: the first and the last, which is not before it.
            roles: Only what these roles said, one or more, such as ``"user"``, or ``["assistant", "tool"]``.
            states: Only pages in these states, one or more, those included that stand in the window.

        Raises:
            ConfigError: The query is not text, or one of the others cannot be: no such role, no turn in the range.
        """
        return self._run(
            lambda core: search(
                core,
                query,
                limit=limit,
                include_visible=include_visible,
                turns=turns,
                roles=roles,
                states=states,
                vectors=core.config.search.vectors,
            )
        )

    def explain(self, index: str | int) -> Explanation:
        """Say why a page, a root or a range of pages is where it is."""
        return self._run(lambda core: explain(core, pages.page_index(index)))

    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first, those included that a restored one took out of view. O(their number)."""
        return self._run(checkpointing.checkpoints)

    def verify(self) -> Report:
        """Compare the journal with page files, snapshots and index. O(history)."""
        return self._run(verify)
