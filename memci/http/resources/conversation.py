"""What is said in a session, and what the next call sends of it."""

from typing import Annotated, Any

from fastapi import Body, Query

from memci.chapters.page import Entry
from memci.client.answer import Stored
from memci.engine.commands.window import Window
from memci.engine.hosting.status import Stats, Status
from memci.engine.hosting.transcript import Said
from memci.http.asked import Key, NewSession, ReadSession, WrittenSession
from memci.http.resources.sessions import Limit
from memci.http.shape import Router

Messages = Annotated[list[dict[str, Any]], Body(min_length=1, description="In the session's wire format.")]
Times = Annotated[list[str | None] | None, Body(description="When each was said; by default now.")]

router = Router(prefix="/sessions/{session_id}", tags=["conversation"])


def stored(entry: Entry) -> Stored:
    """Return what an append answers of an entry."""
    return Stored(address=entry.address, seq=entry.node.seq, role=entry.role, tokens=entry.tokens)


@router.post("/messages", status_code=201)
async def append(session: NewSession, messages: Messages, at: Times = None, key: Key = None) -> list[Stored]:
    """Append messages, all or none; the session begins with them where it is not there."""
    return [stored(entry) for entry in await session.extend(messages, at=at, key=key)]


@router.get("/transcript")
async def transcript(
    session: ReadSession,
    limit: Limit = 50,
    before: Annotated[str | None, Query(description="The address of the last one of the list before.")] = None,
) -> list[Said]:
    """List what was said, newest first."""
    return await session.transcript(limit, before)


@router.get("/window")
async def render(
    session: ReadSession, at: Annotated[int | None, Query(description="After which event; by default the last.")] = None
) -> Window:
    """Show the window as it was after an event, byte for byte; nothing is written."""
    return await session.render(await session.seq if at is None else at)


@router.post("/window")
async def window(
    session: WrittenSession,
    budget: Annotated[int | None, Body(description="In tokens; by default the session's.")] = None,
    tools: Annotated[list[dict[str, Any]] | None, Body(description="Schemas that the call sends.")] = None,
    extra: Annotated[str | dict[str, str] | None, Body(description="Text for this call alone.")] = None,
) -> Window:
    """Make the window that the next call sends; pages fold where it would not fit."""
    return await session.window(budget, tools, extra=extra)


@router.get("/stats")
async def stats(session: ReadSession) -> Stats:
    """Tell a session in figures: what was said and sent so far, what that cost, its window's zone."""
    return await session.stats()


@router.get("/status")
async def status(session: ReadSession) -> Status:
    """Tell how the session stands: tokens by part and by role, and what is advised."""
    return await session.status()
