"""LangChain: a list of messages in memory; the option is ``trim`` (trim_messages) or ``summarise`` (SummarizationMiddleware)."""

from pathlib import Path
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import (
    BaseMessage,
    RemoveMessage,
    convert_to_messages,
    convert_to_openai_messages,
    trim_messages,
)
from langchain_core.messages.utils import count_tokens_approximately

from benchmarks.peers.peer import WINDOW_TOKENS, Message, Peer


class Driver(Peer):
    """Counts by its estimate; the model answers at once, with one sentence."""

    distributions = ("langchain", "langchain-core")
    keeps = False

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._messages: list[BaseMessage] = []
        model = FakeListChatModel(responses=["They spoke of orders, invoices and deliveries."])
        keep = ("tokens", WINDOW_TOKENS // 2)
        self._middleware = SummarizationMiddleware(model, trigger=("tokens", WINDOW_TOKENS), keep=keep)

    def native(self, message: Message, tokens: int) -> BaseMessage:
        del tokens
        return convert_to_messages([message])[0]

    def append(self, message: BaseMessage) -> None:
        self._messages.append(message)

    def window(self) -> list[BaseMessage]:
        if self.option == "trim":
            return trimmed(self._messages)
        update: Any = self._middleware.before_model({"messages": self._messages}, None)  # type: ignore[arg-type, typeddict-item]
        if update:
            self._messages = [message for message in update["messages"] if not isinstance(message, RemoveMessage)]
        return self._messages

    def plain(self, window: list[BaseMessage]) -> list[Message]:
        return as_plain(window)

    def read(self, first: int, count: int) -> list[BaseMessage]:
        if self.option == "summarise":
            reason = "a summary took the place of the old turns"
            raise LookupError(reason)
        return self._messages[first : first + count]

    def text(self, message: BaseMessage) -> str:
        return str(message.content or None)

    def texts(self) -> list[str]:
        return [self.text(message) for message in self._messages]


def trimmed(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Return the newest messages that fit, from a user's on."""
    options: Any = {"token_counter": count_tokens_approximately, "strategy": "last", "start_on": "human"}
    found: list[BaseMessage] = trim_messages(messages, max_tokens=WINDOW_TOKENS, **options)
    return found


def as_plain(window: list[BaseMessage]) -> list[Message]:
    """Return messages of LangChain in OpenAI's chat format."""
    plain: Any = convert_to_openai_messages(window)
    return list(plain)
