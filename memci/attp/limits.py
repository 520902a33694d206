"""How much one run of a model's code may use, and the error for using more."""

from enum import StrEnum

import attrs

from memci.errors import LimitExceededError


class Limit(StrEnum):
    """The limits of a run, by the names under which errors tell of them."""

    TIME = "time_s"
    TOOLS = "tools_s"
    MEMORY = "memory_bytes"
    DEPTH = "depth"
    CALLS = "calls"
    OUTPUT = "output_bytes"
    WORKERS = "workers"
    CODE = "code_bytes"
    SLEEP = "sleep_s"


_ADVICE = {
    Limit.TIME: "do less work in one call",
    Limit.TOOLS: "the tools took too long, ask them for less",
    Limit.MEMORY: "hold less at a time",
    Limit.DEPTH: "use a loop instead of calls within calls",
    Limit.CALLS: "call fewer tools, and only names that are defined",
    Limit.OUTPUT: "print, return and pass less",
    Limit.WORKERS: "all workers were busy and nothing was run, try again",
    Limit.CODE: "write shorter code",
    Limit.SLEEP: "the code cannot sleep",
}


@attrs.frozen(kw_only=True)
class Limits:
    """What one run of a model's code may use.

    Attributes:
        time_s: Seconds of work in the worker; the time of tools does not count. A worker that does not stop is ended a quarter of
            a second later.
        tools_s: Seconds that its tools may take, all together. An async tool is cancelled then. Any other is not interrupted: the
            run ends when it returns.
        memory_bytes: Memory of its values.
        depth: Calls within calls.
        calls: Calls of tools.
        output_bytes: Bytes of UTF-8 of all that it prints; of its result, as JSON; and of the arguments of one call, as JSON.
        workers: Processes, and so runs at the same time. Further runs wait for as long as one run may take.
    """

    time_s: float = attrs.field(default=1.0, validator=attrs.validators.gt(0.0))
    tools_s: float = attrs.field(default=30.0, validator=attrs.validators.gt(0.0))
    memory_bytes: int = attrs.field(default=64 * 1024 * 1024, validator=attrs.validators.ge(1024 * 1024))
    depth: int = attrs.field(default=200, validator=attrs.validators.ge(10))
    calls: int = attrs.field(default=64, validator=attrs.validators.ge(0))
    output_bytes: int = attrs.field(default=65_536, validator=attrs.validators.ge(1024))
    workers: int = attrs.field(default=2, validator=attrs.validators.ge(1))


def exceeded(limit: Limit, value: float) -> LimitExceededError:
    """Return the error for a limit of this value that was passed; its text names the limit and says what to do."""
    return LimitExceededError(f"the limit {limit} of {value} was passed: {_ADVICE[limit]}", limit=limit.value, value=value)
