"""A capability of Pydantic AI: each request of a run shows a session's window, and the model brings pages back with its tools."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from memci.adapters.extra import brought_by
from memci.adapters.following import Followed, Message, answered, calibrate, check_format, is_system, matched, offered
from memci.adapters.pydantic_ai.messages import from_chat, to_chat, to_item
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConfigError

with brought_by("pydantic-ai"):
    from pydantic_ai import messages as ai
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.capabilities.abstract import CapabilityOrdering, WrapRunHandler
    from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import RunContext, Tool
    from pydantic_ai.toolsets import AbstractToolset, AgentToolset, FunctionToolset


class _Run:
    """What a run has of a session."""

    def __init__(self, session: Session, *, has_history: bool) -> None:
        check_format(session, "openai")
        self.session = session
        self._followed: Followed | None = None  # from the first request on
        self._has_history = has_history
        self._system: list[Message] = []  # what the last request had

    def take(self, messages: Sequence[ai.ModelMessage]) -> None:
        """Keep what the framework's list holds."""
        if self._followed is not None:
            given = [message for message, _ in to_chat(messages)]
            leading = [*takewhile(is_system, given)]
            self._followed.take([*self._system, *leading], given[len(leading) :])

    def view(
        self, messages: Sequence[ai.ModelMessage], asked: ModelRequestParameters, budget: int | None
    ) -> list[ai.ModelMessage]:
        """Keep what the framework's list holds, and return the window of it. O(messages)."""
        instructions = ai.InstructionPart.join(asked.instruction_parts or [])
        self._system = [{"role": "system", "content": instructions}] if instructions else []
        if self._followed is None:
            self._followed = Followed(self.session, whole=self._has_history)
        self.take(messages)
        window = self.session.window(budget, tools=[*_schemas(asked)]).messages
        sent = [message for message in window if message not in self._system]  # the framework sends these itself
        return from_chat(matched(sent, to_chat(messages)))

    def answered(self, messages: Sequence[ai.ModelMessage], response: ai.ModelResponse) -> None:
        """Keep an answer, and calibrate the counter by what the provider counted."""
        self.take(messages)
        usage = response.usage
        if usage.input_tokens:
            counted = {"prompt_tokens": usage.input_tokens, "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens}}
            calibrate(self.session, counted)

    def call(self, name: str, arguments: dict[str, Any]) -> str | list[ai.UserContent]:
        """Carry out a call of one of the session's tools, and return what the model reads, with pictures of a page."""
        text, pictures = answered(self.session, name, arguments)
        return [text, *map(to_item, pictures)] if pictures else text


def _schemas(asked: ModelRequestParameters) -> Iterator[Message]:
    """Yield what a request has beside its messages: tools, and what an output must look like."""
    for tool in (*asked.function_tools, *asked.output_tools):
        told = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
        yield {"type": "function", "function": told}
    if (output := asked.output_object) is not None:
        told = {"name": output.name or "", "description": output.description or "", "parameters": output.json_schema}
        yield {"type": "function", "function": told}


@dataclass
class MemciCapability(AbstractCapability[Any]):
    """Lets the requests of an agent show a session's window, which fits its budget, and keeps every message of its runs.

    ``Agent(model, capabilities=[MemciCapability(engine)])`` takes the session of each run's ``conversation_id``; with a Session
    in the engine's place all runs are of that one. A run with ``message_history`` is taken at its word, as ``Session.sync`` does:
    what was edited there is edited here. A run without one goes on from what the session holds. Messages are safe before the
    model is asked, and after it answered; the history that the framework returns stays whole.

    What stands word for word in a window are the framework's own messages, with thoughts, signatures and all. Of what left it, a
    session keeps texts, calls, results, pictures and files. Instructions, tools and output schemas count, and are sent as the
    agent has them. ``ConfigError`` for a session in another format than openai.
    """

    source: Engine | Session
    tenant: str | None = None  # of the engine's sessions
    budget: int | None = None  # tokens that a request may have; by default as the session is configured
    _run: _Run | None = field(default=None, init=False, repr=False)

    def get_ordering(self) -> CapabilityOrdering:
        """Come last, so that what is kept is what other capabilities made of the messages, and not the window."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[Any]) -> "MemciCapability":
        """Return a capability of its own for each run."""
        return replace(self)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Have the session open while the run lasts, and keep all of its messages, however it ends."""
        messages = ctx.messages
        self._run = run = await asyncio.to_thread(self._begin, ctx.conversation_id, has_history=bool(messages))
        try:
            result = await handler()
            messages = result.all_messages()
            return result
        finally:  # goes on in its thread where the run was cancelled
            await asyncio.shield(asyncio.to_thread(self._end, run, messages))

    def _begin(self, conversation_id: str | None, *, has_history: bool) -> _Run:
        source = self.source
        session = source if isinstance(source, Session) else source.session(conversation_id or "", tenant=self.tenant)
        return _Run(session, has_history=has_history)

    def _end(self, run: _Run, messages: Sequence[ai.ModelMessage]) -> None:
        try:
            run.take(messages)
        finally:
            if run.session is not self.source:
                run.session.close()

    async def before_model_request(self, ctx: RunContext[Any], request_context: ModelRequestContext) -> ModelRequestContext:
        """Show the window."""
        parameters = request_context.model_request_parameters
        given = request_context.messages
        view = await asyncio.to_thread(self._opened.view, given, parameters, self.budget)
        return replace(request_context, messages=view)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ai.ModelResponse
    ) -> ai.ModelResponse:
        """Keep the answer before anything is done that it asks for, and calibrate the counter."""
        await asyncio.to_thread(self._opened.answered, [*ctx.messages, response], response)
        return response

    def get_toolset(self) -> AgentToolset[Any]:
        """Return the session's tools, as it offers them in each step."""
        return self._tools

    def _tools(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        run = self._opened

        def tool(name: str, description: str, parameters: dict[str, Any]) -> Tool[Any]:
            async def call(**arguments: Any) -> str | list[ai.UserContent]:  # noqa: ANN401 (what the model gives)
                return await asyncio.to_thread(run.call, name, arguments)

            return Tool.from_schema(call, name, description, parameters)

        return FunctionToolset([tool(**schema["function"]) for schema in offered(run.session, run.session.toolbox.openai)])

    @property
    def _opened(self) -> _Run:
        if self._run is None:
            message = "the capability was used outside of a run: give it to an Agent, or to run()"
            raise ConfigError(message, path="capabilities")
        return self._run
