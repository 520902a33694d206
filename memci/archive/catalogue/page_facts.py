"""What is known of a page, and of a checkpoint, without reading it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs

from memci.errors import UnavailableError
from memci.messages import codec

INDEX_PLACE = "index.sqlite"  # what an error names as its place when the index of page facts is damaged


class ReopenIndexError(UnavailableError):
    """The index has to be opened anew: others went on with it, or its store could not be asked."""


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
    """The facts of one page; a copy, true when it was made."""

    index: str  # such as usr-12
    state: PageState = attrs.field(converter=PageState)
    turn: int  # in which it was opened
    entries: int  # how many it has
    tokens: int  # its size, whole
    title: str = ""  # a line of its own words; empty until it is folded, unless it was named
    recall_count: int = 0
    last_recall_turn: int | None = None
    archived_turn: int | None = None  # in which it was folded
    pinned: bool = attrs.field(default=False, converter=bool)  # never evicted
    revision: int = 0  # how often its content changed after it was archived
    sha256: str = ""  # of its file, in hex; empty until it is archived
    parent: str | None = None  # index of the contents page that lists it; None for a root
    first_seq: int = 0  # sequence number of its first entry
    last_seq: int = 0
    first_at: str = ""  # the earliest time of its entries, in UTC, as ISO 8601; empty for a page without entries
    last_at: str = ""  # the latest
    kept: bool = False  # folds pass it by


class CheckpointKind(StrEnum):
    """Why a checkpoint was made."""

    MANUAL = "manual"
    START = "start"
    END = "end"
    AUTO = "auto"
    MILESTONE = "milestone"
    MODE_SWITCH = "mode_switch"
    APPROVAL = "approval"
    RECOVERY = "recovery"


def _values(given: Mapping[str, Any] | str) -> Mapping[str, Any]:
    return codec.decode(given.encode()) if isinstance(given, str) else given


@attrs.frozen(kw_only=True)
class Checkpoint:
    """A named place in a journal."""

    id: str  # such as cp-3; numbers are never used again
    seq: int  # of its event: session.render(at=seq) shows what the model saw there
    label: str  # as the caller named it
    kind: CheckpointKind = attrs.field(converter=CheckpointKind)
    turn: int  # that was open
    at: str  # when, in UTC, as ISO 8601
    ttl_turns: int | None = None  # after which it is no more listed; None for never
    variables: Mapping[str, Any] = attrs.field(factory=dict, converter=_values)  # of the application, JSON values by name
