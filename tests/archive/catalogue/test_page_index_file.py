"""The file of the index: opening, damage, reading beside a writer."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from memci.archive.catalogue import index_file
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.catalogue.page_index import PageIndex
from memci.errors import CorruptError, PermissionDeniedError, UnavailableError
from tests.interrupts import interruptions


def fill(index: PageIndex, number: int = 1) -> None:
    """Add a page of one entry that says ``zebra``."""
    with index.write() as writer:
        page = f"usr-{number}"
        writer.put_page(PageFacts(index=page, state=PageState.ACTIVE, turn=1, entries=1, tokens=1, first_seq=number))
        writer.add_entry(seq=number, page=page, position=1, role="user", text="a zebra", at="")
        writer.index_page(page)
        writer.set_seq(number, "m")


KILLED = """
import os, signal, sys
from memci.archive.catalogue.page_index import PageIndex
index = PageIndex(sys.argv[1])
index._db().run("PRAGMA cache_spill = 1")
with index.in_place(), index.write() as writer:
    writer.clear()
    for key in range(2_000):
        writer.add_key(f"{key:0200}", key)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def found(index: PageIndex) -> list[str]:
    return [hit.index for hit in index.search("zebra", limit=5)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The path of an index with one page, closed."""
    path = str(tmp_path / "index.sqlite")
    index = PageIndex(path)
    fill(index)
    index.close()
    return path


def test_it_is_there_after_opening_again(path: str) -> None:
    """What was committed is read by the next one who opens the file."""
    index = PageIndex(path)
    assert (1, "m", ["usr-1"]) == (index.seq, index.mark, found(index))
    index.close()
    index.close()


def test_one_that_cannot_be_opened_is_one_error(tmp_path: Path) -> None:
    """Nothing more is said of its connection, which never was one."""
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        index_file.Database(str(tmp_path / "none" / "index.sqlite"))


@pytest.mark.parametrize("damage", [b"not a database at all" * 400, b"x"])
def test_a_file_that_is_no_index_is_made_anew(path: str, damage: bytes) -> None:
    """A file that holds something else is replaced by an empty index that works."""
    Path(path).write_bytes(damage)
    index = PageIndex(path)
    assert 0 == index.seq
    fill(index)
    assert ["usr-1"] == found(index)
    index.close()


def test_another_version_is_made_anew(path: str) -> None:
    """An index whose tables are of another version is replaced by an empty one."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    index = PageIndex(path)
    assert (0, []) == (index.seq, found(index))
    index.close()


def test_tables_of_somebody_else_are_made_anew(tmp_path: Path) -> None:
    """A database that is no index at all is replaced by an empty index."""
    path = tmp_path / "index.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE page (x)")
    connection.close()
    index = PageIndex(str(path))
    fill(index)
    assert ["usr-1"] == found(index)
    index.close()


def test_damage_that_shows_later_is_a_typed_error(path: str) -> None:
    """Pages of the file that were overwritten raise CorruptError where they are read, and reset mends it."""
    content = bytearray(Path(path).read_bytes())
    content[8192:] = b"\xaa" * (len(content) - 8192)  # what opening reads stays: the header and the table of tables
    Path(path).write_bytes(content)
    index = PageIndex(path)
    for use in (lambda: found(index), lambda: fill(index, 2), lambda: list(index.pages()), lambda: index.find_key("k")):
        with pytest.raises(CorruptError, match=r"index\.sqlite"):
            use()
    index.reset()
    fill(index)
    assert ["usr-1"] == found(index)
    index.close()


def test_damage_of_the_header_shows_in_place(path: str) -> None:
    """A header that was overwritten while the index was open is a CorruptError too."""
    index = PageIndex(path)
    Path(path).write_bytes(b"\xff" * 100 + Path(path).read_bytes()[100:])
    with pytest.raises(CorruptError, match=r"index\.sqlite"), index.in_place():
        pass
    index.close()


def test_reset_leaves_no_old_bytes(path: str) -> None:
    """After a reset the words of the old entries are nowhere in the file or beside it."""
    index = PageIndex(path)
    index.reset()
    index.close()
    assert not [file for file in Path(path).parent.iterdir() if b"zebra" in file.read_bytes()]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """An index that cannot be made is an error of the place, not of its bytes."""
    with pytest.raises(UnavailableError):
        PageIndex(str(tmp_path / "none" / "index.sqlite"))


@pytest.mark.parametrize("content", [None, b"", b"not a database at all" * 400])
def test_reading_what_cannot_be_read_finds_nothing(tmp_path: Path, content: bytes | None) -> None:
    """To a reader, a missing, empty or damaged file is an empty index, and nothing is written."""
    path = tmp_path / "index.sqlite"
    if content is not None:
        path.write_bytes(content)
    index = PageIndex(str(path), read_only=True)
    assert (0, [], []) == (index.seq, found(index), list(index.pages()))
    index.close()
    assert content == (path.read_bytes() if path.exists() else None)


def test_reading_writes_no_file(path: str) -> None:
    """A reader of an index that nobody has open leaves the folder as it was."""
    before = {file: file.read_bytes() for file in Path(path).parent.iterdir()}
    index = PageIndex(path, read_only=True)
    assert ["usr-1"] == found(index)
    assert before == {file: file.read_bytes() for file in Path(path).parent.iterdir()}
    index.close()


def test_reading_refuses_to_write(path: str) -> None:
    """An index that was opened to be read only takes no transaction and no reset."""
    index = PageIndex(path, read_only=True)
    with pytest.raises(PermissionDeniedError):
        fill(index)
    with pytest.raises(PermissionDeniedError):
        index.reset()
    index.close()


def test_reading_beside_a_writer(path: str) -> None:
    """A reader sees what a writer commits, whether it was opened before the writer or after."""
    early = PageIndex(path, read_only=True)
    assert 1 == early.seq
    writer = PageIndex(path)
    fill(writer, 2)
    late = PageIndex(path, read_only=True)
    assert (2, 2) == (early.seq, late.seq)
    fill(writer, 3)
    assert (3, ["usr-1", "usr-2", "usr-3"]) == (early.seq, sorted(found(late)))
    writer.close()
    assert 3 == early.seq
    early.close()
    late.close()


def test_two_writers_see_each_other(path: str) -> None:
    """A transaction begins with what another one committed meanwhile."""
    one, two = PageIndex(path), PageIndex(path)
    fill(one, 2)
    with two.write() as writer:
        assert 2 == writer.seq
    one.close()
    two.close()


def test_opening_does_not_read_the_pages(tmp_path: Path) -> None:
    """Opening an index takes the same number of the database's steps with many pages as with one."""

    def steps(pages: int) -> int:
        path = str(tmp_path / f"{pages}.sqlite")
        index = PageIndex(path)
        for number in range(1, pages + 1):
            fill(index, number)
        index.close()
        count = 0

        def counted() -> int:
            nonlocal count
            count += 1
            return 0

        connection = index_file.open_for_writing(path).connection
        connection.set_progress_handler(counted, 1)
        connection.execute("SELECT seq FROM meta").fetchone()
        connection.close()
        return count

    assert steps(1) == steps(200)


def test_emptying_leaves_the_file_to_others(tmp_path: Path) -> None:
    """An index that is emptied stays one file: who has it open reads it empty, and both go on writing to it."""
    path = str(tmp_path / "index.sqlite")
    first, second = PageIndex(path), PageIndex(path)
    for index, other in ((first, second), (second, first)):
        fill(index)
        assert found(index) == found(other) != []
        inode = (tmp_path / "index.sqlite").stat().st_ino
        other.reset()
        assert [] == found(index)
        assert inode == (tmp_path / "index.sqlite").stat().st_ino
        assert b"usr-1" not in b"".join(each.read_bytes() for each in tmp_path.iterdir() if "shm" not in each.name)
    first.close()
    second.close()


@pytest.mark.slow
def test_a_signal_handler_may_raise_anywhere(path: str) -> None:
    """Wherever a write is interrupted, and however long that error is kept, the next write is whole."""
    index = PageIndex(path)
    kept = []
    for error in interruptions(lambda: fill(index, 2)):
        kept.append(error)
        with index.write() as writer:
            writer.clear()
            kept.clear()
        fill(index, 1)
        assert (1, ["usr-1"]) == (index.seq, found(index))
    index.close()


def test_in_place_what_is_written_is_written_once(tmp_path: Path) -> None:
    """Written in place, nothing goes to the log; who opens the file then is waited for, and sees what is committed."""
    path = str(tmp_path / "index.sqlite")
    index = PageIndex(path)
    with index.in_place():
        fill(index)
        assert not Path(f"{path}-wal").exists()
        reader = PageIndex(path, read_only=True)
        assert ["usr-1"] == found(reader)
        reader.close()
        fill(index, 2)
    fill(index, 3)
    assert Path(f"{path}-wal").stat().st_size > 0
    assert 3 == len(found(index))
    index.close()


def test_in_place_others_keep_the_log(path: str) -> None:
    """Where others have the file open, what is written in place goes by the log, and both go on."""
    index, other = PageIndex(path), PageIndex(path)
    assert ["usr-1"] == found(other)
    with index.in_place():
        fill(index, 2)
        assert Path(f"{path}-wal").exists()
        fill(other, 3)
    assert found(other) == found(index)
    assert 3 == len(found(index))
    index.close()
    other.close()


def test_what_was_broken_off_in_place_is_undone(path: str) -> None:
    """A process is killed with half of what it writes in the file: a reader finds nothing, and the next writer what was there."""
    before = Path(path).read_bytes()
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run([sys.executable, "-c", KILLED, path], check=True)  # noqa: S603 (our own words)
    assert Path(path).read_bytes() != before
    assert Path(f"{path}-journal").stat().st_size > 0
    reader = PageIndex(path, read_only=True)
    assert [] == found(reader)
    reader.close()
    index = PageIndex(path)
    assert (1, ["usr-1"]) == (index.seq, found(index))
    index.check()
    index.close()
