"""OpenAI Agents SDK: an ``SQLiteSession`` in a file; the option is ``limit``, for the newest items only, or ``all``."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from agents import SQLiteSession

from benchmarks.peers.peer import SESSION, WINDOW_MESSAGES, Message, Peer


class Driver(Peer):
    """An item is a message of the Responses API; the limit counts items."""

    distributions = ("openai-agents",)

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._loop = asyncio.new_event_loop()
        self._session = SQLiteSession(SESSION, directory / "items.sqlite")
        self._limit = WINDOW_MESSAGES if option == "limit" else None

    def native(self, message: Message, tokens: int) -> list[Message]:
        del tokens
        return list(as_items(message))

    def append(self, message: list[Message]) -> None:
        self._run(self._session.add_items(message))

    def extend(self, messages: Sequence[list[Message]]) -> None:
        self._run(self._session.add_items([item for items in messages for item in items]))

    def window(self) -> Any:
        return self._run(self._session.get_items(self._limit))

    def plain(self, window: list[Message]) -> list[Message]:
        return [as_message(item) for item in window]

    def read(self, first: int, count: int) -> list[Message]:
        return list(self._run(self._session.get_items())[first : first + count])

    def text(self, message: Message) -> str:
        return str(as_message(message)["content"])

    def texts(self) -> list[str]:
        return [self.text(item) for item in self._run(self._session.get_items())]

    def close(self) -> None:
        self._session.close()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)


def as_items(message: Message) -> list[Message]:
    """Return a message of the chat API as items of the Responses API."""
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    calls = message.get("tool_calls", [])
    if not calls:
        return [message]
    return [
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
        }
        for call in calls
    ]


def as_message(item: Message) -> Message:
    """Return an item of the Responses API as a message of the chat API."""
    if item.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
    if item.get("type") == "function_call":
        function = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return item
