"""Results in every order: several in one command do what they do one by one, in every format."""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.engine.session import Session
from memci.errors import InvalidMessageError
from tests.engine.sessions import indexes, open_session
from tests.engine.whole_state import told
from tests.engine.wires import ANTHROPIC, WIRES, Value, Wire

AT = "2026-03-01T12:00:00+00:00"


def steps(wire: Wire) -> dict[str, list[Value]]:
    """Return what a backend may append next, by name: an answer with calls, one or two results, what the user says."""
    results = [wire.result(call_id, f"result {call_id}") for call_id in ("x", "y")]
    both = [results[0] | {"content": [part for each in results for part in each["content"]]}] if wire is ANTHROPIC else results
    return {
        "call": wire.answer("", "", ["x"]),
        "x": results[:1],
        "y": results[1:],
        "both": both,
        "user": [wire.user("go on")],
    }


def told_before(wire: Wire) -> list[Value]:
    """Return two turns; two answers of each call ``x`` and ``y``, and none of the calls has a result."""
    values: list[Value] = []
    for text in ("first", "second"):
        values += [wire.user(f"{text} " * 40), *wire.answer("", "going on", ["x", "y"]), *wire.answer("", "now", ["x", "y"])]
        values += wire.answer("", "without them", ())
    return [*values, wire.user("last")]


def archived(wire: Wire, before: Sequence[Value]) -> Session:
    """Return a session with two archived pages, whose calls wait for their results."""
    session = open_session(format=wire.name, active={"min_pages": 1})
    session.extend(before, at=AT)
    session.window(170)
    assert ["usr-3"] == indexes(session, PageState.OPEN, PageState.ACTIVE)
    return session


def taken(session: Session, commands: Sequence[Sequence[Value]]) -> str:
    """Append messages, in as many commands as there are lists; return what refuses them, empty where nothing does."""
    try:
        for values in commands:
            session.extend(values, at=AT)
    except InvalidMessageError as error:
        return str(error)
    return ""


def everything(session: Session) -> Iterator[object]:
    """Yield all that can be seen of a session."""
    yield list(session.messages())
    yield told(session._core.state)
    yield session._core.ask(lambda index: list(index.rows()))


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_results_in_one_command_are_those_one_by_one(wire: Wire) -> None:
    """Whatever order calls and results come in, late or in time: one command does what single ones do, or both are refused."""
    before, next_steps = told_before(wire), steps(wire)
    for names in product(next_steps, repeat=3):
        values = [value for name in names for value in next_steps[name]]
        apart, together = archived(wire, before), archived(wire, before)
        refusal = taken(apart, [[value] for value in values])
        assert refusal == taken(together, [values]), names
        if not refusal:
            apart.fold()
            together.fold()
            assert list(everything(apart)) == list(everything(together)), names


def test_results_that_come_in_one_message_take_the_place_of_several() -> None:
    """Where a window stood in for each of two results, the next one has the message that holds both, and nothing else."""
    calls: list[Value] = [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in ("a", "b")]
    results = [{"type": "tool_result", "tool_use_id": each, "content": f"found {each}"} for each in ("a", "b")]
    session = open_session(format="anthropic")
    session.extend([ANTHROPIC.user("look"), {"role": "assistant", "content": calls}])
    session.window()
    session.append({"role": "user", "content": results})
    said = [ANTHROPIC.user("look"), {"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    assert said == session.window().messages
