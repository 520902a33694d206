"""Playing a conversation to an engine as a chat backend does, and measuring every call."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from memci.errors import BudgetError, InvalidMessageError
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS
from memci.quality.conversation import Conversation, leading_system
from memci.quality.engines import ContextEngine, HeldPage
from memci.quality.evidence import find_evidence, find_recall
from memci.quality.played import Calls, Faults, Played
from memci.quality.prompt_meter import Prompt, PromptMeter, SentMessage, encoder

COUNTER = "o200k_base"
"""What counts tokens, for all engines alike."""


class Run:
    """Measures the calls of one conversation while it is played.

    ``calls`` and ``faults`` are of the windows; ``whole`` is what all messages so far would have sent at every call.
    """

    def __init__(self, wire: str, counter: TokenCounter, budget: int) -> None:
        self.calls, self.whole, self.faults = Calls(), Calls(), Faults()
        self._wire, self._budget, self._margin = formats.get(wire), budget, counter.margin
        self._meter = PromptMeter(counter, self._wire, encoder(counter))
        self._history = self._last_history = Calls()
        self._in_answer = False

    def opens_answer(self, message: dict[str, Any]) -> bool:
        """Return whether the model was called for a message, and not for one before it of which it is a part."""
        try:
            facts = self._wire.read(message)
        except InvalidMessageError:
            return False  # the engine says what is wrong with it
        goes_on, self._in_answer = self._in_answer, facts.partial
        return facts.role == "assistant" and not (facts.partial and goes_on)

    def added(self, message: Mapping[str, Any]) -> SentMessage:
        """Take in that a message was added, and return what is known of it."""
        known = self._meter.message(message)
        self._history += Calls(tokens=known.tokens, length=len(known.sequence))
        return known

    def begin_call(self) -> None:
        """Take in that a call is made."""
        length, before = self._history.length, self._last_history.length
        self.whole += Calls(calls=1, tokens=self._history_tokens(), length=length, prefix=before)
        self._last_history = self._history

    def outgrown(self) -> bool:
        """Return whether the history has outgrown the budget."""
        return self._history_tokens() > self._budget

    def measured(self, window: Sequence[Mapping[str, Any]], tokens: int = 0) -> Prompt:
        """Measure a window, of so many *tokens* by its own count, and note its faults."""
        prompt = self._meter.call(window)
        over = max(prompt.tokens, tokens) > self._budget
        self.faults += Faults(over_budget=over, broken_pairs=prompt.broken_pairs)
        return prompt

    def sent(self, prompt: Prompt, tokens: int, verbatim: int) -> None:
        """Take in that a call sent a window, with *verbatim* of its tokens word for word."""
        outgrown = self.outgrown()
        self.calls += Calls(1, tokens, prompt.length, prompt.prefix, outgrown, verbatim if outgrown else 0)

    def _history_tokens(self) -> int:
        return math.ceil((self._history.tokens + REPLY_TOKENS) * self._margin)


def play(engine: ContextEngine, conversation: Conversation, budget: int) -> Played:
    """Feed a conversation to a new engine, made for the budget; ask for a window before each assistant message and at the end."""
    counter = get_counter(COUNTER)
    run = Run("openai", counter, budget)
    system = {codec.encode(value) for value in conversation.messages[: leading_system(conversation.messages)]}
    said: set[bytes] = set()
    for value, at in zip(conversation.messages, conversation.times, strict=True):
        if run.opens_answer(value):
            _, prompt = _ask(engine, run)
            if prompt is not None:
                run.sent(prompt, prompt.tokens, sum(message.tokens for message in prompt.sent if message.raw in said))
        engine.add(value, at)
        said |= {run.added(value).raw} - system
    window, _ = _ask(engine, run)
    pages = engine.pages()
    return Played(
        calls=run.calls,
        evidence=find_evidence(engine, conversation, window, pages),
        recall=find_recall(engine, conversation, pages, counter),
        faults=attrs.evolve(run.faults, lost=count_lost(engine, conversation.messages, pages)),
    )


def _ask(engine: ContextEngine, run: Run) -> tuple[Sequence[Mapping[str, Any]], Prompt | None]:
    """Return a window, and what it would send; an empty one where none fits."""
    try:
        window = engine.window()
    except BudgetError:
        run.faults += Faults(no_window=1)
        return (), None
    return window, run.measured(window)


def count_lost(engine: ContextEngine, messages: Sequence[Mapping[str, Any]], pages: Sequence[HeldPage]) -> int:
    """Recall every page, and return how many messages are in none of them, in more than one, or come back as something else."""
    returned: dict[int, list[str]] = {}
    surplus = 0
    for page in pages:
        recalled = [canonical(value) for value in engine.recall(page.page)]
        surplus += max(0, len(recalled) - len(page.messages))
        for number, value in zip(page.messages, recalled, strict=False):
            returned.setdefault(number, []).append(value)
    return surplus + sum(returned.get(number) != [canonical(value)] for number, value in enumerate(messages))


def canonical(value: object) -> str:
    """Return JSON in which the order of keys does not matter, and 1, 1.0 and true are not the same."""
    return json.dumps(value, sort_keys=True)
