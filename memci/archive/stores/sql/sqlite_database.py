"""The connection to an SQLite database: opening, turns, and one transaction for all who wait."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import WeakSet

import attrs

from memci.archive import disk, refusal
from memci.archive.stores.sql import sqlite_schema
from memci.archive.stores.sql.rows import SyncFailedError
from memci.archive.stores.sql.sqlite_errors import damaged, locked, mapped_errors
from memci.archive.stores.sql.sqlite_io import SqliteIo, is_wal_safe
from memci.errors import CorruptError, LockedError, MemciError, StoreError, UnavailableError

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
Run = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement with its values and returns its rows."""

_CHECKED_BYTES = 1 << 26
"""A database of at most this size is looked at whole before a process writes to it, which takes a tenth of a second."""


@attrs.define(eq=False)
class _Job(Generic[T]):
    """A piece of work that waits to be part of a transaction, of a session that errors name."""

    work: Callable[[Run], T]
    session: str
    value: T | None = None
    error: BaseException | None = None
    done: bool = False

    def settle(self, error: BaseException | None = None) -> None:
        if not self.done:
            self.error = error
            self.done = True

    def result(self) -> T:
        if isinstance(self.error, LockedError):
            raise LockedError(str(self.error), session=self.session) from self.error
        if self.error is not None:
            raise self.error
        return cast("T", self.value)


@attrs.define(eq=False)
class _Process:
    """The turns of one process; a forked child begins with a new one.

    Attributes:
        turn: Protects the other attributes; notified when the connection is free.
        is_busy: A thread has its turn with the connection.
        waiting: Work for the next transaction.
        connection: Open once it was needed.
        mode: The journal mode of the connection.
        damage: What was found when the whole database was looked at, empty for nothing; ``None`` before.
    """

    turn: Condition = attrs.field(factory=Condition)
    is_busy: bool = False
    waiting: list[_Job[Any]] = attrs.field(factory=list)
    connection: "sqlite3.Connection | None" = None
    mode: str = ""
    damage: str | None = None


class SqliteDatabase:
    """One connection a process, which its threads use in turns.

    Whoever writes puts the work in a queue. The thread whose turn it is commits all that is queued in one transaction, each
    piece behind a savepoint of its own, so that writers of many sessions share what a commit costs, and none is harmed by
    another's conflict. A fork waits for the turn that is on, and finds the connection closed: a child must inherit none.

    Args:
        path: The file; its directory is made with it.
        synced: A commit survives a loss of power; otherwise only the end of the process, though the database stays whole.
        io: The library.
    """

    def __init__(self, path: str, io: SqliteIo, *, synced: bool) -> None:
        self.path = path
        self._io = io
        self._synced = synced
        self._process = _Process()
        _databases.add(self)

    def mode(self) -> str:
        """Return the journal mode, ``wal`` or ``truncate``; of a database that is not there yet, the one it would get."""
        found = self.read(lambda _: self._process.mode, "")
        return found or ("wal" if is_wal_safe(self._io.version()) else "truncate")

    def read(self, work: Callable[[Run], T], absent: T, session: str = "") -> T:
        """Run statements that only read, and return what *work* returns, or *absent* where there is no database.

        Raises:
            CorruptError: The database is damaged.
            LockedError: Others kept it locked for too long; it names the *session*.
            UnavailableError: It cannot be read now.
        """
        process = self._process
        self._begin_turn(process, session, self._io.wait_s)
        try:
            with self._mapped(session):
                connection = self._connection(process, create=False)
                return absent if connection is None else work(self._run(connection))
        finally:
            self._end_turn(process)

    def write(self, work: Callable[[Run], T], session: str = "") -> T:
        """Run statements in a transaction, with the work of other threads, and return what *work* returns. Durable then.

        When *work* raises a ``MemciError`` or ``ValueError``, nothing of it is written.

        Raises:
            CorruptError: The database is damaged.
            LockedError: Others kept it locked for too long; it names the *session*.
            SyncFailedError: Nobody knows what is on the disk.
            UnavailableError: It cannot be written now.
        """
        process = self._process
        job = _Job(work, session)
        with process.turn:
            process.waiting.append(job)
            try:
                is_free = process.turn.wait_for(lambda: job.done or not process.is_busy, self._io.wait_s)
                if not is_free and job not in process.waiting:  # somebody commits it
                    is_free = process.turn.wait_for(lambda: job.done)
            except BaseException:
                if job in process.waiting:
                    process.waiting.remove(job)
                raise
            if not is_free:
                process.waiting.remove(job)
                raise self._locked(session)
            if job.done:
                return job.result()
            process.is_busy = True
            jobs, process.waiting = process.waiting, []
        try:
            self._commit_all(process, jobs)
        finally:
            for other in jobs:  # nothing is left to settle but after an interruption
                other.settle(UnavailableError(f"{self._name()}: the writing thread was interrupted: do it again"))
            self._end_turn(process)
        return job.result()

    def check(self) -> None:
        """Look whether tables and indexes are whole, once in the life of a connection. O(database).

        Raises:
            CorruptError: They are not.
        """

        def look(_: Run) -> None:
            assert self._process.connection is not None
            self._check_whole(self._process, self._process.connection)

        self.read(look, None)

    def clean(self) -> None:
        """Bring what the write-ahead log holds into the database and empty it, so that no removed bytes are left in it.

        Raises:
            UnavailableError: Others kept reading an older state; call again.
        """

        def checkpoint(run: Run) -> bool:
            return self._process.mode == "wal" and bool(run("PRAGMA wal_checkpoint(TRUNCATE)")[0][0])

        if self.read(checkpoint, absent=False):
            message = f"{self._name()}: removed bytes are still in the write-ahead log, as others read there: do it again"
            raise UnavailableError(message)

    def close(self) -> None:
        """Give the connection of this process back; the next call opens another one. May be called twice."""
        process = self._process
        self._begin_turn(process)
        try:
            self._disconnect(process)
        finally:
            self._end_turn(process)

    def before_fork(self) -> None:
        """Wait for the turn that is on, let no other begin, and close the connection.

        The library knows of an open file which locks its process holds, and a child would inherit that knowledge without the
        locks (https://sqlite.org/howtocorrupt.html, "Carrying an open database connection across a fork").
        """
        self._begin_turn(self._process)
        self._disconnect(self._process)

    def after_fork(self, *, in_child: bool) -> None:
        """Let turns begin again; in a child, where no other thread lives on, all is new."""
        if in_child:
            self._process = _Process()
        else:
            self._end_turn(self._process)

    def _begin_turn(self, process: _Process, session: str = "", wait_s: float | None = None) -> None:
        with process.turn:
            if not process.turn.wait_for(lambda: not process.is_busy, wait_s):
                raise self._locked(session)
            process.is_busy = True

    @staticmethod
    def _end_turn(process: _Process) -> None:
        with process.turn:
            process.is_busy = False
            process.turn.notify_all()

    def _run(self, connection: "sqlite3.Connection") -> Run:
        def run(sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            try:
                return self._io.execute(connection, sql, values)
            except UnicodeDecodeError as error:  # of a text, or of the library's own about a name
                raise self._damaged(str(error)) from error

        return run

    def _commit_all(self, process: _Process, jobs: Sequence[_Job[Any]]) -> None:
        """Do the jobs in one transaction and settle each."""
        try:
            with self._mapped():
                connection = self._connection(process, create=True)
                assert connection is not None
                # What is written goes where a damaged page says that there is room: over what is stored there.
                if process.damage is not None or sqlite_schema.size_bytes(connection) <= _CHECKED_BYTES:
                    self._check_whole(process, connection)
                try:
                    self._transact(process, connection, jobs)
                except BaseException:
                    if connection.in_transaction:  # a full disk may have ended it already
                        connection.execute("ROLLBACK")
                    raise
        except StoreError as error:
            if isinstance(error, SyncFailedError):
                self._disconnect(process)  # what it holds in memory may not be what is on the disk
            for job in jobs:
                job.settle(error)

    def _check_whole(self, process: _Process, connection: "sqlite3.Connection") -> None:
        if process.damage is None:
            process.damage = sqlite_schema.problem_anywhere(connection)
        if process.damage:
            raise self._damaged(process.damage)

    def _transact(self, process: _Process, connection: "sqlite3.Connection", jobs: Sequence[_Job[Any]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        self._check_mode(process, connection)
        run = self._run(connection)
        failed: list[tuple[_Job[Any], MemciError | ValueError]] = []
        for job in jobs:
            connection.execute("SAVEPOINT job")
            try:
                job.value = job.work(run)
            except (MemciError, ValueError) as error:
                connection.execute("ROLLBACK TO job")
                failed.append((job, error))
            connection.execute("RELEASE job")
        if len(failed) < len(jobs):
            self._io.commit(connection)
        else:
            connection.execute("ROLLBACK")
        for job, reason in failed:
            job.settle(reason)
        for job in jobs:
            job.settle()

    def _check_mode(self, process: _Process, connection: "sqlite3.Connection") -> None:
        # Nobody changes the mode of a database that is in use but by hand, or with a library that this one is too old for.
        if process.mode != "wal" and _text(connection, "PRAGMA journal_mode") == "wal":
            raise self._unsafe()

    def _connection(self, process: _Process, *, create: bool) -> "sqlite3.Connection | None":
        """Return the connection, opened if need be; ``None`` where there is no database and none is to be made."""
        if process.connection is None:
            if not self._is_there(create=create):
                return None
            mode = "rwc" if create else "rw"
            connection = self._io.connect(f"{Path(self.path).as_uri()}?mode={mode}")
            try:
                is_ready = self._prepare(process, connection, create=create)
            except BaseException:
                connection.close()
                raise
            if not is_ready:
                connection.close()
                return None
            process.connection = connection
            process.damage = None
        return process.connection

    def _prepare(self, process: _Process, connection: "sqlite3.Connection", *, create: bool) -> bool:
        """Set a new connection up and return whether there are tables."""
        # EXTRA syncs the directory too when a rollback journal comes or goes; with a write-ahead log it is FULL.
        connection.execute(f"PRAGMA synchronous = {'EXTRA' if self._synced else 'NORMAL'}")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: into the drive, as its plain sync is not
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        version = sqlite_schema.version_of(connection)
        if not version and not create:
            return False
        is_safe = is_wal_safe(self._io.version())
        if not version and is_safe:
            connection.execute("PRAGMA journal_mode = WAL")
        process.mode = _text(connection, "PRAGMA journal_mode")
        if process.mode != "wal" or not is_safe:
            # It stays in the mode that it was made in, whatever library comes later, unless that is not safe with it.
            process.mode = _text(connection, "PRAGMA journal_mode = TRUNCATE")
            if process.mode == "wal":
                raise self._unsafe()
        if version < len(sqlite_schema.MIGRATIONS):
            sqlite_schema.migrate(connection)
        problem = sqlite_schema.problem_of(connection)
        if problem:
            raise self._damaged(problem)
        return True

    def _is_there(self, *, create: bool) -> bool:
        """Return whether there is a file, which is made if that is wanted. It may be a link, as the store itself may."""
        try:
            if create:
                disk.make_directories(str(Path(self.path).parent))
                disk.make_database(self.path, follow_link=True)
            else:
                disk.check_database(self.path, follow_link=True)
        except OSError as error:
            if not create and isinstance(error, FileNotFoundError):
                return False
            raise refusal.unavailable(error, Path(error.filename or self.path).name) from error
        return True

    def _disconnect(self, process: _Process) -> None:
        connection, process.connection = process.connection, None
        if connection is not None:
            connection.close()

    def _name(self) -> str:
        return Path(self.path).name

    def _unsafe(self) -> UnavailableError:
        version = ".".join(map(str, self._io.version()))
        return UnavailableError(
            f"{self._name()} has a write-ahead log, which SQLite {version} can damage while others use it: close it everywhere, "
            "or use one library everywhere, 3.51.3 or newer (sqlite.org/wal.html#walresetbug)"
        )

    def _mapped(self, session: str = "") -> AbstractContextManager[None]:
        return mapped_errors(self._name(), self._io.wait_s, session)

    def _locked(self, session: str) -> LockedError:
        return locked(self._name(), self._io.wait_s, session)

    def _damaged(self, what: str) -> CorruptError:
        return damaged(self._name(), what)


def _text(connection: "sqlite3.Connection", sql: str) -> str:
    return str(connection.execute(sql).fetchone()[0])


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
