"""Tools and pages as an MCP server offers them on standard input and output.

https://modelcontextprotocol.io/specification/2025-11-25/server
"""

import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from typing import Any, TypeVar, cast

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from anyio.to_thread import run_sync
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from memci.attp.host_error import SURROGATE, safe_message, without_halves
from memci.attp.toolbox import Tool
from memci.errors import InvalidIdError, MemciError, PageNotFoundError
from memci.mcp.served import Served
from memci.messages import codec
from memci.messages.base64_runs import data_url
from memci.version import VERSION

_PIECE_BYTES = 65_536
_FORM = 'this is no JSON-RPC 2.0 request: it has jsonrpc "2.0", method a text, params an object, and id a text or a whole number'
_HALF = "this holds half of a surrogate pair, for which UTF-8 has no form: send the whole character, or leave it out"
_LOGGER = logging.getLogger(__name__)
_READ_ONLY = frozenset({"read_page", "list_pages", "search_pages", "list_sessions", "search_sessions", "read_session_page"})

_Context = ServerRequestContext[Any, Any]
_Answer = TypeVar("_Answer")


def make_server(served: Served) -> Server[Any]:
    """Return a server of one session, or several; its caller connects it to a transport, and closes them afterwards."""
    handlers = _Handlers(served)
    return Server(
        "memci",
        version=VERSION,
        instructions=served.instructions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
    )


class _Handlers:
    def __init__(self, served: Served) -> None:
        self._served = served
        # What is served is for one thread at a time. Calls wait here rather than in threads, so that those that read and write
        # the transport are never without one.
        self._turnstile = anyio.CapacityLimiter(1)

    async def list_tools(self, _: _Context, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(map(_listed, await self._run(self._served.tools))))

    async def call_tool(self, _: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        text, failed, urls = await self._run(self._answer, params.name, params.arguments or {})
        value = without_halves(codec.decode(text.encode()))
        # Results are objects to every version of the protocol; a list of one is not.
        found = value if isinstance(value, dict) else {"result": value}
        content = types.TextContent(text=codec.encode(found).decode())
        if failed:  # an error does not have the form that the output schema promises
            return types.CallToolResult(content=[content], is_error=True)
        return types.CallToolResult(content=[content, *map(_picture, urls)], structured_content=found)

    async def list_resources(self, _: _Context, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(**each._asdict()) for each in self._served.resources()])

    async def list_resource_templates(self, _: _Context, __: object) -> types.ListResourceTemplatesResult:
        several = [
            types.ResourceTemplate(
                uri_template=each.uri, name=each.name, title=each.title, description=each.description, mime_type=each.mime_type
            )
            for each in self._served.templates()
        ]
        return types.ListResourceTemplatesResult(resource_templates=several)

    async def read_resource(self, _: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        found = await self._run(self._served.read, params.uri)
        if found is None:
            known = self._served.resources()[0].uri
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {params.uri}: {known} is one")
        mime_type, text = found
        contents = types.TextResourceContents(uri=params.uri, mime_type=mime_type, text=without_halves(text))
        return types.ReadResourceResult(contents=[contents])

    def _answer(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool, list[str]]:
        try:
            text, failed = self._served.answer(name, arguments)
            pictures = [] if failed else self._served.pictures(name, text)
            return text, failed, list(filter(None, map(data_url, pictures)))
        except MemciError:
            raise
        except Exception as error:  # the model is answered in any case, and told nothing of this machine
            _LOGGER.exception("the tool %r failed", name)
            return codec.encode({"error": {"kind": type(error).__name__, "message": safe_message(error)}}).decode(), True, []

    async def _run(self, function: Callable[..., _Answer], *arguments: object) -> _Answer:
        """Run a function in a thread, so that the server answers pings meanwhile. One that has begun is not broken off."""
        try:
            return await run_sync(function, *arguments, limiter=self._turnstile)
        except (PageNotFoundError, InvalidIdError) as error:
            raise MCPError(types.INVALID_PARAMS, without_halves(str(error))) from error
        except MemciError as error:
            raise MCPError(types.INTERNAL_ERROR, without_halves(str(error))) from error


def _listed(tool: Tool) -> types.Tool:
    schema = tool.returns.schema
    if schema.get("type") != "object":
        schema = {"type": "object", "properties": {"result": schema}, "required": ["result"], "additionalProperties": False}
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=schema,
        annotations=types.ToolAnnotations(read_only_hint=tool.name in _READ_ONLY, destructive_hint=False, open_world_hint=False),
    )


def _picture(url: str) -> types.ImageContent:
    head, _, data = url.partition(",")
    return types.ImageContent(data=data, mime_type=head.removeprefix("data:").partition(";")[0])


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
    return SURROGATE.search(json.dumps(value, ensure_ascii=False)) is not None


def _error(code: int, message: str, request_id: str | int | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))


def serve(served: Served) -> signal.Signals | None:
    """Serve one session on standard input and output, close it, and return what ended that.

    That is ``None`` at the end of the input, SIGINT or SIGTERM, or SIGPIPE where whoever read the output closed it. Meanwhile
    nothing but the protocol is written to standard output; logs go to standard error. A call that has begun is carried out,
    however it ends.
    """
    logging.basicConfig(stream=sys.stderr, format="memci mcp: %(levelname)s: %(name)s: %(message)s")
    with closing(served):
        try:
            return anyio.run(_serve, served, sys.stdin.fileno())
        except* BrokenPipeError:
            sys.unraisablehook = _pass_over_closed_pipe  # the SDK's buffer is still full when it is let go of
            ended = signal.SIGPIPE
        return ended


def _pass_over_closed_pipe(unraisable: "sys.UnraisableHookArgs") -> None:
    if not isinstance(unraisable.exc_value, BrokenPipeError):
        sys.__unraisablehook__(unraisable)


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


async def _serve(served: Served, stdin: int) -> signal.Signals | None:
    received = None
    connected = anyio.Event()

    async def end_at_signal(*, task_status: TaskStatus[None]) -> None:
        nonlocal received
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            received = await anext(signals)
        # The next signal finds the system's own handlers again, and ends the process at once.
        tasks.cancel_scope.cancel()

    async def requests() -> AsyncIterator[str]:
        async for line in _lines(stdin):
            error = refusal(line)
            if error is None:
                yield line
                continue
            await connected.wait()
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody is there to read it
                await answers.send(SessionMessage(error))

    server = make_server(served)
    async with anyio.create_task_group() as tasks:
        await tasks.start(end_at_signal)
        # All that the SDK does with its input is to iterate over the lines.
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", requests())) as (messages, answers):
            connected.set()
            await server.run(messages, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()
    return received
