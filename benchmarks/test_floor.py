"""What the same turn costs without memci: in a plain linked list, and in SQLite.

A turn appends two messages and selects the newest ones within the window's tokens. Token counts are known beforehand, nothing is
summarised, rendered or searchable.
"""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import process_time

import attrs
import pytest

from benchmarks import history
from benchmarks.bench import Bench

pytestmark = pytest.mark.benchmark(timer=process_time, disable_gc=True)

MESSAGE_TOKENS = 105
TURN_ROUND = 50


@attrs.define(eq=False)
class Link:
    """One link of a plain list."""

    message: dict[str, str]
    tokens: int
    previous: "Link | None"


class PlainList:
    """A linked list of messages, grown to some turns."""

    def __init__(self, messages: Iterator[dict[str, str]], turns: int) -> None:
        self._tail: Link | None = None
        for message in itertools.islice(messages, 2 * turns):
            self.append(message)

    def append(self, message: dict[str, str]) -> None:
        """Add a message at the end."""
        self._tail = Link(message, MESSAGE_TOKENS, self._tail)

    def window(self) -> list[dict[str, str]]:
        """Return the newest messages that fit, oldest first."""
        found = []
        left = history.WINDOW_TOKENS
        link = self._tail
        while link is not None and link.tokens <= left:
            found.append(link.message)
            left -= link.tokens
            link = link.previous
        return found[::-1]


class Table:
    """Messages in a table of SQLite, as many as some turns have."""

    def __init__(self, connection: sqlite3.Connection, messages: Iterator[dict[str, str]], turns: int) -> None:
        self._connection = connection
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, role TEXT, content TEXT, tokens INTEGER)")
        connection.execute("BEGIN")
        for message in itertools.islice(messages, 2 * turns):
            self.append(message)
        connection.execute("COMMIT")

    def append(self, message: dict[str, str]) -> None:
        """Insert a message, in a transaction of its own unless one is open."""
        row = (message["role"], message["content"], MESSAGE_TOKENS)
        self._connection.execute("INSERT INTO message (role, content, tokens) VALUES (?, ?, ?)", row)

    def window(self) -> list[dict[str, str]]:
        """Return the newest messages that fit, oldest first."""
        found = []
        left = history.WINDOW_TOKENS
        rows = self._connection.execute("SELECT role, content, tokens FROM message ORDER BY id DESC")
        for role, content, tokens in rows:
            left -= tokens
            if left < 0:
                break
            found.append({"role": role, "content": content})
        return found[::-1]


def take(store: PlainList | Table, messages: list[dict[str, str]]) -> None:
    """Take turns in: the user's message, a window, the assistant's message."""
    for number, message in enumerate(messages):
        if number % 2:
            store.window()
        store.append(message)


def test_list_turn(bench: Bench, turns: int) -> None:
    """A turn in a linked list of references, walked back from its tail: the floor."""
    messages = repeated()
    plain = PlainList(messages, turns)
    bench.run(
        "floor: linked list",
        turns,
        take,
        rounds=20,
        prepare=lambda: (plain, list(itertools.islice(messages, 2 * TURN_ROUND))),
        per_round=TURN_ROUND,
    )


def test_sqlite_turn(bench: Bench, turns: int, scratch: Path) -> None:
    """A turn in one table of SQLite, with a write-ahead log that is synced at checkpoints only."""
    messages = repeated()
    with closing(sqlite3.connect(scratch / "messages.sqlite", isolation_level=None)) as connection:
        table = Table(connection, messages, turns)
        bench.run(
            "sqlite3, WAL, NORMAL",
            turns,
            take,
            rounds=20,
            prepare=lambda: (table, list(itertools.islice(messages, 2 * TURN_ROUND))),
            per_round=TURN_ROUND,
        )


def repeated() -> Iterator[dict[str, str]]:
    """Yield the messages of the first turns again and again."""
    return itertools.cycle(history.messages(1_000))
