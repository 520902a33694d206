"""Sessions in one SQLite file, for many processes of one machine.

Beside it lie ``-journal`` or ``-wal``, what a commit needs while it lasts, and ``.index/7.sqlite``, the index of the session with
row 7, which can be lost without harm.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import attrs

from memci.archive import disk, refusal
from memci.archive.stores.sql import schema
from memci.archive.stores.sql.schema import Found, Key, Runner, Statement, SyncFailedError, checked_head, place_of
from memci.archive.stores.sql.session import SqlStore
from memci.errors import CorruptError, LockedError, MemciError, StoreError, UnavailableError

if TYPE_CHECKING:
    import sqlite3

_Answer = TypeVar("_Answer")

# A database of at most this size is looked at whole before a process writes to it, which takes a tenth of a second, and vacuumed
# after something was removed, which takes half a second.
_SMALL_BYTES = 1 << 26
_LOOK_AGAIN_S = 0.05  # where a thread was interrupted before it told the next one that its turn is over
_BYTES = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
_WAL_FIXED_BRANCHES = {(3, 44): 6, (3, 50): 7}

# What to do, by the kind of an error (https://sqlite.org/rescode.html); of any other kind the database is damaged.
_ADVICE = {
    **dict.fromkeys(("AUTH", "CANTOPEN", "PERM", "READONLY"), "change the rights of file and directory, or open read-only"),
    **dict.fromkeys(("NOMEM", "TOOBIG"), "write less at once"),
    "FULL": "make room, then do it again",
    "IOERR": "check the disk, then open the session again",
}


def is_wal_safe(version: Sequence[int]) -> bool:
    """Tell whether several connections may write to a write-ahead log at once (https://sqlite.org/wal.html#walresetbug)."""
    major, minor, patch = version[:3]
    return (major, minor, patch) >= (3, 51, 3) or patch >= _WAL_FIXED_BRANCHES.get((major, minor), patch + 1)


class SqliteIo:
    """The SQLite library as the store uses it. All calls raise ``sqlite3.Error``; a subclass can count them or make them fail."""

    wait_s = 10.0  # how long a call waits for other connections that write

    def version(self) -> tuple[int, ...]:
        """Return the version of the library."""
        import sqlite3  # noqa: PLC0415 loads only when a database is opened

        return sqlite3.sqlite_version_info

    def connect(self, uri: str) -> "sqlite3.Connection":
        """Open a database; transactions begin and end only where it is said."""
        import sqlite3  # noqa: PLC0415 as above

        # The store's turns see to it that one thread at a time is here.
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=self.wait_s)

    def execute(self, connection: "sqlite3.Connection", sql: str, values: Sequence[object] = ()) -> Found:
        """Run one statement to its end, so that it holds no lock, and return its rows."""
        return connection.execute(sql, values).fetchall()

    def commit(self, connection: "sqlite3.Connection") -> None:
        """Commit; what was written is on the disk when it returns, as far as ``synchronous`` promises."""
        connection.execute("COMMIT")


@attrs.define(eq=False)
class _Job:
    work: Callable[[Runner], Any]
    value: Any = None
    error: MemciError | None = None
    is_taken: bool = False  # into a transaction, which is over once another thread has the turn
    is_over: bool = False
    wake: "Lock" = attrs.field(factory=Lock)  # free where its thread has something to look at

    def tell(self) -> None:
        with suppress(RuntimeError):  # it was told already
            self.wake.release()


class _Database:
    """Implements ``Rows`` on one connection a process, which its threads use in turns.

    Whoever writes puts the work in a queue. The thread whose turn it is commits all that is queued in one transaction, each piece
    after a savepoint of its own, so that writers of many sessions share what a commit costs, and none is harmed by another's
    conflict. A fork waits for the turn that is on, and finds the connection closed: a child must inherit none.

    A signal handler may raise after any call. So the turn is a lock of C, which the first call of a ``finally`` gives back that
    began before the lock was taken, and what was interrupted in a transaction is undone.
    """

    clear_index: Sequence[str] = ()

    put_blob = """
    INSERT INTO blob (tenant, name, body) VALUES (?, ?, ?) ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body
    WHERE blob.body IS NOT excluded.body
    """
    sweep = """
    DELETE FROM blob WHERE tenant = ? AND NOT EXISTS (
        SELECT 1 FROM blob_use JOIN session ON session.id = blob_use.session
        WHERE blob_use.name = blob.name AND session.tenant = blob.tenant
    )
    """

    def __init__(self, path: str, io: SqliteIo, *, synced: bool) -> None:
        self.path = path
        self._name = Path(path).name
        self._io = io
        self._synced = synced  # a commit survives a loss of power; otherwise only the end of the process
        self._begin()
        with _forking:
            _databases.add(self)

    def _begin(self) -> None:
        self._turn = RLock()  # protects what follows, but for the queue
        self._is_on = False  # a thread is within its turn; a signal handler that comes back here in that thread has the lock too
        self._waiting: deque[_Job] = deque()
        self._connection: sqlite3.Connection | None = None
        self._mode = ""  # journal mode of the connection
        self._damage: str | None = None  # what was found when all was looked at, empty for nothing; None before

    def read(self, sql: str, values: Sequence[object] = (), session: str = "", *, whole: bool = False) -> Found:
        """Run a query; if *whole*, all is looked at before."""

        def run() -> Found:
            with self._mapped(session):
                connection = self._opened(create=False)
                if connection is not None and whole:
                    self._check_whole(connection)
                return [] if connection is None else self._run(connection, sql, values)

        return self._in_turn(run, session)

    def change(self, key: Key, row: int, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        def work(run: Runner) -> list[Found]:
            if row and not run("SELECT id FROM session WHERE id = ?", (row,)):
                raise refusal.deleted(key.session_id)
            return [run(sql, values) for sql, values in statements]

        done: list[Found] = self._write(work, key.session_id) if statements else []
        if removes:
            # ``secure_delete`` clears a row where it lies. When SQLite moved it there from another page, a copy stays in the
            # unused part of that page until the database is vacuumed.
            size = self.read(_BYTES)
            if size and size[0][0] <= _SMALL_BYTES:
                self.read("VACUUM")
            # What the write-ahead log holds goes into the database, so that no removed bytes are left in the log.
            found = self.read("PRAGMA wal_checkpoint(TRUNCATE)")
            if found and found[0][0]:
                message = f"{self._name}: removed bytes are still in the write-ahead log, as others read there: do it again"
                raise UnavailableError(message)
        return done

    def append(self, key: Key, row: int, expected: int, lines: Sequence[bytes], before: str) -> tuple[int, str]:
        def work(run: Runner) -> int:
            place = place_of(run(*key.find))
            if row and place.row != row:
                raise refusal.deleted(key.session_id)
            head = checked_head(key, place)
            if head != expected:
                raise refusal.conflict(expected, head)
            found = place.row or int(run(*key.begin)[0][0])
            for seq, line in enumerate(lines, start=expected + 1):
                run("INSERT INTO record (session, seq, line) VALUES (?, ?, ?)", (found, seq, line))
            run("UPDATE session SET head = ? WHERE id = ?", (expected + len(lines), found))
            return found

        return int(self._write(work, key.session_id)), before

    def check(self) -> None:
        self.read("SELECT 1", whole=True)  # once in the life of a connection

    def close(self) -> None:
        self._in_turn(self._disconnect)

    def pause(self) -> None:
        """Wait for the turn that is on, but not for ever, let no other begin, and close the connection."""
        # A child would inherit what the library knows of locks, without the locks (https://sqlite.org/howtocorrupt.html).
        if self._turn.acquire(timeout=self._io.wait_s) and not self._is_on:
            self._disconnect()

    def go_on(self, *, in_child: bool) -> None:
        """Let turns begin again; in a child, where no other thread lives on, all is new."""
        if in_child:
            _inherited.append(self._connection)  # of a turn that did not end: to close it here would harm the parent
            self._begin()
        else:
            with suppress(RuntimeError):  # the same
                self._turn.release()

    def _in_turn(self, work: Callable[[], _Answer], session: str = "") -> _Answer:
        """Do *work* while no other thread is here; ``LockedError`` where one is for too long."""
        is_on = False
        try:
            if not self._turn.acquire(timeout=self._io.wait_s) or self._is_on:
                raise self._locked(session)
            self._is_on = is_on = True
            return work()
        finally:
            if is_on:
                self._is_on = False
            try:  # noqa: SIM105 (what it says would be called before)
                self._turn.release()
            except RuntimeError:  # others have it
                pass
            with suppress(IndexError):
                self._waiting[0].tell()

    def _write(self, work: Callable[[Runner], Any], session: str) -> Any:  # noqa: ANN401 (what the work returns)
        """Do *work* in a transaction, with that of other threads; nothing of it is written when it raises a ``MemciError``."""
        job = _Job(work)
        try:
            self._waiting.append(job)
            for _ in range(int(self._io.wait_s / _LOOK_AGAIN_S)):
                if job.is_over or not self._is_on:
                    break
                job.wake.acquire(timeout=_LOOK_AGAIN_S)
            while not job.is_over:
                try:
                    self._in_turn(partial(self._commit, job), session)
                    break
                except LockedError:
                    with suppress(ValueError):  # it is in the transaction that is on
                        self._waiting.remove(job)
                        raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(job)
        if isinstance(job.error, LockedError):
            raise self._locked(session) from job.error
        if job.error is not None:
            raise job.error
        return job.value

    def _commit(self, own: _Job) -> None:
        """Do the jobs that wait in one transaction, unless *own* was in one. A job has its own errors, and all have any other."""
        if own.is_taken:
            return
        interrupted = UnavailableError(f"{self._name}: the writing thread was interrupted: do it again")
        jobs = [own]
        with suppress(IndexError):
            while True:
                jobs.append(self._waiting.popleft())
        jobs = list(dict.fromkeys(jobs))
        for job in jobs:
            job.is_taken, job.error = True, interrupted
        try:
            with self._mapped():
                connection = self._opened(create=True)
                assert connection is not None
                # What is written goes where a damaged page says that there is room: over what is stored there.
                if self._damage is not None or connection.execute(_BYTES).fetchone()[0] <= _SMALL_BYTES:
                    self._check_whole(connection)
                errors = self._transact(connection, jobs)
        except BaseException as error:
            self._disconnect()  # what it holds in memory may not be what is on the disk
            if not isinstance(error, StoreError):
                raise
            errors = [error] * len(jobs)
        for job, own_error in zip(jobs, errors, strict=True):
            job.error, job.is_over = own_error, True
            job.tell()

    def _transact(self, connection: "sqlite3.Connection", jobs: Sequence[_Job]) -> list[MemciError | None]:
        """Do the jobs and commit, and return the error of each."""
        errors: list[MemciError | None] = [None] * len(jobs)
        connection.execute("BEGIN IMMEDIATE")
        # Nobody changes the mode of a database that is in use but by hand, or with a library that this one is too old for.
        if self._mode != "wal" and _mode(connection) == "wal":
            raise self._unsafe()
        for number, job in enumerate(jobs):
            connection.execute("SAVEPOINT job")
            try:
                job.value = job.work(partial(self._run, connection))
            except MemciError as error:
                connection.execute("ROLLBACK TO job")
                errors[number] = error
            connection.execute("RELEASE job")
        if None in errors:
            self._io.commit(connection)
        else:
            connection.execute("ROLLBACK")
        return errors

    def _run(self, connection: "sqlite3.Connection", sql: str, values: Sequence[object] = ()) -> Found:
        return self._io.execute(connection, sql.replace("{}", ""), values)

    def _check_whole(self, connection: "sqlite3.Connection") -> None:
        if self._damage is None:
            self._damage = schema.sqlite_problem(connection, "1")
        if self._damage:
            raise self._damaged(self._damage)

    def _opened(self, *, create: bool) -> "sqlite3.Connection | None":
        """Return the connection, opened if need be; ``None`` where there is no database and none is to be made."""
        if self._connection is not None and not self._connection.in_transaction:  # else that was interrupted
            return self._connection
        self._disconnect()
        try:
            if create:
                disk.make_directories(str(Path(self.path).parent))
            disk.check_database(self.path, follow_link=True, make=create)  # the store itself may be a link
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
        # EXTRA syncs the directory too when a rollback journal comes or goes; with a write-ahead log it is FULL. A full sync goes
        # into the drive on macOS, as its plain sync does not.
        synchronous = f"synchronous = {'EXTRA' if self._synced else 'NORMAL'}"
        for pragma in (synchronous, "fullfsync = ON", "foreign_keys = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        version = schema.sqlite_version(connection)
        if version is None and not create:
            return False
        # It stays in the mode that it was made in, whatever library comes later, unless that is not safe with it.
        is_safe = is_wal_safe(self._io.version())
        keeps_log = is_safe and (version is None or _mode(connection) == "wal")
        self._mode = _mode(connection, "= WAL" if keeps_log else "= TRUNCATE")
        if self._mode == "wal" and not keeps_log:
            raise self._unsafe()
        if version != len(schema.SQLITE):
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
        except (sqlite3.Error, UnicodeDecodeError) as error:
            kind = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT").split("_")[1]  # what follows is a refinement
            if kind in {"BUSY", "LOCKED"}:
                raise self._locked(session) from error
            if kind not in _ADVICE:
                raise self._damaged(str(error)) from error
            is_full = kind == "CANTOPEN" and disk.is_out_of_descriptors()
            message = f"{self._name}: {error}: {refusal.MORE_DESCRIPTORS if is_full else _ADVICE[kind]}"
            raise (SyncFailedError if kind == "IOERR" else UnavailableError)(message) from error

    def _locked(self, session: str) -> LockedError:
        return refusal.locked(f"{self._name}: others have kept it locked for more than {self._io.wait_s:g} s", session)

    def _damaged(self, what: str) -> CorruptError:
        problem = f"the database is damaged ({what}): restore it from a backup, or save what sqlite3's .recover finds"
        return CorruptError(problem, session="", place=self._name)

    def _unsafe(self) -> UnavailableError:
        version = ".".join(map(str, self._io.version()))
        problem = f"{self._name} has a write-ahead log, which SQLite {version} can damage (sqlite.org/wal.html#walresetbug)"
        return UnavailableError(f"{problem}: close it everywhere, or use one library everywhere, 3.51.3 or newer")


def _mode(connection: "sqlite3.Connection", change: str = "") -> str:
    return str(connection.execute(f"PRAGMA journal_mode {change}").fetchone()[0])


_databases: "WeakSet[_Database]" = WeakSet()
_paused: list[_Database] = []
_inherited: "list[sqlite3.Connection | None]" = []
_forking = Lock()  # held during a fork; protects the lists


def _before_fork() -> None:
    _forking.acquire()
    _paused.extend(_databases)
    for database in _paused:
        database.pause()


def _after_fork(*, in_child: bool) -> None:
    while _paused:
        _paused.pop().go_on(in_child=in_child)
    _forking.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=partial(_after_fork, in_child=False),
    after_in_child=partial(_after_fork, in_child=True),
)


class SqliteStore(SqlStore):
    """Implements ``memci.archive.stores.contract.Store`` in one SQLite file on a local file system.

    Many processes of one machine, and their threads, may use it at once; threads that append to different sessions at the same
    time share transactions. The file is made with the first record; a relative path is meant from here and now. docs/stores.md
    says what each durability promises. *io* counts the library's calls.
    """

    def __init__(self, path: "str | os.PathLike[str]", durability: str = "fsync", *, io: SqliteIo | None = None) -> None:
        self.io = io or SqliteIo()
        self._database = _Database(str(Path(path).absolute()), self.io, synced=durability == "fsync")
        indexes = Path(f"{self._database.path}.index")
        super().__init__(self._database, lambda: indexes, durability)

    @property
    def journal_mode(self) -> str:
        """``wal`` where the database was made by a library that is safe with it, else ``truncate``, a rollback journal."""
        found = self._database.read("PRAGMA journal_mode")
        return str(found[0][0]) if found else "wal" if is_wal_safe(self.io.version()) else "truncate"
