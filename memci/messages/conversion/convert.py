"""Messages of one wire format in another."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import attrs

from memci.errors import InvalidMessageError
from memci.messages.conversion.neutral import Losses
from memci.messages.conversion.order import answered
from memci.messages.formats import format as formats
from memci.messages.formats.reading import as_list
from memci.messages.rules.problem import Problem


@attrs.frozen(kw_only=True)
class Conversion:
    """What a conversion made.

    Attributes:
        messages: The messages in the other format, the system prompt among them as messages of role ``system``; a session of
            that format takes them.
        lost: What did not come through, in the order of the messages; empty where nothing was lost.
    """

    messages: list[dict[str, Any]]
    lost: tuple[Problem, ...]


def convert(messages: Iterable[Any], *, from_: str, to: str) -> Conversion:
    """Return messages in another wire format. O(their size).

    What both formats can say comes through: roles, texts, pictures, PDF files, calls and their results. What only one provider
    understands does not, and is listed in ``lost``: thinking and reasoning, tools that the provider runs itself, citations,
    breakpoints, ids of items, whether a result is an error, and other keys. Keys of a provider's answer, such as Anthropic's
    ``usage``, are no part of what was said: they are left out and not listed. A result that came late stands directly behind its
    call. In Anthropic's format ids of calls that it would refuse get others, a message without words is left out, and so is white
    space at the end of a last text of the assistant; where the conversation would begin with the assistant, a short message of
    the user stands before it.

    Args:
        messages: Such as ``session.messages()``, or the messages of a call; Anthropic's system prompt as messages of role
            ``system``.
        from_: Their format: ``openai``, ``responses`` or ``anthropic``.
        to: The format that is wanted; where it is the same, the messages come back as they are, copied.

    Raises:
        InvalidMessageError: They are not a list; or one is none of its format, or says what the other cannot, such as sound in
            Anthropic's; ``path`` is the place.
        ConfigError: There is no such format.
    """
    wire, _ = formats.get(from_), formats.get(to)
    read = []
    for number, value in enumerate(as_list(messages)):
        try:
            read.append(wire.read(value))
        except InvalidMessageError as error:
            place = f"messages[{number}]" + (f".{error.path}" if error.path else "")
            raise InvalidMessageError(str(error).removeprefix(f"{error.path}: "), path=place) from error
    if from_ == to:
        return Conversion(messages=[message.value() for message in read], lost=())
    losses = Losses()
    values = [wire.sent(message).value() for message in read]
    said = import_module(f"memci.messages.conversion.{from_}").parse(values, losses)
    written = list(import_module(f"memci.messages.conversion.{to}").write(answered(said), losses))
    return Conversion(messages=written, lost=losses.in_order())
