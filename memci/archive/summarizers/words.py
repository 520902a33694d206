"""Splits text into words, whatever its script; one without spaces gives pairs of characters, which need no dictionary."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

_Made = TypeVar("_Made")

_PAIRED = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
# Python's \w leaves out the signs that belong to the letter before them: accents, Hebrew and Arabic points, Indic vowels.
_SIGNS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_UNPAIRED = f"(?:[A-Za-z0-9]++|[^\\W_{_PAIRED}]|[{_SIGNS}])++"

compiled = functools.cache(re.compile)  # at the first use: a pattern with many scripts takes milliseconds
_PAIRED_ONE, _RUN = f"[{_PAIRED}]", f"([{_PAIRED}]++)|{_UNPAIRED}"
ASCII_RUN = re.compile("[a-z0-9]+")
_NOT_ASCII = re.compile("[^\\x00-\\x7f]+")

# Tables of words, with a blank line between them: function words, common English ones, those of other languages, Chinese pairs.
_FUNCTION, COMMON_WORDS, OTHER_WORDS, CHINESE_PAIRS = (
    table.split() for table in Path(__file__).with_name("words.txt").read_text(encoding="utf-8").split("\n\n")
)
STOPWORDS = frozenset(_FUNCTION)
"""Words that say nothing on what a text is about, as ``words`` yields them: English ones, and the commonest Chinese ones."""

CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3"
)
"""Characters of scripts without spaces between words (Han, kana, Thai, Lao, Burmese, Khmer), as a regular expression's set."""
UNSPACED = f"[{CJK}]"  # one of them; to be ``compiled``, as all patterns here

# Words, digits, characters of scripts without spaces, marks, letters of other scripts.
_PIECE = f"([A-Za-z]+)|([0-9]{{1,3}})|([{CJK}])|([^\\s\\w]|_)|([^\\W0-9_]+)"
_WORD, _OTHER_WORD = 1, 5
_TOKENS = (0.0, 1.0, 1.05, 0.9, 0.7, 0.3)  # of a piece of each kind
_LONG_LETTER_TOKENS = 0.12
_PLAIN_LETTERS = 6
_OTHER_LETTER_TOKENS = 0.36


def any_of(texts: Iterable[str]) -> str:
    """Return a pattern of any of these texts, the longest that there is: by first letter, as those are told apart fast."""
    rest: dict[str, list[str]] = {}
    for text in sorted(dict.fromkeys(filter(None, map(str.strip, texts))), key=len, reverse=True):
        rest.setdefault(text[0], []).append(text[1:])
    return "|".join(f"{letter}(?:{'|'.join(ends)})" for letter, ends in rest.items())


def in_lower_case(pattern: str) -> str:
    """Return a pattern that finds in lower-cased text what *pattern* finds in any case; it is twice as fast."""
    return re.sub(r"\\.|[^\W\d_]", lambda each: each[0] if each[0].startswith("\\") else each[0].lower(), pattern)


def runs(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield start and end in *text*, and words, of each unbroken run of letters and digits, in order. O(length of the text)."""
    if is_plain(text):
        for match in ASCII_RUN.finditer(text.lower()):
            yield match.start(), match.end(), [match.group()]
        return
    for match in compiled(_RUN).finditer(text):
        run = match.group().lower()
        if run.isascii() or unicodedata.is_normalized("NFKC", run):
            yield match.start(), match.end(), [run] if match.group(1) is None else pairs(run)
        else:  # the plain form of one character may be several, spaces among them
            plain = compiled(_RUN).finditer(unicodedata.normalize("NFKC", run).lower())
            found = [word for part in plain for word in ([part.group()] if part.group(1) is None else pairs(part.group()))]
            yield match.start(), match.end(), found


def words(text: str) -> list[str]:
    """Return the words of a text, lower-cased, in order. O(length of the text).

    A run of a script without spaces gives its ``pairs``: ``北京站`` gives ``北京`` and ``京站``. Anything but letters and digits
    separates words: ``don't`` gives ``don`` and ``t``. Full-width and other compatibility forms become the plain ones.
    """
    if is_plain(text):
        return ASCII_RUN.findall(text.lower())
    if not compiled(_PAIRED_ONE).search(text):
        found = [run.lower() for run in compiled(_UNPAIRED).findall(text)]
        if "".join(found).isascii():  # no word has another form: it is marks between them that are no ASCII
            return found
    return [word for _, _, found in runs(text) for word in found]


class Known(dict[str, _Made]):
    """What *make* makes of texts, for at most *most* at a time. To look one up costs half of what it does in an ``lru_cache``."""

    def __init__(self, make: Callable[[str], _Made], most: int) -> None:
        super().__init__()
        self._make = make
        self._most = most // 2
        self._older: dict[str, _Made] = {}

    def __missing__(self, text: str) -> _Made:
        """Make it, or take it over from the older half, which is forgotten where the newer one is full."""
        if len(self) >= self._most:
            self._older = dict(self)
            self.clear()
        made = self._older.get(text)
        self[text] = made = self._make(text) if made is None else made
        return made


@functools.lru_cache(maxsize=10_000)
def forms(text: str) -> Sequence[str]:
    """Return by what it is known whether pages say the same word or value: a value by all of it, as 4.5 is not 4.6."""
    if text.isascii() and text.isalpha():  # most of them
        return [text.lower()]
    return [text] if any(map(str.isdigit, text)) else words(text)


def is_plain(text: str) -> bool:
    """Return whether all letters and digits of a text are ASCII; dashes, quotation marks and pictures may be there."""
    return text.isascii() or compiled(_RUN).search("".join(_NOT_ASCII.findall(text))) is None


def is_paired(word: str) -> bool:
    """Return whether a word is of a script without spaces, of which ``words`` gives pairs of characters."""
    return compiled(_PAIRED_ONE).match(word) is not None


def unpaired(text: str) -> list[str]:
    """Return the words of a text but for those of scripts without spaces, lower-cased, in order. O(its length)."""
    return [run.lower() for run in compiled(_UNPAIRED).findall(text)]


def normalized(text: str) -> str:
    """Return a text with the plain forms of full-width letters and digits, and other such forms. O(its length)."""
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of characters of a run, or of one character that."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def estimate(text: str) -> float:
    """Return about how many tokens a modern encoding makes of *text*; within a tenth over a page. O(its length).

    The weights were fitted to o200k_base on conversations in English and Chinese, with code and tool calls.
    """
    if text.isascii() and text.isalpha():
        return 1.0 if len(text) <= _PLAIN_LETTERS else 1.0 + _LONG_LETTER_TOKENS * (len(text) - _PLAIN_LETTERS)
    total = 0.0
    for piece in compiled(_PIECE).finditer(text):
        kind = piece.lastindex or 0
        total += _TOKENS[kind]
        if kind == _WORD:
            total += _LONG_LETTER_TOKENS * max(0, piece.end() - piece.start() - _PLAIN_LETTERS)
        elif kind == _OTHER_WORD:
            total += _OTHER_LETTER_TOKENS * (piece.end() - piece.start())
    return total
