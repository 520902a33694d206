"""What happened in a session, what is said of it, and going back: checkpoints, variants, forks, the journal, notices."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Body, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from memci.archive.catalogue.page_facts import Checkpoint, CheckpointKind
from memci.client.answer import Chosen, HandedOver, Overview
from memci.engine.commands.keeping import Bookmark
from memci.engine.hosting.recap import Recap
from memci.engine.hosting.transcript import Variant
from memci.engine.reading.journal import SessionEvent
from memci.engine.upkeep.verify import Report
from memci.http.asked import Engine, Heard, Key, ReadSession, Segment, Writer, WrittenSession
from memci.http.resources.sessions import Limit, overview
from memci.http.shape import Router, encoded

ADDRESS = "Of an entry, such as usr-12/3."

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


@router.post("/rewind")
async def rewind(session: WrittenSession, address: Annotated[str, Body(embed=True, description=ADDRESS)]) -> None:
    """Go on before an entry: it and all that follows is out of view, and stays in the journal."""
    await session.rewind(address)


@router.get("/variants")
async def list_variants(session: ReadSession, address: Annotated[str, Query(description=ADDRESS)]) -> list[Variant]:
    """List all messages that stand, or stood, at the place of an entry, oldest first."""
    return await session.variants(address)


@router.post("/choose")
async def choose(session: WrittenSession, seq: Annotated[int, Body(embed=True, description="Of a variant.")]) -> Chosen:
    """Go on with a variant, as all was when it stood there last."""
    return Chosen(address=await session.choose(seq))


@router.post("/annotate")
async def annotate(
    session: WrittenSession, address: Annotated[str, Body(description=ADDRESS)], values: Annotated[dict[str, Any], Body()]
) -> None:
    """Say something of a message for transcripts, such as a rating; null takes a value away. No window shows it."""
    await session.annotate(address, values)


@router.get("/bookmarks")
async def list_bookmarks(session: ReadSession) -> list[Bookmark]:
    """List the bookmarks, in the order of their entries."""
    return await session.bookmarks()


@router.post("/bookmark")
async def bookmark(
    session: WrittenSession,
    address: Annotated[str, Body(description=ADDRESS)],
    label: Annotated[str | None, Body(description="A line of text; null takes the mark away.")] = None,
) -> None:
    """Mark an entry."""
    await session.bookmark(address, label)


@router.get("/recap")
async def recap(
    session: ReadSession,
    max_tokens: Annotated[int, Query(ge=1)] = 600,
    since: Annotated[int | None, Query(description="An event; what happened after it is counted.")] = None,
) -> Recap:
    """Tell where the session stands, for whoever comes back to it, in its own words."""
    return await session.recap(max_tokens, since=since)


@router.post("/fork", status_code=201)
async def fork(
    *,
    session: WrittenSession,
    engine: Engine,
    asking: Writer,
    to: Annotated[str, Body(description="The id of the new session.")],
    at: Annotated[int | None, Body(description="After which event; by default now.")] = None,
) -> Overview:
    """Make a new session of the tenant that begins with what this one was after an event."""
    async with engine.fork(session.id, to, at, tenant=asking.tenant) as forked:
        return await overview(forked)


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
