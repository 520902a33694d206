"""Measuring engines on sets of conversations, at several budgets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from memci.messages.tokens.counter import TokenCounter
from memci.quality.conversation_set import ConversationSet
from memci.quality.engines import EngineSpec
from memci.quality.evidence import Evidence
from memci.quality.faults import Faults
from memci.quality.money import Calls
from memci.quality.playing import Played, play
from memci.quality.search import Recall

COUNTER = "o200k_base"
"""What counts tokens, for all engines alike."""

BUDGETS = (4_000, 8_000, 16_000, 32_000)
"""The budgets that are measured by default, in tokens."""

_Sums = TypeVar("_Sums", Calls, Evidence, Faults, Recall)


@attrs.frozen(kw_only=True)
class Row:
    """One engine on one set at one budget.

    Attributes:
        set: Name of the set.
        conversations: How many conversations were played.
        engine: Name of the engine.
        budget: Tokens that a window may hold.
        played: What was measured, over all conversations.
    """

    set: str
    conversations: int
    engine: str
    budget: int
    played: Played


def measure(
    sets: Sequence[ConversationSet],
    engines: Sequence[EngineSpec],
    budgets: Sequence[int],
    counter: TokenCounter,
    advance: Callable[[], None] = lambda: None,
) -> list[Row]:
    """Play every conversation to every engine at every budget; sets in their order, then budgets, then engines.

    Args:
        sets: The conversations.
        engines: The engines.
        budgets: In tokens.
        counter: Counts them.
        advance: Called after each message.
    """
    rows = []
    for chosen in sets:
        for budget in budgets:
            for spec in engines:
                played = []
                for conversation in chosen.conversations:
                    with spec.open(budget) as engine:
                        played.append(play(engine, conversation, budget, counter, advance))
                rows.append(
                    Row(
                        set=chosen.name,
                        conversations=len(played),
                        engine=spec.name,
                        budget=budget,
                        played=total(played),
                    )
                )
    return rows


def total(played: Iterable[Played]) -> Played:
    """Return the sums over several conversations."""
    several = list(played)
    categories = sorted({category for one in several for category in one.recall})
    return Played(
        calls=_sum(Calls(), [one.calls for one in several]),
        evidence=_sum(Evidence(), [one.evidence for one in several]),
        recall={
            category: _sum(Recall(), [one.recall[category] for one in several if category in one.recall])
            for category in categories
        },
        faults=_sum(Faults(), [one.faults for one in several]),
    )


def all_categories(recall: Mapping[str, Recall]) -> Recall:
    """Return the sums over the categories of questions."""
    return _sum(Recall(), list(recall.values()))


def _sum(nothing: _Sums, several: Sequence[_Sums]) -> _Sums:
    sums: dict[str, Any] = {
        field.name: sum((getattr(one, field.name) for one in several), getattr(nothing, field.name))
        for field in attrs.fields(type(nothing))
    }
    return attrs.evolve(nothing, **sums)
