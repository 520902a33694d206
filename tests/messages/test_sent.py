"""What stands in a window of each format can be sent: it has nothing that belongs to an answer of the provider only."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.messages.formats import format as formats
from memci.messages.tokens.message_tokens import count_message
from memci.messages.validation import validate
from tests.word_counter import WordCounter

Value = dict[str, Any]

USER: Value = {"role": "user", "content": "go"}


def assembled(name: str, *values: Value) -> list[Value]:
    wire = formats.get(name)
    messages = [wire.assembled(wire.read(value)) for value in values]
    if wire.assemble is None:
        return [message.value() for message in messages]
    _, sent, made = wire.assemble(messages, [message.value() for message in messages], ())
    assert made == [message.value() for message in sent]
    return made


CALL: Value = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TEXT: Value = {"type": "text", "text": "done"}
USE: Value = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
RESULT: Value = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
ANSWER: Value = {
    "id": "msg_1",
    "type": "message",
    "model": "claude",
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "stop_details": None,
    "container": None,
    "usage": {"input_tokens": 9, "output_tokens": 9},
}
CITED: Value = {"type": "char_location", "cited_text": "a", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
REASONING: Value = {"type": "reasoning", "id": "rs", "summary": []}
ITEM: Value = {"type": "message", "id": "msg", "role": "assistant", "status": "completed"}
OUTPUT: Value = {"type": "output_text", "text": "done", "annotations": []}
FUNCTION: Value = {"type": "function_call", "id": "fc", "call_id": "a", "name": "look", "arguments": "{}"}
FOUND: Value = {"type": "function_call_output", "call_id": "a", "output": "x"}


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (
            {"content": "done", "refusal": None, "annotations": [], "audio": None, "function_call": None, "tool_calls": None},
            {"content": "done"},
        ),
        ({"content": "done", "tool_calls": []}, {"content": "done"}),
        ({"content": None, "refusal": "no", "audio": None}, {"content": None, "refusal": "no"}),
        ({"content": None, "audio": {"id": "audio_1", "data": "AAAA", "expires_at": 9, "transcript": "hello"}}, None),
        ({"content": "done", "annotations": [{"type": "file", "file": {"hash": "x"}}]}, None),
        ({"content": "done", "parsed": {"a": 1}, "name": None}, {"content": "done"}),
        ({"content": "done", "reasoning_content": None, "x": []}, None),
        ({"content": 'it says "refusal":null'}, None),
    ],
)
def test_an_answer_of_openai_is_sent_without_empty_keys(value: Value, sent: Value | None) -> None:
    """Keys of an answer that hold nothing are left out, what sound it holds is named by its id; unknown keys go as they are."""
    audio = {"audio": {"id": "audio_1"}} if value.get("audio") else {}
    expected = {"role": "assistant", **(value if sent is None else sent), **audio}
    assert [USER, expected] == assembled("openai", USER, {"role": "assistant", **value})


def test_what_the_sdk_parsed_of_arguments_is_not_sent() -> None:
    """A call that the SDK parsed is sent as the provider wrote it."""
    parsed = {**CALL, "function": {**CALL["function"], "parsed_arguments": {}}}
    result = {"role": "tool", "tool_call_id": "a", "content": "x"}
    expected = [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, result]
    assert expected == assembled("openai", USER, {"role": "assistant", "content": None, "tool_calls": [parsed]}, result)


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ("done", "done"),
        ([{**TEXT, "citations": None, "parsed_output": 7}], [{**TEXT, "citations": None}]),
        ([{**TEXT, "citations": [{**CITED, "file_id": None}]}], [{**TEXT, "citations": [CITED]}]),
    ],
)
def test_an_answer_of_anthropic_is_sent_as_role_and_content(content: object, sent: object) -> None:
    """Of an answer of Anthropic's its role and content are sent, and of its blocks what a call may hold."""
    answer = {**ANSWER, "role": "assistant", "content": content, "x": 1}
    assert [USER, {"role": "assistant", "content": sent, "x": 1}, USER] == assembled("anthropic", USER, answer, USER)


def test_a_caller_that_is_null_is_not_sent() -> None:
    """A call of Anthropic's may name its caller, and not with null."""
    answer = {**ANSWER, "role": "assistant", "content": [{**USE, "caller": None}]}
    assert [USER, {"role": "assistant", "content": [USE]}, RESULT] == assembled("anthropic", USER, answer, RESULT)


@pytest.mark.parametrize(
    ("items", "sent"),
    [
        (
            [{**REASONING, "content": None, "encrypted_content": None, "status": "completed"}, {**ITEM, "content": [OUTPUT]}],
            [REASONING, {**ITEM, "content": [OUTPUT]}],
        ),
        (
            [{**ITEM, "phase": None, "content": [{**OUTPUT, "parsed": {}, "logprobs": None}]}],
            [{**ITEM, "content": [OUTPUT]}],
        ),
        ([{**FUNCTION, "parsed_arguments": {}, "namespace": None, "status": None, "created_by": "me"}, FOUND], [FUNCTION, FOUND]),
        ([{**FUNCTION, "id": None}, FOUND], [{key: item for key, item in FUNCTION.items() if key != "id"}, FOUND]),
        ([{"type": "image_generation_call", "id": "ig", "status": "failed", "result": None}], None),
    ],
)
def test_items_of_an_answer_are_sent_without_empty_keys(items: list[Value], sent: list[Value] | None) -> None:
    """Items keep their ids, and lose what their input has no key for, or none that is null."""
    assert [USER, *(items if sent is None else sent)] == assembled("responses", USER, *items)


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("anthropic", {**ANSWER, "role": "assistant", "content": "done"}, "messages[1].id"),
        ("openai", {"role": "assistant", "content": "done", "tool_calls": []}, "messages[1].tool_calls"),
        ("responses", {**REASONING, "status": "completed"}, "messages[1].status"),
    ],
)
def test_keys_of_an_answer_are_found(name: str, value: Value, place: str) -> None:
    """What a provider refuses to be given back as it gave it is named by ``validate``."""
    assert place == validate([USER, value], name)[0].place


ITEMS = {"user": USER, "reasoning": REASONING, "said": {**ITEM, "content": "x"}, "call": FUNCTION, "found": FOUND}
NAMELESS = {name: {key: item for key, item in value.items() if key != "id"} for name, value in ITEMS.items()}


@given(st.lists(st.sampled_from([*ITEMS.values(), *NAMELESS.values()]), max_size=8))
def test_windows_of_items_are_such_as_are_taken(items: list[Value]) -> None:
    """Whatever stands beside a reasoning item, with an id or without: the window has none that ``validate`` would find lost."""
    problems = validate(assembled("responses", *items), "responses")
    assert [] == [problem for problem in problems if "reasoning" in problem.text]


def test_calls_with_one_id_differ_where_both_stand_open() -> None:
    """The later one gets the first free number, and the result that came first, which is its; nothing before it changes."""
    one, other = {**FUNCTION, "arguments": "1"}, {**FUNCTION, "id": "fc2", "arguments": "2"}
    values = [USER, one, other, {**FOUND, "output": "two"}, {**FOUND, "output": "one"}, FUNCTION, FOUND]
    sent = assembled("responses", *values)
    renamed = [{**other, "call_id": "1"}, {**FOUND, "call_id": "1", "output": "two"}]
    assert [USER, one, *renamed, *values[4:]] == sent
    assert [] == validate(sent, "responses")
    assert sent[:3] == assembled("responses", *values[:3])


def test_a_number_that_was_given_names_no_other_call() -> None:
    """A call whose own id is a number that another one stands open under gets the next."""
    calls = [{**FUNCTION, "call_id": each} for each in ("a", "a", "1")]
    found = [{**FOUND, "call_id": each} for each in ("1", "a", "a")]
    sent = assembled("responses", USER, *calls, *found)
    assert ["a", "1", "2", "2", "1", "a"] == [value["call_id"] for value in sent[1:]]
    assert [] == validate(sent, "responses")


@pytest.mark.parametrize("kind", ["mcp_approval_request", "local_shell_call", "custom_tool_call"])
def test_calls_of_all_kinds_are_told_apart(kind: str) -> None:
    """A call of each kind, and what answers it, get the other id under the key of that kind."""
    wire = formats.get("responses")
    made: dict[str, Value] = {
        "mcp_approval_request": {"id": "a", "name": "look", "arguments": "{}", "server_label": "s"},
        "local_shell_call": {"call_id": "a", "id": "ls", "action": {}, "status": "completed"},
        "custom_tool_call": {"call_id": "a", "name": "look", "input": ""},
    }
    call = wire.read({"type": kind, **made[kind]})
    answer = wire.result(call.calls[0], "x")
    assert wire.assemble is not None
    _, sent, _ = wire.assemble([call, call, answer, answer], [each.value() for each in (call, call, answer, answer)], ())
    assert ["a", "1", "1", "a"] == [*(each.calls[0].id for each in sent[:2]), *(each.answers[0] for each in sent[2:])]


def test_plain_text_after_a_renamed_call_stays_plain() -> None:
    """Behind a call of Anthropic's that got another id, a text is sent as it came; so is one beside half of a provider's call."""
    texts: list[Value] = [{"role": "user", "content": "plain"}, {"role": "assistant", "content": "plain"}]
    use = {"role": "assistant", "content": [USE]}
    assert texts == assembled("anthropic", USER, use, RESULT, use, RESULT, *texts)[-2:]
    half = {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, TEXT]}
    plain: list[Value] = [{"role": "assistant", "content": [TEXT]}, {"role": "assistant", "content": "plain"}, USER]
    assert plain == assembled("anthropic", USER, half, *plain[1:])[1:]


@pytest.mark.parametrize("name", formats.NAMES)
def test_messages_without_such_keys_are_the_same_object(name: str) -> None:
    """Nothing is written again that is sent as it came."""
    wire = formats.get(name)
    message = wire.read({"role": "assistant", "content": "done"})
    assert message is wire.sent(message)


def test_what_is_sent_is_what_is_counted() -> None:
    """The usage that stands in an answer takes no room of a window."""
    wire = formats.get("anthropic")
    plain = {"role": "assistant", "content": "done"}
    message = wire.sent(wire.read({**ANSWER, **plain}))
    assert count_message(plain, WordCounter()) == count_message(message.value(), WordCounter())
