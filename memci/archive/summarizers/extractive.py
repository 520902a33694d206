"""Summaries without a model, in the page's own words."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, compress, repeat
from operator import itemgetter
from typing import NamedTuple

from memci.archive.summarizers.entries import Source, clean_name, flat, read_source
from memci.archive.summarizers.literals import LiteralKind, literals
from memci.archive.summarizers.passage import TELLING_KEY, Atoms
from memci.archive.summarizers.rarity import STOP_WORTH, Told
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
_LATE = [1.0] * _EARLY_ATOMS + [(_EARLY_ATOMS / place) ** 0.3 for place in range(_EARLY_ATOMS + 1, 2_000)]
_LATE_KINDS = frozenset({None, LiteralKind.NUMBER, LiteralKind.PAIR})
_SHORT_ATOMS = 40

_TITLE_WORDS, _TITLE_TOKENS = 8, 12.0
_TITLE_SLACK = 3  # atoms by which a title is longer, where its sentence begins, or ends, with them
_TITLE_ATOMS = 400
_RUN_WORDS, _RUN_TOKENS = 14, 26.0
_TELLING_WORTH = 0.25
_SENTENCE_START_WORTH = 0.8

_CHANGE_CHARACTERS = 120
_READING_VERBS_TABLE = """
analyze ask browse calc calculate calculator cat check compare compute convert count describe diff display evaluate explain
fetch find get glob goto grep has head help inspect is list load locate look lookup ls match open peek ping preview print query
read recall render retrieve review scan scroll search select show stat status summarize tail test think thinking transfer
translate validate verify view wait web
"""
_READING_VERBS = frozenset(_READING_VERBS_TABLE.split())
_NO_VALUES = frozenset({LiteralKind.BLOB, LiteralKind.NUMBER})
_TELLING_DIGITS = 3
_MARK = re.compile(": |=")
_QUOTES = "\"'`“”‘’"
_VERB = re.compile("[A-Za-z][a-z]*")


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
        source = read_source(messages)
        atoms, passages = source.atoms, source.passages
        _weigh(atoms, passages)
        keywords, entities = _lined(_keywords(atoms)), _lined(_entities(atoms))
        words = tuple([(text, worth, lead) for word, worth, lead in row_words(atoms, passages) if (text := one_line(word))])
        changes = _lined(_state_changes(source))
        held = 0.5 * min(1.0, len(entities) / 8) + 0.3 * min(1.0, len(keywords) / 12)
        summary, outcome = _summary_and_outcome(atoms, passages)
        beginnings = (one_line("" if each.places else each.text[:60]) or each.opening.strip(" :(→") for each in passages)
        # What the title says is worth less from here on.
        title = one_line(_title(atoms, passages)) or next(filter(None, beginnings), "no text")
        return Summary(
            title=title,
            summary=one_line(summary),
            lines=_lines(atoms, passages, max_tokens),
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


def _weigh(atoms: Atoms, passages: Sequence[Passage]) -> None:
    """Set the worth of every atom: that of what it says, times the weight of who says it; the user is taken to speak first."""
    # Less count words and bare numbers late in a passage, all atoms of a long one not of the user, and what was said before.
    atoms.complete()
    known: set[str] = set()
    for passage in sorted(passages, key=lambda passage: passage.speaker != "user"):
        weight, places = _SPEAKER_WORTH.get(passage.speaker, 0.5), passage.places
        if passage.speaker != "user" and len(places) > _SHORT_ATOMS:
            weight *= (_SHORT_ATOMS / len(places)) ** 0.25
        some = slice(places.start, places.stop)
        worths = []
        for forms, kind, late in zip(atoms.forms[some], atoms.kinds[some], chain(_LATE, repeat(_LATE[-1]))):  # noqa: B905 (endless)
            worth = 0.0
            for form, value in forms:
                if form in known:
                    worth += value * _REPEATED_SHARE
                else:
                    worth += value
                    known.add(form)
            worths.append((worth * late if kind is None or kind in _LATE_KINDS else worth) * weight)
        atoms.worths[some] = worths


def _lines(atoms: Atoms, passages: Sequence[Passage], max_tokens: int) -> tuple[str, ...]:
    lines: dict[int, str] = {}
    for passage, runs in zip(passages, choose(atoms, passages, max_tokens), strict=True):
        text = one_line(JOIN.join([shown(atoms, first, last) for first, last in runs or ()]))
        if runs is not None and (text or passage.opening_worth):
            opening = passage.following if passage.entry in lines else passage.opening
            lines[passage.entry] = lines.get(passage.entry, "") + opening + text + passage.closing
    return tuple(line.strip() for line in lines.values())


class _Run(NamedTuple):
    """Neighbouring atoms that tell *worth*."""

    worth: float
    first: int
    last: int


def _title(atoms: Atoms, passages: Sequence[Passage]) -> str:
    """Return at most eight words of what was asked, else of what came first; they are then worth a fifth, empty without words."""
    spoken = [passage for passage in passages if passage.places]
    asked = [passage for passage in spoken if passage.speaker == "user"]
    for some in (asked, spoken[:2], spoken):
        runs = [_best_run(atoms, passage.places[:_TITLE_ATOMS], _TITLE_WORDS, _TITLE_TOKENS, sentence=True) for passage in some]
        runs = [run for run in runs if run.last > run.first]
        if runs:
            break
    else:
        return ""
    worth, first, last = max(runs, key=itemgetter(0))
    start, end = _sentence_start(atoms, first), _sentence_end(atoms, last)
    if worth >= _TELLING_WORTH:
        while start is None and last - first > 1 and _says_little(atoms.forms[first]):
            first += 1
        while end is None and last - first > 1 and _says_little(atoms.forms[last - 1]):
            last -= 1
    first, last = first if start is None else start, last if end is None else end
    atoms.worths[first:last] = [worth * 0.2 for worth in atoms.worths[first:last]]
    return shown(atoms, first, last)


def _sentence_start(atoms: Atoms, first: int) -> int | None:
    """Return where the sentence begins that an atom is in, if that is near."""
    for place in range(first, max(first - _TITLE_SLACK, 0) - 1, -1):
        gap, _, opens = atoms.gaps[place]
        if opens:
            return place
        if gap is None or sum(atoms.costs[place - 1 : first]) > _TITLE_TOKENS / 2:
            break
    return None


def _sentence_end(atoms: Atoms, last: int) -> int | None:
    """Return where the sentence ends that the atom before a place is in, if that is near."""
    for place in range(last, last + _TITLE_SLACK + 1):
        if atoms.ends_sentence(place):
            return place
        if atoms.gaps[place][0] is None or sum(atoms.costs[last : place + 1]) > _TITLE_TOKENS / 2:
            break
    return None


def _says_little(forms: Told) -> bool:
    return all(worth <= STOP_WORTH for _, worth in forms)


def _summary_and_outcome(atoms: Atoms, passages: Sequence[Passage]) -> tuple[str, str]:
    """Return the most telling words of the two passages that tell most, and of what the assistant said last, or nothing."""
    runs = [(_best_run(atoms, passage.places, _RUN_WORDS, _RUN_TOKENS), passage) for passage in passages if passage.places]
    texts = [shown(atoms, run.first, run.last) if run.worth >= _TELLING_WORTH else "" for run, passage in runs]
    telling = [number for number, (run, _) in enumerate(runs) if run.worth >= _TELLING_WORTH]
    chosen = sorted(sorted(telling, key=lambda number: -runs[number][0].worth)[:2])
    outcome = [text for text, (_, passage) in zip(texts, runs, strict=True) if passage.speaker == "assistant"][-1:]
    return JOIN.join(texts[number] for number in chosen), "".join(outcome)


def _best_run(atoms: Atoms, places: range, most_words: int, most_tokens: float, *, sentence: bool = False) -> _Run:
    """Return the most telling run of these sizes, empty where no atom has one; with *sentence* better from its beginning."""
    sizes, costs, worths = atoms.sizes, atoms.steps, atoms.worths
    best, highest = (0.0, places.start, places.start), -1.0
    start = places.start
    words, cost, worth, bonus = 0, 0.0, 0.0, 0.0
    some = slice(places.start, places.stop)
    columns = zip(places, atoms.gaps[some], sizes[some], costs[some], worths[some], strict=True)
    for place, (gap, _, opens), size, step, told in columns:
        if gap is None or (sentence and opens):
            start, words, cost, worth = place, 0, 0.0, 0.0
            bonus = _SENTENCE_START_WORTH if sentence and opens else 0.0
        words += size
        cost += step
        worth += told
        while (words > most_words or cost > most_tokens) and start < place:
            words -= sizes[start]
            cost -= costs[start]
            worth -= worths[start]
            bonus = 0.0
            start += 1
        if worth + bonus > highest and cost <= 2 * most_tokens:
            highest = worth + bonus
            best = worth, start, place + 1
    return _Run(*best)


def _keywords(atoms: Atoms) -> list[str]:
    """Return at most twelve rare words of a page as they were written first, most telling first."""
    found: dict[str, int] = {}
    for place in compress(range(len(atoms.texts)), atoms.rare):
        found.setdefault(atoms.forms[place][0][0], place)
    return [atoms.texts[place] for place in sorted(found.values(), key=lambda place: -atoms.worths[place])[:12]]


def _entities(atoms: Atoms) -> list[str]:
    """Return at most sixteen literal values of a page, whole, most telling first. O(atoms · log atoms)."""
    values = [
        place
        for place in compress(range(len(atoms.texts)), atoms.kinds)
        if atoms.kinds[place] not in _NO_VALUES
        or (atoms.kinds[place] is LiteralKind.NUMBER and len(atoms.texts[place]) >= _TELLING_DIGITS)
    ]
    chosen = sorted(values, key=lambda place: -atoms.worths[place])[:48]
    return list(dict.fromkeys(filter(None, [_value(atoms.texts[place], atoms.kinds[place]) for place in chosen])))[:16]


def _value(text: str, kind: LiteralKind | None) -> str:
    """Return the value that an atom is, or the one that a pair of key and value ends with; empty where it is none to keep."""
    if kind is not LiteralKind.PAIR:
        return text.strip(_QUOTES)
    mark = _MARK.search(text)
    if mark is None:
        return ""
    value = text[mark.end() :]
    whole = any(end - start == len(value) and kind is not LiteralKind.NUMBER for start, end, kind in literals(value))
    return value if whole or TELLING_KEY.search(text[: mark.end()]) else ""


def _state_changes(source: Source) -> list[str]:
    """Return the last calls that changed something, as ``name(arguments)``: no reading by name, no error by result."""
    failed = set(map(id, source.failed))
    changes = []
    for call in (call for call in source.calls if id(call) not in failed):
        verb = _VERB.search(call.name)
        if verb is not None and verb.group().lower() not in _READING_VERBS:
            arguments = flat(call.arguments, "=").text
            if len(arguments) > _CHANGE_CHARACTERS:
                arguments = arguments[: arguments.rfind(", ", 0, _CHANGE_CHARACTERS) + 1] + "…"
            changes.append(f"{clean_name(call.name)}({arguments})")
    return changes[-16:]
