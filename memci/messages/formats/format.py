"""The wire formats by name. A format is a module with the functions that ``Format`` names."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol, cast

from memci.errors import ConfigError
from memci.messages.message import Call, Message

NAMES = ("openai",)
"""The formats that there are."""


class Format(Protocol):
    """What the engine asks of a wire format."""

    read: Callable[[object], Message]
    facts: Callable[[dict[str, Any]], Message]
    block: Callable[[str], Message]
    result: Callable[[Call, str], Message]
    shortened: Callable[[Message, str], Message]
    erased: Callable[[Message], Message]


def get(name: str) -> Format:
    """Return the format of this name; its module is loaded at first use.

    Raises:
        ConfigError: There is no such format.
    """
    if name not in NAMES:
        message = f"there is no wire format {name!r}; there is {', '.join(NAMES)}"
        raise ConfigError(message, path="format")
    return cast("Format", import_module(f"memci.messages.formats.{name}"))
