"""The model's code, checked before it runs and put between what the sandbox adds to it, and the limits of a run."""

import ast
import functools
import re
import threading
import warnings
from collections.abc import Collection, Mapping
from itertools import chain
from typing import NoReturn

import attrs

from memci.attp.toolbox import MODULES
from memci.errors import LimitExceededError, SandboxError

MAX_CODE_BYTES = 65_536
"""How large the code of one call may be, in bytes of UTF-8."""

RESULT = "__result__"
RESERVED = "_memci"
"""Names that begin so, perhaps after more underscores, belong to the sandbox: the code may not use them."""

CALL = f"{RESERVED}_call"
"""What the sandbox asks its host to do: run a tool, given its name and its arguments as JSON."""

_REFUSED = {
    "__import__": "ImportError",
    "compile": "NameError",
    "eval": "NameError",
    "exec": "NameError",
    "getattr": "NameError",
    "open": "NameError",
    "setattr": "NameError",
}
"""Built-ins with which code could reach what the check of its names does not see, and the error that each gives."""

_TOOL = """\
{keyword} {name}(*args, **kwargs):
    return _memci_call("{name}", _memci_text([args, kwargs]))
"""

_parsing = threading.Lock()
"""Held while warnings are off: the list of their filters is the whole process's."""

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


def exceeded(value: float, limit: str) -> LimitExceededError:
    """Return the error for a limit of this value that was passed; its text names the limit and says what to do."""
    return LimitExceededError(f"the limit {limit} of {value} was passed: {_ADVICE[limit]}", limit=limit, value=value)


@attrs.frozen(kw_only=True)
class Program:
    """Code that is ready to run, and on which lines of it, from 1, the model's code begins and ends.

    Its value is the JSON text of ``__result__``, or the length of a text that is too long.
    """

    source: str
    first_line: int
    last_line: int

    def line(self, number: int) -> int | None:
        """Return the line of the model's code that a line of the source is, both from 1; ``None`` for a line of the sandbox."""
        return number - self.first_line + 1 if self.first_line <= number <= self.last_line else None


def make_program(code: str, tools: Collection[str], *, output_bytes: int) -> Program:
    """Check the code and add the tools and modules that it names; *output_bytes* may leave the sandbox. O(size of the code).

    Raises:
        SandboxError: It does not parse, imports something, names what is out of reach, or assigns no ``__result__``.
        LimitExceededError: It is larger than 64 KiB.
    """
    if len(code) > MAX_CODE_BYTES or len(code.encode("utf-8", "surrogatepass")) > MAX_CODE_BYTES:
        raise exceeded(MAX_CODE_BYTES, "code_bytes")
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    used, awaited = _check(_parse(code), tools)
    before = [f"_memci_limit = {output_bytes}\n{RESULT} = None\n"]
    before += [f"import {name}\n" for name in MODULES if name in used and name not in _polyfills()]
    before += [source for name, source in _polyfills().items() if name in used | {"_memci_text"}]
    before += [_TOOL.format(keyword="async def" if name in awaited else "def", name=name) for name in tools if name in used]
    prologue = "".join(before)
    first = prologue.count("\n") + 1
    return Program(source=f"{prologue}{code}\n_memci_text({RESULT})\n", first_line=first, last_line=first + code.count("\n"))


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


def _check(tree: ast.Module, tools: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the names that the code uses, and those that it awaits."""
    used, awaited, assigned = set[str](), set[str](), set[str]()
    for node in ast.walk(tree):
        _check_node(node)
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                if name in _REFUSED and name not in tools:
                    _refuse(f"{name} is not available", _REFUSED[name], node)
                used.add(name)
            case ast.Name(id=name):
                assigned.add(name)
            case ast.Await(value=ast.Call(func=ast.Name(id=name))):
                awaited.add(name)
    if RESULT not in assigned:
        message = f"the code never assigns {RESULT}, and so gives nothing"
        raise SandboxError(message, kind="NameError")
    return used, awaited


def _check_node(node: ast.AST) -> None:
    parts = [] if isinstance(node, ast.Constant) else [part for _, part in ast.iter_fields(node)]  # a constant's text is no name
    for name in chain.from_iterable(part if isinstance(part, list) else (part,) for part in parts):
        if isinstance(name, str) and name.startswith("_") and f"_{name.lstrip('_')}".startswith(RESERVED):
            _refuse(f"the name {name} belongs to the sandbox", "NameError", node)
    match node:
        case ast.Import() | ast.ImportFrom():
            _refuse_import(node)
        case ast.Attribute(attr=name) if name.startswith("_"):
            _refuse(f"the attribute {name} is out of reach, as it begins with an underscore", "AttributeError", node)
        case ast.MatchClass(kwd_attrs=names) if any(name.startswith("_") for name in names):
            _refuse("an attribute that begins with an underscore is out of reach", "AttributeError", node)


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
