"""OpenAI's chat messages, and the items of its Responses API, in the form that all formats share, and back."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from memci.messages import item_parts
from memci.messages.conversion.neutral import (
    File,
    Image,
    Losses,
    Piece,
    Said,
    Text,
    ToolCall,
    ToolResult,
    file_of_address,
    image_of_address,
    plain,
    unsayable,
)

_KEYS = ("role", "content", "tool_calls", "tool_call_id", "function_call", "refusal")
_THINKING = ("thinking", "redacted_thinking", "reasoning")
_PART_KEYS = ("type", "text", "refusal", "image_url", "file")
_READ = ("message", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")
_ITEM_KEYS = ("type", "role", "content", "call_id", "name", "arguments", "input", "output", "status", "summary")
_ITEM_PART_KEYS = ("type", "text", "refusal", "image_url", "detail", "filename", "file_data")


def parse(messages: Sequence[dict[str, Any]], losses: Losses) -> Iterator[Said]:
    """Yield what each chat message says."""
    for number, value in enumerate(messages):
        place = f"messages[{number}]"
        role = value["role"]
        losses.keys(place, value, (*_KEYS, "name") if role == "function" else _KEYS)
        content = tuple(_content(f"{place}.content", value.get("content"), losses, _PART_KEYS))
        if role in ("tool", "function"):
            identity = str(value["tool_call_id"] if role == "tool" else f"function_{value['name']}")
            yield Said(place, "user", (ToolResult(identity, plain(content)),))
            continue
        refusal = (Text(value["refusal"]),) if value.get("refusal") else ()
        yield Said(place, role, (*content, *refusal, *_calls(place, value, losses)))


def parse_items(items: Sequence[dict[str, Any]], losses: Losses) -> Iterator[Said]:
    """Yield what is said in items: the model's that follow each other as one message."""
    every = (said for number, value in enumerate(items) for said in _item(f"messages[{number}]", value, losses))
    for role, group in groupby(every, key=lambda said: said.role):
        found = list(group)
        if role == "assistant":
            yield Said(found[0].place, role, tuple(piece for said in found for piece in said.pieces))
        else:
            yield from found


def write(conversation: Iterable[Said], losses: Losses) -> Iterator[dict[str, Any]]:
    """Yield the chat messages that say it; results come as messages of their own, before the rest."""
    for said in conversation:
        rest: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for piece in said.pieces:
            match piece:
                case ToolResult():
                    losses.failure(said.place, piece)
                    if not all(isinstance(each, Text) for each in piece.content):
                        raise unsayable(said.place, "a picture or file in a result")
                    yield {"role": "tool", "tool_call_id": piece.id, "content": _words(piece)}
                case ToolCall():
                    calls.append(_call(piece))
                case _:
                    rest.append(_chat_part(piece))
        if rest or calls:
            yield {"role": said.role, "content": _alone(rest) if rest else None, **({"tool_calls": calls} if calls else {})}


def write_items(conversation: Iterable[Said], losses: Losses) -> Iterator[dict[str, Any]]:
    """Yield the items that say it."""
    for said in conversation:
        spoken: list[dict[str, Any]] = []
        for piece in said.pieces:
            match piece:
                case ToolResult():
                    losses.failure(said.place, piece)
                    kind = "custom_tool_call_output" if piece.free else "function_call_output"
                    words = all(isinstance(each, Text) for each in piece.content)
                    yield {
                        "type": kind,
                        "call_id": piece.id,
                        "output": _words(piece) if words else list(map(_part, piece.content)),
                    }
                case ToolCall(free=True):
                    yield {"type": "custom_tool_call", "call_id": piece.id, "name": piece.name, "input": piece.arguments}
                case ToolCall():
                    yield {"type": "function_call", "call_id": piece.id, "name": piece.name, "arguments": piece.arguments}
                case Text() if said.role == "assistant":
                    yield {"type": "message", "role": "assistant", "content": piece.text}
                case _ if said.role == "assistant":
                    raise unsayable(said.place, "a picture or file of the assistant")
                case _:
                    spoken.append(_part(piece))
        if spoken:
            yield {"type": "message", "role": said.role, "content": _alone(spoken)}


def _content(place: str, content: object, losses: Losses, known: Sequence[str]) -> Iterator[Piece]:
    if isinstance(content, str):
        yield Text(content)
    for position, part in enumerate(content if isinstance(content, list) else ()):
        at = f"{place}[{position}]"
        if part["type"] in _THINKING:
            losses.add(at, "thinking")
            continue
        losses.keys(at, part, known)
        match part:
            case {"type": "input_text" | "output_text" | "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
                yield Text(text)
            case {"type": "image_url", "image_url": {"url": str(url)} as image}:
                losses.keys(at, image, ("url", "detail"))
                yield image_of_address(url, image.get("detail"))
            case {"type": "input_image", "image_url": str(url), **rest}:
                yield image_of_address(url, rest.get("detail"))
            case {"type": "file", "file": {"file_data": str(data)} as file}:
                losses.keys(at, file, ("file_data", "filename"))
                yield file_of_address(str(file.get("filename", "document.pdf")), data)
            case {"type": "input_file", "file_data": str(data), **rest}:
                yield file_of_address(str(rest.get("filename", "document.pdf")), data)
            case _:
                raise unsayable(at, f"a part of type {part['type']}")


def _calls(place: str, value: dict[str, Any], losses: Losses) -> Iterator[ToolCall]:
    for position, call in enumerate(value.get("tool_calls") or ()):
        at, function, custom = f"{place}.tool_calls[{position}]", call.get("function"), call.get("custom")
        losses.keys(at, call, ("id", "type", "function", "custom"))
        if isinstance(function, dict):
            yield ToolCall(call["id"], function["name"], function.get("arguments") or "{}")
        elif isinstance(custom, dict):
            yield ToolCall(call["id"], str(custom.get("name")), str(custom.get("input", "")), free=True)
        else:
            raise unsayable(at, f"a call of type {call.get('type')}")
    legacy = value.get("function_call")
    if isinstance(legacy, dict):
        yield ToolCall(f"function_{legacy.get('name')}", str(legacy.get("name")), str(legacy.get("arguments") or "{}"))


def _item(place: str, value: dict[str, Any], losses: Losses) -> Iterator[Said]:
    kind = value.get("type", "message")
    free = kind.startswith("custom")
    if kind == "reasoning":
        losses.add(place, "reasoning")
        return
    if kind in _READ:
        losses.keys(place, value, _ITEM_KEYS)
    if kind == "message":
        content = tuple(_content(f"{place}.content", value["content"], losses, _ITEM_PART_KEYS))
        yield Said(place, value["role"], content)
    elif kind in ("function_call", "custom_tool_call"):
        call = ToolCall(value["call_id"], value["name"], value["input" if free else "arguments"], free=free)
        yield Said(place, "assistant", (call,))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        found = plain(_content(f"{place}.output", value["output"], losses, _ITEM_PART_KEYS))
        yield Said(place, "user", (ToolResult(value["call_id"], found, free=free),))
    elif item_parts.call_id(value) or item_parts.answered_id(value):
        raise unsayable(place, f"an item of type {kind}")
    else:
        losses.add(place, f"an item of type {kind}, which belongs to the provider")


def _words(result: ToolResult) -> str:
    return "\n".join(piece.text for piece in result.content if isinstance(piece, Text))


def _alone(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return the text of a part that stands alone; else the parts."""
    text: str | None = parts[0].get("text") if len(parts) == 1 else None
    return parts if text is None else text


def _call(call: ToolCall) -> dict[str, Any]:
    if call.free:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _chat_part(piece: Text | Image | File) -> dict[str, Any]:
    match piece:
        case Text():
            return {"type": "text", "text": piece.text}
        case Image():
            detail = {"detail": piece.detail} if piece.detail else {}
            return {"type": "image_url", "image_url": {"url": piece.address, **detail}}
        case File():
            return {"type": "file", "file": {"filename": piece.name, "file_data": piece.address}}


def _part(piece: Text | Image | File) -> dict[str, Any]:
    match piece:
        case Text():
            return {"type": "input_text", "text": piece.text}
        case Image():
            return {"type": "input_image", "image_url": piece.address, "detail": piece.detail or "auto"}
        case File():
            return {"type": "input_file", "filename": piece.name, "file_data": piece.address}
