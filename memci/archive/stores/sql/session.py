"""One session made of rows, which is the same on every SQL database; see ``memci.archive.stores.sql.rows`` for the rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from memci.archive import refusal
from memci.archive.stores.contract import NewRecord, Record
from memci.archive.stores.names import check_identifier, check_page_name, file_name
from memci.archive.stores.record_codec import DamagedLineError, Header, LineCodec, check_body
from memci.archive.stores.sql.row_blobs import SqlBlobs
from memci.archive.stores.sql.rows import (
    Key,
    PageRows,
    Place,
    RecordRows,
    SessionRows,
    SnapshotRows,
    SyncFailedError,
    Tables,
    checked_head,
    corrupt,
)
from memci.errors import UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


class Opening:
    """What journal, pages and snapshots of one opened session share: which row is meant, and whether it may be written.

    The row's number is kept from when it was first seen: numbers are never used again, so that an opening of a deleted session
    never meets the next session of that id. For one thread at a time.

    Attributes:
        key: Which session.
        row: Number of its row, ``None`` until one was seen.
    """

    def __init__(self, sessions: SessionRows, tenant: str, session_id: str, *, read_only: bool) -> None:
        check_identifier(tenant, "tenant")
        check_identifier(session_id, "session id")
        self.key = Key(file_name(tenant), file_name(session_id), session_id)
        self.row: int | None = None
        self._sessions = sessions
        self._read_only = read_only
        self._is_closed = False

    def check_open(self) -> None:
        """Refuse what comes after ``close``.

        Raises:
            SessionClosedError: The session was closed.
        """
        if self._is_closed:
            raise refusal.closed(self.key.session_id)

    def check_writable(self) -> None:
        """Refuse to write where that was not asked for.

        Raises:
            SessionClosedError: The session was closed.
            PermissionDeniedError: It was opened read-only.
        """
        self.check_open()
        if self._read_only:
            raise refusal.read_only(self.key.session_id)

    def look(self) -> Place | None:
        """Return where the journal is now, ``None`` before the session began. One query.

        Raises:
            UnavailableError: The session was deleted while it was open.
        """
        self.check_open()
        place = self._sessions.find(self.key)
        if self.row is None:
            self.row = place.row if place else None
        elif place is None or place.row != self.row:
            raise refusal.deleted(self.key.session_id)
        return place

    def check_database(self) -> None:
        """Look whether the database is whole. Raises ``CorruptError`` where it is not."""
        self.check_open()
        self._sessions.check()

    def find_row(self) -> int | None:
        """Return the number of the row, ``None`` before the session began. Free once it was seen."""
        self.check_open()
        if self.row is None:
            self.look()
        return self.row

    def begin(self) -> int:
        """Return the number of the row, which is made if there is none. Free once it was seen."""
        self.check_writable()
        if self.row is None:
            self.row = self._sessions.begin(self.key)
        return self.row

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        self._is_closed = True


class SqlJournal:
    """Implements ``memci.archive.stores.contract.Journal`` on rows."""

    def __init__(self, opening: Opening, rows: RecordRows, codec: LineCodec) -> None:
        self._opening = opening
        self._rows = rows
        self._codec = codec
        self._failure = ""

    def head(self) -> int:
        """Return the sequence number of the last commit as it is stored now, 0 for none. One query.

        Raises:
            CorruptError: The last record is missing, or there is one behind the head.
        """
        place = self._opening.look()
        return 0 if place is None else checked_head(self._opening.key, place)

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        """Commit the records after *expected*, all or none, and return the new head. Durable once it returns.

        Raises:
            ValueError: There is no record, or one that no line can hold.
            ConflictError: The head is not *expected*; nothing was written.
            CorruptError: See ``head``; nothing was written.
            UnavailableError: The session was deleted, or the records are not safe. After a failed sync every further append
                raises too: close the session and open it again.
        """
        opening = self._opening
        opening.check_writable()
        if self._failure:
            raise UnavailableError(self._failure)
        lines = self._codec.encode_commit(expected, records).splitlines(keepends=True)
        try:
            opening.row = self._rows.append(opening.key, opening.row, expected, lines)
        except SyncFailedError:
            # The system may have dropped the bytes and would report the next sync as good: never try again.
            self._failure = f"session {opening.key.session_id!r}: an earlier sync failed: close the session and open it again"
            raise
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` in order; what is committed while it reads is not read.

        A query for every ``BATCH_RECORDS`` records or ``BATCH_BYTES`` bytes, and none is open between two of them.

        Raises:
            CorruptError: A record is damaged or missing; those before it were yielded.
        """
        place = self._opening.look()
        if place is None:
            return
        end = max(place.head, place.last)
        bound = end if until is None else min(until, end)
        seq = max(after, 0)
        while seq < bound:
            lines = self._rows.read(self._opening.key, place.row, seq, bound)
            for found, line in lines:
                seq += 1
                if found != seq or seq > place.head:
                    checked_head(self._opening.key, place)
                    self._missing(seq)
                header, body, redacted = self._decoded(seq, line)
                if seq == place.head and header.left:
                    self._missing(seq + 1)
                yield Record(seq, header.kind, header.version, body, redacted)
            if not lines:
                self._missing(seq + 1)

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put other bodies in the place of those of some records. One query and one transaction.

        Raises:
            ValueError: There is no such record, or a body that no line can hold; nothing was changed.
            ConflictError: A body is not the *former* one; it stays, and so may the others.
            CorruptError: One of the records is damaged; nothing was changed.
            UnavailableError: It is not known to be done; call again.
        """
        for body in bodies.values():
            check_body(body)
        opening = self._opening
        opening.check_writable()
        place = opening.look()
        head = 0 if place is None else checked_head(opening.key, place)
        for seq in bodies:
            if not 1 <= seq <= head:
                raise refusal.no_record(seq, head)
        if place is None or not bodies:
            return
        lines = self._rows.pick(opening.key, place.row, bodies)
        for seq in bodies:
            if seq not in lines:
                self._missing(seq)
            self._decoded(seq, lines[seq])
        expected = former or {}
        new = {seq: self._codec.redact(lines[seq], body, expected.get(seq)) for seq, body in bodies.items()}
        self._rows.replace(opening.key, place.row, {seq: (lines[seq], line) for seq, line in new.items()})

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        self._opening.close()

    def _decoded(self, seq: int, line: bytes) -> tuple[Header, bytes, bool]:
        try:
            header = self._codec.decode_header(line)
            body, redacted = self._codec.decode_body(line, header)
        except DamagedLineError as error:
            raise corrupt(self._opening.key, f"record {seq}", str(error), seq) from error
        if header.seq != seq:
            raise corrupt(self._opening.key, f"record {seq}", f"the line is that of record {header.seq}", seq)
        return header, body, redacted

    def _missing(self, seq: int) -> NoReturn:
        raise corrupt(self._opening.key, f"record {seq}", "it is missing", seq)


class SqlPages:
    """Implements ``memci.archive.stores.contract.Pages`` on rows."""

    def __init__(self, opening: Opening, rows: PageRows) -> None:
        self._opening = opening
        self._rows = rows

    def put(self, pages: Mapping[str, bytes]) -> None:
        """Write pages, over older ones of the same name, in one transaction.

        Raises:
            InvalidIdError: A name is no page's; nothing was written.
            UnavailableError: They are not safe, or the session was deleted; nothing was written.
        """
        self._opening.check_writable()
        checked = {check_page_name(name): page for name, page in pages.items()}
        if checked:
            self._rows.put(self._opening.key, self._opening.begin(), checked)

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a page, or ``None`` where there is none. One query.

        Raises:
            InvalidIdError: The name is no page's.
        """
        self._opening.check_open()
        check_page_name(name)
        row = self._opening.find_row()
        return None if row is None else self._rows.find(self._opening.key, row, name)

    def names(self) -> Iterator[str]:
        """Yield the names of all pages, in no order. One query."""
        row = self._opening.find_row()
        yield from () if row is None else self._rows.names(self._opening.key, row)

    def remove(self, names: Collection[str]) -> None:
        """Delete pages in one transaction; names that are not there are passed over.

        Raises:
            InvalidIdError: A name is no page's; nothing was deleted.
            UnavailableError: They are not known to be gone, or the session was deleted; call again.
        """
        self._opening.check_writable()
        checked = [check_page_name(name) for name in names]
        row = self._opening.find_row()
        if checked and row is not None:
            self._rows.remove(self._opening.key, row, checked)


class SqlSnapshots:
    """Implements ``memci.archive.stores.contract.Snapshots`` on rows."""

    def __init__(self, opening: Opening, rows: SnapshotRows, codec: LineCodec) -> None:
        self._opening = opening
        self._rows = rows
        self._codec = codec

    def put(self, seq: int, body: bytes) -> None:
        """Keep a state; older ones are thinned out in the same transaction.

        Raises:
            UnavailableError: It is not kept.
        """
        self._opening.check_writable()
        self._rows.put(self._opening.key, self._opening.begin(), seq, self._codec.encode_snapshot(seq, body))

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state with ``seq <= at_most``, or ``None``. One query, and one for each damaged one."""
        for seq, body in self._newest_first(at_most):
            if isinstance(body, bytes):
                return seq, body
        return None

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot, newest first.

        Raises:
            CorruptError: The database is damaged. O(database), once in a process.
        """
        self._opening.check_database()
        for seq, body in self._newest_first(None):
            if isinstance(body, DamagedLineError):
                yield f"snapshot {seq}: {body}; it is not used and can be deleted"

    def clear(self) -> None:
        """Delete all of them, damaged ones too, in one transaction.

        Raises:
            UnavailableError: They are not known to be gone; call again.
        """
        self._opening.check_writable()
        row = self._opening.find_row()
        if row is not None:
            self._rows.clear(self._opening.key, row)

    def _newest_first(self, at_most: int | None) -> Iterator[tuple[int, bytes | DamagedLineError]]:
        row = self._opening.find_row()
        found = None if row is None else self._rows.newest(self._opening.key, row, at_most)
        while row is not None and found is not None:
            seq, line = found
            try:
                yield seq, self._codec.decode_snapshot(line, seq)
            except DamagedLineError as error:
                yield seq, error
            found = self._rows.newest(self._opening.key, row, seq - 1)


class SqlSession:
    """Implements ``memci.archive.stores.contract.SessionStore`` on rows. For one thread at a time.

    Attributes:
        journal: The truth.
        pages: Raw pages.
        snapshots: Cached states.
        blobs: Large data.
        durability: ``fsync`` or ``flush``.
    """

    def __init__(self, tables: Tables, tenant: str, session_id: str, *, durability: str, read_only: bool) -> None:
        self._opening = Opening(tables.sessions, tenant, session_id, read_only=read_only)
        codec = LineCodec(tenant, session_id)
        self.journal = SqlJournal(self._opening, tables.records, codec)
        self.pages = SqlPages(self._opening, tables.pages)
        self.snapshots = SqlSnapshots(self._opening, tables.snapshots, codec)
        self.blobs = SqlBlobs(self._opening, tables.blobs)
        self.durability = durability
        self._indexes = tables.index
        self._read_only = read_only
        self._index: PageIndex | None = None

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, opened when first asked for."""
        self._opening.check_open()
        if self._index is None:
            row = self._opening.find_row() if self._read_only else self._opening.begin()
            self._index = self._indexes.open(row, read_only=self._read_only)
        return self._index

    def indexed_seq(self) -> int:
        """Return 0: the index tells nothing of the journal."""
        self._opening.check_open()
        return 0

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        if self._index is not None:
            self._index.close()
            self._index = None
        self._opening.close()
