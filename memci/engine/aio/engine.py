"""An engine and a session whose calls are awaited: they run in threads, so that an event loop goes on meanwhile."""

import asyncio
import functools
import itertools
import os
import threading
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Generator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar
from weakref import WeakValueDictionary

from memci.archive.contents.contents_page import ContentsPage
from memci.archive.stores.contract import Store
from memci.archive.summarizers.summary import Summarizer
from memci.chapters.page import Entry
from memci.engine.aio.calls import CallQueue, Threads
from memci.engine.commands.slots import SessionSlots
from memci.engine.engine import Engine, utc_now
from memci.engine.hosting import leasing
from memci.engine.hosting.session import OnConflict
from memci.engine.hosting.streaming import Stream
from memci.engine.reading.journal import SessionEvent
from memci.engine.session import Session
from memci.engine.settings.config import Config
from memci.engine.settings.setting import refusal
from memci.engine.view.planner import Planner
from memci.errors import LockedError
from memci.messages.tokens.counter import TokenCounter

if TYPE_CHECKING:
    from memci.archive.stores.names import SessionKey
    from memci.archive.stores.sql.postgres_connections import HostPool
    from memci.engine.tools.tree_tools import TreeToolbox

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")

_BATCH = 64  # messages or events that one call brings
_TOOLS = (Session.handle_tool_call, Session.attp_prompt, Session.attp)  # may take long, and may call the session themselves


def _awaited(
    method: Callable[Concatenate[Any, _Given], _Answer],
) -> Callable[Concatenate[Any, _Given], Coroutine[Any, Any, _Answer]]:
    """Return the coroutine function of a method of what a class has as its ``_twin``."""

    @functools.wraps(method)
    async def call(self: Any, /, *positional: _Given.args, **named: _Given.kwargs) -> _Answer:  # noqa: ANN401 (either class)
        queue: CallQueue = self._queue(method)
        return await queue.run(functools.partial(getattr(self._twin, method.__name__), *positional, **named))

    return call


class AsyncSlots:
    """The slots of a session, as ``Session.slots`` has them, whose calls are awaited: ``await session.slots.update(goal="…")``.

    Nothing can be awaited in the place of ``slots["goal"] = "…"`` and ``del slots["goal"]``: ``update`` does both.
    """

    def __init__(self, slots: SessionSlots, calls: CallQueue) -> None:
        self._twin = slots
        self._calls = calls

    def _queue(self, _method: object) -> CallQueue:
        return self._calls

    copy = _awaited(SessionSlots.copy)
    update = _awaited(SessionSlots.update)
    clear = _awaited(SessionSlots.clear)


class AsyncStream(AbstractAsyncContextManager["AsyncStream"]):
    """A streamed answer, as ``Stream``; pieces are taken in at once, and it is appended in a thread."""

    def __init__(self, stream: Stream, calls: CallQueue) -> None:
        self._twin = stream
        self._calls = calls
        self.add = stream.add

    @property
    def text(self) -> str:
        """What a user reads of it so far."""
        return self._twin.text

    @property
    def entries(self) -> list[Entry]:
        """Those that it was appended as, once the block was left."""
        return self._twin.entries

    @property
    def complete(self) -> bool:
        """Whether the provider said that it is whole."""
        return self._twin.complete

    @property
    def usage(self) -> Any:  # noqa: ANN401 (as the provider says it)
        """What the provider counted; ``None`` until it says so."""
        return self._twin.usage

    async def __aenter__(self) -> Self:
        """Look whether an answer is there already."""
        await self._calls.run(self._twin.__enter__)
        return self

    async def finish(self) -> list[Entry]:
        """Append what came, once, and return the entries; leaving the block does it, also where the task is cancelled."""
        return await asyncio.shield(asyncio.ensure_future(self._calls.run(self._twin.finish)))

    async def __aexit__(self, *_error: object) -> None:
        """Append what came, whatever ended it."""
        await self.finish()


class _ToBeOpened:
    """A session that is being opened: await it, or enter it with ``async with``, which also closes it."""

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, "AsyncSession"]]) -> None:
        self._opening = opening
        self._session: AsyncSession | None = None

    def __await__(self) -> Generator[Any, Any, "AsyncSession"]:
        return self._opening().__await__()

    async def __aenter__(self) -> "AsyncSession":
        self._session = await self
        return self._session

    async def __aexit__(self, *_error: object) -> None:
        if self._session is not None:
            await self._session.close()


def _opening(
    method: Callable[Concatenate[Any, _Given], Session],
) -> Callable[Concatenate[Any, _Given], _ToBeOpened]:
    """Return the method that opens an asynchronous session where that of the ``_twin`` opens a session."""

    @functools.wraps(method)
    def open_session(self: Any, /, *positional: _Given.args, **named: _Given.kwargs) -> _ToBeOpened:  # noqa: ANN401 (either class)
        return _ToBeOpened(lambda: self._open(functools.partial(method, self._twin, *positional, **named)))

    return open_session


async def _opened(queue: CallQueue, opening: Callable[[], Session]) -> Session:
    """Open a session in a thread; one that nobody waits for any more is closed."""
    future = queue.submit(opening)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        future.add_done_callback(functools.partial(_close_unclaimed, queue))
        raise


def _close_unclaimed(queue: CallQueue, opened: Future[Session]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        queue.submit(opened.result().close)


class AsyncSession(AbstractAsyncContextManager["AsyncSession"]):
    """A handle on one conversation, as ``Session`` is, for programs with an event loop; ``AsyncEngine.session`` opens one.

    All that ``Session`` has is here under the same name and does the same, in a thread: put ``await`` in front of it, also of the
    properties that read the state (``await session.seq``). Not awaited is what cannot block: ``id``, ``durability``, ``toolbox``,
    and ``slots``, whose methods are.
    ``messages`` is iterated with ``async for``. Tasks may share a session: its calls run one after the other, in the order in
    which they were started, and no other session waits for them. ``attp``, ``attp_prompt`` and ``handle_tool_call`` have an order
    of their own, for a tool may take long and may call the session itself; nothing waits for ``summarize``, not even closing.
    Observers are called, and tools run, in threads.

    A task may be cancelled at any time. A call that waits for its turn then never begins; one that runs completes, and its result
    is discarded. So an append that was cancelled is in the journal or it is not; repeating it with its ``key`` makes sure.
    """

    def __init__(self, session: Session, calls: CallQueue, tool_calls: CallQueue, waits: Threads) -> None:
        self._twin = session
        self._calls = calls
        self._tool_calls = tool_calls
        self._waits = waits

    def _queue(self, method: object) -> CallQueue:
        if method is Session.summarize:
            return CallQueue(self._waits)
        if method not in _TOOLS:
            return self._calls
        _ = self.toolbox  # made here, and so by one thread only
        return self._tool_calls

    async def __aexit__(self, *_error: object) -> None:
        """Close the handle."""
        await self.close()

    async def close(self) -> None:
        """Close this handle. May be called twice."""
        # After the tools that run, as they may need the session until they are done.
        closing = self._tool_calls.submit(lambda: self._calls.submit(self._twin.close).result())
        await asyncio.shield(asyncio.wrap_future(closing))

    @property
    def id(self) -> str:
        """The session's id."""
        return self._twin.id

    @property
    def durability(self) -> str:
        """``fsync``, or the name of the weaker promise that was asked for."""
        return self._twin.durability

    @property
    def slots(self) -> AsyncSlots:
        """Named texts near the end of the window, such as open files, errors or a goal, which the application refreshes."""
        return AsyncSlots(self._twin.slots, self._calls)

    @property
    def toolbox(self) -> "TreeToolbox":
        """The tools that find pages, bring them back, and edit the tree where segments permit it.

        ``.openai()``, ``.responses()`` and ``.anthropic()`` are their schemas; ``.offer(names)`` leaves some out.
        """
        return self._twin.toolbox

    @property
    def seq(self) -> Coroutine[Any, Any, int]:
        """Sequence number of the last event that this process knows; 0 for a session without any."""
        return self._calls.run(lambda: self._twin.seq)

    @property
    def turn(self) -> Coroutine[Any, Any, int]:
        """The clock of every policy: how many turns were opened so far."""
        return self._calls.run(lambda: self._twin.turn)

    @property
    def config(self) -> Coroutine[Any, Any, Config]:
        """The settings in force, those of the last event, without store and durability; at first this engine's."""
        return self._calls.run(lambda: self._twin.config)

    @property
    def metadata(self) -> Coroutine[Any, Any, dict[str, Any]]:
        """What was said of the session itself."""
        return self._calls.run(lambda: self._twin.metadata)

    @property
    def contents(self) -> Coroutine[Any, Any, ContentsPage]:
        """The contents page as it is now; the window shows it as it was at the last fold. O(entries)."""
        return self._calls.run(lambda: self._twin.contents)

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield every message of the conversation, in order, page by page. Messages that were rewound are not there."""
        async for message in self._batched(self._twin.messages()):
            yield message

    async def events(
        self, kind: str | None = None, after: int = 0, pages: Collection[str | int] | None = None
    ) -> AsyncIterator[SessionEvent]:
        """Yield what happened after event *after*, oldest first, as the journal holds it.

        Only what is of a *kind*, and what names one of these *pages*, where they are given. O(events), read as they are asked
        for. ``ConfigError`` for a kind that there is not, ``InvalidIdError`` for what is no index.
        """
        async for event in self._batched(self._twin.events(kind, after, pages)):
            yield event

    async def _batched(self, items: Iterator[_Item]) -> AsyncIterator[_Item]:
        while batch := await self._calls.run(lambda: list(itertools.islice(items, _BATCH))):
            for item in batch:
                yield item

    @asynccontextmanager
    async def lease(self, ttl_s: float = 60.0, wait_s: float = 30.0) -> AsyncIterator[None]:
        """Have the session alone while the block lasts, for *ttl_s* seconds at most: one request at a time, of all workers.

        Whoever else asks for a lease waits up to *wait_s* seconds, then it is a ``LockedError``: 0 refuses a double click at
        once. It binds those who ask for one, and ends by itself where a worker is killed. Two events of the journal.
        """
        leasing.check(ttl_s, wait_s)
        loop, waited = asyncio.get_running_loop(), 0.0
        while True:  # it waits here, so that the calls of whoever has the lease go on meanwhile
            held = self._twin.lease(ttl_s, 0)
            try:
                await self._calls.run(held.__enter__)
                break
            except LockedError:
                if waited >= wait_s:
                    raise
            began = loop.time()
            await asyncio.sleep(leasing.AGAIN_S)
            waited += loop.time() - began
        try:
            yield
        finally:
            await asyncio.shield(self._calls.run(functools.partial(held.__exit__, None, None, None)))

    def stream(self, *, at: object = None, key: str | None = None) -> AsyncStream:
        """Return what puts a streamed answer together, in a block: ``stream.add(chunk)`` for each chunk, ``stream.text`` so far.

        Chunks are the provider's of the session's format, dicts or the SDK's objects. The answer is one append, when the block is
        left: whole, or as far as it came where the model, the network or the user broke off, or the task was cancelled, without
        calls that are in parts. *at* and *key* are those of ``append``: where an answer was stored under the key before, it stays
        the only one. What others wrote meanwhile, such as a title or a rating, comes before it; where they took back the message
        that it answers, leaving the block is a ``ConflictError``, and ``stream.text`` has what came. One that broke off is
        annotated as ``interrupted``. A process that is killed meanwhile has stored nothing of it.
        """
        return AsyncStream(self._twin.stream(at=at, key=key), self._calls)

    async def _open(self, opening: Callable[[], Session]) -> "AsyncSession":
        return AsyncSession(await _opened(self._calls, opening), self._calls, self._tool_calls, self._waits)

    draft = _opening(Session.draft)
    begin = _awaited(Session.begin)
    append = _awaited(Session.append)
    extend = _awaited(Session.extend)
    refresh = _awaited(Session.refresh)
    window = _awaited(Session.window)
    render = _awaited(Session.render)
    pages = _awaited(Session.pages)
    page_range = _awaited(Session.page_range)
    page = _awaited(Session.page)
    facts = _awaited(Session.facts)
    recall = _awaited(Session.recall)
    fade = _awaited(Session.fade)
    evict = _awaited(Session.evict)
    restore = _awaited(Session.restore)
    create_contents_page = _awaited(Session.create_contents_page)
    move_page = _awaited(Session.move_page)
    update_page = _awaited(Session.update_page)
    undo_edit = _awaited(Session.undo_edit)
    get_page = _awaited(Session.get_page)
    get_children = _awaited(Session.get_children)
    get_parent = _awaited(Session.get_parent)
    get_ancestors = _awaited(Session.get_ancestors)
    pin = _awaited(Session.pin)
    unpin = _awaited(Session.unpin)
    keep = _awaited(Session.keep)
    unkeep = _awaited(Session.unkeep)
    bookmark = _awaited(Session.bookmark)
    bookmarks = _awaited(Session.bookmarks)
    fold = _awaited(Session.fold)
    close_topic = _awaited(Session.close_topic)
    summarize = _awaited(Session.summarize)
    undo_fold = _awaited(Session.undo_fold)
    rewind = _awaited(Session.rewind)
    configure = _awaited(Session.configure)
    set_system = _awaited(Session.set_system)
    status = _awaited(Session.status)
    stats = _awaited(Session.stats)
    count = _awaited(Session.count)
    recap = _awaited(Session.recap)
    handoff = _awaited(Session.handoff)
    promote = _awaited(Session.promote)
    mount = _awaited(Session.mount)
    unmount = _awaited(Session.unmount)
    mounts = _awaited(Session.mounts)
    search_mounts = _awaited(Session.search_mounts)
    sync = _awaited(Session.sync)
    annotate = _awaited(Session.annotate)
    transcript = _awaited(Session.transcript)
    variants = _awaited(Session.variants)
    choose = _awaited(Session.choose)
    describe = _awaited(Session.describe)
    begin_page = _awaited(Session.begin_page)
    search = _awaited(Session.search)
    rules = _awaited(Session.rules)
    add_rule = _awaited(Session.add_rule)
    remove_rule = _awaited(Session.remove_rule)
    handle_tool_call = _awaited(Session.handle_tool_call)
    attp_prompt = _awaited(Session.attp_prompt)
    attp = _awaited(Session.attp)
    explain = _awaited(Session.explain)
    report_usage = _awaited(Session.report_usage)
    observe = _awaited(Session.observe)
    checkpoint = _awaited(Session.checkpoint)
    checkpoints = _awaited(Session.checkpoints)
    restore_checkpoint = _awaited(Session.restore_checkpoint)
    verify = _awaited(Session.verify)
    erase = _awaited(Session.erase)
    create_detail_page = _awaited(Session.create_detail_page)
    notes = _awaited(Session.notes)
    expand_details = _awaited(Session.expand_details)
    hide_details = _awaited(Session.hide_details)
    remove_page = _awaited(Session.remove_page)
    add_segment = _awaited(Session.add_segment)
    segments = _awaited(Session.segments)


class AsyncEngine(AbstractAsyncContextManager["AsyncEngine"]):
    """Owns a store, a config, and the sessions that are open, as ``Engine`` does, for programs with an event loop.

    All that ``Engine`` has is here under the same name and does the same, in a thread: put ``await`` in front of it.
    ``sessions`` is iterated with ``async for``, and ``session`` may be entered at once:

        async with memci.AsyncEngine("file:./chats") as engine, engine.session("support-42") as session:
            await session.append({"role": "user", "content": "Where is my order?"})
            window = await session.window()

    The threads are its own, so that a slow disk keeps nothing waiting but the calls of the engine. *threads* calls run at once,
    of different sessions; the others wait, for one that hangs a tenth of a second: it keeps its thread, counts no more, and keeps
    no other session waiting. Closing waits for the calls under way. The rest it takes and raises as ``Engine`` does.
    """

    def __init__(  # noqa: PLR0913 (those of Engine, and one)
        self,
        store: str | Store | None = None,
        config: Config | Mapping[str, Any] | None = None,
        tenant: str = "default",
        *,
        summarizer: Summarizer | None = None,
        counter: TokenCounter | None = None,
        planner: Planner | None = None,
        on_conflict: OnConflict | None = None,
        pool: "HostPool | None" = None,
        read_only: bool = False,
        keep_settings: bool = False,
        clock: Callable[[], datetime] = utc_now,
        threads: int = 8,
    ) -> None:
        if type(threads) is not int or threads < 1:
            raise refusal(path="threads", value=threads, allowed="a whole number from 1")
        self._twin = Engine(
            store,
            config,
            tenant,
            summarizer=summarizer,
            counter=counter,
            planner=planner,
            on_conflict=on_conflict,
            pool=pool,
            read_only=read_only,
            keep_settings=keep_settings,
            clock=clock,
        )
        self._threads = Threads(threads)
        self._tool_threads = Threads(threads)  # apart, for a tool may wait for calls
        self._waits = Threads(threads)  # of those that wait for summaries, until the engine is closed
        self._queues: WeakValueDictionary[SessionKey, CallQueue] = WeakValueDictionary()
        self._lock = threading.Lock()  # protects the queues, and that closing begins once
        self._closing: Future[None] | None = None

    @classmethod
    def from_config(cls, path: str | os.PathLike[str]) -> Self:
        """Make an engine of a YAML file (``memci config`` prints one); ``ConfigError`` names the place that cannot be used."""
        return cls(config=Config.from_file(path))

    async def __aexit__(self, *_error: object) -> None:
        """Close the engine."""
        await self.close()

    @property
    def config(self) -> Config:
        """The settings."""
        return self._twin.config

    @property
    def durability(self) -> str:
        """``fsync``, or the name of the weaker promise that was asked for."""
        return self._twin.durability

    async def sessions(self, *, tenant: str | None = None) -> AsyncIterator[str]:
        """Yield the ids of a tenant's sessions that have at least one event, in no order."""
        for session_id in await CallQueue(self._threads).run(lambda: list(self._twin.sessions(tenant=tenant))):
            yield session_id

    session = _opening(Engine.session)
    fork = _opening(Engine.fork)
    search = _awaited(Engine.search)
    delete = _awaited(Engine.delete)
    repair = _awaited(Engine.repair)
    erase = _awaited(Engine.erase)
    warm_up = _awaited(Engine.warm_up)
    observe = _awaited(Engine.observe)
    ping = _awaited(Engine.ping)
    list_sessions = _awaited(Engine.list_sessions)
    prune = _awaited(Engine.prune)
    erase_tenant = _awaited(Engine.erase_tenant)
    usage = _awaited(Engine.usage)
    page = _awaited(Engine.page)

    async def close(self) -> None:
        """Close all sessions and the store, after what summarisers are at, for five seconds at most. May be called twice."""
        with self._lock:
            if self._closing is None:
                self._closing = self._tool_threads.close(lambda: self._threads.close(self._close).result())
        await asyncio.shield(asyncio.wrap_future(self._closing))

    def _close(self) -> None:
        self._twin.close()
        self._waits.close(lambda: None)

    def _queue(self, _method: object) -> CallQueue:
        return CallQueue(self._threads)

    async def _open(self, opening: Callable[[], Session]) -> AsyncSession:
        session = await _opened(CallQueue(self._threads), opening)
        with self._lock:
            calls = self._queues.setdefault(session._core.key, CallQueue(self._threads))  # noqa: SLF001 (its twin)
        return AsyncSession(session, calls, CallQueue(self._tool_threads), self._waits)
