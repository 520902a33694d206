"""The scripts beside the bench: longer histories, and the files of a working set."""

import json
from pathlib import Path
from typing import Any

from benchmarks.quality.again import said_again
from benchmarks.quality.continuation import VIEWS, play
from benchmarks.quality.working_set import listed_files
from tests.quality.small import MESSAGES, SYSTEM, assistant, conversation, user

TALK: dict[str, Any] = {
    "messages": [
        {"role": "user", "name": "Caroline", "content": "Hi Mel!"},
        {"role": "assistant", "name": "Melanie", "content": "Hi Caroline, it is 2023."},
        {"role": "user", "name": "Caroline", "content": "Hi Mel!"},
    ],
    "timestamps": ["2023-05-08", "1:56 pm on 9 May, 2023", None],
    "questions": [{"question": "When did Melanie say hi?", "answer": "2023", "evidence": [1]}],
}


def test_a_conversation_is_said_under_other_names_and_later() -> None:
    """Names, short ones too, and years change in messages, times, questions and answers alike."""
    again = said_again(TALK, "Anna", iter(["Tavia", "Rolan"]), 2, set())
    assert ["Tavia", "Rolan", "Tavia"] == [message["name"] for message in again["messages"]]
    assert ["Hi Rolan!", "Hi Tavia, it is 2025."] == [message["content"] for message in again["messages"][:2]]
    assert ["2025-05-08T00:00:00", "2025-05-09T13:56:00", None] == again["timestamps"]
    assert [{"question": "When did Rolan say hi?", "answer": "2025", "evidence": [1]}] == again["questions"]


def test_no_message_is_said_twice() -> None:
    """What was said before by the same name is told apart, also in another conversation."""
    known: set[str] = set()
    contents = [
        message["content"]
        for _ in range(2)
        for message in said_again({"messages": [user("Bye."), assistant("Bye.")]}, "Anna", iter("XY"), 0, known)["messages"]
    ]
    assert ["Bye.", "Bye.", "Bye.", "Bye."] != contents
    assert 4 == len(known)


def test_files_are_read_from_what_the_window_lists() -> None:
    """A line of files counts in a block of the engine, and not in what somebody said."""
    said = user("files: mine.py")
    window = [SYSTEM, said, user("In use\nfiles: a.py\nfiles below …/: src/b.go\nurls: none")]
    assert ("a.py", "src/b.go") == listed_files(window, conversation(messages=[*MESSAGES, said]))


def test_needs_are_looked_for_with_each_kind_of_continuation(tmp_path: Path) -> None:
    """Needs are counted in every view, and one of them shows what a summariser has ready, as far as it is true."""
    said = [
        (user(f"do part{number}: {'word ' * 150}"), assistant(f"made src/part_{number}.py {'so ' * 150}")) for number in range(12)
    ]
    summary = "Notes\nSummary:\n1. Goal:\n   - do part0\n   - made src/none.py"
    needs = [{"kind": "file", "text": "src/part_11.py"}]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"messages": [each for pair in said for each in pair], "needs": needs, "summary": summary}))
    seen = {view: play(path, 2_400, view) for view in VIEWS}
    assert [(1, 1)] * 4 == [(each.needs["file"].asked, each.needs["file"].met) for each in seen.values()]
    *extracts, ready = seen.values()
    assert [0, 0, 0] == [each.written for each in extracts]
    assert ready.written
    assert (2, 1) == (ready.lines, ready.dropped)
