"""Forks: sessions that begin as another one was."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memci.archive.stores.contract import NewRecord, Record, Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.engine.engine import Engine
from memci.engine.history.events import ForkMade, from_record
from memci.engine.session import Session
from memci.errors import ConfigError, ConflictError, InvalidIdError, MemciError, PermissionDeniedError, StoreError
from tests.engine.sessions import config_of, heard, talk, turn
from tests.engine.wire import assistant, user

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "file": lambda path: FileStore(path, "flush"),
    "sqlite": lambda path: SqliteStore(path / "chats.db", "flush"),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(STORES[request.param](tmp_path)) as store:
        yield store


def begun(store: Store, turns: int = 6) -> tuple[Engine, Session]:
    """Return a session of so many turns, the older of which are folded."""
    engine = Engine(store, config_of(active={"min_pages": 2}, snapshot_every=5))
    session = engine.session("chat")
    talk(session, turns)
    session.fold("all")
    return engine, session


def records(store: Store, session_id: str) -> list[Record]:
    return list(store.open("default", session_id, read_only=True).journal.read())


def new_record(record: Record) -> NewRecord:
    return NewRecord(record.kind, record.version, record.body)


def test_a_fork_is_what_the_session_was(store: Store) -> None:
    """A fork has the messages, pages, contents page and window of its source; each goes on without the other."""
    engine, session = begun(store)
    window, pages = session.window(), session.pages()
    fork = engine.fork("chat", "other")
    notices = heard(fork)
    assert "other" == fork.id
    assert (window.to_json(), pages) == (fork.window().to_json(), fork.pages())
    assert list(session.messages()) == list(fork.messages())
    assert [hit.index for hit in session.search("say1x2")] == [hit.index for hit in fork.search("say1x2")]
    fork.append(user("only here"))
    session.append(user("only there"))
    assert [user("only there")] == session.page(7).messages
    assert [user("only here")] == fork.page(7).messages
    assert ((), ()) == (session.verify().problems, fork.verify().problems)
    assert [] == [notice for notice in notices if type(notice).__name__ == "PageRebuilt"]


def test_any_event_can_be_forked_at() -> None:
    """A fork at each event of a session shows what the session was after it, whatever happened since."""
    engine, session = begun(MemoryStore(), 3)
    session.rewind("usr-2/2")
    session.append(assistant("better"))
    session.restore_checkpoint(session.checkpoint("here").id)
    last = session.seq
    for at in range(1, last + 1):
        fork = engine.fork("chat", f"fork {at}", at)
        assert session.render(at=at).messages == fork.render(at=at).messages == fork.render(at=fork.seq).messages
        assert at + 1 == fork.seq
        assert () == fork.verify().problems


def test_a_fork_keeps_the_checkpoints_and_can_be_forked() -> None:
    """What can be gone back to in the source can be in the fork, and in a fork of that."""
    engine, session = begun(MemoryStore(), 4)
    checkpoint = session.checkpoint("four turns")
    talk(session, 1, first=5)
    again = engine.fork(engine.fork("chat", "child").id, "grandchild")
    again.restore_checkpoint(checkpoint.id)
    assert [value for number in range(1, 5) for value in turn(number)] == list(again.messages())
    again.append(user("on"))
    assert () == again.verify().problems
    assert "grandchild" == again._core.state.session


def test_the_source_notes_its_forks() -> None:
    """The source's journal names each fork and where it leaves, so that what is erased can be found there too."""
    store = MemoryStore()
    engine, session = begun(store, 2)
    engine.fork("chat", "a", 3)
    engine.fork("chat", "b")
    events = [event for record in records(store, "chat") if isinstance(event := from_record(record), ForkMade)]
    assert [("a", 3), ("b", session.seq - 1)] == [(event.session, event.fork_at) for event in events]


def test_deleting_the_source_leaves_the_fork() -> None:
    """A fork is whole by itself: nothing of it is stored with its source."""
    engine, session = begun(MemoryStore())
    said = list(session.messages())
    engine.fork("chat", "other").close()
    engine.delete("chat")
    with engine.session("other") as fork:
        assert said == list(fork.messages())
        assert () == fork.verify().problems


@pytest.mark.parametrize("at", [0, -1, 10_000, True, "3", 1.0])
def test_only_events_can_be_forked_at(at: object) -> None:
    """What is no event of the session is refused, and nothing is written."""
    engine, session = begun(MemoryStore(), 1)
    seq = session.seq
    with pytest.raises(ConfigError, match="no event"):
        engine.fork("chat", "other", at)  # type: ignore[arg-type]
    assert (seq, ["chat"]) == (session.seq, list(engine.sessions()))


def test_an_id_that_is_taken_is_refused() -> None:
    """A fork never writes to a session that is there, nor takes an id that the session has or had."""
    engine, session = begun(MemoryStore(), 1)
    with engine.session("taken") as taken:
        taken.append(user("mine"))
    seq = session.seq
    with pytest.raises(ConflictError, match="taken"):
        engine.fork("chat", "taken")
    engine.fork("chat", "child").close()
    with pytest.raises(ConflictError, match="child"):
        engine.fork("chat", "child")
    with pytest.raises(ConfigError, match="has or had"):
        engine.fork("chat", "chat")
    assert seq + 1 == session.seq  # the one fork that was made
    engine.delete("chat")
    with pytest.raises(ConfigError, match="has or had"):
        engine.fork("child", "chat")
    with engine.session("taken") as taken:
        assert [user("mine")] == list(taken.messages())


def test_what_cannot_be_forked_is_refused() -> None:
    """A session without events, an id that is none, and an engine that only reads: each has its error."""
    store = MemoryStore()
    engine, _ = begun(store, 1)
    with pytest.raises(InvalidIdError, match="nothing to fork"):
        engine.fork("nobody", "other")
    with pytest.raises(InvalidIdError):
        engine.fork("chat", "")
    with pytest.raises(PermissionDeniedError):
        Engine(store, read_only=True).fork("chat", "other")


@pytest.mark.parametrize("there", [1, 4, 11])
def test_an_unfinished_fork_is_no_session_and_can_be_repeated(there: int) -> None:
    """After a crash half way the new id cannot be opened, until the fork is repeated or what is there is deleted."""
    store = MemoryStore()
    engine, session = begun(store)
    source = records(store, "chat")
    journal = store.open("default", "other").journal
    journal.append(0, [new_record(record) for record in source[:there]])
    with pytest.raises(StoreError, match="unfinished"):
        engine.session("other")
    said = list(session.messages())
    fork = engine.fork("chat", "other", len(source))
    assert said == list(fork.messages())
    assert source == records(store, "other")[:-1]
    assert () == fork.verify().problems


def test_an_unfinished_fork_of_something_else_is_refused() -> None:
    """What is there of another session, or of more of this one than is asked for, is not gone on with."""
    store = MemoryStore()
    engine, _ = begun(store)
    with engine.session("second") as second:
        talk(second, 3)
    journal = store.open("default", "other").journal
    journal.append(0, [new_record(record) for record in records(store, "second")[:4]])
    with pytest.raises(ConflictError, match="not the beginning"):
        engine.fork("chat", "other")
    with pytest.raises(ConflictError, match="more than 2"):
        engine.fork("second", "other", 2)
    assert 4 == journal.head()


def test_nothing_is_left_of_a_fork_that_was_refused() -> None:
    """A refused fork leaves no session behind."""
    engine, _ = begun(MemoryStore(), 1)
    for new_id in ("chat", ""):
        with pytest.raises(MemciError):
            engine.fork("chat", new_id)
    assert ["chat"] == list(engine.sessions())
