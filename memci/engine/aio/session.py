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


def _call(
    method: Callable[Concatenate[Session, _Given], _Answer],
) -> Callable[Concatenate["AsyncSession", _Given], Coroutine[Any, Any, _Answer]]:
    """Return the coroutine function of a session's method."""

    @functools.wraps(method)
    async def call(self: "AsyncSession", /, *positional: _Given.args, **named: _Given.kwargs) -> _Answer:
        calls = self._calls
        if method in _TOOLS:
            calls, _ = self._tool_calls, self.toolbox  # made here, and so by one thread only
        return await calls.run(functools.partial(method, self._session, *positional, **named))

    return call


def _iteration(
    method: Callable[Concatenate[Session, _Given], Iterator[_Answer]],
) -> Callable[Concatenate["AsyncSession", _Given], AsyncIterator[_Answer]]:
    """Return the asynchronous iterator of a session's iterator."""

    @functools.wraps(method)
    async def iterate(self: "AsyncSession", /, *positional: _Given.args, **named: _Given.kwargs) -> AsyncIterator[_Answer]:
        items = method(self._session, *positional, **named)
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
        return instance._calls.run(functools.partial(self._read, instance._session))  # noqa: SLF001 (it is a part of it)


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
        self._session = session
        self._calls = calls
        self._tool_calls = tool_calls

    async def __aenter__(self) -> Self:
        """Return the session."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close the handle."""
        await self.close()

    async def close(self) -> None:
        """Close this handle. May be called twice."""

        def close() -> None:
            self._calls.submit(self._session.close).result()

        closing = self._tool_calls.submit(close)  # the tools that run may need the session until they are done
        await asyncio.shield(asyncio.wrap_future(closing))

    @property
    def id(self) -> str:
        """The session's id."""
        return self._session.id

    @property
    def durability(self) -> str:
        """``fsync``, or the name of the weaker promise that was asked for."""
        return self._session.durability

    @property
    def toolbox(self) -> "RecallToolbox":
        """The tools that bring pages back: ``.openai()``, ``.responses()`` and ``.anthropic()`` are their schemas."""
        return self._session.toolbox

    seq = _Reading(lambda session: session.seq)
    turn = _Reading(lambda session: session.turn)
    config = _Reading(lambda session: session.config)
    contents = _Reading(lambda session: session.contents)

    append = _call(Session.append)
    extend = _call(Session.extend)
    refresh = _call(Session.refresh)
    window = _call(Session.window)
    render = _call(Session.render)
    pages = _call(Session.pages)
    page_range = _call(Session.page_range)
    page = _call(Session.page)
    facts = _call(Session.facts)
    messages = _iteration(Session.messages)
    recall = _call(Session.recall)
    fade = _call(Session.fade)
    evict = _call(Session.evict)
    restore = _call(Session.restore)
    pin = _call(Session.pin)
    unpin = _call(Session.unpin)
    fold = _call(Session.fold)
    undo_fold = _call(Session.undo_fold)
    rewind = _call(Session.rewind)
    set_system = _call(Session.set_system)
    begin_page = _call(Session.begin_page)
    search = _call(Session.search)
    handle_tool_call = _call(Session.handle_tool_call)
    attp_prompt = _call(Session.attp_prompt)
    attp = _call(Session.attp)
    explain = _call(Session.explain)
    report_usage = _call(Session.report_usage)
    observe = _call(Session.observe)
    checkpoint = _call(Session.checkpoint)
    checkpoints = _call(Session.checkpoints)
    restore_checkpoint = _call(Session.restore_checkpoint)
    verify = _call(Session.verify)
    erase = _call(Session.erase)
