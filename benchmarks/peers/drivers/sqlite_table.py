"""One table of SQLite, with a write-ahead log: the option is ``synchronous``, or ``FTS5`` for NORMAL with a full-text index."""

import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import REPLY_TOKENS, WINDOW_TOKENS, Message, Peer

_WORD = re.compile(r"\w+")


class Driver(Peer):
    """The newest messages that fit; how many tokens one has is known beforehand."""

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self.searches = option == "FTS5"
        self._connection = sqlite3.connect(directory / "messages.sqlite", isolation_level=None, timeout=30)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'NORMAL' if self.searches else option}")
        self._connection.execute("CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, tokens INTEGER, body TEXT)")
        if self.searches:
            self._connection.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content = '', tokenize = 'porter')"
            )

    def native(self, message: Message, tokens: int) -> tuple[Message, int]:
        return message, tokens

    def append(self, message: tuple[Message, int]) -> None:
        if not self.searches:
            self._insert(message)
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._insert(message)
        self._connection.execute("COMMIT")

    def extend(self, messages: Sequence[tuple[Message, int]]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for message in messages:
            self._insert(message)
        self._connection.execute("COMMIT")

    def window(self) -> list[Message]:
        found, left = [], WINDOW_TOKENS - REPLY_TOKENS
        for tokens, body in self._connection.execute("SELECT tokens, body FROM message ORDER BY id DESC"):
            left -= tokens
            if left < 0:
                break
            found.append(json.loads(body))
        return found[::-1]

    def read(self, first: int, count: int) -> list[Message]:
        rows = self._connection.execute(
            "SELECT body FROM message WHERE id BETWEEN ? AND ? ORDER BY id", (first + 1, first + count)
        )
        return [json.loads(body) for (body,) in rows]

    def search(self, words: str) -> Sequence[object]:
        query = " OR ".join(f'"{word}"' for word in _WORD.findall(words))
        return self._connection.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10", (query,)).fetchall()

    def texts(self) -> list[str]:
        return [json.loads(body)["content"] for (body,) in self._connection.execute("SELECT body FROM message ORDER BY id")]

    def close(self) -> None:
        self._connection.close()

    def _insert(self, message: tuple[Message, int]) -> None:
        said, tokens = message
        row = self._connection.execute("INSERT INTO message (tokens, body) VALUES (?, ?)", (tokens, json.dumps(said)))
        if self.searches:
            self._connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row.lastrowid, said["content"]))
