"""One table of SQLite, with a write-ahead log: the option is ``synchronous``, or ``FTS5`` for NORMAL with a full-text index.

Role and content have columns of their own, and what else a message holds is JSON: the cheapest way to keep all of it.
"""

import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import REPLY_TOKENS, WINDOW_TOKENS, Message, Peer

_WORD = re.compile(r"\w+")


class Driver(Peer):
    """The newest messages that fit; how many tokens one has is known beforehand. Turns are indexed once the next one begins."""

    def __init__(self, directory: Path, option: str) -> None:
        super().__init__(directory, option)
        self.searches = option == "FTS5"
        self._connection = sqlite3.connect(directory / "messages.sqlite", isolation_level=None, timeout=30)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'NORMAL' if self.searches else option}")
        columns = "id INTEGER PRIMARY KEY, tokens INTEGER, role TEXT, content TEXT, rest TEXT"
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS message ({columns})")
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
        rows = self._connection.execute("SELECT tokens, role, content, rest FROM message ORDER BY id DESC")
        for tokens, *row in rows:
            left -= tokens
            if left < 0:
                break
            found.append(_message(*row))
        return found[::-1]

    def read(self, first: int, count: int) -> list[Message]:
        rows = self._connection.execute(
            "SELECT role, content, rest FROM message WHERE id BETWEEN ? AND ? ORDER BY id", (first + 1, first + count)
        )
        return [_message(*row) for row in rows]

    def search(self, words: str) -> Sequence[object]:
        query = " OR ".join(f'"{word}"' for word in _WORD.findall(words))
        return self._connection.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10", (query,)).fetchall()

    def texts(self) -> list[str]:
        return [content for (content,) in self._connection.execute("SELECT content FROM message ORDER BY id")]

    def close(self) -> None:
        self._connection.close()

    def _insert(self, message: tuple[Message, int]) -> None:
        said, tokens = message
        if self.searches and said["role"] == "user":
            self._index()
        rest = {key: value for key, value in said.items() if key not in ("role", "content")}
        row = (tokens, said["role"], said["content"], json.dumps(rest) if rest else None)
        self._connection.execute("INSERT INTO message (tokens, role, content, rest) VALUES (?, ?, ?, ?)", row)

    def _index(self) -> None:
        """Index the last turn, under the number of its last message."""
        (last,) = self._connection.execute("SELECT rowid FROM words ORDER BY rowid DESC LIMIT 1").fetchone() or (0,)
        turn = self._connection.execute("SELECT id, content FROM message WHERE id > ? ORDER BY id", (last,)).fetchall()
        if turn:
            text = "\n".join(content for _, content in turn if content)
            self._connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (turn[-1][0], text))


def _message(role: str, content: str | None, rest: str | None) -> Message:
    message = {"role": role, "content": content}
    return message | json.loads(rest) if rest else message
