"""What a model is asked of a page."""

import pytest

from memci.archive.summarizers.external.calling import continuation, summarize
from memci.archive.summarizers.external.model import (
    MOST_CHARACTERS,
    MOST_GIVEN,
    ModelSummarizer,
    Prompt,
    continuation_prompt,
    prompt,
)
from memci.archive.summarizers.summary import GivenPage
from memci.errors import ArgumentError
from memci.messages.formats import format as formats
from memci.messages.message import Message


def page(*texts: str) -> list[Message]:
    roles = ("user", "assistant")
    return [formats.get("openai").facts({"role": roles[place % 2], "content": text}) for place, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("I want to cancel my order, please", "Sum up"),
        ("Ich möchte meinen Vertrag kündigen, und das ist nicht neu", "Fasse"),
        ("我想找一家评分高的酒店，最好在故宫附近", "请把"),
    ],
)
def test_it_is_asked_in_the_language_of_the_page(text: str, begins: str) -> None:
    """The task comes as a system message with the room that there is, the page after it as data."""
    system, user = prompt(page(text, "ok"), 40)
    assert system["content"].startswith(begins)
    assert " 28 " in system["content"]
    assert "$" not in system["content"]
    assert f"<conversation>\nuser: {text}\n\nassistant: ok\n</conversation>" == user["content"]


def test_calls_and_results_are_told() -> None:
    """A call with its arguments, a result with its text, and no bytes of files."""
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": "here"}'}}
    facts = formats.get("openai").facts
    values = (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
    )
    said = prompt([facts(value) for value in values], 40)[1]["content"]
    assert 'assistant → look: {"at": "here"}\n\ntool: found' in said


def test_of_a_long_page_both_ends_are_shown() -> None:
    """No request grows with its page for ever."""
    said = prompt(page("begin " + "x" * 100_000 + " end"), 40)[1]["content"]
    assert len(said) < MOST_CHARACTERS + 100
    assert "begin" in said
    assert "[…]" in said
    assert "end\n</conversation>" in said


def test_anything_that_answers_is_a_model() -> None:
    """A function, or one that is awaited; its name goes with the version of the prompt."""

    def ask(messages: Prompt) -> str:
        return f"{len(messages)} messages"

    async def ask_later(messages: Prompt) -> str:
        return ask(messages)

    for each in (ask, ask_later):
        summarizer = ModelSummarizer(each, name="parrot")
        assert "2 messages" == summarize(summarizer, page("hello"), 24, 60).title
        assert "parrot (prompt 1)" == summarizer.name
    with pytest.raises(ArgumentError):
        ModelSummarizer("gpt", name="gpt")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("I want to cancel my order, please", "Sum up what"),
        ("Ich möchte meinen Vertrag kündigen, und das ist nicht neu", "Fasse zusammen, wo"),
        ("我想找一家评分高的酒店，最好在故宫附近", "请概括"),
    ],
)
def test_of_a_session_it_is_given_what_was_written_before_and_the_pages(text: str, begins: str) -> None:
    """The task is in the language of the pages; what was written before, entries and messages follow as data."""
    pages = [GivenPage(index="usr-1..3", entry="[usr-1..3] 3 pages"), GivenPage(index="usr-4", messages=tuple(page(text, "ok")))]
    system, user = continuation_prompt("", pages, 300)
    assert system["content"].startswith(begins)
    assert "210 " in system["content"]
    assert "$" not in system["content"]
    shown = f"<conversation>\n\nusr-1..3\n[usr-1..3] 3 pages\n\nusr-4\nuser: {text}\n\nassistant: ok\n\n</conversation>"
    assert shown == user["content"]
    assert f"<summary>\nGoal: it\n</summary>\n\n{shown}" == continuation_prompt("Goal: it", pages, 300)[1]["content"]


def test_many_pages_share_the_room_of_a_request() -> None:
    """Of each of many long pages both ends are shown, and no request grows with them for ever."""
    pages = [
        GivenPage(index=f"usr-{number}", messages=tuple(page(f"begin{number} {'x' * 30_000} end{number}")))
        for number in range(20)
    ]
    said = continuation_prompt("", pages, 300)[1]["content"]
    assert len(said) < MOST_GIVEN + 1_000
    assert all(f"begin{number}" in said and f"end{number}" in said for number in range(20))


def test_a_model_writes_continuations() -> None:
    """Its first line is the title, the others are lines."""
    summarizer = ModelSummarizer(lambda messages: f"Goal: {len(messages)}\n- Open: all", name="m")
    summary = continuation(summarizer, "", [GivenPage(index="usr-1", messages=tuple(page("hi")))], 300, 60)
    assert ("Goal: 2", ("Open: all",)) == (summary.title, summary.lines)
