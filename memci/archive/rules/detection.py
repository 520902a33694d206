"""Finds the sentences by which the user sets a rule that holds from then on, word for word."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

import attrs

from memci.archive.rules import cues
from memci.archive.rules.own_words import own_sentences, own_words
from memci.archive.rules.wording import score
from memci.archive.summarizers.words import UNSPACED, compiled

MOST_RULES = 8  # of one message: who says more hands over a document
_MOST_CHARACTERS = 600  # of one rule
_LEAST_SAID = 10  # letters beside the words that announce
_LEAST_STATED = 4  # signs before a question in the same sentence
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
_VETOES = (cues.ONCE, cues.FIGURATIVE)
_QUESTION = re.compile(  # with its mark, or without one
    "(?<!, ja)(?<!, ok)(?<!, okay)(?<!, klar)(?<!, alles klar)(?<!, verstanden)(?<!, einverstanden)(?<!, please)(?<!, got it)"
    "(?<!, understood)(?<!, stp)(?<!, svp)(?<!, compris)(?<!, c['’]est compris)(?<!¿vale)(?<!¿ok)(?<!¿sí)(?<!¿entendido)"
    "(?<!¿de acuerdo)(?<!d['’]accord)(?<!d['’]accord )[?？؟]\\W*$|^\\W*(?:can|could"
    "|would|will|do(?! not\\b)|does|did|is|are|shall|why|how|which|who"
    "|should(?= (?:i|we|you(?! (?:come|find|run|notice)\\b)|they|he|she|it)\\b))\\b"
    "|是否|请问|什么(?!的|.*[都就别])|[吗呢]。?$"
)
_ASKED_BEHIND = re.compile(  # the question that a sentence ends with
    "(?=.*[?？]\\W*$)[,;，；]\\s*(?:(?:and|so|but|und|also|et|donc|y|pero)\\s+)?"
    "(?:(?:can|could|would|will|should) (?:you|i|we)\\b"
    "|(?:how|what|where|which|why) (?:can|could|do|does|should|would|is|are)\\b"
    "|(?:kannst|könntest|kann|soll) (?:du|ich|man)\\b|(?:wie|was|wo|warum) (?:kann|könnte|soll|sollte|mach\\w*|ist|sind)\\b"
    "|(?:peux|pourrais)-tu\\b|(?:pouvez|pourriez)-vous\\b|comment\\b|qu['’]est-ce\\b"
    "|(?:me )?(?:puedes|podrías)\\b|(?:cómo|qué|cuál|dónde)\\b|能不能|可不可以|可以帮|怎么|如何|有什么).*$",
    re.DOTALL,
)
_NEIGHBOURS = re.compile("[^\\S\\n]*")

# Scores of wording: below the first no cue counts, above the second none is needed, nor above the third in a short sentence.
# They were chosen with 510 messages that set a rule in five languages, of which 483 are found, and 400 that come near to one, of
# which 7 are. Of two sets written by others afterwards 243 of 250 are found, and 4 of 170; in eleven other languages 111 of 132,
# and 2 of 110. Of the user's messages in LoCoMo, MemoryBank, taubench and coding sessions, 3 of 2,364 count as setting one.
UNLIKELY, LIKELY, LIKELY_SHORT = -1.0, 1.5, 3.0
_LEAST_OF_ALL, _LIKELY_CLAUSE = -4.0, 1.0  # of a sentence one clause of which sets a rule by a cue, and of that clause
_TELLER = re.compile(  # somebody or something that a sentence begins with, and says what follows
    "^\\W*(?:my|our|the|his|her|their|meine?|unsere?|der|die|mon|ma|notre|le|la|mi|nuestr[oa]|el|il|mio|mia|mijn|de)\\b.{0,40}$"
    "|^.{0,12}[爸妈爷奶师生板友事人家他她们].{0,3}$"
)
_CLAUSE_END = re.compile("[,;:–—(，；：] *| - | (?:and|und|et|y) (?=(?:i|ich|je|j['’]|prefiero|me)\\b)")
_REPORTED = 3.0  # by which the score of what may be a report is lower
_LEAST_BYTES = 10  # of a message: four signs of Chinese
_LEAST_WORDS = 6  # of a sentence, where there are spaces: fewer tell less
_HEADING_WORDS, _HEADING_SIGNS = 3, 4  # of a heading; signs of one in a script without spaces
_SHORT = 600  # characters of a message in which wording alone is enough
_NOT_READ = re.compile(  # by the model: what begins with somebody else
    "^\\W*(?:(?:he|she|they|er|il(?! (?:ne )?(?:faut|est)\\b)|elle|ils|elles|él|ella)\\b|[他她])"
)
# What tells the kind of a rule that has no cue, in this order; else it is an instruction.
_OF_US = (
    "^\\W*(?:we|our|in (?:this|our)|at our|here|wir|unsere?|bei uns|on|nous|notre|nos|chez nous|nosotros|nuestr[oa]s?|aquí)\\b"
    "|我们|咱们"
)
_LIKING = (
    "\\b(?:prefer\\w*|like|love|hate|dislike|favou?rite|lieber|liebst\\w*|mag|bevorzug\\w*|préfèr\\w*|aime|déteste|prefier\\w*"
    "|gustan?|odio|detesto)\\b|喜欢|讨厌|习惯"
)
_OF_ME = "^\\W*(?:i|i['’]\\w+|my|ich|meine?|mir|je|j['’]\\w+|mon|ma|mes|yo|mi|mis|soy|tengo|vivo|no (?:puedo|como|tengo))\\b|^我"
_FORBIDDING = (
    "\\b(?:not|\\w+n['’]t|never|no|nothing|stop|avoid|nicht|nie|niemals|keine?\\w?|nichts|pas|jamais|rien|aucune?|évite|nunca"
    "|jamás|nada|sin|ning[uú]n\\w*|evita)\\b|[不别勿]|禁止"
)
_KINDS_OF_WORDING = (
    (RuleKind.CONVENTION, _OF_US),
    (RuleKind.PREFERENCE, _LIKING),
    (RuleKind.CONSTRAINT, _OF_ME),
    (RuleKind.PROHIBITION, _FORBIDDING),
)


@attrs.frozen
class Reading:
    """What a message says about rules: those that it sets, and its sentences, in small letters, that take one back."""

    rules: tuple[FoundRule, ...]
    takes_back: tuple[str, ...]


def rules_in(text: str) -> list[FoundRule]:
    """Return the rules that a message of the user's sets, in order, each as it stands there. O(its length).

    Neighbouring sentences are one rule; one that announces a rule brings it.
    """
    reading = read(text)
    return [] if reading is None else list(reading.rules)


def read(text: str) -> Reading | None:
    """Return which rules a message of the user's sets, and where it takes one back; ``None`` for neither. O(its length)."""
    if len(text) < _LEAST_BYTES and len(text.encode("utf-8", "replace")) < _LEAST_BYTES:
        return None
    own = own_words(text[:_MOST_READ])
    lowered = small(own)
    is_simple = "\n" not in text.strip()
    spans: list[tuple[int, int, RuleKind]] = []
    takes_back = list[str]()
    announced = False
    for start, sentence_end in own_sentences(own):
        end = sentence_end
        sentence = lowered[start:end]
        if _find(cues.TAKING_BACK, sentence):
            takes_back.append(sentence)
            announced = False
            continue
        is_whole = end - start <= _MOST_CHARACTERS and not sentence.endswith((":", "："))  # else it announces one
        kind = _kind(sentence, is_simple=is_simple, is_short=len(text) <= _SHORT) if is_whole else None
        if is_whole and (question := _ASKED_BEHIND.search(sentence, _LEAST_STATED)):
            before = sentence[: question.start()]
            kind_before = _kind(before, is_simple=is_simple, is_short=False)
            if kind_before is not None and kind in (None, kind_before) and not has(cues.ANNOUNCING, before):
                kind, end = kind_before, start + question.start()
        if kind is None and announced and not _QUESTION.search(sentence):
            kind = RuleKind.INSTRUCTION
        announced = kind is None and _announces(sentence)
        if kind is None:
            continue
        if spans and spans[-1][2] is kind and _NEIGHBOURS.fullmatch(own, spans[-1][1], start):
            spans[-1] = (spans[-1][0], end, kind)
        else:
            spans.append((start, end, kind))
    if len(spans) > MOST_RULES:
        spans = []
    rules = [FoundRule(text[start:end].strip(), kind) for start, end, kind in spans if end - start <= _MOST_CHARACTERS]
    return Reading(tuple(rules), tuple(takes_back)) if rules or takes_back else None


def _kind(sentence: str, *, is_simple: bool, is_short: bool) -> RuleKind | None:
    """Return which kind of rule a sentence sets; ``None`` where it sets none, or none for sure.

    In a *simple* message, which is one paragraph, wider cues are enough; in a *short* one, wording without a cue.
    """
    if any(_find(veto, sentence) for veto in _VETOES):
        return None
    likeness = score(sentence)
    if report := _find(cues.REPORTED, sentence):
        if _TELLER.search(sentence, 0, report.end()):
            return None
        likeness -= _REPORTED
    is_polite = has(cues.POLITE, sentence)
    if _QUESTION.search(sentence) and not is_polite:
        return None
    kind = kind_by_cues(sentence, is_simple=is_simple)
    if kind is not None:
        return kind if is_polite or likeness >= UNLIKELY or _is_in_clause(kind, sentence, likeness, is_simple=is_simple) else None
    if is_short and likeness > _least_likeness(sentence) and not _is_heading(sentence) and _NOT_READ.search(sentence) is None:
        return _kind_by_wording(sentence)
    return None


def _is_in_clause(kind: RuleKind, sentence: str, likeness: float, *, is_simple: bool) -> bool:
    """Return whether a clause sets a rule by itself, beside others that make the sentence unlikely, such as a reason."""
    return likeness >= _LEAST_OF_ALL and any(
        score(clause) >= _LIKELY_CLAUSE and kind_by_cues(clause, is_simple=is_simple) is kind
        for clause in _CLAUSE_END.split(sentence)
    )


def _is_heading(sentence: str) -> bool:
    """Return whether a sentence has so few words, and no mark at its end, that it may be the heading of something."""
    signs = sentence.strip()
    if compiled(UNSPACED).search(signs):
        return len(signs) <= _HEADING_SIGNS
    return signs[-1:].isalnum() and signs.count(" ") < _HEADING_WORDS


def _least_likeness(sentence: str) -> float:
    """Return the score of wording for which no cue is needed."""
    return LIKELY if len(sentence.split()) >= _LEAST_WORDS or compiled(UNSPACED).search(sentence) else LIKELY_SHORT


def kind_by_cues(sentence: str, *, is_simple: bool) -> RuleKind | None:
    """Return the kind of the first cue in a sentence of small letters that sets a rule there; ``None`` for none."""
    lasts = _find(cues.LASTING, sentence) is not None
    past = _find(cues.PAST, sentence)
    for kind, cue in (*_KINDS, (RuleKind.INSTRUCTION, cues.GENERAL)) if is_simple else _KINDS:
        match = _find(cue, sentence)
        if match is None:
            continue
        others = _find(cues.OF_OTHERS, sentence[: match.start()]) if kind in _OF_THE_USER else None
        if kind in _ASKED and match.start() and _find(cues.OF_SELF, sentence):
            continue
        if (past is None and others is None) or lasts:
            return kind
    holds = lasts and past is None and not _announces_only(sentence) and _find(cues.OF_SELF, sentence) is None
    return RuleKind.INSTRUCTION if holds else None


def _kind_by_wording(sentence: str) -> RuleKind:
    """Return the kind of a rule in which no cue is: by whom it is about, and whether it forbids."""
    if has(cues.NAMING, sentence):
        return RuleKind.IDENTITY
    return next((kind for kind, pattern in _KINDS_OF_WORDING if compiled(pattern).search(sentence)), RuleKind.INSTRUCTION)


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
