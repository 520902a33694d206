"""What is asked after the last window, and what of the answer is whose."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.external.extension import Part, extension, split
from memci.archive.summarizers.summary import SentWindow
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.message import Message

LOOK = {"type": "function", "function": {"name": "look", "parameters": {"b": 1, "a": 2.50}}}


def page(*texts: str) -> list[Message]:
    roles = ("user", "assistant")
    return [formats.get("openai").facts({"role": roles[place % 2], "content": text}) for place, text in enumerate(texts)]


def window_of(*messages: Message) -> SentWindow:
    raws = tuple(message.raw for message in messages)
    return SentWindow(
        seq=9, at=datetime.now(UTC), format="openai", tokens=99, raws=raws, system=b"null", tools=codec.encode([LOOK]), pages={}
    )


def test_it_begins_as_the_window_did() -> None:
    """Byte for byte up to the closing bracket, whatever the texts hold; the tools are the same, and one message is new."""
    said = page("where is \ud800 it? 9" + "9" * 400, "there,\nin \u2028 the \u0000 box", "thanks 😀")
    asked = extension(window_of(*said), [Part(index="usr-1", messages=said[:2], max_tokens=40)])
    raws = b",".join(message.raw for message in said)
    assert asked.to_json().startswith(b"[" + raws + b",")
    assert asked.messages == [*(message.value() for message in said), {"role": "user", "content": asked.messages[3]["content"]}]
    assert (codec.encode([LOOK]), None) == (codec.encode(asked.tools), asked.system)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("I want to cancel my order, please", "The conversation stops"),
        ("Ich möchte meinen Vertrag kündigen, und das ist nicht neu", "Hier hält"),
        ("我想找一家评分高的酒店，最好在故宫附近", "对话到此"),
    ],
)
def test_parts_are_told_by_how_they_begin_and_end(text: str, begins: str) -> None:
    """Each has a line with its room in words, in a task in the language of what is said; none holds a mark of contents pages."""
    parts = [
        Part(index="usr-4", messages=page(text, "x" * 500 + " as you like"), max_tokens=40),
        Part(index="usr-5", messages=page(text), max_tokens=100),
    ]
    told = extension(window_of(*page(text)), parts).messages[-1]["content"]
    assert told.startswith(begins)
    assert f"\nusr-4 (28): user: {text} […] assistant: {'x' * 48} as you like\nusr-5 (70): user: {text}\n" in told
    assert not {"$", "[usr"} & set(told.split())


@pytest.mark.parametrize(
    "answer",
    [
        "usr-1: one\nusr-2: two, with\nmore",
        "Here are the entries:\n\n**usr-1**: one\n**usr-2:** two, with\n  more",
        "- usr-2: two, with\n- more\n- usr-1 (28): one\n- usr-7: of no page that was asked of",
        "[usr-1] one\n[usr-2] two, with\nmore\n\nusr-1: again",
        "usr-1：one\n\nusr-2\ntwo, with\nmore",
        "- **[usr-1]** (28) – one\n- **[usr-2]** (28) – two, with\nmore",
        "| page | entry |\n| usr-1 | one |\n| usr-2 | two, with\nmore",
    ],
)
def test_an_answer_is_split(answer: str) -> None:
    """By index, however models set it apart; what is before the first, twice or of other pages is left out."""
    found = split(as_summary(answer), ["usr-1", "usr-2", "usr-3"])
    assert {"usr-1": ("one", ()), "usr-2": ("two, with", ("more",))} == {
        index: (each.title, each.lines) for index, each in found.items()
    }


def test_an_answer_without_indexes() -> None:
    """It is that of the only page, and of none where there are several; a word with a number begins no other page."""
    said = as_summary("covid-19: what was asked\nand more")
    assert {} == split(said, ["usr-1", "usr-2"])
    assert {"usr-1": said} == split(said, ["usr-1"])


@given(st.dictionaries(st.integers(1, 99), st.lists(st.text("abc .é中", min_size=1), min_size=1, max_size=3), min_size=1))
def test_what_is_said_of_a_page_comes_back(texts: dict[int, list[str]]) -> None:
    """Lines below an index are those of its page, as they are read where it is asked for on its own."""
    answer = "\n".join(f"usr-{number}: " + "\n".join(lines) for number, lines in texts.items())
    found = split(as_summary(answer), [f"usr-{number}" for number in texts])
    alone = {f"usr-{number}": as_summary("\n".join(lines)) for number, lines in texts.items()}
    assert {index: (each.title, each.lines) for index, each in alone.items() if each.title} == {
        index: (each.title, each.lines) for index, each in found.items()
    }
