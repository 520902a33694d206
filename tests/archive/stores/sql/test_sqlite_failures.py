"""What becomes of errors of the SQLite library."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from memci.archive.stores.sql.schema import Found
from memci.archive.stores.sql.sqlite import SqliteIo, SqliteStore
from memci.errors import CorruptError, LockedError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.interrupts import interruptions
from tests.together import in_child, in_threads


class FaultyIo(SqliteIo):
    """A library whose commits fail when they are told to, and that waits for nobody.

    Attributes:
        name: The error's name, empty for none.
        pages: What a database holds at most.
    """

    wait_s = 0.05
    name = ""
    pages = 100_000

    def execute(self, connection: sqlite3.Connection, sql: str, values: Sequence[object] = ()) -> Found:
        connection.execute(f"PRAGMA max_page_count = {self.pages}")
        return super().execute(connection, sql, values)

    def commit(self, connection: sqlite3.Connection) -> None:
        if self.name:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = self.name
            raise error
        super().commit(connection)


class QuickIo(SqliteIo):
    """A library that waits for others for a second."""

    wait_s = 1.0


class HangingIo(SqliteIo):
    """A library in which a call hangs while it is told to."""

    wait_s = 0.05

    def __init__(self) -> None:
        self.hangs, self.came, self.go_on = Event(), Event(), Event()

    def execute(self, connection: sqlite3.Connection, sql: str, values: Sequence[object] = ()) -> Found:
        if self.hangs.is_set():
            self.came.set()
            self.go_on.wait()
        return super().execute(connection, sql, values)


class ReturningIo(SqliteIo):
    """A library whose commits are interrupted by a signal handler."""

    handler: Callable[[], object] | None = None

    def commit(self, connection: sqlite3.Connection) -> None:
        if self.handler is not None:
            self.handler()
        super().commit(connection)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "chats.db", io=FaultyIo())
    yield store
    store.close()


def test_a_failed_sync_poisons_the_session(store: SqliteStore) -> None:
    """After a commit that may not be on the disk, the session takes no append until it is opened again."""
    assert isinstance(store.io, FaultyIo)
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    store.io.name = "SQLITE_IOERR_FSYNC"
    with pytest.raises(UnavailableError, match="disk"):
        session.journal.append(1, [new_record("lost")])
    store.io.name = ""
    with pytest.raises(UnavailableError, match="refresh"):
        session.journal.append(1, [new_record("lost")])
    session.close()
    again = store.open(TENANT, "session")
    assert 2 == again.journal.append(1, [new_record("b")])
    assert ["a", "b"] == texts_of(again.journal)


def test_a_connection_in_which_a_commit_failed_is_not_used_again(tmp_path: Path) -> None:
    """What SQLite holds in memory after an error of the disk may not be what is there: the next call connects anew."""

    class CountingIo(FaultyIo):
        made = 0

        def commit(self, connection: sqlite3.Connection) -> None:
            if self.name:
                connection.rollback()  # as SQLite does by itself, see https://sqlite.org/lang_transaction.html
            super().commit(connection)

        def connect(self, uri: str) -> sqlite3.Connection:
            self.made += 1
            return super().connect(uri)

    with closing(SqliteStore(tmp_path / "chats.db", io=CountingIo())) as store:
        assert isinstance(store.io, CountingIo)
        session = store.open(TENANT, "session")
        append_each(session.journal, "a")
        made = store.io.made
        store.io.name = "SQLITE_IOERR"
        with pytest.raises(UnavailableError, match="disk"):
            session.pages.put({"usr-1": b"lost"})
        store.io.name = ""
        session.pages.put({"usr-1": b"page"})
        assert made + 1 == store.io.made


def test_a_full_disk_can_be_mended(store: SqliteStore) -> None:
    """A commit for which there is no room writes nothing, and can be done again once there is."""
    assert isinstance(store.io, FaultyIo)
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    store.io.pages = 1  # no more than there are
    with pytest.raises(UnavailableError, match="make room"):
        session.journal.append(1, [new_record("x" * 100_000)])
    with pytest.raises(UnavailableError, match="make room"):
        session.pages.put({"usr-1": b"x" * 100_000})
    store.io.pages = 100_000
    assert 2 == session.journal.append(1, [new_record("b")])
    assert ["a", "b"] == texts_of(session.journal)


def test_who_waits_too_long_is_told(store: SqliteStore, tmp_path: Path) -> None:
    """While another connection writes, an append waits for a bounded time, writes nothing, and can be done again."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    other = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError, match="do it again"):
        session.journal.append(1, [new_record("b")])
    other.close()
    assert 2 == session.journal.append(1, [new_record("b")])


def test_a_path_that_is_no_file_is_said(tmp_path: Path) -> None:
    """A database in the place of a directory, or a directory in the place of a file, is an error that names it."""
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "file" / "chats.db"):
        store = SqliteStore(path)
        with pytest.raises(UnavailableError, match="chats.db|file|directory|" + tmp_path.name):
            store.open(TENANT, "session").journal.append(0, [new_record("a")])
        store.close()


def test_a_damaged_database_is_said(store: SqliteStore, tmp_path: Path) -> None:
    """A file that is no database any more is a typed error of whoever reads it, and nothing of it is served."""
    append_each(store.open(TENANT, "session").journal, *("x" * 900 for _ in range(50)))
    store.close()
    path = tmp_path / "chats.db"
    whole = path.read_bytes()
    for damaged in (b"not a database" * 500, whole[:4096] + bytes(len(whole) - 4096)):
        path.write_bytes(damaged)
        with pytest.raises(CorruptError, match="damaged"):
            texts_of(store.open(TENANT, "session").journal)
        store.close()


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("writes", [False, True])
def test_a_signal_handler_may_raise_anywhere(tmp_path: Path, times: int, *, writes: bool) -> None:
    """Wherever a call is interrupted, nothing is half written, and the next call of any thread does not find the store locked."""
    store = SqliteStore(tmp_path / "chats.db", "flush", io=QuickIo())
    journal, other = store.open(TENANT, "session").journal, store.open(TENANT, "other").journal
    append_each(journal, "a")

    def work() -> None:
        if writes:
            store.open(TENANT, "session").journal.append(journal.head(), [new_record("b"), new_record("c")])
        else:
            list(journal.read())

    places = 0
    for _ in interruptions(work, times=times):
        places += 1
        in_threads(lambda _: other.append(other.head(), [new_record("d")]), [0])
        assert texts_of(journal) == ["a", *(["b", "c"] * (journal.head() // 2))]
    assert places > 20
    assert texts_of(other) == ["d"] * places
    assert 0 == in_child(lambda: append_each(store.open(TENANT, "child").journal, "e"))
    store.close()


def test_a_fork_does_not_wait_for_ever(tmp_path: Path) -> None:
    """While a thread hangs in the library, a fork waits as long as a call does; the child opens the database for itself."""
    io = HangingIo()
    store = SqliteStore(tmp_path / "chats.db", io=io)
    journal = store.open(TENANT, "session").journal
    append_each(journal, "a")
    io.hangs.set()

    def read_in_child() -> None:
        io.hangs.clear()
        assert ["a"] == texts_of(journal)

    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(texts_of, journal)
        io.came.wait()
        child = in_child(read_in_child)
        with pytest.raises(LockedError):
            journal.head()
        io.go_on.set()
        assert ["a"] == hanging.result()
    assert 0 == child
    assert 1 == journal.head()
    store.close()


def test_a_signal_handler_that_comes_back_is_refused(tmp_path: Path) -> None:
    """Within a call, another one of the same thread is told that the store is locked, and the first one goes on."""
    io = ReturningIo()
    store = SqliteStore(tmp_path / "chats.db", io=io)
    journal = store.open(TENANT, "session").journal
    append_each(journal, "a")
    io.handler = journal.head
    with pytest.raises(LockedError):
        append_each(journal, "b")
    io.handler = None
    assert 2 == journal.append(1, [new_record("b")])
    store.close()
