"""The other sessions of a tenant, as far as the model of one session may search and read them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from memci.archive.contents.tree import Permission
from memci.archive.stores.names import SessionKey, check_identifier
from memci.chapters.address import segment_of
from memci.engine.core.core import Core
from memci.engine.history.state import SYSTEM, USER
from memci.engine.reading import pages
from memci.engine.reading.searching import Hit
from memci.engine.sharing import finding, mounting
from memci.engine.tools.recall_tools import page_entries, plain_index
from memci.errors import InvalidIdError, PageNotFoundError, PermissionDeniedError, shown

if TYPE_CHECKING:
    from memci.engine.sharing.session import SharingSession

_ALL = frozenset({""})  # stands for all segments that a session shares, as in ``Mount.only``


class OtherSessions:
    """The sessions of a session's tenant without itself; what one of them keeps from its own model is closed here too.

    A session's system part is never read. Of a session that is mounted, what its mounts permit is read and no more.
    """

    def __init__(self, session: "SharingSession", session_ids: Callable[[str], Iterable[str]]) -> None:
        """Make it for a *session*; *session_ids* returns those of a tenant."""
        self._session = session
        self._session_ids = session_ids

    def search(self, query: str, limit: int, *, since: str = "", until: str = "") -> list[Hit]:
        """Return the best pages, best first, by one ranking over all sessions, as ``Engine.search`` does.

        O(sessions of the tenant), one of them open at a time: each is opened once to count the words of the query, and those that
        hold one of them again. No page is loaded. A session that cannot be read is logged and left out.
        """
        own, limits = self._session._core.key, self._limits()
        searched = [each for each in sorted(self._session_ids(own.tenant)) if each != own.session_id and limits.get(each, _ALL)]
        partly_closed = set[str]()

        def where(core: Core) -> Callable[[str], bool]:
            segments = _readable(core, limits.get(core.session_id, _ALL))
            if core.state.tree.segments.keys() - segments - {SYSTEM}:
                partly_closed.add(core.session_id)
            return lambda index: _segment(core, index) in segments

        hits = finding.search(self._opened, searched, query, limit, where=where, since=since or None, until=until or None)
        return [attrs.evolve(hit, why=_own_words(hit.why)) if hit.session in partly_closed else hit for hit in hits]

    def read(self, session_id: str, index: str) -> list[tuple[str, str]]:
        """Return the time and the text of each entry of a page, or of one entry. O(size of the page).

        ``InvalidIdError`` for a session that is not there, ``PermissionDeniedError`` for a page that is closed.
        """
        limits = self._limits().get(check_identifier(session_id, "session id"), _ALL)

        def entries(core: Core) -> list[tuple[str, str]]:
            if not core.state.seq:
                message = f"there is no session {shown(session_id)}: search_sessions finds pages with their sessions"
                raise InvalidIdError(message, value=session_id)
            name = pages.page_index(plain_index(index).partition("/")[0])
            if _segment(core, name) not in _readable(core, limits):
                message = f"page {name} of session {shown(session_id)} is closed: use what search_sessions finds"
                raise PermissionDeniedError(message)
            return [(node.at, text) for node, text in page_entries(core, index)]

        with self._opened(session_id) as core:
            try:
                return core.run(entries, "retry")
            except PageNotFoundError as error:
                message = f"{shown(index)} is no page or entry of session {shown(session_id)}: {USER}-0 there lists its pages"
                raise PageNotFoundError(message, index=index) from error

    def _limits(self) -> dict[str, frozenset[str]]:
        """Return the segments that mounts permit to read, by the id of the mounted session; none of a closed one."""
        limits = dict[str, frozenset[str]]()
        for mount in self._session.mounts().values():
            is_closed = mount.permission == Permission.SYSTEM_MANAGED
            limits[mount.session] = limits.get(mount.session, frozenset()).union(() if is_closed else (mount.only,))
        return limits

    @contextmanager
    def _opened(self, session_id: str) -> Iterator[Core]:
        """Open another session, with what others wrote there."""
        key = SessionKey(self._session._core.key.tenant, session_id)
        with self._session._sibling(key) as there, there._open() as core:
            core.refresh()
            yield core


def _readable(core: Core, only: frozenset[str]) -> set[str]:
    """Return the segments of a session that may be read, where *only* these may."""
    return {name for name in core.state.tree.segments if mounting.is_shared(core, name) and (only >= _ALL or name in only)}


def _segment(core: Core, index: str) -> str:
    """Return the segment of a page; for an index that no page has, what it begins with."""
    tree = core.state.tree
    return segment_of(index) if tree.find(index) is None else tree.segment(index).name


def _own_words(why: str) -> str:
    """Return why a page was found without the words of pages beside it, which may be closed."""
    return "" if why.startswith("beside: ") else why
