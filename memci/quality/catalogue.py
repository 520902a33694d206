"""The engines that are measured, by name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from memci.engine.config import Config
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.quality.baselines import SlidingMessages, SlidingPages, WholeHistory
from memci.quality.engines import ContextEngine, EngineSpec
from memci.quality.leads import AppendedLeads, RewrittenLeads
from memci.quality.memci_engine import memci_spec
from memci.quality.playing import COUNTER

_BASELINES: tuple[tuple[str, str, Callable[[int, TokenCounter], ContextEngine]], ...] = (
    ("whole", "the whole history at every call, whether or not it fits", WholeHistory),
    ("sliding-messages", "system messages and as many of the last messages as fit", SlidingMessages),
    ("sliding-pages", "system messages and as many of the last turns as fit", SlidingPages),
    ("leads-appended", "last turns, and an append-only contents page of lead sentences", AppendedLeads),
    ("leads-rewritten", "last turns, and a contents page of lead sentences that is rewritten at every call", RewrittenLeads),
)
_BASELINE_CODE = ("quality/*.py", "messages/**/*.py", "archive/words.py", "archive/search.py")


def engines(config: Config) -> dict[str, EngineSpec]:
    """Return all engines by name: memci with these settings first, then what it is compared with."""
    baselines = (
        EngineSpec(name=name, told=told, open=partial(_opened, make), code=_BASELINE_CODE) for name, told, make in _BASELINES
    )
    return {spec.name: spec for spec in (memci_spec(config), *baselines)}


@contextmanager
def _opened(make: Callable[[int, TokenCounter], ContextEngine], budget: int) -> Iterator[ContextEngine]:
    yield make(budget, get_counter(COUNTER))
