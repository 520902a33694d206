"""What becomes of a session whose files are lost, damaged or cannot be written."""

import errno
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import combinations
from pathlib import Path

import pytest

from memci.archive.catalogue.index_writer import IndexWriter
from memci.archive.catalogue.page_facts import PageState
from memci.archive.catalogue.page_index import PageIndex
from memci.archive.stores.file.store import FileStore
from memci.engine.core.indexing import advance
from memci.engine.core.monitor import Fold, FoldFailed, PageRebuilt
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConflictError, CorruptError, StoreError, UnavailableError
from tests.engine.sessions import config_of, heard, indexes, talk, turn
from tests.engine.wire import Value, assistant, user
from tests.faulty_io import FaultyIo


@pytest.fixture
def io() -> FaultyIo:
    return FaultyIo()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "default" / "chat"


def open_on(root: Path, io: FaultyIo | None = None) -> Session:
    config = config_of(active={"min_pages": 2, "max_pages": 4}, snapshot_every=10, durability="fsync")
    return Engine(FileStore(root, io=io), config).session("chat")


def turns(count: int) -> list[Value]:
    return [value for number in range(1, count + 1) for value in turn(number)]


def begun(root: Path, count: int = 12) -> list[Value]:
    """Make a session of some turns, close it, and return its messages."""
    with open_on(root) as session:
        talk(session, count)
        assert indexes(session, PageState.ARCHIVED)
        return list(session.messages())


@pytest.mark.parametrize("call", ["rename", "write", "open", "sync_directory"])
def test_a_fold_that_fails_never_fails_the_append(tmp_path: Path, io: FaultyIo, call: str) -> None:
    """When page files cannot be written the message is stored, the failure is told, no page leaves, and it is tried again."""
    session = open_on(tmp_path, io)
    session.extend(turns(4))
    notices = heard(session)
    # The append itself is one write and one sync; the page files come after it.
    io.fail(call, errno.ENOSPC, skip=1 if call == "write" else 0)
    entry = session.append(user("one too many"))
    assert "usr-5/1" == entry.address
    assert [FoldFailed] == [type(notice) for notice in notices]
    assert isinstance(notices[0].error, StoreError)  # type: ignore[union-attr]
    assert [*turns(4), user("one too many")] == list(session.messages())
    assert [] == indexes(session, PageState.ARCHIVED)
    io.mend()
    session.extend([turn(5)[1], user("and again")])
    assert [FoldFailed, Fold] == [type(notice) for notice in notices][:2]
    assert ("usr-1", "usr-2", "usr-3", "usr-4") == notices[1].pages  # type: ignore[union-attr]
    assert () == session.verify().problems


class BrokenIo(FaultyIo):
    """Fails on what is written beside a journal as no operating system does, while it is told to."""

    is_broken = False

    def rename(self, source: str, target: str) -> None:
        if self.is_broken:
            raise RuntimeError
        super().rename(source, target)


def test_no_error_of_a_fold_or_a_snapshot_fails_the_append(tmp_path: Path) -> None:
    """After an append is committed, errors that are none of memci's are told like the others, and hide nothing."""
    io = BrokenIo()
    session = open_on(tmp_path, io)
    session.extend(turns(4))
    notices = heard(session)
    io.is_broken = True
    more = [value for number in range(5, 8) for value in turn(number)]
    for value in more:
        session.append(value)
    assert {FoldFailed} == {type(notice) for notice in notices}
    assert session.seq >= 10  # when a snapshot was due
    assert [*turns(4), *more] == list(session.messages())
    io.is_broken = False
    session.append(user("and again"))
    assert Fold is type(notices[-1])
    assert () == session.verify().problems


def test_a_fold_by_command_that_fails_says_so(tmp_path: Path, io: FaultyIo) -> None:
    """``fold()`` raises what the store raised, and nothing was folded."""
    session = open_on(tmp_path, io)
    session.extend(turns(4))
    io.fail("rename", errno.EIO)
    with pytest.raises(UnavailableError):
        session.fold("all")
    assert [] == indexes(session, PageState.ARCHIVED)
    io.mend()
    assert 3 == len(session.fold("all").pages)


def test_an_append_that_is_not_safe_is_no_append(tmp_path: Path, io: FaultyIo) -> None:
    """When the record cannot be synced the append raises, and a session opened again does not show the message."""
    session = open_on(tmp_path, io)
    session.extend(turns(2))
    io.fail("sync", errno.EIO)
    with pytest.raises(UnavailableError):
        session.append(user("lost"))
    assert turns(2) == list(session.messages())
    io.mend()
    with pytest.raises(UnavailableError):
        session.append(user("still poisoned"))
    session.close()
    session = open_on(tmp_path, io)
    session.append(user("kept"))
    assert [*turns(2), user("kept")] == list(session.messages())


def lost_on(root: Path, io: FaultyIo) -> tuple[Engine, Session]:
    """Return an engine and a session in which a sync failed."""
    engine = Engine(FileStore(root, io=io), config_of())
    session = engine.session("chat")
    session.extend(turns(1))
    io.fail("sync", errno.EIO)
    with pytest.raises(UnavailableError):
        session.append(user("lost"))
    return engine, session


def test_a_lost_session_is_loaded_again(tmp_path: Path, io: FaultyIo) -> None:
    """After a failed sync, whoever opens the session loads it anew for all its handles, and none conflicts with another."""
    engine, old = lost_on(tmp_path, io)
    io.mend()
    new = engine.session("chat")
    new.append(user("kept"))
    assert [*turns(1), user("kept")] == list(new.messages())
    old.append(user("by the other handle"))
    new.append(user("and by this one"))
    assert new.seq == old.seq
    engine.close()


def test_refreshing_loads_a_lost_session_again(tmp_path: Path, io: FaultyIo) -> None:
    """After a failed sync a handle goes on once it was refreshed, in the state that a handle opened later has too."""
    engine, old = lost_on(tmp_path, io)
    with pytest.raises(UnavailableError):
        old.append(user("never synced again"))
    io.mend()
    old.refresh()
    new = engine.session("chat")
    for number, handle in enumerate((old, new, old)):
        handle.append(user(f"kept {number}"))
    assert [*turns(1), *(user(f"kept {number}") for number in range(3))] == list(new.messages())
    engine.close()


def test_a_session_that_cannot_be_loaded_again_stays_as_it_is(tmp_path: Path, io: FaultyIo) -> None:
    """While the disk fails on, refreshing says so and the state stays; it is loaded once the disk works."""
    session = open_on(tmp_path, io)
    session.extend(turns(2))
    io.fail("sync", errno.EIO)
    with pytest.raises(UnavailableError):
        session.append(user("lost"))
    io.fail("read", errno.EIO)
    with pytest.raises(UnavailableError):
        session.refresh()
    io.mend()
    assert turns(2) == list(session.messages())
    session.refresh()
    session.append(user("kept"))
    assert [*turns(2), user("kept")] == list(session.messages())


def test_a_disk_that_is_full_loses_nothing_acknowledged(tmp_path: Path, io: FaultyIo) -> None:
    """While the disk fills up, appends are stored or refused; with room again the session goes on."""
    session = open_on(tmp_path, io)
    said: list[Value] = []
    for number in range(1, 40):
        io.room_bytes = 1_500 if number % 3 else None
        for value in turn(number):
            try:
                session.append(value)
            except UnavailableError:
                session.close()
                session = open_on(tmp_path, io)
            else:
                said.append(value)
    io.mend()
    assert said == list(session.messages())
    session.append(user("room again"))
    assert () == session.verify().problems


@pytest.mark.parametrize("damage", [b"", b"{", b'{"v":1}', None], ids=["empty", "cut", "other", "missing"])
def test_a_damaged_page_file_is_made_again(tmp_path: Path, directory: Path, damage: bytes | None) -> None:
    """A page whose file is damaged or gone is read from the journal, told as rebuilt, and its file is as it was."""
    begun(tmp_path)
    file = directory / "pages" / "usr-2.json"
    before = file.read_bytes()
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    with open_on(tmp_path) as session:
        notices = heard(session)
        assert 1 == len([problem for problem in session.verify().problems if "usr-2" in problem])
        assert turn(2) == session.page(2).messages
        assert [PageRebuilt(page="usr-2")] == notices
        assert turn(2) == session.recall(2).messages
        assert () == session.verify().problems
    assert before == file.read_bytes()


def test_one_changed_byte_is_noticed(tmp_path: Path, directory: Path) -> None:
    """A page file that is still JSON but says something else is not believed."""
    begun(tmp_path)
    file = directory / "pages" / "usr-1.json"
    file.write_bytes(file.read_bytes().replace(b"question1", b"question7"))
    with open_on(tmp_path) as session:
        assert turn(1) == session.page(1).messages


def test_all_derived_files_can_be_lost(tmp_path: Path, directory: Path) -> None:
    """With the journal alone everything is as before: pages, facts, contents, search, keys and windows."""
    with open_on(tmp_path) as session:
        session.append(user("keyed"), key="k")
        session.append(assistant("so be it"))
        talk(session, 12, first=2)
        session.recall(3)
        session.evict(4)
        session.pin(5)
        session.set_system([{"role": "system", "content": "be brief"}])
        before = (session.pages(), session.contents, session.window().to_json(), session.search("say3x4"))
    for path in sorted(directory.iterdir()):
        if path.name != "journal.jsonl":
            (shutil.rmtree if path.is_dir() else Path.unlink)(path)
    with open_on(tmp_path) as session:
        assert before == (session.pages(), session.contents, session.window().to_json(), session.search("say3x4"))
        assert "usr-1/1" == session.append(user("keyed"), key="k").address
        assert turn(2) == session.page(2).messages
        for facts in session.pages():
            session.page(facts.index)
        assert () == session.verify().problems
        talk(session, 6, first=20)


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_damaged_index_is_made_again(tmp_path: Path, directory: Path, damage: bytes) -> None:
    """An index that is no database is made from the journal when the session is opened."""
    said = begun(tmp_path)
    for path in directory.glob("index.sqlite*"):
        path.unlink()
    (directory / "index.sqlite").write_bytes(damage)
    with open_on(tmp_path) as session:
        assert said == list(session.messages())
        assert "usr-2" == session.search("say2x4")[0].index
        assert () == session.verify().problems


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM page WHERE name = 'usr-3'",
        "UPDATE page SET tokens = tokens + 1 WHERE name = 'usr-3'",
        "UPDATE page SET state = 'activE' WHERE name = 'usr-3'",
        "UPDATE page SET first_seq = 1000 WHERE name = 'usr-3'",
        "UPDATE page SET name = 'usr-999' WHERE name = 'usr-3'",
        "DELETE FROM meta",
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_damaged_facts_are_not_told(tmp_path: Path, directory: Path, change: str, read_only: bool) -> None:  # noqa: FBT001
    """Facts of pages that are changed, missing or too many are made again from the journal when somebody asks for them."""
    said = begun(tmp_path)
    with open_on(tmp_path) as session:
        before = session.pages()
    with closing(sqlite3.connect(directory / "index.sqlite")) as connection:
        connection.execute(change)
        connection.commit()
    with Engine(FileStore(tmp_path), read_only=read_only).session("chat") as session:
        assert before[2] == session.facts("usr-3")
        assert before == session.pages()
        assert said == list(session.messages())
        assert "usr-3" == session.search("say3x4", include_visible=True)[0].index


def test_an_index_of_another_session_is_not_believed(tmp_path: Path, directory: Path) -> None:
    """An index that belongs to another journal is emptied and filled from this one."""
    said = begun(tmp_path)
    other = Engine(FileStore(tmp_path), config_of()).session("other")
    talk(other, 3, first=70)
    other.pages()
    other.close()
    for path in directory.glob("index.sqlite*"):
        path.unlink()
    shutil.copy(tmp_path / "default" / "other" / "index.sqlite", directory / "index.sqlite")
    with open_on(tmp_path) as session:
        assert said == list(session.messages())
        assert [] == session.search("say71x4")


@pytest.mark.parametrize("damage", [b"", b"x" * 99, None], ids=["empty", "garbage", "cut"])
def test_damaged_snapshots_are_passed_over(tmp_path: Path, directory: Path, damage: bytes | None) -> None:
    """A damaged snapshot costs time and nothing else; verifying names it."""
    said = begun(tmp_path)
    files = sorted((directory / "snapshots").iterdir())
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:-20] if damage is None else damage)
    with open_on(tmp_path) as session:
        assert said == list(session.messages())
        assert len(files) == len(session.verify().problems)
        talk(session, 3, first=13)
        assert [*said, *turns(15)[-6:]] == list(session.messages())


def test_a_snapshot_that_cannot_be_written_fails_nothing(tmp_path: Path, io: FaultyIo) -> None:
    """Appends go on while snapshots fail."""
    session = open_on(tmp_path, io)
    session.extend(turns(2))
    io.fail("rename", errno.ENOSPC)
    for number in range(20):
        session.append(user(f"more {number}"))
    assert 24 == len(list(session.messages()))


def test_a_damaged_journal_is_one_sessions_trouble(tmp_path: Path, directory: Path) -> None:
    """A damaged record is a typed error that names the session; others open as ever."""
    begun(tmp_path)
    journal = directory / "journal.jsonl"
    data = journal.read_bytes()
    place = data.index(b"question3")
    journal.write_bytes(data[:place] + b"X" + data[place + 1 :])
    shutil.rmtree(directory / "snapshots")
    engine = Engine(FileStore(tmp_path), config_of())
    with pytest.raises(CorruptError) as caught:
        engine.session("chat")
    assert "chat" == caught.value.session
    engine.session("other").append(user("fine"))
    assert {"chat", "other"} == set(engine.sessions())


def test_a_torn_tail_is_cut(tmp_path: Path, directory: Path) -> None:
    """What a crash left after the last whole commit is not there, and the next append takes its place."""
    said = begun(tmp_path)
    with (directory / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"seq":99,"kind":"appended"')
    with open_on(tmp_path) as session:
        assert said == list(session.messages())
        session.append(user("next"))
        assert () == session.verify().problems


def test_a_changed_index_is_found_by_verify(tmp_path: Path, directory: Path) -> None:
    """An index whose rows are not those of the journal is reported, though SQLite finds nothing wrong with it."""
    begun(tmp_path)
    with closing(sqlite3.connect(directory / "index.sqlite")) as connection:
        connection.execute("DELETE FROM page WHERE name = 'usr-3'")
        connection.commit()
    with open_on(tmp_path) as session:
        assert any("usr-3" in problem for problem in session.verify().problems)
    (directory / "index.sqlite").unlink()
    with open_on(tmp_path) as session:
        assert () == session.verify().problems


def test_a_journal_cut_at_a_line_is_told_from_a_short_one(tmp_path: Path, directory: Path) -> None:
    """Where a snapshot tells of events that the journal no longer has, the session is not opened as if it were whole."""
    begun(tmp_path)
    journal = directory / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:12]))
    with pytest.raises(CorruptError, match="cut"):
        open_on(tmp_path)


@pytest.mark.parametrize("left", [0, 3, 20])
def test_a_journal_shorter_than_its_index_is_not_opened(tmp_path: Path, directory: Path, left: int) -> None:
    """Without any snapshot, the index tells of events that the journal no longer has; removing it lets the rest be opened."""
    begun(tmp_path)
    shutil.rmtree(directory / "snapshots")
    journal = directory / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:left]))
    for read_only in (False, True):
        engine = Engine(FileStore(tmp_path), config_of(durability="fsync"), read_only=read_only)
        with pytest.raises(CorruptError, match="cut"):
            engine.session("chat")
    for path in directory.glob("index.sqlite*"):
        path.unlink()
    with open_on(tmp_path) as session:
        assert left - 1 <= session.seq <= left  # the cut may go through a commit


def test_a_journal_cut_under_an_open_session_ends_its_retries(tmp_path: Path, directory: Path) -> None:
    """Appending with retries to a journal that lost acknowledged events fails instead of trying for ever."""
    with open_on(tmp_path) as session:
        talk(session, 3)
        journal = directory / "journal.jsonl"
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:4]))
        with pytest.raises(CorruptError, match="cut"):
            session.append(user("on"), on_conflict="retry")


def test_verifying_names_a_journal_cut_under_an_open_session(tmp_path: Path, directory: Path) -> None:
    """Verifying ends where the index of the session tells of events that the journal lost, and says so."""
    with open_on(tmp_path) as session:
        talk(session, 3)
        session.search("anything")  # now the index has all of them
        journal = directory / "journal.jsonl"
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:4]))
        assert any("cut" in problem for problem in session.verify().problems)


def test_what_stands_in_the_place_of_a_snapshot_is_passed_over(tmp_path: Path, directory: Path) -> None:
    """A directory where a snapshot should be only makes loading slower."""
    messages = begun(tmp_path)
    shutil.rmtree(directory / "snapshots")
    (directory / "snapshots" / "10.json").mkdir(parents=True)
    with open_on(tmp_path) as session:
        assert messages == list(session.messages())


class Interrupted(PageIndex):
    """An index that another process is about to fill, too: at the first transaction it comes first."""

    def __init__(self, path: str, first: list[Callable[[], object]]) -> None:
        super().__init__(path)
        self._first = first

    @contextmanager
    def write(self) -> Iterator[IndexWriter]:
        if self._first:
            self._first.pop()()
        with super().write() as writer:
            yield writer


def test_who_is_behind_the_index_leaves_it_as_it_is(tmp_path: Path) -> None:
    """An index that another process filled while this one was about to is not set back to where this one is."""
    with open_on(tmp_path) as session, open_on(tmp_path) as other:
        session.extend(turns(2))
        other.refresh()
        session.append(user("more"))
        assert session.search("say2x4", include_visible=True)
        index = session._core.store.index
        advance(index, other._core.store.journal, other._core.state)
        assert session.seq == index.seq


def test_two_processes_may_fill_the_index_at_once(tmp_path: Path, directory: Path) -> None:
    """Who comes second to fill the index takes it as it is then, and asks again."""
    with open_on(tmp_path) as session, open_on(tmp_path) as other:
        session.extend(turns(3))
        other.refresh()
        other._core.indexed = Interrupted(str(directory / "index.sqlite"), [lambda: session.search("say2x4")])
        assert "usr-2" == other.search("say2x4", include_visible=True)[0].index
        session.append(assistant("and more"))  # folds nothing, which would fill the index
        other.refresh()
        other._core.indexed = Interrupted(
            str(directory / "index.sqlite"), [lambda: (session.extend(turns(1)), session.search("say2x4"))]
        )
        with pytest.raises(ConflictError):
            other.search("say2x4")
        other.refresh()
        assert other.verify().ok


def test_verifying_beside_a_writer_finds_nothing(tmp_path: Path) -> None:
    """What others wrote since a session was opened is no difference between index and journal."""
    begun(tmp_path)
    with Engine(FileStore(tmp_path), read_only=True).session("chat") as reader, open_on(tmp_path) as writer:
        assert reader.verify().ok
        talk(writer, 5, first=20)
        assert reader.verify().ok
        writer.search("say21x3")
        assert () == reader.verify().problems


def test_a_store_behind_a_link_that_leads_nowhere_is_a_typed_error(tmp_path: Path) -> None:
    """A dangling link where the store, a tenant, a session or its lock should be is refused, and the error names it."""
    for place in ("", "default", "default/chat", "default/chat/lock"):
        root = tmp_path / f"store{place.count('/')}{len(place)}"
        link = root / place if place else root
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(tmp_path / "nowhere" / "at" / "all")
        with (
            pytest.raises(UnavailableError, match="a link within a store" if place else "No such file"),
            Engine(FileStore(root), config_of()).session("chat") as session,
        ):
            session.append(user("hello"))


def test_an_error_names_the_file_that_failed(tmp_path: Path, directory: Path) -> None:
    """Where the lock cannot be opened, the error speaks of the lock, and not of the file that was to be written."""
    begun(tmp_path)
    (directory / "lock").unlink()
    (directory / "lock").mkdir()
    with open_on(tmp_path) as session, pytest.raises(UnavailableError, match="default/chat/lock: Is a directory"):
        session.append(user("hello"))


def test_a_checkpoint_is_that_of_the_journal(tmp_path: Path, directory: Path) -> None:
    """Where the index names another place for a checkpoint, the place in the journal is restored."""
    with open_on(tmp_path) as session:
        talk(session, 2)
        made = session.checkpoint("here")
        talk(session, 2, first=3)
        session.search("say3x4")
    with closing(sqlite3.connect(directory / "index.sqlite")) as connection:
        connection.execute("UPDATE checkpoint SET seq = seq - 3")
        connection.commit()
    with open_on(tmp_path) as session:
        session.restore_checkpoint(made.id)
        assert turns(2) == list(session.messages())


@pytest.mark.slow
def test_any_two_blocks_of_the_index_exchanged(tmp_path: Path, directory: Path) -> None:
    """Blocks of the index that stand in each other's place tell nothing of a page that is not so, and repair mends them."""
    said = begun(tmp_path)
    with open_on(tmp_path) as session:
        before = session.pages()
    index = directory / "index.sqlite"
    whole = index.read_bytes()
    blocks = [whole[place : place + 4096] for place in range(0, len(whole), 4096)]
    for first, second in combinations(range(len(blocks)), 2):
        if second - first > 5 and first > 1:  # a part of them, to save time
            continue
        changed = list(blocks)
        changed[first], changed[second] = blocks[second], blocks[first]
        for path in directory.glob("index.sqlite*"):
            path.unlink()
        index.write_bytes(b"".join(changed))
        with open_on(tmp_path) as session:
            assert said == list(session.messages())
            assert before == session.pages()
            assert before[2] == session.facts("usr-3")
            session.search("say3x4", include_visible=True)  # may find less, until the index is made again
            session.verify()
        with Engine(FileStore(tmp_path)) as engine:
            assert engine.repair("chat", apply=True).report.ok
            assert "usr-3" == engine.session("chat").search("say3x4", include_visible=True)[0].index
