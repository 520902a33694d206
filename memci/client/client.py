"""Sessions of a server that ``memci serve`` started, asked over HTTP, with or without waiting; needs the extra ``client``."""

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from memci.client.answer import ServerNotice
from memci.client.exchange import Asked, Heard, Server
from memci.client.requests import ServerRequests, SessionRequests
from memci.errors import UnavailableError, missing_extra

if TYPE_CHECKING:
    import httpx2

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

_TIMEOUT_S = 60.0  # without a byte, after which an answer is not waited for any more


def _library() -> Any:  # noqa: ANN401 (a module)
    try:
        import httpx2  # noqa: PLC0415 (an extra, and slow to load)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "client") from error
    return httpx2


def _unreached(error: Exception) -> UnavailableError:
    return UnavailableError(f"the server did not answer: {type(error).__name__} {error}")


def _sent(method: Callable[Concatenate[Any, _Given], Asked[_Answer]]) -> Callable[Concatenate[Any, _Given], _Answer]:
    """Return the method that sends what another one asks for, and returns the answer."""

    @functools.wraps(method)
    def call(self: Any, /, *positional: _Given.args, **named: _Given.kwargs) -> _Answer:  # noqa: ANN401 (either class)
        answer: _Answer = self._exchange(method(self._requests, *positional, **named))
        return answer

    return call


def _awaited(
    method: Callable[Concatenate[Any, _Given], Asked[_Answer]],
) -> Callable[Concatenate[Any, _Given], Coroutine[Any, Any, _Answer]]:
    """Return the coroutine function that does the same."""

    @functools.wraps(method)
    async def call(self: Any, /, *positional: _Given.args, **named: _Given.kwargs) -> _Answer:  # noqa: ANN401 (either class)
        answer: _Answer = await self._exchange(method(self._requests, *positional, **named))
        return answer

    return call


class Client(AbstractContextManager["Client"]):
    """All sessions that a token is good for. Threads may share it.

    Calls raise the errors that the session of the server raised, with what these hold, such as ``ConflictError.head``;
    ``PermissionDeniedError`` where the token is not good for it, and ``UnavailableError`` where no server answered.

    Args:
        url: Where the server is, such as ``http://127.0.0.1:8484``.
        token: Yours there; none is needed where the server has no tokens.
        http: An ``httpx2.Client`` of yours that sends, with your proxies, certificates and times; it stays open.
    """

    def __init__(self, url: str, *, token: str | None = None, http: "httpx2.Client | None" = None) -> None:
        self._server, self._requests = Server(url=url, token=token), ServerRequests()
        self._library = _library()
        self._own = self._library.Client(timeout=_TIMEOUT_S) if http is None else None
        self._http: Any = self._own or http

    def __exit__(self, *_error: object) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close its connections. May be called twice."""
        if self._own is not None:
            self._own.close()

    def session(self, session_id: str) -> "RemoteSession":
        """Return a handle on a session, which begins with its first message where it is not there."""
        return RemoteSession(self, session_id)

    def _exchange(self, asked: Asked[_Answer]) -> _Answer:
        try:
            answer = self._http.request(**self._server.arguments(asked))
        except self._library.TransportError as error:
            raise _unreached(error) from error
        return asked.read(answer.status_code, answer.content)

    def _heard(self, asked: Asked[None]) -> Iterator[ServerNotice]:
        heard = Heard()
        try:
            with self._http.stream(**self._server.arguments(asked)) as answer:
                if answer.is_error:
                    asked.read(answer.status_code, answer.read())
                for line in answer.iter_lines():
                    if (notice := heard.take(line)) is not None:
                        yield notice
        except self._library.TransportError as error:
            raise _unreached(error) from error

    list_sessions = _sent(ServerRequests.list_sessions)
    create = _sent(ServerRequests.create)
    delete = _sent(ServerRequests.delete)
    fork = _sent(ServerRequests.fork)
    search = _sent(ServerRequests.search)
    stats = _sent(ServerRequests.stats)


class RemoteSession:
    """A handle on one session of a server; ``Client.session`` makes one. It holds nothing, and need not be closed.

    Its methods are named as those of ``Session``, and answer what these return, as far as that is a value: for entries, pages
    and windows there are ``Stored``, ``PageRead`` and ``WindowRead`` in their places.
    """

    def __init__(self, client: Client, session_id: str) -> None:
        self._exchange, self._client, self._requests = client._exchange, client, SessionRequests(session_id)  # noqa: SLF001 (its own)

    @property
    def id(self) -> str:
        """The session's id."""
        return self._requests.id

    def notices(self) -> Iterator[ServerNotice]:
        """Yield what happens in the session from now on, on the server that is asked, until that ends."""
        return self._client._heard(self._requests.notices())  # noqa: SLF001 (as above)

    overview = _sent(SessionRequests.overview)
    describe = _sent(SessionRequests.describe)
    append = _sent(SessionRequests.append)
    extend = _sent(SessionRequests.extend)
    set_system = _sent(SessionRequests.set_system)
    sync = _sent(SessionRequests.sync)
    transcript = _sent(SessionRequests.transcript)
    window = _sent(SessionRequests.window)
    render = _sent(SessionRequests.render)
    report_usage = _sent(SessionRequests.report_usage)
    slots = _sent(SessionRequests.slots)
    set_slots = _sent(SessionRequests.set_slots)
    rules = _sent(SessionRequests.rules)
    add_rule = _sent(SessionRequests.add_rule)
    remove_rule = _sent(SessionRequests.remove_rule)
    tools = _sent(SessionRequests.tools)
    handle_tool_call = _sent(SessionRequests.handle_tool_call)
    status = _sent(SessionRequests.status)
    stats = _sent(SessionRequests.stats)
    pages = _sent(SessionRequests.pages)
    page = _sent(SessionRequests.page)
    explain = _sent(SessionRequests.explain)
    search = _sent(SessionRequests.search)
    fold = _sent(SessionRequests.fold)
    close_topic = _sent(SessionRequests.close_topic)
    undo_fold = _sent(SessionRequests.undo_fold)
    recall = _sent(SessionRequests.recall)
    fade = _sent(SessionRequests.fade)
    evict = _sent(SessionRequests.evict)
    restore = _sent(SessionRequests.restore)
    pin = _sent(SessionRequests.pin)
    unpin = _sent(SessionRequests.unpin)
    keep = _sent(SessionRequests.keep)
    unkeep = _sent(SessionRequests.unkeep)
    erase = _sent(SessionRequests.erase)
    config = _sent(SessionRequests.config)
    configure = _sent(SessionRequests.configure)
    auto = _sent(SessionRequests.auto)
    set_auto = _sent(SessionRequests.set_auto)
    compact = _sent(SessionRequests.compact)
    checkpoint = _sent(SessionRequests.checkpoint)
    checkpoints = _sent(SessionRequests.checkpoints)
    restore_checkpoint = _sent(SessionRequests.restore_checkpoint)
    rewind = _sent(SessionRequests.rewind)
    variants = _sent(SessionRequests.variants)
    choose = _sent(SessionRequests.choose)
    annotate = _sent(SessionRequests.annotate)
    bookmark = _sent(SessionRequests.bookmark)
    bookmarks = _sent(SessionRequests.bookmarks)
    recap = _sent(SessionRequests.recap)
    events = _sent(SessionRequests.events)
    handoff = _sent(SessionRequests.handoff)
    verify = _sent(SessionRequests.verify)


class AsyncClient(AbstractAsyncContextManager["AsyncClient"]):
    """All sessions that a token is good for, as ``Client``, for programs with an event loop: put ``await`` in front of its calls.

    *http* is an ``httpx2.AsyncClient`` of yours.
    """

    def __init__(self, url: str, *, token: str | None = None, http: "httpx2.AsyncClient | None" = None) -> None:
        self._server, self._requests = Server(url=url, token=token), ServerRequests()
        self._library = _library()
        self._own = self._library.AsyncClient(timeout=_TIMEOUT_S) if http is None else None
        self._http: Any = self._own or http

    async def __aexit__(self, *_error: object) -> None:
        """Close its connections."""
        await self.close()

    async def close(self) -> None:
        """Close its connections. May be called twice."""
        if self._own is not None:
            await self._own.aclose()

    def session(self, session_id: str) -> "AsyncRemoteSession":
        """Return a handle on a session, which begins with its first message where it is not there."""
        return AsyncRemoteSession(self, session_id)

    async def _exchange(self, asked: Asked[_Answer]) -> _Answer:
        try:
            answer = await self._http.request(**self._server.arguments(asked))
        except self._library.TransportError as error:
            raise _unreached(error) from error
        return asked.read(answer.status_code, answer.content)

    async def _heard(self, asked: Asked[None]) -> AsyncGenerator[ServerNotice]:
        heard = Heard()
        try:
            async with self._http.stream(**self._server.arguments(asked)) as answer:
                if answer.is_error:
                    asked.read(answer.status_code, await answer.aread())
                async for line in answer.aiter_lines():
                    if (notice := heard.take(line)) is not None:
                        yield notice
        except self._library.TransportError as error:
            raise _unreached(error) from error

    list_sessions = _awaited(ServerRequests.list_sessions)
    create = _awaited(ServerRequests.create)
    delete = _awaited(ServerRequests.delete)
    fork = _awaited(ServerRequests.fork)
    search = _awaited(ServerRequests.search)
    stats = _awaited(ServerRequests.stats)


class AsyncRemoteSession:
    """A handle on one session of a server, as ``RemoteSession``; ``notices`` is iterated with ``async for``."""

    def __init__(self, client: AsyncClient, session_id: str) -> None:
        self._exchange, self._client, self._requests = client._exchange, client, SessionRequests(session_id)  # noqa: SLF001 (its own)

    @property
    def id(self) -> str:
        """The session's id."""
        return self._requests.id

    def notices(self) -> AsyncGenerator[ServerNotice]:
        """Yield what happens in the session from now on, on the server that is asked, until that ends."""
        return self._client._heard(self._requests.notices())  # noqa: SLF001 (as above)

    overview = _awaited(SessionRequests.overview)
    describe = _awaited(SessionRequests.describe)
    append = _awaited(SessionRequests.append)
    extend = _awaited(SessionRequests.extend)
    set_system = _awaited(SessionRequests.set_system)
    sync = _awaited(SessionRequests.sync)
    transcript = _awaited(SessionRequests.transcript)
    window = _awaited(SessionRequests.window)
    render = _awaited(SessionRequests.render)
    report_usage = _awaited(SessionRequests.report_usage)
    slots = _awaited(SessionRequests.slots)
    set_slots = _awaited(SessionRequests.set_slots)
    rules = _awaited(SessionRequests.rules)
    add_rule = _awaited(SessionRequests.add_rule)
    remove_rule = _awaited(SessionRequests.remove_rule)
    tools = _awaited(SessionRequests.tools)
    handle_tool_call = _awaited(SessionRequests.handle_tool_call)
    status = _awaited(SessionRequests.status)
    stats = _awaited(SessionRequests.stats)
    pages = _awaited(SessionRequests.pages)
    page = _awaited(SessionRequests.page)
    explain = _awaited(SessionRequests.explain)
    search = _awaited(SessionRequests.search)
    fold = _awaited(SessionRequests.fold)
    close_topic = _awaited(SessionRequests.close_topic)
    undo_fold = _awaited(SessionRequests.undo_fold)
    recall = _awaited(SessionRequests.recall)
    fade = _awaited(SessionRequests.fade)
    evict = _awaited(SessionRequests.evict)
    restore = _awaited(SessionRequests.restore)
    pin = _awaited(SessionRequests.pin)
    unpin = _awaited(SessionRequests.unpin)
    keep = _awaited(SessionRequests.keep)
    unkeep = _awaited(SessionRequests.unkeep)
    erase = _awaited(SessionRequests.erase)
    config = _awaited(SessionRequests.config)
    configure = _awaited(SessionRequests.configure)
    auto = _awaited(SessionRequests.auto)
    set_auto = _awaited(SessionRequests.set_auto)
    compact = _awaited(SessionRequests.compact)
    checkpoint = _awaited(SessionRequests.checkpoint)
    checkpoints = _awaited(SessionRequests.checkpoints)
    restore_checkpoint = _awaited(SessionRequests.restore_checkpoint)
    rewind = _awaited(SessionRequests.rewind)
    variants = _awaited(SessionRequests.variants)
    choose = _awaited(SessionRequests.choose)
    annotate = _awaited(SessionRequests.annotate)
    bookmark = _awaited(SessionRequests.bookmark)
    bookmarks = _awaited(SessionRequests.bookmarks)
    recap = _awaited(SessionRequests.recap)
    events = _awaited(SessionRequests.events)
    handoff = _awaited(SessionRequests.handoff)
    verify = _awaited(SessionRequests.verify)
