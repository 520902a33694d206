"""Taking a session over into another journal: under its id into another store, or under another id, as a fork does.

Records are copied as they are, in order, in commits of bounded size, each after the page files that it names. So what is
there of an unfinished copy is the beginning of the session, and a repeated copy goes on from there. Under another id the last
record is ``Forked``: without it the journal names another session than it stands under, and cannot be opened.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import zip_longest
from typing import Any

import attrs

from memci.archive.stores.blobs import with_blobs
from memci.archive.stores.contract import Journal, NewRecord, Record, SessionStore, Store
from memci.engine.history.events import Forked, PagesFolded, SessionConfigured, from_record, to_record
from memci.engine.history.page_codec import file_name, file_place
from memci.errors import ConfigError, ConflictError, CorruptError, shown

Progress = Callable[[int, int], None]
"""Hears how many records are there, and of how many."""

_BATCH_RECORDS, _BATCH_BYTES = 500, 1 << 20


@attrs.frozen(kw_only=True)
class Copied:
    """What a copy did.

    Attributes:
        session: The id of the copy.
        seq: Sequence number of the last event that was taken over.
        events: How many of them this copy wrote; the others were there.
        pages: How many page files it wrote.
        missing: Index and revision of page files that the source did not have as its journal names them. Those that are
            needed are made from the journal, when they are read first.
    """

    session: str
    seq: int
    events: int
    pages: int
    missing: tuple[tuple[str, int], ...]


@attrs.frozen(kw_only=True)
class Route:
    """What is copied into what, each opened for this copy alone: *session* in the source becomes *new_session* in the target."""

    source: SessionStore
    target: SessionStore
    session: str
    new_session: str


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
    """Copy a session to another store, while it may be written to; repeated, the copy goes on where it was interrupted.

    It ends when nothing was written since the last look. All records are read again and compared; what was erased in the source
    meanwhile is taken out of the copy. O(history), in bounded memory.

    Args:
        source: The store that has it.
        target: The store that gets it.
        session_id: The session.
        now: The time, in UTC, as ISO 8601; it stands in the event that gives a copy another id.
        tenant: Whose session, in both stores.
        to_session: The id of the copy; by default the same.
        progress: Hears how far it is.

    Raises:
        ConfigError: There is no such session, or the id of the copy is one that the session had before.
        ConflictError: What is in the target is not the beginning of the session, or is a finished copy under another id.
        CorruptError: A record is damaged, or was not written as it was read.
    """
    new_id = session_id if to_session is None else to_session
    with (
        closing(with_blobs(source.open(tenant, session_id, read_only=True), session_id)) as origin,
        closing(with_blobs(target.open(tenant, new_id), new_id)) as copy,
    ):
        if not origin.journal.head():
            message = f"there is no session {shown(session_id)} to copy"
            raise ConfigError(message, path="session")
        if new_id != session_id and new_id in former_ids(origin.journal):
            message = f"{shown(new_id)} is an id that the session had before: take another one"
            raise ConfigError(message, path="session")
        return take_over(Route(source=origin, target=copy, session=session_id, new_session=new_id), None, now, progress)


def take_over(route: Route, until: int | None, now: str, progress: Progress | None = None) -> Copied:
    """Copy the records up to *until*, or all; it raises what ``copy_session`` does."""
    source, target = route.source.journal, route.target.journal
    name, origin, known = shown(route.new_session), shown(route.session), target.head()
    finished = _find_forked(route, known)
    differs = _follow(route, 0, known)[0] if finished is None else next(_differences(route, 0, known - 1), None)
    problem = ""
    if differs is not None:
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
    copied = _copy(route, known, until, progress)
    differs, erased = _follow(route, known, copied.seq)
    if differs is not None:
        message = "a record is not the one that was copied: delete the copy, check the disk, and copy again"
        raise CorruptError(message, session=route.new_session, place="journal", seq=differs[0])
    if erased is not None:
        copied = attrs.evolve(copied, missing=tuple(dict.fromkeys((*copied.missing, *erased))))
    elif (snapshot := route.source.snapshots.find(copied.seq)) is not None:
        route.target.snapshots.put(*snapshot)  # so that opening the copy costs no more than opening the session
    if route.new_session != route.session:
        event = Forked(source=route.session, fork_at=copied.seq, session=route.new_session, at=now)
        target.append(copied.seq, [to_record(event)])
    return copied


def former_ids(journal: Journal, until: int | None = None) -> set[str]:
    """Return the ids that the session of a journal has and had: those of its forks' sources, too. O(history)."""
    found = (from_record(record) for record in journal.read(0, until) if record.kind == Forked.kind or record.seq == 1)
    return {event.session for event in found if isinstance(event, Forked | SessionConfigured)}


def _find_forked(route: Route, head: int) -> Forked | None:
    """Return the event that finished the copy that is in the target, if its last one is that."""
    for record in route.target.journal.read(head - 1, head) if head else ():
        event = from_record(record) if record.kind == Forked.kind else None
        if isinstance(event, Forked) and event.session == route.new_session != route.session:
            return event
    return None


def _differences(route: Route, after: int, until: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield where the target is not the source, in order: with what was put in the place of a body there, if that is all."""
    there, here = (store.journal.read(after, until) for store in (route.source, route.target))
    for seq, (record, copy) in enumerate(zip_longest(there, here), start=after + 1):
        if record is None or copy is None:
            yield seq, None
        elif _content(record) != _content(copy):
            is_erased = record.redacted and (record.kind, record.version) == (copy.kind, copy.version)
            yield seq, record.body if is_erased else None


def _follow(route: Route, after: int, until: int) -> tuple[tuple[int, bytes | None] | None, list[tuple[str, int]] | None]:
    """Take out of an unfinished copy what was erased in the source since it was copied. O(records, and again where it was).

    Returns:
        The first difference that does not come of erasing, ``None`` for none; and which page files the copy lacks since the
        erasing, ``None`` where there was none.
    """
    done: list[tuple[int, bytes | None]] = []
    missing: list[tuple[str, int]] | None = None
    while True:
        found = []
        for difference in _differences(route, after, until):
            if difference[1] is None or difference in done:
                return difference, missing
            found.append(difference)
        if not found:
            return None, missing
        route.target.snapshots.clear()
        route.target.index.reset()
        route.target.journal.redact({seq: body for seq, body in found if body is not None})
        done, missing = done + found, missing or []
        for name in list(route.target.pages.names()):
            data = route.source.pages.find(name)
            if data is None:
                route.target.pages.remove([name])
                missing.append(file_place(name))
            elif data != route.target.pages.find(name):
                route.target.pages.put({name: data})


def _content(record: Record) -> tuple[str, int, bytes]:
    return record.kind, record.version, record.body


def _copy(route: Route, known: int, until: int | None, progress: Progress | None) -> Copied:
    head, pages = known, 0
    missing: dict[tuple[str, int], None] = {}
    while head < (end := route.source.journal.head() if until is None else until):
        batch = _batch(route.source.journal, head, end)
        files: dict[str, bytes] = {}
        for entry in _folded(batch):
            place = (entry["index"], entry["revision"])
            data = route.source.pages.find(file_name(*place))
            if data is not None and hashlib.sha256(data).hexdigest() == entry["sha256"]:
                files[file_name(*place)] = data
                missing.pop(place, None)
            else:
                missing[place] = None
        if files:
            route.target.pages.put(files)
            pages += len(files)
        head = route.target.journal.append(head, [NewRecord(*_content(record)) for record in batch])
        if progress is not None:
            progress(head, end)
    return Copied(session=route.new_session, seq=head, events=head - known, pages=pages, missing=tuple(missing))


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


def _folded(batch: list[Record]) -> Iterator[dict[str, Any]]:
    """Yield the entries of the contents page that records hold."""
    for record in batch:
        event = from_record(record) if record.kind == PagesFolded.kind else None
        if isinstance(event, PagesFolded):
            yield from event.entries
