"""What the engine's thread does ahead of commands: they do less then, and nothing else differs."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.core import indexing
from memci.engine.core.worker import Worker
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.engine.core.test_short_ways import called
from tests.engine.sessions import config_of, finish, folded, heard, prepare, talk, turn
from tests.engine.wire import assistant, user
from tests.faulty_io import FaultyIo
from tests.interrupts import interruptions
from tests.together import in_child, in_threads

WORD = "zanzibarprotocol"


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return FileStore(tmp_path, "flush") if request.param == "file" else MemoryStore()


def engine_on(store: Store, **given: Any) -> Engine:  # noqa: ANN401 (arguments of an engine)
    sections = {"active": {"min_pages": 3, "max_pages": 7}, "contents": {"max_tokens": 480}, "snapshot_every": 40}
    config = config_of(budget={"window": 1_200, "reserve": 0}, **sections)
    return Engine(store, config, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC), **given)


@contextmanager
def at_once(engine: Engine) -> Iterator[Engine]:
    """Let an engine's thread work beside every command."""
    engine._worker.grace_s = 0.0
    with engine:
        yield engine


def test_a_fold_finds_what_it_takes(store: Store) -> None:
    """Of pages that were prepared, a fold summarises none, and writes no file; each file is as it would be written."""
    session = engine_on(store).session("chat")
    talk(session, 5)
    prepare(session)
    names = set(session._core.store.pages.names())
    assert {f"usr-{number}" for number in range(1, 5)} == names
    calls = called(lambda: session.fold("all"))
    assert (0, 0, 0) == tuple(calls[name] for name in ("ExtractiveSummarizer.summarize", "_BlobPages.put", "notes_of"))
    assert 4 == calls["_archived"]
    assert () == session.verify().problems


def test_what_was_not_prepared_is_made_by_the_fold(store: Store) -> None:
    """Where the thread did nothing yet, a fold summarises and writes by itself."""
    session = engine_on(store).session("chat")
    talk(session, 5)
    calls = called(lambda: session.fold("all"))
    assert (4, 1) == (calls["ExtractiveSummarizer.summarize"], calls["_BlobPages.put"])
    assert () == session.verify().problems


@pytest.mark.slow
def test_journal_and_windows_are_the_same_waited_for_or_not() -> None:
    """Prepared always, sometimes, never, or at any moment: the journal is the same, byte for byte, and so is every window."""

    def told(work: Callable[[Engine, Session, int], None]) -> list[object]:
        with engine_on(MemoryStore()) as engine, engine.session("chat") as session:
            windows = []
            for number in range(1, 60):
                session.extend(turn(number, 12))
                work(engine, session, number)
                windows.append(session.window().to_json())
                if number % 17 == 0:
                    session.undo_fold()
                    session.rewind(f"{session.pages()[-2].index}/2")
                if number % 13 == 0:
                    session.recall("usr-2")
            return [*windows, *((record.kind, record.body) for record in session._core.store.journal.read())]

    def hurry(engine: Engine, _session: Session, _number: int) -> None:
        engine._worker.grace_s = 0.0

    never = told(lambda engine, _session, _number: engine._worker.close())
    assert any(b'"entries"' in each[1] for each in never if isinstance(each, tuple) and each[0] == "folded")
    assert never == told(lambda _engine, session, _number: prepare(session))
    assert never == told(lambda _engine, session, number: prepare(session) if number % 3 == 0 else None)
    assert never == told(hurry)


def test_turns_alone_let_pages_be_prepared(store: Store) -> None:
    """It takes no command of its own: once there are pages enough, the thread prepares them, and folds at the marks find them."""
    engine = engine_on(store)
    session = engine.session("chat")
    notices = heard(session)
    calls = dict.fromkeys(("ExtractiveSummarizer.summarize", "_archived"), 0)

    def say(number: int) -> None:
        session.extend(turn(number, 12))

    for number in range(1, 80):
        found = called(lambda number=number: say(number))  # type: ignore[misc]
        finish(engine._worker)
        calls = {name: count + found[name] for name, count in calls.items()}
    assert 3 < len(folded(notices))
    assert 0 == calls["ExtractiveSummarizer.summarize"] < calls["_archived"]


def test_a_page_that_changed_is_prepared_again() -> None:
    """What was prepared before a rewind, an erasure or a fold that was undone is not used after it, and not left in a file."""
    session = engine_on(MemoryStore()).session("chat")
    talk(session, 3)
    session.extend([user(f"the {WORD}"), assistant(f"is {WORD}")])
    talk(session, 1, first=5)
    prepare(session)
    session.rewind("usr-4/2")
    session.append(assistant("is secret"))
    talk(session, 1, first=5)
    session.fold("all")
    assert WORD not in session._core.store.pages.find("usr-4").decode().partition("is ")[2]  # type: ignore[union-attr]
    assert () == session.verify().problems
    session.undo_fold()
    prepare(session)
    session.erase("usr-4")
    prepare(session)
    session.fold("all")
    for name in session._core.store.pages.names():
        assert WORD.encode() not in (session._core.store.pages.find(name) or b"")
    assert WORD not in session.contents.render()
    assert () == session.verify().problems


def test_a_file_ahead_of_its_fold_is_erased_with_its_page(tmp_path: Path) -> None:
    """Erasing a page that stands in the window takes its file too, also where another process erases it."""
    store = FileStore(tmp_path, "flush")
    session, other = engine_on(store).session("chat"), engine_on(store).session("chat")
    session.extend([user(f"the {WORD}"), assistant(f"is {WORD}")])
    talk(session, 4, first=2)
    prepare(session)
    assert any(WORD.encode() in path.read_bytes() for path in tmp_path.rglob("usr-1.json"))
    other.refresh()
    other.erase("usr-1")
    prepare(session)  # it does not know yet, and writes no file again
    assert not any(WORD.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    session.refresh()
    prepare(session)
    session.fold("all")
    assert not any(WORD.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert () == session.verify().problems


def test_snapshot_and_index_come_ahead_of_the_commands() -> None:
    """What a commit or a search would have to bring up to date is up to date, but for some records."""
    session = engine_on(MemoryStore()).session("chat")
    talk(session, 17)
    assert session._core.store.snapshots.find() is None
    prepare(session)
    found = session._core.store.snapshots.find()
    assert found is not None
    assert 35 <= found[0] == session.seq < 40
    talk(session, 200, first=18)
    before = session._core.store.index.seq
    prepare(session)
    assert before <= session.seq - indexing.INDEX_AHEAD < session._core.store.index.seq
    calls = called(lambda: talk(session, 2, first=218))
    assert 0 == calls["Core.write_snapshot"] + calls["advance"]


def test_what_is_prepared_lasts_until_the_session_is_opened_again(store: Store) -> None:
    """A session that was closed and opened again in one engine takes what was prepared before."""
    engine = engine_on(store)
    with engine.session("chat") as session:
        talk(session, 5)
        prepare(session)
    with engine.session("chat") as session:
        assert 0 == called(lambda: session.fold("all"))["ExtractiveSummarizer.summarize"]
        assert () == session.verify().problems


def test_a_store_that_fails_costs_the_work_only(tmp_path: Path) -> None:
    """Where files cannot be written ahead, that is logged; the fold writes them, and raises where it cannot either."""
    io = FaultyIo()
    session = engine_on(FileStore(tmp_path, "flush", io=io)).session("chat")
    talk(session, 4)
    io.fail("rename", 28)
    prepare(session)
    assert [] == list(session._core.store.pages.names())
    io.mend()
    assert 3 == len(session.fold("all").pages)
    assert () == session.verify().problems


def test_a_process_that_ends_loses_nothing(tmp_path: Path) -> None:
    """Files that are ahead of their folds harm nobody who opens the session next: the fold writes them again."""
    session = engine_on(FileStore(tmp_path, "flush")).session("chat")
    talk(session, 5)
    prepare(session)
    for path in tmp_path.rglob("usr-2.json"):
        path.write_bytes(b"half of a fi")
    later = engine_on(FileStore(tmp_path, "flush")).session("chat")
    assert () == later.verify().problems
    later.fold("all")
    assert () == later.verify().problems
    assert [value for number in range(1, 6) for value in turn(number)] == list(later.messages())


def test_an_engine_that_reads_only_prepares_nothing(store: Store) -> None:
    """Nothing is made, and nothing written."""
    talk(engine_on(store).session("chat"), 5)
    session = engine_on(store, read_only=True).session("chat")
    prepare(session)
    assert {} == session._core.prepared.pages
    assert [] == list(session._core.store.pages.names())


def test_the_thread_ends_without_work_and_begins_again() -> None:
    """It is there only while there is something to do; a closed engine has none."""
    engine = engine_on(MemoryStore())
    engine._worker.idle_s = 0.01
    session = engine.session("chat")

    def threads() -> list[threading.Thread]:
        return [thread for thread in [engine._worker._thread] if thread is not None]

    assert [] == threads()
    for first in (1, 6):
        talk(session, 5, first=first)
        session._core.offer(session._core)
        assert 1 == len(threads())
        prepare(session)
        for thread in threads():
            thread.join(60)
        assert [] == threads()
    engine.close()
    session._core.offer(session._core)
    assert [] == threads()


@pytest.mark.parametrize("pause_s", [0.0, 0.03, 0.1])
def test_an_interpreter_ends_at_once_and_quietly(pause_s: float) -> None:
    """A program that closes nothing ends whatever the thread does, and nothing is said of that."""
    code = f"""
import memci, time
session = memci.Engine("memory:", {{"active": {{"max_pages": 30}}}}).session("chat")
for number in range(24):
    session.extend([{{"role": "user", "content": f"question {{number}}"}}, {{"role": "assistant", "content": "answer " * 50}}])
time.sleep({pause_s})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)  # noqa: S603 (fixed words)
    assert (b"", b"") == (done.stdout, done.stderr)


def test_a_forked_child_goes_on_by_itself(tmp_path: Path) -> None:
    """A fork waits for the step that is under way: the child finds no lock held, and has a thread of its own later."""
    with at_once(engine_on(FileStore(tmp_path, "flush"))) as engine, engine.session("chat") as session:
        talk(session, 8)

        def go_on() -> None:
            talk(session, 8, first=9)
            prepare(session)
            assert session._core.prepared.pages
            assert session.verify().ok

        assert 0 == in_child(go_on)
        session.refresh()
        talk(session, 8, first=17)
        prepare(session)
        assert () == session.verify().problems
        assert 24 == session.turn


def used(engine: Engine, name: str) -> None:
    """Use a session, and offer it to the engine's thread, which waits for the grace first."""
    session = engine.session(name)
    session.refresh()
    engine._worker.offer(session._core)


def test_a_forked_child_leaves_the_work_of_its_parent() -> None:
    """What the parent has still to do waits in the parent alone, though the child has work of its own."""
    with engine_on(MemoryStore()) as engine:
        engine._worker.grace_s = 60.0  # nothing is begun before the fork
        used(engine, "chat")

        def work() -> None:
            assert [] == engine._worker._waiting
            used(engine, "other")
            assert ["other"] == [core.session_id for _, _, core in engine._worker._waiting]

        assert 0 == in_child(work)
        assert ["chat"] == [core.session_id for _, _, core in engine._worker._waiting]


@pytest.mark.slow
def test_a_thread_beside_all_commands_changes_nothing(store: Store) -> None:
    """Threads talk, fold, rewind and open sessions again, while that of the engine works between any two commands."""
    with at_once(engine_on(store)) as engine:

        def chat(name: str) -> None:
            for first in range(1, 50, 7):
                with engine.session(name) as session:
                    talk(session, 7, first=first, words=12)
                    session.window()
                    session.rewind(f"usr-{session.turn}/2")
                    session.append(assistant("again"))
                    if first % 2:
                        session.fold("all")
                        session.undo_fold()
                    time.sleep(0.001)
            with engine.session(name) as session:
                session._core.state._check()
                assert 49 == session.turn
                assert () == session.verify().problems

        in_threads(chat, [f"chat {number}" for number in range(3)])


def test_a_step_that_raises_is_logged_and_the_next_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever goes wrong in the thread, it goes on with what comes next."""
    engine = engine_on(MemoryStore())
    session = engine.session("chat")
    done = threading.Event()

    def step(_core: object) -> None:
        if not caplog.records:
            raise RuntimeError(WORD)
        done.set()

    worker = Worker(step)
    worker.offer(session._core)
    finish(worker)
    assert WORD in caplog.text
    worker.offer(session._core)
    finish(worker)
    assert done.is_set()
    worker.close()


def test_a_signal_handler_may_raise_while_work_is_offered() -> None:
    """Wherever that is interrupted, other threads can offer work, and the thread can be ended."""
    workers = [Worker(lambda _: None)]
    with Engine("memory:") as engine:
        core = engine.session("s")._core
        for _ in interruptions(lambda: workers[-1].offer(core)):
            in_threads(workers[-1].offer, [core])
            workers[-1].close()
            workers.append(Worker(lambda _: None))
    assert len(workers) > 10
