"""Plain typed functions as tools that a model may call, in every form in which they are offered to it."""

import builtins
import copy
import functools
import inspect
import keyword
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import attrs

from memci.attp.shape import (
    Field,
    Schema,
    Shape,
    ShapeError,
    description_of,
    entries,
    object_schema,
    plain,
    records,
    sections,
    shape_of,
)
from memci.errors import ToolArgumentError, ToolDefinitionError, ToolNotFoundError, shown

# Modules that are there in the model's code without an import; no tool may have the name of one.
MODULES = ("datetime", "json", "math", "random", "re", "statistics")
_MAX_NAME_CHARS = 64  # of a tool, for OpenAI and Anthropic
_Function = TypeVar("_Function", bound=Callable[..., Any])


@attrs.frozen(kw_only=True, eq=False)
class Tool:
    """A function that a model may call, and what is known of it from its signature, its annotations and its docstring."""

    name: str
    text: str  # its docstring, without the indentation of its function
    parameters: tuple[Field, ...]
    returns: Shape  # what its result looks like as plain data
    is_async: bool
    function: Callable[..., Any]

    @property
    def summary(self) -> str:
        """What it does, in one line: the first paragraph of its docstring."""
        return " ".join("\n".join(sections(self.text)[0][1]).strip().split("\n\n", maxsplit=1)[0].split())

    @property
    def signature(self) -> str:
        """How it is called, as Python writes it: ``search(query: str, limit: int = 10) -> list[Hit]``."""
        written = []
        for parameter in self.parameters:
            written += ["*"] if parameter.by_name and "*" not in written else []
            default = "" if parameter.required else f" = {parameter.default!r}"
            written.append(f"{parameter.name}: {parameter.shape.stub}{default}")
        return f"{self.name}({', '.join(written)}) -> {self.returns.stub}"

    @property
    def description(self) -> str:
        """What it does, for a model that reads its parameters elsewhere: the docstring without ``Args``."""
        kept = [lines for name, lines in sections(self.text) if name not in {"Args", "Arguments"}]
        return "\n".join(line for lines in kept for line in lines).strip()

    def stub(self) -> str:
        """Return the function as Python that a model reads."""
        text = self.text.replace('"""', "'''")
        text = f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'
        return f"def {self.signature}:\n{textwrap.indent(text, '    ')}"

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
        """Return the arguments by name, checked; defaults are left to the function. ``ToolArgumentError`` names a wrong one."""
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
                    bound[parameter.name] = parameter.shape.check(given[parameter.name], parameter.name)
                except ShapeError as error:
                    self._refuse(str(error), parameter.name)
            elif parameter.required:
                self._refuse(f"the argument {parameter.name} is missing", parameter.name)
        return bound

    def plain_result(self, value: object) -> Any:  # noqa: ANN401 (JSON data)
        """Return what the function gave as plain data; raises ``ToolDefinitionError`` where it cannot be made plain."""
        try:
            return plain(value)
        except (TypeError, ValueError) as error:
            raise ToolDefinitionError(str(error), tool=self.name, parameter="return") from None

    def _refuse(self, problem: str, parameter: str = "") -> NoReturn:
        raise ToolArgumentError(problem, tool=self.name, parameter=parameter, signature=self.signature)


class Toolbox:
    """Plain typed functions, offered to a model.

    From a function's signature and docstring come the Python stub that a model reads, its JSON schemas, and the check of its
    arguments. Registering is for one thread; calls may come from many.
    """

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, in the order in which they were registered; a live view."""
        return MappingProxyType(self._tools)

    def register(self, function: _Function, *, name: str | None = None) -> _Function:
        """Add a function, sync or async, and return it unchanged, so that this can be used as a decorator.

        It has an annotation for each parameter and for its result, and a docstring in Google's style: Args, Returns, Raises,
        Example. The model calls it by *name*, or else by its own. Raises ``ToolDefinitionError`` where name, signature or
        docstring does not tell a model how to call it, or the name is taken.
        """
        tool = _tool(function, name)
        known = self._records()
        if tool.name in self.tools:
            _refuse(tool.name, "", "a tool of this name is registered already")
        if any(known.get(record, text) != text for record, text in tool.records().items()):
            _refuse(tool.name, "", "two records that differ have the same name; rename one of the classes")
        self._tools[tool.name] = tool
        return function

    def stubs(self) -> str:
        """Return the tools as Python that a model reads: classes for the records, then a function each. O(size of the text)."""
        return "\n\n".join([*self._records().values(), *(tool.stub() for tool in self.tools.values())])

    def openai(self) -> list[dict[str, Any]]:
        """Return new dicts for OpenAI's chat completions: https://platform.openai.com/docs/guides/function-calling."""
        return [{"type": "function", "function": declared} for declared in self._declared("parameters")]

    def responses(self) -> list[dict[str, Any]]:
        """Return new dicts for OpenAI's Responses API: https://platform.openai.com/docs/api-reference/responses/create."""
        return [{"type": "function", **declared, "strict": False} for declared in self._declared("parameters")]

    def anthropic(self) -> list[dict[str, Any]]:
        """Return new dicts for Anthropic's messages: https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview."""
        return self._declared("input_schema")

    def mcp(self) -> list[dict[str, Any]]:
        """Return new dicts as an MCP server lists them: https://modelcontextprotocol.io/specification/2025-06-18/server/tools."""
        return self._declared("inputSchema")

    def get(self, name: str) -> Tool:
        """Return the tool of this name. Raises ``ToolNotFoundError`` if there is none."""
        if not isinstance(name, str):  # what a model wrote may be any JSON value
            raise ToolNotFoundError(shown(name))
        if (tool := (tools := self.tools).get(name)) is None:
            from difflib import get_close_matches  # noqa: PLC0415 (needed for this error alone)

            raise ToolNotFoundError(name, nearest=get_close_matches(name, tools))
        return tool

    def call(self, name: str, arguments: Mapping[str, object], *, positional: Sequence[object] = ()) -> Any:  # noqa: ANN401 (JSON data)
        """Run a tool with arguments by parameter, after those by position, and return its result as plain data.

        An async tool runs in an event loop of its own, and it is a RuntimeError if this thread runs one already. Raises
        ``ToolNotFoundError`` if there is no such tool, ``ToolArgumentError`` if the arguments are not the tool's,
        ``ToolDefinitionError`` if its result is no plain data, and whatever the function raises.
        """
        tool = self.get(name)
        if not tool.is_async:
            return tool.plain_result(tool.function(**tool.bind(positional, arguments)))
        import asyncio  # noqa: PLC0415 (46 ms, for async tools only)

        if runs_loop():
            message = f"{name} is async, and this thread runs an event loop: await acall instead"
            raise RuntimeError(message)
        return asyncio.run(self.acall(name, arguments, positional=positional))

    async def acall(self, name: str, arguments: Mapping[str, object], *, positional: Sequence[object] = ()) -> Any:  # noqa: ANN401 (JSON data)
        """Like ``call``; an async tool runs in the loop of the caller, any other in a thread."""
        import asyncio  # noqa: PLC0415 (a caller without a loop does not need it)

        tool = self.get(name)
        bound = tool.bind(positional, arguments)
        work = tool.function(**bound) if tool.is_async else asyncio.to_thread(tool.function, **bound)
        return tool.plain_result(await work)

    def _records(self) -> dict[str, str]:
        return {name: text for tool in self.tools.values() for name, text in tool.records().items()}

    def _declared(self, schema: str) -> list[dict[str, Any]]:
        """Return each tool with its JSON schema under this key."""
        return [{"name": tool.name, "description": tool.description, schema: tool.input_schema()} for tool in self.tools.values()]


def runs_loop() -> bool:
    """Tell whether this thread runs an event loop."""
    import asyncio  # noqa: PLC0415 (46 ms, for async tools only)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _tool(function: Callable[..., Any], name: str | None) -> Tool:
    target = _underlying(function)
    name = name or str(getattr(target, "__name__", ""))
    _check_name(name)
    try:
        hints = typing.get_type_hints(target, include_extras=True)
        signature = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        _refuse(name, "", f"its signature cannot be read: {error}")
    text = inspect.cleandoc(target.__doc__ or "")
    described = entries(text, "Args", "Arguments")
    tool = Tool(
        name=name,
        text=text,
        parameters=tuple(_parameter(name, one, hints, described) for one in signature.values()),
        returns=_shape(name, "return", hints),
        is_async=inspect.iscoroutinefunction(target),
        function=function,
    )
    if not tool.summary:
        _refuse(name, "", "it has no docstring; say in one line what it does")
    for documented in described:
        if documented not in signature:
            _refuse(name, documented, "the docstring describes it, and the signature does not have it")
    return tool


def _underlying(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (whatever holds the annotations)
    """Return the function that a partial, a method or an instance with ``__call__`` runs."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return inspect.unwrap(function)
    return type(function).__call__


def _check_name(name: str) -> None:
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name) or len(name) > _MAX_NAME_CHARS:
        _refuse(name, "", f"a tool's name is a Python name in ASCII of at most {_MAX_NAME_CHARS} characters")
    if name.startswith("_"):
        _refuse(name, "", "a tool's name does not begin with an underscore, as the model's code may not use such names")
    if name in MODULES or hasattr(builtins, name):
        _refuse(name, "", "the model's code knows this name already; give the tool another")


def _parameter(tool: str, found: inspect.Parameter, hints: Mapping[str, Any], described: Mapping[str, str]) -> Field:
    name = found.name
    if found.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        _refuse(tool, name, "a model is given no * or **; name each parameter")
    if found.kind is inspect.Parameter.POSITIONAL_ONLY:
        _refuse(tool, name, "it cannot be given by name; leave out the / of the signature")
    shape, required = _shape(tool, name, hints), found.default is inspect.Parameter.empty
    try:
        default = None if required else plain(shape.check(found.default, "its default"))
    except (ShapeError, TypeError) as error:
        _refuse(tool, name, str(error))
    return Field(
        name=name,
        shape=shape,
        required=required,
        description=described.get(name) or description_of(hints[name]),
        default=default,
        by_name=found.kind is inspect.Parameter.KEYWORD_ONLY,
    )


def _shape(tool: str, name: str, hints: Mapping[str, Any]) -> Shape:
    if name not in hints:
        _refuse(tool, name, "it has no annotation" + ("; -> None says that there is no result" if name == "return" else ""))
    try:
        return shape_of(hints[name], result=name == "return")
    except ShapeError as error:
        _refuse(tool, name, str(error))


def _refuse(tool: str, parameter: str, problem: str) -> NoReturn:
    raise ToolDefinitionError(problem, tool=tool, parameter=parameter) from None
