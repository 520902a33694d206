"""Sessions in a PostgreSQL database, for many workers on many machines.

The tables, whose names begin with ``memci_``, are in the schema that comes first in the search path. Each call is a transaction
of its own, in one round trip.
"""

from collections.abc import Sequence
from pathlib import Path

from memci.archive import refusal
from memci.archive.stores.sql.postgres_pool import PLACE, PostgresIo, PostgresPool
from memci.archive.stores.sql.postgres_url import split_options
from memci.archive.stores.sql.rows import BEGIN, FIND, Found, Key, Place, Statement, checked_head, place_of
from memci.archive.stores.sql.session import SqlStore
from memci.errors import UnavailableError

# What writes takes hold of the session's row, so that a deletion comes before or after it; no row means that it was deleted.
_HERE = "SELECT id FROM memci_session WHERE id = ? FOR KEY SHARE"
# The row of the session is locked by its update, so that appends to it come one after the other.
_APPEND = """
WITH moved AS (
    UPDATE memci_session SET head = ? WHERE id = ? AND head = ?
    AND (head = 0 OR EXISTS (SELECT FROM memci_record WHERE session = id AND seq = head)) RETURNING id
) INSERT INTO memci_record (session, seq, line, token)
SELECT moved.id, ? + number, line, ? FROM moved, unnest(?::bytea[]) WITH ORDINALITY AS new (line, number) RETURNING session
"""
_COMMIT = "SELECT token FROM memci_record WHERE session = ? AND seq = ?"


class _PostgresRows(PostgresPool):
    """Implements ``Rows``."""

    # Each putting changes the row of the blob, so that a sweep which began before leaves it alone: it compares the row as it was.
    put_blob = """
    INSERT INTO memci_blob AS blob (tenant, name, body, puts) VALUES (?, ?, ?, 1) ON CONFLICT (tenant, name) DO UPDATE
    SET puts = blob.puts + 1, body = CASE WHEN blob.body = excluded.body THEN blob.body ELSE excluded.body END
    """
    sweep = """
    DELETE FROM memci_blob AS blob USING memci_blob AS seen
    WHERE blob.tenant = ? AND seen.tenant = blob.tenant AND seen.name = blob.name AND seen.puts = blob.puts AND NOT EXISTS (
        SELECT FROM memci_blob_use AS used JOIN memci_session AS session ON session.id = used.session
        WHERE used.name = seen.name AND session.tenant = seen.tenant
    )
    """

    def change(self, key: Key, row: int | None, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        del removes  # the server does that in its own time
        if row is None:
            return self.run(statements, key.session_id) if statements else []
        here, *done = self.run([(_HERE, (row,)), *statements], key.session_id)
        if not here:
            raise refusal.deleted(key.session_id)
        return done

    def append(self, key: Key, row: int | None, expected: int, lines: Sequence[bytes]) -> int:
        """See ``Rows``. One round trip; where the connection was lost, what became of the commit is found out.

        A commit carries a token that no other has, so that it can be told from another writer's, whatever is in it; doing it
        again cannot double it, as its place in the journal is taken then.
        """
        if row is None:
            place = self._find(key) if expected else None
            if place is None and expected:
                raise refusal.conflict(expected, 0)
            begin = (key.tenant, key.name, key.session_id.encode())
            row = place.row if place else int(self.read(BEGIN, begin, key.session_id)[0][0])
        token = self.token()
        if self.read(_APPEND, (expected + len(lines), row, expected, expected, token, list(lines)), key.session_id):
            return row
        place = self._find(key)
        if place is None or place.row != row:
            raise refusal.deleted(key.session_id)
        if [(token,)] == self.read(_COMMIT, (row, expected + 1), key.session_id):
            return row
        head = checked_head(key, place)
        if head != expected:
            raise refusal.conflict(expected, head)
        message = f"{PLACE}: session {key.session_id!r} changed while it was written to: do it again"
        raise UnavailableError(message)

    def check(self) -> None:
        pass  # the server checks its pages itself

    def _find(self, key: Key) -> Place | None:
        return place_of(self.read(FIND, (key.tenant, key.name), key.session_id))


class PostgresStore(SqlStore):
    """Implements ``memci.archive.stores.contract.Store`` in a PostgreSQL database, 13 or newer.

    Many processes and machines, and threads, may use it at once; a thread that waits for the server has a connection of the pool.

    Args:
        url: ``postgresql://user:password@host:5432/database``, with libpq's parameters, and of memci's own ``memci_pool``, the
            most connections that a process opens, and ``memci_index``, a directory of this machine for the indexes of sessions;
            without it, an index lives in memory, and is built anew by every opening that asks for it.
        durability: ``fsync``: what is acknowledged survives a loss of power of the server. ``flush``: it survives the end of
            the server's processes; a loss of power may take the last commits, and nothing else (``synchronous_commit = off``).
        io: The server, to count its calls or to make them fail.

    Raises:
        ConfigError: A parameter of memci's own is not what it should be.
    """

    def __init__(self, url: str, durability: str = "fsync", *, io: PostgresIo | None = None) -> None:
        rest, size, index_dir = split_options(url)
        self.io = io or PostgresIo()
        self._pool = _PostgresRows(rest, size, self.io, synced=durability == "fsync")
        directory = Path(index_dir).absolute() if index_dir else None
        # Two databases may share a directory, and both have a row 1.
        super().__init__(self._pool, lambda: directory and directory / self._pool.database_id(), durability)
