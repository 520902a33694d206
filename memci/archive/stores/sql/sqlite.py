"""Sessions in one SQLite file, for many processes of one machine.

::

    <path>                      the database
    <path>-journal or -wal      what a commit needs while it lasts
    <path>.index/7.sqlite       page facts and search of the session with row 7; can be lost without harm
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import attrs

from memci.archive import disk, refusal
from memci.archive.stores.names import check_identifier, file_name
from memci.archive.stores.record_codec import redacted_meanwhile
from memci.archive.stores.sql.rows import BATCH_BYTES, BATCH_RECORDS, Key, Place, Tables, checked_head, listed_id
from memci.archive.stores.sql.session import SqlSession
from memci.archive.stores.sql.sqlite_database import Run, SqliteDatabase
from memci.archive.stores.sql.sqlite_io import SqliteIo
from memci.archive.stores.thinning import superfluous

if TYPE_CHECKING:
    import os

    from memci.archive.catalogue.page_index import PageIndex

# What is read is cast to its type, as damage may have made another of it; no session has the head -1.
_LAST = "CAST(coalesce((SELECT max(seq) FROM record WHERE session = session.id), 0) AS INTEGER)"
_PLACE = f"SELECT id, coalesce(CAST(head AS INTEGER), -1), {_LAST} FROM session"  # noqa: S608 (fixed words)
_FIND = f"{_PLACE} WHERE tenant = ? AND name = ?"
_LOOK = f"{_PLACE} WHERE id = ?"
_LIST = """
SELECT name, CAST(session_id AS BLOB) FROM session
WHERE tenant = ? AND (head > 0 OR EXISTS (SELECT 1 FROM record WHERE session = session.id))
"""
_PICK = "SELECT seq, coalesce(CAST(line AS BLOB), x'') FROM record WHERE session = ? AND seq = ?"
_PUT_BLOB = """
INSERT INTO blob (tenant, name, body) VALUES (?, ?, ?) ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body
WHERE CAST(blob.body AS BLOB) <> excluded.body
"""
_USE = """
INSERT INTO blob_use (session, name, seq) VALUES (?, ?, ?) ON CONFLICT (session, name) DO UPDATE SET seq = max(seq, excluded.seq)
"""
_UNUSED = """
DELETE FROM blob WHERE tenant = ? AND name = ? AND NOT EXISTS (
    SELECT 1 FROM blob_use JOIN session ON session.id = blob_use.session WHERE blob_use.name = blob.name AND session.tenant = ?
)
"""
_NO_ROWS: list[tuple[Any, ...]] = []
_BEGIN = "INSERT INTO session (tenant, name, session_id, head) VALUES (?, ?, ?, 0) RETURNING id"
_READ = """
SELECT record.seq, coalesce(CAST(record.line AS BLOB), x'') FROM record JOIN (
    SELECT seq, sum(length(line)) OVER (ORDER BY seq) - length(line) AS before FROM record
    WHERE session = ? AND seq > ? AND seq <= ?
) AS sized ON record.seq = sized.seq
WHERE record.session = ? AND sized.before < ? ORDER BY record.seq
"""


@attrs.frozen
class _Sessions:
    """Implements ``SessionRows``."""

    database: SqliteDatabase

    def find(self, key: Key) -> Place | None:
        return self.database.read(lambda run: _find(run, key), None, key.session_id)

    def begin(self, key: Key) -> int:
        def work(run: Run) -> int:
            place = _find(run, key)
            return _begin(run, key) if place is None else place.row

        return self.database.write(work, key.session_id)

    def check(self) -> None:
        self.database.check()


@attrs.frozen
class _Records:
    """Implements ``RecordRows``."""

    database: SqliteDatabase

    def append(self, key: Key, row: int | None, expected: int, lines: Sequence[bytes]) -> int:
        def work(run: Run) -> int:
            place = _find(run, key) if row is None else _look(run, key, row)
            head = 0 if place is None else checked_head(key, place)
            if head != expected:
                raise refusal.conflict(expected, head)
            found = _begin(run, key) if place is None else place.row
            for seq, line in enumerate(lines, start=expected + 1):
                run("INSERT INTO record (session, seq, line) VALUES (?, ?, ?)", (found, seq, line))
            run("UPDATE session SET head = ? WHERE id = ?", (expected + len(lines), found))
            return found

        return self.database.write(work, key.session_id)

    def read(self, key: Key, row: int, after: int, until: int) -> Sequence[tuple[int, bytes]]:
        values = (row, after, min(until, after + BATCH_RECORDS), row, BATCH_BYTES)
        return self.database.read(lambda run: [(seq, line) for seq, line in run(_READ, values)], [], key.session_id)

    def pick(self, key: Key, row: int, seqs: Collection[int]) -> Mapping[int, bytes]:
        found: dict[int, bytes] = {}
        return self.database.read(
            lambda run: {seq: line for each in seqs for seq, line in run(_PICK, (row, each))}, found, key.session_id
        )

    def replace(self, key: Key, row: int, lines: Mapping[int, tuple[bytes, bytes]]) -> None:
        def work(run: Run) -> None:
            _look(run, key, row)
            for seq, (former, line) in lines.items():
                if run(_PICK, (row, seq)) != [(seq, former)]:
                    raise redacted_meanwhile(seq)
                run("UPDATE record SET line = ? WHERE session = ? AND seq = ?", (line, row, seq))

        self.database.write(work, key.session_id)
        self.database.clean()


@attrs.frozen
class _Pages:
    """Implements ``PageRows``."""

    database: SqliteDatabase

    def put(self, key: Key, row: int, pages: Mapping[str, bytes]) -> None:
        def work(run: Run) -> None:
            _look(run, key, row)
            for name, body in pages.items():
                run("INSERT OR REPLACE INTO page (session, name, body) VALUES (?, ?, ?)", (row, name, body))

        self.database.write(work, key.session_id)

    def find(self, key: Key, row: int, name: str) -> bytes | None:
        sql = "SELECT CAST(body AS BLOB) FROM page WHERE session = ? AND name = ?"
        found = self.database.read(lambda run: run(sql, (row, name)), _NO_ROWS, key.session_id)
        return found[0][0] if found else None

    def names(self, key: Key, row: int) -> Sequence[str]:
        sql = "SELECT CAST(name AS TEXT) FROM page WHERE session = ? AND name IS NOT NULL"
        return self.database.read(lambda run: [name for (name,) in run(sql, (row,))], [], key.session_id)

    def remove(self, key: Key, row: int, names: Collection[str]) -> None:
        def work(run: Run) -> None:
            _look(run, key, row)
            for name in names:
                run("DELETE FROM page WHERE session = ? AND name = ?", (row, name))

        self.database.write(work, key.session_id)
        self.database.clean()


@attrs.frozen
class _Snapshots:
    """Implements ``SnapshotRows``."""

    database: SqliteDatabase

    def put(self, key: Key, row: int, seq: int, line: bytes) -> None:
        def work(run: Run) -> None:
            _look(run, key, row)
            run("INSERT OR REPLACE INTO snapshot (session, seq, line) VALUES (?, ?, ?)", (row, seq, line))
            for old in superfluous(kept for (kept,) in run("SELECT seq FROM snapshot WHERE session = ?", (row,))):
                run("DELETE FROM snapshot WHERE session = ? AND seq = ?", (row, old))

        self.database.write(work, key.session_id)

    def newest(self, key: Key, row: int, at_most: int | None) -> tuple[int, bytes] | None:
        sql = (
            "SELECT CAST(seq AS INTEGER), coalesce(CAST(line AS BLOB), x'') FROM snapshot "
            "WHERE session = ? AND seq <= ifnull(?, seq) ORDER BY seq DESC LIMIT 1"
        )
        found = self.database.read(lambda run: run(sql, (row, at_most)), _NO_ROWS, key.session_id)
        return (found[0][0], found[0][1]) if found else None

    def clear(self, key: Key, row: int) -> None:
        def work(run: Run) -> None:
            _look(run, key, row)
            run("DELETE FROM snapshot WHERE session = ?", (row,))

        self.database.write(work, key.session_id)
        self.database.clean()


@attrs.frozen
class _Blobs:
    """Implements ``BlobRows``."""

    database: SqliteDatabase

    def put(self, key: Key, row: int, blobs: Mapping[str, bytes], seq: int) -> None:
        def work(run: Run) -> None:
            _look(run, key, row)
            for name, body in blobs.items():
                run(_PUT_BLOB, (key.tenant, name, body))
                run(_USE, (row, name, seq))

        self.database.write(work, key.session_id)

    def find(self, key: Key, name: str) -> bytes | None:
        sql = "SELECT CAST(body AS BLOB) FROM blob WHERE tenant = ? AND name = ?"
        found = self.database.read(lambda run: run(sql, (key.tenant, name)), _NO_ROWS)
        return found[0][0] if found else None

    def names(self, row: int) -> Sequence[str]:
        sql = "SELECT CAST(name AS TEXT) FROM blob_use WHERE session = ?"
        return self.database.read(lambda run: [name for (name,) in run(sql, (row,))], [])

    def drop(self, key: Key, row: int, names: Collection[str], seq: int) -> None:
        def work(run: Run) -> None:
            _look(run, key, row)
            for name in names:
                run("DELETE FROM blob_use WHERE session = ? AND name = ? AND seq <= ?", (row, name, seq))
                run(_UNUSED, (key.tenant, name, key.tenant))

        self.database.write(work, key.session_id)
        self.database.clean()


@attrs.frozen
class _IndexFiles:
    """Implements ``IndexFiles`` with a file a session beside the database."""

    database: SqliteDatabase

    def path(self, row: int) -> Path:
        return Path(f"{self.database.path}.index", f"{row}.sqlite")

    def open(self, row: int | None, *, read_only: bool) -> "PageIndex":
        try:
            from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads sqlite3 and more, which few openings need)

            if row is None:
                return PageIndex(None)
            path = self.path(row)
            disk.refuse_links(str(path.parent.parent), str(path.parent))
            if read_only:
                return PageIndex(str(path), read_only=True)
            disk.make_directories(str(path.parent))
        except OSError as error:
            raise refusal.unavailable(error, "the directory of the indexes") from error
        # Within a transaction, as another process may be making the same file.
        return self.database.write(lambda _: PageIndex(str(path)))

    def remove(self, row: int) -> None:
        from memci.archive.catalogue import index_file  # noqa: PLC0415 (few need it)

        index_file.remove(str(self.path(row)))


class SqliteStore:
    """Implements ``memci.archive.stores.contract.Store`` in one SQLite file on a local file system.

    Many processes of one machine, and their threads, may use it at once; threads that append to different sessions at the same
    time share transactions.

    Args:
        path: The database; it is made with the first record, and a relative path is meant from here and now.
        durability: ``fsync``: what is acknowledged survives a loss of power (``synchronous = EXTRA``). ``flush``: it survives
            the end of the process; a loss of power may take the last commits, but leaves the database whole (``NORMAL``).
        io: The library, to count its calls or to make them fail.

    Attributes:
        durability: As given.
        io: As given; its counts tell what was done.
    """

    def __init__(self, path: "str | os.PathLike[str]", durability: str = "fsync", *, io: SqliteIo | None = None) -> None:
        self.durability = durability
        self.io = io or SqliteIo()
        self._database = SqliteDatabase(str(Path(path).absolute()), self.io, synced=durability == "fsync")
        self._indexes = _IndexFiles(self._database)
        self._tables = Tables(
            _Sessions(self._database),
            _Records(self._database),
            _Pages(self._database),
            _Snapshots(self._database),
            _Blobs(self._database),
            self._indexes,
        )
        self._opened: WeakSet[SqlSession] = WeakSet()

    @property
    def journal_mode(self) -> str:
        """``wal`` where the database was made by a library that is safe with it, else ``truncate``, a rollback journal."""
        return self._database.mode()

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> SqlSession:
        """Open what is stored of a session; nothing is read or written before it is asked for.

        Raises:
            InvalidIdError: The id or tenant is not text, is empty, or UTF-8 cannot encode it.
        """
        session = SqlSession(self._tables, tenant, session_id, durability=self.durability, read_only=read_only)
        self._opened.add(session)
        return session

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order. One query for all of them.

        Raises:
            InvalidIdError: See ``open``.
            UnavailableError: The database cannot be read.
        """
        tenant_name = file_name(check_identifier(tenant, "tenant"))
        for name, session_id in self._database.read(lambda run: run(_LIST, (tenant_name,)), _NO_ROWS):
            yield listed_id(name, session_id)

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none. Durable once it returns.

        Whoever has it open gets an ``UnavailableError`` from the next write.

        Raises:
            InvalidIdError: See ``open``.
            UnavailableError: Something is left; call again.
        """
        check_identifier(tenant, "tenant")
        check_identifier(session_id, "session id")
        key = Key(file_name(tenant), file_name(session_id), session_id)
        place = self._database.read(lambda run: _find(run, key), None, session_id)
        if place is not None:
            # The index first: once the row is gone nobody would know its name.
            self._indexes.remove(place.row)
            self._database.write(lambda run: _delete(run, key, place.row), session_id)
            self._indexes.remove(place.row)
        self._database.clean()

    def close(self) -> None:
        """Give back what the sessions that are still open hold, and the connection. May be called twice."""
        for session in list(self._opened):
            session.close()
        self._database.close()


def _find(run: Run, key: Key) -> Place | None:
    found = run(_FIND, (key.tenant, key.name))
    return Place(*found[0]) if found else None


def _look(run: Run, key: Key, row: int) -> Place:
    found = run(_LOOK, (row,))
    if not found:
        raise refusal.deleted(key.session_id)
    return Place(*found[0])


def _delete(run: Run, key: Key, row: int) -> None:
    names = run("SELECT CAST(name AS TEXT) FROM blob_use WHERE session = ?", (row,))
    run("DELETE FROM session WHERE id = ?", (row,))
    for (name,) in names:
        run(_UNUSED, (key.tenant, name, key.tenant))


def _begin(run: Run, key: Key) -> int:
    return int(run(_BEGIN, (key.tenant, key.name, key.session_id.encode()))[0][0])
