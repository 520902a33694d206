"""Marks in messages, calls and turns: when the oldest pages fold, and how far."""

from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Fold
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.view import planner
from tests.engine.core.test_short_ways import called
from tests.engine.sessions import config_of, folded, heard, indexes, open_session, states, talk, turn
from tests.engine.wire import assistant, calling, result, user


def in_view(session: Session) -> list[str]:
    return indexes(session, PageState.ACTIVE, PageState.OPEN)


def work(session: Session, turns: int, *, first: int = 1, calls: int = 2) -> None:
    """Append turns in which a tool is called so many times."""
    for number in range(first, first + turns):
        session.append(user(f"question {number}"))
        for call in range(calls):
            session.extend([calling(f"{number}x{call}"), result(f"{number}x{call}")])
        session.append(assistant(f"answer {number}"))


def test_too_many_messages_fold_down_to_half() -> None:
    """Over ``max_messages`` the oldest pages fold until at most half as many are left."""
    session = open_session(active={"max_messages": 9})
    notices = heard(session)
    talk(session, 9)
    assert [("usr-1", "usr-2", "usr-3"), ("usr-4", "usr-5", "usr-6")] == folded(notices)
    assert {"marks"} == {notice.reason for notice in notices if isinstance(notice, Fold)}


@pytest.mark.parametrize(("kept", "left"), [(1, 5), (2, 4), (3, 4), (4, 3), (6, 2), (7, 2)])
def test_the_newest_messages_are_kept_in_whole_pages(kept: int, left: int) -> None:
    """``keep_messages`` of the newest stay, rounded up to whole pages, and never fewer than ``min_pages``."""
    session = open_session(active={"min_pages": 1, "max_messages": 8, "keep_messages": kept})
    talk(session, 4)
    session.append(user("question5"))
    assert list(map("usr-{}".format, range(left, 6))) == in_view(session)


@pytest.mark.parametrize("mark", [{"max_pages": 4}, {"max_calls": 7}, {"every_turns": 5}])
def test_all_marks_in_numbers_keep_the_newest_messages(mark: dict[str, int]) -> None:
    """Whichever mark is reached, it folds down to ``keep_messages``."""
    session = open_session(active={"min_pages": 1, "keep_messages": 13, **mark})
    work(session, 5)
    assert ["usr-3", "usr-4", "usr-5"] == in_view(session)


def test_too_many_calls_fold_down_to_half() -> None:
    """Over ``max_calls`` the oldest pages fold until half as many are left; those that wait for a result stay."""
    session = open_session(active={"max_calls": 8})
    session.extend([user("first"), calling("waits")])
    notices = heard(session)
    work(session, 6, first=2)
    assert [("usr-2", "usr-3", "usr-4")] == folded(notices)
    assert "usr-1" in in_view(session)


def test_a_period_folds_every_so_many_turns() -> None:
    """Counted from the last fold, whatever asked for that one, and down to ``min_pages``."""
    session = open_session(active={"every_turns": 3})
    notices = heard(session)
    talk(session, 7)
    assert [("usr-1",), ("usr-2", "usr-3", "usr-4")] == folded(notices)
    session.fold("usr-5")
    talk(session, 3, first=8)
    assert [("usr-5",), ("usr-6", "usr-7", "usr-8")] == folded(notices)[2:]


def test_undoing_a_fold_begins_a_period_anew() -> None:
    """The pages that came back are not folded again when the next turn begins; it lasts when the session is opened again."""
    store = MemoryStore()
    with Engine(store, config_of(active={"every_turns": 3})) as engine, engine.session("chat") as session:
        talk(session, 4)
        session.undo_fold()
        talk(session, 1, first=5)
        assert {"active", "open"} == set(states(session).values())
    with Engine(store, config_of(active={"every_turns": 3})) as engine, engine.session("chat") as session:
        talk(session, 1, first=6)
        assert "usr-2" in in_view(session)
        talk(session, 1, first=7)
        assert ["usr-6", "usr-7"] == in_view(session)


def test_a_window_with_few_tokens_does_not_fold_for_its_numbers() -> None:
    """Below ``least_tokens`` no mark in pages, messages, calls or turns folds; once the window has them, those do that wait."""
    marks = {"max_pages": 3, "max_messages": 6, "max_calls": 3, "every_turns": 2}
    session = open_session(active={**marks, "least_tokens": 2_000})
    talk(session, 5)
    assert set(in_view(session)) == set(states(session))
    session.append(user("a long question " * 700))
    assert ["usr-5", "usr-6"] == in_view(session)


def test_the_tokens_fold_whatever_the_numbers_say() -> None:
    """``keep_messages`` and ``least_tokens`` hold back no fold at the high mark, and a window keeps to its budget."""
    active = {"min_pages": 1, "max_messages": 80, "keep_messages": 70, "least_tokens": 100_000, "low_water": 0.5}
    session = open_session(budget={"window": 1_000, "reserve": 0}, active=active)
    notices = heard(session)
    talk(session, 30, words=20)
    assert folded(notices)
    assert session.window().tokens <= 1_000


def test_a_fold_by_command_goes_as_far_as_the_marks() -> None:
    """``fold()`` folds down to where a mark in numbers would, though it is not reached."""
    session = open_session(active={"max_messages": 12})
    talk(session, 5)
    assert ("usr-1", "usr-2") == session.fold().pages


MARKS: tuple[dict[str, Any], ...] = (
    {"max_messages": 12},
    {"max_messages": 12, "keep_messages": 5},
    {"max_calls": 6},
    {"every_turns": 4},
    {"every_turns": 4, "max_pages": 7, "max_calls": 12, "keep_messages": 6, "least_tokens": 50},
)


@pytest.mark.parametrize("active", MARKS)
def test_what_folds_next_is_known_before(active: dict[str, Any]) -> None:
    """The pages of a fold at a mark in numbers are among those that are prepared for it, and are asked of a summariser."""
    session = open_session(active=active)
    notices, core = heard(session), session._core
    for number in range(1, 30):
        known = {page.index for page in planner.next_folded(core.state, core.config)}
        before = len(folded(notices))
        work(session, 1, first=number, calls=1)
        assert known.issuperset(index for pages in folded(notices)[before:] for index in pages)
    assert len(folded(notices)) > 2


@pytest.mark.parametrize("active", MARKS)
def test_what_a_turn_costs_does_not_grow(active: dict[str, Any]) -> None:
    """The dearest of thirty turns calls about as many functions after 40 turns as after 10."""
    session = open_session(active=active, snapshot_every=10_000)
    numbers = iter(range(1, 1_000))

    def dearest() -> int:
        return max(called(lambda: work(session, 1, first=next(numbers), calls=1)).total() for _ in range(30))

    work(session, 10, first=1_001)
    first = dearest()
    assert dearest() < 1.5 * first


def test_forks_and_checkpoints_have_the_turn_of_the_last_fold() -> None:
    """A fork folds when its source would; who goes back to a checkpoint is as far from the last fold as then."""
    with Engine(MemoryStore(), config_of(active={"every_turns": 4})) as engine, engine.session("chat") as session:
        talk(session, 6)
        session.checkpoint("six")
        talk(session, 1, first=7)
        with engine.fork("chat", "other") as fork:
            talk(session, 3, first=8)
            talk(fork, 3, first=8)
            assert in_view(session) == in_view(fork)
            assert in_view(session) == ["usr-7", "usr-8", "usr-9", "usr-10"]
        session.restore_checkpoint("cp-1")
        session.extend(turn(11))
        assert ["usr-3", "usr-4", "usr-5", "usr-6", "usr-11"] == in_view(session)
        session.extend(turn(12))
        assert ["usr-11", "usr-12"] == in_view(session)


def test_why_a_page_is_in_view_tells_of_the_marks() -> None:
    """The marks that are set are named."""
    session = open_session(active={"max_messages": 30, "every_turns": 9, "least_tokens": 500})
    talk(session, 2)
    text = str(session.explain("usr-1"))
    assert "above 30 messages in view, or 9 turns after turn 0, in a window of 500 tokens or more." in text


def test_where_writing_to_the_cache_costs_more_folds_are_rarer() -> None:
    """With ``low_water: auto`` the gap between the marks follows from the provider's prices."""
    folds = dict[float, int]()
    for write in (1.0, 4.0):
        session = open_session(budget={"window": 4_000, "reserve": 0}, prices={"write": write, "read": 0.5})
        notices = heard(session)
        for number in range(150):
            talk(session, 1, first=number + 1, words=20)
            session.window()
        folds[write] = len(folded(notices))
    assert 1 < folds[4.0] < folds[1.0]
