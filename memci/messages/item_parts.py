"""What the items of OpenAI's Responses format are made of that are no messages.

Source of the shapes: the ``input`` parameter of the Responses API reference (``ResponseInputItemParam`` of the openai package).
"""

from collections.abc import Mapping
from typing import Any, Final

CALLS: Final[Mapping[str, str]] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}
"""The calls that the application answers, each with the type of its answer. What the provider runs itself is no call."""

ANSWERS: Final = frozenset(CALLS.values())

_WITH_ROLE = frozenset({"additional_tools"})
"""The items that have a role and are no messages."""

_CALL_TEXTS = ("arguments", "input", "action", "operation")


def is_item(value: Mapping[str, Any]) -> bool:
    """Return whether a message is an item other than a message; messages of all formats have a role."""
    return isinstance(value.get("type"), str) and ("role" not in value or value["type"] in _WITH_ROLE)


def call_id(value: Mapping[str, Any]) -> str | None:
    """Return the id under which a call is answered; ``None`` for an item that is no call, or that the provider runs."""
    if value["type"] not in CALLS or value.get("execution") == "server":
        return None
    return _identity(value, call_key(value))


def call_key(value: Mapping[str, Any]) -> str:
    """Return the key under which a call has the id by which it is answered."""
    return "id" if value["type"] == "mcp_approval_request" else "call_id"


def answered_id(value: Mapping[str, Any]) -> str | None:
    """Return the id of the call that an item answers; ``None`` for an item that answers none."""
    if value["type"] not in ANSWERS or value.get("execution") == "server":
        return None
    return _identity(value, answer_key(value))


def _identity(value: Mapping[str, Any], key: str) -> str | None:
    return value[key] if isinstance(value.get(key), str) and value[key] else None


def answer_key(value: Mapping[str, Any]) -> str:
    """Return the key under which an item names the call that it answers."""
    if value["type"] == "mcp_approval_response":
        return "approval_request_id"
    return "id" if value["type"] == "local_shell_call_output" and "call_id" not in value and "id" in value else "call_id"


def call_text(value: Mapping[str, Any]) -> object:
    """Return what a call is given: the first of its texts."""
    return next((value[key] for key in _CALL_TEXTS if key in value), None)
