"""The copy of a search index that a database keeps for the next opening."""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest

from memci import Engine, Session
from memci.archive.stores.sql.postgres import PostgresStore
from memci.archive.stores.sql.postgres_connections import PostgresIo
from memci.archive.stores.sql.schema import Found
from tests.archive.stores.sql.postgres_server import PostgresServer

RARE = "zyxomma"
CONFIG = {"budget": {"window": 1000, "reserve": 0}}


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_url()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with Engine(store=url, config=CONFIG) as engine:
        yield engine


def talk(session: Session, turns: int) -> None:
    for number in range(turns):
        session.append({"role": "user", "content": f"question {number} about the harbour"})
        session.append({"role": "assistant", "content": f"answer {number}"})


def copies(url: str) -> list[bytes]:
    """Return the copies that the database has."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT body FROM memci_index_copy WHERE length(body) > 0").fetchall()
    return [zlib.decompress(body) for (body,) in found]


def execute(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.encode())


def search_anew(url: str) -> tuple[int, list[str]]:
    """Return how many records the first search of an opening reads of the journal, and what it finds."""
    read = 0

    class Io(PostgresIo):
        def execute(self, connection: psycopg.Connection, sql: str, values: Sequence[object] = ()) -> Found:
            nonlocal read
            rows = super().execute(connection, sql, values)
            read += len(rows) if "line" in sql and sql.lstrip().startswith("SELECT") else 0
            return rows

    store = PostgresStore(url, io=Io())
    with Engine(store=store, config=CONFIG) as engine:
        hits = engine.session("talk").search("harbour question 3", limit=2)
    store.close()
    return read, [hit.index for hit in hits]


def test_first_search_of_an_opening_reads_an_eighth_of_the_journal_at_most(engine: Engine, url: str) -> None:
    """Another worker begins with the copy, and finds what one does that reads all."""
    with engine.session("talk") as session:
        talk(session, 1000)
        session.search("harbour")
        session.append({"role": "user", "content": "one more"})
        records = list(session.events())[-1].seq
    read, found = search_anew(url)
    assert read < records / 8 + 250
    execute(url, "DELETE FROM memci_index_copy")
    read_of_all, found_in_all = search_anew(url)
    assert read + records / 2 < read_of_all
    assert found == found_in_all


def test_erased_words_are_in_no_copy(engine: Engine, url: str) -> None:
    """Erasing takes the copy away, and a worker that does not know of it keeps none afterwards."""
    with engine.session("talk") as session:
        session.append({"role": "user", "content": f"my word is {RARE}"})
        talk(session, 200)
        session.search("harbour")
    assert any(RARE.encode() in copy for copy in copies(url))
    execute(url, "DELETE FROM memci_index_copy")
    with Engine(store=url, config=CONFIG) as other, other.session("talk") as stale:
        stale.search(RARE)  # it has all to keep
        with engine.session("talk") as session:
            session.erase("usr-1")
    assert not any(RARE.encode() in copy for copy in copies(url))


def test_damaged_copy_is_made_anew(engine: Engine, url: str) -> None:
    """A copy that is no index, or one of another version, is not used."""
    with engine.session("talk") as session:
        talk(session, 200)
        found = [hit.index for hit in session.search("harbour")]
    older = sqlite3.connect(":memory:")
    older.executescript("CREATE TABLE meta (seq); PRAGMA user_version = 1")
    for damaged in (b"x", *map(zlib.compress, (b"", bytes(5000), older.serialize()))):
        execute(url, r"UPDATE memci_index_copy SET body = '\x{}'".replace("{}", damaged.hex()))
        with Engine(store=url, config=CONFIG) as other, other.session("talk") as session:
            assert found == [hit.index for hit in session.search("harbour")]


def test_copies_go_with_their_session_and_beside_a_directory_none_is_kept(engine: Engine, url: str, tmp_path: Path) -> None:
    """A deleted session leaves no copy, and neither does a worker that keeps its indexes in a directory."""
    with engine.session("talk") as session:
        talk(session, 200)
        session.search("harbour")
    assert len(copies(url)) == 1
    engine.delete("talk")
    joint = "&" if "?" in url else "?"
    with Engine(store=f"{url}{joint}memci_index={tmp_path}", config=CONFIG) as local, local.session("other") as session:
        talk(session, 200)
        session.search("harbour")
    assert not copies(url)
