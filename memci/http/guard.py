"""Who is let in: the first thing that sees a request, before any of its body is read."""

import asyncio
import re
from collections.abc import Callable, Sequence
from http import HTTPStatus
from time import monotonic

import attrs
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from memci.errors import ArgumentError, MemciError, PermissionDeniedError
from memci.http.problem import RefusedError, refused
from memci.http.tokens import Caller, Scope, Tokens

API = "/v1/"
_PRIVATE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}  # what was said is for whoever asks, now
_THIS_MACHINE = re.compile(r"(127(\.[0-9]+){3}|\[::1\]|localhost)(:[0-9]+)?")


@attrs.frozen(kw_only=True)
class Rules:
    """What requests may be.

    Attributes:
        tokens: Who may come in; ``None`` for everybody on this machine, who may do everything.
        tenant: Whose sessions everybody's are, where there are no tokens.
        body_bytes: Of a request's body, at most.
        body_s: Seconds in which it has to arrive.
        per_minute: Requests of one token, at most; ``None`` for any number.
        origins: Where pages may stand that use the API, such as ``https://chat.example``, beside the server's own.
    """

    tokens: Tokens | None = None
    tenant: str = "default"
    body_bytes: int = 33_554_432
    body_s: float = 60.0
    per_minute: int | None = None
    origins: Sequence[str] = ()


@attrs.define(eq=False)
class _Allowance:
    """How many requests a token has left, and when that was so."""

    left: float
    at: float


class Guard:
    """Middleware that refuses requests by rules, and lets through the others with a ``caller`` as their state.

    Requests a minute are counted by the *clock*, in seconds.
    """

    def __init__(self, app: ASGIApp, rules: Rules, clock: Callable[[], float] = monotonic) -> None:
        self._app = app
        self._rules = rules
        self._clock = clock
        self._allowances: dict[str, _Allowance] = {}

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever becomes of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start" and scope["path"].startswith(API):
                MutableHeaders(scope=message).update(_PRIVATE)
            await send(message)

        if API in (scope["path"][: len(API)], scope["raw_path"][: len(API)].decode("latin-1")):
            # What frameworks decode, such as a slash in a session's id, has to stay within its segment of the path.
            scope["path"] = scope["raw_path"].decode("latin-1")
        try:
            headers = Headers(scope=scope)
            if self._rules.tokens is None:
                self._check_page(headers, scope["scheme"])
            if scope["path"].startswith(API) and scope["method"] != "OPTIONS":
                scope.setdefault("state", {})["caller"] = self._caller(headers)
            await self._app(scope, self._bounded(headers, receive), sent)
        except Exception as error:  # noqa: BLE001 (logged there; whatever it is, whoever asks hears of it in the same form)
            answer = refused(error)
            if not begun:  # else the server breaks off, as it cannot take back what was sent
                await answer(scope, receive, sent)

    def _check_page(self, headers: Headers, scheme: str) -> None:
        """Refuse what a page of somebody else's asks a browser for: under a name of theirs, or from there."""
        host = headers.get("host", "")
        if not _THIS_MACHINE.fullmatch(host):
            raise _refusal(HTTPStatus.MISDIRECTED_REQUEST, "without tokens, requests are for 127.0.0.1 or localhost by name")
        origin = headers.get("origin")
        if origin is not None and origin not in (f"{scheme}://{host}", *self._rules.origins):
            raise _refusal(HTTPStatus.FORBIDDEN, "a page from elsewhere asks: name its origin with --cors, or use tokens")

    def _caller(self, headers: Headers) -> Caller:
        if self._rules.tokens is None:
            return Caller(token="", tenant=self._rules.tenant, scope=Scope.ADMIN)
        kind, _, given = headers.get("authorization", "").partition(" ")
        caller = self._rules.tokens.find(given.strip()) if kind.lower() == "bearer" else None
        if caller is None:
            message = "a token is needed that the server knows: send Authorization: Bearer memci_…"
            raise _refusal(HTTPStatus.UNAUTHORIZED, message, {"WWW-Authenticate": "Bearer"})
        if self._rules.per_minute is not None:
            self._take(caller.token, self._rules.per_minute)
        return caller

    def _take(self, token: str, per_minute: int) -> None:
        """Count a request; a token has those of a minute at once, and they come back evenly."""
        now = self._clock()
        known = self._allowances.setdefault(token, _Allowance(per_minute, now))
        known.left = min(per_minute, known.left + (now - known.at) * per_minute / 60)
        known.at = now
        if known.left < 1:
            message = f"more than {per_minute} requests a minute came with this token: go on more slowly"
            raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, MemciError(message))
        known.left -= 1

    def _bounded(self, headers: Headers, receive: Receive) -> Receive:
        """Return what receives a body as far as it may be that large, and as long as it may take."""
        most, ends = self._rules.body_bytes, asyncio.get_running_loop().time() + self._rules.body_s
        announced = headers.get("content-length", "")
        came, more = int(announced) if announced.isdecimal() and int(announced) > most else 0, True

        async def received() -> Message:
            nonlocal came, more
            if not more:  # what is waited for is that the client leaves
                return await receive()
            if came <= most:
                try:
                    async with asyncio.timeout_at(ends):
                        message = await receive()
                except TimeoutError:
                    told = f"the body did not arrive within {self._rules.body_s:g} seconds"
                    raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, MemciError(told), {"Connection": "close"}) from None
                came += len(message.get("body", b""))
                more = message.get("more_body", False)
            if came > most:
                too_large = ArgumentError(argument="body", value=..., wanted=f"at most {most} bytes")
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, too_large, {"Connection": "close"})
            return message

        return received


def _refusal(status: HTTPStatus, message: str, headers: dict[str, str] | None = None) -> RefusedError:
    return RefusedError(status, PermissionDeniedError(message), headers)
