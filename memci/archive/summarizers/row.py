"""The words of a page that its row in a directory is made of."""

import re
from collections.abc import Iterator, Sequence

from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.passage import Atom
from memci.archive.summarizers.selection import Passage, shown
from memci.archive.summarizers.summary import OTHERS, PASSAGE, Word
from memci.archive.summarizers.words import CJK

_TOKENS, _SHARE = 64.0, 0.75  # of all of them, at most; of the page
_LEAST_WORTH = 0.15
_UNSPACED = re.compile(f"[{CJK}]")
_UNSPACED_SHARE = 0.3  # of the tokens, from which on a page is one in a script without spaces
_UNSPACED_WORTH = 2.0  # of a word there: for a token such words tell half as much by the measures of words
_RESULT_WORTH = 0.6  # what a word of a result is worth, where those of the dialogue have 1
_LONG_TOKENS = 250  # of a page of which the user's first words say most
_BEGINNING_WORDS, _BEGINNING_WORTH = 16, 0.5  # how many, and what each is worth at least for a token
_NEAR = 2  # atoms of a script without spaces that are so far apart are shown with what stands between them
_INNER = frozenset({"", "(", "（", "·"})  # what stands within such a word
_MOST_ATOMS = 8  # of one word
_VALUES = frozenset({LiteralKind.MONEY, LiteralKind.NUMBER})  # of something
_OWNER_ATOMS = 2  # before a value, among which what it is the value of is looked for

_Run = tuple[int, int, int, float]  # number of the passage, first atom, that after the last, worth


def row_words(passages: Sequence[Passage]) -> tuple[Word, ...]:
    """Return what tells most of a page for its tokens, in its order; of a long one how the user began, too.

    What stands together in a script without spaces is one word, and so is a value with the word before it.
    """
    words: list[Word] = []
    factor = _UNSPACED_WORTH if _is_unspaced(passages) else 1.0
    before, end = -1, 0
    for number, first, last, worth in _joined(passages):
        passage = passages[number]
        lead = " "
        if number != before:
            others = passage.speaker != "user" and (before < 0 or passages[before].speaker == "user")
            lead = OTHERS if others else PASSAGE
        elif first == end:
            lead = passage.atoms[first].gap or ""
        text = shown(passage, [(first, last)])
        if len(text) > 1:
            words.append((text, round(factor * worth, 3), lead))
            before, end = number, last
    return tuple(words)


def _is_unspaced(passages: Sequence[Passage]) -> bool:
    atoms = [(passage.text, atom) for passage in passages for atom in passage.atoms]
    unspaced = sum(atom.cost for text, atom in atoms if _UNSPACED.match(text, atom.start))
    return unspaced > _UNSPACED_SHARE * sum(atom.cost for _, atom in atoms)


def _joined(passages: Sequence[Passage]) -> Iterator[_Run]:
    """Yield what is chosen, in order; neighbours of a script without spaces, and what overlaps, as one."""
    run: _Run | None = None
    for number, first, last, worth in sorted(_chosen(passages)):
        if run is not None and run[0] == number:
            gap = [atom.gap for atom in passages[number].atoms[run[2] : last]]
            if first < run[2] or (len(gap) <= _NEAR and last - run[1] <= _MOST_ATOMS and _INNER.issuperset(gap)):
                run = number, run[1], max(last, run[2]), run[3] + worth
                continue
        if run is not None:
            yield run
        run = number, first, last, worth
    if run is not None:
        yield run


def _chosen(passages: Sequence[Passage]) -> Iterator[_Run]:
    """Yield what tells most for its tokens, as much as there is room for."""
    size = sum(atom.cost for passage in passages for atom in passage.atoms)
    beginning = _BEGINNING_WORDS if size > _LONG_TOKENS else 0
    found: list[tuple[float, int, int, float]] = []
    for number, passage in enumerate(passages):
        weight = _RESULT_WORTH if passage.speaker == "tool" else 1.0
        for place, atom in enumerate(passage.atoms):
            worth = atom.worth * weight
            if passage.speaker == "user" and beginning > 0:
                beginning -= atom.words
                worth = max(worth, _BEGINNING_WORTH * atom.cost)
            if worth > _LEAST_WORTH and not _is_key(passage, atom):
                found.append((-worth / (atom.cost + 1), number, place, worth))
    left = min(_TOKENS, _SHARE * size)
    for _, number, place, worth in sorted(found):
        left -= passages[number].atoms[place].cost
        if left < 0:
            return
        yield number, _owner(passages[number].atoms, place), place + 1, worth


def _is_key(passage: Passage, atom: Atom) -> bool:
    """Return whether an atom is only the name of an argument, whose value stands behind it."""
    return passage.speaker == "call" and passage.text[atom.end : atom.end + 1] == "="


def _owner(atoms: Sequence[Atom], place: int) -> int:
    """Return the place of the word that a value belongs to, the nearest one before it that tells something; else its own."""
    if atoms[place].kind in _VALUES:
        for before in range(place - 1, max(place - 1 - _OWNER_ATOMS, -1), -1):
            if atoms[before + 1].gap is None:
                break
            if atoms[before].worth > _LEAST_WORTH and atoms[before].kind not in _VALUES:
                return before
    return place
