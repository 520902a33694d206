"""One tool: a function, and what is known of it from its signature, its annotations and its docstring.

Docstrings are in Google's style: https://google.github.io/styleguide/pyguide.html#383-functions-and-methods
"""

import builtins
import dataclasses
import datetime as dt
import enum
import functools
import inspect
import keyword
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

import attrs

from memci.attp.shape import (
    Anything,
    Choice,
    Field,
    Fixed,
    Many,
    OneOf,
    Record,
    Scalar,
    Schema,
    Shape,
    ShapeError,
    Table,
    check,
    field_names,
    object_schema,
    plain,
    records,
    stub,
)
from memci.errors import ToolArgumentError, ToolDefinitionError, shown

MODULES = ("datetime", "json", "math", "random", "re", "statistics")
"""Modules that are there in the model's code without an import; no tool may have the name of one."""

_MAX_NAME_CHARS = 64  # of a tool, for OpenAI and Anthropic
_REQUIRED = inspect.Parameter.empty

_SECTION = re.compile(r"(Args|Arguments|Attributes|Example|Examples|Note|Notes|Raises|Returns|Yields):[ \t]*")
_ENTRY = re.compile(r"\*{0,2}(?P<name>[A-Za-z_][\w.]*)(?:[ \t]*\([^)\n]*\))?:[ \t]*(?P<text>.*)")

_SCALARS = (str, int, float, bool, type(None))
_SETS: dict[type, Callable[[list[Any]], Any]] = {set: set, frozenset: frozenset, AbstractSet: frozenset}
_CONTAINERS: dict[type, Callable[[list[Any]], Any]] = {list: list, Sequence: list, Iterable: list, tuple: tuple, **_SETS}
_CHOICES = (str, int, bool, type(None))
_SUPPORTED = (
    "use str, int, float, bool, None, Literal, an Enum, list, tuple, set, dict with str keys, a union of these, or a TypedDict"
)


class UnsupportedError(Exception):
    """An annotation says nothing that could be checked or written as a JSON schema. It never leaves this module."""


@attrs.frozen(kw_only=True)
class Parameter(Field):
    """One parameter of a tool.

    Attributes:
        default: Its default as plain data; ``inspect.Parameter.empty`` where it is required.
        by_name: It cannot be given by position.
    """

    default: Any = _REQUIRED
    by_name: bool = False


@attrs.frozen(kw_only=True, eq=False)
class Tool:
    """A function that a model may call.

    Attributes:
        name: What the model calls it.
        text: Its docstring, without the indentation of its function.
        parameters: In the order of the signature.
        returns: What its result looks like as plain data.
        is_async: It has to be awaited.
        function: The function itself.
    """

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    returns: Shape
    is_async: bool
    function: Callable[..., Any]

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return _summary(self.text)

    @property
    def signature(self) -> str:
        """How it is called, as Python writes it: ``search(query: str, limit: int = 10) -> list[Hit]``."""
        written = []
        starred = False
        for parameter in self.parameters:
            if parameter.by_name and not starred:
                written.append("*")
                starred = True
            default = "" if parameter.required else f" = {parameter.default!r}"
            written.append(f"{parameter.name}: {stub(parameter.shape)}{default}")
        return f"{self.name}({', '.join(written)}) -> {stub(self.returns)}"

    @property
    def description(self) -> str:
        """What it does, for a model that reads its parameters elsewhere: the docstring without ``Args``."""
        kept = [lines for name, lines in _sections(self.text) if name not in {"Args", "Arguments"}]
        return "\n".join(line for lines in kept for line in lines).strip()

    def input_schema(self) -> Schema:
        """Return the JSON schema of its arguments, an object; a new dict."""
        schema = object_schema(self.parameters)
        for parameter in self.parameters:
            if not parameter.required:
                schema["properties"][parameter.name]["default"] = plain(parameter.default)
        return schema

    def records(self) -> tuple[Record, ...]:
        """Return the records that its signature names, those first that others name."""
        return records([*(parameter.shape for parameter in self.parameters), self.returns])

    def bind(self, positional: Sequence[object], named: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments by name, checked, as the function is to be given them. Defaults are left to the function.

        Raises:
            ToolArgumentError: One is unknown, missing, given twice, or not what its parameter takes; or *named* is no mapping.
        """
        if not isinstance(named, Mapping):
            self._refuse(f"its arguments are an object with a value by parameter, not a {type(named).__name__}")
        places = [parameter.name for parameter in self.parameters if not parameter.by_name]
        if len(positional) > len(places):
            self._refuse(f"it takes {len(places)} arguments by position, and {len(positional)} were given")
        given = dict(zip(places, positional, strict=False))
        known = {parameter.name for parameter in self.parameters}
        for name, value in named.items():
            if name not in known:
                self._refuse(f"it has no parameter {shown(name)}", name)
            if name in given:
                self._refuse(f"{name} was given twice", name)
            given[name] = value
        bound = {}
        for parameter in self.parameters:
            if parameter.name in given:
                try:
                    bound[parameter.name] = check(parameter.shape, given[parameter.name])
                except ShapeError as error:
                    self._refuse(f"{parameter.name}{error}", parameter.name)
            elif parameter.required:
                self._refuse(f"the argument {parameter.name} is missing", parameter.name)
        return bound

    def plain_result(self, value: object) -> Any:  # noqa: ANN401 (JSON data)
        """Return what the function gave as plain data.

        Raises:
            ToolDefinitionError: It cannot be made plain.
        """
        try:
            return plain(value)
        except (TypeError, ValueError) as error:
            raise ToolDefinitionError(str(error), tool=self.name, parameter="return") from None

    def _refuse(self, problem: str, parameter: str = "") -> NoReturn:
        raise ToolArgumentError(problem, tool=self.name, parameter=parameter, signature=self.signature)


def make_tool(function: Callable[..., Any], *, name: str | None = None) -> Tool:
    """Return the tool that a function is.

    Args:
        function: A function or method with an annotation for each parameter and for its result, and a docstring.
        name: What the model calls it; the function's own name by default.

    Raises:
        ToolDefinitionError: Its name, signature or docstring does not tell a model how to call it.
    """
    target = _underlying(function)
    name = name or str(getattr(target, "__name__", ""))
    _check_name(name)
    text = inspect.cleandoc(target.__doc__ or "")
    if not _summary(text):
        problem = "it has no docstring; say in one line what it does"
        raise ToolDefinitionError(problem, tool=name)
    try:
        hints = typing.get_type_hints(target, include_extras=True)
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError) as error:
        problem = f"its signature cannot be read: {error}"
        raise ToolDefinitionError(problem, tool=name) from None
    described = _entries(text, "Args", "Arguments")
    parameters = tuple(_parameter(name, one, hints, described) for one in signature.parameters.values())
    for documented in described:
        if documented not in signature.parameters:
            problem = "the docstring describes it, and the signature does not have it"
            raise ToolDefinitionError(problem, tool=name, parameter=documented)
    return Tool(
        name=name,
        text=text,
        parameters=parameters,
        returns=_returns(name, hints),
        is_async=inspect.iscoroutinefunction(target),
        function=function,
    )


def _underlying(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (whatever holds the annotations)
    """Return the function that a partial, a method or an instance with ``__call__`` runs."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return inspect.unwrap(function)
    return type(function).__call__


def _check_name(name: str) -> None:
    problem = ""
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name) or len(name) > _MAX_NAME_CHARS:
        problem = f"a tool's name is a Python name in ASCII of at most {_MAX_NAME_CHARS} characters"
    elif name.startswith("_"):
        problem = "a tool's name does not begin with an underscore, as the model's code may not use such names"
    elif name in MODULES or hasattr(builtins, name):
        problem = "the model's code knows this name already; give the tool another"
    if problem:
        raise ToolDefinitionError(problem, tool=name)


def _parameter(tool: str, found: inspect.Parameter, hints: Mapping[str, Any], described: Mapping[str, str]) -> Parameter:
    problem = ""
    if found.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        problem = "a model is given no * or **; name each parameter"
    elif found.kind is inspect.Parameter.POSITIONAL_ONLY:
        problem = "it cannot be given by name; leave out the / of the signature"
    elif found.name not in hints:
        problem = "it has no annotation"
    if problem:
        raise ToolDefinitionError(problem, tool=tool, parameter=found.name)
    annotation = hints[found.name]
    try:
        shape = _shape(annotation, result=False)
        default = found.default if found.default is _REQUIRED else plain(check(shape, found.default))
    except (UnsupportedError, TypeError) as error:
        raise ToolDefinitionError(str(error), tool=tool, parameter=found.name) from None
    except ShapeError as error:
        problem = f"its default{error}"
        raise ToolDefinitionError(problem, tool=tool, parameter=found.name) from None
    return Parameter(
        name=found.name,
        shape=shape,
        required=default is _REQUIRED,
        description=described.get(found.name) or _description_of(annotation),
        default=default,
        by_name=found.kind is inspect.Parameter.KEYWORD_ONLY,
    )


def _returns(tool: str, hints: Mapping[str, Any]) -> Shape:
    if "return" not in hints:
        problem = "it has no annotation; -> None says that there is no result"
        raise ToolDefinitionError(problem, tool=tool, parameter="return")
    try:
        return _shape(hints["return"], result=True)
    except UnsupportedError as error:
        raise ToolDefinitionError(str(error), tool=tool, parameter="return") from None


def _description_of(annotation: object) -> str:
    """Return the text in ``Annotated[…, "text"]``; empty where there is none."""
    return next((extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, str)), "")


def _shape(annotation: Any, *, result: bool, outer: tuple[type, ...] = ()) -> Shape:  # noqa: ANN401, PLR0911 (one return a kind)
    """Return the shape of what a parameter takes, or of a *result* after it became plain data."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is None or annotation in _SCALARS:
        return Scalar(type(None) if annotation is None else annotation)
    if annotation is Any or annotation is object:
        return Anything()
    if origin is typing.Literal:
        if not all(isinstance(option, _CHOICES) and not isinstance(option, enum.Enum) for option in arguments):
            _refuse("a Literal of anything but str, int, bool and None is not supported")
        return Choice(arguments)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return _shape(arguments[0], result=result, outer=outer)
    if origin in (typing.Union, types.UnionType):
        return OneOf(tuple(_shape(option, result=result, outer=outer) for option in arguments))
    if isinstance(origin or annotation, type):
        return _class_shape(origin or annotation, arguments, result=result, outer=outer)
    return _refuse(f"the annotation {_name(annotation)} is not supported; {_SUPPORTED}")


def _class_shape(kind: type, arguments: tuple[Any, ...], *, result: bool, outer: tuple[type, ...]) -> Shape:  # noqa: PLR0911 (as above)
    inner = functools.partial(_shape, result=result, outer=outer)
    if issubclass(kind, enum.Enum):
        options = tuple(member.value for member in kind)
        if not options or not all(type(option) in _CHOICES for option in options):
            _refuse(f"the enum {kind.__name__} is not supported, as its values are not all str or int")
        return Choice(options, kind)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        return Fixed(tuple(map(inner, arguments)))
    if kind in _CONTAINERS:
        item = inner(arguments[0] if arguments else Any)
        if kind in _SETS and not isinstance(item, Scalar | Choice):
            _refuse(f"a {kind.__name__} of anything but text, numbers and choices is not supported; use list")
        return Many(item, _CONTAINERS[kind])
    if kind in (dict, Mapping):
        if arguments and arguments[0] is not str:
            _refuse(f"a dict with keys of the type {_name(arguments[0])} is not supported; use str")
        return Table(inner(arguments[1] if arguments else Any))
    if typing.is_typeddict(kind) or (result and (attrs.has(kind) or dataclasses.is_dataclass(kind))):
        return _record(kind, result=result, outer=outer)
    if result and kind in (dt.date, dt.datetime, dt.time):
        return Scalar(str)
    return _refuse(f"the type {_name(kind)} is not supported; {_SUPPORTED}")


def _record(kind: type, *, result: bool, outer: tuple[type, ...]) -> Record:
    if kind in outer:
        _refuse(f"{kind.__name__} holds itself, which is not supported")
    hints = typing.get_type_hints(kind, include_extras=True)
    names = field_names(kind)
    required: Iterable[str] = kind.__required_keys__ if names is None else names  # type: ignore[attr-defined]  # it is a TypedDict
    described = _entries(inspect.cleandoc(kind.__doc__ or ""), "Attributes")
    fields = []
    for name in hints if names is None else names:
        annotation = hints[name]
        shape = _shape(annotation, result=result, outer=(*outer, kind))
        while typing.get_origin(annotation) in (typing.Required, typing.NotRequired):
            (annotation,) = typing.get_args(annotation)
        description = described.get(name) or _description_of(annotation)
        fields.append(Field(name=name, shape=shape, required=name in required, description=description))
    return Record(kind.__name__, tuple(fields))


def _refuse(message: str) -> NoReturn:
    raise UnsupportedError(message)


def _name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """Return the lines of a clean docstring by section, each with its heading; other paragraphs have no name."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        heading = _SECTION.fullmatch(line)
        if heading or (line and not line.startswith((" ", "\t")) and found[-1][0]):
            found.append((heading[1] if heading else "", []))
        found[-1][1].append(line)
    return found


def _summary(text: str) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join("\n".join(_sections(text)[0][1]).strip().split("\n\n", maxsplit=1)[0].split())


def _entries(text: str, *names: str) -> dict[str, str]:
    """Return what sections of a docstring say of each name, such as a parameter's; on one line each."""
    found: dict[str, str] = {}
    for section, lines in _sections(text):
        last = ""
        for line in inspect.cleandoc("\n" + "\n".join(lines[1:])).split("\n") if section in names else ():
            entry = None if line.startswith((" ", "\t")) else _ENTRY.match(line)
            if entry:
                last = entry["name"]
                found[last] = entry["text"].strip()
            elif last and line.strip():
                found[last] = f"{found[last]} {line.strip()}".strip()
    return found
