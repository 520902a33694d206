"""Anthropic messages, and the system prompt as a message of role ``system``.

Source of the shapes and rules: the ``messages`` and ``system`` parameters of the Messages API reference, and Anthropic's guides
on tool use, extended thinking and prompt caching.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from memci.errors import InvalidMessageError, shown
from memci.messages.formats import anthropic_window, reading
from memci.messages.formats.reading import ERASED
from memci.messages.message import Call, Message

ANSWER_PATH = "content"
"""Where a message names the calls that it answers."""

ROLES = ("system", "user", "assistant")

ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
"""What the id of a call looks like."""

_THINKING = anthropic_window.THINKING
_PLACES = {
    "tool_use": ("assistant", "id"),
    "tool_result": ("user", "tool_use_id"),
    "thinking": ("assistant", None),
    "redacted_thinking": ("assistant", None),
}
_KEPT_OF_CALLS = ("type", "id", "name", "caller", "toolset_name")
_KEPT_OF_RESULTS = ("type", "tool_use_id", "is_error", "toolset_name")


def read(value: object) -> Message:
    """Check one message and take it in; what it holds beyond the known keys is kept as it is.

    A message of role ``system`` holds the system prompt, as text or as text blocks.

    Raises:
        InvalidMessageError: The provider would refuse it, or it is not JSON; the error names the place.
    """
    copy = reading.copied(value)
    if copy.get("role") in ("developer", "tool", "function"):
        message = (
            f"Anthropic's messages have no role {shown(copy['role'])}: memci.convert turns messages of OpenAI's formats into them"
        )
        raise InvalidMessageError(message, path="role")
    role = reading.checked_role(copy, ROLES)
    content = copy.get("content")
    reading.check_parts(content)
    for number, block in enumerate(content if isinstance(content, list) else ()):
        _check_block(block, role, f"content[{number}]")
    reading.check_distinct(content)
    if role != "assistant" and not anthropic_window.said(content):
        message = f"a {role} message holds something: text that is more than spaces, or a block"
        raise InvalidMessageError(message, path="content")
    return facts(copy)


def facts(value: dict[str, Any]) -> Message:
    """Make a ``Message`` of a dict that is known to be good, such as one read back from a store."""
    content = value["content"]
    is_open = value["role"] == "assistant" and isinstance(content, list) and bool(anthropic_window.open_server_calls(content))
    return reading.facts(value, partial=is_open, literal=anthropic_window.sent(value) == value)


def block(text: str, *more: str | dict[str, Any]) -> Message:
    """Make a message of role ``user`` that holds what the application did not say: data, in the open; texts, and ``media``."""
    return facts({"role": "user", "content": reading.block_content("text", text, more)})


def media(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a picture or file as a message of the user carries it, without marks and words; ``None`` for any other block."""
    match part:
        case {"type": "image"} | {"type": "document", "source": {"type": "base64" | "url" | "file"}}:
            return {key: item for key, item in part.items() if key not in ("cache_control", "title", "context")}
        case _:
            return None


def result(call: Call, text: str) -> Message:
    """Make a message that answers a call with a text."""
    return facts({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}]})


def shortened(message: Message, text: str) -> Message:
    """Make a message that stands where *message* does, makes and answers the same calls, and holds only *text*.

    Thinking is kept whole, in its place, as the provider refuses it when it was changed, and a last assistant turn without it.
    """
    return facts({"role": message.role, "content": _reduced(message, text, keep_thinking=True)})


def erased(message: Message) -> Message:
    """Make what is left of a message when its content is erased: role, and which calls it makes and answers."""
    return facts({"role": message.role, "content": _reduced(message, ERASED, keep_thinking=False)})


def opening(first: Message) -> Message | None:
    """Return what stands before a conversation that does not begin with the user, as the provider wants it to."""
    return None if first.role == "user" else block("[the conversation begins here]")


def sent(message: Message) -> Message:
    """Return a message without what belongs to the provider's answer only, such as its ``usage``."""
    return message if message.literal else facts(anthropic_window.sent(message.value()))


def ended(message: Message) -> Message:
    """Return what a message is sent as at the end of a window: its last text without white space behind it."""
    if message.role != "assistant":
        return message
    value = message.value()
    last = anthropic_window.ended(value)
    return message if last is value else facts(last)


def assemble(messages: Sequence[Message], cached: Collection[int] = ()) -> tuple[list[dict[str, Any]], list[Message]]:
    """Return the system prompt as text blocks, and the messages as the provider takes them; see ``anthropic_window``.

    Where places of messages are given in *cached*, the breakpoints of the provider's cache stand behind these, and no others.
    """
    return anthropic_window.assemble(messages, facts, cached)


def _check_block(part: dict[str, Any], role: str, path: str) -> None:
    kind = part["type"]
    allowed, id_key = _PLACES.get(kind, (role, None))
    if role != allowed or (role == "system" and kind != "text"):
        where = f"stands in {allowed} messages, not in a" if role != allowed else "cannot stand in a"
        message = f"a {kind} block {where} {role} message"
        raise InvalidMessageError(message, path=path)
    if id_key and not (isinstance(part.get(id_key), str) and part[id_key]):
        message = f"a {kind} block carries the id of its call"
        raise InvalidMessageError(message, path=f"{path}.{id_key}")
    if id_key and not ID.fullmatch(part[id_key]):
        message = f"the id {shown(part[id_key])} holds more than letters, digits, _ and -: rename it, and in its result too"
        raise InvalidMessageError(message, path=f"{path}.{id_key}")
    if kind == "tool_use" and not (isinstance(part.get("name"), str) and isinstance(part.get("input"), dict)):
        message = "a tool_use block has a name, and its input as an object"
        raise InvalidMessageError(message, path=path)


def _reduced(message: Message, text: str, *, keep_thinking: bool) -> str | list[dict[str, Any]]:
    content = message.value()["content"]
    if isinstance(content, str):
        return text
    kept: list[dict[str, Any]] = []
    open_calls = anthropic_window.open_server_calls(content) if keep_thinking else set()
    for part in content:
        kind = part["type"]
        if kind in _THINKING and keep_thinking:
            kept.append(part)
        elif kind == "tool_use":
            kept.append({**{key: part[key] for key in _KEPT_OF_CALLS if key in part}, "input": {}})
        elif kind == "tool_result":
            kept.append({**{key: part[key] for key in _KEPT_OF_RESULTS if key in part}, "content": text})
        elif anthropic_window.server_call(part) in open_calls:
            kept.append(part)
    words = {"type": "text", "text": text}
    if message.role != "assistant":
        return [*kept, words] if message.from_user or not kept else kept
    lead = next((number for number, part in enumerate(kept) if part["type"] not in _THINKING), len(kept))
    return [*kept[:lead], words, *kept[lead:]]
