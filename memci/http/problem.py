"""Errors as problem details (RFC 9457): every refusal is ``application/problem+json``, and says which error of memci it is."""

import traceback
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import attrs
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import memci.errors
from memci.engine.core.monitor import logger
from memci.errors import (
    ArgumentError,
    BudgetError,
    ConfigError,
    ConflictError,
    CorruptError,
    EncryptionError,
    ErasureError,
    InvalidIdError,
    InvalidMessageError,
    LockedError,
    MemciError,
    PageEvictedError,
    PageNotFoundError,
    PermissionDeniedError,
    PicklableError,
    QuotaError,
    SessionClosedError,
    StoreError,
    UnavailableError,
)
from memci.http.shape import JsonResponse

_STATUSES: tuple[tuple[type[MemciError], HTTPStatus], ...] = (
    (ConflictError, HTTPStatus.CONFLICT),
    (LockedError, HTTPStatus.LOCKED),
    (UnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
    (ErasureError, HTTPStatus.SERVICE_UNAVAILABLE),
    (SessionClosedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreError, HTTPStatus.INTERNAL_SERVER_ERROR),
    (QuotaError, HTTPStatus.INSUFFICIENT_STORAGE),
    (PageNotFoundError, HTTPStatus.NOT_FOUND),
    (PageEvictedError, HTTPStatus.CONFLICT),
    (PermissionDeniedError, HTTPStatus.FORBIDDEN),
    (BudgetError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ArgumentError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ConfigError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidIdError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidMessageError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (MemciError, HTTPStatus.CONFLICT),  # such as a fold to undo that there is not
)
"""By the first class that an error is of."""

_LATER = {HTTPStatus.LOCKED, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}
RETRY_AFTER_S = 1

_OURS = {"type", "title", "status", "detail"}  # members that every problem has


@attrs.frozen(kw_only=True)
class Problem:
    """Why a request was refused, as RFC 9457 has it.

    *type* is ``urn:memci:`` and the name of an error of memci, or ``about:blank`` where HTTP says it all; what the error holds
    stands beside these, such as ``breakdown`` of a BudgetError.
    """

    type: str
    title: str
    status: int
    detail: str


class ProblemResponse(JsonResponse):
    """The answer to a request that is refused."""

    media_type = "application/problem+json"


class RefusedError(PicklableError, HTTPException):
    """A request is refused before a session has to do with it; *error* is the one of memci that a client raises for it."""

    def __init__(self, status: HTTPStatus, error: MemciError, headers: Mapping[str, str] | None = None) -> None:
        HTTPException.__init__(self, status, str(error), headers)
        self.error = error


def refused(error: Exception) -> ProblemResponse:
    """Return the answer that tells of an error; what was not meant to happen is logged, without what anybody said."""
    match error:
        case RefusedError():
            return _told(error.error, status := HTTPStatus(error.status_code), error.headers, status.phrase)
        case MemciError():
            return _told(error, next(status for kind, status in _STATUSES if isinstance(error, kind)))
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():
            return _answer("about:blank", HTTPStatus(error.status_code), error.detail, {}, error.headers)
    # Its text may quote what somebody said, and so may that of what it was raised from: where it happened says enough.
    where = "".join(traceback.format_tb(error.__traceback__))
    logger().error("a request failed with %s\n%s", type(error).__name__, where)
    return _answer("about:blank", HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed, and its log says where", {})


def handle_errors(app: FastAPI) -> None:
    """Have an application answer every error so."""

    async def handler(_: Request, error: Exception) -> ProblemResponse:
        return refused(error)

    for kind in (MemciError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handler)


def _told(error: MemciError, status: HTTPStatus, headers: Mapping[str, str] | None = None, title: str = "") -> ProblemResponse:
    name, title, detail, members = type(error).__name__, title or _title(error), str(error), dict(vars(error))
    if isinstance(error, CorruptError | EncryptionError) or type(error) in (UnavailableError, StoreError):
        logger().error("a request failed with %s: %s", name, error)  # places in the store are for whoever runs the server
        detail = f"{title}: the server's log says more"
        members = {key: "" if key in ("place", "key_id") else value for key, value in members.items()}
    return _answer(f"urn:memci:{name}", status, detail, members, headers, title)


def _title(error: MemciError) -> str:
    if type(error) is ConfigError:
        return "A setting or an argument cannot be used"  # such as the number of an event
    known = getattr(memci.errors, type(error).__name__, MemciError)  # what it is a class of may be private
    return (known.__doc__ or "").split("\n")[0].split(". ")[0].rstrip(".").replace("``", "")


def _invalid(error: RequestValidationError) -> ProblemResponse:
    places = [{"place": ".".join(map(str, each["loc"])), "detail": each["msg"]} for each in error.errors()]
    told = "; ".join(f"{each['place']}: {each['detail']}" for each in places[:3])
    raised = ArgumentError(argument=places[0]["place"], value="", wanted="")
    members = {"argument": raised.argument, "errors": places}
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return _answer("urn:memci:ArgumentError", status, told, members, None, _title(raised))


def _answer(  # noqa: PLR0913, PLR0917 (what a problem consists of)
    kind: str,
    status: HTTPStatus,
    detail: str,
    members: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    title: str = "",
) -> ProblemResponse:
    problem = Problem(type=kind, title=title or status.phrase, status=status, detail=detail)
    more = {name: value for name, value in members.items() if name not in _OURS and not name.startswith("_")}
    known = {"Retry-After": str(RETRY_AFTER_S)} if status in _LATER else {}
    return ProblemResponse(attrs.asdict(problem) | more, status, {**known, **(headers or {})})
