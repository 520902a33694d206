"""What providers refuse in the order of messages is found, each with its place."""

from typing import Any

import pytest

from memci import validate

Value = dict[str, Any]


def use(*ids: str, before: tuple[Value, ...] = ()) -> Value:
    calls = [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in ids]
    return {"role": "assistant", "content": [*before, *calls]}


def results(*ids: str) -> Value:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": each, "content": ""} for each in ids]}


USER: Value = {"role": "user", "content": "go"}
SAID: Value = {"role": "assistant", "content": "done"}
TEXT: Value = {"type": "text", "text": "also"}
THOUGHT: Value = {"type": "thinking", "thinking": "hm", "signature": "x"}
SERVER: Value = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND: Value = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
BLANK_RESULT: Value = {"type": "tool_result", "tool_use_id": "a", "content": [TEXT, {"type": "text", "text": " "}]}
CACHED: Value = {**TEXT, "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [USER, USER, SAID, SAID],
        [USER, use("a", "b", before=(THOUGHT,)), results("b", "a"), SAID],
        [USER, use("a"), {"role": "user", "content": [*results("a")["content"], TEXT]}],
        [USER, {"role": "assistant", "content": [SERVER]}, {"role": "assistant", "content": [FOUND, TEXT]}, USER],
        [USER, {"role": "assistant", "content": [TEXT, SERVER]}],
        [{"role": "user", "content": [*[CACHED] * 4, *[{**TEXT, "cache_control": None}] * 4]}],
        [USER, {"role": "assistant", "content": [{**THOUGHT, "cache_control": None}, TEXT]}],
        [USER, {"role": "assistant", "content": ""}],
        [USER, {"role": "assistant", "content": "It is: "}, USER],
        [USER, use("a"), {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": []}]}],
        [USER, {"role": "system", "content": "From now on in French."}, SAID],
    ],
)
def test_good_calls_of_anthropic_have_no_problem(messages: list[Value]) -> None:
    """What Anthropic takes is taken."""
    assert [] == validate(messages, "anthropic")


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([SAID], "messages[0].role"),
        ([{"role": "system", "content": "a"}, USER], "messages[0].role"),
        ([USER, use("a")], "messages[1]"),
        ([USER, use("a"), USER], "messages[2]"),
        ([USER, use("a", "b"), results("a"), results("b")], "messages[2]"),
        ([USER, results("a")], "messages[1]"),
        ([USER, use("a"), results("a"), use("a"), results("a")], "messages[3]"),
        ([USER, use("a"), {"role": "user", "content": [TEXT, *results("a")["content"]]}], "messages[2].content[1]"),
        ([USER, {"role": "assistant", "content": ""}, USER], "messages[1].content"),
        ([USER, {"role": "assistant", "content": [{"type": "text", "text": " "}, TEXT]}], "messages[1].content[0]"),
        ([USER, {"role": "assistant", "content": [TEXT, THOUGHT]}], "messages[1].content[1]"),
        ([USER, use("a"), {"role": "user", "content": [BLANK_RESULT]}], "messages[2].content[0].content[1]"),
        ([USER, {"role": "assistant", "content": "It is: "}], "messages[1].content"),
        ([USER, {"role": "assistant", "content": [TEXT, {"type": "text", "text": "It is:\n"}]}], "messages[1].content[1]"),
        (
            [USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "a"}, TEXT]}],
            "messages[1].content[0].signature",
        ),
        (
            [USER, {"role": "assistant", "content": [{**THOUGHT, "cache_control": {}}, TEXT]}],
            "messages[1].content[0].cache_control",
        ),
        ([USER, {"role": "assistant", "content": [TEXT, SERVER]}, USER], "messages[1]"),
        ([{"role": "user", "content": [CACHED] * 5}], "messages"),
        ([USER, {"role": "tool", "content": "x"}], "messages[1].role"),
    ],
)
def test_what_anthropic_would_refuse_is_found(messages: list[Value], place: str) -> None:
    """The first problem names the place."""
    assert place == validate(messages, "anthropic")[0].place


CALL: Value = {"type": "function_call", "id": "fc", "call_id": "a", "name": "look", "arguments": "{}"}
OUTPUT: Value = {"type": "function_call_output", "call_id": "a", "output": ""}
REASONING: Value = {"type": "reasoning", "id": "rs", "summary": []}


@pytest.mark.parametrize(
    ("items", "place"),
    [
        ([CALL], "messages[0]"),
        ([OUTPUT], "messages[0]"),
        ([OUTPUT, CALL], "messages[0]"),
        ([CALL, CALL, OUTPUT], "messages[1]"),
        ([USER, REASONING], "messages[1]"),
        ([REASONING, USER], "messages[0]"),
        ([REASONING, {key: item for key, item in CALL.items() if key != "id"}, OUTPUT], "messages[0]"),
        ([{"type": "reasoning", "id": "rs"}, CALL, OUTPUT], "messages[0].summary"),
        ([{"role": "user", "content": [{"type": "output_text", "text": "a"}]}], "messages[0].content[0].type"),
        ([{"role": "assistant", "content": [{"type": "input_text", "text": "a"}]}], "messages[0].content[0].type"),
        ([{"type": "function_call"}], "messages[0].call_id"),
    ],
)
def test_what_the_responses_api_would_refuse_is_found(items: list[Value], place: str) -> None:
    """The first problem names the place."""
    assert place == validate(items, "responses")[0].place


def test_good_items_have_no_problem() -> None:
    """Parallel calls with their reasoning, outputs after all of them, are taken."""
    other = {**CALL, "id": "fc2", "call_id": "b"}
    items = [{"role": "developer", "content": "a"}, USER, REASONING, CALL, other, {**OUTPUT, "call_id": "b"}, OUTPUT, USER]
    assert [] == validate(items, "responses")


CHAT_CALL: Value = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}
CHAT_RESULT: Value = {"role": "tool", "tool_call_id": "a", "content": ""}


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([CHAT_CALL], "messages[0]"),
        ([CHAT_CALL, USER, CHAT_RESULT], "messages[0]"),
        ([CHAT_RESULT], "messages[0]"),
        ([CHAT_CALL, CHAT_RESULT, CHAT_RESULT], "messages[2]"),
        ([{"role": "assistant", "content": None}], "messages[0]"),
        ([{"role": "user"}], "messages[0].content"),
    ],
)
def test_what_chat_completions_would_refuse_is_found(messages: list[Value], place: str) -> None:
    """The first problem names the place."""
    assert place == validate(messages)[0].place


def test_a_good_chat_has_no_problem() -> None:
    """Calls with their results directly after them are taken."""
    assert [] == validate([USER, CHAT_CALL, CHAT_RESULT, SAID, USER])


@pytest.mark.parametrize(
    ("messages", "wire_format"),
    [
        ([USER, CHAT_CALL, USER, SAID, USER], "openai"),
        ([USER, use("a"), USER, SAID, USER], "anthropic"),
        ([USER, CALL, USER, SAID, USER], "responses"),
    ],
)
def test_a_call_without_a_result_is_one_problem(messages: list[Value], wire_format: str) -> None:
    """A missing result is named once, however many messages come after it."""
    assert 1 == len(validate(messages, wire_format))
