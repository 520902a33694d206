"""Erasing a page while others write, and after an erasing that failed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memci.archive.disk import LOCK, FileIo
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.core.core import MOST_ATTEMPTS, Core
from memci.engine.engine import Engine
from memci.engine.history.events import Event, PageErased
from memci.engine.session import Session
from memci.errors import ConflictError, UnavailableError
from tests.engine.commands.test_blobs import holding
from tests.engine.erasure.test_erasing import WORD, left_in
from tests.engine.pictures import picture, png, shown
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, user

if TYPE_CHECKING:
    from collections.abc import Callable


class Interrupted(FileIo):
    """A file system on which something happens just before a lock is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], object] | None = None

    def lock(self, fd: int, operation: int) -> None:
        if self.before is not None and operation == LOCK:
            self.before()
        super().lock(fd, operation)


def beside(root: Path, io: FileIo, **sections: object) -> Session:
    """Open the session as another process does."""
    settings = {"active": {"min_pages": 2, "max_pages": 50}, "contents": {"max_tokens": 300}, **sections}
    return Engine(FileStore(root, "flush", io=io), config_of(**settings)).session("chat")


def told(session: Session) -> str:
    """Tell a conversation with a page that is to be erased, and return its index."""
    talk(session, 3)
    index = session.extend([user(f"what of {WORD}?"), assistant(WORD)])[0].page.index
    talk(session, 3, first=5)
    session.fold("all")
    session.recall(index)
    return index


def test_others_change_the_page_itself(tmp_path: Path) -> None:
    """Who erases goes on where others fold the page, and bring it back, in between; they hear of it as of any other event."""
    io = Interrupted()
    session, other = beside(tmp_path, io), beside(tmp_path, FileIo())
    index = told(session)
    times = iter(range(12))

    def change() -> None:
        if next(times, None) is None:
            return
        other.refresh()
        if other.page(index).chapter is other._core.state.active:
            other.fold([index])
        else:
            other.undo_fold()

    io.before = change
    session.erase(index)
    assert None is next(times, None)
    for each in (session, other):
        each.refresh()
        assert ["[erased]"] * 2 == [message["content"] for message in each.page(index).messages]
        assert WORD not in each.window().to_json().decode()
        assert () == each.verify().problems
    assert [] == left_in(tmp_path)


def test_others_erase_another_page(tmp_path: Path) -> None:
    """Two who erase different pages at once bring nothing back to each other in records that hold words of both."""
    io = Interrupted()
    session, other = beside(tmp_path, io), beside(tmp_path, FileIo())
    first, second = (session.extend([user(f"{WORD} {name}"), assistant(WORD)])[0].page.index for name in ("one", "two"))
    talk(session, 3)
    session.fold("all")
    other.refresh()

    def erase() -> None:
        io.before = None
        other.erase(second)

    io.before = erase
    session.erase(first)
    assert [] == left_in(tmp_path)
    for each in (session, other):
        each.refresh()
        assert () == each.verify().problems


def test_writers_that_never_let_it_end(tmp_path: Path) -> None:
    """Where others always write first, the error says what was done; erasing again finishes it; its receipt is that of both."""
    io = Interrupted()
    session, other = beside(tmp_path / "busy", io), beside(tmp_path / "busy", FileIo())
    index = told(session)
    asked = []

    def write() -> None:
        asked.append(1)
        other.append(user("and"), on_conflict="retry")

    io.before = write
    with pytest.raises(UnavailableError, match=f"{index} of session 'chat' was taken out of the journal.*erase it again"):
        session.erase(index)
    assert MOST_ATTEMPTS <= len(asked)
    io.before = None
    receipt = session.erase(index)
    assert [] == left_in(tmp_path)
    assert () == session.verify().problems
    quiet = beside(tmp_path / "quiet", FileIo())
    told(quiet)
    expected = quiet.erase(index)
    assert (expected.records, expected.files) == (receipt.records, receipt.files)
    assert receipt.records == session.erase(index).records > 0


def test_whoever_loads_the_session_while_it_is_erased_gets_no_word(tmp_path: Path) -> None:
    """A state that was kept as the erasing was noted would hold the words: none is, however often states are kept."""
    io = Interrupted()
    config = config_of(snapshot_every=1)
    session = Engine(FileStore(tmp_path, "flush", io=io), config).session("chat")
    index = told(session)
    other = Engine(FileStore(tmp_path, "flush"), config).session("chat")
    files = tmp_path / "default" / "chat"

    def look() -> None:
        if WORD not in (files / "journal.jsonl").read_text() and left_in(files / "snapshots"):
            other.refresh()

    io.before = look
    session.erase(index)
    io.before = None
    session.close()
    other.refresh()
    other.extend([user("on"), assistant("and on")])
    other.fold("all")
    assert WORD not in other.window().to_json().decode()
    other.close()
    assert [] == left_in(tmp_path)


def test_a_state_that_is_kept_while_a_page_is_erased_goes(tmp_path: Path) -> None:
    """Where another process keeps a state with the words between two steps of the erasing, it is gone when that is done."""
    io = Interrupted()
    session, other = beside(tmp_path, io), beside(tmp_path, FileIo(), snapshot_every=1)
    index = told(session)
    snapshots, kept = tmp_path / "default" / "chat" / "snapshots", list[str]()

    def write() -> None:
        if not left_in(snapshots):
            io.before = None
            other.append(user("in between"), on_conflict="retry")
            kept.extend(left_in(snapshots))

    other.append(user("before"), on_conflict="retry")
    assert left_in(snapshots)
    session.refresh()
    io.before = write
    session.erase(index)
    assert kept
    assert [] == left_in(tmp_path)
    other.refresh()
    assert () == other.verify().problems


def test_a_picture_that_was_stored_again_goes(tmp_path: Path) -> None:
    """Who folds a page without knowing that it was erased stores its picture again, and removes it on hearing of that."""
    data = png()
    session, other = beside(tmp_path, FileIo()), beside(tmp_path, FileIo())
    session.extend([shown("openai", "look", picture("openai", data)), assistant("seen")])
    talk(session, 3, first=2)
    other.refresh()
    other.erase("usr-1")
    assert [] == holding(tmp_path, data)
    with pytest.raises(ConflictError):
        session.fold("all")
    assert ["blobs"] == holding(tmp_path, data)
    session.refresh()
    assert [] == holding(tmp_path, data)
    assert () == session.verify().problems


@pytest.mark.slow
def test_who_did_not_hear_of_an_erasing_that_was_killed_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold that names words which an erasing took out of the journal, killed before it told of that, is read without them."""
    store = MemoryStore()
    first, second, third = (Engine(store, config_of(budget={"window": 1_000, "reserve": 0})) for _ in range(3))
    session, other = first.session("chat"), second.session("chat")

    def go_on() -> None:
        for number in range(40):
            session.extend([user(f"what of harbour{number} and {WORD}{number}?"), assistant("a fine lighthouse " * 20)])
        session.window()

    def killed(core: Core, events: Sequence[Event]) -> None:
        if any(isinstance(event, PageErased) for event in events):
            raise KeyboardInterrupt
        commit(core, events)

    go_on()
    other.refresh()
    commit, erased = Core.commit, [f"usr-{number}" for number in range(1, 30)]
    monkeypatch.setattr(Core, "commit", killed)
    for index in erased:
        with pytest.raises(KeyboardInterrupt):
            other.erase(index)
    monkeypatch.undo()
    go_on()
    opened = third.session("chat")
    assert 160 == sum(1 for _ in opened.messages())
    for index in erased:
        opened.erase(index)
    assert opened.verify().ok
