"""The short texts about a whole page: its title, its summary and how it ended."""

from collections.abc import Sequence

import attrs

from memci.archive.summarizers.rarity import STOP_WORTH
from memci.archive.summarizers.selection import JOIN, Passage, shown

_TITLE_WORDS = 8
_TITLE_TOKENS = 12.0
_TITLE_ATOMS = 400
_TITLED_SHARE = 0.2
_RUN_WORDS = 14
_RUN_TOKENS = 26.0
_TELLING_WORTH = 0.25
_SENTENCE_START_WORTH = 0.2


@attrs.define(eq=False)
class _Run:
    """A run of atoms of one passage that tells *worth*."""

    worth: float
    passage: Passage
    first: int
    last: int

    def text(self) -> str:
        return shown(self.passage, [(self.first, self.last)])


def title(passages: Sequence[Passage]) -> str:
    """Return at most eight words of what was asked, or where no user speaks, of what was called or said first.

    The words it takes are then worth a fifth, so that the lines say other things. Empty when the page has no word. O(atoms).
    """
    spoken = [passage for passage in passages if passage.atoms]
    asked = [passage for passage in spoken if passage.speaker == "user"] or spoken[:2]
    if not asked:
        return ""
    best = max((_best_run(passage, _TITLE_WORDS, _TITLE_TOKENS, sentence=True) for passage in asked), key=lambda run: run.worth)
    if best.worth >= _TELLING_WORTH:
        while best.last - best.first > 1 and _says_little(best.passage, best.first):
            best.first += 1
        while best.last - best.first > 1 and _says_little(best.passage, best.last - 1):
            best.last -= 1
    for atom in best.passage.atoms[best.first : best.last]:
        atom.worth *= _TITLED_SHARE
    return best.text()


def summary_and_outcome(passages: Sequence[Passage]) -> tuple[str, str]:
    """Return the most telling run of each of the two passages that tell most, and that of the last thing the assistant said.

    Fourteen words at most of each passage; both may be empty. O(atoms).
    """
    runs = [_best_run(passage, _RUN_WORDS, _RUN_TOKENS) for passage in passages if passage.atoms]
    telling = [(-run.worth, number) for number, run in enumerate(runs) if run.worth >= _TELLING_WORTH]
    chosen = sorted(number for _, number in sorted(telling)[:2])
    said = [run for run in runs if run.passage.speaker == "assistant"][-1:]
    outcome = "".join(run.text() for run in said if run.worth >= _TELLING_WORTH)
    return JOIN.join(runs[number].text() for number in chosen), outcome


def _says_little(passage: Passage, number: int) -> bool:
    return all(worth <= STOP_WORTH for _, worth in passage.atoms[number].forms)


def _best_run(passage: Passage, most_words: int, most_tokens: float, *, sentence: bool = False) -> _Run:
    """Return the most telling run of these sizes at most, or the first atom; O(atoms).

    With *sentence*, the run lies in one sentence, of the first 400 atoms, and it is better to begin with the sentence.
    """
    atoms = passage.atoms[:_TITLE_ATOMS] if sentence else passage.atoms
    best = _Run(0.0, passage, 0, 1)
    highest = -1.0
    start = 0
    words, cost, worth, bonus = 0, 0.0, 0.0, 0.0
    for number, atom in enumerate(atoms):
        if atom.gap is None or (sentence and atom.opens):
            start, words, cost, worth = number, 0, 0.0, 0.0
            bonus = _SENTENCE_START_WORTH if sentence and atom.opens else 0.0
        words += atom.words if atom.kind is not None else 1
        cost += atom.cost + atom.gap_cost
        worth += atom.worth
        while start < number and (words > most_words or cost > most_tokens):
            gone = atoms[start]
            words -= gone.words if gone.kind is not None else 1
            cost -= gone.cost + gone.gap_cost
            worth -= gone.worth
            bonus = 0.0
            start += 1
        if worth + bonus > highest and cost <= 2 * most_tokens:
            highest = worth + bonus
            best.worth, best.first, best.last = worth, start, number + 1
    return best
