"""Messages of the OpenAI format, made shortly, and what must hold for the list of them that a window gives."""

from collections.abc import Sequence
from typing import Any

from memci.messages.validation import validate

Value = dict[str, Any]


def user(text: str) -> Value:
    return {"role": "user", "content": text}


def system(text: str) -> Value:
    return {"role": "system", "content": text}


def assistant(text: str) -> Value:
    return {"role": "assistant", "content": text}


def calling(*ids: str, arguments: str = "{}") -> Value:
    calls = [{"id": each, "type": "function", "function": {"name": "look", "arguments": arguments}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str, text: str = "found") -> Value:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def call_ids(value: Value) -> list[str]:
    return [call["id"] for call in value.get("tool_calls") or ()]


def is_subsequence(part: Sequence[Value], whole: Sequence[Value]) -> bool:
    rest = iter(whole)
    return all(any(value == other for other in rest) for value in part)


def assert_paired(messages: Sequence[Value]) -> None:
    """Assert what providers demand: each call is followed by exactly its results, and there is no other result."""
    assert [] == validate(messages)
    expected: list[str] = []
    for value in messages:
        if value["role"] == "tool":
            assert value["tool_call_id"] in expected, f"an orphan result: {value}"
            expected.remove(value["tool_call_id"])
            continue
        assert [] == expected, f"calls without results before {value}"
        expected = call_ids(value)
    assert [] == expected, "calls without results at the end"
