"""The pages of a session: lists, one page, why it is where it is, what a search finds, and bringing one back."""

from typing import Annotated

from fastapi import Body, Query

import memci
from memci.archive.catalogue.page_facts import PageState
from memci.client.answer import PageList, PageRead
from memci.engine.reading.explain import Explanation
from memci.engine.reading.searching import Hit
from memci.http.asked import Index, ReadSession
from memci.http.resources.sessions import MOST, Limit
from memci.http.shape import Router

Strings = Annotated[list[str] | None, Body()]
Text = Annotated[str | None, Body()]

router = Router(prefix="/sessions/{session_id}", tags=["pages"])


async def read(session: memci.AsyncSession, page: memci.Page) -> PageRead:
    """Return what is answered of a page."""
    return PageRead(facts=await session.facts(page.index), messages=page.messages, pages=page.pages)


@router.get("/pages")
async def list_pages(
    session: ReadSession, start: Annotated[int, Query(ge=0)] = 0, limit: Limit = 100, state: PageState | None = None
) -> PageList:
    """List the facts of pages, oldest first, or of those in a state."""
    if state is None:
        pages, total = await session.page_range(start, limit)
        return PageList(pages=tuple(pages), total=total)
    pages = await session.pages(state)
    return PageList(pages=tuple(pages[start : start + limit]), total=len(pages))


@router.get("/pages/{index}")
async def read_page(session: ReadSession, index: Index) -> PageRead:
    """Read a page; this is no recall. Of a root or a range it is the list of its pages."""
    return await read(session, await session.page(index))


@router.get("/pages/{index}/explain")
async def explain(session: ReadSession, index: Index) -> Explanation:
    """Say why a page is where it is."""
    return await session.explain(index)


@router.post("/search")
async def search(  # noqa: PLR0913 (each narrows it in another way)
    session: ReadSession,
    *,
    query: Annotated[str, Body()],
    limit: Annotated[int, Body(ge=1, le=MOST)] = 10,
    include_visible: Annotated[bool, Body()] = False,
    roles: Strings = None,
    states: Annotated[list[PageState] | None, Body()] = None,
    turns: Annotated[tuple[int, int] | None, Body()] = None,
    since: Text = None,
    until: Text = None,
) -> list[Hit]:
    """Find pages by words; they stand in the body, so that no log of a proxy has them."""
    only = {"roles": roles, "states": states, "turns": turns, "since": since, "until": until}
    return await session.search(query, limit, include_visible, **only)  # type: ignore[arg-type]  # each as it is named
