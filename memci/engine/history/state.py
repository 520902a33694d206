"""The state of a session: what is visible or attached, as its events made it.

``apply`` is deterministic and does no I/O: the same events make the same state, live or replayed.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.archive_chapter import ArchiveChapter
from memci.archive.contents.contents_page import Item
from memci.chapters.page import Chapter, MessageNode, Page
from memci.chapters.recalled import RecallChapter
from memci.chapters.segment import ActiveChapter, Permission, Segment, SystemChapter
from memci.engine.history.events import WindowSettled
from memci.engine.settings.config import Config
from memci.messages.formats import format as formats
from memci.messages.formats.format import Format

SYSTEM, USER = "sys", "usr"

MOST_ANSWERS = 64
"""How many answers of ATTP a session knows again, the latest."""


@attrs.define(eq=False)
class OpenTurn:
    """The opening user messages of a turn whose first page is archived while the turn goes on.

    Attributes:
        nodes: The messages, oldest first; they stay in the window until the first fold after the turn.
    """

    page: str
    nodes: list[MessageNode]


@attrs.frozen
class LateResult:
    """A result for a call of an archived page, to be taken into the page at the next fold."""

    call_seq: int
    node: MessageNode


@attrs.frozen
class LastFold:
    """What undoing the last fold needs.

    Attributes:
        entries: The contents page before it, but for the late results that it put into pages: those stay in them.
    """

    folded: tuple[str, ...]
    entries: tuple[Item, ...]


@attrs.define
class Traffic:
    """How the session was used so far.

    Attributes:
        calls: Number of assistant messages, those that are parts of one answer taken as one: each was a call of the model.
    """

    tokens: int = 0
    calls: int = 0

    @property
    def tokens_per_call(self) -> float:
        """New tokens between two calls, on average."""
        return self.tokens / self.calls if self.calls else float(self.tokens)


def _rewired(state: "State", _attribute: object, config: Config) -> Config:
    state.wire = formats.get(config.format)
    return config


@attrs.define(eq=False)
class State:
    """What is visible or attached in one session.

    Attributes:
        turn_page: Index of the first page of the open turn; empty before the first.
        opening: The opening messages of the open turn, once its first page is archived.
        recalls: Recall count and turn of the last recall of active pages that were archived before.
        late: Results that came late, by archived page.
        last_fold: For ``undo_fold``; ``None`` when there is none to undo.
        settled: How windows are asked for; ``None`` before the first.
        scale: What token counts are multiplied by, as the provider's usage tells.
        ratios: What each of the last two reports of usage alone would make the scale; the counter's margin before them.
        erased_seq: The last event that took content out of those before it; 0 for none.
        instructions: What tells the model how to recall, once there is a contents page.
        configured: The last configuration event's mapping; empty for a session without records.
        detours: What restored checkpoints left out of the history, oldest first: pairs of a checkpoint's sequence number and
            that of its restoring; events in (checkpoint, restoring] are excluded.
        answers: SHA-256 of the texts of the latest answers of ATTP, oldest first.
    """

    session: str = ""
    seq: int = 0
    turn: int = 0
    config: Config = attrs.field(factory=Config, on_setattr=_rewired)
    next_number: dict[str, int] = attrs.field(factory=lambda: {SYSTEM: 1, USER: 1})
    system: SystemChapter = attrs.field(factory=SystemChapter)
    archive: ArchiveChapter = attrs.field(factory=lambda: ArchiveChapter(f"{USER}-0"))
    recalled: RecallChapter = attrs.field(factory=RecallChapter)
    active: ActiveChapter = attrs.field(factory=ActiveChapter)
    turn_page: str = ""
    opening: OpenTurn | None = None
    pinned: set[str] = attrs.field(factory=set)
    recalls: dict[str, tuple[int, int | None]] = attrs.field(factory=dict)
    late: dict[str, list[LateResult]] = attrs.field(factory=dict)
    last_fold: LastFold | None = None
    settled: WindowSettled | None = None
    scale: float = 1.0
    ratios: tuple[float, float] = (1.0, 1.0)
    traffic: Traffic = attrs.field(factory=Traffic)
    erased_seq: int = 0
    instructions: str = ""
    instruction_tokens: int = 0
    configured: Mapping[str, Any] = attrs.field(factory=dict)
    next_checkpoint: int = 1
    detours: tuple[tuple[int, int], ...] = ()
    answers: tuple[str, ...] = ()
    wire: Format = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Find the wire format."""
        self.wire = formats.get(self.config.format)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments in the order in which a window shows them."""
        return (
            Segment(name=SYSTEM, permission=Permission.SYSTEM_MANAGED, chapters=(self.system,)),
            Segment(name=USER, permission=Permission.READ_WRITE, chapters=(self.archive, self.recalled, self.active)),
        )

    @property
    def begun(self) -> bool:
        """Whether the user has spoken, or a page was opened for it."""
        return bool(self.turn_page)

    def find_page(self, index: str) -> Page | None:
        """Return a page that stands verbatim in the window, or is attached. O(1)."""
        for chapter in (self.active, self.system, self.recalled):
            page = chapter.find_page(index)
            if page is not None:
                return page
        return None

    def page_state(self, index: str) -> PageState:
        """Return where a page is; an index of no page is taken for that of an evicted one. O(directories)."""
        if self.active.find_page(index) or self.system.find_page(index):
            is_open = self.active.open_page is not None and self.active.open_page.index == index
            return PageState.OPEN if is_open else PageState.ACTIVE
        if index in self.recalled:
            return PageState.ATTACHED
        if self.archive.find_entry(index) is not None:
            return PageState.ARCHIVED
        return PageState.EVICTED if self.archive.find_directory(index) is None else PageState.HIDDEN

    def verbatim(self) -> tuple[Chapter, ...]:
        """Return the chapters whose messages this state holds."""
        return (self.system, self.active, self.recalled)

    def _check(self) -> None:
        """Assert the invariants of all chapters and between them. O(visible)."""
        for chapter in (*self.verbatim(), self.archive):
            chapter._check()  # noqa: SLF001 (their own invariants)
        shown = {page.index for page in self.active.pages()}
        archived = {entry.index for entry in self.archive.entries}
        assert not shown & archived, (shown, archived)
        assert not shown & set(self.late), (shown, set(self.late))
        assert not shown & {page.index for page in self.recalled.pages()}
        assert set(self.recalled.attachments) == {page.index for page in self.recalled.pages()}
        assert all(page.head is not None for page in self.active.pages() if page is not self.active.open_page)
