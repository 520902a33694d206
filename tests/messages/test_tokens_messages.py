"""What messages and tool schemas take of a window."""

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.errors import InvalidMessageError
from memci.messages.formats.openai import ROLES
from memci.messages.parts import text_of
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message, count_tools
from tests.word_counter import WordCounter

CALL = {"id": "call_1", "type": "function", "function": {"name": "find_order", "arguments": '{"order": 7}'}}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
                "unit": {"type": "string", "description": "The unit of temperature to return", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["location"],
        },
    },
}


@pytest.fixture(scope="module")
def o200k() -> TokenCounter:
    """Load the default encoding once."""
    return get_counter("o200k_base")


def cookbook_message(message: dict[str, str], counter: TokenCounter) -> int:
    """Count one message by the rule of the OpenAI cookbook."""
    return 3 + sum(counter.count(value) + (key == "name") for key, value in message.items())


def cookbook_tools(tools: list[dict[str, Any]], counter: TokenCounter) -> int:
    """Count tools by the rule of the OpenAI cookbook, for its older models, which take more."""
    tokens = 12 if tools else 0
    for tool in tools:
        function = tool["function"]
        tokens += 10 + counter.count(f"{function['name']}:{function['description'].removesuffix('.')}")
        properties = function["parameters"]["properties"]
        tokens += 3 if properties else 0
        for name, facts in properties.items():
            tokens += 3 + counter.count(f"{name}:{facts['type']}:{facts['description'].removesuffix('.')}")
            if "enum" in facts:
                tokens += -3 + sum(3 + counter.count(item) for item in facts["enum"])
    return tokens


def test_a_plain_message_is_counted_once() -> None:
    """Role and text take one call of the counter, and the cookbook's four tokens on top."""
    counter = WordCounter()
    assert count_message({"role": "user", "content": "where is my order"}, counter) == 8
    assert counter.calls == 1


@pytest.mark.parametrize("role", ROLES)
def test_plain_messages_count_as_in_the_cookbook(role: str, o200k: TokenCounter) -> None:
    """The count of a message of texts is the cookbook's, with and without a name."""
    plain = {"role": role, "content": "Where is my order, <|endoftext|>?"}
    named = {**plain, "name": "example_user"}
    assert cookbook_message(plain, o200k) == count_message(plain, o200k)
    assert cookbook_message(named, o200k) == count_message(named, o200k)


def test_the_cookbooks_example_counts_as_the_api_did(o200k: TokenCounter) -> None:
    """The cookbook's example conversation comes to 124 tokens, as it reports for gpt-4o."""
    helpful = "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."
    said = [
        ("example_user", "New synergies will help drive top-line growth."),
        ("example_assistant", "Things working well together will increase revenue."),
        ("example_user", "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."),
        ("example_assistant", "Let's talk later when we're less busy about how to do better."),
    ]
    last = "This late pivot means we don't have time to boil the ocean for the client deliverable."
    messages = [
        {"role": "system", "content": helpful},
        *({"role": "system", "name": name, "content": text} for name, text in said),
        {"role": "user", "content": last},
    ]
    assert sum(count_message(message, o200k) for message in messages) + REPLY_TOKENS == 124


@given(content=st.text(), name=st.none() | st.text(max_size=20))
def test_no_plain_message_is_below_the_cookbook(content: str, name: str | None) -> None:
    """Whatever the text, the count is not below the published rule."""
    counter = get_counter("o200k_base")
    message = {"role": "user", "content": content} | ({} if name is None else {"name": name})
    assert cookbook_message(message, counter) <= count_message(message, counter)


def test_text_parts_count_as_their_texts() -> None:
    """A content of text parts is counted by its texts, not by its JSON."""
    parts = [{"type": "text", "text": "one two"}, {"type": "text", "text": "three"}]
    assert count_message({"role": "user", "content": parts}, WordCounter()) == 7


def test_calls_count_id_name_and_arguments() -> None:
    """A tool call costs its id, its name, its arguments and a fixed framing, each time."""
    one = count_message({"role": "assistant", "content": None, "tool_calls": [CALL]}, WordCounter())
    two = count_message({"role": "assistant", "content": None, "tool_calls": [CALL, CALL]}, WordCounter())
    assert one == 4 + 8 + 1 + 3
    assert two - one == 8 + 1 + 3


def test_the_old_form_of_a_call_counts_too() -> None:
    """A function_call counts like a tool call."""
    message = {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{} {}"}}
    assert count_message(message, WordCounter()) == 4 + 8 + 1 + 3


def test_results_count_text_and_call_id() -> None:
    """A tool message costs its text and the id that it answers."""
    message = {"role": "tool", "tool_call_id": "call_1", "content": "no such order"}
    assert count_message(message, WordCounter()) == 4 + 1 + 3


PAGE = {"type": "text", "text": "page one"}
SCAN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * 5_000}}


def test_a_document_of_blocks_counts_as_they_do() -> None:
    """The parts of a document that is made of blocks cost what they cost beside it; its other keys are JSON."""
    document = {"type": "document", "source": {"type": "content", "content": [PAGE, SCAN, PAGE]}}
    assert count_message({"role": "user", "content": [document]}, WordCounter()) == 4 + 3 + 4 + 1568
    assert count_message({"role": "user", "content": [{**document, "title": "a b"}]}, WordCounter()) == 4 + 3 + 4 + 1568 + 2
    words = {"type": "document", "source": {"type": "content", "content": "one two"}}
    assert count_message({"role": "user", "content": [words]}, WordCounter()) == 4 + 3 + 2


def test_result_blocks_count_text_id_and_images() -> None:
    """A result inside a user message costs its text, the id that it answers, and its images."""
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "see here"}, image]}
    assert count_message({"role": "user", "content": [block]}, WordCounter()) == 4 + 3 + 1 + 2 + 1568
    assert count_message({"role": "user", "content": [{**block, "content": "see here"}]}, WordCounter()) == 4 + 3 + 1 + 2


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x" * 5_000}},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "title": "Report", "source": {"type": "content", "content": [PAGE, SCAN]}},
        {"type": "input_file", "filename": "a.pdf", "file_data": "JVBERi0x" * 5_000},
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "file", "file": {"file_data": "JVBERi0x" * 5_000, "filename": "a.pdf"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "search_result", "source": "s", "encrypted_content": "abcd" * 1_000, "content": []},
    ],
)
def test_blocks_in_results_count_as_those_beside_them(block: dict[str, Any], o200k: TokenCounter) -> None:
    """A file, picture or other block costs the same inside a result, whichever form the result has."""
    text = {"type": "text", "text": "see"}

    def nested(content: list[Any]) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]}

    def added(one: dict[str, Any], two: dict[str, Any]) -> int:
        return count_message(two, o200k) - count_message(one, o200k)

    item, tool = {"type": "function_call_output", "call_id": "t"}, {"role": "tool", "tool_call_id": "t"}
    beside = added({"role": "user", "content": [text]}, {"role": "user", "content": [text, block]})
    assert beside == added(nested([text]), nested([text, block]))
    assert beside == added({**item, "output": [text]}, {**item, "output": [text, block]})
    assert beside == added({**tool, "content": [text]}, {**tool, "content": [text, block]})


@pytest.mark.parametrize(
    ("mark", "block"),
    [
        ("[document] Report", {"type": "document", "title": "Report", "source": {"type": "base64", "data": "JVBERi0x"}}),
        ("Report\npage one", {"type": "document", "title": "Report", "source": {"type": "content", "content": [PAGE, SCAN]}}),
        ("page one", {"type": "document", "source": {"type": "content", "content": "page one"}}),
        ("[file] a.pdf", {"type": "input_file", "filename": "a.pdf", "file_data": "JVBERi0x"}),
        ("[file] a.pdf", {"type": "file", "file": {"filename": "a.pdf", "file_data": "JVBERi0x"}}),
        ("[sound]", {"type": "input_audio", "input_audio": {"data": "JVBERi0x", "format": "mp3"}}),
    ],
)
def test_texts_of_results_hold_no_bytes(mark: str, block: dict[str, Any]) -> None:
    """What is searched and recalled of a result has a mark where a file or sound holds its bytes."""
    content = [{"type": "text", "text": "see"}, block]
    nested = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]}
    assert f"see\n{mark}" == text_of(nested)
    assert f"see\n{mark}" == text_of({"type": "function_call_output", "call_id": "t", "output": content})


def test_unknown_keys_and_blocks_count_as_json(o200k: TokenCounter) -> None:
    """What memci does not know is not free."""
    plain = count_message({"role": "assistant", "content": "x"}, o200k)
    assert plain + o200k.count("step by step") <= count_message(
        {"role": "assistant", "content": "x", "thought": "step by step"}, o200k
    )
    block = {"type": "citation", "where": "page 3"}
    assert count_message({"role": "assistant", "content": [block]}, o200k) >= o200k.count("citation where page 3")


@pytest.mark.parametrize(
    "block",
    [
        lambda data: {"type": "image_url", "image_url": {"url": "data:image/png;base64," + data}},
        lambda data: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        lambda data: {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
    ],
)
def test_base64_is_never_counted_as_text(block: Any) -> None:  # noqa: ANN401 (a function that makes a block)
    """An attachment of megabytes costs what its kind costs, without a call of the counter."""
    counter = WordCounter()
    data = base64.b64encode(bytes(1_000_000)).decode()
    assert count_message({"role": "user", "content": [block(data)]}, counter) < 3_000
    assert counter.calls == 0


PDF = base64.b64encode(bytes(30_000)).decode()
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 512, 512) + bytes(60_000)).decode()
SCREEN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
FETCHED = {"type": "document", "title": "Report", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}


def plain(words: str) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": words}}


def fetched(document: dict[str, Any]) -> dict[str, Any]:
    content = {"type": "web_fetch_result", "url": "https://example.com", "content": document}
    return {"role": "assistant", "content": [{"type": "web_fetch_tool_result", "tool_use_id": "s", "content": content}]}


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (fetched(FETCHED), 3_001),
        (fetched({"type": "document", "source": {"type": "content", "content": [SCREEN, SCREEN]}}), 2 * 361),
        ({"role": "user", "content": [{"type": "document", "source": {"type": "content", "content": [SCREEN]}}]}, 361),
        (
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "code": "plot()",
                "outputs": [{"type": "image", "url": f"data:image/png;base64,{PNG}"}, {"type": "logs", "logs": "ok"}],
            },
            255,
        ),
        (
            {"role": "assistant", "content": None, "audio": {"id": "a", "data": PDF, "expires_at": 1, "transcript": "Hi."}},
            151,
        ),
        ({"role": "assistant", "content": "So.", "images": [{"image_url": {"url": f"data:image/png;base64,{PNG}"}}]}, 255),
        ({"role": "assistant", "content": "So.", "files": [f"data:application/pdf;base64,{PDF}"]}, 3_003),
    ],
    ids=["fetched PDF", "fetched pictures", "pictures in a document", "plot", "speech", "pictures made", "files made"],
)
def test_media_in_nested_places_cost_what_their_kind_costs(message: dict[str, Any], tokens: int, o200k: TokenCounter) -> None:
    """Pictures, sound and files are found wherever they stand; what is around them is counted as JSON."""
    counted = count_message(message, o200k)
    assert tokens < counted < tokens + 80


def test_texts_in_nested_places_count_as_texts(o200k: TokenCounter) -> None:
    """A document that holds plain text is text, and so is what an assistant said aloud, by its transcript."""
    short, long = fetched(plain("all the words")), fetched(plain("all the words " * 101))
    assert 300 <= count_message(long, o200k) - count_message(short, o200k) <= 310
    audio = {"id": "a", "data": "", "expires_at": 1, "transcript": "all the words " * 100}
    assert 300 < count_message({"role": "assistant", "content": None, "audio": audio}, o200k) < 360


def test_media_in_results_count_by_their_rules(o200k: TokenCounter) -> None:
    """Pictures and files inside results count by their rules; redacted thinking counts as it is."""
    nested = {"type": "tool_result", "tool_use_id": "t", "content": [SCREEN, FETCHED, {"type": "text", "text": "see"}]}
    assert 3_362 < count_message({"role": "user", "content": [nested, {"type": "text", "text": "so"}]}, o200k) < 3_450
    assert 3_362 < count_message({"role": "tool", "tool_call_id": "t", "content": nested["content"]}, o200k) < 3_450
    redacted = {"role": "assistant", "content": [{"type": "redacted_thinking", "data": PDF}]}
    assert 10_000 < count_message(redacted, o200k) < 10_010


def test_no_tools_cost_nothing(o200k: TokenCounter) -> None:
    """Without tools there is no framing for them."""
    assert count_tools([], o200k) == 0


def test_tools_are_not_below_the_cookbook(o200k: TokenCounter) -> None:
    """The cookbook's example tool costs at least what the cookbook says."""
    assert cookbook_tools([WEATHER], o200k) <= count_tools([WEATHER], o200k)
    assert cookbook_tools([WEATHER, WEATHER], o200k) <= count_tools([WEATHER, WEATHER], o200k)


WORDS = st.text("abcde fghij_.,XYZ-é中", max_size=30)
PROPERTY = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer"]), "description": WORDS}, optional={"enum": st.lists(WORDS, max_size=12)}
)


@given(st.text("abcdef_", min_size=1, max_size=12), WORDS, st.dictionaries(WORDS, PROPERTY, max_size=6))
def test_no_tool_is_below_the_cookbook(name: str, description: str, properties: dict[str, Any]) -> None:
    """Whatever the schema, the count is not below the published rule."""
    counter = get_counter("o200k_base")
    function = {"name": name, "description": description, "parameters": {"type": "object", "properties": properties}}
    tool = {"type": "function", "function": function}
    assert cookbook_tools([tool], counter) <= count_tools([tool], counter)


def test_a_tool_that_is_not_json_is_refused() -> None:
    """The error names the tool and the place in it."""
    with pytest.raises(InvalidMessageError) as caught:
        count_tools([WEATHER, {"name": "x", "parameters": {"default": {1, 2}}}], WordCounter())
    assert caught.value.path == "tools[1].parameters.default"
