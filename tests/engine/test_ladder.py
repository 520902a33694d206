"""The steps that make a window fit: what goes first, and what stays."""

from typing import Any

import pytest

from memci.archive.page_facts import PageState
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.engine.sessions import indexes, open_session
from tests.engine.wire import assistant, calling, result, system, user


def test_a_page_shown_as_a_stub_makes_little_room() -> None:
    """Folding counts what a page takes in the window: one that is a stub is not taken for all that is needed."""
    session = open_session(active={"entry_tokens": 400})
    session.extend([user("read the log"), calling("a"), result("a", "row " * 5_000), assistant("read")])
    for number in range(3):
        session.extend([user(f"ask {number}"), assistant(f"answer {number} " + "word " * 150)])
    session.append(user("and now? " + "please " * 40))
    window = session.window(500)
    assert window.tokens <= 500
    assert user("and now? " + "please " * 40) == window.messages[-1]
    assert 0 < window.breakdown["contents"]
    assert [] == indexes(session, PageState.EVICTED)


def booked(**config: Any) -> Session:  # noqa: ANN401 (any section of the file)
    """Return a session with rules, many short turns, and a long one among them."""
    session = Engine("memory:", {"budget": {"window": 3_000, "reserve": 0}, **config}).session("seats")
    session.append(system("Policy. " * 620))
    for number in range(120):
        more = " By the window, " + "please " * 800 if number == 3 else ""
        session.append(user(f"Booking R{37 * number}: change seat {number}.{more}"))
        session.append(assistant(f"R{37 * number} has seat {number} now. " + "Fine. " * 30))
        session.window()
    return session


@pytest.mark.parametrize("words", [550, 600, 650, 700, 750])
def test_what_was_recalled_goes_before_pages_leave_the_contents_page(words: int) -> None:
    """However little room is left beside a recalled page, all pages stay in the contents page, or in a directory of it."""
    session = booked()
    session.recall("usr-4")
    session.append(user("Now this: " + "word " * words))
    assert session.window().tokens <= 3_000
    assert [] == indexes(session, PageState.EVICTED)
    assert "usr-12" == session.recall("usr-12").index


def test_what_was_prefetched_goes_before_the_contents_page_is_shortened() -> None:
    """A page that nobody asked for leaves a window without room, and the contents page stays as it is."""
    session = booked(recall={"prefetch_tokens": 300})
    session.append(user("What was said of booking R370 and R407?"))
    session.fold("all")
    session.window()
    before = session.contents
    attached = indexes(session, PageState.ATTACHED)
    session.window(session.window().tokens - 5)
    assert before == session.contents
    assert len(attached) - 1 == len(indexes(session, PageState.ATTACHED))


def test_a_window_without_room_for_the_contents_page_goes_without_it() -> None:
    """Tools that leave no room for the contents page in one window take nothing from later ones."""
    session = booked()
    before = session.window()
    tools = [{"type": "function", "function": {"name": "t", "description": " word" * 1_520, "parameters": {}}}]
    without = session.window(tools=tools)
    assert (0, before.budget) == (without.breakdown["contents"], without.budget)
    assert without.tokens <= without.budget
    assert without.to_json() == session.render(at=without.seq).to_json()
    assert [] == indexes(session, PageState.EVICTED)
    assert 0 < session.window().breakdown["contents"]
    assert "usr-12" == session.recall("usr-12").index
