"""Where a model's code runs: a worker process that knows Python and nothing of this machine.

The code is checked first. The workers are those of pydantic-monty: processes with a bytecode machine of their own, without
CPython, files, network or environment. What leaves a worker is text of a length that was checked; what comes in is plain data.
"""

import ast
import contextlib
import functools
import json
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, cast

import attrs

from memci.attp.host_error import MAX_MESSAGE_CHARS, safe_message, sandbox_name, whole_characters
from memci.attp.shape import plain
from memci.attp.toolbox import MODULES
from memci.errors import LimitExceededError, SandboxError, missing_extra

if TYPE_CHECKING:
    import pydantic_monty as library

_MAX_CODE_BYTES = 65_536  # of UTF-8, of the code of one call
_RESULT = "__result__"
_RESERVED = "_memci"  # names that begin so, perhaps after more underscores, belong to the sandbox: the code may not use them
_CALL = f"{_RESERVED}_call"  # what the sandbox asks its host to do: run a tool, given its name and its arguments as JSON

# Built-ins with which code could reach what the check of its names does not see.
_REFUSED = {"__import__", "compile", "eval", "exec", "getattr", "open", "setattr"}

_parsing = threading.Lock()  # held while warnings are off: the list of their filters is the whole process's

# By the names under which errors tell of the limits; the last two are none of ``Limits``.
_ADVICE = {
    "time_s": "do less work in one call",
    "tools_s": "the tools took too long, ask them for less",
    "memory_bytes": "hold less at a time",
    "depth": "use a loop instead of calls within calls",
    "calls": "call fewer tools, and only names that are defined",
    "output_bytes": "print, return and pass less",
    "workers": "all workers were busy and nothing was run, try again",
    "code_bytes": "write shorter code",
    "sleep_s": "the code cannot sleep",
}

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
class Limits:
    """What one run of a model's code may use.

    A worker that does not stop is ended a quarter of a second after its time. When the time of tools is over an async tool is
    cancelled; any other is not interrupted, and the run ends when it returns. Runs for which there is no worker wait for as long
    as one may take.
    """

    time_s: float = attrs.field(default=1.0, validator=attrs.validators.gt(0.0))  # of work in the worker, without its tools
    tools_s: float = attrs.field(default=30.0, validator=attrs.validators.gt(0.0))  # that its tools may take, all together
    memory_bytes: int = attrs.field(default=64 * 1024 * 1024, validator=attrs.validators.ge(1024 * 1024))  # of its values
    depth: int = attrs.field(default=200, validator=attrs.validators.ge(10))  # calls within calls
    calls: int = attrs.field(default=64, validator=attrs.validators.ge(0))  # of tools
    # Of UTF-8: of all that it prints; of its result, as JSON; and of the arguments of one call, as JSON.
    output_bytes: int = attrs.field(default=65_536, validator=attrs.validators.ge(1024))
    workers: int = attrs.field(default=2, validator=attrs.validators.ge(1))  # processes, and so runs at the same time


def _exceeded(value: float, limit: str) -> LimitExceededError:
    return LimitExceededError(f"the limit {limit} of {value} was passed: {_ADVICE[limit]}", limit=limit, value=value)


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
        self._starting = threading.Lock()  # one thread starts or ends the workers

    def run(self, code: str, tools: Mapping[str, Callable[..., object]]) -> Outcome:
        """Run code until it is done, and return what it gave. The caller's thread waits, and runs the tools.

        These are given plain data and return what can become plain data. An exception of theirs reaches the code as one that it
        can catch, without paths, addresses and traceback; one that is no ``Exception`` ends the run and is raised here. Raises
        ``SandboxError`` if the code was refused or failed or its worker ended, ``LimitExceededError`` if it went past a limit.
        """
        source, lines = _program(code, tools, self.limits.output_bytes)
        with contextlib.ExitStack() as stack:
            return _Execution(source=source, lines=lines, tools=tools, limits=self.limits).drive(self._enter(stack))

    def close(self) -> None:
        """End the workers. The next run, if there is one, starts others."""
        with self._starting:
            if self._pool is not None and _started.get("pid") == os.getpid():
                self._pool.__exit__(None, None, None)
                self._pool = None

    def _enter(self, stack: contextlib.ExitStack) -> "library.MontySession":
        try:
            from pydantic_monty import MontyCrashedError  # noqa: PLC0415 (66 ms, and an extra)
        except ModuleNotFoundError as error:
            raise missing_extra(error, "attp") from error

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
                return stack.enter_context(self._open().checkout(limits=limits))
            except TimeoutError:
                raise _exceeded(self.limits.workers, "workers") from None
            # Nothing has run yet: an idle worker was ended from outside, or the workers by another thread. Take others.
            except (MontyCrashedError, RuntimeError) as error:
                failed = error
        message = "no worker could be started"
        raise SandboxError(message, kind="SandboxUnavailableError") from failed

    def _open(self) -> "library.Monty":
        with self._starting:
            if _started.setdefault("pid", os.getpid()) != os.getpid():
                message = "this process was forked from one that had run code: start it with the method spawn"
                raise SandboxError(message, kind="ForkedProcessError")
            if self._pool is None:
                from pydantic_monty import Monty  # noqa: PLC0415 (loaded already)

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
class _Execution:
    """One run: answers what the worker asks for, until it is done."""

    source: str
    lines: range  # those of the source that are the model's code, both from 1
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
            snapshot = session.feed_start(self.source, print_callback=self._print)
            while not isinstance(snapshot, MontyComplete):
                match snapshot:
                    case FunctionSnapshot(is_os_function=True):
                        snapshot = snapshot.resume({"exc_type": "PermissionError", "message": "there is nothing outside"})
                    case FunctionSnapshot(function_name=name) if name == _CALL:
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
                raise _exceeded(self.limits.output_bytes, "output_bytes") from None
            raise self._meant(error) from None
        return Outcome(value=self._read(snapshot.output), printed="".join(self.printed), calls=self.calls)

    def _print(self, _stream: str, text: str) -> None:
        self.printed_bytes += len(text.encode("utf-8", "replace"))
        if self.printed_bytes > self.limits.output_bytes:
            raise _exceeded(self.limits.output_bytes, "output_bytes")
        self.printed.append(text)

    def _call(self, name: str, text: str | int) -> "library.ExternalReturnValue | library.ExternalExceptionData":
        """Run a tool for the code, and return what the code is to see of it."""
        self.calls += 1
        if self.calls > self.limits.calls:
            raise _exceeded(self.limits.calls, "calls")
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
            raise _exceeded(self.limits.tools_s, "tools_s")
        return answer

    def _read(self, text: str | int) -> Any:  # noqa: ANN401 (JSON data)
        """Return the value of a text from the sandbox; an integer is the length of a text that was too long."""
        if isinstance(text, int) or len(text.encode("utf-8", "replace")) > self.limits.output_bytes:
            raise _exceeded(self.limits.output_bytes, "output_bytes")
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
                return _exceeded(self.limits.time_s, "time_s")
            message = "the worker that ran the code crashed or was ended from outside; no other call is concerned"
            return SandboxError(message, kind="WorkerCrashedError")
        inner = error.exception()
        kind, message = type(inner).__name__, str(inner.args[0]) if inner.args else ""
        for stopped, beginning, limit in _STOPS:
            if kind == stopped and message.startswith(beginning):
                return _exceeded(getattr(self.limits, limit, 0), limit)
        frames = [frame.line for frame in error.traceback()] if isinstance(error, MontyRuntimeError | MontySyntaxError) else []
        line = next((self.lines.index(frame) + 1 for frame in reversed(frames) if frame in self.lines), None)
        if frames and frames[0] >= self.lines.stop:
            message = f"__result__ is not plain data: {message}"
        if (kind, message) == self.crossed[:2]:
            kind = self.crossed[2]
        if message.startswith(_MISSING):
            message = f"this Python has no {message.removeprefix(_MISSING).removeprefix('the ')}"
        if message.endswith(_SUSPENDED):
            message = "no tool can be called from inside map, filter, sorted or another function that is given a function"
        message = message.removeprefix(_INTERNAL).removesuffix(_SETTING)
        return SandboxError(message[:MAX_MESSAGE_CHARS] or kind, kind=kind, line=line)


def _program(code: str, tools: Collection[str], output_bytes: int) -> tuple[str, range]:
    """Return the code, checked, among the tools and modules that it names, and its lines there. O(size of the code).

    The value of the whole is the JSON text of ``__result__``, or the length of a text of more than *output_bytes*.
    """
    if len(code) > _MAX_CODE_BYTES or len(code.encode("utf-8", "surrogatepass")) > _MAX_CODE_BYTES:
        raise _exceeded(_MAX_CODE_BYTES, "code_bytes")
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    used, awaited = _check(_parse(code), tools)
    before = [f"_memci_limit = {output_bytes}\n{_RESULT} = None\n"]
    before += [f"import {name}\n" for name in MODULES if name in used and name not in _polyfills()]
    before += [source for name, source in _polyfills().items() if name in used | {"_memci_text"}]
    for name in (name for name in tools if name in used):
        before.append(f"async def {name}" if name in awaited else f"def {name}")
        before.append(f'(*args, **kwargs):\n    return {_CALL}("{name}", _memci_text([args, kwargs]))\n')
    prologue = "".join(before)
    first = prologue.count("\n") + 1
    return f"{prologue}{code}\n_memci_text({_RESULT})\n", range(first, first + code.count("\n") + 1)


@functools.cache
def _polyfills() -> Mapping[str, str]:
    """Return the source of each polyfill by the name that needs it."""
    from importlib.resources import files  # noqa: PLC0415 (slow to load, for those who run code)

    text = files("memci.attp").joinpath("polyfills.py").read_text(encoding="utf-8")
    _, *parts = re.split(r"^# for (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _parse(code: str) -> ast.Module:
    line = None
    try:
        with _parsing, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the model wrote is no matter for the host's log
            return ast.parse(code)
    except SyntaxError as error:
        problem, line = error.msg, error.lineno
    except (MemoryError, RecursionError):
        problem = "it nests too deeply"
    except ValueError as error:
        problem = str(error)
    message = f"the code does not parse: {problem}"
    raise SandboxError(message, kind="SyntaxError", line=line)


def _check(tree: ast.Module, tools: Collection[str]) -> tuple[set[str], set[str]]:  # noqa: C901 (a case a kind of node)
    """Return the names that the code uses, and those that it awaits."""
    used, awaited, assigned = set[str](), set[str](), set[str]()
    for node in ast.walk(tree):
        for name in _identifiers(node):
            if name.startswith("_") and f"_{name.lstrip('_')}".startswith(_RESERVED):
                _refuse(f"the name {name} belongs to the sandbox", "NameError", node)
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                if name in _REFUSED and name not in tools:
                    _refuse(f"{name} is not available", "ImportError" if name == "__import__" else "NameError", node)
                used.add(name)
            case ast.Name(id=name):
                assigned.add(name)
            case ast.Await(value=ast.Call(func=ast.Name(id=name))):
                awaited.add(name)
            case ast.Import() | ast.ImportFrom():
                _refuse_import(node)
            case ast.Attribute(attr=name) if name.startswith("_"):
                _refuse(f"the attribute {name} is out of reach, as it begins with an underscore", "AttributeError", node)
            case ast.MatchClass(kwd_attrs=names) if any(name.startswith("_") for name in names):
                _refuse("an attribute that begins with an underscore is out of reach", "AttributeError", node)
    if _RESULT not in assigned:
        message = f"the code never assigns {_RESULT}, and so gives nothing"
        raise SandboxError(message, kind="NameError")
    return used, awaited


def _identifiers(node: ast.AST) -> list[str]:
    """Return every name that a node holds, whatever its part; the texts of constants are no names."""
    parts = [] if isinstance(node, ast.Constant) else [part for _, part in ast.iter_fields(node)]
    names = chain.from_iterable(part if isinstance(part, list) else (part,) for part in parts)
    return [name for name in names if isinstance(name, str)]


def _refuse_import(node: ast.Import | ast.ImportFrom) -> None:
    asked = [node.module or "."] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    missing = [name for name in asked if name not in MODULES]
    if missing:
        _refuse(f"the module {missing[0]} is not available", "ImportError", node)
    instead = f" and write {asked[0]}.{node.names[0].name}" if isinstance(node, ast.ImportFrom) else ""
    verb = "is" if len(asked) == 1 else "are"
    _refuse(f"{', '.join(asked)} {verb} just there: leave the import out{instead}", "ImportError", node)


def _refuse(message: str, kind: str, node: ast.AST) -> NoReturn:
    raise SandboxError(message, kind=kind, line=getattr(node, "lineno", None))
