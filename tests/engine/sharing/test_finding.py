"""Searching all sessions of a tenant: one ranking over all of them, and nothing of other tenants."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.engine.engine import Engine
from memci.errors import ConfigError
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, user


def say(engine: Engine, name: str, *texts: str, tenant: str | None = None) -> None:
    with engine.session(name, tenant=tenant) as session:
        for text in texts:
            session.extend([user(text), assistant("I see.")])


def found(engine: Engine, query: str, **asked: object) -> list[tuple[str, str]]:
    return [(hit.session, hit.index) for hit in engine.search(query, **asked)]  # type: ignore[arg-type]


def test_hits_of_all_sessions() -> None:
    """Each names its session; pages in the window, open ones too, are found as well as folded ones."""
    with Engine(MemoryStore(), config_of()) as engine:
        say(engine, "trip", "Where is the zeppelin?", "And the weather?")
        say(engine, "work", "The invoice is late.", "A zeppelin came by.")
        with engine.session("work") as session:
            session.fold([1])
        assert {("trip", "usr-1"), ("work", "usr-2")} == set(found(engine, "zeppelin"))
        assert [("work", "usr-1")] == found(engine, "late invoice")
        assert [("trip", "usr-1")] == found(engine, "zeppelin", sessions=["trip"])
        assert 1 == len(found(engine, "zeppelin", limit=1))
        assert [] == found(engine, "submarine")


def test_a_word_weighs_what_it_does_in_all_sessions() -> None:
    """One that every page of one session has, and no other session, is rare there too; scores compare over sessions."""
    with Engine(MemoryStore(), config_of()) as engine:
        say(engine, "boats", *(f"Boat number {number} of the harbour." for number in range(30)))
        say(
            engine, "mixed", *(f"Talk number {number} of the weather." for number in range(30)), "A boat in the harbour at night."
        )
        hits = engine.search("boat harbour night")
        assert ("mixed", "usr-31") == (hits[0].session, hits[0].index)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        alone = engine.search("weather harbour", sessions=["mixed"], limit=1)[0]
        assert "usr-31" == alone.index


def test_one_session_is_searched_as_by_itself() -> None:
    """With one session alone the ranking is that of the session's own search."""
    with Engine(MemoryStore(), config_of()) as engine, engine.session("chat") as session:
        talk(session, 20, words=6)
        session.append(user("What of ask3x2 and say7x1?"))
        own = session.search("ask3x2 say7x1 question", include_visible=True)
        all_of_them = engine.search("ask3x2 say7x1 question")
        assert own == [attrs.evolve(hit, session="") for hit in all_of_them]


@pytest.mark.parametrize("kind", ["memory", "file", "sqlite"])
def test_tenants_do_not_meet(kind: str, tmp_path: Path) -> None:
    """What one tenant says is in no hit of another's, whatever is named."""
    urls = {"memory": "memory:", "file": f"file:{tmp_path}", "sqlite": f"sqlite:///{tmp_path}/chats.db"}
    with Engine(urls[kind], config_of()) as engine:
        for number in range(5):
            say(engine, "chat", f"The canary of tenant {number}.", tenant=f"t{number}")
        for number in range(5):
            hits = engine.search("canary tenant", tenant=f"t{number}")
            assert [f"The canary of tenant {number}."] == [hit.snippet.splitlines()[0] for hit in hits]
        assert [] == engine.search("canary", sessions=["chat"])
        assert [] == list(engine.sessions())


def test_a_damaged_session_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The others are searched, and the log says which one was not."""
    path = tmp_path / "chats.db"
    with Engine(SqliteStore(path), config_of()) as engine:
        for name in ("one", "two"):
            say(engine, name, "A zeppelin.", "And more.")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE record SET line = x'00' WHERE session = 1")
        connection.execute("DELETE FROM snapshot")
    with Engine(SqliteStore(path), config_of()) as engine, caplog.at_level(logging.WARNING):
        assert [("two", "usr-1")] == found(engine, "zeppelin")
    assert "session 'one': it is not searched" in caplog.text


@pytest.mark.parametrize(("query", "limit"), [(7, 10), ("boat", 0), ("boat", True)])
def test_bad_arguments(query: object, limit: int) -> None:
    """They are refused before any session is opened."""
    with Engine(MemoryStore(), config_of()) as engine:
        say(engine, "chat", "A boat.")
        with pytest.raises(ConfigError):
            engine.search(query, limit=limit)  # type: ignore[arg-type]


def test_searching_writes_nothing() -> None:
    """Sessions with settings of their own are searched as they are; those that are named and not there find nothing."""
    with Engine(MemoryStore(), config_of()) as engine:
        with engine.session("claude", config={"format": "anthropic"}) as session:
            session.extend([user("A boat."), assistant("I see."), user("More.")])
            before = session.seq
        assert [("claude", "usr-1")] == found(engine, "boat", sessions=["claude", "nobody"])
        with engine.session("claude", config={"format": "anthropic"}) as session:
            assert before == session.seq
        assert ["claude"] == list(engine.sessions())
