"""What a verification leaves behind."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from memci.engine.engine import Engine
from tests.engine.sessions import talk


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """All connections to databases that are opened during the test."""
    opened: list[sqlite3.Connection] = []

    connect = sqlite3.connect

    def recorded(*arguments: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 (those of sqlite3)
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    return opened


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "damaged"])
def test_verifying_closes_the_indexes_that_it_makes(
    tmp_path: Path,
    connections: list[sqlite3.Connection],
    damaged: bool,  # noqa: FBT001
) -> None:
    """The copy of the index and the one that the journal makes are closed, also where the journal turns out to be damaged."""
    with Engine(f"file:{tmp_path}") as engine, engine.session("chat") as session:
        talk(session, 3)
        session.search("anything")  # opens the index of the session
        before = len(connections)
        if damaged:
            journal = tmp_path / "default" / "chat" / "journal.jsonl"
            journal.write_bytes(journal.read_bytes().replace(b"user", b"over", 1))
        assert session.verify().ok is not damaged
        assert before + 2 == len(connections)
        assert not any(map(is_open, connections[before:]))
