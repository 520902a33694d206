"""The connections to a PostgreSQL server: a bounded pool, what a lost connection means, and errors as memci's own.

The pool is our own, and small, because of what psycopg_pool does otherwise: it connects in threads of its own, keeps why it
cannot to its log, and lets whoever waits find out nothing but that time is over.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from queue import Empty, LifoQueue
from typing import TYPE_CHECKING

import attrs

from memci.archive import refusal
from memci.archive.disk import is_out_of_descriptors
from memci.archive.stores.sql import schema
from memci.archive.stores.sql.rows import Found, Statement
from memci.errors import ConfigError, CorruptError, StoreError, UnavailableError

if TYPE_CHECKING:
    import psycopg

PLACE = "PostgreSQL"

_DEFAULTS = {
    "application_name": "memci",
    "connect_timeout": 10,  # seconds
    # A peer that is gone without a word is noticed after a minute.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_SETTINGS = """
SELECT current_setting('fsync'), set_config('synchronous_commit',
    CASE WHEN %s THEN 'off' ELSE coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on') END, false),
    set_config('statement_timeout', coalesce(nullif(current_setting('statement_timeout'), '0'), %s), false),
    set_config('lock_timeout', coalesce(nullif(current_setting('lock_timeout'), '0'), %s), false)
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


class _ConnectionLostError(UnavailableError):
    """The connection broke while a statement was on its way: nobody knows yet whether it was done."""


class PostgresIo:
    """The server as the store uses it. Calls raise ``psycopg.Error``.

    One object may serve many stores and threads; the counts are then approximate. A subclass can make calls fail.

    Attributes:
        connections: Connections that were opened.
        round_trips: Times that something was sent and answered; all but the first of a connection are a transaction of their own,
            unless they stand between BEGIN and COMMIT, which count too.
        wait_s: How long a call waits for a free connection of the pool.
        lock_s, statement_s: How long a statement may wait for a lock, and take, where the server or the URL say nothing.
    """

    wait_s = 30.0
    lock_s = 10
    statement_s = 60

    def __init__(self) -> None:
        self.connections = 0
        self.round_trips = 0

    def connect(self, url: str) -> "psycopg.Connection":
        """Open a connection on which every statement is a transaction, unless it is said otherwise."""
        import psycopg  # noqa: PLC0415 loads only when a store connects
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 as above

        try:
            known = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            # The driver's text may quote the password.
            message = "the URL cannot be read: give postgresql://user:password@host:5432/database, percent-encoded where need be"
            raise ConfigError(message, path="store") from None
        self.connections += 1
        return psycopg.connect(**{**_DEFAULTS, **known}, autocommit=True)  # type: ignore[arg-type] # the parameters are libpq's

    def execute(self, connection: "psycopg.Connection", sql: str, values: Sequence[object] = ()) -> Found:
        """Send a statement, wait for its answer and return its rows."""
        self.round_trips += 1
        return _rows(connection.cursor(binary=True).execute(sql, values or None))

    def execute_all(self, connection: "psycopg.Connection", statements: Sequence[Statement]) -> list[Found]:
        """Send statements as one transaction, wait for the answers and return the rows of each."""
        if len(statements) == 1:
            return [self.execute(connection, *statements[0])]
        self.round_trips += 1
        try:
            with connection.pipeline():  # what is sent together is a transaction, without BEGIN and COMMIT
                cursors = [connection.cursor(binary=True).execute(sql, values) for sql, values in statements]
        finally:
            if connection.info.pipeline_status:  # it broke so that it cannot be left
                connection.close()
        return [_rows(cursor) for cursor in cursors]


@attrs.define(eq=False)
class _Process:
    """What belongs to one process; a forked child begins with a new one."""

    slots: "LifoQueue[psycopg.Connection | None]" = attrs.field(factory=LifoQueue)  # those not in use; None: it is not open
    tokens: Iterator[int] = attrs.field(factory=count)  # counts those that were given out
    database_id: str = ""  # known once the tables were looked at
    writer: int = 0  # a number that no other process has, taken with the first token


class PostgresPool:
    """At most *size* connections a process, opened when they are needed.

    A connection that a fork has inherited is never used; the driver does not close it either. If *synced*, a commit survives a
    loss of power of the server; otherwise only the end of its processes.
    """

    def __init__(self, url: str, size: int, io: PostgresIo, *, synced: bool) -> None:
        self._url = url  # it may hold a password, so it is shown nowhere
        self._size = size
        self._io = io
        self._synced = synced
        self._processes: dict[int, _Process] = {}

    def read(self, sql: str, values: Sequence[object] = (), session: str = "") -> Found:
        """Run a statement that may run twice, and return its rows; see ``run``."""
        return self.run([(sql, values)], session)[0]

    def run(self, statements: Sequence[Statement], session: str) -> list[Found]:
        """Run statements that may run twice as one transaction, and return the rows of each.

        One round trip, unless the connection was lost. A ``LockedError``, where others kept rows locked, names the *session*.
        """
        spelled = [(sql.replace("{}", "memci_").replace("?", "%s"), values) for sql, values in statements]
        with suppress(_ConnectionLostError), self.connection(session) as connection:
            return self._io.execute_all(connection, spelled)
        with self.connection(session) as connection:
            return self._io.execute_all(connection, spelled)

    def database_id(self) -> str:
        """Return what tells this database from all others."""
        with self.connection():  # the first one asks
            return self._process().database_id

    def token(self) -> str:
        """Return a text that was never returned before, in no process. A round trip for the first."""
        process = self._process()
        process.writer = process.writer or int(self.read("SELECT nextval('memci_writer')")[0][0])
        return f"{process.writer}.{next(process.tokens)}"

    def close(self) -> None:
        """Close the connections that nobody uses; the next call opens one. May be called twice."""
        slots, idle = self._process().slots, []
        with suppress(Empty):
            while True:
                idle.append(slots.get_nowait())
        for connection in idle:
            if connection is not None:
                connection.close()
            slots.put(None)

    @contextmanager
    def connection(self, session: str = "") -> "Iterator[psycopg.Connection]":
        """Lend a connection, and turn errors into memci's own."""
        process = self._process()
        try:
            connection = process.slots.get(timeout=self._io.wait_s)
        except Empty:
            message = (
                f"{PLACE}: all {self._size} connections of this process were busy for {self._io.wait_s:g} s: "
                "do it again, or raise memci_pool in the URL"
            )
            raise UnavailableError(message) from None
        kept = None
        try:
            if connection is None:
                with self._mapped(None):
                    connection = self._io.connect(self._url)
                with self._mapped(connection):
                    self._prepare(process, connection)
            kept = connection
            with self._mapped(connection, session):
                yield connection
        except BaseException as error:  # one that was interrupted is not kept: an answer may still be on its way
            kept = kept if isinstance(error, StoreError) and kept and not kept.closed else None
            raise
        finally:
            process.slots.put(kept)
            if kept is None and connection is not None:
                if connection.closed:
                    self.close()  # what broke one has most likely broken the others too
                connection.close()

    def _process(self) -> _Process:
        pid = os.getpid()
        if pid not in self._processes:
            process = _Process()
            for _ in range(self._size):
                process.slots.put(None)
            self._processes.setdefault(pid, process)
        return self._processes[pid]

    def _prepare(self, process: _Process, connection: "psycopg.Connection") -> None:
        """Set a new connection up, and the tables with the first one of the process."""
        run = partial(self._io.execute, connection)
        settings = run(_SETTINGS, (not self._synced, f"{self._io.statement_s}s", f"{self._io.lock_s}s"))
        if self._synced and settings[0][0] != "on":
            message = f"{PLACE}: the server runs with fsync = off and keeps no promise: switch it on, or ask for durability flush"
            raise UnavailableError(message)
        process.database_id = process.database_id or schema.postgres_id(run)

    @contextmanager
    def _mapped(self, connection: "psycopg.Connection | None", session: str = "") -> Iterator[None]:
        """Turn errors of the driver into memci's own. Their texts name hosts and users, and never a password."""
        try:
            import psycopg  # noqa: PLC0415 loads only when a store connects
        except ImportError as error:
            message = f"PostgreSQL needs the driver psycopg ({error}): install memci with its extra postgres"
            raise ConfigError(message, path="store") from error
        try:
            yield
        except psycopg.Error as error:
            text = (error.diag.message_primary or str(error) or type(error).__name__).strip()
            reason = f"{PLACE}: {text}"
            if connection is not None and connection.closed:
                message = f"{PLACE}: the connection was lost ({text}): do it again"
                raise _ConnectionLostError(message) from error
            match error.sqlstate:
                case "23505" | "XX001" | "XX002":  # the first: a record is where the journal does not go yet
                    problem = f"{text}: restore it from a backup"
                    raise CorruptError(problem, session="", place=PLACE) from error
                case "23503":
                    raise refusal.deleted(session) from error
                case "55P03":
                    raise refusal.locked(reason, session) from error
            other = refusal.MORE_DESCRIPTORS if is_out_of_descriptors() else "see to the server, then do it again"
            message = f"{reason}: {_ADVICE.get(error.sqlstate or '', other)}"
            raise UnavailableError(message) from error
        except OSError as error:  # such as no descriptor to wait with: an answer may still be on its way
            if connection is not None:
                connection.close()
            raise refusal.unavailable(error, PLACE) from error


def _rows(cursor: "psycopg.Cursor") -> Found:
    return cursor.fetchall() if cursor.description else []
