"""Flipped bits in an SQLite database: none hides a session, and nothing is written to a database that is damaged."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memci.archive.stores.sql.sqlite import SqliteStore
from memci.errors import CorruptError, MemciError, StoreError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of

PAGE = 4_096
LONG = "long " * 60
TEXTS = {"a": [f"{number} " + "x" * 300 for number in range(30)], "b": ["one", "two"], LONG: ["three"]}


@pytest.fixture
def path(quick_path: Path) -> Path:
    return quick_path / "chats.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """Return a closed store of some sessions, one of which was deleted; it opens anew with every call after ``close``."""
    store = SqliteStore(path, "flush")
    for session_id, texts in {**TEXTS, "gone": TEXTS["a"]}.items():
        session = store.open(TENANT, session_id)
        append_each(session.journal, *texts)
        session.pages.put({"usr-1": b"page" * 100})
        session.snapshots.put(1, b"{}")
    store.delete(TENANT, "gone")
    store.close()
    yield store
    store.close()


def root_of(path: Path, name: str) -> int:
    """Return where the first page of a table or index begins."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    return (int(found[0]) - 1) * PAGE


def flip(path: Path, place: int, bit: int) -> bytes:
    """Flip a bit of a file and return what it then holds."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return bytes(content)


def read_all(store: SqliteStore) -> dict[str, list[str]]:
    """Read every session that is listed, as a new process does."""
    try:
        ids = list(store.sessions(TENANT))
        return {session_id: texts_of(store.open(TENANT, session_id, read_only=True).journal) for session_id in ids}
    finally:
        store.close()


def append_to_all(store: SqliteStore) -> None:
    try:
        for session_id, texts in TEXTS.items():
            store.open(TENANT, session_id).journal.append(len(texts), [new_record("more")])
        append_each(store.open(TENANT, "new").journal, "more")
    finally:
        store.close()


def check_flip(store: SqliteStore, path: Path, content: bytes, place: int, bit: int) -> str:
    """Read and write with a flipped bit; what is read is whole, and what was there is kept, or there is a typed error."""
    path.write_bytes(content)
    damaged = flip(path, place, bit)
    try:
        assert TEXTS == read_all(store)
    except StoreError:
        return "told"
    try:
        append_to_all(store)
    except MemciError:
        assert damaged == path.read_bytes()
        return "refused"
    assert {"new": ["more"], **{session_id: [*texts, "more"] for session_id, texts in TEXTS.items()}} == read_all(store)
    return "whole"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_told_or_does_no_harm(store: SqliteStore, path: Path, seed: int) -> None:
    """Whichever bit it is, nothing is hidden from a reader, and nothing is lost through a writer."""
    content = path.read_bytes()
    chance = random.Random(seed)  # noqa: S311 (cases to repeat)
    headers = [page + place for page in range(0, len(content), PAGE) for place in range(12)]
    places = [*chance.sample(range(100), 25), *chance.sample(headers, 75), *chance.sample(range(len(content)), 75)]
    outcomes = {check_flip(store, path, content, place, chance.randrange(8)) for place in places}
    assert {"told", "refused", "whole"} == outcomes


@pytest.mark.parametrize("tree", ["session", "sqlite_autoindex_session_1"])
def test_a_hidden_session_is_not_begun_anew(store: SqliteStore, path: Path, tree: str) -> None:
    """Where the table of sessions, or its index, says that there are none, that is damage for readers and writers."""
    place = root_of(path, tree)
    content = bytearray(path.read_bytes())
    content[place + 3 : place + 5] = bytes(2)  # the number of cells
    path.write_bytes(content)
    for call in (
        lambda: list(store.sessions(TENANT)),
        store.open(TENANT, "a", read_only=True).journal.head,
        lambda: append_each(store.open(TENANT, "a").journal, "lost"),
        lambda: store.delete(TENANT, "a"),
    ):
        with pytest.raises(CorruptError, match=r"chats\.db"):
            call()
    store.close()
    assert bytes(content) == path.read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        "PRAGMA user_version = 0",
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE name = 'session'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'heae', 'head') || ' ' WHERE name = 'session'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 'recorc', tbl_name = 'recorc' WHERE name = 'record'",
    ],
)
def test_a_damaged_schema_is_told(store: SqliteStore, path: Path, damage: str) -> None:
    """A database without its version or one of its tables is damage, and none that is to be made."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(damage)
    content = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(CorruptError):
            store.open(TENANT, "a", read_only=read_only).journal.head()
    with pytest.raises(CorruptError):
        append_each(store.open(TENANT, "new").journal, "lost")
    assert content == path.read_bytes()


def test_room_that_is_none_is_not_written_to(store: SqliteStore, path: Path) -> None:
    """Where a page says that stored bytes are free, they can be read, a check finds it, and no writer overwrites them."""
    place = root_of(path, "sqlite_autoindex_page_1")
    content = flip(path, place + 6, 1)  # where the cells begin
    session = store.open(TENANT, "a", read_only=True)
    assert TEXTS["a"] == texts_of(session.journal)
    with pytest.raises(CorruptError, match="damaged"):
        list(session.snapshots.problems())
    store.close()
    with pytest.raises(CorruptError, match="damaged"):
        append_each(store.open(TENANT, "new").journal, "lost")
    assert content == path.read_bytes()


def test_a_damaged_id_is_told(store: SqliteStore, path: Path) -> None:
    """A session whose id is damaged is listed by what its row is named after; where that is a hash, it is an error."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE session SET session_id = x'FF' WHERE name = 'b'")
    assert sorted(TEXTS) == sorted(store.sessions(TENANT))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE session SET session_id = x'41' WHERE name LIKE '~%'")
    with pytest.raises(CorruptError, match="row of ~"):
        list(store.sessions(TENANT))


def test_a_session_whose_head_is_damaged_is_listed(store: SqliteStore, path: Path) -> None:
    """A head of 0 hides no session that has records; whoever opens it is told."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE session SET head = 0 WHERE name = 'b'")
    assert sorted(TEXTS) == sorted(store.sessions(TENANT))
    with pytest.raises(CorruptError, match="head"):
        store.open(TENANT, "b").journal.head()


def test_other_tables_beside_those_of_the_store_do_no_harm(store: SqliteStore, path: Path) -> None:
    """Whoever analyses the database, or adds an index, has not damaged it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("CREATE INDEX own ON record (line); ANALYZE; CREATE TABLE own_table (a)")
    assert TEXTS == read_all(store)
    append_to_all(store)
    shutil.copy(path, path.with_suffix(".copy"))
    with closing(SqliteStore(path.with_suffix(".copy"))) as copy:
        assert {*TEXTS, "new"} == set(copy.sessions(TENANT))
