"""Messages of one wire format in another."""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import attrs

from memci.errors import InvalidMessageError
from memci.messages.conversion import anthropic, openai
from memci.messages.conversion.neutral import Losses, Piece, Said, ToolCall, ToolResult
from memci.messages.formats import format as formats
from memci.messages.formats.reading import read_all
from memci.messages.validation import Problem

_PARSE = {"openai": openai.parse, "responses": openai.parse_items, "anthropic": anthropic.parse}
_WRITE = {"openai": openai.write, "responses": openai.write_items, "anthropic": anthropic.write}


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
    for found in read_all(wire.read, messages):
        if isinstance(found, InvalidMessageError):
            raise found
        read.append(found)
    if from_ == to:
        return Conversion(messages=[message.value() for message in read], lost=())
    losses = Losses()
    values = [wire.sent(message).value() for message in read]
    written = list(_WRITE[to](_answered(_PARSE[from_](values, losses)), losses))
    return Conversion(messages=written, lost=losses.in_order())


def _answered(conversation: Iterable[Said]) -> Iterator[Said]:
    """Yield what was said with each result directly behind the message that makes its call, as providers want them. O(its size).

    A result answers the newest call of its id that has none, as in a session. Results of one message's calls keep their order;
    what stands beside a result, and a result without a call, stay where they are. Where calls of one message have one id, as
    items of an answer can, the later ones get others, and their results too.
    """
    turns: list[list[Said]] = []  # what a message says, and the results of its calls
    waiting: dict[str, list[tuple[ToolCall, list[Said]]]] = {}
    for said in conversation:
        rest: list[Piece] = []
        for piece in said.pieces:
            calls = waiting.get(piece.id) if isinstance(piece, ToolResult) else None
            if isinstance(piece, ToolResult) and calls:
                call, turn = calls.pop()
                turn.append(Said(said.place, said.role, (attrs.evolve(piece, id=call.id, free=call.free),)))
            else:
                rest.append(piece)
        named = list(_distinct(rest))
        if rest or not said.pieces:
            turns.append([attrs.evolve(said, pieces=tuple(named))])
        for piece, other in zip(rest, named, strict=True):
            if isinstance(piece, ToolCall) and isinstance(other, ToolCall):
                waiting.setdefault(piece.id, []).append((other, turns[-1]))
    for turn in turns:
        yield from turn


def _distinct(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield what one message says with an id of its own for each call."""
    seen: set[str] = set()
    for piece in pieces:
        if isinstance(piece, ToolCall):
            names = (piece.id if number == 1 else f"{piece.id}-{number}" for number in count(1))
            piece = attrs.evolve(piece, id=next(name for name in names if name not in seen))  # noqa: PLW2901 (the same call)
            seen.add(piece.id)
        yield piece
