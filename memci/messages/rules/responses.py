"""What OpenAI's Responses API refuses in the order of items.

Sources: the Responses API reference (``input``) and the guides on function calling (an output for each call), reasoning (a
reasoning item goes with the item that follows it) and conversation state (``input_text`` is what comes in, ``output_text`` what
the model said).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from memci.errors import shown
from memci.messages import item_parts
from memci.messages.formats import responses
from memci.messages.message import Message
from memci.messages.rules.problem import Problem

_TURNED = {"input_text": "output_text", "output_text": "input_text"}


def problems(messages: Sequence[Message]) -> Iterator[Problem]:
    """Yield what is wrong with the order of items, each of which is good for itself."""
    waiting: dict[str, int] = {}
    values = [message.value() for message in messages]
    for number, (message, value) in enumerate(zip(messages, values, strict=True)):
        place = f"messages[{number}]"
        for answered in message.answers:
            if waiting.pop(answered, None) is None:
                yield Problem(place, f"it answers {shown(answered)}, which no call before it makes: leave it out")
        for call in message.calls:
            if call.id in waiting:
                yield Problem(place, f"the call {shown(call.id)} stands open already: give each call its own id")
            waiting[call.id] = number
        if responses.is_reasoning(message):
            yield from _reasoning(place, message, messages[number + 1 :])
        elif not item_parts.is_item(value) and isinstance(value["content"], list):
            yield from _parts(place, message.role, value["content"])
    for identity, number in waiting.items():
        yield Problem(f"messages[{number}]", f"the call {shown(identity)} has no output behind it: add one")


def _reasoning(place: str, reasoning: Message, behind: Sequence[Message]) -> Iterator[Problem]:
    if "status" in reasoning.value():
        yield Problem(f"{place}.status", "a reasoning item is given with a status and refused with one: leave it out")
    if not isinstance(reasoning.value().get("summary"), list):
        yield Problem(f"{place}.summary", "a reasoning item has a summary, an empty list at least")
    following = next((message for message in behind if not responses.is_reasoning(message)), None)
    if following is None or not following.partial:
        yield Problem(place, "a reasoning item goes with the item that follows it: leave it out, or add that item")
    elif responses.parted(reasoning, following):
        yield Problem(place, "the item behind it has lost the id by which it belongs to the reasoning: keep both, or neither")


def _parts(place: str, role: str, content: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    wrong = "input_text" if role == "assistant" else "output_text"
    for position, part in enumerate(content):
        if part["type"] == wrong:
            yield Problem(f"{place}.content[{position}].type", f"text of the {role} has the type {_TURNED[wrong]}")
