"""Counters of tokens, by their names in the configuration."""

import functools
import math
import re
from collections.abc import Sequence
from typing import ClassVar, Final, Protocol

import attrs

from memci.errors import ArgumentError, ConfigError, is_line, shown
from memci.messages.tokens.encodings import ENCODINGS, SAME_TEXT, TiktokenCounter

APPROXIMATE = "approximate"


class TokenCounter(Protocol):
    """Counts the tokens of a text. The same text gives the same count for ever; counting may come from several threads."""

    @property
    def name(self) -> str:
        """The name under which ``get_counter`` gives this counter again."""

    @property
    def exact(self) -> bool:
        """Whether it counts with the tokeniser itself; lines that begin with a bracket add up then. Else it estimates."""

    @property
    def margin(self) -> float:
        """What to multiply a sum of counts with before it is compared with a budget; 1.0 where counts are exact."""

    def count(self, text: str) -> int:
        """Return the number of tokens in *text*. O(its length)."""


class PartsCount:
    """Counts texts of many parts, one after the other, that share most of them: each part is counted when it is new.

    A part but the first begins on a line of its own with a mark that is no slash, where the encodings cut a text anyway.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}  # of the last text, with the line breaks

    def count(self, parts: Sequence[str], counter: TokenCounter) -> int:
        """Return the number of tokens of the parts, at least one, in lines of their own. O(the new parts), exact or not."""
        if not counter.exact:
            return counter.count("\n".join(parts))
        *others, last = parts
        known = self._known
        self._known = {part: known.get(part) or counter.count(f"{part}\n") for part in others}
        return sum(map(self._known.__getitem__, others)) + counter.count(last)


_MOST_TOKENS: Final = 1 << 53  # of a text: what JSON takes for a whole number everywhere
_compiled = functools.cache(re.compile)  # at the first count
# The weights are tokens of o200k_base, fitted by least squares to conversations in English and Chinese, tool calls with JSON
# results and Python sources, and rounded up for what is rare there. Totals come out 0 to 7% high on each of these; single
# messages of 20 tokens and more are up to 30% low.
_WORD: Final = r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+"
_WORD_TOKENS: Final = 0.92
_SHORT_LETTERS, _LONGER_TOKENS = 6, 0.1  # each letter beyond the sixth
_USUAL_LETTERS, _ENDLESS_TOKENS = 16, 0.4  # on top, each letter beyond the sixteenth: no word, but a key or a hash

_ASCII: Final = (
    (0.9, r"[0-9]{1,3}"),
    (0.9, r"[ \t]{2,}|[\r\n]+[ \t]*"),
    (0.22, r"[!-/:-@\[-`{-~]"),
    (0.76, r"[!-/:-@\[-`{-~]+"),
    (0.8, r"[a-z](?=[A-Z])"),
    (0.6, r"[A-Z]{2,}"),
)

_LATIN: Final = r"\u00c0-\u024f\u1e00-\u1eff"  # Latin letters with marks, which belong to words too
_CYRILLIC: Final = r"\u0400-\u04ff"
_ALPHABETS: Final = r"\u0370-\u03ff\u0500-\u06ff\u0900-\u0eff\u1000-\u10ff\u1780-\u17ff"  # Greek to Arabic, India to Khmer
_CJK: Final = r"\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"  # with its punctuation, kana and hangul
_BEYOND_ASCII: Final = (
    (0.55, f"[{_LATIN}]"),
    (0.33, f"[{_CYRILLIC}]"),
    (0.45, f"[{_ALPHABETS}]"),
    (0.85, f"[{_CJK}]"),
    (2.2, r"[\U00010000-\U0010ffff]"),  # emoji and rare characters
    # All else: controls, typographic signs, rare scripts, lone surrogates.
    (1.6, rf"[^\t\n\r -~{_LATIN}{_CYRILLIC}{_ALPHABETS}{_CJK}\U00010000-\U0010ffff]"),
)


@attrs.frozen
class ApproximateCounter:
    """Estimates tokens from letters, digits, signs and scripts; knows no vocabulary.

    Use its ``margin``: with it, no run of 20 messages was below the count of o200k_base in the conversations it was fitted to.
    Texts in Polish, rare scripts and base64 can still be up to 30% below, and other tokenisers make more tokens of a text than
    o200k_base: ``report_usage`` tells the session what the provider counted.
    """

    name: ClassVar[str] = "approximate"
    exact: ClassVar[bool] = False
    margin: ClassVar[float] = 1.15

    def count(self, text: str) -> int:
        """Return an estimate of the tokens in *text*, rounded up. O(its length), about 5 MB/s."""
        words = _compiled(_WORD).findall(text)
        tokens = _WORD_TOKENS * len(words)
        for word in words:
            letters = len(word)
            if letters > _SHORT_LETTERS:
                tokens += _LONGER_TOKENS * (letters - _SHORT_LETTERS) + _ENDLESS_TOKENS * max(0, letters - _USUAL_LETTERS)
        for weight, pattern in _ASCII:
            tokens += weight * len(_compiled(pattern).findall(text))
        if not text.isascii() or not text.isprintable():
            for weight, pattern in _BEYOND_ASCII:
                tokens += weight * len(_compiled(pattern).findall(text))
        return math.ceil(tokens)


@attrs.frozen
class CheckedCounter:
    """Somebody's counter, whose counts are looked at before anything is done with them."""

    name: str
    exact: bool
    margin: float
    _counter: TokenCounter

    def count(self, text: str) -> int:
        """Return what it counts; ``ConfigError`` where that is no whole number from 0."""
        tokens: object = self._counter.count(text)
        if type(tokens) is not int or not 0 <= tokens <= _MOST_TOKENS:
            message = f"the counter {self.name} counts {shown(tokens)} tokens: a counter returns a whole number from 0"
            raise ConfigError(message, path="counter")
        return tokens


def checked_counter(counter: TokenCounter) -> TokenCounter:
    """Return memci's own counter as it is, and somebody's ``CheckedCounter``; ``ArgumentError`` for what is none."""
    if isinstance(counter, TiktokenCounter | ApproximateCounter):
        return counter
    margin: object
    name, exact, margin = (getattr(counter, each, None) for each in ("name", "exact", "margin"))
    is_counter = is_line(name) and isinstance(exact, bool) and callable(getattr(counter, "count", None))
    if not (is_counter and isinstance(margin, int | float) and 1 <= margin < math.inf):
        wanted = "an object with name (a short line), exact (true or false), margin (a number from 1) and count"
        raise ArgumentError(argument="counter", value=counter, wanted=wanted)
    return CheckedCounter(counter.name, counter.exact, counter.margin, counter)


def get_counter(name: str) -> TokenCounter:
    """Return the counter for an encoding, for an OpenAI model's name, or for ``approximate``.

    The vocabulary is loaded at the first count, and never downloaded. All names of one encoding give the same counter, whose
    ``name`` is the encoding's. ConfigError where no tokeniser is known for the name.
    """
    if name == APPROXIMATE:
        return ApproximateCounter()
    return tiktoken_counter(name if name in ENCODINGS else _encoding_of_model(name))


tiktoken_counter = functools.cache(TiktokenCounter)  # by a name in ENCODINGS


def _encoding_of_model(name: str) -> str:
    from tiktoken.model import MODEL_TO_ENCODING, encoding_name_for_model  # noqa: PLC0415 (22 ms, not needed for an encoding's name)

    try:
        encoding = encoding_name_for_model(name)
    except KeyError:
        encoding = name
    encoding = SAME_TEXT.get(encoding, encoding)
    if encoding in ENCODINGS:
        return encoding
    import difflib  # noqa: PLC0415 (only for this error)

    near = difflib.get_close_matches(name, [*ENCODINGS, APPROXIMATE, *MODEL_TO_ENCODING], n=3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    message = (
        f"there is no tokeniser for {shown(name)}{hint}: give {' or '.join(ENCODINGS)}, the name of an OpenAI chat model, or "
        "approximate, which estimates the tokens of any model and keeps a margin"
    )
    raise ConfigError(message, path="counter")
