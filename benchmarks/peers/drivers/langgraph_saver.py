"""LangGraph: the messages of a thread in an ``SqliteSaver``, and ``trim_messages`` for the window."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from benchmarks.peers.drivers.langchain_messages import as_plain, trimmed
from benchmarks.peers.peer import SESSION, Message, Peer


class Driver(Peer):
    """Each append is an update of the graph's state: a checkpoint."""

    distributions = ("langgraph", "langgraph-checkpoint-sqlite")

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._connection = sqlite3.connect(directory / "checkpoints.sqlite", check_same_thread=False, timeout=30)
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda _: {"messages": []})
        graph.add_edge(START, "model")
        self._graph = graph.compile(checkpointer=SqliteSaver(self._connection))
        self._config: Any = {"configurable": {"thread_id": SESSION}}

    def native(self, message: Message, tokens: int) -> BaseMessage:
        del tokens
        return convert_to_messages([message])[0]

    def append(self, message: BaseMessage) -> None:
        self.extend([message])

    def extend(self, messages: Sequence[BaseMessage]) -> None:
        self._graph.update_state(self._config, {"messages": list(messages)}, as_node="model")

    def window(self) -> list[BaseMessage]:
        return trimmed(self._all())

    def plain(self, window: list[BaseMessage]) -> list[Message]:
        return as_plain(window)

    def read(self, first: int, count: int) -> list[BaseMessage]:
        return self._all()[first : first + count]

    def text(self, message: BaseMessage) -> str:
        return str(message.content or None)

    def texts(self) -> list[str]:
        return [self.text(message) for message in self._all()]

    def close(self) -> None:
        self._connection.close()

    def _all(self) -> list[BaseMessage]:
        return list(self._graph.get_state(self._config).values.get("messages", []))
