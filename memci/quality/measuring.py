"""Measuring engines on sets of conversations, at several budgets."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeAlias, TypeVar

import attrs

from memci.quality import workers
from memci.quality.cache import Cache
from memci.quality.conversation import Conversation
from memci.quality.conversation_set import ConversationSet
from memci.quality.engines import EngineSpec
from memci.quality.evidence import Evidence
from memci.quality.faults import Faults
from memci.quality.money import Calls
from memci.quality.playing import Played, play
from memci.quality.search import Recall

BUDGETS = (4_000, 8_000, 16_000, 32_000)
"""The budgets that are measured by default, in tokens."""

_Key: TypeAlias = tuple[int, int, str, int]  # set, conversation, engine, budget
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


@attrs.frozen
class _Task:
    """One conversation to be played to one engine."""

    conversation: Conversation
    spec: EngineSpec
    budget: int

    def run(self) -> Played:
        with self.spec.open(self.budget) as engine:
            return play(engine, self.conversation, self.budget)


def measure(  # noqa: PLR0913 (what is measured, and how it is run)
    sets: Sequence[ConversationSet],
    engines: Sequence[EngineSpec],
    budgets: Sequence[int],
    *,
    cache: Cache | None = None,
    jobs: int = 1,
    advance: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Row]:
    """Play every conversation to every engine at every budget; sets in their order, then budgets, then engines.

    Args:
        sets: The conversations.
        engines: The engines; with several processes, each must be one that can be pickled.
        budgets: In tokens.
        cache: What was measured before, and where new results are kept.
        jobs: How many processes measure.
        advance: Is told how many messages were played, and of how many.
    """
    tasks = dict(_tasks(sets, engines, budgets))
    found: dict[_Key, Played] = {}
    if cache is not None:
        known = {key: cache.find(task.conversation, task.spec, task.budget) for key, task in tasks.items()}
        found = {key: played for key, played in known.items() if played is not None}
    missing = {key: task for key, task in tasks.items() if key not in found}
    total_messages = sum(len(task.conversation.messages) for task in missing.values())
    done = 0
    with closing(workers.done({key: task.run for key, task in missing.items()}, jobs)) as results:
        for key, played in results:
            task = missing[key]
            found[key] = played
            if cache is not None:
                cache.put(task.conversation, task.spec, task.budget, played)
            done += len(task.conversation.messages)
            advance(done, total_messages)
    return [
        Row(
            set=chosen.name,
            conversations=len(chosen.conversations),
            engine=spec.name,
            budget=budget,
            played=total(found[place, number, spec.name, budget] for number in range(len(chosen.conversations))),
        )
        for place, chosen in enumerate(sets)
        for budget in budgets
        for spec in engines
    ]


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


def _tasks(
    sets: Sequence[ConversationSet], engines: Sequence[EngineSpec], budgets: Sequence[int]
) -> Iterator[tuple[_Key, _Task]]:
    for place, chosen in enumerate(sets):
        for number, conversation in enumerate(chosen.conversations):
            for spec in engines:
                for budget in budgets:
                    yield (place, number, spec.name, budget), _Task(conversation, spec, budget)
