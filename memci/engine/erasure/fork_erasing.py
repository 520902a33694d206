"""Erasing a page in all forks that took it over, and in theirs, whatever became of those between."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeAlias

from memci.archive.stores.contract import Journal, Store
from memci.engine.erasure.erasing import Receipt
from memci.engine.erasure.redaction import begins
from memci.engine.history.events import Forked, SessionConfigured, from_record
from memci.errors import ErasureError, MemciError, StoreError, shown
from memci.messages import codec

_Beginning: TypeAlias = tuple[str, int, str]
"""Of a page: the session that wrote the journal's first record, the number of the first event that tells of the page, 0 for none,
and when its first message came in. All sessions that hold the same page have the same."""


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


def _heirs(store: Store, tenant: str, first: Receipt) -> Iterator[tuple[str, StoreError | None]]:
    """Yield the sessions that took the page over, or may have, by id, with the reason why it cannot be erased there."""
    with closing(store.open(tenant, first.session, read_only=True)) as erased:
        origin, _, _ = _read(erased.journal, first.page)
    for session in sorted(set(store.sessions(tenant)) - {first.session}):
        try:
            with closing(store.open(tenant, session, read_only=True)) as opened:
                beginning, ended, forked = _read(opened.journal, first.page, origin)
        except StoreError as error:
            yield session, error
            continue
        taken = ended == first.session or any(each == first.session and beginning[1] <= fork_at for each, fork_at in forked)
        if beginning != origin or not beginning[1] or not taken:
            continue
        copied = f"session {shown(session)} is an unfinished copy of {shown(ended)} and holds the page"
        yield session, None if ended == session else StoreError(f"{copied}: delete it, and copy again")


def _read(journal: Journal, page: str, origin: _Beginning | None = None) -> tuple[_Beginning, str, list[tuple[str, int]]]:
    """Read where a session and its page come from. O(history), or O(1) where it cannot be where the page of *origin* does.

    Returns:
        The page's beginning; the session that wrote the last record, another one where a copy was not finished; and pairs of a
        session and the last event that was taken over from it.
    """
    root, begun, begun_at, ended = "", 0, "", ""
    forked = []
    for record in journal.read():
        if record.seq == 1 or record.kind == Forked.kind:
            event = from_record(record)
            if isinstance(event, SessionConfigured):
                root = ended = event.session
                if origin is not None and origin[0] != root:
                    break
            elif isinstance(event, Forked):
                forked.append((event.source, event.fork_at))
                ended = event.session
        elif not begun_at and (at := begins(record.kind, codec.decode(record.body), page)) is not None:
            begun, begun_at = begun or record.seq, at
    return (root, begun, begun_at), ended, forked
