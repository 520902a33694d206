"""Erasing a page in all sessions of a tenant that have something of it: forks, those that show it, notes made of it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import TypeAlias

import attrs

from memci.archive.contents.tree import Origin
from memci.archive.stores.contract import Journal, Store
from memci.chapters.address import among, is_foreign
from memci.engine.erasure.erasing import Receipt
from memci.engine.erasure.redaction import begins
from memci.engine.history.events import Forked, SessionConfigured, from_record
from memci.engine.history.shared_events import HandedOver, PagePromoted, SessionMounted
from memci.engine.history.tree_events import NoteWritten
from memci.errors import ErasureError, MemciError, StoreError, shown
from memci.messages import codec

Erase: TypeAlias = Callable[[str, str], Receipt | None]
Place: TypeAlias = tuple[str, str]  # a session, and a page of it


def erase_everywhere(store: Store, tenant: str, erase: Erase, first: Receipt) -> tuple[Receipt, ...]:
    """Erase a page, which was erased in its session, in all forks that took it over, and wherever copies of it went.

    What cannot be done in one session does not keep the others. O(what all sessions of the tenant hold), each read once, and
    those that come from the same session once more for each that had it for itself. *erase* does it in one, and returns the
    receipt, or ``None`` where nothing of it is there; *first*, of the session that it was erased in, is returned first.
    """
    receipts, failed = {(first.session, first.page): first}, dict[str, MemciError]()
    traces = _traces(store, tenant, failed)
    todo = deque([first])
    while todo:
        for each in _erase_in_forks(store, tenant, erase, todo.popleft(), failed):
            receipts[each.session, each.page] = each
            for place in _copies(traces, [(session, each.page) for session in (each.session, *each.forks)]):
                try:
                    if place not in receipts and (made := erase(*place)) is not None:
                        receipts[place] = made
                        todo.append(made)
                except MemciError as error:
                    failed[place[0]] = error
    if failed:
        raise ErasureError(first.page, [*receipts.values()], failed)
    return tuple(receipts.values())


@attrs.define
class _Trace:
    """Where what a session holds of others came from, and where its own went."""

    notes: list[tuple[str, Origin]] = attrs.field(factory=list)  # that were made of another session's pages, out of view too
    mounts: dict[str, set[str]] = attrs.field(factory=dict)  # names by session
    passed_on: list[tuple[str, Place]] = attrs.field(factory=list)  # a page, empty for any, and the note that was made of it

    @classmethod
    def of(cls, journal: Journal) -> "_Trace":
        """Read it. O(history)."""
        found = cls()
        for record in journal.read():
            if record.kind not in _PASSING:
                continue
            match from_record(record):
                case NoteWritten(page=index, origin=dict(origin)):
                    found.notes.append((index, Origin(**origin)))
                case SessionMounted(name=name, session=session):
                    found.mounts.setdefault(session, set()).add(name)
                case PagePromoted(page=page, session=session, note=note):
                    found.passed_on.append((page, (session, note)))
                case HandedOver(session=session, page=note):
                    found.passed_on.append(("", (session, note)))
        return found

    def copies_of(self, session: str, page: str) -> Iterator[str]:
        """Yield the pages that may hold something of another session's page."""
        yield from (index for index, origin in self.notes if origin.session == session and among(page, origin.pages))
        yield from (f"{name}/{page}" for name in sorted(self.mounts.get(session, ())))


_PASSING = tuple(event.kind for event in (NoteWritten, SessionMounted, PagePromoted, HandedOver))


def _traces(store: Store, tenant: str, failed: dict[str, MemciError]) -> dict[str, _Trace]:
    """Return the traces of all sessions of a tenant. O(what they hold)."""
    traces = dict[str, _Trace]()
    for session in store.sessions(tenant):
        try:
            with closing(store.open(tenant, session, read_only=True)) as opened:
                traces[session] = _Trace.of(opened.journal)
        except MemciError as error:
            failed[session] = error
    return traces


def _copies(traces: Mapping[str, _Trace], sources: Iterable[Place]) -> list[Place]:
    """Return where copies of pages may be, through sessions too that were deleted in between."""
    todo, met, found = [*sources], set[Place](), dict[Place, None]()
    while todo:
        place = session, page = todo.pop()
        if place in met or is_foreign(page):  # nobody passes on what is another session's
            continue
        met.add(place)
        found |= dict.fromkeys((other, copy) for other, trace in traces.items() for copy in trace.copies_of(session, page))
        passed_on = traces[session].passed_on if session in traces else []
        todo += [note for of_page, note in passed_on if of_page in ("", page) and note[0] not in traces]
    return [*found]


def _erase_in_forks(store: Store, tenant: str, erase: Erase, first: Receipt, failed: dict[str, MemciError]) -> Iterator[Receipt]:
    """Yield the receipts of a page, that of its session first, and then of all forks, however many lie between.

    A fork's journal names all sessions that it comes from, so that one of a deleted fork is found too. It is looked again where a
    fork was made meanwhile.
    """
    yield first
    forks, known = [*first.forks], {first.session}
    with closing(store.open(tenant, first.session, read_only=True)) as erased:
        origin = _Descent.of(erased.journal, first.page)
    more = True
    while more:
        looked_at = len(known)
        for session in sorted(set(store.sessions(tenant)) - known):
            try:
                if not _holds(store, tenant, session, first, origin):
                    continue
                if (receipt := erase(session, first.page)) is not None:
                    forks += receipt.forks
                    yield receipt
            except MemciError as error:
                failed[session] = error
            known.add(session)
        more = len(known) > looked_at and not known.issuperset(forks)


def _holds(store: Store, tenant: str, session: str, first: Receipt, origin: "_Descent") -> bool:
    """Return whether a session took the page over; ``StoreError`` where that cannot be told, or it is an unfinished copy."""
    with closing(store.open(tenant, session, read_only=True)) as opened:
        heir = _Descent.of(opened.journal, first.page, origin)
    taken = heir.ended == first.session or any(heir.begun <= at for source, at in heir.forked if source == first.session)
    if heir != origin or not heir.begun or not taken:
        return False
    if heir.ended != session:
        copied = f"session {shown(session)} is an unfinished copy of {shown(heir.ended)} and holds the page"
        message = f"{copied}: delete it, and copy again"
        raise StoreError(message)
    return True


@attrs.define
class _Descent:
    """Where a session and a page of it come from; it equals that of any session that holds the same page."""

    root: str = ""  # the session that wrote the first record
    begun: int = 0  # number of the first event that tells of the page; 0 for none
    at: str = ""  # when its first message came in
    ended: str = attrs.field(default="", eq=False)  # the session that wrote the last record; another one in an unfinished copy
    forked: list[tuple[str, int]] = attrs.field(factory=list, eq=False)  # what was taken over from, each with its last event

    @classmethod
    def of(cls, journal: Journal, page: str, origin: "_Descent | None" = None) -> "_Descent":
        """Read it. O(history), or O(1) where the page cannot be that of *origin*."""
        found = cls()
        for record in journal.read():
            if record.seq == 1 or record.kind == Forked.kind:
                event = from_record(record)
                if isinstance(event, SessionConfigured):
                    found.root = found.ended = event.session
                    if origin is not None and origin.root != found.root:
                        break
                elif isinstance(event, Forked):
                    found.forked.append((event.source, event.fork_at))
                    found.ended = event.session
            elif not found.at and (at := begins(record.kind, codec.decode(record.body), page)) is not None:
                found.begun, found.at = found.begun or record.seq, at
        return found
