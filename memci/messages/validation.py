"""Whether a provider would take a list of messages."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from memci.errors import InvalidMessageError
from memci.messages.formats import format as formats
from memci.messages.formats.reading import as_list
from memci.messages.rules.problem import Problem

if TYPE_CHECKING:
    from memci.messages.message import Message


def validate(messages: Sequence[Any], format: str = "openai") -> list[Problem]:  # noqa: A002 (the key of the settings)
    """Return what the provider would refuse in a call with these messages, in their order; empty for a good call. O(their size).

    Checked are roles, the shape of messages and blocks as far as memci reads them, calls and their results, empty contents,
    thinking and reasoning, and breakpoints. What only the provider can know, such as a signature, is not.

    Args:
        messages: The messages of a call, such as ``window.messages``.
        format: Their wire format: ``openai``, ``responses`` or ``anthropic``. Anthropic's system prompt is no message.

    Raises:
        InvalidMessageError: They are not a list.
        ConfigError: There is no such format.
    """
    wire = formats.get(format)
    problems: list[Problem] = []
    read: list[Message] = []
    for number, value in enumerate(as_list(messages)):
        try:
            read.append(wire.read(value))
        except InvalidMessageError as error:
            place = f"messages[{number}]" + (f".{error.path}" if error.path else "")
            problems.append(Problem(place, str(error).removeprefix(f"{error.path}: ")))
    if problems:
        return problems
    return list(import_module(f"memci.messages.rules.{format}").problems(read))
