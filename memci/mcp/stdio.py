"""An MCP server on standard input and output, the way in which a client starts one for itself."""

import io
import json
import logging
import os
import re
import select
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from memci.mcp.conversation import Conversation
from memci.mcp.server import make_server

if TYPE_CHECKING:
    from typing_extensions import Buffer

_SURROGATE = re.compile("[\ud800-\udfff]")
_FORM = 'this is no JSON-RPC 2.0 request: it has jsonrpc "2.0", method a text, params an object, and id a text or a whole number'
_HALF = "this holds half of a surrogate pair, for which UTF-8 has no form: send the whole character, or leave it out"


class _Input(io.RawIOBase):
    """A file descriptor that can be ended from this side too: a thread that waits in a plain read cannot be woken."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._wait, self._wake = os.pipe()
        self._open = [self._wait, self._wake]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        readable, _, _ = select.select([self._fd, self._wait], [], [])
        if self._wait in readable:
            return 0
        view = memoryview(buffer)
        piece = os.read(self._fd, len(view))
        view[: len(piece)] = piece
        return len(piece)

    def end(self) -> None:
        os.write(self._wake, b"\n")

    def close(self) -> None:
        with suppress(IndexError):  # the buffer around it is collected in any thread, and closes it at the same time
            while True:
                os.close(self._open.pop())
        super().close()


class Requests:
    """The lines of a file that are messages, for the SDK to read; what else stands there is answered with an error.

    The SDK passes it over, and whoever sent it would wait for an answer for ever. Source of the answers:
    https://www.jsonrpc.org/specification#response_object
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
    if not isinstance(value, dict):
        return True
    return "id" in value if "method" in value else value.keys().isdisjoint({"result", "error"})


def _holds_half(value: object) -> bool:
    return _SURROGATE.search(json.dumps(value, ensure_ascii=False)) is not None


def _error(code: int, message: str, request_id: str | int | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))


def serve(conversation: Conversation) -> signal.Signals | None:
    """Serve one session on standard input and output, close it, and return what ended that.

    Meanwhile nothing but the protocol is written to standard output; logs go to standard error. A call that has begun is
    carried out, however it ends.

    Returns:
        ``None`` at the end of the input, SIGINT or SIGTERM, or SIGPIPE where whoever read the output closed it.
    """
    logging.basicConfig(stream=sys.stderr, format="memci mcp: %(levelname)s: %(name)s: %(message)s")
    with closing(conversation), _Input(sys.stdin.fileno()) as stdin:
        try:
            return anyio.run(_serve, conversation, stdin)
        except* BrokenPipeError:
            ended = signal.SIGPIPE
        return ended


async def _serve(conversation: Conversation, stdin: _Input) -> signal.Signals | None:
    received = None

    async def end_at_signal(*, task_status: TaskStatus[None]) -> None:
        nonlocal received
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            received = await anext(signals)
        # The next signal finds the system's own handlers again, and ends the process at once.
        stdin.end()

    server = make_server(conversation)
    requests = Requests(anyio.wrap_file(io.TextIOWrapper(io.BufferedReader(stdin), encoding="utf-8", errors="replace")))
    async with anyio.create_task_group() as tasks:
        await tasks.start(end_at_signal)
        # All that the SDK does with its input is to iterate over the lines.
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", requests)) as (reading, writing):
            requests.connect(writing)
            try:
                await server.run(reading, writing, server.create_initialization_options())
            finally:
                stdin.end()  # where the output failed, a thread still waits for more input
        tasks.cancel_scope.cancel()
    return received
