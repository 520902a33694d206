"""Summaries without a model, in the page's own words."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memci.archive.summarizers import traits
from memci.archive.summarizers.entries import read_entries
from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.rarity import STOP_WORTH
from memci.archive.summarizers.selection import JOIN, Passage, choose, shown
from memci.archive.summarizers.summary import Summary
from memci.messages.message import Message

_FALLBACK_CHARACTERS = 60
_NO_TEXT = "no text"
_SPACES = re.compile(" +")
_BREAKING = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Marks that reorder or hide text: a line of the contents page must read as it stands.
_HIDDEN = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_SPEAKER_WORTH = {"user": 1.2, "assistant": 1.0, "call": 0.9, "tool": 0.8}
_OTHER_WORTH = 0.5
_REPEATED_SHARE = 0.25
_EARLY_ATOMS = 20
_LATE = (1.0, *(min(1.0, (_EARLY_ATOMS / place) ** 0.3) for place in range(1, 2_000)))
_LATE_KINDS = frozenset({None, LiteralKind.NUMBER, LiteralKind.PAIR})
_SHORT_ATOMS = 40
_LONG_POWER = 0.25

_TITLE_WORDS = 8
_TITLE_TOKENS = 12.0
_TITLE_ATOMS = 400
_TITLED_SHARE = 0.2
_RUN_WORDS = 14
_RUN_TOKENS = 26.0
_TELLING_WORTH = 0.25
_SENTENCE_START_WORTH = 0.2


class ExtractiveSummarizer:
    """The default summariser: no model, no I/O, the same answer for the same page, any language.

    Lines are runs of at least two words as they stand in the source (literal values may stand alone), joined by `` … ``. Rare
    words and literal values are worth most; common words little; what was said before in the page, or in the title, a fraction.
    """

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary:
        """Summarise the messages of one page, oldest first, in lines of *max_tokens* estimated tokens. Linear in the page.

        Of an entry of more than 40,000 characters, rare words are looked for in both ends, literal values in the first
        250,000 characters and the end.
        """
        entries = read_entries(messages)
        passages = [passage for entry in entries for passage in entry.passages]
        _weigh(passages)
        keywords = _lined(traits.keywords(passages))
        entities = _lined(traits.entities(passages))
        spans = _lined(traits.spans(passages))
        changes = _lined(traits.state_changes(entries))
        summary, outcome = _summary_and_outcome(passages)
        title = one_line(_title(passages)) or _fallback_title(passages)  # what it says is worth less from here on
        return Summary(
            title=title,
            summary=one_line(summary),
            lines=_lines(passages, max_tokens),
            outcome=one_line(outcome),
            keywords=keywords,
            spans=spans,
            entities=entities,
            state_changes=changes,
            importance=traits.importance(len(keywords), len(entities), len(changes)),
        )


def one_line(text: str) -> str:
    """Return a text as one line that shows what it holds: no line breaks, controls, hidden marks or halves of characters."""
    if text.isprintable():
        return _SPACES.sub(" ", text).strip() if "  " in text else text.strip()
    plain = _SURROGATE.sub("\ufffd", _HIDDEN.sub("", text))
    return _BREAKING.sub(" ", plain).strip()


def _lined(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(one_line, texts)))


def _weigh(passages: Sequence[Passage]) -> None:
    """Set the worth of every atom: that of what it says, times the weight of who says it.

    Words and bare numbers after the twentieth atom of their passage count ``(20 / place) ** 0.3``, everything in a passage of
    more than forty atoms that the user did not say ``(40 / atoms) ** 0.25``. What was said before in the page counts a quarter;
    the user is taken to speak first.
    """
    said: set[str] = set()
    for passage in sorted(passages, key=lambda passage: passage.speaker != "user"):
        weight = _SPEAKER_WORTH.get(passage.speaker, _OTHER_WORTH)
        if passage.speaker != "user" and len(passage.atoms) > _SHORT_ATOMS:
            weight *= (_SHORT_ATOMS / len(passage.atoms)) ** _LONG_POWER
        for place, atom in enumerate(passage.atoms, 1):
            worth = 0.0
            for form, value in atom.forms:
                worth += value * _REPEATED_SHARE if form in said else value
                said.add(form)
            if place > _EARLY_ATOMS and atom.kind in _LATE_KINDS:
                worth *= _LATE[place] if place < len(_LATE) else _LATE[-1]
            atom.worth = worth * weight


def _lines(passages: Sequence[Passage], max_tokens: int) -> tuple[str, ...]:
    lines: dict[int, str] = {}
    for passage, runs in zip(passages, choose(passages, max_tokens), strict=True):
        text = one_line(shown(passage, runs or ()))
        if runs is not None and (text or passage.opening_worth):
            opening = passage.following if passage.entry in lines else passage.opening
            lines[passage.entry] = lines.get(passage.entry, "") + opening + text + passage.closing
    return tuple(line.strip() for line in lines.values())


def _fallback_title(passages: Sequence[Passage]) -> str:
    found = (one_line(passage.text[:_FALLBACK_CHARACTERS]) or passage.opening.strip(" :(→") for passage in passages)
    return next(filter(None, found), _NO_TEXT)


class _Telling(NamedTuple):
    """A run of atoms of one passage that tells *worth*."""

    worth: float
    passage: Passage
    first: int
    last: int

    def text(self) -> str:
        return shown(self.passage, [(self.first, self.last)])


def _title(passages: Sequence[Passage]) -> str:
    """Return at most eight words of what was asked, or where no user speaks, of what was called or said first.

    The words it takes are then worth a fifth, so that the lines say other things. Empty when the page has no word.
    """
    spoken = [passage for passage in passages if passage.atoms]
    asked = [passage for passage in spoken if passage.speaker == "user"] or spoken[:2]
    if not asked:
        return ""
    best = max((_best_run(passage, _TITLE_WORDS, _TITLE_TOKENS, sentence=True) for passage in asked), key=lambda run: run.worth)
    worth, passage, first, last = best
    if worth >= _TELLING_WORTH:
        while last - first > 1 and _says_little(passage, first):
            first += 1
        while last - first > 1 and _says_little(passage, last - 1):
            last -= 1
    for atom in passage.atoms[first:last]:
        atom.worth *= _TITLED_SHARE
    return shown(passage, [(first, last)])


def _summary_and_outcome(passages: Sequence[Passage]) -> tuple[str, str]:
    """Return the most telling run of each of the two passages that tell most, and that of the last thing the assistant said.

    Fourteen words at most of each passage; both may be empty.
    """
    runs = [_best_run(passage, _RUN_WORDS, _RUN_TOKENS) for passage in passages if passage.atoms]
    telling = [(-run.worth, number) for number, run in enumerate(runs) if run.worth >= _TELLING_WORTH]
    chosen = sorted(number for _, number in sorted(telling)[:2])
    said = [run for run in runs if run.passage.speaker == "assistant"][-1:]
    outcome = "".join(run.text() for run in said if run.worth >= _TELLING_WORTH)
    return JOIN.join(runs[number].text() for number in chosen), outcome


def _says_little(passage: Passage, number: int) -> bool:
    return all(worth <= STOP_WORTH for _, worth in passage.atoms[number].forms)


def _best_run(passage: Passage, most_words: int, most_tokens: float, *, sentence: bool = False) -> _Telling:
    """Return the most telling run of these sizes at most, or the first atom; O(atoms).

    With *sentence*, the run lies in one sentence, of the first 400 atoms, and it is better to begin with the sentence.
    """
    atoms = passage.atoms[:_TITLE_ATOMS] if sentence else passage.atoms
    best = _Telling(0.0, passage, 0, 1)
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
            best = _Telling(worth, passage, start, number + 1)
    return best
