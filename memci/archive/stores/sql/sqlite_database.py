"""The connection to an SQLite database: opening, turns, and one transaction for all who wait."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import WeakSet

import attrs

from memci.archive import disk, refusal
from memci.archive.stores.sql import schema
from memci.archive.stores.sql.rows import Found, SyncFailedError
from memci.archive.stores.sql.schema import Run
from memci.errors import CorruptError, LockedError, MemciError, StoreError, UnavailableError

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

_CHECKED_BYTES = 1 << 26
"""A database of at most this size is looked at whole before a process writes to it, which takes a tenth of a second."""

_BYTES = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
_WAL_FIXED_BRANCHES = {(3, 44): 6, (3, 50): 7}


def is_wal_safe(version: Sequence[int]) -> bool:
    """Tell whether a library may use a write-ahead log that several connections write to.

    From 3.7.0 to 3.51.2 two of them that commit and checkpoint at once can damage the database, but for 3.44.6 and 3.50.7 and
    what follows them in their branches (https://sqlite.org/wal.html#walresetbug).
    """
    major, minor, patch = version[:3]
    return (major, minor, patch) >= (3, 51, 3) or patch >= _WAL_FIXED_BRANCHES.get((major, minor), patch + 1)


class SqliteIo:
    """The SQLite library as the store uses it. All calls raise ``sqlite3.Error``.

    One object may serve many stores and threads; the counts are then approximate. A subclass can make calls fail.

    Attributes:
        connections: Connections that were opened.
        statements: Statements that were run within transactions and beside them; each is a call into the library.
        transactions: Transactions that were committed; what each of them costs in syncs is a matter of the journal mode.
        wait_s: How long a call waits for other connections that write.
    """

    wait_s = 10.0

    def __init__(self) -> None:
        self.connections = 0
        self.statements = 0
        self.transactions = 0

    def version(self) -> tuple[int, ...]:
        """Return the version of the library."""
        import sqlite3  # noqa: PLC0415 loads only when a database is opened

        return sqlite3.sqlite_version_info

    def connect(self, uri: str) -> "sqlite3.Connection":
        """Open a database; transactions begin and end only where it is said."""
        import sqlite3  # noqa: PLC0415 as above

        self.connections += 1
        # The store's turns see to it that one thread at a time is here.
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=self.wait_s)

    def execute(self, connection: "sqlite3.Connection", sql: str, values: Sequence[object] = ()) -> Found:
        """Run one statement to its end, so that it holds no lock, and return its rows."""
        self.statements += 1
        return connection.execute(sql, values).fetchall()

    def commit(self, connection: "sqlite3.Connection") -> None:
        """Commit; what was written is on the disk when it returns, as far as ``synchronous`` promises."""
        self.transactions += 1
        connection.execute("COMMIT")


@attrs.define(eq=False)
class _Job(Generic[T]):
    """A piece of work that waits to be part of a transaction, of a session that errors name."""

    work: Callable[[Run], T]
    session: str
    value: T | None = None
    error: BaseException | None = None
    done: bool = False

    def result(self) -> T:
        if isinstance(self.error, LockedError):
            raise LockedError(str(self.error), session=self.session) from self.error
        if self.error is not None:
            raise self.error
        return cast("T", self.value)


class SqliteDatabase:
    """One connection a process, which its threads use in turns.

    Whoever writes puts the work in a queue. The thread whose turn it is commits all that is queued in one transaction, each
    piece after a savepoint of its own, so that writers of many sessions share what a commit costs, and none is harmed by
    another's conflict. A fork waits for the turn that is on, and finds the connection closed: a child must inherit none.

    If *synced*, a commit survives a loss of power; otherwise only the end of the process, though the database stays whole.
    """

    def __init__(self, path: str, io: SqliteIo, *, synced: bool) -> None:
        self.path = path
        self._name = Path(path).name
        self._io = io
        self._synced = synced
        self._begin()
        _databases.add(self)

    def _begin(self) -> None:
        self._turn = Condition()  # protects what follows; notified when the connection is free
        self._is_busy = False  # a thread has its turn
        self._waiting: list[_Job[Any]] = []
        self._connection: sqlite3.Connection | None = None
        self._mode = ""  # journal mode of the connection
        self._damage: str | None = None  # what was found when all was looked at, empty for nothing; None before

    def read(self, sql: str, values: Sequence[object] = (), session: str = "", *, whole: bool = False) -> Found:
        """Run a statement that only reads; it finds nothing where there is no database.

        A ``LockedError``, where others kept it locked for too long, names the *session*. If *whole*, all is looked at before.
        """
        self._take_turn(session, self._io.wait_s)
        try:
            with self._mapped(session):
                connection = self._opened(create=False)
                if connection is None:
                    return []
                if whole:
                    self._check_whole(connection)
                return self._run_on(connection)(sql, values)
        finally:
            self._end_turn()

    def write(self, work: Callable[[Run], T], session: str = "") -> T:
        """Run statements in a transaction, with the work of other threads, and return what *work* returns. Durable then.

        When *work* raises a ``MemciError``, nothing of it is written; after a ``SyncFailedError`` nobody knows what was.
        """
        job = _Job(work, session)
        with self._turn:
            self._waiting.append(job)
            try:
                self._turn.wait_for(lambda: job.done or not self._is_busy, self._io.wait_s)
                self._turn.wait_for(lambda: job.done or job in self._waiting)  # it may be in the transaction that is on
                if job.done:
                    return job.result()
                if self._is_busy:
                    raise self._locked(session)
                self._is_busy = True
                jobs, self._waiting = self._waiting, []
            finally:
                if job in self._waiting:
                    self._waiting.remove(job)
        outcome: StoreError | None = UnavailableError(f"{self._name}: the writing thread was interrupted: do it again")
        try:
            self._commit_all(jobs)
            outcome = None
        except StoreError as error:
            outcome = error
        finally:
            for other in jobs:
                other.error, other.done = outcome or other.error, True
            self._end_turn()
        return job.result()

    def check(self) -> None:
        """Raise ``CorruptError`` where tables or indexes are not whole. O(database), once in the life of a connection."""
        self.read("SELECT 1", whole=True)

    def clean(self) -> None:
        """Bring what the write-ahead log holds into the database and empty it, so that no removed bytes are left in it."""
        found = self.read("PRAGMA wal_checkpoint(TRUNCATE)")
        if found and found[0][0]:
            message = f"{self._name}: removed bytes are still in the write-ahead log, as others read there: do it again"
            raise UnavailableError(message)

    def close(self) -> None:
        """Give the connection of this process back; the next call opens another one. May be called twice."""
        self.before_fork()
        self._end_turn()

    def before_fork(self) -> None:
        """Wait for the turn that is on, let no other begin, and close the connection.

        The library knows of an open file which locks its process holds, and a child would inherit that knowledge without the
        locks (https://sqlite.org/howtocorrupt.html, "Carrying an open database connection across a fork").
        """
        self._take_turn()
        self._disconnect()

    def after_fork(self, *, in_child: bool) -> None:
        """Let turns begin again; in a child, where no other thread lives on, all is new."""
        if in_child:
            self._begin()
        else:
            self._end_turn()

    def _take_turn(self, session: str = "", wait_s: float | None = None) -> None:
        with self._turn:
            if not self._turn.wait_for(lambda: not self._is_busy, wait_s):
                raise self._locked(session)
            self._is_busy = True

    def _end_turn(self) -> None:
        with self._turn:
            self._is_busy = False
            self._turn.notify_all()

    def _run_on(self, connection: "sqlite3.Connection") -> Run:
        return lambda sql, values=(): self._io.execute(connection, sql.replace("{}", ""), values)

    def _commit_all(self, jobs: Sequence[_Job[Any]]) -> None:
        """Do the jobs in one transaction; what a job raises is its own error."""
        try:
            with self._mapped():
                connection = self._opened(create=True)
                assert connection is not None
                # What is written goes where a damaged page says that there is room: over what is stored there.
                if self._damage is not None or connection.execute(_BYTES).fetchone()[0] <= _CHECKED_BYTES:
                    self._check_whole(connection)
                try:
                    self._transact(connection, jobs)
                finally:
                    if connection.in_transaction:  # a full disk may have ended it already
                        connection.execute("ROLLBACK")
        except SyncFailedError:
            self._disconnect()  # what it holds in memory may not be what is on the disk
            raise

    def _transact(self, connection: "sqlite3.Connection", jobs: Sequence[_Job[Any]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        # Nobody changes the mode of a database that is in use but by hand, or with a library that this one is too old for.
        if self._mode != "wal" and _mode(connection) == "wal":
            raise self._unsafe()
        for job in jobs:
            connection.execute("SAVEPOINT job")
            try:
                job.value = job.work(self._run_on(connection))
            except MemciError as error:
                connection.execute("ROLLBACK TO job")
                job.error = error
            connection.execute("RELEASE job")
        if any(job.error is None for job in jobs):
            self._io.commit(connection)

    def _check_whole(self, connection: "sqlite3.Connection") -> None:
        if self._damage is None:
            self._damage = schema.sqlite_problem(connection, "1")
        if self._damage:
            raise self._damaged(self._damage)

    def _opened(self, *, create: bool) -> "sqlite3.Connection | None":
        """Return the connection, opened if need be; ``None`` where there is no database and none is to be made."""
        if self._connection is None:
            try:
                if create:
                    disk.make_directories(str(Path(self.path).parent))
                    disk.make_database(self.path, follow_link=True)  # as the store itself may be one
                disk.check_database(self.path, follow_link=True)
            except OSError as error:
                if isinstance(error, FileNotFoundError) and not create:
                    return None
                raise refusal.unavailable(error, Path(error.filename or self.path).name) from error
            connection = self._io.connect(f"{Path(self.path).as_uri()}?mode={'rwc' if create else 'rw'}")
            try:
                if self._prepare(connection, create=create):
                    self._connection, self._damage = connection, None
            finally:
                if self._connection is None:
                    connection.close()
        return self._connection

    def _prepare(self, connection: "sqlite3.Connection", *, create: bool) -> bool:
        """Set a new connection up and return whether there are tables."""
        # EXTRA syncs the directory too when a rollback journal comes or goes; with a write-ahead log it is FULL.
        connection.execute(f"PRAGMA synchronous = {'EXTRA' if self._synced else 'NORMAL'}")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: into the drive, as its plain sync is not
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        version = schema.sqlite_version(connection)
        if not version and not create:
            return False
        is_safe = is_wal_safe(self._io.version())
        if not version and is_safe:
            connection.execute("PRAGMA journal_mode = WAL")
        self._mode = _mode(connection)
        if self._mode != "wal" or not is_safe:
            # It stays in the mode that it was made in, whatever library comes later, unless that is not safe with it.
            self._mode = _mode(connection, "= TRUNCATE")
            if self._mode == "wal":
                raise self._unsafe()
        if version < len(schema.SQLITE):
            schema.migrate_sqlite(connection)
        # A session whose row cannot be found is so told from one that there is not. O(sessions).
        problem = schema.sqlite_problem(connection, "session")
        if problem:
            raise self._damaged(problem)
        return True

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _mapped(self, session: str = "") -> Iterator[None]:
        """Turn errors of the library into memci's own."""
        with refusal.loading("sqlite3"):
            import sqlite3  # noqa: PLC0415 loads only when a database is opened
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a wrong call
        except UnicodeDecodeError as error:
            raise self._damaged(str(error)) from error
        except sqlite3.Error as error:
            text = f"{self._name}: {error}"
            match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the low byte is the kind, the rest a refinement
                case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                    raise self._locked(session) from error
                case sqlite3.SQLITE_IOERR:
                    message = f"{text}: see to the disk, then open the session again"
                    raise SyncFailedError(message) from error
                case sqlite3.SQLITE_CANTOPEN if disk.is_out_of_descriptors():
                    advice = refusal.MORE_DESCRIPTORS
                case sqlite3.SQLITE_FULL:
                    advice = "make room, then do it again"
                case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                    advice = "change the rights of the file and its directory, or open read-only"
                case sqlite3.SQLITE_NOMEM | sqlite3.SQLITE_TOOBIG:
                    advice = "write less at once"
                case _:
                    raise self._damaged(str(error)) from error
            message = f"{text}: {advice}"
            raise UnavailableError(message) from error

    def _locked(self, session: str) -> LockedError:
        return refusal.locked(f"{self._name}: others have kept it locked for more than {self._io.wait_s:g} s", session)

    def _damaged(self, what: str) -> CorruptError:
        problem = f"the database is damaged ({what}): restore it from a backup, or save what sqlite3's .recover finds"
        return CorruptError(problem, session="", place=self._name)

    def _unsafe(self) -> UnavailableError:
        version = ".".join(map(str, self._io.version()))
        return UnavailableError(
            f"{self._name} has a write-ahead log, which SQLite {version} can damage while others use it: close it everywhere, "
            "or use one library everywhere, 3.51.3 or newer (sqlite.org/wal.html#walresetbug)"
        )


def _mode(connection: "sqlite3.Connection", change: str = "") -> str:
    return str(connection.execute(f"PRAGMA journal_mode {change}").fetchone()[0])


# What a fork has to know. The lock is held during a fork, and protects the list.
_databases: "WeakSet[SqliteDatabase]" = WeakSet()
_forking = Lock()
_paused: list[SqliteDatabase] = []


def _before_fork() -> None:
    _forking.acquire()
    for database in list(_databases):
        database.before_fork()
        _paused.append(database)


def _after_fork(*, in_child: bool) -> None:
    for database in _paused:
        database.after_fork(in_child=in_child)
    _paused.clear()
    _forking.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=lambda: _after_fork(in_child=False),
    after_in_child=lambda: _after_fork(in_child=True),
)
