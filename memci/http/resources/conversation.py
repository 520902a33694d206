"""What is said in a session, and what the next call sends of it."""

from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Body, Query
from starlette.concurrency import run_in_threadpool

from memci.chapters.page import Entry
from memci.client.answer import Stored, SyncedRead
from memci.engine.commands.calibrating import Calibration
from memci.engine.commands.window import Window
from memci.engine.hosting.status import Stats, Status
from memci.engine.hosting.transcript import Said
from memci.http.asked import Key, NewSession, ReadSession, WrittenSession
from memci.http.resources.sessions import Limit
from memci.http.shape import Router

Messages = Annotated[list[dict[str, Any]], Body(min_length=1, description="In the session's wire format.")]
Times = Annotated[list[str | None] | None, Body(description="When each was said; by default now.")]

Wire: TypeAlias = Literal["openai", "responses", "anthropic"]
SystemMessages = Annotated[list[dict[str, Any]], Body(embed=True, description="System and developer messages.")]
WHOLE = "From the first one on, in the session's wire format."

router = Router(prefix="/sessions/{session_id}", tags=["conversation"])


def stored(entry: Entry) -> Stored:
    """Return what an append answers of an entry."""
    return Stored(address=entry.address, seq=entry.node.seq, role=entry.role, tokens=entry.tokens)


@router.post("/messages", status_code=201)
async def append(session: NewSession, messages: Messages, at: Times = None, key: Key = None) -> list[Stored]:
    """Append messages, all or none; the session begins with them where it is not there."""
    return [stored(entry) for entry in await session.extend(messages, at=at, key=key)]


@router.put("/system")
async def set_system(session: NewSession, messages: SystemMessages) -> None:
    """Replace the system part; the session begins with it where it is not there."""
    await session.set_system(messages)


@router.post("/sync")
async def sync(session: NewSession, messages: Annotated[list[dict[str, Any]], Body(embed=True, description=WHOLE)]) -> SyncedRead:
    """Take over the whole list of messages that a host keeps: what is new comes in, and what differs goes back first."""
    synced = await session.sync(messages)
    appended = tuple(map(stored, synced.appended))
    return SyncedRead(known=synced.known, appended=appended, rewound=synced.rewound, system=synced.system)


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


@router.post("/usage")
async def report_usage(
    session: WrittenSession,
    usage: Annotated[dict[str, Any] | None, Body(description="As the provider's answer has it.")] = None,
    prompt_tokens: Annotated[int | None, Body(description="Of the whole prompt, in its place.")] = None,
) -> Calibration:
    """Calibrate the counter by what the provider counted for the last window that this server made of the session."""
    return await session.report_usage(usage, prompt_tokens=prompt_tokens)


@router.get("/slots")
async def get_slots(session: ReadSession) -> dict[str, str]:
    """Give the texts that stand at the end of windows, by name."""
    return await session.slots.copy()


@router.patch("/slots")
async def set_slots(
    session: WrittenSession, slots: Annotated[dict[str, str | None], Body(description="Texts by name.")]
) -> dict[str, str]:
    """Give slots their texts, and take those away whose text is null; the answer has all of them."""
    await session.slots.update(slots)
    return await session.slots.copy()


@router.get("/tools")
async def list_tools(
    session: ReadSession,
    format: Annotated[Wire | None, Query(description="By default the session's.")] = None,  # noqa: A002 (its name in JSON)
) -> list[dict[str, Any]]:
    """List the schemas of the tools by which a model finds pages and brings them back, for a call of the model."""
    schemas = getattr(session.toolbox, format or (await session.config).format)
    found: list[dict[str, Any]] = await run_in_threadpool(schemas)  # which waits for the session
    return found


@router.post("/tools")
async def handle_tool_call(
    session: WrittenSession,
    call: Annotated[dict[str, Any], Body(embed=True, description="As the model gave it; or id, name and arguments.")],
) -> dict[str, Any]:
    """Carry out a model's call of one of these tools, and give the message to append; what the model did wrong is in it."""
    match call:
        case {"id": str(), "name": _} if "type" not in call:
            call = {"id": call["id"], "function": {"name": call["name"], "arguments": call.get("arguments", {})}}
    return await session.handle_tool_call(call)
