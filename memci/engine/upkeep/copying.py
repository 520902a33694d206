"""Taking a session over into another journal: under its id into another store, or under another id, as a fork does.

Records are copied as they are, in order, in commits of bounded size, each after the page files that it names. So what is there of
an unfinished copy is the beginning of the session, and a repeated copy goes on from there. Under another id the last record is
``Forked``: without it the journal names another session than it stands under, and cannot be opened.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import zip_longest

import attrs

from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import Journal, NewRecord, Record, SessionStore, Store
from memci.engine.core.core import Core
from memci.engine.history.events import Forked, ForkMade, PagesFolded, SessionConfigured, from_record, to_record
from memci.engine.history.page_codec import file_name, file_place
from memci.engine.history.tree_events import NoteWritten
from memci.engine.reading import pages
from memci.errors import ConfigError, ConflictError, CorruptError, InvalidIdError, shown

Progress = Callable[[int, int], None]  # hears how many records are there, and of how many

_BATCH_RECORDS, _BATCH_BYTES = 500, 1 << 20


@attrs.frozen(kw_only=True)
class Copied:
    """What a copy of the id *session* did: it goes up to *seq*, *events* and *pages* were written, the others were there.

    *missing* are index and revision of page files that the source had not as its journal names them: made when first read.
    """

    session: str
    seq: int
    events: int
    pages: int
    missing: tuple[tuple[str, int], ...]


@attrs.define
class _Route:
    """What is copied into what, each opened for this copy alone: *session* in the source becomes *new_session* in the target."""

    source: SessionStore
    target: SessionStore
    session: str
    new_session: str
    missing: dict[tuple[str, int], None] = attrs.field(factory=dict)  # page files that the target lacks
    erased: bool = False  # in the source, since it was copied


def copy_session(  # noqa: PLR0913 (two places, two ids)
    source: Store,
    target: Store,
    session_id: str,
    *,
    now: str,
    tenant: str = "default",
    to_session: str | None = None,
    progress: Progress | None = None,
) -> Copied:
    """Copy a session of a tenant to another store, while it may be written to; repeated, the copy goes on where it stopped.

    It ends when nothing was written since the last look. All records are read again and compared; what was erased in the source
    meanwhile is taken out of the copy. O(history), in bounded memory. The copy has the id *to_session*, by default the same;
    *now*, in UTC, as ISO 8601, stands in the event that gives it another one. ``ConfigError`` where there is no such session, or
    it had that id before; ``ConflictError`` where the target holds something else than its beginning, or a finished copy under
    another id; ``CorruptError`` where a record is damaged, or was not written as it was read.
    """
    new_id = session_id if to_session is None else to_session
    with (
        closing(BlobSession(source.open(tenant, session_id, read_only=True), session_id)) as origin,
        closing(BlobSession(target.open(tenant, new_id), new_id)) as copy,
    ):
        if not origin.journal.head():
            message = f"there is no session {shown(session_id)} to copy"
            raise ConfigError(message, path="session")
        if new_id != session_id and new_id in _former_ids(origin.journal):
            message = f"{shown(new_id)} is an id that the session had before: take another one"
            raise ConfigError(message, path="session")
        copied = _take_over(_Route(origin, copy, session_id, new_id), None, now, progress)
        copy.drop_unused()  # pictures of what was erased since the last copy
        return copied


def fork(core: Core, store: Store, new_id: str, at: object) -> list[tuple[str, int]]:
    """Make a fork of a session, or go on with one that was interrupted; return which page files it may lack.

    The session notes first that the fork is made, and can be used meanwhile. O(its history up to *at*), in bounded memory. It
    raises what ``Engine.fork`` does.
    """
    with core.lock:
        core.refresh()
        head = core.state.seq
    if not head:
        message = f"session {shown(core.session_id)} has no events: there is nothing to fork"
        raise InvalidIdError(message, value=core.session_id)
    seq = head if at is None else at
    if type(seq) is not int or not 1 <= seq <= head:
        message = f"there is no event {shown(at)}: the session is at {head}"
        raise ConfigError(message, path="at")
    with (
        closing(BlobSession(store.open(core.key.tenant, core.session_id, read_only=True), core.session_id)) as source,
        closing(BlobSession(store.open(core.key.tenant, new_id), new_id)) as target,
    ):
        begun = target.journal.head()
        if new_id in _former_ids(source.journal, seq):
            message = f"{shown(new_id)} is an id that the session has or had: take another one"
            raise ConfigError(message, path="new_id")
        if not begun:
            limited = core.config.limits.tenant_bytes is not None
            size = sum(len(record.body) for record in source.journal.read(0, seq)) if limited else 0
            core.quotas.check(core.key.tenant, core.config.limits, size, begins=True)
            core.quotas.forget(core.key.tenant)
            with core.lock:
                made = ForkMade(session=new_id, fork_at=seq, at=core.now())
                core.run(lambda core: core.commit([made]), "retry")
        elif new_id in _former_ids(target.journal):
            message = f"there is a session {shown(new_id)} already: take another id, or delete it first"
            raise ConflictError(message, expected=0, head=begun)
        return list(_take_over(_Route(source, target, core.session_id, new_id), seq, core.now()).missing)


def mend(core: Core, missing: Iterable[tuple[str, int]]) -> None:
    """Bring a fork that was just made up to date, with the page files that it lacks made from its journal."""
    with core.lock:
        core.refresh()
        for index in dict.fromkeys(index for index, _ in missing):
            pages.mend_file(core, index)


def _take_over(route: _Route, until: int | None, now: str, progress: Progress | None = None) -> Copied:
    """Copy the records up to *until*, or all; it raises what ``copy_session`` does."""
    source, target = route.source.journal, route.target.journal
    name, origin, known = shown(route.new_session), shown(route.session), target.head()
    last = next(map(from_record, target.read(known - 1, known)), None) if known else None
    finished = last if isinstance(last, Forked) and last.session == route.new_session != route.session else None
    problem = ""
    if _follow(route, 0, known) if finished is None else any(_differences(route, 0, known - 1)):
        problem = f"is there already, and is not the beginning of {origin}: take another id, or delete it first"
    elif finished is not None:
        if finished.source == route.session and finished.fork_at == (source.head() if until is None else until):
            return Copied(session=route.new_session, seq=finished.fork_at, events=0, pages=0, missing=())
        problem = f"is a finished copy, independent of {origin} since event {finished.fork_at}"
    elif until is not None and known > until:
        problem = f"holds {known} events of {origin} already, more than {until}: delete it first"
    if problem:
        message = f"{name} {problem}"
        raise ConflictError(message, expected=0, head=known)
    route.erased = False
    head, files = _copy(route, known, until, progress)
    if differs := _follow(route, known, head):
        message = "a record is not the one that was copied: delete the copy, check the disk, and copy again"
        raise CorruptError(message, session=route.new_session, place="journal", seq=differs)
    if not route.erased and (snapshot := route.source.snapshots.find(head)) is not None:
        route.target.snapshots.put(*snapshot)  # so that opening the copy costs no more than opening the session
    if route.new_session != route.session:
        event = Forked(source=route.session, fork_at=head, session=route.new_session, at=now)
        target.append(head, [to_record(event)])
    return Copied(session=route.new_session, seq=head, events=head - known, pages=files, missing=tuple(route.missing))


def _former_ids(journal: Journal, until: int | None = None) -> set[str]:
    """Return the ids that the session of a journal has and had: those of its forks' sources, too. O(history)."""
    found = (from_record(record) for record in journal.read(0, until) if record.kind == Forked.kind or record.seq == 1)
    return {event.session for event in found if isinstance(event, Forked | SessionConfigured)}


def _differences(route: _Route, after: int, until: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield where the target is not the source, in order: with what was put in the place of a body there, if that is all."""
    there, here = (store.journal.read(after, until) for store in (route.source, route.target))
    for seq, (record, copy) in enumerate(zip_longest(there, here), start=after + 1):
        if record is None or copy is None:
            yield seq, None
        elif (record.kind, record.version, record.body) != (copy.kind, copy.version, copy.body):
            is_erased = record.redacted and (record.kind, record.version) == (copy.kind, copy.version)
            yield seq, record.body if is_erased else None


def _follow(route: _Route, after: int, until: int) -> int:
    """Take out of an unfinished copy what was erased in the source since it was copied. O(records, and again where it was).

    Return the first record that differs for another reason, 0 for none.
    """
    done: dict[int, bytes] = {}
    while True:
        found: dict[int, bytes] = {}
        for seq, body in _differences(route, after, until):
            if body is None or done.get(seq) == body:
                return seq
            found[seq] = body
        if not found:
            return 0
        route.erased = True
        route.target.snapshots.clear()
        route.target.index.reset()
        route.target.journal.redact(found)
        done |= found
        for name in list(route.target.pages.names()):
            data = route.source.pages.find(name)
            if data is None:
                route.target.pages.remove([name])
                route.missing[file_place(name)] = None
            elif data != route.target.pages.find(name):
                route.target.pages.put({name: data})


def _copy(route: _Route, head: int, until: int | None, progress: Progress | None) -> tuple[int, int]:
    """Copy the records after *head*; return the last one, and how many page files were written."""
    written = 0
    while head < (end := route.source.journal.head() if until is None else until):
        batch = _batch(route.source.journal, head, end)
        files: dict[str, bytes] = {}
        for place, sha256 in (named for record in batch for named in _files_named(record)):
            data = route.source.pages.find(file_name(*place))
            if data is not None and hashlib.sha256(data).hexdigest() == sha256:
                files[file_name(*place)] = data
                route.missing.pop(place, None)
            else:
                route.missing[place] = None
        if files:
            route.target.pages.put(files)
            written += len(files)
        head = route.target.journal.append(head, [NewRecord(record.kind, record.version, record.body) for record in batch])
        if progress is not None:
            progress(head, end)
    return head, written


def _files_named(record: Record) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield index and revision, and the SHA-256 of the page files that a record names: of pages that fold, or of a note."""
    event = from_record(record) if record.kind in (PagesFolded.kind, NoteWritten.kind) else None
    if isinstance(event, PagesFolded):
        yield from (((entry["index"], entry.get("revision", 0)), entry.get("sha256", "")) for entry in event.entries)
    elif isinstance(event, NoteWritten):
        yield (event.page, 0), event.sha256


def _batch(journal: Journal, after: int, until: int) -> list[Record]:
    """Return the next records, at most ``_BATCH_RECORDS``, and no more once they have ``_BATCH_BYTES``; the first one alone."""
    batch: list[Record] = []
    size = 0
    for record in journal.read(after, min(until, after + _BATCH_RECORDS if after else 1)):
        batch.append(record)
        size += len(record.body)
        if size >= _BATCH_BYTES:
            break
    return batch
