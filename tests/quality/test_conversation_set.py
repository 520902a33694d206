"""Conversations are read from files, and what is wrong with one is said with its file."""

import json
from pathlib import Path
from typing import Any

import pytest

from memci.errors import ConfigError
from memci.quality.conversation import iso_time
from memci.quality.conversation_set import read_conversation
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


@pytest.mark.parametrize("text", ["99:99 pm on 88 May, 2023", "1:56 pm on 30 Feb, 2023", "1:56 pm on 8 Foo, 2023", "yesterday"])
def test_what_is_no_time_is_none(text: str) -> None:
    """A form of a time with numbers that no clock or calendar has is no time."""
    assert iso_time(text) is None
