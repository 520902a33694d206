"""Finds what a line shows whole or not at all, as less of it would be wrong: numbers, names, clauses with a negation."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from operator import itemgetter
from typing import NamedTuple

from memci.archive.summarizers.clauses import limited_clauses
from memci.archive.summarizers.literals import PHONE_DIGITS, LiteralKind, literals
from memci.archive.summarizers.rarity import FUNCTION_CHARACTERS
from memci.archive.summarizers.words import CJK, STOPWORDS, UNSPACED, any_of, compiled, estimate


class Stretch(NamedTuple):
    """A stretch of a text, from *start* to before *end*, that is shown whole or not at all.

    ``kind`` is that of a literal value, ``CLAUSE`` for words that a negation or the like belongs to, or ``None`` for a name.
    """

    start: int
    end: int
    kind: LiteralKind | None


_UNITS = "smhdgtWVAlKMGT%"  # of one letter, which may be words as well
_LONGEST_NUMBER = 60  # characters; what is longer is not shown
_LONGEST_CLAUSE = 44.0  # tokens; the same
_MOST_NAMES = 5  # words of a name; a longer run is a heading

_FREE = f"(?<![^\\W{CJK}])"  # before what no word goes on with: a script without spaces has none
_SPACE = "[ \u00a0\u2009\u202f]"
_DIGITS = "[0-9]++(?:[.,'’:/–-][0-9]++)*+(?:[a-z]{1,3}(?= [0-9]))?"  # such as the 4m of 4m 13s
_TO = "(?:to|bis|hasta|до|(?:out )?of(?: the| our| all)?) "
_COUNTED = f"{_SPACE}?(?:(?![{CJK}])[^\\W\\d_])++|[{CJK}]"
_NUMBER = re.compile(
    f"{_FREE}(?<![.])[+−±-]?\\.?(?:\\([0-9]{{1,5}}\\){_SPACE}?)?{_DIGITS}(?:{_SPACE}(?:{_TO})?{_DIGITS})*+(?:({_COUNTED})"
    f"|{_SPACE}?[%‰°€£$¥])?"
)
_BOUND_PHRASES = """
about, above, after, almost, around, at least, at most, before, below, between, beyond, exactly, fewer than, less than, more than,
nearly, no later than, not before, only, over, past, roughly, since, under, until, up to, within
ab, bis, bis zu, etwa, höchstens, mehr als, mindestens, nach, seit, unter, vor, weniger als, über
après, au moins, au plus, avant, dès, environ, moins de, plus de, jusqu'à
antes de, al menos, desde, después de, hasta, más de, menos de
до, от, после, более, менее, около, свыше, не более, не менее
"""
_PHRASES = any_of(re.split("[,\n]", _BOUND_PHRASES))
_BOUND = re.compile(  # before a number: without it another number is meant
    f"(?<!\\w)(?:{_PHRASES}) (?:the |a )?[$€£¥]?$|(?:至少|最多|最少|超过|不到|大约|大概|低于|高于|少于|多于)$",
    re.IGNORECASE,
)
_BOUND_AFTER = re.compile(
    f"[{CJK}]?(?:以上|以下|以内|以外|左右|之间|之前|之后|以前|以后)|,? or (?:more|less|fewer|later|earlier|so|above|below)\\b"
)
_LONGEST_BOUND = 24
_NUMERIC = frozenset({LiteralKind.NUMBER, LiteralKind.QUANTITY, LiteralKind.MONEY, LiteralKind.TIME, LiteralKind.DATE})
_COUNTS = re.compile(  # such as "2 failed, 30 passed in 3.1s": without one of them the others say something else
    "(?<![\\w.])[0-9]++ (?:failed|passed|errors?|failures?|skipped|warnings?|deselected|xfailed|xpassed|tests?|succeeded)\\b"
    "(?:,? (?:and )?[0-9]++ [a-z]{3,12}\\b){1,6}(?: in [0-9.:]{1,8} ?[a-z]{0,7}\\b)?"
)
_SUM = re.compile("(?<![\\w.])[(]*[0-9][0-9.,]*+(?:[ )]+[-+*/×÷][ (]+[0-9][0-9.,]*+[)]*){2,}")  # and other calculations
_MEASURES = (  # several numbers that are one value, and numbers with what they are numbers of
    "[0-9]++ ?(?:h|hrs?|hours?|Std|Stunden|heures|horas) [0-9]++ ?(?:m|min|mins|minutes?|Minuten)\\b",
    "[0-9][0-9.,]*+(?: ?[x×] ?[0-9][0-9.,]*+){1,3}(?: ?[a-zµ]{1,3}\\b)?",
    "[0-9][0-9.,]*+ ?[a-zA-Zµ]{1,4}/[a-zA-Z²³0-9]{1,4}\\b",
    "[0-9][0-9.,]*+ [a-z]{1,3} (?:to|bis|à|a|до|-|–) [0-9][0-9.,]*+ [a-z]{1,3}\\b",
    "[0-9][0-9., ]*+ ?(?:руб|грн|zł)\\.?(?: [0-9]{1,2} (?:коп|gr)\\.?)?",
    "[0-9]{1,2}\\. (?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*(?: [0-9]{4})?",
    "0[0-9]{1,4} ?/ ?[0-9][0-9 -]{3,14}[0-9]",  # a telephone number
    "[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{2,4}){3,8}\\b",  # of a bank account: ISO 13616
    "(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\\b",  # of a network card
    "(?:[0-9A-Fa-f]{1,4}:{1,2}){3,7}[0-9A-Fa-f]{0,4}",  # of a host: RFC 4291
    "[A-Z]{2,3} [0-9]{2,4}(?!\\w)",  # of a flight, or an amount
    "(?:[Ee]xt|[Nn]o|[Nn]r|[Rr]oom|[Gg]ate|[Ss]eat|[Pp]latform|[Cc]ase|[Ss]tep|[Ll]ine|№)\\.? ?#?[0-9]+[A-Za-z]?\\b",
)
_MEASURE = re.compile("{}(?<![.])(?:{})".format(_FREE, "|".join(_MEASURES)))
_WINDOWS_PATH = re.compile("(?<!\\w)[A-Za-z]:\\\\[^\\n\"'<>|]{1,120}?\\.[a-z0-9]{1,5}\\b")
_CAPITAL = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0400-\u042f]"
_PARTICLES = (
    "of|the|de|da|do|dal|della|dello|degli|van|von|zu|zur|zum|ter|ten|del|der|den|di|du|des|la|le|les|el|al|bin|ibn|ben|bint|abu"
    "|dos|das|y|e|i|af|av"
)
_ARTICLE = "(?:(?:al|el|as|ad|ar|an|at|ash|ud|ul|d['’]|l['’])-?)?"  # that belongs to the name behind it, as in al-Rashid
_NAMED = f"{_CAPITAL}(?:(?![{CJK}])[\\w'’-]){{0,40}}+"
_NAME = re.compile(f"{_FREE}{_NAMED}(?: (?:(?:{_PARTICLES}) ){{0,2}}+{_ARTICLE}{_NAMED})++")
_TITLED = re.compile(
    f"(?<!\\w)(?:Mr|Mrs|Ms|Dr|Prof|Sr|Sra|St|Herr|Frau|Hr|Fr)\\.? (?:[a-z]{{2,3}} ){{0,2}}{_CAPITAL}[\\w'’-]{{0,40}}"
)
_NO_NAME = re.compile(  # words that begin a sentence rather than a name
    "(?:After|Also|An?|And|Are|As|At|Before|But|By|Can|Congrats|Could|Dear|Did|Do|Does|For|From|Great|He|Hello|Her|Hey|Hi|His"
    "|How|I|If"
    "|In|Is|It|Last|My|Next|No|Not|Oh|Ok|Okay|On|Or|Our|Please|She|So|Sure|Thanks?|That|The|Then|There|These|They|This|To|Was"
    "|We|Well"
    "|What|When|Where|Which|Who|Why|With|Would|Wow|Yeah|Yep|Yes|Your?) "
)
_PASSIVE = re.compile(  # what can be, or is to be done: without these words it reads as done
    "(?<!\\w)(?:(?:can|could|may|might|shall|should|will|would|to|cannot|not) be"
    "|(?:peut|doit|devra|pourra) être|(?:puede|debe|podrá) ser|(?:può|deve|potrà) essere|(?:pode|deve|poderá) ser)"
    " [^\\W\\d_]{1,40}+"
    "(?: (?:and|or|et|ou|y|o|e) [^\\W\\d_]{1,40}+(?= (?:to|by|in|on|at|for|from)\\b))?"
    "|(?<!\\w)[^\\W\\d_]{1,40}+ werden(?: (?:kann|können|soll|sollen|muss|müssen|wird))?(?!\\w)",
    re.IGNORECASE,
)
_NOTICE = re.compile("^[ \\t]*+(?P<notice>\\[[A-Z][^\\[\\]\\n]{3,60}\\])[ \\t]*$", re.MULTILINE)  # of an application
_CODED = re.compile(  # such as Seattle (SEA), one thing against another, and things with an example of them
    "(?<!\\w)(?:[A-Za-z-]{2,30}s,? (?:such as|like)"
    " (?!(?:an?|the|this|that|these|those|you|me|us|them|it|my|your|our|how|when)\\b)[\\w-]{2,40}"
    "|[A-Z][\\w'’-]{1,40} \\([A-Z][A-Z0-9]{1,4}\\)|[\\w.-]{2,40} (?:vs\\.?|versus) [\\w.-]{2,40}(?!\\w))"
)
_LABELLED = re.compile(  # an item of a list that says what its value is of, such as "- **Cabin:** Economy"
    "^[ \\t]*+(?:[-*•·]|[0-9]{1,2}[.)])[ \\t]++(?:\\*\\*)?"
    "(?P<item>[^\\W\\d][^\\n:：*]{0,30}+(?:\\*\\*)?[:：](?:\\*\\*)?[ \\t]*+[^\\s*][^\\n]{0,40})$",
    re.MULTILINE,
)
_CELLS = re.compile(  # a line of a table with an amount: | name | 85% |, or name and amount with a wide gap between them
    "^[ \\t|]*+(?P<row>[^|\\n\\t]{1,40}?(?:[ \\t]*\\|[ \\t]*|\\t+|   +)[*`]*[-+$€£¥]?[0-9][0-9.,]*[^|\\n\\t]{0,12}?)"
    "[ \\t]*\\|?[ \\t]*$",
    re.MULTILINE,
)
_UNSPACED_NAME = "[^\\W{}]{{1,12}}".format("".join(sorted(FUNCTION_CHARACTERS)))
_UNSPACED_NAMES = (  # one with brackets, those of a list, and the first of these
    f"{_UNSPACED_NAME}(?<=[{CJK}])[(（][^()（）\\n]{{1,20}}[)）]"
    f"|(?<=、)(?<![0-9]、)[^\\s、，。；！？：,;.!?()（）]{{2,14}}(?=[、，。；！\\n]|$)|{_UNSPACED_NAME}(?<![0-9])(?=、)"
)
_UNSPACED_RANGE = f"[0-9]++[、~～至到][0-9]++[{CJK}]?"  # such as 3、4个
_DEGREE = re.compile(  # and the word that means less, or too much, with it
    "(?<!\\w)(?:too|less|trop|moins|demasiado|menos|troppo|meno|слишком|менее) [^\\W\\d_]++(?! (?:than|que|di|чем)\\b)",
    re.IGNORECASE,
)
_Part = tuple[re.Pattern[str], str | int, LiteralKind | None]  # a pattern, its group that is shown whole, and the kind of that
_PARTS: tuple[_Part, ...] = (
    (_MEASURE, 0, LiteralKind.NUMBER),
    (_WINDOWS_PATH, 0, LiteralKind.PATH),
    (_TITLED, 0, None),
    (_DEGREE, 0, None),
    (_PASSIVE, 0, None),
    (_CODED, 0, None),
    (_NOTICE, "notice", None),
    (_LABELLED, "item", LiteralKind.ITEM),
    (_CELLS, "row", LiteralKind.ITEM),
)

_UNSPACED_PARTS = ((_UNSPACED_NAMES, None), (_UNSPACED_RANGE, LiteralKind.NUMBER))  # of scripts without spaces
_BEFORE_CUT = " ,;:，、；：…"


def stretches(text: str) -> list[Stretch]:
    """Return what of a text is to be shown whole or not at all, in order, none overlapping another. O(its length)."""
    joined: list[Stretch] = []
    numbers = (_bounded(text, each) for each in chain(starmap(Stretch, literals(text)), _numbers(text)))
    clauses = (Stretch(*each, _clause_kind(text, *each)) for each in limited_clauses(text))
    for each in sorted(chain(numbers, _names(text), clauses), key=itemgetter(0, 1)):
        joined.append(_joined(joined.pop(), each) if joined and each.start < joined[-1].end else each)
    return joined


def beginning(text: str, most: int) -> str:
    """Return a text, or as much of its beginning as *most* characters hold, cut between words and within no ``Stretch``.

    Where that leaves less than a third, as of one long clause, it is cut within clauses. O(*most*).
    """
    if len(text) <= most:
        return text
    text, end = text[: most + _LONGEST_NUMBER], most - 1
    for found in (stretches(text), [Stretch(*each) for each in literals(text)]):
        cut = _outside(found, end)
        spaces = [place for place in (text.rfind(" ", 0, cut + 1), text.rfind("\n", 0, cut + 1)) if place > 0]
        if not text[cut : cut + 1].isalnum() or (
            not text[:cut].isascii() and any(compiled(UNSPACED).match(text, place) for place in (cut, cut - 1))
        ):
            spaces.append(cut)
        place = _outside(found, max(spaces, default=0))
        if place * 3 >= most:
            return text[:place].rstrip(_BEFORE_CUT) + "…"
    return text[:end] + "…"


def _outside(stretches_of: Sequence[Stretch], place: int) -> int:
    """Return a place in a text, or where the stretch begins that it is within."""
    return next((start for start, stop, _ in stretches_of if start < place < stop), place)


def _bounded(text: str, number: Stretch) -> Stretch:
    """Return a number with the words that bound it, such as those of "after 8 am" and "4.5分以上"; anything else as it is."""
    if number.kind not in _NUMERIC:
        return number
    start = max(number.start - _LONGEST_BOUND, 0)
    before, after = _BOUND.search(text[start : number.start]), _BOUND_AFTER.match(text, number.end)
    first, last = start + before.start() if before else number.start, after.end() if after else number.end
    return Stretch(first, last, number.kind)


def _joined(first: Stretch, second: Stretch) -> Stretch:
    """Join two that overlap: a clause stays one, what is too long to be shown does; else the kind is that of the longer."""
    kinds = (LiteralKind.BLOB, LiteralKind.CLAUSE, LiteralKind.ITEM)
    kind = next((each for each in kinds if each in (first.kind, second.kind)), None)
    longer = max((each for each in (first, second) if each.kind), key=lambda each: each.end - each.start, default=first)
    return Stretch(first.start, max(first.end, second.end), kind or longer.kind)


def _numbers(text: str) -> Iterator[Stretch]:
    """Yield numbers with all their groups of digits, and with the word after them, which says what is counted."""
    yield from (Stretch(*match.span(), LiteralKind.CLAUSE) for match in _COUNTS.finditer(text))
    yield from (Stretch(*match.span(), LiteralKind.BLOB) for match in _SUM.finditer(text))
    for match in _NUMBER.finditer(text):
        word = match[1]
        is_unit = word is not None and len(word.strip()) == 1 and word.strip() in _UNITS
        end = match.start(1) if word is not None and not is_unit and word.strip().lower() in STOPWORDS else match.end()
        digits = sum(map(str.isdigit, match.group()))
        kind = LiteralKind.PHONE if digits in PHONE_DIGITS and end != match.end(1) else LiteralKind.NUMBER
        yield Stretch(match.start(), end, kind if end - match.start() <= _LONGEST_NUMBER else LiteralKind.BLOB)


def _names(text: str) -> Iterator[Stretch]:
    """Yield names of several words, as their capital letters show them, and words with what their degree is."""
    parts: Sequence[_Part] = _PARTS
    if not text.isascii():
        parts = [*_PARTS, *[(compiled(pattern), 0, kind) for pattern, kind in _UNSPACED_PARTS]]
    for pattern, group, kind in parts:
        for match in pattern.finditer(text):
            yield Stretch(*match.span(group), kind)
    for match in _NAME.finditer(text):
        no_name = _NO_NAME.match(match.group())
        if sum(word[0].isupper() for word in match.group().split()) <= _MOST_NAMES:
            yield Stretch(match.start() + (no_name.end() if no_name else 0), match.end(), None)


def _clause_kind(text: str, start: int, end: int) -> LiteralKind:
    return LiteralKind.CLAUSE if estimate(text[start:end]) <= _LONGEST_CLAUSE else LiteralKind.BLOB
