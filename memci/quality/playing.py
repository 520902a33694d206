"""Playing a conversation to an engine as a chat backend does, and measuring every call."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from memci.errors import BudgetError
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.quality.conversation import Conversation
from memci.quality.engines import ContextEngine, HeldPage
from memci.quality.played import Faults, Played
from memci.quality.prompt_meter import Prompt, PromptMeter
from memci.quality.scoring.evidence import find_asked, find_evidence, find_needs, find_recall

COUNTER = "o200k_base"  # counts tokens, for all engines alike


def play(engine: ContextEngine, conversation: Conversation, budget: int) -> Played:
    """Feed a conversation to a new engine, made for the budget; ask for a window before each assistant message and at the end."""
    counter = get_counter(COUNTER)
    meter = PromptMeter(counter, formats.get("openai"), budget)
    system = {codec.encode(value) for value in conversation.system}
    said: set[bytes] = set()
    for value, at in zip(conversation.messages, conversation.times, strict=True):
        if meter.opens_answer(value):
            _, prompt = _ask(engine, meter)
            if prompt is not None:
                meter.sent(prompt, prompt.tokens, sum(message.tokens for message in prompt.sent if message.raw in said))
        engine.add(value, at)
        said |= {meter.added(value).raw} - system
    window, _ = _ask(engine, meter)
    pages = engine.pages()
    return Played(
        calls=meter.calls,
        evidence=find_evidence(conversation, window, pages),
        asked=find_asked(engine, conversation, pages, meter),
        needs=find_needs(conversation, window),
        recall=find_recall(engine, conversation, pages, counter),
        faults=attrs.evolve(meter.faults, lost=count_lost(engine, conversation.messages, pages)),
    )


def _ask(engine: ContextEngine, meter: PromptMeter) -> tuple[Sequence[Mapping[str, Any]], Prompt | None]:
    """Return a window, and what it would send; an empty one where none fits."""
    try:
        window = engine.window()
    except BudgetError:
        meter.faults += Faults(no_window=1)
        return (), None
    return window, meter.call(window)


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
