"""What a turn costs does not depend on the length of the history: counted in syncs, reads, calls and bytes, not in seconds."""

import math
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from types import FrameType
from typing import Any

import attrs
import pytest

from benchmarks.trace import profiled
from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.session import Session
from memci.messages import codec
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import prepare
from tests.faulty_io import FaultyIo
from tests.word_counter import WordCounter

CONFIG: dict[str, Any] = {
    "budget": {"window": 1_800, "reserve": 0},
    "contents": {"max_tokens": 600},
    "eviction": {"zero_recall_turns": 50},  # entries, evictions and directories are in balance from 200 turns on
    "snapshot_every": 100,
}
SHORT_TURNS, LONG_TURNS = 200, 2_000
MEASURED_TURNS = 400
SAMPLED_TURNS = 5
BATCH_TURNS = 20
SMALL_READ_BYTES = 8 << 10
"""The most that is read at once to find a place in a journal."""


class UnsyncedIo(FaultyIo):
    """Leaves syncs out, for the disk has nothing to say here; counts what is read, too."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read = 0

    def read(self, fd: int, size: int, offset: int) -> bytes:
        data = super().read(fd, size, offset)
        self.bytes_read += len(data)
        return data

    def sync(self, fd: int) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        pass


@attrs.frozen(kw_only=True)
class Cost:
    """What something costs, and how large the session then is."""

    syncs: int
    reads: int
    opens: int
    bytes_written: int
    bytes_read: int
    records_read: int
    snapshot_bytes: int
    tail_records: int
    tail_bytes: int
    journal_bytes: int
    counter_calls: int
    python_calls: int


class Chat:
    """A session that grows by turns, each of which asks for a window."""

    def __init__(self, root: Path) -> None:
        self.io = UnsyncedIo()
        self.store = CountingStore(FileStore(root, io=self.io))
        self.engine = Engine(self.store, CONFIG)
        self.counter = WordCounter()
        self.turns = 0
        self.session = self.open()

    def open(self) -> Session:
        session = self.engine.session("long")
        session._core.counter = self.counter
        return session

    def reopen(self) -> None:
        """Open the session, after its engine was closed, as another process does, which has no state of it."""
        self.engine = Engine(self.store, CONFIG)
        self.session = self.open()

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the newest snapshot, of the events behind it, and of the journal."""
        stored = self.session._core.store
        found = stored.snapshots.find()
        assert found is not None
        bodies = [len(record.body) for record in stored.journal.read()]
        tail = bodies[found[0] :]
        return {
            "snapshot_bytes": len(found[1]),
            "tail_records": len(tail),
            "tail_bytes": sum(tail),
            "journal_bytes": sum(bodies),
        }

    def counts(self) -> tuple[int, ...]:
        return (
            self.io.syncs,
            self.io.reads,
            self.io.opens,
            self.io.bytes_written,
            self.io.bytes_read,
            self.store.records,
            self.counter.calls,
        )

    def grow(self, turns: int) -> None:
        while self.turns < turns:
            count = min(BATCH_TURNS, turns - self.turns)
            self.session.extend([message for number in range(count) for message in turn(self.turns + number)])
            prepare(self.session)
            self.turns += count

    def take(self, turns: int) -> None:
        for _ in range(turns):
            user, assistant = turn(self.turns)
            self.session.append(user)
            self.session.window()
            self.session.append(assistant)
            prepare(self.session)
            self.turns += 1


def turn(number: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return the two messages of a turn; each holds words that no other turn has."""
    user = f"Where is parcel {7 * number + 1000} of customer c{number} that left depot d{number % 13}?"
    assistant = (
        f"Parcel {7 * number + 1000} is at depot d{(number + 5) % 13} and reaches customer c{number} on day {number % 30}."
    )
    return {"role": "user", "content": user}, {"role": "assistant", "content": assistant}


def python_calls(action: Callable[[], object]) -> int:
    """Return how many functions are called while *action* runs, those written in C included."""
    calls = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    profiled(action, profile)
    return calls


def cost(chat: Chat, action: Callable[[], object]) -> Cost:
    before = chat.counts()
    calls = python_calls(action)
    spent = (now - then for now, then in zip(chat.counts(), before, strict=True))
    syncs, reads, opens, bytes_written, bytes_read, records_read, counter_calls = spent
    return Cost(
        syncs=syncs,
        reads=reads,
        opens=opens,
        bytes_written=bytes_written,
        bytes_read=bytes_read,
        records_read=records_read,
        **chat.sizes(),
        counter_calls=counter_calls,
        python_calls=calls,
    )


def state_bytes(chat: Chat) -> float:
    """Take turns, and return how large the state is on average: it grows from fold to fold, and shrinks in each."""
    sizes = []
    for _ in range(MEASURED_TURNS // SAMPLED_TURNS):
        chat.take(SAMPLED_TURNS)
        sizes.append(len(codec.encode(state_codec.to_mapping(chat.session._core.state))))
    return mean(sizes)


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cost, Cost, Cost, Cost]:
    """What 400 turns, then opening again, cost in a session of 200 turns, and in the same session of 2,000."""
    chat = Chat(tmp_path_factory.mktemp("growth"))
    found = []
    for turns in (SHORT_TURNS, LONG_TURNS):
        chat.grow(turns)
        chat.take(BATCH_TURNS)
        chat.session.search("parcel")  # brings the index up to date, which follows in large steps
        found.append(cost(chat, lambda: chat.take(MEASURED_TURNS)))
        chat.engine.close()
        found.append(cost(chat, chat.reopen))
    chat.engine.close()
    short, short_opening, long, long_opening = found
    return short, long, short_opening, long_opening


Costs = tuple[Cost, Cost, Cost, Cost]


@pytest.mark.slow
def test_a_turn_asks_as_much_of_the_store(costs: Costs) -> None:
    """Syncs, reads, opened files and written bytes of a turn do not grow with the history."""
    short, long, _, _ = costs
    assert 0 < long.syncs <= 1.05 * short.syncs
    assert long.reads <= short.reads + 2
    assert 0 < long.opens <= 1.05 * short.opens
    assert long.bytes_written <= 1.1 * short.bytes_written


def test_a_turn_counts_as_many_texts(costs: Costs) -> None:
    """The counter is called no more often in a history ten times as long, but for where folds fall."""
    short, long, _, _ = costs
    assert 0 < long.counter_calls <= 1.05 * short.counter_calls  # where fewer words are rare, fewer passages are quoted


def test_a_turn_runs_as_many_functions(costs: Costs) -> None:
    """A turn calls at most a tenth more functions in a history ten times as long."""
    short, long, _, _ = costs
    assert long.python_calls <= 1.1 * short.python_calls


@pytest.mark.slow
def test_the_state_does_not_grow(tmp_path: Path) -> None:
    """What an open session holds, and a snapshot stores, does not grow with the history."""
    chat = Chat(tmp_path)
    chat.grow(SHORT_TURNS)
    short = state_bytes(chat)
    chat.grow(LONG_TURNS)
    assert state_bytes(chat) <= 1.15 * short
    chat.engine.close()


def test_opening_reads_a_snapshot_and_what_follows(costs: Costs) -> None:
    """Opening a history ten times as long opens as many files, and only finding a place in the journal takes some reads more."""
    _, _, short, long = costs
    assert short.opens == long.opens
    assert long.reads <= short.reads + 16
    assert 0 == short.syncs == long.syncs
    assert 0 == short.counter_calls == long.counter_calls
    assert long.python_calls <= 1.2 * short.python_calls * max(1.0, long.records_read / short.records_read)


def test_opening_reads_no_more_than_it_needs(costs: Costs) -> None:
    """Opening reads a snapshot, the events behind it and the one it was taken at, and what finding their place takes."""
    for opening in costs[2:]:
        assert opening.tail_records + 1 == opening.records_read < CONFIG["snapshot_every"] + BATCH_TURNS
        steps = math.log2(max(opening.journal_bytes / SMALL_READ_BYTES, 2))
        needed = opening.snapshot_bytes + 2 * opening.tail_bytes
        assert needed < opening.bytes_read <= needed + (2 * steps + 8) * SMALL_READ_BYTES
