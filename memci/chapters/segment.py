"""A segment: a named, ordered group of chapters."""

from enum import StrEnum

import attrs

from memci.chapters.chapter import Chapter


class Permission(StrEnum):
    """Who may change the pages of a segment."""

    READ_ONLY = "read_only"
    READ_WRITE = "read_write"
    SYSTEM_MANAGED = "system_managed"


@attrs.frozen(kw_only=True)
class Segment:
    """A named group of chapters with a permission and a capacity.

    Attributes:
        name: The prefix of its page indexes, such as ``usr``.
        permission: Who may change its pages.
        capacity: Tokens it may hold in a window; ``None`` for what the budget leaves.
        chapters: In the order in which they are rendered.
    """

    name: str
    permission: Permission
    capacity: int | None = None
    chapters: tuple[Chapter, ...] = ()
