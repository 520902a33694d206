"""Results behind their calls, wherever they came in."""

from collections.abc import Iterable, Iterator

import attrs

from memci.messages.conversion.neutral import Piece, Said, ToolCall, ToolResult


def answered(conversation: Iterable[Said]) -> Iterator[Said]:
    """Yield what was said with each result directly behind the message that makes its call, as providers want them. O(its size).

    A result answers the newest call of its id that has none, as in a session. Results of one message's calls keep their order;
    what stands beside a result, and a result without a call, stay where they are.
    """
    turns: list[_Turn] = []
    waiting: dict[str, list[tuple[ToolCall, _Turn]]] = {}
    for said in conversation:
        rest: list[Piece] = []
        for piece in said.pieces:
            calls = waiting.get(piece.id) if isinstance(piece, ToolResult) else None
            if isinstance(piece, ToolResult) and calls:
                call, turn = calls.pop()
                turn.results.append(Said(said.place, said.role, (attrs.evolve(piece, free=call.free),)))
            else:
                rest.append(piece)
        if rest or not said.pieces:
            turns.append(_Turn(attrs.evolve(said, pieces=tuple(rest))))
        for piece in rest:
            if isinstance(piece, ToolCall):
                waiting.setdefault(piece.id, []).append((piece, turns[-1]))
    for turn in turns:
        yield turn.said
        yield from turn.results


@attrs.frozen
class _Turn:
    """What one message says, and the results of its calls."""

    said: Said
    results: list[Said] = attrs.field(factory=list)
