"""What a session does with the page tree: notes, directories, what stands open, segments."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from memci.archive.catalogue.page_facts import PageFacts
from memci.archive.contents.tree import Permission, Segment
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.reading import pages
from memci.engine.tree import making, notes, opening, segments

_Answer = TypeVar("_Answer")


class TreeSession(ABC):
    """The part of a session that edits the page tree. The application may do everything; a model does it by its tools.

    Edits are events. They show in ``session.contents`` at once and in the window with the next fold; what is opened or closed
    shows in the next window. ``PageNotFoundError`` for an index of no page, ``ArgumentError`` for a name that is no line,
    ``PermissionDeniedError`` where a root or a system page would be edited, or a page would be inside itself.
    """

    @abstractmethod
    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command."""

    def create_detail_page(self, name: str, description: str, detail: str, parent: str | int | None = None) -> str:
        """Write a note, a page with a text of its own, and return its index, such as ``note-1``.

        The contents page lists it in its *parent*, a directory or a root, by default that of ``usr``; ``recall`` shows what it
        says. ``ArgumentError`` also for a *detail* that is no text, empty, or longer than ``limits.message_bytes``.
        """
        return self._run(lambda core: notes.write_note(core, name, description, detail, parent, by="application"))

    def notes(self) -> list[PageFacts]:
        """Return the facts of the notes, oldest first, removed ones too: their names are their titles. O(notes)."""
        return self._run(notes.notes)

    def create_contents_page(
        self, name: str, description: str = "", parent: str | int | None = None, children: Sequence[str | int] = ()
    ) -> str:
        """Make a directory, move pages into it, and return its index. Without a *parent* it stands at the root of ``usr``."""
        return self._run(lambda core: making.make_directory(core, name, description, parent, children, by="application"))

    def move_page(self, source: str | int, target: str | int) -> None:
        """List a page in another directory, with all that is in it; a root as the *target* lists it where it came.

        The order of messages stays as it is.
        """
        self._run(lambda core: making.move(core, source, target, by="application"))

    def update_page(self, index: str | int, *, name: str | None = None, description: str | None = None) -> None:
        """Give a note or a directory another name or description; ``None`` keeps what it has."""
        self._run(lambda core: making.update(core, index, name, description, by="application"))

    def expand_details(self, index: str | int) -> Page:
        """Open an archived page, a note, a directory or a range, until it is closed, and return it as ``recall`` does.

        It stands in the next window, in front of the page that is open now, as what is recalled does: it counts as a recall,
        it has the same share of the budget, and beyond that the least recently used ones close. Of a directory it is the list
        of what is in it; what stood open in it when it was closed opens again, as far as there is room. A page that the window
        shows for itself is just returned.
        """
        return self._run(lambda core: opening.expand(core, index, by="application"))

    def hide_details(self, index: str | int) -> None:
        """Close an open page, or a directory with all that is open in it; a complete page of the window folds.

        Nothing happens to what is closed already. ``PermissionDeniedError`` for a root, and for a page of the open turn.
        """
        self._run(lambda core: opening.hide(core, index, by="application"))

    def remove_page(self, index: str | int) -> None:
        """Take a note, a directory or an archived page out of the tree, with all that is in it; what is open of it closes.

        It is evicted: stored and searchable, and ``restore`` brings it back. ``PermissionDeniedError`` where a page in it is
        pinned, ``PageNotFoundError`` where one stands in the window, ``PageEvictedError`` where it was removed already.
        """
        self._run(lambda core: opening.remove(core, index, by="application"))

    def undo_edit(self) -> None:
        """Take the last edit of the tree back; ``MemciError`` where there is none, or it was taken back already."""
        meant = self._run(lambda core: core.state.tree.last_edit)
        self._run(lambda core: making.undo(core, meant, by="application"))

    def get_page(self, index: str | int) -> PageFacts:
        """Return the facts of a page, a directory or a root."""
        return self._run(lambda core: making.facts(core, pages.page_index(index)))

    def get_children(self, index: str | int) -> list[PageFacts]:
        """Return the facts of what a directory or a root lists, in its order; none for any other page. O(children)."""
        return self._run(lambda core: making.children(core, pages.page_index(index)))

    def get_parent(self, index: str | int) -> PageFacts | None:
        """Return the facts of the directory or root that lists a page, ``None`` for a root or where nothing lists it."""
        return self._run(lambda core: making.parent(core, pages.page_index(index)))

    def get_ancestors(self, index: str | int) -> list[PageFacts]:
        """Return the facts of the directories that a page is in, the nearest first, its root last. O(depth)."""
        return self._run(lambda core: making.ancestors(core, pages.page_index(index)))

    def add_segment(
        self,
        name: str,
        type: str | None = None,  # noqa: A002 (what the application calls its kind)
        permission: Permission | str = "read_only",
        capacity_tokens: int | None = None,
    ) -> str:
        """Add a segment with a root of its own, and return the root's index; of one that is there, change the settings.

        ``sys`` and ``usr`` are always there. The *permission* binds the model, never the application: ``read_only``, it reads,
        recalls, opens and closes pages; ``read_write``, it writes notes, groups, moves and removes pages, too;
        ``system_managed``, it sees what stands open. Lines and opened pages of the segment take at most *capacity_tokens* of a
        window, half of it each: the least recently used page closes for another one; ``None`` for what the budget leaves. Nothing
        happens where the settings are those that it has.
        """
        return self._run(lambda core: segments.add_segment(core, name, type, permission, capacity_tokens))

    def segments(self) -> list[Segment]:
        """Return the segments with what they permit, in the order in which they were added, ``sys`` and ``usr`` first."""
        return self._run(lambda core: list(core.state.tree.segments.values()))
