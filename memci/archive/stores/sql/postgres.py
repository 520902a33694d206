"""Sessions in a PostgreSQL database, for many workers on many machines.

The pool is our own, and small, because of what psycopg_pool does otherwise: it connects in threads of its own, keeps why it
cannot to its log, and lets whoever waits find out nothing but that time is over. A host that has one can lend it.
"""

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memci.archive import refusal
from memci.archive.disk import is_out_of_descriptors
from memci.archive.stores.sql.index_blocks import CLEAR
from memci.archive.stores.sql.postgres_connections import (
    PLACE,
    Connections,
    HostConnections,
    HostPool,
    OwnConnections,
    PostgresIo,
    SharedConnections,
)
from memci.archive.stores.sql.postgres_url import split_options
from memci.archive.stores.sql.schema import Found, Key, Statement, checked_head, place_of
from memci.archive.stores.sql.session import SqlStore
from memci.errors import ConfigError, CorruptError, StoreError, UnavailableError

if TYPE_CHECKING:
    import psycopg

# What to do, by SQLSTATE or its class (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_ADVICE = {
    "25": "the server takes no writes: connect to the primary one",
    "40": "others wrote at the same time: do it again",
    "42": "the tables are not those of memci: open the store again",
    "42501": "give the user the right, or have another one make the tables",
    "53": "make room, then do it again",
    "53300": "close connections, lower memci_pool, or raise max_connections",
    "57014": "it took too long, or somebody cancelled it: do it again, or raise statement_timeout",
}
# What writes takes hold of the session's row, so that a deletion comes before or after it; no row means that it was deleted.
_HERE = "SELECT id FROM memci_session WHERE id = ? FOR KEY SHARE"
# The row of the session is locked by its update, so that appends to it come one after the other.
_APPEND = """
WITH moved AS (
    UPDATE memci_session SET head = ? WHERE id = ? AND head = ?
    AND (head = 0 OR EXISTS (SELECT FROM memci_record WHERE session = id AND seq = head AND ? IN ('', token))) RETURNING id
) INSERT INTO memci_record (session, seq, line, token)
SELECT moved.id, ? + number, line, ? FROM moved, unnest(?::bytea[]) WITH ORDINALITY AS new (line, number) RETURNING session
"""


class _ConnectionLostError(UnavailableError):
    """Nobody knows yet whether the statement that was on its way was done."""


class _Database:
    """Implements ``Rows`` with the connections of this process."""

    clear_index: Sequence[str] = CLEAR

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

    def __init__(self, connections: "_OfProcess | SharedConnections") -> None:
        self._connections = connections

    def read(self, sql: str, values: Sequence[object] = (), session: str = "") -> Found:
        return self.run([(sql, values)], session)[0]

    def change(self, key: Key, row: int, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        del removes  # the server does that in its own time
        if not row:
            return self.run(statements, key.session_id) if statements else []
        here, *done = self.run([(_HERE, (row,)), *statements], key.session_id)
        if not here:
            raise refusal.deleted(key.session_id)
        return done

    def append(self, key: Key, row: int, expected: int, lines: Sequence[bytes], before: str) -> tuple[int, str]:
        """Write records in one round trip; where the connection was lost, find out what became of the commit.

        Its token tells it from another writer's, whatever is in it. Doing it again cannot double it: its place is taken then. The
        token *before* is that of the commit it goes on from; another one there is that of somebody who wrote after the server
        lost that commit.
        """
        if not row:
            found = self.read(*(key.find if expected else key.begin), key.session_id)
            if not found:
                raise refusal.conflict(expected, 0)
            row = int(found[0][0])
        token = self._token()
        if self.read(_APPEND, (expected + len(lines), row, expected, before, expected, token, list(lines)), key.session_id):
            return row, token
        place = place_of(self.read(*key.find, key.session_id))
        if place.row != row:
            raise refusal.deleted(key.session_id)
        wanted = "SELECT token FROM memci_record WHERE session = ? AND seq = ?"
        if [(token,)] == self.read(wanted, (row, expected + 1)):
            return row, token
        if before and place.head >= expected and [(before,)] != self.read(wanted, (row, expected)):
            message = f"session {key.session_id!r}: the server lost what was committed, and others went on: it is loaded again"
            raise UnavailableError(message)
        raise refusal.conflict(expected, checked_head(key, place))

    def check(self) -> None:
        pass  # the server checks its pages itself

    def run(self, statements: Sequence[Statement], session: str) -> list[Found]:
        """Run statements that may run twice as one transaction, in one round trip unless the connection was lost."""
        spelled = [(sql.replace("{}", "memci_").replace("?", "%s"), values) for sql, values in statements]
        with suppress(_ConnectionLostError), self.connection(session) as (mine, connection):
            return mine.run(connection, spelled)
        with self.connection(session) as (mine, connection):
            return mine.run(connection, spelled)

    def database_id(self) -> str:
        with self.connection() as (mine, _):  # the first one asks
            return mine.numbers.database_id

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def connection(self, session: str = "") -> "Iterator[tuple[Connections, psycopg.Connection]]":
        """Lend a connection, and turn errors into memci's own."""
        try:
            import psycopg  # noqa: PLC0415 loads only when a store connects
        except ImportError as error:
            message = f"PostgreSQL needs the driver psycopg ({error}): install memci with its extra postgres"
            raise ConfigError(message, path="store") from error
        connection, mine = None, self._connections()
        try:
            with mine.lend() as connection:
                yield mine, connection
        except psycopg.Error as error:
            raise _meaning(error, session, is_lost=connection is not None and connection.closed) from error
        except OSError as error:  # such as no descriptor to wait with: an answer may still be on its way
            raise refusal.unavailable(error, PLACE) from error

    def _token(self) -> str:
        """Return a text that was never returned before, in no process. A round trip for the first."""
        numbers = self._connections().numbers
        numbers.writer = numbers.writer or int(self.read("SELECT nextval('memci_writer')")[0][0])
        return f"{numbers.writer}.{next(numbers.tokens)}"


class _OfProcess:
    """Connections of one store, of each process others."""

    def __init__(self, make: Callable[[], Connections]) -> None:
        self._make = make
        self._made: dict[int, Connections] = {}

    def __call__(self) -> Connections:
        pid = os.getpid()
        return self._made.get(pid) or self._made.setdefault(pid, self._make())

    def close(self) -> None:
        if (mine := self._made.get(os.getpid())) is not None:
            mine.close()


def _meaning(error: "psycopg.Error", session: str, *, is_lost: bool) -> StoreError:
    """Return what an error of the driver means. Its text names hosts and users, and never a password."""
    text = (error.diag.message_primary or str(error) or type(error).__name__).strip()
    if is_lost:
        return _ConnectionLostError(f"{PLACE}: the connection was lost ({text}): do it again")
    match error.sqlstate:
        case "23505" | "XX001" | "XX002":  # the first: a record is where the journal does not go yet
            return CorruptError(f"{text}: restore it from a backup", session="", place=PLACE)
        case "23503":
            return refusal.deleted(session)
        case "55P03":
            return refusal.locked(f"{PLACE}: {text}", session)
    other = refusal.MORE_DESCRIPTORS if is_out_of_descriptors() else "see to the server, then do it again"
    state = error.sqlstate or ""
    return UnavailableError(f"{PLACE}: {text}: {_ADVICE.get(state) or _ADVICE.get(state[:2], other)}")


class PostgresStore(SqlStore):
    """Implements ``memci.archive.stores.contract.Store`` in a PostgreSQL database, 13 or newer; docs/stores.md says more of it.

    Many processes and machines, and threads, may use it at once; a thread that waits for the server has a connection of the pool.
    Stores of one process with the same URL share their connections. *pool* is one of the host's, and takes the place of the URL's
    address; *io* counts calls, with connections of its own. Raises ``ConfigError`` if a parameter of memci's own is wrong.
    """

    def __init__(
        self, url: str, durability: str = "fsync", *, pool: HostPool | None = None, io: PostgresIo | None = None
    ) -> None:
        rest, size, index_dir, index_bytes = split_options(url)
        synced = durability == "fsync"
        if pool is not None and (not hasattr(pool, "connection") or inspect.iscoroutinefunction(getattr(pool, "getconn", None))):
            message = (
                f"a {type(pool).__name__} lends no connections: give a psycopg_pool.ConnectionPool, or one with connection()"
            )
            raise ConfigError(message, path="pool")
        self.io = io or PostgresIo()
        if pool is not None:
            lent = pool
            connections: _OfProcess | SharedConnections = _OfProcess(lambda: HostConnections(lent, self.io, synced=synced))
        elif io is not None:
            connections = _OfProcess(lambda: OwnConnections(rest, size, self.io, synced=synced))
        else:
            connections = SharedConnections(rest, size, synced=synced)
        self._database = _Database(connections)
        directory = Path(index_dir).absolute() if index_dir else None
        # Two databases may share a directory, and both have a row 1.
        super().__init__(
            self._database,
            lambda: directory and directory / self._database.database_id(),
            durability,
            index_bytes=index_bytes,
            keeps_indexes=not index_dir,
        )
