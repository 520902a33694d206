"""What was written of a content is not asked for again, in any session of an engine, and no longer than it may be known."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.names import SessionKey
from memci.archive.summarizers.summary import Summary
from memci.engine.core.summary_cache import SummaryCache
from memci.engine.core.summary_pool import Outcome, Request, SummaryPool
from memci.engine.engine import Engine
from memci.engine.history.events import SummaryPrepared
from memci.engine.session import Session
from memci.engine.upkeep.copying import copy_session
from memci.messages.message import Message
from tests.engine.commands.test_summarizing import Says, engine_on, entries, events, pool
from tests.engine.core.test_summary_pool import CHAT, SECONDS, Held
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, calling, result, user


class Paid(Says):
    """Tells what each summary cost."""

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary:  # type: ignore[override]
        return Summary(title=super().summarize(messages, max_tokens=max_tokens), usage={"prompt_tokens": 7})


def said(session: Session) -> list[tuple[str, str, dict[str, object]]]:
    """Return of which pages there are summaries, what they say, and what they cost."""
    return [(event.data["page"], event.data["title"], event.data["usage"]) for event in events(session)]


def asked(engine: Engine, name: str = "chat") -> Session:
    """Return a session of an engine, with all summaries that there are to be."""
    session = engine.session(name)
    session.summarize(SECONDS)
    return session


def test_a_second_session_asks_for_nothing_that_was_said_before() -> None:
    """Pages of the same messages have the same summaries, which cost nothing and name who wrote them."""
    summarizer = Paid()
    with engine_on(MemoryStore(), summarizer) as engine:
        for name in ("one", "two"):
            talk(engine.session(name), 5, words=20)
        first, second = said(asked(engine, "one")), said(asked(engine, "two"))
        assert ["1", "2", "3", "4"] == sorted(summarizer.calls)
        assert [{"prompt_tokens": 7}] * 4 == [usage for *_, usage in first]
        assert sorted((page, title, {}) for page, title, _ in first) == sorted(second)
        assert {"says"} == {event.data["by"] for event in events(engine.session("two"))}


def test_a_fork_and_a_copy_ask_for_nothing() -> None:
    """They bring what was written along; what the fork says itself is asked for."""
    summarizer, other = Says(), Says()
    source, target = MemoryStore(), MemoryStore()
    with engine_on(source, summarizer) as engine:
        talk(engine.session("chat"), 5, words=20)
        asked(engine)
        fork = engine.fork("chat", "fork")
        assert 0 == fork.summarize(SECONDS)
        fork.append(user("and now something else"))
        assert 1 == fork.summarize(SECONDS)
        assert ["1", "2", "3", "4", "5"] == sorted(summarizer.calls)
        copy_session(source, target, "chat", now="2026-05-08T00:00:00+00:00")
        with engine_on(target, other) as second:
            assert 0 == second.session("chat").summarize(SECONDS)
            assert [] == other.calls


def test_what_a_journal_tells_is_known(tmp_path: Path) -> None:
    """Another process that opens a session knows what was written there, for its other sessions too."""
    with engine_on(FileStore(tmp_path, "flush"), Says()) as engine:
        talk(engine.session("one"), 5, words=20)
        asked(engine, "one")
    summarizer = Says()
    with engine_on(FileStore(tmp_path, "flush"), summarizer) as engine:
        engine.session("one")
        talk(engine.session("two"), 5, words=20)
        assert 4 == len(events(asked(engine, "two")))
        assert [] == summarizer.calls


@pytest.mark.parametrize("when", ["before the fold", "after the fold"])
def test_a_late_result_has_its_page_alone_asked_for_again(when: str) -> None:
    """What was written is of another page then; of all others it holds."""
    summarizer = Says(lambda number: f"question{number} was asked")
    with Engine(MemoryStore(), config_of(budget={"window": 8_000, "reserve": 0}), summarizer=summarizer) as engine:
        session = engine.session("chat")
        session.extend([user("question1 " + "ask1 " * 600), calling("c1"), assistant("I looked for it")])
        talk(session, 3, first=2, words=20)
        session.window(budget=700)  # the page folds, though its call waits
        asked(engine)
        assert ["1", "2"] == sorted(summarizer.calls)
        session.append(result("c1", "found late"))
        if when == "after the fold":
            session.fold("all")
        asked(engine)
        session.fold("all")
        asked(engine)
        session.fold("all")
        asked(engine)
        assert ["1", "1", "2", "3"] == sorted(summarizer.calls)
        (revised,) = [each for each in entries(session).values() if each.revision]
        assert ("usr-1", 1, "says") == (revised.index, revised.revision, revised.by)


def test_erasing_a_page_takes_it_out() -> None:
    """What says the same in another session is asked for again, and nothing else is."""
    summarizer = Says()
    with engine_on(MemoryStore(), summarizer) as engine:
        for name in ("one", "two"):
            talk(engine.session(name), 5, words=20)
        asked(engine, "one").erase("usr-2")
        asked(engine, "two")
        assert ["1", "2", "2", "3", "4"] == sorted(summarizer.calls)


def test_the_same_is_not_asked_for_twice_at_a_time() -> None:
    """Whoever asks while it is being written gets it too, and pays nothing; what fails, fails for all of them."""
    held, begun = threading.Event(), threading.Event()

    def answer(number: str) -> object:
        begun.set()
        assert held.wait(SECONDS)
        return ValueError("no") if number == "3" else f"question{number} was asked"

    summarizer = Paid(answer)
    with engine_on(MemoryStore(), summarizer) as engine:
        sessions = [engine.session(name) for name in ("one", "two", "three")]
        for session in sessions:
            talk(session, 5, words=20)
            session.summarize(0.0)
        assert begun.wait(SECONDS)
        held.set()
        assert pool(engine).finish(SECONDS)
        assert ["1", "2", "3", "4"] == sorted(summarizer.calls)
        assert [4, 4, 4] == [len(events(session)) for session in sessions]
        assert [1, 1, 1] == [sum(bool(event.data["reason"]) for event in events(session)) for session in sessions]
        assert 3 == sum(usage == {"prompt_tokens": 7} for session in sessions for *_, usage in said(session))


def request(session: str, sha256: str = "ab", room: int = 24) -> Request:
    return Request(
        session=SessionKey("default", session), page="usr-1", revision=0, sha256=sha256, tokens=100, max_tokens=room, messages=()
    )


def test_those_that_wait_for_another_are_free_when_the_pool_closes() -> None:
    """It names them with what it did not begin, or left; with another room the same is asked for in its own right."""
    held, outcomes = Held(), list[Outcome]()
    summaries = SummaryPool(held, outcomes.append, SECONDS)
    summaries.most_threads, summaries.patience_s = 1, 0.01
    summaries.ask(request("first"))
    assert held.reached.wait(SECONDS)
    for name in ("second", "third"):
        summaries.ask(request(name))
    for name in ("fourth", "fifth"):
        summaries.ask(request(name, room=48))
    names = ["fifth", "first", "fourth", "second", "third"]
    assert [(("default", name), "usr-1") for name in names] == sorted(summaries.close())
    held.released.set()
    assert ([], 1) == (outcomes, held.calls)


def written(number: int, page: str = "", *, room: int = 24, reason: str = "") -> SummaryPrepared:
    sha256 = f"{number:064}"
    return SummaryPrepared(
        page=page or f"usr-{number}",
        revision=0,
        sha256=sha256,
        by="says",
        at="",
        room=room,
        reason=reason,
        title=f"title {number}",
    )


def test_the_cache_is_bounded_by_bytes() -> None:
    """What nobody asked for lately leaves first, and nothing is left of it."""
    cache = SummaryCache(10_000)
    for number in range(200):
        cache.put(CHAT, written(number))
        assert cache.find("default", f"{0:064}", 24) is not None
    assert 20 < len(cache) < 34
    assert len(cache) == len(cache._contents)
    assert cache.find("default", f"{1:064}", 24) is None
    found = cache.find("default", f"{199:064}", 24)
    assert found is not None
    assert ("title 199", {}) == (found.title, found.usage)


@pytest.mark.parametrize("event", [written(1, room=0), written(1, reason="it is empty")])
def test_only_what_was_believed_is_kept(event: SummaryPrepared) -> None:
    """Neither a refusal, nor what an older journal tells, which does not say how much room there was."""
    cache = SummaryCache()
    cache.put(CHAT, event)
    assert 0 == len(cache)


def test_a_page_is_forgotten_with_all_that_was_written_of_it() -> None:
    """Its earlier contents go too, also where another page says the same; others stay."""
    cache = SummaryCache()
    for number, page in ((1, "usr-1"), (2, "usr-1"), (3, "usr-3")):
        cache.put(CHAT, written(number, page))
    cache.put(SessionKey("default", "other"), written(1, "usr-9"))
    cache.forget(CHAT, "usr-1")
    cache.forget(CHAT, "usr-1")
    assert [None, None] == [cache.find("default", f"{number:064}", 24) for number in (1, 2)]
    assert 1 == len(cache) == len(cache._contents)
