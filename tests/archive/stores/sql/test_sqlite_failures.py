"""What becomes of errors of the SQLite library."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memci.archive.stores.sql.schema import Found
from memci.archive.stores.sql.sqlite import SqliteIo, SqliteStore
from memci.errors import CorruptError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of


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
    with pytest.raises(UnavailableError, match="open it again"):
        session.journal.append(1, [new_record("lost")])
    session.close()
    again = store.open(TENANT, "session")
    assert 2 == again.journal.append(1, [new_record("b")])
    assert ["a", "b"] == texts_of(again.journal)


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
