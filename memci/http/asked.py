"""What routes are given: the engine, who asks, and the session that a path names, opened for one request."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated, cast
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Header, Path, Request
from pydantic import AfterValidator

import memci
from memci.archive.stores.names import SessionKey
from memci.client.answer import ServerNotice
from memci.engine.reading.pages import page_named
from memci.errors import InvalidIdError, PermissionDeniedError, shown
from memci.http.problem import RefusedError
from memci.http.tokens import Caller, Scope


def _decoded(segment: str) -> str:
    return unquote_to_bytes(segment).decode()  # what is not UTF-8 is a ValueError


Segment = Annotated[str, Path(min_length=1), AfterValidator(_decoded)]
"""One segment of a path; the guard leaves it as it came."""

Index = Annotated[
    str,
    Path(min_length=1, description="Such as usr-12, or the number alone."),
    AfterValidator(_decoded),
    AfterValidator(page_named),
]

Key = Annotated[str | None, Header(alias="Idempotency-Key", description="Repeating a request with its key is done once.")]


async def engine_of(request: Request) -> memci.AsyncEngine:  # not waiting: FastAPI runs what is no coroutine in threads
    """Return the engine of the application."""
    return cast("memci.AsyncEngine", request.app.state.engine)


def caller(scope: Scope) -> Callable[[Request], Coroutine[None, None, Caller]]:
    """Return what gives the caller where that one may do what needs a scope; 403 elsewhere."""

    async def permitted(request: Request) -> Caller:
        asking: Caller = request.state.caller
        if not asking.scope.allows(scope):
            message = f"this token is good for {asking.scope}, and {scope} is needed"
            raise RefusedError(HTTPStatus.FORBIDDEN, PermissionDeniedError(message))
        return asking

    return permitted


Engine = Annotated[memci.AsyncEngine, Depends(engine_of)]
Reader = Annotated[Caller, Depends(caller(Scope.READ))]
Writer = Annotated[Caller, Depends(caller(Scope.WRITE))]
Admin = Annotated[Caller, Depends(caller(Scope.ADMIN))]


def missing(session_id: str) -> RefusedError:
    """Return the refusal for a session that is not there."""
    error = InvalidIdError(f"there is no session {shown(session_id)}: it begins with its first message", value=session_id)
    return RefusedError(HTTPStatus.NOT_FOUND, error)


@asynccontextmanager
async def opened(engine: memci.AsyncEngine, tenant: str, session_id: str) -> AsyncIterator[memci.AsyncSession]:
    """Open a session, with what others wrote meanwhile."""
    async with engine.session(session_id, tenant=tenant) as session:
        await session.refresh()
        yield session


def _session(scope: Scope, *, new: bool = False) -> Callable[..., AsyncIterator[memci.AsyncSession]]:
    async def given(
        session_id: Segment, engine: Engine, asking: Annotated[Caller, Depends(caller(scope))]
    ) -> AsyncIterator[memci.AsyncSession]:
        async with opened(engine, asking.tenant, session_id) as session:
            if not new and not await session.seq:
                raise missing(session_id)
            yield session

    return given


async def _heard(
    session_id: Segment, request: Request, engine: Engine, asking: Reader
) -> AsyncIterator[AsyncIterator[ServerNotice]]:
    async def head() -> int:
        async with opened(engine, asking.tenant, session_id) as session:
            return await session.seq

    if not (seq := await head()):
        raise missing(session_id)
    with request.app.state.notices.listening(SessionKey(asking.tenant, session_id), seq, head) as heard:
        yield heard


ReadSession = Annotated[memci.AsyncSession, Depends(_session(Scope.READ))]
WrittenSession = Annotated[memci.AsyncSession, Depends(_session(Scope.WRITE))]
NewSession = Annotated[memci.AsyncSession, Depends(_session(Scope.WRITE, new=True))]
"""A session that may not be there yet."""

Heard = Annotated[AsyncIterator[ServerNotice], Depends(_heard)]
"""What happens in a session from now on; nothing of it is kept open for that."""
