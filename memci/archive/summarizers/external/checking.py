"""Whether a summary that somebody else wrote can be believed: checked against its page, without a model."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import attrs

from memci.archive.summarizers.clauses import denied_clauses, denies, sentences, undenied
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
    r"|\[(?:slots|extra) of\b"
    r"|\[\s*(?:usr|sys)\W*[0-9]|Contents of earlier pages|<\|[^|>]{1,40}\|>|<\s*/?\s*(?:system|user|assistant|tool)\s*>"
    r"|^(?:system|developer)\s*:|\[\s*/?\s*INST\s*\]",
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
_DIGITS = re.compile(r"(?![0-9])\d|[⁰¹²³⁴-⁹₀-₉]")  # of other scripts, and raised or lowered ones
_SIGNED = re.compile(  # where a sign or per cent makes another value of a number
    r"(?<![^\s(\[{:=])([-−])([0-9]+(?:[.,'][0-9]+)*)|([0-9]+(?:[.,'][0-9]+)*)\s?(?:[%％]|per ?cent\b|Prozent\b)"
    r"|百分之\s?([0-9]+(?:\.[0-9]+)?)",
    re.IGNORECASE,
)
_DATE = re.compile(r"[0-9]+(?:[-./][0-9]+){2}")
_GROUPING = re.compile(r"(?<=[0-9])[,'](?=[0-9]{3}(?![0-9]))")
_PADDING = re.compile(r"^0+(?=[0-9])|\.0+$|(?<=\.[0-9])0+$|(?<=\.[0-9]{2})0+$")
_SPACES = re.compile(r"\s+")
_LABELS = "Goal Decisions State Open Ziel Entscheidungen Stand Offen 目标 决定 现状 待办"  # of lines, as the prompts ask for them
_VOID = frozenset(
    ["null", "none", "nil", "undefined", "nan", "n", "error", "errors", "ok", "okay", "todo", "unknown", "empty"]
)  # alone
_NAMES = frozenset(  # such as end like words that begin a sentence
    words(
        "james thomas charles chris nicholas lucas marcus louis hans klaus andreas jonas dennis douglas travis curtis"
        " carlos luis alexis frances iris agnes doris gladys peter jennifer walter oliver alexander heather amber"
        " esther roger tyler hunter carter christopher ahmed mohammed fred alfred jared emily kelly molly billy sally"
        " holly beverly kimberly lily"
    )
)
_GROUPED = re.compile(r"(?:\+|\b)[0-9]+(?:[ \u00a0/-]\(?[0-9]+\)?){1,7}(?!\w)")  # such as a telephone number, or that of a card
_GROUPED_DIGITS = 7  # from which on a number in groups means nothing in parts; but a date has parts
_TURNED_SHARE = 0.5  # of the words that only one clause of a page says: a sentence that has these is about it
_FEWEST_TURNED = 2
_OTHERWISE = re.compile(  # words beside those of ``whole`` by which a summary tells that something was denied or forbidden
    r"\b(?:against|avoid|ban|block|cancel|declin|den(?:y|ie)|disallow|exclu|fail|forb|impossib|lack|miss|omit|out of|prevent"
    r"|prohibit|refus|reject|skip|stop|un(?:able|avail|success|wanted)|zero|verb[oi]t|vermeid|fehl|unmöglich|lehnt|untersag"
    r"|interdi|échou|évit|prohib|rechaz|evit|falt|proib|recus|запре|отказ|избег)|拒绝|避免|失败|无|缺|拒否|避け|失敗",
    re.IGNORECASE,
)
_COMMON = STOPWORDS | frozenset(COMMON_WORDS)
_CAPITALS_SHARE = 0.12  # of the words of a page: from there on its language writes more than names with a capital

_EXACT = (LiteralKind.URL, LiteralKind.EMAIL, LiteralKind.PATH, LiteralKind.ERROR, LiteralKind.NAME)


@attrs.frozen
class _Source:
    """What a summary is checked against, with what is found in it once."""

    text: str
    exact: str  # with single spaces
    folded: str
    numbers: frozenset[str]
    order: str  # of the numbers
    signed: frozenset[str]  # those with a sign or per cent
    words: frozenset[str]
    capitalises: bool  # whether its language writes more than names with a capital
    grouped: tuple[tuple[str, str], ...]  # numbers of several groups: as they are written, and their groups
    loose: frozenset[str]  # the numbers beside these
    denied: tuple[tuple[str, frozenset[str]], ...]  # clauses with a negation, and the stems that no other clause has

    @classmethod
    def of(cls, text: str) -> "_Source":
        text = _plain_digits(text)
        said, exact = words(text), _SPACES.sub(" ", text)
        capitals = sum(1 for match in _CAPITALISED.finditer(text) if match[0][0].isupper() and not _begins(text, match.start()))
        numbers, grouped = _plain_numbers(text), list(filter(_is_grouped, _GROUPED.findall(text)))
        return cls(
            text=text,
            exact=exact,
            folded=exact.casefold(),
            numbers=frozenset(numbers),
            order=f" {' '.join(numbers)} ",
            signed=frozenset(_signed(text)),
            words=frozenset(said),
            capitalises=capitals > _CAPITALS_SHARE * len(said),
            grouped=tuple((number, f" {' '.join(_plain_numbers(number))} ") for number in grouped),
            loose=frozenset(_plain_numbers(_GROUPED.sub(lambda match: " " if _is_grouped(match[0]) else match[0], text))),
            denied=tuple(_denied(text)),
        )


def problem(summary: Summary, said: Sequence[str], *, page_tokens: int, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return why a summary is not to be believed; empty where it is.

    *said* are the texts of its page, of *page_tokens* in all; *max_tokens* were given for it, and *count* gives the tokens of a
    text. Every literal value in it stands in the page, every name too, and half of its other words in some form, which those of
    another language or of an answer do not. No number in groups is cut, and no clause has lost its negation. O(size of the page).
    """
    text = written(summary)
    if not any(map(str.isalnum, text)):
        return "it is empty"
    tokens = count(text)
    if tokens >= page_tokens:
        return f"its {tokens} tokens are not fewer than the {page_tokens} of its page"
    if tokens > SLACK * max_tokens:
        return f"its {tokens} tokens are too many, {max_tokens} were given"
    if mark := forged(text):
        return _told(mark)
    text, source = _plain_digits(text), _Source.of("\n".join(said))
    if answer := _answer(text, source):
        return answer
    unknown = next(chain(filter(None, [_unknown_share(text, source)]), map(repr, _unknown(text, source))), "")
    return (unknown and f"its page does not say {unknown}") or _untrue(text, source)


@attrs.frozen
class Believed:
    """The lines of a continuation that can be believed, why others are left out, and why there is none."""

    lines: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    reason: str = ""


def believed(summary: Summary, said: Sequence[str], *, most_tokens: int, count: Callable[[str], int]) -> Believed:
    """Return what can be believed of a continuation that was made of texts: each line is checked for itself.

    As a whole it is an answer, or in another language, or has more than *most_tokens* of the lines that are left. O(size of the
    texts).
    """
    text, source = written(summary), _Source.of("\n".join([*said, _LABELS]))
    if not any(map(str.isalnum, text)):
        return Believed(reason="it is empty")
    if reason := _answer(text, source) or _unknown_share(_plain_digits(text), source):
        return Believed(reason=reason)
    lines, dropped = list[str](), list[str]()
    for line in text.splitlines():
        plain = _plain_digits(line)
        why = _told(mark) if (mark := forged(line)) else next(map(repr, _unknown(plain, source)), "") or _untrue(plain, source)
        if why:
            dropped.append(why)
        elif any(map(str.isalnum, line)):
            lines.append(line)
    tokens = count("\n".join(lines))
    reason = "" if lines else "nothing in it can be believed"
    if tokens > most_tokens:
        reason = f"its {tokens} tokens are too many, there is room for {most_tokens}"
    return Believed(() if reason else tuple(lines), tuple(dropped), reason)


def forged(text: str) -> str:
    """Return the first mark or index of memci's in a text, or of a request's; empty where there is none."""
    mark = _MARKS.search(text) or _MARKS.search(unicodedata.normalize("NFKC", text))
    return "" if mark is None else mark[0]


def written(summary: Summary) -> str:
    """Return all that a summary shows, a line for each of its parts."""
    return "\n".join(filter(None, (summary.title, summary.summary, *summary.lines, summary.outcome)))


def _told(mark: str) -> str:
    return f"it holds a mark that only contents pages and requests have: {one_line(mark)}"


def _answer(text: str, source: _Source) -> str:
    answer = _ANSWERS.match(text)
    return (
        ""
        if answer is None or answer[0].casefold() in source.text.casefold()
        else f"it answers instead of summing up: {answer[0]}"
    )


def _untrue(text: str, source: _Source) -> str:
    """Return why a text says something else than its page although all its words are there; empty where it does not."""
    numbers = _plain_numbers(text)
    order = f" {' '.join(numbers)} "
    for number, groups in source.grouped:
        if groups not in order and any(group in numbers and group not in source.loose for group in groups.split()):
            return f"it has only a part of {number!r}"
    for sentence in sentences(text):
        if denies(sentence) or _OTHERWISE.search(sentence):
            continue
        stems = _stems(sentence)
        for clause, own in source.denied:
            if len(own & stems) >= max(_FEWEST_TURNED, _TURNED_SHARE * len(own)):
                return f"it leaves out the negation of {one_line(clause)!r}"
    return ""


def _is_grouped(number: str) -> bool:
    return not _DATE.fullmatch(number) and sum(map(str.isdigit, number)) >= _GROUPED_DIGITS


def _denied(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the clauses of a text with a negation, each with the stems of words that no other clause has."""
    spans = denied_clauses(text)
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    free = _stems(" ".join(text[end:start] for end, start in zip(ends, starts, strict=True)))
    for start, end in spans:
        yield text[start:end], frozenset(_stems(undenied(text[start:end])) - free)


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in words(text) if word not in STOPWORDS}


def _unknown(text: str, source: _Source) -> Iterator[str]:
    """Yield the values and names that a text says and its page does not."""
    yield from _unknown_values(text, source)
    yield from _unknown_names(text, source)


def _unknown_values(text: str, source: _Source) -> Iterator[str]:
    """Yield the literal values of a text that its page does not hold, each as it is written there."""
    for literal in literals(text):
        value = text[literal.start : literal.end]
        if literal.kind in _EXACT:
            known = value in source.exact
        elif literal.kind is LiteralKind.QUOTE:
            known = _SPACES.sub(" ", value[1:-1]).strip(" .,;:!?").casefold() in source.folded
        else:
            figures = _plain_numbers(value)
            known = source.numbers.issuperset(figures) if figures else value in source.exact
            if _DATE.fullmatch(value):
                known = any(f" {' '.join(each)} " in source.order for each in (figures, figures[::-1]))
        if not known:
            yield value
    for number in _plain_numbers(text):  # those that are no value of their own, such as one in words
        if number not in source.numbers:
            yield number
    yield from sorted(_signed(text) - source.signed)


def _plain_digits(text: str) -> str:
    """Return a text whose digits are all those of ASCII."""
    return text if text.isascii() else _DIGITS.sub(lambda digit: str(unicodedata.digit(digit[0])), text)


def _signed(text: str) -> set[str]:
    """Return the numbers of a text that have a sign or are per cents."""
    found = _SIGNED.findall(_GROUPING.sub("", text))
    return {
        f"{'-' if sign else ''}{' '.join(_plain_numbers(below or share or chinese))}{'' if sign else '%'}"
        for sign, below, share, chinese in found
    }


def lacking(text: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return those of a page's literal values that a text does not hold, in their order."""
    folded = _SPACES.sub(" ", text).casefold()
    return tuple(value for value in values if _SPACES.sub(" ", value).casefold() not in folded)


def _plain_numbers(text: str) -> list[str]:
    """Return the numbers of a text without marks between groups of digits, and without zeros that say nothing."""
    found = _NUMBERS.findall(_GROUPING.sub("", text))
    several = ([number] if number.count(".") == 1 else re.split("[.,']", number) for number in found)
    return [_PADDING.sub("", each) or "0" for each in chain.from_iterable(several)]


def _unknown_names(text: str, source: _Source) -> Iterator[str]:
    """Yield capitalised words that the page does not say, where its language capitalises little but names."""
    if source.capitalises:
        return
    known = source.words
    for match in _CAPITALISED.finditer(text):
        name = match[0].lower()
        if not match[0][0].isupper() or known.issuperset(words(name)) or name in _COMMON:
            continue
        is_form = name.endswith(("s", "ed", "ing", "ly", "er")) and name not in _NAMES and _begins(text, match.start())
        if not (is_form or any(word.startswith(name[:_STEM]) for word in known if len(name) >= _STEM)):
            yield match[0]


def _begins(text: str, start: int) -> bool:
    return _SENTENCE_END.search(text[max(0, start - 4) : start]) is not None


def _unknown_share(text: str, source: _Source) -> str:
    stems = {word[:_STEM] for word in source.words}
    said = [word for word in words(text) if word not in STOPWORDS and not word.isdecimal()]
    unknown = [word for word in said if word[:_STEM] not in stems]
    fewest = _FEWEST_WORDS if compiled(UNSPACED).search(text) is None else 2 * _FEWEST_WORDS
    says_nothing = _VOID.issuperset(said) and not any(map(str.isdigit, text))
    if not (says_nothing or unknown == said) and (len(said) < fewest or len(unknown) <= (1 - KNOWN_SHARE) * len(said)):
        return ""
    told = ", ".join(map(repr, (unknown or said or [one_line(text)])[:3]))
    return f"most of its words, such as {told}: they are of another language, or answer it"
