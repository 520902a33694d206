"""Erasing a page: its content leaves the journal and all that was made of it; the rest of the history stays checkable."""

from functools import partial

import attrs

from memci.chapters.address import is_foreign
from memci.engine.core.core import Core
from memci.engine.core.monitor import logger
from memci.engine.erasure.beside import MountedRedaction, SlotsRedaction
from memci.engine.erasure.redaction import Redaction
from memci.engine.history.events import MessageAppended, PageErased, from_record
from memci.engine.history.state import SLOTS
from memci.engine.history.tree_events import NoteWritten
from memci.engine.reading import pages
from memci.errors import ConflictError, StoreError, UnavailableError
from memci.messages import codec


@attrs.frozen(kw_only=True)
class Receipt:
    """Proof of an erasure: *seq* is the event that says so, *at* when, in UTC, as ISO 8601.

    *records* held something of the page, those included from which an earlier erasing took it that failed; *files* it had or has,
    and what is left of them was written anew. *forks* of this session were made with the page in it, each a whole copy that has
    to be asked for itself; one may have been deleted since, and leave forks of its own (``Engine.erase`` finds those).
    *shared_with* are the sessions that show this one or showed it, and those that it was handed over or promoted to: they may
    have copies, which ``Engine.erase`` with its forks reaches too.
    """

    session: str
    page: str
    seq: int
    records: int
    files: tuple[str, ...]
    forks: tuple[str, ...]
    shared_with: tuple[str, ...]
    at: str


def erase(core: Core, index: str) -> Receipt:
    """Take what a page holds out of everything that is stored of the session. O(history).

    What is derived goes first, then the journal is redacted, and the event that says so comes last: if it does not come to that,
    erasing again does the rest. Others may go on writing meanwhile: what they write is redacted too.
    """
    pages.refuse_root(core, index)
    redaction = _read(core, index)
    if not redaction.begun:
        raise pages.not_found(index)
    stored = _files_of(core, index)
    _forget(core)
    core.store.pages.remove(stored)

    def redact(core: Core) -> PageErased:
        nonlocal redaction
        core.configure()
        redaction.read(core.store.journal.read(redaction.seq))
        while redaction.bodies:  # to redact nothing would cost as much, and others go on writing meanwhile
            try:
                core.store.journal.redact(redaction.bodies, redaction.former)
                redaction.bodies.clear()
            except ConflictError:  # others erase too: what was read must not bring back what they took out
                redaction = _read(core, index)
        event = PageErased(page=index, records=redaction.records, at=core.now())
        core.commit([event])
        return event

    try:
        event = core.run(redact, "retry")
        seq = core.state.seq
        _forget(core)
        core.reload()
        core.run(partial(_tidy_files, index=index), "retry")
    except ConflictError as error:
        told = "was taken out of the journal, and others wrote in between each time that they were to be told: some may still"
        message = f"page {index} of session {core.session_id!r} {told} hold it; erase it again"
        raise UnavailableError(message) from error
    core.store.drop_unused()
    core.write_snapshot()
    return Receipt(
        session=core.session_id,
        page=index,
        seq=seq,
        records=event.records,
        files=tuple(sorted(redaction.files.union(stored))),
        forks=tuple(redaction.forks),
        shared_with=tuple(redaction.shared_with),
        at=event.at,
    )


def _read(core: Core, index: str) -> Redaction:
    kind = SlotsRedaction if index == SLOTS else MountedRedaction if is_foreign(index) else Redaction
    redaction = kind(page=index, wire=core.state.wire, count=core.count, count_text=core.counter.count)
    redaction.read(core.store.journal.read())
    return redaction


def forget_erased(core: Core, after: int) -> None:
    """Remove what this process stored of pages that another one erased in events after *after*, before it knew of that.

    It has loaded the session again. A store that fails is logged: ``verify`` finds what is left, and ``repair`` removes it.
    """
    try:
        core.store.snapshots.clear()
        core.write_snapshot()
        for record in core.store.journal.read(after):
            event = from_record(record)
            if isinstance(event, PageErased):
                core.run(partial(_tidy_files, index=event.page), "retry")
        core.store.drop_unused()
    except StoreError as error:
        logger(core.key).warning("session %r: copies of what was erased may be left: %s", core.session_id, error)


def stray_files(core: Core, index: str) -> list[str]:
    """Return the names of the page's files that hold something else than the journal: what was erased there."""
    return [name for name in _files_of(core, index) if not _is_of_journal(core, core.store.pages.find(name))]


def _forget(core: Core) -> None:
    core.store.snapshots.clear()
    core.empty_index()


def _files_of(core: Core, index: str) -> list[str]:
    return sorted(name for name in core.store.pages.names() if name.partition(".")[0] == index)


def _is_of_journal(core: Core, data: bytes | None) -> bool:
    try:
        entries = codec.decode(data or b"")["entries"]
        said = {entry["seq"]: entry["message"] for entry in entries}
    except (ValueError, KeyError, TypeError):
        return False  # damaged: nobody knows what is in it
    for seq, message in said.items():
        event = next((from_record(record) for record in core.store.journal.read(seq - 1, seq)), None)
        if not isinstance(event, MessageAppended | NoteWritten) or event.message != message:
            return False
    return True


def _tidy_files(core: Core, index: str) -> None:
    """Write the file that an archived page's facts name as the journal makes it, and remove all that hold something else.

    A file that holds what the journal holds may be one that another process writes for a fold: it stays.
    """
    files = pages.made_file(core, index) if index != SLOTS and not is_foreign(index) else {}
    core.store.pages.remove([name for name in stray_files(core, index) if name not in files])
    for name, data in files.items():
        if core.store.pages.find(name) != data:
            core.store.pages.put(files)
