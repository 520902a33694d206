"""The page for people: the sessions of a tenant at ``/``, and below it what the model saw of each."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

import memci
from memci.archive.stores.names import SessionKey
from memci.engine.core.monitor import logger
from memci.engine.hosting.status import Stats
from memci.errors import StoreError
from memci.http.asked import missing
from memci.page.live import POLICY, LivePage, list_file, page_file

_KEPT = 8  # sessions whose journal stays read


class Viewer:
    """Answers what the page of a session asks for, from any thread; what was read of the last few sessions is used again."""

    def __init__(self, reader: memci.Engine) -> None:
        self._reader = reader
        self._lock = threading.Lock()  # protects the pages
        self._pages: OrderedDict[SessionKey, tuple[LivePage, threading.Lock]] = OrderedDict()

    def answer(self, key: SessionKey, view: str, query: Mapping[str, str]) -> Any:  # noqa: ANN401 (a JSON value)
        """Return what a view shows, as ``LivePage`` does; 404 where the session is not there."""
        with self._lock:
            page, lock = self._pages.setdefault(key, (LivePage(), threading.Lock()))
            self._pages.move_to_end(key)
            while len(self._pages) > _KEPT:
                self._pages.popitem(last=False)
        with lock, self._reader.session(key.session_id, tenant=key.tenant) as session:
            session.refresh()
            if not session.seq:
                raise missing(key.session_id)
            return page.answer(session, view, query)

    def stats(self, tenant: str, sessions: Iterable[str]) -> list[Stats]:
        """Return sessions in figures, but for those that are not there, and those that cannot be read, which is logged."""
        found = list[Stats]()
        for session_id in dict.fromkeys(sessions):
            try:
                with self._reader.session(session_id, tenant=tenant) as session:
                    session.refresh()
                    found += [session.stats()] if session.seq else []
            except StoreError as error:
                logger().warning("session %r: it has no figures, as it cannot be read: %s", session_id, error)
        return found


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    """Give the files of the page: those of the list at ``/``, and those of a session's page at ``/sessions/…/``."""
    path = scope["raw_path"].decode("latin-1")  # in which a slash of an id stays one
    match path.removeprefix(scope.get("root_path", "")).split("/"):
        case ["", name]:
            found = list_file(name)
        case ["", "sessions", _, name]:
            found = page_file(name)
        case _:
            found = None
    if found is None or scope["method"] not in ("GET", "HEAD"):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    text, kind = found
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    await Response(text, media_type=kind, headers=headers)(scope, receive, send)
