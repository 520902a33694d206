"""Tools as OpenAI, Anthropic and MCP want them declared."""

from typing import Any, Literal, NotRequired, TypedDict

import pytest

from memci.attp.toolbox import Toolbox
from tests.attp.test_toolbox import Kind


class Range(TypedDict):
    """Entries.

    Attributes:
        first: The first entry.
    """

    first: int
    last: NotRequired[int]


def find(  # noqa: D417, PLR0913 (one parameter for each kind, most of them without a description)
    query: str,
    *,
    kinds: set[Kind] = frozenset(),  # type: ignore[assignment]
    span: Range | None = None,
    pair: tuple[int, float] = (1, 2.5),
    order: Literal["new", "old", 1] = "new",
    extra: dict[str, Any] | None = None,
) -> list[str]:
    """Find pages.

    Args:
        query: Words to look for.
        order: Which first.
    """
    return [query, str((kinds, span, pair, order, extra))]


SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Words to look for."},
        "kinds": {"type": "array", "items": {"type": "string", "enum": ["user", "tool"]}, "uniqueItems": True, "default": []},
        "span": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"first": {"type": "integer", "description": "The first entry."}, "last": {"type": "integer"}},
                    "required": ["first"],
                    "additionalProperties": False,
                },
                {"type": "null"},
            ],
            "default": None,
        },
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "number"}],
            "minItems": 2,
            "maxItems": 2,
            "default": [1, 2.5],
        },
        "order": {"enum": ["new", "old", 1], "description": "Which first.", "default": "new"},
        "extra": {"anyOf": [{"type": "object", "additionalProperties": {}}, {"type": "null"}], "default": None},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.fixture
def toolbox() -> Toolbox:
    made = Toolbox()
    made.register(find)
    return made


def test_openai_form(toolbox: Toolbox) -> None:
    """Chat completions take functions with parameters."""
    function = {"name": "find", "description": "Find pages.", "parameters": SCHEMA}
    assert [{"type": "function", "function": function}] == toolbox.openai()


def test_anthropic_form(toolbox: Toolbox) -> None:
    """Messages take tools with an input schema."""
    assert [{"name": "find", "description": "Find pages.", "input_schema": SCHEMA}] == toolbox.anthropic()


def test_mcp_form(toolbox: Toolbox) -> None:
    """An MCP server lists tools with an input schema."""
    assert [{"name": "find", "description": "Find pages.", "inputSchema": SCHEMA}] == toolbox.mcp()


def test_schemas_are_new_each_time(toolbox: Toolbox) -> None:
    """Whoever changes what was returned changes nothing here."""
    toolbox.openai()[0]["function"]["parameters"]["properties"]["pair"]["default"].append(3)
    toolbox.openai()[0]["function"]["parameters"]["properties"].clear()
    assert SCHEMA == toolbox.tools["find"].input_schema()
