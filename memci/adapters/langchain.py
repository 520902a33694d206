"""LangChain and LangGraph: a middleware whose model calls show a session's window, and whose model brings pages back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from itertools import dropwhile, takewhile
from typing import Any

from memci.adapters.extra import brought_by
from memci.adapters.following import Message, answered, calibrate, check_format, is_system, matched, offered, taken_over
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConfigError
from memci.messages.parts import text_of

with brought_by("langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
    from langchain_core.messages.utils import convert_to_messages, convert_to_openai_messages
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.runtime import Runtime
    from langgraph.types import Command

_Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
_AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


def history(session: Session) -> list[BaseMessage]:
    """Return all messages of a session but the system part, for the state of an agent or to show them. O(history).

    What only LangChain has, such as ids of messages, usage and artifacts, is not among what a session keeps.
    """
    check_format(session, "openai")
    return convert_to_messages([*dropwhile(is_system, session.messages())])


class MemciMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Lets the model calls of an agent show a session's window, which fits its budget, and keeps every message of its state.

    ``create_agent(model, tools, middleware=[MemciMiddleware(engine)])`` takes the session of each thread's ``thread_id``; with a
    Session in the engine's place all calls are of that one. The messages of the state are taken at their word, as
    ``Session.sync`` does: what was edited or taken back there is so here. They are in the session before the model is asked, and
    its answer before a tool is called; the state stays whole.

    What stands word for word in a window are the state's own messages, with ids, usage, artifacts and all. The system prompt,
    tools and output schemas count. ``ConfigError`` for a session in another format than openai, and for a thread without an id.
    """

    tools = ()

    def __init__(self, source: Engine | Session, *, tenant: str | None = None, budget: int | None = None) -> None:
        """Make it of an engine, and a *tenant* of it, or of a session; *budget* is that of a call, by default as configured."""
        super().__init__()
        self._source = source
        self._tenant = tenant
        self._budget = budget

    def wrap_model_call(self, request: ModelRequest[Any], handler: _Handler) -> ModelResponse[Any]:
        """Show the window, and keep the answer."""
        with self._opened(self._thread()) as session:
            response = handler(self._shown(session, request))
            _keep(session, request, response)
        return response

    async def awrap_model_call(self, request: ModelRequest[Any], handler: _AsyncHandler) -> ModelResponse[Any]:
        """Show the window, and keep the answer."""
        with await asyncio.to_thread(self._opened, self._thread()) as session:
            response = await handler(await asyncio.to_thread(self._shown, session, request))
            await asyncio.to_thread(_keep, session, request, response)
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Answer calls of the session's tools; all others are the agent's."""
        return handler(request) if request.tool is not None else self._answered(self._thread(), request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Answer calls of the session's tools; all others are the agent's."""
        own = None if request.tool is not None else await asyncio.to_thread(self._answered, self._thread(), request)
        return own or await handler(request)

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Keep what the run ended with."""
        self._end(self._thread(), state["messages"])

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Keep what the run ended with."""
        await asyncio.to_thread(self._end, self._thread(), state["messages"])

    def _end(self, thread: str, messages: Sequence[AnyMessage]) -> None:
        with self._opened(thread) as session:
            _take(session, [], messages)

    def _thread(self) -> str:
        given = get_config().get("configurable", {})
        thread, (*outer, _) = str(given.get("thread_id", "")), str(given.get("checkpoint_ns", "")).split("|")
        if thread and outer:  # an agent that another one calls: it has the thread of that one, and a conversation of its own
            return f"{thread[:200]}.{sha256('|'.join(outer).encode()).hexdigest()[:16]}"
        return thread

    def _opened(self, thread: str) -> AbstractContextManager[Session]:
        if isinstance(self._source, Session):
            check_format(self._source, "openai")
            return nullcontext(self._source)
        if not thread:
            message = 'the call has no thread_id, which names its session: config={"configurable": {"thread_id": "…"}}'
            raise ConfigError(message, path="thread_id")
        session = self._source.session(thread, tenant=self._tenant)
        check_format(session, "openai")
        return session

    def _shown(self, session: Session, request: ModelRequest[Any]) -> ModelRequest[Any]:
        prompt = _prompt(request)
        given = _take(session, prompt, request.messages)
        names = {_name(tool) for tool in request.tools}
        own = [tool for tool in offered(session, session.toolbox.openai) if tool["function"]["name"] not in names]
        tools = [*map(_schema, request.tools), *own]
        window = session.window(self._budget, tools=[*tools, *_outputs(request.response_format)])
        system = [*takewhile(is_system, window.messages)]
        messages: list[Any] = [
            convert_to_messages([message])[0] if whole is None else whole
            for message, whole in matched(window.messages[len(system) :], given)
        ]
        told = _joined(request.system_message, system[len(prompt) :])
        return request.override(messages=messages, system_message=told, tools=[*request.tools, *own])

    def _answered(self, thread: str, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        with self._opened(thread) as session:
            if call["name"] not in session.toolbox.tools:
                return None
            text, pictures = answered(session, call["name"], call["args"])
        content: Any = [{"type": "text", "text": text}, *pictures] if pictures else text
        return ToolMessage(content, tool_call_id=call["id"], name=call["name"])


def _keep(session: Session, request: ModelRequest[Any], response: ModelResponse[Any]) -> None:
    """Keep an answer, and calibrate the counter by what the provider counted."""
    _take(session, _prompt(request), [*request.messages, *response.result])
    for message in response.result:
        if isinstance(message, AIMessage) and (usage := message.usage_metadata):
            cached = usage.get("input_token_details", {}).get("cache_read", 0)
            counted = {"prompt_tokens": usage["input_tokens"], "prompt_tokens_details": {"cached_tokens": cached}}
            calibrate(session, counted)


def _take(session: Session, prompt: Sequence[Message], messages: Sequence[Any]) -> list[tuple[Message, Any]]:
    """Bring a session to what the state's messages say; return them as it keeps them, each with its own object."""
    given = [
        (made, message if len(several) == 1 else None)
        for message in messages
        for several in [_converted(message)]
        for made in several
    ]
    taken_over(session, prompt, [message for message, _ in given])
    return [(message, own) for message, own in given if own is not None]


def _converted(message: Any) -> list[Message]:  # noqa: ANN401 (a message of any kind)
    try:
        made: list[Message] = convert_to_openai_messages([message])
    except ValueError:  # it has parts that no chat completion has
        made = convert_to_openai_messages([message.model_copy(update={"content": ""})])
        made[0]["content"] = [{"type": "text", "text": part} if isinstance(part, str) else part for part in message.content]
    for call in getattr(message, "invalid_tool_calls", ()):  # the agent answers these too
        function = {"name": call["name"] or "", "arguments": call["args"] or ""}
        made[0].setdefault("tool_calls", []).append({"id": call["id"], "type": "function", "function": function})
    return made


def _joined(prompt: SystemMessage | None, rules: Sequence[Message]) -> SystemMessage | None:
    """Return the system prompt, as it is, with the rules that memci adds to it."""
    if not rules:
        return prompt
    texts = [*map(text_of, rules)]
    if prompt is None or isinstance(prompt.content, str):
        return SystemMessage("\n\n".join([*([prompt.text] if prompt is not None else []), *texts]))
    return SystemMessage([*prompt.content, *({"type": "text", "text": text} for text in texts)])


def _prompt(request: ModelRequest[Any]) -> list[Message]:
    return [] if request.system_message is None else _converted(request.system_message)


def _name(tool: Any) -> str:  # noqa: ANN401 (a tool, or its schema)
    return str(_schema(tool)["function"]["name"])


def _schema(tool: Any) -> Message:  # noqa: ANN401 (as above)
    """Return a tool as OpenAI's chat has it; one that the provider runs, by its settings."""
    try:
        schema = convert_to_openai_tool(tool)
    except ValueError:
        schema = {}
    if "function" in schema:
        return schema
    name = str(tool.get("name") or tool.get("type") or next(iter(tool), ""))
    return {"type": "function", "function": {"name": name, "description": "", "parameters": tool}}


def _outputs(response_format: Any) -> Iterator[Message]:  # noqa: ANN401 (a strategy)
    """Yield what an output must look like, as a schema of a tool."""
    for spec in getattr(response_format, "schema_specs", ()):
        yield {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": spec.json_schema},
        }
    if response_format is not None and not hasattr(response_format, "schema_specs"):
        yield convert_to_openai_tool(response_format.schema)
