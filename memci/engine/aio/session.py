"""A session whose calls are awaited."""

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from memci.engine.aio.calls import CallQueue
from memci.engine.session import Session

if TYPE_CHECKING:
    from memci.engine.tools.recall_tools import RecallToolbox

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

_BATCH = 64
"""Items of an iterator that one call brings."""

_TOOLS = (Session.handle_tool_call, Session.attp_prompt, Session.attp)
"""What runs tools, which may take long and may call the session themselves."""


def awaited(
    method: Callable[Concatenate[Any, _Given], _Answer],
) -> Callable[Concatenate[Any, _Given], Coroutine[Any, Any, _Answer]]:
    """Return the coroutine function of a method of ``Session`` or ``Engine``, for the class that has it as ``_twin``."""

    @functools.wraps(method)
    async def call(self: Any, /, *positional: _Given.args, **named: _Given.kwargs) -> _Answer:  # noqa: ANN401 (either class)
        queue: CallQueue = self._queue(method)
        return await queue.run(functools.partial(method, self._twin, *positional, **named))

    return call


def _iteration(
    method: Callable[Concatenate[Session, _Given], Iterator[_Answer]],
) -> Callable[Concatenate["AsyncSession", _Given], AsyncIterator[_Answer]]:
    """Return the asynchronous iterator of a session's iterator."""

    @functools.wraps(method)
    async def iterate(self: "AsyncSession", /, *positional: _Given.args, **named: _Given.kwargs) -> AsyncIterator[_Answer]:
        items = method(self._twin, *positional, **named)
        while batch := await self._calls.run(lambda: list(itertools.islice(items, _BATCH))):
            for item in batch:
                yield item

    return iterate


class _Reading(Generic[_Answer]):
    """A property that is awaited, since it takes the session's lock."""

    def __init__(self, read: Callable[[Session], _Answer]) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self.__doc__ = getattr(Session, name).__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: "AsyncSession", owner: type) -> Coroutine[Any, Any, _Answer]: ...

    def __get__(self, instance: "AsyncSession | None", owner: type) -> Self | Coroutine[Any, Any, _Answer]:
        if instance is None:
            return self
        return instance._calls.run(functools.partial(self._read, instance._twin))  # noqa: SLF001 (it is a part of it)


class AsyncSession:
    """A handle on one conversation, as ``Session`` is, for programs with an event loop; ``AsyncEngine.session`` opens one.

    All that ``Session`` has is here under the same name and does the same, in a thread: put ``await`` in front of it, also of
    the properties that read the state (``await session.seq``). What cannot block is not awaited: ``id``, ``durability``,
    ``toolbox``. ``messages`` is iterated with ``async for``. Tasks may share a session: its calls run one after the other, in
    the order in which they were started, and no other session waits for them. ``attp``, ``attp_prompt`` and
    ``handle_tool_call`` have an order of their own, beside the other calls, for a tool may take long and may call the session
    itself.

    A task may be cancelled at any time. A call that waits for its turn then never begins; one that runs completes, and its result
    is discarded. So an append that was cancelled is in the journal or it is not; repeating it with its ``key`` makes sure.
    Observers are called, and tools run, in threads.
    """

    def __init__(self, session: Session, calls: CallQueue, tool_calls: CallQueue) -> None:
        self._twin = session
        self._calls = calls
        self._tool_calls = tool_calls

    def _queue(self, method: object) -> CallQueue:
        if method not in _TOOLS:
            return self._calls
        _ = self.toolbox  # made here, and so by one thread only
        return self._tool_calls

    async def __aenter__(self) -> Self:
        """Return the session."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close the handle."""
        await self.close()

    async def close(self) -> None:
        """Close this handle. May be called twice."""

        def close() -> None:
            self._calls.submit(self._twin.close).result()

        closing = self._tool_calls.submit(close)  # the tools that run may need the session until they are done
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
    def toolbox(self) -> "RecallToolbox":
        """The tools that bring pages back: ``.openai()``, ``.responses()`` and ``.anthropic()`` are their schemas."""
        return self._twin.toolbox

    seq = _Reading(lambda session: session.seq)
    turn = _Reading(lambda session: session.turn)
    config = _Reading(lambda session: session.config)
    contents = _Reading(lambda session: session.contents)

    append = awaited(Session.append)
    extend = awaited(Session.extend)
    refresh = awaited(Session.refresh)
    window = awaited(Session.window)
    render = awaited(Session.render)
    pages = awaited(Session.pages)
    page_range = awaited(Session.page_range)
    page = awaited(Session.page)
    facts = awaited(Session.facts)
    messages = _iteration(Session.messages)
    recall = awaited(Session.recall)
    fade = awaited(Session.fade)
    evict = awaited(Session.evict)
    restore = awaited(Session.restore)
    pin = awaited(Session.pin)
    unpin = awaited(Session.unpin)
    fold = awaited(Session.fold)
    undo_fold = awaited(Session.undo_fold)
    rewind = awaited(Session.rewind)
    set_system = awaited(Session.set_system)
    begin_page = awaited(Session.begin_page)
    search = awaited(Session.search)
    handle_tool_call = awaited(Session.handle_tool_call)
    attp_prompt = awaited(Session.attp_prompt)
    attp = awaited(Session.attp)
    explain = awaited(Session.explain)
    report_usage = awaited(Session.report_usage)
    observe = awaited(Session.observe)
    checkpoint = awaited(Session.checkpoint)
    checkpoints = awaited(Session.checkpoints)
    restore_checkpoint = awaited(Session.restore_checkpoint)
    verify = awaited(Session.verify)
    erase = awaited(Session.erase)
