"""Memory: full-text search over all pages."""

from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import date, datetime, time
from typing import TYPE_CHECKING

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.archive.catalogue.search import Entry, ExtraPage, Filter
from memci.archive.contents.tree import Permission
from memci.chapters.address import is_foreign, segment_of
from memci.chapters.dates import utc_text
from memci.engine.core.core import Core
from memci.engine.core.indexing import indexed_text, speaker_name
from memci.engine.history.state import State
from memci.engine.reading.pages import page_state
from memci.engine.settings.setting import MOST, refusal
from memci.errors import ConfigError, InvalidMessageError, shown
from memci.messages.formats.format import ROLES

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex
    from memci.archive.catalogue.page_search import TermCounts

MOST_HITS = 10_000  # of one search
_FIRST_TIME, _LAST_TIME = "", "~"  # before and after any


@attrs.frozen(kw_only=True)
class Hit:
    """A page that search found: *entry* is the address of its best entry, such as ``usr-12/3``; scores compare within one answer.

    *snippet* is the entry's best passage, and where that is short or a question, what stands beside it in the page, such as the
    answer: up to 200 characters, what is of another entry on a line of its own. *at* is when the entry was said, in UTC, as ISO
    8601; ``None`` where nothing tells. *why* has the query's words that the page holds, in some form, the rarest first, in about
    60 characters: ``support group, lgbtq``; ``beside: …`` where only pages beside it hold them, ``by meaning`` where vectors
    found it alike. *session* is the id of its session, where several were searched; *role* is that of the entry.
    """

    index: str
    entry: str
    score: float
    snippet: str
    state: PageState
    at: str | None = None
    why: str = ""
    session: str = ""
    role: str = ""

    @property
    def address(self) -> str:
        """Where the page is among all sessions of a tenant, ``session/usr-12``; its index where one session was searched."""
        return f"{self.session}/{self.index}" if self.session and not is_foreign(self.index) else self.index


def search(  # noqa: PLR0913 (each narrows it in another way)
    core: Core,
    query: object,
    limit: int,
    include_visible: bool = False,  # noqa: FBT001, FBT002 (as in ``Session.search``)
    *,
    turns: object = None,
    roles: object = None,
    states: object = None,
    since: object = None,
    until: object = None,
    where: Callable[[str], bool] | None = None,
    vectors: bool = False,
    among: "TermCounts | None" = None,
) -> list[Hit]:
    """Return the best pages for some words, best first; with *vectors*, by what they mean too; see ``Session.search``.

    Pages in some *states* are wanted, or those whose index *where* admits, not both. *among* are the pages of several sessions,
    with which scores are to be compared.
    """
    asked = check_query(query, limit)
    state = core.state
    wanted = None if states is None else {page_state(each) for each in _several(states, "states")}
    only = Filter(
        turns=None if turns is None else _turns(turns),
        times=None if since is None and until is None else _times(since, until),
        roles=None if roles is None else _roles(roles),
        where=where if wanted is None else _in_states(state, wanted),
        exclude=frozenset() if include_visible or wanted is not None else visible(state),
    )
    shows = include_visible or (wanted is not None and PageState.OPEN in wanted)
    extra = _open_page(core) if shows else entries_in_part(core) if wanted is None else ()
    embedder = None
    if vectors:
        from memci.archive.catalogue.embedding import shared_embedder  # noqa: PLC0415 (for those who use vectors)

        embedder = shared_embedder()

    def answer(index: "PageIndex") -> list[Hit]:
        return [
            Hit(
                index=hit.index,
                entry=f"{hit.index}/{hit.entry.position}",
                score=hit.score,
                snippet=hit.snippet,
                state=core.state.page_state(hit.index),
                at=hit.entry.at or None,
                why=hit.why,
                role=hit.entry.role,
            )
            for hit in index.search(asked, limit=limit, only=only, extra=extra, embedder=embedder, among=among)
        ]

    return core.ask(answer)


def check_query(query: object, limit: object) -> str:
    """Return a query, where it is text and a number of pages can be found; else raise ``ConfigError``."""
    if not isinstance(query, str):
        raise refusal(path="query", value=query, allowed="text")
    if type(limit) is not int or not 0 < limit <= MOST_HITS:
        raise refusal(path="limit", value=limit, allowed=f"a number from 1 to {MOST_HITS}")
    return query


def count_terms(core: Core, query: str) -> "TermCounts":
    """Return how many pages a session has, the open one too, and how many hold each word of a query. O(words)."""
    extra = _open_page(core)
    return core.ask(lambda index: index.count_terms(query, extra=extra))


def permitted(core: Core) -> Callable[[str], bool] | None:
    """Return what tells whether the model may read a page that is found; ``None`` where it may read all."""
    tree = core.state.tree
    closed = [name for name, segment in tree.segments.items() if segment.permission is Permission.SYSTEM_MANAGED]

    def permits(index: str) -> bool:
        is_there = tree.find(index) is not None or segment_of(index) in tree.segments
        return is_there and tree.segment(index).name not in closed

    return permits if closed else None


def _in_states(state: State, wanted: Collection[PageState]) -> Callable[[str], bool]:
    """Return what tells whether a page is in one of some states; it is asked for each page that matches.

    Where hidden and evicted pages, which a state does not list, are wanted together or not at all, a lookup answers, unless pages
    stand in the tree.
    """
    if (PageState.HIDDEN in wanted) != (PageState.EVICTED in wanted) or state.tree:
        return lambda index: state.page_state(index) in wanted
    known = visible(state).union(entry.index for entry in state.archive.entries)
    listed = {index: state.page_state(index) in wanted for index in known}
    return lambda index: listed.get(index, PageState.EVICTED in wanted)


def visible(state: State) -> frozenset[str]:
    """Return the indexes of the pages whose messages stand in the window, none of them in part. O(those)."""
    found, stubs = (page for chapter in state.verbatim() for page in chapter.pages()), _in_part(state)
    return frozenset(page.index for page in found if not any(node.trimmed or node.seq in stubs for node in page.nodes()))


def _in_part(state: State) -> Collection[int]:
    """Return the sequence numbers of the entries that the last window shows as stubs."""
    return state.settled.stubs if state.settled is not None else ()


def _several(values: object, path: str) -> list[str]:
    several = [values] if isinstance(values, str) else values
    if not isinstance(several, Collection) or not several or not all(isinstance(value, str) for value in several):
        raise refusal(path, values, f"a list of one or more texts, or leave it out to search all {path}")
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
        raise refusal(path="turns", value=value, allowed="the first and the last turn, such as (3, 8)")
    first, last = value
    if first > last or last < 0:
        message = f"no turn is in {shown(value)}: give the first and then the last, counted from 0, such as (3, 8)"
        raise ConfigError(message, path="turns")
    return min(max(first, 0), MOST), min(last, MOST)


def _times(since: object, until: object) -> tuple[str, str]:
    first = _FIRST_TIME if since is None else _moment(since, "since", time.min)
    last = _LAST_TIME if until is None else _moment(until, "until", time.max)
    if first > last:
        message = f"nothing was said between {shown(since)} and {shown(until)}: give a time that is not after until"
        raise ConfigError(message, path="since")
    return first, last


def _moment(value: object, path: str, clock: time) -> str:
    """Return a time as those of entries are written; a day is as of a time of day, in UTC."""
    given = value
    if isinstance(value, str):
        with suppress(ValueError):
            given = date.fromisoformat(value)
    if type(given) is date:
        given = datetime.combine(given, clock)
    try:
        return utc_text(given)
    except InvalidMessageError:
        allowed = "a day or a time, as ISO 8601 text or as a date or datetime, such as 2026-03-01 or 2026-03-01T12:30"
        raise refusal(path, value, allowed) from None


def entries_in_part(core: Core) -> list[ExtraPage]:
    """Return the entries of the open page that the last window shows as stubs, to be searched: the index does not have them."""
    return _open_page(core, _in_part(core.state))


def _open_page(core: Core, only: Collection[int] | None = None) -> list[ExtraPage]:
    """Return the open page, which the index has once it is complete; of its entries *only* some, by sequence number."""
    page = core.state.active.open_page
    said = enumerate(page.nodes(), start=1) if page is not None else ()
    entries = [
        Entry(number, node.message.speaker, indexed_text(node.message), node.at, speaker_name(node.message))
        for number, node in said
        if only is None or node.seq in only
    ]
    return [ExtraPage(index=page.index, turn=core.state.turn, entries=entries)] if page is not None and entries else []
