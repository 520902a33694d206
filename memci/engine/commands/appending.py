"""How messages come in: which page each one joins, and what happens with it; and pages that the application begins."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memci.archive.stores.names import check_identifier
from memci.chapters.address import segment_of
from memci.chapters.dates import utc_text
from memci.chapters.page import Entry, MessageNode, Opening, Page
from memci.engine.commands import checkpointing, folding, preparing, recalling
from memci.engine.core.core import Core
from memci.engine.core.monitor import Eviction
from memci.engine.history.events import (
    AnswerNoted,
    Event,
    MessageAppended,
    PageBegan,
    PagesEvicted,
    PagesMentioned,
    PagesTouched,
    RulesSet,
    SystemSet,
    from_record,
)
from memci.engine.history.state import SYSTEM, USER, LateResult, State
from memci.engine.reading import mentions, pages
from memci.engine.rules import ruling
from memci.engine.settings.config import Levels
from memci.engine.view import planner
from memci.errors import ConfigError, ConflictError, InvalidMessageError, shown
from memci.messages.codec import digest
from memci.messages.formats.format import SYSTEM_ROLES
from memci.messages.formats.reading import begins_as_answer
from memci.messages.message import Message

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex
    from memci.archive.rules.listing import Rule


_OPENINGS = tuple(Opening)
_NO_LEVELS = Levels()


class _Taken(NamedTuple):
    """A message that was read: its value, which is nobody else's, and its tokens."""

    message: Message
    value: dict[str, Any]
    tokens: int


class _Cursor:
    """The end of the conversation as planned messages move it. The state stays as it is: pages that they join are copied."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.turn = state.turn
        self.next_number = dict(state.next_number)
        self.page = state.active.last_page
        self._pages: dict[str, Page] = {}  # new ones, and copies
        self.late: dict[str, list[LateResult]] = {}

    def find_call(self, call_id: str) -> tuple[Page, MessageNode] | None:
        """Return the nearest open call of this id in view, with its page."""
        page = self.page
        while page is not None:
            page = self._pages.get(page.index, page)
            if call_id in page.open_calls:
                return page, page.open_calls[call_id][-1]
            page = page.previous
        return None

    def take(self, event: MessageAppended, seq: int) -> None:
        """Go on after a planned message."""
        assert event.read is not None
        node = MessageNode(message=event.read, tokens=event.tokens, seq=seq, stub_tokens=event.stub_tokens, at=event.at)
        self.turn = event.turn
        if event.opens is not None:
            self.next_number[segment_of(event.page)] += 1
            if event.opens == SYSTEM:
                return
            opened_by = Opening(event.opens)
            self.page = self._pages[event.page] = Page(event.page, event.turn, opened_by, previous=self.page)
        page = self._joined(event.page)
        if page is None:
            self.late.setdefault(event.page, []).append(LateResult(event.answers[0][1], node))
        else:
            page.join(node, [(call_id, call_seq) for call_id, call_seq in event.answers])

    def _joined(self, index: str) -> Page | None:
        page = self.state.active.find_page(index)
        if page is not None and index not in self._pages:
            copy = self._pages[index] = page.copy()
            copy.previous = page.previous
            if page is self.page:
                self.page = copy
        return self._pages.get(index)


def append(core: Core, values: Sequence[object], *, at: object, key: str | None, on_conflict: str) -> list[Entry]:
    """Take messages in, all or none, and return their entries."""
    taken = []
    for number, value in enumerate(values):
        try:
            taken.append(_read(core, value))
        except InvalidMessageError as error:
            if len(values) == 1:
                raise
            text = f"message {number} of {len(values)}: {error}"
            raise InvalidMessageError(text) from error
    times = [core.now()] * len(taken) if at is None else _times(core, at, len(taken))
    seqs: list[int] = []

    def plan(state: State) -> list[Event]:
        if key is not None:
            seqs[:] = _first_answer(core, taken, key)
        return [] if seqs else _events(core, state, taken, times, key)

    events = core.write(plan, on_conflict)
    first = core.state.seq - len(events) + 1
    seqs += [seq for seq, event in enumerate(events, start=first) if isinstance(event, MessageAppended)]
    last = core.state.active.last_page
    if last is not None and last.tail is not None and seqs == [last.tail.seq]:
        entries = [Entry(last, last.length, last.tail)]
    else:  # whoever wrote since, this was written before
        joined = {event.page for event in events if isinstance(event, MessageAppended)}
        entries = core.run(lambda core: _entries(core, seqs, joined), "retry")
    _after_turn(core, events)
    return entries


def is_system(core: Core, values: Iterable[object]) -> bool:
    """Return whether these messages are the system part."""
    return [digest(node.message.value()) for node in core.state.system.message_list] == [*map(digest, values)]


def set_system(core: Core, values: Sequence[object]) -> None:
    """Replace the system part, unless it says the same already."""
    taken = [_read(core, value) for value in values]
    for number, (message, *_) in enumerate(taken):
        if message.role not in SYSTEM_ROLES:
            text = f"message {number} has the role {shown(message.role)}: the system part holds system and developer messages"
            raise InvalidMessageError(text, path="role")
    if is_system(core, (each.value for each in taken)):
        if not core.is_current():  # others may have replaced it
            raise core.conflict()
        return
    first = core.state.next_number[SYSTEM]
    pages = [
        {"index": f"{SYSTEM}-{number}", "message": each.value, "tokens": each.tokens}
        for number, each in enumerate(taken, start=first)
    ]
    core.commit([SystemSet(pages=pages, at=core.now())])


def begin_page(core: Core, name: object) -> str:
    """Open a page, or name the open one that has no entries, and return its index."""
    if name is not None and not isinstance(name, str):
        message = f"{shown(name)} is not a name: give text"
        raise ConfigError(message, path="name")
    state = core.state
    page = state.active.open_page
    if page is not None and page.head is None:
        core.commit([PageBegan(page=page.index, turn=state.turn, name=name)])
        return page.index
    index, turn = f"{USER}-{state.next_number[USER]}", state.turn + 1
    events: list[Event] = [
        *checkpointing.between_turns(core.config, state.turn, state.next_checkpoint, core.now()),
        PageBegan(page=index, turn=turn, name=name),
        *recalling.turn_events(core, turn),
    ]
    core.commit(events)
    _after_turn(core, events)
    return index


def note_answer(core: Core, value: object) -> None:
    """Note an answer of ATTP, so that it is known again when it is appended; an engine that only reads appends nothing."""
    digest = _text_sha256(core.state.wire.checked(value))

    def note(core: Core) -> None:
        if not core.read_only and digest not in core.state.answers:
            core.commit([AnswerNoted(sha256=digest)])

    core.run(note, "retry")


def _after_turn(core: Core, events: Sequence[Event]) -> None:
    """Tell of evictions, and fold at the marks where a page was opened, once the events are committed."""
    opened = 0
    for event in events:
        if isinstance(event, PagesEvicted):
            core.monitor.tell(Eviction(pages=tuple((index, by) for index, by in event.pages)))
        opened += isinstance(event, PageBegan) or getattr(event, "opens", None) in _OPENINGS
    if opened:
        folding.fold_at_marks(core, opened)
        preparing.offer(core)


def _read(core: Core, value: object) -> _Taken:
    """Read a message as the session's wire format does, and count it."""
    wire, most = core.state.wire, core.config.limits.message_bytes
    copy = wire.checked(value)
    message = wire.facts(copy)
    if len(message.raw) > most:
        text = f"the message has {len(message.raw)} bytes as JSON: send at most {most}, or raise limits.message_bytes"
        raise InvalidMessageError(text)
    return _Taken(message, copy, core.count(message, copy))


def _times(core: Core, at: object, messages: int) -> list[str]:
    """Return when each of several messages was said: *at*, or what it holds for each, and now where that is ``None``."""
    if isinstance(at, list | tuple) and len(at) != messages:
        text = f"{len(at)} times for {messages} messages: give one for each, None where it is now"
        raise InvalidMessageError(text, path="at")
    given = at if isinstance(at, list | tuple) else [at] * messages
    now = core.now()
    return [now if each is None else utc_text(each) for each in given]


def _events(core: Core, state: State, taken: Sequence[_Taken], times: Sequence[str], key: str | None) -> list[Event]:
    cursor, next_checkpoint, events = _Cursor(state), state.next_checkpoint, list[Event]()
    rules: Sequence[Rule] = state.rules
    for each, at in zip(taken, times, strict=True):
        event = _appended(core, cursor, each, at, key)
        if event.turn != cursor.turn:
            made = checkpointing.between_turns(core.config, cursor.turn, next_checkpoint, at)
            next_checkpoint += len(made)
            events += made
        events.append(event)
        seq = state.seq + len(events)
        if len(taken) > 1:
            cursor.take(event, seq)
        if each.message.from_user and core.config.rules.detect:
            set_rules = ruling.set_by(core, rules, event, seq)
            if set_rules is not None:
                events.append(set_rules)
                rules = [*rules, *set_rules.made()]
    mentioned = mentions.mentioned(core, [each.message for each in taken], event.turn) if state.recalled.attachments else []
    if mentioned:
        events.append(PagesMentioned(pages=mentioned, turn=event.turn))
    is_levelled = core.config.levels != _NO_LEVELS
    touched = mentions.touched(core, [each.message for each in taken], event.turn) if is_levelled else []
    if touched:
        events.append(PagesTouched(pages=touched, turn=event.turn))
    return events + recalling.turn_events(core, event.turn, mentioned, touched) if event.turn != state.turn else events


def _appended(core: Core, cursor: _Cursor, taken: _Taken, at: str, key: str | None) -> MessageAppended:
    message = taken.message
    if message.role == "user" and not message.from_user and begins_as_answer(message):
        message = message.marked(_text_sha256(taken.value) in cursor.state.answers)
    page, position, opens, answers = _place(core, cursor, message)
    return MessageAppended(
        message=taken.value,
        page=page,
        position=position,
        opens=opens,
        turn=cursor.turn + (opens == Opening.TURN),
        tokens=taken.tokens,
        stub_tokens=core.count_stub(f"{page}/{position}", message, taken.tokens, value=taken.value),
        at=at,
        answers=answers,
        key=key,
        attp=message.attp,
        read=message,
    )


def _text_sha256(value: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a message that holds a text and nothing else, in hex; empty for any other."""
    plain = value.keys() <= {"type", "role", "content"} and isinstance(value["content"], str)
    return hashlib.sha256(value["content"].encode("utf-8", "surrogatepass")).hexdigest() if plain else ""


def _place(core: Core, cursor: _Cursor, message: Message) -> tuple[str, int, str | None, list[list[Any]]]:
    """Return where a message goes: the page, the position in it, why the page is opened, and the calls that it answers."""
    if message.answers:
        calling = _calling_page(core, cursor, message.answers[0])
        answers = _answers(core, calling, message)
        last = calling.results_end(calling.find_seq(answers[0][1]))
        return calling.index, calling.position_after(last), None, answers
    if message.role in SYSTEM_ROLES and not cursor.turn:
        return f"{SYSTEM}-{cursor.next_number[SYSTEM]}", 1, SYSTEM, []
    page = cursor.page
    opens = _opens(core, message, page)
    if page is not None and opens is None:
        return page.index, page.length + 1, None, []
    return f"{USER}-{cursor.next_number[USER]}", 1, str(opens), []


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
    return Opening.CONTINUATION if page.tokens * core.state.scale >= planner.cut_tokens(core.state, core.config) else None


def _calling_page(core: Core, cursor: _Cursor, call_id: str) -> Page:
    """Return the page with the nearest call of this id that waits for its result; an archived one as it is at the cursor."""
    found = cursor.find_call(call_id)
    if found is not None and found[0] is cursor.page:
        return found[0]
    seq, oldest = core.state.seq + 1, 0 if found is None else found[1].seq

    def nearest(index: "PageIndex") -> tuple[str, int] | None:
        return index.find_call(call_id, before=seq)

    while core.state.seq and (known := core.ask(nearest)) is not None and known[1] > oldest:
        index, seq = known  # what messages before this one in the same command answer, the index does not know
        if index not in cursor.state.active:
            page = pages.load(core, index, late=cursor.state.late.get(index, []) + cursor.late.get(index, []))
            if call_id in page.open_calls:
                return page
    if found is not None:
        return found[0]
    raise _orphan(core, call_id)


def _answers(core: Core, page: Page, message: Message) -> list[list[Any]]:
    """Return the ids that a message answers, each with the sequence number of its call; all are calls of one message."""
    for call_id in message.answers:
        if not page.open_calls.get(call_id):
            raise _orphan(core, call_id)
    answers = [[call_id, page.open_calls[call_id][-1].seq] for call_id in message.answers]
    if any(call_seq != answers[0][1] for _, call_seq in answers):
        text = "one message answers the calls of one message: send the results of each assistant message for themselves"
        raise InvalidMessageError(text, path="content")
    return answers


def _orphan(core: Core, call_id: str) -> InvalidMessageError:
    message = f"no call with the id {shown(call_id)} waits for a result: append the message with the call first, each result once"
    return InvalidMessageError(message, path=core.state.wire.ANSWER_PATH)


def answered(core: Core, key: str) -> list[Entry]:
    """Return the entries of what an earlier command with this key brought in, none where there was no such command."""
    check_identifier(key, "key")
    return _entries(core, _message_seqs(core, key), ())


def _message_seqs(core: Core, key: str) -> Sequence[int]:
    """Return the events of the messages that came in with a key; ``ConflictError`` where a rule was added with it."""
    seqs = core.ask(lambda index: index.find_key(key))
    first = next(iter(core.store.journal.read(seqs[0] - 1, seqs[0]))) if seqs else None
    if first is not None and first.kind == RulesSet.kind:
        message = f"the key {shown(key)} was used for a rule: take a new key for new messages"
        raise ConflictError(message, expected=core.state.seq, head=core.state.seq)
    return seqs


def _first_answer(core: Core, taken: Sequence[_Taken], key: str) -> list[int]:
    """Return the places of what an earlier command with this key brought in, none where there was no such command."""
    check_identifier(key, "key")
    seqs = _message_seqs(core, key)
    if seqs and [entry.node.message.raw for entry in _entries(core, seqs, ())] != [each.message.raw for each in taken]:
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
    event = next(from_record(record) for record in core.store.journal.read(seq - 1, seq))
    assert isinstance(event, MessageAppended), seq
    seqs = core.ask(lambda index: index.entry_seqs(event.page))
    if seq in seqs:
        return pages.load(core, event.page).entries[seqs.index(seq)]
    # It is gone from view: its page was replaced, or others rewound.
    page = Page(index=event.page, turn=event.turn)
    page.add(MessageNode(message=core.state.wire.facts(event.message), tokens=event.tokens, seq=seq, at=event.at))
    return page.entries[0]
