"""Pydantic AI: the history as a list in memory, and the newest of it by a slice, as a history processor returns it."""

import json
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

from benchmarks.peers.peer import WINDOW_MESSAGES, Message, Peer


class Driver(Peer):
    """Counts messages."""

    distributions = ("pydantic-ai-slim",)
    keeps = False

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._messages: list[Any] = []

    def native(self, message: Message, tokens: int) -> Any:
        del tokens
        if message["role"] == "tool":
            return ModelRequest([ToolReturnPart("look_up", message["content"], message["tool_call_id"])])
        if message["role"] == "user":
            return ModelRequest([UserPromptPart(message["content"])])
        calls = [
            ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
            for call in message.get("tool_calls", [])
        ]
        return ModelResponse(calls or [TextPart(message["content"])])

    def append(self, message: Any) -> None:
        self._messages.append(message)

    def window(self) -> list[Any]:
        return self._messages[-WINDOW_MESSAGES:]

    def plain(self, window: list[Any]) -> list[Message]:
        return [as_plain(message) for message in window]

    def read(self, first: int, count: int) -> list[Any]:
        return self._messages[first : first + count]

    def text(self, message: Any) -> str:
        return str(as_plain(message)["content"])

    def texts(self) -> list[str]:
        return [self.text(message) for message in self._messages]


def as_plain(message: Any) -> Message:
    """Return a message of one part in OpenAI's chat format."""
    (part,) = message.parts
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.content}
    if isinstance(part, ToolCallPart):
        arguments = part.args if isinstance(part.args, str) else json.dumps(part.args)
        call = {"id": part.tool_call_id, "type": "function", "function": {"name": part.tool_name, "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"role": "user" if isinstance(part, UserPromptPart) else "assistant", "content": part.content}
