"""The index of page facts as a session uses it: opened when it is asked for, brought to the state's last event, made anew.

Page facts and the search are derived from the events, and made again from the journal. The index does not know system pages:
they are always in the state.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from memci.archive.catalogue.page_facts import INDEX_PLACE, Checkpoint, CheckpointKind, PageFacts, PageState
from memci.archive.contents.contents_page import CATALOGUED, ContentsEntry
from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import Journal, Record
from memci.chapters.address import is_note, segment_of
from memci.engine.history import events
from memci.engine.history.events import Event, from_record
from memci.engine.history.state import SYSTEM, State
from memci.engine.history.tree_events import EditUndone, NoteWritten, PageUpdated
from memci.errors import CorruptError, PageNotFoundError, StoreError, UnavailableError
from memci.messages.base64_runs import described_value
from memci.messages.formats.format import Format
from memci.messages.message import Message
from memci.messages.parts import PartKind, parts

if TYPE_CHECKING:
    from logging import Logger, LoggerAdapter

    from memci.archive.catalogue.index_writer import IndexWriter
    from memci.archive.catalogue.page_index import PageIndex

INDEX_CHUNK = 512  # records that are indexed in one transaction, and how far the index may be behind until somebody asks it
INDEX_AHEAD = 384  # after which it follows before somebody asks, in place: most pages fold meanwhile, and are written once
_SHORT_STEP = 128  # records that are indexed with the session's lock
_PART_BYTES = 8 << 20  # of the records that are held without it

_LASTING = (events.CheckpointMade.kind, events.MessageAnnotated.kind)  # are known whatever was gone back to
_OF_ENTRIES = tuple(name for name in CATALOGUED if name not in ("index", "summary", "lines"))


def mark_of(body: bytes) -> str:
    """Return what tells a record with this body from another one that could stand in its place."""
    return hashlib.sha256(body).hexdigest()


def opened(store: BlobSession, state: State) -> "PageIndex":
    """Return the stored index, emptied where it belongs to another journal."""
    index = store.index
    if not _belongs(index, store.journal, state):
        index.reset()
    return index


def private(store: BlobSession, state: State) -> "PageIndex":
    """Return a copy of the stored index in memory, or an empty one where it cannot be read."""
    from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads SQL)

    try:
        return store.index.branch() if _belongs(store.index, store.journal, state) else PageIndex(None)
    except StoreError:
        return PageIndex(None)


def instead(error: StoreError, store: BlobSession, state: State, log: "LoggerAdapter[Logger]", *, read_only: bool) -> "PageIndex":
    """Return what to ask instead of an index that could not answer. Raises the error where it is none of the index."""
    match error:
        case UnavailableError():
            log.warning("session %r: the index cannot be used, a copy in memory is: %s", state.session, error)
            return private(store, state)
        case CorruptError(place=place) if place == INDEX_PLACE:
            log.warning("session %r: the index is made again from the journal: %s", state.session, error)
            return _emptied(store, read_only=read_only)
    raise error


def _emptied(store: BlobSession, *, read_only: bool) -> "PageIndex":
    """Return the stored index, emptied; an empty one in memory where nothing may be written, or that cannot be done."""
    from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (as above)

    with suppress(UnavailableError):
        if not read_only:
            store.index.reset()
            return store.index
    return PageIndex(None)


def _belongs(index: "PageIndex", journal: Journal, state: State) -> bool:
    """Return whether an index was made from this journal."""
    known = index.seq
    return not known or (
        state.erased_seq <= known <= journal.head()
        and index.mark == next((mark_of(record.body) for record in journal.read(known - 1, known)), "")
    )


def follow(index: "PageIndex", journal: Journal, state: State) -> None:
    """Bring the index to the last event of a state that is ahead of it. O(events since)."""
    with index.in_place() if state.seq - index.seq >= INDEX_AHEAD else nullcontext():
        while (behind := state.seq - index.seq) > 0:
            advance(index, journal, state, behind if behind < 2 * INDEX_CHUNK else INDEX_CHUNK)


def step(index: "PageIndex", journal: Journal, state: State) -> tuple[int, Callable[[], None]]:
    """Bring the index a step nearer to a state that is ahead of it, for others who wait for the session.

    Return the event that it is at then, and what brings it there: to be called without the session's lock, and with the index
    closed. One in memory, new, or with events that a checkpoint left out takes shorter steps, at once.
    """
    known, path = index.seq, index.path
    if path is None or not known or state.detours:
        advance(index, journal, state, _SHORT_STEP)
        return index.seq, nothing
    records = [*islice(_until(journal.read(known, state.seq), _PART_BYTES), INDEX_CHUNK)]
    part = _Part(records[-1].seq, (), state.wire, state.session, records)

    def take() -> None:
        from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads SQL)

        with closing(PageIndex(path)) as own:
            if own.seq == known:
                with own.in_place():
                    advance(own, part, part)

    return part.seq, take


def nothing() -> None:
    """Do what is left to do without a lock, where all of it needed that."""


class _Part(NamedTuple):
    """Some records, and what of the state belongs to them."""

    seq: int
    detours: tuple[tuple[int, int], ...]
    wire: Format
    session: str
    records: list[Record]

    def read(self, after: int, until: int | None = None) -> Iterator[Record]:
        """Yield those with ``after < seq <= until``."""
        return (record for record in self.records if after < record.seq <= (until or self.seq))


def _until(records: Iterable[Record], size_bytes: int) -> Iterator[Record]:
    """Yield records until they have so many bytes, one at least."""
    for record in records:
        yield record
        size_bytes -= len(record.body)
        if size_bytes <= 0:
            return


def advance(index: "PageIndex", journal: "Journal | _Part", state: "State | _Part", most: int = INDEX_CHUNK) -> None:
    """Bring the index a step nearer to a state that is ahead of it: by a transaction of at most *most* records.

    What a restored checkpoint left out is passed over, but for the checkpoints in it: they can be restored too. An index that
    holds such events is emptied, and filled again by the next steps: O(history), once.
    """
    known = index.seq
    with index.write() as writer:
        if writer.seq != known or known >= state.seq:  # another process was faster, and may be ahead of this one
            return
        if any(target < known < restored for target, restored in state.detours):
            writer.clear()
            return
        ends = [target for target, _ in state.detours if target >= known]
        detour = dict(state.detours).get(known)
        last = min([known + most, state.seq, *ends]) if detour is None else detour
        record = None
        for record in journal.read(known, last):
            if detour is None or record.kind in _LASTING:
                try:
                    _project(from_record(record), record.seq, writer, state.wire)
                except PageNotFoundError as error:  # the page was written by an event before
                    raise CorruptError(str(error), session=state.session, place=INDEX_PLACE, seq=record.seq) from error
        writer.set_seq(last, mark_of(record.body) if record is not None else index.mark)


def _project(event: Event, seq: int, writer: "IndexWriter", wire: Format) -> None:  # noqa: C901, PLR0912 (one branch a kind)
    """Take an event into the index. Costs what the event holds."""
    match event:
        case events.MessageAppended():
            _append(event, seq, writer, wire.facts(event.message).marked(event.attp))
        case NoteWritten(page=index):
            note = PageFacts(index=index, state=PageState.ARCHIVED, turn=event.turn, entries=1, tokens=event.tokens)
            note = attrs.evolve(note, title=event.name, sha256=event.sha256, first_seq=seq, last_seq=seq)
            writer.put_page(note)
            text = entry_text(wire.facts(event.message), event.message)
            writer.add_entry(seq=seq, page=index, position=1, role="user", text=text, at=event.at)
            writer.index_page(index, entry=f"{event.name}\n{event.description}")
        case PageUpdated(page=index, name=str(name)) if is_note(index):
            writer.index_page(index, entry=f"{name}\n{event.description or ''}")
        case EditUndone(updated=updated):
            for index, told in updated.items():
                writer.index_page(index, entry="\n".join(told))
        case events.PagesFolded():
            for value in event.entries:
                entry = ContentsEntry.from_mapping(value)
                writer.change_page(entry.index, state=PageState.ARCHIVED, **{name: getattr(entry, name) for name in _OF_ENTRIES})
                writer.index_page(entry.index, entry="\n".join((entry.title, entry.summary, *entry.lines)))
        case events.PageRecalled(page=index, turn=turn, recall_count=count) if count:
            writer.change_page(index, recall_count=count, last_recall_turn=turn)
        case events.PagePinned(page=index, pinned=pinned):
            writer.change_page(index, pinned=pinned)
        case events.PageRestored(page=index, entry=value):
            writer.change_page(index, archived_turn=ContentsEntry.from_mapping(value).archived_turn)
        case events.FoldUndone(pages=pages, titles=titles):
            for value in pages:
                writer.change_page(value["page"], state=PageState.ACTIVE, archived_turn=None, sha256="", revision=0)
            for index, title in titles.items():
                writer.change_page(index, title=title)
        case events.PageKept(page=index, content=content) if content is not None:
            writer.change_page(index, state=PageState.ACTIVE, archived_turn=None, sha256="", revision=0)
        case events.PageBegan(page=index, turn=turn, name=name):
            _open_page(writer, index, turn, seq, name or "")
        case events.Rewound(page=index, position=position):
            writer.drop_from(index, position)
        case events.MessageAnnotated(entry_seq=entry_seq, values=values):
            writer.annotate(entry_seq, values)
        case events.RulesSet(key=str(key)):
            writer.add_key(key, seq)
        case events.CheckpointMade():
            writer.add_checkpoint(checkpoint_of(event, seq), keep=event.keep)
        case _:
            pass


def checkpoint_of(event: events.CheckpointMade, seq: int) -> Checkpoint:
    """Return what is known of the checkpoint that the event *seq* made."""
    kind = CheckpointKind(event.checkpoint_kind)
    return Checkpoint(
        id=f"cp-{event.number}",
        seq=seq,
        label=event.label,
        kind=kind,
        turn=event.turn,
        at=event.at,
        ttl_turns=event.ttl_turns,
        variables=event.variables,
    )


def entry_text(message: Message, value: dict[str, Any] | None = None) -> str:
    """Return the words of an entry for the search: what a reader sees, and the calls; base64 is no words.

    *value* is the message as a dict.
    """
    kinds = (PartKind.TEXT, PartKind.RESULT, PartKind.CALL)
    said = "\n".join(part.text for part in parts(message.value() if value is None else value) if part.kind in kinds and part.text)
    return str(described_value(said, ""))


def indexed_text(message: Message, value: dict[str, Any] | None = None) -> str:
    """Return the words of an entry as they are searched: those of a speaker with a name begin with it."""
    value = message.value() if value is None else value
    name, text = speaker_name(message, value), entry_text(message, value)
    return f"{name}: {text}" if text and name else text


def speaker_name(message: Message, value: dict[str, Any] | None = None) -> str:
    """Return the name of who said a message; empty where it has none."""
    value = message.value() if value is None else value
    name = value.get("name") if message.speaker in ("user", "assistant") else None
    return name if isinstance(name, str) else ""


def _append(event: events.MessageAppended, seq: int, writer: "IndexWriter", message: Message) -> None:
    if segment_of(event.page) == SYSTEM:
        if event.key is not None:
            writer.add_key(event.key, seq)
        return
    if event.opens is not None:
        _open_page(writer, event.page, event.turn, seq)
    role, key = message.speaker, event.key
    name, text = speaker_name(message, event.message), indexed_text(message, event.message)
    writer.add_entry(seq=seq, page=event.page, position=event.position, role=role, text=text, at=event.at, key=key, name=name)
    for call_id, call_seq in event.answers:
        writer.answer_call(call_id, seq=seq, call_seq=call_seq)
    if event.answers and writer.newest_page() != event.page:
        writer.index_page(event.page)  # a late result is found before the next fold
    for call in message.calls:
        writer.add_call(call.id, seq=seq, page=event.page)


def _open_page(writer: "IndexWriter", index: str, turn: int, seq: int, title: str = "") -> None:
    """Put a page in, and make the one searchable that was open until now."""
    newest = writer.newest_page()
    if newest is not None and newest != index:
        writer.index_page(newest)
    state = PageState.ACTIVE
    writer.put_page(PageFacts(index=index, state=state, turn=turn, entries=0, tokens=0, title=title, first_seq=seq, last_seq=seq))
