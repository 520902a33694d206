"""What a crash leaves at the end of a journal is cut; what is damaged anywhere is an error and stays as it is."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from memci.archive.stores.file.store import FileSession, FileStore
from memci.errors import ConflictError, CorruptError, StoreError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path, "flush")
    yield store
    store.close()


@pytest.fixture
def file(store: FileStore, tmp_path: Path) -> Path:
    """Return a journal of the commits ``one``, ``two three``, ``four``, and ``five six seven``."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "one")
    session.journal.append(1, [new_record("two"), new_record("three")])
    append_each(session.journal, "four")
    session.journal.append(4, [new_record("five"), new_record("six"), new_record("seven")])
    session.close()
    return tmp_path / TENANT / "session" / "journal.jsonl"


def line_ends(content: bytes | bytearray) -> list[int]:
    ends = [0]
    for line in content.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    return ends


def damaged(store: FileStore, expected: list[str]) -> CorruptError:
    """Read all of a session, check what came before the damage, and return the error."""
    session = store.open(TENANT, "session", read_only=True)
    reading = session.journal.read()
    texts = [orjson.loads(next(reading).body)["text"] for _ in expected]
    with pytest.raises(CorruptError) as caught:
        next(reading)
    session.close()
    assert expected == texts
    return caught.value


def reopened(store: FileStore) -> FileSession:
    return store.open(TENANT, "session")


@pytest.mark.parametrize("junk", [b"", b"\0", b"\0" * 5_000])
def test_a_commit_torn_at_any_byte_is_not_there(store: FileStore, file: Path, junk: bytes) -> None:
    """Wherever the last commit ends, with or without zeros after it, readers see those before it and writers go on there."""
    content = file.read_bytes()
    start = line_ends(content)[4]
    for size in range(start, len(content), 7 if junk else 1):
        file.write_bytes(content[:size] + junk)
        reader = store.open(TENANT, "session", read_only=True)
        assert (4, ["one", "two", "three", "four"]) == (reader.journal.head(), texts_of(reader.journal))
        assert size + len(junk) == file.stat().st_size
        writer = reopened(store)
        assert 5 == writer.journal.append(4, [new_record("new")])
        assert ["four", "new"] == texts_of(reader.journal, 3)
        reader.close()
        writer.close()


def test_a_first_commit_torn_at_any_byte_begins_anew(store: FileStore, file: Path) -> None:
    """A session whose first commit was torn is not listed, has no record, and its id begins anew."""
    content = file.read_bytes()
    for size in range(line_ends(content)[1]):
        file.write_bytes(content[:size])
        assert [] == list(store.sessions(TENANT))
        session = reopened(store)
        assert 1 == append_each(session.journal, "new")
        assert ["new"] == texts_of(session.journal)
        session.close()


@pytest.fixture
def sectors(store: FileStore, tmp_path: Path) -> tuple[Path, int]:
    """Return a journal of the commit ``one`` and one of three records, each of many sectors; and where that begins."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "one")
    session.journal.append(1, [new_record(text * 2_000) for text in ("a b", "@", "\u0100")])
    session.close()
    path = tmp_path / TENANT / "session" / "journal.jsonl"
    return path, line_ends(path.read_bytes())[1]


def with_zeros(content: bytes, begin: int, end: int) -> bytes:
    return content[:begin] + bytes(end - begin) + content[end:]


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (0, 9), (1, 2), (5, 6), (2, 20), (20, -1), (1, -1)])
def test_a_hole_in_the_last_commit_is_torn(store: FileStore, sectors: tuple[Path, int], begin: int, end: int) -> None:
    """Sectors of zeros in the last commit, though its last record is whole, mean that it was not acknowledged: it is cut."""
    file, start = sectors
    content = file.read_bytes()
    assert start < 512
    file.write_bytes(with_zeros(content, max(begin * 512, start), len(content) if end < 0 else end * 512))
    session = reopened(store)
    assert (1, ["one"]) == (session.journal.head(), texts_of(session.journal))
    assert 2 == append_each(session.journal, "new")
    assert ["one", "new"] == texts_of(session.journal)


@pytest.mark.parametrize(("begin", "end"), [(600, 1024), (512, 1000), (600, 601), (1023, 1024), (3000, 8000)])
def test_zeros_that_no_crash_leaves_are_damage(store: FileStore, sectors: tuple[Path, int], begin: int, end: int) -> None:
    """Zeros in the last commit that are not whole sectors are an error for who reads them, and nothing is cut."""
    file, _ = sectors
    content = with_zeros(file.read_bytes(), begin, end)
    file.write_bytes(content)
    damaged(store, ["one"])
    reopened(store).journal.append(4, [new_record("more")])
    assert file.read_bytes().startswith(content)


def test_a_bit_that_makes_a_zero_or_a_line_is_damage(store: FileStore, file: Path) -> None:
    """Wherever one bit makes a NUL or a line break, or unmakes one, all later records stay in the file and a reader is told."""
    session = reopened(store)
    session.journal.append(7, [new_record(f"{name} *J@\u0100\u2028") for name in ("a", "b", "c")])
    session.close()
    content = file.read_bytes()
    cases = [(place, bit) for place in range(line_ends(content)[7], len(content)) for bit in range(8)]
    cases = [case for case in cases if content[case[0]] ^ 1 << case[1] in b"\0\n" or content[case[0]] in b"\n"]
    assert len(cases) > 40
    for place, bit in cases:
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        file.write_bytes(changed)
        reader = store.open(TENANT, "session", read_only=True)
        with pytest.raises(CorruptError):
            texts_of(reader.journal)
        writer = reopened(store)
        with pytest.raises((CorruptError, ConflictError)):
            writer.journal.append(7, [new_record("lost")])
        writer.close()
        assert bytes(changed) == file.read_bytes()
        reader.close()


def test_a_torn_commit_does_not_hide_half_a_commit(store: FileStore, file: Path) -> None:
    """Where the commit before a torn one has lost its end, nothing is cut."""
    session = reopened(store)
    session.journal.append(7, [new_record("x" * 2_000), new_record("end")])
    session.close()
    lines = file.read_bytes().splitlines(keepends=True)
    content = b"".join([*lines[:5], *lines[7:]])
    content = with_zeros(content, len(content) // 512 * 512 - 1024, len(content) // 512 * 512 - 512)
    file.write_bytes(content)
    with pytest.raises(CorruptError):
        reopened(store).journal.append(5, [new_record("lost")])
    assert content == file.read_bytes()


def test_zeros_in_an_older_commit_are_damage(store: FileStore, file: Path) -> None:
    """Zeros before the last commit are no torn tail, for that commit was acknowledged before the next one."""
    content = bytearray(file.read_bytes())
    ends = line_ends(content)
    content[ends[2] - 40 : ends[2] + 40] = bytes(80)
    file.write_bytes(content)
    assert 2 == damaged(store, ["one"]).seq


def test_any_flipped_byte_is_damage(store: FileStore, file: Path) -> None:
    """A changed byte in a record is an error that names the record, after those before it; the file stays as it is."""
    content = file.read_bytes()
    ends = line_ends(content)
    names = ["one", "two", "three", "four", "five", "six", "seven"]
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        file.write_bytes(changed)
        seq = sum(place >= end for end in ends)
        error = damaged(store, names[: seq - 1])
        assert (seq, "session") == (error.seq, error.session)
        assert error.place == f"journal.jsonl, byte {ends[seq - 1]}"
        assert bytes(changed) == file.read_bytes()


@pytest.mark.parametrize("bit", [1, 2, 4, 8, 16, 32, 64, 128])
def test_any_flipped_bit_of_the_last_record_is_damage(store: FileStore, file: Path, bit: int) -> None:
    """A last record that is whole but changed is an error for readers and writers, never cut as if it were torn."""
    content = file.read_bytes()[: line_ends(file.read_bytes())[4]]
    start = line_ends(content)[3]
    for place in range(start, len(content)):
        changed = bytearray(content)
        changed[place] ^= bit
        file.write_bytes(changed)
        damaged(store, ["one", "two", "three"])
        session = reopened(store)
        with pytest.raises(CorruptError):
            session.journal.head()
        with pytest.raises(CorruptError):
            session.journal.append(4, [new_record("lost")])
        session.close()
        assert bytes(changed) == file.read_bytes()
    assert ["session"] == list(store.sessions(TENANT))


def test_damage_touches_one_session(store: FileStore, file: Path) -> None:
    """Another session of the same store reads and writes as if nothing were wrong."""
    other = store.open(TENANT, "other")
    append_each(other.journal, "fine")
    content = bytearray(file.read_bytes())
    content[50] ^= 1
    file.write_bytes(content)
    damaged(store, [])
    assert 2 == append_each(other.journal, "still fine")
    assert ["fine", "still fine"] == texts_of(other.journal)
    assert ["other", "session"] == sorted(store.sessions(TENANT))


def test_damage_does_not_hide_what_comes_later(store: FileStore, file: Path) -> None:
    """The head, and records after the damaged one, are read as long as the damaged one is not asked for."""
    content = bytearray(file.read_bytes())
    content[line_ends(content)[2] + 50] ^= 1
    file.write_bytes(content)
    session = reopened(store)
    assert 7 == session.journal.head()
    assert ["four", "five"] == texts_of(session.journal, 3, 5)
    assert ["one", "two"] == texts_of(session.journal, 0, 2)
    with pytest.raises(CorruptError) as caught:
        texts_of(session.journal, 2)
    assert 3 == caught.value.seq
    assert 8 == append_each(session.journal, "eight")


@pytest.mark.parametrize("number", range(6))
def test_a_missing_line_is_damage(store: FileStore, file: Path, number: int) -> None:
    """A line that was taken out is missed, whichever it was."""
    lines = file.read_bytes().splitlines(keepends=True)
    del lines[number]
    file.write_bytes(b"".join(lines))
    assert number + 1 == damaged(store, ["one", "two", "three", "four", "five", "six", "seven"][:number]).seq


def test_a_torn_first_commit_after_nothing_is_damage(store: FileStore, file: Path) -> None:
    """Where a journal begins with a torn commit that should follow others, nothing is cut."""
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[4:6]))
    session = reopened(store)
    with pytest.raises(CorruptError):
        session.journal.append(0, [new_record("lost")])
    assert b"".join(lines[4:6]) == file.read_bytes()


def test_a_doubled_line_is_damage(store: FileStore, file: Path) -> None:
    """A record that stands there twice is not read twice."""
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], *lines[1:]]))
    assert 3 == damaged(store, ["one", "two"]).seq


def test_a_torn_commit_does_not_hide_a_missing_one(store: FileStore, file: Path) -> None:
    """Where the record before a torn commit is gone, nothing is cut."""
    lines = file.read_bytes().splitlines(keepends=True)
    content = b"".join([*lines[:3], *lines[4:6]])
    file.write_bytes(content)
    session = reopened(store)
    with pytest.raises(CorruptError):
        session.journal.append(3, [new_record("lost")])
    assert content == file.read_bytes()


def test_a_journal_of_another_session_is_damage(store: FileStore, file: Path, tmp_path: Path) -> None:
    """A journal that was copied to another id is not read as that session."""
    other = tmp_path / TENANT / "other"
    other.mkdir()
    (other / "journal.jsonl").write_bytes(file.read_bytes())
    session = store.open(TENANT, "other")
    with pytest.raises(CorruptError):
        session.journal.head()


def test_a_newer_journal_asks_for_an_upgrade(store: FileStore, file: Path) -> None:
    """A record of a later format is no damage: it is listed, refused with the way out, and not written to."""
    content = file.read_bytes() + b'{"v":3,"seq":8}\n'
    file.write_bytes(content)
    session = reopened(store)
    with pytest.raises(StoreError, match="upgrade"):
        session.journal.head()
    with pytest.raises(StoreError, match="upgrade"):
        session.journal.append(7, [new_record()])
    assert ["session"] == list(store.sessions(TENANT))
    assert content == file.read_bytes()


def test_damage_in_a_long_journal_is_found_where_it_is(store: FileStore, tmp_path: Path) -> None:
    """In a journal of many chunks the error names the damaged record, and the places after it are still found."""
    session = store.open(TENANT, "session")
    session.journal.append(0, [new_record(f"{number}:" + "x" * 2_000) for number in range(1, 501)])
    path = tmp_path / TENANT / "session" / "journal.jsonl"
    content = bytearray(path.read_bytes())
    place = line_ends(content)[250]
    content[place + 1_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptError) as caught:
        texts_of(session.journal, 240)
    assert (251, f"journal.jsonl, byte {place}") == (caught.value.seq, caught.value.place)
    for after in (*range(240), *range(251, 500)):
        assert f"{after + 1}:" in next(iter(texts_of(session.journal, after, after + 1)))
