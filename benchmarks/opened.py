"""A stored session, opened to be measured: what it asks of the store and of the counter is counted."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import attrs

from benchmarks import history
from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.messages.tokens.counter import TokenCounter
from tests.faulty_io import FaultyIo


@attrs.define(eq=False)
class CountingCounter:
    """A counter that counts its calls.

    Attributes:
        counter: The counter that it asks.
        calls: How often ``count`` was called.
    """

    counter: TokenCounter
    calls: int = 0

    @property
    def name(self) -> str:
        """The counter's name."""
        return self.counter.name

    @property
    def exact(self) -> bool:
        """Whether the counter is exact."""
        return self.counter.exact

    @property
    def margin(self) -> float:
        """The counter's margin."""
        return self.counter.margin

    def count(self, text: str) -> int:
        """Return the number of tokens in *text*."""
        self.calls += 1
        return self.counter.count(text)


@attrs.frozen(kw_only=True)
class Counts:
    """What some work asked of the store and of the counter.

    Attributes:
        syncs: Files and directories that were synced.
        reads: Reads of files; those of the index of pages, which SQLite makes, are not in it.
        bytes_written: Bytes written to journal, page files and snapshots, without those of the index of pages.
        counter_calls: Texts whose tokens were counted.
    """

    syncs: float
    reads: float
    bytes_written: float
    counter_calls: float

    def __sub__(self, before: Self) -> Self:
        """Return what happened since."""
        now, then = attrs.astuple(self), attrs.astuple(before)
        names = (field.name for field in attrs.fields(type(self)))
        return type(self)(**{name: a - b for name, a, b in zip(names, now, then, strict=True)})

    @classmethod
    def mean(cls, counts: Sequence[Self], per_count: int = 1) -> Self:
        """Return the mean, for one of the *per_count* operations that each of the counts holds."""
        columns = zip(*map(attrs.astuple, counts), strict=True)
        names = (field.name for field in attrs.fields(cls))
        return cls(**{name: sum(column) / len(counts) / per_count for name, column in zip(names, columns, strict=True)})


class Opened:
    """One session of a store, whose next turns are those of the history.

    Args:
        root: The store's directory.
        turns: How many turns the session has.

    Attributes:
        engine: The engine.
        session: The session.
    """

    def __init__(self, root: Path, turns: int) -> None:
        self._io = FaultyIo()
        self.engine = Engine(FileStore(root, "fsync", io=self._io), history.CONFIG)
        self._next_turn = turns
        self._counter: CountingCounter | None = None
        self.session = self.open()

    def open(self) -> Session:
        """Open the session, as often as it is asked for."""
        session = self.engine.session(history.SESSION_ID)
        core = session._core
        if not isinstance(core.counter, CountingCounter):
            self._counter = self._counter or CountingCounter(core.counter)
            core.counter = self._counter
        return session

    def counts(self) -> Counts:
        """Return what was asked of store and counter so far."""
        calls = self._counter.calls if self._counter else 0
        done = self._io
        return Counts(syncs=done.syncs, reads=done.reads, bytes_written=done.bytes_written, counter_calls=calls)

    def next_messages(self, turns: int) -> list[dict[str, str]]:
        """Return the messages of the next turns."""
        self._next_turn += turns
        return list(history.messages(turns, self._next_turn - turns))

    def take(self, messages: list[dict[str, str]]) -> None:
        """Take turns in as a chat does: the user's message, a window, the assistant's message."""
        for number, message in enumerate(messages):
            if number % 2:
                self.session.window()
            self.session.append(message)

    def work_alone(self) -> None:
        """End the engine's own thread: how far it came between two commands is a matter of time, which no count may depend on."""
        self.engine._worker.close()

    def close(self) -> None:
        """Close session and engine."""
        self.engine.close()


@contextmanager
def opened_copy(source: Path, scratch: Path, turns: int) -> Iterator[Opened]:
    """Open a copy of a stored session, so that what is done to it spoils nothing else."""
    opened = Opened(history.copy(source, scratch), turns)
    try:
        yield opened
    finally:
        opened.close()
