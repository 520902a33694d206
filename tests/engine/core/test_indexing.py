"""What it costs that the index follows the journal, counted, and that it is the same however it was filled."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.catalogue.page_index import PageIndex
from memci.archive.stores.file.store import FileStore
from memci.engine.core import indexing
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import UnavailableError
from tests.engine.sessions import config_of, open_session, talk, turn

PAGES = 600
MOST_BYTES = 2_000  # in the log of the index, for a page of some 900 bytes of messages; a checkpoint writes them once more


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


@pytest.mark.slow
def test_bytes_a_page(tmp_path: Path) -> None:
    """While a session goes on, what the index writes is bounded by the page, and does not repeat the texts."""
    session = open_session(FileStore(tmp_path, "flush"), budget={"window": 4_000, "reserve": 0})
    session._core.ask(lambda index: index._db().run("PRAGMA wal_autocheckpoint = 0"))
    (path,) = tmp_path.rglob("index.sqlite")
    other = PageIndex(str(path))  # without it, what is written goes to no log
    for number in range(1, PAGES + 1):
        session.extend(turn(number, 40))
    assert 0 < Path(f"{path}-wal").stat().st_size <= PAGES * MOST_BYTES
    other.close()


def test_what_follows_by_itself_is_written_once(tmp_path: Path) -> None:
    """Where nobody else has the index open, what it takes in ahead of those who ask goes to no log, but into its file at once."""
    session = open_session(FileStore(tmp_path, "flush"), budget={"window": 1_000, "reserve": 0})
    talk(session, indexing.INDEX_CHUNK // 2 + 20)
    assert session._core.store.index.seq >= indexing.INDEX_CHUNK
    assert 0 == sum(path.stat().st_size for path in tmp_path.rglob("index.sqlite-wal"))
    session.search("say1x1")
    assert session._core.store.index.seq == session.seq


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


def behind(session: Session) -> Callable[[], object]:
    """Let a session's index be far behind, and return the step of it that needs no lock, not yet done."""
    talk(session, 3)
    session.search("say1x1")
    with session._core.lock:  # so that the engine's thread cannot be faster
        talk(session, indexing.INDEX_AHEAD // 2 + 1, first=4)
        rest = session._core.keep_up()
    assert rest is not None
    return rest


def rows(session: Session) -> list[object]:
    return session._core.ask(lambda index: list(index.rows()))


def test_commands_go_on_while_the_index_follows(tmp_path: Path) -> None:
    """While events that were read are on their way into the index, others may write, search and rewind: it becomes the same."""
    for command in (
        lambda session: talk(session, 1, first=session.turn + 1),
        lambda session: session.search("say9x1"),
        lambda session: session.rewind("usr-150/2"),
        lambda _: None,
    ):
        session = open_session(FileStore(tmp_path / str(id(command)), "flush"))
        rest = behind(session)
        command(session)
        rest()
        known = rows(session)
        session._core.empty_index()
        assert known == rows(session)


def test_the_index_knows_where_a_kept_page_is() -> None:
    """A page that is kept is in view again, and was archived in no turn."""
    session = open_session(active={"min_pages": 1})
    talk(session, 4)
    session.fold("all")
    session.keep(1)
    known = session._core.ask(lambda index: {page.index: (page.state, page.archived_turn) for page in index.pages()})
    assert [(PageState.ACTIVE, None), (PageState.ARCHIVED, 4)] == [known["usr-1"], known["usr-2"]]


def test_what_is_erased_meanwhile_does_not_come_into_the_index(tmp_path: Path) -> None:
    """Events that were read before their page was erased are not taken in after."""
    session = open_session(FileStore(tmp_path, "flush"))
    rest = behind(session)
    session.erase("usr-100")
    rest()
    assert [] == session.search("ask100x1 say100x1")
    session.close()
    assert not any(b"100x1" in path.read_bytes() for path in tmp_path.rglob("index.sqlite*"))


def test_an_index_of_before_an_erasure_is_made_again(tmp_path: Path) -> None:
    """Where an older copy of it comes back, as from a backup, no search finds what was erased since, and no file has it."""
    with Engine(FileStore(tmp_path, "flush"), config_of()) as engine, engine.session("chat") as session:
        talk(session, 6)
        assert session.search("ask2x1", include_visible=True)
    (path,) = tmp_path.rglob("index.sqlite")
    before = path.read_bytes()
    with Engine(FileStore(tmp_path, "flush"), config_of()) as engine, engine.session("chat") as session:
        session.erase("usr-2")
    path.write_bytes(before)
    with Engine(FileStore(tmp_path, "flush"), config_of()) as engine, engine.session("chat") as session:
        assert [] == session.search("ask2x1", include_visible=True)
        assert session.search("ask3x1", include_visible=True)
    assert not any(b"ask2x1" in found.read_bytes() for found in tmp_path.rglob("index.sqlite*"))


def test_a_session_that_is_deleted_meanwhile_stays_deleted(tmp_path: Path) -> None:
    """A step that comes too late makes no file."""
    engine = Engine(FileStore(tmp_path, "flush"), config_of())
    rest = behind(engine.session("chat"))
    engine.delete("chat")
    with pytest.raises(UnavailableError):
        rest()
    assert not any(tmp_path.rglob("index.sqlite*"))
