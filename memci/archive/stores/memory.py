"""Sessions in memory, for tests and short runs: the same contract and the same errors as the other stores."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from threading import RLock

import attrs

from memci.archive import refusal
from memci.archive.stores.contract import Blobs, Journal, NewRecord, Pages, Record, Snapshots, Usage
from memci.archive.stores.names import check_identifier, check_key, check_page_name
from memci.archive.stores.opened_session import OpenedSession
from memci.archive.stores.record_codec import check_commit, check_redaction, redacted_meanwhile, superfluous


@attrs.define(eq=False)
class _Stored:
    """What is kept of one session."""

    records: list[Record] = attrs.field(factory=list)
    pages: dict[str, bytes] = attrs.field(factory=dict)
    snapshots: dict[int, bytes] = attrs.field(factory=dict)
    blobs: dict[str, tuple[int, bytes]] = attrs.field(factory=dict)  # each with the last record that it was put for
    is_deleted: bool = False


@attrs.define(eq=False)
class _View:
    session: "MemorySession"


class _Journal(_View):
    def head(self) -> int:
        return len(self.session.look().records)

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        check_commit(records)
        with self.session.lock:
            stored = self.session.begin().records
            if len(stored) != expected:
                raise refusal.conflict(expected, len(stored))
            stored += [Record(seq, new.kind, new.version, new.body) for seq, new in enumerate(records, expected + 1)]
            return len(stored)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        yield from self.session.look().records[after : None if until is None else max(until, 0)]

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        with self.session.lock:
            records = self.session.begin().records
            check_redaction(bodies, len(records))
            for seq in bodies:
                if former and former.get(seq) not in (None, sha256(records[seq - 1].body).hexdigest()):
                    raise redacted_meanwhile(seq)
            for seq, body in bodies.items():
                records[seq - 1] = attrs.evolve(records[seq - 1], body=body, redacted=True)


class _Pages(_View):
    def put(self, pages: Mapping[str, bytes]) -> None:
        checked = {check_page_name(name): page for name, page in pages.items()}
        self.session.begin().pages.update(checked)

    def find(self, name: str) -> bytes | None:
        return self.session.look().pages.get(check_page_name(name))

    def names(self) -> Iterator[str]:
        yield from list(self.session.look().pages)

    def remove(self, names: Collection[str]) -> None:
        for name in [check_page_name(name) for name in names]:
            self.session.begin().pages.pop(name, None)


class _Snapshots(_View):
    def put(self, seq: int, body: bytes) -> None:
        with self.session.lock:
            snapshots = self.session.begin().snapshots
            snapshots[seq] = body
            for old in superfluous(snapshots):
                del snapshots[old]

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        kept = self.session.look().snapshots.copy().items()
        return max(((seq, body) for seq, body in kept if at_most is None or seq <= at_most), default=None)

    def problems(self) -> Iterator[str]:
        self.session.look()
        return iter(())  # memory is not damaged

    def clear(self) -> None:
        self.session.begin().snapshots.clear()


class _Blobs(_View):
    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        known = self.session.begin().blobs
        for name, blob in blobs.items():
            known[name] = (max(seq, known.get(name, (0, b""))[0]), blob)
        return blobs

    def find(self, name: str) -> bytes | None:
        return self.session.look().blobs.get(name, (0, None))[1]

    def names(self) -> Iterator[str]:
        yield from list(self.session.look().blobs)

    def drop(self, names: Collection[str], seq: int) -> None:
        known = self.session.begin().blobs
        for name in names:
            if known.get(name, (seq + 1,))[0] <= seq:
                del known[name]


class MemorySession(OpenedSession):
    """Implements ``memci.archive.stores.contract.SessionStore``. For one thread at a time."""

    def __init__(self, store: "MemoryStore", key: tuple[str, str], *, read_only: bool) -> None:
        super().__init__(key[1], read_only=read_only)
        self.lock = store.lock
        self.journal: Journal = _Journal(self)
        self.pages: Pages = _Pages(self)
        self.snapshots: Snapshots = _Snapshots(self)
        self.blobs: Blobs = _Blobs(self)
        self.durability = store.durability
        self._sessions = store.sessions_by_key
        self._key = key
        self._stored: _Stored | None = None

    def check_open(self) -> None:
        """Refuse a deleted session, too."""
        self.look()

    def look(self) -> _Stored:
        """Return what is stored, something empty before the session began."""
        if self._is_closed:
            raise refusal.closed(self.session_id)
        if self._stored is None:
            self._stored = self._sessions.get(self._key)
        if self._stored is not None and self._stored.is_deleted:
            raise refusal.deleted(self.session_id)
        return self._stored or _Stored()

    def begin(self) -> _Stored:
        """Return what is stored, to be changed; the session begins if need be."""
        with self.lock:
            stored = self.look()
            if self.read_only:
                raise refusal.read_only(self.session_id)
            self._stored = self._sessions[self._key] = stored
        return stored

    def close(self) -> None:
        """Let go of the session, which stays in the store. May be called twice."""
        super().close()
        self._stored = None


class MemoryStore:
    """Implements ``memci.archive.stores.contract.Store`` in memory; sessions last as long as this object.

    Different sessions may be used by different threads at once. ``lock`` protects what they share, and is held for moments.
    """

    def __init__(self) -> None:
        self.durability = "memory"
        self.lock = RLock()
        self.sessions_by_key: dict[tuple[str, str], _Stored] = {}

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> MemorySession:
        """Open what is stored of a session."""
        return MemorySession(self, check_key(tenant, session_id), read_only=read_only)

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order."""
        check_identifier(tenant, "tenant")
        with self.lock:
            found = [key[1] for key, stored in self.sessions_by_key.items() if key[0] == tenant and stored.records]
        yield from found

    def usage(self, tenant: str) -> Usage:
        """Measure what is kept of a tenant. O(that)."""
        with self.lock:
            kept = [each for key, each in self.sessions_by_key.items() if key[0] == tenant and each.records]
            blobs = {name: len(blob) for each in kept for name, (_, blob) in each.blobs.items()}
            parts = [
                *(len(record.body) for each in kept for record in each.records),
                *(len(data) for each in kept for data in (*each.pages.values(), *each.snapshots.values())),
            ]
        return Usage(sessions=len(kept), stored_bytes=sum(parts) + sum(blobs.values()))

    def sweep(self, tenant: str) -> None:
        """Forget sessions without a record."""
        check_identifier(tenant, "tenant")
        with self.lock:
            for key in [key for key, each in self.sessions_by_key.items() if key[0] == tenant and not each.records]:
                self.sessions_by_key.pop(key).is_deleted = True

    def delete(self, tenant: str, session_id: str) -> None:
        """Forget a session; nothing happens where there is none."""
        with self.lock:
            stored = self.sessions_by_key.pop(check_key(tenant, session_id), None)
            if stored is not None:
                stored.is_deleted = True

    def close(self) -> None:
        """Do nothing: the sessions stay, so that an engine can be closed and another one opened on them."""
