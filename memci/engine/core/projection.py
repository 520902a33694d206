"""What the index of page facts and the search index take from each event. They are derived, and made again from the journal.

System pages are always in the state; the index does not know them.
"""

from typing import TYPE_CHECKING

from memci.archive.catalogue.checkpoint import Checkpoint, CheckpointKind
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import ContentsEntry
from memci.engine.history.events import (
    Event,
    FoldUndone,
    MessageAppended,
    PageBegan,
    PagePinned,
    PageRecalled,
    PageRestored,
    PagesFolded,
    Rewound,
)
from memci.engine.history.state import SYSTEM
from memci.engine.history.time_events import CheckpointMade
from memci.messages.base64_runs import described_value
from memci.messages.formats.format import Format
from memci.messages.message import Message
from memci.messages.parts import PartKind, parts

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import IndexWriter


def project(event: Event, seq: int, writer: "IndexWriter", wire: Format) -> None:  # noqa: C901 (one branch a kind of event)
    """Take an event into the index. Costs what the event holds."""
    match event:
        case MessageAppended():
            _append(event, seq, writer, wire.facts(event.message).marked(event.attp))
        case PagesFolded():
            _fold(event, writer)
        case PageRecalled(page=index, turn=turn, recall_count=count) if count:
            writer.change_page(index, recall_count=count, last_recall_turn=turn)
        case PagePinned(page=index, pinned=pinned):
            writer.change_page(index, pinned=pinned)
        case PageRestored(page=index, entry=entry):
            writer.change_page(index, archived_turn=entry["archived_turn"])
        case FoldUndone(pages=pages):
            for value in pages:
                writer.change_page(value["page"], state=PageState.ACTIVE, archived_turn=None, sha256="", revision=0)
        case PageBegan(page=index, turn=turn, name=name):
            if writer.newest_page() != index:
                _complete_newest(writer)
            writer.put_page(_opened(index, turn, seq, name or ""))
        case Rewound(page=index, position=position):
            writer.drop_from(index, position)
        case CheckpointMade():
            writer.add_checkpoint(checkpoint_of(event, seq), keep=event.keep)
        case _:
            pass


def checkpoint_of(event: CheckpointMade, seq: int) -> Checkpoint:
    """Return what is known of the checkpoint that the event *seq* made."""
    kind = CheckpointKind(event.checkpoint_kind)
    return Checkpoint(id=f"cp-{event.number}", seq=seq, label=event.label, kind=kind, turn=event.turn, at=event.at)


def entry_text(message: Message) -> str:
    """Return the words of an entry for the search: what a reader sees, and the calls; base64 is no words."""
    kinds = (PartKind.TEXT, PartKind.RESULT, PartKind.CALL)
    said = "\n".join(part.text for part in parts(message.value()) if part.kind in kinds and part.text)
    return str(described_value(said, ""))


def _append(event: MessageAppended, seq: int, writer: "IndexWriter", message: Message) -> None:
    if event.opens is not None and event.opens != SYSTEM:
        _complete_newest(writer)
        writer.put_page(_opened(event.page, event.turn, seq))
    text, role, key = entry_text(message), message.speaker, event.key
    writer.add_entry(seq=seq, page=event.page, position=event.position, role=role, text=text, at=event.at, key=key)
    for call_id, call_seq in event.answers:
        writer.answer_call(call_id, seq=seq, call_seq=call_seq)
    if event.answers and writer.newest_page() != event.page:
        writer.index_page(event.page)  # a late result is found before the next fold
    for call in message.calls:
        writer.add_call(call.id, seq=seq, page=event.page)


def _complete_newest(writer: "IndexWriter") -> None:
    """Make the page searchable that was open until now."""
    newest = writer.newest_page()
    if newest is not None:
        writer.index_page(newest)


def _opened(index: str, turn: int, seq: int, title: str = "") -> PageFacts:
    return PageFacts(
        index=index, state=PageState.ACTIVE, turn=turn, entries=0, tokens=0, title=title, first_seq=seq, last_seq=seq
    )


def _fold(event: PagesFolded, writer: "IndexWriter") -> None:
    for value in event.entries:
        entry = ContentsEntry.from_mapping(value)
        writer.change_page(
            entry.index,
            state=PageState.ARCHIVED,
            title=entry.title,
            tokens=entry.tokens,
            entries=entry.entries,
            archived_turn=entry.archived_turn,
            sha256=entry.sha256,
            revision=entry.revision,
            pinned=entry.pinned,
            last_seq=entry.last_seq,
        )
        writer.index_page(entry.index, entry="\n".join((entry.title, entry.summary, *entry.lines)))
