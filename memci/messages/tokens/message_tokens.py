"""How many tokens a message, a list of tools and the start of a reply take of a window.

Source of the framing: the OpenAI cookbook, "How to count tokens with tiktoken"; where it says nothing, counts lean upwards.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memci.messages import codec
from memci.messages.parts import Part, PartKind, parts
from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.media import image_tokens, weigh

REPLY_TOKENS = 3  # what opens the model's reply, once a window
PLAIN_TOKENS = 4  # of a message beside its text: 3, and one for the role, which each of OpenAI's is in both encodings
PLAIN_KEYS = {"role", "content"}  # of nearly all messages
_RESULT_KEYS = {*PLAIN_KEYS, "tool_call_id"}
_NAME_TOKENS = 1
_CALL_TOKENS = 8  # recipient, channel and end of a call; the cookbook has no figure
_BLOCK_TOKENS = 3  # keys and brackets around what is sent as JSON

_TOOLS_TOKENS, _TOOL_TOKENS, _ENUM_ITEM_TOKENS = 12, 10, 3


def count_message(value: dict[str, Any], counter: TokenCounter) -> int:
    """Return the tokens of one message as it is sent, framing included. O(its size).

    Counted are the texts of the content, names, tool calls (id, name, arguments), the id of an answered call, pictures, sound and
    files by their size wherever they stand, and the JSON text of keys and blocks that memci does not know.
    """
    tokens = PLAIN_TOKENS
    if (name := value.get("name")) is not None:
        tokens += _NAME_TOKENS + counter.count(str(name))
    if (answered := value.get("tool_call_id")) is not None:
        tokens += counter.count(str(answered))
    return tokens + sum(_count_part(part, counter) for part in parts(value))


def is_plain(value: dict[str, Any]) -> bool:
    """Return whether a message is a text of somebody and nothing else."""
    return value.keys() == PLAIN_KEYS and isinstance(value["content"], str)


def is_text_result(value: dict[str, Any]) -> bool:
    """Return whether a message of OpenAI's format is a tool's result, a text and nothing else."""
    return value.get("role") == "tool" and value.keys() == _RESULT_KEYS and isinstance(value["content"], str)


def media_tokens_of(part: Part) -> int:
    """Return how many of the tokens of a part its pictures, sound and files are; the same by every counter. O(its size)."""
    match part.kind:
        case PartKind.IMAGE:
            return image_tokens(part.value)
        case PartKind.RESULT | PartKind.OTHER if part.inner:
            return sum(map(media_tokens_of, part.inner))
        case PartKind.OTHER:
            return weigh(part.value).media_tokens
        case _:
            return 0


def count_tools(tools: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int:
    """Return the tokens of tool schemas: their JSON text and the framing around it; 0 for none. O(their size).

    Providers rewrite schemas into a shorter form that they do not publish, so this is high for most tools. InvalidMessageError
    names the place of what is not a JSON value.
    """
    tokens = _TOOLS_TOKENS if tools else 0
    for number, tool in enumerate(tools):
        text = codec.encode(codec.checked_copy(tool, f"tools[{number}]")).decode()
        tokens += _TOOL_TOKENS + counter.count(text) + _ENUM_ITEM_TOKENS * _enum_items(tool)
    return tokens


def _count_part(part: Part, counter: TokenCounter) -> int:
    match part.kind:
        case PartKind.IMAGE:
            return image_tokens(part.value)
        case PartKind.CALL if part.call is not None:
            return _CALL_TOKENS + counter.count(part.call.id) + counter.count(part.text)
        case PartKind.RESULT:  # one that is a block or an item brings its own id
            own = _BLOCK_TOKENS + counter.count(part.answers or "") if isinstance(part.value, dict) else 0
            return own + (_count_inner(part.inner, counter) if part.inner else counter.count(part.text))
        case PartKind.TEXT:
            return counter.count(part.text)
        case PartKind.THOUGHT:
            return _BLOCK_TOKENS + max(counter.count(part.text), weigh(part.value).opaque_tokens)
        case _:
            return _BLOCK_TOKENS + _count_other(part, counter)


def _count_other(part: Part, counter: TokenCounter) -> int:
    if part.inner:
        keys = {key: item for key, item in part.value.items() if key not in ("type", "source")}
        return _count_inner(part.inner, counter) + (_count_json(keys, counter) if keys else 0)
    weighed = weigh(part.value)
    tokens = weighed.media_tokens + weighed.opaque_tokens
    if not tokens:
        return counter.count(part.text)
    return tokens + (0 if weighed.rest is None else _count_json(weighed.rest, counter))


def _count_inner(inner: Sequence[Part], counter: TokenCounter) -> int:
    """Count the parts of a result or document: their texts as one, other blocks as those of messages."""
    others = sum(_count_part(each, counter) for each in inner if each.kind is not PartKind.TEXT)
    return others + counter.count("\n".join(each.text for each in inner if each.kind is PartKind.TEXT))


def _count_json(value: object, counter: TokenCounter) -> int:
    return counter.count(codec.encode(value).decode())


def _enum_items(schema: object) -> int:
    if isinstance(schema, Mapping):
        allowed = schema.get("enum")
        return (len(allowed) if isinstance(allowed, list) else 0) + sum(map(_enum_items, schema.values()))
    return sum(map(_enum_items, schema)) if isinstance(schema, list) else 0
