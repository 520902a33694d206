"""What a message is made of, in words that every wire format shares."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

import attrs

from memci.messages import codec
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

    Its ``text`` is its words: the text itself; a call's name and arguments; a result's text; what the model thought, as far as
    it is shown; the words of a document that is made of blocks; the JSON of anything else; empty for an image. ``value`` is the
    piece as the provider writes it, ``call`` the call of a ``CALL``, ``answers`` the id of the call that a ``RESULT`` answers.
    ``inner`` are the parts of a result that is a list, without images that follow it as parts of their own, and those of a
    document that is made of blocks; their text has a mark in place of the bytes of files.
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
_CALL_TEXTS = ("arguments", "input", "action", "operation")

_WITH_OUTPUT = ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call")
CALLS: Final[Mapping[str, str]] = {
    **{kind: f"{kind}_output" for kind in _WITH_OUTPUT},
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}
"""The items that are calls which the application answers, each with the type of its answer."""

ANSWERS: Final = frozenset(CALLS.values())
_ID_KEYS = {"mcp_approval_request": "id", "mcp_approval_response": "approval_request_id"}


def is_item(value: Mapping[str, Any]) -> bool:
    """Return whether a message is an item other than a message; messages of all formats have a role, and one item has."""
    return isinstance(value.get("type"), str) and ("role" not in value or value["type"] == "additional_tools")


def id_key(item: Mapping[str, Any]) -> str:
    """Return the key of the id that joins a call and its answer; empty for other items, and for what the provider runs."""
    kind = item["type"]
    if (kind not in CALLS and kind not in ANSWERS) or item.get("execution") == "server":
        return ""
    by_id = kind == "local_shell_call_output" and "call_id" not in item and "id" in item
    return "id" if by_id else _ID_KEYS.get(kind, "call_id")


def joining_id(item: Mapping[str, Any]) -> str:
    """Return that id; empty where there is none."""
    key = id_key(item)
    return item[key] if key and isinstance(item.get(key), str) else ""


def parts(value: dict[str, Any]) -> Iterator[Part]:
    """Yield the parts of a message in the order of the message. O(its size).

    A message with role ``tool`` or ``function`` is one result; content blocks ``tool_use`` and ``tool_result`` are calls and
    results too, and so are the items of the Responses format. Keys that memci does not know come last, as parts of kind
    ``OTHER``.
    """
    if is_item(value):
        yield from _item(value)
        return
    role = value.get("role")
    content = value.get("content")
    if role in ("tool", "function"):
        answered = function_id(value.get("name")) if role == "function" else str(value.get("tool_call_id", ""))
        yield from _result(content, content, answered)
    elif isinstance(content, str):
        yield Part(PartKind.TEXT, content, content)
    elif isinstance(content, list):
        yield from _blocks(content)
    calls = value.get("tool_calls")
    for item in calls if isinstance(calls, list) else ():
        held = item.get("function", item.get("custom"))
        function = held if isinstance(held, dict) else {"name": item.get("type", "")}
        yield _call(item, item.get("id", ""), function.get("name", ""), function.get("arguments", function.get("input")))
    legacy = value.get("function_call")
    if isinstance(legacy, dict):
        yield _call(legacy, function_id(legacy.get("name")), legacy.get("name", ""), legacy.get("arguments"))
    known = _ITEM_MESSAGE_KEYS if value.get("type") == "message" else _KNOWN_KEYS
    yield from (_other(item) for key, item in value.items() if key not in known and item is not None)


def flat(found: Iterable[Part]) -> Iterator[Part]:
    """Yield parts, each before those that are inside it."""
    for part in found:
        yield part
        yield from flat(part.inner)


def text_of(value: dict[str, Any]) -> str:
    """Return the words of a message that a reader would see: texts and results, a mark for each image, no calls, no base64."""
    seen = (part for part in parts(value) if part.kind in (PartKind.TEXT, PartKind.RESULT, PartKind.IMAGE))
    return "\n".join(filter(None, ("[image]" if part.kind is PartKind.IMAGE else described(part.text) for part in seen)))


def _blocks(content: list[Any]) -> Iterator[Part]:
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(block, str):
            yield Part(PartKind.TEXT, block, block)
        elif not isinstance(kind, str):
            yield _other(block)
        elif kind in _SPOKEN_TYPES and isinstance(text := block.get("text", block.get(kind)), str):
            yield Part(_SPOKEN_TYPES[kind], text, block)
        elif kind in _IMAGE_TYPES:
            yield Part(PartKind.IMAGE, "", block)
        elif kind == "tool_use":
            yield _call(block, block.get("id", ""), block.get("name", ""), block.get("input"))
        elif kind == "tool_result":
            nested = block.get("content")
            inner = tuple(_blocks(nested)) if isinstance(nested, list) else ()
            text = _joined(inner) if isinstance(nested, list) else _as_text(nested)
            yield Part(PartKind.RESULT, text, block, answers=str(block.get("tool_use_id", "")), inner=inner)
        elif kind == "document" and (inner := _inside(block)):
            words = [str(block[key]) for key in ("title", "context") if block.get(key)]
            yield Part(PartKind.OTHER, "\n".join([*words, _joined(inner)]), block, inner=inner)
        else:
            yield _other(block)


def _inside(document: dict[str, Any]) -> tuple[Part, ...]:
    source = document.get("source")
    content = source.get("content") if isinstance(source, dict) and source.get("type") == "content" else None
    return tuple(_blocks([content] if isinstance(content, str) else content)) if isinstance(content, str | list) else ()


def _item(value: dict[str, Any]) -> Iterator[Part]:
    kind = value["type"]
    joining = joining_id(value)
    if joining and kind in CALLS:
        given = next((value[key] for key in _CALL_TEXTS if key in value), None)
        yield _call(value, joining, value.get("name") or kind, given, kind)
    elif joining:
        output = value.get("output", value.get("reason", value.get("tools")))
        shown = isinstance(output, dict) and output.get("type") == "computer_screenshot"
        yield from _result(value, "" if shown else output, joining)
        if shown:
            yield Part(PartKind.IMAGE, "", output)
    elif kind == "reasoning":
        said = [block for key in ("summary", "content") if isinstance(value.get(key), list) for block in value[key]]
        yield Part(PartKind.THOUGHT, "\n".join(part.text for part in _blocks(said)), value)
    elif kind == "image_generation_call":
        result = value.get("result")
        source = {"image_url": f"data:image/png;base64,{result}"} if isinstance(result, str) else {}
        yield Part(PartKind.IMAGE, "", {"type": "input_image", **source})
    else:
        yield _other(value)


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
    return "\n".join(filter(None, words))


def _call(value: dict[str, Any], call_id: object, name: object, arguments: object, kind: str = "") -> Part:
    call = Call(id=str(call_id), name=str(name), arguments=_as_text(arguments), kind=kind)
    return Part(PartKind.CALL, f"{call.name} {call.arguments}", value, call=call)


def _other(value: object) -> Part:
    return Part(PartKind.OTHER, _as_text(value), value)


def function_id(name: object) -> str:
    """Return the id of a call in the older form, which has none of its own: one such call stands open at a time."""
    return f"function:{name}"


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else codec.encode(value).decode()
