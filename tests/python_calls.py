"""Counts how often functions of Python begin, for tests of what something costs."""

from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType

from benchmarks.trace import profiled


def python_calls(function: Callable[[], object]) -> Counter[CodeType]:
    """Run a function and return how often each function, generator or comprehension was entered meanwhile."""
    calls = Counter[CodeType]()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    profiled(function, note)
    return calls
