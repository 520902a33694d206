"""Tools as the providers' interfaces want them declared: one function each."""

from collections.abc import Iterable
from typing import Any

from memci.attp.tool import Tool


def openai(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return the value of ``tools`` for OpenAI's chat completions.

    https://platform.openai.com/docs/guides/function-calling
    """
    return [
        {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema()}}
        for tool in tools
    ]


def responses(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return the value of ``tools`` for OpenAI's Responses API.

    https://platform.openai.com/docs/api-reference/responses/create
    """
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema(),
            "strict": False,
        }
        for tool in tools
    ]


def anthropic(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return the value of ``tools`` for Anthropic's messages.

    https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview
    """
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.input_schema()} for tool in tools]


def mcp(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return the list that an MCP server gives for ``tools/list``.

    https://modelcontextprotocol.io/specification/2025-06-18/server/tools
    """
    return [{"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema()} for tool in tools]
