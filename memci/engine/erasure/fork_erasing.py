"""Erasing a page in all forks that took it over, and in theirs, whatever became of those between."""

from collections.abc import Callable, Iterator
from contextlib import closing

import attrs

from memci.archive.stores.contract import Journal, Store
from memci.engine.erasure.erasing import Receipt
from memci.engine.erasure.page_trace import PageTrace
from memci.engine.history.events import SessionConfigured, from_record
from memci.engine.history.time_events import Forked
from memci.errors import ErasureError, MemciError, StoreError, shown
from memci.messages import codec


def erase_in_forks(store: Store, tenant: str, erase: Callable[[str], Receipt | None], first: Receipt) -> tuple[Receipt, ...]:
    """Erase a page, which was erased in its session, in all forks that took it over, however many forks lie between.

    A fork's journal names all sessions that it comes from, so that one of a deleted fork is found too. What cannot be done in one
    does not keep the others. It is looked again where a fork was made meanwhile. O(the tenant's sessions), each opened for its
    first record, and O(history) of those that come from the same session.

    Args:
        store: The store.
        tenant: Whose sessions.
        erase: Erases the page in a session, and returns the receipt; ``None`` where the session was deleted just now.
        first: The receipt of the session that the page was erased in.

    Returns:
        That receipt and one for each fork, in the order of their ids.

    Raises:
        ErasureError: Some sessions could not be read or written to; it was erased in all others.
    """
    receipts, failed = [first], dict[str, MemciError]()
    known = {first.session}
    while True:
        with closing(store.open(tenant, first.session, read_only=True)) as erased:
            origin = _read_origin(erased.journal, first.session, first.page)
        found = [each for each in _heirs(store, tenant, origin) if each.session not in known]
        for heir in found:
            known.add(heir.session)
            try:
                if heir.error is not None:
                    raise heir.error
                if (receipt := erase(heir.session)) is not None:
                    receipts.append(receipt)
            except MemciError as error:
                failed[heir.session] = error
        if not found or known.issuperset(fork for receipt in receipts for fork in receipt.forks):
            break
    if failed:
        raise ErasureError(first.page, receipts, failed)
    return tuple(receipts)


@attrs.frozen(kw_only=True)
class _Origin:
    """A page as the journal of a session tells of it: what the page of a fork must agree with to be the same one.

    Attributes:
        session: The session.
        root: Id of the session that its first record was written in.
        page: The page's index.
        begun: Sequence number of the first event that tells of the page; 0 for none.
        begun_at: When its first message came in; empty where there is none.
        ended: Id of the session that wrote the last record; another one than *session* where a copy was not finished.
        forked: Pairs of a session and the last event that was taken over from it, oldest first.
    """

    session: str
    root: str
    page: str
    begun: int
    begun_at: str
    ended: str
    forked: tuple[tuple[str, int], ...]

    def is_of(self, origin: "_Origin") -> bool:
        """Return whether the page is that of another session, which this one comes from."""
        if not 0 < self.begun == origin.begun or self.begun_at != origin.begun_at:
            return False
        taken = (fork_at for source, fork_at in self.forked if source == origin.session)
        return self.ended == origin.session or any(self.begun <= fork_at for fork_at in taken)


@attrs.frozen
class _Heir:
    """A session that took the page over, or may have; *error* says why it cannot be erased there."""

    session: str
    error: MemciError | None = None


def _heirs(store: Store, tenant: str, origin: _Origin) -> Iterator[_Heir]:
    """Yield the sessions that took the page over, and those of which that cannot be known, by id."""
    for session in sorted(store.sessions(tenant)):
        if session == origin.session:
            continue
        try:
            with closing(store.open(tenant, session, read_only=True)) as opened:
                if _root(opened.journal) != origin.root:
                    continue
                found = _read_origin(opened.journal, session, origin.page)
        except StoreError as error:
            yield _Heir(session, error)
            continue
        if not found.is_of(origin):
            continue
        if found.ended == session:
            yield _Heir(session)
        else:
            copied = f"session {shown(session)} is an unfinished copy of {shown(found.ended)} and holds the page"
            yield _Heir(session, StoreError(f"{copied}: delete it, and copy again"))


def _root(journal: Journal) -> str | None:
    """Return the id of the session that a journal was begun by; ``None`` for one without records."""
    for record in journal.read(0, 1):
        event = from_record(record)
        return event.session if isinstance(event, SessionConfigured) else None
    return None


def _read_origin(journal: Journal, session: str, page: str) -> _Origin:
    """Read where a session and its page come from. O(history)."""
    trace = PageTrace(page)
    root = ended = ""
    forked = []
    for record in journal.read():
        if record.seq == 1 or record.kind == Forked.kind:
            event = from_record(record)
            if isinstance(event, SessionConfigured):
                root = ended = event.session
            elif isinstance(event, Forked):
                forked.append((event.source, event.fork_at))
                ended = event.session
        elif not trace.begun_at:
            trace.meet(record.seq, record.kind, codec.decode(record.body))
    return _Origin(
        session=session,
        root=root,
        page=page,
        begun=trace.begun,
        begun_at=trace.begun_at,
        ended=ended,
        forked=tuple(forked),
    )
