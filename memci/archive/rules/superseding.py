"""Tells which of the user's rules a later one replaces, or a later sentence takes back; where that is in doubt, none."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from memci.archive.rules import cues
from memci.archive.rules.detection import FoundRule, RuleKind, has, small, without_lasting

_WORD = re.compile("[^\\W_]+(?:['’][^\\W_]+)?")
_NUMBER = re.compile("\\d[\\d.,]*")
_MOST_DIFFERING = 2  # words by which two rules on the same thing differ, of each
_LEAST_COMMON = 2  # words that they share
_STEM = 5  # letters by which two words count as forms of one
_LEAST_LETTERS = 4  # of a word by which a rule is named that is taken back; of one with other letters than Latin ones, 2


def replaced(new: FoundRule, known: Mapping[str, FoundRule]) -> list[str]:
    """Return which known rules, by address, are on the same thing as a new one and give it another value."""
    return [address for address, rule in known.items() if rule.kind is new.kind and _is_other_value(rule, new)]


def taken_back(sentences: Iterable[str], known: Mapping[str, FoundRule]) -> list[str]:
    """Return which known rules, by address, sentences in small letters take back, naming what they are about."""
    gone = list[str]()
    for sentence in sentences:
        names = _names(sentence)
        matches = [address for address, rule in known.items() if address not in gone and names <= _names(small(rule.text))]
        gone += matches if names and len(matches) == 1 else []
    return gone


def _is_other_value(old: FoundRule, new: FoundRule) -> bool:
    if new.kind is RuleKind.IDENTITY:
        return all(has(cues.NAMING, small(rule.text)) for rule in (old, new))
    before, after = (_said(rule.text) for rule in (old, new))
    gone, added = ([word for word in words if word not in others] for words, others in ((before, after), (after, before)))
    are_few = 0 < len(gone) <= _MOST_DIFFERING and 0 < len(added) <= _MOST_DIFFERING
    if not are_few or len(set(before) & set(after)) < _LEAST_COMMON:
        return False
    if all(cues.MANNERS.issuperset(words) for words in (gone, added)):
        return True
    if all(all(map(_NUMBER.fullmatch, words)) for words in (gone, added)):
        return all(has(cues.LIMIT, small(rule.text)) for rule in (old, new))
    return new.kind is RuleKind.CONVENTION and len(gone) == len(added) == 1 and before[:2] == after[:2]


@lru_cache(maxsize=512)
def _said(text: str) -> tuple[str, ...]:
    """Return the words of a rule without those that only ask for it, or say that it lasts."""
    return tuple(word for word in _WORD.findall(without_lasting(small(text))) if word not in cues.ASKING)


def _names(text: str) -> set[str]:
    """Return the words that name what a text is about."""
    words = (word for word in _WORD.findall(text) if word not in cues.COMMON)
    return {word[:_STEM] for word in words if len(word) >= (_LEAST_LETTERS if word.isascii() else 2)}
