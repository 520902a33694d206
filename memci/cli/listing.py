"""Commands that list what there is."""

from collections.abc import Iterable
from typing import Annotated

import attrs
import typer

import memci
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.cli import output
from memci.cli.opening import STORE, TENANT, JsonOption, Place, SessionOption, StoreOption, TenantOption, get_sessions, opened
from memci.cli.output import Column
from memci.cli.wording import count
from memci.engine.settings.config_checks import MOST

_PAGE_COLUMNS = (
    Column("page"),
    Column("state"),
    Column("turn", number=True),
    Column("entries", number=True),
    Column("tokens", number=True),
    Column("recalls", number=True),
    Column("title"),
)
_HIT_COLUMNS = (Column("entry"), Column("state"), Column("score", number=True), Column("passage"))


def sessions(*, store: StoreOption = STORE, tenant: TenantOption = TENANT, json: JsonOption = False) -> None:
    """List the ids of all sessions."""
    with memci.Engine(store, tenant=tenant, read_only=True) as engine:
        found = get_sessions(engine, store, tenant)
    if json:
        output.document(found)
    else:
        output.text("\n".join(map(output.one_line, found)))


def pages(
    *,
    state: Annotated[PageState | None, typer.Option(help="Only pages in this state.")] = None,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """List the pages of a session, oldest first.

    Archived pages have an entry of their own in the contents page; those that it groups in directories are hidden.
    """
    with opened(Place(store, tenant, session)) as found:
        facts = found.pages(state)
        hidden = len(found.pages(PageState.HIDDEN)) if state is PageState.ARCHIVED else 0
    if json:
        output.document([attrs.asdict(page) for page in facts])
    else:
        page_table(facts)
    if hidden:
        output.note(f"{count(hidden)} more are grouped in directories: --state hidden lists them")


def page_table(facts: Iterable[PageFacts]) -> None:
    """Write the facts of pages, a row each."""
    rows = (
        [page.index, page.state, count(page.turn), count(page.entries), count(page.tokens), count(page.recall_count), page.title]
        for page in facts
    )
    output.table(_PAGE_COLUMNS, rows)


def contents(
    *, store: StoreOption = STORE, session: SessionOption = None, tenant: TenantOption = TENANT, json: JsonOption = False
) -> None:
    """Show the contents page.

    That is what the model reads of pages that left the window.
    """
    with opened(Place(store, tenant, session)) as found:
        page = found.contents
    if json:
        entries = [{**entry.to_mapping(), "text": entry.render()} for entry in page.entries]
        output.document({"index": page.index, "tokens": page.tokens, "entries": entries})
    elif page.entries:
        output.text(page.render())
    else:
        output.note("the contents page is empty: no page has left the window")


def search(  # noqa: PLR0913 (the options of a command)
    query: Annotated[list[str], typer.Argument(metavar="WORDS...", help="Any text; none of it is syntax.")],
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many pages.")] = 10,
    include_visible: Annotated[bool, typer.Option("--all", help="Search the pages that stand in the window, too.")] = False,
    role: Annotated[list[str] | None, typer.Option(help="Only what this role said; may be given several times.")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Only pages in this state; may be given several times.")] = None,
    from_turn: Annotated[int, typer.Option(metavar="N", min=0, help="Only pages opened in this turn or later.")] = 0,
    to_turn: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only pages opened in this turn or earlier.")] = None,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Search pages that left the window.

    Evicted pages are searched too; the best comes first.
    """
    with opened(Place(store, tenant, session)) as found:
        turns = (from_turn, max(from_turn, MOST) if to_turn is None else to_turn) if from_turn or to_turn is not None else None
        hits = found.search(" ".join(query), limit, include_visible, turns=turns, roles=role or None, states=state or None)
    if json:
        output.document([attrs.asdict(hit) for hit in hits])
    elif hits:
        output.table(_HIT_COLUMNS, ([hit.entry, hit.state, f"{hit.score:.2f}", hit.snippet] for hit in hits))
    else:
        whole = include_visible or state
        output.note("no such page has any of these words" if whole else "no such page outside the window has any of these words")
