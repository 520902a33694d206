"""Rows that are not what was written: every case is a typed error of its own session, and none is served."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pytest

from memci.archive.stores.contract import SessionStore, Store
from memci.archive.stores.sql.postgres import PostgresStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.errors import CorruptError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.sql.postgres_server import PostgresServer

TEXTS = ("one", "two", "three", "four")


@attrs.frozen
class Damaged:
    """A store, and a way to its rows that the store knows nothing of.

    Attributes:
        store: Holds the sessions "session" (row 1) and "other" (row 2), with four records each.
        run: Runs a statement and returns its rows; ``{}`` stands before the names of tables, ``?`` for values.
    """

    store: Store
    run: Callable[..., list[Any]]

    def session(self) -> SessionStore:
        return self.store.open(TENANT, "session")

    def change_line(self, change: Callable[[bytes], bytes], seq: int = 2) -> None:
        line = bytes(self.run("SELECT line FROM {}record WHERE session = 1 AND seq = ?", seq)[0][0])
        self.run("UPDATE {}record SET line = ? WHERE session = 1 AND seq = ?", change(line), seq)

    def assert_told(self, seq: int) -> None:
        """Reading yields what comes before the damage and then says where it is; the other session is whole."""
        seen: list[int] = []
        with pytest.raises(CorruptError) as caught:
            seen.extend(record.seq for record in self.session().journal.read())
        assert (seq, "session") == (caught.value.seq, caught.value.session)
        assert list(range(1, seq)) == seen
        assert list(TEXTS) == texts_of(self.store.open(TENANT, "other").journal)


def begun(store: Store, run: Callable[..., list[Any]]) -> Damaged:
    for name in ("session", "other"):
        append_each(store.open(TENANT, name).journal, *TEXTS)
    return Damaged(store, run)


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Damaged]:
    def run(sql: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(tmp_path / "chats.db")) as connection, connection:
            return connection.execute(sql.replace("{}", ""), values).fetchall()

    store = SqliteStore(tmp_path / "chats.db", "flush")
    yield begun(store, run)
    store.close()


@pytest.fixture
def on_postgres(postgres: PostgresServer) -> Iterator[Damaged]:
    url = postgres.new_url()

    def run(sql: str, *values: object) -> list[Any]:
        with psycopg.connect(url) as connection:
            cursor = connection.execute(sql.replace("{}", "memci_").replace("?", "%s").encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    store = PostgresStore(url)
    yield begun(store, run)
    store.close()


@pytest.fixture(params=["on_sqlite", pytest.param("on_postgres", marks=pytest.mark.server)])
def damaged(request: pytest.FixtureRequest) -> Damaged:
    found: Damaged = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b"two", b"too"),
        lambda line: line.replace(b'"kind"', b'"left":1,"of":2,"kind"'),
        lambda line: line.replace(b'"seq":2', b'"seq":3'),
        lambda line: line.replace(b"appended", b"appendee"),
        lambda line: line[:-2],
        lambda line: line + b"\n",
        lambda _: b"",
    ],
)
def test_a_changed_line_is_told(damaged: Damaged, change: Callable[[bytes], bytes]) -> None:
    """A line whose bytes are not those that were written is damage at its place."""
    damaged.change_line(change)
    damaged.assert_told(2)


def test_any_flipped_bit_is_told(on_sqlite: Damaged) -> None:
    """Whichever byte of a line is changed, nothing wrong is served."""
    line = bytes(on_sqlite.run("SELECT line FROM record WHERE session = 1 AND seq = 2")[0][0])
    for place in range(len(line)):
        flipped = bytearray(line)
        flipped[place] ^= 1
        on_sqlite.run("UPDATE record SET line = ? WHERE session = 1 AND seq = 2", bytes(flipped))
        with pytest.raises(CorruptError):
            texts_of(on_sqlite.session().journal)


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("DELETE FROM {}record WHERE session = 1 AND seq = 3", 3),
        ("DELETE FROM {}record WHERE session = 1 AND seq = 4", 4),
        ("UPDATE {}session SET head = 3 WHERE id = 1", 4),
        ("UPDATE {}session SET head = 7 WHERE id = 1", 5),
        ("UPDATE {}record SET line = (SELECT line FROM {}record WHERE session = 2 AND seq = 1) WHERE session = 1 AND seq = 1", 1),
        ("UPDATE {}record SET line = (SELECT line FROM {}record WHERE session = 1 AND seq = 2) WHERE session = 1 AND seq = 3", 3),
    ],
)
def test_rows_that_do_not_fit_are_told(damaged: Damaged, statement: str, seq: int) -> None:
    """A row that is missing, too many, of another place or of another session is damage."""
    damaged.run(statement)
    damaged.assert_told(seq)


@pytest.mark.parametrize(
    "statement", ["DELETE FROM {}record WHERE session = 1 AND seq = 4", "UPDATE {}session SET head = 3 WHERE id = 1"]
)
def test_nothing_is_appended_to_a_damaged_head(damaged: Damaged, statement: str) -> None:
    """Where row and records do not agree on the head, nobody is told one, and nobody appends."""
    damaged.run(statement)
    session = damaged.session()
    with pytest.raises(CorruptError):
        session.journal.head()
    for expected in (3, 4):
        with pytest.raises(CorruptError):
            session.journal.append(expected, [new_record("lost")])


def test_a_commit_without_its_end_is_told(damaged: Damaged) -> None:
    """A commit that was cut, with the head put where it was cut, is damage: a transaction is never torn."""
    session = damaged.session()
    session.journal.append(4, [new_record("five"), new_record("six")])
    damaged.run("DELETE FROM {}record WHERE session = 1 AND seq = 6")
    damaged.run("UPDATE {}session SET head = 5 WHERE id = 1")
    with pytest.raises(CorruptError) as caught:
        texts_of(session.journal)
    assert 6 == caught.value.seq


def test_a_damaged_record_is_not_redacted(damaged: Damaged) -> None:
    """Redacting takes nothing out of a journal in which one of the records is damaged or missing."""
    damaged.change_line(lambda line: line.replace(b"two", b"too"))
    with pytest.raises(CorruptError):
        damaged.session().journal.redact({1: b"{}", 2: b"{}"})
    damaged.run("DELETE FROM {}record WHERE session = 1 AND seq = 2")
    with pytest.raises(CorruptError):
        damaged.session().journal.redact({1: b"{}", 2: b"{}"})
    assert ["one"] == texts_of(damaged.session().journal, 0, 1)


def test_a_damaged_snapshot_is_passed_over(damaged: Damaged) -> None:
    """A snapshot that is damaged, or of another place, is reported and an older one is found."""
    session = damaged.session()
    for seq in (1, 2, 3):
        session.snapshots.put(seq, b'{"seq":%d}' % seq)
    damaged.run("UPDATE {}snapshot SET line = ? WHERE seq = 3", b"{}")
    damaged.run("UPDATE {}snapshot SET line = (SELECT line FROM {}snapshot WHERE seq = 1) WHERE seq = 2")
    assert (1, b'{"seq":1}') == session.snapshots.find()
    assert ["snapshot 3", "snapshot 2"] == [problem.partition(":")[0] for problem in session.snapshots.problems()]
