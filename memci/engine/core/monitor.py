"""What observers of a session hear of."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import attrs

from memci.errors import ConfigError, shown

if TYPE_CHECKING:
    import logging


class Zone(StrEnum):
    """How full a window is, by the share of its budget: below 0.50, 0.75, 0.90, and the rest."""

    GREEN = "green"
    YELLOW = "yellow"
    ORANGE = "orange"
    RED = "red"


def logger() -> "logging.Logger":
    """Return memci's logger. It tells of ids and counts, never of message text."""
    import logging  # noqa: PLC0415 (slow to load, and seldom needed)

    return logging.getLogger("memci")


_ZONES = ((0.50, Zone.GREEN), (0.75, Zone.YELLOW), (0.90, Zone.ORANGE))


def zone(tokens: int, budget: int) -> Zone:
    """Return the zone of a window of so many tokens."""
    share = tokens / budget
    for limit, zone in _ZONES:
        if share < limit:
            return zone
    return Zone.RED


@attrs.frozen(kw_only=True)
class Fold:
    """A fold that happened, for its ``reason``: ``marks``, ``command``, ``topic``, ``edits``, ``budget`` or ``undo``.

    ``pages`` left the window, oldest first, or with ``undo`` came back; where there are none, long results were trimmed, or the
    window shows a newer contents page. ``evicted`` are the indexes of the entries that left the contents page with it; ``seq`` is
    the event's sequence number, 0 when nothing was to be done. ``kept`` are those of the pages that were kept, and that a window
    had no room for.
    """

    pages: tuple[str, ...]
    evicted: tuple[str, ...] = ()
    tokens_before: int
    tokens_after: int
    reason: str
    seq: int
    kept: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class FoldFailed:
    """A fold at the marks did not happen; it is tried again when the next page opens."""

    error: Exception


@attrs.frozen(kw_only=True)
class SummaryFailed:
    """A summariser failed on a page: extracts take its place, and where these fail too, the page's title alone."""

    page: str
    error: Exception


@attrs.frozen(kw_only=True)
class Eviction:
    """Entries left the contents page: pairs of index and what evicted it."""

    pages: tuple[tuple[str, str], ...]


@attrs.frozen(kw_only=True)
class Recall:
    """A page was recalled. Where that was *refused*, it is too large for recalled pages, and has to be read in parts."""

    page: str
    recall_count: int
    refused: bool = False


@attrs.frozen(kw_only=True)
class Prefetch:
    """Passages of these pages are quoted beside a message that they match (``recall.passages_tokens``), the best first."""

    pages: tuple[str, ...]
    tokens: int


@attrs.frozen(kw_only=True)
class PrefetchFailed:
    """Passages could not be looked for, or their pages not be read; the window is made without them."""

    error: Exception


@attrs.frozen(kw_only=True)
class ZoneChange:
    """A window is in another zone than the one *before*, which is ``None`` for the first."""

    before: Zone | None
    zone: Zone
    tokens: int
    budget: int


@attrs.frozen(kw_only=True)
class PageRebuilt:
    """A page file was damaged or missing and the page was read from the journal instead."""

    page: str


Notice: TypeAlias = Fold | FoldFailed | SummaryFailed | Eviction | Recall | Prefetch | PrefetchFailed | ZoneChange | PageRebuilt


@attrs.define(eq=False)
class Monitor:
    """Tells observers, in the order in which they came. An observer that raises is logged, and the others still hear."""

    observers: list[Callable[[Notice], None]] = attrs.field(factory=list)
    zone: Zone | None = None

    def add(self, observer: object) -> None:
        """Add an observer."""
        if not callable(observer):
            message = f"{shown(observer)} cannot be called: give a function of one argument"
            raise ConfigError(message, path="callback")
        self.observers.append(observer)

    def tell(self, notice: Notice) -> None:
        """Tell every observer."""
        for observer in self.observers:
            try:
                observer(notice)
            except Exception:  # noqa: BLE001 (the event is committed: an observer cannot undo it, and must not hide it)
                logger().exception("an observer failed on %s", type(notice).__name__)

    def window(self, now: Zone, tokens: int, budget: int) -> None:
        """Tell of the zone of a window when it is another one than before."""
        if now is not self.zone:
            before, self.zone = self.zone, now
            self.tell(ZoneChange(before=before, zone=now, tokens=tokens, budget=budget))
