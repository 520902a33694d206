"""Large data in files: what it costs, and what failures and crashes leave of it."""

import errno
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileSession, FileStore
from memci.errors import UnavailableError
from memci.testing.blob_suite import blob
from memci.testing.journal_suite import TENANT, append_each
from tests.faulty_io import FaultyIo

NAME, DATA = blob(1)


@pytest.fixture
def io() -> FaultyIo:
    return FaultyIo()


@pytest.fixture
def store(tmp_path: Path, io: FaultyIo) -> FileStore:
    return FileStore(tmp_path / "chats", io=io)


@pytest.fixture
def session(store: FileStore) -> FileSession:
    opened = store.open(TENANT, "session")
    append_each(opened.journal, "a")
    return opened


def names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "chats" / TENANT / "blobs").iterdir())


def test_a_blob_is_two_files(session: FileSession, tmp_path: Path) -> None:
    """The data under its hash, as it is, and beside it a file for the session with the last record that it was put for."""
    session.blobs.put({NAME: DATA}, 2)
    session.blobs.put({NAME: DATA}, 7)
    assert [NAME, f"{NAME}.session", "lock"] == names(tmp_path)
    directory = tmp_path / "chats" / TENANT / "blobs"
    assert (DATA, b"7") == ((directory / NAME).read_bytes(), (directory / f"{NAME}.session").read_bytes())


def test_what_blobs_cost(session: FileSession, io: FaultyIo) -> None:
    """A new blob is two syncs and one for all, the first of an opening two more; one of another session's is two; a copy none."""
    session.blobs.put(dict([blob(0)]), 2)
    syncs = io.syncs
    session.blobs.put({NAME: DATA}, 3)
    assert syncs + 3 == io.syncs
    session.blobs.put({NAME: DATA}, 4)
    assert syncs + 5 == io.syncs
    session.blobs.put({NAME: DATA}, 0)
    assert syncs + 5 == io.syncs


@pytest.mark.parametrize("call", ["sync", "sync_directory"])
def test_what_is_not_safe_is_not_there(call: str, session: FileSession, io: FaultyIo, tmp_path: Path) -> None:
    """After a failed sync nobody can take for safe what was under way; the next try writes it anew."""
    session.blobs.put(dict([blob(0)]), 2)
    before = names(tmp_path)
    io.fail(call, errno.EIO)
    with pytest.raises(UnavailableError):
        session.blobs.put({NAME: DATA}, 3)
    assert before == names(tmp_path)
    io.mend()
    session.blobs.put({NAME: DATA}, 3)
    assert DATA == session.blobs.find(NAME)


def test_what_crashes_left_goes(session: FileSession, tmp_path: Path) -> None:
    """Data that no session refers to goes with the next that is dropped."""
    session.blobs.put({NAME: DATA}, 2)
    orphan = tmp_path / "chats" / TENANT / "blobs" / blob(2)[0]
    orphan.write_bytes(blob(2)[1])
    session.blobs.drop([NAME], 2)
    assert ["lock"] == names(tmp_path)


def test_half_written_data_is_written_anew(session: FileSession, store: FileStore, tmp_path: Path) -> None:
    """Where the file is shorter than the data, whoever puts it next makes it whole."""
    session.blobs.put({NAME: DATA}, 2)
    (tmp_path / "chats" / TENANT / "blobs" / NAME).write_bytes(DATA[:100])
    other = store.open(TENANT, "other")
    other.blobs.put({NAME: DATA}, 1)
    assert DATA == session.blobs.find(NAME)


def test_links_are_not_followed(session: FileSession, tmp_path: Path) -> None:
    """A directory of blobs that is a symbolic link is refused, to read and to write."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "chats" / TENANT / "blobs").symlink_to(tmp_path / "elsewhere")
    for call in (lambda: session.blobs.find(NAME), lambda: session.blobs.put({NAME: DATA}, 2)):
        with pytest.raises(UnavailableError):
            call()
    assert [] == list((tmp_path / "elsewhere").iterdir())


def test_blobs_are_their_owners_alone(session: FileSession, tmp_path: Path) -> None:
    """Others may read neither the files nor their directory."""
    session.blobs.put({NAME: DATA}, 2)
    directory = tmp_path / "chats" / TENANT / "blobs"
    assert {0o600} == {path.stat().st_mode & 0o777 for path in directory.iterdir()}
    assert 0o700 == directory.stat().st_mode & 0o777
