"""Erasing a page in all sessions of a tenant that have something of it: forks, those that show it, notes made of it."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from typing import TypeAlias

import attrs

from memci.archive.stores.contract import Journal, Store
from memci.chapters.address import among, is_foreign
from memci.engine.core.core import Core
from memci.engine.erasure.erasing import Receipt
from memci.engine.erasure.redaction import begins
from memci.engine.history.events import Forked, SessionConfigured, from_record
from memci.engine.history.shared_events import HandedOver, MountNoted, PagePromoted
from memci.errors import ErasureError, MemciError, StoreError, shown
from memci.messages import codec

Erase: TypeAlias = Callable[[str, str], Receipt | None]
Opened: TypeAlias = Callable[[str], AbstractContextManager[Core]]


def erase_everywhere(store: Store, tenant: str, erase: Erase, opened: Opened, first: Receipt) -> tuple[Receipt, ...]:
    """Erase a page, which was erased in its session, in all forks that took it over, and wherever copies of it went.

    What cannot be done in one session does not keep the others. O(the tenant's sessions) for each session that had it for itself,
    each opened for its first record, and O(history) of those that come from the same session. *erase* does it in one, and
    returns the receipt, or ``None`` where nothing of it is there; *first*, of the session that it was erased in, is returned
    first.
    """
    receipts, failed = {(first.session, first.page): first}, dict[str, MemciError]()
    todo = deque([first])
    while todo:
        for each in _erase_in_forks(store, tenant, erase, todo.popleft(), failed):
            receipts[each.session, each.page] = each
            with opened(each.session) as core:
                found = _receivers(core, each.page)
            for session, known in found.items():
                try:
                    with opened(session) as core:
                        copies = known.union(_made_of(core, each.session, each.page))
                    for page in sorted(copies):
                        if (session, page) not in receipts and (made := erase(session, page)) is not None:
                            receipts[session, page] = made
                            todo.append(made)
                except MemciError as error:
                    failed[session] = error
    if failed:
        raise ErasureError(first.page, [*receipts.values()], failed)
    return tuple(receipts.values())


def _receivers(core: Core, page: str) -> dict[str, set[str]]:
    """Return which sessions may have copies of a page of this one, with the indexes that are known of these. O(history)."""
    if is_foreign(page):
        return {}  # nobody passes on what is another session's
    found: dict[str, set[str]] = {core.config.memory.session: set()}
    for record in core.store.journal.read():
        if record.kind not in (MountNoted.kind, PagePromoted.kind, HandedOver.kind):
            continue
        event = from_record(record)
        assert isinstance(event, MountNoted | PagePromoted | HandedOver), record.kind
        known = found.setdefault(event.session, set())
        if isinstance(event, MountNoted):
            known.add(f"{event.name}/{page}")
        elif isinstance(event, PagePromoted) and event.page == page:
            known.add(event.note)
    return found


def _made_of(core: Core, session: str, page: str) -> list[str]:
    """Return the notes that were made of a page of another session. O(notes)."""
    made = [(node.index, node.origin) for node in core.state.tree if node.origin is not None]
    return [index for index, origin in made if origin.session == session and among(page, origin.pages)]


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
