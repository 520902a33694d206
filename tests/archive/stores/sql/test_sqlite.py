"""What SQLite is asked for, counted; who waits for whom; journal modes, versions and forks."""

import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from memci.archive.stores.sql import schema
from memci.archive.stores.sql import sqlite as sqlite_store
from memci.archive.stores.sql.sqlite import SqliteIo, SqliteStore, is_wal_safe
from memci.errors import ConflictError, StoreError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.counting import CountedSqliteStore, CountingSqlite
from tests.together import in_child, in_threads

THREADS = 16


class SafeIo(SqliteIo):
    """Says that a write-ahead log is safe; so it is in the tests that use it, as they have one writer at a time."""

    wait_s = 0.05

    def version(self) -> tuple[int, ...]:
        return (3, 51, 3)


class OldIo(SqliteIo):
    """Says that a write-ahead log is not safe."""

    wait_s = 0.05

    def version(self) -> tuple[int, ...]:
        return (3, 51, 2)


class HeldIo(CountingSqlite):
    """Holds the first commit until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.is_held = threading.Event()
        self.let_go = threading.Event()
        self.let_go.set()

    def commit(self, connection: sqlite3.Connection) -> None:
        self.is_held.set()
        self.let_go.wait()
        super().commit(connection)


class TellingIo(CountingSqlite):
    """Notes what ``synchronous`` is at each commit: 1 for NORMAL, 3 for EXTRA."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[int] = []

    def commit(self, connection: sqlite3.Connection) -> None:
        self.modes += connection.execute("PRAGMA synchronous").fetchone()
        super().commit(connection)


@pytest.fixture
def store(quick_path: Path) -> Iterator[CountedSqliteStore]:
    store = CountedSqliteStore(quick_path / "chats.db", "flush", io=CountingSqlite())
    yield store
    store.close()


def files_of(root: Path) -> bytes:
    """Return what all files below a directory hold."""
    return b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


def test_what_a_turn_costs(store: CountedSqliteStore) -> None:
    """An append is one transaction, so are any number of pages that are put at once; a look at the head is one statement."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "begin")
    counts = []
    calls: list[Callable[[], object]] = [
        lambda: session.journal.append(1, [new_record("a")]),
        lambda: session.journal.append(2, [new_record(str(number)) for number in range(50)]),
        lambda: session.pages.put({f"usr-{number}": b"page" for number in range(50)}),
        session.journal.head,
        lambda: session.pages.find("usr-7"),
        lambda: list(session.journal.read(2)),
        lambda: session.snapshots.put(2, b"{}"),
        session.snapshots.find,
    ]
    for call in calls:
        transactions, statements = store.io.transactions, store.io.statements
        call()
        counts.append((store.io.transactions - transactions, store.io.statements - statements))
    # A look at the session's row, a statement for each row, and for appends the new head.
    assert [(1, 3), (1, 52), (1, 51), (0, 1), (0, 1), (0, 2), (1, 3), (0, 1)] == counts
    assert 1 == store.io.connections


@pytest.mark.parametrize(("durability", "mode"), [("fsync", 3), ("flush", 1)])
def test_each_commit_syncs_as_was_promised(tmp_path: Path, durability: Literal["fsync", "flush"], mode: int) -> None:
    """Every commit of a store that promises the disk is made in the mode EXTRA, in a connection that was opened again too."""
    io = TellingIo()
    for head in (0, 2):
        store = SqliteStore(tmp_path / "chats.db", durability, io=io)
        session = store.open(TENANT, "session")
        session.journal.append(head, [new_record("a"), new_record("b")])
        session.pages.put({"usr-1": b"page"})
        session.snapshots.put(head + 2, b"{}")
        store.close()
    assert [mode] * io.transactions == io.modes
    assert 6 <= io.transactions


def test_a_single_thread_commits_each_append(store: CountedSqliteStore) -> None:
    """Who appends alone gets a transaction for each append."""
    journal = store.open(TENANT, "session").journal
    append_each(journal, *map(str, range(20)))
    assert 20 == store.io.transactions


def test_threads_share_a_transaction(tmp_path: Path) -> None:
    """What threads append while another one commits is committed together; a conflict among it harms only its own thread."""
    io = HeldIo()
    store = SqliteStore(tmp_path / "chats.db", "flush", io=io)
    journals = [store.open(TENANT, f"session {number}").journal for number in range(THREADS)]
    for journal in journals:
        append_each(journal, "first")
    begun = io.transactions
    refused = []

    def append(number: int) -> None:
        try:
            journals[number].append(0 if number == 7 else 1, [new_record("second")])
        except ConflictError:
            refused.append(number)

    io.is_held.clear()
    io.let_go.clear()
    threads = [threading.Thread(target=append, args=(number,)) for number in range(THREADS)]
    threads[0].start()
    io.is_held.wait()
    for thread in threads[1:]:
        thread.start()
    while len(store._database._waiting) < THREADS - 1:
        os.sched_yield()
    io.let_go.set()
    for thread in threads:
        thread.join()
    assert 2 == io.transactions - begun
    assert [7] == refused
    assert [1 if number == 7 else 2 for number in range(THREADS)] == [journal.head() for journal in journals]
    store.close()


def test_threads_on_many_sessions_lose_nothing(store: CountedSqliteStore) -> None:
    """Threads that append to sessions of their own at once, with reads between, leave each journal whole."""
    texts = [str(number) for number in range(30)]

    def append(name: str) -> None:
        journal = store.open(TENANT, name).journal
        for text in texts:
            append_each(journal, text)

    in_threads(append, list(map(str, range(THREADS))))
    assert [texts] * THREADS == [texts_of(store.open(TENANT, str(number)).journal) for number in range(THREADS)]
    assert THREADS * len(texts) >= store.io.transactions


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        *(((3, 6, 23), False), ((3, 40, 1), False), ((3, 44, 5), False), ((3, 44, 6), True), ((3, 45, 9), False)),
        *(
            ((3, 50, 6), False),
            ((3, 50, 7), True),
            ((3, 51, 2), False),
            ((3, 51, 3), True),
            ((3, 52, 0), True),
            ((4, 0, 0), True),
        ),
    ],
)
def test_which_libraries_are_safe_with_a_write_ahead_log(version: tuple[int, ...], *, safe: bool) -> None:
    """The race is fixed in 3.51.3 and what follows, and in the branches 3.44 and 3.50."""
    assert safe == is_wal_safe(version)


def test_the_journal_mode_is_that_of_a_safe_library(tmp_path: Path) -> None:
    """A new database gets a write-ahead log only from a library that is safe with it, and keeps its mode with newer ones."""
    for io, mode in ((SafeIo(), "wal"), (OldIo(), "truncate")):
        store = SqliteStore(tmp_path / f"{mode}.db", io=io)
        assert mode == store.journal_mode
        append_each(store.open(TENANT, "session").journal, "a")
        assert mode == store.journal_mode
        store.close()
    again = SqliteStore(tmp_path / "truncate.db", io=SafeIo())
    append_each(again.open(TENANT, "session").journal, "b")
    assert "truncate" == again.journal_mode
    again.close()


def test_the_library_at_hand_decides(tmp_path: Path) -> None:
    """Without being told otherwise the store asks the library that it runs on."""
    store = SqliteStore(tmp_path / "chats.db")
    append_each(store.open(TENANT, "session").journal, "a")
    assert ("wal" if is_wal_safe(sqlite3.sqlite_version_info) else "truncate") == store.journal_mode
    store.close()


def test_an_unsafe_library_ends_a_write_ahead_log(tmp_path: Path) -> None:
    """A library that is not safe with the log of a database takes it over when nobody else has it open, and else refuses."""
    safe, old = (SqliteStore(tmp_path / "chats.db", io=io) for io in (SafeIo(), OldIo()))
    append_each(safe.open(TENANT, "session").journal, "a")
    with pytest.raises(UnavailableError, match=r"locked|write-ahead log"):
        old.open(TENANT, "session").journal.head()
    safe.close()
    assert ["a"] == texts_of(old.open(TENANT, "session").journal)
    assert "truncate" == old.journal_mode
    old.close()


def test_an_unsafe_library_writes_to_no_write_ahead_log(tmp_path: Path) -> None:
    """When somebody gives the database a log while it is in use, a library that is not safe with it writes no more."""
    old = SqliteStore(tmp_path / "chats.db", io=OldIo())
    session = old.open(TENANT, "session")
    append_each(session.journal, "a")
    other = sqlite3.connect(tmp_path / "chats.db")
    assert ("wal",) == other.execute("PRAGMA journal_mode = WAL").fetchone()
    with pytest.raises(UnavailableError, match=r"3\.51\.2"):
        session.journal.append(1, [new_record("b")])
    other.close()
    old.close()


@pytest.mark.parametrize("io", [SafeIo(), OldIo()])
def test_nothing_is_left_of_what_is_taken_out(tmp_path: Path, io: SqliteIo) -> None:
    """Once it is redacted, removed, cleared or deleted, a text is in no file of the store, whatever the journal mode."""
    store = SqliteStore(tmp_path / "chats.db", io=io)
    session = store.open(TENANT, "session")
    secret = "moonshine" * 1_000
    append_each(session.journal, "before", secret, secret[:9], "after")
    session.pages.put({"usr-1": secret.encode(), "usr-2": b"moonshine"})
    session.snapshots.put(2, b'{"moonshine":1}')
    with session.index.write() as writer:
        writer.set_seq(4, "moonshine")
    assert b"moonshine" in files_of(tmp_path)
    session.journal.redact({2: b'{"text":"[erased]"}', 3: b'{"text":"[erased]"}'})
    session.pages.remove(["usr-1", "usr-2"])
    session.snapshots.clear()
    session.index.reset()
    assert b"moonshine" not in files_of(tmp_path)
    assert b"before" in files_of(tmp_path)
    session.close()
    store.delete(TENANT, "session")
    assert b"before" not in files_of(tmp_path)
    store.close()


@pytest.mark.parametrize("io", [SafeIo(), OldIo()])
def test_no_copy_is_left_where_rows_were_moved(tmp_path: Path, io: SqliteIo, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite moves rows between its pages and leaves copies, as the first pass shows, where the database is not vacuumed."""
    store = SqliteStore(tmp_path / "chats.db", io=io)
    session = store.open(TENANT, "session")
    for small_bytes, is_left in ((0, True), (sqlite_store._SMALL_BYTES, False)):
        monkeypatch.setattr(sqlite_store, "_SMALL_BYTES", small_bytes)
        chance = random.Random(5)  # noqa: S311 (one of few seeds with which a copy is left)
        names = [f"usr-{number}" for number in range(400)]
        for rewritten in (names, *(chance.sample(names, 100) for _ in range(10))):
            texts = {name: f"canary-{name}.".encode() + b"x" * chance.randrange(900) for name in rewritten}
            session.pages.put(texts)
        session.pages.remove(names[:200])
        stored = files_of(tmp_path)
        assert is_left == any(f"canary-{name}.".encode() in stored for name in names[:200])
        session.pages.remove(names)
    store.close()


def test_a_reader_keeps_the_log(tmp_path: Path) -> None:
    """While another connection reads an older state, removed bytes stay in the log; that is said, and doing it again ends it."""
    store = SqliteStore(tmp_path / "chats.db", io=SafeIo())
    session = store.open(TENANT, "session")
    append_each(session.journal, "moonshine")
    reader = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchall()
    with pytest.raises(UnavailableError, match="write-ahead log"):
        session.journal.redact({1: b'{"text":"[erased]"}'})
    reader.close()
    session.journal.redact({1: b'{"text":"[erased]"}'})
    assert b"moonshine" not in files_of(tmp_path)
    store.close()


def test_a_deletion_can_be_ended(tmp_path: Path) -> None:
    """A deletion that could not empty the log is done to its end by doing it again, though the session is gone."""
    store = SqliteStore(tmp_path / "chats.db", io=SafeIo())
    append_each(store.open(TENANT, "session").journal, "moonshine")
    reader = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchall()
    with pytest.raises(UnavailableError, match="write-ahead log"):
        store.delete(TENANT, "session")
    reader.close()
    assert [] == list(store.sessions(TENANT))
    store.delete(TENANT, "session")
    assert b"moonshine" not in files_of(tmp_path)
    store.close()


def test_the_index_lies_beside_the_database(store: SqliteStore, quick_path: Path) -> None:
    """Each session has an index file of its own, which goes with the session; the next one of that id has another."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    assert session.index.seq == 0
    assert ["1.sqlite"] == [path.name for path in (quick_path / "chats.db.index").glob("*.sqlite")]
    session.close()
    store.delete(TENANT, "session")
    assert [] == list((quick_path / "chats.db.index").glob("*.sqlite*"))
    again = store.open(TENANT, "session")
    assert again.index.seq == 0
    again.close()
    assert ["2.sqlite"] == [path.name for path in (quick_path / "chats.db.index").glob("*.sqlite")]


def test_reading_makes_no_file(tmp_path: Path) -> None:
    """A store that nobody wrote to is looked at without a trace."""
    store = SqliteStore(tmp_path / "sub" / "chats.db")
    session = store.open(TENANT, "session", read_only=True)
    assert (0, [], []) == (session.journal.head(), list(session.journal.read()), list(store.sessions(TENANT)))
    assert session.index.seq == 0
    store.delete(TENANT, "session")
    store.close()
    assert [] == list(tmp_path.iterdir())


def test_an_older_database_is_migrated(tmp_path: Path) -> None:
    """Only the steps that a database did not go through yet are done, all or none."""
    connection = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    first, second, broken = (
        ("CREATE TABLE a (x)",),
        ("ALTER TABLE a ADD COLUMN y", "INSERT INTO a VALUES (1, 2)"),
        ("CREATE nothing",),
    )
    schema.migrate_sqlite(connection, [first])
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate_sqlite(connection, [first, second, broken])
    connection.execute("ROLLBACK")
    assert [] == connection.execute("SELECT * FROM a").fetchall()
    for _ in range(2):
        schema.migrate_sqlite(connection, [first, second])
    schema.migrate_sqlite(connection, [first])
    assert [(1, 2)] == connection.execute("SELECT x, y FROM a").fetchall()
    assert (2,) == connection.execute("PRAGMA user_version").fetchone()
    connection.close()


@pytest.mark.parametrize(
    ("statements", "text"),
    [
        (["CREATE TABLE other (x)"], "not one of memci"),
        (["PRAGMA user_version = 1"], "not one of memci"),
        ([f"PRAGMA application_id = {schema.APPLICATION_ID}", "PRAGMA user_version = 99"], "newer memci"),
    ],
)
def test_other_databases_are_refused(tmp_path: Path, statements: list[str], text: str) -> None:
    """A database of another program, or of a newer memci, is neither read nor written."""
    connection = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    before = files_of(tmp_path)
    store = SqliteStore(tmp_path / "chats.db")
    calls: list[Callable[[], Any]] = [
        lambda: list(store.sessions(TENANT)),
        lambda: append_each(store.open(TENANT, "session").journal, "a"),
    ]
    for call in calls:
        with pytest.raises(StoreError, match=text):
            call()
    assert before == files_of(tmp_path)
    store.close()


def test_many_can_begin_at_once(tmp_path: Path) -> None:
    """Threads with stores of their own that make the database at the same time all succeed."""
    stores = [SqliteStore(tmp_path / "chats.db", "flush") for _ in range(8)]
    in_threads(lambda number: append_each(stores[number].open(TENANT, str(number)).journal, "a"), range(8))
    assert [str(number) for number in range(8)] == sorted(stores[0].sessions(TENANT))
    for store in stores:
        store.close()


def test_a_fork_within_a_commit_harms_nobody(tmp_path: Path) -> None:
    """A child that was forked while another thread was committing can append, and the commit of the parent is whole."""
    io = HeldIo()
    store = SqliteStore(tmp_path / "chats.db", "flush", io=io)
    journals = [store.open(TENANT, name).journal for name in ("parent", "child")]
    for journal in journals:
        append_each(journal, "first")
    io.is_held.clear()
    io.let_go.clear()
    thread = threading.Thread(target=append_each, args=(journals[0], "second"))
    thread.start()
    io.is_held.wait()
    threading.Timer(0, io.let_go.set).start()
    assert 0 == in_child(lambda: append_each(journals[1], "second"))
    thread.join()
    assert [["first", "second"]] * 2 == [texts_of(journal) for journal in journals]
    store.close()
