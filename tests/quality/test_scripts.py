"""The scripts beside the bench: longer histories, and the files of a working set."""

from typing import Any

from benchmarks.quality.again import said_again
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
