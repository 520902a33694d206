"""An MCP server on standard input and output, the way in which a client starts one for itself."""

import json
import logging
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from anyio.to_thread import run_sync
from mcp.shared.message import SessionMessage

from memci.mcp.server import Conversation, make_server

_PIECE_BYTES = 65_536
_SURROGATE = re.compile("[\ud800-\udfff]")
_FORM = 'this is no JSON-RPC 2.0 request: it has jsonrpc "2.0", method a text, params an object, and id a text or a whole number'
_HALF = "this holds half of a surrogate pair, for which UTF-8 has no form: send the whole character, or leave it out"


def refusal(line: str) -> types.JSONRPCError | None:
    """Return the error that answers a line of input; ``None`` where it is a message, or nothing that wants an answer.

    A blank line wants none, nor does a result, nor a message without an id that only tells something. Source of the errors:
    https://www.jsonrpc.org/specification#response_object. O(length of the line).
    """
    if not line.strip():
        return None
    with suppress(ValueError):
        if not isinstance(types.jsonrpc_message_adapter.validate_json(line, by_name=False), types.JSONRPCNotification):
            return None
    try:
        value = json.loads(line)
        problem = _HALF if _holds_half(value) else _FORM
    except (ValueError, RecursionError):
        return _error(types.PARSE_ERROR, "this line is no JSON", None)
    keys = value if isinstance(value, dict) else {}
    if "id" not in keys if "method" in keys else not {"result", "error"}.isdisjoint(keys):
        return None
    known = keys.get("id")
    if isinstance(known, bool) or not isinstance(known, int | str) or _holds_half(known):
        known = None
    return _error(types.INVALID_REQUEST, problem, known)


def _holds_half(value: object) -> bool:
    return _SURROGATE.search(json.dumps(value, ensure_ascii=False)) is not None


def _error(code: int, message: str, request_id: str | int | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))


def serve(conversation: Conversation) -> signal.Signals | None:
    """Serve one session on standard input and output, close it, and return what ended that.

    That is ``None`` at the end of the input, SIGINT or SIGTERM, or SIGPIPE where whoever read the output closed it. Meanwhile
    nothing but the protocol is written to standard output; logs go to standard error. A call that has begun is carried out,
    however it ends.
    """
    logging.basicConfig(stream=sys.stderr, format="memci mcp: %(levelname)s: %(name)s: %(message)s")
    with closing(conversation), _claimed_output() as output:
        try:
            return anyio.run(_serve, conversation, sys.stdin.fileno(), output)
        except* BrokenPipeError:
            ended = signal.SIGPIPE
        return ended


@contextmanager
def _claimed_output() -> Iterator[int]:
    """Give a descriptor of standard output; whatever else is printed meanwhile goes to standard error."""
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield output
    finally:
        sys.stdout.flush()
        os.dup2(output, 1)
        os.close(output)


async def _lines(fd: int) -> AsyncIterator[str]:
    """Yield the lines of a descriptor; whoever waits for one can be cancelled, unlike a thread in a plain read."""
    rest = bytearray()
    while True:
        with suppress(OSError):  # a file is always ready, and cannot be waited for
            await anyio.wait_readable(fd)
        piece = await run_sync(os.read, fd, _PIECE_BYTES)
        if not (piece or rest):
            return
        rest += piece or b"\n"
        *lines, rest = rest.split(b"\n") if b"\n" in piece or not piece else [rest]
        for line in lines:
            yield line.decode("utf-8", "replace")


async def _serve(conversation: Conversation, stdin: int, output: int) -> signal.Signals | None:
    received = None
    reading = anyio.CancelScope()
    incoming, requests = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    errors = answers.clone()

    async def end_at_signal(*, task_status: TaskStatus[None]) -> None:
        nonlocal received
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            received = await anext(signals)
        # The next signal finds the system's own handlers again, and ends the process at once.
        reading.cancel()

    async def read() -> None:
        with reading, incoming, errors:
            async for line in _lines(stdin):
                error = refusal(line)
                if error is not None:
                    await errors.send(SessionMessage(error))
                    continue
                # Passed over: a blank line, a broken message that wants no answer, and what comes after the server's end.
                with suppress(ValueError, anyio.BrokenResourceError):
                    await incoming.send(SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def write() -> None:
        with outgoing:
            async for answer in outgoing:
                data = answer.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                while data:
                    data = data[await run_sync(os.write, output, data) :]

    server = make_server(conversation)
    async with anyio.create_task_group() as tasks:
        await tasks.start(end_at_signal)
        async with anyio.create_task_group() as transport:
            transport.start_soon(read)
            transport.start_soon(write)
            await server.run(requests, answers, server.create_initialization_options())
            reading.cancel()
        tasks.cancel_scope.cancel()
    return received
