"""Playing a conversation to an engine as a chat backend does, and measuring every call."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from memci.errors import BudgetError
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS
from memci.quality.conversation import Conversation, leading_system
from memci.quality.engines import ContextEngine, HeldPage
from memci.quality.evidence import find_evidence, find_recall
from memci.quality.played import Calls, Faults, Played
from memci.quality.prompt_meter import Prompt, PromptMeter, encoder

COUNTER = "o200k_base"
"""What counts tokens, for all engines alike."""


def play(engine: ContextEngine, conversation: Conversation, budget: int) -> Played:
    """Feed a conversation to a new engine, made for the budget; ask for a window before each assistant message and at the end."""
    counter = get_counter(COUNTER)
    run = _Run(engine, conversation, budget, counter)
    for value, at in zip(conversation.messages, conversation.times, strict=True):
        if value.get("role") == "assistant":
            run.call()
        engine.add(value, at)
        run.added(value)
    window, _ = run.ask()
    pages = engine.pages()
    return Played(
        calls=run.calls,
        evidence=find_evidence(engine, conversation, window, pages),
        recall=find_recall(engine, conversation, pages, counter),
        faults=attrs.evolve(run.faults, lost=count_lost(engine, conversation.messages, pages)),
    )


class _Run:
    def __init__(self, engine: ContextEngine, conversation: Conversation, budget: int, counter: TokenCounter) -> None:
        self.calls, self.faults = Calls(), Faults()
        self._engine, self._budget = engine, budget
        self._meter = PromptMeter(counter, formats.get("openai"), encoder(counter))
        self._system = {codec.encode(value) for value in conversation.messages[: leading_system(conversation.messages)]}
        self._said: set[bytes] = set()
        self._history_tokens = REPLY_TOKENS

    def added(self, value: Mapping[str, Any]) -> None:
        known = self._meter.message(value)
        self._history_tokens += known.tokens
        if known.raw not in self._system:
            self._said.add(known.raw)

    def call(self) -> None:
        _, prompt = self.ask()
        if prompt is None:
            return
        outgrown = self._history_tokens > self._budget
        verbatim = sum(message.tokens for message in prompt.sent if message.raw in self._said) if outgrown else 0
        self.calls += Calls(1, prompt.tokens, prompt.length, prompt.prefix, outgrown, verbatim)

    def ask(self) -> tuple[Sequence[Mapping[str, Any]], Prompt | None]:
        """Return a window, and what it would send; an empty one where none fits."""
        try:
            window = self._engine.window()
        except BudgetError:
            self.faults += Faults(no_window=1)
            return (), None
        prompt = self._meter.call(window)
        self.faults += Faults(over_budget=prompt.tokens > self._budget, broken_pairs=prompt.broken_pairs)
        return window, prompt


def count_lost(engine: ContextEngine, messages: Sequence[Mapping[str, Any]], pages: Sequence[HeldPage]) -> int:
    """Recall every page, and return how many messages are in none of them, in more than one, or come back as something else."""
    returned: dict[int, list[str]] = {}
    surplus = 0
    for page in pages:
        recalled = [_canonical(value) for value in engine.recall(page.page)]
        surplus += max(0, len(recalled) - len(page.messages))
        for number, value in zip(page.messages, recalled, strict=False):
            returned.setdefault(number, []).append(value)
    return surplus + sum(returned.get(number) != [_canonical(value)] for number, value in enumerate(messages))


def _canonical(value: object) -> str:
    """Return JSON in which the order of keys does not matter, and 1, 1.0 and true are not the same."""
    return json.dumps(value, sort_keys=True)
