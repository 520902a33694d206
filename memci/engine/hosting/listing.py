"""What is known of sessions as such, for lists of them: what the host says of each, how long it is, when it was used."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from datetime import datetime, timedelta
from hashlib import sha256
from heapq import nsmallest
from typing import Any

import attrs

from memci.archive.stores.contract import Journal, Record, Store
from memci.archive.stores.names import SessionKey
from memci.chapters.dates import utc_text
from memci.engine.core.core import Core
from memci.engine.core.monitor import logger
from memci.engine.history.events import Event, SessionDescribed, as_value, from_record
from memci.errors import ArgumentError, ConflictError, InvalidMessageError, StoreError, shown
from memci.messages import codec

MOST_BYTES = 16_384  # of what is said of a session, as JSON
_MOST_KNOWN = 10_000  # sessions of which the facts are kept
_LAST = 16  # records, one of which has a time, mostly

Opened = Callable[[str], AbstractContextManager[Core]]


@attrs.frozen(kw_only=True)
class SessionFacts:
    """A session in a list: what the host said of it, how long it is, and when it was begun and used last.

    *title* and *owner* are those of *metadata*, empty where it has none; *began* and *used* are in UTC, as ISO 8601.
    """

    id: str
    tenant: str
    title: str
    owner: str
    metadata: Mapping[str, Any]
    events: int
    turns: int
    began: str
    used: str
    leased_until: str = ""  # where a request has a lease on it
    mounts: tuple[str, ...] = ()  # the sessions whose pages it shows or reads

    def is_leased(self, now: datetime) -> bool:
        """Return whether a request is answered just now."""
        return bool(self.leased_until) and datetime.fromisoformat(self.leased_until) > now

    def has_ended(self, now: datetime) -> bool:
        """Return whether the session was not used for longer than it says itself that it lives (``ttl_s``)."""
        ttl_s = self.metadata.get("ttl_s")
        if not isinstance(ttl_s, int | float) or isinstance(ttl_s, bool):
            return False
        return (now - datetime.fromisoformat(self.used)).total_seconds() > ttl_s

    @property
    def cursor(self) -> str:
        """Where a list goes on after this session."""
        return f"{self.used} {self.id}"


@attrs.frozen(kw_only=True)
class DeletionReceipt:
    """Proof that a session was removed: which one, how many *events* it had, and when, in UTC, as ISO 8601.

    *sha256* is that of its last record's body, in hex, by which a copy of the journal can be told to be of it; empty where there
    was none. *events* is ``None`` where the journal could not be read.
    """

    session: str
    tenant: str
    events: int | None
    sha256: str
    at: str


@attrs.frozen(kw_only=True)
class TenantReceipt:
    """Proof that all of a tenant was removed: its sessions, the receipt of each, and when, in UTC, as ISO 8601."""

    tenant: str
    sessions: tuple[str, ...]
    receipts: tuple[DeletionReceipt, ...]
    at: str


def begin(core: Core, values: Mapping[str, Any], given: Mapping[str, object]) -> None:
    """Begin a session with what is said of it and settings of its own, in one commit, before anybody else does."""
    core.refresh()
    try:
        if core.state.seq:
            raise core.conflict()
        core.choose(given, described(core, values))
    except ConflictError as error:
        message = f"session {shown(core.session_id)} is there already"
        raise ConflictError(message, expected=0, head=error.head) from None


def describe(core: Core, values: Mapping[str, Any]) -> None:
    """Say something of a session itself; a value that is ``None`` takes away what was said."""
    if events := described(core, values):
        core.commit(events)


def described(core: Core, values: Mapping[str, Any]) -> list[Event]:
    """Return the event that says something of a session itself; none where that was said already."""
    try:
        given: Any = codec.checked_copy(dict(values))
    except InvalidMessageError as error:
        raise ArgumentError(argument="values", value=values, wanted="values of JSON") from error
    ttl_s = given.get("ttl_s")
    if ttl_s is not None and (not isinstance(ttl_s, int | float) or isinstance(ttl_s, bool) or ttl_s <= 0):
        raise ArgumentError(argument="ttl_s", value=ttl_s, wanted="seconds, as a number above 0")
    changed = {name: value for name, value in given.items() if core.state.described.get(name) != value}
    after = {name: value for name, value in {**core.state.described, **changed}.items() if value is not None}
    if len(codec.encode(after)) > MOST_BYTES:
        raise ArgumentError(argument="values", value=len(after), wanted=f"at most {MOST_BYTES:,} bytes as JSON in all")
    return [SessionDescribed(values=changed, at=core.now())] if changed else []


def last_record(journal: Journal) -> tuple[int | None, str]:
    """Return how many records a journal has, and the SHA-256 of the last one's body; ``None`` where it cannot be read."""
    try:
        head = journal.head()
        return head, next((sha256(record.body).hexdigest() for record in journal.read(head - 1)), "") if head else ""
    except StoreError:
        return None, ""


def facts(core: Core) -> SessionFacts:
    """Return what a list says of a session. O(1), where one of the last records has a time."""
    journal, state = core.store.journal, core.state
    last = _times(reversed([*journal.read(max(state.seq - _LAST, 0))]))
    used = next(last, "") or max(_times(journal.read(0)), default="")
    title, owner = (state.described.get(name, "") for name in ("title", "owner"))
    return SessionFacts(
        id=core.session_id,
        tenant=core.key.tenant,
        title=str(title),
        owner=str(owner),
        metadata=dict(state.described),
        events=state.seq,
        turns=state.turn,
        began=next(_times(journal.read(0)), used),
        used=used,
        leased_until=state.lease[1] if state.lease[0] else "",
        mounts=tuple(mount.session for mount in state.mounts.values()),
    )


def old(known: Iterable[SessionFacts], until: str, memory: str) -> list[SessionFacts]:
    """Return the sessions that were used last before *until*, but for the memory and what a later one mounts."""
    by_id = {each.id: each for each in known}
    needed = [memory, *(session for each in by_id.values() if each.used >= until for session in (each.id, *each.mounts))]
    spared = set[str]()
    while needed:
        if (session := needed.pop()) not in spared:
            spared.add(session)
            needed += by_id[session].mounts if session in by_id else ()
    return [each for each in by_id.values() if each.id not in spared]


def _times(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        if at := as_value(from_record(record)).get("at"):
            yield str(at)


class Listing:
    """The facts of sessions of a tenant, which are kept by the last record that they are of. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()  # protects what is known
        self._known: dict[SessionKey, tuple[tuple[int | None, str], SessionFacts]] = {}

    def listed(self, opened: Opened, tenant: str, sessions: Iterable[str]) -> Iterator[SessionFacts]:
        """Yield the facts of sessions; one that cannot be read is logged, and left out. One of them is open at a time.

        Of a session that was looked at before, no more than its last record is read where nothing happened since.
        """
        for session in sessions:
            try:
                found = self._facts(opened, SessionKey(tenant, session))
            except StoreError as error:
                logger().warning("session %r: it is not listed, as it cannot be read: %s", session, error)
                continue
            if found is not None:
                yield found

    def _facts(self, opened: Opened, key: SessionKey) -> SessionFacts | None:
        with closing(self._store.open(*key, read_only=True)) as stored:
            last = last_record(stored.journal)
        with self._lock:
            of, found = self._known.get(key, (None, None))
        if found is not None and of == last:
            return found
        with opened(key.session_id) as core:
            found = facts(core) if core.state.seq else None
        with self._lock:
            self._known.pop(key, None)
            if found is not None and found.events == last[0]:
                self._known[key] = last, found
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return found


def newest(  # noqa: PLR0913 (each narrows it in another way)
    found: Iterable[SessionFacts], *, owner: str | None, title: str | None, used_since: object, limit: int, after: str | None
) -> list[SessionFacts]:
    """Return the sessions used last that fit, from a cursor on, newest first."""
    since = "" if used_since is None else moment(used_since, "used_since")
    if after is not None:
        moment(after.partition(" ")[0], "after")

    def fits(each: SessionFacts) -> bool:
        is_named = (owner is None or each.owner == owner) and (title is None or title.casefold() in each.title.casefold())
        return is_named and each.used >= since and (after is None or _order(each.cursor) > _order(after))

    return nsmallest(limit, filter(fits, found), key=lambda each: _order(each.cursor))


def _order(cursor: str) -> tuple[list[int], str]:
    """Return what puts the newest first, and of the same time those whose ids come first."""
    used, _, session = cursor.partition(" ")
    return [-ord(character) for character in used], session


def moment(value: object, argument: str) -> str:
    """Return a time as text, in UTC; ``ArgumentError`` where it is none."""
    try:
        return utc_text(value)
    except InvalidMessageError as error:
        raise ArgumentError(argument=argument, value=value, wanted="a datetime, or a time as ISO 8601 text") from error


def before(older_than: object, now: datetime) -> str:
    """Return the time so long ago, or the time that is given."""
    if isinstance(older_than, timedelta) and older_than < timedelta():
        raise ArgumentError(argument="older_than", value=older_than, wanted="a time, or for how long nobody used a session")
    return moment(now - older_than if isinstance(older_than, timedelta) else older_than, "older_than")
