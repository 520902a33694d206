"""Anthropic's SDK: a middleware of a client, whose requests show a session's window; and the tools for its tool runner."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from memci.adapters.extra import brought_by
from memci.adapters.following import Message, answered, calibrate, check_format, offered, taken_over
from memci.engine.session import Session
from memci.errors import ConfigError
from memci.messages.codec import dumped
from memci.messages.streaming import assembler, piece

with brought_by("anthropic"):
    from anthropic import APIRequest, APIResponse, AsyncAPIResponse, AsyncCallNext, CallNext, Middleware
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool

_PATH = "/v1/messages"


class MemciMiddleware(Middleware):
    """Lets the requests of a client show a session's window, which fits its budget, and keeps every message of them.

    ``client.with_middleware(MemciMiddleware(session))`` is a client whose ``messages.create``, ``messages.stream`` and
    ``beta.messages.tool_runner`` go on with the conversation that is given to them, whole, as always: it is taken at its word, as
    ``Session.sync`` does, before the model is asked, and the request has the window in its place. Answers are kept as they end,
    streamed ones too; of a stream that breaks off, what the caller has of it comes with the next request.

    It needs a session in the format ``anthropic``, else ``ConfigError``. Thinking, citations and the like go back as they came,
    as long as the window shows them. Breakpoints of messages move with the conversation and are no part of it: where the
    caller set one, the window's last block has it, or those that the setting ``cache_breakpoints`` places.
    """

    def __init__(self, session: Session, *, budget: int | None = None) -> None:
        """Make it of a session, whose requests may have a *budget* of tokens, by default as the session is configured."""
        check_format(session, "anthropic")
        self._session = session
        self._budget = budget
        self._fields: dict[str, Any] = {}  # of the last request, beside its messages
        self._system: list[Message] = []
        self._asked: list[Message] = []  # the conversation of the last request
        self._said: list[Message] = []  # that with its answer

    def tools(self) -> "list[SessionTool]":
        """Return the session's tools, as it offers them now, for ``tool_runner(tools=[…])``."""
        return [SessionTool(self._session, schema) for schema in offered(self._session, self._session.toolbox.anthropic)]

    def async_tools(self) -> "list[AsyncSessionTool]":
        """Return the session's tools for the tool runner of an ``AsyncAnthropic``."""
        return [AsyncSessionTool(self._session, schema) for schema in offered(self._session, self._session.toolbox.anthropic)]

    def handle(self, request: APIRequest, call_next: CallNext) -> APIResponse[Any]:
        """Show the window, and keep the answer."""
        if not _is_for_messages(request):
            return call_next(request)
        response = call_next(self._shown(request))
        if response.http_response.is_success:
            parsed = response.parse()
            if request.stream:
                parsed._iterator = self._heard(parsed._iterator)  # noqa: SLF001 (nothing else tells what a stream says)
            else:
                self.keep(parsed)
        return response

    async def handle_async(self, request: APIRequest, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
        """Show the window, and keep the answer."""
        if not _is_for_messages(request):
            return await call_next(request)
        response = await call_next(await asyncio.to_thread(self._shown, request))
        if response.http_response.is_success:
            parsed = await response.parse()
            if request.stream:
                parsed._iterator = self._heard_later(parsed._iterator)  # noqa: SLF001 (as above)
            else:
                await asyncio.to_thread(self.keep, parsed)
        return response

    def _heard(self, events: Iterator[Any]) -> Iterator[Any]:
        heard = _Heard()
        for event in events:
            if (message := heard.add(event)) is not None:
                self.keep(message)
            yield event

    async def _heard_later(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        heard = _Heard()
        async for event in events:
            if (message := heard.add(event)) is not None:
                await asyncio.to_thread(self.keep, message)
            yield event

    def keep(self, message: object) -> None:
        """Keep an answer to the last request, and calibrate the counter by its usage; it is called for each answer that ends."""
        answer: Any = dumped(message)
        self._said = [*self._asked, answer]
        taken_over(self._session, self._system, self._said)
        if usage := answer.get("usage"):
            calibrate(self._session, usage)

    def _shown(self, request: APIRequest) -> APIRequest:
        body: dict[str, Any] = json.loads(json.dumps(request.json, default=dumped))  # messages may hold the SDK's objects
        messages, breakpoints = zip(*map(_without_breakpoints, body.pop("messages")), strict=True)
        thread = body.pop("thread", None) or {}
        if thread.get("type") == "continue":  # the SDK leaves out what a server would have kept: here the session does
            if not self._said or thread.get("previous_message_id") != self._said[-1].get("id"):
                message = (
                    "the thread goes on from an answer that this middleware did not keep last: give each conversation its own"
                )
                raise ConfigError(message, path="thread")
            messages, body = (*self._said, *messages), {**self._fields, **body}
        self._fields, self._asked = body, list(messages)
        system = body.get("system") or []
        told = [{"type": "text", "text": system}] if isinstance(system, str) else system
        self._system = [{"role": "system", "content": [block]} for block in told]
        if not told:
            self._session.set_system([])
        taken_over(self._session, self._system, messages)
        window = self._session.window(self._budget, tools=[*(body.get("tools") or ()), *_output(body)])
        shown = [dict(message) for message in window.messages]
        if (marked := [*filter(None, breakpoints)]) and not self._session.config.cache_breakpoints:
            shown[-1] = _marked(shown[-1], marked[-1])
        return request.copy(body={**body, "messages": shown, **({"system": window.system} if window.system else {})})


class _Heard:
    """An answer that is streamed, put together by the events of it."""

    def __init__(self) -> None:
        self._assembler = assembler("anthropic")
        self._id: object = None

    def add(self, event: object) -> Message | None:
        """Take an event in, and return the answer where it ended it."""
        told = piece(event)
        self._assembler.add(told)
        if told.get("type") == "message_start":
            self._id = told.get("message", {}).get("id")
        if told.get("type") != "message_stop" or not (messages := self._assembler.messages()):
            return None
        return {**messages[0], "id": self._id, "usage": self._assembler.usage}


class SessionTool(BetaBuiltinFunctionTool):
    """One of a session's tools, as the SDK's tool runner calls it."""

    def __init__(self, session: Session, schema: Mapping[str, Any]) -> None:
        """Make it of the schema that the session's toolbox has of it."""
        self._session = session
        self._schema: Any = dict(schema)

    def to_dict(self) -> Any:  # noqa: ANN401 (a union of the SDK's)
        """Return the schema."""
        return self._schema

    def call(self, input: object) -> Any:  # noqa: A002, ANN401 (the SDK's)
        """Carry out a call; what the model did wrong is in the result."""
        text, pictures = answered(self._session, self._schema["name"], input)
        return [{"type": "text", "text": text}, *pictures] if pictures else text


class AsyncSessionTool(BetaAsyncBuiltinFunctionTool):
    """The same for the tool runner of an ``AsyncAnthropic``."""

    def __init__(self, session: Session, schema: Mapping[str, Any]) -> None:
        """Make it of the schema that the session's toolbox has of it."""
        self._tool = SessionTool(session, schema)

    def to_dict(self) -> Any:  # noqa: ANN401 (a union of the SDK's)
        """Return the schema."""
        return self._tool.to_dict()

    async def call(self, input: object) -> Any:  # noqa: A002, ANN401 (the SDK's)
        """Carry out a call in a thread."""
        return await asyncio.to_thread(self._tool.call, input)


def _is_for_messages(request: APIRequest) -> bool:
    is_meant = request.method.lower() == "post" and request.url.partition("?")[0] == _PATH
    return is_meant and isinstance(request.json, Mapping) and bool(request.json.get("messages"))


def _output(body: Mapping[str, Any]) -> Iterator[Message]:
    """Yield what an output must look like, as a tool."""
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    if schema:
        yield {"name": "output", "description": "", "input_schema": schema}


def _without_breakpoints(message: Message) -> tuple[Message, Any]:
    """Return a message without its marks for the provider's cache, and the last of them."""
    content = message.get("content")
    if not isinstance(content, list):
        return message, None
    marks = list[Any]()
    return {**message, "content": [_without_mark(block, marks) for block in content]}, marks[-1] if marks else None


def _without_mark(block: Any, marks: list[Any]) -> Any:  # noqa: ANN401 (a block of any kind)
    if not isinstance(block, dict):
        return block
    left = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(block.get("content"), list):  # a result's
        left["content"] = [_without_mark(inner, marks) for inner in block["content"]]
    marks += [block["cache_control"]] if block.get("cache_control") else []
    return left


def _marked(message: Message, mark: object) -> Message:
    """Return a message whose last block has a mark for the provider's cache."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    return {**message, "content": [*blocks[:-1], {**blocks[-1], "cache_control": mark}]}
