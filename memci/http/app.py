"""The HTTP API of memci: an application of ASGI, made of rules, an engine and resources."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

import memci
from memci.http.guard import API, Guard, Rules
from memci.http.notices import Notices
from memci.http.problem import Problem, handle_errors
from memci.http.resources import changing, conversation, history, pages, rules, sessions, viewing
from memci.http.shape import schema_of
from memci.http.viewing import Viewer, page
from memci.version import VERSION

_RESOURCES = (sessions.router, conversation.router, pages.router, changing.router, rules.router, history.router, viewing.router)

_PROBLEM: Mapping[str, Any] = {"application/problem+json": {"schema": schema_of(Problem).model_json_schema()}}
_REFUSED: Any = {
    "4XX": {"description": "Refused; a problem detail says why.", "content": _PROBLEM},
    "5XX": {"description": "The store or the server cannot do it now; so does it.", "content": _PROBLEM},
}


def make_app(engine: memci.AsyncEngine, reader: memci.Engine, rules: Rules) -> FastAPI:
    """Return the application; whoever serves it closes the engine, and the *reader*, which never writes, and is for the page."""
    notices = Notices()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await engine.observe(notices.hear)
        yield

    app = FastAPI(
        title="memci",
        version=VERSION,
        docs_url=None,  # that page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        responses=_REFUSED,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.engine, app.state.notices, app.state.viewer = engine, notices, Viewer(reader)
    handle_errors(app)
    for router in _RESOURCES:
        app.include_router(router, prefix="/v1")
    app.router.default = _beside(app.router.default, page)
    app.add_middleware(Guard, rules=rules)
    if rules.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=rules.origins,
            allow_methods=["*"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
            expose_headers=["Retry-After"],
        )
    return app


def _beside(resources: ASGIApp, page: ASGIApp) -> ASGIApp:
    """Return what answers where there is no resource: the page, but for paths that can only be meant for one."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await (resources if scope["path"].startswith(API) else page)(scope, receive, send)

    return answer
