"""The engines that are measured, by name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memci.engine.config import Config
from memci.messages.tokens.counter import TokenCounter
from memci.quality.baselines import SlidingMessages, SlidingPages, WholeHistory
from memci.quality.engines import ContextEngine, EngineSpec
from memci.quality.memci_engine import memci_spec

_BASELINES: tuple[tuple[str, str, Callable[[int, TokenCounter], ContextEngine]], ...] = (
    ("whole", "the whole history at every call, whether or not it fits", WholeHistory),
    ("sliding-messages", "system messages and as many of the last messages as fit", SlidingMessages),
    ("sliding-pages", "system messages and as many of the last turns as fit", SlidingPages),
)
_BASELINE_CODE = ("quality/*.py", "messages/**/*.py", "archive/words.py", "archive/search.py")


def engines(config: Config, counter: TokenCounter) -> dict[str, EngineSpec]:
    """Return all engines by name: memci with these settings first, then what it is compared with."""
    specs = [memci_spec(config), *(_baseline(name, told, make, counter) for name, told, make in _BASELINES)]
    return {spec.name: spec for spec in specs}


def _baseline(name: str, told: str, make: Callable[[int, TokenCounter], ContextEngine], counter: TokenCounter) -> EngineSpec:
    @contextmanager
    def opened(budget: int) -> Iterator[ContextEngine]:
        yield make(budget, counter)

    return EngineSpec(name=name, told=told, open=opened, code=_BASELINE_CODE)
