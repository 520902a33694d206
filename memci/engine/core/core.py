"""What all handles on one session share: its state, its store, its counter, and the one way in which events get in."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from memci.archive.catalogue.page_facts import INDEX_PLACE, PageFacts, PageState
from memci.archive.contents.contents_page import Directory
from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import Record
from memci.chapters.page import Page
from memci.engine.core import indexing
from memci.engine.core.indexing import mark_of
from memci.engine.core.kept_state import KeptState, Prepared
from memci.engine.core.monitor import Monitor, logger
from memci.engine.core.recounting import recounted
from memci.engine.history import blocks, events, state_codec
from memci.engine.history.apply import apply
from memci.engine.history.blocks import STUB_CHARACTERS
from memci.engine.history.events import AT_THE_END, Event, PageErased, SessionConfigured, WindowSettled, from_record, to_record
from memci.engine.history.page_codec import encoded
from memci.engine.history.state import State
from memci.engine.settings.config import Config
from memci.engine.view.layout import Layout, View
from memci.engine.view.planner import Planner
from memci.errors import (
    ArgumentError,
    ConfigError,
    ConflictError,
    CorruptError,
    InvalidMessageError,
    LockedError,
    StoreError,
    UnavailableError,
    shown,
)
from memci.messages import codec
from memci.messages.message import Message
from memci.messages.tokens.counter import PartsCount, TokenCounter
from memci.messages.tokens.message_tokens import PLAIN_KEYS, PLAIN_TOKENS, count_message, is_plain, is_text_result
from memci.version import VERSION

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex
    from memci.engine.core.summary_pool import SummaryPool

_Answer = TypeVar("_Answer")
MOST_ATTEMPTS = 500  # how often a command is begun again because others wrote first: each time costs what they wrote
_AHEAD = 7 / 8  # of the events between two snapshots, after which one is kept ahead of the command that would have to
_INDEX_STEP = 128  # records that are indexed at once, ahead of the commands that ask
_STUB_SLACK = 4  # tokens: a late result may move an entry to a position with more digits


@attrs.define(eq=False, kw_only=True)
class Core:
    """One open session."""

    session_id: str
    tenant: str
    config: Config  # the settings that this process wants; they are in force from its next event on
    store: BlobSession
    reopen: Callable[[], BlobSession]
    counter: TokenCounter
    planner: Planner | None  # decides which pages fold at the marks; None for the rules of ``view.planner``
    pool: "SummaryPool | None"  # asks a summariser of pages; None where entries are extracts
    instructions: str  # what the system part tells the model of recalling; empty for nothing
    offer: Callable[["Core"], None]  # lets the engine's thread do what is ahead of later commands
    forget_erased: Callable[["Core", int], None]  # removes what this process stored of pages that others erased after an event
    clock: Callable[[], datetime]
    read_only: bool = False  # nothing is written, the index included
    lock: threading.RLock = attrs.field(factory=threading.RLock)  # held by every command; protects everything here
    state: State = attrs.field(factory=State)  # after the last event that this process knows
    monitor: Monitor = attrs.field(factory=Monitor)
    prepared: Prepared = attrs.field(factory=Prepared)  # what folds take of pages in view
    used_at: float = 0.0  # when the last command began, by the monotonic clock
    handles: int = 0
    last_counted: int = 0  # tokens of the last window by the counter, before the scale; 0 before the first
    lost: bool = False  # the store failed: the session must be loaded again
    closed: bool = False
    view: View | None = None  # what the last window showed, while nothing but messages came in since
    next_steps: tuple[int, Sequence[str], Sequence[str]] = (-1, (), ())  # after which event the next window folds and trims what
    contents_count: PartsCount = attrs.field(factory=PartsCount)
    policy: dict[str, Any] = attrs.field(init=False)  # what of the config decides what a window holds, as the journal holds it
    indexed: "PageIndex | None" = None  # once it was asked for
    idle: bool | None = None  # whether nobody used it lately; None while its files are closed
    _last_snapshot: int = 0
    _indexed_seq: int = 0  # the event up to which the index is known to be
    _mark: str = ""
    _newest: bytes = b""

    def __attrs_post_init__(self) -> None:
        """Work out what does not change."""
        self.policy = self.config.policy_mapping()

    @property
    def mark(self) -> str:
        """What marks the state's last event; see ``KeptState``."""
        if self._newest:
            self._mark, self._newest = mark_of(self._newest), b""
        return self._mark

    def _take_over(self, kept: KeptState) -> None:
        self.state, self._mark, self._last_snapshot, self._indexed_seq, prepared = kept
        self.prepared = prepared or Prepared()
        self._newest, self.next_steps = b"", (-1, (), ())

    def load(self, kept: KeptState | None = None) -> None:
        """Bring the state to the journal's head, from a kept state if that goes on: it reads that state's last record and on."""
        if kept is None or not self._goes_on(kept):
            self.reload()
        if self.state.configured and self.state.session != self.session_id:
            message = (
                f"session {shown(self.session_id)} is an unfinished copy of {shown(self.state.session)}: "
                "repeat the fork or the copy that was interrupted, or delete it"
            )
            raise StoreError(message)

    def reload(self) -> None:
        """Load the state from what is stored. A snapshot that is older than an erasure holds what was erased, and is not used."""
        indexed = self.store.indexed_seq()
        kept, later = self._stored(None)
        self._take_over(kept)
        self._take_in(later)
        self._check_length(self.state.seq, indexed, "the index")
        if self._last_snapshot < self.state.erased_seq:
            self._take_over(KeptState(State(session=self.session_id)))
            self._take_in(self.store.journal.read())

    def keep(self) -> KeptState | None:
        """Return what the next opening can go on with; ``None`` for a session without events."""
        return KeptState(self.state, self.mark, self._last_snapshot, self._indexed_seq, self.prepared) if self.mark else None

    def is_current(self) -> bool:
        """Return whether nobody wrote since the state's last event. O(1)."""
        try:
            return self.store.journal.head() == self.state.seq
        except UnavailableError:
            self.lost = True  # perhaps it was deleted, and another one has its id
            raise

    def conflict(self) -> ConflictError:
        """Return the error of a session that others wrote to."""
        head = self.store.journal.head()
        message = f"the journal is at {head} and this session at {self.state.seq}: refresh() and do it again; nothing was written"
        return ConflictError(message, expected=self.state.seq, head=head)

    def changed(self, what: str) -> ConflictError:
        """Return the error of a command that others took the sense from: begun again it would do another thing than was meant."""
        message = f"{what} since somebody else wrote: look at the session, then say what to do; nothing was written"
        return ConflictError(message, expected=self.state.seq, head=self.state.seq)

    def run(self, command: Callable[["Core"], _Answer], on_conflict: str) -> _Answer:
        """Return what a command returns; with ``retry`` it begins again after others wrote, and finds what it had committed."""
        for _ in range(MOST_ATTEMPTS):
            try:
                return command(self)
            except ConflictError as error:
                if error.head == error.expected:  # it does not say that others wrote
                    raise
                if on_conflict != "retry" and not events.only_summaries(self.store.journal.read(self.state.seq)):
                    raise
                self.refresh()
        return command(self)

    def recover(self) -> None:
        """Open what is stored anew and load the state from it, after the store failed. All handles go on with that."""
        self.store.journal.head()  # only this opening knows whether what is there now is still the same session
        former, self.store = self.store, self.reopen()
        try:
            self._check_length(self.store.journal.head(), self.state.seq)
            self.reload()
        except BaseException:
            self.store.close()
            self.store = former
            raise
        former.close()
        self.indexed, self.lost = None, False

    def refresh(self) -> None:
        """Apply what others wrote since; after the store failed, load the session again. O(what they wrote)."""
        if self.lost:
            self.recover()
        self._check_length(self.store.journal.head(), self.state.seq)
        known, erased_seq = self.state.seq, self.state.erased_seq
        self._take_in(self.store.journal.read(known))
        if self.state.erased_seq != erased_seq:
            self.reload()
            self.indexed = None
            if not self.read_only:
                self.forget_erased(self, known)

    def state_at(self, seq: int | None) -> State:
        """Return the state as it was after the event *seq*, ``None`` for the last. Costs a snapshot and the events after it."""
        (state, *_), later = self._stored(seq)
        for record in later:
            apply(state, from_record(record), record.seq)
        return state

    def write(self, plan: Callable[[State], Sequence[Event]], on_conflict: str) -> Sequence[Event]:
        """Commit what *plan* makes of the state under the wanted settings, and return it; what it refuses may be a conflict."""

        def written(core: Core) -> Sequence[Event]:
            settings = core.configuration()
            try:
                events = plan(_configured(core.state, settings) if settings else core.state)
            except InvalidMessageError:
                if core.is_current():
                    raise
                raise core.conflict() from None
            if events:
                core._commit([*settings, *events])
            return events

        return self.run(written, on_conflict)

    def commit(self, events: Sequence[Event]) -> None:
        """Write events to the journal, after new settings, all or none, and only then apply them."""
        self._commit([*self.configuration(), *events])

    def _commit(self, events: Sequence[Event]) -> None:
        known = self.state.seq
        records = list(map(to_record, events))
        try:
            self.store.journal.append(known, records)
        except UnavailableError as error:
            self.lost |= not isinstance(error, LockedError)
            raise
        for seq, event in enumerate(events, start=known + 1):
            self._apply(event, seq)
        self._newest = records[-1].body
        # A state that erases holds the words still, until it is loaded again.
        if self.state.seq - self._last_snapshot >= self.config.snapshot_every and self.state.erased_seq <= known:
            self.write_snapshot()

    def empty_index(self) -> None:
        """Empty the index and what is known of it; it is made again when it is asked for."""
        self.store.index.reset()
        self.indexed, self._indexed_seq = None, 0

    def configure(self) -> None:
        """Put the settings that this process wants in force, where they are not."""
        if settings := self.configuration():
            self._commit(settings)

    def ask(self, question: Callable[["PageIndex"], _Answer]) -> _Answer:
        """Return what the index of page facts answers, brought up to date, O(events since), or made again where it is damaged."""
        try:
            return self._answer(question)
        except UnavailableError as error:
            logger().warning("session %r: the index cannot be used, a copy in memory is: %s", self.session_id, error)
            self.indexed = indexing.private(self.store, self.state)
        except CorruptError as error:
            if error.place != INDEX_PLACE:
                raise
            logger().warning("session %r: the index is made again from the journal: %s", self.session_id, error)
            self.indexed = indexing.emptied(self.store, read_only=self.read_only)
        return self._answer(question)

    def _answer(self, question: Callable[["PageIndex"], _Answer]) -> _Answer:
        while True:
            index = self._index()
            while (known := index.seq) < self.state.seq:
                indexing.advance(index, self.store.journal, self.state)
            if known > self.state.seq:  # another process went on
                if not self.read_only:
                    raise self.conflict()
                self.refresh()
                continue
            answer = question(index)
            if index.seq == self.state.seq:  # else another process emptied it meanwhile, to make it again
                return answer

    def _index(self) -> "PageIndex":
        if self.indexed is None:
            make = indexing.private if self.read_only else indexing.opened
            self.indexed = make(self.store, self.state)
        return self.indexed

    def keep_up(self) -> bool:
        """Do a step of what follows the journal, before a command has to; return whether there was one to do. O(visible)."""
        is_due = self.state.seq - self._last_snapshot >= _AHEAD * self.config.snapshot_every
        if is_due and self.state.erased_seq < self.state.seq:
            self.write_snapshot()
            return True
        if self.state.seq - self._indexed_seq < _INDEX_STEP:
            return False
        self._indexed_seq = self.state.seq  # after an error it is left to the commands
        index = self._index()
        indexing.advance(index, self.store.journal, self.state, _INDEX_STEP)
        self._indexed_seq = index.seq
        return True

    def catch_up(self) -> None:
        """Bring an index that is far behind to the state's last event; others, and where the store fails, catch up when asked."""
        try:
            if self.state.seq - self._index().seq >= indexing.INDEX_CHUNK:
                self.ask(lambda index: index.seq)
        except StoreError as error:
            tell = logger().info if isinstance(error, ConflictError) else logger().warning  # it is ahead of this process
            tell("session %r: the index is older than the session and catches up later: %s", self.session_id, error)

    def lay_out(self, state: State, settled: WindowSettled | None) -> Layout:
        """Return the window that the state makes. O(what came in since the last one), else O(visible)."""
        if self.view is None or not self.view.goes_on(state, settled):
            self.view = View(state, settled)
        return self.view.layout(settled)

    def _apply(self, event: Event, seq: int) -> None:
        """Apply an event; where something interrupts that, the session must be loaded again."""
        if not isinstance(event, AT_THE_END):
            self.view = None
        try:
            apply(self.state, event, seq)
        except BaseException:
            self.lost = True
            raise

    def _take_in(self, records: Iterable[Record]) -> None:
        """Apply what is in the journal already."""
        record = None
        for record in records:
            self._apply(from_record(record), record.seq)
        if record is not None:
            self._newest = record.body

    def _goes_on(self, kept: KeptState) -> bool:
        """Take over a kept state with what was written since, where it was made of this journal and no snapshot is nearer."""
        most = 2 * self.config.snapshot_every
        records = list(islice(self.store.journal.read(kept.state.seq - 1), 1 + most))
        if not 0 < len(records) <= most or mark_of(records[0].body) != kept.mark:  # none where the session was deleted
            return False
        erased_seq = kept.state.erased_seq
        self._take_over(kept)
        self._take_in(records[1:])
        return self.state.erased_seq == erased_seq

    def write_snapshot(self) -> None:
        """Keep the state as a snapshot; a failure is logged: snapshots only make loading faster. O(visible)."""
        self._last_snapshot = self.state.seq
        try:
            body = encoded(lambda written: {"mark": self.mark, "state": state_codec.to_mapping(self.state, written)})
            self.store.snapshots.put(self.state.seq, body)
            if any(record.kind == PageErased.kind for record in self.store.journal.read(self.state.seq)):
                self.store.snapshots.clear()  # another process erased meanwhile, and may have cleared them before this one came
        except Exception as error:  # noqa: BLE001 (what a command committed is: nothing that comes after may hide it)
            logger().warning("session %r: no snapshot at %d: %s", self.session_id, self.state.seq, error)

    def facts(self, index: str) -> PageFacts | None:
        """Return the facts of a page, ``None`` where there is none. O(1); O(its entries) where it stands in the window."""
        page = self.state.active.find_page(index) or self.state.system.find_page(index)
        if page is not None:
            return self.page_facts(page)
        found = self.ask(lambda pages: pages.find_page(index))
        return None if found is None else self.place(found)

    def all_facts(self) -> Iterator[PageFacts]:
        """Yield the facts of all pages, oldest first."""
        for page in self.state.system.pages():
            yield self.page_facts(page)
        yield from map(self.facts_now, self.ask(lambda index: index.all_pages()))

    def facts_now(self, facts: PageFacts) -> PageFacts:
        """Return a page's facts as they are now, by those that the index holds. O(directories)."""
        shown = self.state.active.find_page(facts.index)
        return self.place(facts) if shown is None else self.page_facts(shown, facts.title)

    def place(self, facts: PageFacts) -> PageFacts:
        """Return an archived page's facts with what only the state knows: where the page is now."""
        where = self.state.page_state(facts.index)
        entry = self.state.archive.find_entry(facts.index)
        directory = None if entry is not None else self.state.archive.find_directory(facts.index)
        parent = directory.index if isinstance(directory, Directory) else self.state.archive.root
        pinned = entry is not None and entry.pinned
        return attrs.evolve(facts, state=where, parent=None if where is PageState.EVICTED else parent, pinned=pinned)

    def count(self, message: Message, value: dict[str, Any] | None = None) -> int:
        """Return at most the size of a message as it is sent: as the last one it may even be more. *value* is it as a dict."""
        wire = self.state.wire
        if value is not None and wire.ended is None and value.keys() == PLAIN_KEYS and isinstance(text := value["content"], str):
            return PLAIN_TOKENS + self.counter.count(text)
        if not message.literal:
            message, value = wire.sent(message), None
        tokens = count_message(message.value() if value is None else value, self.counter)
        last = wire.ended(message) if wire.ended is not None else message
        return tokens if last is message else max(tokens, count_message(last.value(), self.counter))

    def count_stub(
        self, at: str, message: Message, tokens: int, *, characters: int = STUB_CHARACTERS, value: dict[str, Any] | None = None
    ) -> int:
        """Return at most how many tokens the stub of an entry at an address has; 0 for an entry that is never shown as one."""
        if tokens <= blocks.STUB_MIN_TOKENS:
            return 0
        stub = blocks.Stub(address=at, tokens=tokens, offered=True, characters=characters)
        if value is not None and self.state.wire.ended is None and (is_plain(value) or is_text_result(value)):
            return self.count(message, {**value, "content": stub.for_text(value["content"])}) + _STUB_SLACK
        return self._count_shown(message, stub)

    def count_trimmed(self, at: str, message: Message, tokens: int, bounds: Sequence[int]) -> int:
        """Return at most how many tokens a result has that is trimmed to these stretches of its text."""
        return self._count_shown(message, blocks.Stub(address=at, tokens=tokens, offered=True, bounds=tuple(bounds)))

    def _count_shown(self, message: Message, stub: blocks.Stub) -> int:
        return self.count(stub.of(message, self.state.wire)) + _STUB_SLACK * max(len(message.answers), 1)

    def now(self) -> str:
        """Return the time, in UTC, as ISO 8601."""
        time = self.clock()
        if not isinstance(time, datetime):
            raise ArgumentError(argument="clock", value=time, wanted="a function that returns the time, in UTC")
        return time.isoformat()

    def _stored(self, until: int | None) -> tuple[KeptState, Iterator[Record]]:
        """Return the newest snapshot with seq <= until, an empty state where there is none, and the records after it."""
        journal, snapshots = self.store.journal, self.store.snapshots
        try:
            found = snapshots.find(until)
            if found is not None and found[0] > (head := journal.head()):
                self._check_length(head, found[0], "a snapshot")
                found = snapshots.find(head)
        except UnavailableError as error:
            logger().warning("session %r: snapshots cannot be read, the journal is: %s", self.session_id, error)
            found = None
        if found is not None:
            seq, value = found[0], codec.decode(found[1])
            records = journal.read(seq - 1, until)
            marked = next((mark_of(record.body) for record in records), "")
            if seq >= self.state.erased_seq and (value["state"]["v"], value["mark"]) == (state_codec.VERSION, marked):
                return KeptState(state_codec.from_mapping(value["state"]), value["mark"], seq), records
        return KeptState(State(session=self.session_id, config=Config.from_mapping(self.policy))), journal.read(0, until)

    def _check_length(self, head: int, known: int, witness: str = "") -> None:
        """Raise ``CorruptError`` where the journal is shorter than this process knows, or a *witness* of what was to last."""
        if known > head and (not witness or self.store.durability == "fsync"):
            message = (
                f"it ends at {head}, and {witness or 'this process'} knows of {known} events: it was cut. Restore it from a "
                "backup, or delete the session's snapshots and index.sqlite and go on with what is left"
            )
            raise CorruptError(message, session=self.session_id, place="journal", seq=head + 1)

    def page_facts(self, page: Page, title: str = "") -> PageFacts:
        """Return the facts of a page that stands in the window for itself. O(its entries)."""
        head, tail = page.head, page.tail
        first_at, last_at = page.times
        recall_count, last_recall_turn = self.state.recalls.get(page.index, (0, None))
        return PageFacts(
            index=page.index,
            state=self.state.page_state(page.index),
            turn=page.turn,
            entries=len(page),
            tokens=page.tokens,
            title=page.name or title,
            recall_count=recall_count,
            last_recall_turn=last_recall_turn,
            pinned=page.index in self.state.pinned,
            parent="sys-0" if page.chapter is self.state.system else self.state.archive.root,
            first_seq=head.seq if head else self.state.seq,
            last_seq=tail.seq if tail else self.state.seq,
            first_at=first_at,
            last_at=last_at,
        )

    def configuration(self) -> list[Event]:
        """Return the event that puts the settings in force which this process wants; none where they are."""
        state, known, given = self.state, self.state.config.format, self.config.format
        is_current = state.renderer == blocks.RENDERER or self.read_only
        if is_current and state.configured == self.policy and state.instructions == self.instructions:
            return []
        if known != given:
            message = (
                f"session {shown(self.session_id)} holds messages in the format {known}, and the settings say {given}: open it "
                f"with format: {known}, or begin a new session with what memci.convert makes of its messages"
            )
            raise ConfigError(message, path="format")
        changed = bool(state.configured) and state.config.counter != self.config.counter
        event = SessionConfigured(
            memci=VERSION,
            session=self.session_id,
            tenant=self.tenant,
            config=self.policy,
            instructions=(said := self.instructions),
            instruction_tokens=self.count(state.wire.facts({"role": "system", "content": said})) if said else 0,
            scale=state.scale if state.configured and not changed else self.counter.margin,
            counted=recounted(state, self.count, self.count_stub, self.count_trimmed)
            if changed or (state.configured and not is_current)
            else None,
            renderer=blocks.RENDERER,
        )
        return [event]


def _configured(state: State, settings: Sequence[Event]) -> State:
    """Return a copy of a state with new settings in force. O(visible)."""
    copy = state_codec.from_mapping(state_codec.to_mapping(state)) if state.configured else State()
    for event in settings:
        apply(copy, event, copy.seq + 1)
    return copy
