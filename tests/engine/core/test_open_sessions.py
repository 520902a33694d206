"""Sessions that were closed are kept in memory, for the next time they are opened."""

import threading
from pathlib import Path

import pytest

from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import SessionClosedError, UnavailableError
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import config_of, heard, talk, turn
from tests.engine.wire import assistant, user
from tests.faulty_io import FaultyIo
from tests.together import in_threads


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return FileStore(tmp_path, "flush") if request.param == "file" else MemoryStore()


def engine_on(store: Store, max_bytes: int = 64_000_000, *, read_only: bool = False) -> Engine:
    config = config_of(active={"min_pages": 1}, open_sessions={"max_bytes": max_bytes})
    return Engine(store, config, read_only=read_only)


def shown(session: Session) -> tuple[object, ...]:
    window = session.window().to_json()
    return window, session.seq, session.turn, session.contents, session.pages(), list(session.messages())


def asked(store: CountingStore, engine: Engine, session_id: str = "chat") -> dict[str, int]:
    """Open and close a session, and return how often the store was asked for what."""
    store.calls.clear()
    engine.session(session_id).close()
    return dict(store.calls)


def test_an_append_is_one_question(store: Store) -> None:
    """A message that answers no call is compared with the head by its commit alone."""
    counted = CountingStore(store)
    with engine_on(counted).session("chat") as session:
        talk(session, 1)
        counted.calls.clear()
        session.append(user("more"))
        assert {"append": 1} == dict(counted.calls)


def test_an_unchanged_session_costs_one_round_trip(store: Store) -> None:
    """Opening a session that was closed lately reads its last record, and asks the store for nothing else."""
    counted = CountingStore(store)
    engine = engine_on(counted)
    with engine.session("chat") as session:
        talk(session, 30)
    for _ in range(3):
        counted.records = 0
        assert {"open": 1, "read": 1} == asked(counted, engine)
        assert 1 == counted.records


def test_a_changed_session_costs_its_tail(store: Store) -> None:
    """What others wrote meanwhile comes in the same reading, and the session shows it."""
    counted = CountingStore(store)
    engine, other = engine_on(counted), engine_on(store)
    with engine.session("chat") as session:
        talk(session, 30)
    with other.session("chat") as session:
        talk(session, 2, first=31)
        after = shown(session)
    counted.records = 0
    assert {"open": 1, "read": 1} == asked(counted, engine)
    assert 1 + 4 + 1 == counted.records  # the last one known, four messages, and how the window was asked for
    with engine.session("chat") as session:
        assert after == shown(session)


def test_a_nearer_snapshot_is_taken(store: Store) -> None:
    """Where others wrote more than lies between two snapshots, the newest of these is loaded, and the state not brought there."""
    counted = CountingStore(store)
    config = config_of(snapshot_every=10)
    engine = Engine(counted, config)
    with engine.session("chat") as session:
        talk(session, 1)
    with Engine(store, config).session("chat") as session:
        talk(session, 100, first=2)
        after = session.seq
    counted.records = 0
    with engine.session("chat") as session:
        assert after == session.seq
        assert 40 >= counted.records
        assert turn(101) == list(session.messages())[-2:]


def test_a_kept_session_is_as_a_loaded_one(store: Store) -> None:
    """A session that is opened again shows what one shows that another engine loads, and goes on like it."""
    engine = engine_on(store)
    with engine.session("chat") as session:
        talk(session, 12)
        session.fold([1, 2, 3, 4, 5])
        session.recall(2)
        session.pin(1)
        before = shown(session)
    for number in (13, 14):
        with engine.session("chat") as session, engine_on(store).session("chat") as loaded:
            assert before == shown(session) == shown(loaded)
            talk(session, 1, first=number)
            session.fold("all")
            before = shown(session)
            session._core.state._check()
    assert () == engine.session("chat").verify().problems


def test_observers_leave_with_the_last_handle(store: Store) -> None:
    """Who observed a session before it was closed hears nothing of what happens after it was opened again."""
    engine = engine_on(store)
    session = engine.session("chat")
    notices = heard(session)
    talk(session, 3)
    session.close()
    engine.session("chat").fold("all")
    assert [] == notices


def test_a_handle_stays_closed_when_its_session_is_opened_again(store: Store) -> None:
    """An old handle does nothing, whatever becomes of its session."""
    engine = engine_on(store)
    old = engine.session("chat")
    talk(old, 1)
    old.close()
    engine.session("chat").append(user("more"))
    with pytest.raises(SessionClosedError):
        old.append(user("lost"))


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_a_session_that_another_process_deleted_begins_anew(store: Store, turns: int) -> None:
    """A state that was kept is not shown once the session was deleted, also where a new one of that id took its place."""
    engine, other = engine_on(store), engine_on(store)
    with engine.session("chat") as session:
        talk(session, 2)
    other.delete("chat")
    with engine.session("chat") as session:
        assert (0, []) == (session.seq, list(session.messages()))
    with engine.session("chat") as session:
        talk(session, 2)
    other.delete("chat")
    with other.session("chat") as session:
        talk(session, turns, first=50)
        after = shown(session)
    with engine.session("chat") as session:
        assert after == shown(session)
        assert "usr-9/1" != session.append(user("goes on")).address
        assert () == session.verify().problems


def test_a_deleted_session_is_not_kept(store: Store) -> None:
    """A session that this engine deletes, open or closed, begins anew."""
    engine = engine_on(store)
    open_handle = engine.session("chat")
    talk(open_handle, 2)
    engine.delete("chat")
    open_handle.close()
    with engine.session("chat") as session:
        assert [] == list(session.messages())
        talk(session, 1)
    engine.delete("chat")
    assert 0 == len(engine._open.kept._states) == engine._open.kept.total_bytes
    assert [] == list(engine.session("chat").messages())


def test_a_session_whose_store_failed_is_loaded_again(tmp_path: Path) -> None:
    """After a failed sync the state is not kept: what is on disk decides."""
    io = FaultyIo()
    engine = Engine(FileStore(tmp_path, io=io), config_of())
    session = engine.session("chat")
    talk(session, 2)
    io.fail("sync", 5)
    with pytest.raises(UnavailableError):
        session.append(user("lost"))
    io.mend()
    session.close()
    assert 0 == len(engine._open.kept._states)
    with engine.session("chat") as again:
        assert [*turn(1), *turn(2)] == list(again.messages())
        again.append(user("safe"))


def test_what_was_counted_with_other_settings_is_not_kept(store: Store) -> None:
    """A provider's count is compared with a window that the session's counter counted, not the counter before it."""
    with Engine(store, config_of()) as engine:
        with engine.session("chat") as session:
            talk(session, 3)
            tokens = session.window().tokens
        with engine.session("chat", config={"counter": "approximate"}) as again:
            assert "no window" in again.report_usage(prompt_tokens=tokens).reason
        with engine.session("chat", config={"counter": "approximate"}) as again:
            again.window()
        with engine.session("chat", config={"counter": "approximate"}) as again:
            assert "no window" not in again.report_usage(prompt_tokens=tokens).reason


def test_readers_keep_sessions_too(store: Store) -> None:
    """An engine that only reads opens a kept session at the same cost, and sees what the writer wrote."""
    with engine_on(store).session("chat") as session:
        talk(session, 3)
        session.window()
    counted = CountingStore(store)
    reader = engine_on(counted, read_only=True)
    reader.session("chat").close()
    assert {"open": 1, "read": 1} == asked(counted, reader)
    with engine_on(store).session("chat") as session:
        talk(session, 1, first=4)
    with reader.session("chat") as session:
        assert turn(4) == list(session.messages())[-2:]


def test_an_unused_session_is_not_kept(store: Store) -> None:
    """A session without events is not worth the room."""
    engine = engine_on(store)
    engine.session("chat").close()
    assert 0 == len(engine._open.kept._states)


def test_the_one_that_was_closed_first_leaves_first(store: Store) -> None:
    """Where there is no room for all, the least recently closed is loaded, and the others still cost one round trip."""
    counted = CountingStore(store)
    engine = engine_on(counted, max_bytes=100_000)
    ids = ["a", "b", "c", "d", "e"]
    for session_id in ids:
        with engine.session(session_id) as session:
            session.append(user(f"I am {session_id}"))
    assert 4 == len(engine._open.kept._states)
    engine.session("b").close()  # b is the newest now
    with engine.session("f") as session:
        session.append(user("I am f"))
    cheap = {"open": 1, "read": 1}
    assert [cheap] * 4 == [asked(counted, engine, session_id) for session_id in ("d", "e", "b", "f")]
    assert cheap != asked(counted, engine, "a")
    assert [user("I am c")] == list(engine.session("c").messages())


@pytest.mark.parametrize("max_bytes", [0, 50_000])
def test_a_session_above_the_bound_is_not_kept(store: Store, max_bytes: int) -> None:
    """A state that is larger than the bound is not kept, and takes the place of none."""
    engine = engine_on(store, max_bytes)
    with engine.session("large") as session:
        session.append(user("word " * 20_000))
    assert 0 == len(engine._open.kept._states) == engine._open.kept.total_bytes
    assert 1 == len(list(engine.session("large").messages()))


@pytest.mark.slow
def test_ten_thousand_sessions_take_no_more_than_the_bound() -> None:
    """However many sessions are opened in turn, what is kept stays below the bound, and nothing of the others stays open."""
    store = CountingStore(MemoryStore())
    engine = engine_on(store, max_bytes=1_000_000)
    for number in range(10_000):
        with engine.session(f"chat {number}") as session:
            session.append(user("hello"))
    kept = engine._open.kept
    assert 0 < kept.total_bytes <= 1_000_000
    assert 40 <= len(kept._states) <= 60
    assert (0, 0, 0, set()) == (store.opened, len(engine._open._cores), len(engine._open._gates), engine._sessions)


def test_closing_the_engine_forgets_them(store: Store) -> None:
    """A closed engine holds no state, nor does it keep one of a session that is closed late."""
    engine = engine_on(store)
    session = engine.session("other")
    for session_id in ("chat", "other"):
        with engine.session(session_id) as opened:
            talk(opened, 1)
    engine.close()
    session.close()
    assert 0 == len(engine._open.kept._states)


def test_threads_open_and_close_the_same_session(store: Store) -> None:
    """Eight threads that open, write to and close one session, in one engine, share one state at a time and lose nothing."""
    counted = CountingStore(store)
    engine = engine_on(counted)

    def work(thread: int) -> None:
        for number in range(25):
            with engine.session("chat") as session:
                session.append(user(f"{thread}:{number}"))

    in_threads(work, range(8))
    assert 0 == counted.opened
    with engine.session("chat") as session:
        said = [value["content"] for value in session.messages()]
        assert sorted(said) == sorted(f"{thread}:{number}" for thread in range(8) for number in range(25))
        assert () == session.verify().problems


def test_a_slow_opening_holds_nobody_else_up(store: Store) -> None:
    """While one session is loaded, others are opened and closed; who opens the same one waits, and shares it."""
    counted = CountingStore(store)
    engine = engine_on(counted)
    with engine_on(store).session("slow") as session:
        session.append(user("a"))
    hold = counted.hold("read")
    opened: list[Session] = []
    threads = [threading.Thread(target=lambda: opened.append(engine.session("slow"))) for _ in range(2)]
    threads[0].start()
    assert hold.reached.wait(60)
    threads[1].start()
    with engine.session("quick") as session:
        session.append(assistant("b"))
    assert [] == opened
    hold.released.set()
    for thread in threads:
        thread.join()
    first, second = opened
    assert first._core is second._core


def test_an_engine_that_is_closed_meanwhile_opens_nothing(store: Store) -> None:
    """A session that is loaded while the engine is closed is not handed out, and nothing of it stays open."""
    with engine_on(store).session("chat") as session:
        session.append(user("a"))
    counted = CountingStore(store)
    engine = engine_on(counted)
    hold = counted.hold("read")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            engine.session("chat")
        except SessionClosedError as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert hold.reached.wait(60)
    engine.close()
    hold.released.set()
    thread.join()
    assert 1 == len(failures)
    assert (0, {}) == (counted.opened, engine._open._cores)


def failed(store: CountingStore, session: Session) -> None:
    """Let the store fail a write of the session, of which nobody knows what became."""

    def fail() -> None:
        store.before = None
        message = "the connection was lost"
        raise UnavailableError(message)

    store.before = fail
    with pytest.raises(UnavailableError):
        session.window(tools=[{"name": "changed"}])


@pytest.mark.parametrize("refreshes", [True, False])
def test_handles_share_a_state_after_the_store_failed(store: Store, refreshes: bool) -> None:  # noqa: FBT001 (a case)
    """After a write that failed, all handles of an engine go on with one state, whether one refreshes or another is opened."""
    counted = CountingStore(store)
    engine = engine_on(counted)
    first, second = engine.session("chat"), engine.session("chat")
    talk(first, 2)
    failed(counted, first)
    if refreshes:
        first.refresh()
    third = engine.session("chat")
    for number, session in enumerate((first, second, third, first)):
        session.append(user(f"{number}"))
    assert 1 == len({shown(session)[0] for session in (first, second, third)})
    assert [user(f"{number}") for number in range(4)] == list(second.messages())[-4:]
    for session in (first, second, third):
        session.close()
    assert 0 == counted.opened


def test_handles_on_a_session_that_was_deleted_are_closed_by_the_next_opening(store: Store) -> None:
    """Where another process deleted the session, and this engine heard of it, the old handles do not meet the new session."""
    engine = engine_on(store)
    old = engine.session("chat")
    talk(old, 2)
    engine_on(store).delete("chat")
    with pytest.raises(UnavailableError, match="deleted"):
        old.append(user("lost"))
    with pytest.raises(UnavailableError, match="deleted"):
        old.refresh()
    new = engine.session("chat")
    talk(new, 1)
    with pytest.raises(SessionClosedError):
        old.append(user("lost"))
    old.close()
    new.append(user("kept"))
    assert [*turn(1), user("kept")] == list(new.messages())
