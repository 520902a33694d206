"""Tasks that are cancelled while they wait for a session leave session and store consistent."""

import asyncio
import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.aio.engine import AsyncEngine
from memci.engine.engine import Engine
from memci.errors import SessionClosedError, UnavailableError
from tests.engine.aio.test_async import said
from tests.engine.counting_store import CountingStore, Hold
from tests.engine.sessions import config_of, turn
from tests.engine.wire import Value, user
from tests.faulty_io import FaultyIo
from tests.together import in_loop


class HoldingIo(FaultyIo):
    """An operating system one call of which is held up."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, Hold] = {}

    def hold(self, call: str) -> Hold:
        """Hold the next call of this name up until it is let go."""
        self.held[call] = Hold()
        return self.held[call]

    def open(self, path: str, flags: int) -> int:
        self._wait("open")
        return super().open(path, flags)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self._wait("write")
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        self._wait("sync")
        super().sync(fd)

    def sync_directory(self, path: str) -> None:
        self._wait("sync_directory")
        super().sync_directory(path)

    def rename(self, old: str, new: str) -> None:
        self._wait("rename")
        super().rename(old, new)

    def _wait(self, call: str) -> None:
        hold = self.held.pop(call, None)
        if hold is not None:
            hold.reached.set()
            assert hold.released.wait(60)


def engine_on(store: CountingStore | FileStore | MemoryStore, threads: int = 8) -> AsyncEngine:
    return AsyncEngine(store, config_of(active={"min_pages": 1}, durability="fsync"), threads=threads)


async def reached(hold: Hold) -> None:
    """Wait until a thread makes the call, while the loop goes on."""
    assert await asyncio.to_thread(hold.reached.wait, 60)


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel a task, and see that nothing holds it back."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def stored(store: FileStore | MemoryStore) -> list[Value]:
    """Return what another engine finds of the session, which is sound."""
    with Engine(store, config_of()).session("chat") as session:
        assert () == session.verify().problems
        return list(session.messages())


@in_loop
async def test_a_call_that_never_began_does_nothing() -> None:
    """A task that is cancelled before it first runs leaves no trace."""
    async with engine_on(MemoryStore()) as engine, engine.session("chat") as session:
        await cancelled(asyncio.create_task(session.append(user("never"))))
        await session.append(user("a"))
        assert [user("a")] == await said(session)


@in_loop
async def test_a_call_that_waits_for_its_turn_never_begins() -> None:
    """Behind a call that is held, cancelled calls are passed over, and the others keep their order."""
    store = CountingStore(MemoryStore())
    async with engine_on(store) as engine, engine.session("chat") as session:
        hold = store.hold("append")
        tasks = [asyncio.create_task(session.append(user(f"{number}"))) for number in range(6)]
        await reached(hold)
        for number in (1, 2, 4):
            await cancelled(tasks[number])
        hold.released.set()
        await asyncio.gather(*(tasks[number] for number in (0, 3, 5)))
        assert ["0", "3", "5"] == [value["content"] for value in await said(session)]


@in_loop
async def test_a_call_that_waits_for_a_thread_never_begins() -> None:
    """Where another session holds the only thread, a cancelled call does nothing once the thread is free."""
    store = CountingStore(MemoryStore())
    async with engine_on(store, threads=1) as engine, engine.session("slow") as slow, engine.session("chat") as session:
        engine._threads.patience_s = 60
        hold = store.hold("append")
        first = asyncio.create_task(slow.append(user("a")))
        await reached(hold)
        waiting = asyncio.create_task(session.append(user("never")))
        await asyncio.sleep(0)
        await cancelled(waiting)
        hold.released.set()
        await first
        assert [] == await said(session)


@in_loop
async def test_a_call_that_waits_for_the_lock_is_finished() -> None:
    """A call whose thread waits for the session's lock, which other code holds, is carried out once, though cancelled."""
    async with engine_on(MemoryStore()) as engine, engine.session("chat") as session:
        hold = Hold()

        def occupy() -> None:
            with session._twin._core.lock:
                hold.reached.set()
                assert hold.released.wait(60)

        thread = threading.Thread(target=occupy)
        thread.start()
        await reached(hold)
        task = asyncio.create_task(session.append(user("a"), key="k"))
        while not engine._threads._begun:  # noqa: ASYNC110 (threads set no event)
            await asyncio.sleep(0)
        await cancelled(task)
        hold.released.set()
        assert "usr-1/1" == (await session.append(user("a"), key="k")).address
        assert [user("a")] == await said(session)
        thread.join()


@pytest.mark.parametrize("call", ["open", "write", "sync", "sync_directory"])
@in_loop
async def test_an_append_that_runs_is_finished(tmp_path: Path, call: str) -> None:
    """Wherever in an append its task is cancelled, the thread finishes it; with its key it is repeated, and not doubled."""
    io = HoldingIo()
    store = FileStore(tmp_path, io=io)
    async with engine_on(store) as engine, engine.session("chat") as session:
        hold = io.hold(call)
        task = asyncio.create_task(session.extend(turn(1), key="k"))
        await reached(hold)
        await cancelled(task)
        hold.released.set()
        assert ["usr-1/1", "usr-1/2"] == [entry.address for entry in await session.extend(turn(1), key="k")]
        await session.append(user("goes on"))
        assert stored(store) == await said(session)
    assert [*turn(1), user("goes on")] == stored(store)


@pytest.mark.parametrize("call", ["open", "write", "sync", "sync_directory", "rename"])
@in_loop
async def test_a_fold_that_runs_is_finished(tmp_path: Path, call: str) -> None:
    """Wherever in a fold its task is cancelled, the pages are folded, whole, and the session goes on."""
    io = HoldingIo()
    store = FileStore(tmp_path, io=io)
    messages = [message for number in range(1, 5) for message in turn(number)]
    async with engine_on(store) as engine, engine.session("chat") as session:
        await session.extend(messages)
        hold = io.hold(call)
        task = asyncio.create_task(session.fold([1, 2]))
        await reached(hold)
        await cancelled(task)
        hold.released.set()
        assert ["usr-1", "usr-2"] == [entry.index for entry in (await session.contents).entries]
        await session.append(user("goes on"))
        assert stored(store) == await said(session)
    assert [*messages, user("goes on")] == stored(store)


@in_loop
async def test_a_cancelled_call_that_fails_is_found_out_by_the_next(tmp_path: Path) -> None:
    """When the disk fails a call that nobody waits for any more, the next one raises, and a new handle repeats it by its key."""
    io = HoldingIo()
    store = FileStore(tmp_path, io=io)
    async with engine_on(store) as engine, engine.session("chat") as session:
        await session.append(user("safe"))
        hold = io.hold("sync")
        task = asyncio.create_task(session.append(user("a"), key="k"))
        await reached(hold)
        await cancelled(task)
        io.fail("sync", errno.EIO)
        hold.released.set()
        with pytest.raises(UnavailableError):
            await session.append(user("b"))
        io.mend()
        async with engine.session("chat") as again:
            await again.append(user("a"), key="k")
            assert [user("safe"), user("a")] == await said(again)
    assert [user("safe"), user("a")] == stored(store)


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(patience=st.lists(st.integers(0, 12), min_size=1, max_size=25))
@in_loop
async def test_impatient_tasks_lose_and_double_nothing(patience: list[int]) -> None:
    """Appends that are cancelled after any number of steps of the loop, and repeated with their key, are there once, in order."""
    store = MemoryStore()
    async with engine_on(store) as engine, engine.session("chat") as session:
        for number, steps in enumerate(patience):
            task = asyncio.create_task(session.append(user(f"{number}"), key=f"{number}"))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await session.append(user(f"{number}"), key=f"{number}")
    assert [f"{number}" for number in range(len(patience))] == [value["content"] for value in stored(store)]


@in_loop
async def test_a_session_nobody_waits_for_is_closed() -> None:
    """Where opening is cancelled while the session is loaded, or before, no handle stays open."""
    store = CountingStore(MemoryStore())
    async with engine_on(store, threads=1) as engine:
        async with engine.session("chat") as session:
            await session.append(user("a"))
        async with engine.session("other") as other:
            hold = store.hold("read")

            async def enter() -> None:
                async with engine.session("chat"):
                    pytest.fail("it was cancelled before")

            tasks = [asyncio.create_task(enter()) for _ in range(2)]
            await reached(hold)
            for task in tasks:
                await cancelled(task)
            hold.released.set()
            await other.append(user("b"))
        async with engine.session("chat") as session:
            assert [user("a")] == await said(session)
        assert (0, set()) == (store.opened, engine._twin._sessions)


@pytest.mark.parametrize("whole", [False, True], ids=["session", "engine"])
@in_loop
async def test_closing_goes_on_when_it_is_cancelled(whole: bool) -> None:  # noqa: FBT001 (a case)
    """Who is cancelled while closing waits for a call need not close again, and the call is finished."""
    memory = MemoryStore()
    store = CountingStore(memory)
    engine = engine_on(store)
    session = await engine.session("chat")
    hold = store.hold("append")
    writing = asyncio.create_task(session.append(user("a")))
    await reached(hold)
    closing = asyncio.create_task(engine.close() if whole else session.close())
    await asyncio.sleep(0)
    await cancelled(closing)
    hold.released.set()
    await writing
    await (engine.close() if whole else session.close())
    with pytest.raises(SessionClosedError):
        await session.append(user("b"))
    await engine.close()
    assert 0 == store.opened
    assert [user("a")] == stored(memory)


@in_loop
async def test_closing_that_waits_for_a_tool_goes_on_when_it_is_cancelled() -> None:
    """A handle whose closing is cancelled while a tool runs is closed once the tool is done, and the tool is not disturbed."""
    async with engine_on(MemoryStore()) as engine:
        session = await engine.session("chat")
        hold = Hold()

        def work() -> int:
            """Work for long."""
            hold.reached.set()
            assert hold.released.wait(60)
            return session._twin.turn

        session.toolbox.register(work)
        call = {"id": "c1", "type": "function", "function": {"name": "work", "arguments": "{}"}}
        working = asyncio.create_task(session.handle_tool_call(call))
        await reached(hold)
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        await cancelled(closing)
        await session.append(user("a"))
        hold.released.set()
        assert "1" == (await working)["content"]
        while engine._tool_threads._begun:  # noqa: ASYNC110 (threads set no event)
            await asyncio.sleep(0)
        with pytest.raises(SessionClosedError):
            await session.append(user("b"))


@in_loop
async def test_a_program_that_is_interrupted_leaves_what_it_wrote(tmp_path: Path) -> None:
    """When the main task is cancelled in the middle of a call, ``async with`` closes what is open, and the call is whole."""
    io = HoldingIo()
    store = FileStore(tmp_path, io=io)
    hold = io.hold("sync")

    async def main() -> None:
        async with engine_on(store) as engine, engine.session("chat") as session:
            await asyncio.gather(*(session.append(user(f"{number}")) for number in range(3)))

    task = asyncio.create_task(main())
    await reached(hold)
    task.cancel()
    await asyncio.sleep(0)
    hold.released.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [user("0")] == stored(store)
