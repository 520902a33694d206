"""The short texts about a whole page: its title, its summary and how it ended."""

from collections.abc import Iterator, Sequence

import attrs

from memci.archive.summarizers.rarity import STOP_WORTH
from memci.archive.summarizers.selection import JOIN, Choice, Passage, shown

_TITLE_WORDS = 8
_TITLE_TOKENS = 12.0
_TITLE_ATOMS = 400
_TITLED_SHARE = 0.2
_SUMMARY_WORDS = (16, 12)
_SUMMARY_TOKENS = 26.0
_OUTCOME_WORDS = 16
_OUTCOME_TOKENS = 26.0
_OUTCOME_ATOMS = 2_000
_TELLING_WORTH = 0.25
_SENTENCE_START_WORTH = 0.2


@attrs.frozen
class _Window:
    """A run of atoms of one passage that tells *worth*."""

    worth: float
    passage: Passage
    first: int
    last: int

    def text(self) -> str:
        return shown(self.passage, Choice(((self.first, self.last),), 0.0, 0.0))


def title(passages: Sequence[Passage]) -> str:
    """Return at most eight words of what was asked, or where no user speaks, of what was called or said first.

    The words it takes are then worth a fifth, so that the lines say other things. Empty when the page has no word. O(atoms).
    """
    spoken = [passage for passage in passages if passage.atoms]
    asked = [passage for passage in spoken if passage.speaker == "user"] or spoken[:2]
    windows = [window for passage in asked for window in _windows(passage, _TITLE_WORDS, _TITLE_TOKENS, last=_TITLE_ATOMS)]
    if not windows:
        return ""
    best = max(windows, key=_title_worth)
    if best.worth < _TELLING_WORTH:
        best = max((window for window in windows if window.first == 0), key=lambda window: window.last)
    else:
        best = _trimmed(best)
    for atom in best.passage.atoms[best.first : best.last]:
        atom.worth *= _TITLED_SHARE
    return best.text()


def summary(passages: Sequence[Passage]) -> str:
    """Return the two runs of at most 28 words together that tell most beside the title; may be empty. O(atoms)."""
    runs: list[_Window] = []
    for words in _SUMMARY_WORDS:
        windows = (window for passage in passages for window in _windows(passage, words, _SUMMARY_TOKENS, sentence=False))
        best = max(
            (window for window in windows if not any(_touch(window, run) for run in runs)), key=lambda w: w.worth, default=None
        )
        if best is not None and best.worth >= _TELLING_WORTH:
            runs.append(best)
    order = {id(passage): number for number, passage in enumerate(passages)}
    runs.sort(key=lambda run: (order[id(run.passage)], run.first))
    return JOIN.join(run.text() for run in runs)


def outcome(passages: Sequence[Passage]) -> str:
    """Return the most telling words of the last thing that the assistant said; may be empty. O(atoms)."""
    said = [passage for passage in passages if passage.speaker == "assistant" and passage.atoms]
    if not said:
        return ""
    first = max(0, len(said[-1].atoms) - _OUTCOME_ATOMS)
    windows = list(_windows(said[-1], _OUTCOME_WORDS, _OUTCOME_TOKENS, first=first))
    best = max(windows, key=lambda window: window.worth)
    return best.text() if best.worth >= _TELLING_WORTH else ""


def _title_worth(window: _Window) -> float:
    return window.worth + (_SENTENCE_START_WORTH if window.passage.atoms[window.first].opens else 0.0)


def _trimmed(window: _Window) -> _Window:
    """Leave out the words at both ends that say nothing by themselves."""
    first, last = window.first, window.last
    while last - first > 1 and _says_little(window.passage, first):
        first += 1
    while last - first > 1 and _says_little(window.passage, last - 1):
        last -= 1
    return attrs.evolve(window, first=first, last=last)


def _says_little(passage: Passage, number: int) -> bool:
    return all(worth <= STOP_WORTH for _, worth in passage.atoms[number].forms)


def _touch(one: _Window, other: _Window) -> bool:
    return one.passage is other.passage and one.first < other.last and other.first < one.last


def _windows(  # noqa: PLR0913 (what bounds a run)
    passage: Passage, most_words: int, most_tokens: float, *, first: int = 0, last: int | None = None, sentence: bool = True
) -> Iterator[_Window]:
    """Yield for each atom the longest run that ends with it, within one sentence if asked, with these sizes at most. O(atoms)."""
    atoms = passage.atoms[:last]
    start = first
    words, cost, worth = 0, 0.0, 0.0
    for number in range(first, len(atoms)):
        atom = atoms[number]
        if number > start and (atom.gap is None or (sentence and atom.opens)):
            start, words, cost, worth = number, 0, 0.0, 0.0
        words += _size(passage, number)
        cost += atom.cost + atom.gap_cost
        worth += atom.worth
        while start < number and (words > most_words or cost > most_tokens):
            words -= _size(passage, start)
            cost -= atoms[start].cost + atoms[start].gap_cost
            worth -= atoms[start].worth
            start += 1
        if cost <= 2 * most_tokens:
            yield _Window(worth, passage, start, number + 1)


def _size(passage: Passage, number: int) -> int:
    """Count the words of an atom; a run of characters from a script without spaces is taken as one."""
    atom = passage.atoms[number]
    return 1 if atom.kind is None and len(passage.text[atom.start : atom.end].split()) <= 1 else atom.words
