"""What all handles on one session share: its state, its store, its counter, and the one way in which events get in."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from memci.archive.catalogue.page_facts import PageFacts, ReopenIndexError
from memci.archive.contents.tree import Segment
from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import Record
from memci.archive.stores.names import SessionKey
from memci.engine.core import indexing
from memci.engine.core.configuring import configuration, configured
from memci.engine.core.facts import facts_of, made_facts, placed
from memci.engine.core.kept_state import KeptState, Prepared
from memci.engine.core.monitor import Conflict, Monitor, logger
from memci.engine.core.quotas import Quotas
from memci.engine.history import blocks, events, page_codec, state_codec
from memci.engine.history.apply import apply
from memci.engine.history.blocks import STUB_CHARACTERS
from memci.engine.history.events import AT_THE_END, Event, PageErased, SessionConfigured, WindowSettled, from_record, to_record
from memci.engine.history.state import State
from memci.engine.history.tree_events import SegmentAdded
from memci.engine.settings.config import Config, choice
from memci.engine.view.layout import Layout, View
from memci.engine.view.planner import Planner
from memci.errors import (
    ArgumentError,
    ConflictError,
    CorruptError,
    InvalidMessageError,
    LockedError,
    StoreError,
    UnavailableError,
    shown,
)
from memci.messages import codec
from memci.messages.headline import REQUEST
from memci.messages.message import Message
from memci.messages.tokens.counter import PartsCount, TokenCounter
from memci.messages.tokens.message_tokens import PLAIN_KEYS, PLAIN_TOKENS, count_message, is_plain, is_text_result

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex
    from memci.engine.core.summary_pool import SummaryPool

_Answer = TypeVar("_Answer")
MOST_REOPENINGS = 3  # of an index that others went on with while it was asked
MOST_ATTEMPTS = 500  # how often a command is begun again because others wrote first: each time costs what they wrote
_STUB_SLACK = 4  # tokens: a late result may move an entry to a position with more digits


@attrs.define(eq=False, kw_only=True)
class Core:
    """One open session."""

    key: SessionKey
    given: Config  # the settings of the engine for it
    store: BlobSession
    reopen: Callable[..., BlobSession]
    counter: TokenCounter
    planner: Planner | None  # decides which pages fold at the marks; None for the rules of ``view.planner``
    pool: "SummaryPool | None"  # asks a summariser of pages; None where entries are extracts
    tell: Callable[[Config, Mapping[str, Segment]], str]  # what the system part tells the model of recalling; empty for nothing
    offer: Callable[["Core"], None]  # lets the engine's thread do what is ahead of later commands
    forget_erased: Callable[["Core", int], None]  # removes what this process stored of pages that others erased after an event
    clock: Callable[[], datetime]
    quotas: Quotas
    follow: Callable[["Core"], None] | None = None  # puts the settings in force there in the place of those given
    read_only: bool = False  # nothing is written, the index included
    lock: threading.RLock = attrs.field(factory=threading.RLock)  # held by every command; protects everything here
    state: State = attrs.field(factory=State)  # after the last event that this process knows
    monitor: Monitor = attrs.field(factory=Monitor)
    prepared: Prepared = attrs.field(factory=Prepared)  # what folds take of pages in view
    used_at: float = 0.0  # when the last command began, by the monotonic clock
    handles: int = 0
    lost: bool = False  # the store failed: the session must be loaded again
    closed: bool = False
    view: View | None = None  # what the last window showed, while nothing but messages came in since
    next_steps: tuple[int, Sequence[str], Sequence[str]] = (-1, (), ())  # after which event the next window folds and trims what
    contents_count: PartsCount = attrs.field(factory=PartsCount)
    chosen: Mapping[str, Any] = attrs.field(init=False)  # what the session chose over the settings of the engine
    config: Config = attrs.field(init=False)  # both; in force from the next event on
    policy: dict[str, Any] = attrs.field(init=False)  # what of the config decides what a window holds, as the journal holds it
    segments: Mapping[str, Segment] = attrs.field(init=False)  # of the state, for which the instructions are
    instructions: str = attrs.field(init=False)  # what is told of recalling
    headlines: str = attrs.field(init=False)  # what it tells of ending a turn with its title
    indexed: "PageIndex | None" = None  # once it was asked for
    idle: bool | None = None  # whether nobody used it lately; None while its files are closed
    last_snapshot: int = 0  # the event at which the state was last kept as one
    _indexed_seq: int = 0  # the event up to which the index is known to be
    _mark: str = ""
    _newest: bytes = b""

    @property
    def session_id(self) -> str:
        """The id within the tenant."""
        return self.key.session_id

    def __attrs_post_init__(self) -> None:
        """Work out the settings."""
        self._choose({})

    def _choose(self, chosen: Mapping[str, Any], known: Config | None = None, checked: Collection[str] = ()) -> None:
        self.chosen, self.config = chosen, self.given.with_choice(chosen, known, checked)
        self.policy, self.segments = self.config.policy_mapping(), dict(self.state.tree.segments)
        self.instructions = self.tell(self.config, self.segments)
        self.headlines = REQUEST if self.config.summary.headlines else ""

    def use(self, given: Config, counter: TokenCounter) -> None:
        """Use other settings of the engine, before any command."""
        self.given, self.counter = given, counter
        self._choose(self.state.chosen, self.state.config)

    def choose(self, given: Mapping[str, object], also: Sequence[Event] = ()) -> None:
        """Put what the session chooses over the engine's settings in force, and *also* events; ``ConfigError`` for others."""
        try:
            self._choose(
                choice(self.state.chosen, given, self.given.models), None if "preset" in given else self.state.config, given
            )
            self.configure(also)
        finally:
            self._follow_choice()

    def _follow_choice(self) -> None:
        if self.chosen != self.state.chosen:
            self._choose(self.state.chosen, self.state.config)
        elif self.segments != self.state.tree.segments:
            self.segments = dict(self.state.tree.segments)
            self.instructions = self.tell(self.config, self.segments)

    @property
    def mark(self) -> str:
        """What marks the state's last event; see ``KeptState``."""
        if self._newest:
            self._mark, self._newest = indexing.mark_of(self._newest), b""
        return self._mark

    def _take_over(self, kept: KeptState) -> None:
        self.state, self._mark, self.last_snapshot, self._indexed_seq, prepared = kept
        self.prepared = prepared or Prepared()
        if self.pool is not None:
            for event in self.state.known_summaries():
                self.pool.learn(self.key, event)
        self._newest, self.next_steps = b"", (-1, (), ())
        self._follow_choice()

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
        self.check_length(self.state.seq, indexed, "the index")
        if self.last_snapshot < self.state.erased_seq:
            self._take_over(KeptState(State(session=self.session_id)))
            self._take_in(self.store.journal.read())

    def keep(self) -> KeptState | None:
        """Return what the next opening can go on with; ``None`` for a session without events."""
        return KeptState(self.state, self.mark, self.last_snapshot, self._indexed_seq, self.prepared) if self.mark else None

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
                self.monitor.report(Conflict(expected=error.expected, head=error.head))
                if on_conflict != "retry" and not events.only_summaries(self.store.journal.read(self.state.seq)):
                    raise
                self.refresh()
        return command(self)

    def recover(self) -> None:
        """Open what is stored anew and load the state from it, after the store failed. All handles go on with that."""
        self.store.journal.head()  # only this opening knows whether what is there now is still the same session
        former, self.store = self.store, self.reopen()
        try:
            self.check_length(self.store.journal.head(), self.state.seq)
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
        self.check_length(self.store.journal.head(), self.state.seq)
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
                events = plan(configured(core.state, settings) if settings else core.state)
            except InvalidMessageError:
                if core.is_current():
                    raise
                raise core.conflict() from None
            if events:
                core.commit_alone([*settings, *events])
            return events

        return self.run(written, on_conflict)

    def commit(self, events: Sequence[Event]) -> None:
        """Write events to the journal, after new settings, all or none, and only then apply them."""
        self.commit_alone([*self.configuration(), *events])

    def commit_alone(self, events: Sequence[Event]) -> None:
        """Write events that no settings concern; see ``commit``."""
        known, records, journal = self.state.seq, list(map(to_record, events)), self.store.journal
        try:
            if known and self.config.limits.tenant_bytes is None:
                journal.append(known, records)
            else:
                self.quotas.append(self.key.tenant, self.config.limits, journal, known, records)
        except UnavailableError as error:
            self.lost |= not isinstance(error, LockedError)
            raise
        for seq, event in enumerate(events, start=known + 1):
            self._apply(event, seq)
        if self.monitor.watchers:
            self.monitor.hear(events)
        self._newest = records[-1].body
        if self.state.seq - self.last_snapshot >= self.config.snapshot_every:
            self.keep_snapshot(1.0)

    def empty_index(self) -> None:
        """Empty the index and what is known of it; it is made again when it is asked for."""
        self.store.index.reset()
        self.indexed, self._indexed_seq = None, 0

    def configure(self, also: Sequence[Event] = ()) -> None:
        """Put the settings that this process wants in force, where they are not, and commit with that what happens *also*."""
        if events := [*self.configuration(), *also]:
            self.commit_alone(events)

    def ask(self, question: Callable[["PageIndex"], _Answer]) -> _Answer:
        """Return what the index of page facts answers, brought up to date, O(events since), or made again where it is damaged."""
        for _ in range(MOST_REOPENINGS):
            try:
                return self._answer(question)
            except ReopenIndexError:
                self.store.rest()
                self.indexed = None
            except (UnavailableError, CorruptError) as error:
                self.indexed = indexing.instead(error, self.store, self.state, logger(self.key), read_only=self.read_only)
                break
        return self._answer(question)

    def _answer(self, question: Callable[["PageIndex"], _Answer]) -> _Answer:
        while True:
            index = self._index()
            indexing.follow(index, self.store.journal, self.state)
            if index.seq > self.state.seq:  # another process went on
                if not self.read_only:
                    raise self.conflict()
                self.refresh()
                continue
            self._indexed_seq = self.state.seq
            answer = question(index)
            if index.seq == self.state.seq:  # else another process emptied it meanwhile, to make it again
                return answer

    def _index(self) -> "PageIndex":
        if self.indexed is None:
            self.indexed = (indexing.private if self.read_only else indexing.opened)(self.store, self.state)
        return self.indexed

    def keep_up(self) -> Callable[[], None] | None:
        """Bring the index a step nearer before a command has to; return what of it needs no lock, ``None`` where it is near."""
        if self.state.seq - self._indexed_seq < indexing.INDEX_AHEAD:
            return None
        self._indexed_seq = self.state.seq  # after an error it is left to the commands
        self._indexed_seq, rest = indexing.step(self._index(), self.store.journal, self.state)
        self.indexed = None
        self.store.rest()
        return rest

    def catch_up(self) -> None:
        """Bring an index that is far behind to the state's last event; others, and where the store fails, catch up when asked."""
        try:
            if self.state.seq - self._index().seq >= indexing.INDEX_CHUNK:
                self.ask(lambda index: index.seq)
        except StoreError as error:
            tell = getattr(logger(self.key), "info" if isinstance(error, ConflictError) else "warning")  # it is ahead
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
        if isinstance(event, SessionConfigured | events.CheckpointRestored | SegmentAdded):
            self._follow_choice()
        if self.pool is not None:
            self.pool.learn(self.key, event)

    def _take_in(self, records: Iterable[Record]) -> None:
        """Apply what is in the journal already."""
        record = None
        for record in records:
            self._apply(from_record(record), record.seq)
        if record is not None:
            self._newest = record.body
            if self.follow is not None:
                self.follow(self)

    def _goes_on(self, kept: KeptState) -> bool:
        """Take over a kept state with what was written since, where it was made of this journal and no snapshot is nearer."""
        most = 2 * self.config.snapshot_every
        records = list(islice(self.store.journal.read(kept.state.seq - 1), 1 + most))
        if not 0 < len(records) <= most or indexing.mark_of(records[0].body) != kept.mark:  # none where the session was deleted
            return False
        erased_seq = kept.state.erased_seq
        self._take_over(kept)
        self._take_in(records[1:])
        return self.state.erased_seq == erased_seq

    def keep_snapshot(self, share: float) -> bool:
        """Keep the state where at least a *share* of ``snapshot_every`` came since that was done; return whether so many came."""
        tail = self.state.seq - self.last_snapshot
        if is_due := tail >= share * self.config.snapshot_every and self.state.erased_seq < self.state.seq:
            self.write_snapshot()  # a state that has just erased holds the words still, until it is loaded again
        return is_due

    def write_snapshot(self) -> None:
        """Keep the state as a snapshot; a failure is logged: snapshots only make loading faster. O(visible)."""
        self.last_snapshot = self.state.seq
        try:
            body = page_codec.encoded(lambda written: {"mark": self.mark, "state": state_codec.to_mapping(self.state, written)})
            self.store.snapshots.put(self.state.seq, body)
            if any(record.kind == PageErased.kind for record in self.store.journal.read(self.state.seq)):
                self.store.snapshots.clear()  # another process erased meanwhile, and may have cleared them before this one came
        except Exception as error:  # noqa: BLE001 (what a command committed is: nothing that comes after may hide it)
            logger(self.key).warning("session %r: no snapshot at %d: %s", self.session_id, self.state.seq, error)

    def facts(self, index: str) -> PageFacts | None:
        """Return the facts of a page, ``None`` where there is none. O(1); O(its entries) where it stands in the window."""
        page = self.state.active.find_page(index) or self.state.system.find_page(index)
        if page is not None:
            return facts_of(self.state, page)
        if (node := self.state.tree.find(index)) is not None and node.is_directory:
            return made_facts(self.state, node)
        found = self.ask(lambda pages: pages.find_page(index))
        return None if found is None else placed(self.state, found)

    def all_facts(self) -> Iterator[PageFacts]:
        """Yield the facts of all pages and notes, oldest first."""
        for page in self.state.system.pages():
            yield facts_of(self.state, page)
        yield from map(self.facts_now, self.ask(lambda index: index.all_pages()))

    def facts_now(self, facts: PageFacts) -> PageFacts:
        """Return a page's facts as they are now, by those that the index holds. O(directories)."""
        shown = self.state.active.find_page(facts.index)
        return placed(self.state, facts) if shown is None else facts_of(self.state, shown, facts.title)

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
                self.check_length(head, found[0], "a snapshot")
                found = snapshots.find(head)
        except UnavailableError as error:
            logger(self.key).warning("session %r: snapshots cannot be read, the journal is: %s", self.session_id, error)
            found = None
        if found is not None:
            seq, value = found[0], codec.decode(found[1])
            records = journal.read(seq - 1, until)
            marked = next((indexing.mark_of(record.body) for record in records), "")
            if seq >= self.state.erased_seq and (value["state"]["v"], value["mark"]) == (state_codec.VERSION, marked):
                return KeptState(state_codec.from_mapping(value["state"]), value["mark"], seq), records
        return KeptState(State(session=self.session_id, config=Config.from_mapping(self.policy))), journal.read(0, until)

    def check_length(self, head: int, known: int, witness: str = "") -> None:
        """Raise ``CorruptError`` where the journal is shorter than this process knows, or a *witness* of what was to last."""
        if known > head and (not witness or self.store.durability == "fsync"):
            message = (
                f"it ends at {head}, and {witness or 'this process'} knows of {known} events: it was cut. Restore it from a "
                "backup, or delete the session's snapshots and index.sqlite and go on with what is left"
            )
            raise CorruptError(message, session=self.session_id, place="journal", seq=head + 1)

    def configuration(self) -> list[Event]:
        """Return the event that puts the settings in force which this process wants; none where they are."""
        state = self.state
        told = state.instructions if self.read_only else self.instructions  # what older releases told the model was sent
        wanted = (self.policy, self.chosen, told, self.headlines)
        known = state.config.policy_mapping() if self.read_only else state.configured  # older journals name fewer keys
        is_alike = self.read_only or state.renderer == blocks.RENDERER
        if is_alike and wanted == (known, state.chosen, state.instructions, state.headlines):
            return []
        return [configuration(self, is_alike=is_alike)]
