"""One request to a server and its answer, as values: nothing is sent here."""

import functools
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import attrs

import memci.errors
from memci.client.answer import ServerNotice, Written
from memci.engine.core import monitor
from memci.engine.erasure.erasing import Receipt
from memci.errors import ErasureError, MemciError, PermissionDeniedError, UnavailableError, missing_extra
from memci.messages import codec

_Answer = TypeVar("_Answer")

_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_NOT_LET_IN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.MISDIRECTED_REQUEST)
_TYPE = "urn:memci:"


def path_of(*segments: str | int) -> str:
    """Return the path of a resource, each segment written so that a server reads it as it is."""
    # Dots too, as ``..`` would be taken for a step back.
    return "/v1/" + "/".join(quote(str(segment), safe="").replace(".", "%2E") for segment in segments)


@attrs.frozen(kw_only=True)
class Asked(Generic[_Answer]):
    """A request, and of which type its *answer* is: that itself, or where it is a list, perhaps *only_first* of it."""

    method: str
    path: str
    answer: Any
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] = {}
    key: str | None = None
    only_first: bool = False

    def read(self, status: int, content: bytes) -> _Answer:
        """Return what was answered; raises the error that the server tells of."""
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise error_of(status, content)
        try:
            value = codec.decode_foreign(content) if content else None
        except ValueError as error:
            message = "what answered is no server of memci's: is the URL that of one?"
            raise MemciError(message) from error
        answer: Any = None if value is None else structured(value, self.answer)
        told: _Answer = answer[0] if self.only_first else answer
        return told


def _unended(url: str) -> str:
    return url.rstrip("/")


@attrs.frozen(kw_only=True)
class Server:
    """Where requests go, and by whose token."""

    url: str = attrs.field(converter=_unended)
    token: str | None = attrs.field(default=None, repr=False)

    def arguments(self, asked: Asked[Any]) -> dict[str, Any]:
        """Return what an HTTP client is given to send a request; ``InvalidMessageError`` for a body that is no JSON."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        headers |= {} if asked.key is None else {"Idempotency-Key": asked.key}
        given = {"method": asked.method, "url": self.url + asked.path, "params": dict(asked.query)}
        if asked.body is None:
            return {**given, "headers": headers}
        content = codec.encode(codec.checked_copy(dict(asked.body)))
        return {**given, "headers": headers | {"Content-Type": "application/json"}, "content": content}


@attrs.define
class Heard:
    """Reads a stream of server-sent events, line by line."""

    name: str = ""

    def take(self, line: str) -> ServerNotice | None:
        """Return the notice that a line completes; ``None`` for any other, and for one that this version does not know."""
        field, _, rest = line.partition(": ")
        if field == "event":
            self.name = rest
        kind = (Written if self.name == "Written" else getattr(monitor, self.name, None)) if field == "data" else None
        notice: ServerNotice | None = None if kind is None else structured(codec.decode_foreign(rest.encode()), kind)
        return notice


def structured(value: object, kind: Any) -> Any:  # noqa: ANN401 (an object of that type)
    """Return JSON as the value of a session that it stands for."""
    return _converter().structure(value, kind)


def error_of(status: int, content: bytes) -> MemciError:
    """Return the error of memci that an answer tells of; where no server of memci answered, one that fits the status."""
    try:
        told = dict(codec.decode_foreign(content))
    except (ValueError, TypeError):
        told = {}
    name = str(told.pop("type", "")).removeprefix(_TYPE)
    kind = getattr(memci.errors, name, None)
    detail = str(told.pop("detail", f"the server answered with status {status}"))
    if status in _AGAIN or (kind is None and status >= HTTPStatus.INTERNAL_SERVER_ERROR):
        return UnavailableError(detail)
    if status in _NOT_LET_IN or not (isinstance(kind, type) and issubclass(kind, MemciError)):
        return PermissionDeniedError(detail) if status in _NOT_LET_IN else MemciError(detail)
    error = kind.__new__(kind, detail)
    vars(error).update({key: value for key, value in told.items() if key not in ("title", "status")})
    if isinstance(error, ErasureError):
        error.receipts = tuple(structured(error.receipts, list[Receipt]))
        error.failed = {session: MemciError(str(text)) for session, text in error.failed.items()}
    return error


@functools.cache
def _converter() -> Any:  # noqa: ANN401 (of an extra)
    try:
        from cattrs.preconf.json import make_converter  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "client") from error
    converter = make_converter()
    converter.register_structure_hook(Exception, lambda text, _: MemciError(text))
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    return converter
