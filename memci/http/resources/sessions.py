"""Sessions as such: which there are, a new one, what is said of one, its end, and a search in all of them."""

from typing import Annotated, Any
from uuid import uuid4

from fastapi import Body, Query

import memci
from memci.client.answer import Overview, SessionList
from memci.engine.hosting.listing import DeletionReceipt
from memci.engine.reading.searching import Hit
from memci.http.asked import Admin, Engine, Reader, ReadSession, Segment, Writer, WrittenSession, missing, opened
from memci.http.shape import Router

MOST = 1_000  # of anything in one list

Limit = Annotated[int, Query(ge=1, le=MOST)]
Values = Annotated[dict[str, Any], Body()]

router = Router(tags=["sessions"])


async def overview(session: memci.AsyncSession) -> Overview:
    """Return what is known of a session as such."""
    return Overview(id=session.id, seq=await session.seq, turn=await session.turn, metadata=await session.metadata)


@router.get("/sessions")
async def list_sessions(  # noqa: PLR0913 (each narrows it in another way)
    *,
    engine: Engine,
    asking: Reader,
    owner: str | None = None,
    title: str | None = None,
    used_since: str | None = None,
    limit: Limit = 50,
    after: str | None = None,
) -> SessionList:
    """List sessions, those used last first: of an owner, whose title holds some words, used since a time."""
    found = await engine.list_sessions(asking.tenant, owner=owner, title=title, used_since=used_since, limit=limit, after=after)
    return SessionList(sessions=tuple(found), after=found[-1].cursor if len(found) == limit else "")


@router.post("/sessions", status_code=201)
async def create_session(
    *,
    engine: Engine,
    asking: Writer,
    id: Annotated[str | None, Body(description="By default one that nobody has.")] = None,  # noqa: A002 (its name in JSON)
    metadata: Values | None = None,
    config: Annotated[dict[str, Any] | None, Body(description="As session.configure takes it: preset, budget, active, …")] = None,
) -> Overview:
    """Begin a session, with settings of its own; one also begins with its first message."""
    async with opened(engine, asking.tenant, uuid4().hex if id is None else id) as session:
        await session.begin(metadata, config)
        return await overview(session)


@router.get("/sessions/{session_id}")
async def get_session(session: ReadSession) -> Overview:
    """Tell how far a session is, and what was said of it."""
    return await overview(session)


@router.patch("/sessions/{session_id}")
async def describe_session(session: WrittenSession, metadata: Values) -> Overview:
    """Say something of a session, such as its title and owner; null takes a value away."""
    await session.describe(**metadata)
    return await overview(session)


@router.delete("/sessions/{session_id}")
async def delete_session(engine: Engine, asking: Admin, session_id: Segment) -> DeletionReceipt:
    """Delete all that is stored of a session."""
    async with opened(engine, asking.tenant, session_id) as session:
        if not await session.seq:
            raise missing(session_id)
    return await engine.delete(session_id, tenant=asking.tenant)


@router.post("/search")
async def search_sessions(
    *,
    engine: Engine,
    asking: Reader,
    query: Annotated[str, Body()],
    sessions: Annotated[list[str] | None, Body()] = None,
    limit: Annotated[int, Body(ge=1, le=MOST)] = 10,
) -> list[Hit]:
    """Find pages in all sessions of the tenant, or in some."""
    return await engine.search(query, asking.tenant, sessions, limit)
