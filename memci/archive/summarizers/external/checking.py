"""Whether a summary that somebody else wrote can be believed: checked against its page, without a model."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from memci.archive.summarizers.extractive import one_line
from memci.archive.summarizers.literals import LiteralKind, literals
from memci.archive.summarizers.summary import Summary
from memci.archive.summarizers.words import COMMON_WORDS, STOPWORDS, UNSPACED, compiled, words

SLACK = 1.5  # a summary may have so many times the tokens that it was given: models count badly
KNOWN_SHARE = 0.5  # of a summary's content words, which its page has to say in some form

_STEM = 5  # letters by which a word is known in another form
_FEWEST_WORDS = 4  # from which on a share of them tells something
_MARKS = re.compile(
    r"\[[a-z][a-z0-9_]*-[0-9]+(?:\.\.[0-9]+|/[0-9]+)?\]|\[/?(?:recalled|contents|erased|working set|continuation)\b"
    r"|Contents of earlier pages|<\|[^|>]{1,40}\|>|</?(?:system|user|assistant|tool)>|^(?:system|developer)\s*:|\[/?INST\]",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWERS = re.compile(  # as models begin one that is no summary
    r"(?:sure|certainly|of course|absolutely|great question|thank you|thanks|you'?re welcome|i'?m sorry|i am sorry|sorry,"
    r"|i apologi[sz]e|i can(?:no|')t|i(?:'m| am) (?:unable|an ai|just|happy)|as an ai|as a language model|here(?:'s| is| are)\b"
    r"|how can i|let me|i'd be happy|hello|hi there|gerne|natürlich|selbstverständlich|es tut mir leid|hier (?:ist|sind)\b"
    r"|bien sûr|voici|désolé|claro|por supuesto|lo siento|aquí|好的|当然|抱歉|对不起|很抱歉|以下是|您好|你好)",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"(?<![\w.'’-])[^\W\d_a-zß-öø-ÿ][^\W\d_]+(?!\w)")  # and words of scripts without capitals
_SENTENCE_END = re.compile(r"(?:^|[.!?:;…—–\"“(\n]\s*|^\W+)$")
_NUMBERS = re.compile(r"[0-9]+(?:[.,'][0-9]+)*")
_GROUPING = re.compile(r"(?<=[0-9])[,'](?=[0-9]{3}(?![0-9]))")
_PADDING = re.compile(r"^0+(?=[0-9])|\.0+$|(?<=\.[0-9])0+$|(?<=\.[0-9]{2})0+$")
_SPACES = re.compile(r"\s+")
_COMMON = STOPWORDS | frozenset(COMMON_WORDS)
_CAPITALS_SHARE = 0.12  # of the words of a page: from there on its language writes more than names with a capital

_EXACT = (LiteralKind.URL, LiteralKind.EMAIL, LiteralKind.PATH, LiteralKind.ERROR, LiteralKind.NAME)


def problem(summary: Summary, said: Sequence[str], *, page_tokens: int, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return why a summary is not to be believed; empty where it is.

    *said* are the texts of its page, of *page_tokens* in all; *max_tokens* were given for it, and *count* gives the tokens of a
    text. Every literal value in it stands in the page, every name too, and half of its other words in some form, which those of
    another language or of an answer do not. O(size of the page).
    """
    text = written(summary)
    if not any(map(str.isalnum, text)):
        return "it is empty"
    tokens = count(text)
    if tokens >= page_tokens:
        return f"its {tokens} tokens are not fewer than the {page_tokens} of its page"
    if tokens > SLACK * max_tokens:
        return f"its {tokens} tokens are too many, {max_tokens} were given"
    if (mark := _MARKS.search(text)) is not None:
        return f"it holds a mark that only contents pages and requests have: {one_line(mark[0])}"
    page = "\n".join(said)
    if (answer := _ANSWERS.match(text)) is not None and answer[0].casefold() not in page.casefold():
        return f"it answers instead of summing up: {answer[0]}"
    unknown = next(_unknown(text, page), "")
    return unknown and f"its page does not say {unknown}"


def written(summary: Summary) -> str:
    """Return all that a summary shows, a line for each of its parts."""
    return "\n".join(filter(None, (summary.title, summary.summary, *summary.lines, summary.outcome)))


def _unknown(text: str, page: str) -> Iterator[str]:
    """Yield what a text says and its page does not: most of its words, or values, or names."""
    if share := _unknown_share(text, page):
        yield share
    yield from map(repr, chain(unknown_values(text, page), _unknown_names(text, page)))


def unknown_values(text: str, page: str) -> Iterator[str]:
    """Yield the literal values of a text that its page does not hold, each as it is written there."""
    exact, folded = _SPACES.sub(" ", page), _SPACES.sub(" ", page).casefold()
    numbers = set(_plain_numbers(page))
    for literal in literals(text):
        value = text[literal.start : literal.end]
        if literal.kind in _EXACT:
            known = value in exact
        elif literal.kind is LiteralKind.QUOTE:
            known = _SPACES.sub(" ", value[1:-1]).strip(" .,;:!?").casefold() in folded
        else:
            figures = _plain_numbers(value)
            known = numbers.issuperset(figures) if figures else value in exact
        if not known:
            yield value
    for number in _plain_numbers(text):  # those that are no value of their own, such as one in words
        if number not in numbers:
            yield number


def lacking(text: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return those of a page's literal values that a text does not hold, in their order."""
    folded = _SPACES.sub(" ", text).casefold()
    return tuple(value for value in values if _SPACES.sub(" ", value).casefold() not in folded)


def _plain_numbers(text: str) -> list[str]:
    """Return the numbers of a text without marks between groups of digits, and without zeros that say nothing."""
    found = _NUMBERS.findall(_GROUPING.sub("", text))
    several = ([number] if number.count(".") == 1 else re.split("[.,']", number) for number in found)
    return [_PADDING.sub("", each) or "0" for each in chain.from_iterable(several)]


def _unknown_names(text: str, page: str) -> Iterator[str]:
    """Yield capitalised words that the page does not say, where its language capitalises little but names."""
    said = words(page)
    capitals = sum(1 for match in _CAPITALISED.finditer(page) if match[0][0].isupper() and not _begins(page, match.start()))
    if capitals > _CAPITALS_SHARE * len(said):
        return
    known = set(said)
    for match in _CAPITALISED.finditer(text):
        name = match[0].lower()
        if not match[0][0].isupper() or known.issuperset(words(name)) or name in _COMMON:
            continue
        is_form = name.endswith(("s", "ed", "ing", "ly", "er")) and _begins(text, match.start())
        if not (is_form or any(word.startswith(name[:_STEM]) for word in known if len(name) >= _STEM)):
            yield match[0]


def _begins(text: str, start: int) -> bool:
    return _SENTENCE_END.search(text[max(0, start - 4) : start]) is not None


def _unknown_share(text: str, page: str) -> str:
    known = set(words(page))
    stems = {word[:_STEM] for word in known}
    said = [word for word in words(text) if word not in STOPWORDS and not word.isdecimal()]
    unknown = [word for word in said if word[:_STEM] not in stems]
    fewest = _FEWEST_WORDS if compiled(UNSPACED).search(text) is None else 2 * _FEWEST_WORDS
    if len(said) < fewest or len(unknown) <= (1 - KNOWN_SHARE) * len(said):
        return ""
    return f"most of its words, such as {', '.join(map(repr, unknown[:3]))}: they are of another language, or answer it"
