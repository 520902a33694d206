"""Encryption at rest: a session lives as any other, nothing it says is in a file, and without its key nobody reads it."""

import asyncio
import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import memci
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import ConfigError, EncryptionError
from tests.engine.sessions import talk
from tests.engine.wire import assistant, user

if TYPE_CHECKING:
    from tests.archive.stores.sql.postgres_server import PostgresServer

KEY, OTHER = (base64.b64encode(bytes(range(first, first + 32))).decode() for first in (1, 2))
WORD = b"zebrafinch"
PICTURE = base64.b64encode(bytes(range(256)) * 8).decode()
SETTINGS = {"budget": {"window": 6_000, "reserve": 0}, "encryption": {"key": "env:NEW_KEY"}, "snapshot_every": 5}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", OTHER)


def settings(key: str | None, *old: str) -> dict[str, Any]:
    return {**SETTINGS, "encryption": {"key": key, "old_keys": list(old)}}


def live(engine: Engine) -> None:
    """Have a conversation in which everything happens that writes: folds, notes, recalls, pictures, forks, promotions."""
    with engine.session("chat") as session:
        session.describe(title="zebrafinch", owner="zebrafinch")
        session.append(user("the zebrafinch sings"))
        url = f"data:image/png;base64,{PICTURE}"
        session.append({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})
        session.append(assistant("So does the zebrafinch at night."))
        talk(session, 20, words=40)
        session.slots["bird"] = "zebrafinch"
        session.create_detail_page("zebrafinch", "of zebrafinch", "a zebrafinch is a bird")
        session.window(extra="a zebrafinch, found elsewhere")
        session.fold("all")
        session.recall("usr-1")
        session.checkpoint("zebrafinch")
        session.promote("usr-1", "zebrafinch")
        session.handoff("next")
        assert ["usr-1"] == [hit.index for hit in session.search("zebrafinch sings night")][:1]
        session.window()
    engine.fork("chat", "twin").close()


def told(engine: Engine, name: str = "chat") -> list[Any]:
    """Return what a session shows, and that it is whole."""
    with engine.session(name) as session:
        assert () == session.verify().problems
        found = [hit.index for hit in session.search("zebrafinch sings")]
        return [session.window().messages, list(session.messages()), found, session.page("usr-1").messages]


@pytest.fixture(params=["file", "sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        return server.new_url()
    return f"sqlite:///{tmp_path}/chats.db" if request.param == "sqlite" else f"file:{tmp_path}/chats"


def test_a_session_lives_as_any_other(url: str, tmp_path: Path) -> None:
    """It says the same as one that is plain, opened again too; no file has a word of it, or the picture."""
    with Engine(url, SETTINGS) as engine:
        live(engine)
    with Engine("memory:", {**SETTINGS, "encryption": {}}) as plain, Engine(url, SETTINGS) as engine:
        live(plain)
        assert told(plain) == told(engine)
        assert told(plain, "twin") == told(engine, "twin")
        assert ["zebrafinch"] == [each.title for each in engine.list_sessions() if each.id == "chat"]
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert [] == [data for data in stored if WORD in data or PICTURE[:200].encode() in data]
    if url.startswith("postgres"):
        with psycopg.connect(url) as connection:
            assert [(0,)] == connection.execute("SELECT count(*) FROM memci_search_block").fetchall()


def test_without_its_key_nobody_reads_it(url: str) -> None:
    """With no key, or another one, it is said which key is wanted; what was there stays, and can be deleted."""
    with Engine(url, SETTINGS) as engine:
        live(engine)
    for config in ({}, settings("env:OTHER_KEY")):
        with Engine(url, config) as engine:
            for _ in range(2):
                with pytest.raises(EncryptionError, match="encrypted with") as raised:
                    engine.session("chat")
                assert ("chat", 16) == (raised.value.session, len(raised.value.key_id))
    with Engine(url, SETTINGS) as engine:
        told(engine)
    with Engine(url, settings("env:OTHER_KEY")) as engine:
        assert "chat" == engine.delete("chat").session
        assert "chat" not in list(engine.sessions())


def test_keys_are_changed(url: str) -> None:
    """With the old key beside the new one a session goes on; a copy with the new key alone needs the old one no more."""
    with Engine(url, SETTINGS) as engine:
        live(engine)
        before = told(engine)
    with Engine(url, settings("env:OTHER_KEY", "env:NEW_KEY")) as engine:
        assert before == told(engine)
        with engine.session("chat") as session:
            session.append(user("and now with another key"))
            session.window()
    with Engine(url, SETTINGS) as engine, pytest.raises(EncryptionError):
        told(engine)


def test_a_plain_session_is_not_taken_for_an_encrypted_one() -> None:
    """With a key, what was stored without one is refused, with advice."""
    store = MemoryStore()
    with Engine(store) as engine, engine.session("chat") as session:
        session.append(user("hello"))
    with Engine(store, SETTINGS) as engine, pytest.raises(EncryptionError, match="memci copy --to-key"):
        engine.session("chat")


@pytest.mark.parametrize("wrong", [None, settings("env:OTHER_KEY")], ids=["without a key", "another key"])
def test_a_new_session_beside_encrypted_ones(wrong: dict[str, Any] | None) -> None:
    """A worker that was started without the key, or with another one, begins no session of the tenant, and writes nothing."""
    store = MemoryStore()
    with Engine(store, SETTINGS) as engine, engine.session("chat") as session:
        session.append(user("hello"))
    with Engine(store, wrong) as engine:
        for number in range(2):
            with pytest.raises(EncryptionError):
                engine.session("new")
            engine.session(f"new {number}", tenant="other").append(user("of somebody else"))
    assert ["chat"] == list(store.sessions("default"))


def test_an_erasure_is_one(tmp_path: Path) -> None:
    """What is erased of an encrypted session is erased: the page says so, and the rest is as it was."""
    with Engine(f"file:{tmp_path}", SETTINGS) as engine:
        live(engine)
        receipts = engine.erase("chat", "usr-1", forks=True)
        assert {"chat", "twin", "memory", "next"} == {each.session for each in receipts}
        with engine.session("chat") as session:
            assert "zebrafinch sings" not in str(session.page("usr-1").messages)
            assert () == session.verify().problems
            session.append(user("go on"))
            session.window()


def test_a_killed_index_is_made_again(tmp_path: Path) -> None:
    """The search index is in memory: another engine makes it anew, and finds the same."""
    for _ in range(2):
        with Engine(f"file:{tmp_path}", SETTINGS) as engine, engine.session("chat") as session:
            session.extend([user("the zebrafinch sings"), assistant("Yes.")])
            talk(session, 2)
            assert session.search("zebrafinch", include_visible=True)
    assert [] == [path for path in tmp_path.rglob("*") if "index" in path.name]


@pytest.mark.parametrize(
    ("value", "config", "path"),
    [
        ("", settings("env:NEW_KEY"), "encryption.key"),
        ("c2hvcnQ=", settings("env:NEW_KEY"), "encryption.key"),
        ("not base64!", settings("env:NEW_KEY"), "encryption.key"),
        ("c2hvcnQ=", settings("env:OTHER_KEY", "env:NEW_KEY"), "encryption.old_keys"),
        (KEY, settings(None, "env:NEW_KEY"), "encryption.key"),
    ],
)
def test_a_key_that_is_none(value: str, config: dict[str, Any], path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said as the engine is made, with the variable's name and without what it holds."""
    monkeypatch.setenv("NEW_KEY", value)
    with pytest.raises(ConfigError) as raised:
        Engine("memory:", config)
    assert path == raised.value.path
    assert value == "" or value not in str(raised.value)


def test_a_session_has_no_key_of_its_own() -> None:
    """One key is for all sessions of an engine, and stands in no journal and no config that is shown."""
    with Engine("memory:", SETTINGS) as engine:
        with pytest.raises(ConfigError, match="all sessions of an engine share it"):
            engine.session("chat", config={"encryption": {"key": "env:OTHER_KEY"}})
        with engine.session("chat") as session:
            session.append(user("hello"))
            assert "NEW_KEY" not in str([event.data for event in session.events()])
        assert KEY not in repr(engine.config)


def test_an_event_loop_encrypts_too(tmp_path: Path) -> None:
    """As engines of threads do."""

    async def speak() -> None:
        async with memci.AsyncEngine(f"file:{tmp_path}", SETTINGS) as engine:
            session = await engine.session("chat")
            await session.append(user("the zebrafinch sings"))

    asyncio.run(speak())
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and WORD in path.read_bytes()]
