"""The same conversation in each wire format: what a backend appends for one answer of the model, and for one result."""

import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from memci.engine.commands.window import Window
from memci.messages.validation import validate

Value = dict[str, Any]


@attrs.frozen
class Wire:
    """One format.

    Attributes:
        name: Its name in the settings.
        answer: The messages of an answer: what the model thinks (none where empty), says, and the ids of its calls.
        result: The message that answers a call.
        picture: The user's message of a text and a PNG file in base64.
    """

    name: str
    answer: Callable[[str, str, Sequence[str]], list[Value]]
    result: Callable[[str, str], Value]
    picture: Callable[[str, str], Value]

    def user(self, text: str) -> Value:
        return {"role": "user", "content": text}

    def system(self, text: str) -> Value:
        return {"role": "system", "content": text}

    def calls(self, value: Value) -> list[str]:
        """Return the ids of the calls that a message makes."""
        if value.get("type") == "function_call":
            return [value["call_id"]]
        blocks = [part["id"] for part in _blocks(value) if part["type"] == "tool_use"]
        return [*(call["id"] for call in value.get("tool_calls") or ()), *blocks]

    def answers(self, value: Value) -> list[str]:
        """Return the ids of the calls that a message answers."""
        if value.get("role") == "tool":
            return [value["tool_call_id"]]
        if value.get("type") == "function_call_output":
            return [value["call_id"]]
        return [part["tool_use_id"] for part in _blocks(value) if part["type"] == "tool_result"]

    def speaks_as(self, value: Value) -> str:
        """Return who speaks: ``user``, ``assistant``, ``system``, or ``tool`` for a result."""
        return "tool" if self.answers(value) else str(value.get("role", "assistant"))


def _blocks(value: Value) -> list[Value]:
    content = value.get("content")
    return content if isinstance(content, list) else []


def _openai(_thought: str, said: str, ids: Sequence[str]) -> list[Value]:
    calls = [{"id": each, "type": "function", "function": {"name": "look", "arguments": "{}"}} for each in ids]
    return [{"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}]


def _anthropic(thought: str, said: str, ids: Sequence[str]) -> list[Value]:
    thinking = [{"type": "thinking", "thinking": thought, "signature": "c2lnbmVk" * 9}] if thought else []
    calls = [{"type": "tool_use", "id": each, "name": "look", "input": {"at": each}} for each in ids]
    texts = [{"type": "text", "text": said, "citations": None}] if said else []
    return [{"role": "assistant", "content": [*thinking, *texts, *calls]}]


def _responses(thought: str, said: str, ids: Sequence[str]) -> list[Value]:
    number = zlib.crc32(json.dumps([thought, said, ids]).encode())
    reasoning = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": thought}
    message = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": said, "annotations": []}],
    }
    calls = [
        {"type": "function_call", "id": f"fc_{number}_{each}", "call_id": each, "name": "look", "arguments": "{}"} for each in ids
    ]
    action = {"type": "search", "query": "boilers"}
    found = {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": action}
    search = [found] if thought and not ids else []
    return [*([reasoning] if thought else []), *search, *([message] if said or not ids else []), *calls]


OPENAI = Wire(
    "openai",
    _openai,
    lambda call_id, text: {"role": "tool", "tool_call_id": call_id, "content": text},
    lambda text, data: {
        "role": "user",
        "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}],
    },
)
ANTHROPIC = Wire(
    "anthropic",
    _anthropic,
    lambda call_id, text: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]},
    lambda text, data: {
        "role": "user",
        "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
            {"type": "text", "text": text},
        ],
    },
)
RESPONSES = Wire(
    "responses",
    _responses,
    lambda call_id, text: {"type": "function_call_output", "call_id": call_id, "output": text},
    lambda text, data: {
        "role": "user",
        "content": [
            {"type": "input_text", "text": text},
            {"type": "input_image", "image_url": f"data:image/png;base64,{data}", "detail": "auto"},
        ],
    },
)
WIRES = (OPENAI, RESPONSES, ANTHROPIC)


def assert_valid(window: Window, name: str) -> None:
    """Assert that a provider would take a window."""
    assert [] == validate(window.messages, name)
    assert (name == "anthropic") is (window.system is not None)
    for part in window.system or ():
        assert part["type"] == "text"
        assert part["text"].strip()
