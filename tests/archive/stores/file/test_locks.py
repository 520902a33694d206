"""A writer that hangs with a lock keeps others waiting for a bounded time only, and they are told which session it is."""

import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from memci.archive.disk import LOCK, FileIo
from memci.archive.stores.contract import SessionStore, Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.sql.postgres import PostgresStore
from memci.archive.stores.sql.postgres_connections import OwnConnections, PostgresIo
from memci.archive.stores.sql.sqlite import SqliteIo, SqliteStore
from memci.errors import LockedError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.together import in_threads

if TYPE_CHECKING:
    from tests.archive.stores.sql.postgres_server import PostgresServer

HOLDER = """
import fcntl, sys
with open(sys.argv[1]) as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.readline()
"""


class HurriedFiles(FileIo):
    wait_s = 0.05


class HurriedSqlite(SqliteIo):
    """Waits for a moment only, and makes databases without a write-ahead log: with one, nobody keeps readers out."""

    wait_s = 0.05

    def version(self) -> tuple[int, ...]:
        return (3, 51, 2)


class HurriedPostgres(PostgresIo):
    lock_s = 0.05  # type: ignore[assignment] # less than a whole second, for a test


@contextmanager
def file_locked(store: Store) -> Iterator[None]:
    """Hold the lock of the session in another process."""
    assert isinstance(store, FileStore)
    path = f"{store.root}/{TENANT}/session/lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:  # noqa: S603
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert b"held\n" == holder.stdout.readline()
        yield
        holder.stdin.close()


@contextmanager
def sqlite_locked(store: Store) -> Iterator[None]:
    """Hold the lock that keeps everybody out, readers too."""
    assert isinstance(store, SqliteStore)
    with closing(sqlite3.connect(store._database.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def postgres_locked(store: Store) -> Iterator[None]:
    """Hold the row of the session."""
    assert isinstance(store, PostgresStore)
    own = store._database._connections()
    assert isinstance(own, OwnConnections)
    with psycopg.connect(own._url) as other:
        other.execute("SELECT id FROM memci_session FOR UPDATE")
        yield
        other.rollback()


Locked = Callable[[Store], AbstractContextManager[None]]


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "chats.db", "flush", io=HurriedSqlite())) as store:
        yield store


@pytest.fixture(params=["file", "sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def locking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Locked]]:
    store: Store
    match request.param:
        case "file":
            store, locked = FileStore(tmp_path, "flush", io=HurriedFiles()), file_locked
        case "sqlite":
            store, locked = request.getfixturevalue("sqlite"), sqlite_locked
        case _:
            server: PostgresServer = request.getfixturevalue("postgres")
            store, locked = PostgresStore(server.new_url(), "flush", io=HurriedPostgres()), postgres_locked
    yield store, locked
    store.close()


WRITES: dict[str, Callable[[SessionStore], object]] = {
    "append": lambda session: session.journal.append(1, [new_record("b")]),
    "redact": lambda session: session.journal.redact({1: b"{}"}),
    "pages": lambda session: session.pages.put({"usr-1": b"{}"}),
    "snapshots": lambda session: session.snapshots.put(1, b"{}"),
}


@pytest.mark.parametrize("write", WRITES)
def test_who_waits_too_long_for_a_lock_is_told(locking: tuple[Store, Locked], write: str) -> None:
    """A write beside one that hangs is a ``LockedError`` with the session, writes nothing, and can be done again."""
    store, locked = locking
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    with locked(store), pytest.raises(LockedError, match=r"'session'.*do it again") as caught:
        WRITES[write](session)
    assert "session" == caught.value.session
    assert ["a"] == texts_of(session.journal)
    WRITES[write](session)


def test_who_reads_too_long_beside_a_lock_is_told(sqlite: SqliteStore) -> None:
    """Where a database keeps readers out, they are told which session they wait for, too."""
    session = sqlite.open(TENANT, "session")
    append_each(session.journal, "a")
    reads: list[Callable[[], object]] = [
        session.journal.head,
        lambda: list(session.journal.read()),
        lambda: session.pages.find("usr-1"),
        lambda: list(session.pages.names()),
        session.snapshots.find,
    ]
    for read in reads:
        with sqlite_locked(sqlite), pytest.raises(LockedError) as caught:
            read()
        assert "session" == caught.value.session


def test_threads_do_not_wait_behind_each_other(sqlite: SqliteStore) -> None:
    """Forty threads that write beside a hung writer of the database are all told, each of its own session."""
    for number in range(40):
        append_each(sqlite.open(TENANT, f"session {number}").journal, "a")
    told: list[str] = []

    def write(number: int) -> None:
        with pytest.raises(LockedError) as caught:
            sqlite.open(TENANT, f"session {number}").journal.append(1, [new_record("b")])
        told.append(caught.value.session)

    with sqlite_locked(sqlite):
        in_threads(write, range(40))
    assert {f"session {number}" for number in range(40)} == set(told)


def test_a_lock_that_was_waited_for_in_vain_is_not_waited_for_again(tmp_path: Path) -> None:
    """Behind one that waited for a hung writer nobody waits as long, until the lock is free; so a queue of calls ends soon."""
    io = HurriedFiles()
    store = FileStore(tmp_path, "flush", io=io)
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    with file_locked(store):
        with pytest.raises(LockedError):
            session.journal.append(1, [new_record("b")])
        io.wait_s = 60
        with pytest.raises(LockedError):
            session.journal.append(1, [new_record("b")])
    assert 2 == session.journal.append(1, [new_record("b")])


def test_a_lock_that_others_hold_in_turns_is_waited_for_again(tmp_path: Path) -> None:
    """After a wait in vain a writer waits as long as before if another one has written since."""
    io = HurriedFiles()
    session = FileStore(tmp_path, "flush", io=io).open(TENANT, "session")
    append_each(session.journal, "a")
    other = FileStore(tmp_path, "flush")
    with file_locked(other), pytest.raises(LockedError):
        session.journal.append(1, [new_record("b")])
    append_each(other.open(TENANT, "session").journal, "b")
    io.wait_s = 60
    fd = os.open(tmp_path / TENANT / "session" / "lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    threading.Timer(0.5, os.close, (fd,)).start()
    assert 3 == session.journal.append(2, [new_record("c")])


class TurnTakers(FileIo):
    """Other writers that commit each time the lock is asked for, until they had their turns."""

    wait_s = 0.0

    def __init__(self, store: FileStore, turns: int) -> None:
        super().__init__()
        self._journal = store.open(TENANT, "session").journal
        self.turns = turns

    def lock(self, fd: int, operation: int) -> None:
        if operation == LOCK and self.turns:
            self.turns -= 1
            append_each(self._journal, "b")
            raise BlockingIOError
        fcntl.flock(fd, operation)


def test_a_writer_waits_while_others_write(tmp_path: Path) -> None:
    """A wait begins again while others commit, so that a busy session refuses no writer."""
    store = FileStore(tmp_path, "flush")
    append_each(store.open(TENANT, "session").journal, "a")
    session = FileStore(tmp_path, "flush", io=TurnTakers(store, 4)).open(TENANT, "session")
    assert 1 == session.journal.head()
    session.pages.put({"usr-1": b"page"})
    assert b"page" == session.pages.find("usr-1")


def test_a_writer_that_never_has_its_turn_is_refused(tmp_path: Path) -> None:
    """The waits for others that write come to an end."""
    store = FileStore(tmp_path, "flush")
    append_each(store.open(TENANT, "session").journal, "a")
    io = TurnTakers(store, 1_000)
    session = FileStore(tmp_path, "flush", io=io).open(TENANT, "session")
    assert 1 == session.journal.head()
    with pytest.raises(LockedError):
        session.pages.put({"usr-1": b"page"})
    assert 1_000 > io.turns > 900


def test_a_lock_that_is_given_back_in_time_is_taken(tmp_path: Path) -> None:
    """Who waits for a lock goes on once it is free."""
    store = FileStore(tmp_path, "flush")
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    fd = os.open(tmp_path / TENANT / "session" / "lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    threading.Timer(0.1, os.close, (fd,)).start()
    assert 2 == session.journal.append(1, [new_record("b")])
