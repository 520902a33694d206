"""What the journal of a session tells: what was said, when the model was called, and what happened to pages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from memci.chapters.address import page_number, range_index, segment_of
from memci.engine.history.state import SYSTEM
from memci.engine.reading.journal import SessionEvent
from memci.engine.session import Session
from memci.messages.formats import format as formats
from memci.messages.formats.format import Format
from memci.messages.parts import text_of

_LINE_CHARACTERS = 120  # of what a page is called that has no title yet

# Events that change no window: the last call was made before them, where they came before its answer.
_UNSEEN = frozenset({
    *("answer_noted", "annotated", "bookmarked", "checkpoint_made", "described", "fork_made", "lease_ended", "leased"),
    *("summaries_claimed", "summary_prepared", "usage"),
})  # fmt: skip


@attrs.frozen(kw_only=True)
class Appended:
    """A message that came in: where it was put then, when, and its tokens; *value* is the message."""

    seq: int
    page: str
    position: int
    at: str
    turn: int
    tokens: int
    value: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Mark:
    """Something that happened between calls: the event's number, its *kind*, and what it is in words."""

    seq: int
    kind: str
    words: str


@attrs.frozen(kw_only=True)
class Change:
    """What changes the conversation beside messages: it goes back to an entry or an event, or its system part is new."""

    seq: int
    page: str = ""
    position: int = 0
    target: int | None = None
    system: Sequence[Mapping[str, Any]] | None = None


@attrs.define(eq=False)
class Journal:
    """What the journal tells, up to an event. *calls* are the events after which windows were sent, the last one is now."""

    wire: Format
    last: SessionEvent | None = None  # that was read
    said: dict[int, Appended] = attrs.field(factory=dict)  # by seq
    calls: list[int] = attrs.field(factory=list)
    answers: dict[int, str] = attrs.field(factory=dict)  # by call: the page that its answer joined
    turns: dict[int, int] = attrs.field(factory=dict)  # by call: the turn
    marks: list[Mark] = attrs.field(factory=list)
    course: list[Appended | Change] = attrs.field(factory=list)  # what makes the conversation, oldest first
    histories: dict[str, list[tuple[int, str]]] = attrs.field(factory=dict)  # by page: what happened to it, with seqs
    lines: dict[str, str] = attrs.field(factory=dict)  # by page: how what was said in it begins
    _seen: int = 0  # the last event that changes a window
    _in_answer: bool = False
    _turn: int = 0

    def since(self, session: Session) -> list[SessionEvent] | None:
        """Return what happened in a session since; ``None`` where what was read is not what its journal holds. O(those)."""
        if self.last is None:
            return None
        last, *events = session.events(after=self.last.seq - 1) if session.seq >= self.last.seq else (None,)
        return events if last == self.last and all(event.kind != "erased" for event in events) else None

    def read(self, events: Iterable[SessionEvent]) -> None:
        """Read what happened next. O(events); it holds all messages at once."""
        if self.calls:  # the last one was then
            self.turns.pop(self.calls.pop())
        for event in events:
            if event.kind == "appended":
                self._appended(event)
            else:
                _take_in(self, event)
            self._seen = self._seen if event.kind in _UNSEEN else event.seq
            self.last = event
        if self._seen:
            self.calls.append(self._seen)
        self.turns[self._seen] = self._turn

    def _appended(self, event: SessionEvent) -> None:
        fields = {name: event.data[name] for name in ("page", "position", "at", "turn", "tokens")}
        message = Appended(seq=event.seq, value=event.data["message"], **fields)
        facts = self.wire.facts(dict(message.value))
        goes_on, self._in_answer = self._in_answer, facts.partial
        if facts.role == "assistant" and not (facts.partial and goes_on) and self._seen:
            self.calls.append(self._seen)
            self.answers[self._seen], self.turns[self._seen] = message.page, self._turn
        self.said[event.seq], self._turn = message, message.turn
        self.course.append(message)
        if message.page not in self.lines and (line := " ".join(text_of(dict(message.value)).split())):
            self.lines[message.page] = line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}…"

    def _tell(self, event: SessionEvent, words: str, pages: Iterable[str]) -> None:
        for page in pages:
            self.histories.setdefault(page, []).append((event.seq, words))


def read_journal(session: Session, after: int = 0) -> Journal:
    """Read the journal of a session, from its beginning or what is *after* an event. O(events); it holds all messages at once."""
    journal = Journal(formats.get(session.config.format))
    journal.read(session.events(after=after))
    return journal


def _take_in(told: Journal, event: SessionEvent) -> None:
    """Note what an event other than a message did to the window and to pages."""
    data = event.data
    match event.kind:
        case "rewound":
            told.course.append(Change(seq=event.seq, page=data["page"], position=data["position"]))
        case "checkpoint_restored":
            told.course.append(Change(seq=event.seq, target=data["target"]))
        case "system_set":
            told.course.append(Change(seq=event.seq, system=[page["message"] for page in data["pages"]]))
        case "folded":
            _folded(told, event)
            return
    known = list(_pages(event))
    if words := _words(event, known):
        told.marks.append(Mark(seq=event.seq, kind=event.kind, words=words))
        told._tell(event, words, known)  # noqa: SLF001 (of this module)


def _folded(told: Journal, event: SessionEvent) -> None:
    """Note a fold, and what it did to pages that were archived before."""
    data = event.data
    if data["folded"]:
        words = f"fold of {spans(data['folded'])}, {_REASONS.get(data['reason'], data['reason'])}"
        told.marks.append(Mark(seq=event.seq, kind="folded", words=words))
        told._tell(event, "folded", data["folded"])  # noqa: SLF001 (of this module)
    told._tell(event, "a late result came in: a new revision", data["revised"])  # noqa: SLF001 (as above)
    for page, detail in data["details"].items():
        told._tell(event, f"its entry became {detail}", [page])  # noqa: SLF001 (as above)
    for directory in data["directories"]:
        told._tell(event, "the directory was made, or changed", [directory["index"]])  # noqa: SLF001 (as above)
    if data["evicted"]:
        told.marks.append(Mark(seq=event.seq, kind="evicted", words=f"{spans(_first(data['evicted']))} left the contents page"))
        told._tell(event, "left the contents page", _first(data["evicted"]))  # noqa: SLF001 (as above)


_REASONS = {
    "marks": "as the window was over its marks",
    "levels": "by their distance",
    "command": "as somebody asked for it",
    "topic": "as a topic was closed",
    "edits": "so that edits of the page tree show",
    "budget": "as the window had no room",
    "turns": "as its turns were over",
    "share": "as recalled pages have a share",
    "closed": "as it was closed",
    "evicted": "as it was evicted",
    "fold": "with a fold",
    "restored": "as it was restored",
}


def _first(pairs: Iterable[Iterable[str]]) -> list[str]:
    return [next(iter(pair)) for pair in pairs]


def _pages(event: SessionEvent) -> Iterator[str]:
    """Yield the pages that an event is about."""
    data = event.data
    if isinstance(page := data.get("page"), str):
        yield page
    match event.kind:
        case "trimmed":
            yield from data["results"]
        case "evicted":
            yield from _first(data["pages"])
        case "fold_undone":
            yield from (page["page"] for page in data["pages"])
        case "faded" | "mentioned" | "touched":
            yield from data["pages"]
        case "quoted":
            yield from dict.fromkeys(passage["page"] for passage in data["passages"])


_WORDS = {
    "system_set": "another system part",
    "trimmed": "long results of {pages} were trimmed",
    "fold_undone": "fold undone: {pages} came back",
    "recalled": "recall of {pages}",
    "faded": "{pages} faded, {reason}",
    "evicted": "{pages} left the contents page",
    "restored": "{pages} came back to the contents page",
    "rewound": "the session went back to before {pages}/{position}",
    "checkpoint_restored": "checkpoint {checkpoint} was restored",
    "erased": "{pages} was erased",
    "slots_set": "slots changed",
    "rule_removed": "rule {address} was removed",
}


def _words(event: SessionEvent, known: list[str]) -> str:
    """Return what happened, in words; empty for what is not told."""
    data, pages = event.data, spans(known)
    match event.kind:
        case "configured":
            return "other settings" if event.seq > 1 else ""
        case "quoted":
            return f"passages of {pages} were quoted" if known else "passages left"
        case "pinned" | "kept":
            held = data["pinned"] if event.kind == "pinned" else bool(data["by"])
            return f"{pages} {'is' if held else 'is no longer'} {event.kind}"
        case "rules_set":
            return "" if data.get("entry_seq") else f"rule {data['address']} was added"
    told = {name: data.get(name, "") for name in ("address", "position", "checkpoint")}
    reason = _REASONS.get(data.get("reason", ""), data.get("reason", ""))
    return _WORDS.get(event.kind, "").format(pages=pages, reason=reason, **told)


def spans(indexes: Iterable[str]) -> str:
    """Return pages in few words, neighbours as ranges: ``usr-3..9, usr-12``."""
    runs: list[tuple[str, int, int]] = []
    for index in indexes:
        name = segment_of(index)
        if ".." in index or not index[len(name) + 1 :].isdigit():
            runs.append((index, -1, -1))
        elif runs and runs[-1][0] == name and runs[-1][2] + 1 == page_number(index):
            runs[-1] = (name, runs[-1][1], page_number(index))
        else:
            runs.append((name, page_number(index), page_number(index)))
    told = (
        name if last < 0 else f"{name}-{last}" if first == last else range_index(name, first, last) for name, first, last in runs
    )
    return ", ".join(told)


def is_system(page: str) -> bool:
    """Return whether a page is one of the system part."""
    return segment_of(page) == SYSTEM
