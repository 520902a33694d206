"""One tool: a function, and what is known of it from its signature, its annotations and its docstring."""

import builtins
import copy
import functools
import inspect
import keyword
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import attrs

from memci.attp.shape import (
    Field,
    Schema,
    Shape,
    ShapeError,
    UnsupportedError,
    description_of,
    entries,
    object_schema,
    plain,
    records,
    sections,
    shape_of,
)
from memci.errors import ToolArgumentError, ToolDefinitionError, shown

MODULES = ("datetime", "json", "math", "random", "re", "statistics")
"""Modules that are there in the model's code without an import; no tool may have the name of one."""

_MAX_NAME_CHARS = 64  # of a tool, for OpenAI and Anthropic
_REQUIRED = inspect.Parameter.empty


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
            written.append(f"{parameter.name}: {parameter.shape.stub}{default}")
        return f"{self.name}({', '.join(written)}) -> {self.returns.stub}"

    @property
    def description(self) -> str:
        """What it does, for a model that reads its parameters elsewhere: the docstring without ``Args``."""
        kept = [lines for name, lines in sections(self.text) if name not in {"Args", "Arguments"}]
        return "\n".join(line for lines in kept for line in lines).strip()

    def input_schema(self) -> Schema:
        """Return the JSON schema of its arguments, an object; a new dict."""
        schema = copy.deepcopy(object_schema(self.parameters))
        for parameter in self.parameters:
            if not parameter.required:
                schema["properties"][parameter.name]["default"] = plain(parameter.default)
        return schema

    def records(self) -> dict[str, str]:
        """Return the records that its signature names, as the model reads them, by name; those first that others name."""
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
                    bound[parameter.name] = parameter.shape.check(given[parameter.name])
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
    described = entries(text, "Args", "Arguments")
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
        shape = shape_of(annotation, result=False)
        default = found.default if found.default is _REQUIRED else plain(shape.check(found.default))
    except (UnsupportedError, TypeError) as error:
        raise ToolDefinitionError(str(error), tool=tool, parameter=found.name) from None
    except ShapeError as error:
        problem = f"its default{error}"
        raise ToolDefinitionError(problem, tool=tool, parameter=found.name) from None
    return Parameter(
        name=found.name,
        shape=shape,
        required=default is _REQUIRED,
        description=described.get(found.name) or description_of(annotation),
        default=default,
        by_name=found.kind is inspect.Parameter.KEYWORD_ONLY,
    )


def _returns(tool: str, hints: Mapping[str, Any]) -> Shape:
    if "return" not in hints:
        problem = "it has no annotation; -> None says that there is no result"
        raise ToolDefinitionError(problem, tool=tool, parameter="return")
    try:
        return shape_of(hints["return"], result=True)
    except UnsupportedError as error:
        raise ToolDefinitionError(str(error), tool=tool, parameter="return") from None


def _summary(text: str) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join("\n".join(sections(text)[0][1]).strip().split("\n\n", maxsplit=1)[0].split())
