"""Reading conversations."""

import json
from pathlib import Path

import pytest

from memci.errors import ConfigError
from memci.quality.replay import read_conversation

SAID = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi – 猫"},
    {"role": "assistant", "content": "Hello"},
]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"messages": SAID}),
        json.dumps(SAID, indent=2),
        "\n".join(json.dumps(message) for message in SAID) + "\n\n",
        "\ufeff" + json.dumps(SAID),
    ],
    ids=["object", "list", "lines", "byte-order-mark"],
)
def test_shapes(tmp_path: Path, text: str) -> None:
    """An object with messages, a list and a message a line are the same conversation."""
    found, _ = read_conversation([written(tmp_path / "chat", text)])
    assert [(message, None) for message in SAID] == [(said.message, said.at) for said in found]


def test_one_line_is_one_message(tmp_path: Path) -> None:
    """A file of one line is a conversation of one message, not an object with messages."""
    found, _ = read_conversation([written(tmp_path / "chat.jsonl", json.dumps(SAID[1]))])
    assert [SAID[1]] == [said.message for said in found]


def test_times_are_kept(tmp_path: Path) -> None:
    """Timestamps go with their messages, in UTC, whichever of the two forms they have."""
    times = ["2026-03-02T10:00:00+01:00", "11:01 am on 17 December, 2022", None]
    found, _ = read_conversation([written(tmp_path / "chat.json", json.dumps({"messages": SAID, "timestamps": times}))])
    assert ["2026-03-02T09:00:00+00:00", "2022-12-17T11:01:00+00:00", None] == [said.at for said in found]


@pytest.mark.parametrize("at", ["yesterday", "", 1_671_274_860, True, "0001-01-01T00:00:00+05:00"])
def test_timestamps_that_are_no_times_are_refused(tmp_path: Path, at: object) -> None:
    """A timestamp in no known form is refused with the message it belongs to, and with the forms that there are."""
    path = written(tmp_path / "chat.json", json.dumps({"messages": SAID, "timestamps": [None, at, None]}))
    with pytest.raises(ConfigError) as caught:
        read_conversation([path])
    assert f"{path}: message 2: the timestamp {at!r} is not a time" in str(caught.value)
    assert "1:56 pm on 8 May, 2023" in str(caught.value)


def test_files_are_joined(tmp_path: Path) -> None:
    """Several files are one conversation, with the system messages of the first one only."""
    first = written(tmp_path / "a.json", json.dumps(SAID))
    second = written(tmp_path / "b.json", json.dumps([{"role": "developer", "content": "Other rules."}, *SAID]))
    found, _ = read_conversation([first, second])
    assert [*SAID, *SAID[1:]] == [said.message for said in found]
    assert f"{second}: message 3" == found[3].place


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}\n{]", "cannot be read as JSON: line 2: "),
        ('{"messages": 3}', "it is no conversation"),
        ('"hello"', "it is no conversation"),
        ("[1]", "message 1: it is no JSON object, but a int"),
        ('{"messages": [{"role": "user", "content": "x"}], "timestamps": []}', "0 timestamps for 1 messages"),
        ("", "there is no message in it"),
        ("[]", "there is no message in it"),
    ],
)
def test_refusals_name_the_place(tmp_path: Path, text: str, said: str) -> None:
    """What is no conversation is refused with the file and the place."""
    path = written(tmp_path / "chat", text)
    with pytest.raises(ConfigError) as caught:
        read_conversation([path])
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(ConfigError, match=r"nowhere\.json: cannot be read"):
        read_conversation([tmp_path / "nowhere.json"])


def test_a_file_tells_its_format(tmp_path: Path) -> None:
    """The format of the first file counts, and Anthropic's system prompt becomes the first message."""
    path = written(tmp_path / "a.json", json.dumps({"format": "anthropic", "system": "Be brief.", "messages": SAID[1:]}))
    found, wire = read_conversation([path])
    assert "anthropic" == wire
    assert SAID == [said.message for said in found]


def test_a_format_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A file that names an unknown format is refused with the names of those that there are."""
    with pytest.raises(ConfigError, match="openai, responses, anthropic"):
        read_conversation([written(tmp_path / "a.json", json.dumps({"format": "gemini", "messages": SAID}))])
