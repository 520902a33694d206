"""How messages come in: which page each one joins, and what happens with it."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from memci.archive.contents.contents_page import Item
from memci.archive.contents.eviction import Stale, ZeroRecall, evictions
from memci.chapters.address import segment_of
from memci.chapters.page import Entry, MessageNode, Opening, Page
from memci.chapters.recalled import Attachment
from memci.engine.commands import checkpointing, folding
from memci.engine.core import counting
from memci.engine.core.core import Core
from memci.engine.core.monitor import Eviction
from memci.engine.history import state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import AnswerNoted, Event, MessageAppended, PageBegan, PagesEvicted, PagesFaded, from_record
from memci.engine.history.state import SYSTEM, USER, LateResult, State
from memci.engine.history.time_events import CheckpointMade
from memci.engine.reading import pages
from memci.engine.settings.config import Config
from memci.engine.view import planner
from memci.errors import ConflictError, InvalidIdError, InvalidMessageError, shown
from memci.messages.formats.reading import begins_as_answer
from memci.messages.message import Message

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


class _Taken(NamedTuple):
    """A message that was read: its value, which is nobody else's, and its tokens."""

    message: Message
    value: dict[str, Any]
    tokens: int


class _Place(NamedTuple):
    """Where a message goes: the page, the position in it, why the page is opened, the turn, and the calls it answers."""

    page: str
    position: int
    opens: str | None
    turn: int
    answers: Sequence[tuple[str, int]] = ()


class Cursor:
    """The end of the conversation while messages are planned: the state, and what the planned events bring.

    The state is not changed: pages that planned messages join are copied, each once.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.seq = state.seq
        self.turn = state.turn
        self.next_number = dict(state.next_number)
        self.next_checkpoint = state.next_checkpoint
        self.page = state.active.last_page
        self._opened: dict[str, Page] = {}
        self._copies: dict[str, Page] = {}
        self._late: dict[str, list[LateResult]] = {}
        self._faded: set[str] = set()
        self._evicted: set[str] = set()

    def attachments(self) -> list[tuple[str, Attachment]]:
        """Return what is attached then."""
        return [item for item in self.state.recalled.attachments.items() if item[0] not in self._faded]

    def entries(self) -> Sequence[Item]:
        """Return what the contents page lists then."""
        entries = self.state.archive.entries
        return [entry for entry in entries if entry.index not in self._evicted] if self._evicted else entries

    def late(self, index: str) -> Sequence[LateResult]:
        """Return the late results of an archived page."""
        return (*self.state.late.get(index, ()), *self._late.get(index, ()))

    def find_call(self, call_id: str) -> tuple[Page, MessageNode] | None:
        """Return the nearest open call of this id in view, with its page."""
        for page in self._newest_first():
            if call_id in page.open_calls:
                return page, page.open_calls[call_id][-1]
        return None

    def take(self, events: Iterable[Event]) -> None:
        """Go on after planned events."""
        for event in events:
            self.seq += 1
            match event:
                case MessageAppended():
                    self._append(event)
                case PagesFaded(pages=pages):
                    self._faded.update(pages)
                case PagesEvicted(pages=pairs):
                    self._evicted.update(index for index, _ in pairs)
                case CheckpointMade(number=number):
                    self.next_checkpoint = number + 1

    def _append(self, event: MessageAppended) -> None:
        assert event.read is not None
        node = MessageNode(message=event.read, tokens=event.tokens, seq=self.seq, stub_tokens=event.stub_tokens, at=event.at)
        self.turn = event.turn
        if event.opens is not None:
            self.next_number[segment_of(event.page)] += 1
            if event.opens == SYSTEM:
                return
            self.page = self._opened[event.page] = Page(index=event.page, turn=event.turn, opened_by=Opening(event.opens))
        page = self._opened.get(event.page) or self._copied(event.page)
        if page is None:
            self._late.setdefault(event.page, []).append(LateResult(event.answers[0][1], node))
        else:
            page.join(node, [(call_id, call_seq) for call_id, call_seq in event.answers] if event.answers else ())

    def _newest_first(self) -> Iterator[Page]:
        yield from reversed(self._opened.values())
        page = self.state.active.last_page
        while page is not None:
            yield self._copies.get(page.index, page)
            page = page.previous

    def _copied(self, index: str) -> Page | None:
        page = self.state.active.find_page(index)
        if page is not None and index not in self._copies:
            self._copies[index] = page.copy()
            if page is self.page:
                self.page = self._copies[index]
        return self._copies.get(index)


def append(core: Core, values: Sequence[object], *, at: object, key: str | None, on_conflict: str) -> list[Entry]:
    """Take messages in, all or none, and return their entries."""
    taken = [_taken(core, value, number, len(values)) for number, value in enumerate(values)]
    time = core.now() if at is None else utc_text(at)
    seqs, events = core.run(lambda core: _committed(core, taken, time, key), on_conflict)
    last = core.state.active.last_page
    if last is not None and last.tail is not None and seqs == [last.tail.seq]:
        entries = [Entry(last, last.length, last.tail)]
    else:  # whoever wrote since, this was written before
        joined = {event.page for event in events if isinstance(event, MessageAppended)}
        entries = core.run(lambda core: _entries(core, seqs, joined), "retry")
    after_turn(core, events)
    return entries


def after_turn(core: Core, events: Sequence[Event]) -> None:
    """Tell of evictions, and fold at the marks where a page was opened, once the events are committed."""
    for event in events:
        if isinstance(event, PagesEvicted):
            core.monitor.tell(Eviction(pages=tuple((index, by) for index, by in event.pages)))
    opened = (isinstance(event, MessageAppended) and event.opens in tuple(Opening) for event in events)
    if any(opened) or any(isinstance(event, PageBegan) for event in events):
        folding.fold_at_marks(core)


def utc_text(at: object) -> str:
    """Return a time as ISO 8601 in UTC; a time without a zone is taken as UTC."""
    try:
        time = datetime.fromisoformat(at) if isinstance(at, str) else at
        if isinstance(time, datetime):
            return (time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)).isoformat()
    except (ValueError, OverflowError):
        pass
    message = f"{shown(at)} is not a time: give a datetime, or ISO 8601 text such as 2026-03-01T12:30:00+00:00"
    raise InvalidMessageError(message, path="at")


def turn_events(cursor: Cursor, config: Config, turn: int) -> list[Event]:
    """Return what happens because a turn begins: recalled pages fade, entries leave by their age. O(entries)."""
    events: list[Event] = []
    faded = [index for index, each in cursor.attachments() if turn - each.turn >= (1 if each.prefetched else config.recall.turns)]
    if faded:
        events.append(PagesFaded(pages=faded, reason="turns"))
    if entries := cursor.entries():
        ages = ((ZeroRecall, config.eviction.zero_recall_turns), (Stale, config.eviction.stale_turns))
        policies = [policy(turns=turns) for policy, turns in ages if turns is not None]
        evicted = evictions(policies, entries, turn)
        if evicted:
            events.append(PagesEvicted(pages=[list(pair) for pair in evicted]))
    return events


def read_message(core: Core, value: object) -> Message:
    """Return a message as the session's wire format reads it."""
    return _sized(core, core.state.wire.read(value))


def _sized(core: Core, message: Message) -> Message:
    most = core.config.limits.message_bytes
    if len(message.raw) > most:
        text = f"the message has {len(message.raw)} bytes as JSON: send at most {most}, or raise limits.message_bytes"
        raise InvalidMessageError(text)
    return message


def _taken(core: Core, value: object, number: int, count: int) -> _Taken:
    try:
        wire = core.state.wire
        copy = wire.checked(value)
        message = _sized(core, wire.facts(copy))
    except InvalidMessageError as error:
        if count == 1:
            raise
        text = f"message {number} of {count}: {error}"
        raise InvalidMessageError(text) from error
    return _Taken(message, copy, counting.count(core.counter, wire, message, copy))


def _committed(core: Core, taken: Sequence[_Taken], at: str, key: str | None) -> tuple[list[int], list[Event]]:
    """Bring messages into the journal, unless a command with the key did; return their places there, and the events."""
    known = [] if key is None else _first_answer(core, [each.message for each in taken], key)
    if known:
        return known, []
    settings = core.configuration()
    try:
        events = _events(core, taken, at, key, settings)
    except InvalidMessageError:
        if core.is_current():
            raise
        raise core.conflict() from None  # perhaps it is about what others wrote
    core.commit(events, settings)
    first = core.state.seq - len(events) + 1
    return [first + number for number, event in enumerate(events) if isinstance(event, MessageAppended)], events


def _events(core: Core, taken: Sequence[_Taken], at: str, key: str | None, settings: Sequence[Event]) -> list[Event]:
    """Return the events that bring the messages in; those of new *settings* come before them."""
    cursor = Cursor(core.state if not settings else _configured(core.state, settings))
    if len(taken) == 1:
        return _message_events(core, cursor, taken[0], at, key)
    events: list[Event] = []
    for each in taken:
        planned = _message_events(core, cursor, each, at, key)
        cursor.take(planned)
        events += planned
    return events


def _configured(state: State, settings: Sequence[Event]) -> State:
    """Return a copy of a state with new settings in force. O(visible)."""
    copy = state_codec.from_mapping(state_codec.to_mapping(state)) if state.configured else State()
    for event in settings:
        apply(copy, event, copy.seq + 1)
    return copy


def _message_events(core: Core, cursor: Cursor, taken: _Taken, at: str, key: str | None) -> list[Event]:
    message = taken.message
    if message.role == "user" and not message.from_user and begins_as_answer(message):
        message = message.marked(_text_sha256(taken.value) in cursor.state.answers)
    place = _place(core, cursor, message)
    event = MessageAppended(
        message=taken.value,
        page=place.page,
        position=place.position,
        opens=place.opens,
        turn=place.turn,
        tokens=taken.tokens,
        stub_tokens=counting.count_stub(core.counter, core.state.wire, f"{place.page}/{place.position}", message, taken.tokens),
        at=at,
        answers=[list(pair) for pair in place.answers] if place.answers else [],
        key=key,
        attp=message.attp,
        read=message,
    )
    if place.turn == cursor.turn:
        return [event]
    checkpoint = checkpointing.between_turns(core.config, cursor.turn, cursor.next_checkpoint, at)
    return [*checkpoint, event, *turn_events(cursor, core.config, place.turn)]


def _text_sha256(value: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a message that holds a text and nothing else, in hex; empty for any other."""
    plain = value.keys() <= {"type", "role", "content"} and isinstance(value["content"], str)
    return hashlib.sha256(value["content"].encode("utf-8", "surrogatepass")).hexdigest() if plain else ""


def note_answer(core: Core, value: object) -> None:
    """Note an answer of ATTP, so that it is known again when it is appended; an engine that only reads appends nothing."""
    digest = _text_sha256(core.state.wire.checked(value))

    def note(core: Core) -> None:
        if not core.read_only and digest not in core.state.answers:
            core.commit([AnswerNoted(sha256=digest)])

    core.run(note, "retry")


def _place(core: Core, cursor: Cursor, message: Message) -> _Place:
    if message.answers:
        calling = _calling_page(core, cursor, message.answers[0])
        answers = _answers(core, calling, message)
        last = calling.results_end(calling.find_seq(answers[0][1]))
        return _Place(calling.index, calling.position_after(last), None, cursor.turn, answers)
    if message.role in ("system", "developer") and not cursor.turn:
        return _Place(f"{SYSTEM}-{cursor.next_number[SYSTEM]}", 1, SYSTEM, 0)
    page = cursor.page
    opens = _opens(core, message, page)
    if page is not None and opens is None:
        return _Place(page.index, page.length + 1, None, cursor.turn)
    turn = cursor.turn + (opens is Opening.TURN)
    return _Place(f"{USER}-{cursor.next_number[USER]}", 1, str(opens), turn)


def _opens(core: Core, message: Message, page: Page | None) -> Opening | None:
    if message.from_user and (page is None or not page.only_user):
        return Opening.TURN
    if page is None:
        return Opening.CONTINUATION
    if message.role != "assistant" and message.speaker == "tool":  # an answer of ATTP is not parted from its call
        return None
    if message.role == "assistant" and page.tail is not None and page.tail.message.partial:
        return None  # one answer of the model
    waits = page.open_calls and message.role != "assistant"  # the assistant goes past a call without a result
    if waits or (page.only_user and not message.from_user):  # an answer stands with what it answers
        return None
    return Opening.CONTINUATION if page.tokens * core.state.scale >= planner.cut_tokens(core.config) else None


def _calling_page(core: Core, cursor: Cursor, call_id: str) -> Page:
    """Return the page with the nearest call of this id that waits for its result; an archived one as it is at the cursor."""
    found = cursor.find_call(call_id)
    if found is not None and found[0] is cursor.page:
        return found[0]
    seq, oldest = cursor.seq + 1, 0 if found is None else found[1].seq

    def nearest(index: "PageIndex") -> tuple[str, int] | None:
        return index.find_call(call_id, before=seq)

    while cursor.seq and (known := core.ask(nearest)) is not None and known[1] > oldest:
        index, seq = known  # what messages before this one in the same command answer, the index does not know
        if index not in cursor.state.active:
            page = pages.load(core, index, late=cursor.late(index))
            if call_id in page.open_calls:
                return page
    if found is not None:
        return found[0]
    raise _orphan(core, call_id)


def _answers(core: Core, page: Page, message: Message) -> list[tuple[str, int]]:
    """Return the ids that a message answers, each with the sequence number of its call; all are calls of one message."""
    answers = []
    for call_id in message.answers:
        nodes = page.open_calls.get(call_id)
        if not nodes:
            raise _orphan(core, call_id)
        answers.append((call_id, nodes[-1].seq))
    if len({call_seq for _, call_seq in answers}) > 1:
        text = "one message answers the calls of one message: send the results of each assistant message for themselves"
        raise InvalidMessageError(text, path="content")
    return answers


def _orphan(core: Core, call_id: str) -> InvalidMessageError:
    message = (
        f"no call with the id {shown(call_id)} waits for a result: append the assistant message that makes the call first, "
        "and each result once"
    )
    return InvalidMessageError(message, path=core.state.wire.ANSWER_PATH)


def _first_answer(core: Core, messages: Sequence[Message], key: object) -> list[int]:
    """Return the places of what an earlier command with this key brought in, none where there was no such command."""
    if not isinstance(key, str) or not key:
        message = f"a key is text of at least one character, not {shown(key)}"
        raise InvalidIdError(message, value=key)
    try:
        key.encode()
    except UnicodeEncodeError as error:
        message = "the key holds a lone surrogate, which UTF-8 cannot encode: take another key"
        raise InvalidIdError(message, value=key) from error
    seqs = core.ask(lambda index: index.find_key(key))
    if seqs and [entry.node.message.raw for entry in _entries(core, seqs, ())] != [message.raw for message in messages]:
        message = f"the key {shown(key)} was used for other messages: take a new key for new messages"
        raise ConflictError(message, expected=core.state.seq, head=core.state.seq)
    return list(seqs)


def _entries(core: Core, seqs: Sequence[int], joined: Collection[str]) -> list[Entry]:
    """Return the entries of the messages that came in with these events. O(the pages that they joined), else O(visible)."""
    wanted = set(seqs)
    found = {
        node.seq: Entry(page, position, node)
        for chapter in (core.state.active, core.state.system)
        for page in (filter(None, map(chapter.find_page, joined)) if joined else chapter.pages())
        for position, node in enumerate(page.nodes(), start=1)
        if node.seq in wanted
    }
    return [found.get(seq) or _archived_entry(core, seq) for seq in seqs]


def _archived_entry(core: Core, seq: int) -> Entry:
    place = core.ask(lambda index: index.find_entry(seq))
    if place is not None and not place[0].startswith(f"{SYSTEM}-"):
        return pages.load(core, place[0]).entries[place[1] - 1]
    # It is gone from view: its page was replaced, or others rewound.
    event = next(from_record(record) for record in core.store.journal.read(seq - 1, seq))
    assert isinstance(event, MessageAppended), seq
    page = Page(index=event.page, turn=event.turn)
    page.add(MessageNode(message=core.state.wire.facts(event.message), tokens=event.tokens, seq=seq, at=event.at))
    return page.entries[0]
