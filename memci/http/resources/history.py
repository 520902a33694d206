"""What happened in a session, and going back to it: checkpoints, the journal, notices, handing over, verifying."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Body, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from memci.archive.catalogue.page_facts import Checkpoint, CheckpointKind
from memci.client.answer import HandedOver
from memci.engine.reading.journal import SessionEvent
from memci.engine.upkeep.verify import Report
from memci.http.asked import Heard, Key, ReadSession, Segment, WrittenSession
from memci.http.resources.sessions import Limit
from memci.http.shape import Router, encoded

router = Router(prefix="/sessions/{session_id}", tags=["history"])


@router.get("/checkpoints")
async def list_checkpoints(session: ReadSession) -> list[Checkpoint]:
    """List the checkpoints, oldest first."""
    return await session.checkpoints()


@router.post("/checkpoints", status_code=201)
async def make_checkpoint(
    session: WrittenSession,
    label: Annotated[str, Body()],
    kind: Annotated[CheckpointKind, Body()] = CheckpointKind.MANUAL,
    ttl_turns: Annotated[int | None, Body(description="Turns after which it is no more listed.")] = None,
    variables: Annotated[dict[str, Any] | None, Body(description="Of the application; they come back with the list.")] = None,
) -> Checkpoint:
    """Note that the session can come back to where it is."""
    return await session.checkpoint(label, kind=kind, ttl_turns=ttl_turns, variables=variables)


@router.post("/checkpoints/{checkpoint_id}/restore")
async def restore_checkpoint(session: WrittenSession, checkpoint_id: Segment) -> Checkpoint:
    """Go on from a checkpoint; the answer is one made just before, to take this back."""
    return await session.restore_checkpoint(checkpoint_id)


@router.get("/events")
async def list_events(
    session: ReadSession,
    after: Annotated[int, Query(ge=0)] = 0,
    kind: str | None = None,
    page: Annotated[list[str] | None, Query(description="Only what names one of these pages.")] = None,
    limit: Limit = 100,
) -> list[SessionEvent]:
    """List what happened after an event, oldest first, as the journal has it; the list goes on after its last ``seq``."""
    found = list[SessionEvent]()
    async for event in session.events(kind, after, page):
        found.append(event)
        if len(found) == limit:
            break
    return found


@router.post("/handoff")
async def hand_off(
    session: WrittenSession,
    to: Annotated[str, Body(description="The id of the session that goes on.")],
    share: Annotated[float, Body(description="Of its budget, at most.")] = 0.3,
    include: Annotated[list[str] | None, Body(description="Parts; by default all.")] = None,
    key: Key = None,
) -> HandedOver:
    """Hand over to another session of the tenant, which has a note then that says where this one stands."""
    parts = {} if include is None else {"include": include}
    return HandedOver(index=await session.handoff(to, share, **parts, key=key))


@router.get("/verify")
async def verify(session: ReadSession) -> Report:
    """Compare the journal with all that is derived from it."""
    return await session.verify()


@router.get("/notices", response_class=EventSourceResponse)
async def notices(heard: Heard) -> AsyncIterator[ServerSentEvent]:
    """Tell of what happens from now on as server-sent events, each named after a notice, such as ``Fold``.

    They are those of this server; the list of events has what other processes write too.
    """
    async for notice in heard:
        yield ServerSentEvent(event=type(notice).__name__, raw_data=encoded(notice).decode())
