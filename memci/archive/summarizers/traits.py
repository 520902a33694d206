"""What a page holds, as short lists: rare words, literal values, changes that its tool calls made."""

import re
from collections.abc import Sequence
from operator import itemgetter

from memci.archive.summarizers.entries import Entry, clean_name, flat
from memci.archive.summarizers.literals import LiteralKind, literals
from memci.archive.summarizers.passage import TELLING_KEY, Atom
from memci.archive.summarizers.rarity import is_function_character
from memci.archive.summarizers.selection import JOIN_TOKENS, Passage, choose, shown

_KEYWORDS = 12
_ENTITIES = 16
_LOOKED_AT = 48
_SPANS_TOKENS = 30.0
_CHANGES = 16
_CHANGE_CHARACTERS = 120
_SHORTEST_WORD = 2
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


def keywords(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Return at most twelve rare words of a page as they were written first, most telling first."""
    found: dict[str, tuple[float, str]] = {}
    for passage in passages:
        for atom in passage.atoms:
            if atom.kind is None and atom.forms[-1][1] >= _RARE_CHARACTERS_WORTH:
                word = passage.text[atom.start : atom.end]
                if atom.forms[0][0] not in found and _is_rare(atom, word):
                    found[atom.forms[0][0]] = (-atom.worth, word)
    return tuple(word for _, word in sorted(found.values(), key=itemgetter(0))[:_KEYWORDS])


def spans(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Return short runs of a page's words, about thirty tokens together, most telling for its tokens first."""
    found: list[tuple[float, str]] = []
    for passage, runs in zip(passages, choose(passages, _SPANS_TOKENS), strict=True):
        for run in runs or ():
            atoms = passage.atoms[run[0] : run[1]]
            cost = JOIN_TOKENS + sum(atom.cost for atom in atoms) + sum(atom.gap_cost for atom in atoms[1:])
            found.append((sum(atom.worth for atom in atoms) / cost, shown(passage, [run])))
    return tuple(dict.fromkeys(text for _, text in sorted(found, key=lambda item: -item[0])))


def entities(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Return at most sixteen literal values of a page, whole, most telling first. O(atoms · log atoms)."""
    values = sorted(
        (-atom.worth, number, place)
        for number, passage in enumerate(passages)
        for place, atom in enumerate(passage.atoms)
        if atom.kind not in _NO_VALUES or (atom.kind is LiteralKind.NUMBER and atom.end - atom.start >= _TELLING_DIGITS)
    )
    chosen = (_value(passages[number].text, passages[number].atoms[place]) for _, number, place in values[:_LOOKED_AT])
    return tuple(dict.fromkeys(filter(None, chosen)))[:_ENTITIES]


def state_changes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the calls that changed something, as ``name(arguments)``: those whose name begins with no verb of reading.

    A call whose result begins with an error is left out. At most sixteen, the last ones.
    """
    failed = {id(call) for entry in entries for call, text in entry.results if call is not None and _FAILED.match(text)}
    changes = []
    for entry in entries:
        for call in entry.calls:
            verb = _VERB.search(call.name)
            if verb is None or verb.group().lower() in _READING_VERBS or id(call) in failed:
                continue
            arguments = flat(call.arguments, "=").text
            if len(arguments) > _CHANGE_CHARACTERS:
                arguments = arguments[: arguments.rfind(", ", 0, _CHANGE_CHARACTERS) + 1] + "…"
            changes.append(f"{clean_name(call.name)}({arguments})")
    return tuple(changes[-_CHANGES:])


def importance(keyword_count: int, entity_count: int, change_count: int) -> float:
    """Return 0 to 1: half for eight literal values, three tenths for twelve rare words (less for fewer), a fifth for a change."""
    values, words = min(1.0, entity_count / 8), min(1.0, keyword_count / 12)
    return round(0.5 * values + 0.3 * words + (0.2 if change_count else 0.0), 3)


def _is_rare(atom: Atom, word: str) -> bool:
    if len(word) < _SHORTEST_WORD:
        return False
    if word.isascii() or len(atom.forms) == 1:
        return len(atom.forms) == 1 and atom.forms[0][1] >= _RARE_WORD_WORTH
    return not is_function_character(word[0])


def _value(text: str, atom: Atom) -> str:
    """Return the value that an atom is, or the one that a pair of key and value ends with; empty where it is none to keep."""
    if atom.kind is not LiteralKind.PAIR:
        return text[atom.start : atom.end].strip(_QUOTES)
    mark = _MARK.search(text, atom.start, atom.end)
    value = text[mark.end() : atom.end] if mark is not None else ""
    whole = any(end - start == len(value) and kind is not LiteralKind.NUMBER for start, end, kind in literals(value))
    return value if whole or (mark is not None and TELLING_KEY.search(text[atom.start : mark.end()])) else ""
