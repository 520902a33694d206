"""A segment: a named, ordered group of chapters."""

from enum import StrEnum

import attrs

from memci.chapters.page import Chapter


class Permission(StrEnum):
    """Who may change the pages of a segment."""

    READ_ONLY = "read_only"
    READ_WRITE = "read_write"
    SYSTEM_MANAGED = "system_managed"


@attrs.frozen(kw_only=True)
class Segment:
    """A named group of chapters with a permission and a capacity."""

    name: str  # the prefix of its page indexes, such as usr
    permission: Permission
    capacity: int | None = None  # tokens it may hold in a window; None for what the budget leaves
    chapters: tuple[Chapter, ...] = ()  # in the order in which they are rendered
