"""Cuts a text into atoms: words, runs of characters and whole literal values, each with its worth and its cost."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import TypeAlias

import attrs

from memci.archive.summarizers.literals import Literal, LiteralKind, literals, tokens
from memci.archive.summarizers.rarity import CHUNK, KNOWN, Told, pair_worth, word_worth
from memci.archive.summarizers.words import CJK, estimate, pairs

READ_CHARACTERS = 20_000  # of the beginning, and of the end, of a long text that are read for rare words
SCANNED_CHARACTERS = 250_000  # of a long text that are looked through for literal values
_MIDDLE_LITERALS = 40
_MIDDLE_CONTEXT = 60

TELLING_KEY = re.compile(
    "(?:^|[_ -])(?:id|uuid|number|code|email|name|status|reference|ref|title)(?:: |=)$|[a-z](?:Id|ID|Name|Number|Code)(?:: |=)$"
)
"""Ends of keys, with the mark after them, whose value is one to look up: an id, a name, a number, a status."""
_LIST_NUMBER_WORTH = 0.1
_AFTER_LIST_NUMBER = frozenset(".:)|\t、")
_TELLING_DIGITS = 3
_KNOWN_DIGITS = 6  # of a number that is somebody's, or something's, such as of a telephone or an order
_KEY_SHARE = 0.3
_PAIR_MARK = re.compile(": |=|$")
_TELLING_VALUE_WORTH = 1.5
_CHARACTER_WORTH = 0.24
_LONGEST_GAP = 6
_LONGEST_RAW_GAP = 120
_LONGEST_RUN = 400
_BETWEEN_UNITS = range(0, 1 << 30, 2)  # how many of their bounds stand before what is in none of them

_SPACED = (  # no space, control, punctuation, arrow or line, and nothing of a script without spaces
    "[^\\s\\x00-/:-@\\[-`{-\u00bf\u2000-\u206f\u2190-\u21ff\u2500-\u257f\u3000-\u3004\u3008-\u3020\u3030\u30fb\uff01-\uff0f\uff1a-\uff20"
    f"\uff3b-\uff40\uff5b-\uff65{CJK}]"
)
_WORD = re.compile(f"([{CJK}]+|{_SPACED}+(?:['’-]{_SPACED}+)*)")
_UNSPACED = re.compile(f"[{CJK}]")
_SENTENCE_GAP = re.compile("[.!?](?:\\s|$)|[。！？；\\n]")
_BULLET = re.compile("\\n\\s{0,40}[-+>•·–]{1,3}\\s")
_MARKUP = str.maketrans(dict.fromkeys("*#|`", ""))
ERROR_LINE = re.compile(
    "^[ \\t>]{0,40}(?:E {2,3}\\S|[\\w.]{0,60}(?:Error|Exception)\\b|\\S{0,80}:\\s?(?:fatal )?error"
    "|[Ee]rror\\b|ERROR|FAILED|FAIL\\b|fatal\\b|panic\\b).{0,240}$",
    re.MULTILINE,
)
_ERROR_LINE_FACTOR = 1.8

_MOST_OF_GAP = _LONGEST_RAW_GAP + 1  # characters that tell all there is to tell of a gap
_START_GAP = "\n" * _MOST_OF_GAP

_Gap: TypeAlias = "tuple[str | None, float, bool]"


@attrs.define(eq=False)
class Atom:
    """The smallest piece of a text that a line shows: it is shown whole or not at all."""

    start: int
    end: int
    words: int
    forms: Told
    cost: float  # estimated tokens
    gap: str | None  # what stands before it, cleaned; None where it cannot be shown as one run with the atom before
    gap_cost: float
    opens: bool  # whether it is the first of a sentence or line
    kind: LiteralKind | None = None
    worth: float = 0.0  # how much it tells here; set once the whole page is known


def atoms(text: str, units: tuple[tuple[int, int], ...] = ()) -> list[Atom]:
    """Cut a text into atoms, in order; *units* are stretches, as start and end, that are shown whole or not at all.

    Of a text longer than twice ``READ_CHARACTERS`` only both ends are cut, and the surroundings of the rarest literal values
    between them, as far as ``SCANNED_CHARACTERS`` reach. O(length of the text), with a small share for what is only scanned.
    """
    found: list[Atom] = []
    for start, end in _regions(text):
        inside = units[bisect_left(units, (start, 0)) : bisect_left(units, (end, 0))]
        inside = inside[:-1] if inside and inside[-1][1] > end else inside
        cut = _cut(text, start, end, inside, _START_GAP)
        for line in ERROR_LINE.finditer(text, start, end):
            first, last = (bisect_left(cut, place, key=attrgetter("start")) for place in line.span())
            for atom in cut[first:last]:
                atom.forms = tuple((form, worth * _ERROR_LINE_FACTOR) for form, worth in atom.forms)
        found += cut
    return found


def _regions(text: str) -> list[tuple[int, int]]:
    if len(text) <= 2 * READ_CHARACTERS:
        return [(0, len(text))]
    head, tail = (_edge(text, place) for place in (READ_CHARACTERS, len(text) - READ_CHARACTERS))
    places: dict[str, list[Literal]] = {}
    for literal in tokens(text, head, min(tail, SCANNED_CHARACTERS)):
        if literal.kind not in (LiteralKind.NUMBER, LiteralKind.BLOB):
            places.setdefault(text[literal.start : literal.end], []).append(literal)
    rarest = sorted(places.values(), key=lambda same: (-same[0].kind.worth / len(same), same[0].start))[:_MIDDLE_LITERALS]
    regions = [(0, head)]
    for first, last, _ in sorted(same[0] for same in rarest):
        start = max(regions[-1][1], _edge(text, first - _MIDDLE_CONTEXT))
        if start <= first:
            regions.append((start, min(tail, max(last, _edge(text, last + _MIDDLE_CONTEXT)))))
    return [*regions, (tail, len(text))]


def _edge(text: str, position: int) -> int:
    """Return a place at or shortly before *position* where no word or literal value is cut in two, if there is one."""
    lowest = max(0, position - _LONGEST_RUN)
    for marks in (" \n\t", ',;"，。'):
        place = max(text.rfind(mark, lowest, position) for mark in marks)
        if place >= 0:
            return place + 1
    return position


@lru_cache(maxsize=1_000)
def _gap(raw: str) -> _Gap:
    """Return what to show between two words (``None``: too much), its tokens, and whether a sentence or line begins after it."""
    opens = _SENTENCE_GAP.search(raw, 0, _LONGEST_RAW_GAP) is not None
    plain = _BULLET.sub(" ", raw).translate(_MARKUP)
    gap = " ".join(plain.split())
    if len(raw) > _LONGEST_RAW_GAP or len(gap) > _LONGEST_GAP:
        return None, 0.0, opens
    if not gap:
        return " " if raw else "", 0.0, opens
    gap = (" " if plain[0].isspace() else "") + gap + (" " if plain[-1].isspace() else "")
    return gap, estimate(gap), opens


@lru_cache(maxsize=4_000)
def _said(word: str, starts_sentence: bool) -> tuple[Told, float]:  # noqa: FBT001 (keywords make a cached call twice as dear)
    """Return what a word says, and its estimated tokens."""
    known = KNOWN.get(word) or KNOWN.get(word.lower())
    return known or (((word.lower(), word_worth(word, starts_sentence=starts_sentence)),), estimate(word))


def _cut(text: str, start: int, end: int, units: Sequence[tuple[int, int]], gap: str) -> list[Atom]:
    """Cut a region into words, runs of characters, units, and the literal values that stand between units."""
    region = text[start:end]
    found: list[Atom] = []
    place = 0
    bounds = [bound - start for unit in units for bound in unit]
    values: list[tuple[int, int, LiteralKind | None]] = [
        value
        for value in literals(region)
        if not bounds or bisect_right(bounds, value.start) == bisect_left(bounds, value.end) in _BETWEEN_UNITS
    ]
    values += [(first - start, last - start, LiteralKind.PAIR) for first, last in units]
    for first, last, kind in (*sorted(values, key=itemgetter(0)), (len(region), 0, None)):
        position = start + place - len(gap)
        pieces = _WORD.split(gap + region[place:first])
        gap = pieces[-1]
        for before, word in zip(pieces[::2], pieces[1::2], strict=False):
            position += len(before)
            facts = _gap(before[:_MOST_OF_GAP])
            if word.isascii() or word in KNOWN or not _UNSPACED.match(word):
                forms, cost = _said(word, facts[2])
                found.append(Atom(position, position + len(word), 1, forms, cost, *facts))
            else:
                _chop(word, position, facts, found)
            position += len(word)
        if kind is not None:
            make = _pair if kind is LiteralKind.PAIR else _whole
            found.append(make(text, start + first, start + last, kind, _gap(gap[:_MOST_OF_GAP])))
            gap = ""
            place = last
    return found


def _chop(run: str, position: int, gap: _Gap, found: list[Atom]) -> None:
    """Cut a run of a script without spaces before and after the characters that join words."""
    before = ""
    for chunk in CHUNK.findall(run):
        forms = tuple([(pair, pair_worth(pair) * _CHARACTER_WORTH) for pair in pairs(before + chunk)])
        found.append(Atom(position, position + len(chunk), len(chunk), forms, estimate(chunk), *gap))
        position += len(chunk)
        before = chunk[-1]
        gap = ("", 0.0, False)


def _whole(text: str, start: int, end: int, kind: LiteralKind, gap: _Gap) -> Atom:
    worth, shown = kind.worth, text[start:end]
    if kind is LiteralKind.NUMBER and gap[2] and text[end : end + 1] in _AFTER_LIST_NUMBER:
        worth = _LIST_NUMBER_WORTH
    elif kind is LiteralKind.NUMBER and not _TELLING_DIGITS <= end - start < _KNOWN_DIGITS:
        worth *= 0.5 if end - start < _TELLING_DIGITS else 2.0
    return Atom(start, end, shown.count(" ") + 1, ((shown.lower(), worth),), estimate(shown), *gap, kind)


def _pair(text: str, start: int, end: int, kind: LiteralKind, gap: _Gap) -> Atom:
    """Make the atom of a key with its value: the value says what it does in any text, the key a share, since keys repeat."""
    mark = _PAIR_MARK.search(text, start, end)
    value = mark.end() if mark is not None else end
    parts = _cut(text, start, end, (), " ")
    forms = [(form, worth if part.start >= value else worth * _KEY_SHARE) for part in parts for form, worth in part.forms]
    if value < end and TELLING_KEY.search(text[start:value]):
        forms.append((text[value:end].lower(), _TELLING_VALUE_WORTH))
    return Atom(start, end, max(1, len(forms)), tuple(forms), estimate(text[start:end]), *gap, kind)
