"""Results behind their calls, wherever they came in."""

from collections.abc import Iterable, Iterator
from itertools import count

import attrs

from memci.messages.conversion.neutral import Piece, Said, ToolCall, ToolResult


def answered(conversation: Iterable[Said]) -> Iterator[Said]:
    """Yield what was said with each result directly behind the message that makes its call, as providers want them. O(its size).

    A result answers the newest call of its id that has none, as in a session. Results of one message's calls keep their order;
    what stands beside a result, and a result without a call, stay where they are. Where calls of one message have one id, as
    items of an answer can, the later ones get others, and their results too.
    """
    turns: list[_Turn] = []
    waiting: dict[str, list[tuple[ToolCall, _Turn]]] = {}
    for said in conversation:
        rest: list[Piece] = []
        for piece in said.pieces:
            calls = waiting.get(piece.id) if isinstance(piece, ToolResult) else None
            if isinstance(piece, ToolResult) and calls:
                call, turn = calls.pop()
                turn.results.append(Said(said.place, said.role, (attrs.evolve(piece, id=call.id, free=call.free),)))
            else:
                rest.append(piece)
        named = list(_distinct(rest))
        if rest or not said.pieces:
            turns.append(_Turn(attrs.evolve(said, pieces=tuple(named))))
        for piece, other in zip(rest, named, strict=True):
            if isinstance(piece, ToolCall) and isinstance(other, ToolCall):
                waiting.setdefault(piece.id, []).append((other, turns[-1]))
    for turn in turns:
        yield turn.said
        yield from turn.results


def _distinct(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield what one message says with an id of its own for each call."""
    seen: set[str] = set()
    for piece in pieces:
        if isinstance(piece, ToolCall):
            names = (piece.id if number == 1 else f"{piece.id}-{number}" for number in count(1))
            piece = attrs.evolve(piece, id=next(name for name in names if name not in seen))  # noqa: PLW2901 (the same call)
            seen.add(piece.id)
        yield piece


@attrs.frozen
class _Turn:
    """What one message says, and the results of its calls."""

    said: Said
    results: list[Said] = attrs.field(factory=list)
