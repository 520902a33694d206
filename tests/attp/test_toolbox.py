"""Functions become tools: what a model reads of them, how they are called, and which ones are refused."""

import asyncio
import dataclasses
import datetime as dt
import enum
import functools
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import attrs
import pytest

from memci.attp.toolbox import Tool, Toolbox
from memci.errors import ToolDefinitionError, ToolNotFoundError


class Kind(enum.Enum):
    USER = "user"
    TOOL = "tool"


class Range(TypedDict):
    """Entries of a page.

    Attributes:
        first: The first entry, from 1.
    """

    first: int
    last: NotRequired[int]


@attrs.frozen
class Hit:
    """A page that was found.

    Attributes:
        index: Such as usr-12.
    """

    index: str
    score: float
    _own: int = 0


@dataclasses.dataclass
class Receipt:
    hits: list[Hit]
    at: dt.date


def search(query: str, limit: int = 10, *, kind: Kind = Kind.USER, span: Range | None = None) -> list[Hit]:  # noqa: D417 (two have none)
    '''Find pages by their words.

    The best first; """quotes""" are fine.

    Args:
        query (str): Words to look for,
            in any language.
        limit: How many.

    Returns:
        Up to ``limit`` hits.

    Raises:
        ValueError: The limit is negative.

    Example:
        hits = search("march", limit=3)
    '''
    assert isinstance(kind, Kind)
    if limit < 0:
        message = "negative"
        raise ValueError(message)
    return [Hit(f"{query}-{place}", 1.5 + (span or {"first": 0})["first"]) for place in range(limit)]


async def ping(text: str) -> str:
    """Give the text back."""
    await asyncio.sleep(0)
    return text


STUBS = '''\
class Range(TypedDict):
    first: int  # The first entry, from 1.
    last: NotRequired[int]

class Hit(TypedDict):
    index: str  # Such as usr-12.
    score: float

def search(query: str, limit: int = 10, *, kind: Literal['user', 'tool'] = 'user', span: Range | None = None) -> list[Hit]:
    """Find pages by their words.

    The best first; \'\'\'quotes\'\'\' are fine.

    Args:
        query (str): Words to look for,
            in any language.
        limit: How many.

    Returns:
        Up to ``limit`` hits.

    Raises:
        ValueError: The limit is negative.

    Example:
        hits = search("march", limit=3)
    """

def ping(text: str) -> str:
    """Give the text back."""'''


@pytest.fixture
def toolbox() -> Toolbox:
    made = Toolbox()
    made.register(search)
    made.register(ping)
    return made


def test_registering_returns_the_function(toolbox: Toolbox) -> None:
    """``register`` can be used as a decorator: the name still means the function."""
    assert search is toolbox.register(search, name="find_pages")
    assert ["search", "ping", "find_pages"] == list(toolbox.tools)
    with pytest.raises(TypeError):
        toolbox.tools["other"] = toolbox.tools["search"]  # type: ignore[index]


def test_stubs_are_python_that_a_model_reads(toolbox: Toolbox) -> None:
    """Each record is a class, once; each tool a function with its docstring; an async one is called like any other."""
    toolbox.register(functools.partial(search, limit=2), name="find_two")
    assert STUBS == toolbox.stubs().split("\n\ndef find_two")[0]
    compile(toolbox.stubs(), "stubs", "exec")


def test_tool_says_what_it_is(toolbox: Toolbox) -> None:
    """A tool's facts come from signature and docstring."""
    tool = toolbox.tools["search"]
    assert isinstance(tool, Tool)
    assert "Find pages by their words." == tool.summary
    assert ["query", "limit", "kind", "span"] == [parameter.name for parameter in tool.parameters]
    assert [True, False, False, False] == [parameter.required for parameter in tool.parameters]
    assert "Words to look for, in any language." == tool.parameters[0].description
    assert (False, True) == (tool.is_async, toolbox.tools["ping"].is_async)
    assert "list[Hit]" == tool.returns.stub
    assert "Args" not in tool.description
    assert tool.description.startswith("Find pages by their words.\n\nThe best first;")
    assert tool.description.endswith('Example:\n    hits = search("march", limit=3)')


def test_result_is_plain_data(toolbox: Toolbox) -> None:
    """Instances become dicts of their public fields."""
    assert [{"index": "march-0", "score": 2.5}] == toolbox.call("search", {"query": "march", "limit": 1, "span": {"first": 1}})
    assert [{"index": "a-0", "score": 1.5}] == toolbox.call("search", {"limit": 1}, positional=["a"])


def test_result_of_every_kind_becomes_plain() -> None:
    """Dataclasses, dates, enums, tuples and sets have a plain form."""
    toolbox = Toolbox()

    @toolbox.register
    def receipt() -> Receipt:
        """Tell what was done."""
        return Receipt([Hit("usr-1", 1.0)], dt.date(2026, 11, 22))

    @toolbox.register
    def many() -> dict[str, Any]:
        """Tell all sorts of things."""
        return {"kind": Kind.TOOL, "pair": (1, None), "set": {3, 1, 2}, "keys": {1: True}}

    assert {"hits": [{"index": "usr-1", "score": 1.0}], "at": "2026-11-22"} == toolbox.call("receipt", {})
    assert {"kind": "tool", "pair": [1, None], "set": [1, 2, 3], "keys": {"1": True}} == toolbox.call("many", {})
    assert "class Receipt(TypedDict):\n    hits: list[Hit]\n    at: str" in toolbox.stubs()


@pytest.mark.parametrize("result", [object(), b"bytes", [iter(())], {object(): 1}], ids=["object", "bytes", "iterator", "key"])
def test_result_that_is_no_data_is_named(result: object) -> None:
    """A result that cannot become plain data is the tool's fault, and says so."""
    toolbox = Toolbox()

    @toolbox.register
    def broken() -> Any:  # noqa: ANN401 (what is tested)
        """Give back what is no data."""
        return result

    with pytest.raises(ToolDefinitionError, match=r"^broken: return: .* is no plain data$"):
        toolbox.call("broken", {})


def test_result_that_holds_itself_is_named() -> None:
    """An endless result is refused, not followed."""
    toolbox = Toolbox()

    @toolbox.register
    def endless() -> list[Any]:
        """Give back a list that holds itself."""
        inner: list[Any] = []
        inner.append(inner)
        return inner

    with pytest.raises(ToolDefinitionError, match="deeper than 64"):
        toolbox.call("endless", {})


def test_error_of_a_tool_comes_through(toolbox: Toolbox) -> None:
    """What a function raises is raised, unchanged."""
    with pytest.raises(ValueError, match=r"^negative$"):
        toolbox.call("search", {"query": "a", "limit": -1})


def test_unknown_tool_names_its_neighbours(toolbox: Toolbox) -> None:
    """A misspelt name is answered with those that are alike."""
    with pytest.raises(ToolNotFoundError, match=r"did you mean search") as caught:
        toolbox.call("serch", {})
    assert ("serch", ("search",)) == (caught.value.name, caught.value.nearest)
    with pytest.raises(ToolNotFoundError, match=r"that the prompt describes"):
        toolbox.call("xyzzy", {})


@pytest.mark.parametrize("name", [None, 5, [], ["search"], {}])
def test_name_that_is_no_text_is_unknown(toolbox: Toolbox, name: Any) -> None:  # noqa: ANN401 (what a model may write)
    """A model may write any JSON value for a tool's name; no tool has it."""
    with pytest.raises(ToolNotFoundError, match="there is no tool"):
        toolbox.call(name, {})


def test_async_tool_runs_with_and_without_a_loop(toolbox: Toolbox) -> None:
    """``call`` runs an async tool in a loop of its own, ``acall`` in the caller's; a plain tool works in both."""

    async def both() -> list[Any]:
        return [await toolbox.acall("ping", {"text": "b"}), await toolbox.acall("search", {"limit": 0}, positional=["q"])]

    assert "a" == toolbox.call("ping", {"text": "a"})
    assert ["b", []] == asyncio.run(both())


def test_async_tool_is_not_called_within_a_loop(toolbox: Toolbox) -> None:
    """``call`` says what to use instead, where a loop runs already."""

    async def wrong() -> None:
        toolbox.call("ping", {"text": "a"})

    with pytest.raises(RuntimeError, match="await acall"):
        asyncio.run(wrong())


def test_methods_and_callables_are_tools() -> None:
    """A bound method and an instance with ``__call__`` can be registered."""

    class Shop:
        name = "corner"

        def order(self, number: int) -> str:
            """Order something."""
            return f"{self.name} {number}"

        async def __call__(self, number: int) -> int:
            """Count something."""
            return number + 1

    toolbox = Toolbox()
    toolbox.register(Shop().order)
    toolbox.register(Shop(), name="count")
    assert ["corner 3", 4] == [toolbox.call("order", {"number": 3}), toolbox.call("count", {"number": 3})]


def no_docstring(number: int) -> int:
    return number


def no_annotation(number) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001 (what is tested)
    """Lack an annotation."""
    return int(number)


def no_result(number: int):  # type: ignore[no-untyped-def]  # noqa: ANN201 (what is tested)
    """Lack an annotation."""
    return number


def star(*numbers: int) -> int:
    """Take any number."""
    return sum(numbers)


def by_position(number: int, /) -> int:
    """Take one by position."""
    return number


def bytes_in(raw: bytes) -> int:
    """Take bytes."""
    return len(raw)


def record_in(hit: Hit) -> str:
    """Take an instance."""
    return hit.index


def callback(function: Callable[[], int]) -> int:
    """Take a function."""
    return function()


def int_keys(table: dict[int, str]) -> int:
    """Take a dict with other keys."""
    return len(table)


def set_of_lists(table: set[tuple[int, ...]]) -> int:
    """Take a set of what JSON writes as lists."""
    return len(table)


def bytes_out() -> bytes:
    """Give bytes."""
    return b""


def wrong_default(number: int = None) -> int:  # type: ignore[assignment]  # noqa: RUF013 (what is tested)
    """Have a default of another type."""
    return number


def misspelt(number: int) -> int:  # noqa: D417 (what is tested)
    """Describe what is not there.

    Args:
        numbr: A number.
    """
    return number


def unknown_name(number: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821 (what is tested)
    """Name a type that is not there."""
    return int(number)


def float_choice(number: Literal[b"x"]) -> int:
    """Choose among what JSON has not."""
    return len(number)


class Tree(TypedDict):
    children: "list[Tree]"


def recursive(tree: Tree) -> int:
    """Take a tree."""
    return len(tree)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (no_docstring, "no_docstring: it has no docstring"),
        (no_annotation, "no_annotation: number: it has no annotation"),
        (no_result, "no_result: return: it has no annotation"),
        (star, "star: numbers: .* name each parameter"),
        (by_position, "by_position: number: it cannot be given by name"),
        (bytes_in, "bytes_in: raw: the type bytes is not supported; use str"),
        (record_in, "record_in: hit: the type Hit is not supported; .* TypedDict"),
        (callback, "callback: function: .*Callable.* is not supported"),
        (int_keys, "int_keys: table: a dict with keys of the type int"),
        (set_of_lists, "set_of_lists: table: a set of anything but"),
        (bytes_out, "bytes_out: return: the type bytes"),
        (wrong_default, "wrong_default: number: its default must be an integer, not None"),
        (misspelt, "misspelt: numbr: the docstring describes it"),
        (unknown_name, "unknown_name: its signature cannot be read: .*Nowhere"),
        (float_choice, "float_choice: number: a Literal of anything but"),
        (recursive, "recursive: tree: Tree holds itself"),
    ],
)
def test_function_that_says_too_little_is_refused(function: Callable[..., Any], problem: str) -> None:
    """Registering names the function, the parameter and what to change; nothing is registered."""
    toolbox = Toolbox()
    with pytest.raises(ToolDefinitionError, match=f"^{problem}"):
        toolbox.register(function)
    assert {} == toolbox.tools


@pytest.mark.parametrize("name", ["list", "print", "json", "class", "_hidden", "two words", "größe", "x" * 65, "lambda"])
def test_name_that_code_could_not_use_is_refused(name: str) -> None:
    """A tool's name is a Python name that means nothing else in the model's code."""
    with pytest.raises(ToolDefinitionError):
        Toolbox().register(ping, name=name)


def test_name_is_used_once(toolbox: Toolbox) -> None:
    """A second tool of the same name is refused, and the first stays."""
    with pytest.raises(ToolDefinitionError, match="registered already"):
        toolbox.register(ping, name="search")
    assert search is toolbox.tools["search"].function


def test_records_of_one_name_are_one_record(toolbox: Toolbox) -> None:
    """Two classes that a model would take for one are refused."""

    class Hit(TypedDict):
        page: str

    def look() -> Hit:
        """Look."""
        return {"page": "usr-1"}

    with pytest.raises(ToolDefinitionError, match="two records"):
        toolbox.register(look)


def test_annotated_text_describes_a_parameter() -> None:
    """The text of ``Annotated`` stands in for an entry of ``Args``."""
    toolbox = Toolbox()

    @toolbox.register
    def look(page: Annotated[str, "Such as usr-12."]) -> typing.Optional[str]:  # noqa: UP045 (both spellings are read)
        """Look at a page."""
        return page

    assert "Such as usr-12." == toolbox.tools["look"].parameters[0].description
    assert "look(page: str) -> str | None" == toolbox.tools["look"].signature
