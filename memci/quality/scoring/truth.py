"""What lines about pages say that the pages did not: numbers of which a part is missing, and clauses without what limits them.

It reads a text in its own way, without what the summariser uses, so that both are not wrong together.
"""

import re
from collections.abc import Iterator

from memci.archive.summarizers.words import words

_SEPARATOR = "[ \u00a0\u202f.,:/'’+()–-]"
_NUMBER = re.compile(f"(?<![A-Za-z0-9])[A-Za-z]*+[0-9][A-Za-z0-9]*+(?:{_SEPARATOR}[A-Za-z]*+[0-9][A-Za-z0-9]*+)*+")
_NAME = re.compile("(?:^| )([a-z]+[0-9][a-z0-9]*)(?: |$)")  # such as abc123, no part of the number beside it
_LIMIT = re.compile(
    r"\b(?:not|never|no|cannot|without|only|unless|until|must|except|nicht|kein\w*|nie|ohne|pas|jamais|sans|nunca|jamás|sin|não|mai|non"
    r"|niet|geen|не|нет|никогда|нельзя|без|только|δεν|μην|لا|لم|لن|ليس|بدون|فقط|לא|אין|בלי|नहीं|मत|बिना)\b|n['’]t\b"
    r"|不(?!错|过|仅|但|同|客气|用谢)|(?<![特区分个级差])别(?![的人墅名])|没|只|ません|ない|않|없|ไม่|ห้าม",
    re.IGNORECASE,
)
_NO_LIMIT = re.compile(
    "有没有|是不是|能不能|可不可以|好不好|不好意思|[不没][?？]?$|\\bno (?:problem|doubt|worries)\\b", re.IGNORECASE
)
_CLAUSES = re.compile("[.!?](?=[\\s\"'”’)]|$)|[。！？；;，、,:：\\n()（）|]|\\s[–—→-]\\s")
_MARKS = re.compile("; | → | \\| | … |, |\\n|[.!?](?=\\s)|[。！？；]")
_FACTS = re.compile(r" · \d+ entr(?:y|ies) · [^\n]*")
_ESCAPED = re.compile(r'\\(?:([nrt])|(["\\/]))')  # in the arguments of calls, which are JSON
_TELLING = 2  # words of a clause that show it


def said_of(row: str) -> str:
    """Return what a row says of its page, without size and dates, which are no words of it."""
    return _FACTS.sub("", row)


def cut_numbers(said: str, shown: str) -> list[str]:
    """Return the numbers of *shown*, with their groups of digits, that no number of *said* is the whole of. O(both)."""
    whole = {part for match in _NUMBER.finditer(_plain(said)) for part in (match.group(), *_NAME.split(match.group()))}
    return [match.group() for match in _NUMBER.finditer(shown) if not _is_made_of(match.group().split(" "), whole)]


def _is_made_of(groups: list[str], whole: set[str]) -> bool:
    """Return whether groups that stand side by side are whole numbers, one after another."""
    ends = {0}
    for start in range(len(groups)):
        if start in ends:
            ends |= {end for end in range(start + 1, len(groups) + 1) if " ".join(groups[start:end]) in whole}
    return len(groups) in ends


def inverted(said: str, shown: str) -> list[str]:
    """Return the clauses of *said* of which *shown* has words without their negation or condition. O(both · clauses)."""
    whole = f" {' '.join(words(shown))} "
    parts = [part for part in _MARKS.split(shown) if not _LIMIT.search(part)]
    turned = (
        clause for clause, own in _limited(_plain(said)) if any(len(own.intersection(words(part))) >= _TELLING for part in parts)
    )
    return [clause for clause in turned if f" {' '.join(words(clause))} " not in whole]


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: "\n" if match[1] else match[2], text)


def _limited(said: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the clauses with a limiting word, each with the words that nothing else in the text says."""
    clauses = [clause for clause in map(str.strip, _CLAUSES.split(said)) if clause]
    is_limited = [_LIMIT.search(_NO_LIMIT.sub("", clause)) is not None for clause in clauses]
    free = {word for clause, limited in zip(clauses, is_limited, strict=True) if not limited for word in words(clause)}
    for clause, limited in zip(clauses, is_limited, strict=True):
        if limited:
            yield clause, {word for word in words(_LIMIT.sub(" ", clause)) if len(word) > 1} - free
