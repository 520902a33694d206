"""A model reads: it answers the questions of a conversation from a window alone, or from the row of a page alone."""

import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from memci.archive.summarizers.words import words
from memci.errors import BudgetError, ModelError
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.quality.conversation import UNSPACED, Conversation, ConversationSet, Question, full_text
from memci.quality.engines import ContextEngine, EngineSpec, HeldPage
from memci.quality.played import Sums
from memci.quality.playing import COUNTER
from memci.quality.prompt_meter import PromptMeter
from memci.quality.scoring.contents import ShownContents
from memci.quality.scoring.evidence import held_pages, pages_by_message

ADVERSARIAL = "adversarial"  # the category of questions that the conversation does not answer
ANSWER_TOKENS = 48  # that an answer may have
WINDOW, ROW = "window", "row"  # what is read

_ASK = "{question}\nAnswer in as few words as possible. If this conversation does not say it, answer: unknown"
_ASK_ZH = "{question}\n请用最少的字回答。如果这段对话没有说，请回答：不知道"
_NOTES = "Notes of an earlier part of this conversation:\n{row}\n\n"
_ARTICLES = frozenset(("a", "an", "the"))
_ABSTAINS = re.compile(
    r"\b(?:unknown|not? (?:mention|say|said|stat|specif|provid|known|clear|inform|evidence|indicat)\w*|no answer|none|n/?a|cannot"
    r"|can't|doesn't (?:say|mention)|does not (?:say|mention))\b|不知道|没有(?:说|提)|未(?:说|提)|无法",
    re.IGNORECASE,
)

Ask = Callable[[list[dict[str, Any]]], str]
"""Returns a model's answer to messages."""


@attrs.frozen
class Reading(Sums):
    """Answers of a model; sums, so that those of several conversations add up."""

    questions: int = 0  # with an answer
    f1: float = 0.0  # sum of the token F1 of each answer
    squares: float = 0.0  # sum of the squares of these
    adversarial: int = 0  # questions that the conversation does not answer
    false_answers: int = 0  # of these, those that the model answers all the same
    failed: int = 0  # requests without an answer

    @property
    def mean(self) -> float | None:
        """Mean F1; ``None`` without questions."""
        return self.f1 / self.questions if self.questions else None

    @property
    def margin(self) -> float | None:
        """Half of the interval around the mean that holds it at 95% (normal approximation); ``None`` for fewer than two."""
        if self.questions < 2:  # noqa: PLR2004 (of one, no spread is known)
            return None
        mean = self.f1 / self.questions
        variance = max(self.squares / self.questions - mean**2, 0.0) * self.questions / (self.questions - 1)
        return 1.96 * math.sqrt(variance / self.questions)


@attrs.frozen(kw_only=True)
class ReadRow:
    """What a model made of the windows, or of the rows, of one engine on one set at one budget."""

    set: str
    engine: str
    budget: int
    source: str  # WINDOW or ROW
    reading: Reading


def token_f1(answer: str, expected: str, lang: str = "en") -> float:
    """Return the harmonic mean of precision and recall of an answer's tokens (Rajpurkar et al., SQuAD, 2016).

    Tokens are words in small letters without articles, or characters in languages without spaces.
    """
    said, wanted = _tokens(answer, lang), _tokens(expected, lang)
    common = sum((Counter(said) & Counter(wanted)).values())
    return 2 * common / (len(said) + len(wanted)) if common else 0.0


def _tokens(text: str, lang: str) -> list[str]:
    if lang in UNSPACED:
        return [character for character in text.casefold() if character.isalnum()]
    return [word for word in words(text) if word not in _ARTICLES]


def abstains(answer: str) -> bool:
    """Return whether an answer says that there is none."""
    return not answer.strip() or _ABSTAINS.search(answer) is not None


class KeptAnswers:
    """Answers in files, named by the hash of their request, so that no request is made twice. What is damaged is none."""

    def __init__(self, ask: Ask, directory: Path, model: str) -> None:
        self._ask, self._directory, self._model = ask, directory, model

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        """Return the answer, asking for it only if it is not known."""
        path = self._directory / f"{hashlib.sha256(codec.encode([self._model, messages])).hexdigest()}.txt"
        with suppress(OSError, UnicodeDecodeError):
            return path.read_text(encoding="utf-8")
        answer = self._ask(messages)
        written = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):  # it is asked for again
            path.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(answer, encoding="utf-8")
            written.replace(path)
        return answer


def read(  # noqa: PLR0913 (what is read, by whom, and how much of it)
    sets: Sequence[ConversationSet],
    engines: Sequence[EngineSpec],
    budgets: Sequence[int],
    ask: Ask,
    *,
    most_questions: int,
    advance: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[ReadRow]:
    """Play each conversation with questions, and ask a model at most *most_questions* of them, evenly chosen, from two sources.

    One is nothing but the last window, the other nothing but the rows of the pages with the evidence, if all of them folded.
    *advance* is called with the number of questions that were asked, and of all.
    """
    tasks = [(chosen, budget, spec) for chosen in sets for budget in budgets for spec in engines]
    total = sum(len(_chosen(each, most_questions)) for chosen, _, _ in tasks for each in chosen.conversations)
    rows, done = list[ReadRow](), 0
    for chosen, budget, spec in tasks:
        found = {WINDOW: Reading(), ROW: Reading()}
        for conversation in chosen.conversations:
            questions = _chosen(conversation, most_questions)
            with spec.open(budget, conversation) as engine:
                window, pages = _played(engine, conversation, budget) if questions else ([], [])
            contents = ShownContents(full_text(value) for value in window)
            for question in questions:
                found[WINDOW] += _answered(ask, window, question, conversation.lang)
                if row := _row(contents, pages, question):
                    said = {"role": "user", "content": _NOTES.format(row=row)}
                    found[ROW] += _answered(ask, [said], question, conversation.lang)
                done += 1
                advance(done, total)
        rows += [
            ReadRow(set=chosen.name, engine=spec.name, budget=budget, source=source, reading=reading)
            for source, reading in found.items()
            if reading.questions or reading.adversarial or reading.failed
        ]
    return rows


def _chosen(conversation: Conversation, most: int) -> list[Question]:
    questions = [each for each in conversation.questions if each.answer or each.category == ADVERSARIAL]
    step = max(len(questions) / most, 1.0)
    return [questions[int(number * step)] for number in range(min(most, len(questions)))]


def _played(engine: ContextEngine, conversation: Conversation, budget: int) -> tuple[list[dict[str, Any]], list[HeldPage]]:
    """Feed a conversation to an engine as a chat backend does, and return its last window and pages."""
    meter = PromptMeter(get_counter(COUNTER), formats.get("openai"), budget)
    for value, at in zip(conversation.messages, conversation.times, strict=True):
        if meter.opens_answer(value):
            _window(engine)
        engine.add(value, at)
    window = _window(engine)
    return window, list(engine.pages())


def _window(engine: ContextEngine) -> list[dict[str, Any]]:
    try:
        return [dict(value) for value in engine.window()]
    except BudgetError:
        return []


def _row(contents: ShownContents, pages: Iterable[HeldPage], question: Question) -> str:
    """Return the rows of the pages that hold the evidence; empty if one of them is in view, or has none."""
    held = held_pages(pages_by_message(list(pages)), question.evidence)
    lines = ["" if page is None or page.verbatim else contents.lines.get(page.page, "") for page in held]
    return "\n".join(lines) if lines and all(lines) else ""


def _answered(ask: Ask, before: Sequence[Mapping[str, Any]], question: Question, lang: str) -> Reading:
    text = (_ASK_ZH if lang.startswith("zh") else _ASK).format(question=question.question)
    try:
        answer = ask([*map(dict, before), {"role": "user", "content": text}])
    except ModelError:
        return Reading(failed=1)
    if question.category == ADVERSARIAL:
        return Reading(adversarial=1, false_answers=not abstains(answer))
    score = token_f1(answer, question.answer, lang)
    return Reading(questions=1, f1=score, squares=score**2)
