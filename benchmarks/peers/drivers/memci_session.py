"""memci: a session on files or in memory; the option is its store and durability, perhaps with a window, ``flush 28000``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.peer import SESSION, WINDOW_TOKENS, Message, Peer
from memci.engine.engine import Engine


class Driver(Peer):
    """Full-text search is on, as it is by default."""

    distributions = ("memci",)
    searches = True

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        kept, _, window = option.partition(" ")
        store = "memory:" if kept == "memory" else f"file:{directory}"
        config = {"budget": {"window": int(window or WINDOW_TOKENS), "reserve": 0}, "on_conflict": "retry"}
        self.keeps = kept != "memory"  # type: ignore[misc]
        self._engine = Engine(store, {**config, **({"durability": kept} if self.keeps else {})})
        self._session = self._engine.session(SESSION)

    def append(self, message: Message) -> None:
        self._session.append(message)

    def extend(self, messages: Sequence[Message]) -> None:
        self._session.extend(messages)

    def window(self) -> Any:
        return self._session.window()

    def plain(self, window: Any) -> list[Message]:
        return list(window.messages)

    def read(self, first: int, count: int) -> list[Message]:
        return self._session.page(f"usr-{1 + first // count}").messages

    def search(self, words: str) -> Sequence[object]:
        return self._session.search(words)

    def texts(self) -> list[str]:
        return [message["content"] for message in self._session.messages()]

    def close(self) -> None:
        self._engine.close()
