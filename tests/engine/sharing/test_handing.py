"""Handing over: what the next session is told, in how much room, where it is from, and that both journals have it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memci
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.sharing import handing
from memci.errors import ArgumentError, ConflictError, MemciError
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, calling, result, user

BUDGET = {"window": 6_000, "reserve": 0}


@pytest.fixture
def engine() -> Engine:
    return Engine(MemoryStore(), config_of(budget=BUDGET))


def worked(engine: Engine, name: str = "planner", turns: int = 30) -> Session:
    """Return a session with a goal, an instruction, folded pages, a failure and a last answer."""
    session = engine.session(name)
    session.append(user("Bring the invoices of March in order. Always use EUR."))
    session.append(assistant("I begin."))
    talk(session, turns, words=25)
    session.fold("all")
    session.extend([user("Now run the export."), calling("one"), result("one", "PermissionError: march.csv is locked")])
    session.append(assistant("The export failed, the file is locked."))
    return session


def shown(session: Session) -> str:
    """Return what the window quotes of a handoff."""
    (block,) = [m["content"] for m in session.window().messages if str(m["content"]).startswith("[recalled note")]
    return str(block)


def test_facts_are_handed_over_with_their_source(engine: Engine) -> None:
    """A heading says that tools returned them, and each has its page."""
    sender = worked(engine, turns=3)
    sender.extend([user("look"), calling("c2"), result("c2", '{"order_id": "ORD-7", "status": "open", "total": "7.50"}')])
    sender.extend([assistant("It is open."), user("and on"), assistant("yes"), user("go")])
    sender.fold("all")
    sender.handoff("worker", include=["findings"])
    lines = [line.removeprefix("> ") for line in shown(engine.session("worker")).split("\n")]
    place = lines.index("returned by tools:")
    assert "- ORD-7: status open · total 7.50 (usr-6)" == lines[place + 1]


def test_the_next_session_is_told_what_it_needs(engine: Engine) -> None:
    """Goal, instruction, failure, findings and the last messages, with the sender's id, event and checkpoint."""
    sender, seq = worked(engine), 0
    seq = sender.seq
    index = sender.handoff("worker")
    with engine.session("worker") as receiver:
        text = shown(receiver)
        for each in (
            f"Session 'planner' handed over at event {seq}, checkpoint cp-1",
            "Bring the invoices of March in order.",
            "Always use EUR.",
            "PermissionError: march.csv is locked",
            "usr-32/4 assistant: The export failed, the file is locked.",
            "question",
        ):
            assert each in text
        assert text.startswith(f"[recalled note {index}, ")
        assert ["attached"] == [str(each.state) for each in receiver.notes()]
        assert "planner" in receiver.explain(index).__str__() or "planner" in receiver.get_page(index).title
        assert () == receiver.verify().problems
    assert () == sender.verify().problems
    (told,) = sender.events("handed_over")
    assert ("worker", index, "cp-1", seq) == tuple(told.data[name] for name in ("session", "page", "checkpoint", "handed_at"))
    assert ["cp-1"] == [each.id for each in sender.checkpoints()]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.25, 0.3, 1.0])
def test_it_takes_a_share_of_the_receivers_budget(engine: Engine, share: float) -> None:
    """And no more than opened pages may have; it is shown in any case, and the window fits."""
    sender = worked(engine)
    with engine.session("worker", config={"budget": {"window": 8_000, "reserve": 0}}) as receiver:
        sender.handoff(receiver, share)
        window = receiver.window()
        assert 0 < window.breakdown["recalled"] <= min(share, 0.25) * 8_000
        assert window.breakdown["recalled"] > 0.5 * min(share, 0.25) * 8_000
        receiver.append(user("Go on."))
        assert receiver.window().tokens <= 8_000


@pytest.mark.slow
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=300), min_size=1, max_size=8),
    name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=200),
    window=st.integers(1_600, 9_000),
)
def test_any_text_of_any_session_fits(texts: list[str], name: str, window: int) -> None:
    """Whatever was said, and whatever the session is called: the note is attached, within its room, and both verify."""
    with Engine(MemoryStore(), config_of()) as engine, engine.session(name) as sender:
        for text in texts:
            sender.extend([user(text * 20), assistant(text)])
        to = "worker" if name != "worker" else "other"
        with engine.session(to, config={"budget": {"window": window, "reserve": 0}}) as receiver:
            index = sender.handoff(receiver)
            assert "attached" == str(receiver.facts(index).state)
            made = receiver.window()
            assert made.breakdown["recalled"] <= 0.25 * window
            assert made.to_json() == receiver.render(made.seq).to_json()
            assert () == (*receiver.verify().problems, *sender.verify().problems)


def test_parts_that_are_wanted(engine: Engine) -> None:
    """Only these are there, in the one order that there is."""
    sender = worked(engine)
    sender.handoff("worker", include=["failures", "goal"])
    with engine.session("worker") as receiver:
        lines = shown(receiver).split("\n")
        assert ["> goal:", "> failures:"] == [line for line in lines if line in [f"> {part}:" for part in handing.PARTS]]


@pytest.mark.parametrize(
    "call",
    [
        lambda sender, _other: sender.handoff(sender),
        lambda sender, _other: sender.handoff("planner"),
        lambda sender, other: sender.handoff(other),
        lambda sender, _other: sender.handoff("worker", 0),
        lambda sender, _other: sender.handoff("worker", 1.5),
        lambda sender, _other: sender.handoff("worker", 0.001),
        lambda sender, _other: sender.handoff("worker", include=[]),
        lambda sender, _other: sender.handoff("worker", include=["mood"]),
        lambda sender, _other: sender.handoff(""),
        lambda sender, _other: sender.handoff(7),
    ],
)
def test_what_cannot_be_handed_over_is_refused(engine: Engine, call: Callable[[Session, Session], Any]) -> None:
    """To itself, to another tenant or engine, in no room, parts that there are not: nothing is written anywhere."""
    sender = worked(engine, turns=3)
    before = sender.seq
    for other in (engine.session("theirs", tenant="they"), Engine(MemoryStore()).session("worker")):
        with pytest.raises(MemciError):
            call(sender, other)
        assert 0 == other.seq
    assert before == sender.seq
    assert ["planner"] == list(engine.sessions())


def test_a_session_without_events_hands_nothing_over(engine: Engine) -> None:
    """It is said, and nothing is made."""
    with pytest.raises(MemciError, match="nothing to hand over"):
        engine.session("empty").handoff("worker")
    assert [] == list(engine.sessions())


def test_it_lasts_as_a_note_does(engine: Engine) -> None:
    """In forks, after closing, and through folds; it is found, erased and rewound around as any note."""
    index = worked(engine).handoff("worker")
    receiver = engine.session("worker")
    talk(receiver, 30, words=30)
    assert "locked" in shown(receiver)
    receiver.fold("all")
    receiver.rewind("usr-3/1")
    with engine.fork("worker", "fork") as fork:
        assert "locked" in shown(fork)
    receiver.hide_details(index)
    assert [index] == [hit.index for hit in receiver.search("locked export")][:1]
    receiver.erase(index)
    assert "locked" not in str(receiver.page(index).messages)
    assert () == receiver.verify().problems


def test_agents_pass_it_on(engine: Engine) -> None:
    """Each handoff is a note of its own, also between the same two, there and back."""
    one, two = worked(engine, "one", 3), engine.session("two")
    assert ["note-1", "note-2"] == [one.handoff(two), one.handoff(two)]
    two.append(user("I take it."))
    assert "note-1" == two.handoff(one)
    assert "I take it." in shown(one)


def test_the_receiver_knows_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sender cannot note it any more, the receiver has it all the same, and it can be done again."""
    engine = Engine(FileStore(tmp_path), config_of(budget=BUDGET))
    sender = worked(engine, turns=3)

    def fail(*_given: object) -> None:
        message = "somebody wrote"
        raise ConflictError(message, expected=1, head=1)

    with monkeypatch.context() as patched:
        patched.setattr(handing, "note", fail)
        with pytest.raises(ConflictError):
            sender.handoff("worker")
    assert "note-2" == sender.handoff("worker")
    with engine.session("worker") as receiver:
        assert 2 == len(receiver.notes())
    assert 1 == len(list(sender.events("handed_over")))


def test_sessions_of_an_event_loop_hand_over_too() -> None:
    """By session or by id."""

    async def hand_over() -> None:
        async with memci.AsyncEngine("memory:") as engine:
            one, two = await engine.session("one"), await engine.session("two")
            await one.append(user("Hello."))
            assert ["note-1", "note-2"] == [await one.handoff(two), await one.handoff("two")]  # type: ignore[arg-type]
            with pytest.raises(ArgumentError):
                await one.handoff(one)  # type: ignore[arg-type]

    asyncio.run(hand_over())
