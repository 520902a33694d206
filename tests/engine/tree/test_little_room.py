"""Windows of a tree that has hardly any room."""

from collections.abc import Sequence
from contextlib import suppress

import pytest

from memci.engine.core.core import Core
from memci.engine.history.events import Event
from memci.errors import BudgetError
from tests.engine.sessions import open_session, talk
from tests.engine.wire import user

MOST = 30  # events of one window


@pytest.mark.parametrize("turns", [0, 3])
@pytest.mark.parametrize(("notes", "parent"), [(0, "sys-0"), (1, "sys-0"), (2, "usr-0")])
def test_a_window_is_made_in_few_steps(turns: int, notes: int, parent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever room is left for the lines of what was made, a window takes few steps, and the next one of its budget none."""
    written, commit = 0, Core.commit

    def counted(core: Core, events: Sequence[Event]) -> object:
        nonlocal written
        written += len(events)
        assert written <= MOST, "the steps go on and on"
        return commit(core, events)

    monkeypatch.setattr(Core, "commit", counted)
    for less in range(1, 120, 3):
        written = 0
        with open_session(active={"min_pages": 1}) as session:
            talk(session, turns)
            session.create_contents_page("Rules for all", "a description of some length " * 3, parent)
            for number in range(notes):
                session.create_detail_page(f"Note {number}", "a description of some length " * 3, "detail", parent)
            session.append(user("now " + "word " * 600))
            session.fold("all")
            budget = session.window().tokens - less
            written = 0
            with suppress(BudgetError):
                session.window(budget=budget)
                before = session.seq
                session.window(budget=budget)
                assert before == session.seq
