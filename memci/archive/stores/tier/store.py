"""A store with a working tier before it: what many workers open again and again is in Redis, and the store stays the truth.

What keeps the tier from ever being wrong:

* A record enters it after the store has acknowledged it, behind the record before it, or not at all.
* An entry is used by an opening after the store was asked for the entry's last records and what follows them. If it has others
  there, or more, the entry is made anew: whatever a process without the tier did is seen by then.
* What is deleted or redacted leaves the tier before the store is asked to do it, and again afterwards. An entry has a token;
  what was read from the store before is refused, as the token of then is gone.
* Lines and snapshots have their checksums, which hold for this session alone; what fails them is made anew.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

import attrs

from memci.archive.stores.contract import Blobs, NewRecord, Pages, Record, SessionStore, Store
from memci.archive.stores.record_codec import DamagedLineError, LineCodec
from memci.archive.stores.tier.redis_tier import COMPARED, MOST_BYTES, MOST_LINES, Entry, Found, RedisTier
from memci.archive.stores.tier.redis_url import parse
from memci.errors import StoreError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


@attrs.frozen
class _Copy:
    """What an opening took over when it looked first: the records behind *base*, and the newest snapshot."""

    base: int
    records: list[Record]
    snapshot: tuple[int, bytes] | None

    @property
    def head(self) -> int:
        return self.base + len(self.records)


class _Opening:
    """What journal and snapshots of one opened session share.

    Attributes:
        behind: The session in the store behind.
        codec: Writes and reads the lines of the tier.
        copy: What was taken over by the first look, until it is read to its end or something else is asked for.
        token: Of the entry that this opening has compared with the store, or made; empty for none.
        is_due: The tier is to be looked at before the head is told: at first, and after the entry was lost.
        known_head: The head as it was last told.
    """

    def __init__(self, behind: SessionStore, tier: RedisTier, owner: tuple[str, str], *, read_only: bool) -> None:
        self.behind = behind
        self.codec = LineCodec(*owner)
        self.copy: _Copy | None = None
        self.token = ""
        self.is_due = True
        self.known_head = 0
        self._tier = tier
        self._key = tier.key(*owner)
        self._read_only = read_only

    def look(self) -> None:
        """Take the entry of the tier over, if the store behind has the same; else make it from what the store has."""
        self.is_due = False
        found = self._tier.find(self._key, "" if self._read_only else uuid4().hex)
        if found is None or not found.token:
            return
        try:
            copy = self._decoded(found.entry)
            if copy is not None and self._holds(copy):
                self.token = found.token
            elif not self._read_only:
                copy = self._made(found)
            else:
                copy = None
        except StoreError:
            return  # whoever asks the store next is told
        self.copy = copy
        self.known_head = copy.head if copy is not None else 0

    def added(self, expected: int, records: Sequence[NewRecord]) -> None:
        """Bring the entry up to a commit that is safe."""
        self.known_head = expected + len(records)
        if self.token:
            lines = [
                self.codec.encode_commit(seq, [record])  # each line stands for itself
                for seq, record in enumerate(records, start=expected)
            ]
            self._keep(self._tier.extend(self._key, self.token, expected, lines))

    def renewed(self, seq: int, body: bytes) -> None:
        """Bring the entry up to a snapshot that was kept."""
        if self.token:
            self._keep(self._tier.renew(self._key, self.token, seq, self.codec.encode_snapshot(seq, body)))
        else:
            self.is_due = not self._read_only

    def read(self, after: int, until: int | None) -> list[Record] | None:
        """Return records of the entry; ``None`` where it is not known to hold them all."""
        found = self._tier.find(self._key, after=after)
        if found is None:
            return None
        if found.token != self.token:
            self._keep(kept=False)
            return None
        entry = found.entry
        records = self._records(entry) if entry is not None else None
        if records is None or after + len(records) < self.known_head:
            return None
        return [record for record in records if until is None or record.seq <= until]

    def apart(self, change: Callable[[], None]) -> None:
        """Do what takes content out of the store, with the session out of the tier.

        Raises:
            UnavailableError: The store has done it, and the tier may still hold a copy.
        """
        self.copy, self.token, self.is_due = None, "", not self._read_only
        _apart(self._tier, self._key, change)

    def close(self) -> None:
        """Let go of what was taken over."""
        self.copy, self.token, self.is_due = None, "", False

    def _keep(self, kept: bool) -> None:  # noqa: FBT001 (an answer)
        if not kept:
            self.token, self.is_due = "", not self._read_only

    def _holds(self, copy: _Copy) -> bool:
        """Return whether the store behind ends with the last records of a copy. One reading of it."""
        last = copy.records[-COMPARED:]
        return list(islice(self.behind.journal.read(copy.head - len(last)), COMPARED + 1)) == last

    def _made(self, found: Found) -> _Copy | None:
        """Read what the tier should hold from the store, and put it there; ``None`` where it is too much."""
        snapshot = self.behind.snapshots.find()
        seq, body = snapshot or (0, b"")
        base = max(seq - COMPARED, 0)
        records: list[Record] = []
        size_bytes = len(body)
        for record in self.behind.journal.read(base):
            records.append(record)
            size_bytes += len(record.body)
            if len(records) > MOST_LINES or size_bytes > MOST_BYTES:
                return None
        if seq > base + len(records):
            return None
        lines = [self._line(record) for record in records]
        entry = Entry(base + len(records), base, lines, seq, self.codec.encode_snapshot(seq, body) if seq else b"")
        token = found.token if found.entry is None else uuid4().hex
        self.token = token if self._tier.fill(self._key, found.token, token, entry) else ""
        return _Copy(base, records, snapshot)

    def _line(self, record: Record) -> bytes:
        line = self.codec.encode_commit(record.seq - 1, [NewRecord(record.kind, record.version, record.body)])
        return self.codec.redact(line, record.body) if record.redacted else line

    def _decoded(self, entry: Entry | None) -> _Copy | None:
        """Return a whole entry, checked; ``None`` for one that is not what was written."""
        records = self._records(entry) if entry is not None else None
        if entry is None or records is None or (entry.head and not records):
            return None
        if not entry.seq:
            return None if entry.base or entry.snapshot else _Copy(0, records, None)
        if not entry.base < entry.seq <= entry.head:
            return None
        try:
            return _Copy(entry.base, records, (entry.seq, self.codec.decode_snapshot(entry.snapshot, entry.seq)))
        except DamagedLineError:
            return None

    def _records(self, entry: Entry) -> list[Record] | None:
        """Return the records of an entry's lines; ``None`` where one of them is not what was written, or not in its place."""
        records = []
        for seq, line in enumerate(entry.lines, start=entry.base + 1):
            try:
                header = self.codec.decode_header(line)
                body, redacted = self.codec.decode_body(line, header)
            except (DamagedLineError, StoreError):
                return None
            if header.seq != seq:
                return None
            records.append(Record(seq, header.kind, header.version, body, redacted))
        return records if entry.base + len(records) == entry.head else None


class TieredJournal:
    """Implements ``memci.archive.stores.contract.Journal``."""

    def __init__(self, opening: _Opening) -> None:
        self._opening = opening
        self._behind = opening.behind.journal

    def head(self) -> int:
        """Return the sequence number of the last commit, 0 for none. One request to the store; at first one to the tier too."""
        opening = self._opening
        opening.copy = None
        if opening.is_due:
            opening.look()
        if opening.copy is None:
            opening.known_head = self._behind.head()
        return opening.known_head

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        """Commit the records after *expected* in the store behind, then bring the tier up to it; raises as the store does."""
        self._opening.copy = None
        head = self._behind.append(expected, records)
        self._opening.added(expected, records)
        return head

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` in order, from the tier where it has them.

        A reading from the first record asks the store behind, but for the first look: who compares, copies or erases a whole
        journal sees what is safe. What a process without the tier wrote since the head was last told may not be there yet.

        Raises:
            CorruptError: A record is damaged; those before it were yielded.
        """
        opening = self._opening
        if opening.is_due:
            opening.look()
        copy = opening.copy
        if copy is not None and (until is None or until >= copy.head or after < copy.base):
            opening.copy = None
        if copy is not None and after >= copy.base:
            end = copy.head if until is None else until
            yield from copy.records[after - copy.base : max(end - copy.base, 0)]
            return
        records = opening.read(after, until) if opening.token and after > 0 else None
        yield from self._behind.read(after, until) if records is None else records

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put other bodies in the place of those of some records, and take the session out of the tier.

        Raises:
            ValueError: See the contract.
            ConflictError: See the contract.
            UnavailableError: It is not known to be done, in the store or in the tier; call again.
        """
        self._opening.apart(lambda: self._behind.redact(bodies, former))

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        self._opening.close()
        self._behind.close()


class TieredSnapshots:
    """Implements ``memci.archive.stores.contract.Snapshots``."""

    def __init__(self, opening: _Opening) -> None:
        self._opening = opening
        self._behind = opening.behind.snapshots

    def put(self, seq: int, body: bytes) -> None:
        """Keep a state, in the store behind and then in the tier."""
        self._opening.copy = None
        self._behind.put(seq, body)
        self._opening.renewed(seq, body)

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state with ``seq <= at_most``, or ``None``; the newest as the first look found it."""
        copy = self._opening.copy
        return copy.snapshot if copy is not None and at_most is None else self._behind.find(at_most)

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot of the store behind."""
        return self._behind.problems()

    def clear(self) -> None:
        """Delete all of them, and take the session out of the tier.

        Raises:
            UnavailableError: It is not known to be done; call again.
        """
        self._opening.apart(self._behind.clear)


class TieredSession:
    """Implements ``memci.archive.stores.contract.SessionStore``. Pages, blobs and index are those of the store behind.

    Attributes:
        journal: The truth.
        snapshots: Cached states.
        durability: That of the store behind.
    """

    def __init__(self, opening: _Opening) -> None:
        self.journal = TieredJournal(opening)
        self.snapshots = TieredSnapshots(opening)
        self.durability = opening.behind.durability
        self._opening = opening

    @property
    def pages(self) -> Pages:
        """The raw pages, in the store behind."""
        return self._opening.behind.pages

    @property
    def blobs(self) -> Blobs:
        """The large data, in the store behind."""
        return self._opening.behind.blobs

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, as the store behind has them."""
        return self._opening.behind.index

    def indexed_seq(self) -> int:
        """Return what the store behind tells."""
        return self._opening.behind.indexed_seq()

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        self._opening.close()
        self._opening.behind.close()


class TieredStore:
    """Implements ``memci.archive.stores.contract.Store`` on another store.

    Args:
        behind: The store that has everything; it is closed with this one.
        tier: The working tier; it is closed too.

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
        """Return the store that a URL names (see ``memci.archive.stores.tier.redis_url``); nothing is asked for yet.

        Raises:
            ConfigError: The URL, or that of the store behind, cannot be used.
        """
        location = parse(url)
        return cls(open_behind(location.store, durability), RedisTier(location))

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> TieredSession:
        """Open what is stored of a session; the tier is asked when the journal is first looked at.

        Raises:
            InvalidIdError: The id or tenant is not text, is empty, or UTF-8 cannot encode it.
        """
        behind = self._behind.open(tenant, session_id, read_only=read_only)
        return TieredSession(_Opening(behind, self.tier, (tenant, session_id), read_only=read_only))

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, as the store behind knows them."""
        return self._behind.sessions(tenant)

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session, in the tier and behind it; nothing happens where there is none.

        Raises:
            InvalidIdError: See ``open``.
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
