"""What observers of a session hear of."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import attrs

from memci.archive.stores.names import SessionKey
from memci.engine.history.events import Event, PagesFaded
from memci.errors import ConfigError, shown

if TYPE_CHECKING:
    import logging


class Zone(StrEnum):
    """How full a window is, by the share of its budget: below 0.50, 0.75, 0.90, and the rest."""

    GREEN = "green"
    YELLOW = "yellow"
    ORANGE = "orange"
    RED = "red"


def logger(key: SessionKey | None = None) -> "logging.LoggerAdapter[logging.Logger]":
    """Return memci's logger; its records have the fields ``session`` and ``tenant`` of a *key*.

    It tells of ids and counts, never of message text.
    """
    import logging  # noqa: PLC0415 (slow to load, and seldom needed)

    tenant, session = key or ("", "")
    return logging.LoggerAdapter(logging.getLogger("memci"), {"session": session, "tenant": tenant})


_ZONES = ((0.50, Zone.GREEN), (0.75, Zone.YELLOW), (0.90, Zone.ORANGE))


def zone(tokens: int, budget: int) -> Zone:
    """Return the zone of a window of so many tokens."""
    share = tokens / budget
    for limit, zone in _ZONES:
        if share < limit:
            return zone
    return Zone.RED


def begins(zone: Zone) -> float:
    """Return the share of its budget at which a window comes into a zone."""
    return (0.0, *(limit for limit, _ in _ZONES))[list(Zone).index(zone)]


@attrs.frozen(kw_only=True)
class _Heard:
    """A notice says whose it is to an observer of the engine; ``session`` and ``tenant`` are empty to one of the session."""

    session: str = ""
    tenant: str = ""


@attrs.frozen(kw_only=True)
class Fold(_Heard):
    """A fold that happened, for its ``reason``: ``marks``, ``command``, ``topic``, ``edits``, ``budget`` or ``undo``.

    ``pages`` left the window, oldest first, or with ``undo`` came back; where there are none, long results were trimmed, or the
    window shows a newer contents page. ``evicted`` are the indexes of the entries that left the contents page with it; ``seq`` is
    the event's sequence number, 0 when nothing was to be done. ``kept`` are those of the pages that were kept, and that a window
    had no room for. ``dropped_directives`` are the addresses of system and developer messages of folded pages that windows no
    longer show, as their share of the budget has no room for them, ``dropped_rules`` those of rules that were in view, listed or
    in their messages, and have no room any more.
    """

    pages: tuple[str, ...]
    evicted: tuple[str, ...] = ()
    tokens_before: int
    tokens_after: int
    reason: str
    seq: int
    kept: tuple[str, ...] = ()
    dropped_directives: tuple[str, ...] = ()
    dropped_rules: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class FoldFailed(_Heard):
    """A fold at the marks did not happen; it is tried again when the next page opens."""

    error: Exception


@attrs.frozen(kw_only=True)
class SummaryFailed(_Heard):
    """A summariser failed on a page: extracts take its place, and where these fail too, the page's title alone."""

    page: str
    error: Exception


@attrs.frozen(kw_only=True)
class Eviction(_Heard):
    """Entries left the contents page: pairs of index and what evicted it."""

    pages: tuple[tuple[str, str], ...]


@attrs.frozen(kw_only=True)
class Recall(_Heard):
    """A page was recalled. Where that was *refused*, it is too large for recalled pages, and has to be read in parts."""

    page: str
    recall_count: int
    refused: bool = False


@attrs.frozen(kw_only=True)
class Prefetch(_Heard):
    """Passages of these pages are quoted beside a message that they match (``recall.passages_tokens``), the best first."""

    pages: tuple[str, ...]
    tokens: int


@attrs.frozen(kw_only=True)
class PrefetchFailed(_Heard):
    """Passages could not be looked for, or their pages not be read; the window is made without them."""

    error: Exception


@attrs.frozen(kw_only=True)
class ZoneChange(_Heard):
    """A window is in another zone than the one *before*, which is ``None`` for the first."""

    before: Zone | None
    zone: Zone
    tokens: int
    budget: int


@attrs.frozen(kw_only=True)
class PageRebuilt(_Heard):
    """A page file was damaged or missing and the page was read from the journal instead."""

    page: str


@attrs.frozen(kw_only=True)
class Appended(_Heard):
    """Messages came in, in so many *seconds*; *seq* is that of the last one. Observers of the engine hear of it."""

    messages: int
    seq: int
    seconds: float


@attrs.frozen(kw_only=True)
class WindowMade(_Heard):
    """A window was made, in so many *seconds*. Observers of the engine hear of it."""

    tokens: int
    budget: int
    zone: Zone
    seq: int
    seconds: float


@attrs.frozen(kw_only=True)
class Fade(_Heard):
    """Recalled pages left the window again. Observers of the engine hear of it."""

    pages: tuple[str, ...]
    reason: str


@attrs.frozen(kw_only=True)
class Conflict(_Heard):
    """Somebody else wrote first: the session is at *expected*, the journal at *head*. Observers of the engine hear of it."""

    expected: int
    head: int


@attrs.frozen(kw_only=True)
class CacheMiss(_Heard):
    """The provider's cache had less of a prompt than it could; the *report*, a ``CacheReport``, says why.

    Observers of the engine hear of it.
    """

    report: object


Notice: TypeAlias = Fold | FoldFailed | SummaryFailed | Eviction | Recall | Prefetch | PrefetchFailed | ZoneChange | PageRebuilt
"""What observers of a session hear."""

EngineNotice: TypeAlias = Notice | Appended | WindowMade | Fade | Conflict | CacheMiss
"""What observers of an engine hear."""

_Given = TypeVar("_Given")


def check_observer(observer: object) -> None:
    """Raise ``ConfigError`` for what cannot be called."""
    if not callable(observer):
        message = f"{shown(observer)} cannot be called: give a function of one argument"
        raise ConfigError(message, path="callback")


@attrs.define(eq=False)
class Monitor:
    """Tells observers, in the order in which they came. An observer that raises is logged, and the others still hear."""

    session: str = ""
    tenant: str = ""
    watchers: list[Callable[[EngineNotice], None]] = attrs.field(factory=list)  # those of the engine
    observers: list[Callable[[Notice], None]] = attrs.field(factory=list)
    zone: Zone | None = None

    def tell(self, notice: Notice) -> None:
        """Tell every observer."""
        _tell(self.observers, notice)
        self.report(notice)

    def report(self, notice: EngineNotice) -> None:
        """Tell those of the engine alone."""
        if self.watchers:
            _tell(self.watchers, attrs.evolve(notice, session=self.session, tenant=self.tenant))

    def hear(self, events: Sequence[Event]) -> None:
        """Take in what was committed, for observers of the engine."""
        for event in events:
            if isinstance(event, PagesFaded):
                self.report(Fade(pages=tuple(event.pages), reason=event.reason))

    def window(self, now: Zone, tokens: int, budget: int) -> None:
        """Tell of the zone of a window when it is another one than before."""
        if now is not self.zone:
            before, self.zone = self.zone, now
            self.tell(ZoneChange(before=before, zone=now, tokens=tokens, budget=budget))


def _tell(observers: Sequence[Callable[[_Given], None]], notice: _Given) -> None:
    for observer in list(observers):
        try:
            observer(notice)
        except Exception:  # noqa: BLE001 (the event is committed: an observer cannot undo it, and must not hide it)
            logger().exception("an observer failed on %s", type(notice).__name__)
