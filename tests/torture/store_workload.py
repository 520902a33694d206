"""A writer that does, by chance, all that a file store is asked for, and what must be found of it after a crash."""

import errno
import random
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from hashlib import shake_128
from typing import Protocol, TypeVar

import attrs

from memci.archive.disk import FileIo
from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import NewRecord, Store
from memci.archive.stores.file.store import FileStore
from memci.errors import MemciError, UnavailableError
from tests.faulty_io import FaultyIo
from tests.torture.memory_disk import ROOT, Killed, MemoryIo, Tree
from tests.torture.promise import PICTURE_LOST, Journal, Promise, Recovered

_Answer = TypeVar("_Answer")

TENANT = "default"
SESSIONS = ("chat", "ein längerer Name " * 12)
"""One whose name spells its id, and one whose id is kept in a note."""

PICTURES = tuple(b64encode(shake_128(bytes([number])).digest(900)) for number in range(2))
"""What both sessions hold, and the store once."""

STORE = f"{ROOT}/chats"
AFTER = NewRecord("appended", 1, b'{"text":"after the crash"}')


class StoreMaker(Protocol):
    """Makes the store that is put to the test; a seeded bug is another maker."""

    def __call__(self, root: str, io: FileIo | None = None, durability: str = "fsync") -> Store:
        """Return a store on a directory."""
        ...


def file_store(root: str, io: FileIo | None = None, durability: str = "fsync") -> Store:
    """Make the store as it is."""
    return FileStore(root, "flush" if durability == "flush" else "fsync", io=io)


class TroubledIo(FaultyIo, MemoryIo):
    """A disk in memory that can fill up, fail, and lose its process; see ``MemoryIo``."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self.lay(tree)


class StoreWriter:
    """Writes to a store by chance, and records what it was promised.

    Args:
        io: The disk.
        make: Makes the store.
        chance: Decides what is done.
        promise: What was promised before.
        salt: Makes its texts differ from those of other writers.
    """

    def __init__(self, io: TroubledIo, make: StoreMaker, chance: random.Random, promise: Promise, salt: str) -> None:
        self.io = io
        self.promise = promise
        self._make = make
        self._chance = chance
        self._salt = salt
        self._number = 0
        self._store = make(STORE, io)
        self._open: dict[str, BlobSession] = {}

    def run(self, steps: int) -> None:
        """Do so many things."""
        for _ in range(steps):
            session = self._chance.choice(SESSIONS)
            trouble = self._chance.random()
            if trouble < 0.12:
                self.io.kill_at = len(self.io.log) + self._chance.randrange(1, 9)
            elif trouble < 0.17:
                self.io.room_bytes = self._chance.randrange(900)
            elif trouble < 0.22:
                self.io.sync_error = errno.EIO
            step = self._chance.choices([self._append, self._put, self._snapshot, self._remove, self._redact, self._delete],
                                        [60, 14, 6, 3, 4, 3])[0]  # fmt: skip
            try:
                step(session)
            except Killed:
                self.io.kill()
                self._begin_again()
            except UnavailableError:
                if session in self._open:
                    self._open.pop(session).close()
            self.io.mend()
            self.io.sync_error = self.io.kill_at = None

    def _begin_again(self) -> None:
        self._store = self._make(STORE, self.io)
        self._open.clear()

    def _session(self, session: str) -> BlobSession:
        if session not in self._open:
            self._open[session] = BlobSession(self._store.open(TENANT, session), session)
        return self._open[session]

    def _promise(self, promise: Promise) -> None:
        self.promise = promise
        self.io.mark(promise)

    def _journal(self, session: str) -> Journal:
        return tuple(record.body for record in self._session(session).journal.read())

    def _text(self) -> bytes:
        self._number += 1
        length = self._chance.choice([10, 10, 10, 80, 300, 300, 5_000])
        picture = PICTURES[self._number % 9] if self._number % 9 < len(PICTURES) else b""
        return f"{self._salt}:{self._number}:".encode() + b"x" * length + b" " + picture

    def _append(self, session: str) -> None:
        before = self._journal(session)
        bodies = [b'{"text":"%b"}' % self._text() for _ in range(self._chance.choice([1, 1, 1, 2, 3]))]
        after = (*before, *bodies)
        self._promise(self.promise.maybe(session, after))
        self._session(session).journal.append(len(before), [NewRecord("appended", 1, body) for body in bodies])
        self._promise(self.promise.surely(session, after))

    def _put(self, session: str) -> None:
        pages = {f"usr-{self._chance.randrange(6)}": self._text() for _ in range(self._chance.randrange(1, 4))}
        self._promise(self.promise.maybe_pages(session, pages))
        self._session(session).pages.put(pages)
        self._promise(self.promise.surely_pages(session, pages))

    def _remove(self, session: str) -> None:
        pages = {f"usr-{self._chance.randrange(6)}": None for _ in range(2)}
        self._promise(self.promise.maybe_pages(session, pages))
        self._session(session).pages.remove(pages)
        self._promise(self.promise.surely_pages(session, pages))

    def _snapshot(self, session: str) -> None:
        seq = self._session(session).journal.head()
        if seq:
            body = b'"%b"' % self._text()
            self._promise(self.promise.maybe_snapshot(session, seq, body))
            self._session(session).snapshots.put(seq, body)

    def _redact(self, session: str) -> None:
        before = self._journal(session)
        if not before:
            return
        seq = self._chance.randrange(1, len(before) + 1)
        body = b'{"erased":"%b"}' % self._text()
        after = (*before[: seq - 1], body, *before[seq:])
        self._promise(self.promise.maybe(session, after))
        self._session(session).journal.redact({seq: body})
        self._session(session).drop_unused()
        self._promise(self.promise.surely(session, after).forget({before[seq - 1]}))

    def _delete(self, session: str) -> None:
        if session in self._open:
            self._open.pop(session).close()
        secrets = {body for journal in self.promise.journals.get(session, ()) for body in journal}
        known = [pages for (owner, _), pages in self.promise.pages.items() if owner == session]
        secrets |= {page for pages in known for page in pages if page is not None} - {PICTURE_LOST}
        self._promise(self.promise.maybe_deleted(session))
        self._store.delete(TENANT, session)
        self._promise(self.promise.surely_deleted(session).forget(secrets))


def recover(tree: Tree, make: StoreMaker) -> dict[str, Recovered]:
    """Open what a crash left, as a reader and then as a writer, and return what is there by session."""
    io = MemoryIo(tree)
    store = make(STORE, io)
    found = {}
    listed = _asked(lambda: set(store.sessions(TENANT)), []) or set()
    for session in SESSIONS:
        faults: list[str] = []
        recovered = _asked(partial(_read, store, session), faults) or Recovered((), {}, (), ())
        if bool(recovered.journal) != (session in listed):
            faults.append("a session is listed and empty, or there and not listed")
        _asked(partial(_go_on, store, session, recovered.journal, faults), faults)
        found[session] = attrs.evolve(recovered, faults=tuple(faults))
    rubbish = tuple(f"{path} is left" for path in io.tree() if path.endswith(".tmp"))
    found[session] = attrs.evolve(found[session], faults=found[session].faults + rubbish)
    return found


def _read(store: Store, session: str) -> Recovered:
    opened = BlobSession(store.open(TENANT, session, read_only=True), session)
    try:
        found = {name: opened.pages.find(name) for name in opened.pages.names()}
        pages = {name: PICTURE_LOST if page is None else page for name, page in found.items()}
        snapshots = []
        snapshot = opened.snapshots.find()
        while snapshot is not None:
            snapshots.append(snapshot)
            snapshot = opened.snapshots.find(snapshot[0] - 1)
        return Recovered(tuple(record.body for record in opened.journal.read()), pages, tuple(snapshots), ())
    finally:
        opened.close()


def _go_on(store: Store, session: str, journal: Journal, faults: list[str]) -> None:
    opened = store.open(TENANT, session)
    opened.journal.append(len(journal), [AFTER])
    opened.pages.put({"usr-99": b"after"})
    opened.close()
    again = _read(store, session)
    if again.journal != (*journal, AFTER.body):
        faults.append(f"after one more append the journal holds {len(again.journal)} and not {len(journal) + 1} records")
    if any(seq > len(journal) for seq, _ in again.snapshots):
        faults.append("a snapshot of a record that there was not is still found")
    if again.pages.get("usr-99") != b"after":
        faults.append("a page that was put after the crash is not there")


def _asked(question: Callable[[], _Answer], faults: list[str]) -> _Answer | None:
    try:
        return question()
    except MemciError as error:
        faults.append(f"{type(error).__name__}: {error}")
        return None
