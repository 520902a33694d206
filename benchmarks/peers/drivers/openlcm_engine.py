"""OpenLCM: an engine that stores messages in an SQLite file and summarises, with a function that answers at once."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openlcm import LCMConfig, LCMEngine

from benchmarks.peers.peer import SESSION, WINDOW_TOKENS, Message, Peer

_NEWEST = 32
_CHUNK_TOKENS = 2_000


class Driver(Peer):
    """The application holds the messages that the engine gives back; they are stored when the next window is made."""

    distributions = ("openlcm",)
    searches = True

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._loop = asyncio.new_event_loop()
        config = LCMConfig(fresh_tail_count=_NEWEST, leaf_chunk_tokens=_CHUNK_TOKENS)
        file = directory / "messages.sqlite"
        self._engine = LCMEngine(summarize_fn=_summary, config=config, db_path=file)
        self._engine.bind_session(SESSION, context_length=WINDOW_TOKENS)
        self._store = self._engine._store
        self._messages = [self._store.to_openai_msg(row) for row in self._store.get_session_tail(SESSION, _NEWEST)]

    def append(self, message: Message) -> None:
        self._messages.append(message)

    def extend(self, messages: Sequence[Message]) -> None:
        self._messages += messages
        self.window()

    def window(self) -> list[Message]:
        self._messages = self._loop.run_until_complete(self._engine.compress(self._messages))
        return self._messages

    def read(self, first: int, count: int) -> list[Message]:
        rows = self._store.get_range(SESSION, first + 1, first + count)
        return [self._store.to_openai_msg(row) for row in rows]

    def text(self, message: Message) -> str:
        return str(message.get("content") or None)

    def search(self, words: str) -> Sequence[object]:
        return list(self._store.search(words, SESSION, 10))

    def texts(self) -> list[str]:
        return [self.text(row) for row in self._store.get_session_messages(SESSION, 1_000_000)]

    def close(self) -> None:
        self._store.close()
        self._loop.close()


def _summary(prompt: str, max_tokens: int) -> Any:
    del prompt, max_tokens
    return "They spoke of orders, invoices and deliveries."
