"""Connections to PostgreSQL: few for each process and URL, which all stores share, or those of a pool that the host has."""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from memci.archive.stores.sql.schema import Found, Statement, postgres_id
from memci.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    import psycopg

PLACE = "PostgreSQL"

# Seconds and, for the last, milliseconds: a peer that is gone without a word is noticed after a minute.
_DEFAULTS = (
    "application_name=memci connect_timeout=10 "
    "keepalives_idle=30 keepalives_interval=10 keepalives_count=3 tcp_user_timeout=60000"
)
# For the whole session of a connection, or for one transaction.
_SETTINGS = """
SELECT set_config('synchronous_commit',
    CASE WHEN %s THEN 'off' ELSE coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on') END, %s),
    set_config('statement_timeout', coalesce(nullif(current_setting('statement_timeout'), '0'), %s), %s),
    set_config('lock_timeout', coalesce(nullif(current_setting('lock_timeout'), '0'), %s), %s)
"""


class PostgresIo:
    """The server as the store uses it. Calls raise ``psycopg.Error``; a subclass can count them or make them fail."""

    wait_s = 30.0  # how long a call waits for a free connection of the pool
    idle_s = 60.0  # after which a connection that nobody needed is given back to the server
    lock_s = 10  # how long a statement may wait for a lock, where the server or the URL say nothing
    statement_s = 60  # and how long it may take

    def connect(self, url: str) -> "psycopg.Connection":
        """Open a connection on which every statement is a transaction, unless it is said otherwise."""
        import psycopg  # noqa: PLC0415 loads only when a store connects
        from psycopg.conninfo import conninfo_to_dict, make_conninfo  # noqa: PLC0415 as above

        try:
            place = make_conninfo(_DEFAULTS, **conninfo_to_dict(url))
        except psycopg.ProgrammingError:
            # The driver's text may quote the password.
            message = "the URL cannot be read: give postgresql://user:password@host:5432/database, percent-encoded where need be"
            raise ConfigError(message, path="store") from None
        return psycopg.connect(place, autocommit=True)

    def execute(self, connection: "psycopg.Connection", sql: str, values: Sequence[object] = ()) -> Found:
        """Send a statement, wait for its answer and return its rows."""
        return _rows(_cursor(connection).execute(sql, values or None))

    def execute_all(self, connection: "psycopg.Connection", statements: Sequence[Statement]) -> list[Found]:
        """Send statements as one transaction, wait for the answers and return the rows of each."""
        if len(statements) == 1:
            return [self.execute(connection, *statements[0])]
        try:
            with connection.pipeline():  # what is sent together is a transaction, without BEGIN and COMMIT
                cursors = [_cursor(connection).execute(sql, values or None) for sql, values in statements]
        finally:
            if connection.info.pipeline_status:  # it broke so that it cannot be left
                connection.close()
        return [_rows(cursor) for cursor in cursors]


def _cursor(connection: "psycopg.Connection") -> "psycopg.Cursor[tuple[Any, ...]]":
    from psycopg.rows import tuple_row  # noqa: PLC0415 (as above)

    return connection.cursor(binary=True, row_factory=tuple_row)  # a host's connection may have other rows


def _rows(cursor: "psycopg.Cursor[tuple[Any, ...]]") -> Found:
    return cursor.fetchall() if cursor.description else []


class HostPool(Protocol):
    """A pool of psycopg connections that the host has, such as ``psycopg_pool.ConnectionPool``."""

    def connection(self) -> Any:  # noqa: ANN401 (a context manager that lends a connection)
        """Lend a connection."""


@attrs.define(eq=False)
class _Numbers:
    """What a process knows of a database once it has connected."""

    database_id: str = ""
    writer: int = 0  # a number that no other process has, taken with the first token
    tokens: Iterator[int] = attrs.field(factory=count)  # counts those that were given out


class Connections:
    """Lends connections of one process to one database; a forked child has others.

    *settings* are sent with each transaction where they cannot be those of the connection: where it is the host's, or leads to a
    pooler, which may give each transaction to another connection of its own.
    """

    def __init__(self, io: PostgresIo, *, synced: bool) -> None:
        self.numbers = _Numbers()
        self._io = io
        self._synced = synced  # a commit survives a loss of power of the server; otherwise only the end of its processes
        self._is_shared = False  # by others who must not find our settings there

    def lend(self) -> Any:  # noqa: ANN401 (a context manager of a connection)
        """Lend a connection that is set up."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what nobody uses."""

    def run(self, connection: "psycopg.Connection", statements: Sequence[Statement]) -> list[Found]:
        """Run statements as one transaction on a connection that was lent."""
        if not self._is_shared:
            return self._io.execute_all(connection, statements)
        return self._io.execute_all(connection, [(_SETTINGS, self._settings(is_local=True)), *statements])[1:]

    def _settings(self, *, is_local: bool) -> Sequence[object]:
        return not self._synced, is_local, f"{self._io.statement_s}s", is_local, f"{self._io.lock_s}s", is_local

    def _is_pooled(self, connection: "psycopg.Connection") -> bool:
        """Return whether there is a pooler between; ``UnavailableError`` for a server that does not keep what is promised."""
        fsync, backend = self._io.execute(connection, "SELECT current_setting('fsync'), pg_backend_pid()")[0]
        if self._synced and fsync != "on":
            message = f"{PLACE}: the server runs with fsync = off: switch it on, or ask for the weaker durability flush"
            raise UnavailableError(message)
        return bool(backend != connection.info.backend_pid)  # it tells of a process that is not there

    def _look_at_tables(self, connection: "psycopg.Connection") -> None:
        """Make the tables with the first connection of the process."""
        self.numbers.database_id = self.numbers.database_id or postgres_id(partial(self._io.execute, connection))


class OwnConnections(Connections):
    """At most *size* of them, opened when they are needed; those that nobody needed for a while are closed."""

    def __init__(self, url: str, size: int, io: PostgresIo, *, synced: bool) -> None:
        super().__init__(io, synced=synced)
        self.users: set[int] = set()
        self._url = url  # it may hold a password, so it is shown nowhere
        self._size = size
        self._free = threading.Semaphore(size)  # how many may still be taken
        self._idle: deque[tuple[psycopg.Connection, float]] = deque()  # and since when, by the monotonic clock
        self._watched = threading.Lock()  # held while a thread watches those
        self._closing = threading.Event()  # wakes that thread

    @contextmanager
    def lend(self) -> "Iterator[psycopg.Connection]":
        """Lend a connection. One that was interrupted, or set up in vain, is not kept."""
        if not self._free.acquire(timeout=self._io.wait_s):
            busy = f"{PLACE}: all {self._size} connections of this process were busy for {self._io.wait_s:g} s"
            message = f"{busy}: do it again, or raise memci_pool in the URL"
            raise UnavailableError(message)
        import psycopg  # noqa: PLC0415 (as above)

        connection, is_ready, is_kept = None, False, False
        try:
            with suppress(IndexError):
                connection, _ = self._idle.pop()
            if connection is None:
                connection = self._io.connect(self._url)
                self._set_up(connection)
            is_ready = True
            yield connection
            is_kept = True
        except psycopg.Error:
            is_kept = is_ready and connection is not None and not connection.closed
            raise
        finally:
            if connection is not None and is_kept:
                self._idle.append((connection, time.monotonic()))
                self._watch()
            elif connection is not None:
                if connection.closed:
                    self.close()  # what broke one has most likely broken the others too
                connection.close()
            self._free.release()

    def _set_up(self, connection: "psycopg.Connection") -> None:
        if self._is_pooled(connection):
            self._is_shared, connection.prepare_threshold = True, None
        else:
            self._io.execute(connection, _SETTINGS, self._settings(is_local=False))
        self._look_at_tables(connection)

    def close(self) -> None:
        """Close those that nobody uses."""
        self._close_idle(0.0)
        self._closing.set()

    def _close_idle(self, idle_s: float) -> None:
        with suppress(IndexError):
            while time.monotonic() - self._idle[0][1] >= idle_s:
                self._idle.popleft()[0].close()

    def _watch(self) -> None:
        if self._watched.acquire(blocking=False):
            threading.Thread(target=self._give_back, name="memci-connections", daemon=True).start()

    def _give_back(self) -> None:
        """Close connections that nobody needs, until there are none."""
        while self._idle:
            self._closing.wait(self._io.idle_s / 2)
            self._closing.clear()
            self._close_idle(self._io.idle_s)
        self._watched.release()
        if self._idle:  # one came in between
            self._watch()


class HostConnections(Connections):
    """Those of the host's pool: they are given back as they were, and no setting of ours stays on them."""

    def __init__(self, pool: HostPool, io: PostgresIo, *, synced: bool) -> None:
        super().__init__(io, synced=synced)
        self._pool = pool
        self._is_shared = True

    @contextmanager
    def lend(self) -> "Iterator[psycopg.Connection]":
        """Lend a connection of the pool, on which every statement is a transaction."""
        with self._pool.connection() as connection:
            before, connection.autocommit = connection.autocommit, True
            try:
                if not self.numbers.database_id:
                    self._is_pooled(connection)
                    self._look_at_tables(connection)
                yield connection
            finally:
                if not connection.closed:
                    connection.autocommit = before
                elif callable(check := getattr(self._pool, "check", None)):
                    check()  # what broke one has most likely broken the others too


_SHARED: dict[tuple[int, str, int, bool], OwnConnections] = {}
"""Those of each process, by URL, number and promise; a forked child inherits what it never uses."""


class SharedConnections:
    """Those of this process for a URL, which all who name it alike share; closed with the last of these."""

    def __init__(self, url: str, size: int, *, synced: bool) -> None:
        self._key = url, size, synced

    def __call__(self) -> OwnConnections:
        """Return those of this process."""
        url, size, synced = self._key
        key = os.getpid(), url, size, synced
        found = _SHARED.get(key) or _SHARED.setdefault(key, OwnConnections(url, size, PostgresIo(), synced=synced))
        found.users.add(id(self))
        return found

    def close(self) -> None:
        """Use them no more, until they are asked for again."""
        found = _SHARED.get((os.getpid(), *self._key))
        if found is not None:
            found.users.discard(id(self))
            if not found.users:
                found.close()
