"""How messages come in: which page each one joins, and what happens with it."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import attrs

from memci.archive.contents.eviction import Policy, Stale, ZeroRecall, evictions
from memci.chapters.message_list import MessageNode
from memci.chapters.page import Entry, Opening, Page
from memci.engine.commands import checkpointing, folding
from memci.engine.core import conflict
from memci.engine.core.core import Core
from memci.engine.core.monitor import Eviction
from memci.engine.history import state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import AnswerNoted, Event, MessageAppended, PageBegan, PagesEvicted, PagesFaded, from_record
from memci.engine.history.state import SYSTEM, USER, State
from memci.engine.reading import pages
from memci.engine.settings.config import Config
from memci.engine.view import planner
from memci.errors import ConflictError, InvalidIdError, InvalidMessageError, shown
from memci.messages.formats.reading import begins_as_answer
from memci.messages.message import Message

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


@attrs.frozen
class _Place:
    """Where a message goes: the page, the position in it, why the page is opened, the turn, and the calls it answers."""

    page: str
    position: int
    opens: str | None
    turn: int
    answers: list[tuple[str, int]]


def append(core: Core, values: Sequence[object], *, at: object, key: str | None, on_conflict: str) -> list[Entry]:
    """Take messages in, all or none, and return their entries.

    Raises:
        InvalidMessageError: One of them was refused; the error names it, and nothing was stored.
        ConflictError: Somebody else wrote first (``core.refresh`` brings it), or the key was used for other messages.
    """
    messages = [_read(core, value, number, len(values)) for number, value in enumerate(values)]
    time = core.now() if at is None else utc_text(at)
    seqs, events = conflict.run(core, lambda core: _committed(core, messages, time, key), on_conflict)
    entries = conflict.run(core, lambda core: _entries(core, seqs), "retry")  # whoever wrote since, this was written before
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
    """Return a time as ISO 8601 in UTC; a time without a zone is taken as UTC.

    Raises:
        InvalidMessageError: It is neither a datetime nor such a text.
    """
    try:
        time = datetime.fromisoformat(at) if isinstance(at, str) else at
        if isinstance(time, datetime):
            return (time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)).isoformat()
    except (ValueError, OverflowError):
        pass
    message = f"{shown(at)} is not a time: give a datetime, or ISO 8601 text such as 2026-03-01T12:30:00+00:00"
    raise InvalidMessageError(message, path="at")


def turn_events(state: State, config: Config, turn: int) -> list[Event]:
    """Return what happens because a turn begins: recalled pages fade, entries leave by their age. O(entries)."""
    events: list[Event] = []
    attachments = state.recalled.attachments.items()
    faded = [index for index, each in attachments if turn - each.turn >= (1 if each.prefetched else config.recall.turns)]
    if faded:
        events.append(PagesFaded(pages=faded, reason="turns"))
    evicted = evictions(age_policies(config), state.archive.entries, turn)
    if evicted:
        events.append(PagesEvicted(pages=[list(pair) for pair in evicted]))
    return events


def age_policies(config: Config) -> list[Policy]:
    """Return the eviction policies that look at ages only."""
    policies: list[Policy] = []
    if config.eviction.zero_recall_turns is not None:
        policies.append(ZeroRecall(turns=config.eviction.zero_recall_turns))
    if config.eviction.stale_turns is not None:
        policies.append(Stale(turns=config.eviction.stale_turns))
    return policies


def read_message(core: Core, value: object) -> Message:
    """Return a message as the session's wire format reads it.

    Raises:
        InvalidMessageError: It is none of the format, or too large.
    """
    message, most = core.state.wire.read(value), core.config.limits.message_bytes
    if len(message.raw) > most:
        text = f"the message has {len(message.raw)} bytes as JSON: send at most {most}, or raise limits.message_bytes"
        raise InvalidMessageError(text)
    return message


def _committed(core: Core, messages: Sequence[Message], at: str, key: str | None) -> tuple[list[int], list[Event]]:
    """Bring messages into the journal, unless a command with the key did; return their places there, and the events."""
    if (key is not None or any(message.answers for message in messages)) and not core.is_current():
        raise core.conflict()  # what is looked up must be there; all else is compared by the commit
    known = [] if key is None else _first_answer(core, messages, key)
    if known:
        return known, []
    events = _events(core, messages, at, key)
    core.commit(events)
    return _seqs(core, events), events


def _read(core: Core, value: object, number: int, count: int) -> Message:
    try:
        return read_message(core, value)
    except InvalidMessageError as error:
        if count == 1:
            raise
        message = f"message {number} of {count}: {error}"
        raise InvalidMessageError(message) from error


def _events(core: Core, messages: Sequence[Message], at: str, key: str | None) -> list[Event]:
    """Return the events that bring the messages in.

    Several, and those behind new settings, are planned on a copy of the state, one after the other.
    """
    settings = core.configuration()
    if len(messages) == 1 and not settings:
        return _message_events(core, core.state, messages[0], at, key)
    scratch = state_codec.from_mapping(state_codec.to_mapping(core.state)) if core.state.configured else State()
    seq = core.state.seq
    for event in settings:  # stands before them in the commit
        seq += 1
        apply(scratch, event, seq)
    events: list[Event] = []
    for message in messages:
        for event in _message_events(core, scratch, message, at, key):
            seq += 1
            apply(scratch, event, seq)
            events.append(event)
    return events


def _message_events(core: Core, state: State, message: Message, at: str, key: str | None) -> list[Event]:
    if begins_as_answer(message):
        message = message.marked(_text_sha256(message) in state.answers)
    node = MessageNode(message=message, tokens=core.count(message))
    place = _place(core, state, message)
    page = Page(index=place.page, turn=place.turn)
    event = MessageAppended(
        message=message.value(),
        page=place.page,
        position=place.position,
        opens=place.opens,
        turn=place.turn,
        tokens=node.tokens,
        stub_tokens=core.count_stub(page, place.position, node),
        at=at,
        answers=[list(pair) for pair in place.answers],
        key=key,
        attp=message.attp,
    )
    if place.turn == state.turn:
        return [event]
    return [*checkpointing.between_turns(state, core.config, at), event, *turn_events(state, core.config, place.turn)]


def _text_sha256(message: Message) -> str:
    """Return the SHA-256 of a message that holds a text and nothing else, in hex; empty for any other."""
    value = message.value()
    plain = value.keys() <= {"type", "role", "content"} and isinstance(value["content"], str)
    return hashlib.sha256(value["content"].encode("utf-8", "surrogatepass")).hexdigest() if plain else ""


def note_answer(core: Core, value: object) -> None:
    """Note an answer of ATTP, so that it is known again when it is appended; an engine that only reads appends nothing."""
    digest = _text_sha256(core.state.wire.read(value))

    def note(core: Core) -> None:
        if not core.read_only and digest not in core.state.answers:
            core.commit([AnswerNoted(sha256=digest)])

    conflict.run(core, note, "retry")


def _place(core: Core, state: State, message: Message) -> _Place:
    if message.answers:
        return _place_of_result(core, state, message)
    if message.role in ("system", "developer") and not state.turn:
        return _Place(f"{SYSTEM}-{state.next_number[SYSTEM]}", 1, SYSTEM, 0, [])
    page = state.active.open_page
    opens = _opens(core, message, page)
    if page is not None and opens is None:
        return _Place(page.index, len(page) + 1, None, state.turn, [])
    turn = state.turn + (opens is Opening.TURN)
    return _Place(f"{USER}-{state.next_number[USER]}", 1, str(opens), turn, [])


def _opens(core: Core, message: Message, page: Page | None) -> Opening | None:
    if message.from_user and (page is None or not page.only_user):
        return Opening.TURN
    if page is None:
        return Opening.CONTINUATION
    if message.speaker == "tool":  # an answer of ATTP is not parted from its call
        return None
    if page.tail is not None and page.tail.message.partial and message.role == "assistant":
        return None  # one answer of the model
    waits = page.open_calls and message.role != "assistant"  # the assistant goes past a call without a result
    if waits or (page.only_user and not message.from_user):  # an answer stands with what it answers
        return None
    full = page.tokens * core.state.scale >= planner.cut_tokens(core.config)
    return Opening.CONTINUATION if full else None


def _place_of_result(core: Core, state: State, message: Message) -> _Place:
    page = _calling_page(core, state, message.answers[0])
    answers = _answers(core, page, message)
    call = page.find_seq(answers[0][1])
    return _Place(page.index, page.position_behind(page.results_end(call)), None, state.turn, answers)


def _calling_page(core: Core, state: State, call_id: str) -> Page:
    """Return the page with the nearest call of this id that waits for its result; an archived one as it is in the state."""
    found = state.active.find_call(call_id)
    if found is not None and found[0] is state.active.open_page:
        return found[0]
    seq, oldest = state.seq + 1, 0 if found is None else found[1].seq

    def nearest(index: "PageIndex") -> tuple[str, int] | None:
        return index.find_call(call_id, before=seq)

    while state.seq and (known := core.ask(nearest)) is not None and known[1] > oldest:
        index, seq = known  # what messages before this one in the same command answer, the index does not know
        page = None if index in state.active else pages.load(core, index, late=state.late.get(index, ()))
        if page is not None and call_id in page.open_calls:
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


def _first_answer(core: Core, messages: Sequence[Message], key: str) -> list[int]:
    """Return the places of what an earlier command with this key brought in, none where there was no such command."""
    _check_key(key)
    seqs = core.ask(lambda index: index.find_key(key))
    if seqs and [entry.node.message.raw for entry in _entries(core, seqs)] != [message.raw for message in messages]:
        message = f"the key {shown(key)} was used for other messages: take a new key for new messages"
        raise ConflictError(message, expected=core.state.seq, head=core.state.seq)
    return list(seqs)


def _check_key(key: object) -> None:
    if not isinstance(key, str) or not key:
        message = f"a key is text of at least one character, not {shown(key)}"
        raise InvalidIdError(message, value=key)
    try:
        key.encode()
    except UnicodeEncodeError as error:
        message = "the key holds a lone surrogate, which UTF-8 cannot encode: take another key"
        raise InvalidIdError(message, value=key) from error


def _seqs(core: Core, events: Sequence[Event]) -> list[int]:
    first = core.state.seq - len(events) + 1
    return [first + number for number, event in enumerate(events) if isinstance(event, MessageAppended)]


def _entries(core: Core, seqs: Sequence[int]) -> list[Entry]:
    """Return the entries of the messages that came in with these events. O(1) for the newest, else O(visible)."""
    page = core.state.active.open_page
    if len(seqs) == 1 and page is not None and page.tail is not None and page.tail.seq == seqs[0]:
        return [Entry(page, len(page), page.tail)]
    wanted = set(seqs)
    found = {
        node.seq: Entry(page, position, node)
        for chapter in (core.state.active, core.state.system)
        for page in chapter.pages()
        for position, node in enumerate(page.nodes(), start=1)
        if node.seq in wanted
    }
    return [found.get(seq) or _archived_entry(core, seq) for seq in seqs]


def _archived_entry(core: Core, seq: int) -> Entry:
    place = core.ask(lambda index: index.find_entry(seq))
    if place is None or place[0].startswith(f"{SYSTEM}-"):
        return _replaced_entry(core, seq)
    return pages.load(core, place[0]).entries[place[1] - 1]


def _replaced_entry(core: Core, seq: int) -> Entry:
    """Return the entry of a message that is gone from view, from the journal: its page was replaced, or others rewound."""
    event = next(from_record(record) for record in core.store.journal.read(seq - 1, seq))
    assert isinstance(event, MessageAppended), seq
    page = Page(index=event.page, turn=event.turn)
    page.add(MessageNode(message=core.state.wire.facts(event.message), tokens=event.tokens, seq=seq, at=event.at))
    return page.entries[0]
