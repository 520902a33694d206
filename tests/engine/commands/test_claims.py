"""Pages are claimed before they are paid for: several engines, in several processes, have each summarised once."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from tests.engine.commands.test_summarizing import Says, engine_on, events, pool
from tests.engine.sessions import talk
from tests.engine.wire import assistant, user


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return FileStore(tmp_path, "flush") if request.param == "file" else MemoryStore()


def test_summarize_waits(store: Store) -> None:
    """It returns how many pages have a summary that had none; without a summariser it has nothing to do."""
    with engine_on(store, Says()) as engine, engine.session("chat") as session:
        talk(session, 5, words=20)
        assert 4 == session.summarize()
        assert 0 == session.summarize()
        assert 4 == len(events(session))
    with engine_on(store, None) as engine, engine.session("chat") as session:
        assert 0 == session.summarize()


def test_each_page_is_asked_for_once(store: Store) -> None:
    """Of three engines that ask at the same time, each page is asked for by one."""
    several = [Says() for _ in range(3)]
    engines = [engine_on(store, each) for each in several]
    talk(engines[0].session("chat"), 6, words=20)
    begin = threading.Barrier(3)

    def work(number: int) -> None:
        begin.wait(60)
        with engines[number].session("chat") as session:
            session.refresh()
            session.summarize(60)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ["1", "2", "3", "4", "5"] == sorted(number for each in several for number in each.calls)
    session = engines[0].session("chat")
    session.refresh()
    assert 5 == len(events(session))
    session.append(user("and nobody conflicts"))
    for engine in engines:
        engine.close()


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_a_claim_ends(store: Store, how: str) -> None:
    """What a killed process had claimed is asked for by others when its time is over, and what a closed one left, at once."""
    held, begun = threading.Event(), threading.Semaphore(0)

    def answer(number: str) -> str:
        begun.release()
        held.wait(60)
        return f"question{number} was asked"

    killed = engine_on(store, Says(answer))
    killed_session = killed.session("chat")
    talk(killed_session, 6, words=20)
    killed_session.summarize(0.0)
    assert all(begun.acquire(timeout=60) for _ in range(4))
    now = datetime.now(UTC)
    summarizer = Says()
    other = engine_on(store, summarizer)
    other._clock = lambda: now
    with other.session("chat") as session:
        assert 0 == session.summarize(60)
    pool(killed).patience_s = 0.01
    if how == "closed":  # four are under way, and left to themselves; the fifth was not begun
        killed.close()
    else:
        now += timedelta(seconds=2 * pool(killed).lease_s)
    with other.session("chat") as session:
        assert 5 == session.summarize(60)
    assert ["1", "2", "3", "4", "5"] == sorted(summarizer.calls)
    held.set()
    killed.close()
    with other.session("chat") as session:
        session.refresh()
        assert 5 == len(events(session))
    other.close()


def test_a_rewind_ends_the_claim_of_its_page(store: Store) -> None:
    """What a page says after a rewind is asked for at once, though another engine claimed what it said before."""
    held = threading.Event()
    killed = engine_on(store, Says(lambda _number: held.wait(60)))
    claimed = killed.session("chat")
    talk(claimed, 6, words=20)
    claimed.summarize(0.0)
    summarizer = Says()
    with engine_on(store, summarizer) as other, other.session("chat") as session:
        session.rewind("usr-3/2")
        session.append(assistant("another answer " * 20))
        talk(session, 3, first=7, words=20)
        session.summarize(60)
    assert ["3", "7", "8"] == sorted(summarizer.calls)
    pool(killed).patience_s = 0.01
    held.set()
    killed.close()


def test_what_is_claimed_as_the_engine_closes_is_free(store: Store) -> None:
    """Where no thread takes the pages any more, nobody else waits for them."""
    closing, other = engine_on(store, Says()), engine_on(store, Says())
    session = closing.session("chat")
    talk(session, 5, words=20)
    takes, pool(closing).takes = pool(closing).takes, lambda *_page: True  # type: ignore[method-assign]
    pool(closing).close()
    assert 0 == session.summarize()
    pool(closing).takes = takes  # type: ignore[method-assign]
    with other.session("chat") as later:
        assert 4 == later.summarize(60)
    closing.close()
    other.close()
