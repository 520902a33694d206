"""A host's whole list of messages, taken over again and again: what is known stays, edits go back first, nothing is doubled."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Appended
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ArgumentError, ConflictError, InvalidMessageError
from tests.engine.sessions import config_of, open_session
from tests.engine.wire import Value, assistant, calling, result, user
from tests.engine.wires import ANTHROPIC, OPENAI, RESPONSES, Wire

RULES = {"role": "system", "content": "Be kind."}


def said(session: Session) -> list[Value]:
    return list(session.messages())


def turns(number: int) -> list[Value]:
    return [each for turn in range(number) for each in (user(f"Question {turn}."), assistant(f"Answer {turn}."))]


def test_a_list_that_grows_is_appended() -> None:
    """Each time what is new comes in, and nothing else is written; a list that did not change writes nothing."""
    session, mine = open_session(), [RULES]
    for number in range(5):
        mine += [user(f"Question {number}."), assistant(f"Answer {number}.")]
        synced = session.sync(mine)
        assert (2 if number else 3, None, False) == (len(synced.appended), synced.rewound, synced.system)
        assert mine == said(session)
        before = session.seq
        assert (len(mine) - 1, ()) == (
            session.sync([dict(reversed(each.items())) for each in mine]).known,
            session.sync(mine).appended,
        )
        assert before == session.seq


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("folded", [False, True])
def test_an_edit_goes_back_first(place: int, folded: bool) -> None:  # noqa: FBT001 (a parameter)
    """Whatever message was edited, in the window or folded: the session goes on from there, and keeps what it leaves."""
    session, mine = open_session(), turns(5)
    session.sync(mine)
    if folded:
        session.fold("all")
    edited = [*mine[:place], {**mine[place], "content": "Something else."}]
    synced = session.sync(edited)
    assert (place, f"usr-{place // 2 + 1}/{place % 2 + 1}", 1) == (synced.known, synced.rewound, len(synced.appended))
    assert edited == said(session)
    assert 11 == len(list(session.events("appended")))
    assert () == session.verify().problems


def test_a_list_that_ends_earlier_goes_back() -> None:
    """As where an answer is to be generated again; an empty list goes back to before the first message."""
    session, mine = open_session(), turns(3)
    session.sync(mine)
    assert "usr-3/2" == session.sync(mine[:-1]).rewound
    assert mine[:-1] == said(session)
    assert "usr-1/1" == session.sync([]).rewound
    assert [] == said(session)
    assert 6 == len(session.sync(mine).appended)


def test_the_system_part_is_replaced_where_it_differs() -> None:
    """It is not part of the conversation: nothing goes back for it, and a list without one leaves it alone."""
    session, mine = open_session(), turns(2)
    session.sync([RULES, *mine])
    assert (4, None, False) == ((kept := session.sync(mine)).known, kept.rewound, kept.system)
    strict = {**RULES, "content": "Be strict."}
    assert (4, None, True) == ((changed := session.sync([strict, *mine])).known, changed.rewound, changed.system)
    assert [strict, *mine] == said(session)
    later = [*mine, RULES, user("And now?")]
    assert 2 == len(session.sync([strict, *later]).appended)
    assert [strict, *later] == said(session)


@pytest.mark.parametrize("first", [2, 3, 7])
def test_a_part_of_a_list_is_refused(first: int) -> None:
    """A list that begins later would throw away what is before it: nothing is written."""
    session, mine = open_session(), turns(5)
    session.sync(mine)
    before = session.seq
    with pytest.raises(ArgumentError, match="whole conversation"):
        session.sync(mine[first:])
    assert before == session.seq


@pytest.mark.parametrize("bad", [[{"role": "nobody", "content": "?"}], "text", [7], {"role": "user", "content": "?"}])
def test_a_bad_message_changes_nothing(bad: Any) -> None:  # noqa: ANN401 (anything)
    """What is no message is refused before anything is written, but for going back to where the list is known."""
    session, mine = open_session(), turns(2)
    session.sync(mine)
    with pytest.raises(InvalidMessageError):
        session.sync([*mine, *bad] if isinstance(bad, list) else bad)
    assert mine == said(session)


def test_what_was_erased_does_not_come_back() -> None:
    """A host's list may have it still: it counts as known there, in an open session and a new one."""
    session, mine = open_session(), turns(3)
    session.sync(mine)
    session.erase(2)
    for _ in range(2):
        assert (6, None, ()) == ((synced := session.sync(mine)).known, synced.rewound, synced.appended)
        session.refresh()
    assert "Question 1." not in str(said(session))
    assert 1 == len(session.sync([*mine, user("Next.")]).appended)


def test_going_back_otherwise_is_known(tmp_path: Path) -> None:
    """Rewinds, restored checkpoints and folds between two lists, and forks; by other handles too."""
    engine, mine = Engine(FileStore(tmp_path), config_of()), turns(4)
    session, other = engine.session("chat"), Engine(FileStore(tmp_path), config_of()).session("chat")
    session.sync(mine)
    mark = session.checkpoint("here")
    other.refresh()
    other.sync(mine)
    session.rewind("usr-3/2")
    assert 3 == len(session.sync(mine).appended)
    session.fold("all")
    session.undo_fold()
    session.restore_checkpoint(mark.id)
    assert (8, ()) == ((synced := session.sync(mine)).known, synced.appended)
    other.refresh()
    assert (8, ()) == ((synced := other.sync(mine)).known, synced.appended)
    with engine.fork("chat", "fork") as fork:
        assert 1 == len(fork.sync([*mine, user("In the fork.")]).appended)
    session.append(user("Others speak."))
    with pytest.raises(ConflictError):
        other.sync([*mine, user("Mine.")])


def late(wire: Wire) -> list[Value]:
    """Return a conversation in which a result comes after the user went on, as it came."""
    calls = wire.answer("", "I look.", ["one", "two"])
    return [wire.user("Look."), *calls, wire.result("one", "1"), wire.user("Go on."), wire.result("two", "2"), wire.user("So?")]


@pytest.mark.parametrize("wire", [OPENAI, RESPONSES])
@pytest.mark.parametrize("put", [lambda mine: mine, lambda mine: [*mine[:-3], mine[-2], mine[-3], mine[-1]]])
def test_late_results_may_stand_where_they_came_or_by_their_call(wire: Wire, put: Callable[[list[Value]], list[Value]]) -> None:
    """Both are the same conversation; nothing goes back, and it can be gone on with."""
    session, mine = open_session(format=wire.name), late(wire)
    for number in range(1, len(mine) + 1):
        session.sync(mine[:number])
    assert (len(mine), None) == ((synced := session.sync(put(mine))).known, synced.rewound)
    edited = [*put(mine)[:-1], wire.user("Why?")]
    assert 1 == len(session.sync(edited).appended)
    assert sorted(map(str, edited)) == sorted(map(str, said(session)))
    assert () == session.verify().problems


@pytest.mark.parametrize("wire", [OPENAI, RESPONSES, ANTHROPIC], ids=lambda wire: wire.name)
@pytest.mark.parametrize("seed", range(12))
def test_any_list_after_any_other(wire: Wire, seed: int) -> None:
    """Whatever a host's list turns into, the session holds just that, and all that it ever held stays in the journal."""
    chance, number = random.Random(seed), 0  # noqa: S311 (chance, not secrets)

    def more() -> list[Value]:
        nonlocal number
        number += 1
        calls = [f"call{number}x{each}" for each in range(chance.choice([0, 0, 1, 2]))]
        results = [wire.result(each, f"Result of {each}.") for each in calls]
        return [wire.user(f"Question {number}."), *wire.answer("", f"Answer {number}.", calls), *results]

    engine = Engine(MemoryStore(), config_of(format=wire.name, budget={"window": 2_000, "reserve": 0}))
    mine: list[Value] = []
    ever: set[str] = set()
    for _ in range(25):
        with engine.session("chat") as session:
            starts = [place for place, value in enumerate(mine) if str(value.get("content", "")).startswith("Question")]
            if starts and chance.random() < 0.4:
                del mine[chance.choice(starts[-4:]) :]
            mine += [each for _ in range(chance.randint(1, 3)) for each in more()]
            session.sync(mine)
            ever.update(map(str, mine))
            assert mine == said(session)
            session.window()
            assert (len(mine), ()) == ((again := session.sync(mine)).known, again.appended)
    with engine.session("chat") as session:
        assert ever == {str(event.data["message"]) for event in session.events("appended")}
        assert () == session.verify().problems


def test_a_known_list_reads_no_record_again() -> None:
    """However long the history, and though the session was closed: what the last list brought is read, and nothing else."""
    store = MemoryStore()
    with Engine(store, config_of()) as engine:
        mine = turns(1_000)
        with engine.session("chat") as session:
            session.sync(mine[:-2])
            session.sync(mine)
        with engine.session("chat") as session:
            read = list[int]()
            journal = session._core.store.journal
            reading = journal.read

            def counted(after: int = 0, until: int | None = None) -> Any:  # noqa: ANN401 (as it is)
                for record in reading(after, until):
                    read.append(record.seq)
                    yield record

            session._core.store.journal.read = counted  # type: ignore[method-assign]
            assert 2_000 == session.sync(mine).known
            assert 2 == len(read)


def test_numbers_and_objects_are_compared_as_json() -> None:
    """Integers beyond 64 bits, lone surrogates, and objects of an SDK, alone or within a message."""

    class Part:
        def model_dump(self, *, mode: str, exclude_unset: bool) -> Value:
            assert ("json", True) == (mode, exclude_unset)
            return {"type": "text", "text": "Hello."}

    class Message:
        def model_dump(self, **_asked: object) -> Value:
            return user("From an object.")

    mine: list[Any] = [
        {"role": "user", "content": "Big.", "number": 2**80},
        assistant("A half \ud800."),
        {"role": "user", "content": [Part()]},
        calling("one"),
        result("one", "1"),
        Message(),
    ]
    session = open_session()
    session.sync(mine)
    assert (6, ()) == ((synced := session.sync(mine)).known, synced.appended)


@pytest.mark.parametrize(
    ("wire", "stored", "kept"),
    [
        (
            ANTHROPIC,
            {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "c",
                "content": [{"type": "text", "text": "a"}],
                "usage": {},
            },
            {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        ),
        (OPENAI, {"role": "assistant", "content": "a", "refusal": None}, {"role": "assistant", "content": "a"}),
    ],
)
def test_what_is_of_the_answer_only_may_be_left_out(wire: Wire, stored: Value, kept: Value) -> None:
    """A host that keeps less of an answer than the session does edits nothing, and neither does one that keeps more."""
    for first, then in ((stored, kept), (kept, stored)):
        session = open_session(format=wire.name)
        session.sync([user("q"), first])
        synced = session.sync([user("q"), then, user("and now?")])
        assert (None, 2) == (synced.rewound, synced.known)
        assert 3 == len(list(session.messages()))


@pytest.mark.parametrize("system", [[], [{"role": "system", "content": "Be brief."}]])
def test_a_list_that_is_refused_changes_nothing(system: list[Value]) -> None:
    """What was taken back for a list with a message that is none, or that is a part, stands there as before."""
    session = open_session()
    known = [{"role": "system", "content": "Be kind."}, *turns(3)]
    session.sync(known)
    before = session.window().messages
    with pytest.raises(InvalidMessageError):
        session.sync([*system, user("another"), result("nobody's", "x")])
    with pytest.raises(ArgumentError):
        session.sync([*system, *turns(3)[2:]])
    assert known == list(session.messages())
    assert before == session.window().messages
    assert () == session.verify().problems


def test_observers_hear_of_it() -> None:
    """Messages that come in by a list are told of as those of an append."""
    with Engine(MemoryStore()) as engine, engine.session("chat") as session:
        heard: list[object] = []
        engine.observe(heard.append)
        session.sync(turns(2))
        assert [4] == [notice.messages for notice in heard if isinstance(notice, Appended)]
