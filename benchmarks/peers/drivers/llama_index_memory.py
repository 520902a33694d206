"""LlamaIndex: a ``Memory`` with its messages in an SQLite file."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory

from benchmarks.peers.peer import SESSION, WINDOW_TOKENS, Message, Peer


class Driver(Peer):
    """The queue may take all of the window; it counts with its own tokenizer, cl100k_base."""

    distributions = ("llama-index-core",)

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._loop = asyncio.new_event_loop()
        self._memory = Memory.from_defaults(
            session_id=SESSION,
            token_limit=WINDOW_TOKENS,
            token_flush_size=WINDOW_TOKENS // 10,
            chat_history_token_ratio=1.0,
            async_database_uri=f"sqlite+aiosqlite:///{directory}/messages.sqlite",
        )

    def native(self, message: Message, tokens: int) -> ChatMessage:
        del tokens
        more = {key: value for key, value in message.items() if key not in ("role", "content")}
        return ChatMessage(role=message["role"], content=message["content"], additional_kwargs=more)

    def append(self, message: ChatMessage) -> None:
        self._run(self._memory.aput(message))

    def extend(self, messages: Sequence[ChatMessage]) -> None:
        self._run(self._memory.aput_messages(list(messages)))

    def window(self) -> Any:
        return self._run(self._memory.aget())

    def plain(self, window: Any) -> list[Message]:
        return [{"role": message.role.value, "content": message.content, **message.additional_kwargs} for message in window]

    def read(self, first: int, count: int) -> list[ChatMessage]:
        return list(self._run(self._memory.aget_all())[first : first + count])

    def text(self, message: ChatMessage) -> str:
        return str(message.content)

    def texts(self) -> list[str]:
        return [self.text(message) for message in self._run(self._memory.aget_all())]

    def close(self) -> None:
        engine = self._memory.sql_store._async_engine
        if engine is not None:
            self._run(engine.dispose())
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)
