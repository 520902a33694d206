"""A summary that a model or anybody's program wrote, as entries and rows of the contents page take it."""

import re
from collections.abc import Iterator

import attrs

from memci.archive.summarizers.extractive import one_line
from memci.archive.summarizers.literals import literals
from memci.archive.summarizers.summary import Summary, Word
from memci.archive.summarizers.words import CJK, STOPWORDS, words
from memci.errors import SummaryError

VALUE_WORTH, WORD_WORTH, FUNCTION_WORTH = (
    4.0,
    3.0,
    1.0,
)  # in a row: a model chose its words, so that each tells more than an extract

_BULLET = re.compile(r"^\s*(?:[-*•·]|[0-9]{1,2}[.)])\s+")
_PIECE = re.compile(f"[{CJK}]{{1,4}}|[^\\s{CJK}]+")  # of a text without spaces, what stands or goes together


def as_summary(answer: object) -> Summary:
    """Return what a summariser answered as a summary, a text with its first line as title; ``SummaryError`` for anything else."""
    if isinstance(answer, str):
        title, *lines = [*filter(None, (one_line(_BULLET.sub("", line)) for line in answer.splitlines())), ""]
        return _with_words(Summary(title=title, lines=tuple(filter(None, lines))))
    if not isinstance(answer, Summary):
        message = f"a summariser returns a Summary or a str, not a {type(answer).__name__}"
        raise SummaryError(message)
    title, summary, outcome = map(one_line, (answer.title, answer.summary, answer.outcome))
    shown = tuple(filter(None, map(one_line, answer.lines)))
    return _with_words(attrs.evolve(answer, title=title, summary=summary, lines=shown, outcome=outcome))


def _with_words(summary: Summary) -> Summary:
    text = " ".join(filter(None, (summary.title, summary.summary, *summary.lines)))
    return summary if summary.words else attrs.evolve(summary, words=tuple(_row_words(text)))


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
