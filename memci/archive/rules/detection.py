"""Finds the sentences by which the user sets a rule that holds from then on, word for word."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache

import attrs

from memci.archive.rules import cues
from memci.archive.rules.own_words import own_sentences, own_words
from memci.archive.summarizers.words import compiled

MOST_RULES = 8  # of one message: who says more hands over a document
_MOST_CHARACTERS = 600  # of one rule
_LEAST_SAID = 10  # letters beside the words that announce
_MOST_READ = 20_000  # characters of a message


class RuleKind(StrEnum):
    """What a rule of the user's is."""

    PROHIBITION = "prohibition"
    INSTRUCTION = "instruction"
    PREFERENCE = "preference"
    CONVENTION = "convention"
    IDENTITY = "identity"
    CONSTRAINT = "constraint"
    REMEMBER = "remember"


@attrs.frozen
class FoundRule:
    """A rule in a message: its words, and its kind."""

    text: str
    kind: RuleKind


_KINDS = (
    (RuleKind.PROHIBITION, cues.PROHIBITION),
    (RuleKind.REMEMBER, cues.REMEMBER),
    (RuleKind.IDENTITY, cues.IDENTITY),
    (RuleKind.CONSTRAINT, cues.CONSTRAINT),
    (RuleKind.CONVENTION, cues.CONVENTION),
    (RuleKind.PREFERENCE, cues.PREFERENCE),
    (RuleKind.INSTRUCTION, cues.INSTRUCTION),
)
_OF_THE_USER = frozenset({RuleKind.PREFERENCE, RuleKind.CONSTRAINT, RuleKind.CONVENTION})
_ASKED = frozenset({RuleKind.PROHIBITION, RuleKind.INSTRUCTION})
_VETOES = (cues.ONCE, cues.REPORTED, cues.FIGURATIVE)
_QUESTION = re.compile(  # with its mark, or without one
    "[?？؟]\\W*$|^\\W*(?:can|could|would|will|do(?! not\\b)|does|did|is|are|should|shall|why|how|which|who)\\b"
    "|是否|请问|什么|[吗呢]。?$"
)
_NEIGHBOURS = re.compile("[^\\S\\n]*")


def rules_in(text: str) -> list[FoundRule]:
    """Return the rules that a message of the user's sets, in order, each as it stands there. O(its length).

    Neighbouring sentences are one rule; one that announces a rule brings it.
    """
    return _found(text) if may_rule(text) else []


def may_rule(text: str) -> bool:
    """Return whether a text has any cue of a rule, or of taking one back: most have none, and this is one look at them."""
    text = text[:_MOST_READ]
    if text.isascii():
        return compiled(_any_cue(cues.LATIN)).search(text.lower()) is not None
    lowered = small(text)
    return any(compiled(_any_cue(script)).search(lowered) is not None for script in _scripts(lowered))


@cache
def _any_cue(script: str) -> str:
    """Return a pattern of all cues in a script, whose places in a sentence do not matter here."""
    found = [cue[script] for cue in (*dict(_KINDS).values(), cues.GENERAL, cues.LASTING, cues.TAKING_BACK) if script in cue]
    anywhere = re.sub(r"(?<![\[\\])\^", r"(?<!\\w)", "|".join(found))
    return re.sub(r"(?<![\[\\])\$", r"(?!\\w)", anywhere)


def _found(text: str) -> list[FoundRule]:
    own = own_words(text[:_MOST_READ])
    lowered = small(own)
    found: list[tuple[int, int, RuleKind]] = []
    announced = False
    for start, end in own_sentences(own):
        sentence = lowered[start:end]
        kind = _kind(sentence, simple="\n" not in text.strip())
        if kind is None and announced and not _QUESTION.search(sentence):
            kind = RuleKind.INSTRUCTION
        is_lead = kind is None or (kind is RuleKind.REMEMBER and sentence.endswith((":", "：")))
        announced = is_lead and _announces(sentence)
        if kind is None:
            continue
        if found and found[-1][2] is kind and _NEIGHBOURS.fullmatch(own, found[-1][1], start):
            found[-1] = (found[-1][0], end, kind)
        else:
            found.append((start, end, kind))
    if len(found) > MOST_RULES:
        return []
    return [FoundRule(text[start:end].strip(), kind) for start, end, kind in found if end - start <= _MOST_CHARACTERS]


def _kind(sentence: str, *, simple: bool) -> RuleKind | None:
    """Return which kind of rule a sentence sets; ``None`` where it sets none, or none for sure.

    In a *simple* message, which is one paragraph, wider cues are enough.
    """
    asks = _QUESTION.search(sentence) and _find(cues.POLITE, sentence) is None
    if asks or _find(cues.TAKING_BACK, sentence) or any(_find(veto, sentence) for veto in _VETOES):
        return None
    lasts = _find(cues.LASTING, sentence) is not None
    past = _find(cues.PAST, sentence)
    for kind, cue in (*_KINDS, (RuleKind.INSTRUCTION, cues.GENERAL)) if simple else _KINDS:
        found = _find(cue, sentence)
        if found is None:
            continue
        others = _find(cues.OF_OTHERS, sentence[: found.start()]) if kind in _OF_THE_USER else None
        if kind in _ASKED and found.start() and _find(cues.OF_SELF, sentence):
            continue
        if (past is None and others is None) or lasts:
            return kind
    holds = lasts and past is None and not _announces_only(sentence) and _find(cues.OF_SELF, sentence) is None
    return RuleKind.INSTRUCTION if holds else None


def _announces(sentence: str) -> bool:
    """Return whether a sentence announces a rule that follows it."""
    if sentence.endswith((":", "：")):
        return _find(cues.LASTING, sentence) is not None or _find(cues.ANNOUNCING, sentence) is not None
    return _find(cues.LASTING, sentence) is not None and _announces_only(sentence)


def _announces_only(sentence: str) -> bool:
    """Return whether nothing is said but that something holds from then on."""
    rest = without_lasting(sentence)
    return sentence.rstrip().endswith((":", "：")) or len(re.findall("\\w", rest)) < _LEAST_SAID


def small(text: str) -> str:
    """Return a text in small letters, each in its place."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(sign.lower()[:1] for sign in text)


def without_lasting(text: str) -> str:
    """Return a text of small letters without the words that say that something holds from then on."""
    for script in _scripts(text):
        if script in cues.LASTING:
            text = compiled(cues.LASTING[script]).sub(" ", text)
    return text


def has(cue: Mapping[str, str], text: str) -> bool:
    """Return whether a text has a cue."""
    return _find(cue, text) is not None


def _find(cue: Mapping[str, str], text: str) -> re.Match[str] | None:
    """Return the first place where a cue in the script of a text is."""
    found = (compiled(cue[script]).search(text) for script in _scripts(text) if script in cue)
    return next(filter(None, found), None)


@lru_cache(maxsize=64)
def _scripts(text: str) -> tuple[str, ...]:
    """Return the scripts that a text has letters of."""
    if text.isascii():
        return (cues.LATIN,)
    return tuple(script for script, letters in cues.LETTERS.items() if compiled(letters).search(text))
