"""Sessions in memory, for tests and short runs: the same contract and the same errors as the other stores."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING

import attrs

from memci.archive import refusal
from memci.archive.stores.contract import NewRecord, Record
from memci.archive.stores.names import check_identifier, check_page_name
from memci.archive.stores.record_codec import check_body, check_commit, redacted_meanwhile
from memci.archive.stores.thinning import superfluous

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


@attrs.define(eq=False)
class _Stored:
    """What is kept of one session."""

    records: list[Record] = attrs.field(factory=list)
    pages: dict[str, bytes] = attrs.field(factory=dict)
    snapshots: dict[int, bytes] = attrs.field(factory=dict)
    blobs: dict[str, int] = attrs.field(factory=dict)  # the last record that each was put for
    is_deleted: bool = False


@attrs.define(eq=False)
class _Blob:
    """A blob, and the sessions that refer to it."""

    data: bytes
    sessions: set[str] = attrs.field(factory=set)


class _Opening:
    """What journal, pages and snapshots of one opened session share: the way to what is stored of it.

    Attributes:
        session_id: For error texts.
        lock: The store's; whoever writes holds it, for a moment and without waiting for anything.
    """

    def __init__(self, store: "MemoryStore", tenant: str, session_id: str, *, read_only: bool) -> None:
        self.session_id = session_id
        self.lock = store.lock
        self._sessions = store.sessions_by_key
        self._key = (tenant, session_id)
        self._read_only = read_only
        self._stored: _Stored | None = None
        self._is_closed = False

    def find(self) -> _Stored | None:
        """Return what is stored of the session, ``None`` before it began."""
        if self._is_closed:
            raise refusal.closed(self.session_id)
        if self._stored is None:
            self._stored = self._sessions.get(self._key)
        return self._stored

    def find_undeleted(self) -> _Stored | None:
        """Return the same as ``find``, if the session was not deleted since."""
        stored = self.find()
        if stored is not None and stored.is_deleted:
            raise refusal.deleted(self.session_id)
        return stored

    def find_writable(self) -> _Stored | None:
        """Return the same as ``find_undeleted``, if it may be written to."""
        self.find()
        if self._read_only:
            raise refusal.read_only(self.session_id)
        return self.find_undeleted()

    def begin(self) -> _Stored:
        """Return what is stored of the session, which begins if need be; with the lock held."""
        stored = self.find_writable()
        if stored is None:
            stored = self._stored = self._sessions[self._key] = _Stored()
        return stored

    def close(self) -> None:
        """Let go of it. May be called twice."""
        self._is_closed = True
        self._stored = None


class MemoryJournal:
    """Implements ``memci.archive.stores.contract.Journal`` on a list."""

    def __init__(self, opening: _Opening) -> None:
        self._opening = opening

    def head(self) -> int:
        """Return the sequence number of the last commit, 0 for none."""
        stored = self._opening.find_undeleted()
        return len(stored.records) if stored else 0

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        """Commit the records after *expected*, all or none, and return the new head.

        Raises:
            ValueError: There is no record, or one that no journal can hold.
            ConflictError: The head is not *expected*; nothing was written.
            UnavailableError: The session was deleted.
        """
        check_commit(records)
        with self._opening.lock:
            stored = self._opening.find_writable()
            head = len(stored.records) if stored else 0
            if head != expected:
                raise refusal.conflict(expected, head)
            self._opening.begin().records.extend(
                Record(seq, record.kind, record.version, record.body) for seq, record in enumerate(records, start=expected + 1)
            )
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` in order; what is committed while it reads is not read."""
        stored = self._opening.find_undeleted()
        if stored is not None:
            head = len(stored.records)
            for place in range(after, head if until is None else min(until, head)):
                yield stored.records[place]

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put other bodies in the place of those of some records.

        Raises:
            ValueError: There is no such record, or a body that no journal can hold; nothing was changed.
            ConflictError: A body is not the *former* one; nothing was changed.
            UnavailableError: The session was deleted.
        """
        for body in bodies.values():
            check_body(body)
        with self._opening.lock:
            records = self._opening.begin().records
            for seq in bodies:
                if not 1 <= seq <= len(records):
                    raise refusal.no_record(seq, len(records))
                if former and former.get(seq) not in (None, sha256(records[seq - 1].body).hexdigest()):
                    raise redacted_meanwhile(seq)
            for seq, body in bodies.items():
                records[seq - 1] = attrs.evolve(records[seq - 1], body=body, redacted=True)

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        self._opening.close()


class MemoryPages:
    """Implements ``memci.archive.stores.contract.Pages`` on a dict."""

    def __init__(self, opening: _Opening) -> None:
        self._opening = opening

    def put(self, pages: Mapping[str, bytes]) -> None:
        """Keep page files, over older ones of the same name.

        Raises:
            InvalidIdError: A name is no page's; nothing was kept.
            UnavailableError: The session was deleted.
        """
        checked = {check_page_name(name): page for name, page in pages.items()}
        with self._opening.lock:
            self._opening.begin().pages.update(checked)

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a page file, or ``None`` where there is none.

        Raises:
            InvalidIdError: The name is no page's.
        """
        check_page_name(name)
        stored = self._opening.find()
        return stored.pages.get(name) if stored else None

    def names(self) -> Iterator[str]:
        """Yield the names of all page files, in no order."""
        stored = self._opening.find()
        yield from list(stored.pages) if stored else ()

    def remove(self, names: Collection[str]) -> None:
        """Forget page files; names that are not there are passed over.

        Raises:
            InvalidIdError: A name is no page's; nothing was forgotten.
            UnavailableError: The session was deleted.
        """
        checked = [check_page_name(name) for name in names]
        with self._opening.lock:
            stored = self._opening.find_writable()
            if stored is not None:
                for name in checked:
                    stored.pages.pop(name, None)


class MemorySnapshots:
    """Implements ``memci.archive.stores.contract.Snapshots`` on a dict."""

    def __init__(self, opening: _Opening) -> None:
        self._opening = opening

    def put(self, seq: int, body: bytes) -> None:
        """Keep a state; older ones are thinned out, so that their number grows with the logarithm of the history.

        Raises:
            UnavailableError: The session was deleted.
        """
        with self._opening.lock:
            snapshots = self._opening.begin().snapshots
            snapshots[seq] = body
            for old in superfluous(snapshots):
                del snapshots[old]

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest state with ``seq <= at_most``, or ``None``."""
        stored = self._opening.find()
        with self._opening.lock:
            kept = [(seq, body) for seq, body in stored.snapshots.items() if at_most is None or seq <= at_most] if stored else []
        return max(kept, default=None)

    def problems(self) -> Iterator[str]:
        """Yield nothing: memory is not damaged."""
        self._opening.find()
        return iter(())

    def clear(self) -> None:
        """Forget all of them.

        Raises:
            UnavailableError: The session was deleted.
        """
        with self._opening.lock:
            stored = self._opening.find_writable()
            if stored is not None:
                stored.snapshots.clear()


class MemoryBlobs:
    """Implements ``memci.archive.stores.contract.Blobs`` on dicts."""

    def __init__(self, opening: _Opening, store: "MemoryStore", tenant: str) -> None:
        self._opening = opening
        self._blobs = store.blobs_by_tenant.setdefault(tenant, {})

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        """Keep blobs for records up to *seq*.

        Raises:
            UnavailableError: The session was deleted.
        """
        with self._opening.lock:
            stored = self._opening.begin()
            for name, blob in blobs.items():
                kept = self._blobs.setdefault(name, _Blob(blob))
                kept.data = blob
                kept.sessions.add(self._opening.session_id)
                stored.blobs[name] = max(seq, stored.blobs.get(name, 0))
        return blobs

    def find(self, name: str) -> bytes | None:
        """Return a blob, or ``None`` where there is none."""
        self._opening.find()
        blob = self._blobs.get(name)
        return None if blob is None else blob.data

    def names(self) -> Iterator[str]:
        """Yield the names of the blobs that the session refers to, in no order."""
        stored = self._opening.find()
        yield from list(stored.blobs) if stored else ()

    def drop(self, names: Collection[str], seq: int) -> None:
        """Forget references for records up to *seq*, and blobs without any.

        Raises:
            UnavailableError: The session was deleted.
        """
        with self._opening.lock:
            stored = self._opening.find_writable()
            known = {} if stored is None else stored.blobs
            _drop(self._blobs, self._opening.session_id, known, [name for name in names if known.get(name, seq + 1) <= seq])


def _drop(blobs: dict[str, _Blob], session_id: str, known: dict[str, int], names: Collection[str]) -> None:
    for name in names:
        del known[name]
        blobs[name].sessions.discard(session_id)
        if not blobs[name].sessions:
            del blobs[name]


class MemorySession:
    """Implements ``memci.archive.stores.contract.SessionStore``. For one thread at a time.

    Attributes:
        journal: The truth.
        pages: Raw pages.
        snapshots: Cached states.
        blobs: Large data.
        durability: ``memory``.
    """

    def __init__(self, opening: _Opening, store: "MemoryStore", tenant: str) -> None:
        self.journal = MemoryJournal(opening)
        self.pages = MemoryPages(opening)
        self.snapshots = MemorySnapshots(opening)
        self.blobs = MemoryBlobs(opening, store, tenant)
        self.durability = store.durability
        self._opening = opening
        self._index: PageIndex | None = None

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, in memory; empty after each opening of the session."""
        self._opening.find()
        if self._index is None:
            from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads sqlite3, which few openings need)

            self._index = PageIndex(None)
        return self._index

    def indexed_seq(self) -> int:
        """Return 0: the index begins empty."""
        self._opening.find()
        return 0

    def close(self) -> None:
        """Let go of the session, which stays in the store. May be called twice."""
        if self._index is not None:
            self._index.close()
            self._index = None
        self._opening.close()


class MemoryStore:
    """Implements ``memci.archive.stores.contract.Store`` in memory; sessions last as long as this object.

    Different sessions may be used by different threads at once.

    Attributes:
        durability: ``memory``: nothing survives the process.
        lock: Protects the sessions; held for moments.
        sessions_by_key: What is stored, by tenant and session id.
        blobs_by_tenant: Large data, by tenant and name.
    """

    def __init__(self) -> None:
        self.durability = "memory"
        self.lock = Lock()
        self.sessions_by_key: dict[tuple[str, str], _Stored] = {}
        self.blobs_by_tenant: dict[str, dict[str, _Blob]] = {}

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> MemorySession:
        """Open what is stored of a session; a new session takes no room until its first append.

        Raises:
            InvalidIdError: The id or tenant is not text, is empty, or UTF-8 cannot encode it.
        """
        check_identifier(tenant, "tenant")
        check_identifier(session_id, "session id")
        return MemorySession(_Opening(self, tenant, session_id, read_only=read_only), self, tenant)

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order.

        Raises:
            InvalidIdError: See ``open``.
        """
        check_identifier(tenant, "tenant")
        with self.lock:
            found = [key[1] for key, stored in self.sessions_by_key.items() if key[0] == tenant and stored.records]
        yield from found

    def delete(self, tenant: str, session_id: str) -> None:
        """Forget a session; nothing happens where there is none.

        Raises:
            InvalidIdError: See ``open``.
        """
        key = (check_identifier(tenant, "tenant"), check_identifier(session_id, "session id"))
        with self.lock:
            stored = self.sessions_by_key.pop(key, None)
            if stored is not None:
                stored.is_deleted = True
                _drop(self.blobs_by_tenant.get(tenant, {}), session_id, stored.blobs, list(stored.blobs))

    def close(self) -> None:
        """Do nothing: the sessions stay, so that an engine can be closed and another one opened on them."""
