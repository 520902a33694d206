"""Erasing a page in all forks that took it over, and in theirs, whatever became of those between."""

from collections.abc import Callable, Iterator
from contextlib import closing

import attrs

from memci.archive.stores.contract import Journal, Store
from memci.engine.erasure.erasing import Receipt
from memci.engine.erasure.redaction import begins
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
        first: The receipt of the session that the page was erased in; it is the first that is returned.
    """
    receipts, failed = [first], dict[str, MemciError]()
    known = {first.session}
    while True:
        found = [(fork, error) for fork, error in _heirs(store, tenant, first) if fork not in known]
        for fork, error in found:
            known.add(fork)
            try:
                if error is not None:
                    raise error
                if (receipt := erase(fork)) is not None:
                    receipts.append(receipt)
            except MemciError as problem:
                failed[fork] = problem
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
        begun: Sequence number of the first event that tells of the page; 0 for none.
        begun_at: When its first message came in; empty where there is none.
        ended: Id of the session that wrote the last record; another one than *session* where a copy was not finished.
        forked: Pairs of a session and the last event that was taken over from it, oldest first.
    """

    session: str
    root: str
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


def _heirs(store: Store, tenant: str, first: Receipt) -> Iterator[tuple[str, StoreError | None]]:
    """Yield the sessions that took the page over, or may have, by id, with the reason why it cannot be erased there."""
    with closing(store.open(tenant, first.session, read_only=True)) as erased:
        origin = _read_origin(erased.journal, first.session, first.page)
    assert origin is not None
    for session in sorted(store.sessions(tenant)):
        if session == origin.session:
            continue
        try:
            with closing(store.open(tenant, session, read_only=True)) as opened:
                found = _read_origin(opened.journal, session, first.page, root=origin.root)
        except StoreError as error:
            yield session, error
            continue
        if found is None or not found.is_of(origin):
            continue
        unfinished = None
        if found.ended != session:
            copied = f"session {shown(session)} is an unfinished copy of {shown(found.ended)} and holds the page"
            unfinished = StoreError(f"{copied}: delete it, and copy again")
        yield session, unfinished


def _read_origin(journal: Journal, session: str, page: str, root: str | None = None) -> _Origin | None:
    """Read where a session and its page come from; ``None`` for one that comes from another root. O(history)."""
    begun, begun_at, ended = 0, "", ""
    forked = []
    for record in journal.read():
        if record.seq == 1 or record.kind == Forked.kind:
            event = from_record(record)
            if isinstance(event, SessionConfigured):
                if root not in (None, event.session):
                    return None
                root = ended = event.session
            elif isinstance(event, Forked):
                forked.append((event.source, event.fork_at))
                ended = event.session
        elif not begun_at and (at := begins(record.kind, codec.decode(record.body), page)) is not None:
            begun, begun_at = begun or record.seq, at
    if not ended:
        return None
    return _Origin(session=session, root=root or "", begun=begun, begun_at=begun_at, ended=ended, forked=tuple(forked))
