"""The engines that are measured, by name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from memci.engine.settings.config import Config
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.quality.baselines import SlidingMessages, SlidingPages, WholeHistory
from memci.quality.engines import ContextEngine, EngineSpec
from memci.quality.leads import AppendedLeads, RewrittenLeads
from memci.quality.memci_engine import memci_spec
from memci.quality.playing import COUNTER

_BASELINES: dict[str, Callable[[int, TokenCounter], ContextEngine]] = {
    "whole": WholeHistory,
    "sliding-messages": SlidingMessages,
    "sliding-pages": SlidingPages,
    "leads-appended": AppendedLeads,
    "leads-rewritten": RewrittenLeads,
}
_BASELINE_CODE = ("quality/*.py", "messages/**/*.py", "archive/summarizers/words.py", "archive/catalogue/search.py")


def engines(config: Config) -> dict[str, EngineSpec]:
    """Return all engines by name: memci with these settings first, then what it is compared with."""
    baselines = (EngineSpec(name=name, open=partial(_opened, make), code=_BASELINE_CODE) for name, make in _BASELINES.items())
    return {spec.name: spec for spec in (memci_spec(config), *baselines)}


@contextmanager
def _opened(make: Callable[[int, TokenCounter], ContextEngine], budget: int) -> Iterator[ContextEngine]:
    yield make(budget, get_counter(COUNTER))
