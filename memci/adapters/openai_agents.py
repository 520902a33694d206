"""The OpenAI Agents SDK: a session that keeps all items of runs, and an input filter by which each call shows its window."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import dropwhile, takewhile
from typing import Any

from memci.adapters.extra import brought_by
from memci.adapters.following import Message, answered, calibrate, check_format, is_system, newer, offered
from memci.engine.core.known_messages import sent_digest
from memci.engine.session import Session
from memci.errors import ConfigError
from memci.messages.formats.format import get

with brought_by("openai-agents"):
    from agents import (
        Agent,
        AgentOutputSchema,
        AgentOutputSchemaBase,
        FunctionTool,
        Handoff,
        ModelResponse,
        RunConfig,
        RunContextWrapper,
        RunHooks,
        Tool,
        ToolOutputImage,
        ToolOutputText,
        TResponseInputItem,
    )
    from agents.memory import SessionABC, SessionSettings
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool_context import ToolContext


class MemciSession(SessionABC, RunHooks[Any]):
    """A memci session as the SDK's ``Session``, its input filter and its hooks: give all three to a run.

    ``Runner.run(memory.equipped(agent), "…", session=memory, run_config=memory.run_config, hooks=memory)``: items are safe as
    the SDK adds them, every call of the model shows the window of what the session holds then, with the agent's instructions and
    tools counted, and ``equipped`` offers the tools by which the model brings pages back. Without the hooks nothing calibrates
    the counter; without the filter the SDK sends the whole history.

    It needs a session in the format ``responses``, else ``ConfigError``. Items come back as they were added, reasoning and its
    encrypted content among them, as long as the window shows them whole.
    """

    session_settings: SessionSettings | None = None

    def __init__(self, session: Session, *, budget: int | None = None) -> None:
        """Make it of a session, whose calls may have a *budget* of tokens, by default as the session is configured."""
        check_format(session, "responses")
        self.session_id = session.id
        self._session = session
        self._budget = budget
        self._tools: list[Tool] = []  # that agents were equipped with
        self._ahead: list[bytes] = []  # items that were kept as a call was shown, which the SDK adds later

    @property
    def run_config(self) -> RunConfig:
        """The configuration of a run whose calls show the window; ``dataclasses.replace`` adds to it."""
        return RunConfig(call_model_input_filter=self.view)

    def equipped(self, agent: Agent[Any]) -> Agent[Any]:
        """Return a copy of an agent that has the session's tools beside its own."""
        own = self.tools()
        self._tools += own
        return agent.clone(tools=[*agent.tools, *own])

    def tools(self) -> list[Tool]:
        """Return the session's tools, as it offers them now."""
        return [
            FunctionTool(
                name=schema["name"],
                description=schema["description"],
                params_json_schema=schema["parameters"],
                on_invoke_tool=self._caller(schema["name"]),
                strict_json_schema=False,
            )
            for schema in offered(self._session, self._session.toolbox.responses)
        ]

    def _caller(self, name: str) -> Callable[[ToolContext[Any], str], Awaitable[Any]]:
        async def call(_: ToolContext[Any], arguments: str) -> str | list[ToolOutputText | ToolOutputImage]:
            text, pictures = await asyncio.to_thread(answered, self._session, name, arguments)
            images = [ToolOutputImage(image_url=each["image_url"], detail=each.get("detail")) for each in pictures]
            return [ToolOutputText(text=text), *images] if images else text

        return call

    async def view(self, data: CallModelData[Any]) -> ModelInputData:
        """Return what a call of the model sends: the window of what the session holds.

        Items that a run shows before it adds them, as streamed ones do, are kept first.
        """
        return await asyncio.to_thread(self._view, data)

    def _view(self, data: CallModelData[Any]) -> ModelInputData:
        instructions = data.model_data.instructions
        system = [{"role": "system", "content": instructions}] if instructions else []
        new = newer(self._session, [dict(item) for item in data.model_data.input])
        if new is None:
            if any(tool is own for tool in data.agent.tools for own in self._tools):
                message = "the run does not go on from the session: give it session=memory, and all that this returns"
                raise ConfigError(message, path="session")
            return data.model_data  # of an agent that another one calls as a tool: the SDK gives it the same filter
        if new:
            self._ahead = [*map(self._digest, new)]
            self._session.extend(new)
        if system:
            said = takewhile(is_system, self._session.messages())
            self._session.set_system([*system, *(message for message in said if message["role"] == "developer")])
        window = self._session.window(self._budget, tools=[*_schemas(data.agent)])
        sent: Any = [message for message in window.messages if message not in system]  # the SDK sends these itself
        return ModelInputData(input=sent, instructions=instructions)

    def _digest(self, item: Message) -> bytes:
        return sent_digest(get("responses"), item)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return all items, oldest first, or the newest *limit*. O(history), or O(limit)."""
        most = limit if limit is not None or self.session_settings is None else self.session_settings.limit
        return await asyncio.to_thread(self._items, most)

    def _items(self, limit: int | None) -> list[Any]:
        if limit is not None:
            return [dict(said.message) for said in reversed(self._session.transcript(limit))] if limit > 0 else []
        return [*dropwhile(is_system, self._session.messages())]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep items, all or none, before this returns."""
        await asyncio.to_thread(self._add, [dict(item) for item in items])

    def _add(self, items: list[Message]) -> None:
        there = sum(1 for _ in takewhile(lambda pair: pair[0] == self._digest(pair[1]), zip(self._ahead, items, strict=False)))
        self._ahead = self._ahead[there:] if there == len(items) else []
        if new := items[there:]:
            self._session.extend(new)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out of view, and return it; it stays in the journal."""
        return await asyncio.to_thread(self._pop)

    def _pop(self) -> Any:  # noqa: ANN401 (an item)
        for said in self._session.transcript(1):
            self._session.rewind(said.address)
            return dict(said.message)
        return None

    async def clear_session(self) -> None:
        """Take all items out of view; they stay in the journal. ``Engine.delete`` removes what is stored."""
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        first = next((facts for facts in self._session.pages() if not facts.index.startswith("sys-") and facts.entries), None)
        if first is not None:
            self._session.rewind(f"{first.index}/1")

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Calibrate the counter by what the provider counted."""
        usage = response.usage
        if usage.input_tokens:
            counted = {"input_tokens": usage.input_tokens, "input_tokens_details": {"cached_tokens": _cached(usage)}}
            await asyncio.to_thread(calibrate, self._session, counted)


def _cached(usage: Any) -> int:  # noqa: ANN401 (the SDK's)
    return int(getattr(usage.input_tokens_details, "cached_tokens", 0) or 0)


def _schemas(agent: Agent[Any]) -> Iterator[Message]:
    """Yield what a call has beside its items: functions, agents to hand over to, and what an output must look like."""
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            yield _schema(tool.name, tool.description, tool.params_json_schema)
    for other in agent.handoffs:
        if isinstance(other, Handoff):
            yield _schema(other.tool_name, other.tool_description, other.input_json_schema)
        else:
            yield _schema(f"transfer_to_{other.name}", other.handoff_description or "", {})
    output = agent.output_type
    if output is not None and output is not str:
        known = output if isinstance(output, AgentOutputSchemaBase) else AgentOutputSchema(output, strict_json_schema=False)
        yield _schema(known.name(), "", known.json_schema())


def _schema(name: str, description: str, parameters: dict[str, Any]) -> Message:
    return {"type": "function", "name": name, "description": description, "parameters": parameters}
