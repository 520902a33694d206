"""The search index that a database keeps: the same answers, little that is read for them, and no erased words."""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from memci import Engine, Session
from memci.archive.catalogue.page_facts import ReopenIndexError
from memci.archive.stores.sql.index_blocks import BLOCK_BYTES, Blocks
from memci.archive.stores.sql.postgres import PostgresStore
from memci.archive.stores.sql.postgres_connections import PostgresIo
from memci.archive.stores.sql.schema import Found, Statement
from memci.errors import UnavailableError
from tests.archive.stores.sql.postgres_server import PostgresServer

pytestmark = pytest.mark.server

RARE = "zyxomma"
CONFIG = {"budget": {"window": 1000, "reserve": 0}}
QUERY = "question 3 about the lighthouse"


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_url()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with Engine(store=url, config=CONFIG) as engine:
        yield engine


def talk(session: Session, turns: int) -> None:
    for number in range(turns):
        place = "lighthouse" if number % 100 == 3 else "harbour"
        session.append({"role": "user", "content": f"question {number} about the {place}"})
        session.append({"role": "assistant", "content": f"answer {number}"})


def blocks(url: str) -> list[bytes]:
    """Return the blocks that the database has."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT body FROM memci_search_block ORDER BY number").fetchall()
    return [zlib.decompress(body) for (body,) in found]


def execute(url: str, sql: str, *values: object) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.encode(), values or None)


def found_in(session: Session) -> list[tuple[str, float]]:
    return [(hit.index, hit.score) for hit in session.search(QUERY, limit=5)]


def search_anew(url: str) -> tuple[Counter[str], list[tuple[str, float]]]:
    """Return how many records and blocks the first search of an opening reads, and what it finds."""
    read: Counter[str] = Counter()

    class Io(PostgresIo):
        def execute(self, connection: psycopg.Connection, sql: str, values: Sequence[object] = ()) -> Found:
            rows = super().execute(connection, sql, values)
            if sql.lstrip().startswith("SELECT"):
                read["records"] += len(rows) if "memci_record AS record" in sql else 0
                read["blocks"] += len(rows) if "search_block" in sql else 0
            return rows

    store = PostgresStore(url, io=Io())
    with Engine(store=store, config=CONFIG) as engine:
        session = engine.session("talk")
        read.clear()
        found = found_in(session)
    store.close()
    return read, found


@pytest.mark.slow
def test_the_first_search_of_an_opening_reads_what_it_needs(url: str) -> None:
    """Another worker reads few records, and not all blocks of a long session, and ranks as one that reads the whole journal."""
    most = 0
    for turns in (500, 3000):
        with Engine(store=url, config=CONFIG) as engine, engine.session("talk") as session:
            talk(session, turns)
            session.search("harbour")
            session.append({"role": "user", "content": "one more"})
        read, found = search_anew(url)
        assert read["records"] <= 70
        assert read["blocks"] <= 64 + 64
        most = len(blocks(url))
    assert most > 160
    execute(url, "DELETE FROM memci_search_block; DELETE FROM memci_search_index")
    read, found_by_all = search_anew(url)
    assert read["records"] > 7000
    assert found == found_by_all


def test_erased_words_are_in_no_block(engine: Engine, url: str) -> None:
    """Erasing takes the blocks away, and a worker that does not know of it keeps none afterwards."""
    with engine.session("talk") as session:
        session.append({"role": "user", "content": f"my word is {RARE}"})
        talk(session, 200)
        session.search("harbour")
    assert any(RARE.encode() in block for block in blocks(url))
    execute(url, "DELETE FROM memci_search_block; DELETE FROM memci_search_index")
    with Engine(store=url, config=CONFIG) as other, other.session("talk") as stale:
        stale.search(RARE)  # it has all to keep
        with engine.session("talk") as session:
            session.erase("usr-1")
    assert not any(RARE.encode() in block for block in blocks(url))


@pytest.mark.slow
def test_damaged_blocks_are_made_anew(engine: Engine, url: str) -> None:
    """Blocks that are no index, or one of another version, or that are missing, are not used."""
    with engine.session("talk") as session:
        talk(session, 1500)
        found = found_in(session)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("PRAGMA page_size = 16384; CREATE TABLE meta (seq); PRAGMA user_version = 1")
        older = connection.serialize()
    kept = blocks(url)
    assert len(kept) > 70
    damages: list[tuple[str, tuple[object, ...]]] = [
        ("UPDATE memci_search_block SET body = %s WHERE number BETWEEN %s AND %s", (body, *numbers))
        for numbers in ((0, 0), (1, 1), (64, 999))
        for body in (b"x", *map(zlib.compress, (b"", bytes(16384), older[:16384])))
    ]
    damages += [("DELETE FROM memci_search_block WHERE number > 0", ()), ("DELETE FROM memci_search_block", ())]
    for damage, values in damages:
        execute(url, damage, *values)
        with Engine(store=url, config=CONFIG) as other, other.session("talk") as session:
            assert found == found_in(session)
            session.search("harbour")
        assert kept[0][:16] == blocks(url)[0][:16]


@pytest.mark.slow
def test_two_workers_that_index_at_the_same_time_find_the_same(url: str) -> None:
    """Who finds that another one kept the index goes on with that one, and nothing is made twice or lost."""
    with Engine(store=url, config=CONFIG) as first, Engine(store=url, config=CONFIG) as second:
        one, other = first.session("talk"), second.session("talk")
        for _ in range(4):
            for session in (one, other):
                session.refresh()
                talk(session, 100)
                session.search("harbour")
                session.append({"role": "user", "content": f"my word is {RARE}"})
        for session in (one, other):
            session.refresh()
            talk(session, 2)
            assert len(session.search(RARE, limit=20, include_visible=True)) == 8
            assert session.verify().ok
        one.refresh()
        found = found_in(one)
        one.close()
        other.close()
    assert search_anew(url)[1] == found


@pytest.mark.slow
def test_an_index_that_others_went_on_with_is_read_again(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A worker whose blocks are of an older version, and who needs more of them, answers from the newer one, unnoticed."""
    with Engine(store=url, config=CONFIG) as first, Engine(store=url, config=CONFIG) as second:
        with first.session("talk") as session:
            talk(session, 1500)
            session.search("harbour")
        reader = second.session("talk")
        assert reader.facts("usr-3").entries == 2
        with first.session("talk") as session:
            talk(session, 100)
            session.search("harbour")
        reader.refresh()
        with first.session("talk") as session:
            assert found_in(reader) == found_in(session)
        assert "others went on" not in caplog.text


@pytest.mark.slow
def test_who_was_outrun_keeps_the_index_later(url: str) -> None:
    """A worker that could not keep its blocks, as others kept theirs, continues from those and keeps what it indexes then."""
    with Engine(store=url, config=CONFIG) as first, Engine(store=url, config=CONFIG) as second:
        with first.session("talk") as session:
            talk(session, 100)
            session.search("harbour")
        outrun = second.session("talk")
        outrun.search("harbour")
        with first.session("talk") as session:
            talk(session, 50)
            session.search("harbour")
        outrun.refresh()
        for _ in range(2):
            talk(outrun, 200)
            outrun.search("harbour")
        read, found = search_anew(url)
        assert read["records"] < 400
        assert found == found_in(outrun)


def test_what_was_never_kept_is_not_in_what_is_loaded() -> None:
    """A file of blocks that is loaded from the database forgets what was written before."""

    class NoRows:
        def begin(self) -> int:
            return 1

        def read_own(self, _sql: str, *_values: object) -> Found:
            return []

        def change(self, _statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
            return [] if removes else [[]]

    file = Blocks(NoRows())
    file.write(0, b"x" * BLOCK_BYTES)
    file.load()
    assert (0, 0) == (file.written, file.size)


def test_blocks_go_with_their_session_and_beside_a_directory_none_are_kept(engine: Engine, url: str, tmp_path: Path) -> None:
    """A deleted session leaves no block, and neither does a worker that keeps its indexes in a directory."""
    with engine.session("talk") as session:
        talk(session, 200)
        session.search("harbour")
    assert blocks(url)
    engine.delete("talk")
    joint = "&" if "?" in url else "?"
    with Engine(store=f"{url}{joint}memci_index={tmp_path}", config=CONFIG) as local, local.session("other") as session:
        talk(session, 200)
        session.search("harbour")
    assert not blocks(url)


def test_who_keeps_indexes_elsewhere_erases_in_the_database_too(engine: Engine, url: str, tmp_path: Path) -> None:
    """An erasing by a worker whose indexes lie in a directory takes the blocks out as well."""
    with engine.session("talk") as session:
        session.append({"role": "user", "content": f"my word is {RARE}"})
        talk(session, 200)
        session.search("harbour")
    assert any(RARE.encode() in block for block in blocks(url))
    joint = "&" if "?" in url else "?"
    with Engine(store=f"{url}{joint}memci_index={tmp_path}", config=CONFIG) as local, local.session("talk") as session:
        session.erase("usr-1")
    assert not blocks(url)


@pytest.mark.slow
def test_what_stays_open_is_kept_too(engine: Engine, url: str) -> None:
    """A session that is never closed, and searched all the time, lets another worker read few records."""
    with engine.session("talk") as session:
        for _ in range(8):
            talk(session, 100)
            session.search("harbour")
        assert search_anew(url)[0]["records"] < 600


@pytest.mark.slow
def test_an_index_that_is_outrun_again_and_again_answers(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches and ``verify`` go on while others keep the index in between."""
    with Engine(store=url, config=CONFIG) as engine, engine.session("talk") as session:
        talk(session, 1500)
        session.search("harbour")
    times = 0
    read = Blocks.read

    def outrun(self: Blocks, number: int) -> bytes:
        nonlocal times
        if number > 64 and times < 2:
            times += 1
            execute(url, "UPDATE memci_search_index SET version = gen_random_uuid()")
        return read(self, number)

    with Engine(store=url, config=CONFIG) as engine, engine.session("talk") as session:
        expected = found_in(session)
    monkeypatch.setattr(Blocks, "read", outrun)
    for ask in (found_in, lambda session: session.verify().ok):
        times = 0
        with Engine(store=url, config=CONFIG) as engine, engine.session("talk") as session:
            assert ask(session) in (expected, True)
        assert times == 2


@pytest.mark.slow
def test_a_server_that_was_away_for_one_search_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error that passes the index in the database is asked again, and kept."""
    with Engine(store=url, config=CONFIG) as engine:
        session = engine.session("talk")
        talk(session, 1500)
        session.search("harbour")
        session.close()
        session = engine.session("talk")

        def away(*_: object) -> bytes:
            raise ReopenIndexError(error)

        error = "the server is away"
        with monkeypatch.context() as patched:
            patched.setattr(Blocks, "read", away)
            with pytest.raises(UnavailableError, match="away"):
                session.search("harbour")
        talk(session, 300)
        session.search("harbour")
        session.close()
    assert search_anew(url)[0]["records"] < 100
