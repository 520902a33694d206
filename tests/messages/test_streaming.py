"""Streamed answers of each provider are put together to what the whole answer would have been."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from memci.errors import InvalidMessageError
from memci.messages.streaming import Assembler, assembler, piece
from memci.messages.validation import validate

Value = dict[str, Any]


def fed(wire: str, pieces: Iterable[Mapping[str, Any]]) -> tuple[Assembler, str]:
    made = assembler(wire)
    return made, "".join(made.add(each) for each in pieces)


def chunk(finish: str | None = None, **delta: Any) -> Value:  # noqa: ANN401 (JSON values)
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CHAT = [
    chunk(role="assistant", content="", refusal=None),
    chunk(content="Let me "),
    chunk(content="look."),
    chunk(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": {"name": "find", "arguments": ""}}]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"q": '}}]),
    chunk(tool_calls=[{"index": 1, "id": "b", "type": "function", "function": {"name": "read", "arguments": ""}}]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": '"x"}'}}, {"index": 1, "function": {"arguments": "{}"}}]),
    chunk("tool_calls"),
    {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
]
CALL = {"id": "a", "type": "function", "function": {"name": "find", "arguments": '{"q": "x"}'}}
OTHER = {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def test_chat_completions() -> None:
    """Text, calls in parallel and usage of OpenAI's chunks make the message that the provider would have answered."""
    made, text = fed("openai", CHAT)
    assert [{"role": "assistant", "content": "Let me look.", "tool_calls": [CALL, OTHER]}] == made.messages()
    assert ("Let me look.", True, 7) == (text, made.complete, made.usage["prompt_tokens"])


def test_usage_stays_when_later_chunks_tell_none() -> None:
    """Of the counts that chunks tell the latest one stays, wherever in the stream it came."""
    told = [{**chunk(content="a"), "usage": {"total_tokens": tokens}} for tokens in (5, 6)]
    made, _ = fed("openai", [*told, {**chunk("stop"), "usage": None}, chunk()])
    assert {"total_tokens": 6} == made.usage


def test_empty_texts_take_nothing_back() -> None:
    """Providers that repeat role, id or name as an empty text in each chunk mean the one that they said first."""
    function = {"name": "find", "arguments": '{"q": '}
    first = chunk(role="assistant", tool_calls=[{"index": 0, "id": "a", "type": "function", "function": function}])
    rest = {"index": 0, "id": "", "type": "", "function": {"name": "", "arguments": '"x"}'}}
    made, _ = fed("openai", [first, chunk("tool_calls", role="", content="", tool_calls=[rest])])
    assert [{"role": "assistant", "content": "", "tool_calls": [CALL]}] == made.messages()


def test_chunks_that_contradict_each_other_are_taken_in() -> None:
    """Where the same key holds a text and then another value, or none where a number is due, nothing fails."""
    numbered = [{"index": None, "id": "a", **{key: CALL[key] for key in ("type", "function")}}]
    odd = [chunk(vendor="a"), chunk(vendor={"b": 1}), chunk(vendor="c"), chunk(content=[{"type": "text", "text": "x"}])]
    made, text = fed("openai", [*odd, chunk("tool_calls", tool_calls=numbered)])
    assert [
        {"role": "assistant", "vendor": "c", "content": [{"type": "text", "text": "x"}], "tool_calls": [CALL]}
    ] == made.messages()
    assert "" == text


def test_chat_that_breaks_off() -> None:
    """At any place the message so far can be sent again: no call is in it whose arguments are in parts."""
    for end in range(len(CHAT)):
        made, text = fed("openai", CHAT[:end])
        messages = made.messages()
        assert [] == validate(
            messages + [{"role": "tool", "tool_call_id": c["id"], "content": ""} for c in calls(messages)], "openai"
        )
        assert text == "".join(message["content"] or "" for message in messages)
    assert [] == fed("openai", CHAT[:1])[0].messages()


def calls(messages: list[Value]) -> list[Value]:
    return [call for message in messages for call in message.get("tool_calls", ())]


def test_other_choices_and_refusals() -> None:
    """Only the first choice counts; a refusal is kept; a call alone has no text."""
    made, text = fed("openai", [chunk(role="assistant", refusal="I "), chunk("stop", refusal="may not.")])
    assert ([{"role": "assistant", "content": None, "refusal": "I may not."}], "I may not.") == (made.messages(), text)
    second = chunk(content="two")
    second["choices"][0]["index"] = 1
    assert [] == fed("openai", [second])[0].messages()


ANTHROPIC: list[Value] = [
    {"type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": None,
        "usage": {"input_tokens": 9, "output_tokens": 1},
    }},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s1"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "a", "name": "find", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"q": '}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"x"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "b", "name": "now", "input": {}}},
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]  # fmt: skip


def test_anthropic() -> None:
    """Thoughts with their signature, text and calls, also one without arguments, and usage make Anthropic's message."""
    made, text = fed("anthropic", ANTHROPIC)
    (message,) = made.messages()
    assert ("assistant", "tool_use", {"input_tokens": 9, "output_tokens": 20}) == (
        message["role"],
        message["stop_reason"],
        message["usage"],
    )
    assert [
        {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "a", "name": "find", "input": {"q": "x"}},
        {"type": "tool_use", "id": "b", "name": "now", "input": {}},
    ] == message["content"]
    assert ("Let me look.", True, 9) == (text, made.complete, made.usage["input_tokens"])


def test_anthropic_that_breaks_off() -> None:
    """At any place the blocks so far are whole: no call in parts, no thought without its signature or what it led to."""
    for end in range(len(ANTHROPIC)):
        messages = fed("anthropic", ANTHROPIC[:end])[0].messages()
        for block in (block for message in messages for block in message["content"]):
            assert block["type"] != "tool_use" or block["input"] in ({"q": "x"}, {})
            assert block["type"] != "thinking" or block["signature"] == "s1"
            assert block["type"] != "text" or block["text"]
        assert not messages or messages[0]["content"][-1]["type"] != "thinking"
    assert "Let me " == fed("anthropic", ANTHROPIC[:8])[0].messages()[0]["content"][-1]["text"]


SAID = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
}
CALLED = {"type": "function_call", "call_id": "a", "name": "find", "arguments": "{}"}
THOUGHT = {"type": "reasoning", "id": "r", "summary": []}
RESPONSES: list[Value] = [
    {"type": "response.created", "response": {"output": []}},
    {"type": "response.output_item.done", "output_index": 0, "item": THOUGHT},
    {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Let me "},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "look."},
    {"type": "response.output_item.done", "output_index": 1, "item": SAID},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"},
    {"type": "response.output_item.done", "output_index": 2, "item": CALLED},
    {"type": "response.completed", "response": {"output": [THOUGHT, SAID, CALLED], "usage": {"input_tokens": 5}}},
]


def test_responses() -> None:
    """Items of the Responses API are those that the response has in the end."""
    made, text = fed("responses", RESPONSES)
    assert ([THOUGHT, SAID, CALLED], "Let me look.", True, 5) == (
        made.messages(),
        text,
        made.complete,
        made.usage["input_tokens"],
    )


def test_responses_that_break_off() -> None:
    """Whole items and the text so far are kept, a thought only with what it led to."""
    assert [] == fed("responses", RESPONSES[:3])[0].messages()
    messages = fed("responses", RESPONSES[:4])[0].messages()
    assert [THOUGHT, "Let me "] == [messages[0], messages[1]["content"][0]["text"]]
    assert [THOUGHT, SAID] == fed("responses", RESPONSES[:7])[0].messages()


def test_pieces_are_dicts_or_objects() -> None:
    """An SDK's object is what it gives itself as; anything else is refused."""

    class Sdk:
        def model_dump(self, *, mode: str, exclude_unset: bool) -> Value:
            return {"mode": mode, "set": exclude_unset}

    assert {"mode": "json", "set": True} == piece(Sdk())
    for bad in ("data: {}", None, 7, [chunk()]):
        with pytest.raises(InvalidMessageError, match="a piece of an answer"):
            piece(bad)


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_unknown_pieces_add_nothing(wire: str) -> None:
    """What a provider sends beside, or will send one day, changes nothing."""
    made, text = fed(wire, [{}, {"type": "response.new_thing"}, {"type": "ping"}, {"choices": None}])
    assert ("", [], False) == (text, made.messages(), made.complete)
    assert json.dumps(made.messages())


def test_calls_that_are_not_numbered_are_told_apart_by_their_ids() -> None:
    """Some servers give all parallel calls the index 0: another id begins another call."""
    pieces = [
        chunk(tool_calls=[{"index": 0, "id": name, "type": "function", "function": {"name": "weather", "arguments": text}}])
        for name, text in (("a", '{"city":'), ("b", "{}"))
    ]
    more = chunk("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": " "}}])
    made, _ = fed("openai", [pieces[0], chunk(tool_calls=[{"index": 0, "function": {"arguments": '"A"}'}}]), pieces[1], more])
    calls = made.messages()[0]["tool_calls"]
    assert [("a", '{"city":"A"}'), ("b", "{} ")] == [(call["id"], call["function"]["arguments"]) for call in calls]
