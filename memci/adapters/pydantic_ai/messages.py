"""Messages of Pydantic AI as those of OpenAI's chat, in which sessions keep them, and back."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, dropwhile, groupby
from typing import Any, TypeAlias

import attrs

from memci.adapters.extra import brought_by
from memci.adapters.following import Message, check_format, is_system
from memci.engine.session import Session
from memci.messages import codec
from memci.messages.parts import text_of

with brought_by("pydantic-ai"):
    from pydantic import TypeAdapter
    from pydantic_ai import messages as ai

Part: TypeAlias = ai.ModelRequestPart | ai.ModelResponsePart


@attrs.frozen
class Own:
    """What a message was made of: some *parts* of the framework's message *whole*."""

    whole: ai.ModelMessage
    parts: tuple[Part, ...]


def history(session: Session) -> list[ai.ModelMessage]:
    """Return all messages of a session but the system part, for ``message_history=`` or to show them. O(history).

    What only Pydantic AI has, such as thoughts and their signatures, is not among what a session keeps.
    """
    check_format(session, "openai")
    return from_chat((message, None) for message in dropwhile(is_system, session.messages()))


def to_chat(messages: Iterable[ai.ModelMessage]) -> list[tuple[Message, Own]]:
    """Return messages as a session keeps them, each with what it was made of. O(their size).

    Parts that say nothing to a reader (thoughts, changes of tools or settings) go with the message before them, or after it.
    """
    made: list[tuple[Message, Own]] = []
    for whole in messages:
        if isinstance(whole, ai.ModelResponse):
            made.append((_of_response(whole), Own(whole, tuple(whole.parts))))
        else:
            made += [(message, Own(whole, parts)) for message, parts in _of_request(whole)]
    return made


def from_chat(window: Iterable[tuple[Message, Own | None]]) -> list[ai.ModelMessage]:
    """Return a window's messages as the framework's: its own objects where it has them. O(their size)."""
    names: dict[str, str] = {}
    made: list[ai.ModelMessage] = []
    for _, group in groupby(window, key=lambda each: None if each[1] is None else id(each[1].whole)):
        messages, owns = zip(*group, strict=True)
        for message in messages:
            names.update({call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()})
        if owns[0] is not None:
            made.append(_of_own(owns))
        else:
            made += [_made(message, names) for message in messages]
    return ai.repair_messages(made, repair_last_response=False)


def _of_own(owns: Sequence[Own]) -> ai.ModelMessage:
    """Return the framework's message of which these parts are in view; one of its own where all are."""
    whole = owns[0].whole
    parts: Any = [*chain.from_iterable(own.parts for own in owns)]
    return whole if len(parts) == len(whole.parts) else dataclasses.replace(whole, parts=parts)


def _made(message: Message, names: dict[str, str]) -> ai.ModelMessage:
    """Return the framework's message that says what a session's message says."""
    content = message.get("content")
    match message["role"]:
        case "assistant":
            said: list[ai.ModelResponsePart] = [*map(_spoken, _items(content))]
            for call in message.get("tool_calls") or ():
                function = call["function"]
                said.append(ai.ToolCallPart(function["name"], function["arguments"], call["id"]))
            return ai.ModelResponse(parts=said)
        case "tool":
            identity = message["tool_call_id"]
            result = content if isinstance(content, str) else [*map(to_item, _items(content))]
            return ai.ModelRequest(parts=[ai.ToolReturnPart(names.get(identity, ""), result, identity)])
        case "system" | "developer":
            return ai.ModelRequest(parts=[ai.SystemPromptPart(text_of(message))])
    prompt = content if isinstance(content, str) else [*map(to_item, _items(content))]
    return ai.ModelRequest(parts=[ai.UserPromptPart(prompt)])


def _items(content: str | list[Message] | None) -> list[Message]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


@cache
def _contents() -> TypeAdapter[ai.UserContent]:
    return TypeAdapter(ai.UserContent)


@cache
def _answers() -> TypeAdapter[ai.ModelResponsePart]:
    return TypeAdapter(ai.ModelResponsePart)


def to_item(part: Message) -> ai.UserContent:
    """Return a part of a message's content as the framework's."""
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return ai.BinaryContent.from_data_uri(url) if url.startswith("data:") else ai.ImageUrl(url)
        case {"type": "file", "file": {"file_data": str(url)}} if url.startswith("data:"):
            return ai.BinaryContent.from_data_uri(url)
        case {"type": str(kind), "kind": str(same)} if kind == same:
            return _contents().validate_python({name: value for name, value in part.items() if name != "type"})
    return codec.encode(part).decode()


def _spoken(part: Message) -> ai.ModelResponsePart:
    """Return a part of an answer's content as the framework's."""
    if "part_kind" in part:
        return _answers().validate_python({name: value for name, value in part.items() if name != "type"})
    item = to_item(part)
    return ai.FilePart(item) if isinstance(item, ai.BinaryContent) else ai.TextPart(item if isinstance(item, str) else str(item))


def _of_request(request: ai.ModelRequest) -> Iterator[tuple[Message, tuple[Part, ...]]]:
    waiting: list[Part] = []
    found: list[tuple[Message, list[Part]]] = []
    for part in request.parts:
        message = _said(part)
        if message is not None:
            found.append((message, [*waiting, part]))
            waiting = []
        else:
            (found[-1][1] if found else waiting).append(part)
    return ((message, tuple(parts)) for message, parts in found)


def _said(part: ai.ModelRequestPart) -> Message | None:  # noqa: PLR0911 (a branch a kind)
    """Return what a part of a request says; ``None`` where it says nothing to a reader."""
    match part:
        case ai.SystemPromptPart():
            return {"role": "system", "content": part.content}
        case ai.UserPromptPart():
            items = part.content if isinstance(part.content, str) else [*_contained(part.content)]
            return {"role": "user", "content": items}
        case ai.ToolReturnPart():
            text, files = part.model_response_str(), [*_contained(part.files)]
            content = [{"type": "text", "text": text}, *files] if files else text
            return {"role": "tool", "tool_call_id": part.tool_call_id, "content": content}
        case ai.RetryPromptPart(tool_name=str()):
            return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}
        case ai.RetryPromptPart() | ai.RetryFeedbackPart():
            return {"role": "user", "content": part.model_response()}
        case ai.SpeechPart():
            return {"role": "user", "content": part.transcript or ""}
    return None


def _contained(items: Iterable[ai.UserContent]) -> Iterator[Message]:
    """Yield parts of a prompt as a session keeps them; marks for a provider's cache are none."""
    for item in items:
        match item:
            case str():
                yield {"type": "text", "text": item}
            case ai.TextContent():
                yield {"type": "text", "text": item.content}
            case ai.ImageUrl():
                yield {"type": "image_url", "image_url": {"url": item.url}}
            case ai.BinaryContent() if item.is_image:
                yield {"type": "image_url", "image_url": {"url": item.data_uri}}
            case ai.BinaryContent():
                yield {"type": "file", "file": {"filename": item.identifier, "file_data": item.data_uri}}
            case ai.CachePoint():
                pass
            case _:
                kept = _contents().dump_python(item, mode="json")
                yield {"type": kept["kind"], **kept}


def _of_response(response: ai.ModelResponse) -> Message:
    content: list[Message] = []
    calls: list[Message] = []
    for part in response.parts:
        match part:
            case ai.TextPart():
                content += [{"type": "text", "text": part.content}] if part.content else []
            case ai.ToolCallPart():
                function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
                calls.append({"id": part.tool_call_id, "type": "function", "function": function})
            case ai.FilePart():
                content += _contained([part.content])
            case ai.SpeechPart():
                content.append({"type": "text", "text": part.transcript or ""})
            case ai.ThinkingPart():
                pass
            case _:
                kept = _answers().dump_python(part, mode="json")
                content.append({"type": kept["part_kind"], **kept})
    is_text = len(content) == 1 and content[0]["type"] == "text"
    said = content[0]["text"] if is_text else content or (None if calls else "")
    return {"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}
