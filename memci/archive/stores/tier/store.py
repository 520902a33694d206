"""A store with a working tier before it: what many workers open again and again is in Redis, and the store stays the truth.

What keeps the tier from ever being wrong:

* A record enters it after the store has acknowledged it, after the record before it, or not at all.
* An entry is used by an opening after the store was asked for the entry's last records and what follows them. If it has others
  there, or more, the entry is made anew: whatever a process without the tier did is seen by then.
* What is deleted or redacted leaves the tier before the store is asked to do it, and again afterwards. An entry has a token;
  what was read from the store before is refused, as the token of then is gone.
* Lines and snapshots have their checksums, which hold for this session alone; what fails them is made anew.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from memci.archive.stores.contract import NewRecord, Record, SessionStore, Snapshots, Store
from memci.archive.stores.record_codec import LineCodec
from memci.archive.stores.tier.redis_tier import MOST_BYTES, RedisTier, parse
from memci.errors import StoreError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

# The last records of an entry, which are compared with the store. One alone could be the same in a session that took the place
# of a deleted one; so many of memci's events have a time among them.
_COMPARED = 8


class _Copy(NamedTuple):
    """What a journal took over when it looked first: the records after *base*, and the newest snapshot."""

    base: int
    records: list[Record]
    snapshot: tuple[int, bytes] | None

    @property
    def head(self) -> int:
        return self.base + len(self.records)


class _Journal:
    """Implements ``memci.archive.stores.contract.Journal``, and looks after the tier's entry of the session.

    The text of an entry is the number of the newest snapshot and a line break, the snapshot, and the lines of the journal from
    some before that snapshot on, as ``LineCodec`` writes them; where there is no snapshot, 0 and all lines.

    Attributes:
        copy: What was taken over by the first look, until it is read or something else is asked for.
    """

    def __init__(self, session: SessionStore, tier: RedisTier, owner: tuple[str, str], *, read_only: bool) -> None:
        self.copy: _Copy | None = None
        self._session = session
        self._journal = session.journal
        self._tier = tier
        self._key = tier.key(*owner)
        self._codec = LineCodec(*owner)
        self._read_only = read_only
        self._token = ""  # of the entry that was compared with the store, or made
        self._is_due = True  # the tier is to be looked at: at first, and after the entry was lost

    def head(self) -> int:
        self.copy = None
        copy = self._looked()
        return self._journal.head() if copy is None else copy.head

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        self.copy = None
        head = self._journal.append(expected, records)
        if self._token:
            # Each line stands for itself.
            lines = [self._codec.encode_commit(seq, [record]) for seq, record in enumerate(records, start=expected)]
            if not self._tier.put(self._key, self._token, expected, head, b"".join(lines)):
                self._forget()
        return head

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        copy = self._looked()
        if copy is None or after < copy.base or until is None or until >= copy.head:
            self.copy = None  # read to its end, or of no use
        if copy is None or after < copy.base:
            yield from self._journal.read(after, until)
        else:
            yield from (record for record in copy.records[after - copy.base :] if until is None or record.seq <= until)

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        self.apart(lambda: self._journal.redact(bodies, former))

    def close(self) -> None:
        self._forget()
        self._is_due = False

    def renew(self) -> None:
        """Make the entry again, after a snapshot was kept."""
        token = self._token
        self._forget()
        with suppress(StoreError):  # the snapshot is kept all the same
            if token:
                self._made(token)

    def apart(self, change: Callable[[], None]) -> None:
        """Do what takes content out of the store, with the session out of the tier."""
        self._forget()
        _apart(self._tier, self._key, change)

    def _forget(self) -> None:
        self.copy, self._token, self._is_due = None, "", True

    def _looked(self) -> _Copy | None:
        """Return what was taken over; where that is due, take the entry over if the store has the same, else make it again."""
        if self._is_due:
            self._is_due = False
            token, text = self._tier.find(self._key, "" if self._read_only else uuid4().hex) or ("", b"")
            copy = self._decoded(text)
            with suppress(StoreError):  # whoever asks the store next is told
                if copy is not None and self._holds(copy):
                    self.copy, self._token = copy, token
                elif token and not self._read_only:
                    self.copy = self._made(token)
        return self.copy

    def _holds(self, copy: _Copy) -> bool:
        """Return whether the store ends with the last records of a copy. One reading of it."""
        last = copy.records[-_COMPARED:]
        return list(islice(self._journal.read(copy.head - len(last)), _COMPARED + 1)) == last

    def _made(self, token: str) -> _Copy | None:
        """Read what the tier should hold from the store, and put it there; ``None`` where it is too much."""
        snapshot = self._session.snapshots.find()
        seq, body = snapshot or (0, b"")
        copy = _Copy(max(seq - _COMPARED, 0), [], snapshot)
        text = bytearray(b"%d\n" % seq)
        text += self._codec.encode_snapshot(seq, body) if seq else b""
        for record in self._journal.read(copy.base):
            line = self._codec.encode_commit(record.seq - 1, [NewRecord(record.kind, record.version, record.body)])
            text += self._codec.redact(line, record.body) if record.redacted else line
            copy.records.append(record)
            if len(text) > MOST_BYTES:
                return None
        if copy.head < seq:
            return None
        if self._tier.put(self._key, token, None, copy.head, bytes(text)):
            self._token, self._is_due = token, False
        return copy

    def _decoded(self, text: bytes) -> _Copy | None:
        """Return what an entry holds, ``None`` where it is not what was written."""
        lines = text.splitlines(keepends=True)
        records = []
        try:
            seq = int(lines.pop(0))
            snapshot = (seq, self._codec.decode_snapshot(lines.pop(0), seq)) if seq else None
            base = max(seq - _COMPARED, 0)
            for number, line in enumerate(lines, start=base + 1):
                header = self._codec.decode_header(line)
                body, redacted = self._codec.decode_body(line, header)
                if header.seq != number:
                    return None
                records.append(Record(number, header.kind, header.version, body, redacted))
        except (IndexError, ValueError, StoreError):
            return None
        return _Copy(base, records, snapshot) if seq <= base + len(records) else None


class _Snapshots:
    """Implements ``memci.archive.stores.contract.Snapshots``."""

    def __init__(self, snapshots: Snapshots, journal: _Journal) -> None:
        self._snapshots = snapshots
        self._journal = journal

    def put(self, seq: int, body: bytes) -> None:
        self._snapshots.put(seq, body)
        self._journal.renew()

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        copy = self._journal.copy
        return copy.snapshot if copy is not None and at_most is None else self._snapshots.find(at_most)

    def problems(self) -> Iterator[str]:
        return self._snapshots.problems()

    def clear(self) -> None:
        self._journal.apart(self._snapshots.clear)


class TieredSession:
    """Implements ``memci.archive.stores.contract.SessionStore``. Pages, blobs and index are those of the store behind.

    What takes content out raises ``UnavailableError`` too where the store has done it and the tier may still hold a copy.
    """

    def __init__(self, behind: SessionStore, tier: RedisTier, owner: tuple[str, str], *, read_only: bool) -> None:
        self.journal = _Journal(behind, tier, owner, read_only=read_only)
        self.snapshots = _Snapshots(behind.snapshots, self.journal)
        self.pages = behind.pages
        self.blobs = behind.blobs
        self.durability = behind.durability
        self._behind = behind

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, as the store behind has them."""
        return self._behind.index

    def indexed_seq(self) -> int:
        """Return what the store behind tells."""
        return self._behind.indexed_seq()

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        self.journal.close()
        self._behind.close()


class TieredStore:
    """Implements ``memci.archive.stores.contract.Store`` on another store, which is closed with this one, as the tier is.

    Attributes:
        durability: That of the store behind.
        tier: As given; its counts tell what was done.
    """

    def __init__(self, behind: Store, tier: RedisTier) -> None:
        self.durability: str = behind.durability
        self.tier = tier
        self._behind = behind

    @classmethod
    def from_url(cls, url: str, durability: str, open_behind: Callable[[str, str], Store]) -> "TieredStore":
        """Return the store that a URL names (see ``redis_tier.parse``), or raise ``ConfigError``; nothing is asked for yet."""
        location = parse(url)
        return cls(open_behind(location.store, durability), RedisTier(location))

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> TieredSession:
        """Open what is stored of a session; the tier is asked when the journal is first looked at."""
        behind = self._behind.open(tenant, session_id, read_only=read_only)
        return TieredSession(behind, self.tier, (tenant, session_id), read_only=read_only)

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, as the store behind knows them."""
        return self._behind.sessions(tenant)

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session, in the tier and behind it; nothing happens where there is none.

        Raises:
            UnavailableError: The store has done it, and the tier may still hold a copy; call again.
        """
        self._behind.open(tenant, session_id, read_only=True).close()  # refuses what is no id
        _apart(self.tier, self.tier.key(tenant, session_id), lambda: self._behind.delete(tenant, session_id))

    def close(self) -> None:
        """Close the store behind, and give the connections back. May be called twice."""
        self._behind.close()
        self.tier.close()


def _apart(tier: RedisTier, key: str, change: Callable[[], None]) -> None:
    tier.remove(key)
    try:
        change()
    finally:
        removed = tier.remove(key)
    if not removed:
        message = "the store has done it, but the working tier did not answer and may hold a copy: mend the tier, and do it again"
        raise UnavailableError(message)
