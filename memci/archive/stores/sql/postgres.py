"""Sessions in a PostgreSQL database, for many workers on many machines.

The pool is our own, and small, because of what psycopg_pool does otherwise: it connects in threads of its own, keeps why it
cannot to its log, and lets whoever waits find out nothing but that time is over.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import Semaphore
from typing import TYPE_CHECKING

import attrs

from memci.archive import refusal
from memci.archive.disk import is_out_of_descriptors
from memci.archive.stores.sql.postgres_url import split_options
from memci.archive.stores.sql.schema import Found, Key, Statement, checked_head, place_of, postgres_id
from memci.archive.stores.sql.session import SqlStore
from memci.errors import ConfigError, CorruptError, StoreError, UnavailableError

if TYPE_CHECKING:
    import psycopg

_PLACE = "PostgreSQL"

# Seconds and, for the last, milliseconds: a peer that is gone without a word is noticed after a minute.
_DEFAULTS = (
    "application_name=memci connect_timeout=10 "
    "keepalives_idle=30 keepalives_interval=10 keepalives_count=3 tcp_user_timeout=60000"
)
_SETTINGS = """
SELECT current_setting('fsync'), set_config('synchronous_commit',
    CASE WHEN %s THEN 'off' ELSE coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on') END, false),
    set_config('statement_timeout', coalesce(nullif(current_setting('statement_timeout'), '0'), %s), false),
    set_config('lock_timeout', coalesce(nullif(current_setting('lock_timeout'), '0'), %s), false)
"""
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
    AND (head = 0 OR EXISTS (SELECT FROM memci_record WHERE session = id AND seq = head)) RETURNING id
) INSERT INTO memci_record (session, seq, line, token)
SELECT moved.id, ? + number, line, ? FROM moved, unnest(?::bytea[]) WITH ORDINALITY AS new (line, number) RETURNING session
"""


class _ConnectionLostError(UnavailableError):
    """Nobody knows yet whether the statement that was on its way was done."""


class PostgresIo:
    """The server as the store uses it. Calls raise ``psycopg.Error``; a subclass can count them or make them fail."""

    wait_s = 30.0  # how long a call waits for a free connection of the pool
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
        return _rows(connection.cursor(binary=True).execute(sql, values or None))

    def execute_all(self, connection: "psycopg.Connection", statements: Sequence[Statement]) -> list[Found]:
        """Send statements as one transaction, wait for the answers and return the rows of each."""
        if len(statements) == 1:
            return [self.execute(connection, *statements[0])]
        try:
            with connection.pipeline():  # what is sent together is a transaction, without BEGIN and COMMIT
                cursors = [connection.cursor(binary=True).execute(sql, values) for sql, values in statements]
        finally:
            if connection.info.pipeline_status:  # it broke so that it cannot be left
                connection.close()
        return [_rows(cursor) for cursor in cursors]


@attrs.define(eq=False)
class _Process:
    """What belongs to one process; a forked child begins with a new one, and never uses or closes what it inherited."""

    free: Semaphore  # connections that it may still take
    idle: "list[psycopg.Connection]" = attrs.field(factory=list)
    tokens: Iterator[int] = attrs.field(factory=count)  # counts those that were given out
    database_id: str = ""  # known once the tables were looked at
    writer: int = 0  # a number that no other process has, taken with the first token


class _Pool:
    """Implements ``Rows`` with at most *size* connections a process, opened when they are needed."""

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

    def __init__(self, url: str, size: int, io: PostgresIo, *, synced: bool) -> None:
        self._url = url  # it may hold a password, so it is shown nowhere
        self._size = size
        self._io = io
        self._synced = synced  # a commit survives a loss of power of the server; otherwise only the end of its processes
        self._processes: dict[int, _Process] = {}

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

    def append(self, key: Key, row: int, expected: int, lines: Sequence[bytes]) -> int:
        """Write records in one round trip; where the connection was lost, find out what became of the commit.

        Its token tells it from another writer's, whatever is in it. Doing it again cannot double it: its place is taken then.
        """
        if not row:
            found = self.read(*(key.find if expected else key.begin), key.session_id)
            if not found:
                raise refusal.conflict(expected, 0)
            row = int(found[0][0])
        token = self._token()
        if self.read(_APPEND, (expected + len(lines), row, expected, expected, token, list(lines)), key.session_id):
            return row
        place = place_of(self.read(*key.find, key.session_id))
        if place.row != row:
            raise refusal.deleted(key.session_id)
        if [(token,)] != self.read("SELECT token FROM memci_record WHERE session = ? AND seq = ?", (row, expected + 1)):
            raise refusal.conflict(expected, checked_head(key, place))
        return row

    def check(self) -> None:
        pass  # the server checks its pages itself

    def run(self, statements: Sequence[Statement], session: str) -> list[Found]:
        """Run statements that may run twice as one transaction, in one round trip unless the connection was lost."""
        spelled = [(sql.replace("{}", "memci_").replace("?", "%s"), values) for sql, values in statements]
        with suppress(_ConnectionLostError), self.connection(session) as connection:
            return self._io.execute_all(connection, spelled)
        with self.connection(session) as connection:
            return self._io.execute_all(connection, spelled)

    def database_id(self) -> str:
        with self.connection():  # the first one asks
            return self._process().database_id

    def close(self) -> None:
        idle = self._process().idle
        with suppress(IndexError):
            while True:
                idle.pop().close()

    @contextmanager
    def connection(self, session: str = "") -> "Iterator[psycopg.Connection]":
        """Lend a connection, and turn errors into memci's own. One that was interrupted, or set up in vain, is not kept."""
        try:
            import psycopg  # noqa: PLC0415 loads only when a store connects
        except ImportError as error:
            message = f"PostgreSQL needs the driver psycopg ({error}): install memci with its extra postgres"
            raise ConfigError(message, path="store") from error
        process = self._process()
        if not process.free.acquire(timeout=self._io.wait_s):
            busy = f"{_PLACE}: all {self._size} connections of this process were busy for {self._io.wait_s:g} s"
            message = f"{busy}: do it again, or raise memci_pool in the URL"
            raise UnavailableError(message)
        connection, is_ready, is_kept = None, False, False
        try:
            with suppress(IndexError):
                connection = process.idle.pop()
            if connection is None:
                connection = self._io.connect(self._url)
                self._prepare(process, connection)
            is_ready = True
            yield connection
            is_kept = True
        except psycopg.Error as error:
            is_lost = connection is not None and connection.closed
            is_kept = is_ready and not is_lost
            raise _meaning(error, session, is_lost=is_lost) from error
        except OSError as error:  # such as no descriptor to wait with: an answer may still be on its way
            raise refusal.unavailable(error, _PLACE) from error
        finally:
            if connection is not None and is_kept:
                process.idle.append(connection)
            elif connection is not None:
                if connection.closed:
                    self.close()  # what broke one has most likely broken the others too
                connection.close()
            process.free.release()

    def _process(self) -> _Process:
        pid = os.getpid()
        return self._processes.get(pid) or self._processes.setdefault(pid, _Process(Semaphore(self._size)))

    def _prepare(self, process: _Process, connection: "psycopg.Connection") -> None:
        """Set a new connection up, and the tables with the first one of the process."""
        run = partial(self._io.execute, connection)
        settings = run(_SETTINGS, (not self._synced, f"{self._io.statement_s}s", f"{self._io.lock_s}s"))
        if self._synced and settings[0][0] != "on":
            message = f"{_PLACE}: the server runs with fsync = off: switch it on, or ask for the weaker durability flush"
            raise UnavailableError(message)
        process.database_id = process.database_id or postgres_id(run)

    def _token(self) -> str:
        """Return a text that was never returned before, in no process. A round trip for the first."""
        process = self._process()
        process.writer = process.writer or int(self.read("SELECT nextval('memci_writer')")[0][0])
        return f"{process.writer}.{next(process.tokens)}"


def _rows(cursor: "psycopg.Cursor") -> Found:
    return cursor.fetchall() if cursor.description else []


def _meaning(error: "psycopg.Error", session: str, *, is_lost: bool) -> StoreError:
    """Return what an error of the driver means. Its text names hosts and users, and never a password."""
    text = (error.diag.message_primary or str(error) or type(error).__name__).strip()
    if is_lost:
        return _ConnectionLostError(f"{_PLACE}: the connection was lost ({text}): do it again")
    match error.sqlstate:
        case "23505" | "XX001" | "XX002":  # the first: a record is where the journal does not go yet
            return CorruptError(f"{text}: restore it from a backup", session="", place=_PLACE)
        case "23503":
            return refusal.deleted(session)
        case "55P03":
            return refusal.locked(f"{_PLACE}: {text}", session)
    other = refusal.MORE_DESCRIPTORS if is_out_of_descriptors() else "see to the server, then do it again"
    state = error.sqlstate or ""
    return UnavailableError(f"{_PLACE}: {text}: {_ADVICE.get(state) or _ADVICE.get(state[:2], other)}")


class PostgresStore(SqlStore):
    """Implements ``memci.archive.stores.contract.Store`` in a PostgreSQL database, 13 or newer; docs/stores.md says more of it.

    Many processes and machines, and threads, may use it at once; a thread that waits for the server has a connection of the pool.
    *io* counts calls. Raises ``ConfigError`` if a parameter of memci's own is wrong.
    """

    def __init__(self, url: str, durability: str = "fsync", *, io: PostgresIo | None = None) -> None:
        rest, size, index_dir = split_options(url)
        self.io = io or PostgresIo()
        self._pool = _Pool(rest, size, self.io, synced=durability == "fsync")
        directory = Path(index_dir).absolute() if index_dir else None
        # Two databases may share a directory, and both have a row 1.
        super().__init__(self._pool, lambda: directory and directory / self._pool.database_id(), durability)
