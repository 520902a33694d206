"""What happened to the page tree; see ``events``, whose kinds these are. ``by`` is who did it: application or model.

An ``entry`` or ``entries`` are contents entries of archived pages that nobody places any more, and that are listed again for
themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from memci.engine.history.kind import Kind


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SegmentAdded(Kind, kind="segment_added"):
    """The application added a segment, or gave one other settings."""

    name: str
    type: str = ""
    permission: str
    capacity_tokens: int | None = None
    by: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class NoteWritten(Kind, kind="note_written"):
    """A note was written."""

    page: str
    name: str
    description: str = ""
    message: dict[str, Any]  # that holds what it says
    tokens: int  # of the message
    sha256: str  # of its page file, in hex
    parent: str
    turn: int
    at: str
    by: str
    origin: dict[str, Any] | None = None  # what of another session it was made of


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DirectoryMade(Kind, kind="directory_made"):
    """A directory was made, and these pages were moved into it."""

    page: str
    name: str
    description: str = ""
    parent: str
    children: Sequence[str] = ()
    turn: int
    by: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageMoved(Kind, kind="moved"):
    """A page is listed elsewhere from then on."""

    page: str
    parent: str  # empty where nobody places it any more
    entry: dict[str, Any] | None = None
    by: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageUpdated(Kind, kind="updated"):
    """A note or a directory has another name or description; ``None`` for the one that it had, but of a note both are told."""

    page: str
    name: str | None = None
    description: str | None = None
    by: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageRemoved(Kind, kind="removed"):
    """A page left the tree, with all that is in it: it is evicted."""

    page: str
    by: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageReturned(Kind, kind="returned"):
    """A page that was removed is in the tree again, with all that is in it."""

    page: str
    parent: str
    by: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EditUndone(Kind, kind="edit_undone"):
    """The last edit of the tree was taken back, as the state says how."""

    entries: Sequence[dict[str, Any]] = ()
    updated: Mapping[str, Sequence[str]] = attrs.field(factory=dict)  # names and descriptions that notes have again, by index
    by: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SystemHidden(Kind, kind="system_hidden"):
    """A page of the system part stands behind a line from then on; its content is as it was."""

    page: str
    line: str
    tokens: int  # of the message that holds the line
    by: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SystemShown(Kind, kind="system_shown"):
    """A page of the system part that stood behind a line is in its place again."""

    page: str
    by: str


TreeEvent = (
    SegmentAdded
    | NoteWritten
    | DirectoryMade
    | PageMoved
    | PageUpdated
    | PageRemoved
    | PageReturned
    | EditUndone
    | SystemHidden
    | SystemShown
)
