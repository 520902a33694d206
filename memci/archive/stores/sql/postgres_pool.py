"""The connections to a PostgreSQL server: a bounded pool, what a lost connection means, and errors as memci's own."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition
from typing import TYPE_CHECKING, Any

import attrs

from memci.archive import refusal
from memci.archive.disk import is_out_of_descriptors
from memci.archive.stores.sql import postgres_schema
from memci.archive.stores.sql.postgres_io import PostgresIo
from memci.errors import CorruptError, StoreError, UnavailableError

if TYPE_CHECKING:
    import psycopg

PLACE = "PostgreSQL"

_SETTINGS = """
SELECT current_setting('fsync'),
    set_config('synchronous_commit', CASE
        WHEN %s THEN 'off'
        WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
        ELSE current_setting('synchronous_commit') END, false),
    set_config('statement_timeout', CASE
        WHEN current_setting('statement_timeout') = '0' THEN %s
        ELSE current_setting('statement_timeout') END, false),
    set_config('lock_timeout', CASE
        WHEN current_setting('lock_timeout') = '0' THEN %s
        ELSE current_setting('lock_timeout') END, false)
"""
# What to do, by SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_ADVICE = {
    "25006": "the server takes no writes: connect to the primary one",
    "40001": "others wrote at the same time: do it again",
    "40P01": "others wrote at the same time: do it again",
    "42501": "give the user the right, or have another one make the tables",
    "42703": "the tables are not those of memci: open the store again",
    "42P01": "the tables are not those of memci: open the store again",
    "53100": "make room, then do it again",
    "53200": "make room, then do it again",
    "53300": "close connections, lower memci_pool, or raise max_connections",
    "57014": "it took too long, or somebody cancelled it: do it again, or raise statement_timeout",
}
_DAMAGE = {"23505", "XX001", "XX002"}  # 23505: a record is where the journal does not go yet
_LOCKED = "55P03"
_IDENTITY = "SELECT version, database_id::text FROM memci_schema"


class ConnectionLostError(UnavailableError):
    """The connection broke while a statement was on its way: nobody knows yet whether it was done."""


@attrs.define(eq=False)
class _Process:
    """What belongs to one process; a forked child begins with a new one.

    Attributes:
        turn: Protects the other attributes; notified when a connection is free or gone.
        idle: Open connections that nobody uses, the one used last at the end.
        opened: Number of connections, those in use too.
        database_id: Known once the tables were looked at.
        writer: A number that no other process has, taken with the first token.
        tokens: Tokens that were given out.
    """

    turn: Condition = attrs.field(factory=Condition)
    idle: "list[psycopg.Connection]" = attrs.field(factory=list)
    opened: int = 0
    database_id: str = ""
    writer: int = 0
    tokens: int = 0


class PostgresPool:
    """At most *size* connections a process, opened when they are needed.

    A connection that a fork has inherited is never used; the driver does not close it either.

    Args:
        url: What libpq takes; it may hold a password, so it is shown nowhere.
        size: Most connections.
        io: The server.
        synced: A commit survives a loss of power of the server; otherwise only the end of its processes.
    """

    def __init__(self, url: str, size: int, io: PostgresIo, *, synced: bool) -> None:
        self._url = url
        self._size = size
        self._io = io
        self._synced = synced
        self._processes: dict[int, _Process] = {}

    def run(self, sql: str, values: Sequence[Any] = (), session: str = "") -> list[tuple[Any, ...]]:
        """Run a statement that may run twice, and return its rows. One round trip, unless the connection was lost.

        Raises:
            CorruptError: The server says that its data is damaged.
            LockedError: Others kept rows locked for too long; it names the *session*.
            UnavailableError: The server cannot be reached, or cannot do it now.
        """
        try:
            return self.run_once(sql, values, session)
        except ConnectionLostError:
            return self.run_once(sql, values, session)

    def run_once(self, sql: str, values: Sequence[Any] = (), session: str = "") -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows. One round trip.

        Raises:
            ConnectionLostError: The connection broke; it may or may not have been done.
            CorruptError: See ``run``, and where a row is there already.
            LockedError: See ``run``.
            UnavailableError: See ``run``.
        """
        process = self._process()
        with self._connection(process, session) as connection:
            return self._io.execute(connection, sql, values)

    def database_id(self) -> str:
        """Return what tells this database from all others."""
        process = self._process()
        if not process.database_id:
            with self._connection(process):
                pass
        return process.database_id

    def token(self) -> str:
        """Return a text that was never returned before, in no process. A round trip for the first."""
        process = self._process()
        with process.turn:
            writer = process.writer
        if not writer:
            writer = int(self.run("SELECT nextval('memci_writer')")[0][0])
        with process.turn:
            process.writer = process.writer or writer
            process.tokens += 1
            return f"{process.writer}.{process.tokens}"

    def close(self) -> None:
        """Close the connections that nobody uses; the next call opens one. May be called twice."""
        self._drop_idle(self._process())

    def _process(self) -> _Process:
        return self._processes.setdefault(os.getpid(), _Process())

    @contextmanager
    def _connection(self, process: _Process, session: str = "") -> "Iterator[psycopg.Connection]":
        """Lend a connection, and turn errors into memci's own."""
        connection = self._take(process)
        is_kept = False
        try:
            with self._mapped(connection, session):
                yield connection
            is_kept = True
        except StoreError:
            is_kept = not connection.closed
            raise
        finally:  # one that was interrupted is not kept: an answer may still be on its way
            self._give_back(process, connection, is_kept=is_kept)

    def _take(self, process: _Process) -> "psycopg.Connection":
        with process.turn:
            if not process.turn.wait_for(lambda: process.idle or process.opened < self._size, self._io.wait_s):
                message = (
                    f"{PLACE}: all {self._size} connections of this process were busy for {self._io.wait_s:g} s: "
                    "do it again, or raise memci_pool in the URL"
                )
                raise UnavailableError(message)
            if process.idle:
                return process.idle.pop()
            process.opened += 1
        connection = None
        try:
            with self._mapped(None):
                connection = self._io.connect(self._url)
            with self._mapped(connection):
                self._prepare(process, connection)
        except BaseException:
            self._give_back(process, connection, is_kept=False)
            raise
        return connection

    def _give_back(self, process: _Process, connection: "psycopg.Connection | None", *, is_kept: bool) -> None:
        with process.turn:
            if is_kept and connection is not None:
                process.idle.append(connection)
            else:
                process.opened -= 1
            process.turn.notify()
        if not is_kept and connection is not None:
            was_lost = connection.closed
            connection.close()
            if was_lost:
                self._drop_idle(process)  # what broke one has most likely broken those too

    def _drop_idle(self, process: _Process) -> None:
        with process.turn:
            idle, process.idle = process.idle, []
            process.opened -= len(idle)
            process.turn.notify_all()
        for connection in idle:
            connection.close()

    def _prepare(self, process: _Process, connection: "psycopg.Connection") -> None:
        """Set a new connection up, and the tables with the first one of the process."""

        def run(sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            return self._io.execute(connection, sql, values)

        settings = run(_SETTINGS, (not self._synced, f"{self._io.statement_s}s", f"{self._io.lock_s}s"))
        if self._synced and settings[0][0] != "on":
            message = f"{PLACE}: the server runs with fsync = off and keeps no promise: switch it on, or ask for durability flush"
            raise UnavailableError(message)
        if not process.database_id:
            found = run(_IDENTITY) if run("SELECT to_regclass('memci_schema')::text")[0][0] else []
            if not found or found[0][0] < len(postgres_schema.MIGRATIONS):
                postgres_schema.migrate(run)
                found = run(_IDENTITY)
            postgres_schema.check_version(found[0][0])
            process.database_id = found[0][1]

    @contextmanager
    def _mapped(self, connection: "psycopg.Connection | None", session: str = "") -> Iterator[None]:
        """Turn errors of the driver into memci's own. Their texts name hosts and users, and never a password."""
        try:
            import psycopg  # noqa: PLC0415 loads only when a store connects
        except ImportError:
            yield  # nothing is connected: connecting says what to install
            return
        try:
            yield
        except psycopg.Error as error:
            text = (error.diag.message_primary or str(error) or type(error).__name__).strip()
            if connection is not None and connection.closed:
                message = f"{PLACE}: the connection was lost ({text}): do it again"
                raise ConnectionLostError(message) from error
            if error.sqlstate in _DAMAGE:
                problem = f"{text}: restore it from a backup"
                raise CorruptError(problem, session="", place=PLACE) from error
            if error.sqlstate == _LOCKED:
                reason = f"{PLACE}: {text}"
                raise refusal.locked(reason, session) from error
            other = refusal.MORE_DESCRIPTORS if is_out_of_descriptors() else "see to the server, then do it again"
            message = f"{PLACE}: {text}: {_ADVICE.get(error.sqlstate or '', other)}"
            raise UnavailableError(message) from error
        except OSError as error:  # such as no descriptor to wait with: an answer may still be on its way
            if connection is not None:
                connection.close()
            raise refusal.unavailable(error, PLACE) from error
