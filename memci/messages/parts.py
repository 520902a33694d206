"""What a message is made of, in words that every wire format shares."""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import attrs

from memci.messages import codec, item_parts
from memci.messages.base64_runs import described
from memci.messages.message import Call
from memci.messages.tokens.media import bytes_mark


class PartKind(Enum):
    """The kinds of part that readers of messages tell apart."""

    TEXT = "text"
    IMAGE = "image"
    CALL = "call"
    RESULT = "result"
    THOUGHT = "thought"
    OTHER = "other"


@attrs.frozen
class Part:
    """A piece of a message.

    Attributes:
        kind: What it is.
        text: Its words: the text itself; a call's name and arguments; a result's text; what the model thought, as far as it is
            shown; the words of a document that is made of blocks; the JSON of anything else. Empty for an image.
        value: The piece as the provider writes it.
        call: The call, where the kind is ``CALL``.
        answers: The id of the answered call, where the kind is ``RESULT``.
        inner: The parts of a result that is a list, without images that follow it as parts of their own; and those of a
            document that is made of blocks. Their text has a mark in place of the bytes of files.
    """

    kind: PartKind
    text: str
    value: Any = None
    call: Call | None = None
    answers: str | None = None
    inner: tuple["Part", ...] = ()


_SPOKEN_TYPES = {
    **dict.fromkeys(("text", "input_text", "output_text", "refusal"), PartKind.TEXT),
    **dict.fromkeys(("thinking", "summary_text", "reasoning_text"), PartKind.THOUGHT),
}
_IMAGE_TYPES = frozenset({"image_url", "input_image", "image"})
_KNOWN_KEYS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call"})
_ITEM_MESSAGE_KEYS = _KNOWN_KEYS | {"type", "id", "status", "phase"}


def parts(value: dict[str, Any]) -> Iterator[Part]:
    """Yield the parts of a message in the order of the message. O(its size).

    A message with role ``tool`` or ``function`` is one result; content blocks ``tool_use`` and ``tool_result`` are calls and
    results too, and so are the items of the Responses format. Keys that memci does not know come last, as parts of kind
    ``OTHER``.
    """
    if item_parts.is_item(value):
        yield from _item(value)
        return
    role = value.get("role")
    content = value.get("content")
    if role in ("tool", "function"):
        yield from _result(content, content, answered_id(value))
    elif isinstance(content, str):
        yield Part(PartKind.TEXT, content, content)
    elif isinstance(content, list):
        yield from _blocks(content)
    calls = value.get("tool_calls")
    if isinstance(calls, list):
        for item in calls:
            yield _call_part(_tool_call(item), item)
    legacy = value.get("function_call")
    if isinstance(legacy, dict):
        yield _call_part(_call(function_id(legacy.get("name")), legacy.get("name", ""), legacy.get("arguments")), legacy)
    yield from _unknown_keys(value)


def flat(found: Iterable[Part]) -> Iterator[Part]:
    """Yield parts, each before those that are inside it."""
    for part in found:
        yield part
        yield from flat(part.inner)


def text_of(value: dict[str, Any]) -> str:
    """Return the words of a message that a reader would see: texts and results, a mark for each image, no calls, no base64."""
    words = []
    for part in parts(value):
        match part.kind:
            case PartKind.TEXT | PartKind.RESULT:
                words.append(described(part.text))
            case PartKind.IMAGE:
                words.append("[image]")
            case _:
                pass
    return "\n".join(word for word in words if word)


def answered_id(value: dict[str, Any]) -> str:
    """Return the id of the call that a ``tool`` or ``function`` message answers."""
    if value.get("role") == "function":
        return function_id(value.get("name"))
    return str(value.get("tool_call_id", ""))


def _blocks(content: list[Any]) -> Iterator[Part]:
    for block in content:
        if isinstance(block, str):
            yield Part(PartKind.TEXT, block, block)
            continue
        if not isinstance(block, dict):
            yield Part(PartKind.OTHER, codec.encode(block).decode(), block)
            continue
        kind = block.get("type")
        if kind in _SPOKEN_TYPES and isinstance(text := block.get("text", block.get(kind)), str):
            yield Part(_SPOKEN_TYPES[kind], text, block)
        elif kind in _IMAGE_TYPES:
            yield Part(PartKind.IMAGE, "", block)
        elif kind == "tool_use":
            yield _call_part(_call(block.get("id", ""), block.get("name", ""), block.get("input")), block)
        elif kind == "tool_result":
            nested = block.get("content")
            inner = tuple(_blocks(nested)) if isinstance(nested, list) else ()
            text = _joined(inner) if isinstance(nested, list) else _as_text(nested)
            yield Part(PartKind.RESULT, text, block, answers=str(block.get("tool_use_id", "")), inner=inner)
        elif kind == "document" and (inner := _inside(block)):
            words = [str(block[key]) for key in ("title", "context") if block.get(key)]
            yield Part(PartKind.OTHER, "\n".join([*words, _joined(inner)]), block, inner=inner)
        else:
            yield Part(PartKind.OTHER, codec.encode(block).decode(), block)


def _inside(document: dict[str, Any]) -> tuple[Part, ...]:
    match document.get("source"):
        case {"type": "content", "content": str(text)}:
            return (Part(PartKind.TEXT, text, text),)
        case {"type": "content", "content": list(content)}:
            return tuple(_blocks(content))
        case _:
            return ()


def _unknown_keys(value: dict[str, Any]) -> Iterator[Part]:
    known = _ITEM_MESSAGE_KEYS if value.get("type") == "message" else _KNOWN_KEYS
    for key, item in value.items():
        if key not in known and item is not None:
            yield Part(PartKind.OTHER, item if isinstance(item, str) else codec.encode(item).decode(), item)


def _item(value: dict[str, Any]) -> Iterator[Part]:
    kind = value["type"]
    identity, answered = item_parts.call_id(value), item_parts.answered_id(value)
    if identity is not None:
        name, arguments = str(value.get("name") or kind), _as_text(item_parts.call_text(value))
        yield _call_part(Call(id=identity, name=name, arguments=arguments, kind=kind), value)
    elif answered is not None:
        yield from _output(value, answered)
    elif kind == "reasoning":
        shown = [block for key in ("summary", "content") if isinstance(value.get(key), list) for block in value[key]]
        yield Part(PartKind.THOUGHT, "\n".join(part.text for part in _blocks(shown)), value)
    elif kind == "image_generation_call":
        result = value.get("result")
        source = {"image_url": f"data:image/png;base64,{result}"} if isinstance(result, str) else {}
        yield Part(PartKind.IMAGE, "", {"type": "input_image", **source})
    else:
        yield Part(PartKind.OTHER, codec.encode(value).decode(), value)


def _output(value: dict[str, Any], answered: str) -> Iterator[Part]:
    output = value.get("output", value.get("reason", value.get("tools")))
    if isinstance(output, dict) and output.get("type") == "computer_screenshot":
        yield Part(PartKind.RESULT, "", value, answers=answered)
        yield Part(PartKind.IMAGE, "", output)
    else:
        yield from _result(value, output, answered)


def _result(value: object, content: object, answered: str) -> Iterator[Part]:
    """Yield a result, and after it the images in it."""
    if not isinstance(content, list):
        yield Part(PartKind.RESULT, _as_text(content), value, answers=answered)
        return
    inner = tuple(_blocks(content))
    others = tuple(part for part in inner if part.kind is not PartKind.IMAGE)
    yield Part(PartKind.RESULT, _joined(others), value, answers=answered, inner=others)
    yield from (part for part in inner if part.kind is PartKind.IMAGE)


def _joined(inner: Iterable[Part]) -> str:
    words = (bytes_mark(part.value) or part.text if part.kind is PartKind.OTHER else part.text for part in inner)
    return "\n".join(word for word in words if word)


def _tool_call(item: dict[str, Any]) -> Call:
    function = item.get("function", item.get("custom"))
    if not isinstance(function, dict):
        return _call(item.get("id", ""), item.get("type", ""), None)
    return _call(item.get("id", ""), function.get("name", ""), function.get("arguments", function.get("input")))


def _call(identity: object, name: object, arguments: object) -> Call:
    return Call(id=str(identity), name=str(name), arguments=_as_text(arguments))


def _call_part(call: Call, value: dict[str, Any]) -> Part:
    return Part(PartKind.CALL, f"{call.name} {call.arguments}", value, call=call)


def function_id(name: object) -> str:
    """Return the id of a call in the older form, which has none of its own: one such call stands open at a time."""
    return f"function:{name}"


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else codec.encode(value).decode()
