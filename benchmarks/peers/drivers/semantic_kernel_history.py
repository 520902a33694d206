"""Semantic Kernel: a chat history in memory that its truncating reducer cuts."""

import asyncio
import json
from pathlib import Path
from typing import Any

from semantic_kernel.contents import (
    AuthorRole,
    ChatHistoryTruncationReducer,
    ChatMessageContent,
    FunctionCallContent,
    FunctionResultContent,
)

from benchmarks.peers.peer import WINDOW_MESSAGES, Message, Peer


class Driver(Peer):
    """Counts messages; what was cut is gone."""

    distributions = ("semantic-kernel",)
    keeps = False

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._loop = asyncio.new_event_loop()
        self._history = ChatHistoryTruncationReducer(target_count=WINDOW_MESSAGES)

    def native(self, message: Message, tokens: int) -> ChatMessageContent:
        del tokens
        role = AuthorRole(message["role"])
        if message["role"] == "tool":
            result = FunctionResultContent(id=message["tool_call_id"], name="look_up", result=message["content"])
            return ChatMessageContent(role=role, items=[result])
        calls: Any = [
            FunctionCallContent(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
            for call in message.get("tool_calls", [])
        ]
        return ChatMessageContent(role=role, items=calls) if calls else ChatMessageContent(role=role, content=message["content"])

    def append(self, message: ChatMessageContent) -> None:
        self._history.add_message(message)

    def window(self) -> list[ChatMessageContent]:
        self._loop.run_until_complete(self._history.reduce())
        return list(self._history.messages)

    def plain(self, window: list[ChatMessageContent]) -> list[Message]:
        return [as_plain(message) for message in window]

    def read(self, first: int, count: int) -> list[ChatMessageContent]:
        del first, count
        reason = "old messages were cut"
        raise LookupError(reason)

    def texts(self) -> list[str]:
        return [str(as_plain(message)["content"]) for message in self._history.messages]

    def close(self) -> None:
        self._loop.close()


def as_plain(message: ChatMessageContent) -> Message:
    """Return a message in OpenAI's chat format."""
    (item, *_) = message.items
    if isinstance(item, FunctionResultContent):
        return {"role": "tool", "tool_call_id": item.id, "content": str(item.result)}
    if isinstance(item, FunctionCallContent):
        arguments = item.arguments if isinstance(item.arguments, str) else json.dumps(item.arguments)
        call = {"id": item.id, "type": "function", "function": {"name": item.name, "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"role": message.role.value, "content": message.content}
