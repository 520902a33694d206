"""What the file store makes of full disks, failing syncs and foreign files; and what its promises cost."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileSession, FileStore
from memci.errors import SessionClosedError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.faulty_io import FaultyIo


@pytest.fixture
def io() -> FaultyIo:
    return FaultyIo()


@pytest.fixture
def store(tmp_path: Path, io: FaultyIo) -> Iterator[FileStore]:
    store = FileStore(tmp_path / "chats", io=io)
    yield store
    io.mend()
    store.close()


@pytest.fixture
def session(store: FileStore) -> FileSession:
    """Return a session with the record ``old``."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "old")
    return session


@pytest.fixture
def directory(session: FileSession, tmp_path: Path) -> Path:
    assert "fsync" == session.durability
    return tmp_path / "chats" / TENANT / "session"


def read_by_another(store: FileStore) -> list[str]:
    other = store.open(TENANT, "session", read_only=True)
    texts = texts_of(other.journal)
    other.close()
    return texts


def test_an_append_is_one_write_and_one_sync(session: FileSession, io: FaultyIo) -> None:
    """After the first, each commit costs one write, one sync and no read, whatever the number of its records."""
    append_each(session.journal, "second")
    syncs, writes, reads, opens = io.syncs, io.writes, io.reads, io.opens
    session.journal.append(2, [new_record()])
    session.journal.append(3, [new_record() for _ in range(10)])
    assert (syncs + 2, writes + 2, reads, opens) == (io.syncs, io.writes, io.reads, io.opens)


def test_the_first_append_syncs_the_directories(store: FileStore, io: FaultyIo, tmp_path: Path) -> None:
    """A first record syncs the journal, the three directories that name it, and the one that the root was made in."""
    append_each(store.open(TENANT, "session").journal, "a")
    assert 5 == io.syncs
    append_each(store.open(TENANT, "other").journal, "a")
    assert 9 == io.syncs
    deep = FileStore(tmp_path / "a" / "b" / "c", io=io)
    append_each(deep.open(TENANT, "session").journal, "a")
    assert 9 + 4 + 3 == io.syncs
    deep.close()


def test_n_pages_cost_n_and_one_syncs(session: FileSession, io: FaultyIo) -> None:
    """A batch of page files costs a sync each and one for the directory; the very first makes the directory safe too."""
    session.pages.put({"usr-1": b"1"})
    assert 1 == sum(1 for _ in session.pages.names())
    syncs = io.syncs
    session.pages.put({f"usr-{number}": b"page" for number in range(2, 12)})
    assert syncs + 11 == io.syncs


def test_snapshots_are_not_synced(session: FileSession, io: FaultyIo) -> None:
    """A snapshot costs no sync, for it can be lost."""
    syncs = io.syncs
    session.snapshots.put(1, b"{}")
    assert syncs == io.syncs


def test_flush_never_syncs(tmp_path: Path, io: FaultyIo) -> None:
    """With ``flush`` nothing is synced, and the session says so."""
    store = FileStore(tmp_path, "flush", io=io)
    session = store.open(TENANT, "session")
    append_each(session.journal, "a", "b")
    session.pages.put({"usr-1": b"1"})
    session.close()
    store.delete(TENANT, "session")
    assert ("flush", 0) == (session.durability, io.syncs)


def test_opening_costs_the_same_at_any_length(store: FileStore, session: FileSession, io: FaultyIo) -> None:
    """The head of a long journal is found with one read, a place in it with few, and one near its end with fewer."""
    session.journal.append(1, [new_record("x" * 1_000) for _ in range(3_000)])
    append_each(session.journal, "last")
    other = store.open(TENANT, "session", read_only=True)
    reads = io.reads
    assert 3_002 == other.journal.head()
    assert reads + 1 == io.reads
    assert ["last"] == texts_of(other.journal, 3_001)
    assert io.reads <= reads + 4
    reads = io.reads
    assert 2 == len(texts_of(other.journal, 1_000, 1_002))
    assert io.reads <= reads + 16
    reads = io.reads
    assert 3_002 == other.journal.head()
    assert [] == texts_of(other.journal, 3_002)
    assert reads == io.reads


def test_bytes_written_are_the_journal(session: FileSession, io: FaultyIo, directory: Path) -> None:
    """The count of bytes is that of the file, of which a record's frame takes less than 250."""
    before = (directory / "journal.jsonl").stat().st_size
    assert before == io.bytes_written
    record = new_record("x" * 1_000)
    session.journal.append(1, [record])
    assert (directory / "journal.jsonl").stat().st_size == io.bytes_written
    assert io.bytes_written - before <= len(record.body) + 250


@pytest.mark.parametrize("write_bytes", [1, 7, 100])
def test_short_writes_are_continued(store: FileStore, session: FileSession, io: FaultyIo, write_bytes: int) -> None:
    """A disk that takes a few bytes at a time gets the whole commit, and page files too."""
    io.write_bytes = write_bytes
    assert 3 == session.journal.append(1, [new_record("a"), new_record("b" * 500)])
    session.pages.put({"usr-1": b"p" * 300})
    assert ["old", "a", "b" * 500] == read_by_another(store)
    assert b"p" * 300 == session.pages.find("usr-1")


def test_a_full_disk_leaves_the_journal_as_it_was(store: FileStore, session: FileSession, io: FaultyIo, directory: Path) -> None:
    """However much of a commit fitted, the append says that the disk is full, and goes through once there is room."""
    path = directory / "journal.jsonl"
    before = path.read_bytes()
    for room_bytes in range(0, 700, 29):
        io.room_bytes = room_bytes
        with pytest.raises(UnavailableError, match="make room"):
            session.journal.append(1, [new_record("a"), new_record("b" * 500)])
        assert before == path.read_bytes()
    io.mend()
    assert 1 == session.journal.head()
    assert 3 == session.journal.append(1, [new_record("a"), new_record("b" * 500)])
    assert ["old", "a", "b" * 500] == read_by_another(store)


def test_a_commit_that_cannot_be_taken_back_ends_the_session(store: FileStore, session: FileSession, io: FaultyIo) -> None:
    """Where the journal cannot be cut after a full disk, every further append says so; a new opening goes on."""
    io.room_bytes = 100
    io.fail("truncate", errno.EIO)
    with pytest.raises(UnavailableError):
        session.journal.append(1, [new_record("lost")])
    io.mend()
    with pytest.raises(UnavailableError, match="open it again"):
        session.journal.append(1, [new_record("lost")])
    again = store.open(TENANT, "session")
    assert 2 == append_each(again.journal, "new")
    assert ["old", "new"] == read_by_another(store)


def test_a_failed_sync_ends_the_session(store: FileStore, session: FileSession, io: FaultyIo) -> None:
    """After a failed sync nothing is acknowledged any more and no sync is tried again; a new opening goes on."""
    io.fail("sync", errno.EIO)
    with pytest.raises(UnavailableError, match=r"journal\.jsonl"):
        session.journal.append(1, [new_record("lost")])
    io.mend()
    syncs = io.syncs
    for _ in range(2):
        with pytest.raises(UnavailableError, match="open it again"):
            session.journal.append(1, [new_record("lost")])
    assert syncs == io.syncs
    assert ["old"] == texts_of(session.journal)
    again = store.open(TENANT, "session")
    assert 2 == append_each(again.journal, "new")
    assert ["old", "new"] == read_by_another(store)


@pytest.mark.parametrize("skip", range(4))
def test_a_failed_sync_of_a_directory_ends_the_session(store: FileStore, io: FaultyIo, skip: int) -> None:
    """A first append whose directory is not safe is not acknowledged, and leaves no session."""
    io.fail("sync_directory", errno.EIO, skip=skip)
    session = store.open(TENANT, "session")
    with pytest.raises(UnavailableError):
        session.journal.append(0, [new_record("lost")])
    io.mend()
    with pytest.raises(UnavailableError, match="open it again"):
        session.journal.append(0, [new_record("lost")])
    assert [] == list(store.sessions(TENANT))
    assert 1 == append_each(store.open(TENANT, "session").journal, "new")


@pytest.mark.parametrize("session_id", ["short", "L" * 300])
def test_a_first_append_on_a_full_disk_can_be_repeated(store: FileStore, io: FaultyIo, session_id: str) -> None:
    """A session that could not begin for want of room begins when there is some."""
    session = store.open(TENANT, session_id)
    for room_bytes in (0, 50, 100):
        io.room_bytes = room_bytes
        with pytest.raises(UnavailableError, match="make room"):
            session.journal.append(0, [new_record()])
        assert [] == list(store.sessions(TENANT))
    io.mend()
    assert 1 == session.journal.append(0, [new_record()])
    assert [session_id] == list(store.sessions(TENANT))


@pytest.mark.parametrize("call", ["open", "read"])
def test_an_error_names_the_file_within_the_store(store: FileStore, session: FileSession, io: FaultyIo, call: str) -> None:
    """What cannot be read is reported by its path relative to the root, with the system's reason."""
    session.pages.put({"usr-1": b"1"})
    io.fail(call, errno.EIO)
    with pytest.raises(UnavailableError, match=r"^default/session/pages/usr-1\.json: Input/output error"):
        session.pages.find("usr-1")
    with pytest.raises(UnavailableError, match=r"^default/session/journal\.jsonl: Input/output error"):
        list(store.open(TENANT, "session").journal.read())


@pytest.mark.parametrize("call", ["write", "sync", "rename", "sync_directory"])
def test_a_failed_page_leaves_no_rubbish(session: FileSession, io: FaultyIo, directory: Path, call: str) -> None:
    """Whatever fails, old page files are whole, no temporary file stays, and the batch can be put again."""
    session.pages.put({"usr-1": b"old 1", "usr-2": b"old 2"})
    io.fail(call, errno.ENOSPC, skip=0 if call == "sync_directory" else 1)
    with pytest.raises(UnavailableError, match="make room"):
        session.pages.put({"usr-1": b"new 1", "usr-2": b"new 2", "usr-3": b"new 3"})
    assert [] == [path for path in directory.rglob("*") if ".tmp" in path.name]
    assert session.pages.find("usr-1") in {b"old 1", b"new 1"}
    assert session.pages.find("usr-2") in {b"old 2", b"new 2"}
    io.mend()
    session.pages.put({"usr-1": b"new 1", "usr-2": b"new 2", "usr-3": b"new 3"})
    assert [b"new 1", b"new 2", b"new 3"] == [session.pages.find(f"usr-{number}") for number in (1, 2, 3)]
    assert 2 == append_each(session.journal, "the journal goes on")


def test_left_over_temporary_files_are_swept(store: FileStore, session: FileSession, directory: Path) -> None:
    """What a killed process left does no harm, is no page, and is gone after the next opening's first append."""
    session.pages.put({"usr-1": b"1"})
    (directory / "usr-2.json.tmp").write_bytes(b"half")
    (directory / "9.json.tmp").write_bytes(b"half")
    assert ["usr-1"] == list(session.pages.names())
    append_each(store.open(TENANT, "session").journal, "new")
    assert [] == [path for path in directory.rglob("*") if ".tmp" in path.name]
    assert b"1" == session.pages.find("usr-1")


def test_snapshots_of_another_history_are_dropped(store: FileStore, session: FileSession) -> None:
    """A snapshot of a record that the journal does not have is not found once that record is another one."""
    session.snapshots.put(1, b'"kept"')
    session.snapshots.put(3, b'"from a journal that had three records"')
    append_each(store.open(TENANT, "session").journal, "two", "another three")
    assert (1, b'"kept"') == session.snapshots.find()


def test_a_damaged_snapshot_is_passed_over(session: FileSession, directory: Path) -> None:
    """A changed, cut, renamed or foreign snapshot is not found and is reported; an older good one is found."""
    append_each(session.journal, "2", "3", "4", "5", "6")
    session.snapshots.put(1, b'"good"')
    session.snapshots.put(2, b'"changed"')
    changed = bytearray((directory / "snapshots" / "2.json").read_bytes())
    changed[-5] ^= 1
    (directory / "snapshots" / "2.json").write_bytes(changed)
    (directory / "snapshots" / "3.json").write_bytes((directory / "snapshots" / "1.json").read_bytes())
    (directory / "snapshots" / "4.json").write_bytes(b"")
    (directory / "snapshots" / "readme.txt").write_bytes(b"not a snapshot")
    (directory / "snapshots" / "05.json").write_bytes(b"not a snapshot")
    assert (1, b'"good"') == session.snapshots.find()
    places = [problem.partition(":")[0] for problem in session.snapshots.problems()]
    assert [f"default/session/snapshots/{seq}.json" for seq in (2, 3, 4)] == places


def test_foreign_files_are_passed_over(store: FileStore, session: FileSession, directory: Path) -> None:
    """Files and directories that memci did not make are neither sessions nor pages, and break nothing."""
    session.pages.put({"usr-1": b"1"})
    tenant = directory.parent
    (tenant / "a-file").write_text("x")
    (tenant / ".DS_Store").write_text("x")
    (tenant / "~not-a-hash").mkdir()
    for name, note in {"~" + "0" * 64: "{", "~" + "1" * 64: '{"tenant":"default","session":"x"}', "~" + "2" * 64: "[]"}.items():
        (tenant / name).mkdir()
        (tenant / name / "session.json").write_text(note)
        (tenant / name / "journal.jsonl").write_text("x\n")
    (tenant / "Upper").mkdir()
    (tenant / "Upper" / "journal.jsonl").write_text("x\n")
    (tenant / "empty").mkdir()
    (tenant / "half-made").mkdir()
    (tenant / "half-made" / "journal.jsonl").write_text("")
    (directory / "pages" / "notes.txt").write_text("x")
    (directory / "pages" / "Notes-1.json").write_text("x")
    assert ["session"] == list(store.sessions(TENANT))
    assert ["usr-1"] == list(session.pages.names())
    assert 1 == append_each(store.open(TENANT, "half-made").journal, "new")
    store.delete(TENANT, "empty")
    assert not (tenant / "empty").exists()


@pytest.mark.parametrize("skip", range(4))
def test_half_a_deletion_is_no_session(store: FileStore, session: FileSession, io: FaultyIo, skip: int) -> None:
    """A deletion that stopped on its way leaves nothing that is listed; it can be repeated, or the id begin anew."""
    session.pages.put({"usr-1": b"1"})
    session.snapshots.put(1, b"{}")
    session.close()
    io.fail("unlink", errno.EIO, skip=skip)
    with pytest.raises(UnavailableError):
        store.delete(TENANT, "session")
    io.mend()
    assert (["session"] if skip == 0 else []) == list(store.sessions(TENANT))
    store.delete(TENANT, "session")
    assert [] == list(store.sessions(TENANT))
    assert 1 == append_each(store.open(TENANT, "session").journal, "new")


def test_delete_leaves_nothing_of_a_session(store: FileStore, session: FileSession, directory: Path) -> None:
    """The whole directory goes, with what others put there, and the other sessions of the tenant stay."""
    append_each(store.open(TENANT, "other").journal, "a")
    session.pages.put({"usr-1": b"1"})
    assert 0 == session.index.seq
    (directory / "pages" / "more").mkdir()
    (directory / "pages" / "more" / "notes.txt").write_text("x")
    (directory / "link").symlink_to(directory.parent / "other")
    session.close()
    store.delete(TENANT, "session")
    assert not directory.exists()
    assert ["other"] == list(store.sessions(TENANT))


def test_opening_and_reading_leave_no_trace(store: FileStore, session: FileSession, tmp_path: Path) -> None:
    """Neither a new session nor a read-only opening makes, cuts or locks anything."""
    append_each(session.journal, "new")
    path = tmp_path / "chats" / TENANT / "session" / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'{"torn')
    before = {file: file.stat().st_mtime_ns for file in sorted((tmp_path / "chats").rglob("*"))}
    assert ["old", "new"] == read_by_another(store)
    for read_only in (True, False):
        other = store.open("new tenant", "new session", read_only=read_only)
        assert (0, [], None, None) == (
            other.journal.head(),
            texts_of(other.journal),
            other.pages.find("usr-1"),
            other.snapshots.find(),
        )
        other.close()
    assert before == {file: file.stat().st_mtime_ns for file in sorted((tmp_path / "chats").rglob("*"))}


def test_a_store_without_the_right_to_write_can_be_read(store: FileStore, session: FileSession, io: FaultyIo) -> None:
    """Where opening to write is refused, the error says to open read-only, and that works."""
    session.close()
    io.fail("open", errno.EROFS)
    with pytest.raises(UnavailableError, match="read-only"):
        store.open(TENANT, "session").journal.head()
    io.mend()
    assert ["old"] == read_by_another(store)


def test_closing_the_store_gives_back_every_file(store: FileStore, session: FileSession) -> None:
    """After the store was closed no session reads on, not even from a file that got the same descriptor."""
    append_each(session.journal, "x" * 300_000, "x" * 300_000)
    reading = session.journal.read()
    assert 1 == next(reading).seq
    store.close()
    again = store.open(TENANT, "session")
    assert 3 == again.journal.head()
    with pytest.raises(SessionClosedError):
        list(reading)
