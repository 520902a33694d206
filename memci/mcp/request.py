"""Lines of input that are no JSON-RPC message: the SDK passes them over, and whoever sent one would wait for its answer for ever.

https://www.jsonrpc.org/specification#response_object
"""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

_SURROGATE = re.compile("[\ud800-\udfff]")
_FORM = 'this is no JSON-RPC 2.0 request: it has jsonrpc "2.0", method a text, params an object, and id a text or a whole number'
_HALF = "this holds half of a surrogate pair, for which UTF-8 has no form: send the whole character, or leave it out"


class Requests:
    """The lines of a file that are messages, for the SDK to read; what else stands there is answered with an error.

    Args:
        lines: The file.
    """

    def __init__(self, lines: "anyio.AsyncFile[str]") -> None:
        self._lines = lines
        self._connected = anyio.Event()
        self._answers: Any = None  # the SDK's stream of messages to the client

    def connect(self, answers: Any) -> None:  # noqa: ANN401 (a stream of the SDK's, of a class that it does not export)
        """Send errors here from now on."""
        self._answers = answers
        self._connected.set()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines that are messages, in order. An error is handed on before the next line is read."""
        async for line in self._lines:
            error = refusal(line)
            if error is None:
                yield line
                continue
            await self._connected.wait()
            try:
                await self._answers.send(SessionMessage(error))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody is there to read it
                return


def refusal(line: str) -> types.JSONRPCError | None:
    """Return the error that answers a line of input; ``None`` where it is a message, or nothing that wants an answer.

    A blank line wants none, nor does a result, nor a message without an id that only tells something. O(length of the line).
    """
    if not line.strip():
        return None
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        message = None
    if message is not None and not isinstance(message, types.JSONRPCNotification):
        return None
    try:
        value = json.loads(line)
        problem = _HALF if _holds_half(value) else _FORM
    except (ValueError, RecursionError):
        return _error(types.PARSE_ERROR, "this line is no JSON", None)
    known = value.get("id") if isinstance(value, dict) else None
    if isinstance(known, bool) or not isinstance(known, int | str) or _holds_half(known):
        known = None
    return _error(types.INVALID_REQUEST, problem, known) if _wants_answer(value) else None


def _wants_answer(value: object) -> bool:
    """Tell whether a JSON value is a broken request, and not a broken result or something that was only told."""
    if not isinstance(value, dict):
        return True
    return "id" in value if "method" in value else value.keys().isdisjoint({"result", "error"})


def _holds_half(value: object) -> bool:
    return _SURROGATE.search(json.dumps(value, ensure_ascii=False)) is not None


def _error(code: int, message: str, request_id: str | int | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))
