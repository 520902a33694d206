"""A summary that a model or anybody's program wrote, as entries and rows of the contents page take it."""

import re
from collections.abc import Iterator, Mapping

from memci.archive.summarizers.extractive import one_line
from memci.archive.summarizers.literals import literals
from memci.archive.summarizers.summary import Summary, Word
from memci.archive.summarizers.words import CJK, STOPWORDS, words
from memci.errors import SummaryError

MOST_CHARACTERS = 20_000  # of an answer that is looked at at all
# In a row: a model chose its words, so that each tells more than an extract.
VALUE_WORTH, WORD_WORTH, FUNCTION_WORTH = 4.0, 3.0, 1.0

_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens", "price")
_MOST_USED = 1e12
_BULLET = re.compile(r"^\s*(?:[-*•·]|[0-9]{1,2}[.)])\s+")
_PIECE = re.compile(f"[{CJK}]{{1,4}}|[^\\s{CJK}]+")  # of a text without spaces, what stands or goes together


def as_summary(answer: object) -> Summary:
    """Return what a summariser answered as a summary that shows nothing but its texts; ``SummaryError`` for anything else.

    Of a text the first line is the title. Of a ``Summary`` title, summary, lines, outcome and usage are taken.
    """
    usage: dict[str, float] = {}
    if isinstance(answer, Summary):
        lines: object = answer.lines
        texts, usage = [answer.title, answer.summary, answer.outcome, *answer.lines], _numbers(answer.usage)
        if isinstance(lines, str) or not all(isinstance(text, str) for text in texts):
            message = "of a Summary title, summary and outcome are texts, and lines are several"
            raise SummaryError(message, usage=usage)
    elif isinstance(answer, str):
        texts = [answer]
    else:
        message = f"a summariser returns a Summary or a str, not a {type(answer).__name__}"
        raise SummaryError(message, usage={})
    if (size := sum(map(len, texts))) > MOST_CHARACTERS:
        message = f"it answers with {size} characters, more than the {MOST_CHARACTERS} that are looked at"
        raise SummaryError(message, usage=usage)
    if isinstance(answer, str):
        found = filter(None, (one_line(_BULLET.sub("", line)) for line in answer.splitlines()))
        title, summary, outcome, lines = next(found, ""), "", "", tuple(found)
    else:
        title, summary, outcome, *rest = map(one_line, texts)
        lines = tuple(filter(None, rest))
    words = tuple(_row_words(" ".join(filter(None, (title, summary, *lines)))))
    return Summary(title=title, summary=summary, lines=lines, outcome=outcome, words=words, usage=usage)


def _numbers(usage: object) -> dict[str, float]:
    """Return of a usage what is known and a number that can be."""
    known = [(name, usage.get(name)) for name in _USAGE] if isinstance(usage, Mapping) else []
    return {name: each for name, each in known if type(each) in (int, float) and 0 <= each <= _MOST_USED}  # type: ignore[operator,misc]


def _row_words(text: str) -> Iterator[Word]:
    """Yield the words of a text for a row, literal values whole, in their order."""
    end = 0
    for first, last in [*((each.start, each.end) for each in literals(text)), (len(text), len(text))]:
        for found in _PIECE.finditer(text, end, first):
            plain = words(found[0])
            tells = plain and not STOPWORDS.issuperset(plain)
            yield found[0], WORD_WORTH if tells else FUNCTION_WORTH, _lead(text, found.start())
        if first < last:
            yield text[first:last], VALUE_WORTH, _lead(text, first)
        end = last


def _lead(text: str, start: int) -> str:
    return " " if text[start - 1 : start].isspace() else ""
