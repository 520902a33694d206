"""The OpenAI wire format: what comes in goes out, and what is refused says where."""

import json
from typing import Any

import pytest
from hypothesis import given

from memci.errors import ConfigError, InvalidMessageError
from memci.messages.formats import format as formats
from memci.messages.formats import openai
from memci.messages.message import Call, Message
from memci.messages.parts import PartKind, parts, text_of
from tests.messages.strategies import calling, messages, texts

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": 7}'}}


def assistant(*calls: object, **more: object) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


@given(messages)
def test_what_comes_in_goes_out(value: dict[str, Any]) -> None:
    """A message comes back equal, unknown keys, key order and types included, however often it is asked for."""
    before = repr(value)
    message = openai.read(value)
    assert before == repr(value) == repr(message.value()) == repr(message.value())
    assert message.value() is not message.value()


@given(messages)
def test_facts_are_those_of_the_message_read(value: dict[str, Any]) -> None:
    """A message read back from a store has the facts that it had when it came in."""
    read, again = openai.read(value), openai.facts(openai.read(value).value())
    facts = [(each.raw, each.role, each.calls, each.answers, each.from_user) for each in (read, again)]
    assert facts[0] == facts[1]


@given(messages)
def test_text_of_any_message_can_be_read(value: dict[str, Any]) -> None:
    """Every part of a message has a kind and text, and no call is in the words of the message."""
    found = list(parts(value))
    assert all(isinstance(part.text, str) for part in found)
    assert len(value.get("tool_calls") or ()) == sum(part.kind is PartKind.CALL for part in found)
    assert isinstance(text_of(value), str)


def test_a_message_does_not_change_with_its_origin() -> None:
    """What the caller does to the dict afterwards does not reach the message."""
    value = {"role": "user", "content": [{"type": "text", "text": "before"}]}
    message = openai.read(value)
    value["content"][0]["text"] = "after"  # type: ignore[index]
    assert "before" == message.value()["content"][0]["text"]


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ("hello", "", "a message is a dict, not a str"),
        (None, "", "not a NoneType"),
        ([("role", "user")], "", "not a list"),
        ({}, "role", "the role is missing"),
        ({"role": None, "content": ""}, "role", "the role is missing"),
        ({"role": "human", "content": ""}, "role", "'human'"),
        ({"role": ["user"], "content": ""}, "role", "the role is"),
        ({"role": "user"}, "content", "needs a content"),
        ({"role": "system", "content": None}, "content", "needs a content"),
        ({"role": "user", "content": 7}, "content", "not int"),
        ({"role": "assistant", "content": "a", "refusal": -1}, "refusal", "is text"),
        ({"role": "user", "content": {"type": "text"}}, "content", "not dict"),
        ({"role": "user", "content": ["words"]}, "content[0]", "a dict with a type"),
        ({"role": "user", "content": [{"text": "words"}]}, "content[0]", "a dict with a type"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}]}, "content[1].text", "under 'text'"),
        ({"role": "user", "content": [{"type": "tool_result"}]}, "content[0].tool_use_id", "the id of its call"),
        ({"role": "assistant", "content": [{"type": "tool_use"}]}, "content[0].id", "the id of its call"),
        ({"role": "user", "content": "", "tool_calls": [CALL]}, "tool_calls", "only an assistant"),
        ({"role": "assistant", "tool_calls": CALL}, "tool_calls", "not dict"),
        (assistant("c1"), "tool_calls[0]", "with an id"),
        (assistant({**CALL, "id": ""}), "tool_calls[0]", "with an id"),
        (assistant({**CALL, "id": 7}), "tool_calls[0]", "with an id"),
        (assistant(CALL, CALL), "tool_calls[1].id", "stands twice"),
        (assistant({"id": "c1", "type": "function"}), "tool_calls[0].function", "with a name"),
        (assistant({"id": "c1", "function": {"name": 7}}), "tool_calls[0].function", "with a name"),
        (assistant({"id": "c1", "function": {"name": "f", "arguments": {}}}), "tool_calls[0].function.arguments", "as text"),
        ({"role": "tool", "content": "found"}, "tool_call_id", "names the call"),
        ({"role": "tool", "content": "found", "tool_call_id": ""}, "tool_call_id", "names the call"),
        ({"role": "tool", "content": "found", "tool_call_id": 7}, "tool_call_id", "names the call"),
        ({"role": "function", "content": "found"}, "name", "names the function"),
        ({"role": "user", "content": "", "x": {"y": [float("nan")]}}, "x.y[0]", "no form in JSON"),
        ({"role": "user", "content": b"words"}, "content", "a bytes is not a JSON value"),
        ({"role": "user", "content": "", 7: 7}, "", "is not text"),
        ({"role": "user", "content": "", "n": 10**5_000}, "n", "cannot be written as JSON"),
    ],
)
def test_refused_messages_say_where(value: object, path: str, words: str) -> None:
    """A message that a provider would refuse, or that is no JSON, is refused with its place."""
    with pytest.raises(InvalidMessageError) as caught:
        openai.read(value)
    assert path == caught.value.path
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        {"role": "user", "content": ""},
        {"role": "user", "content": []},
        {"role": "assistant"},
        {"role": "assistant", "content": None, "tool_calls": None},
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]},
        assistant({"id": "c1", "type": "custom", "custom": {"name": "shell", "input": "ls"}}),
        {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}},
        {"role": "function", "name": "find", "content": "found"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "found"}]},
        {"role": "developer", "content": "Be brief.", "name": "operator"},
    ],
)
def test_unusual_messages_are_taken(value: dict[str, Any]) -> None:
    """What the provider takes is taken, empty contents and older forms included."""
    assert value == openai.read(value).value()


def test_calls_and_answers_are_known() -> None:
    """Calls give id, name and arguments, whichever form they have; results give the id that they answer."""
    custom = {"id": "c2", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    assert (
        Call(id="c1", name="find", arguments='{"order": 7}'),
        Call(id="c2", name="shell", arguments="ls"),
    ) == openai.read(assistant(CALL, custom)).calls
    assert ("c1",) == openai.read({"role": "tool", "tool_call_id": "c1", "content": ""}).answers
    legacy = openai.read({"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}})
    assert legacy.calls[0].id == openai.read({"role": "function", "name": "find", "content": ""}).answers[0]


@pytest.mark.parametrize(
    ("content", "from_user"),
    [
        ("hello", True),
        ("", True),
        ([{"type": "tool_result", "tool_use_id": "c1", "content": "found"}], False),
        ([{"type": "tool_result", "tool_use_id": "c1"}, {"type": "tool_result", "tool_use_id": "c2"}], False),
        ([{"type": "tool_result", "tool_use_id": "c1"}, {"type": "text", "text": "and now?"}], True),
        ([{"type": "image_url", "image_url": {"url": "data:,"}}], True),
    ],
)
def test_a_user_message_of_tool_results_alone_is_not_the_user(content: object, from_user: bool) -> None:  # noqa: FBT001 (a table)
    """The user speaks in every user message but in one that only carries tool results."""
    assert from_user is openai.read({"role": "user", "content": content}).from_user


def test_no_other_role_is_the_user() -> None:
    """Messages of other roles are never the user's."""
    others = [{"role": role, "content": "hello"} for role in ("system", "developer", "assistant")]
    assert [False] * 3 == [openai.read(value).from_user for value in others]


@given(texts)
def test_a_block_is_one_user_message_of_the_text(text: str) -> None:
    """What memci itself says is a plain user message that holds exactly the text."""
    assert {"role": "user", "content": text} == openai.block(text).value()


@given(calling)
def test_results_answer_their_calls(value: dict[str, Any]) -> None:
    """A result that is made for a call is a message that the format takes, and it answers that call."""
    for call in openai.read(value).calls:
        made = openai.result(call, "nothing")
        assert (call.id,) == openai.read(made.value()).answers
        assert "nothing" == made.value()["content"]


def test_a_result_for_an_older_form_is_of_that_form() -> None:
    """A call of the older kind is answered by name."""
    call = openai.read({"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}}).calls[0]
    assert {"role": "function", "name": "find", "content": "nothing"} == openai.result(call, "nothing").value()


def pairing(message: Message) -> tuple[str, list[tuple[str, str]], tuple[str, ...]]:
    return message.role, [(call.id, call.name) for call in message.calls], message.answers


@given(messages)
def test_a_short_form_stands_where_the_message_does(value: dict[str, Any]) -> None:
    """The short form is a message that the format takes, of the same role, calls and answers, and without other content."""
    message = openai.read(value)
    short = openai.shortened(message, "[stub]")
    assert pairing(message) == pairing(openai.read(short.value()))
    assert message.from_user == short.from_user
    assert "[stub]" in json.dumps(short.value())
    assert {"role", "content", "name", "tool_call_id", "tool_calls"} >= set(short.value())


def test_a_short_form_drops_arguments_and_results() -> None:
    """Arguments of calls and contents of tool blocks are gone; names and ids stay."""
    block = {"type": "tool_use", "id": "c2", "name": "find", "input": {"order": 7}}
    value = {**assistant(CALL), "content": [{"type": "text", "text": "thinking"}, block]}
    short = openai.shortened(openai.read(value), "[stub]").value()
    assert [{"type": "text", "text": "[stub]"}, {**block, "input": {}}] == short["content"]
    assert [{**CALL, "function": {"name": "find", "arguments": "{}"}}] == short["tool_calls"]
    results = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "long"}]}
    assert [{"type": "tool_result", "tool_use_id": "c2", "content": "[stub]"}] == openai.shortened(
        openai.read(results), "[stub]"
    ).value()["content"]


def test_a_short_custom_call_keeps_its_tool() -> None:
    """A custom tool's call keeps the object that the provider asks for, with the tool's name and an empty input."""
    message = openai.read(assistant({"id": "c1", "type": "custom", "custom": {"name": "shell", "input": "cat /etc/passwd"}}))
    kept = [{"id": "c1", "type": "custom", "custom": {"name": "shell", "input": ""}}]
    assert kept == openai.shortened(message, "[stub]").value()["tool_calls"]
    assert kept == openai.erased(message).value()["tool_calls"]
    assert pairing(message) == pairing(openai.read(openai.erased(message).value()))


@pytest.mark.parametrize("custom", [{}, {"input": "ls"}, {"name": "shell"}])
def test_a_short_custom_call_pairs_as_the_whole_one(custom: dict[str, Any]) -> None:
    """Whatever a custom call holds, its short form is taken and has its id and name."""
    message = openai.read(assistant({"id": "c1", "type": "custom", "custom": custom}))
    assert pairing(message) == pairing(openai.read(openai.shortened(message, "[stub]").value()))


def test_unknown_formats_are_refused() -> None:
    """A format that is not there is a config error that names those that are."""
    with pytest.raises(ConfigError, match="openai"):
        formats.get("morse")
    assert openai.read is formats.get("openai").read
