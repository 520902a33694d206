"""The example conversations are what a provider would take; the example programs run and show what they say."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memci.messages.formats import openai

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return value


@pytest.mark.parametrize("name", ["support", "agent"])
def test_every_message_is_accepted(name: str) -> None:
    """Each message of an example is read and comes back as the same value."""
    conversation = example(name)
    assert (name, "openai") == (conversation["id"], conversation["format"])
    assert conversation["messages"] == [openai.read(message).value() for message in conversation["messages"]]


def test_support_conversation_says_when() -> None:
    """The support conversation has a time for each message, and they never go back."""
    conversation = example("support")
    assert len(conversation["messages"]) == len(conversation["timestamps"])
    assert sorted(conversation["timestamps"]) == conversation["timestamps"]


def test_agent_session_has_the_usual_trouble() -> None:
    """The agent session repeats call ids, calls in parallel, and leaves one call without a result."""
    messages = [openai.read(message) for message in example("agent")["messages"]]
    ids = [call.id for message in messages for call in message.calls]
    assert len(ids) > len(set(ids))
    assert max(len(message.calls) for message in messages) > 1
    assert len(ids) - 1 == sum(len(message.answers) for message in messages)


def printed(name: str, folder: Path) -> list[str]:
    """Run an example in an empty folder, and return the lines it printed; a warning fails it."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)  # noqa: S603 (our own words)
    assert (0, "") == (done.returncode, done.stderr)
    assert [] == list(folder.iterdir())
    return done.stdout.splitlines()


def test_support_bot_brings_an_old_page_back(tmp_path: Path) -> None:
    """The support bot folds several times, cannot answer without the old page, and answers with it."""
    lines = printed("support_bot.py", tmp_path)
    assert 3 <= sum(line.startswith("fold ") for line in lines)
    assert "without the page: I cannot see that any more." in lines
    assert "with the page: It says: Voor Joost, 18·04·2026." in lines
    assert 1 == sum(line.lstrip().startswith("user  [recalled page") for line in lines)


def test_tool_calls_search_and_recall(tmp_path: Path) -> None:
    """The stand-in model searches, recalls one page by its index, and answers from the block in the window."""
    lines = [line.strip() for line in printed("tool_calls.py", tmp_path)]
    calls = [line.split()[1] for line in lines if line.startswith("call ")]
    assert ["search_pages", "recall_page"] == calls
    assert "answer It says: Voor Joost, 18·04·2026" == lines[-1]


def test_recall_loop_recalls_and_fades(tmp_path: Path) -> None:
    """The loop folds several times, the stand-in model brings one old page back and answers from it, and the page fades."""
    lines = printed("recall_loop.py", tmp_path)
    marks = [line.split()[0] for line in lines]
    assert 3 <= marks.count("fold")
    assert ["search_pages", "recall_page"] == [line.split()[1] for line in lines if line.startswith("call ")]
    assert (1, 1) == (marks.count("recall"), marks.count("fade"))
    assert marks.index("recall") < lines.index("answer  It says: Voor Joost, 18·04·2026") < marks.index("fade")


def test_tidy_groups_notes_closes_and_finds_again(tmp_path: Path) -> None:
    """The stand-in model makes three directories in each other, notes a lesson, closes the topic, and opens all to answer."""
    lines = printed("tidy.py", tmp_path)
    calls = [line.split()[1] for line in lines if line.startswith("call ")]
    tidied = ["group_pages", "group_pages", "group_pages", "write_note", "close_topic"]
    assert [*tidied, "open_page", "open_page", "open_page", "open_page", "close_page"] == calls
    assert not any('"error"' in line for line in lines)
    assert "answer  It was Thursday 19 March, between 10:00 and 12:00." == lines[-1]


def test_seven_views_show_what_each_step_makes(tmp_path: Path) -> None:
    """Hidden rules stand behind a line, what is opened takes tokens and gives them back, and what was removed is found again."""
    views: list[list[str]] = []
    for line in printed("seven_views.py", tmp_path):
        if line.startswith("view "):
            views.append([])
        views[-1].append(line.strip())
    tokens = [int(re.findall(r"(\d+) of 5000 tokens", view[0])[0]) for view in views]
    assert 7 == len(views)
    assert all("[sys-2] Rules of the shop" in view[1] for view in views)
    assert tokens[0] + 700 < tokens[1]
    assert tokens[0] < tokens[2]
    assert tokens[0] == tokens[3]
    assert any(line.startswith("[note-1] Phone number") for line in views[4])
    listed = [any(re.match(r"\[usr-\d+\] Machine", line) for line in view) for view in views]
    assert [True, True, True, True, True, False, True] == listed
    assert "search: usr-24, evicted" == views[5][-1][:23]
    assert any(line.startswith("[recalled page usr-24,") for line in views[6])


def test_agents_share_a_context(tmp_path: Path) -> None:
    """Each agent sees what the others noted, the next one is handed over to, and recalls a page of the one before."""
    lines = printed("agents.py", tmp_path)
    assert "writer recalls scout/usr-1: Invoice 37 is missing: march.csv jumps from 36 to 38." in lines
    assert 3 == sum(line.startswith("[project/note-") for line in lines)
    assert "writer/usr-1 is open." in lines
