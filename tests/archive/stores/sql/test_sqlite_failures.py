"""What becomes of errors of the SQLite library, and of writers that are killed."""

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memci.archive.stores.sql.schema import Found
from memci.archive.stores.sql.sqlite import SqliteIo, SqliteStore
from memci.errors import CorruptError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of

ROUNDS = 6

WRITER = """
import os
import sys
from memci.archive.stores.contract import NewRecord
from memci.archive.stores.sql.sqlite import SqliteStore

session = SqliteStore(sys.argv[1]).open("default", "session")
head = session.journal.head()
os.write(1, b"%d\\n" % head)
while True:
    count = head % 3 + 1
    texts = [f"{head + number}:" + "x" * 700 for number in range(1, count + 1)]
    head = session.journal.append(head, [NewRecord("appended", 1, b'{"text":"%b"}' % text.encode()) for text in texts])
    os.write(1, b"%d\\n" % head)
    if head % 5 == 0:
        session.pages.put({f"usr-{head}": b"page %d" % head})
        session.snapshots.put(head, b"%d" % head)
"""


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


def acknowledged_before_kill(path: Path, lines: int) -> int:
    """Run a writer, kill it once it has acknowledged so many commits, and return the last sequence number it told."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 (fixed words)
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().splitlines(keepends=True)
    assert -signal.SIGKILL == process.returncode
    return int([line for line in told if line.endswith(b"\n")][-1])


def test_a_killed_writer_loses_nothing_acknowledged(store: SqliteStore, tmp_path: Path) -> None:
    """After each of many kills every acknowledged record is there in order, and the next writer goes on from there."""
    chance = random.Random(17)  # noqa: S311 (where to kill)
    head = 0
    for _ in range(ROUNDS):
        acknowledged = acknowledged_before_kill(tmp_path / "chats.db", chance.randrange(1, 30))
        assert acknowledged >= head
        session = store.open(TENANT, "session", read_only=True)
        head = session.journal.head()
        assert acknowledged <= head <= acknowledged + 3
        assert [f"{seq}:" + "x" * 700 for seq in range(1, head + 1)] == texts_of(session.journal)
        assert all(session.pages.find(name) == b"page " + name[4:].encode() for name in session.pages.names())
        assert [] == list(session.snapshots.problems())
        session.close()
    session = store.open(TENANT, "session")
    assert head + 1 == session.journal.append(head, [new_record("after the last kill")])
