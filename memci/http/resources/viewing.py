"""What the page shows: sessions in figures, for the list of them, and each session view by view."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from memci.archive.stores.names import SessionKey
from memci.engine.hosting.status import Stats
from memci.http.asked import Reader, Segment
from memci.http.shape import Router

if TYPE_CHECKING:
    from memci.http.viewing import Viewer

router = Router(tags=["page"])


def viewer(request: Request) -> "Viewer":
    """Return what looks into sessions for the page, and never writes."""
    return cast("Viewer", request.app.state.viewer)


@router.get("/stats")
async def list_stats(
    *,
    request: Request,
    asking: Reader,
    session: Annotated[list[str], Query(min_length=1, max_length=100, description="Ids.")],
) -> list[Stats]:
    """Give some sessions in figures: what was said and sent, the cost, the zone; those that are not there are left out."""
    return await run_in_threadpool(viewer(request).stats, asking.tenant, session)


@router.get("/sessions/{session_id}/page/{view}")
async def show(  # noqa: PLR0913 (each is of some views)
    *,
    request: Request,
    asking: Reader,
    session_id: Segment,
    view: Literal["overview", "tree", "presets", "search", "window", "page", "preview"],
    query: Annotated[str | None, Query(description="Words, for search.")] = None,
    index: Annotated[str | None, Query(description="Of a page.")] = None,
    seq: Annotated[int | None, Query(description="The event after which a window is shown.")] = None,
    before: Annotated[int | None, Query(description="That of the call before.")] = None,
    action: Annotated[str | None, Query(description="Whose preview it is; nothing is done.")] = None,
    of: Annotated[str | None, Query(description="A page, a size, a label or a checkpoint, as the action takes it.")] = None,
) -> dict[str, Any] | list[Any] | None:
    """Give what a view of the page shows, as JSON that may change with any release."""
    given = {"query": query, "index": index, "seq": seq, "before": before, "action": action, "of": of}
    asked = {name: str(value) for name, value in given.items() if value is not None}
    found: dict[str, Any] = await run_in_threadpool(viewer(request).answer, SessionKey(asking.tenant, session_id), view, asked)
    return found
