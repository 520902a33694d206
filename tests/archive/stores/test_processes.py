"""One session in several processes, threads and forks."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memci.archive.stores.contract import SessionStore, Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.errors import ConflictError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.together import ended, in_child, in_threads, started_child

APPENDER = """
import sys
from memci.archive.stores.contract import NewRecord
from memci.archive.stores.file.store import FileStore
from memci.errors import ConflictError

root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
journal = FileStore(root, "flush").open("default", "session").journal
sys.stdin.readline()
head = 0
for number in range(count):
    while True:
        try:
            texts = (f"{name}{number}", f"{name}{number}+")
            head = journal.append(head, [NewRecord("appended", 1, b'{"text":"%b"}' % text.encode()) for text in texts])
            break
        except ConflictError as conflict:
            head = conflict.head
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path, "flush")
    yield store
    store.close()


def started(code: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 (fixed words)


def assert_nothing_lost(texts: list[str], names: str, count: int) -> None:
    assert sorted(texts) == sorted(f"{name}{number}{end}" for name in names for number in range(count) for end in ("", "+"))
    assert [text + "+" for text in texts[::2]] == texts[1::2]
    for name in names:
        numbers = [int(text[1:]) for text in texts[::2] if text[0] == name]
        assert numbers == sorted(numbers)


def append_with_retry(session: SessionStore, name: str, count: int) -> None:
    head = 0
    for number in range(count):
        done = False
        while not done:
            try:
                head = session.journal.append(head, [new_record(f"{name}{number}"), new_record(f"{name}{number}+")])
                done = True
            except ConflictError as conflict:
                head = conflict.head


def test_two_processes_lose_and_double_nothing(store: FileStore, tmp_path: Path) -> None:
    """Two processes that append at once and go on after each conflict leave every commit once, whole and in order."""
    processes = [started(APPENDER, tmp_path, name, 300) for name in "ab"]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    assert [0, 0] == [process.returncode for process in processes]
    assert_nothing_lost(texts_of(store.open(TENANT, "session").journal), "ab", 300)


@pytest.mark.parametrize("kind", [FileStore, MemoryStore])
def test_threads_with_an_opening_each_lose_nothing(tmp_path: Path, kind: type[Store]) -> None:
    """Threads of one process that opened the session each leave every commit once, whole and in order."""
    store: Store = MemoryStore() if kind is MemoryStore else FileStore(tmp_path, "flush")
    in_threads(lambda name: append_with_retry(store.open(TENANT, "session"), name, 100), "abcd")
    assert_nothing_lost(texts_of(store.open(TENANT, "session").journal), "abcd", 100)
    store.close()


def test_a_reader_sees_whole_commits_only(store: FileStore, tmp_path: Path) -> None:
    """While another process writes, every look shows whole commits, dense and growing, and never damage."""
    process = started(APPENDER, tmp_path, "a", 500)
    reader = store.open(TENANT, "session", read_only=True)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    seen = 0
    while process.poll() is None or seen < 1_000:
        seqs = [record.seq for record in reader.journal.read(seen)]
        assert seqs == list(range(seen + 1, seen + 1 + len(seqs)))
        seen += len(seqs)
        assert 0 == seen % 2
    process.communicate()
    assert 1_000 == seen


@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_a_forked_child_and_its_parent_append_in_turn(tmp_path: Path, kind: type[FileStore | SqliteStore]) -> None:
    """After a fork both go on with the opening that they share, each with a lock, or a connection, of its own."""
    store = kind(tmp_path / "chats", "flush")
    session = store.open(TENANT, "session")
    append_each(session.journal, "parent")
    assert 0 == in_child(lambda: append_each(session.journal, "child"))
    with pytest.raises(ConflictError):
        session.journal.append(1, [new_record("stale")])
    append_each(session.journal, "parent again")
    assert [0, 0] == [in_child(session.close), in_child(store.close)]
    append_each(session.journal, "and again")
    assert ["parent", "child", "parent again", "and again"] == texts_of(session.journal)
    store.close()


def test_forks_that_share_an_opening_lose_nothing(store: FileStore) -> None:
    """Two children and their parent that append at once through the opening they share leave every commit whole."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "first")
    children = [started_child(partial(append_with_retry, session, name, 100)) for name in "ab"]
    append_with_retry(session, "p", 100)
    assert [0, 0] == list(map(ended, children))
    assert_nothing_lost(texts_of(session.journal, 1), "abp", 100)


def test_a_session_deleted_by_another_process_is_noticed(store: FileStore, tmp_path: Path) -> None:
    """Who has a session open that another process deletes and begins anew can no longer write to it."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "old")
    other = FileStore(tmp_path, "flush")
    assert 0 == in_child(lambda: other.delete(TENANT, "session"))
    assert 0 == in_child(lambda: append_each(other.open(TENANT, "session").journal, "new"))
    with pytest.raises(UnavailableError, match="deleted"):
        session.journal.append(1, [new_record("late")])
    assert ["new"] == texts_of(other.open(TENANT, "session").journal)
    other.close()


def test_deleting_and_beginning_at_once_leaves_a_whole_session(tmp_path: Path) -> None:
    """While one thread deletes a session over and over, each append of another is whole, refused, or begins it anew."""
    outcomes = {"begun": 0, "deleted meanwhile": 0, "still there": 0}
    store = FileStore(tmp_path, "flush")
    stop = threading.Event()

    def delete() -> None:
        while not stop.is_set():
            store.delete(TENANT, "session")

    thread = threading.Thread(target=delete)
    thread.start()
    try:
        for _ in range(300):
            session = store.open(TENANT, "session")
            try:
                head = session.journal.append(0, [new_record("a"), new_record("b")])
                assert 3 == session.journal.append(head, [new_record("c")])
                outcomes["begun"] += 1
            except UnavailableError as error:
                assert "deleted" in str(error)  # noqa: PT017 (one outcome of three)
                outcomes["deleted meanwhile"] += 1
            except ConflictError as conflict:
                assert conflict.head in {2, 3}  # noqa: PT017
                outcomes["still there"] += 1
            finally:
                session.close()
    finally:
        stop.set()
        thread.join()
    assert 300 == sum(outcomes.values())
    assert outcomes["begun"]
    store.delete(TENANT, "session")
    assert [] == list((tmp_path / TENANT).iterdir())
    store.close()
