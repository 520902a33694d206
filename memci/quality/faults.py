"""What must not happen, whatever an engine leaves out of its windows."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from memci.quality.engines import ContextEngine, HeldPage


@attrs.frozen(kw_only=True)
class Faults:
    """Counts of what must not happen.

    Attributes:
        over_budget: Windows above their budget, counted from what was rendered.
        no_window: Calls for which the engine found no window that fits.
        broken_pairs: Calls without their result directly behind them, and results without a call, over all windows.
        lost: Messages that do not come back, as the same JSON values in the same order, when every page is recalled.
    """

    over_budget: int = 0
    no_window: int = 0
    broken_pairs: int = 0
    lost: int = 0

    @property
    def ok(self) -> bool:
        """Whether every promise held. That no window fits is none: a budget may be too small for the conversation."""
        return not (self.over_budget or self.broken_pairs or self.lost)


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
