"""The index of a session whose records are in a bucket: a file of this machine, or memory."""

import os
import stat
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from memci.archive.stores.objects.io import ObjectIo
from memci.archive.stores.objects.store import ObjectStore
from memci.errors import UnavailableError
from memci.testing.journal_suite import TENANT, append_each


def files_in(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.rglob("*") if path.is_file() and path.name != "lock")


@pytest.fixture
def bucket() -> MemoryStore:
    return MemoryStore()


def store_with(bucket: MemoryStore, folder: Path | None) -> ObjectStore:
    return ObjectStore(ObjectIo(lambda: bucket), folder)


def mark(store: ObjectStore, text: str) -> None:
    """Write something into the index of the session."""
    session = store.open(TENANT, "session")
    with session.index.write() as writer:
        writer.set_seq(1, text)
    session.close()


def mark_of(store: ObjectStore, *, read_only: bool = False) -> str:
    session = store.open(TENANT, "session", read_only=read_only)
    mark = session.index.mark
    session.close()
    return mark


def test_an_index_in_a_directory_is_there_for_the_next_opening(tmp_path: Path, bucket: MemoryStore) -> None:
    """What was put into the index is found by the next opening, and by one that only reads."""
    store = store_with(bucket, tmp_path)
    append_each(store.open(TENANT, "session").journal, "a")
    mark(store, "x")
    assert "x" == mark_of(store)
    assert "x" == mark_of(store, read_only=True)
    store.close()


def test_without_a_directory_the_index_is_in_memory(bucket: MemoryStore) -> None:
    """Each opening begins with an empty index."""
    store = store_with(bucket, None)
    append_each(store.open(TENANT, "session").journal, "a")
    mark(store, "x")
    assert "" == mark_of(store)
    store.close()


def test_the_index_of_a_new_session_is_kept_once_it_has_begun(tmp_path: Path, bucket: MemoryStore) -> None:
    """An index that was opened before the first append is that of the session; where none came, it goes on closing."""
    store = store_with(bucket, tmp_path)
    session = store.open(TENANT, "session")
    with session.index.write() as writer:
        writer.set_seq(1, "x")
    append_each(session.journal, "a")
    session.close()
    assert "x" == mark_of(store)
    unused = store.open(TENANT, "unused")
    assert "" == unused.index.mark
    unused.close()
    store.close()
    assert [".sqlite", ".used"] == files_in(tmp_path)


def test_an_index_is_never_that_of_a_deleted_session(tmp_path: Path, bucket: MemoryStore) -> None:
    """A session that takes the id of a deleted one has an index of its own, also where another machine deleted it."""
    store = store_with(bucket, tmp_path)
    append_each(store.open(TENANT, "session").journal, "a")
    mark(store, "x")
    store_with(bucket, None).delete(TENANT, "session")
    append_each(store.open(TENANT, "session").journal, "b")
    assert "" == mark_of(store)
    store.close()
    store.delete(TENANT, "session")
    assert [] == files_in(tmp_path)


def test_who_only_reads_makes_no_file(tmp_path: Path, bucket: MemoryStore) -> None:
    """An opening that only reads has an empty index where there is none, and leaves the directory as it is."""
    store = store_with(bucket, tmp_path / "none")
    append_each(store.open(TENANT, "session").journal, "a")
    reader = store.open(TENANT, "session", read_only=True)
    assert 0 == reader.index.seq
    reader.close()
    assert [] == list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path, bucket: MemoryStore) -> None:
    """Where a file has the directory's name, the index is not available, and the session is."""
    (tmp_path / "file").write_text("x")
    session = store_with(bucket, tmp_path / "file").open(TENANT, "session")
    with pytest.raises(UnavailableError, match="directory of the indexes"):
        _ = session.index
    assert 1 == append_each(session.journal, "a")


def test_indexes_are_their_owners_alone(tmp_path: Path, bucket: MemoryStore) -> None:
    """Whatever the umask, nobody else can read the files and directories of indexes."""
    before = os.umask(0)
    try:
        mark(store_with(bucket, tmp_path / "indexes"), "x")
    finally:
        os.umask(before)
    rights = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert {0o600, 0o700} == rights


def test_an_index_behind_a_link_is_refused(tmp_path: Path, bucket: MemoryStore) -> None:
    """A link in the place of a session's directory is not followed."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "indexes" / TENANT).mkdir(parents=True)
    (tmp_path / "indexes" / TENANT / "session").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnavailableError, match="a link within a store"):
        mark(store_with(bucket, tmp_path / "indexes"), "x")
    assert [] == list((tmp_path / "elsewhere").iterdir())
