"""The index of page facts as a session uses it: opened when it is asked for, brought to the state's last event, made anew."""

import hashlib
from typing import TYPE_CHECKING

from memci.archive.catalogue.page_facts import INDEX_PLACE
from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import Journal, Record
from memci.engine.core.monitor import logger
from memci.engine.core.projection import project
from memci.engine.history.events import from_record
from memci.engine.history.state import State
from memci.engine.history.time_events import CheckpointMade
from memci.errors import CorruptError, PageNotFoundError, StoreError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import IndexWriter, PageIndex

INDEX_CHUNK = 5_000
"""Records that are indexed in one transaction."""


def mark_of(body: bytes) -> str:
    """Return what tells a record with this body from another one that could stand in its place."""
    return hashlib.sha256(body).hexdigest()


def mark_at(journal: Journal, seq: int) -> str:
    """Return the mark of the record *seq*; empty for none."""
    return next((mark_of(record.body) for record in journal.read(seq - 1, seq)), "")


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
        return store.index.copy_in_memory() if _belongs(store.index, store.journal, state) else PageIndex(None)
    except StoreError:
        return PageIndex(None)


def emptied(store: BlobSession, session_id: str, *, read_only: bool) -> "PageIndex":
    """Return the stored index, emptied; an empty one in memory where nothing may be written, or that cannot be done."""
    from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (as above)

    if not read_only:
        try:
            store.index.reset()
        except UnavailableError as error:
            logger().warning("session %r: the index cannot be emptied: %s", session_id, error)
        else:
            return store.index
    return PageIndex(None)


def _belongs(index: "PageIndex", journal: Journal, state: State) -> bool:
    """Return whether an index was made from this journal."""
    known = index.seq
    return not known or (state.erased_seq <= known <= journal.head() and index.mark == mark_at(journal, known))


def advance(index: "PageIndex", journal: Journal, state: State) -> None:
    """Bring the index a step nearer to a state that is ahead of it: by a transaction of bounded size.

    What a restored checkpoint left out is passed over, but for the checkpoints in it: they can be restored too. An index that
    holds such events is emptied, and filled again by the next steps; so a restored checkpoint costs O(history), once. At each
    sequence number an index holds the same, whatever it was brought there for.
    """
    known = index.seq
    with index.write() as writer:
        if writer.seq != known or known >= state.seq:  # another process was faster, and may be ahead of this one
            return
        if any(target < known < restored for target, restored in state.detours):
            writer.clear()
            return
        ends = [target for target, _ in state.detours if target >= known]
        last = min([known + INDEX_CHUNK, state.seq, *ends])
        detour = dict(state.detours).get(known)
        if detour is not None:
            last = detour
        mark = index.mark
        for record in journal.read(known, last):
            if detour is None or record.kind == CheckpointMade.kind:
                _project(record, writer, state)
            mark = mark_of(record.body)
        writer.set_seq(last, mark)


def _project(record: Record, writer: "IndexWriter", state: State) -> None:
    try:
        project(from_record(record), record.seq, writer, state.wire)
    except PageNotFoundError as error:  # the page was written by an event before
        raise CorruptError(str(error), session=state.session, place=INDEX_PLACE, seq=record.seq) from error
