"""Strands: an agent with a session in files, and its sliding window."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.hooks import MessageAddedEvent
from strands.session.file_session_manager import FileSessionManager

from benchmarks.peers.peer import SESSION, WINDOW_MESSAGES, Message, Peer

_AGENT = "default"


class Driver(Peer):
    """The window counts messages; no model is called."""

    distributions = ("strands-agents",)

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._store = FileSessionManager(SESSION, storage_dir=str(directory))
        window = SlidingWindowConversationManager(window_size=WINDOW_MESSAGES)
        self._agent = Agent(
            model=_NoModel(), agent_id=_AGENT, session_manager=self._store, conversation_manager=window, callback_handler=None
        )

    def native(self, message: Message, tokens: int) -> Any:
        del tokens
        return as_message(message)

    def append(self, message: Any) -> None:
        self._agent.messages.append(message)
        self._agent.hooks.invoke_callbacks(MessageAddedEvent(agent=self._agent, message=message))

    def extend(self, messages: Sequence[Any]) -> None:
        super().extend(messages)
        self.window()  # an append looks at all messages that the agent still holds

    def window(self) -> Any:
        self._agent.conversation_manager.apply_management(self._agent)
        return self._agent.messages

    def plain(self, window: Any) -> list[Message]:
        return [as_plain(message) for message in window]

    def read(self, first: int, count: int) -> list[Any]:
        found = [self._store.read_message(SESSION, _AGENT, number) for number in range(first, first + count)]
        return [record.to_message() for record in found if record is not None]

    def text(self, message: Any) -> str:
        return str(as_plain(message)["content"])

    def texts(self) -> list[str]:
        return [self.text(record.to_message()) for record in self._store.list_messages(SESSION, _AGENT)]


class _NoModel:
    """Stands where an agent has its model."""

    stateful = False

    def get_config(self) -> dict[str, Any]:
        return {}


def as_message(message: Message) -> Message:
    """Return a message of the chat API as one of Strands."""
    if message["role"] == "tool":
        result = {"toolUseId": message["tool_call_id"], "status": "success", "content": [{"text": message["content"]}]}
        return {"role": "user", "content": [{"toolResult": result}]}
    blocks = [{"text": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", []):
        arguments = json.loads(call["function"]["arguments"])
        blocks.append({"toolUse": {"toolUseId": call["id"], "name": call["function"]["name"], "input": arguments}})
    return {"role": message["role"], "content": blocks}


def as_plain(message: Message) -> Message:
    """Return a message of Strands as one of the chat API."""
    (block, *_) = message["content"]
    if "toolResult" in block:
        text = block["toolResult"]["content"][0].get("text", "")
        return {"role": "tool", "tool_call_id": block["toolResult"]["toolUseId"], "content": text}
    if "toolUse" in block:
        use = block["toolUse"]
        call = {
            "id": use["toolUseId"],
            "type": "function",
            "function": {"name": use["name"], "arguments": json.dumps(use["input"])},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"role": message["role"], "content": block["text"]}
