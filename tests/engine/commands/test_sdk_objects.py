"""The objects that SDKs give are messages: those of the openai package, and models of pydantic in Anthropic's shapes."""

from collections.abc import Callable
from typing import Any

import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

import memci
from memci.errors import InvalidMessageError
from memci.messages.codec import MessageLike
from tests.engine.sessions import open_session

Value = dict[str, Any]

USER: Value = {"role": "user", "content": "go"}
ARGUMENTS = '{"index":"usr-1"}'


def completion(**message: object) -> ChatCompletion:
    """Make what a client returns; nothing of it is checked, as in the client."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return ChatCompletion.construct(id="x", created=1, model="m", object="chat.completion", choices=[choice])


class Block(BaseModel):
    """A block of an answer of Anthropic's."""

    type: str
    text: str | None = None
    citations: list[Value] | None = None
    id: str | None = None
    name: str | None = None
    input: Value | None = None


class Answer(BaseModel):
    """An answer of Anthropic's."""

    id: str = "msg_1"
    role: str = "assistant"
    type: str = "message"
    model: str
    stop_reason: str | None
    stop_sequence: str | None = None
    usage: Value
    content: list[Block]


def answer(*blocks: Block) -> Answer:
    return Answer(id="msg_2", role="assistant", model="claude", stop_reason=None, usage={"input_tokens": 3}, content=list(blocks))


def test_a_message_of_a_completion_is_taken_as_it_is() -> None:
    """``choices[0].message`` comes back as its dump, and is sent without what only an answer has."""
    session = open_session()
    session.append(USER)
    message = completion(content="done", refusal=None, annotations=[]).choices[0].message
    entry = session.append(message)
    assert message.model_dump(mode="json", exclude_unset=True) == entry.message == list(session.messages())[1]
    assert {"content": "done", "role": "assistant", "refusal": None, "annotations": []} == entry.message
    assert [USER, {"role": "assistant", "content": "done"}] == session.window().messages


def test_a_call_of_a_completion_is_carried_out() -> None:
    """The tool calls of a message are given to ``handle_tool_call`` as they are."""
    session = open_session()
    session.append(USER)
    call = {"id": "a", "type": "function", "function": {"name": "read_page", "arguments": ARGUMENTS}}
    message = completion(content=None, tool_calls=[call]).choices[0].message
    session.append(message)
    assert message.tool_calls
    session.append(session.handle_tool_call(message.tool_calls[0]))
    window = session.window().messages
    assert [{"role": "assistant", "content": None, "tool_calls": [call]}] == window[1:2]
    assert "go" in window[2]["content"]
    assert [] == memci.validate(window)


def test_the_output_of_a_response_is_taken_in_one_go() -> None:
    """``extend(response.output)`` takes reasoning, messages and calls; each goes back as the provider takes it."""
    items = [
        {"type": "reasoning", "id": "rs", "summary": [], "status": None, "encrypted_content": None, "content": None},
        {
            "type": "message",
            "id": "msg",
            "role": "assistant",
            "status": "completed",
            "phase": None,
            "content": [{"type": "output_text", "text": "so", "annotations": [], "logprobs": None}],
        },
        {"type": "function_call", "id": "fc", "call_id": "a", "name": "read_page", "arguments": ARGUMENTS, "status": "completed"},
    ]
    response = Response.construct(output=items)
    session = open_session(format="responses")
    session.append(USER)
    session.extend(response.output)
    session.append(session.handle_tool_call(response.output[2]))
    assert items == list(session.messages())[1:4]
    assert all(value is not None for item in session.window().messages for value in item.values())
    assert [] == memci.validate(session.window().messages, "responses")


def test_an_answer_of_anthropic_is_taken_as_it_is() -> None:
    """The whole ``Message`` comes back as its dump; its role and content are sent, and its usage takes no room."""
    session = open_session(format="anthropic")
    session.append(USER)
    said = answer(Block(type="text", text="so", citations=None), Block(type="tool_use", id="a", name="f", input={"a": 1}))
    session.append(said)
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
    session.append(result)
    text = {"type": "text", "text": "so", "citations": None}
    content = [text, {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}]
    kept = {"id": "msg_2", "role": "assistant", "model": "claude", "stop_reason": None, "usage": {"input_tokens": 3}}
    assert {**kept, "content": content} == list(session.messages())[1]
    assert [USER, {"role": "assistant", "content": content}, result] == session.window().messages
    plain = open_session(format="anthropic")
    plain.extend([USER, {"role": "assistant", "content": content}, result])
    assert plain.window().tokens == session.window().tokens


def test_objects_inside_a_message_are_taken_too() -> None:
    """``{"role": "assistant", "content": response.content}`` is a message as well."""
    session = open_session(format="anthropic")
    session.append(USER)
    session.append({"role": "assistant", "content": answer(Block(type="text", text="so")).content})
    assert {"role": "assistant", "content": [{"type": "text", "text": "so"}]} == session.window().messages[1]


def test_a_block_of_a_call_is_carried_out() -> None:
    """A ``tool_use`` block is given to ``handle_tool_call`` as it is."""
    session = open_session(format="anthropic")
    session.append(USER)
    block = Block(type="tool_use", id="a", name="read_page", input={"index": "usr-1"})
    session.append(answer(block))
    session.append(session.handle_tool_call(block))
    assert [] == memci.validate(session.window().messages, "anthropic")


class Said(BaseModel):
    """A message of an application's own."""

    role: str
    content: str
    name: str | None = None


def test_the_system_part_and_conversions_take_objects() -> None:
    """``set_system``, ``convert`` and ``validate`` read messages as ``append`` does."""
    session = open_session()
    session.set_system([Said(role="system", content="Be brief.")])
    session.append(Said(role="user", content="go", name=None))
    assert [{"role": "system", "content": "Be brief."}, USER] == session.window().messages
    assert [{"role": "user", "content": "go", "name": None}] == list(session.messages())[1:]
    assert [] == memci.validate([Said(role="user", content="go")])
    done = memci.convert([answer(Block(type="text", text="so"))], from_="anthropic", to="openai")
    assert ([{"role": "assistant", "content": "so"}], ()) == (done.messages, done.lost)


@pytest.mark.parametrize("take", [memci.Session.append, memci.Session.handle_tool_call])
def test_the_class_is_no_message(take: Callable[[memci.Session, MessageLike], object]) -> None:
    """A class has no values: giving it instead of an object is an error of the message."""
    session = open_session()
    with pytest.raises(InvalidMessageError, match="not a "):
        take(session, Said)  # type: ignore[arg-type]
