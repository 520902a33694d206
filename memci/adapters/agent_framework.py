"""Microsoft Agent Framework: a chat middleware whose calls of the model show a session's window, and the session's tools."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from memci.adapters.extra import brought_by
from memci.adapters.following import Message, answered, calibrate, check_format, matched, offered, taken_over
from memci.engine.session import Session

with brought_by("agent-framework"):
    from agent_framework import ChatContext, ChatMiddleware, ChatResponse, Content, FunctionTool
    from agent_framework import Message as Said


class MemciMiddleware(ChatMiddleware):
    """Lets the calls of an agent's model show a session's window, which fits its budget, and keeps every message of them.

    ``Agent(client=…, tools=[…, *memory.tools()], middleware=[memory])`` and runs with an ``AgentSession``: the conversation that
    the framework has, whole, is taken at its word, as ``Session.sync`` does, before each call of the model, and its answer is
    kept as it ends, streamed or not. The framework's own list stays whole.

    It needs a session in the format ``openai``, else ``ConfigError``. What stands word for word in a window are the framework's
    own messages, with reasoning, annotations and all. Instructions, tools and the schema of an output count.
    """

    def __init__(self, session: Session, *, budget: int | None = None) -> None:
        """Make it of a session, whose calls may have a *budget* of tokens, by default as the session is configured."""
        check_format(session, "openai")
        self._session = session
        self._budget = budget

    def tools(self) -> list[FunctionTool]:
        """Return the session's tools, as it offers them now."""
        schemas = [schema["function"] for schema in offered(self._session, self._session.toolbox.openai)]
        return [
            FunctionTool(
                name=schema["name"],
                description=schema["description"],
                func=self._caller(schema["name"]),
                input_model=schema["parameters"],
            )
            for schema in schemas
        ]

    def _caller(self, name: str) -> Callable[..., Awaitable[list[Content]]]:
        async def call(**arguments: Any) -> list[Content]:  # noqa: ANN401 (the model's)
            text, pictures = await asyncio.to_thread(answered, self._session, name, arguments)
            return [Content.from_text(text), *map(_content, pictures)]

        return call

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Show the window, and keep the answer."""
        said = [*context.messages]
        context.messages = await asyncio.to_thread(self._shown, said, context.options or {})
        if context.stream:
            context.stream_result_hooks.append(partial(self._keep_later, said, context.options or {}))
        await call_next()
        if isinstance(context.result, ChatResponse):
            await asyncio.to_thread(self._keep, said, context.options or {}, context.result)

    async def _keep_later(self, said: Sequence[Said], options: Any, response: ChatResponse[Any]) -> ChatResponse[Any]:  # noqa: ANN401 (a mapping)
        await asyncio.to_thread(self._keep, said, options, response)
        return response

    def _shown(self, said: Sequence[Said], options: Any) -> list[Said]:  # noqa: ANN401 (as above)
        system, given = self._take(said, options)
        window = self._session.window(self._budget, tools=[*_schemas(options)])
        shown = [message for message in window.messages if message not in system]  # the framework sends instructions itself
        return [_said(message) if own is None else own for message, own in matched(shown, given)]

    def _keep(self, said: Sequence[Said], options: Any, response: ChatResponse[Any]) -> None:  # noqa: ANN401 (as above)
        self._take([*said, *response.messages], options)
        usage = response.usage_details or {}
        if counted := usage.get("input_token_count"):
            cached = usage.get("cache_read_input_token_count") or 0
            calibrate(self._session, {"prompt_tokens": counted, "prompt_tokens_details": {"cached_tokens": cached}})

    def _take(self, said: Sequence[Said], options: Any) -> tuple[list[Message], list[tuple[Message, Said]]]:  # noqa: ANN401 (as above)
        """Bring the session to what the framework has; return its instructions, and its messages, each with its own object."""
        told = options.get("instructions")
        system: list[Message] = [{"role": "system", "content": told}] if told else []
        several = [(own, [*_converted(own)]) for own in said]
        taken_over(self._session, system, [message for _, made in several for message in made])
        return system, [(made[0], own) for own, made in several if len(made) == 1]


def _converted(said: Said) -> Iterator[Message]:
    """Yield a message as OpenAI's chat has it: results are messages of their own."""
    parts, calls = list[Message](), list[Message]()
    for content in said.contents:
        match content.type:
            case "function_call":
                arguments = content.arguments if isinstance(content.arguments, str) else json.dumps(content.arguments or {})
                calls.append(
                    {"id": content.call_id, "type": "function", "function": {"name": content.name, "arguments": arguments}}
                )
            case "function_result":
                yield {"role": "tool", "tool_call_id": content.call_id, "content": str(content.result or "")}
            case "text":
                parts.append({"type": "text", "text": content.text or ""})
            case "data" | "uri" if content.has_top_level_media_type("image"):
                parts.append({"type": "image_url", "image_url": {"url": content.uri}})
            case kind if kind not in ("text_reasoning", "usage"):
                parts.append({"type": "text", "text": f"[{kind}]"})
    if parts or calls or said.role != "tool":
        texts = [part.get("text", "") for part in parts]
        content_: Any = "".join(texts) if all(part["type"] == "text" for part in parts) else parts
        yield {"role": str(said.role), "content": content_, **({"tool_calls": calls} if calls else {})}


def _said(message: Message) -> Said:
    """Return a message of a window as the framework has it."""
    if message["role"] == "tool":
        return Said("tool", [Content.from_function_result(message["tool_call_id"], result=message["content"])])
    content = message.get("content") or []
    contents = [Content.from_text(content)] if isinstance(content, str) else [*map(_content, content)]
    made = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
    calls = (Content.from_function_call(each, called["name"], arguments=called["arguments"]) for each, called in made)
    return Said(message["role"], [*contents, *calls])


def _content(part: Message) -> Content:
    if part["type"] == "text":
        return Content.from_text(part["text"])
    return Content.from_uri(part["image_url"]["url"], media_type="image/*")


def _schemas(options: Any) -> Iterator[Message]:  # noqa: ANN401 (a mapping)
    """Yield what a call has beside its messages: tools, and what an output must look like."""
    for tool in options.get("tools") or ():
        yield (
            tool.to_json_schema_spec()
            if isinstance(tool, FunctionTool)
            else {"type": "function", "function": {"name": "hosted", "parameters": tool}}
        )
    if output := options.get("response_format"):
        schema = output if isinstance(output, dict) else output.model_json_schema()
        yield {"type": "function", "function": {"name": "output", "description": "", "parameters": schema}}
