"""What of a session lasts when it is closed and opened again in one process: its state, and what is prepared for its folds."""

from typing import NamedTuple

import attrs

from memci.archive.contents.contents_page import ContentsEntry
from memci.archive.contents.working_set import Note
from memci.archive.summarizers.summary import SentWindow
from memci.chapters.page import Page
from memci.engine.core.known_messages import KnownMessages
from memci.engine.history.events import SummaryPrepared, WindowSettled
from memci.engine.history.state import State


@attrs.define(eq=False, kw_only=True)
class PreparedPage:
    """What the fold of a page takes: made of the page alone, and of no use once that is another."""

    page: Page  # what it was made of
    room: int  # tokens of the entry's lines, as they were asked for
    entry: ContentsEntry  # without what only the fold knows
    notes: tuple[Note, ...]  # for the working set; their times count from the beginning of the page
    file: bytes | None  # None once it is durable in the store

    def fits(self, page: Page, room: int) -> bool:
        """Return whether it is what would be made of a page now. O(entries).

        A message is the same object as long as nobody erased it, brought it back, or loaded the state again.
        """
        before = self.page
        heads = (before.turn, before.name, before.length, before.tokens) == (page.turn, page.name, page.length, page.tokens)
        nodes = zip(before.nodes(), page.nodes(), strict=False)
        return heads and room == self.room and all(one.message is other.message and one.seq == other.seq for one, other in nodes)


class SentPrompt(NamedTuple):
    """A window as it was handed out, and when, by the monotonic clock; its size, once the provider said it."""

    seq: int
    raws: tuple[bytes, ...]
    system: object
    settled: WindowSettled
    at: float
    tokens: int = 0


@attrs.define(eq=False)
class Prepared:
    """What is prepared of a session, by index of pages. Others may put one in at any time."""

    pages: dict[str, PreparedPage] = attrs.field(factory=dict)
    outcomes: dict[str, SummaryPrepared] = attrs.field(factory=dict)  # summaries that wait to be noted, by page
    # Where pages are asked for together: the last one, and the one before pages folded or were trimmed, until they are asked for.
    windows: tuple[SentWindow, ...] = ()
    known: KnownMessages | None = None  # which messages there are, once a host's list was taken over
    sent: SentPrompt | None = None  # the last window
    counted: int = 0  # its tokens by the counter, before the scale
    reported: SentPrompt | None = None  # the last one of which the provider's usage was reported
    searched_seq: int = 0  # the newest message for which passages were looked for
    missing: int = 0  # pages that were opened since anything was prepared


class KeptState(NamedTuple):
    """A state without a session, what marks its last event, and what else was known when the session was closed."""

    state: State
    mark: str = ""  # tells its record from another one that could stand in its place; empty without events
    snapshot: int = 0  # the event at which it was last kept as a snapshot
    indexed: int = 0  # the event up to which the index is known to be
    prepared: Prepared | None = None

    @property
    def tail(self) -> int:
        """How many events no snapshot holds."""
        return self.state.seq - self.snapshot
