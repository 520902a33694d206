"""Summaries without a model, in the page's own words."""

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from memci.archive.summarizers.entries import Entry, clean_name, flat, read_entries
from memci.archive.summarizers.literals import LiteralKind, literals
from memci.archive.summarizers.passage import TELLING_KEY, Atom
from memci.archive.summarizers.rarity import FUNCTION_CHARACTERS, STOP_WORTH
from memci.archive.summarizers.row import row_words
from memci.archive.summarizers.selection import JOIN, Passage, choose, shown
from memci.archive.summarizers.summary import Summary
from memci.messages.message import Message

_SPACES = re.compile(" +")
_BREAKING = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Marks that reorder or hide text: a line of the contents page must read as it stands.
_HIDDEN = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_SPEAKER_WORTH = {"user": 1.2, "assistant": 1.0, "call": 0.9, "tool": 0.8}
_REPEATED_SHARE = 0.25
_EARLY_ATOMS = 20
_LATE_KINDS = frozenset({None, LiteralKind.NUMBER, LiteralKind.PAIR})
_SHORT_ATOMS = 40

_TITLE_WORDS, _TITLE_TOKENS = 8, 12.0
_TITLE_ATOMS = 400
_RUN_WORDS, _RUN_TOKENS = 14, 26.0
_TELLING_WORTH = 0.25
_SENTENCE_START_WORTH = 0.2

_CHANGE_CHARACTERS = 120
_RARE_WORD_WORTH = 0.8
_RARE_CHARACTERS_WORTH = 0.24
_READING_VERBS_TABLE = """
analyze ask browse calc calculate calculator cat check compare compute convert count describe diff display evaluate explain
fetch find get glob goto grep has head help inspect is list load locate look lookup ls match open peek ping preview print query
read recall render retrieve review scan scroll search select show stat status summarize tail test think thinking transfer
translate validate verify view wait web
"""
_READING_VERBS = frozenset(_READING_VERBS_TABLE.split())
_NO_VALUES = frozenset({None, LiteralKind.BLOB, LiteralKind.NUMBER})
_TELLING_DIGITS = 3
_MARK = re.compile(": |=")
_QUOTES = "\"'`“”‘’"
_VERB = re.compile("[A-Za-z][a-z]*")
_FAILED = re.compile("\\s*[{\\[(\"']{0,3}(?:error|failed|failure|exception|traceback)\\b", re.IGNORECASE)


class ExtractiveSummarizer:
    """The default summariser: no model, no I/O, the same answer for the same page, any language.

    Lines are runs of at least two words as they stand in the source (literal values may stand alone), joined by `` … ``. Rare
    words and literal values are worth most; common words little; what was said before in the page, or in the title, a fraction.
    """

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary:
        """Summarise the messages of one page, oldest first, in lines of *max_tokens* estimated tokens. Linear in the page.

        Of an entry of more than 40,000 characters, rare words are looked for in both ends, literal values in the first
        250,000 characters and the end. Importance is half for eight literal values, three tenths for twelve rare words (less for
        fewer of either), and a fifth where a call changed something.
        """
        entries = read_entries(messages)
        passages = [passage for entry in entries for passage in entry.passages]
        _weigh(passages)
        keywords, entities = _lined(_keywords(passages)), _lined(_entities(passages))
        words = tuple((text, worth, lead) for word, worth, lead in row_words(passages) if (text := one_line(word)))
        changes = _lined(_state_changes(entries))
        held = 0.5 * min(1.0, len(entities) / 8) + 0.3 * min(1.0, len(keywords) / 12)
        summary, outcome = _summary_and_outcome(passages)
        beginnings = (one_line(passage.text[:60]) or passage.opening.strip(" :(→") for passage in passages)
        title = one_line(_title(passages)) or next(filter(None, beginnings), "no text")  # what it says is worth less from here on
        return Summary(
            title=title,
            summary=one_line(summary),
            lines=_lines(passages, max_tokens),
            outcome=one_line(outcome),
            keywords=keywords,
            words=words,
            entities=entities,
            state_changes=changes,
            importance=round(held + (0.2 if changes else 0.0), 3),
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
    """Set the worth of every atom: that of what it says, times the weight of who says it; the user is taken to speak first."""
    # Less count words and bare numbers late in a passage, all atoms of a long one not of the user, and what was said before.
    said: set[str] = set()
    for passage in sorted(passages, key=lambda passage: passage.speaker != "user"):
        weight = _SPEAKER_WORTH.get(passage.speaker, 0.5)
        if passage.speaker != "user" and len(passage.atoms) > _SHORT_ATOMS:
            weight *= (_SHORT_ATOMS / len(passage.atoms)) ** 0.25
        for place, atom in enumerate(passage.atoms, 1):
            worth = 0.0
            for form, value in atom.forms:
                worth += value * _REPEATED_SHARE if form in said else value
                said.add(form)
            if place > _EARLY_ATOMS and atom.kind in _LATE_KINDS:
                worth *= (_EARLY_ATOMS / min(place, 1_999)) ** 0.3
            atom.worth = worth * weight


def _lines(passages: Sequence[Passage], max_tokens: int) -> tuple[str, ...]:
    lines: dict[int, str] = {}
    for passage, runs in zip(passages, choose(passages, max_tokens), strict=True):
        text = one_line(shown(passage, runs or ()))
        if runs is not None and (text or passage.opening_worth):
            opening = passage.following if passage.entry in lines else passage.opening
            lines[passage.entry] = lines.get(passage.entry, "") + opening + text + passage.closing
    return tuple(line.strip() for line in lines.values())


class _Telling(NamedTuple):
    """A run of atoms of one passage that tells *worth*."""

    worth: float
    passage: Passage
    first: int
    last: int

    def text(self) -> str:
        return shown(self.passage, [(self.first, self.last)])


def _title(passages: Sequence[Passage]) -> str:
    """Return at most eight words of what was asked, else of what came first; they are then worth a fifth, empty without words."""
    spoken = [passage for passage in passages if passage.atoms]
    asked = [passage for passage in spoken if passage.speaker == "user"] or spoken[:2]
    if not asked:
        return ""
    runs = (_best_run(passage, _TITLE_WORDS, _TITLE_TOKENS, sentence=True) for passage in asked)
    worth, passage, first, last = max(runs, key=itemgetter(0))
    if worth >= _TELLING_WORTH:
        while last - first > 1 and _says_little(passage.atoms[first]):
            first += 1
        while last - first > 1 and _says_little(passage.atoms[last - 1]):
            last -= 1
    for atom in passage.atoms[first:last]:
        atom.worth *= 0.2
    return shown(passage, [(first, last)])


def _says_little(atom: Atom) -> bool:
    return all(worth <= STOP_WORTH for _, worth in atom.forms)


def _summary_and_outcome(passages: Sequence[Passage]) -> tuple[str, str]:
    """Return the most telling words of the two passages that tell most, and of what the assistant said last, or nothing."""
    runs = [_best_run(passage, _RUN_WORDS, _RUN_TOKENS) for passage in passages if passage.atoms]
    telling = [(-run.worth, number) for number, run in enumerate(runs) if run.worth >= _TELLING_WORTH]
    chosen = sorted(number for _, number in sorted(telling)[:2])
    said = [run for run in runs if run.passage.speaker == "assistant"][-1:]
    outcome = "".join(run.text() for run in said if run.worth >= _TELLING_WORTH)
    return JOIN.join(runs[number].text() for number in chosen), outcome


def _best_run(passage: Passage, most_words: int, most_tokens: float, *, sentence: bool = False) -> _Telling:
    """Return the most telling run of these sizes, else the first atom; with *sentence* within one, better from its beginning."""
    atoms = passage.atoms[:_TITLE_ATOMS] if sentence else passage.atoms
    best, highest = (0.0, 0, 1), -1.0
    start = 0
    words, cost, worth, bonus = 0, 0.0, 0.0, 0.0
    for number, atom in enumerate(atoms):
        if atom.gap is None or (sentence and atom.opens):
            start, words, cost, worth = number, 0, 0.0, 0.0
            bonus = _SENTENCE_START_WORTH if sentence and atom.opens else 0.0
        words += 1 if atom.kind is None else atom.words
        cost += atom.cost + atom.gap_cost
        worth += atom.worth
        while start < number and (words > most_words or cost > most_tokens):
            gone = atoms[start]
            words -= 1 if gone.kind is None else gone.words
            cost -= gone.cost + gone.gap_cost
            worth -= gone.worth
            bonus = 0.0
            start += 1
        if worth + bonus > highest and cost <= 2 * most_tokens:
            highest = worth + bonus
            best = (worth, start, number + 1)
    return _Telling(best[0], passage, *best[1:])


def _keywords(passages: Sequence[Passage]) -> list[str]:
    """Return at most twelve rare words of a page as they were written first, most telling first."""
    found: dict[str, tuple[float, str]] = {}
    for passage in passages:
        for atom in passage.atoms:
            if atom.kind is None and atom.forms[-1][1] >= _RARE_CHARACTERS_WORTH and atom.forms[0][0] not in found:
                word = passage.text[atom.start : atom.end]
                if _is_rare(atom, word):
                    found[atom.forms[0][0]] = (-atom.worth, word)
    return [word for _, word in sorted(found.values(), key=itemgetter(0))[:12]]


def _is_rare(atom: Atom, word: str) -> bool:
    if word.isascii() or len(atom.forms) == 1:
        return len(word) > 1 and len(atom.forms) == 1 and atom.forms[0][1] >= _RARE_WORD_WORTH
    return word[0] not in FUNCTION_CHARACTERS


def _entities(passages: Sequence[Passage]) -> list[str]:
    """Return at most sixteen literal values of a page, whole, most telling first. O(atoms · log atoms)."""
    values = [
        (-atom.worth, passage.text, atom)
        for passage in passages
        for atom in passage.atoms
        if atom.kind not in _NO_VALUES or (atom.kind is LiteralKind.NUMBER and atom.end - atom.start >= _TELLING_DIGITS)
    ]
    chosen = (_value(text, atom) for _, text, atom in sorted(values, key=itemgetter(0))[:48])
    return list(dict.fromkeys(filter(None, chosen)))[:16]


def _value(text: str, atom: Atom) -> str:
    """Return the value that an atom is, or the one that a pair of key and value ends with; empty where it is none to keep."""
    if atom.kind is not LiteralKind.PAIR:
        return text[atom.start : atom.end].strip(_QUOTES)
    mark = _MARK.search(text, atom.start, atom.end)
    if mark is None:
        return ""
    value = text[mark.end() : atom.end]
    whole = any(end - start == len(value) and kind is not LiteralKind.NUMBER for start, end, kind in literals(value))
    return value if whole or TELLING_KEY.search(text[atom.start : mark.end()]) else ""


def _state_changes(entries: Sequence[Entry]) -> list[str]:
    """Return the last calls that changed something, as ``name(arguments)``: no reading by name, no error by result."""
    failed = {id(call) for entry in entries for call, text in entry.results if call is not None and _FAILED.match(text)}
    changes = []
    for call in (call for entry in entries for call in entry.calls if id(call) not in failed):
        verb = _VERB.search(call.name)
        if verb is not None and verb.group().lower() not in _READING_VERBS:
            arguments = flat(call.arguments, "=").text
            if len(arguments) > _CHANGE_CHARACTERS:
                arguments = arguments[: arguments.rfind(", ", 0, _CHANGE_CHARACTERS) + 1] + "…"
            changes.append(f"{clean_name(call.name)}({arguments})")
    return changes[-16:]
