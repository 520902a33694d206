"""Sessions made of rows, and the store of them: the same on every SQL database, see ``memci.archive.stores.sql.rows``."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import attrs

from memci.archive import refusal
from memci.archive.stores.contract import NewRecord, Record, SessionStore
from memci.archive.stores.names import check_identifier, check_page_name, file_name, find_identifier
from memci.archive.stores.record_codec import DamagedLineError, Header, LineCodec, check_body, redacted_meanwhile, superfluous
from memci.archive.stores.sql.rows import (
    BEGIN,
    FIND,
    Found,
    Key,
    Place,
    Rows,
    Statement,
    SyncFailedError,
    checked_head,
    place_of,
)
from memci.errors import CorruptError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

# What one query reads at most; it stops before the record that begins after so many bytes, so that the largest bounds memory.
_BATCH_RECORDS, _BATCH_BYTES = 500, 4_000_000

_LIST = """
SELECT name, session_id FROM {}session AS owner
WHERE tenant = ? AND (head > 0 OR EXISTS (SELECT 1 FROM {}record WHERE session = owner.id))
"""
_READ = """
SELECT record.seq, record.line FROM {}record AS record JOIN (
    SELECT seq, sum(length(line)) OVER (ORDER BY seq) - length(line) AS before FROM {}record
    WHERE session = ? AND seq > ? AND seq <= ?
) AS sized ON record.seq = sized.seq
WHERE record.session = ? AND sized.before < ? ORDER BY record.seq
"""
_PICK = "SELECT line FROM {}record WHERE session = ? AND seq = ?"
# A record that was replaced already, by a call whose answer was lost, is replaced again.
_REPLACE = "UPDATE {}record SET line = ? WHERE session = ? AND seq = ? AND line IN (?, ?) RETURNING seq"
_PUT_PAGE = """
INSERT INTO {}page (session, name, body) VALUES (?, ?, ?) ON CONFLICT (session, name) DO UPDATE SET body = excluded.body
"""
_PUT_SNAPSHOT = """
INSERT INTO {}snapshot (session, seq, line) VALUES (?, ?, ?) ON CONFLICT (session, seq) DO UPDATE SET line = excluded.line
"""
_NEWEST = "SELECT seq, line FROM {}snapshot WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
_USE = """
INSERT INTO {}blob_use AS used (session, name, seq) VALUES (?, ?, ?) ON CONFLICT (session, name)
DO UPDATE SET seq = CASE WHEN used.seq > excluded.seq THEN used.seq ELSE excluded.seq END
"""
_IS_USING = "SELECT name FROM {}blob_use WHERE session = ? LIMIT 1"
_DELETE = "DELETE FROM {}session WHERE id = ?"


@attrs.define(eq=False)
class _Opening:
    """What journal, pages, snapshots and blobs of one opened session share: which row is meant, and whether it may be written.

    The row's number is kept from when it was first seen: numbers are never used again, so that an opening of a deleted session
    never meets the next session of that id. For one thread at a time.
    """

    rows: Rows
    key: Key
    read_only: bool = False
    row: int | None = None
    is_closed: bool = False

    def check_open(self) -> None:
        if self.is_closed:
            raise refusal.closed(self.key.session_id)

    def check_writable(self) -> None:
        self.check_open()
        if self.read_only:
            raise refusal.read_only(self.key.session_id)

    def look(self) -> Place | None:
        """Return where the journal is now, ``None`` before the session began. One query."""
        place = place_of(self.read(FIND, self.key.tenant, self.key.name))
        if self.row is None:
            self.row = place.row if place else None
        elif place is None or place.row != self.row:
            raise refusal.deleted(self.key.session_id)
        return place

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
            values = (self.key.tenant, self.key.name, self.key.session_id.encode())
            self.row = int(self.rows.change(self.key, None, [(BEGIN, values)])[0][0][0])
        return self.row

    def read(self, sql: str, *values: object) -> Found:
        self.check_open()
        return self.rows.read(sql, values, self.key.session_id)

    def read_own(self, sql: str, *values: object) -> Found:
        """Run a query whose first value is the row; it finds nothing before the session began."""
        row = self.find_row()
        return [] if row is None else self.read(sql, row, *values)

    def change(self, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        return self.rows.change(self.key, self.begin(), statements, removes=removes) if statements else []

    def remove(self, sql: str, values: Sequence[Sequence[object]]) -> None:
        """Run a deletion for each of *values*, before which the row stands; nothing happens before the session began."""
        self.check_writable()
        if self.find_row() is not None:
            self.change([(sql, (self.row, *each)) for each in values], removes=True)


@attrs.define(eq=False)
class _Journal:
    """Implements ``memci.archive.stores.contract.Journal``."""

    opening: _Opening
    codec: LineCodec
    failure: str = ""

    def head(self) -> int:
        return checked_head(self.opening.key, self.opening.look())

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        opening = self.opening
        opening.check_writable()
        if self.failure:
            raise UnavailableError(self.failure)
        lines = self.codec.encode_commit(expected, records).splitlines(keepends=True)
        try:
            opening.row = opening.rows.append(opening.key, opening.row, expected, lines)
        except SyncFailedError:
            # The system may have dropped the bytes and would report the next sync as good: never try again.
            self.failure = f"session {opening.key.session_id!r}: an earlier sync failed: close the session and open it again"
            raise
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield records; what is committed while it reads is not read. No query is open between two records."""
        place = self.opening.look()
        if place is None:
            return
        end = max(place.head, place.last)
        bound = end if until is None else min(until, end)
        seq = max(after, 0)
        while seq < bound:
            values = (place.row, seq, min(bound, seq + _BATCH_RECORDS), place.row, _BATCH_BYTES)
            lines = self.opening.read(_READ, *values)
            for found, line in lines:
                seq += 1
                if found != seq or seq > place.head:
                    checked_head(self.opening.key, place)
                    raise self._corrupt(seq)
                header, body, redacted = self._decoded(seq, _data(line))
                if seq == place.head and header.left:
                    raise self._corrupt(seq + 1)
                yield Record(seq, header.kind, header.version, body, redacted)
            if not lines:
                raise self._corrupt(seq + 1)

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        for body in bodies.values():
            check_body(body)
        opening = self.opening
        opening.check_writable()
        head = self.head()
        for seq in bodies:
            if not 1 <= seq <= head:
                raise refusal.no_record(seq, head)
        statements = []
        picked = opening.change([(_PICK, (opening.row, seq)) for seq in bodies])
        for (seq, body), found in zip(bodies.items(), picked, strict=True):
            if not found:
                raise self._corrupt(seq)
            line = _data(found[0][0])
            self._decoded(seq, line)
            new = self.codec.redact(line, body, (former or {}).get(seq))
            statements.append((_REPLACE, (new, opening.row, seq, line, new)))
        for seq, done in zip(bodies, opening.change(statements, removes=True), strict=True):
            if not done:
                raise redacted_meanwhile(seq)

    def _decoded(self, seq: int, line: bytes) -> tuple[Header, bytes, bool]:
        try:
            header = self.codec.decode_header(line)
            body, redacted = self.codec.decode_body(line, header)
        except DamagedLineError as error:
            raise self._corrupt(seq, str(error)) from error
        if header.seq != seq:
            raise self._corrupt(seq, f"the line is that of record {header.seq}")
        return header, body, redacted

    def _corrupt(self, seq: int, problem: str = "it is missing") -> CorruptError:
        return CorruptError(problem, session=self.opening.key.session_id, place=f"record {seq}", seq=seq)


@attrs.frozen
class _Pages:
    """Implements ``memci.archive.stores.contract.Pages``."""

    opening: _Opening

    def put(self, pages: Mapping[str, bytes]) -> None:
        self.opening.check_writable()
        checked = [(check_page_name(name), page) for name, page in pages.items()]
        if checked:
            row = self.opening.begin()
            self.opening.change([(_PUT_PAGE, (row, name, page)) for name, page in checked])

    def find(self, name: str) -> bytes | None:
        self.opening.check_open()
        found = self.opening.read_own("SELECT body FROM {}page WHERE session = ? AND name = ?", check_page_name(name))
        return _data(found[0][0]) if found else None

    def names(self) -> Iterator[str]:
        found = self.opening.read_own("SELECT name FROM {}page WHERE session = ?")
        yield from (name for (name,) in found if isinstance(name, str))

    def remove(self, names: Collection[str]) -> None:
        self.opening.check_writable()
        checked = [(check_page_name(name),) for name in names]
        self.opening.remove("DELETE FROM {}page WHERE session = ? AND name = ?", checked)


@attrs.frozen
class _Snapshots:
    """Implements ``memci.archive.stores.contract.Snapshots``."""

    opening: _Opening
    codec: LineCodec

    def put(self, seq: int, body: bytes) -> None:
        row = self.opening.begin()
        kept = self.opening.read_own("SELECT seq FROM {}snapshot WHERE session = ?")
        old = superfluous([seq, *(found for (found,) in kept if isinstance(found, int))])
        put = (_PUT_SNAPSHOT, (row, seq, self.codec.encode_snapshot(seq, body)))
        self.opening.change([put, *(("DELETE FROM {}snapshot WHERE session = ? AND seq = ?", (row, each)) for each in old)])

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state up to *at_most*. One query, and one for each damaged one."""
        return next(((seq, body) for seq, body in self._newest_first(at_most) if isinstance(body, bytes)), None)

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot, newest first. O(database), once in a process."""
        self.opening.check_open()
        self.opening.rows.check()
        for seq, body in self._newest_first(None):
            if isinstance(body, DamagedLineError):
                yield f"snapshot {seq}: {body}; it is not used and can be deleted"

    def clear(self) -> None:
        self.opening.remove("DELETE FROM {}snapshot WHERE session = ?", [()])

    def _newest_first(self, at_most: int | None) -> Iterator[tuple[int, bytes | DamagedLineError]]:
        bound = 2**63 - 1 if at_most is None else at_most
        while found := self.opening.read_own(_NEWEST, bound):
            seq, line = found[0]
            try:
                yield seq, self.codec.decode_snapshot(_data(line), seq)
            except DamagedLineError as error:
                yield seq, error
            bound = seq - 1


@attrs.frozen
class _Blobs:
    """Implements ``memci.archive.stores.contract.Blobs``."""

    opening: _Opening

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        opening = self.opening
        row = opening.begin()
        statements: list[Statement] = []
        for name in sorted(blobs):  # in one order, so that two who put the same ones wait for each other and no longer
            statements += [(opening.rows.put_blob, (opening.key.tenant, name, blobs[name])), (_USE, (row, name, seq))]
        opening.change(statements)
        return blobs

    def find(self, name: str) -> bytes | None:
        found = self.opening.read("SELECT body FROM {}blob WHERE tenant = ? AND name = ?", self.opening.key.tenant, name)
        return _data(found[0][0]) if found else None

    def names(self) -> Iterator[str]:
        found = self.opening.read_own("SELECT name FROM {}blob_use WHERE session = ?")
        yield from (name for (name,) in found if isinstance(name, str))

    def drop(self, names: Collection[str], seq: int) -> None:
        opening = self.opening
        opening.remove("DELETE FROM {}blob_use WHERE session = ? AND name = ? AND seq <= ?", [(name, seq) for name in names])
        if opening.row is not None:
            opening.rows.change(opening.key, None, [(opening.rows.sweep, (opening.key.tenant,))], removes=True)


class _Session:
    """Implements ``memci.archive.stores.contract.SessionStore``. For one thread at a time."""

    def __init__(self, store: "SqlStore", opening: _Opening, codec: LineCodec) -> None:
        self.journal = _Journal(opening, codec)
        self.pages = _Pages(opening)
        self.snapshots = _Snapshots(opening, codec)
        self.blobs = _Blobs(opening)
        self.durability = store.durability
        self._opening = opening
        self._open_index = store.open_index
        self._index: PageIndex | None = None

    @property
    def index(self) -> "PageIndex":
        self._opening.check_open()
        if self._index is None:
            read_only = self._opening.read_only
            row = self._opening.find_row() if read_only else self._opening.begin()
            self._index = self._open_index(row, read_only=read_only)
        return self._index

    def indexed_seq(self) -> int:
        self._opening.check_open()
        return 0  # the index is not kept together with the journal

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None
        self._opening.is_closed = True


class SqlStore:
    """Implements ``memci.archive.stores.contract.Store`` on rows.

    The indexes of sessions, which are derived, are files in what *index_directory* returns, and in memory where that is ``None``.
    """

    def __init__(self, rows: Rows, index_directory: Callable[[], Path | None], durability: str) -> None:
        self.durability = durability
        self._rows = rows
        self._index_directory = index_directory
        self._opened: WeakSet[_Session] = WeakSet()

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> SessionStore:
        """Open what is stored of a session; nothing is read or written before it is asked for.

        Raises:
            InvalidIdError: The id or tenant is not text, is empty, or UTF-8 cannot encode it.
        """
        opening = _Opening(self._rows, _key(tenant, session_id), read_only)
        session = _Session(self, opening, LineCodec(tenant, session_id))
        self._opened.add(session)
        return session

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order. One query for all of them."""
        for name, session_id in self._rows.read(_LIST, (file_name(check_identifier(tenant, "tenant")),)):
            identifier = find_identifier(str(name)) or _data(session_id).decode(errors="replace")
            if not identifier or file_name(identifier) != name:
                problem = "the session's id is not the one that its row is named after: restore it from a backup"
                raise CorruptError(problem, session="", place=f"row of {name}")
            yield identifier

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none. Durable once it returns; else call again.

        Whoever has it open gets an ``UnavailableError`` from the next write. Of the indexes, that of this machine is removed.
        """
        opening = _Opening(self._rows, _key(tenant, session_id))
        row = opening.find_row()
        if row is None:
            self._rows.change(opening.key, None, [], removes=True)  # ends a deletion that could not be finished
            return
        self._remove_index(row)  # first: once the row is gone nobody would know of it
        used, _ = self._rows.change(opening.key, None, [(_IS_USING, (row,)), (_DELETE, (row,))], removes=True)
        if used:
            self._rows.change(opening.key, None, [(self._rows.sweep, (opening.key.tenant,))], removes=True)
        self._remove_index(row)

    def open_index(self, row: int | None, *, read_only: bool) -> "PageIndex":
        """Open the index of the session in a row; without one it is an empty one in memory."""
        from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads sqlite3, which few openings need)

        directory = None if row is None else self._index_directory()
        if directory is None:
            return PageIndex(None)
        return PageIndex.in_directory(directory, row, root=directory.parent, read_only=read_only)

    def close(self) -> None:
        """Give back what the sessions that are still open hold, and the connections. May be called twice."""
        for session in list(self._opened):
            session.close()
        self._rows.close()

    def _remove_index(self, row: int) -> None:
        from memci.archive.catalogue import index_file  # noqa: PLC0415 (few need it)

        directory = self._index_directory()
        if directory is not None:
            index_file.remove(str(directory / f"{row}.sqlite"))


def _data(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""  # damage made something else of it


def _key(tenant: str, session_id: str) -> Key:
    check_identifier(tenant, "tenant")
    check_identifier(session_id, "session id")
    return Key(file_name(tenant), file_name(session_id), session_id)
