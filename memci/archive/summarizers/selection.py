"""Chooses which stretches of a page's words are worth their tokens."""

import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate

import attrs

from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.passage import Atom

JOIN, JOIN_TOKENS = " … ", 1.0  # what stands between two stretches that are no neighbours in the source
_ASKING = frozenset("?？!！")
_CLOSING = {")": "(", "）": "（", "]": "["}
_NO_LONERS = frozenset({None, LiteralKind.NUMBER, LiteralKind.BLOB})
_FEWEST_WORDS = 2
_SMALLEST = 2.5  # tokens of a stretch for which a passage is opened
_MISFITS = 6  # atoms that found no room, after which no more are tried
_APART = float("inf")


@attrs.define(eq=False)
class Passage:
    """A stretch of source text that may stand on an entry's line."""

    entry: int  # number of its entry in the page, from 0
    speaker: str  # user, assistant, tool for a result, call for a call, or another role
    text: str
    atoms: list[Atom]  # in order, their worth set
    opening: str  # what stands before it at the beginning of the line, such as "user: "
    following: str  # what stands before it after another passage of the same line
    closing: str
    opening_cost: float  # estimated tokens of opening or following and closing, with the line's own where it opens the line
    opening_worth: float  # what the opening tells by itself, such as the name of a tool


Stretch = tuple[int, int]  # neighbouring atoms that can be shown as one: the number of the first, and that after the last


def choose(passages: Sequence[Passage], room: float) -> list[list[Stretch] | None]:
    """Choose for each passage which stretches to show, together within *room* tokens; ``None`` for a passage that is left out.

    They have two words at least; a literal value may stand alone as long as most words of the page do not. Greedy by worth for
    each token, with a heap of upper bounds (the lazy form: Minoux, 1978). O(atoms · log atoms).
    """
    chosen = _Choice(passages, room, loners=True).make()
    pairs = zip(passages, chosen, strict=True)
    sizes = [sum(atom.words for atom in passage.atoms[first:last]) for passage, each in pairs for first, last in each or ()]
    alone = sum(size for size in sizes if size < _FEWEST_WORDS)
    return chosen if 2 * alone <= sum(sizes) else _Choice(passages, room, loners=False).make()


def shown(passage: Passage, stretches: Sequence[Stretch]) -> str:
    """Write stretches out as they stand in the source, joined by ``JOIN``."""
    texts = []
    for first, last in stretches:
        atoms = passage.atoms[first:last]
        text = "".join([(atom.gap or "") + passage.text[atom.start : atom.end] for atom in atoms])
        text = text.removeprefix(atoms[0].gap or "")
        mark = passage.text[atoms[-1].end : atoms[-1].end + 1]
        closes = mark in _ASKING or (mark in _CLOSING and _CLOSING[mark] in text)
        texts.append(text + mark if closes else text)
    return JOIN.join(texts)


class _Choice:
    """One pass over the atoms of all passages, the most telling first, while there is room."""

    def __init__(self, passages: Sequence[Passage], room: float, *, loners: bool) -> None:
        self.passages = passages
        self.left = room
        self.loners = loners
        self.atoms = [atom for passage in passages for atom in passage.atoms]
        # What the gap before each atom costs; one more that is never taken stands at the end and, as Python counts, at place -1.
        self.joins = [*[_APART if atom.gap is None else atom.gap_cost for atom in self.atoms], _APART]
        self.costs = [atom.cost for atom in self.atoms]
        self.worths = [atom.worth for atom in self.atoms]
        self.taken = bytearray(len(self.atoms) + 1)
        self.is_open = bytearray(len(passages))
        self.is_shown = bytearray(len(passages))  # in part, beside its opening
        self.bases = list(accumulate((len(passage.atoms) for passage in passages), initial=0))
        self.densities = [-worth / cost for worth, cost in zip(self.worths, self.costs, strict=True)]
        self.heap: list[tuple[float, int, int]] = []  # less worth a token, atom (-1 opens the passage), passage

    def make(self) -> list[list[Stretch] | None]:
        whole = sum(self.costs) + sum([JOIN_TOKENS if join == _APART else join for join in self.joins[:-1]])
        whole += sum([passage.opening_cost - (JOIN_TOKENS if passage.atoms else 0.0) for passage in self.passages])
        if whole <= self.left:
            self.taken[:-1] = b"\1" * len(self.atoms)
            self.is_open[:] = b"\1" * len(self.is_open)
        else:
            self._fill()
        return [self._stretches(number) if self.is_open[number] else None for number in range(len(self.passages))]

    def _stretches(self, number: int) -> list[Stretch]:
        base, stop = self.bases[number : number + 2]
        found: list[Stretch] = []
        for place in range(base, stop):
            if self.taken[place]:
                goes_on = found and found[-1][1] == place - base and self.joins[place] != _APART
                first = found.pop()[0] if goes_on else place - base
                found.append((first, place - base + 1))
        return found

    def _fill(self) -> None:
        """Take what tells most for its tokens, until nothing more fits."""
        self.heap = [(self._opening_density(number), -1, number) for number in range(len(self.passages))]
        heapify(self.heap)
        misfits = 0
        while self.heap and self.left >= 1 and misfits < _MISFITS:
            bound, atom, number = heappop(self.heap)
            if atom < 0:
                self._open(number)
            elif not self.taken[atom]:
                first, last = self._span(atom)
                cost = self._added(first, last)
                density = -sum(self.worths[first:last]) / cost if cost > 0 else bound
                if cost > self.left:
                    misfits += 1
                elif self.heap and density > self.heap[0][0]:
                    heappush(self.heap, (density, atom, number))
                else:
                    self._take(first, last, cost, number)

    def _opening_density(self, number: int) -> float:
        """Return, negative, about the best worth a token of a passage's opening with its most telling atoms."""
        worth, cost = -self.passages[number].opening_worth, self.passages[number].opening_cost
        for place in sorted(range(*self.bases[number : number + 2]), key=self.densities.__getitem__):
            if self.densities[place] * cost >= worth:
                break
            worth -= self.worths[place]
            cost += self.costs[place] + JOIN_TOKENS
        return worth / cost if cost > 0 else -math.inf

    def _open(self, number: int) -> None:
        passage = self.passages[number]
        if passage.opening_cost + (0 if passage.opening_worth else _SMALLEST) <= self.left:
            self.is_open[number] = 1
            self.left -= passage.opening_cost
            first, last = self.bases[number : number + 2]
            self.heap += [(self.densities[atom], atom, number) for atom in range(first, last)]
            heapify(self.heap)

    def _span(self, atom: int) -> Stretch:
        """Return the atom, or where it may not stand alone, the better of the pairs that it makes with its neighbours."""
        this = self.atoms[atom]
        before, after = self.joins[atom] != _APART, self.joins[atom + 1] != _APART
        if (
            this.words >= _FEWEST_WORDS
            or not (before or after)
            or (before and self.taken[atom - 1])
            or (after and self.taken[atom + 1])
            or (self.loners and this.kind not in _NO_LONERS)
        ):
            return atom, atom + 1
        if not (before and after):
            return (atom - 1, atom + 1) if before else (atom, atom + 2)
        left = (this.worth + self.worths[atom - 1]) * (this.cost + self.costs[atom + 1] + self.joins[atom + 1])
        right = (this.worth + self.worths[atom + 1]) * (this.cost + self.costs[atom - 1] + self.joins[atom])
        return (atom - 1, atom + 1) if left > right else (atom, atom + 2)

    def _added(self, first: int, last: int) -> float:
        """Return how many tokens it adds to show one atom, or two, that are not shown yet."""
        cost = JOIN_TOKENS + self.costs[first]
        if last - first > 1:
            cost += self.costs[first + 1] + self.joins[first + 1]
        if self.taken[first - 1] and self.joins[first] != _APART:
            cost += self.joins[first] - JOIN_TOKENS
        if self.taken[last] and self.joins[last] != _APART:
            cost += self.joins[last] - JOIN_TOKENS
        return cost

    def _take(self, first: int, last: int, cost: float, number: int) -> None:
        """Show atoms, and what fills a gap for no more than it costs to leave it; their neighbours are weighed again."""
        self.left -= cost if self.is_shown[number] else cost - JOIN_TOKENS  # the first stretch is joined to nothing
        self.is_shown[number] = 1
        self.taken[first:last] = b"\1" * (last - first)
        for near, beyond in ((first - 1, first - 2), (last, last + 1)):
            if self.joins[max(near, first)] == _APART or self.taken[near]:
                continue
            if self.taken[beyond] and (cost := self._added(near, near + 1)) <= 0:
                self._take(near, near + 1, cost, number)
            else:
                heappush(self.heap, (self.densities[near], near, number))
