"""What it costs that the index follows the journal, counted, and that it is the same however it was filled."""

import itertools
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.engine.core import indexing
from memci.engine.session import Session
from tests.engine.sessions import open_session, talk, turn

PAGES = 600
MOST_BYTES = 3_000  # in the log of the index, for a page of some 900 bytes of messages; a checkpoint writes them once more


def statements(session: Session, turns: int) -> int:
    """Return how many statements the index takes, those of the full-text index left out, to follow so many turns."""
    asked: list[str] = []
    session._core.ask(lambda index: index._db().connection.set_trace_callback(asked.append))
    talk(session, turns, first=session.turn + 1)
    session._core.ask(lambda index: index.seq)
    session._core.ask(lambda index: index._db().connection.set_trace_callback(None))
    return sum(not statement.startswith("-- ") for statement in asked)


def test_statements_a_page() -> None:
    """A page takes three statements: its facts, what is said in it, and its words."""
    session = open_session()
    talk(session, 3)
    few, many = statements(session, 20), statements(session, 120)
    assert (many - few) / 100 <= 3


def test_bytes_a_page(tmp_path: Path) -> None:
    """While a session goes on, what the index writes is bounded by the page, and does not repeat the texts."""
    session = open_session(FileStore(tmp_path, "flush"), budget={"window": 4_000, "reserve": 0})
    session._core.ask(lambda index: index._db().run("PRAGMA wal_autocheckpoint = 0"))
    for number in range(1, PAGES + 1):
        session.extend(turn(number, 40))
    (log,) = tmp_path.rglob("index.sqlite-wal")
    assert 0 < log.stat().st_size <= PAGES * MOST_BYTES


@pytest.mark.parametrize("asked_every", [1, 7])
def test_the_index_is_the_same_however_it_was_filled(asked_every: int) -> None:
    """Filled as the session goes on, with folds, rewinds and recalls, it holds what one made from the journal holds."""
    session = open_session(budget={"window": 2_000, "reserve": 0})
    for number in range(1, 60):
        session.extend(turn(number, 20), key=f"k{number}")
        if number % 20 == 0:
            session.rewind(f"usr-{session.turn - 2}/2")
            session.recall("usr-2")
        if number % asked_every == 0:
            session.search(f"say{number}x1")
    known = session._core.ask(lambda index: list(index.rows()))
    session._core.empty_index()
    for known_row, row in itertools.zip_longest(known, session._core.ask(lambda index: list(index.rows()))):
        assert known_row == row


def test_the_index_may_be_behind_until_it_is_asked() -> None:
    """Folds alone bring the index up to date only once it is some hundred events behind."""
    session = open_session(budget={"window": 1_000, "reserve": 0})
    talk(session, 30)
    index = session._core.store.index
    assert 0 == index.seq < session.seq
    talk(session, indexing.INDEX_CHUNK // 2, first=31)
    assert indexing.INDEX_CHUNK <= index.seq < session.seq
    session.search("say1x1")
    assert session.seq == index.seq
