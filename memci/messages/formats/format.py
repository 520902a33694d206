"""The wire formats by name. A format is a module with the functions that ``Format`` names."""

import functools
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from memci.errors import ConfigError, shown
from memci.messages.message import Call, Message

NAMES = ("openai", "responses", "anthropic")

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""All roles that messages of these formats have, and ``tool`` for messages of a user that only carry what tools answered."""


class Format(Protocol):
    """What the engine asks of a wire format.

    Attributes:
        ANSWER_PATH: Where a message names the call that it answers, for error texts.
        checked: Checks a message and gives a deep copy of it.
        read: Gives the ``facts`` of what is ``checked``.
        facts: Makes a ``Message`` of a dict that is known to be good.
        block: Makes a message of role ``user`` that holds a text of memci as its ``content``, or texts and what ``media`` gave.
        media: Gives a picture, sound or file of any message as a message of the user carries it; ``None`` for all else.
        result: Makes a message that answers a call with a text.
        shortened: Makes a message that stands where another does, makes and answers the same calls, and holds only a text; the
            message itself where the format has no shorter form of it.
        erased: Makes what is left of a message when its content is erased.
        opening: Makes the message that has to stand before the first one of a conversation; ``None`` for none.
        sent: Gives what a message is counted and sent as: without what belongs to an answer of the provider only, or to an object
            of its SDK; the message itself where it is ``literal``.
        ended: Gives what a message is sent as when it is the last of a window; ``None`` where that is no other.
        assemble: Makes of the messages of a window what the provider's call takes: the system prompt, where the format has a
            parameter for it, and the messages. It joins, leaves out (``sent`` first) and shortens, and adds nothing but a mark
            for the provider's cache after the messages whose places are given, where the format has such marks.
        assembled: Gives what ``assemble`` makes of one message, where that depends on no other one; ``None`` where it does.
    """

    ANSWER_PATH: str
    checked: Callable[[object], dict[str, Any]]
    read: Callable[[object], Message]
    facts: Callable[[dict[str, Any]], Message]
    block: Callable[..., Message]
    media: Callable[[dict[str, Any]], dict[str, Any] | None]
    result: Callable[[Call, str], Message]
    shortened: Callable[[Message, str], Message]
    erased: Callable[[Message], Message]
    opening: Callable[[Message], Message | None]
    sent: Callable[[Message], Message]
    ended: Callable[[Message], Message] | None
    assemble: Callable[[Sequence[Message], Collection[int]], tuple[list[dict[str, Any]] | None, list[Message]]]
    assembled: Callable[[Message], Message] | None


def get(name: str) -> Format:
    """Return the format of this name; its module is loaded at first use. ``ConfigError`` where there is none."""
    if name not in NAMES:
        message = f"there is no wire format {shown(name)}; there is {', '.join(NAMES)}"
        raise ConfigError(message, path="format")
    return _loaded(name)


@functools.cache
def _loaded(name: str) -> Format:
    return cast("Format", import_module(f"memci.messages.formats.{name}"))
