"""An engine whose calls are awaited."""

import asyncio
import functools
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, Self
from weakref import WeakValueDictionary

from memci.archive.stores.contract import Store
from memci.archive.summarizers.summary import Summarizer
from memci.engine.aio.calls import CallQueue, Threads
from memci.engine.aio.session import AsyncSession, awaited
from memci.engine.engine import Engine, utc_now
from memci.engine.session import OnConflict, Session
from memci.engine.settings.config import Config
from memci.errors import ConfigError, shown

_Given = ParamSpec("_Given")


class Opening:
    """A session that is being opened: await it, or enter it with ``async with``, which also closes it."""

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, AsyncSession]]) -> None:
        self._opening = opening
        self._session: AsyncSession | None = None

    def __await__(self) -> Generator[Any, Any, AsyncSession]:
        """Open the session and return it."""
        return self._opening().__await__()

    async def __aenter__(self) -> AsyncSession:
        """Open the session and return it."""
        self._session = await self._opening()
        return self._session

    async def __aexit__(self, *_error: object) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()


def _opening(
    method: Callable[Concatenate[Engine, _Given], Session],
) -> Callable[Concatenate["AsyncEngine", _Given], Opening]:
    """Return the method that opens an asynchronous session where an engine's method opens a session."""

    @functools.wraps(method)
    def open_session(self: "AsyncEngine", /, *positional: _Given.args, **named: _Given.kwargs) -> Opening:
        return Opening(lambda: self._open(functools.partial(method, self._twin, *positional, **named)))

    return open_session


class AsyncEngine:
    """Owns a store, a config, and the sessions that are open, as ``Engine`` does, for programs with an event loop.

    All that ``Engine`` has is here under the same name and does the same, in a thread: put ``await`` in front of it.
    ``sessions`` is iterated with ``async for``, and ``session`` may be entered at once::

        async with memci.AsyncEngine("file:./chats") as engine, engine.session("support-42") as session:
            await session.append({"role": "user", "content": "Where is my order?"})
            window = await session.window()

    The threads are the engine's own, so that a slow disk keeps nothing waiting but the calls of the engine. A session that hangs
    has one of them, which counts no more, and keeps no other session waiting. Closing waits for the calls under way.

    It takes and raises what ``Engine`` does, and *threads*: how many calls run at once, of different sessions. The others wait,
    for one that hangs a tenth of a second.
    """

    def __init__(  # noqa: PLR0913 (those of Engine, and one)
        self,
        store: str | Store | None = None,
        config: Config | Mapping[str, Any] | None = None,
        tenant: str = "default",
        *,
        summarizer: Summarizer | None = None,
        on_conflict: OnConflict | None = None,
        read_only: bool = False,
        clock: Callable[[], datetime] = utc_now,
        threads: int = 8,
    ) -> None:
        if type(threads) is not int or threads < 1:
            message = f"{shown(threads)} cannot be used here: give a whole number from 1"
            raise ConfigError(message, path="threads")
        self._twin = Engine(
            store, config, tenant, summarizer=summarizer, on_conflict=on_conflict, read_only=read_only, clock=clock
        )
        self._threads = Threads(threads)
        self._tool_threads = Threads(threads)  # apart, for a tool may wait for calls
        self._queues: WeakValueDictionary[str, CallQueue] = WeakValueDictionary()
        self._lock = threading.Lock()  # protects the queues, and that closing begins once
        self._closing: Future[None] | None = None

    @classmethod
    def from_config(cls, path: str | os.PathLike[str]) -> Self:
        """Make an engine of a YAML file; ``memci config`` prints one with all defaults.

        Raises:
            ConfigError: The file cannot be read or used; the error names the place.
        """
        return cls(config=Config.from_file(path))

    async def __aenter__(self) -> Self:
        """Return the engine."""
        return self

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

    session = _opening(Engine.session)
    fork = _opening(Engine.fork)

    async def sessions(self) -> AsyncIterator[str]:
        """Yield the ids of the tenant's sessions that have at least one event, in no order."""
        for session_id in await CallQueue(self._threads).run(lambda: list(self._twin.sessions())):
            yield session_id

    delete = awaited(Engine.delete)
    repair = awaited(Engine.repair)
    erase = awaited(Engine.erase)
    warm_up = awaited(Engine.warm_up)

    async def close(self) -> None:
        """Close all sessions and the store. May be called twice."""
        with self._lock:
            if self._closing is None:
                self._closing = self._tool_threads.close(lambda: self._threads.close(self._twin.close).result())
        await asyncio.shield(asyncio.wrap_future(self._closing))

    def _queue(self, _method: object) -> CallQueue:
        return CallQueue(self._threads)

    async def _open(self, opening: Callable[[], Session]) -> AsyncSession:
        future = CallQueue(self._threads).submit(opening)
        try:
            session = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(self._close_unclaimed)
            raise
        with self._lock:
            calls = self._queues.setdefault(session.id, CallQueue(self._threads))
        return AsyncSession(session, calls, CallQueue(self._tool_threads))

    def _close_unclaimed(self, opened: Future[Session]) -> None:
        """Close the session that nobody waits for any more."""
        if not opened.cancelled() and opened.exception() is None:
            CallQueue(self._threads).submit(opened.result().close)
