"""Finds what a line shows whole or not at all, as less of it would be wrong: numbers, names, clauses with a negation."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from operator import itemgetter
from typing import NamedTuple

from memci.archive.summarizers.literals import PHONE_DIGITS, LiteralKind, literals
from memci.archive.summarizers.rarity import FUNCTION_CHARACTERS
from memci.archive.summarizers.words import CJK, STOPWORDS, UNSPACED, compiled, estimate


class Stretch(NamedTuple):
    """A stretch of a text, from *start* to before *end*, that is shown whole or not at all.

    ``kind`` is that of a literal value, ``CLAUSE`` for words that a negation or the like belongs to, or ``None`` for a name.
    """

    start: int
    end: int
    kind: LiteralKind | None


_LONGEST_NUMBER = 60  # characters; what is longer is not shown
_LONGEST_CLAUSE = 44.0  # tokens; the same
_SHORT_SENTENCE = 26.0  # tokens up to which a sentence is shown whole where one of its words limits it
_HANGING = 8  # characters between a limiting word and the end of its line, as of "without a", that do not say what it limits
_FEW_TOKENS = 4.0  # of a part between commas that says too little by itself, such as "do not" or an item of a list
_MOST_NAMES = 5  # words of a name; a longer run is a heading

_SPACE = "[ \u00a0\u2009\u202f]"
_DIGITS = "[0-9]++(?:[.,'’:/–-][0-9]++)*+(?:[a-z]{1,3}(?= [0-9]))?"  # such as the 4m of 4m 13s
_TO = "(?:to|bis|hasta|до|(?:out )?of(?: the| our| all)?) "
_COUNTED = f"{_SPACE}?(?:(?![{CJK}])[^\\W\\d_])++|[{CJK}]"
_NUMBER = re.compile(
    f"(?<![\\w.])[+−±-]?\\.?(?:\\([0-9]{{1,5}}\\){_SPACE}?)?{_DIGITS}(?:{_SPACE}(?:{_TO})?{_DIGITS})*+(?:({_COUNTED})|{_SPACE}?[%‰°€£$¥])?"
)
_BOUND_PHRASES = """
about, above, after, almost, around, at least, at most, before, below, between, beyond, exactly, fewer than, less than, more than,
nearly, no later than, not before, only, over, past, roughly, since, under, until, up to, within
ab, bis, bis zu, etwa, höchstens, mehr als, mindestens, nach, seit, unter, vor, weniger als, über
après, au moins, au plus, avant, dès, environ, moins de, plus de, jusqu'à
antes de, al menos, desde, después de, hasta, más de, menos de
до, от, после, более, менее, около, свыше, не более, не менее
"""
_PHRASES = "|".join(sorted(filter(None, map(str.strip, re.split("[,\n]", _BOUND_PHRASES))), key=len, reverse=True))
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
_CAPITAL = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0400-\u042f]"
_NAME = re.compile(f"(?<!\\w){_CAPITAL}[\\w'’-]{{0,40}}+(?: (?:(?:of|de|da|van|von|del|der) )?{_CAPITAL}[\\w'’-]{{0,40}}+)++")
_NO_NAME = re.compile(  # words that begin a sentence rather than a name
    "(?:After|Also|An?|And|Are|As|At|Before|But|By|Can|Congrats|Could|Dear|Did|Do|Does|For|From|Great|He|Hello|Her|Hey|Hi|His|How|I|If"
    "|In|Is|It|Last|My|Next|No|Not|Oh|Ok|Okay|On|Or|Our|Please|She|So|Sure|Thanks?|That|The|Then|There|These|They|This|To|Was|We|Well"
    "|What|When|Where|Which|Who|Why|With|Would|Wow|Yeah|Yep|Yes|Your?) "
)
_PASSIVE = re.compile(  # what can be, or is to be done: without these words it reads as done
    "(?<!\\w)(?:(?:can|could|may|might|shall|should|will|would|to|cannot|not) be|(?:peut|doit|devra|pourra) être|(?:puede|debe|podrá) ser"
    "|(?:può|deve|potrà) essere|(?:pode|deve|poderá) ser) [^\\W\\d_]+(?: (?:and|or|et|ou|y|o|e) [^\\W\\d_]+(?= (?:to|by|in|on|at|for|from)\\b))?"
    "|[^\\W\\d_]+ werden(?: (?:kann|können|soll|sollen|muss|müssen|wird))?(?!\\w)",
    re.IGNORECASE,
)
_NOTICE = re.compile("^[ \\t]*+(?P<words>\\[[A-Z][^\\[\\]\\n]{3,60}\\])[ \\t]*$", re.MULTILINE)  # that an application wrote as a line
_CODED = re.compile("(?<!\\w)[A-Z][\\w'’-]{1,40} \\([A-Z][A-Z0-9]{1,4}\\)")  # such as Seattle (SEA)
_LABELLED = re.compile(  # an item of a list that says what its value is of, such as "- **Cabin:** Economy"
    "^[ \\t]*+(?:[-*•·]|[0-9]{1,2}[.)])[ \\t]++(?:\\*\\*)?(?P<item>[^\\W\\d][^\\n:：*]{0,30}+(?:\\*\\*)?[:：](?:\\*\\*)?[ \\t]*+[^\\s*][^\\n]{0,40})$",
    re.MULTILINE,
)
_CELLS = re.compile(  # a line of a table with an amount: | name | 85% |, or name and amount with a wide gap between them
    "^[ \\t|]*+(?P<row>[^|\\n\\t]{1,40}?(?:[ \\t]*\\|[ \\t]*|\\t+|   +)[*`]*[-+$€£¥]?[0-9][0-9.,]*[^|\\n\\t]{0,12}?)[ \\t]*\\|?[ \\t]*$", re.MULTILINE
)
_UNSPACED_NAME = "[^\\W{}]{{1,12}}".format("".join(sorted(FUNCTION_CHARACTERS)))
_UNSPACED_NAMES = (  # one with brackets, those of a list, and the first of these
    f"{_UNSPACED_NAME}[(（][^()（）\\n]{{1,20}}[)）]|(?<=、)[^\\s、，。；！？：,;.!?()（）]{{2,14}}(?=[、，。；！\\n]|$)|{_UNSPACED_NAME}(?=、)"
)

# Words that a clause is not to be shown without: they deny it, forbid it, or make an exception of it ...
_DENYING = """
no not never none nobody nothing nowhere neither nor without cannot cant dont doesnt didnt isnt wasnt wont hardly barely unless
except only unable impossible avoid refuse refused forbid forbidden
nicht unmöglich kein keine keinen keinem keiner keines nie niemals nichts niemand ohne nur außer
ne pas jamais rien personne aucun aucune sans sauf seulement
nunca jamás imposible nada nadie ningún ninguno ninguna sin excepto solo sólo salvo tampoco
não impossível nem nenhum nenhuma sem exceto apenas somente
non mai impossibile niente nessuno nessuna senza tranne soltanto
niet onmogelijk geen nooit niets niemand zonder alleen tenzij
inte ingen inget aldrig utan bara ikke aldri aldrig uten ei ilman vain
nie nigdy bez tylko chyba oprócz
değil yok asla hiç sadece olmadan
не нет ни невозможно никогда нельзя без только кроме никто ничего ні немає тільки
δεν μην μη όχι χωρίς μόνο ποτέ
لا لم لن ليس ليست بدون فقط إلا أبدا ممنوع
לא אין בלי רק אל אסור
नहीं न मत बिना केवल सिर्फ कभी
"""
# ... or say how it is meant, or when it holds.
_QUALIFYING = """
until till must if whether instead stop maybe perhaps might should falls bis muss müssen sondern vielleicht si doit jusqu hasta
até finché tot moet если пока должен должна должны нужно якщо αν إذا אם अगर
"""


def _any_of(table: str) -> str:
    return "|".join(sorted(set(table.split()), key=len, reverse=True))


_DENIAL = (
    f"(?<!\\w)(?:(?:{_any_of(_DENYING)})(?!\\w)|n['’]\\w)|(?<=[^\\W\\d_])n['’]t(?!\\w)|off[ -]limits(?!\\w)"
    "|(?:(?<![是能可好])|(?<=是)(?!不是)|(?<=能)(?!不能)|(?<=可)(?!不可)|(?<=好)(?!不好))不(?!错|过|仅|但|同|客气|用谢|好意思|[?？]|$)"
    "|(?<![特区分个级差])别(?![的人墅名])|(?<!有)没(?![?？]|$)|沒|勿|未(?!来)"
    "|无法|無|禁止|只|仅|除非|除了|除外|ない|なかった|ません|ず(?=に)|だけ|しか|以外"
    "|(?<![가-힣])(?:안|못)(?= )|않|없|말(?=[아고라])|지 마|금지|만(?= )|제외|ไม่|ห้าม|อย่า|เท่านั้น|ยกเว้น"
)
_CONTRAST = "(?<!\\w)(?:rather than|contrary to|as opposed to)(?!\\w)"
_LIMIT = f"{_DENIAL}|(?<!\\w)(?:{_any_of(_QUALIFYING)})(?!\\w)|必须|如果|要是|もし|なら|ถ้า|{_CONTRAST}"
# Those of them that say when what follows the comma holds.
_CONDITION = (
    "(?<!\\w)(?:if|unless|until|till|whether|except|instead|falls|bis|si|sauf|jusqu|hasta|salvo|até|finché|tenzij|tot|chyba|eğer"
    "|если|пока|якщо|αν|إذا|إلا|אם|अगर)(?!\\w)|除非|除了|如果|要是|もし|なら|ถ้า|ยกเว้น"
)
_DEGREE = re.compile(  # and the word that means less, or too much, with it
    "(?<!\\w)(?:too|less|trop|moins|demasiado|menos|troppo|meno|слишком|менее) [^\\W\\d_]++(?! (?:than|que|di|чем)\\b)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile("[.!?…](?=[\\s\"'”’)\\]]|$)|[。！？；\\n\r|]|;\\s")
_BEFORE_CUT = " ,;:，、；：…"
_LIST_AFTER = "[*_]*[:：][*_]*[ \\t]*\\n(?:[ \\t]*\\n)?(?:[ \\t]*(?:[-*•·]|[0-9]{1,2}[.)])[ \\t][^\\n]*(?:\\n(?:[ \\t]*\\n)?|$))+"
_INNER = re.compile("\\w(?:.*\\w)?", re.DOTALL)
_PART_END = re.compile("[,:;](?=\\s)|[，、：；()（）]|\\s[–—-]\\s")


def stretches(text: str) -> list[Stretch]:
    """Return what of a text is to be shown whole or not at all, in order, none overlapping another. O(its length)."""
    joined: list[Stretch] = []
    numbers = (_bounded(text, each) for each in chain(starmap(Stretch, literals(text)), _numbers(text)))
    for each in sorted(chain(numbers, _names(text), _clauses(text)), key=itemgetter(0, 1)):
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


def denied_clauses(text: str) -> list[tuple[int, int]]:
    """Return start and end of each clause with a word that denies, forbids or excepts something. O(its length)."""
    sentences_with = _limited_sentences(text, _DENIAL)
    return [part for start, end, denials in sentences_with for part in _limited_parts(text, start, end, denials)]


def undenied(text: str) -> str:
    """Return a text without the words that deny, forbid or except something. O(its length)."""
    return compiled(_DENIAL, re.IGNORECASE).sub(" ", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, from their first letter or digit to their last. O(its length)."""
    return [text[start:end] for start, end in _between(_SENTENCE_END, text, 0, len(text))]


def denies(text: str) -> bool:
    """Return whether a text has a word that denies, forbids or excepts something."""
    return compiled(_DENIAL, re.IGNORECASE).search(text) is not None


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
    kind = next((each for each in (LiteralKind.BLOB, LiteralKind.CLAUSE, LiteralKind.ITEM) if each in (first.kind, second.kind)), None)
    longer = max((each for each in (first, second) if each.kind), key=lambda each: each.end - each.start, default=first)
    return Stretch(first.start, max(first.end, second.end), kind or longer.kind)


def _numbers(text: str) -> Iterator[Stretch]:
    """Yield numbers with all their groups of digits, and with the word after them, which says what is counted."""
    yield from (Stretch(*match.span(), LiteralKind.CLAUSE) for match in _COUNTS.finditer(text))
    yield from (Stretch(*match.span(), LiteralKind.BLOB) for match in _SUM.finditer(text))
    for match in _NUMBER.finditer(text):
        word = match[1]
        end = match.start(1) if word is not None and word.strip().lower() in STOPWORDS else match.end()
        digits = sum(map(str.isdigit, match.group()))
        kind = LiteralKind.PHONE if digits in PHONE_DIGITS and end != match.end(1) else LiteralKind.NUMBER
        yield Stretch(match.start(), end, kind if end - match.start() <= _LONGEST_NUMBER else LiteralKind.BLOB)


def _names(text: str) -> Iterator[Stretch]:
    """Yield names of several words, as their capital letters show them, and words with what their degree is."""
    yield from (Stretch(*match.span(), None) for pattern in (_DEGREE, _PASSIVE, _CODED) for match in pattern.finditer(text))
    yield from (Stretch(*match.span("words"), None) for match in _NOTICE.finditer(text))
    yield from (Stretch(*match.span("item"), LiteralKind.ITEM) for match in _LABELLED.finditer(text))
    yield from (Stretch(*match.span("row"), LiteralKind.ITEM) for match in _CELLS.finditer(text))
    if not text.isascii():
        yield from (
            Stretch(*match.span(), None)
            for match in compiled(_UNSPACED_NAMES).finditer(text)
            if compiled(UNSPACED).search(match.group())
        )
    for match in _NAME.finditer(text):
        no_name = _NO_NAME.match(match.group())
        if match.group().count(" ") < _MOST_NAMES:
            yield Stretch(match.start() + (no_name.end() if no_name else 0), match.end(), None)


def _clauses(text: str) -> Iterator[Stretch]:
    """Yield what words that limit something belong to: their sentence where it is short, else its parts between commas."""
    for start, line_end, limits in _limited_sentences(text, _LIMIT):
        end = line_end
        if listed := compiled(_LIST_AFTER).match(text, end):  # "this happens only if:" and what follows
            end = start + len(text[start : listed.end()].rstrip()) if _governs(text, limits[-1][1], end) else end
        elif end - limits[-1][1] <= _HANGING and text[end : end + 1] == "\n":  # a line that was broken: the next one continues it
            end = next((last for _, last in _between(_SENTENCE_END, text, end + 1, len(text))), end)
        is_short = estimate(text[start:end]) <= _SHORT_SENTENCE
        for part in [(start, end)] if is_short else _limited_parts(text, start, end, limits):
            kind = LiteralKind.CLAUSE if estimate(text[slice(*part)]) <= _LONGEST_CLAUSE else LiteralKind.BLOB
            yield Stretch(*part, kind)


def _governs(text: str, limit_end: int, end: int) -> bool:
    """Return whether a limiting word is in the last part of what a list follows, so that it limits what is listed."""
    return _PART_END.search(text, limit_end, end) is None


def _limited_sentences(text: str, pattern: str) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Yield start and end of each sentence with a word that a pattern finds, and the places of these words."""
    limits, place = [limit.span() for limit in compiled(pattern, re.IGNORECASE).finditer(text)], 0
    for start, end in _between(_SENTENCE_END, text, 0, len(text)) if limits else ():
        first = place
        while place < len(limits) and limits[place][0] < end:
            place += 1
        if first < place:
            yield start, end, limits[first:place]


def _between(ends: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of what stands between marks, from its first letter or digit to its last."""
    for mark_start, mark_end in chain((mark.span() for mark in ends.finditer(text, start, end)), ((end, end),)):
        inner = _INNER.search(text, start, mark_start)
        if inner is not None:
            yield inner.span()
        start = mark_end


def _limited_parts(text: str, start: int, end: int, limits: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a sentence with a limiting word, each with its neighbours that it may belong to."""
    parts = list(_between(_PART_END, text, start, end))
    starts = [limit_start for limit_start, _ in limits]
    is_limited = [bisect_left(starts, first) < bisect_left(starts, last) for first, last in parts]
    condition, beginnings = compiled(_CONDITION, re.IGNORECASE), set(starts)
    run: tuple[int, int] | None = None
    continues = False
    for number, (first, last) in enumerate(parts):
        begins = number + 1 < len(parts) and parts[number + 1][0] in beginnings
        is_short = estimate(text[first:last]) <= _FEW_TOKENS
        if run is not None and (continues or is_short or is_limited[number]):
            run = run[0], last
        else:
            if run is not None:
                yield run
            run = (first, last) if is_limited[number] or begins else None
        is_condition = is_limited[number] and condition.search(text, first, last) is not None
        continues = run is not None and (begins or is_condition or (is_limited[number] and is_short))
    if run is not None:
        yield run
