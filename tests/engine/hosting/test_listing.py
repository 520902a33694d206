"""Lists of sessions: what the host said of them, in which order, page by page; and how old ones and whole tenants go."""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import ArgumentError
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import user

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    """Tells a time that tests move."""

    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Iterator[Engine]:
    """Ten sessions, one used each day, of two owners in turn."""
    with Engine(MemoryStore(), config_of(), clock=clock) as engine:
        for number in range(10):
            with engine.session(f"chat {number}") as session:
                talk(session, number + 1)
                session.describe(title=f"About boat {number}", owner=f"user {number % 2}", stars=number)
            clock.now += timedelta(days=1)
        yield engine


def names(found: list[Any]) -> list[str]:
    return [each.id[5:] for each in found]


def test_the_newest_come_first(engine: Engine) -> None:
    """By when something happened last, with what the host said and how long they are."""
    assert list("9876543210") == names(engine.list_sessions())
    found = engine.list_sessions(limit=1)[0]
    assert ("chat 9", "default", "About boat 9", "user 1", 10) == (found.id, found.tenant, found.title, found.owner, found.turns)
    assert {"title": "About boat 9", "owner": "user 1", "stars": 9} == found.metadata
    assert ("2026-03-10T00:00:00+00:00",) * 2 == (found.began, found.used)
    with engine.session("chat 0") as session:
        assert session.seq == engine.list_sessions()[-1].events
        session.append(user("Again."))
    assert list("0987654321") == names(engine.list_sessions())


def test_filters_and_pages(engine: Engine) -> None:
    """By owner, words of the title and time; a list goes on after the last session, though others were used meanwhile."""
    assert list("97531") == names(engine.list_sessions(owner="user 1"))
    assert ["4"] == names(engine.list_sessions(title="BOAT 4"))
    assert list("987") == names(engine.list_sessions(used_since=BEGAN + timedelta(days=7)))
    found, after = list[str](), None
    while page := engine.list_sessions(limit=3, after=after):
        found += names(page)
        after = page[-1].cursor
        with engine.session("chat 9") as session:
            session.append(user("Meanwhile."))
    assert list("9876543210") == found


def test_no_tenant_is_listed_with_another(engine: Engine) -> None:
    """Nor sessions that hold nothing."""
    with engine.session("chat 0", tenant="they") as session:
        session.append(user("Theirs."))
    engine.session("empty", tenant="they").close()
    assert [("they", "chat 0", "")] == [(each.tenant, each.id, each.title) for each in engine.list_sessions("they")]
    assert 10 == len(engine.list_sessions())


def test_a_session_that_cannot_be_read_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log says so, and the others are listed."""
    url = f"sqlite:///{tmp_path}/chats.db"
    with Engine(url, config_of()) as engine:
        for name in ("one", "two"):
            with engine.session(name) as session:
                talk(session, 2)
    with closing(sqlite3.connect(tmp_path / "chats.db")) as connection, connection:
        connection.execute("UPDATE record SET line = x'00' WHERE session = 1")
        connection.execute("DELETE FROM snapshot")
    with Engine(url, config_of()) as engine, caplog.at_level(logging.WARNING):
        assert ["two"] == [each.id for each in engine.list_sessions()]
    assert "session 'one': it is not listed" in caplog.text


def test_what_is_said_of_a_session_lasts() -> None:
    """It goes along into forks and stays where the conversation goes back; saying it again writes nothing; no window has it."""
    with Engine(MemoryStore(), config_of(snapshot_every=2)) as engine:
        session = engine.session("chat")
        talk(session, 2)
        mark = session.checkpoint("here")
        session.describe(title="Boats", tags=["sea", "wood"], stars=5)
        before = session.seq
        session.describe(title="Boats")
        assert before == session.seq
        session.describe(stars=None, owner="me")
        expected = {"title": "Boats", "tags": ["sea", "wood"], "owner": "me"}
        session.rewind("usr-2/1")
        assert expected == session.metadata
        session.restore_checkpoint(mark.id)
        session.erase(1)
        assert expected == session.metadata
        assert "Boats" not in str(session.window().messages)
        assert () == session.verify().problems
        with engine.fork("chat", "fork") as fork:
            assert expected == fork.metadata
        session.close()
        with engine.session("chat") as again:
            assert expected == again.metadata


@pytest.mark.parametrize("values", [{"title": object()}, {"title": float("nan")}, {"title": "x" * 20_000}, {"a": {5: 5}}])
def test_what_is_no_value_is_refused(values: dict[str, Any]) -> None:
    """Nothing is written."""
    session = open_session()
    with pytest.raises(ArgumentError):
        session.describe(**values)
    assert ({}, 0) == (session.metadata, session.seq)


def test_old_sessions_are_pruned(engine: Engine, clock: Clock) -> None:
    """First it is told what would go; then it goes, whatever says how old is too old."""
    for since in (timedelta(days=4), clock.now - timedelta(days=4), (clock.now - timedelta(days=4)).isoformat()):
        assert list("012345") == sorted(names(engine.prune(since)))
    assert 10 == len(engine.list_sessions())
    assert list("012345") == sorted(names(engine.prune(timedelta(days=4), dry_run=False)))
    assert list("9876") == names(engine.list_sessions())
    assert [] == engine.prune(timedelta(days=4), dry_run=False)


def test_what_others_need_is_not_pruned(engine: Engine, clock: Clock) -> None:
    """The long-term memory stays, and what a session in use mounts, or what that mounts; their own time to live ends them."""
    clock.now -= timedelta(days=300)
    for name in ("memory", "project", "base", "pool"):
        with engine.session(name) as session:
            session.append(user("what all of them read"))
    with engine.session("project") as project, engine.session("pool") as pool:
        project.mount("base")
        pool.mount("base")
    clock.now += timedelta(days=300)
    with engine.session("chat 9") as session:
        session.mount("project")
    assert ["pool"] == [each.id for each in engine.prune(timedelta(days=100), dry_run=False)]
    with engine.session("base") as base:
        base.describe(ttl_s=1)
    clock.now += timedelta(days=1)
    assert ["base"] == [each.id for each in engine.prune()]


def test_what_a_mounted_session_mounts_is_not_pruned(engine: Engine, clock: Clock) -> None:
    """However long ago it was mounted: a session in use keeps it through one that nobody used since."""
    with engine.session("base") as base, engine.session("project") as project, engine.session("chat") as chat:
        for session in (base, project, chat):
            session.append(user("what all of them read"))
        project.mount(base)
        chat.mount(project)
    clock.now += timedelta(days=300)
    with engine.session("chat") as chat:
        chat.append(user("I am back."))
    pruned = [each.id for each in engine.prune(timedelta(days=100), dry_run=False)]
    assert [f"chat {number}" for number in range(10)] == sorted(pruned)
    assert {"base", "project", "chat"} == set(engine.sessions())


def test_whoever_comes_back_keeps_the_session(engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is used while others are pruned stays, with all that was said."""
    delete = engine.delete

    def delete_slowly(session_id: str, *, tenant: str | None = None) -> object:
        if session_id != "chat 3":
            with engine.session("chat 3") as session:
                session.append(user(f"I am back before {session_id} is gone."))
        return delete(session_id, tenant=tenant)

    monkeypatch.setattr(engine, "delete", delete_slowly)
    clock.now += timedelta(days=100)
    pruned = [each.id for each in engine.prune(timedelta(days=10), dry_run=False)]
    assert "chat 3" not in pruned
    assert 8 <= len(pruned)
    with engine.session("chat 3") as session:
        assert "I am back" in str(list(session.messages())[-1])


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: engine.list_sessions(limit=0),
        lambda engine: engine.list_sessions(owner=7),
        lambda engine: engine.list_sessions(used_since="yesterday"),
        lambda engine: engine.prune("long"),
        lambda engine: engine.prune(7),
    ],
)
def test_bad_arguments(engine: Engine, call: Callable[[Engine], object]) -> None:
    """Each says what it takes instead."""
    with pytest.raises(ArgumentError):
        call(engine)


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_nothing_is_left_of_a_tenant(scheme: str, tmp_path: Path) -> None:
    """No file holds a word of it, searched byte by byte; other tenants have theirs, and the receipt names what went."""
    url = f"file:{tmp_path}/chats" if scheme == "file" else f"sqlite:///{tmp_path}/chats.db"
    words = {tenant: f"canary of {tenant} zeppelin" for tenant in ("they", "we")}
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 400
    with Engine(url, config_of(budget={"window": 1_500, "reserve": 0})) as engine:
        for tenant, said in words.items():
            for name in ("one", "two"):
                with engine.session(name, tenant=tenant) as session:
                    session.describe(title=said)
                    parts = [
                        {"type": "text", "text": said},
                        {"type": "image_url", "image_url": {"url": picture + tenant.encode().hex()}},
                    ]
                    session.append({"role": "user", "content": parts})
                    session.create_detail_page(said, said, said)
                    talk(session, 20)
                    session.fold("all")
                    assert session.search(said)
                    session.checkpoint(said)
        receipt = engine.erase_tenant("they")
        assert ("they", ("one", "two")) == (receipt.tenant, receipt.sessions)
        assert [] == list(engine.sessions(tenant="they"))
        left = b"".join(path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file())
        assert (True, False) == (b"canary of we" in left, b"canary of they" in left)
        assert b"they".hex().encode() not in left
        for name in ("one", "two"):
            with engine.session(name, tenant="we") as session:
                assert "canary of we" in str(list(session.messages()))
                assert () == session.verify().problems


def test_a_session_that_answers_just_now_stays(engine: Engine, clock: Clock) -> None:
    """While a request has a lease on it, it is not pruned, however long ago it was used."""
    with engine.session("chat") as session:
        session.append(user("hello"))
        clock.now += timedelta(days=2)
        with session.lease(60):
            assert "chat" not in [each.id for each in engine.prune(timedelta(days=1))]
            clock.now += timedelta(minutes=2)
            assert "chat" in [each.id for each in engine.prune(timedelta(days=1))]


def test_a_cursor_that_is_none_is_refused(engine: Engine) -> None:
    """A list goes on after what a list gave."""
    with pytest.raises(ArgumentError):
        engine.list_sessions(after="junk")


def test_sessions_have_times_to_live(engine: Engine, clock: Clock) -> None:
    """Those that were not used for longer than they say themselves go, others stay; what is no time to live is refused."""
    for number, ttl_s in enumerate((86_400, 86_400 * 30, None, None, None, 5)):
        with engine.session(f"chat {number}") as session:
            session.describe(ttl_s=ttl_s, stars=1)
            for bad in ("soon", True, -5, 0):
                with pytest.raises(ArgumentError):
                    session.describe(ttl_s=bad)
    with pytest.raises(ArgumentError):
        engine.prune(timedelta(days=-1))
    clock.now += timedelta(days=2)
    with engine.session("chat 5") as session:
        session.append(user("and now?"))
    assert "chat 0" in [each.id for each in engine.prune()]
    clock.now += timedelta(seconds=6)
    assert ["chat 0", "chat 5"] == sorted(each.id for each in engine.prune(dry_run=False))
    assert 8 == len(engine.list_sessions())


def test_what_was_listed_before_is_not_read_again(clock: Clock) -> None:
    """The last record of each session is, which tells what happened since, in this process or another, or to one that is new."""
    store = CountingStore(MemoryStore())
    with Engine(store, config_of(), clock=clock) as engine, Engine(store, config_of(), clock=clock) as other:
        for name in ("chat 0", "chat 1"):
            with engine.session(name) as session:
                talk(session, 20)
        first = engine.list_sessions()
        store.records = 0
        assert first == engine.list_sessions()
        assert 2 == store.records
        clock.now += timedelta(days=1)
        with other.session("chat 1") as session:
            session.describe(title="A boat")
        other.delete("chat 0")
        with other.session("chat 0") as session:
            talk(session, 20, first=2)
        assert ["", "A boat"] == [each.title for each in sorted(engine.list_sessions(), key=lambda each: each.id)]
        assert [clock.now.isoformat()] * 2 == [each.used for each in engine.list_sessions()]
