"""Leases: one request of a session at a time, in whatever process, and none that lasts for ever."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.hosting import leasing
from memci.errors import ArgumentError, LockedError, SessionClosedError
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import user
from tests.together import in_threads


class Clock:
    """Tells a time that tests move."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.parametrize("scheme", ["memory", "file", "sqlite"])
def test_one_at_a_time(scheme: str, tmp_path: Path) -> None:
    """Of many threads of two engines, each counts further from what the one before it left: none is lost."""
    store = MemoryStore()
    urls: dict[str, Any] = {"memory": store, "file": f"file:{tmp_path}", "sqlite": f"sqlite:///{tmp_path}/chats.db"}
    with Engine(urls[scheme], config_of()) as one, Engine(urls[scheme], config_of()) as two:

        def count(number: int) -> None:
            with (one, two)[number % 2].session("chat") as session:
                for _ in range(3):
                    with session.lease():
                        session.describe(count=session.metadata.get("count", 0) + 1)

        in_threads(count, range(8))
        with one.session("chat") as session:
            assert 24 == session.metadata["count"]
            assert () == session.verify().problems


def test_a_double_click_is_refused_or_waits() -> None:
    """At once with no seconds to wait, else after these; nothing is written meanwhile, and others are not kept from writing."""
    session = open_session()
    with session.lease():
        before = session.seq
        for wait_s in (0, 0.01):
            with pytest.raises(LockedError, match="another request has a lease"), session.lease(wait_s=wait_s):
                raise AssertionError
        assert before == session.seq
        session.append(user("Written all the same."))
    with session.lease(wait_s=0):
        pass


def test_it_is_given_back_where_the_block_raises() -> None:
    """The next one has it at once."""
    session = open_session()
    with pytest.raises(ZeroDivisionError), session.lease():
        1 / 0  # noqa: B018 (it raises)
    with session.lease(wait_s=0):
        pass
    assert ["leased", "lease_ended"] * 2 == [event.kind for event in session.events()][1:]


def test_it_ends_by_itself() -> None:
    """As where a worker was killed: after its time another one has it, and the first does not end that."""
    clock = Clock()
    with Engine(MemoryStore(), config_of(), clock=clock) as engine, engine.session("chat") as session:
        first = session.lease(ttl_s=10)
        first.__enter__()
        clock.now += timedelta(seconds=9)
        with pytest.raises(LockedError), session.lease(wait_s=0):
            raise AssertionError
        clock.now += timedelta(seconds=2)
        with session.lease(wait_s=0):
            first.__exit__(None, None, None)
            with pytest.raises(LockedError), session.lease(wait_s=0):
                raise AssertionError


def test_it_is_of_one_session() -> None:
    """A fork has none, a restored checkpoint leaves it, and it changes no window."""
    with Engine(MemoryStore(), config_of(snapshot_every=2)) as engine, engine.session("chat") as session:
        talk(session, 2)
        mark, window = session.checkpoint("here"), session.window().to_json()
        with session.lease():
            with engine.fork("chat", "fork") as fork, fork.lease(wait_s=0):
                pass
            session.restore_checkpoint(mark.id)
            assert window == session.window().to_json()
            with engine.session("chat") as same, pytest.raises(LockedError), same.lease(wait_s=0):
                raise AssertionError
        assert () == session.verify().problems


@pytest.mark.parametrize("seconds", [{"ttl_s": 0}, {"ttl_s": "1"}, {"wait_s": -1}, {"wait_s": True}, {"ttl_s": float("inf")}])
def test_what_are_no_seconds(seconds: dict[str, float]) -> None:
    """They are refused before anything is written."""
    session = open_session()
    with pytest.raises(ArgumentError), session.lease(**seconds):
        raise AssertionError
    assert 0 == session.seq


def test_a_closed_session_has_none() -> None:
    """As with all that it is asked for."""
    session = open_session()
    session.close()
    with pytest.raises(SessionClosedError), session.lease():
        raise AssertionError


def test_tasks_wait_without_keeping_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two tasks one waits for the other, whose calls go on meanwhile."""
    monkeypatch.setattr(leasing, "AGAIN_S", 0.001)

    async def count_to_twenty() -> list[int]:
        async with memci.AsyncEngine("memory:") as engine, engine.session("chat") as session:

            async def count() -> None:
                for _ in range(5):
                    async with session.lease():
                        known = (await session.metadata).get("count", 0)
                        await asyncio.sleep(0.001)
                        await session.describe(count=known + 1)

            await asyncio.gather(*(count() for _ in range(4)))
            async with session.lease():
                with pytest.raises(LockedError):
                    async with session.lease(wait_s=0.002):
                        raise AssertionError
            return [(await session.metadata)["count"]]

    assert [20] == asyncio.run(count_to_twenty())
