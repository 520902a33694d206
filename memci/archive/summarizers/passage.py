"""Cuts a text into atoms: words, runs of characters and whole literal values, each with its worth and its cost."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice, repeat
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import attrs

from memci.archive.summarizers.literals import Literal, LiteralKind, literals, tokens
from memci.archive.summarizers.rarity import CHUNK, FUNCTION_CHARACTERS, KNOWN, Told, pair_worth, word_worth
from memci.archive.summarizers.whole import stretches
from memci.archive.summarizers.words import CJK, UNSPACED, Known, compiled, estimate, pairs

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
_COUNTED_SHARE = 0.4
_CELL = re.compile("[ \\t]*\\|[ \\t]*|\\t+|   +")  # between two of a line of a table
_PAIR_MARK = re.compile(": |=|$")
_TELLING_VALUE_WORTH = 1.5
_RARE_WORD_WORTH = 0.8
_CHARACTER_WORTH = 0.24
_LONGEST_GAP = 6
_LONGEST_RAW_GAP = 120
_LONGEST_RUN = 400
_CLAUSES = (LiteralKind.CLAUSE, LiteralKind.BLOB)
_BETWEEN_UNITS = range(0, 1 << 30, 2)  # how many of their bounds stand before what is in none of them

_SPACED = (  # no space, control, punctuation, arrow or line, and nothing of a script without spaces
    "[^\\s\\x00-/:-@\\[-`{-\u00bf\u2000-\u206f\u2190-\u21ff\u2500-\u257f\u3000-\u3004\u3008-\u3020\u3030\u30fb\uff01-\uff0f\uff1a-\uff20"
    f"\uff3b-\uff40\uff5b-\uff65{CJK}]"
)
_WORD = re.compile("([A-Za-z0-9]++(?:['-][A-Za-z0-9]++)*+)")  # of ASCII text: the same as of any text, faster
_ANY_WORD = re.compile(f"([{CJK}]++|{_SPACED}++(?:['’-]{_SPACED}++)*+)")
_SENTENCE_GAP = re.compile("[.!?](?:\\s|$)|[。！？；\\n]")
_INNER = re.compile(r"\w(?:.*\w)?", re.DOTALL)
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

# A line break is shown, unless the next line starts in lower case: it may have been broken for its width.
_BREAK, _LINE = (" ", 0.0, True), ("; ", 1.0, True)

_Gap: TypeAlias = "tuple[str | None, float, bool]"
"""What stands before an atom, cleaned (``None`` where the two cannot be shown as one run); its tokens; whether a sentence or line
begins after it."""


class Said(NamedTuple):
    """What an atom says, wherever it stands."""

    forms: Told
    cost: float  # estimated tokens
    words: int
    size: int  # the same, where what stands together in a script without spaces is one
    kind: LiteralKind | None
    rare: bool  # a rare word, or characters that tell as much


@attrs.define(eq=False)
class Atoms:
    """The smallest pieces of a page's texts, as parallel lists: a line shows each whole or not at all."""

    find: Callable[[str], Sequence[tuple[int, int, LiteralKind | None]]] = stretches  # what is not cut, as start, end and kind
    texts: list[str] = attrs.field(factory=list)
    gaps: list[_Gap] = attrs.field(factory=list)
    said: list[Said] = attrs.field(factory=list)
    after: list[str] = attrs.field(factory=list)  # what stands between each and the next, as it is in its text
    worths: list[float] = attrs.field(factory=list)  # how much each tells here; set once the whole page is known, as what follows
    forms: Sequence[Told] = ()
    costs: Sequence[float] = ()
    words: Sequence[int] = ()
    sizes: Sequence[int] = ()
    kinds: Sequence[LiteralKind | None] = ()
    rare: Sequence[bool] = ()
    steps: Sequence[float] = ()  # the costs, each with that of the gap before it

    def add(self, text: str, units: tuple[tuple[int, int, LiteralKind], ...] = ()) -> range:
        """Cut a text into atoms, in order; *units* are stretches that are shown whole or not at all.

        Of a text longer than twice ``READ_CHARACTERS`` only both ends are cut, and the surroundings of the rarest literal values
        between them, as far as ``SCANNED_CHARACTERS`` reach. O(length of the text), with a small share for what is only scanned.
        """
        before = len(self.texts)
        for start, end in _regions(text):
            inside = units[bisect_left(units, start, key=itemgetter(0)) : bisect_left(units, end, key=itemgetter(0))]
            inside = inside[:-1] if inside and inside[-1][1] > end else inside
            base = len(self.texts)
            pieces = self.cut(text, start, end, inside, _START_GAP)
            starts: list[int] = []
            for line in ERROR_LINE.finditer(text, start, end):
                starts = starts or _starts(pieces, start - _MOST_OF_GAP)
                for place in range(*(base + bisect_left(starts, bound) for bound in line.span())):
                    said = self.said[place]
                    forms = tuple((form, worth * _ERROR_LINE_FACTOR) for form, worth in said.forms)
                    rare = said.kind is None and _is_rare(self.texts[place], forms)
                    self.said[place] = said._replace(forms=forms, rare=rare)
        return range(before, len(self.texts))

    def cut(self, text: str, start: int, end: int, units: Sequence[tuple[int, int, LiteralKind]], gap: str) -> list[str]:
        """Cut a region into words, runs of characters, units, and what is shown whole or not at all and stands between units.

        Returns all of it after a *gap*: what stands before an atom, the atom, what stands before the next one, and so on.
        """
        region = text[start:end]
        bounds = [bound - start for unit in units for bound in unit[:2]]
        values: list[tuple[int, int, LiteralKind | None]] = []
        for value in self.find(region):
            if not bounds or bisect_right(bounds, value[0]) == bisect_left(bounds, value[1]) in _BETWEEN_UNITS:
                values.append(value)
            elif value[2] in _CLAUSES:
                values += _outside(region, bounds, value)
        if units:
            values += [(first - start, last - start, kind) for first, last, kind in units]
            values.sort(key=itemgetter(0))
        pieces = [gap]
        others: dict[int, tuple[str, Said]] = {}  # by number what is no word
        place = 0
        for first, last, kind in (*values, (len(region), 0, None)):
            _split(region[place:first], pieces, others)
            if last:
                opens = _gaps[pieces[-1][:_MOST_OF_GAP]][2]
                written = _item(region[first:last]) if kind is LiteralKind.ITEM else region[first:last]
                others[len(pieces) // 2] = written, _whole(text, start + first, start + last, kind, opens=opens)
                pieces += ("", "")
                place = last
        texts, before = pieces[1::2], pieces[:-1:2]
        if max(map(len, before), default=0) > _MOST_OF_GAP:
            before = [each[:_MOST_OF_GAP] for each in before]
        gaps = list(map(_gaps.__getitem__, before))
        said = [both[opens] for both, (_, _, opens) in zip(map(_words.__getitem__, texts), gaps, strict=True)]
        for number, (shown, tells) in others.items():
            texts[number] = pieces[2 * number + 1] = shown
            said[number] = tells
        gaps = [_LINE if gap == _BREAK and not shown[:1].islower() else gap for gap, shown in zip(gaps, texts, strict=True)]
        pieces[-1] = pieces[-1] or text[end : end + 1]
        self.texts += texts
        self.gaps += gaps
        self.said += said
        self.after += pieces[2::2]
        return pieces

    def ends_sentence(self, place: int) -> bool:
        """Return whether a sentence, or all, ends before a place."""
        return place >= len(self.gaps) or self.gaps[place][2]

    def complete(self) -> None:
        """Set what follows from all that the atoms say, but for their worths."""
        self.worths = [0.0] * len(self.said)
        columns = zip(*self.said, strict=True) if self.said else repeat(())
        self.forms, self.costs, self.words, self.sizes, self.kinds, self.rare = islice(columns, 6)
        self.steps = [cost + gap_cost for cost, (_, gap_cost, _) in zip(self.costs, self.gaps, strict=True)]


def _outside(
    region: str, bounds: Sequence[int], value: tuple[int, int, LiteralKind | None]
) -> Iterator[tuple[int, int, LiteralKind | None]]:
    """Yield the words of a clause that are in no unit, in stretches; the *bounds* are start and end of each unit."""
    first, last, kind = value
    before, after = bisect_right(bounds, first), bisect_left(bounds, last)
    points = [*([] if before % 2 else [first]), *bounds[before:after], *([] if after % 2 else [last])]
    for start, end in zip(points[::2], points[1::2], strict=True):
        inner = _INNER.search(region, start, end)
        if inner is not None:
            yield *inner.span(), kind


def _split(stretch: str, pieces: list[str], others: dict[int, tuple[str, Said]]) -> None:
    """Add the words of a stretch to *pieces*; runs of a script without spaces go to *others*, in parts."""
    words = (_WORD if stretch.isascii() else _ANY_WORD).split(stretch)
    pieces[-1] += words[0]
    if stretch.isascii() or not compiled(UNSPACED).search(stretch):
        pieces += words[1:]
        return
    for word, gap in zip(words[1::2], words[2::2], strict=True):
        if word.isascii() or word in KNOWN or not compiled(UNSPACED).match(word):
            pieces += (word, gap)
            continue
        before = ""
        for chunk in CHUNK.findall(word):  # cut before and after the characters that join words
            others[len(pieces) // 2] = chunk, _chunk(before, chunk)
            pieces += ("", "")
            before = chunk[-1]
        pieces[-1] = gap


def _starts(pieces: Iterable[str], start: int) -> list[int]:
    """Return where atoms begin, of pieces the first of which begins at *start*."""
    return list(accumulate(map(len, pieces), initial=start))[1::2]


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


_gaps = Known(_gap, 2_000)


def _said(word: str) -> tuple[Said, Said]:
    """Return what a word says within a sentence, and at its beginning."""
    if known := KNOWN.get(word) or KNOWN.get(word.lower()):
        return (Said(*known, 1, 1, None, _is_rare(word, known[0])),) * 2
    cost = estimate(word)
    both = [((word.lower(), word_worth(word, starts_sentence=starts)),) for starts in (False, True)]
    inner, first = [Said(forms, cost, 1, 1, None, _is_rare(word, forms)) for forms in both]
    return inner, first


_words = Known(_said, 8_000)


@lru_cache(maxsize=4_000)
def _chunk(before: str, chunk: str) -> Said:
    """Return what characters of a script without spaces say after the one *before*."""
    forms = tuple([(pair, pair_worth(pair) * _CHARACTER_WORTH) for pair in pairs(before + chunk)])
    return Said(forms, estimate(chunk), len(chunk), 1, None, _is_rare(chunk, forms))


def _is_rare(word: str, forms: Told) -> bool:
    if word.isascii() or len(forms) == 1:
        return len(word) > 1 and len(forms) == 1 and forms[0][1] >= _RARE_WORD_WORTH
    return forms[-1][1] >= _CHARACTER_WORTH and word[0] not in FUNCTION_CHARACTERS


def _whole(text: str, start: int, end: int, kind: LiteralKind | None, *, opens: bool) -> Said:
    """Return what a literal value says, or a key with its value."""
    mark = text[end] if end < len(text) and text[end] in _AFTER_LIST_NUMBER else ""
    if kind in (LiteralKind.PAIR, LiteralKind.ITEM):
        return _pair(_item(text[start:end]) if kind is LiteralKind.ITEM else text[start:end], mark)
    if kind is None or kind is LiteralKind.CLAUSE or (kind is LiteralKind.NUMBER and text[end - 1].isalpha()):
        return _composed(text[start:end], kind)
    worth, shown = kind.worth, text[start:end]
    if kind is LiteralKind.NUMBER and opens and mark:
        worth = _LIST_NUMBER_WORTH
    elif kind is LiteralKind.NUMBER and not _TELLING_DIGITS <= end - start < _KNOWN_DIGITS:
        worth *= 0.5 if end - start < _TELLING_DIGITS else 2.0
    return (_value if kind is LiteralKind.BLOB else _known_value)(shown, kind, worth)


def _value(shown: str, kind: LiteralKind, worth: float) -> Said:
    words = shown.count(" ") + 1
    return Said(((shown.lower(), worth),), estimate(shown), words, words, kind, rare=False)


_known_value = lru_cache(maxsize=4_000)(_value)  # of short ones


@lru_cache(maxsize=4_000)
def _composed(text: str, kind: LiteralKind | None) -> Said:
    """Return what several words say that are shown whole or not at all; what follows a number says less than by itself."""
    parts = Atoms(literals)
    parts.cut(text, 0, len(text), (), " ")
    shares = [_COUNTED_SHARE if kind is LiteralKind.NUMBER and said.kind is None else 1.0 for said in parts.said]
    forms = tuple((form, worth * share) for said, share in zip(parts.said, shares, strict=True) for form, worth in said.forms)
    words, size = (sum(map(itemgetter(column), parts.said)) for column in (2, 3))
    return Said(forms, estimate(text), words, size, kind, rare=False)


def _item(text: str) -> str:
    """Write a label with its value as ``label: value``, without marks of lists and tables."""
    return _CELL.sub(": ", text.replace("**", "").replace("`", ""))


@lru_cache(maxsize=4_000)
def _pair(pair: str, following: str) -> Said:
    """Return what a key with its value says: the value what it does in any text, the key a share, since keys repeat."""
    mark = _PAIR_MARK.search(pair)
    value = mark.end() if mark is not None else len(pair)
    parts = Atoms()
    starts = _starts(parts.cut(pair + following, 0, len(pair), (), " "), -1)
    shares = [1.0 if begin >= value else _KEY_SHARE for begin in starts]
    forms = [(form, worth * share) for said, share in zip(parts.said, shares, strict=False) for form, worth in said.forms]
    if value < len(pair) and TELLING_KEY.search(pair[:value]):
        forms.append((pair[value:].lower(), _TELLING_VALUE_WORTH))
    words = max(1, len(forms))
    return Said(tuple(forms), estimate(pair), words, words, LiteralKind.PAIR, rare=False)
