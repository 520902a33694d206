"""Drafts: what is tried on one is what would happen, and nothing of it is written anywhere."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.archive.stores.memory import MemoryStore
from memci.engine.session import Session
from memci.errors import ConflictError, PermissionDeniedError
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, user

Act = Callable[[Session], object]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SMALL = {
    "budget": {"window": 700, "reserve": 0},
    "counter": "approximate",
    "active": {"min_pages": 2},
    "snapshot_every": 20,
    "recall": {"max_share": 0.6},
}


@pytest.fixture
def engine() -> Iterator[memci.Engine]:
    with memci.Engine("memory:", config_of(**SMALL), clock=lambda: NOON) as engine:
        yield engine


def told(session: Session) -> tuple[Any, ...]:
    """Return all that a session tells of itself."""
    events = [(event.seq, event.kind, event.data) for event in session.events()]
    return events, session.render(session.seq).to_json(), session.pages(), session.checkpoints(), session.metadata


def began(engine: memci.Engine) -> Session:
    """Begin a session in which pages folded, and that is read from a snapshot and some events."""
    session = engine.session("chat")
    session.append({"role": "system", "content": "You keep the books."})
    for number in range(1, 21):
        talk(session, 1, first=number)
        session.window()
    return session


ACTS: dict[str, Act] = {
    "append": lambda session: session.extend([user("One thing more."), assistant("Gladly.")]),
    "fold": lambda session: session.fold("all"),
    "undo": lambda session: session.undo_fold(),
    "recall": lambda session: session.recall("usr-2"),
    "pin": lambda session: session.pin("usr-3"),
    "keep": lambda session: session.keep("usr-20"),
    "evict": lambda session: session.evict("usr-4"),
    "rewind": lambda session: session.rewind("usr-19/1"),
    "checkpoint": lambda session: session.checkpoint("here"),
    "slots": lambda session: session.slots.update(goal="books in order"),
    "describe": lambda session: session.describe(title="Books"),
    "window": lambda session: session.window(500),
    "configure": lambda session: session.configure(budget={"window": 900}),
    "picture": lambda session: session.append({"role": "user", "content": [{"type": "text", "text": "iVBOR" * 4_000}]}),
    "system": lambda session: session.set_system([{"role": "system", "content": "You keep all books."}]),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_draft_becomes_what_the_session_would(engine: memci.Engine, name: str) -> None:
    """The same call makes the same events, window and pages of a draft and of the session, which the draft left as it was."""
    session = began(engine)
    before = told(session)
    with session.draft() as draft:
        ACTS[name](draft)
        expected = told(draft)
        assert before != expected
    assert before == told(session)
    ACTS[name](session)
    assert expected == told(session)
    assert () == session.verify().problems


@pytest.mark.parametrize("url", ["file:{}/chats", "sqlite:///{}/chats.db"])
def test_an_engine_that_only_reads_has_drafts(tmp_path: Path, url: str) -> None:
    """What would be refused there can be tried, and no file changes."""
    store = url.format(tmp_path)
    with memci.Engine(store, config_of(**SMALL)) as engine:
        began(engine).close()
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with memci.Engine(store, config_of(**SMALL), read_only=True) as reader, reader.session("chat") as session:
        with session.draft() as draft:
            draft.fold("all")
            draft.recall("usr-2")
            assert ["usr-5"] == [hit.index for hit in draft.search("ask5x1")]
            assert () == draft.verify().problems
        with pytest.raises(PermissionDeniedError):
            session.fold("all")
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_other_sessions_are_drafts_too(engine: memci.Engine) -> None:
    """A handoff and a promotion from a draft write nothing where they go, nor does a mount."""
    with began(engine) as session, engine.session("other") as other:
        other.append(user("What now?"))
        before = told(session), told(other)
        with session.draft() as draft:
            draft.handoff("other", 0.6)
            draft.handoff("new", 0.6)
            draft.mount("other")
            assert "What now?" in str(draft.recall("other/usr-1").messages)
        assert before == (told(session), told(other))
        assert {"chat", "other"} == set(engine.sessions())


@pytest.mark.parametrize("url", ["file:{}/chats", "sqlite:///{}/chats.db"])
def test_a_draft_of_what_never_began_leaves_nothing(tmp_path: Path, url: str) -> None:
    """No file, directory or row is made for a session, nor for its index, by an engine that writes either."""
    with memci.Engine(url.format(tmp_path), config_of(**SMALL)) as engine:
        began(engine).close()
        before = {path: path.stat().st_size for path in tmp_path.rglob("*")}, engine.usage()
        with engine.session("never") as session, session.draft() as draft:
            draft.append(user("Hello."))
            assert [] == draft.search("nothing")
        with engine.session("chat") as session, session.draft() as draft:
            draft.handoff("new", 0.6)
            assert draft.search("ask5x1")
        assert before == ({path: path.stat().st_size for path in tmp_path.rglob("*")}, engine.usage())


def test_a_draft_goes_by_its_own_past() -> None:
    """A snapshot that the session keeps later, after the same events as the draft's, is none of the draft's."""
    with memci.Engine("memory:", config_of(**{**SMALL, "snapshot_every": 1})) as engine, engine.session("chat") as session:
        talk(session, 3)
        session.fold("all")
        with session.draft() as draft:
            for each, text in ((draft, "of the draft"), (session, "of the session")):
                each.append(user(text))
                each.pin("usr-1")
            seq = draft.seq
            draft.append(user("later"))
            assert "of the draft" in str(draft.render(seq).messages)


def test_a_draft_of_a_draft_goes_on_from_it(engine: memci.Engine) -> None:
    """It begins as the draft is, pages that folded there included, and the two go apart then."""
    with began(engine) as session, session.draft() as draft:
        draft.append(user("One thing more."))
        draft.fold("all")
        with draft.draft() as other:
            assert told(draft) == told(other)
            other.recall("usr-20")
            other.append(user("And another."))
            assert draft.seq < other.seq
        assert "And another." not in str(list(draft.messages()))
        assert "One thing more." not in str(list(session.messages()))


def test_a_draft_hears_of_nobody(engine: memci.Engine) -> None:
    """Once something was tried, what others write does not come in; nobody's observers hear of the draft."""
    heard: list[object] = []
    engine.observe(heard.append)
    with began(engine) as session, session.draft() as draft:
        heard.clear()
        draft.fold("all")
        seq = draft.seq
        assert [] == heard
        session.append(user("Meanwhile."))
        draft.refresh()
        assert seq == draft.seq
        assert "Meanwhile." not in str(draft.render(seq).messages)


def test_a_draft_nothing_was_tried_on_goes_on(engine: memci.Engine) -> None:
    """What others wrote first is a conflict there as in any session, and ``refresh`` brings it in."""
    with began(engine) as session, session.draft() as draft:
        session.append(user("Meanwhile."))
        with pytest.raises(ConflictError):
            draft.append(user("I too."))
        draft.refresh()
        draft.append(user("I too."))
        assert [user("Meanwhile."), user("I too.")] == list(draft.messages())[-2:]


def test_what_a_draft_refuses(engine: memci.Engine) -> None:
    """It erases nothing, and refuses what the session would refuse; the session goes on."""
    with engine.session("chat") as session, session.draft() as draft:
        talk(session, 2)
        draft.refresh()
        with pytest.raises(memci.MemciError, match="no fold to undo"):
            draft.undo_fold()
        with pytest.raises(PermissionDeniedError, match="a draft erases nothing"):
            draft.erase("usr-1")
        assert "question1" in str(session.page("usr-1").messages)


def test_quotas_count_no_drafts(tmp_path: Path) -> None:
    """What is tried takes no room of the tenant's."""
    limits = {"limits": {"tenant_bytes": 20_000, "tenant_sessions": 1}}
    with memci.Engine(f"file:{tmp_path}", config_of(**limits)) as engine, engine.session("chat") as session:
        talk(session, 2)
        with session.draft() as draft:
            draft.append(user("word " * 10_000))
        with engine.session("new") as new, new.draft() as draft:
            draft.append(user("Hello."))
        talk(session, 2, first=3)


def test_a_draft_costs_no_more_in_a_long_session() -> None:
    """It reads a snapshot and the events after it, whatever came before."""
    counts = []
    store = CountingStore(MemoryStore())
    with memci.Engine(store, config_of(**SMALL)) as engine:
        session = began(engine)
        for _ in range(2):
            for number in range(21, 61):
                talk(session, 1, first=number)
                session.window()
            before = store.records
            with session.draft() as draft:
                draft.fold()
            counts.append(store.records - before)
    assert max(counts) < 2 * SMALL["snapshot_every"]  # type: ignore[operator]


def test_a_draft_is_awaited(tmp_path: Path) -> None:
    """``AsyncSession`` has drafts, entered at once or awaited."""

    async def run() -> None:
        async with memci.AsyncEngine(f"file:{tmp_path}", config_of(**SMALL)) as engine, engine.session("chat") as session:
            await session.extend([user("Hello."), assistant("Hello.")])
            async with session.draft() as draft:
                await draft.append(user("And?"))
                assert 3 == len([each async for each in draft.messages()])
            draft = await session.draft()
            await draft.close()
            assert 2 == len([each async for each in session.messages()])

    asyncio.run(run())
