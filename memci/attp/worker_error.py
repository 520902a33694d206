"""What a worker's errors mean: the limit that was passed, or the line of the code that failed."""

from typing import TYPE_CHECKING, cast

import attrs

from memci.attp.host_error import MAX_MESSAGE_CHARS
from memci.attp.limits import Limit, Limits, exceeded
from memci.attp.program import Program
from memci.errors import LimitExceededError, SandboxError

if TYPE_CHECKING:
    from pydantic_monty import ExcType, ExternalExceptionData, MontyError

# How the library words what it stops: the exception's name, the beginning of its message, and the limit.
_STOPS = (
    ("TimeoutError", "feed time limit exceeded", Limit.TIME),
    ("TimeoutError", "sleep limit exceeded", Limit.SLEEP),
    ("MemoryError", "memory limit exceeded", Limit.MEMORY),
    ("MemoryError", "the worker exceeded its memory limit", Limit.MEMORY),
    ("RecursionError", "maximum recursion depth exceeded", Limit.DEPTH),
    ("RuntimeError", "suspension limit", Limit.CALLS),
)
_MISSING = "The monty syntax parser does not yet support "
_SUSPENDED = "cannot suspend in this synchronous context"
_INTERNAL = "Internal error in monty: "
_SETTING = "; use sys.set_int_max_str_digits() to increase the limit"  # there is no such module in the sandbox


@attrs.frozen(kw_only=True)
class CrossedError:
    """The last exception of a tool that went into the sandbox.

    Attributes:
        name: Its own name.
        raised: The name that it has in the sandbox.
        message: Its message there.
    """

    name: str
    raised: str
    message: str

    def data(self) -> "ExternalExceptionData":
        """Return it as the sandbox raises it."""
        return {"exc_type": cast("ExcType", self.raised), "message": self.message}


def from_worker(
    error: "MontyError", *, program: Program, limits: Limits, crossed: CrossedError | None
) -> LimitExceededError | SandboxError:
    """Return the error that the library's error means."""
    from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError  # noqa: PLC0415 (loaded by the run)

    if isinstance(error, MontyCrashedError):
        if error.timed_out:
            return exceeded(Limit.TIME, limits.time_s)
        message = "the worker that ran the code crashed or was ended from outside; no other call is concerned"
        return SandboxError(message, kind="WorkerCrashedError")
    inner = error.exception()
    kind, message = type(inner).__name__, str(inner.args[0]) if inner.args else ""
    for stopped, beginning, limit in _STOPS:
        if kind == stopped and message.startswith(beginning):
            return exceeded(limit, getattr(limits, limit, 0))
    frames = [frame.line for frame in error.traceback()] if isinstance(error, MontyRuntimeError | MontySyntaxError) else []
    line = next((line for line in map(program.line, reversed(frames)) if line), None)
    if frames and frames[0] > program.last_line:
        message = f"__result__ is not plain data: {message}"
    if crossed and (kind, message) == (crossed.raised, crossed.message):
        kind = crossed.name
    if message.startswith(_MISSING):
        message = f"this Python has no {message.removeprefix(_MISSING).removeprefix('the ')}"
    if message.endswith(_SUSPENDED):
        message = "no tool can be called from inside map, filter, sorted or another function that is given a function"
    message = message.removeprefix(_INTERNAL).removesuffix(_SETTING)
    return SandboxError(message[:MAX_MESSAGE_CHARS] or kind, kind=kind, line=line)
