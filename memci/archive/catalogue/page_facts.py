"""What is known of a page without reading it."""

from enum import StrEnum

import attrs

INDEX_PLACE = "index.sqlite"
"""What an error names as its place when the index of page facts is damaged."""


class PageState(StrEnum):
    """Where a page is in its life."""

    OPEN = "open"
    ACTIVE = "active"
    ARCHIVED = "archived"
    HIDDEN = "hidden"
    ATTACHED = "attached"
    EVICTED = "evicted"


@attrs.frozen(kw_only=True)
class PageFacts:
    """The facts of one page; a copy, true when it was made.

    Attributes:
        index: Such as ``usr-12``.
        state: Where it is.
        turn: The turn it was opened in.
        entries: How many entries it has.
        tokens: Its size in tokens, whole.
        title: A line of its own words; empty until it is folded, unless it was named.
        recall_count: How often it was recalled.
        last_recall_turn: The turn of the last recall.
        archived_turn: The turn it was folded in.
        pinned: Never evicted.
        revision: How often its content changed after it was archived.
        sha256: Of its file, in hex; empty until it is archived.
        parent: Index of the contents page that lists it; ``None`` for a root.
        first_seq: Sequence number of its first entry.
        last_seq: Sequence number of its last entry.
    """

    index: str
    state: PageState
    turn: int
    entries: int
    tokens: int
    title: str = ""
    recall_count: int = 0
    last_recall_turn: int | None = None
    archived_turn: int | None = None
    pinned: bool = False
    revision: int = 0
    sha256: str = ""
    parent: str | None = None
    first_seq: int = 0
    last_seq: int = 0
