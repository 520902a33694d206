"""Memory: full-text search over all pages."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.archive.catalogue.query import ExtraPage, Filter, IndexHit
from memci.engine.core.core import Core
from memci.engine.core.indexing import entry_text
from memci.engine.history.state import State
from memci.engine.reading.listing import page_state
from memci.engine.settings.config import MOST
from memci.errors import ConfigError, shown
from memci.messages.formats.format import ROLES

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


MOST_HITS = 10_000
"""The largest limit of one search."""


@attrs.frozen(kw_only=True)
class Hit:
    """A page that search found.

    Attributes:
        index: The page's index.
        entry: Address of its best entry, such as ``usr-12/3``.
        score: Higher is better; to compare within one answer only.
        snippet: The best passage of the entry, and where it is short or a question, what stands beside it in the page, such as
            the answer: up to 200 characters, what is of another entry on a line of its own.
        state: Where the page is.
    """

    index: str
    entry: str
    score: float
    snippet: str
    state: PageState


def search(  # noqa: PLR0913 (each narrows it in another way)
    core: Core,
    query: object,
    *,
    limit: int,
    include_visible: bool = False,
    turns: object = None,
    roles: object = None,
    states: object = None,
    vectors: bool = False,
) -> list[Hit]:
    """Return the best pages for some words, best first; with *vectors*, by what they mean too; see ``Session.search``."""
    if not isinstance(query, str):
        message = f"a query is text, not {type(query).__name__}"
        raise ConfigError(message, path="query")
    if type(limit) is not int or not 0 < limit <= MOST_HITS:
        message = f"{shown(limit)} is not a number from 1 to {MOST_HITS}"
        raise ConfigError(message, path="limit")
    wanted = None if states is None else {page_state(state) for state in _several(states, "states")}
    only = Filter(
        turns=None if turns is None else _turns(turns),
        roles=None if roles is None else _roles(roles),
        where=None if wanted is None else _in_states(core.state, wanted),
        exclude=frozenset() if include_visible or wanted is not None else _visible(core.state),
    )
    extra = _open_page(core) if include_visible or (wanted is not None and PageState.OPEN in wanted) else ()
    embedder = None
    if vectors:
        from memci.archive.catalogue.embedding import shared_embedder  # noqa: PLC0415 (for those who use vectors)

        embedder = shared_embedder()

    def answer(index: "PageIndex") -> list[IndexHit]:
        hits = index.search(query, limit=limit, only=only, extra=extra, embedder=embedder)
        return [hit for hit in hits if core.state.active.find_page(hit.index) or index.find_page(hit.index) is not None]

    page_state_now = core.state.page_state
    return [
        Hit(
            index=hit.index,
            entry=f"{hit.index}/{hit.entry}",
            score=hit.score,
            snippet=hit.snippet,
            state=page_state_now(hit.index),
        )
        for hit in core.ask(answer)
    ]


def _in_states(state: State, wanted: Collection[PageState]) -> Callable[[str], bool]:
    """Return what tells whether a page is in one of some states.

    It is asked for each page that matches: where hidden and evicted pages, which a state does not list, are wanted
    together or not at all, a lookup answers.
    """
    if (PageState.HIDDEN in wanted) != (PageState.EVICTED in wanted):
        return lambda index: state.page_state(index) in wanted
    shown = [page.index for chapter in state.verbatim() for page in chapter.pages()]
    listed = {index: state.page_state(index) in wanted for index in (*shown, *(entry.index for entry in state.archive.entries))}
    return lambda index: listed.get(index, PageState.EVICTED in wanted)


def _visible(state: State) -> frozenset[str]:
    return frozenset(page.index for chapter in (state.active, state.system, state.recalled) for page in chapter.pages())


def _several(values: object, path: str) -> list[str]:
    """Return one text, or several, as a list."""
    several = [values] if isinstance(values, str) else values
    if not isinstance(several, Collection) or not several or not all(isinstance(value, str) for value in several):
        message = f"{shown(values)} is not a list of one or more texts: leave it out to search all {path}"
        raise ConfigError(message, path=path)
    return list(several)


def _roles(values: object) -> frozenset[str]:
    roles = _several(values, "roles")
    unknown = [role for role in roles if role not in ROLES]
    if unknown:
        message = f"there is no role {shown(unknown[0])}: give one or more of {', '.join(ROLES)}"
        raise ConfigError(message, path="roles")
    return frozenset(roles)


def _turns(value: object) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2 or not all(type(turn) is int for turn in value):  # noqa: PLR2004
        message = f"{shown(value)} is not a pair of turns: give the first and the last, such as (3, 8)"
        raise ConfigError(message, path="turns")
    first, last = value
    if first > last or last < 0:
        message = f"no turn is in {shown(value)}: give the first and then the last, counted from 0, such as (3, 8)"
        raise ConfigError(message, path="turns")
    return min(max(first, 0), MOST), min(last, MOST)


def _open_page(core: Core) -> list[ExtraPage]:
    """Return the open page, which is searchable for itself only once it is complete."""
    page = core.state.active.open_page
    if page is None or page.head is None:
        return []
    entries = [(number, node.message.speaker, entry_text(node.message)) for number, node in enumerate(page.nodes(), start=1)]
    return [ExtraPage(index=page.index, turn=core.state.turn, entries=entries)]
