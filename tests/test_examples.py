"""The example conversations are what a provider would take, with the difficulties that real ones have."""

import json
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
