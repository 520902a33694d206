"""Recaps: where a session stands, for whoever comes back, in how much room, and what happened since."""

from typing import Any

import pytest

from memci.engine.session import Session
from memci.errors import ArgumentError
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, calling, result, user


def worked() -> Session:
    session = open_session()
    session.append(user("Bring the invoices of March in order. Always use EUR."))
    session.append(assistant("I begin."))
    talk(session, 10)
    session.fold("all")
    session.extend([user("Now run the export."), calling("one"), result("one", "PermissionError: march.csv is locked")])
    session.append(assistant("The export failed, the file is locked."))
    return session


def test_it_tells_where_a_session_stands() -> None:
    """Goal, standing instruction, failure, findings and last messages are there, in the session's own words."""
    session = worked()
    seq = session.seq
    recap = session.recap(2_000)
    for each in ("Bring the invoices", "Always use EUR.", "PermissionError: march.csv is locked", "The export failed"):
        assert each in recap.text
    assert ["goal", "failures", "findings", "last"] == [part for part in recap.parts if part != "outcomes"]
    assert (seq, 12, seq) == (session.seq, recap.turn, recap.seq)


def test_what_happened_since_is_counted() -> None:
    """Messages, folds and recalls after an event; by default those of the open turn."""
    session = worked()
    assert {"messages": 4} == session.recap().happened
    seq = session.seq
    assert {} == session.recap(since=seq).happened
    session.recall("usr-3")
    talk(session, 2, first=50)
    session.fold("all")
    assert {"messages": 4, "folds": 1, "recalls": 1} == session.recap(since=seq).happened


@pytest.mark.parametrize("most", [20, 100, 300, 1_000])
def test_it_keeps_to_its_room(most: int) -> None:
    """What is told of the parts takes no more than was given."""
    session = worked()
    with session._open() as core:
        count = core.counter.count
    said = "\n".join(line for name, lines in session.recap(most).parts.items() for line in (f"{name}:", *lines))
    assert count(said) <= most


def test_an_empty_session_has_one_too() -> None:
    """Nothing was said, and nothing is told."""
    recap = open_session().recap()
    assert ({}, {}, 0) == (dict(recap.parts), recap.happened, recap.turn)


@pytest.mark.parametrize(
    "given", [{"max_tokens": 0}, {"max_tokens": "9"}, {"since": -1}, {"since": True}, {"include": ["words"]}]
)
def test_bad_arguments(given: dict[str, Any]) -> None:
    """What is no number and no part is refused."""
    with pytest.raises(ArgumentError):
        open_session().recap(**given)
