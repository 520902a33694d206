"""A list in memory, walked back from its end: the option is how a message is counted, ``characters`` or ``o200k_base``."""

import json
from pathlib import Path

from benchmarks.peers.peer import REPLY_TOKENS, WINDOW_TOKENS, Message, Peer
from memci.messages.tokens.counter import get_counter

_FRAMING = 4  # tokens around the text of a message, as the estimate takes them


class Driver(Peer):
    """Counts each message once, when it comes."""

    keeps = False

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self._messages: list[tuple[Message, int]] = []
        counter = get_counter(option) if option != "characters" else None
        self._count = counter.count if counter else lambda text: len(text) // 4

    def append(self, message: Message) -> None:
        text = message["content"] or json.dumps(message["tool_calls"])
        self._messages.append((message, self._count(text) + _FRAMING))

    def window(self) -> list[Message]:
        found, left = [], WINDOW_TOKENS - REPLY_TOKENS
        for message, tokens in reversed(self._messages):
            left -= tokens
            if left < 0:
                break
            found.append(message)
        return found[::-1]

    def read(self, first: int, count: int) -> list[Message]:
        return [message for message, _ in self._messages[first : first + count]]

    def texts(self) -> list[str]:
        return [message["content"] for message, _ in self._messages]
