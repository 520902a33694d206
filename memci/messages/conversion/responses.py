"""Items of OpenAI's Responses API in the form that all formats share, and back."""

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
    unsayable,
)

_READ = ("message", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")
_KEYS = ("type", "role", "content", "call_id", "name", "arguments", "input", "output", "status", "summary")


def parse(messages: Sequence[dict[str, Any]], losses: Losses) -> Iterator[Said]:
    """Yield what is said: the model's items that follow each other as one message."""
    every = (said for number, value in enumerate(messages) for said in _item(f"messages[{number}]", value, losses))
    for role, group in groupby(every, key=lambda said: said.role):
        items = list(group)
        if role == "assistant":
            yield Said(items[0].place, role, tuple(piece for said in items for piece in said.pieces))
        else:
            yield from items


def write(conversation: Iterable[Said], losses: Losses) -> Iterator[dict[str, Any]]:
    """Yield the items that say it."""
    for said in conversation:
        spoken: list[dict[str, Any]] = []
        for piece in said.pieces:
            match piece:
                case ToolResult():
                    if piece.failed:
                        losses.add(said.place, "that the result is an error")
                    kind = "custom_tool_call_output" if piece.free else "function_call_output"
                    yield {"type": kind, "call_id": piece.id, "output": _output(piece)}
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
            texts = [part["text"] for part in spoken if part["type"] == "input_text"]
            content: Any = texts[0] if len(texts) == len(spoken) == 1 else spoken
            yield {"type": "message", "role": said.role, "content": content}


def _item(place: str, value: dict[str, Any], losses: Losses) -> Iterator[Said]:
    kind = value.get("type", "message")
    if kind == "reasoning":
        losses.add(place, "reasoning")
        return
    if kind in _READ:
        losses.keys(place, value, _KEYS)
    if kind == "message":
        yield Said(place, value["role"], tuple(_content(f"{place}.content", value["content"], losses)))
    elif kind in ("function_call", "custom_tool_call"):
        free = kind == "custom_tool_call"
        call = ToolCall(value["call_id"], value["name"], value["input" if free else "arguments"], free=free)
        yield Said(place, "assistant", (call,))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        found = tuple(_content(f"{place}.output", value["output"], losses))
        plain = tuple(piece for piece in found if isinstance(piece, Text | Image | File))
        yield Said(place, "user", (ToolResult(value["call_id"], plain, free=kind == "custom_tool_call_output"),))
    elif item_parts.call_id(value) or item_parts.answered_id(value):
        raise unsayable(place, f"an item of type {kind}")
    else:
        losses.add(place, f"an item of type {kind}, which belongs to the provider")


def _content(place: str, content: object, losses: Losses) -> Iterator[Piece]:
    if isinstance(content, str):
        yield Text(content)
    for position, part in enumerate(content if isinstance(content, list) else ()):
        at = f"{place}[{position}]"
        losses.keys(at, part, ("type", "text", "refusal", "image_url", "detail", "filename", "file_data"))
        match part:
            case {"type": "input_text" | "output_text" | "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
                yield Text(text)
            case {"type": "input_image", "image_url": str(url), **rest}:
                yield image_of_address(url, rest.get("detail"))
            case {"type": "input_file", "file_data": str(data), **rest}:
                yield file_of_address(str(rest.get("filename", "document.pdf")), data)
            case _:
                raise unsayable(at, f"a part of type {part['type']}")


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    if all(isinstance(piece, Text) for piece in result.content):
        return "\n".join(piece.text for piece in result.content if isinstance(piece, Text))
    return list(map(_part, result.content))


def _part(piece: Text | Image | File) -> dict[str, Any]:
    match piece:
        case Text():
            return {"type": "input_text", "text": piece.text}
        case Image():
            return {"type": "input_image", "image_url": piece.address, "detail": piece.detail or "auto"}
        case File():
            return {"type": "input_file", "filename": piece.name, "file_data": piece.address}
