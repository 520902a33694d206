"""Anthropic's messages and the items of the Responses API: what comes in goes out, and what is refused says where."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given

from memci.engine.history.blocks import NO_RESULT, no_result_tokens
from memci.errors import InvalidMessageError
from memci.messages.formats import anthropic, responses
from memci.messages.message import Message
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_message
from tests.messages import format_strategies
from tests.word_counter import WordCounter

Value = dict[str, Any]


def check_kept(wire: ModuleType, value: Value) -> Message:
    message: Message = wire.read(value)
    assert repr(value) == repr(message.value())
    again = wire.facts(message.value())
    assert (message.raw, message.role, message.calls, message.answers) == (again.raw, again.role, again.calls, again.answers)
    assert count_message(value, WordCounter()) > 0
    for other in (wire.shortened(message, "[short]"), wire.erased(message)):
        assert (message.role, message.from_user, message.answers) == (other.role, other.from_user, other.answers) or (
            message.role == "tool" and not message.answers
        )
        assert [call.id for call in message.calls] == [call.id for call in other.calls]
        assert wire.read(other.value()).raw == other.raw
    return message


@given(format_strategies.anthropic)
def test_anthropic_messages_come_back_equal(value: Value) -> None:
    """A message of Anthropic's comes back as the same JSON; what is shortened or erased of it pairs with the same messages."""
    message = check_kept(anthropic, value)
    if message.role == "assistant" and isinstance(value["content"], list):
        assert thoughts(value["content"]) == thoughts(anthropic.shortened(message, "[short]").value()["content"])


def thoughts(content: list[Value]) -> list[Value]:
    return [block for block in content if block["type"] in ("thinking", "redacted_thinking")]


@given(format_strategies.responses)
def test_items_come_back_equal(value: Value) -> None:
    """An item of the Responses API comes back as the same JSON; what is shortened or erased of it pairs with the same items."""
    check_kept(responses, value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"role": "developer", "content": "a"}, "role"),
        ({"role": "tool", "content": "a"}, "role"),
        ({"role": "user"}, "content"),
        ({"role": "user", "content": "  "}, "content"),
        ({"role": "user", "content": [{"type": "text", "text": "\n"}]}, "content"),
        ({"role": "system", "content": [{"type": "image", "source": {}}]}, "content[0]"),
        ({"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}]}, "content[0]"),
        ({"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "a"}]}, "content[0]"),
        ({"role": "user", "content": [{"type": "thinking", "thinking": "a"}]}, "content[0]"),
        ({"role": "user", "content": [{"type": "tool_result", "content": "a"}]}, "content[0].tool_use_id"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "a b", "name": "b", "input": {}}]}, "content[0].id"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": "{}"}]}, "content[0]"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}] * 2}, "content[1].id"),
        ({"role": "user", "content": ["text"]}, "content[0]"),
        *(
            (
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [inner]}]},
                "content[0].content[0]",
            )
            for inner in ("text", {}, {"type": 1.5, "text": "a"}, {"type": ["a"], "text": "a"})
        ),
        (
            {"role": "user", "content": [{"type": "document", "source": {"type": "content", "content": [{"type": ["a"]}]}}]},
            "content[0].source.content[0]",
        ),
        ("text", ""),
    ],
)
def test_what_anthropic_refuses_is_refused(value: object, path: str) -> None:
    """The error names the place in the message."""
    with pytest.raises(InvalidMessageError) as caught:
        anthropic.read(value)
    assert path == caught.value.path


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"content": "a"}, "type"),
        ({"type": 5}, "type"),
        ({"role": "tool", "content": "a"}, "role"),
        ({"role": "assistant", "content": "a", "tool_calls": []}, "role"),
        ({"type": "message", "role": "user"}, "content"),
        ({"type": "message", "role": "user", "content": [{"type": "input_text"}]}, "content[0].text"),
        ({"type": "function_call", "role": "assistant", "call_id": "a", "name": "b", "arguments": ""}, "role"),
        ({"type": "function_call", "name": "b", "arguments": ""}, "call_id"),
        ({"type": "function_call", "call_id": "a", "arguments": ""}, "name"),
        ({"type": "function_call", "call_id": "a", "name": "b", "arguments": {}}, "arguments"),
        ({"type": "custom_tool_call", "call_id": "a", "name": "b"}, "input"),
        ({"type": "function_call_output", "output": "a"}, "call_id"),
        ({"type": "function_call_output", "call_id": "a"}, "output"),
        ({"type": "mcp_approval_request", "name": "a"}, "id"),
        ({"type": "mcp_approval_response", "approve": True}, "approval_request_id"),
        ([], ""),
    ],
)
def test_what_the_responses_api_refuses_is_refused(value: object, path: str) -> None:
    """The error names the place in the item."""
    with pytest.raises(InvalidMessageError) as caught:
        responses.read(value)
    assert path == caught.value.path


@pytest.mark.parametrize(
    "kind",
    [
        "function_call",
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "tool_search_call",
    ],
)
def test_each_kind_of_call_is_closed_in_its_own_shape(kind: str) -> None:
    """A call of any kind gets an item that answers it, and that a session takes."""
    call = responses.read({"type": kind, "call_id": "c1", "name": "n", "arguments": "{}", "input": "x"}).calls[0]
    closing = responses.result(call, NO_RESULT)
    assert ("c1",) == responses.read(closing.value()).answers
    for counter in (get_counter("o200k_base"), get_counter("approximate")):
        assert count_message(closing.value(), counter) <= no_result_tokens(call)


def test_an_approval_that_nobody_gave_is_declined() -> None:
    """The request of an MCP server that was passed over is answered with a refusal."""
    call = responses.read({"type": "mcp_approval_request", "id": "m1", "name": "n", "arguments": "{}"}).calls[0]
    expected = {"type": "mcp_approval_response", "approval_request_id": "m1", "approve": False, "reason": "none"}
    assert expected == responses.result(call, "none").value()


def test_thinking_costs_what_its_signature_holds() -> None:
    """Thinking of which only a summary is shown counts by the encrypted text that it stands for."""
    block = {"type": "thinking", "thinking": "in short", "signature": "A" * 4_000}
    assert 1_000 <= count_message({"role": "assistant", "content": [block]}, WordCounter()) <= 1_010
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "A" * 4_000}
    assert 1_000 <= count_message(item, WordCounter()) <= 1_010


@pytest.mark.parametrize(
    "value",
    [
        {"role": "user", "content": [{"type": "document", "source": {"type": "base64", "data": "A" * 400_000}}]},
        {"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "A" * 12_000}]},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "A" * 400_000},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "https://a.b/c"}},
    ],
)
def test_attachments_are_estimated_by_their_size(value: Value) -> None:
    """What is not text costs more than nothing, and not what its base64 would cost as text."""
    assert 500 <= count_message(value, WordCounter()) <= 40_000
