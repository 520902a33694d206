"""The tools that a model may call, in every form in which they are offered to it."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from memci.attp.tool import Tool, make_tool
from memci.errors import ToolDefinitionError, ToolNotFoundError, shown

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Toolbox:
    """Plain typed functions, offered to a model.

    From a function's signature and docstring come the Python stub that a model reads, its JSON schemas, and the check of its
    arguments::

        toolbox = Toolbox()

        @toolbox.register
        def order_status(order: str) -> str:
            \"\"\"Tell where an order is, by its number, such as A-17.\"\"\"
            return database[order]

    Registering is for one thread; calls may come from many.
    """

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, in the order in which they were registered; a live view."""
        return MappingProxyType(self._tools)

    def register(self, function: _Function, *, name: str | None = None) -> _Function:
        """Add a function, sync or async, and return it unchanged, so that this can be used as a decorator.

        Args:
            function: Has an annotation for each parameter and for its result, and a docstring in Google's style: Args, Returns,
                Raises, Example.
            name: What the model calls it; the function's own name by default.

        Raises:
            ToolDefinitionError: Name, signature or docstring does not tell a model how to call it, or the name is taken.
        """
        tool = make_tool(function, name=name)
        if tool.name in self._tools:
            problem = "a tool of this name is registered already"
            raise ToolDefinitionError(problem, tool=tool.name)
        known = self._records()
        if any(known.get(record, text) != text for record, text in tool.records().items()):
            problem = "two records that differ have the same name; rename one of the classes"
            raise ToolDefinitionError(problem, tool=tool.name)
        self._tools[tool.name] = tool
        return function

    def stubs(self) -> str:
        """Return the tools as Python that a model reads: classes for the records, then a function each. O(size of the text)."""
        return "\n\n".join([*self._records().values(), *map(_tool_stub, self._tools.values())])

    def openai(self) -> list[dict[str, Any]]:
        """Return the tools as OpenAI's chat completions want them; new dicts.

        https://platform.openai.com/docs/guides/function-calling
        """
        return [{"type": "function", "function": declared} for declared in self._declared("parameters")]

    def responses(self) -> list[dict[str, Any]]:
        """Return the tools as OpenAI's Responses API wants them; new dicts.

        https://platform.openai.com/docs/api-reference/responses/create
        """
        return [{"type": "function", **declared, "strict": False} for declared in self._declared("parameters")]

    def anthropic(self) -> list[dict[str, Any]]:
        """Return the tools as Anthropic's messages want them; new dicts.

        https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview
        """
        return self._declared("input_schema")

    def mcp(self) -> list[dict[str, Any]]:
        """Return the tools as an MCP server lists them; new dicts.

        https://modelcontextprotocol.io/specification/2025-06-18/server/tools
        """
        return self._declared("inputSchema")

    def get(self, name: str) -> Tool:
        """Return the tool of this name.

        Raises:
            ToolNotFoundError: There is none.
        """
        if not isinstance(name, str):  # what a model wrote may be any JSON value
            raise ToolNotFoundError(shown(name))
        if name not in self._tools:
            from difflib import get_close_matches  # noqa: PLC0415 (needed for this error alone)

            raise ToolNotFoundError(name, nearest=get_close_matches(name, self._tools))
        return self._tools[name]

    def call(self, name: str, arguments: Mapping[str, object], *, positional: Sequence[object] = ()) -> Any:  # noqa: ANN401 (JSON data)
        """Run a tool and return its result as plain data. An async tool runs in an event loop of its own.

        Args:
            name: The tool's name.
            arguments: By parameter.
            positional: Arguments by position, before those.

        Raises:
            ToolNotFoundError: There is no such tool.
            ToolArgumentError: The arguments are not those of the tool.
            ToolDefinitionError: Its result is no plain data.
            RuntimeError: The tool is async and this thread runs an event loop.
            Exception: Whatever the function raises.
        """
        tool = self.get(name)
        bound = tool.bind(positional, arguments)
        if not tool.is_async:
            return tool.plain_result(tool.function(**bound))
        import asyncio  # noqa: PLC0415 (46 ms, for async tools only)

        if runs_loop():
            message = f"{name} is async, and this thread runs an event loop: await acall instead"
            raise RuntimeError(message)
        return tool.plain_result(asyncio.run(tool.function(**bound)))

    async def acall(self, name: str, arguments: Mapping[str, object], *, positional: Sequence[object] = ()) -> Any:  # noqa: ANN401 (JSON data)
        """Like ``call``; an async tool runs in the loop of the caller, any other in a thread."""
        tool = self.get(name)
        bound = tool.bind(positional, arguments)
        if tool.is_async:
            return tool.plain_result(await tool.function(**bound))
        import asyncio  # noqa: PLC0415 (a caller without a loop does not need it)

        return tool.plain_result(await asyncio.to_thread(tool.function, **bound))

    def _records(self) -> dict[str, str]:
        return {name: text for tool in self._tools.values() for name, text in tool.records().items()}

    def _declared(self, schema: str) -> list[dict[str, Any]]:
        """Return each tool with its JSON schema under this key."""
        return [
            {"name": tool.name, "description": tool.description, schema: tool.input_schema()} for tool in self._tools.values()
        ]


def runs_loop() -> bool:
    """Tell whether this thread runs an event loop."""
    import asyncio  # noqa: PLC0415 (46 ms, for async tools only)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _tool_stub(tool: Tool) -> str:
    text = tool.text.replace('"""', "'''")
    text = f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'
    return f"def {tool.signature}:\n{textwrap.indent(text, '    ')}"
