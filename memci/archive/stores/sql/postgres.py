"""Sessions in a PostgreSQL database, for many workers on many machines.

The tables are ``memci_session``, ``memci_record``, ``memci_page``, ``memci_snapshot``, ``memci_blob``, ``memci_blob_use`` and
``memci_schema``, in the schema that comes first in the search path. Each statement below is a transaction of its own, so that a
call costs one round trip.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import attrs

from memci.archive import disk, refusal
from memci.archive.stores.names import check_identifier, file_name
from memci.archive.stores.record_codec import redacted_meanwhile
from memci.archive.stores.sql.postgres_blobs import HERE, PostgresBlobs, check_there
from memci.archive.stores.sql.postgres_io import PostgresIo
from memci.archive.stores.sql.postgres_pool import PLACE, ConnectionLostError, PostgresPool
from memci.archive.stores.sql.postgres_url import pool_size, split_options
from memci.archive.stores.sql.rows import BATCH_BYTES, BATCH_RECORDS, Key, Place, Tables, checked_head, listed_id
from memci.archive.stores.sql.session import SqlSession
from memci.archive.stores.thinning import superfluous
from memci.errors import UnavailableError

if TYPE_CHECKING:
    import os

    from memci.archive.catalogue.page_index import PageIndex

POOL = 4
"""Connections that a process opens at most, where nothing is said."""

_FIND = """
SELECT id, head, coalesce((SELECT max(seq) FROM memci_record WHERE session = id), 0)
FROM memci_session WHERE tenant = %s AND name = %s
"""
_BEGIN = """
INSERT INTO memci_session (tenant, name, session_id, head) VALUES (%s, %s, %s, 0)
ON CONFLICT (tenant, name) DO UPDATE SET head = memci_session.head RETURNING id
"""
# The row of the session is locked by its update, so that appends to it come one after the other.
_APPEND = """
WITH moved AS (
    UPDATE memci_session SET head = %s WHERE id = %s AND head = %s
    AND (head = 0 OR EXISTS (SELECT FROM memci_record WHERE session = id AND seq = head)) RETURNING id
) INSERT INTO memci_record (session, seq, line, token)
SELECT moved.id, %s + number, line, %s FROM moved, unnest(%s::bytea[]) WITH ORDINALITY AS new (line, number) RETURNING session
"""
_APPEND_FIRST = """
WITH made AS (
    INSERT INTO memci_session (tenant, name, session_id, head) VALUES (%s, %s, %s, %s)
    ON CONFLICT (tenant, name) DO NOTHING RETURNING id
) INSERT INTO memci_record (session, seq, line, token)
SELECT made.id, number, line, %s FROM made, unnest(%s::bytea[]) WITH ORDINALITY AS new (line, number) RETURNING session
"""
_READ = """
SELECT record.seq, record.line FROM memci_record AS record JOIN (
    SELECT seq, sum(length(line)) OVER (ORDER BY seq) - length(line) AS before FROM memci_record
    WHERE session = %s AND seq > %s AND seq <= %s
) AS sized ON record.seq = sized.seq
WHERE record.session = %s AND sized.before < %s ORDER BY record.seq
"""
_REPLACE = f"""{HERE}
UPDATE memci_record AS record SET line = new.line
FROM here, unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS new (seq, former, line)
WHERE record.session = here.id AND record.seq = new.seq AND record.line IN (new.former, new.line) RETURNING record.seq
"""  # noqa: S608 (fixed words)
_PUT_PAGES = f"""{HERE}
INSERT INTO memci_page (session, name, body)
SELECT here.id, new.name, new.body FROM here, unnest(%s::text[], %s::bytea[]) AS new (name, body)
ON CONFLICT (session, name) DO UPDATE SET body = excluded.body RETURNING session
"""  # noqa: S608 (fixed words)
_REMOVE_PAGES = f"""{HERE},
gone AS (DELETE FROM memci_page USING here WHERE session = here.id AND name = ANY (%s::text[]))
SELECT id FROM here
"""  # noqa: S608 (fixed words)
_PUT_SNAPSHOT = f"""{HERE},
put AS (
    INSERT INTO memci_snapshot (session, seq, line) SELECT id, %s, %s FROM here
    ON CONFLICT (session, seq) DO UPDATE SET line = excluded.line
) SELECT here.id, older.seq FROM here LEFT JOIN memci_snapshot AS older ON older.session = here.id
"""  # noqa: S608 (fixed words)
_CLEAR_SNAPSHOTS = f"""{HERE},
gone AS (DELETE FROM memci_snapshot USING here WHERE session = here.id)
SELECT id FROM here
"""  # noqa: S608 (fixed words)
_DELETE = """
WITH gone AS (DELETE FROM memci_session WHERE tenant = %s AND name = %s RETURNING id)
SELECT id, EXISTS (SELECT FROM memci_blob_use WHERE session = id) FROM gone
"""


@attrs.frozen
class _Sessions:
    """Implements ``SessionRows``."""

    pool: PostgresPool

    def find(self, key: Key) -> Place | None:
        found = self.pool.run(_FIND, (key.tenant, key.name), key.session_id)
        return Place(*found[0]) if found else None

    def begin(self, key: Key) -> int:
        return int(self.pool.run(_BEGIN, (key.tenant, key.name, key.session_id.encode()), key.session_id)[0][0])

    def check(self) -> None:
        pass  # the server checks its pages itself


@attrs.frozen
class _Records:
    """Implements ``RecordRows``."""

    pool: PostgresPool
    sessions: _Sessions

    def append(self, key: Key, row: int | None, expected: int, lines: Sequence[bytes]) -> int:
        """See ``RecordRows``. One round trip; where the connection was lost, what became of the commit is found out.

        A commit carries a token that no other has, so that it can be told from another writer's, whatever is in it; doing it
        again cannot double it, as its place in the journal is taken then.
        """
        token = self.pool.token()
        was_lost = False
        try:
            found = self._try(key, row, expected, lines, token)
        except ConnectionLostError:
            was_lost = True
            found = self._try(key, row, expected, lines, token)
        if found is not None:
            return found
        place = self.sessions.find(key)
        if row is not None and (place is None or place.row != row):
            raise refusal.deleted(key.session_id)
        if place is not None and was_lost and self._token(place.row, expected + 1) == token:
            return place.row
        head = 0 if place is None else checked_head(key, place)
        if head != expected:
            raise refusal.conflict(expected, head)
        if row is None and place is not None:  # it began without a record
            return self.append(key, place.row, expected, lines)
        message = f"{PLACE}: session {key.session_id!r} changed while it was written to: do it again"
        raise UnavailableError(message)

    def read(self, key: Key, row: int, after: int, until: int) -> Sequence[tuple[int, bytes]]:
        values = (row, after, min(until, after + BATCH_RECORDS), row, BATCH_BYTES)
        return [(seq, line) for seq, line in self.pool.run(_READ, values, key.session_id)]

    def pick(self, key: Key, row: int, seqs: Collection[int]) -> Mapping[int, bytes]:
        sql = "SELECT seq, line FROM memci_record WHERE session = %s AND seq = ANY (%s::bigint[])"
        return dict(self.pool.run(sql, (row, list(seqs)), key.session_id))

    def replace(self, key: Key, row: int, lines: Mapping[int, tuple[bytes, bytes]]) -> None:
        former, new = zip(*lines.values(), strict=True)
        done = {seq for (seq,) in self.pool.run(_REPLACE, (row, list(lines), list(former), list(new)), key.session_id)}
        if len(done) < len(lines):
            check_there(key, self.pool.run("SELECT id FROM memci_session WHERE id = %s", (row,)))
            raise redacted_meanwhile(min(lines.keys() - done))

    def _try(self, key: Key, row: int | None, expected: int, lines: Sequence[bytes], token: str) -> int | None:
        """Return the session's row if the lines were written."""
        head = expected + len(lines)
        if row is not None:
            done = self.pool.run_once(_APPEND, (head, row, expected, expected, token, list(lines)), key.session_id)
        elif expected:
            return None
        else:
            values = (key.tenant, key.name, key.session_id.encode(), head, token, list(lines))
            done = self.pool.run_once(_APPEND_FIRST, values, key.session_id)
        return int(done[0][0]) if done else None

    def _token(self, row: int, seq: int) -> str | None:
        found = self.pool.run("SELECT token FROM memci_record WHERE session = %s AND seq = %s", (row, seq))
        return str(found[0][0]) if found else None


@attrs.frozen
class _Pages:
    """Implements ``PageRows``."""

    pool: PostgresPool

    def put(self, key: Key, row: int, pages: Mapping[str, bytes]) -> None:
        check_there(key, self.pool.run(_PUT_PAGES, (row, list(pages), list(pages.values())), key.session_id))

    def find(self, key: Key, row: int, name: str) -> bytes | None:
        found = self.pool.run("SELECT body FROM memci_page WHERE session = %s AND name = %s", (row, name), key.session_id)
        return found[0][0] if found else None

    def names(self, key: Key, row: int) -> Sequence[str]:
        return [name for (name,) in self.pool.run("SELECT name FROM memci_page WHERE session = %s", (row,), key.session_id)]

    def remove(self, key: Key, row: int, names: Collection[str]) -> None:
        check_there(key, self.pool.run(_REMOVE_PAGES, (row, list(names)), key.session_id))


@attrs.frozen
class _Snapshots:
    """Implements ``SnapshotRows``."""

    pool: PostgresPool

    def put(self, key: Key, row: int, seq: int, line: bytes) -> None:
        found = self.pool.run(_PUT_SNAPSHOT, (row, seq, line), key.session_id)
        check_there(key, found)
        old = superfluous([seq, *(older for _, older in found if older is not None)])
        if old:
            self.pool.run(
                "DELETE FROM memci_snapshot WHERE session = %s AND seq = ANY (%s::bigint[])", (row, old), key.session_id
            )

    def newest(self, key: Key, row: int, at_most: int | None) -> tuple[int, bytes] | None:
        sql = """SELECT seq, line FROM memci_snapshot WHERE session = %s AND seq <= coalesce(%s::bigint, seq)
            ORDER BY seq DESC LIMIT 1"""
        found = self.pool.run(sql, (row, at_most), key.session_id)
        return (found[0][0], found[0][1]) if found else None

    def clear(self, key: Key, row: int) -> None:
        check_there(key, self.pool.run(_CLEAR_SNAPSHOTS, (row,), key.session_id))


@attrs.frozen
class _IndexFiles:
    """Implements ``IndexFiles`` with files of this machine, or in memory where no directory was given."""

    pool: PostgresPool
    directory: Path | None

    def open(self, row: int | None, *, read_only: bool) -> "PageIndex":
        path = None if row is None else self._path(row)
        try:
            from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads sqlite3, which few openings need)

            if path is None or read_only:
                return PageIndex(None if path is None else str(path), read_only=read_only and path is not None)
            disk.refuse_links(str(self.directory), str(path.parent))
            with disk.locked(str(path.parent)):
                return PageIndex(str(path))
        except OSError as error:
            raise refusal.unavailable(error, "the directory of the indexes") from error

    def remove(self, row: int) -> None:
        from memci.archive.catalogue import index_file  # noqa: PLC0415 (few need it)

        path = self._path(row)
        if path is not None:
            index_file.remove(str(path))

    def _path(self, row: int) -> Path | None:
        # Two databases may share a directory, and both have a row 1.
        return self.directory and self.directory / self.pool.database_id() / f"{row}.sqlite"


class PostgresStore:
    """Implements ``memci.archive.stores.contract.Store`` in a PostgreSQL database, 13 or newer.

    Many processes and machines, and threads, may use it at once; a thread that waits for the server has a connection of the pool.

    Args:
        url: ``postgresql://user:password@host:5432/database``, with libpq's parameters, and of memci's own ``memci_pool``, the
            most connections that a process opens, and ``memci_index``, the same as *index_dir*.
        durability: ``fsync``: what is acknowledged survives a loss of power of the server. ``flush``: it survives the end of
            the server's processes; a loss of power may take the last commits, and nothing else (``synchronous_commit = off``).
        index_dir: Directory of this machine for the indexes of sessions; without it, an index lives in memory, and is built anew
            by every opening that asks for it.
        io: The server, to count its calls or to make them fail.

    Attributes:
        durability: As given.
        io: As given; its counts tell what was done.

    Raises:
        ConfigError: A parameter of memci's own is not what it should be.
    """

    def __init__(
        self,
        url: str,
        durability: str = "fsync",
        *,
        index_dir: "str | os.PathLike[str] | None" = None,
        io: PostgresIo | None = None,
    ) -> None:
        rest, options = split_options(url)
        directory = index_dir or options.get("memci_index")
        self.durability = durability
        self.io = io or PostgresIo()
        self._pool = PostgresPool(rest, pool_size(options.get("memci_pool", str(POOL))), self.io, synced=durability == "fsync")
        self._sessions = _Sessions(self._pool)
        self._indexes = _IndexFiles(self._pool, Path(directory).absolute() if directory else None)
        self._blobs = PostgresBlobs(self._pool)
        self._tables = Tables(
            self._sessions,
            _Records(self._pool, self._sessions),
            _Pages(self._pool),
            _Snapshots(self._pool),
            self._blobs,
            self._indexes,
        )
        self._opened: WeakSet[SqlSession] = WeakSet()

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> SqlSession:
        """Open what is stored of a session; nothing is read or written before it is asked for.

        Raises:
            InvalidIdError: The id or tenant is not text, is empty, or UTF-8 cannot encode it.
        """
        session = SqlSession(self._tables, tenant, session_id, durability=self.durability, read_only=read_only)
        self._opened.add(session)
        return session

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order. One round trip for all of them.

        Raises:
            InvalidIdError: See ``open``.
            UnavailableError: The server cannot be reached.
        """
        tenant_name = file_name(check_identifier(tenant, "tenant"))
        sql = "SELECT name, session_id FROM memci_session WHERE tenant = %s AND head > 0"
        for name, session_id in self._pool.run(sql, (tenant_name,)):
            yield listed_id(name, session_id)

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none. Durable once it returns.

        One round trip, and another one for a session that refers to blobs.

        Whoever has it open gets an ``UnavailableError`` from the next write. Of the indexes, that of this machine is removed.

        Raises:
            InvalidIdError: See ``open``.
            UnavailableError: It is not known to be gone; call again.
        """
        check_identifier(session_id, "session id")
        values = (file_name(check_identifier(tenant, "tenant")), file_name(session_id))
        for row, has_blobs in self._pool.run(_DELETE, values, session_id):
            self._indexes.remove(row)
            if has_blobs:
                self._blobs.sweep(values[0])

    def close(self) -> None:
        """Give back what the sessions that are still open hold, and the connections. May be called twice."""
        for session in list(self._opened):
            session.close()
        self._pool.close()
