"""What the page of a session shows, view by view."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from memci.archive.stores.names import SessionKey
from memci.http.asked import Reader, Segment
from memci.http.shape import Router

if TYPE_CHECKING:
    from memci.http.viewing import Viewer

router = Router(prefix="/sessions/{session_id}/page", tags=["page"])


@router.get("/{view}")
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
    viewer = cast("Viewer", request.app.state.viewer)
    found: dict[str, Any] = await run_in_threadpool(viewer.answer, SessionKey(asking.tenant, session_id), view, asked)
    return found
