"""The wire formats by name. A format is a module with the functions that ``Format`` names."""

import functools
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

from memci.errors import ConfigError, shown
from memci.messages.message import Call, Message

NAMES = ("openai", "responses", "anthropic")
SYSTEM_ROLES = ("system", "developer")
"""The roles of messages of the system part."""
ROLES = (*SYSTEM_ROLES, "user", "assistant", "tool", "function")
"""All roles that messages of these formats have, and ``tool`` for messages of a user that only carry what tools answered."""


Assembled: TypeAlias = tuple[list[dict[str, Any]] | None, list[Message], list[dict[str, Any]]]
"""A system prompt, where the format has a parameter of its own for it; and the messages, each as bytes and as a dict."""


class Format(Protocol):
    """What the engine asks of a wire format; its module says what each function does."""

    ANSWER_PATH: str  # where a message names the call that it answers, for error texts
    checked: Callable[[object], dict[str, Any]]
    read: Callable[[object], Message]
    facts: Callable[[dict[str, Any]], Message]
    block: Callable[..., Message]
    media: Callable[[dict[str, Any]], dict[str, Any] | None]
    result: Callable[[Call, str], Message]
    shortened: Callable[..., Message]
    erased: Callable[[Message], Message]
    opening: Callable[[Message], Message | None]  # what has to stand before a first message; ``None`` for nothing
    sent: Callable[[Message], Message]
    ended: Callable[[Message], Message] | None  # ``None`` where a message is sent as the same at the end of a window
    assembled: Callable[[Message], Message]  # what a call sends of one message, whatever stands around it
    # What becomes of several such messages in one call, each with its dict, a new one; ``None`` where that is nothing.
    assemble: Callable[[Sequence[Message], Sequence[dict[str, Any]], Collection[int]], Assembled] | None


def get(name: str) -> Format:
    """Return the format of this name; its module is loaded at first use. ``ConfigError`` where there is none."""
    if name not in NAMES:
        message = f"there is no wire format {shown(name)}; there is {', '.join(NAMES)}"
        raise ConfigError(message, path="format")
    return _loaded(name)


@functools.cache
def _loaded(name: str) -> Format:
    return cast("Format", import_module(f"memci.messages.formats.{name}"))
