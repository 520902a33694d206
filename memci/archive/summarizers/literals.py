"""Finds the literal values of a text, what is of use only when it is kept to the letter, in linear time."""

import re
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from memci.archive.summarizers.words import CJK


class LiteralKind(Enum):
    """The kinds of literal value that a summary tells apart, each with a worth; a rare word has 1."""

    URL = "url", 1.8
    EMAIL = "email", 2.0
    PATH = "path", 1.6
    ERROR = "error", 2.2
    NAME = "name", 1.8
    QUOTE = "quote", 1.8
    DATE = "date", 1.6
    TIME = "time", 1.4
    PHONE = "phone", 2.2
    MONEY = "money", 1.8
    QUANTITY = "quantity", 1.4
    NUMBER = "number", 0.9
    BLOB = "blob", 0.1  # too long to be of use on a line
    PAIR = "pair", 1.0  # a key with its value, or alone, of structured data; ``literals`` finds none, nor what follows
    ITEM = "item", 1.0  # a label with its value, as an item of a list or a line of a table
    CLAUSE = "clause", 1.0  # words that say something else without one of them, such as a negation

    __hash__ = object.__hash__  # each is one object; that of Enum is a call of Python

    def __init__(self, _: str, worth: float) -> None:
        self.worth = worth


class Literal(NamedTuple):
    """A literal value where it stands in its text: from *start* to before *end*."""

    start: int
    end: int
    kind: LiteralKind


_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?)"
)
_CURRENCY = "(?:(?:US|HK|A|C|NT)?[$€£¥₹₩₽฿￥]|(?:USD|EUR|GBP|CNY|RMB|JPY|INR|CHF)(?![A-Za-z0-9_]))"
_UNIT = (
    "%|‰|€|£|°[CF]?|(?:percent|dollars?|euros?|pounds?|bucks|cents?|yuan|hours?|hrs?|minutes?|mins?|seconds?|secs?"
    "|milliseconds?|ms|days?"
    "|weeks?|months?|years?|yrs?|km|cm|mm|nm|m|miles?|mi|ft|feet|inch(?:es)?|kg|mg|g|lbs?|oz|l|ml|kcal|mph|kmh|[kKMGT]i?B"
    "|[kMG]bps|GHz|MHz|Hz"
    "|kWh?|px|pt|dpi|rows?|lines?|pages?|files?|tokens?|bytes?|characters?|items?|bags?|seats?|nights?|people|persons?"
    "|passengers?|times"
    "|USD|EUR|GBP|CNY|RMB|JPY|Uhr|Jahre|Tage|Stunden|Minuten|heures|jours|ans|años|horas|días|k|K|M|bn)(?![A-Za-z0-9_])"
    "|小时|分钟|公里|千米|平方米|公斤|人民币|日元|美元|欧元|万元|亿元|时间|[分元块万亿秒天日号月年周个人位间楼层室栋米岁度折次点星级张件斤円時歳名回本枚원시분일월년개명]"
)
_BEFORE = "(?<![A-Za-z0-9_.])"
_CLOCK = "[0-9]{1,2}[:：][0-9]{2}(?:[:：][0-9]{2}(?:\\.[0-9]{1,6})?)?(?:\\s?[AaPp]\\.?[Mm](?![A-Za-z0-9_])\\.?)?"
_AMOUNT = "[0-9]{1,15}(?:[,.'][0-9]{1,15}){0,6}"
_TO = "\\s?(?:-|–|—|~|～|至|到|to)\\s?"

# Where a match can begin, by what it needs before and after its first character: most places of a text are passed over at once.
# Each pattern below either starts where a run of its own characters starts or is bounded in length, so that the cost is linear.
_BEGINNING = re.compile(
    "[0-9+(JFMASONDUEGCRHI$€£¥₹₩₽฿￥一二三四五六七八九十百千万两零〇半周星礼-]"
    '(?:(?<=[0-9])(?<![A-Za-z0-9_][0-9])(?![0-9]*(?:[\\])}";=|<>_*&→]|\\Z))|(?<=[+(-])(?<![A-Za-z0-9_.][+(-])(?=[0-9])'
    "|(?<=[A-Z])(?<![A-Za-z0-9_][A-Z])(?=(?:an|eb|a[ry]|pr|u[nlg]|ep|ct|ov|ec)[a-z]{0,7}\\.?\\s[0-9]"
    "|[KST]?[$€£¥₹₩₽฿￥]|SD|UR|BP|NY|MB|PY|NR|HF)|(?<![A-Z0-9+(-]))"
)
_NUMERIC = re.compile(
    f"(?P<DATE>{_BEFORE}(?:(?:19|20)[0-9]{{2}}([-/.])[0-9]{{1,2}}\\2[0-9]{{1,2}}(?![0-9])"
    "(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
    "|[0-9]{1,2}([-/.])[0-9]{1,2}\\3(?:[0-9]{4}|[0-9]{2})(?![0-9])"
    "|[0-9]{2,4}年(?:[0-9]{1,2}月(?:[0-9]{1,2}[日号])?)?|[0-9]{1,2}月[0-9]{1,2}[日号]"
    f"|[0-9]{{1,2}}(?:st|nd|rd|th|\\.)?\\s(?:of\\s)?{_MONTH}(?![A-Za-z0-9_])(?:\\.?,?\\s[0-9]{{4}}(?![A-Za-z0-9_]))?))"
    f"|(?P<DATE_month>(?<![A-Za-z0-9_]){_MONTH}(?![A-Za-z0-9_])\\.?\\s[0-9]{{1,2}}(?:st|nd|rd"
    f"|th)?(?![A-Za-z0-9_])(?!:[0-9])(?:,?\\s(?:19|20)[0-9]{{2}}(?![A-Za-z0-9_]))?|(?<![A-Za-z0-9_]){_MONTH}\\s(?:19"
    f"|20)[0-9]{{2}}(?![A-Za-z0-9_]))"
    f"|(?P<TIME>{_BEFORE}(?:{_CLOCK}(?:{_TO}{_CLOCK})?|[0-9]{{1,2}}\\s?[AaPp]\\.?[Mm](?![A-Za-z0-9_])\\.?))"
    f"|(?P<MONEY>{_BEFORE}{_CURRENCY}\\s?{_AMOUNT}(?:{_TO}{_CURRENCY}?\\s?{_AMOUNT})?(?:\\s?(?:k|K|M|bn|million|billion|万"
    f"|亿)(?![A-Za-z0-9_]))?)"
    f"|(?P<QUANTITY>{_BEFORE}[-+]?{_AMOUNT}(?:{_TO}{_AMOUNT})?\\s?(?:{_UNIT}))"
    "|(?P<PHONE>(?<![A-Za-z0-9_.-])(?:\\+[0-9]{1,4}(?:[ -]?\\([0-9]{1,5}\\))?(?:[ -]?[0-9]++){1,7}+"
    "|(?:\\([0-9]{2,5}\\)[ -]?|[0-9]{2,4}[ -])[0-9]{3,8}(?:[ -][0-9]{2,8}){0,4}"
    "|0[0-9]{1,4}(?:[ -][0-9]{2,8}){2,5})(?![0-9A-Za-z_]))"
    "|(?P<QUANTITY_ordinal>(?<![0-9A-Za-z_])[0-9]{1,4}(?:st|nd|rd|th)(?![A-Za-z0-9_]))"
    "|(?P<QUANTITY_hanzi>[一二三四五六七八九十百千万两零〇半]{1,10}(?:个?小时|分钟|块钱|[分元块天楼层岁折星级]))"
    "|(?P<DATE_week>(?:周|星期|礼拜)[一二三四五六日天](?:\\s?[至到~-]\\s?(?:周|星期|礼拜)?[一二三四五六日天])?)"
)
PHONE_DIGITS = range(7, 16)  # of a telephone number

URL = re.compile(f'(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{{1,15}}://[^\\s<>"`{{}}|\\\\^（），。；！？、」』》”{CJK}]+')
_QUOTE = re.compile(  # each begins with its own mark, by which it is found at once
    "“([^“”\\n]{1,60})”|‘([^‘’\\n]{2,60})’|「([^「」\\n]{1,60})」|『([^『』\\n]{1,60})』|《([^《》\\n]{1,60})》|【([^【】\\n]{1,60})】"
    "|«([^«»\\n]{1,60})»|„([^„“”\\n]{1,60})[“”]"
    "|\"(?<![\\w\"]\")([^\"\\n]{2,60})\"(?!\\w)|'(?<![\\w']')([^'\\n]{2,60})'(?!\\w)|`(?<!``)([^`\\n]{2,60})`"
)
_BETWEEN = f"\\s\"'`,;=|<>(){{}}\\[\\]“”‘’«»„…\u3000-\u3004\u3008-\u3020\uff01-\uff0f\uff1a-\uff20{CJK}"
# Plain words are passed over, with what stands between tokens; the token after them is missing at the end of the text only.
_TOKEN = re.compile(f"(?:[A-Za-z][a-z]*+(?:-[a-z]++)*+[.:!?*]*+(?![^{_BETWEEN}])|[{_BETWEEN}]++)*+([^{_BETWEEN}]++)?")
_EDGE = ".,:;!?*#~-—–·•&^"
_EXTENSIONS_TABLE = """
bash bat bmp c cc cfg cjs cmd conf cpp cs css csv db diff doc docx env exe gif go gz h hpp htm html ico ini ipynb java jpeg jpg
js json jsonl jsx kt less lock log lua md mdx mjs mov mp3 mp4 odt parquet patch pdf php pkl png ppt pptx proto ps1 py pyc pyi
pyx r rb rs rst scala scss sh so sql sqlite svg swift tar tex tgz toml ts tsv tsx txt vue wav whl xls xlsx xml yaml yml zip
"""
EXTENSIONS = frozenset(_EXTENSIONS_TABLE.split())
_EMAIL = re.compile("[\\w.+-]{1,64}@(?:[\\w-]{1,63}\\.){1,6}[A-Za-z]{2,24}", re.ASCII)
_ERROR = re.compile(
    "(?:[A-Za-z_][A-Za-z0-9_]*\\.)*(?:[A-Z][A-Za-z0-9]*(?:Error|Exception|Warning|Failure|Fault)|(?:ERR|E)_[A-Z0-9_]+|E(?:ACCES"
    "|PERM|EXIST|NOENT|INVAL|PIPE|IO|AGAIN|BUSY|NOSPC|NOMEM|ISDIR|NOTDIR|NOTEMPTY|MFILE|NOTFOUND|ADDRINUSE|TIMEDOUT|HOSTUNREACH"
    "|CONN[A-Z]{4,8})|SIG[A-Z]{3,5})"
)
_DOTTED = re.compile("[A-Za-z_][A-Za-z0-9_]+(?:\\.[a-z_][A-Za-z0-9_]+)+")
_NUMBER = re.compile("[+-]?[0-9][0-9.,:/-]*")
_LONGEST_TOKEN = 160
_SHORTEST_TOKEN = 2
_PATH_STARTS = ("./", "../", "~/")
_NUMBERED = re.compile("[0-9]+:")
_DIGIT = re.compile("[0-9]")
_LETTER = re.compile("[^\\W\\d_]")
_ALNUM = re.compile("[^\\W_]")
_PLAIN = re.compile("[A-Za-z0-9]")
_LONGEST_URL = 400
_SENTENCE_END = ".,:;!?*'"


def literals(text: str) -> list[Literal]:
    """Return the literal values of a text, in order, none overlapping another; the longer one wins. O(its length)."""
    kept: list[Literal] = []
    for literal in sorted(_candidates(text), key=itemgetter(0, 1)):
        if not kept or literal.start >= kept[-1].end:
            kept.append(literal)
        elif literal.end > kept[-1].end and literal.end - literal.start > kept[-1].end - kept[-1].start:
            kept[-1] = literal
    return kept


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Literal]:
    """Yield the literal values that have no space inside, in order: the cheap part of ``literals``, for long texts."""
    for match in _TOKEN.finditer(text, start, len(text) if end is None else end):
        token = match[1]
        if token is None:
            continue
        first, last, kind, is_tag = (_within if len(token) > _LONGEST_TOKEN else _known_within)(token)
        if kind is not None and not (is_tag and text[match.start(1) - 1 : match.start(1)] == "<"):
            begin = match.start(1)
            yield Literal(begin + first, begin + last, kind)


def _candidates(text: str) -> Iterator[Literal]:
    if "://" in text:
        for match in URL.finditer(text):
            url = _without_sentence_end(match.group())
            kind = LiteralKind.URL if len(url) <= _LONGEST_URL else LiteralKind.BLOB
            yield Literal(match.start(), match.start() + len(url), kind)
    end = 0
    for beginning in _BEGINNING.finditer(text):
        numeric = _NUMERIC.match(text, beginning.start()) if beginning.start() >= end else None
        if numeric is None:
            continue
        end = numeric.end()
        kind = LiteralKind[(numeric.lastgroup or "").partition("_")[0]]
        if kind is not LiteralKind.PHONE or sum(character.isdigit() for character in numeric.group()) in PHONE_DIGITS:
            yield Literal(numeric.start(), end, kind)
    for match in _QUOTE.finditer(text):
        if _ALNUM.search(match.group()):
            yield Literal(match.start(), match.end(), LiteralKind.QUOTE)
    yield from tokens(text)


def _without_sentence_end(url: str) -> str:
    """Leave out the punctuation after a URL, and brackets that close what was opened before it."""
    stray = max(0, url.count(")") - url.count("(")) + max(0, url.count("]") - url.count("["))
    end = len(url)
    while end and (url[end - 1] in _SENTENCE_END or (stray and url[end - 1] in ")]")):
        stray -= url[end - 1] in ")]"
        end -= 1
    return url[:end]


def _within(token: str) -> tuple[int, int, LiteralKind | None, bool]:
    """Return where the literal value of a token begins and ends, its kind, and whether it may be the end of a tag."""
    kept = token.rstrip(_EDGE)
    last = len(kept)
    kept = kept if kept.startswith(_PATH_STARTS) else kept.lstrip(_EDGE)
    return last - len(kept), last, _kind(kept) if len(kept) >= _SHORTEST_TOKEN else None, kept[:1] == "/"


_known_within = lru_cache(maxsize=4_000)(_within)  # of short ones, many of which a text says again


def _kind(token: str) -> LiteralKind | None:  # noqa: PLR0911 (a table of rules, the first that fits)
    digits = _DIGIT.search(token) is not None
    if len(token) > _LONGEST_TOKEN:
        return LiteralKind.BLOB
    if _ERROR.fullmatch(token):
        return LiteralKind.ERROR
    if digits and _NUMBER.fullmatch(token):
        return LiteralKind.NUMBER
    if token.isalnum():
        return _name(token, digits=digits)
    if "@" in token and _EMAIL.fullmatch(token):
        return LiteralKind.EMAIL
    if "/" in token or "\\" in token:
        return LiteralKind.PATH if _is_path(token) else None
    if "." in token and not token.startswith(".") and token.rpartition(".")[2].lower() in EXTENSIONS:
        return LiteralKind.PATH
    return LiteralKind.NAME if _DOTTED.fullmatch(token) else _name(token, digits=digits)


def _is_path(token: str) -> bool:
    if token[0] in "/~" or token[:2] in ("./", "..") or token[1:3] == ":\\":
        return _ALNUM.search(token) is not None
    parted = token.count("/") + token.count("\\") > 1 or "_" in token
    return parted or token.rpartition(".")[2].lower() in EXTENSIONS or _DIGIT.search(token) is not None


def _name(token: str, *, digits: bool) -> LiteralKind | None:
    """Return ``NAME`` for an identifier: letters with digits, underscores or capitals among them."""
    inner = token.strip("_")
    if _NUMBERED.match(inner) or not _LETTER.search(inner):
        return None
    if digits or "_" in inner:
        return LiteralKind.NAME if _PLAIN.search(inner) else None
    cased = inner.isalpha() and not inner.isupper() and inner[1:] != inner[1:].lower()
    return LiteralKind.NAME if cased else None
