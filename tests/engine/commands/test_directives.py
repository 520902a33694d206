"""System and developer messages said in mid-conversation stay in the window when their pages fold."""

from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Fold, Notice
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.engine.sessions import config_of, heard, open_session, talk
from tests.engine.wire import Value, assistant, system, user

RULE = {"role": "developer", "content": "Never tell customers the internal ticket numbers."}
STYLE = {"role": "system", "content": "From now on, answer in French."}


def directed(store: MemoryStore | None = None, **sections: Any) -> Session:  # noqa: ANN401 (any section of the file)
    """Return a session with a directive in its first and in its third page, of which all but the last page folded."""
    session = open_session(store, **sections)
    session.append(system("You help."))
    session.extend([user("hello"), RULE, assistant("hi")])
    talk(session, 1, first=2)
    session.extend([user("and now"), STYLE, assistant("oui")])
    talk(session, 3, first=4)
    session.fold("all")
    return session


def directives(session: Session, **asked: Any) -> list[Value]:  # noqa: ANN401 (arguments of a window)
    """Return the system and developer messages of a window after its contents page."""
    messages = session.window(**asked).messages
    begin = next(place for place, value in enumerate(messages) if "Contents of earlier pages" in value["content"])
    return [value for value in messages[begin:] if value["role"] in ("system", "developer")]


def test_a_directive_stays_as_it_was_said() -> None:
    """Folded, it is where the active part begins, in its role, and counted in a part of its own."""
    session = directed()
    window = session.window()
    roles = [value["role"] for value in window.messages]
    assert ["system", "user", "developer", "system", "user", "assistant"] == roles
    assert [RULE, STYLE] == directives(session)
    assert window.tokens == sum(window.breakdown.values())
    assert 0 < window.breakdown["directives"]


def test_a_session_opened_again_shows_the_same() -> None:
    """From a snapshot or from the journal alone, the window has the same bytes."""
    store = MemoryStore()
    shown = directed(store).window().to_json()
    assert shown == Engine(store, config_of()).session("chat").window().to_json()
    session = Engine(store, config_of()).session("chat")
    assert shown == session.render(at=session.seq).to_json()
    assert shown == Engine(store, config_of()).fork("chat", "other").window().to_json()


def test_equal_directives_are_shown_once() -> None:
    """A message said again is shown once, where it was said last; one that is still in the active part is not repeated."""
    session = directed()
    session.extend([user("again"), {**RULE}, assistant("yes")])
    talk(session, 1, first=8)
    assert [RULE, STYLE, RULE] == directives(session)
    session.fold("all")
    assert [STYLE, RULE] == directives(session)
    session.extend([user("again"), STYLE, assistant("oui")])
    talk(session, 1, first=10)
    session.fold("usr-8")
    assert [RULE, STYLE] == directives(session)


def test_a_host_that_repeats_a_directive_every_turn_does_not_fill_the_window() -> None:
    """However often it is said, it costs the window one copy beside those of the active part, and none is reported as dropped."""
    session = open_session(budget={"window": 600, "reserve": 0})
    notices = heard(session)
    for number in range(40):
        session.extend([user(f"question {number}"), RULE, assistant("answer " * 20)])
        shown = directives(session) if "Contents" in str(session.window().messages) else [RULE]
        in_view = sum(page.state.value in {"active", "open"} for page in session.pages())
        assert 1 <= len(shown) <= in_view
    assert session.window().breakdown.get("directives", 0) == 0
    assert set() == dropped(notices)


def dropped(notices: list[Notice]) -> set[str]:
    return {address for notice in notices if isinstance(notice, Fold) for address in notice.dropped_directives}


def test_directives_have_a_tenth_of_the_budget() -> None:
    """The newest have it; what has no room is reported, and comes back with no later fold."""
    session = open_session(budget={"window": 1_000, "reserve": 0})
    notices = heard(session)
    for number in range(20):
        session.extend([user(f"question {number}"), {"role": "system", "content": f"It is {number} o'clock. " * 5}])
        session.append(assistant("answer " * 30))
        session.window()
    shown = directives(session)
    window = session.window()
    assert 0 < window.breakdown["directives"] <= 100
    folded_pages = 20 - sum(page.state.value in {"active", "open"} for page in session.pages())
    assert f"It is {folded_pages - 1} o'clock. " * 5 in [value["content"] for value in shown]
    assert f"It is {folded_pages - 9} o'clock. " * 5 not in [value["content"] for value in shown]
    assert {"usr-1/2", "usr-2/2"} <= dropped(notices)


def test_set_system_replaces_directives() -> None:
    """Also those that are still in the active part when it is called."""
    session = directed()
    session.extend([user("again"), {"role": "system", "content": "Be brief."}, assistant("yes")])
    session.set_system([system("You help in French.")])
    talk(session, 1, first=9)
    session.fold("all")
    assert [] == directives(session)
    session.extend([user("again"), RULE, assistant("yes")])
    talk(session, 1, first=11)
    session.fold("all")
    assert [RULE] == directives(session)


def test_undoing_a_fold_puts_a_directive_back_in_its_place() -> None:
    """It is shown once then, in its page; folded again, it is where it was."""
    session = directed()
    before = session.window().to_json()
    session.undo_fold()
    messages = session.window().messages
    assert (1, 1) == (messages.count(RULE), messages.count(STYLE))
    assert "directives" not in session.window().breakdown
    session.fold("all")
    assert before == session.window().to_json()


def test_a_rewind_takes_later_directives_back() -> None:
    """Those said before the entry stay."""
    session = directed()
    session.rewind("usr-3/1")
    assert [RULE] == directives(session)


@pytest.mark.parametrize("opened_again", [False, True])
def test_an_erased_page_has_no_directive(opened_again: bool) -> None:  # noqa: FBT001 (a case)
    """Neither the session nor its undo log shows what was erased."""
    store = MemoryStore()
    session = directed(store)
    session.checkpoint("before")
    session.erase("usr-1")
    if opened_again:
        session = Engine(store, config_of()).session("chat")
    assert [STYLE] == directives(session)
    session.undo_fold()
    assert RULE not in session.window().messages


def test_a_checkpoint_has_its_directives() -> None:
    """Going back to it brings back those that it had; erasing their page takes them out of it."""
    session = directed()
    checkpoint = session.checkpoint("before")
    session.set_system([system("Other.")])
    assert [] == directives(session)
    session.restore_checkpoint(checkpoint.id)
    assert [RULE, STYLE] == directives(session)
    session.erase("usr-3")
    assert [RULE] == directives(session)
    assert session.verify().ok


def test_directives_are_counted_by_a_new_counter() -> None:
    """A window by another counter holds its budget with them."""
    store = MemoryStore()
    by_first = directed(store).window().breakdown["directives"]
    session = Engine(store, config_of(counter="approximate")).session("chat")
    window = session.window()
    assert by_first != window.breakdown["directives"]
    assert window.tokens == sum(window.breakdown.values())
    session.undo_fold()
    session.fold("all")
    assert session.window().breakdown["directives"] == window.breakdown["directives"]


def test_a_window_too_small_for_directives_goes_without_them() -> None:
    """They leave one small window before the newest message does, and later ones have them again."""
    session = directed(budget={"window": 2_000, "reserve": 0})
    session.append(user("short question"))
    least = session.window(60)
    assert user("short question") == least.messages[-1]
    assert RULE not in least.messages
    assert RULE in session.window().messages
    assert least.to_json() == session.render(at=least.seq).to_json()


def test_the_prefix_grows_between_folds() -> None:
    """A directive said in an active page changes nothing before it until the next fold."""
    session = directed()
    before = session.window().messages
    session.extend([user("again"), RULE])
    assert before == session.window().messages[: len(before)]
