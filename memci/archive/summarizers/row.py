"""The words of a page that its row in a directory is made of."""

from collections.abc import Iterator, Sequence

from memci.archive.summarizers.selection import Passage, shown
from memci.archive.summarizers.summary import OTHERS, PASSAGE, Word

_TOKENS, _SHARE = 64.0, 0.75  # of all of them, at most; of the page
_LEAST_WORTH = 0.15
_LONG_TOKENS = 250  # of a page of which the user's first words say most
_BEGINNING_WORDS, _BEGINNING_WORTH = 16, 0.5  # how many, and what each is worth at least for a token
_NEAR = 2  # atoms of a script without spaces that are so far apart are shown with what stands between them
_INNER = frozenset({"", "(", "（", "·"})  # what stands within such a word
_MOST_ATOMS = 8  # of one word


def row_words(passages: Sequence[Passage]) -> tuple[Word, ...]:
    """Return what tells most of a page for its tokens, in its order; of a long one how the user began, too.

    What stands together in a script without spaces is one word.
    """
    words: list[Word] = []
    before, end = -1, 0
    for number, first, last, worth in _runs(passages):
        passage = passages[number]
        lead = " "
        if number != before:
            others = passage.speaker != "user" and (before < 0 or passages[before].speaker == "user")
            lead = OTHERS if others else PASSAGE
        elif first == end:
            lead = passage.atoms[first].gap or ""
        text = shown(passage, [(first, last)])
        if len(text) > 1:
            words.append((text, round(worth, 3), lead))
            before, end = number, last
    return tuple(words)


def _runs(passages: Sequence[Passage]) -> Iterator[tuple[int, int, int, float]]:
    """Yield the passage, the first atom, that after the last, and the worth, of each word."""
    run: tuple[int, int, int, float] | None = None
    for number, place, worth in sorted(_chosen(passages)):
        if run is not None:
            of, first, last, total = run
            atoms = passages[number].atoms[last : place + 1]
            if (
                of == number
                and place - last < _NEAR
                and place - first < _MOST_ATOMS
                and all(atom.gap in _INNER for atom in atoms)
            ):
                run = number, first, place + 1, total + worth
                continue
            yield run
        run = number, place, place + 1, worth
    if run is not None:
        yield run


def _chosen(passages: Sequence[Passage]) -> Iterator[tuple[int, int, float]]:
    """Yield the passage, the place and the worth of the atoms that tell most for their tokens, as many as there is room for."""
    size = sum(atom.cost for passage in passages for atom in passage.atoms)
    beginning = _BEGINNING_WORDS if size > _LONG_TOKENS else 0
    found: list[tuple[float, int, int, float]] = []
    for number, passage in enumerate(passages):
        for place, atom in enumerate(passage.atoms):
            worth = atom.worth
            if passage.speaker == "user" and beginning > 0:
                beginning -= atom.words
                worth = max(worth, _BEGINNING_WORTH * atom.cost)
            if worth > _LEAST_WORTH:
                found.append((-worth / (atom.cost + 1), number, place, worth))
    left = min(_TOKENS, _SHARE * size)
    for _, number, place, worth in sorted(found):
        left -= passages[number].atoms[place].cost
        if left < 0:
            return
        yield number, place, worth
