"""Playing a conversation to an engine as a chat backend does, and measuring every call."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from memci.errors import BudgetError
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS
from memci.quality.conversation import Conversation, leading_system
from memci.quality.engines import ContextEngine
from memci.quality.evidence import Evidence, find_evidence
from memci.quality.faults import Faults, count_lost
from memci.quality.money import Calls
from memci.quality.prompt_meter import Prompt, PromptMeter, encoder
from memci.quality.search import Recall, find_recall

COUNTER = "o200k_base"
"""What counts tokens, for all engines alike."""

WIRE = "openai"
"""The wire format of the conversations."""


@attrs.frozen(kw_only=True)
class Played:
    """What one engine did with conversations at one budget. Sums, so that those of several conversations add up.

    Attributes:
        calls: What the calls sent.
        evidence: What the window at the end shows of the answers.
        recall: What the search found, by category of question; empty for an engine without a search.
        faults: What must not happen.
    """

    calls: Calls = attrs.field(factory=Calls)
    evidence: Evidence = attrs.field(factory=Evidence)
    recall: Mapping[str, Recall] = attrs.field(factory=dict)
    faults: Faults = attrs.field(factory=Faults)

    def to_mapping(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return attrs.asdict(self)

    @classmethod
    def from_mapping(cls, value: Mapping[str, Any]) -> "Played":
        """Make it of what ``to_mapping`` gave."""
        return cls(
            calls=Calls(**value["calls"]),
            evidence=Evidence(**value["evidence"]),
            recall={category: Recall(**sums) for category, sums in value["recall"].items()},
            faults=Faults(**value["faults"]),
        )


def play(
    engine: ContextEngine,
    conversation: Conversation,
    budget: int,
) -> Played:
    """Feed a conversation to a new engine, ask for a window before each assistant message and at the end, and measure.

    Args:
        engine: A new one, made for the budget.
        conversation: The conversation.
        budget: Tokens that a window may hold.
    """
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
    """Measures the windows of one engine."""

    def __init__(self, engine: ContextEngine, conversation: Conversation, budget: int, counter: TokenCounter) -> None:
        self.calls, self.faults = Calls(), Faults()
        self._engine, self._budget = engine, budget
        self._meter = PromptMeter(counter, formats.get(WIRE), encoder(counter))
        self._system = {codec.encode(value) for value in conversation.messages[: leading_system(conversation.messages)]}
        self._said: set[bytes] = set()
        self._history_tokens = REPLY_TOKENS

    def added(self, value: Mapping[str, Any]) -> None:
        known = self._meter.message(value)
        self._history_tokens += known.tokens
        if known.raw not in self._system:
            self._said.add(known.raw)

    def call(self) -> None:
        """Ask for the window of a call."""
        _, prompt = self.ask()
        if prompt is None:
            return
        outgrown = self._history_tokens > self._budget
        verbatim = sum(message.tokens for message in prompt.sent if message.raw in self._said) if outgrown else 0
        self.calls = attrs.evolve(
            self.calls,
            calls=self.calls.calls + 1,
            tokens=self.calls.tokens + prompt.tokens,
            length=self.calls.length + prompt.length,
            prefix=self.calls.prefix + prompt.prefix,
            outgrown=self.calls.outgrown + outgrown,
            verbatim=self.calls.verbatim + verbatim,
        )

    def ask(self) -> tuple[Sequence[Mapping[str, Any]], Prompt | None]:
        """Return a window, and what it would send; an empty one where none fits."""
        try:
            window = self._engine.window()
        except BudgetError:
            self.faults = attrs.evolve(self.faults, no_window=self.faults.no_window + 1)
            return (), None
        prompt = self._meter.call(window)
        self.faults = attrs.evolve(
            self.faults,
            over_budget=self.faults.over_budget + (prompt.tokens > self._budget),
            broken_pairs=self.faults.broken_pairs + prompt.broken_pairs,
        )
        return window, prompt
