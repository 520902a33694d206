"""Chooses which stretches of a page's words are worth their tokens."""

import math
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import compress, repeat

import attrs

from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.passage import Atoms

JOIN, JOIN_TOKENS = " … ", 1.0  # what stands between two stretches that are no neighbours in the source
_ASKING = frozenset("?？!！")
_SUBJECTS = frozenset({LiteralKind.PATH, LiteralKind.URL, LiteralKind.CLAUSE})  # what a call is about: file, address or command
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
    places: range  # of its atoms among those of the page
    opening: str  # what stands before it at the beginning of the line, such as "user: "
    following: str  # what stands before it after another passage of the same line
    closing: str
    opening_cost: float  # estimated tokens of opening or following and closing, with the line's own where it opens the line
    opening_worth: float  # what the opening tells by itself, such as the name of a tool
    tool: str = ""  # name of the tool that a call calls
    call: int | None = None  # of a result: the number of the passage of its call
    failure: str = ""  # of a call: the words by which its result says that it failed


_Candidate = tuple[float, int, int, int]  # less worth a token, atom (-1 opens the passage), passage, whether others follow it
Stretch = tuple[int, int]  # neighbouring atoms that can be shown as one: the place of the first, and that after the last


def choose(atoms: Atoms, passages: Sequence[Passage], room: float) -> list[list[Stretch] | None]:
    """Choose for each passage which stretches to show, together within *room* tokens; ``None`` for a passage that is left out.

    They have two words at least; a literal value may stand alone as long as most words of the page do not. Greedy by worth for
    each token, with a heap of upper bounds (the lazy form: Minoux, 1978). O(atoms · log atoms).
    """
    chosen = _Choice(atoms, passages, room, loners=True).make()
    sizes = [sum(atoms.words[first:last]) for each in chosen for first, last in each or ()]
    alone = sum([size for size in sizes if size < _FEWEST_WORDS])
    return chosen if 2 * alone <= sum(sizes) else _Choice(atoms, passages, room, loners=False).make()


def subject_of(atoms: Atoms, passage: Passage) -> int | None:
    """Return the place of what a call is about, such as a file; ``None`` where it tells none, and for what is no call."""
    first = passage.places.start
    return first if passage.tool and passage.places and atoms.kinds[first] in _SUBJECTS else None


def shown(atoms: Atoms, first: int, last: int) -> str:
    """Write neighbouring atoms out as they stand in their source."""
    text = atoms.texts[first]
    if last - first > 1:
        text += "".join([(atoms.gaps[place][0] or "") + atoms.texts[place] for place in range(first + 1, last)])
    mark = atoms.after[last - 1][:1]
    return text + mark if mark in _ASKING or (mark in _CLOSING and _CLOSING[mark] in text) else text


class _Choice:
    """One pass over the atoms of all passages, the most telling first, while there is room."""

    def __init__(self, atoms: Atoms, passages: Sequence[Passage], room: float, *, loners: bool) -> None:
        self.passages = passages
        self.left = room
        # What the gap before each atom costs; one more that is never taken stands at the end and, as Python counts, at place -1.
        self.joins = [*[_APART if gap is None else cost for gap, cost, _ in atoms.gaps], _APART]
        self.atoms = atoms
        self.costs = atoms.costs
        self.worths = atoms.worths
        self.loners = loners
        self.taken = bytearray(len(self.costs) + 1)
        self.is_open = bytearray(len(passages))
        self.is_shown = bytearray(len(passages))  # in part, beside its opening
        self.densities = [-worth / cost for worth, cost in zip(self.worths, self.costs, strict=True)]
        self.heap: list[_Candidate] = []
        self.orders: list[Iterator[_Candidate]] = []  # the atoms of each passage, in that order; only the next one is in the heap

    def make(self) -> list[list[Stretch] | None]:
        whole = sum(self.costs) + sum([JOIN_TOKENS if join == _APART else join for join in self.joins[:-1]])
        whole += sum([passage.opening_cost - (JOIN_TOKENS if passage.places else 0.0) for passage in self.passages])
        if whole <= self.left:
            self.taken[:-1] = b"\1" * len(self.costs)
            self.is_open[:] = b"\1" * len(self.is_open)
        else:
            self._fill()
        pairs = zip(self.passages, self.is_open, strict=True)
        return [self._stretches(passage.places) if is_open else None for passage, is_open in pairs]

    def _stretches(self, places: range) -> list[Stretch]:
        found: list[Stretch] = []
        for place in compress(places, self.taken[places.start : places.stop]):
            goes_on = found and found[-1][1] == place and self.joins[place] != _APART
            found.append((found.pop()[0] if goes_on else place, place + 1))
        return found

    def _fill(self) -> None:
        """Take what tells most for its tokens, until nothing more fits."""
        heap = self.heap
        for number, passage in enumerate(self.passages):
            order = sorted(passage.places, key=self.densities.__getitem__)
            self.orders.append(zip(map(self.densities.__getitem__, order), order, repeat(number), repeat(1)))
            heap.append((self._opening_density(passage, order), -1, number, 0))
        heapify(heap)
        misfits = 0
        while heap and self.left >= 1 and misfits < _MISFITS:
            bound, atom, number, leads = heappop(heap)
            if leads:
                self._go_on(number)
            if atom < 0:
                self._open(number)
            elif not self.taken[atom]:
                first, last = self._span(atom)
                cost = self._added(first, last)
                worth = self.worths[first] if last - first == 1 else self.worths[first] + self.worths[first + 1]
                density = -worth / cost if cost > 0 else bound
                if cost > self.left:
                    misfits += 1
                elif heap and density > heap[0][0]:
                    heappush(heap, (density, atom, number, 0))
                else:
                    self._take(first, last, cost, number)

    def _go_on(self, number: int) -> None:
        """Put a passage's next atom into the heap."""
        if candidate := next(self.orders[number], None):
            heappush(self.heap, candidate)

    def _opening_density(self, passage: Passage, order: Sequence[int]) -> float:
        """Return, negative, about the best worth a token of a passage's opening with its most telling atoms."""
        worth, cost = -passage.opening_worth, passage.opening_cost
        for place in order:
            if self.densities[place] * cost >= worth:
                break
            worth -= self.worths[place]
            cost += self.costs[place] + JOIN_TOKENS
        return worth / cost if cost > 0 else -math.inf

    def _open(self, number: int) -> None:
        """Open a passage, where there is room; one of a call with what that is about."""
        passage, subject = self.passages[number], subject_of(self.atoms, self.passages[number])
        cost = 0.0 if passage.opening_worth else _SMALLEST
        cost = cost if subject is None else self.costs[subject]
        if passage.opening_cost + cost <= self.left:
            self.is_open[number] = 1
            self.left -= passage.opening_cost
            if subject is not None and not self.taken[subject]:
                self._take(subject, subject + 1, cost, number)
            self._go_on(number)

    def _span(self, atom: int) -> Stretch:
        """Return the atom, or where it may not stand alone, the better of the pairs that it makes with its neighbours."""
        joins, taken, costs, worths = self.joins, self.taken, self.costs, self.worths
        before, after = joins[atom] != _APART, joins[atom + 1] != _APART
        if (
            self.atoms.words[atom] >= _FEWEST_WORDS
            or not (before or after)
            or (before and taken[atom - 1])
            or (after and taken[atom + 1])
            or (self.loners and self.atoms.kinds[atom] not in _NO_LONERS)
        ):
            return atom, atom + 1
        if not (before and after):
            return (atom - 1, atom + 1) if before else (atom, atom + 2)
        left = (worths[atom] + worths[atom - 1]) * (costs[atom] + costs[atom + 1] + joins[atom + 1])
        right = (worths[atom] + worths[atom + 1]) * (costs[atom] + costs[atom - 1] + joins[atom])
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
                heappush(self.heap, (self.densities[near], near, number, 0))
