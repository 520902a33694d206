"""Conversations are read from files, and what is wrong with one is said with its file."""

import json
from pathlib import Path
from typing import Any

import pytest

from memci.errors import ConfigError
from memci.quality.conversation import read_conversation
from memci.quality.timestamp import iso_time
from tests.quality.small import MESSAGES, user


def written(path: Path, **facts: object) -> Path:
    path.write_text(json.dumps(facts), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("place", "messages"),
    [
        ("messages[0]", [{"role": "alien", "content": "x"}]),
        ("messages[1]", [user("x"), {"role": "tool", "tool_call_id": "z", "content": "r"}]),
        ("messages[9]", [*MESSAGES, MESSAGES[5]]),
    ],
)
def test_a_bad_message_is_an_error_with_file_and_place(tmp_path: Path, place: str, messages: list[dict[str, Any]]) -> None:
    """A message that no engine could take is found when the file is read: a wrong role, a result of no call, or a second one."""
    path = written(tmp_path / "talk.json", messages=messages)
    with pytest.raises(ConfigError, match="is no conversation") as caught:
        read_conversation(path)
    assert str(path) == caught.value.path
    assert place in str(caught.value)


def test_good_messages_are_read_with_their_times(tmp_path: Path) -> None:
    """Calls with their results are read; a timestamp that is no time is left out."""
    times = ["1:56 pm on 8 May, 2023", "99:99 pm on 88 May, 2023", None, *["yesterday"] * 6]
    conversation = read_conversation(written(tmp_path / "talk.json", messages=MESSAGES, timestamps=times))
    assert conversation.messages == MESSAGES
    assert conversation.times == ("2023-05-08T13:56:00", *[None] * 8)


def test_messages_are_read_as_windows_show_them(tmp_path: Path) -> None:
    """Keys of an answer that hold nothing are left out, so that evidence is found in a window."""
    said = {"role": "assistant", "content": "hello"}
    path = written(tmp_path / "talk.json", messages=[{**said, "refusal": None, "annotations": []}])
    assert (said,) == read_conversation(path).messages


@pytest.mark.parametrize("text", ["99:99 pm on 88 May, 2023", "1:56 pm on 30 Feb, 2023", "1:56 pm on 8 Foo, 2023", "yesterday"])
def test_what_is_no_time_is_none(text: str) -> None:
    """A form of a time with numbers that no clock or calendar has is no time."""
    assert iso_time(text) is None


QUESTION = {"question": "Which cat?", "answer": "Tango", "category": "facts", "evidence": [1]}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"question": None}, "questions[1].question: None asks nothing"),
        ({"question": "  "}, "questions[1].question: '  ' asks nothing"),
        ({"answer": None}, "questions[1].answer: None is neither text nor a number"),
        ({"answer": ["Tango"]}, "questions[1].answer: ['Tango'] is neither text nor a number"),
        ({"answer": True}, "questions[1].answer: True is neither"),
        ({"category": {}}, "questions[1].category: {} is neither text nor a number"),
        ({"evidence": "0"}, "questions[1].evidence: '0' is no list of numbers of messages: they are whole, from 0 to 8"),
        ({"evidence": None}, "questions[1].evidence: None is no list"),
        ({"evidence": ["0"]}, "questions[1].evidence: ['0'] is no list"),
        ({"evidence": [0.9]}, "questions[1].evidence: [0.9] is no list"),
        ({"evidence": [True]}, "questions[1].evidence: [True] is no list"),
        ({"evidence": [3, 9]}, "questions[1].evidence: [3, 9] is no list of numbers of messages: they are whole, from 0 to 8"),
        ({"evidence": [-1]}, "questions[1].evidence: [-1] is no list"),
    ],
)
def test_a_bad_question_is_an_error_with_its_number(tmp_path: Path, changed: dict[str, object], told: str) -> None:
    """What cannot be asked, or has no such answer or evidence, is told with the file and place, and not measured."""
    path = written(tmp_path / "talk.json", messages=MESSAGES, questions=[QUESTION, {**QUESTION, **changed}])
    with pytest.raises(ConfigError) as caught:
        read_conversation(path)
    assert str(path) == caught.value.path
    assert told in str(caught.value)


@pytest.mark.parametrize("need", [{"kind": "file"}, {"kind": "word", "text": "x"}, {"kind": "file", "text": ""}])
def test_a_bad_need_is_an_error_with_its_number(tmp_path: Path, need: dict[str, str]) -> None:
    """A need without a text, or of an unknown kind, is told with the file and place."""
    path = written(tmp_path / "talk.json", messages=MESSAGES, needs=[{"kind": "file", "text": "a.py"}, need])
    with pytest.raises(ConfigError, match=r"needs\[1\]: .* is no need") as caught:
        read_conversation(path)
    assert str(path) == caught.value.path


@pytest.mark.parametrize("missing", ["question", "answer", "evidence"])
def test_a_part_of_a_question_that_is_missing_is_an_error(tmp_path: Path, missing: str) -> None:
    """The error names the part, and shows what a question is."""
    question = {key: value for key, value in QUESTION.items() if key != missing}
    path = written(tmp_path / "talk.json", messages=MESSAGES, questions=[question])
    with pytest.raises(ConfigError, match=rf"questions\[0\] has no {missing}: give .*numbers of messages"):
        read_conversation(path)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"questions": {"question": "?"}}, "questions: give a list of objects"),
        ({"questions": ["Which cat?"]}, "questions: give a list of objects"),
        ({"needs": "a.py"}, "needs: give a list of objects"),
        ({"timestamps": "yesterday"}, "timestamps: give a list with one for each message"),
        ({"lang": None}, "lang: None is no language"),
        ({"messages": {"role": "user"}}, "only the messages, each an object, are needed"),
        ({"messages": ["hi"]}, "only the messages, each an object, are needed"),
    ],
)
def test_a_bad_shape_is_an_error(tmp_path: Path, facts: dict[str, object], told: str) -> None:
    """A file whose parts are of a wrong shape is told what they are."""
    with pytest.raises(ConfigError) as caught:
        read_conversation(written(tmp_path / "talk.json", **{"messages": MESSAGES, **facts}))
    assert told in str(caught.value)


def test_unusual_questions_are_read(tmp_path: Path) -> None:
    """An answer may be a number or empty, a category may be a number or missing, and evidence may be none."""
    questions: list[dict[str, object]] = [
        {**QUESTION, "answer": 2022, "category": 5},
        {**QUESTION, "answer": "", "category": None},
        {"question": "Which dog?", "answer": "none", "evidence": []},
    ]
    read = read_conversation(written(tmp_path / "talk.json", messages=MESSAGES, questions=questions)).questions
    assert [("2022", "5", (1,)), ("", "", (1,)), ("none", "", ())] == [(one.answer, one.category, one.evidence) for one in read]


TOOL_USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weigh", "input": {}}]}


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("anthropic", {"format": "anthropic", "messages": [user("x")]}),
        ("anthropic", {"messages": [user("x"), TOOL_USE]}),
        ("responses", {"messages": [user("x"), {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]}),
        ("responses", {"format": "openai", "messages": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}]}),
    ],
)
def test_messages_of_another_format_are_an_error(tmp_path: Path, name: str, facts: dict[str, object]) -> None:
    """Only OpenAI's chat format is measured; the error says how to come to it, whether the file names its format or not."""
    with pytest.raises(ConfigError, match="only messages in OpenAI's chat format are measured") as caught:
        read_conversation(written(tmp_path / "talk.json", **facts))
    assert f"memci.convert(messages, from_={name!r}, to='openai').messages" in str(caught.value)


def test_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    """A format that memci does not know cannot be converted, and is named."""
    with pytest.raises(ConfigError, match=r"these are in the format 'gemini'$"):
        read_conversation(written(tmp_path / "talk.json", messages=[user("x")], format="gemini"))
