"""Where a model's code runs: a worker process that knows Python and nothing of this machine.

The workers are those of pydantic-monty: processes with a bytecode machine of their own, without CPython, files, network or
environment. What leaves a worker is text of a length that was checked; what comes in is plain data.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import attrs

from memci.attp.host_error import MAX_MESSAGE_CHARS, safe_message, sandbox_name, whole_characters
from memci.attp.program import CALL, Limits, Program, exceeded, make_program
from memci.attp.shape import plain
from memci.errors import LimitExceededError, SandboxError, missing_extra

if TYPE_CHECKING:
    import pydantic_monty as library

_GRACE_S = 0.25  # what no check inside the worker stops, such as the text of an endless value, is stopped by its end
_LOOKUPS = 200  # names that nothing defines and that the code may ask for, beside its calls

# How the library words what it stops: the exception's name, the beginning of its message, and the limit.
_STOPS = (
    ("TimeoutError", "feed time limit exceeded", "time_s"),
    ("TimeoutError", "sleep limit exceeded", "sleep_s"),
    ("MemoryError", "memory limit exceeded", "memory_bytes"),
    ("MemoryError", "the worker exceeded its memory limit", "memory_bytes"),
    ("RecursionError", "maximum recursion depth exceeded", "depth"),
    ("RuntimeError", "suspension limit", "calls"),
)
_MISSING = "The monty syntax parser does not yet support "
_SUSPENDED = "cannot suspend in this synchronous context"
_INTERNAL = "Internal error in monty: "
_SETTING = "; use sys.set_int_max_str_digits() to increase the limit"  # there is no such module in the sandbox


@attrs.frozen(kw_only=True)
class Outcome:
    """What a run gave: ``__result__`` as JSON data, what it printed, and how many tools it called."""

    value: Any
    printed: str = ""
    calls: int = 0


class Sandbox:
    """Runs code in worker processes, which start with the first run. Safe to use from many threads.

    It need not be closed: the workers end with the process. A process that was forked from one that has already run code gets an
    error, at once, as the library's threads do not survive a fork: start it with the method ``spawn``, or fork before.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._pool: library.Monty | None = None
        self._opening = threading.Lock()  # one thread starts or ends the workers

    def run(self, code: str, tools: Mapping[str, Callable[..., object]]) -> Outcome:
        """Run code until it is done, and return what it gave. The caller's thread waits, and runs the tools.

        These are given plain data and return what can become plain data. An exception of theirs reaches the code as one that it
        can catch, without paths, addresses and traceback; one that is no ``Exception`` ends the run and is raised here.

        Raises:
            SandboxError: The code was refused or failed, or its worker ended.
            LimitExceededError: It went past a limit.
        """
        program = make_program(code, tools, output_bytes=self.limits.output_bytes)
        with contextlib.ExitStack() as stack:
            return _Run(program=program, tools=tools, limits=self.limits).drive(self._enter(stack))

    def close(self) -> None:
        """End the workers. The next run, if there is one, starts others."""
        with self._opening:
            if self._pool is not None and _started.get("pid") == os.getpid():
                self._pool.__exit__(None, None, None)
                self._pool = None

    def _enter(self, stack: contextlib.ExitStack) -> "library.MontySession":
        pool = self._open()
        from pydantic_monty import MontyCrashedError  # noqa: PLC0415 (loaded already)

        limits: library.ResourceLimits = {
            "max_feed_duration_secs": self.limits.time_s,
            "max_memory": self.limits.memory_bytes,
            "max_recursion_depth": self.limits.depth,
            "max_suspensions": self.limits.calls + _LOOKUPS,
            "max_total_sleep_secs": 0,
        }
        failed: Exception | None = None
        for _ in range(self.limits.workers + 1):
            try:
                return stack.enter_context(pool.checkout(limits=limits))
            except TimeoutError:
                raise exceeded(self.limits.workers, "workers") from None
            # Nothing has run yet: an idle worker was ended from outside, or the workers by another thread. Take others.
            except (MontyCrashedError, RuntimeError) as error:
                failed = error
                pool = self._open()
        message = "no worker could be started"
        raise SandboxError(message, kind="SandboxUnavailableError") from failed

    def _open(self) -> "library.Monty":
        with self._opening:
            if _started.setdefault("pid", os.getpid()) != os.getpid():
                message = "this process was forked from one that had run code: start it with the method spawn"
                raise SandboxError(message, kind="ForkedProcessError")
            if self._pool is None:
                try:
                    from pydantic_monty import Monty  # noqa: PLC0415 (66 ms, and an extra)
                except ModuleNotFoundError as error:
                    raise missing_extra(error, "attp") from error

                self._pool = Monty(
                    min_processes=0,
                    max_processes=self.limits.workers,
                    checkout_timeout=self.limits.time_s + _GRACE_S + self.limits.tools_s,  # as long as one run may take
                    request_timeout=self.limits.time_s + 2 * _GRACE_S,
                    feed_duration_limit_grace=_GRACE_S,
                ).__enter__()
            return self._pool


_started: dict[str, int] = {}
"""The process in which workers were first started. The library's threads are one process's: in a fork of it they are missing, and
every sandbox there, this one or another, would wait for them for ever."""


@attrs.define(kw_only=True, eq=False)
class _Run:
    """One run: answers what the worker asks for, until it is done."""

    program: Program
    tools: Mapping[str, Callable[..., object]]
    limits: Limits
    calls: int = 0
    tools_s: float = 0.0
    printed: list[str] = attrs.field(factory=list)
    printed_bytes: int = 0
    crossed: tuple[str, str, str] = ("", "", "")
    """The last exception of a tool that went into the sandbox: its name there, its message there, its own name."""

    def drive(self, session: "library.MontySession") -> Outcome:
        from pydantic_monty import FunctionSnapshot, MontyComplete, MontyError, NameLookupSnapshot  # noqa: PLC0415 (as above)

        try:
            snapshot = session.feed_start(self.program.source, print_callback=self._print)
            while not isinstance(snapshot, MontyComplete):
                match snapshot:
                    case FunctionSnapshot(is_os_function=True):
                        snapshot = snapshot.resume({"exc_type": "PermissionError", "message": "there is nothing outside"})
                    case FunctionSnapshot(function_name=name) if name == CALL:
                        snapshot = snapshot.resume(self._call(*snapshot.args))
                    # The arguments of any other call stay where they are: they can be endless out here.
                    case FunctionSnapshot(function_name=name):
                        snapshot = snapshot.resume({"exc_type": "NameError", "message": f"name {name!r} is not defined"})
                    case NameLookupSnapshot():
                        snapshot = snapshot.resume()
                    case _:
                        message = "the code waits for what never comes: call the tools as plain functions"
                        raise SandboxError(message, kind="RuntimeError")
        except MontyError as error:
            if self.printed_bytes > self.limits.output_bytes:
                raise exceeded(self.limits.output_bytes, "output_bytes") from None
            raise self._meant(error) from None
        return Outcome(value=self._read(snapshot.output), printed="".join(self.printed), calls=self.calls)

    def _print(self, _stream: str, text: str) -> None:
        self.printed_bytes += len(text.encode("utf-8", "replace"))
        if self.printed_bytes > self.limits.output_bytes:
            raise exceeded(self.limits.output_bytes, "output_bytes")
        self.printed.append(text)

    def _call(self, name: str, text: str | int) -> "library.ExternalReturnValue | library.ExternalExceptionData":
        """Run a tool for the code, and return what the code is to see of it."""
        self.calls += 1
        if self.calls > self.limits.calls:
            raise exceeded(self.limits.calls, "calls")
        positional, named = self._read(text)
        start = time.monotonic()
        answer: library.ExternalReturnValue | library.ExternalExceptionData
        try:
            answer = {"return_value": plain(self.tools[name](*positional, **named), text=whole_characters)}
        except Exception as error:  # noqa: BLE001 (raised again, inside: there the code may catch it)
            kind, message = sandbox_name(error), safe_message(error)
            self.crossed = kind, message, type(error).__name__
            answer = {"exc_type": cast("library.ExcType", kind), "message": message}
        self.tools_s += time.monotonic() - start
        if self.tools_s >= self.limits.tools_s:
            raise exceeded(self.limits.tools_s, "tools_s")
        return answer

    def _read(self, text: str | int) -> Any:  # noqa: ANN401 (JSON data)
        """Return the value of a text from the sandbox; an integer is the length of a text that was too long."""
        if isinstance(text, int) or len(text.encode("utf-8", "replace")) > self.limits.output_bytes:
            raise exceeded(self.limits.output_bytes, "output_bytes")
        try:
            return plain(json.loads(text))
        except (ValueError, RecursionError) as error:
            message = f"the value cannot leave the sandbox: {error}"
            raise SandboxError(message, kind="ValueError") from None

    def _meant(self, error: "library.MontyError") -> LimitExceededError | SandboxError:
        """Return the error that the library's error means: a limit that was passed, or the line of the code that failed."""
        from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError  # noqa: PLC0415 (loaded by the run)

        if isinstance(error, MontyCrashedError):
            if error.timed_out:
                return exceeded(self.limits.time_s, "time_s")
            message = "the worker that ran the code crashed or was ended from outside; no other call is concerned"
            return SandboxError(message, kind="WorkerCrashedError")
        inner = error.exception()
        kind, message = type(inner).__name__, str(inner.args[0]) if inner.args else ""
        for stopped, beginning, limit in _STOPS:
            if kind == stopped and message.startswith(beginning):
                return exceeded(getattr(self.limits, limit, 0), limit)
        frames = [frame.line for frame in error.traceback()] if isinstance(error, MontyRuntimeError | MontySyntaxError) else []
        line = next((line for line in map(self.program.line, reversed(frames)) if line), None)
        if frames and frames[0] > self.program.last_line:
            message = f"__result__ is not plain data: {message}"
        if (kind, message) == self.crossed[:2]:
            kind = self.crossed[2]
        if message.startswith(_MISSING):
            message = f"this Python has no {message.removeprefix(_MISSING).removeprefix('the ')}"
        if message.endswith(_SUSPENDED):
            message = "no tool can be called from inside map, filter, sorted or another function that is given a function"
        message = message.removeprefix(_INTERNAL).removesuffix(_SETTING)
        return SandboxError(message[:MAX_MESSAGE_CHARS] or kind, kind=kind, line=line)
