"""Copies of sessions in other stores."""

import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest

from memci.archive.stores.contract import NewRecord, Record, Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemorySession, MemoryStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.upkeep.copying import Copied, copy_session
from memci.errors import ConfigError, ConflictError, CorruptError, StoreError, UnavailableError
from tests.engine.counting_store import CountingStore
from tests.engine.erasure.test_erasing import WORD, left_in
from tests.engine.pictures import picture
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, user

ROOT = Path(__file__).parents[3]
NOW = "2026-03-01T12:00:00+00:00"
STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "file": lambda path: FileStore(path / "files", "flush"),
    "sqlite": lambda path: SqliteStore(path / "chats.db", "flush"),
}


def begin(store: Store, turns: int = 6) -> Session:
    """Return a session of so many turns, all but the newest of which are folded."""
    session = Engine(store, config_of(active={"min_pages": 1}, counter="approximate", snapshot_every=5)).session("chat")
    talk(session, turns)
    session.fold("all")
    return session


def begin_long(store: Store) -> Session:
    """Return a session that is copied in four commits."""
    session = begin(store)
    session.extend([value for number in range(600) for value in (user(f"more {number}"), assistant(f"fine {number}"))])
    return session


def records(store: Store, session_id: str = "chat") -> list[Record]:
    return list(store.open("default", session_id, read_only=True).journal.read())


def page_files(store: Store, session_id: str = "chat") -> dict[str, bytes | None]:
    pages = store.open("default", session_id, read_only=True).pages
    return {name: pages.find(name) for name in pages.names()}


def assert_whole(source: Store, target: Store, session_id: str = "chat") -> None:
    """Assert that a session shows the same in both stores, with nothing for verify to find."""
    told = []
    for store, name in ((source, "chat"), (target, session_id)):
        with Engine(store, config_of(counter="approximate"), read_only=True) as engine, engine.session(name) as session:
            told.append((list(session.messages()), session.pages(), session.contents.render(), session.checkpoints()))
            assert () == session.verify().problems
    assert told[0] == told[1]


@pytest.mark.parametrize("make_target", STORES.values(), ids=STORES)
@pytest.mark.parametrize("make_source", STORES.values(), ids=STORES)
def test_a_copy_is_the_session(
    make_source: Callable[[Path], Store], make_target: Callable[[Path], Store], tmp_path: Path
) -> None:
    """From any store into any other, a copy has the same records, page files and view, and a snapshot to open by."""
    source, target = make_source(tmp_path / "a"), make_target(tmp_path / "b")
    session = begin(source)
    session.checkpoint("here")
    copied = copy_session(source, target, "chat", now=NOW)
    assert Copied(session="chat", seq=session.seq, events=session.seq, pages=5, missing=()) == copied
    assert records(source) == records(target)
    assert page_files(source) == page_files(target)
    assert target.open("default", "chat").snapshots.find() is not None
    assert_whole(source, target)
    source.close()
    target.close()


def test_a_copy_can_be_repeated() -> None:
    """A copy goes on behind what is there: nothing where nothing happened, else what was written since."""
    source, target = MemoryStore(), MemoryStore()
    session = begin(source)
    copy_session(source, target, "chat", now=NOW)
    assert 0 == copy_session(source, target, "chat", now=NOW).events
    before = session.seq
    talk(session, 2, first=20)
    assert session.seq - before == copy_session(source, target, "chat", now=NOW).events
    assert_whole(source, target)


def test_a_session_can_be_written_to_while_it_is_copied() -> None:
    """The copy ends only when it has everything that was there at its last look."""
    source, target = MemoryStore(), MemoryStore()
    session = begin_long(source)
    seen = []

    def hear(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) < 8:
            session.append(user(f"meanwhile {len(seen)}"))

    copied = copy_session(source, target, "chat", now=NOW, progress=hear)
    assert session.seq == copied.seq == seen[-1][0] == seen[-1][1]
    assert sorted(seen) == seen
    assert records(source) == records(target)
    assert_whole(source, target)


@pytest.mark.slow
@pytest.mark.parametrize("to_session", ["", "other"])
@pytest.mark.parametrize("die_at", [1, 2, 600])
def test_a_killed_copy_goes_on(die_at: int, to_session: str, tmp_path: Path) -> None:
    """After a kill at any batch, the repeated copy writes only what is missing, and the result is whole."""
    source, target = FileStore(tmp_path / "a", "flush"), FileStore(tmp_path / "b", "flush")
    session = begin_long(source)
    command = [sys.executable, "-m", "tests.engine.killed_copy"]
    arguments = [str(tmp_path / "a"), str(tmp_path / "b"), to_session, str(die_at)]
    done = subprocess.run([*command, *arguments], cwd=ROOT, check=False)  # noqa: S603 (fixed words)
    assert -signal.SIGKILL == done.returncode
    name = to_session or "chat"
    there = len(records(target, name))
    assert die_at <= there < session.seq
    if to_session:
        with pytest.raises(StoreError, match="unfinished"):
            Engine(target).session(name)
    copied = copy_session(source, target, "chat", now=NOW, to_session=to_session or None)
    assert session.seq - there == copied.events
    assert_whole(source, target, name)


def test_a_copy_under_another_id_is_a_session_of_its_own() -> None:
    """It is complete once, goes its own way from there, and repeating the copy then changes nothing."""
    source, target = MemoryStore(), MemoryStore()
    session = begin(source)
    copied = copy_session(source, target, "chat", now=NOW, to_session="other")
    assert ("other", session.seq, session.seq) == (copied.session, copied.seq, copied.events)
    assert_whole(source, target, "other")
    assert 0 == copy_session(source, target, "chat", now=NOW, to_session="other").events
    session.append(user("later"))
    with pytest.raises(ConflictError, match="finished copy"):
        copy_session(source, target, "chat", now=NOW, to_session="other")


def test_a_target_that_went_on_is_left_alone() -> None:
    """A copy never writes over another session, nor over a copy that was written to."""
    source, target = MemoryStore(), MemoryStore()
    session = begin(source)
    copy_session(source, target, "chat", now=NOW)
    with Engine(target, config_of(counter="approximate")) as engine:
        engine.session("chat").append(user("here only"))
    known = records(target)
    with pytest.raises(ConflictError, match="not the beginning"):
        copy_session(source, target, "chat", now=NOW)
    session.append(user("there only"))
    with pytest.raises(ConflictError, match="not the beginning"):
        copy_session(source, target, "chat", now=NOW)
    assert known == records(target)


def test_there_must_be_a_session() -> None:
    """Copying nothing is an error, and leaves nothing."""
    target = MemoryStore()
    with pytest.raises(ConfigError, match="no session"):
        copy_session(MemoryStore(), target, "chat", now=NOW)
    assert [] == list(target.sessions("default"))


def test_an_id_that_the_session_had_is_refused() -> None:
    """The copy of a fork cannot take the id of the fork's source: an unfinished one would look like that session."""
    source = MemoryStore()
    begin(source)
    with Engine(source) as engine:
        engine.fork("chat", "child").close()
    with pytest.raises(ConfigError, match="had before"):
        copy_session(source, MemoryStore(), "child", now=NOW, to_session="chat")


def test_redacted_records_are_copied_as_they_are() -> None:
    """The copy holds what took the place of a body, as an ordinary body."""
    source, target = MemoryStore(), MemoryStore()
    begin(source)
    journal = source.open("default", "chat").journal
    body = next(record.body for record in journal.read(1, 2)).replace(b"question1", b"[erased]")
    journal.redact({2: body})
    copy_session(source, target, "chat", now=NOW)
    assert (body, False) == (records(target)[1].body, records(target)[1].redacted)


def test_pictures_of_what_was_erased_leave_the_copy(tmp_path: Path) -> None:
    """What is erased between two copies is gone from the second one, its pictures too."""
    source, target = FileStore(tmp_path / "source", "flush"), FileStore(tmp_path / "target", "flush")
    with Engine(source, config_of()) as engine, engine.session("chat") as session:
        data = b64encode(b"zebrafinch" * 900).decode()
        session.append({"role": "user", "content": [picture("openai", data)]})
        session.append(assistant("I see."))
        talk(session, 1, first=2)
        copy_session(source, target, "chat", now=NOW)
        parts = b"zebrafinch" * 9, data[40:120].encode()

        def held() -> list[Path]:
            files = [path for path in (tmp_path / "target").rglob("*") if path.is_file()]
            return [path for path in files if any(part in path.read_bytes() for part in parts)]

        assert held()
        session.erase("usr-1")
        copy_session(source, target, "chat", now=NOW)
    assert [] == held()


def test_page_files_that_are_not_there_are_named() -> None:
    """A page file that the source lost or that is damaged is not copied; reading the page makes it from the journal."""
    source, target = MemoryStore(), MemoryStore()
    session = begin(source)
    pages = source.open("default", "chat").pages
    pages.remove(["usr-2"])
    pages.put({"usr-3": b"damaged"})
    copied = copy_session(source, target, "chat", now=NOW)
    assert ((("usr-2", 0), ("usr-3", 0)), 3) == (copied.missing, copied.pages)
    with Engine(target, config_of(counter="approximate")) as engine, engine.session("chat") as copy:
        assert list(session.messages()) == list(copy.messages())
        assert () == copy.verify().problems


class WrongStore(MemoryStore):
    """Writes another body than it was given, but for the first record."""

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> MemorySession:
        opened = super().open(tenant, session_id, read_only=read_only)
        append = opened.journal.append

        def write(expected: int, records: Sequence[NewRecord]) -> int:
            return append(expected, [attrs.evolve(record, body=b"{}") for record in records] if expected else records)

        opened.journal.append = write  # type: ignore[method-assign]
        return opened


def test_all_records_are_read_again() -> None:
    """A store that did not keep what it was given is found out at the end, at the first record that differs."""
    source = MemoryStore()
    begin(source)
    with pytest.raises(CorruptError, match="not the one that was copied") as caught:
        copy_session(source, WrongStore(), "chat", now=NOW)
    assert 2 == caught.value.seq


class Eraser:
    """Another process that erases a page, once: before the call of this number that a copy makes to the journals.

    Attributes:
        left: How many calls are left until then; below 0 when it was done.
    """

    def __init__(self, store: Store, moment: int, *, to_the_end: bool) -> None:
        self.left = moment
        self._store = CountingStore(store)
        self._session = Engine(self._store, config_of(counter="approximate")).session("chat")
        self._to_the_end = to_the_end

    def __call__(self) -> None:
        self.left -= 1
        if self.left == -1 and self._to_the_end:
            self._session.erase("usr-3")
        elif self.left == -1:
            self._store.before = self._fail  # the page is taken out, and nobody is told
            with pytest.raises(UnavailableError):
                self._session.erase("usr-3")

    def _fail(self) -> None:
        if self._store.calls["append"]:
            message = "the store fails"
            raise UnavailableError(message)


def told_word(store: Store) -> None:
    session = begin(store, turns=2)
    session.extend([user(f"what of {WORD}?"), assistant(WORD)])
    talk(session, 3, first=4)
    session.fold("all")
    session.recall("usr-3")
    session.close()


@pytest.mark.slow
@pytest.mark.parametrize("to_the_end", [True, False], ids=["erased", "half erased"])
@pytest.mark.parametrize("make_source", STORES.values(), ids=STORES)
def test_a_page_may_be_erased_while_it_is_copied(
    make_source: Callable[[Path], Store],
    to_the_end: bool,  # noqa: FBT001 (a case)
    tmp_path: Path,
) -> None:
    """Whenever that is, the copy is whole, of the session before or after, and copying again takes out what was erased since."""
    for moment in range(100):
        source, target = make_source(tmp_path / f"a{moment}"), FileStore(tmp_path / f"b{moment}", "flush")
        told_word(source)
        counted = CountingStore(source)
        counted.before = eraser = Eraser(source, moment, to_the_end=to_the_end)
        copy_session(counted, target, "chat", now=NOW)
        counted.before = None
        with Engine(target, config_of(counter="approximate")) as engine, engine.session("chat") as copy:
            said = str(list(copy.messages()))
            assert () == copy.verify().problems
        if "[erased]" in said:
            assert [] == left_in(tmp_path / f"b{moment}")
        with Engine(source, config_of(counter="approximate")) as engine:
            engine.erase("chat", "usr-3")
        copy_session(source, target, "chat", now=NOW)
        assert_whole(source, target)
        assert [] == left_in(tmp_path / f"b{moment}")
        source.close()
        if eraser.left >= 0:
            return
    pytest.fail("it never ends")


@pytest.mark.slow
@pytest.mark.parametrize("to_the_end", [True, False], ids=["erased", "half erased"])
def test_a_page_may_be_erased_while_it_is_forked(to_the_end: bool) -> None:  # noqa: FBT001 (a case)
    """Whenever that is, the fork is whole, of the session before or after."""
    for moment in range(100):
        store = MemoryStore()
        told_word(store)
        counted = CountingStore(store)
        counted.before = eraser = Eraser(store, moment, to_the_end=to_the_end)
        with Engine(counted, config_of(counter="approximate")) as engine, engine.fork("chat", "other") as fork:
            counted.before = None
            said = str(list(fork.messages()))
            assert () == fork.verify().problems
        if "[erased]" in said:
            stored = store.open("default", "other")
            held = [*(record.body for record in stored.journal.read()), *page_files(store, "other").values()]
            assert WORD not in str([*held, stored.snapshots.find()])
        if eraser.left >= 0:
            return
    pytest.fail("it never ends")


def test_a_finished_fork_is_not_erased_in_by_copying_again() -> None:
    """A copy under another id is independent: what is erased in the session since stays there, and it is not copied again."""
    source, target = MemoryStore(), MemoryStore()
    begin(source)
    copy_session(source, target, "chat", now=NOW, to_session="other")
    before = records(target, "other")
    with Engine(source, config_of(counter="approximate")) as engine:
        engine.erase("chat", "usr-3")
    with pytest.raises(ConflictError):
        copy_session(source, target, "chat", now=NOW, to_session="other")
    assert before == records(target, "other")
