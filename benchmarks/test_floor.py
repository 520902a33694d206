"""What the same turn costs without memci: in a plain list, and in one table of SQLite, as benchmarks/peers has them.

Token counts are known beforehand or guessed, and nothing is summarised, rendered or searchable.
"""

import itertools
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from benchmarks import history
from benchmarks.bench import Bench
from benchmarks.peers.drivers import plain_list, sqlite_table
from benchmarks.peers.peer import Message, Peer

pytestmark = pytest.mark.benchmark(timer=process_time, disable_gc=True)

MESSAGE_TOKENS = 105
TURN_ROUND = 50
FLOORS: dict[str, tuple[type[Peer], str]] = {
    "list, characters": (plain_list.Driver, "characters"),
    "sqlite3, NORMAL": (sqlite_table.Driver, "NORMAL"),
}


def take(peer: Peer, natives: list[Any]) -> None:
    """Take turns in: the user's message, a window, the assistant's message."""
    for number, native in enumerate(natives):
        if number % 2:
            peer.window()
        peer.append(native)


@pytest.mark.parametrize("operation", FLOORS)
def test_turn(bench: Bench, turns: int, scratch: Path, operation: str) -> None:
    """A turn at the least that keeps messages and chooses the newest ones that fit."""
    messages = itertools.cycle(history.messages(1_000))
    driver, option = FLOORS[operation]
    peer = driver(scratch, option)

    def natives(count: int) -> list[Any]:
        several: list[Message] = list(itertools.islice(messages, 2 * count))
        return [peer.native(message, MESSAGE_TOKENS) for message in several]

    peer.extend(natives(turns))
    bench.run(operation, turns, take, rounds=20, prepare=lambda: (peer, natives(TURN_ROUND)), per_round=TURN_ROUND)
    peer.close()
