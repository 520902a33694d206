"""What changes a window: folds, recalls, what is kept, compaction, also by itself; and what is taken out for good."""

from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Body, Query

from memci.client.answer import Auto, AutoZone, Compacted, Level, PageRead
from memci.engine.core.monitor import Fold
from memci.engine.erasure.erasing import Receipt
from memci.http import compaction
from memci.http.asked import Admin, Engine, Index, ReadSession, Segment, WrittenSession
from memci.http.resources.pages import read
from memci.http.shape import Router

Action: TypeAlias = Literal["fade", "evict", "restore", "pin", "unpin", "keep", "unkeep"]

router = Router(prefix="/sessions/{session_id}", tags=["changing"])


@router.post("/fold")
async def fold(
    session: WrittenSession,
    pages: Annotated[
        Literal["all"] | list[str | int] | None, Body(description="By default as many as the low mark asks for.")
    ] = None,
    to: Annotated[Level | int | None, Body(description="A size instead: 20, 40 or 60% smaller, or so many tokens.")] = None,
) -> Fold:
    """Fold pages: they leave the window, and the contents page lists them."""
    return await session.fold(pages, to=to)


@router.post("/topic")
async def close_topic(session: WrittenSession, title: Annotated[str, Body(embed=True, description="One line.")]) -> Fold:
    """Fold what is complete of a topic under a title."""
    return await session.close_topic(title)


@router.post("/undo")
async def undo(session: WrittenSession) -> Fold:
    """Bring the pages of the last fold back into view."""
    return await session.undo_fold()


@router.post("/recall")
async def recall(session: WrittenSession, index: Annotated[str | int, Body(embed=True)]) -> PageRead:
    """Bring a page back into the window for some turns, and return it."""
    return await read(session, await session.recall(index))


@router.post("/pages/{index}/{action}")
async def act(session: WrittenSession, index: Index, action: Action) -> None:
    """Do with a page what the session's method of this name does."""
    await getattr(session, action)(index)


@router.delete("/pages/{index}")
async def erase(
    *,
    engine: Engine,
    asking: Admin,
    session_id: Segment,
    index: Index,
    forks: Annotated[bool, Query(description="In all forks too, and wherever copies went.")] = False,
) -> list[Receipt]:
    """Take what a page holds out of everything that is stored, for good; ``slots`` is what slots ever said."""
    return [*await engine.erase(session_id, index, forks=forks, tenant=asking.tenant)]


@router.get("/config")
async def get_config(session: ReadSession) -> dict[str, Any]:
    """Give the settings in force that decide what a window holds."""
    return (await session.config).policy_mapping()


@router.patch("/config")
async def configure(
    session: WrittenSession,
    config: Annotated[dict[str, Any], Body(description="Such as active, or a preset.")],
) -> dict[str, Any]:
    """Choose settings for the session, over those of the server; the answer has what is in force then."""
    await session.configure(**config)
    return (await session.config).policy_mapping()


@router.get("/auto")
async def get_auto(session: ReadSession) -> Auto:
    """Tell whether the session folds by itself before a window would not fit, and when."""
    return compaction.told(await session.config)


@router.put("/auto")
async def put_auto(
    session: WrittenSession,
    *,
    enabled: Annotated[bool, Body()],
    zone: Annotated[AutoZone, Body(description="In which a window folds.")] = "orange",
    level: Annotated[Level, Body(description="How much smaller it gets then: 20, 40 or 60%.")] = "medium",
) -> Auto:
    """Say whether it does. That is a setting of the session: whoever opens it obeys, also after a restart."""
    await session.configure(active=compaction.marks(zone, level) if enabled else compaction.NO_MARKS)
    return compaction.told(await session.config)


@router.post("/compact")
async def compact(session: WrittenSession, level: Annotated[Level, Body(embed=True)]) -> Compacted:
    """Make the window smaller, after a checkpoint to which the session can come back."""
    made = await session.checkpoint(f"before compaction: {level}", kind="recovery")
    return Compacted(checkpoint=made, fold=await session.fold(to=level))
