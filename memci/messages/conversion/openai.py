"""OpenAI's chat messages in the form that all formats share, and back."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

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
    unsayable,
)

_KEYS = ("role", "content", "tool_calls", "tool_call_id", "function_call", "refusal")
_THINKING = ("thinking", "redacted_thinking", "reasoning")


def parse(messages: Sequence[dict[str, Any]], losses: Losses) -> Iterator[Said]:
    """Yield what each message says."""
    for number, value in enumerate(messages):
        place = f"messages[{number}]"
        role = value["role"]
        losses.keys(place, value, (*_KEYS, "name") if role == "function" else _KEYS)
        content = tuple(_content(place, value.get("content"), losses))
        if role in ("tool", "function"):
            identity = str(value["tool_call_id"] if role == "tool" else f"function_{value['name']}")
            plain = tuple(piece for piece in content if isinstance(piece, Text | Image | File))
            yield Said(place, "user", (ToolResult(identity, plain),))
            continue
        refusal = (Text(value["refusal"]),) if value.get("refusal") else ()
        yield Said(place, role, (*content, *refusal, *_calls(place, value, losses)))


def write(conversation: Iterable[Said], losses: Losses) -> Iterator[dict[str, Any]]:
    """Yield the messages that say it; results come as messages of their own, before the rest."""
    for said in conversation:
        rest: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for piece in said.pieces:
            match piece:
                case ToolResult():
                    yield {"role": "tool", "tool_call_id": piece.id, "content": _result(said.place, piece, losses)}
                case ToolCall():
                    calls.append(_call(piece))
                case _:
                    rest.append(_part(piece))
        if not rest and not calls:
            continue
        texts = [part["text"] for part in rest if part["type"] == "text"]
        content: Any = texts[0] if len(texts) == len(rest) == 1 else rest or None
        yield {"role": said.role, "content": content, **({"tool_calls": calls} if calls else {})}


def _content(place: str, content: object, losses: Losses) -> Iterator[Piece]:
    if isinstance(content, str):
        yield Text(content)
    for position, part in enumerate(content if isinstance(content, list) else ()):
        at = f"{place}.content[{position}]"
        if part["type"] not in _THINKING:
            losses.keys(at, part, ("type", "text", "refusal", "image_url", "file"))
        match part:
            case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
                yield Text(text)
            case {"type": "image_url", "image_url": {"url": str(url)} as image}:
                losses.keys(at, image, ("url", "detail"))
                yield image_of_address(url, image.get("detail"))
            case {"type": "file", "file": {"file_data": str(data)} as file}:
                losses.keys(at, file, ("file_data", "filename"))
                yield file_of_address(str(file.get("filename", "document.pdf")), data)
            case {"type": str(kind)} if kind in _THINKING:
                losses.add(at, "thinking")
            case _:
                raise unsayable(at, f"a part of type {part['type']}")


def _calls(place: str, value: dict[str, Any], losses: Losses) -> Iterator[ToolCall]:
    for position, call in enumerate(value.get("tool_calls") or ()):
        function, custom = call.get("function"), call.get("custom")
        losses.keys(f"{place}.tool_calls[{position}]", call, ("id", "type", "function", "custom"))
        if isinstance(function, dict):
            yield ToolCall(call["id"], function["name"], function.get("arguments") or "{}")
        elif isinstance(custom, dict):
            yield ToolCall(call["id"], str(custom.get("name")), str(custom.get("input", "")), free=True)
        else:
            at = f"{place}.tool_calls[{position}]"
            raise unsayable(at, f"a call of type {call.get('type')}")
    legacy = value.get("function_call")
    if isinstance(legacy, dict):
        yield ToolCall(f"function_{legacy.get('name')}", str(legacy.get("name")), str(legacy.get("arguments") or "{}"))


def _call(call: ToolCall) -> dict[str, Any]:
    if call.free:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _result(place: str, result: ToolResult, losses: Losses) -> str:
    if result.failed:
        losses.add(place, "that the result is an error")
    texts = [piece.text for piece in result.content if isinstance(piece, Text)]
    if len(texts) < len(result.content):
        raise unsayable(place, "a picture or file in a result")
    return "\n".join(texts)


def _part(piece: Text | Image | File) -> dict[str, Any]:
    match piece:
        case Text():
            return {"type": "text", "text": piece.text}
        case Image():
            detail = {"detail": piece.detail} if piece.detail else {}
            return {"type": "image_url", "image_url": {"url": piece.address, **detail}}
        case File():
            return {"type": "file", "file": {"filename": piece.name, "file_data": piece.address}}
