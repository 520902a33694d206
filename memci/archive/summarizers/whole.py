"""Finds what a line shows whole or not at all, as less of it would be wrong: numbers, names, clauses with a negation."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from operator import itemgetter
from typing import NamedTuple

from memci.archive.summarizers.literals import PHONE_DIGITS, LiteralKind, literals
from memci.archive.summarizers.words import CJK, STOPWORDS, compiled, estimate


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
_TO = "(?:to|bis|hasta|до) "
_COUNTED = f"{_SPACE}?(?:(?![{CJK}])[^\\W\\d_])++|[{CJK}]"
_NUMBER = re.compile(
    f"(?<![\\w.])[+−±-]?\\.?(?:\\([0-9]{{1,5}}\\){_SPACE}?)?{_DIGITS}(?:{_SPACE}(?:{_TO})?{_DIGITS})*+(?:({_COUNTED})|{_SPACE}?[%‰°€£$¥])?"
)
_CAPITAL = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0400-\u042f]"
_NAME = re.compile(f"(?<!\\w){_CAPITAL}[\\w'’-]{{0,40}}+(?: (?:(?:of|de|da|van|von|del|der) )?{_CAPITAL}[\\w'’-]{{0,40}}+)++")
_NO_NAME = re.compile(  # words that begin a sentence rather than a name
    "(?:After|Also|An?|And|Are|As|At|Before|But|By|Can|Congrats|Could|Dear|Did|Do|Does|For|From|Great|He|Hello|Her|Hey|Hi|His|How|I|If"
    "|In|Is|It|Last|My|Next|No|Not|Oh|Ok|Okay|On|Or|Our|Please|She|So|Sure|Thanks?|That|The|Then|There|These|They|This|To|Was|We|Well"
    "|What|When|Where|Which|Who|Why|With|Would|Wow|Yeah|Yep|Yes|Your?) "
)

# Words that a clause is not to be shown without: they deny it, forbid it, limit it or make it depend on something else.
_LIMITING = """
no not never none nobody nothing nowhere neither nor without cannot cant dont doesnt didnt isnt wasnt wont hardly barely unless
until till except only must if whether instead avoid refuse refused forbid forbidden stop maybe perhaps might should
nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne nur außer falls bis muss müssen sondern vielleicht
ne pas jamais rien personne aucun aucune sans sauf seulement si doit jusqu
nunca jamás nada nadie ningún ninguno ninguna sin excepto solo sólo salvo hasta tampoco
não nem nenhum nenhuma sem exceto apenas somente até
non mai niente nessuno nessuna senza tranne soltanto finché
niet geen nooit niets niemand zonder alleen tenzij tot moet
inte ingen inget aldrig utan bara ikke aldri aldrig uten ei ilman vain
nie nigdy bez tylko chyba oprócz
değil yok asla hiç sadece olmadan
не нет ни никогда нельзя без только кроме если пока никто ничего должен должна должны нужно ні немає тільки якщо
δεν μην μη όχι χωρίς μόνο ποτέ αν
لا لم لن ليس ليست بدون فقط إلا أبدا إذا ممنوع
לא אין בלי רק אל אם אסור
नहीं न मत बिना केवल सिर्फ अगर कभी
"""
_WORDS = "|".join(sorted(set(_LIMITING.split()), key=len, reverse=True))
_LIMIT = (
    f"(?<!\\w)(?:(?:{_WORDS})(?!\\w)|n['’]\\w)|(?<=[^\\W\\d_])n['’]t(?!\\w)|off[ -]limits(?!\\w)"
    "|(?<![是能可好])不(?!错|过|仅|但|同|客气|用谢|好意思|$)|(?<![特区分个级差])别(?![的人墅名])|(?<!有)没|沒|勿|未(?!来)"
    "|无法|無|禁止|只|仅|除非|除了|必须|如果|要是|除外"
    "|ない|なかった|ません|ず(?=に)|禁止|だけ|しか|以外|もし|なら"
    "|(?<![가-힣])(?:안|못)(?= )|않|없|말(?=[아고라])|지 마|금지|만(?= )|제외|ไม่|ห้าม|อย่า|เท่านั้น|ยกเว้น|ถ้า"
)
# Those of them that say when what follows the comma holds.
_CONDITION = (
    "(?<!\\w)(?:if|unless|until|till|whether|except|instead|falls|bis|si|sauf|jusqu|hasta|salvo|até|finché|tenzij|tot|chyba|eğer"
    "|если|пока|якщо|αν|إذا|إلا|אם|अगर)(?!\\w)|除非|除了|如果|要是|もし|なら|ถ้า|ยกเว้น"
)
_SENTENCE_END = re.compile("[.!?…](?=[\\s\"'”’)\\]]|$)|[。！？；\\n\r|]|;\\s")
_INNER = re.compile("\\w(?:.*\\w)?", re.DOTALL)
_PART_END = re.compile("[,:;](?=\\s)|[，、：；()（）]|\\s[–—-]\\s")


def stretches(text: str) -> list[Stretch]:
    """Return what of a text is to be shown whole or not at all, in order, none overlapping another. O(its length)."""
    joined: list[Stretch] = []
    found = chain(starmap(Stretch, literals(text)), _numbers(text), _names(text), _clauses(text))
    for each in sorted(found, key=itemgetter(0, 1)):
        joined.append(_joined(joined.pop(), each) if joined and each.start < joined[-1].end else each)
    return joined


def _joined(first: Stretch, second: Stretch) -> Stretch:
    """Join two that overlap: a clause stays one, what is too long to be shown does; else the kind is that of the longer."""
    kind = next((each for each in (LiteralKind.BLOB, LiteralKind.CLAUSE) if each in (first.kind, second.kind)), None)
    longer = max((each for each in (first, second) if each.kind), key=lambda each: each.end - each.start, default=first)
    return Stretch(first.start, max(first.end, second.end), kind or longer.kind)


def _numbers(text: str) -> Iterator[Stretch]:
    """Yield numbers with all their groups of digits, and with the word after them, which says what is counted."""
    for match in _NUMBER.finditer(text):
        word = match[1]
        end = match.start(1) if word is not None and word.strip().lower() in STOPWORDS else match.end()
        digits = sum(map(str.isdigit, match.group()))
        kind = LiteralKind.PHONE if digits in PHONE_DIGITS and end != match.end(1) else LiteralKind.NUMBER
        yield Stretch(match.start(), end, kind if end - match.start() <= _LONGEST_NUMBER else LiteralKind.BLOB)


def _names(text: str) -> Iterator[Stretch]:
    """Yield names of several words, as their capital letters show them."""
    for match in _NAME.finditer(text):
        no_name = _NO_NAME.match(match.group())
        if match.group().count(" ") < _MOST_NAMES:
            yield Stretch(match.start() + (no_name.end() if no_name else 0), match.end(), None)


def _clauses(text: str) -> Iterator[Stretch]:
    """Yield what words that limit something belong to: their sentence where it is short, else its parts between commas."""
    limits = [limit.span() for limit in compiled(_LIMIT, re.IGNORECASE).finditer(text)]
    place = 0
    for start, line_end in _between(_SENTENCE_END, text, 0, len(text)) if limits else ():
        first, end = place, line_end
        while place < len(limits) and limits[place][0] < end:
            place += 1
        if first == place:
            continue
        if (
            end - limits[place - 1][1] <= _HANGING and text[end : end + 1] == "\n"
        ):  # a line that was broken: the next one continues it
            end = next((last for _, last in _between(_SENTENCE_END, text, end + 1, len(text))), end)
        is_short = estimate(text[start:end]) <= _SHORT_SENTENCE
        for part in [(start, end)] if is_short else _limited_parts(text, start, end, limits[first:place]):
            kind = LiteralKind.CLAUSE if estimate(text[slice(*part)]) <= _LONGEST_CLAUSE else LiteralKind.BLOB
            yield Stretch(*part, kind)


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
