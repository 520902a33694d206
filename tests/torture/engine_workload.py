"""Sessions that are written by chance through the engine, and what must be found of them after a crash.

The index of page facts is kept in memory here and made from the journal at each opening: it is SQLite's file and not of the
disk that is recorded. Kills, injected errors and losses of power on a real disk put it to the test.
"""

import errno
import random
from contextlib import suppress

from memci.archive.catalogue.page_index import PageIndex
from memci.archive.stores.contract import SessionStore, Store
from memci.engine.commands import preparing
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Config
from memci.errors import MemciError, UnavailableError
from tests.torture.memory_disk import Killed, MemoryIo, Tree
from tests.torture.promise import Journal, Promise, Recovered
from tests.torture.store_workload import STORE, StoreMaker, TroubledIo

SESSION = "chat"
CONFIG = Config.from_mapping(
    {
        "counter": "approximate",
        "budget": {"window": 900, "reserve": 0},
        "active": {"min_pages": 1, "max_pages": 3},
        "contents": {"max_tokens": 150},
        "snapshot_every": 12,
    }
)


class IndexedInMemory:
    """A store whose sessions keep their index in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.durability = store.durability
        self.sessions = store.sessions
        self.usage = store.usage
        self.sweep = store.sweep
        self.delete = store.delete
        self.close = store.close

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> SessionStore:
        """Open a session, with an index that is empty."""
        return _Opened(self._store.open(tenant, session_id, read_only=read_only))


class _Opened:
    def __init__(self, session: SessionStore) -> None:
        self.journal = session.journal
        self.pages = session.pages
        self.snapshots = session.snapshots
        self.blobs = session.blobs
        self.durability = session.durability
        self.index = PageIndex(None)
        self._session = session

    def indexed_seq(self) -> int:
        """Return 0: the index begins empty."""
        return 0

    def rest(self) -> None:
        self._session.rest()

    def close(self) -> None:
        self.index.close()
        self._session.close()


def opened(make: StoreMaker, io: MemoryIo, *, read_only: bool = False) -> Engine:
    """Return an engine on the disk, whose thread does nothing: its steps are taken where the workload says so."""
    engine = Engine(IndexedInMemory(make(STORE, io)), CONFIG, read_only=read_only)
    engine._worker.close()
    return engine


def said_in(session: Session) -> Journal:
    """Return the texts of all messages."""
    return tuple(message["content"].encode() for message in session.messages())


class SessionWriter:
    """Talks in one session by chance, and records what it was promised."""

    def __init__(self, io: TroubledIo, make: StoreMaker, chance: random.Random, promise: Promise, salt: str) -> None:
        self.promise = promise
        self._io = io
        self._make = make
        self._chance = chance
        self._salt = salt
        self._number = 0
        self._session = opened(make, io).session(SESSION)
        self._said = said_in(self._session)

    def run(self, steps: int) -> None:
        """Do so many things."""
        for _ in range(steps):
            trouble = self._chance.random()
            if trouble < 0.10:
                self._io.kill_at = len(self._io.log) + self._chance.randrange(1, 30)
            elif trouble < 0.15:
                self._io.room_bytes = self._chance.randrange(3_000)
            elif trouble < 0.20:
                self._io.sync_error = errno.EIO
            try:
                self._step()
            except Killed:
                self._begin_again()
            except UnavailableError:
                with suppress(MemciError):
                    self._session.close()
                self._begin_again()
            self._io.mend()
            self._io.sync_error = self._io.kill_at = None

    def _begin_again(self) -> None:
        self._io.kill()
        self._io.mend()
        self._io.sync_error = None
        self._session = opened(self._make, self._io).session(SESSION)
        self._said = said_in(self._session)

    def _promise(self, promise: Promise) -> None:
        self.promise = promise
        self._io.mark(promise)

    def _step(self) -> None:
        kind = self._chance.choices(["say", "prepare", "recall", "fold", "rewind", "window"], [58, 12, 12, 6, 4, 8])[0]
        archived = [facts.index for facts in self._session.pages("archived")]
        if kind == "recall" and archived:
            self._session.recall(self._chance.choice(archived))
        elif kind == "fold":
            self._session.fold("all")
        elif kind == "window":
            self._session.window()
        elif kind == "prepare":
            while (rest := preparing.next_step(self._session._core)) is not None:
                rest()
        elif kind == "rewind" and self._said and self._session.pages("open"):
            self._rewind()
        else:
            self._say()

    def _say(self) -> None:
        role = self._chance.choice(["user", "assistant"])
        texts = []
        for _ in range(self._chance.choice([1, 1, 1, 2])):
            self._number += 1
            texts.append(f"{self._salt} {self._number} " + " ".join(f"w{self._number}x{word}" for word in range(12)))
        after = (*self._said, *(text.encode() for text in texts))
        self._promise(self.promise.maybe(SESSION, after))
        self._session.extend([{"role": role, "content": text} for text in texts], key=f"{self._salt} {self._number}")
        self._said = after
        self._promise(self.promise.surely(SESSION, after))

    def _rewind(self) -> None:
        page = self._session.pages("open")[0]
        if page.entries:
            after = self._said[: -page.entries]
            self._promise(self.promise.maybe(SESSION, after))
            self._session.rewind(f"{page.index}/1")
            self._said = after
            self._promise(self.promise.surely(SESSION, after))


def write(io: TroubledIo, make: StoreMaker, chance: random.Random, promise: Promise, salt: str) -> None:
    """Run a writer on a disk."""
    SessionWriter(io, make, chance, promise, salt).run(24)


def recover(tree: Tree, make: StoreMaker) -> dict[str, Recovered]:
    """Open what a crash left, to read and then to write, and return what was said."""
    faults: list[str] = []
    io = MemoryIo(tree)
    said: Journal = ()
    try:
        with opened(make, io, read_only=True) as engine:
            said = said_in(engine.session(SESSION))
        with opened(make, io) as engine:
            session = engine.session(SESSION)
            _check(session, said, "a writer", faults)
            session.append({"role": "user", "content": "after the crash"})
            session.append({"role": "assistant", "content": "so it is"})
            session.append({"role": "user", "content": "and goes on"})
            session.fold("all")
            _check(session, (*said, b"after the crash", b"so it is", b"and goes on"), "after more was said", faults)
    except MemciError as error:
        faults.append(f"{type(error).__name__}: {error}")
    return {SESSION: Recovered(said, {}, (), tuple(faults))}


def _check(session: Session, said: Journal, when: str, faults: list[str]) -> None:
    if said_in(session) != said:
        faults.append(f"{when}: another conversation is read")
    # Snapshots are never synced: a torn one is found, reported, and not used.
    faults += [f"{when}: {problem}" for problem in session.verify().problems if not problem.startswith("default/chat/snapshots/")]
