"""Messages of one format in another: what comes through, what is named as lost, and what is refused."""

import itertools
from typing import Any

import pytest

import memci
from memci.errors import ConfigError, InvalidMessageError

Value = dict[str, Any]

FORMATS = ("openai", "responses", "anthropic")

PICTURE = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="

LOOK: Value = {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}
CALL: Value = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
SOURCE: Value = {"type": "text", "media_type": "text/plain", "data": "words"}

CHAT: list[Value] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": PICTURE}}]},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}},
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "b", "content": "two"},
    {"role": "tool", "tool_call_id": "a", "content": "one"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}]},
]


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(FORMATS, 2)))
def test_what_all_formats_say_comes_back(first: str, second: str) -> None:
    """Texts, pictures, files, calls and results survive the way through two other formats, and each is good on the way."""
    messages: list[Value] = CHAT
    for here, there in itertools.pairwise(["openai", first, second, "openai"]):
        done = memci.convert(messages, from_=here, to=there)
        assert () == done.lost
        messages = done.messages
        system = sum(value.get("role") == "system" for value in messages) if there == "anthropic" else 0
        assert [] == memci.validate(messages[system:], there)
    assert CHAT == messages


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_format_gives_the_same_messages(name: str) -> None:
    """Where there is nothing to convert the messages come back equal, unknown keys included."""
    messages = [{"role": "user", "content": "a", "x": 1}]
    assert messages == memci.convert(messages, from_=name, to=name).messages


def test_the_forms_are_the_providers() -> None:
    """One conversation in the words of each provider."""
    expected = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "two"},
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
            ],
        },
        {"role": "assistant", "content": "Done."},
    ]
    assert expected == memci.convert(CHAT[:6], from_="openai", to="anthropic").messages
    items = memci.convert(CHAT[2:4], from_="openai", to="responses").messages
    assert [
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"at":1}'},
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "two"},
    ] == items


@pytest.mark.parametrize(
    ("value", "from_", "to", "what"),
    [
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}]},
            "anthropic",
            "openai",
            "thinking",
        ),
        ({"type": "reasoning", "id": "rs", "summary": []}, "responses", "anthropic", "reasoning"),
        ({"type": "web_search_call", "id": "ws"}, "responses", "openai", "web_search_call"),
        (
            {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search"}]},
            "anthropic",
            "openai",
            "server",
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "e"}}]},
            "anthropic",
            "openai",
            "cache_control",
        ),
        ({"role": "user", "content": "x", "name": "Ada"}, "openai", "anthropic", "name"),
        ({"role": "tool", "tool_call_id": "a", "content": "x", "name": "find"}, "openai", "anthropic", "name"),
        ({"role": "tool", "tool_call_id": "a", "content": "x", "name": "find"}, "openai", "responses", "name"),
        ({"role": "user", "content": ""}, "openai", "anthropic", "without words"),
        ({"role": "user", "content": [{"type": "text", "text": "x", "cache": 1}]}, "openai", "anthropic", "cache"),
        ({"role": "user", "content": [{**LOOK, "image_url": {"url": PICTURE, "x": 1}}]}, "openai", "responses", "keys x"),
        ({"role": "user", "content": [LOOK]}, "openai", "anthropic", "detail low"),
        (
            {"role": "user", "content": [{"type": "input_image", "image_url": "a", "detail": "high"}]},
            "responses",
            "anthropic",
            "high",
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [{**CALL, "extra_content": 1}]},
            "openai",
            "anthropic",
            "extra_content",
        ),
        ({"role": "user", "content": [{"type": "document", "source": SOURCE, "title": "T"}]}, "anthropic", "openai", "title"),
        ({"role": "assistant", "content": "I am \n"}, "openai", "anthropic", "white space"),
    ],
)
def test_what_is_lost_is_named(value: Value, from_: str, to: str, what: str) -> None:
    """What only one provider understands is left out, and the conversion says where and what."""
    (lost,) = memci.convert([value], from_=from_, to=to).lost
    assert lost.place.startswith("messages[0]")
    assert what in str(lost)


def test_how_closely_to_look_comes_through() -> None:
    """The detail of a picture stays in OpenAI's formats."""
    items = memci.convert([{"role": "user", "content": [LOOK]}], from_="openai", to="responses")
    assert ("low", ()) == (items.messages[0]["content"][0]["detail"], items.lost)
    assert [LOOK] == memci.convert(items.messages, from_="responses", to="openai").messages[0]["content"]


def test_what_the_model_goes_on_with_has_no_white_space_at_its_end() -> None:
    """Anthropic refuses white space at the end of a last text of the assistant, and takes it anywhere else."""
    chat = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "I am "}]
    done = memci.convert([*chat, *chat], from_="openai", to="anthropic")
    assert ["Go.", "I am ", "Go.", "I am"] == [value["content"] for value in done.messages]
    assert ["messages[3]"] == [lost.place for lost in done.lost]
    assert [] == memci.validate(done.messages, "anthropic")


def test_an_empty_text_stays_a_text_between_the_formats_of_openai() -> None:
    """It is no missing content, which the chat format refuses of a user."""
    (chat,) = memci.convert([{"role": "user", "content": ""}], from_="responses", to="openai").messages
    assert {"role": "user", "content": ""} == chat


def test_keys_of_an_answer_are_not_lost() -> None:
    """What only an answer has is no part of what was said."""
    answer = {"role": "assistant", "content": "Done.", "id": "msg", "type": "message", "usage": {"input_tokens": 1}}
    done = memci.convert([answer], from_="anthropic", to="openai")
    assert ([{"role": "assistant", "content": "Done."}], ()) == (done.messages, done.lost)


LATE: dict[str, list[Value]] = {
    "openai": [
        {"role": "user", "content": "go"},
        {**CHAT[2], "content": None},
        CHAT[3],
        CHAT[5],
        CHAT[4],
        {"role": "user", "content": "and?"},
    ],
    "anthropic": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in "ab"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "two"}]},
        {"role": "assistant", "content": "Done."},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "one"}, {"type": "text", "text": "and?"}],
        },
    ],
    "responses": [
        {"role": "user", "content": "go"},
        *({"type": "function_call", "call_id": each, "name": "look", "arguments": "{}"} for each in "ab"),
        {"type": "function_call_output", "call_id": "b", "output": "two"},
        {"type": "message", "role": "assistant", "content": "Done."},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"role": "user", "content": "and?"},
    ],
}


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(FORMATS, 2)))
def test_a_late_result_comes_after_its_call(first: str, second: str) -> None:
    """Each result stands after its call, and what was said between them after both, as the provider wants it."""
    done = memci.convert(LATE[first], from_=first, to=second)
    assert () == done.lost
    assert [] == memci.validate(done.messages, second)
    words = [word for value in done.messages for word in ("two", "one", "Done.", "and?") if f"'{word}'" in str(value)]
    assert ["two", "one", "Done.", "and?"] == words


def test_results_of_calls_with_one_id_keep_their_calls() -> None:
    """A result answers the newest call of its id that has none, and free text stays free in between other calls."""
    calls = [{"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": str(number)} for number in range(2)]
    found = [{"type": "custom_tool_call_output", "call_id": "c", "output": f"row {number}"} for number in range(2)]
    user = {"type": "message", "role": "user", "content": "on"}
    items = [user, calls[0], user, calls[1], user, found[1], found[0]]
    chat = memci.convert(items, from_="responses", to="openai").messages
    assert [] == memci.validate(chat, "openai")
    again = memci.convert(chat, from_="openai", to="responses").messages
    assert [user, calls[0], found[0], user, calls[1], found[1], user] == again


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_calls_of_one_answer_with_one_id_are_told_apart(name: str) -> None:
    """Items of one answer may have one id, the calls of a message may not: later ones get others, and so do their results."""
    calls = [{"type": "function_call", "call_id": "a", "name": "look", "arguments": f'{{"at":{number}}}'} for number in (1, 2)]
    found = [{"type": "function_call_output", "call_id": "a", "output": text} for text in ("of 2", "of 1")]
    done = memci.convert([{"role": "user", "content": "go"}, *calls, *found], from_="responses", to=name)
    assert [] == memci.validate(done.messages, name)
    back = memci.convert(done.messages, from_=name, to="responses").messages[1:]
    assert [("a", '{"at":1}'), ("a-2", '{"at":2}')] == [(item["call_id"], item["arguments"]) for item in back[:2]]
    assert [("a-2", "of 2"), ("a", "of 1")] == [(item["call_id"], item["output"]) for item in back[2:]]


def test_losses_are_named_in_the_order_of_the_messages() -> None:
    """Also where one is found when the messages are read and another when they are written."""
    use = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    failed = {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
    messages = [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [failed]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}]},
    ]
    lost = memci.convert(messages, from_="anthropic", to="openai").lost
    assert ["messages[1]", "messages[2].content[0]"] == [problem.place for problem in lost]


@pytest.mark.parametrize("first", [[{"role": "user", "content": ""}], []], ids=["empty", "none"])
def test_a_conversation_for_anthropic_begins_with_the_user(first: list[Value]) -> None:
    """A short message stands where the user said nothing before the assistant, after the system prompt."""
    done = memci.convert([CHAT[0], *first, CHAT[5], {"role": "user", "content": "x"}], from_="openai", to="anthropic")
    assert ["system", "user", "assistant", "user"] == [value["role"] for value in done.messages]
    assert [] == memci.validate(done.messages[1:], "anthropic")
    assert len(first) == len(done.lost)


def test_an_error_in_a_result_is_kept_or_named() -> None:
    """That a tool failed is known to Anthropic's format only."""
    block = {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
    done = memci.convert([{"role": "user", "content": [block]}], from_="anthropic", to="openai")
    assert [{"role": "tool", "tool_call_id": "a", "content": "no"}] == done.messages
    assert ["messages[0]: that the result is an error"] == list(map(str, done.lost))


def test_ids_are_made_ones_that_anthropic_takes() -> None:
    """An id that repeats, or holds other characters, gets another one, and its result with it."""
    call = {"role": "assistant", "tool_calls": [{"id": "a b", "type": "function", "function": {"name": "x", "arguments": ""}}]}
    answer = {"role": "tool", "tool_call_id": "a b", "content": "y"}
    messages = memci.convert([CHAT[1], call, answer, call, answer], from_="openai", to="anthropic").messages
    assert [] == memci.validate(messages, "anthropic")
    assert ["a_b", "a_b-2"] == [value["content"][0]["id"] for value in messages if value["role"] == "assistant"]


@pytest.mark.parametrize(
    ("value", "from_", "to", "path"),
    [
        (
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
            "openai",
            "anthropic",
            "messages[0].content[0]",
        ),
        (
            {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
            "openai",
            "responses",
            "messages[0].content[0]",
        ),
        ({"type": "computer_call", "call_id": "c", "action": {}}, "responses", "openai", "messages[0]"),
        ({"type": "function_call", "call_id": "c", "name": "x", "arguments": "[1]"}, "responses", "anthropic", "messages[0]"),
        ({"role": "user", "content": [{"type": "search_result"}]}, "anthropic", "openai", "messages[0].content[0]"),
        ({"role": "king", "content": "x"}, "openai", "anthropic", "messages[0].role"),
    ],
)
def test_what_cannot_be_said_is_an_error(value: Value, from_: str, to: str, path: str) -> None:
    """Content that the other format has no form for is refused, with its place."""
    with pytest.raises(InvalidMessageError) as caught:
        memci.convert([value], from_=from_, to=to)
    assert path == caught.value.path


def test_pictures_in_results_need_a_format_that_takes_them() -> None:
    """A picture in a result goes from Anthropic to the Responses API, and not to the chat format."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    block = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "source": source}]}
    messages = [{"role": "user", "content": [block]}]
    (item,) = memci.convert(messages, from_="anthropic", to="responses").messages
    assert [{"type": "input_image", "image_url": PICTURE, "detail": "auto"}] == item["output"]
    with pytest.raises(InvalidMessageError):
        memci.convert(messages, from_="anthropic", to="openai")


def test_free_text_of_a_custom_tool_is_told() -> None:
    """The input of a custom tool stays free text between OpenAI's formats, and stands in an object for Anthropic."""
    item = {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT 1"}
    (chat,) = memci.convert([item], from_="responses", to="openai").messages
    assert {"name": "sql", "input": "SELECT 1"} == chat["tool_calls"][0]["custom"]
    assert [item] == memci.convert([chat], from_="openai", to="responses").messages
    done = memci.convert([item], from_="responses", to="anthropic")
    assert {"input": "SELECT 1"} == done.messages[-1]["content"][0]["input"]
    assert 1 == len(done.lost)


def test_a_format_that_is_not_there_is_an_error() -> None:
    """The error names the formats that there are."""
    with pytest.raises(ConfigError, match="openai, responses, anthropic"):
        memci.convert([], from_="openai", to="gemini")


def test_messages_tell_what_they_were_made_of() -> None:
    """Each message has the number of its origin: results are parted and joined, and come directly after their call."""
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in "ab"]
    chat: list[dict[str, Any]] = [
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "And?"},
        {"role": "tool", "tool_call_id": "a", "content": "late"},
    ]
    assert (0, 1, 2, 3) == memci.convert(chat, from_="openai", to="openai").origins
    done = memci.convert(chat, from_="openai", to="anthropic")
    assert [("user", 0), ("assistant", 0), ("user", 1), ("user", 2)] == [
        (message["role"], origin) for message, origin in zip(done.messages, done.origins, strict=True)
    ]
    back = memci.convert(done.messages, from_="anthropic", to="openai")
    assert [0, 1, 2, 2, 3] == list(back.origins)
    assert (0, 0, 0, 1, 3, 2) == memci.convert(chat, from_="openai", to="responses").origins
