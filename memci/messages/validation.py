"""Whether a provider would take a list of messages, by the sources of the formats and the errors with which providers answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from memci.errors import InvalidMessageError, shown
from memci.messages.formats import anthropic, openai, responses
from memci.messages.formats import format as formats
from memci.messages.formats.anthropic import MOST_BREAKPOINTS, OF_ANSWERS, THINKING, Block
from memci.messages.formats.reading import read_all
from memci.messages.message import Message
from memci.messages.parts import is_item

_BLANK = "a text is more than spaces: leave it out"


@attrs.frozen
class Problem:
    """One reason for which a provider would refuse a call: the place, such as ``messages[3].content[0]``, and what to do."""

    place: str
    text: str

    def __str__(self) -> str:
        """Return place and text on one line."""
        return f"{self.place}: {self.text}"


def validate(messages: Sequence[Any], format: str = "openai") -> list[Problem]:  # noqa: A002 (the key of the settings)
    """Return what the provider would refuse in a call with these messages, in their order; empty for a good call. O(their size).

    Checked are roles, the shape of messages and blocks as far as memci reads them, calls and their results, empty contents,
    thinking and reasoning, and breakpoints. What only the provider can know, such as a signature, is not.

    *messages* are those of a call, such as ``window.messages``; Anthropic's system prompt is none. *format* is ``openai``,
    ``responses`` or ``anthropic``; ConfigError for any other. InvalidMessageError where the messages are not a list.
    """
    found = list(read_all(formats.get(format).read, messages))
    errors = [each for each in found if isinstance(each, InvalidMessageError)]
    if errors:
        return [Problem(error.path, str(error).removeprefix(f"{error.path}: ")) for error in errors]
    rules = {"openai": _openai, "responses": _responses, "anthropic": _anthropic}[format]
    return list(rules([each for each in found if isinstance(each, Message)]))


def _openai(messages: Sequence[Message]) -> Iterator[Problem]:
    waiting: dict[str, int] = {}
    for number, message in enumerate(messages):
        place, value = f"messages[{number}]", message.value()
        for answered in message.answers:
            if waiting.pop(answered, None) is None:
                text = "which no call directly before it makes: leave it out, or put it after its call"
                yield Problem(place, f"it answers {shown(answered)}, {text}")
        if not message.answers:
            yield from _unanswered(waiting)
            waiting = {}
        waiting |= {call.id: number for call in message.calls}
        if value.get("tool_calls") == []:
            yield Problem(f"{place}.tool_calls", "a list of calls is not empty: leave it out")
        if openai.says_nothing(value):
            yield Problem(place, "an assistant message has a content or calls: leave it out")
    yield from _unanswered(waiting)


def _unanswered(waiting: Mapping[str, int]) -> Iterator[Problem]:
    for identity, number in waiting.items():
        yield Problem(f"messages[{number}]", f"the call {shown(identity)} has no result after it: add one")


def _responses(messages: Sequence[Message]) -> Iterator[Problem]:
    waiting: dict[str, int] = {}
    for number, message in enumerate(messages):
        place, value = f"messages[{number}]", message.value()
        for answered in message.answers:
            if waiting.pop(answered, None) is None:
                yield Problem(place, f"it answers {shown(answered)}, which no call before it makes: leave it out")
        for call in message.calls:
            if call.id in waiting:
                yield Problem(place, f"the call {shown(call.id)} stands open already: give each call its own id")
            waiting[call.id] = number
        if responses.is_reasoning(message):
            yield from _reasoning(place, message, messages[number + 1 :])
        elif not is_item(value) and isinstance(value["content"], list):
            wrong, right = ("input_text", "output_text") if message.role == "assistant" else ("output_text", "input_text")
            for position, part in enumerate(value["content"]):
                if part["type"] == wrong:
                    yield Problem(f"{place}.content[{position}].type", f"text of the {message.role} has the type {right}")
    yield from _unanswered(waiting)


def _reasoning(place: str, reasoning: Message, after: Iterable[Message]) -> Iterator[Problem]:
    if "status" in reasoning.value():
        yield Problem(f"{place}.status", "a reasoning item is given with a status and refused with one: leave it out")
    if not isinstance(reasoning.value().get("summary"), list):
        yield Problem(f"{place}.summary", "a reasoning item has a summary, an empty list at least")
    following = next((message for message in after if not responses.is_reasoning(message)), None)
    if following is None or not following.partial:
        yield Problem(place, "a reasoning item goes with the item that follows it: leave it out, or add that item")
    elif responses.parted(reasoning, following):
        yield Problem(place, "the item after it has lost the id by which it belongs to the reasoning: keep both, or neither")


def _anthropic(messages: Sequence[Message]) -> Iterator[Problem]:
    values = [message.value() for message in messages]
    if messages and messages[0].role != "user":
        yield Problem("messages[0].role", "the first message is the user's: put one before it; the system prompt goes in system")
    waiting: list[str] = []
    seen: set[str] = set()
    for number, (message, value) in enumerate(zip(messages, values, strict=True)):
        place = f"messages[{number}]"
        answers = list(message.answers)
        if sorted(waiting) != sorted(answers):
            text = f"the calls before it are {waiting}, its results are for {answers}: answer each of them once, and nothing else"
            yield Problem(place, text)
        waiting = [call.id for call in message.calls]
        for identity in waiting:
            if identity in seen:
                yield Problem(place, f"the id {shown(identity)} stands twice: rename it, and in its result too")
            seen.add(identity)
        yield from (Problem(f"{place}.{key}", "it belongs to an answer: leave it out") for key in value if key in OF_ANSWERS)
        if not anthropic.said(value["content"]) and (message.role != "assistant" or number + 1 < len(messages)):
            yield Problem(f"{place}.content", "there is nothing in it: leave the message out")
        if isinstance(value["content"], list):
            yield from _blocks(place, value["content"])
    if waiting:
        yield Problem(f"messages[{len(messages) - 1}]", f"the calls {waiting} have no results after them: add a user message")
    yield from _whole(values)


def _whole(values: Sequence[Block]) -> Iterator[Problem]:
    last = len(values) - 1
    if values and anthropic.trimmed(values[-1]) is not values[-1]:
        at = "" if isinstance(values[-1]["content"], str) else f"[{len(values[-1]['content']) - 1}]"
        text = "the text that the model goes on with ends in white space: take that away"
        yield Problem(f"messages[{last}].content{at}", text)
    for number, lone in enumerate(anthropic.lone_calls(values)):
        if lone and number < last and values[number + 1]["role"] != "assistant":  # the last turn may go on
            yield Problem(f"messages[{number}]", f"{sorted(lone)} is only half there, call or result: leave it out")
    held = sum(anthropic.has_breakpoint(part) for value in values for part in anthropic.holders(value["content"]))
    if held > MOST_BREAKPOINTS:
        yield Problem("messages", f"{held} blocks have cache_control, and a call may hold {MOST_BREAKPOINTS}: keep the last ones")


def _blocks(place: str, content: Sequence[Block]) -> Iterator[Problem]:
    others = False
    for position, part in enumerate(content):
        at, kind = f"{place}.content[{position}]", part["type"]
        if anthropic.is_blank(part):
            yield Problem(at, _BLANK)
        for number, each in enumerate(anthropic.inside(part)):
            if anthropic.is_blank(each):
                yield Problem(f"{at}.content[{number}]", _BLANK)
        if kind == "tool_result" and others:
            yield Problem(at, "results come before everything else in a message: move it to the front")
        others = others or kind != "tool_result"
        secret = {"thinking": "signature", "redacted_thinking": "data"}.get(kind)
        if secret is not None and not isinstance(part.get(secret), str):
            yield Problem(f"{at}.{secret}", f"a {kind} block has its {secret}, as it came: leave the block out")
        if kind in THINKING and anthropic.has_breakpoint(part):
            yield Problem(f"{at}.cache_control", "no breakpoint stands on thinking: put it on the block after it")
    if content and content[-1]["type"] in THINKING:
        yield Problem(f"{place}.content[{len(content) - 1}]", "a message does not end with thinking: leave the block out")
