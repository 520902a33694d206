"""What an HTTP server answers beside the values that a session itself returns; server and client share these."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from memci.archive.catalogue.page_facts import Checkpoint, PageFacts
from memci.archive.rules.listing import Rule
from memci.engine.core.monitor import EngineNotice, Fold, Zone
from memci.engine.hosting.listing import SessionFacts

Level = Literal["light", "medium", "heavy"]
AutoZone = Literal["yellow", "orange", "red"]


@attrs.frozen(kw_only=True)
class Overview:
    """A session: its *seq*, which is that of its last event, its *turn*, and what was said of it as such."""

    id: str
    seq: int
    turn: int
    metadata: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class SessionList:
    """Sessions, those used last first; the next ones come *after* this, which is empty at the end of the list."""

    sessions: tuple[SessionFacts, ...]
    after: str


@attrs.frozen(kw_only=True)
class Stored:
    """A message that was taken in: the *address* of its entry, such as ``usr-12/3``, and its event."""

    address: str
    seq: int
    role: str
    tokens: int


@attrs.frozen(kw_only=True)
class Written:
    """A notice of a server: there are new events up to *seq*, whoever wrote them."""

    session: str
    tenant: str
    seq: int


ServerNotice: TypeAlias = EngineNotice | Written


@attrs.frozen(kw_only=True)
class SyncedRead:
    """What a host's list changed, as ``Synced`` has it: *known* messages were there, the *appended* ones came in.

    *rewound* is the address to before which the session went back, *system* whether the system part was replaced.
    """

    known: int
    appended: tuple[Stored, ...]
    rewound: str | None
    system: bool


@attrs.frozen(kw_only=True)
class Chosen:
    """The *address* of the variant that the conversation goes on with."""

    address: str


@attrs.frozen(kw_only=True)
class WindowRead:
    """What a call sends, as ``Window`` has it."""

    messages: list[dict[str, Any]] = attrs.field(repr=False)
    system: list[dict[str, Any]] | None = attrs.field(repr=False)
    tokens: int
    budget: int
    zone: Zone
    breakdown: Mapping[str, int]
    seq: int


@attrs.frozen(kw_only=True)
class PageList:
    """The facts of some pages, oldest first, and how many there are in all."""

    pages: tuple[PageFacts, ...]
    total: int


@attrs.frozen(kw_only=True)
class RuleList:
    """Some rules, oldest first, replaced ones included, and how many there are in all."""

    rules: tuple[Rule, ...]
    total: int


@attrs.frozen(kw_only=True)
class PageRead:
    """A page: its facts and its messages; of a root or a range, in their place, the facts of its *pages*."""

    facts: PageFacts
    messages: list[dict[str, Any]]
    pages: tuple[PageFacts, ...] = ()


@attrs.frozen(kw_only=True)
class Auto:
    """Whether a session folds by itself before a window would not fit: in which *zone*, and to which *level*.

    These are ``None`` where it does not, or where its settings have marks that are none of these.
    """

    enabled: bool
    zone: AutoZone | None
    level: Level | None


@attrs.frozen(kw_only=True)
class Compacted:
    """A window that was made smaller, and the checkpoint to which the session can come back."""

    checkpoint: Checkpoint
    fold: Fold


@attrs.frozen(kw_only=True)
class HandedOver:
    """The *index* of the note that another session has now."""

    index: str
