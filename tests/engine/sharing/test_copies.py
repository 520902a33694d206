"""Copies that sessions have of each other's pages: made once though a process is killed, told where they are from, and erased."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.commands import recalling
from memci.engine.core.core import Core
from memci.engine.engine import Engine
from memci.engine.history.events import Event
from memci.engine.session import Session
from memci.engine.sharing import handing, mounting, promoting
from memci.errors import ArgumentError, ErasureError
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, user

WORD = "zebrafinch"


class KilledError(Exception):
    """The process is gone."""


def opened(place: Path) -> Engine:
    return Engine(f"file:{place}", config_of(budget={"window": 6_000, "reserve": 0}), on_conflict="retry")


def spoken(engine: Engine, name: str = "project") -> Session:
    """Return a session whose first page holds the word, and nothing else of it does."""
    session = engine.session(name)
    session.extend([user(f"the {WORD} sings"), assistant("So it does.")])
    talk(session, 2, first=8)
    return session


def killed_at(step: int, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether work was killed before it wrote for the time *step*, as it wrote less often than that otherwise."""
    commit, steps = Core.commit, itertools.count()

    def commit_or_die(core: Core, events: list[Event]) -> object:
        if next(steps) == step:
            raise KilledError
        return commit(core, events)

    with monkeypatch.context() as patched:
        patched.setattr(Core, "commit", commit_or_die)
        try:
            work()
        except KilledError:
            return True
    return False


def left(place: Path, word: str = WORD) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def test_a_handoff_is_repeated_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before any of its writes and done again: one note, open, with what it says; both journals have it once."""
    for step in itertools.count():
        place = tmp_path / str(step)
        with opened(place) as engine, spoken(engine) as sender:
            killed = killed_at(step, lambda sender=sender: sender.handoff("worker", key="task 7"), monkeypatch)  # type: ignore[misc]
        with opened(place) as engine, engine.session("project") as sender, engine.session("worker") as receiver:
            assert "note-1" == sender.handoff(receiver, key="task 7") == sender.handoff("worker", key="task 7")
            assert ["attached"] == [str(note.state) for note in receiver.notes()]
            assert WORD in receiver.window().to_json().decode()
            (told,) = sender.events("handed_over")
            assert ("worker", "note-1") == (told.data["session"], told.data["page"])
            assert told.data["checkpoint"] in [each.id for each in sender.checkpoints()]
            assert "note-2" == sender.handoff(receiver, key="task 8")
            assert () == (*receiver.verify().problems, *sender.verify().problems)
        if not killed:
            break
    assert 5 <= step


@pytest.mark.parametrize("title", [None, "Birds"])
def test_a_promotion_is_repeated(title: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before any of its writes and done again: one note, which both journals have once."""
    for step in itertools.count():
        place = tmp_path / str(step)
        with opened(place) as engine, spoken(engine) as session:
            killed = killed_at(step, lambda session=session: session.promote("usr-1", title), monkeypatch)  # type: ignore[misc]
        with opened(place) as engine, engine.session("project") as session, engine.session("memory") as memory:
            assert "memory/note-1" == session.promote("usr-1", title) == session.promote("usr-1")
            assert 1 == len(memory.notes())
            assert {"note-1"} == {told.data["note"] for told in session.events("promoted")}
        if not killed:
            break
    assert 2 == step


@pytest.mark.parametrize("key", ["", "a\nb", 7])
def test_a_key_that_is_none(key: object) -> None:
    """It is refused before anything is written."""
    with Engine(MemoryStore()) as engine, spoken(engine) as sender:
        with pytest.raises(ArgumentError):
            sender.handoff("worker", key=key)  # type: ignore[arg-type]
        assert ["project"] == list(engine.sessions())


def test_a_key_is_of_its_sender(tmp_path: Path) -> None:
    """Two sessions that hand over to the same one with the same key write a note each, and each finds its own again."""
    with (
        opened(tmp_path) as engine,
        spoken(engine) as first,
        engine.session("plan") as second,
        engine.session("worker") as worker,
    ):
        second.append(user("count the finches"))
        for _ in range(2):
            assert ["note-1", "note-2"] == [sender.handoff(worker, key="task 7") for sender in (first, second)]
        assert "count the finches" in str(worker.page("note-2").messages)


def test_a_key_of_a_note_that_was_erased(tmp_path: Path) -> None:
    """Where the receiver erased the note, handing over again with its key writes another one, with what it says."""
    with opened(tmp_path) as engine, spoken(engine) as sender, engine.session("worker") as worker:
        worker.erase(sender.handoff(worker, key="task 7"))
        assert "note-2" == sender.handoff(worker, key="task 7")
        assert WORD in worker.window().to_json().decode()
        assert () == worker.verify().problems


def test_a_handoff_that_another_worker_makes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers that hand over with the same key at the same time write one note."""
    with opened(tmp_path) as engine, opened(tmp_path) as other, spoken(engine):
        receive = handing.receive

        def receive_late(core: Core, made: handing.Handoff) -> str:
            with monkeypatch.context() as patched:
                patched.setattr(handing, "receive", receive)
                with other.session("project") as again:
                    again.handoff("worker", key="task 7")
            return receive(core, made)

        monkeypatch.setattr(handing, "receive", receive_late)
        with engine.session("project") as sender:
            assert "note-1" == sender.handoff("worker", key="task 7")
        with engine.session("worker") as receiver:
            assert ["note-1"] == [note.index for note in receiver.notes()]


def test_each_copy_tells_where_it_is_from(tmp_path: Path) -> None:
    """A handoff, a promoted page, what another session wrote here and a page that was recalled: after opening again too."""
    with opened(tmp_path) as engine, spoken(engine) as sender, engine.session("worker") as worker:
        seq = sender.seq
        sender.handoff(worker)
        sender.promote("usr-1")
        worker.mount(sender, permission="read_write")
        written = worker.create_detail_page("Found", "by the worker", "It sings at night.", "project/usr-0")
    with opened(tmp_path) as engine, engine.session("worker") as worker, engine.session("memory") as memory:
        told = str(worker.explain("note-1"))
        assert f"what session 'project' held as of its event {seq}, to which checkpoint cp-1 goes back: " in told
        assert "usr-1" in told
        assert "what session 'project' held as of its event" in str(memory.explain("note-1"))
        assert str(memory.explain("note-1")).endswith("it has room.") or ": usr-1." in str(memory.explain("note-1"))
        assert "what session 'worker' held as of its event" in str(worker.explain(written))
        worker.recall("project/usr-1")
        assert "it is page usr-1 of session 'project', mounted as project, read_write" in str(worker.explain("project/usr-1"))


def test_erasing_reaches_all_copies(tmp_path: Path) -> None:
    """What was handed over, promoted, shown and recalled, copies of these copies, and forks of those who had them."""
    with opened(tmp_path) as engine, spoken(engine) as sender:
        with engine.session("worker") as worker, engine.session("next") as following:
            sender.handoff(worker)
            sender.promote("usr-1")
            sender.promote("usr-2")
            worker.mount(sender, permission="read_write")
            worker.append(user("go on"))
            worker.recall("project/usr-1")
            worker.window()
            following.mount(worker)
            following.append(user("and I?"))
            following.recall("worker/note-1")
            following.window()
        for name in ("worker", "next", "memory"):
            engine.fork(name, f"{name} twin").close()
        receipts = engine.erase("project", "usr-1", forks=True)
        assert {"project", "worker", "next", "memory", "worker twin", "next twin", "memory twin"} == {
            receipt.session for receipt in receipts
        }
        assert "question8" in str(engine.page("memory/note-2").messages)
        for name in engine.sessions():
            with engine.session(name) as session:
                assert () == session.verify().problems
                session.window()
    assert [] == left(tmp_path)


def hand_over_and_go_back(engine: Engine, sender: Session) -> None:
    with engine.session("worker") as worker:
        worker.append(user("ready"))
        before = worker.checkpoint("before").id
        sender.handoff(worker)
        engine.fork("worker", "twin").close()
        worker.restore_checkpoint(before)
        worker.append(user("go on"))


def recall_in_a_fork(engine: Engine, sender: Session) -> None:
    with engine.session("worker") as worker:
        worker.append(user("ready"))
        worker.mount(sender)
        worker.recall("project/usr-1")
    engine.fork("worker", "twin").close()
    engine.delete("worker")


def promote_from_a_fork(engine: Engine, sender: Session) -> None:
    with engine.fork(sender.id, "twin") as twin:
        twin.promote("usr-1", "Birds")
    engine.delete("twin")


def recall_from_the_memory(engine: Engine, sender: Session) -> None:
    sender.promote("usr-1", "Birds")
    with engine.session("worker") as worker:
        worker.append(user("ready"))
        worker.mount("memory")
        worker.recall("memory/note-1")
    engine.delete("memory")


def hand_over_and_promote(engine: Engine, sender: Session) -> None:
    with engine.session("worker") as worker:
        sender.handoff(worker)
        worker.promote("note-1", "Birds")
    engine.delete("worker")


@pytest.mark.parametrize(
    "pass_on", [hand_over_and_go_back, recall_in_a_fork, promote_from_a_fork, recall_from_the_memory, hand_over_and_promote]
)
def test_copies_beyond_a_deleted_session(tmp_path: Path, pass_on: Callable[[Engine, Session], None]) -> None:
    """A copy that went on from a session which was deleted since, or that a checkpoint took out of view, is found and erased."""
    with opened(tmp_path) as engine, spoken(engine) as sender:
        pass_on(engine, sender)
        assert left(tmp_path)
        engine.erase("project", "usr-1", forks=True)
        for name in engine.sessions():
            with engine.session(name) as session:
                assert () == session.verify().problems
                assert WORD not in session.window().to_json().decode()
    assert [] == left(tmp_path)


def test_a_copy_of_other_pages_stays(tmp_path: Path) -> None:
    """A note that says nothing of the page is not touched."""
    with opened(tmp_path) as engine, spoken(engine) as sender:
        sender.handoff("worker", include=["last"], share=0.2)
        index = sender.append(user(f"{WORD} again")).page.index
        assert ["project"] == [each.session for each in engine.erase("project", index, forks=True)]
        with engine.session("worker") as worker:
            assert "question9" in str(worker.page("note-1").messages)


def test_a_promotion_that_its_session_does_not_know_is_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was killed after it wrote the note leaves nothing that erasing does not find."""
    with opened(tmp_path) as engine, spoken(engine) as session:
        assert killed_at(1, lambda: session.promote("usr-1"), monkeypatch)
    with opened(tmp_path) as engine:
        assert ["project", "memory"] == [each.session for each in engine.erase("project", "usr-1", forks=True)]
    assert [] == left(tmp_path)


@pytest.mark.parametrize(
    ("place", "step", "work"),
    [
        (handing, "receive", lambda sender, other: sender.handoff(other)),
        (promoting, "write", lambda sender, _other: sender.promote("usr-1")),
        (mounting, "show", lambda sender, other: other.mount(sender)),
        (recalling, "attach", lambda _sender, other: other.recall("project/usr-1")),
    ],
    ids=["handoff", "promote", "mount", "recall"],
)
def test_what_is_erased_while_it_is_copied(
    place: object, step: str, work: Callable[[Session, Session], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that was read before an erasure and is written after it does not bring the words back."""
    with opened(tmp_path) as engine, opened(tmp_path) as beside, spoken(engine) as sender, engine.session("worker") as other:
        if step == "attach":
            other.mount(sender, capacity_tokens=0)
            other.append(user("and I?"))
        write, is_first = getattr(place, step), [True]

        def erased_before(core: Core, *given: object, **named: object) -> object:
            if is_first.pop() if is_first else False:
                beside.erase("project", "usr-1", forks=True)
            return write(core, *given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(place, step, erased_before)
            work(sender, other)
        assert [] == is_first
        other.append(user("go on"))
        other.window()
        assert () == (*other.verify().problems, *sender.verify().problems)
    assert [] == left(tmp_path)


def test_a_damaged_receiver_keeps_no_other(tmp_path: Path) -> None:
    """Where a copy cannot be erased it is said which, and all others are."""
    with opened(tmp_path) as engine, spoken(engine) as sender:
        for name in ("one", "two"):
            with engine.session(name) as session:
                session.mount(sender)
                session.append(user("hello"))
                session.window()
    (journal,) = (tmp_path / "default" / "one").rglob("journal.jsonl")
    journal.write_bytes(b"\0" * 40 + journal.read_bytes()[40:])
    with opened(tmp_path) as engine, pytest.raises(ErasureError) as raised:
        engine.erase("project", "usr-1", forks=True)
    assert "two" in [receipt.session for receipt in raised.value.receipts]
    assert [journal] == left(tmp_path)
