"""Chooses which runs of a page's words are worth their tokens.

A Lagrangian relaxation of the knapsack: for a price per token, the best runs of a passage come from one pass of dynamic
programming over its atoms; the price is then searched for which the whole page just fits its room.
"""

from collections.abc import Sequence

import attrs

from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.passage import Atom

JOIN = " … "
"""What stands between two runs that are no neighbours in the source."""

JOIN_TOKENS = 1.0
_ASKING = frozenset("?？!！")
_CLOSING = {")": "(", "）": "（", "]": "["}
_LOWEST_PRICE = 0.005
_HIGHEST_PRICE = 8.0
_STEPS = 8
_CANDIDATES_PER_TOKEN = 8
_BLOCK_ATOMS = 24
_FEWEST_WORDS = 2
_NO_LONERS = frozenset({None, LiteralKind.NUMBER, LiteralKind.BLOB})
_FILLING_SHARE = 0.5
_POOR_SHARE = 0.6
_SMALLEST_FILLING = 3.0


@attrs.define(eq=False)
class Passage:
    """A stretch of source text that may stand on an entry's line.

    Attributes:
        entry: Number of its entry in the page, from 0.
        speaker: ``user``, ``assistant``, ``tool`` for a result, ``call`` for a call, or another role.
        text: The source.
        atoms: Its atoms, in order, their worth set.
        opening: What stands before it at the beginning of the line, such as ``user: ``.
        following: What stands before it behind another passage of the same line.
        closing: What stands behind it.
        opening_cost: Estimated tokens of both, with the line's own where it opens the line.
        opening_worth: What the opening tells by itself, such as the name of a tool.
    """

    entry: int
    speaker: str
    text: str
    atoms: list[Atom]
    opening: str
    following: str
    closing: str
    opening_cost: float
    opening_worth: float


@attrs.frozen
class Choice:
    """What to show of a passage.

    Attributes:
        runs: Each run of atoms as its first number and the number behind its last; in order.
        cost: Estimated tokens, opening included; 0 when nothing is shown.
        worth: What is told.
    """

    runs: tuple[tuple[int, int], ...]
    cost: float
    worth: float


_NOTHING = Choice((), 0.0, 0.0)


def choose(passages: Sequence[Passage], room: float) -> list[Choice | None]:
    """Choose for each passage what to show, together within *room* tokens; ``None`` for a passage that is left out.

    Runs have two words at least; a literal value may stand alone as long as most words of the page do not.
    O(atoms + room): a page far larger than its room is first reduced to its most telling sentences.
    """
    pools = _pools(passages, room * _CANDIDATES_PER_TOKEN)
    choices = _choose(passages, pools, room, loners=True)
    return choices if _mostly_runs(passages, choices) else _choose(passages, pools, room, loners=False)


def _choose(passages: Sequence[Passage], pools: Sequence[list[int]], room: float, *, loners: bool) -> list[Choice | None]:
    chosen = _search(passages, pools, room, loners=loners, sunk=False)
    if _cost(chosen) < _POOR_SHARE * room:
        other = _search(passages, pools, room, loners=loners, sunk=True)
        chosen = max(chosen, other, key=_worth)
    return chosen


def _search(
    passages: Sequence[Passage], pools: Sequence[list[int]], room: float, *, loners: bool, sunk: bool
) -> list[Choice | None]:
    """Find the lowest price at which the page fits its room, then fill what is left."""
    high = _best(passages, pools, _LOWEST_PRICE, loners=loners, sunk=sunk)
    if _cost(high) <= room:
        return high
    dear, cheap = _HIGHEST_PRICE, _LOWEST_PRICE
    low: list[Choice | None] = [None] * len(passages)
    for _ in range(_STEPS):
        price = (dear * cheap) ** 0.5
        choices = _best(passages, pools, price, loners=loners, sunk=sunk)
        if _cost(choices) <= room:
            dear, low = price, choices
        else:
            cheap, high = price, choices
    low = _filled(low, high, room)
    if room - _cost(low) < _SMALLEST_FILLING:
        return low
    return _filled(low, _best(passages, pools, dear * _FILLING_SHARE, loners=loners, sunk=sunk), room)


def shown(passage: Passage, choice: Choice) -> str:
    """Write a choice out: its runs as they stand in the source, joined by ``JOIN``."""
    runs = []
    for first, last in choice.runs:
        pieces = []
        for number in range(first, last):
            atom = passage.atoms[number]
            if number > first:
                pieces.append(atom.gap or "")
            pieces.append(passage.text[atom.start : atom.end])
        end = passage.atoms[last - 1].end
        behind = passage.text[end : end + 1]
        if behind in _ASKING or (behind in _CLOSING and _CLOSING[behind] in "".join(pieces)):
            pieces.append(behind)
        runs.append("".join(pieces))
    return JOIN.join(runs)


def _cost(choices: Sequence[Choice | None]) -> float:
    return sum(choice.cost for choice in choices if choice is not None)


def _worth(choices: Sequence[Choice | None]) -> float:
    return sum(choice.worth for choice in choices if choice is not None)


def _filled(low: list[Choice | None], high: list[Choice | None], room: float) -> list[Choice | None]:
    """Take passages of the choice that is too large into the one that fits, while there is room."""
    left = room - _cost(low)
    gains = []
    for number, (small, large) in enumerate(zip(low, high, strict=True)):
        before, after = small or _NOTHING, large or _NOTHING
        if after.cost > before.cost and after.worth > before.worth:
            gains.append(((before.worth - after.worth) / (after.cost - before.cost), number, after.cost - before.cost))
    filled = list(low)
    for _, number, cost in sorted(gains):
        if cost <= left:
            filled[number] = high[number]
            left -= cost
    return filled


def _pools(passages: Sequence[Passage], most: float) -> list[list[int]]:
    """Return the numbers of the atoms that take part, for each passage: all, or those of the most telling sentences."""
    whole = [list(range(len(passage.atoms))) for passage in passages]
    if sum(atom.cost + atom.gap_cost for passage in passages for atom in passage.atoms) <= most:
        return whole
    blocks = []
    for number, passage in enumerate(passages):
        first = 0
        for last in range(1, len(passage.atoms) + 1):
            if last == len(passage.atoms) or passage.atoms[last].opens or last - first >= _BLOCK_ATOMS:
                block = passage.atoms[first:last]
                cost = sum(atom.cost + atom.gap_cost for atom in block) + JOIN_TOKENS
                blocks.append((-sum(atom.worth for atom in block) / cost, number, first, last, cost))
                first = last
    chosen: list[list[tuple[int, int]]] = [[] for _ in passages]
    spent = 0.0
    for _, number, first, last, cost in sorted(blocks):
        if spent + cost <= most or not spent:
            spent += cost
            chosen[number].append((first, last))
    return [[atom for first, last in sorted(parts) for atom in range(first, last)] for parts in chosen]


def _mostly_runs(passages: Sequence[Passage], choices: Sequence[Choice | None]) -> bool:
    """Whether at least half of the chosen words stand in runs of two words and more."""
    words = alone = 0
    for passage, choice in zip(passages, choices, strict=True):
        for first, last in choice.runs if choice is not None else ():
            size = sum(atom.words for atom in passage.atoms[first:last])
            words += size
            alone += size if size < _FEWEST_WORDS else 0
    return 2 * alone <= words


def _best(
    passages: Sequence[Passage], pools: Sequence[list[int]], price: float, *, loners: bool, sunk: bool = False
) -> list[Choice | None]:
    return [_best_runs(passage, pool, price, loners=loners, sunk=sunk) for passage, pool in zip(passages, pools, strict=True)]


def _best_runs(passage: Passage, pool: list[int], price: float, *, loners: bool, sunk: bool) -> Choice | None:
    """Find the runs of at least two words that tell most, less *price* for each token; ``None`` if that is nothing. O(atoms).

    With *sunk*, what opens the line is not paid for: one good run is then enough to show it.
    """
    atoms = passage.atoms
    out, one, two = 0.0, float("-inf"), float("-inf")
    steps: list[tuple[bool, bool, bool]] = []  # out came from a run; a run of one starts here; a longer run goes on
    last = -2
    for number in pool:
        atom = atoms[number]
        gain = atom.worth - price * atom.cost
        joined = number == last + 1 and atom.gap is not None
        closed = two > out
        before = two if closed else out
        started = before + gain - price * JOIN_TOKENS
        longer = max(one, two) + gain - price * atom.gap_cost if joined else float("-inf")
        alone = atom.words < _FEWEST_WORDS and not (loners and atom.kind not in _NO_LONERS) and not _is_lonely(atoms, number)
        grows = longer >= started or alone
        steps.append((closed, one > two, grows))
        out, one, two = before, started if alone else float("-inf"), longer if grows else started
        last = number
    opening = 0.0 if sunk else passage.opening_worth - price * passage.opening_cost
    opening += price * JOIN_TOKENS
    if max(out, two) + opening <= 0:
        return Choice((), passage.opening_cost, passage.opening_worth) if opening - price * JOIN_TOKENS > 0 else None
    return _walk_back(passage, pool, steps, two > out)


def _is_lonely(atoms: list[Atom], number: int) -> bool:
    """Whether an atom has no neighbour that it could be shown with."""
    return atoms[number].gap is None and (number + 1 == len(atoms) or atoms[number + 1].gap is None)


def _walk_back(passage: Passage, pool: list[int], steps: list[tuple[bool, bool, bool]], inside: bool) -> Choice:  # noqa: FBT001 (the last state)
    atoms = passage.atoms
    runs: list[tuple[int, int]] = []
    cost, worth = passage.opening_cost, passage.opening_worth
    state = 2 if inside else 0
    end = 0
    for place in range(len(pool) - 1, -1, -1):
        number = pool[place]
        closed, from_one, grows = steps[place]
        if state == 0:
            state = 2 if closed else 0
            end = 0
            continue
        end = end or number + 1
        atom = atoms[number]
        cost += atom.cost
        worth += atom.worth
        if state == 2 and grows:  # noqa: PLR2004 (inside a run of at least two words)
            cost += atom.gap_cost
            state = 1 if from_one else 2
        else:
            runs.append((number, end))
            end = 0
            state = 2 if closed else 0
    cost += JOIN_TOKENS * max(0, len(runs) - 1)
    return Choice(tuple(reversed(runs)), cost, worth)
