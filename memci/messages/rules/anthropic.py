"""What Anthropic's Messages API refuses in the order of messages and blocks.

Sources: the Messages API reference (``messages``, ``system``); the guides on tool use (results directly behind the calls, in one
user message, before any text), extended thinking (blocks as they came, never last in a message), prompt caching (at most four
breakpoints, none on thinking); and the errors with which the API answers the rest: empty texts, white space at the end of a last
message of the assistant, ids that are not unique, a first message that is not the user's.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from memci.errors import shown
from memci.messages.formats.anthropic_window import (
    MOST_BREAKPOINTS,
    OF_ANSWERS,
    THINKING,
    has_breakpoint,
    holders,
    is_blank,
    open_server_calls,
    said,
)
from memci.messages.message import Message
from memci.messages.rules.problem import Problem

Block = dict[str, Any]

_BLANK = "a text is more than spaces: leave it out"


def problems(messages: Sequence[Message]) -> Iterator[Problem]:
    """Yield what is wrong with the order of messages, each of which is good for itself."""
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
        if not said(value["content"]) and (message.role != "assistant" or number + 1 < len(messages)):
            yield Problem(f"{place}.content", "there is nothing in it: leave the message out")
        if isinstance(value["content"], list):
            yield from _blocks(place, value["content"])
    if waiting:
        yield Problem(f"messages[{len(messages) - 1}]", f"the calls {waiting} have no results behind them: add a user message")
    yield from _end(messages, values)
    yield from _server_calls(messages, values)
    held = sum(has_breakpoint(part) for value in values for part in holders(value["content"]))
    if held > MOST_BREAKPOINTS:
        yield Problem("messages", f"{held} blocks have cache_control, and a call may hold {MOST_BREAKPOINTS}: keep the last ones")


def _blocks(place: str, content: Sequence[Block]) -> Iterator[Problem]:
    others = False
    for position, part in enumerate(content):
        at, kind = f"{place}.content[{position}]", part["type"]
        if is_blank(part):
            yield Problem(at, _BLANK)
        if kind == "tool_result" and isinstance(part.get("content"), list):
            blank = (place for place, inner in enumerate(part["content"]) if is_blank(inner))
            yield from (Problem(f"{at}.content[{place}]", _BLANK) for place in blank)
        if kind == "tool_result" and others:
            yield Problem(at, "results come before everything else in a message: move it to the front")
        others = others or kind != "tool_result"
        secret = {"thinking": "signature", "redacted_thinking": "data"}.get(kind)
        if secret is not None and not isinstance(part.get(secret), str):
            yield Problem(f"{at}.{secret}", f"a {kind} block has its {secret}, as it came: leave the block out")
        if kind in THINKING and has_breakpoint(part):
            yield Problem(f"{at}.cache_control", "no breakpoint stands on thinking: put it on the block behind")
    if content and content[-1]["type"] in THINKING:
        yield Problem(f"{place}.content[{len(content) - 1}]", "a message does not end with thinking: leave the block out")


def _end(messages: Sequence[Message], values: Sequence[Block]) -> Iterator[Problem]:
    """Yield white space at the end of a text with which the model goes on."""
    if not messages or messages[-1].role != "assistant":
        return
    place, content = f"messages[{len(messages) - 1}].content", values[-1]["content"]
    if isinstance(content, list) and content and content[-1]["type"] == "text":
        place, content = f"{place}[{len(content) - 1}]", content[-1]["text"]
    if isinstance(content, str) and content != content.rstrip():
        yield Problem(place, "the text that the model goes on with ends in white space: take that away")


def _server_calls(messages: Sequence[Message], values: Sequence[Block]) -> Iterator[Problem]:
    """Yield the calls that the provider ran without their result in the same turn; the last turn may go on."""
    lone: set[str] = set()
    for number, (message, value) in enumerate(zip(messages, values, strict=True)):
        if message.role == "assistant":
            lone ^= open_server_calls(value["content"]) if isinstance(value["content"], list) else set()
        elif lone:
            yield Problem(f"messages[{number - 1}]", f"{sorted(lone)} is only half there, call or result: leave it out")
            lone = set()
