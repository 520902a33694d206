"""What a loss of power leaves, recovered: in small, and the cases that the bench once found."""

import errno
import os
import random
from contextlib import suppress
from itertools import count

import pytest

from memci.archive.disk import UNLOCK
from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import NewRecord, SessionStore
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.record_codec import LineCodec
from tests.torture.crash_model import Content, DiskHistory, but_first_page, but_last_page, newest, oldest
from tests.torture.crash_states import ENGINE, STORE, Bench, Workload
from tests.torture.memory_disk import ROOT, Killed, MemoryIo, Sync, SyncDirectory, Tree
from tests.torture.promise import Promise, broken
from tests.torture.store_workload import PICTURES, SESSIONS, TENANT, file_store, recover
from tests.torture.store_workload import STORE as PLACE

pytestmark = pytest.mark.slow

EMPTY: Tree = {ROOT: None}
JOURNAL = f"{PLACE}/{TENANT}/chat/journal.jsonl"


def record(text: str) -> NewRecord:
    return NewRecord("appended", 1, b'{"text":"%b"}' % text.encode())


def opened(io: MemoryIo, session_id: str = "chat") -> SessionStore:
    """Open a session as a new process does."""
    io.kill()
    return FileStore(PLACE, io=io).open(TENANT, session_id)


def after_loss(io: MemoryIo, content: Content = oldest, start: Tree = EMPTY) -> MemoryIo:
    """Return the disk after a loss of power that no name survives that is not safe."""
    history = DiskHistory(start)
    for change in io.log:
        history.take(change)
    return MemoryIo(history.strict_state(content))


def texts(io: MemoryIo) -> list[str]:
    """Return the texts of the session's records, cut to twelve characters."""
    return [record.body.decode()[9:21].rstrip('"}') for record in opened(io).journal.read()]


def append_killed(io: MemoryIo) -> None:
    """Let a process die before the first directory of a new session is synced."""
    session = opened(io)
    io.kill_before = SyncDirectory
    with pytest.raises(Killed):
        session.journal.append(0, [record("never")])


@pytest.mark.slow
@pytest.mark.parametrize("workload", [STORE, ENGINE], ids=["store", "engine"])
def test_nothing_acknowledged_is_lost(workload: Workload) -> None:
    """Recovery finds in every state what was promised, and goes on from there."""
    figures = Bench(workload, file_store, states=1_500 if workload is STORE else 80).run(seed=11)
    assert [] == figures.losses
    assert len(figures.distinct) >= 80


def test_a_store_that_a_killed_process_began_is_safe() -> None:
    """Where somebody died right after making the store's directory, the next one makes its name safe before it acknowledges."""
    io = MemoryIo(EMPTY)
    append_killed(io)
    opened(io).journal.append(0, [record("said")])
    assert ["said"] == texts(after_loss(io))


def test_a_session_that_a_killed_process_began_holds_its_pages() -> None:
    """Where somebody died between making a journal and its first record, page files that are put then are safe."""
    io = MemoryIo(EMPTY)
    opened(io, "other").journal.append(0, [record("said")])
    append_killed(io)
    opened(io).pages.put({"usr-1": b"page"})
    assert b"page" == opened(after_loss(io)).pages.find("usr-1")


def test_a_page_directory_that_a_killed_process_made_is_safe() -> None:
    """Where somebody died right after making the directory of the pages, the next one makes its name safe."""
    io = MemoryIo(EMPTY)
    opened(io).journal.append(0, [record("said")])
    session = opened(io)
    io.kill_before = SyncDirectory
    with pytest.raises(Killed):
        session.pages.put({"usr-1": b"page"})
    opened(io).pages.put({"usr-1": b"page"})
    assert b"page" == opened(after_loss(io)).pages.find("usr-1")


def test_a_commit_without_its_sync_is_made_safe_before_the_next() -> None:
    """What a killed process wrote and did not sync cannot go missing beneath the commit of the next process."""
    io = MemoryIo(EMPTY)
    session = opened(io)
    session.journal.append(0, [record("old")])
    io.kill_before = Sync
    with pytest.raises(Killed):
        session.journal.append(1, [record("a" * 5_000)])
    session = opened(io)
    io.kill_at = len(io.log) + 2  # its sync and its write, and not the sync behind it
    with pytest.raises(Killed):
        session.journal.append(2, [record("b")])
    assert ["old", "a" * 12] == texts(after_loss(io, but_first_page))
    assert ["old", "a" * 12, "b"] == texts(after_loss(io, newest))


def test_what_is_cut_does_not_mix_with_what_follows() -> None:
    """No page of a torn commit that a crash left can stand behind the first pages of the commit that takes its place."""
    codec = LineCodec(TENANT, "chat")
    torn = codec.encode_commit(1, [record("x" * 9_000), record("never")]).splitlines(keepends=True)[0]
    start: Tree = {**EMPTY, PLACE: None, f"{PLACE}/{TENANT}": None, f"{PLACE}/{TENANT}/chat": None}
    start[JOURNAL] = codec.encode_commit(0, [record("old")]) + torn
    io = MemoryIo(start)
    session = opened(io)
    io.kill_at = 3  # after the cut, its sync, and the write
    with pytest.raises(Killed):
        session.journal.append(1, [record("y" * 9_000)])
    for content in (newest, oldest, but_first_page, but_last_page):
        assert texts(after_loss(io, content, start)) in (["old"], ["old", "y" * 12])


class StuckLock(MemoryIo):
    """A disk whose locks cannot be released but by closing their files."""

    def lock(self, fd: int, operation: int) -> None:
        if operation == UNLOCK:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(fd))
        super().lock(fd, operation)


def test_a_lock_that_cannot_be_released_fails_no_commit() -> None:
    """A commit that is safe is acknowledged though its lock is stuck, and others are not kept waiting."""
    io = StuckLock(EMPTY)
    store = FileStore(PLACE, io=io)
    sessions = [store.open(TENANT, "chat") for _ in range(2)]
    for head in range(6):
        assert head + 1 == sessions[head % 2].journal.append(head, [record(str(head))])
    assert list("012345") == texts(io)


def test_half_a_deletion_keeps_the_session_or_not() -> None:
    """Whatever names a loss of power leaves of a deletion, a session that has records is listed, by its whole id."""
    session_id = SESSIONS[1]
    io = MemoryIo(EMPTY)
    session = opened(io, session_id)
    session.journal.append(0, [record("said")])
    session.pages.put({"usr-1": b"page"})
    session.close()
    began = len(io.log)
    FileStore(PLACE, io=io).delete(TENANT, session_id)
    history, chance, seen = DiskHistory(EMPTY), random.Random(1), 0  # noqa: S311 (which states)
    for place, change in enumerate(io.log):
        history.take(change)
        for tree in history.states(change, chance, 0) if place >= began else ():
            store = FileStore(PLACE, io=MemoryIo(tree))
            has_records = store.open(TENANT, session_id, read_only=True).journal.head() > 0
            assert ([session_id] if has_records else []) == list(store.sessions(TENANT))
            seen += 1
    assert seen > 20


def test_a_deletion_under_way_excuses_a_page_without_its_picture() -> None:
    """A deletion that dies between the pictures and the page files loses nothing; without a deletion the same state is a loss."""
    io = MemoryIo(EMPTY)
    store = BlobSession(opened(io), "chat")
    page = b'{"picture":"%b"}' % PICTURES[0]
    store.pages.put({"usr-1": page})
    store.close()
    kept = Promise().surely_pages("chat", {"usr-1": page})
    deleting = kept.maybe_deleted("chat")
    start = io.tree()
    losses: set[str] = set()
    for steps in count():
        io = MemoryIo(start)
        io.kill_at = steps
        with suppress(Killed):
            FileStore(PLACE, io=io).delete(TENANT, "chat")
            break
        io.kill()
        tree = io.tree()
        recovered = recover(tree, file_store)
        assert [] == broken(deleting, recovered, tree)
        losses.update(broken(kept, recovered, tree))
    assert {"chat: page usr-1 is a page file without its picture, which was not promised", "chat: page usr-1 is gone"} == losses
