"""Sessions and engines whose calls are awaited."""

import asyncio
import fcntl
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import memci
from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.names import file_name
from memci.engine.aio.engine import AsyncEngine, AsyncSession
from memci.engine.engine import Engine
from memci.errors import (
    BudgetError,
    ConfigError,
    InvalidIdError,
    InvalidMessageError,
    PageNotFoundError,
    SessionClosedError,
    UnavailableError,
)
from memci.messages.message import Message
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import config_of, turn
from tests.engine.wire import Value, system, user
from tests.faulty_io import FaultyIo
from tests.together import in_loop, in_threads

if TYPE_CHECKING:
    from memci.engine.core.monitor import Notice


def engine_on(store: Store | None = None, threads: int = 8, **sections: Any) -> AsyncEngine:  # noqa: ANN401 (any section)
    return AsyncEngine(store or MemoryStore(), config_of(active={"min_pages": 1}, **sections), threads=threads)


@asynccontextmanager
async def opened(store: Store | None = None) -> AsyncIterator[AsyncSession]:
    """Open the session ``chat`` of a new engine."""
    async with engine_on(store) as engine, engine.session("chat") as session:
        yield session


async def talk(session: AsyncSession, turns: int) -> None:
    for number in range(1, turns + 1):
        await session.extend(turn(number))


async def said(session: AsyncSession) -> list[Value]:
    return [message async for message in session.messages()]


async def reached(event: threading.Event) -> None:
    """Wait for a thread, while the loop goes on."""
    assert await asyncio.to_thread(event.wait, 60)


def test_a_conversation_is_the_same_in_both() -> None:
    """What is said, folded, recalled, pinned and searched through awaited calls is what the others give."""

    async def run(store: Store) -> tuple[object, ...]:
        async with engine_on(store) as engine, engine.session("chat") as session:
            await session.append(system("be brief"))
            await talk(session, 6)
            await session.fold([1, 2, 3])
            page = await session.recall(2)
            await session.pin(1)
            await session.checkpoint("here")
            assert turn(2) == page.messages
            assert "usr-3" == (await session.search("say3x3"))[0].index
            assert () == (await session.verify()).problems
            window = await session.window()
            assert window.to_json() == (await session.render(window.seq)).to_json()
            assert ("chat", "memory") == (session.id, session.durability)
            return (
                window.to_json(), await said(session), await session.seq, await session.turn, await session.pages(),
                await session.contents, await session.config, str(await session.explain("usr-1")), session.toolbox.openai(),
            )  # fmt: skip

    store = MemoryStore()
    found = asyncio.run(run(store))
    session = Engine(store, config_of(active={"min_pages": 1})).session("chat")
    assert found == (
        session.window().to_json(), list(session.messages()), session.seq, session.turn, session.pages(),
        session.contents, session.config, str(session.explain("usr-1")), session.toolbox.openai(),
    )  # fmt: skip


def test_it_is_imported_when_it_is_asked_for() -> None:
    """Both are exported."""
    assert (AsyncEngine, AsyncSession) == (memci.AsyncEngine, memci.AsyncSession)


def test_an_engine_is_made_of_a_file(tmp_path: Path) -> None:
    """A YAML file gives the settings and the store."""
    path = tmp_path / "memci.yaml"
    path.write_text(f"store: 'file:{tmp_path}/chats'\ndurability: flush\nbudget: {{window: 9000}}\n", encoding="utf-8")

    async def run() -> tuple[object, ...]:
        async with AsyncEngine.from_config(path) as engine:
            async with engine.session("chat") as session:
                await session.append(user("a"))
            return engine.durability, engine.config.budget.window, [each async for each in engine.sessions()]

    assert ("flush", 9_000, ["chat"]) == asyncio.run(run())


@in_loop
async def test_a_session_is_awaited_or_entered() -> None:
    """What ``session`` returns can be awaited, for a handle that is closed by hand, or entered; both share the conversation."""
    async with engine_on() as engine:
        first = await engine.session("chat")
        async with engine.session("chat") as second:
            await first.append(user("a"))
            assert [user("a")] == await said(second)
        with pytest.raises(SessionClosedError):
            await second.append(user("b"))
        async with first:
            await first.append(user("b"))
        with pytest.raises(SessionClosedError):
            await said(first)
        await first.close()


@in_loop
async def test_slots_are_awaited() -> None:
    """Slots are set, read and taken away by calls that are awaited, and stand in the window."""
    async with opened() as session:
        await session.slots.update({"open files": "a.py"}, goal="ship it")
        assert {"open files": "a.py", "goal": "ship it"} == await session.slots.copy()
        await session.slots.update(goal=None)
        assert "slot open files:\n> a.py\n[end" in (await session.window()).messages[-1]["content"]
        await session.slots.clear()
        assert {} == await session.slots.copy()


@in_loop
async def test_errors_pass_through(tmp_path: Path) -> None:
    """What the other raises is raised where it is awaited, with its data."""
    io = FaultyIo()
    async with AsyncEngine(FileStore(tmp_path, io=io), config_of()) as engine, engine.session("chat") as session:
        await session.append(user("word " * 50))
        with pytest.raises(InvalidMessageError):
            await session.append({"role": "ghost"})
        with pytest.raises(PageNotFoundError) as missing:
            await session.page(99)
        assert "usr-99" == missing.value.index
        with pytest.raises(BudgetError) as caught:
            await session.window(budget=20)
        assert 20 == caught.value.budget
        with pytest.raises(InvalidIdError):
            await engine.session("")
        with pytest.raises(InvalidIdError):
            async with engine.session(""):
                pass
        io.fail("sync", 5)
        with pytest.raises(UnavailableError):
            await session.append(user("b"))
        io.mend()


@in_loop
async def test_calls_keep_the_order_in_which_they_were_started() -> None:
    """Fifty tasks on one session, through two handles, append in the order in which they began, with windows between."""
    async with engine_on() as engine, engine.session("chat") as first, engine.session("chat") as second:
        handles = (first, second)
        calls: list[Coroutine[Any, Any, object]] = []
        for number in range(50):
            calls.append(handles[number % 2].append(user(f"message {number}")))
            if number % 10 == 0:
                calls.append(handles[number % 2].window())
        await asyncio.gather(*calls)
        assert [f"message {number}" for number in range(50)] == [value["content"] for value in await said(first)]


@in_loop
async def test_many_sessions_at_once() -> None:
    """Forty sessions on three threads, five tasks each, keep all that was said, each its own and in order."""

    async def chat(engine: AsyncEngine, number: int) -> None:
        async with engine.session(f"chat {number}") as session:
            await asyncio.gather(*(session.append(user(f"{number}:{each}")) for each in range(5)))
            assert [f"{number}:{each}" for each in range(5)] == [value["content"] for value in await said(session)]

    async with engine_on(threads=3) as engine:
        await asyncio.gather(*(chat(engine, number) for number in range(40)))
        assert {f"chat {number}" for number in range(40)} == {each async for each in engine.sessions()}


@in_loop
async def test_the_loop_goes_on_while_a_call_is_held() -> None:
    """A call that waits for the disk stops neither the loop nor other sessions, nor what else runs in threads."""
    store = CountingStore(MemoryStore())
    async with engine_on(store, threads=2) as engine:
        slow, quick = await engine.session("slow"), await engine.session("quick")
        hold = store.hold("append")
        waiting = [asyncio.create_task(slow.append(user(f"{number}"))) for number in range(20)]
        await reached(hold.reached)
        for tick in range(50):  # the nineteen that wait hold no thread
            await asyncio.sleep(0)
            await quick.append(user(f"{tick}"))
        assert not any(task.done() for task in waiting)
        assert "slow" == slow.id
        hold.released.set()
        await asyncio.gather(*waiting)
        assert 20 == len(await said(slow))


@pytest.mark.slow
@in_loop
async def test_sessions_that_hang_stop_no_other(tmp_path: Path) -> None:
    """Forty sessions whose locks others hold leave another one to work on two threads, and go on when the locks are free."""
    names = [f"hung {number}" for number in range(40)]
    async with engine_on(FileStore(tmp_path, "flush"), threads=2) as engine:
        sessions = {name: await engine.session(name) for name in (*names, "quick")}
        await asyncio.gather(*(session.append(user("a")) for session in sessions.values()))
        with ExitStack() as locks:
            for name in names:
                fcntl.flock(locks.enter_context((tmp_path / "default" / file_name(name) / "lock").open()), fcntl.LOCK_EX)
            waiting = [asyncio.create_task(sessions[name].append(user("b"))) for name in names]
            await asyncio.sleep(0)
            await sessions["quick"].append(user("b"))
            assert not any(task.done() for task in waiting)
        await asyncio.gather(*waiting)


@in_loop
async def test_sessions_may_hang_again_and_again() -> None:
    """Each time that a call hangs, others go on, although there is one thread for all of them."""
    store = CountingStore(MemoryStore())
    async with engine_on(store, threads=1) as engine, engine.session("hung") as hung, engine.session("quick") as quick:
        for text in ("first", "second"):
            hold = store.hold("append")
            waiting = asyncio.create_task(hung.append(user(text)))
            await reached(hold.reached)
            try:
                await asyncio.wait_for(quick.append(user(text)), 20)
            finally:
                hold.released.set()
            await waiting
        assert await said(hung) == await said(quick)


@in_loop
async def test_the_history_comes_in_batches() -> None:
    """A long history is iterated whole and in order, while others append, and can be left early."""
    async with opened() as session:
        await session.extend([user(f"message {number}") for number in range(200)])
        seen = []
        async for message in session.messages():
            seen.append(message["content"])
            if len(seen) == 100:
                await session.append(user("meanwhile"))
        assert [f"message {number}" for number in range(200)] == seen[:200]
        async for message in session.messages():
            assert "message 0" == message["content"]
            break


@in_loop
async def test_a_fork_is_awaited_or_entered() -> None:
    """A fork opens a session like ``session`` does, whose conversation is its own."""
    async with engine_on() as engine, engine.session("chat") as session:
        await session.append(user("a"))
        async with engine.fork("chat", "other") as other:
            await other.append(user("b"))
            assert [user("a"), user("b")] == await said(other)
        await (await engine.fork("chat", "third", at=await session.seq)).close()
        assert [user("a")] == await said(session)
        assert {"chat", "other", "third"} == {each async for each in engine.sessions()}


@in_loop
async def test_deleting_closes_handles() -> None:
    """A deleted session's handles are closed, and the id can begin anew."""
    async with engine_on() as engine:
        session = await engine.session("chat")
        await session.append(user("a"))
        await engine.delete("chat")
        with pytest.raises(SessionClosedError):
            await session.append(user("b"))
        assert [] == [each async for each in engine.sessions()]
        async with engine.session("chat") as again:
            assert [] == await said(again)


def test_closing_waits_for_calls_under_way() -> None:
    """Closing a session or an engine lets the calls that were started before finish, and then closes."""

    async def run(*, whole: bool) -> None:
        memory = MemoryStore()
        store = CountingStore(memory)
        engine = engine_on(store)
        session = await engine.session("chat")
        hold = store.hold("append")
        calls = [asyncio.create_task(session.append(user(f"{number}"))) for number in range(5)]
        await reached(hold.reached)
        closing = asyncio.create_task(engine.close() if whole else session.close())
        again = asyncio.create_task(engine.close() if whole else session.close())
        await asyncio.sleep(0)
        assert not closing.done()
        hold.released.set()
        await asyncio.gather(*calls, closing, again)
        with pytest.raises(SessionClosedError):
            await session.append(user("late"))
        await session.close()
        await engine.close()
        assert 0 == store.opened
        assert 5 == len(list(Engine(memory, config_of()).session("chat").messages()))

    asyncio.run(run(whole=False))
    asyncio.run(run(whole=True))


@in_loop
async def test_a_closed_engine_opens_nothing() -> None:
    """After closing, twice, every call of the engine and of its sessions is refused."""
    async with engine_on() as engine:
        session = await engine.session("chat")
    await engine.close()
    for call in (engine.session("chat"), engine.delete("chat"), session.append(user("a")), session.seq):
        with pytest.raises(SessionClosedError):
            await call
    with pytest.raises(SessionClosedError):
        assert [each async for each in engine.sessions()]
    await session.close()


@pytest.mark.parametrize("threads", [0, -1, True, "8", None])
def test_impossible_numbers_of_threads_are_refused(threads: object) -> None:
    """The number of threads is a whole number from 1."""
    with pytest.raises(ConfigError) as caught:
        AsyncEngine(MemoryStore(), threads=threads)  # type: ignore[arg-type]
    assert "threads" == caught.value.path


@in_loop
async def test_one_thread_is_enough() -> None:
    """Tools that call the session, closing and nested handles need no second thread for calls."""
    async with engine_on(threads=1) as engine, engine.session("a") as first, engine.session("b") as second:
        await asyncio.gather(*(each.append(user(str(number))) for number in range(5) for each in (first, second)))
        assert 5 == len(await said(first)) == len(await said(second))


@in_loop
async def test_a_tool_may_call_the_session() -> None:
    """An async tool of the session's toolbox awaits the session itself, while other calls go on, and nothing waits for ever."""
    async with opened() as session:
        await talk(session, 2)

        async def note(text: str) -> int:
            """Take a note.

            Args:
                text: What to note.
            """
            await session.append(user(text))
            return await session.turn

        session.toolbox.register(note)
        call = {"id": "c1", "type": "function", "function": {"name": "note", "arguments": '{"text": "buy milk"}'}}
        answers = await asyncio.gather(session.handle_tool_call(call), session.window(), session.handle_tool_call(call))
        assert ["3", "3"] == [answers[0]["content"], answers[2]["content"]]
        assert [user("buy milk")] * 2 == (await said(session))[-2:]


@in_loop
async def test_replies_in_attp_run_in_threads() -> None:
    """A reply in ATTP is carried out with the session's tools, several at a time, and one that is repeated runs once."""
    reply = 'thought = "look"\n[tool_call]\nstatus = "success"\ntarget = "pages"\ncode = \'__result__ = list_pages()["total"]\'\n'
    async with opened() as session:
        await talk(session, 3)
        assert "list_pages" in await session.attp_prompt()
        results = await asyncio.gather(*(session.attp(reply) for _ in range(3)), session.attp(reply, "once"))
        assert [3] * 4 == [result.value for result in results]
        await talk(session, 1)
        assert 3 == (await session.attp(reply, call_id="once")).value


@in_loop
async def test_calls_run_in_the_context_of_their_task() -> None:
    """An observer sees the context variables of the task whose call it is told of, in a thread other than the loop's."""
    request: ContextVar[str] = ContextVar("request", default="none")
    told: list[tuple[str, bool, Notice]] = []

    async def work(session: AsyncSession, name: str, index: int) -> None:
        request.set(name)
        await session.recall(index)

    loop = threading.get_ident()
    async with opened() as session:
        await talk(session, 4)
        await session.fold([1, 2, 3])
        await session.observe(lambda notice: told.append((request.get(), threading.get_ident() == loop, notice)))
        await asyncio.gather(work(session, "first", 1), work(session, "second", 2))
    assert [("first", False), ("second", False)] == [each[:2] for each in told]


def test_an_engine_outlives_its_loop() -> None:
    """One engine serves several event loops, one after the other and at once."""
    engine = engine_on()

    async def write(text: str) -> None:
        async with engine.session("chat") as session:
            await session.append(user(text))

    asyncio.run(write("first"))
    in_threads(lambda text: asyncio.run(write(text)), ["more"] * 3)

    async def read() -> list[Value]:
        async with engine, engine.session("chat") as session:
            return await said(session)

    assert [user("first"), *[user("more")] * 3] == asyncio.run(read())


@in_loop
async def test_nothing_waits_for_a_summary() -> None:
    """While a task waits for summaries, others go on, and closing ends the wait; cancelling the task changes nothing of that."""
    begun, released = threading.Event(), threading.Event()

    class Slow:
        async def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            begun.set()
            await asyncio.to_thread(released.wait, 60)
            return str(max_tokens)

    async with AsyncEngine("memory:", config_of(active={"max_pages": 3}), summarizer=Slow(), threads=1) as engine:
        pool = engine._twin._pool
        assert pool is not None
        pool.patience_s = 0.01
        session = await engine.session("chat")
        for number in range(1, 5):
            await session.extend(turn(number, 40))
        cancelled, waiting = asyncio.create_task(session.summarize()), asyncio.create_task(session.summarize())
        await reached(begun)
        cancelled.cancel()
        await session.extend(turn(5, 40))
        assert 10 == len([message async for message in session.messages()])
        assert not waiting.done()
    (outcome,) = await asyncio.wait_for(asyncio.gather(waiting, return_exceptions=True), 60)
    assert outcome == 0 or isinstance(outcome, SessionClosedError)  # as it came before the session was closed, or after
    released.set()
