"""Searching many sessions at once, by one ranking."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import attrs

from memci.engine.core.core import Core
from memci.engine.core.monitor import logger
from memci.engine.reading import searching
from memci.engine.reading.searching import Hit
from memci.errors import StoreError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_search import TermCounts

_UNREAD = "session %r: it is not searched, as it cannot be read: %s"


def search(  # noqa: PLR0913 (each narrows it in another way)
    opened: Callable[[str], AbstractContextManager[Core]],
    sessions: Iterable[str],
    query: object,
    limit: int,
    *,
    where: Callable[[Core], Callable[[str], bool]] | None = None,
    since: object = None,
    until: object = None,
) -> list[Hit]:
    """Return the best pages of sessions, best first; one that cannot be read is logged, and left out.

    Words weigh by how many pages of all sessions hold them, so these are counted first; sessions without any of them are not
    opened again. One session is open at a time. *where* returns which pages of a session may be found.
    """
    asked = searching.check_query(query, limit)
    counted: dict[str, TermCounts] = {}
    hits = list[Hit]()
    for session in sessions:
        try:
            with opened(session) as core:
                counted[session] = searching.count_terms(core, asked)
        except StoreError as error:
            logger().warning(_UNREAD, session, error)
    if not counted:
        return []
    among = reduce(add, counted.values())
    for session in [session for session, each in counted.items() if each.counts]:
        try:
            with opened(session) as core:
                only = None if where is None else where(core)
                found = searching.search(
                    core, asked, limit, include_visible=True, since=since, until=until, where=only, among=among
                )
        except StoreError as error:  # another process may have deleted it since
            logger().warning(_UNREAD, session, error)
            continue
        hits += [attrs.evolve(hit, session=session) for hit in found]
    return sorted(hits, key=lambda hit: -hit.score)[:limit]
