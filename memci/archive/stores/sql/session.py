"""Sessions made of rows, and the store of them: the same on every SQL database."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import attrs

from memci.archive import refusal
from memci.archive.catalogue import index_folder
from memci.archive.catalogue.index_folder import IndexPlace
from memci.archive.stores.contract import NewRecord, Record, SessionStore, Usage
from memci.archive.stores.names import check_identifier, check_key, check_page_name, file_name, find_identifier
from memci.archive.stores.opened_session import OpenedSession
from memci.archive.stores.record_codec import DamagedLineError, LineCodec, check_redaction, redacted_meanwhile, superfluous
from memci.archive.stores.sql.schema import Found, Key, Place, Rows, Statement, SyncFailedError, checked_head, place_of
from memci.errors import CorruptError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

# What one query reads at most; it stops before the record that begins after so many bytes, so that the largest bounds memory.
_BATCH_RECORDS, _BATCH_BYTES = 500, 4_000_000

_LIST = """
SELECT name, session_id FROM {}session AS owner
WHERE tenant = ? AND (head > 0 OR EXISTS (SELECT 1 FROM {}record WHERE session = owner.id))
"""
_USAGE = """
SELECT (SELECT count(*) FROM {}session WHERE tenant = ? AND head > 0),
    (SELECT coalesce(sum(length(line)), 0) FROM {}record WHERE session IN (SELECT id FROM {}session WHERE tenant = ?))
    + (SELECT coalesce(sum(length(body)), 0) FROM {}page WHERE session IN (SELECT id FROM {}session WHERE tenant = ?))
    + (SELECT coalesce(sum(length(line)), 0) FROM {}snapshot WHERE session IN (SELECT id FROM {}session WHERE tenant = ?))
    + (SELECT coalesce(sum(length(body)), 0) FROM {}blob WHERE tenant = ?)
"""
_READ = """
SELECT record.seq, record.line FROM {}record AS record JOIN (
    SELECT seq, sum(length(line)) OVER (ORDER BY seq) - length(line) AS before FROM {}record
    WHERE session = ? AND seq > ? AND seq <= ?
) AS sized ON record.seq = sized.seq
WHERE record.session = ? AND sized.before < ? ORDER BY record.seq
"""
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


@attrs.define(eq=False)
class _View:
    session: "_Session"


@attrs.define(eq=False)
class _Journal(_View):
    failure: str = ""  # why nothing may be appended any more

    def head(self) -> int:
        return checked_head(self.session.key, self.session.look())

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        session = self.session
        session.check_writable()
        if self.failure:
            raise UnavailableError(self.failure)
        lines = session.codec.encode_commit(expected, records).splitlines(keepends=True)
        before = session.token if session.token_seq == expected else ""
        try:
            session.row, session.token = session.rows.append(session.key, session.row, expected, lines, before)
            session.token_seq = expected + len(records)
        except SyncFailedError:
            # The system may have dropped the bytes and would report the next sync as good: never try again.
            self.failure = f"session {session.session_id!r}: an earlier sync failed: refresh() it, or open it again"
            raise
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield records; what is committed while it reads is not read. No query is open between two records."""
        place = self.session.look()
        end = max(place.head, place.last)
        bound = end if until is None else min(until, end)
        seq = max(after, 0)
        while seq < bound:
            values = (place.row, seq, min(bound, seq + _BATCH_RECORDS), place.row, _BATCH_BYTES)
            lines = self.session.read(_READ, values)
            for found, line in lines:
                seq += 1
                if found != seq or seq > place.head:
                    checked_head(self.session.key, place)
                    raise self.session.corrupt(seq)
                record = self._decoded(seq, _data(line))
                if seq == place.head and self.session.codec.decode_header(line).left:
                    raise self.session.corrupt(seq + 1)
                yield record
            if not lines:
                raise self.session.corrupt(seq + 1)

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        session = self.session
        session.check_writable()
        check_redaction(bodies, self.head())
        statements: list[Statement] = []
        pick = "SELECT line FROM {}record WHERE session = ? AND seq = ?"
        picked = session.change([(pick, (session.row, seq)) for seq in bodies])
        for (seq, body), found in zip(bodies.items(), picked, strict=True):
            if not found:
                raise session.corrupt(seq)
            line = _data(found[0][0])
            self._decoded(seq, line)
            new = session.codec.redact(line, body, (former or {}).get(seq))
            statements.append((_REPLACE, (new, session.row, seq, line, new)))
        replaced = len(statements)
        statements += [(sql, (session.row,)) for sql in session.rows.clear_index]
        for seq, done in zip(bodies, session.change(statements, removes=True)[:replaced], strict=True):
            if not done:
                raise redacted_meanwhile(seq)

    def _decoded(self, seq: int, line: bytes) -> Record:
        try:
            record = self.session.codec.decode(line)
        except DamagedLineError as error:
            raise self.session.corrupt(seq, str(error)) from error
        if record.seq != seq:
            raise self.session.corrupt(seq, f"the line is that of record {record.seq}")
        return record


class _Pages(_View):
    def put(self, pages: Mapping[str, bytes]) -> None:
        self.session.check_writable()
        checked = [(check_page_name(name), page) for name, page in pages.items()]
        self.session.change([(_PUT_PAGE, (self.session.begin(), *each)) for each in checked])

    def find(self, name: str) -> bytes | None:
        return _found_data(self.session.read_own("SELECT body FROM {}page WHERE session = ? AND name = ?", check_page_name(name)))

    def names(self) -> Iterator[str]:
        yield from _found_names(self.session.read_own("SELECT name FROM {}page WHERE session = ?"))

    def remove(self, names: Collection[str]) -> None:
        self.session.remove("DELETE FROM {}page WHERE session = ? AND name = ?", [(check_page_name(name),) for name in names])


class _Snapshots(_View):
    def put(self, seq: int, body: bytes) -> None:
        row = self.session.begin()
        kept = self.session.read_own("SELECT seq FROM {}snapshot WHERE session = ?")
        old = superfluous([seq, *(found for (found,) in kept if isinstance(found, int))])
        put = (_PUT_SNAPSHOT, (row, seq, self.session.codec.encode_snapshot(seq, body)))
        self.session.change([put, *(("DELETE FROM {}snapshot WHERE session = ? AND seq = ?", (row, each)) for each in old)])

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state up to *at_most*. One query, and one for each damaged one."""
        return next(((seq, body) for seq, body in self._newest_first(at_most) if isinstance(body, bytes)), None)

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot, newest first. O(database), once in a process."""
        self.session.check_open()
        self.session.rows.check()
        for seq, body in self._newest_first(None):
            if isinstance(body, DamagedLineError):
                yield f"snapshot {seq}: {body}; it is not used and can be deleted"

    def clear(self) -> None:
        self.session.remove("DELETE FROM {}snapshot WHERE session = ?", [()])

    def _newest_first(self, at_most: int | None) -> Iterator[tuple[int, bytes | DamagedLineError]]:
        bound = 2**63 - 1 if at_most is None else at_most
        while found := self.session.read_own(_NEWEST, bound):
            seq, line = found[0]
            try:
                yield seq, self.session.codec.decode_snapshot(_data(line), seq)
            except DamagedLineError as error:
                yield seq, error
            bound = seq - 1


class _Blobs(_View):
    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        session = self.session
        row = session.begin()
        statements: list[Statement] = []
        for name in sorted(blobs):  # in one order, so that two who put the same ones wait for each other and no longer
            statements += [(session.rows.put_blob, (session.key.tenant, name, blobs[name])), (_USE, (row, name, seq))]
        session.change(statements)
        return blobs

    def find(self, name: str) -> bytes | None:
        sql = "SELECT body FROM {}blob WHERE tenant = ? AND name = ?"
        return _found_data(self.session.read(sql, (self.session.key.tenant, name)))

    def names(self) -> Iterator[str]:
        yield from _found_names(self.session.read_own("SELECT name FROM {}blob_use WHERE session = ?"))

    def drop(self, names: Collection[str], seq: int) -> None:
        session = self.session
        session.remove("DELETE FROM {}blob_use WHERE session = ? AND name = ? AND seq <= ?", [(name, seq) for name in names])
        if session.row:
            session.sweep()


class _Session(OpenedSession):
    """Implements ``SessionStore``: which row is meant, and whether it may be written. For one thread at a time.

    The row's number is kept from when it was first seen: numbers are never used again, so that an opening of a deleted session
    never meets the next session of that id.
    """

    def __init__(self, store: "SqlStore", tenant: str, session_id: str, *, read_only: bool = False) -> None:
        check_key(tenant, session_id)
        super().__init__(session_id, read_only=read_only)
        self.key = Key(file_name(tenant), file_name(session_id), session_id)
        self.codec = LineCodec(tenant, session_id)
        self.rows = store.rows
        self.row = 0
        self.token, self.token_seq = "", 0  # of the last commit that was made here, and its last record
        self.durability = store.durability
        self.journal = _Journal(self)
        self.pages = _Pages(self)
        self.snapshots = _Snapshots(self)
        self.blobs = _Blobs(self)
        self._store = store

    def look(self) -> Place:
        """Return where the journal is now. One query."""
        place = place_of(self.read(*self.key.find))
        if self.row not in {0, place.row}:
            raise refusal.deleted(self.session_id)
        self.row = place.row
        return place

    def find_row(self) -> int:
        """Return the number of the row, 0 before the session began. Free once it was seen."""
        self.check_open()
        return self.row or self.look().row

    def begin(self) -> int:
        """Return the number of the row, which is made if there is none. Free once it was seen."""
        self.check_writable()
        if not self.row:
            self.row = int(self.rows.change(self.key, 0, [self.key.begin])[0][0][0])
        return self.row

    def read(self, sql: str, values: Sequence[object]) -> Found:
        self.check_open()
        return self.rows.read(sql, values, self.session_id)

    def read_own(self, sql: str, *values: object) -> Found:
        """Run a query whose first value is the row; it finds nothing before the session began."""
        row = self.find_row()
        return self.read(sql, (row, *values)) if row else []

    def change(self, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        return self.rows.change(self.key, self.begin(), statements, removes=removes) if statements else []

    def remove(self, sql: str, values: Sequence[Sequence[object]]) -> None:
        """Run a deletion for each of *values*, before which the row stands; nothing happens before the session began."""
        self.check_writable()
        if self.find_row():
            self.change([(sql, (self.row, *each)) for each in values], removes=True)

    def sweep(self) -> None:
        self.rows.change(self.key, 0, [(self.rows.sweep, (self.key.tenant,))], removes=True)

    def corrupt(self, seq: int, problem: str = "it is missing") -> CorruptError:
        return CorruptError(problem, session=self.session_id, place=f"record {seq}", seq=seq)

    def index_in_memory(self) -> "PageIndex":
        """Return the index that the database has, where the store keeps any there."""
        if not self._store.keeps_indexes:
            return super().index_in_memory()
        from memci.archive.stores.sql.kept_index import KeptIndex  # noqa: PLC0415 (loads sqlite3, which few openings need)

        return KeptIndex(self, read_only=self.read_only)

    def index_place(self) -> IndexPlace | None:
        row = self.find_row() if self.read_only else self.begin()
        directory = self._store.index_directory() if row else None
        return None if directory is None else IndexPlace(directory.parent, directory, row, self._store.index_bytes)


class SqlStore:
    """Implements ``memci.archive.stores.contract.Store`` on rows.

    Indexes lie in *index_directory*, of *index_bytes* or any number, or in memory without one; where it *keeps_indexes*, these
    are rows too.
    """

    def __init__(
        self,
        rows: Rows,
        index_directory: Callable[[], Path | None],
        durability: str,
        *,
        index_bytes: int | None = None,
        keeps_indexes: bool = False,
    ) -> None:
        self.durability = durability
        self.index_bytes = index_bytes
        self.rows = rows
        self.index_directory = index_directory
        self.keeps_indexes = keeps_indexes
        self._opened: WeakSet[_Session] = WeakSet()

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> SessionStore:
        """Open what is stored of a session; nothing is read or written before it is asked for."""
        session = _Session(self, tenant, session_id, read_only=read_only)
        self._opened.add(session)
        return session

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order. One query for all of them."""
        for name, session_id in self.rows.read(_LIST, (file_name(check_identifier(tenant, "tenant")),)):
            identifier = find_identifier(str(name)) or _data(session_id).decode(errors="replace")
            if not identifier or file_name(identifier) != name:
                problem = "the session's id is not the one that its row is named after: restore it from a backup"
                raise CorruptError(problem, session="", place=f"row of {name}")
            yield identifier

    def usage(self, tenant: str) -> Usage:
        """Measure the rows of a tenant, without those of indexes. One query, O(rows of the tenant)."""
        found = self.rows.read(_USAGE, (file_name(check_identifier(tenant, "tenant")),) * 5)
        sessions, stored_bytes = map(int, found[0]) if found else (0, 0)
        return Usage(sessions=sessions, stored_bytes=stored_bytes)

    def sweep(self, tenant: str) -> None:
        """Do nothing: a session is a row with its records, and is deleted whole."""
        check_identifier(tenant, "tenant")

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none. Durable once it returns; else call again.

        Whoever has it open gets an ``UnavailableError`` from the next write. Of the indexes, that of this machine is removed.
        """
        session = _Session(self, tenant, session_id)
        row = session.find_row()
        if not row:
            self.rows.change(session.key, 0, [], removes=True)  # ends a deletion that could not be finished
            return
        self._remove_index(row)  # first: once the row is gone nobody would know of it
        is_using, delete = "SELECT name FROM {}blob_use WHERE session = ? LIMIT 1", "DELETE FROM {}session WHERE id = ?"
        used, _ = self.rows.change(session.key, 0, [(is_using, (row,)), (delete, (row,))], removes=True)
        if used:
            session.sweep()
        self._remove_index(row)

    def close(self) -> None:
        """Give back what the sessions that are still open hold, and the connections. May be called twice."""
        for session in list(self._opened):
            session.close()
        self.rows.close()

    def _remove_index(self, row: int) -> None:
        directory = self.index_directory()
        if directory is not None:
            index_folder.remove(IndexPlace(directory.parent, directory, row).path)


def _data(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""  # damage made something else of it


def _found_data(found: Found) -> bytes | None:
    return _data(found[0][0]) if found else None


def _found_names(found: Found) -> Iterator[str]:
    return (name for (name,) in found if isinstance(name, str))
