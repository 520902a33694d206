"""Pages of the system part that stand behind a line: in windows, in budgets, and when the system part changes."""

from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import BudgetError, PageNotFoundError, PermissionDeniedError
from tests.engine.sessions import config_of, open_session, states, talk
from tests.engine.wire import system
from tests.engine.wires import WIRES, Wire, assert_valid

RULES = "Refunds: within thirty days of the purchase, whole, and never in cash. " * 12


def ruled_session(**sections: Any) -> Session:  # noqa: ANN401 (any section of the file)
    session = open_session(active={"min_pages": 1}, **sections)
    session.extend([system("Be brief."), system(RULES)])
    talk(session, 3)
    return session


def test_rules_stand_behind_their_line() -> None:
    """The window shows a line in their place, which says what they are, how large, and how they are shown."""
    session = ruled_session()
    whole, tokens = session.window(), session.facts("sys-2").tokens
    session.update_page("sys-2", name="Refund rules", description="what goes back, and when")
    assert whole.messages == session.window().messages
    session.hide_details("sys-2")
    window = session.window()
    line = f"[sys-2] Refund rules · {tokens} tokens · hidden: recall_page('sys-2') shows it\n  what goes back, and when"
    assert [whole.messages[0], system(line), *whole.messages[2:]] == window.messages
    assert window.breakdown["system"] < whole.breakdown["system"] - tokens / 2
    assert PageState.HIDDEN is session.facts("sys-2").state
    assert [system(RULES)] == session.page("sys-2").messages
    assert "Be brief." in [value["content"] for value in session.messages()]
    session.restore("sys-2")
    assert whole.messages == session.window().messages
    assert PageState.ACTIVE is session.facts("sys-2").state


def test_hidden_rules_are_named_by_their_words() -> None:
    """Without a name the line has how they begin; where the model has no tool that shows them, it names none."""
    session = ruled_session(recall={"protocol": "none"})
    tokens = session.facts("sys-2").tokens
    session.hide_details("sys-2")
    assert (
        f"[sys-2] Refunds: within thirty days of the purchase, whole, and nev… · {tokens} tokens · hidden"
        == (session.window().messages[1]["content"])
    )


@pytest.mark.parametrize("call", ["expand_details", "recall"])
def test_hidden_rules_are_opened_at_the_anchor(call: str) -> None:
    """They stand quoted in front of the page that is open, so that all before stays; closing them leaves the line."""
    session = ruled_session(recall={"turns": 2})
    session.hide_details("sys-2")
    before = session.window().messages
    assert [system(RULES)] == getattr(session, call)("sys-2").messages
    window = session.window().messages
    assert [*before[:-2], *before[-2:]] == [*window[:-3], *window[-2:]]
    assert str(window[-3]["content"]).startswith("[recalled page sys-2,")
    assert "user" == window[-3]["role"]
    assert ["attached"] == [states(session)["sys-2"]]
    assert 0 == session.facts("sys-2").recall_count
    talk(session, 3, first=4)
    assert ("attached" if call == "expand_details" else "hidden") == states(session)["sys-2"]
    if call == "expand_details":
        session.hide_details("sys-2")
    assert before == session.window().messages[: len(before)]


def test_the_same_line_is_written_once() -> None:
    """Hiding what is hidden writes nothing, but where its name changed: then the line is the new one."""
    session = ruled_session()
    session.hide_details("sys-2")
    seq = session.seq
    session.hide_details("sys-2")
    session.restore("sys-1")
    assert seq == session.seq
    session.update_page("sys-2", name="Rules")
    assert "[sys-2] Refunds" in str(session.window().messages[1])
    session.hide_details("sys-2")
    assert "[sys-2] Rules" in str(session.window().messages[1])
    session.undo_edit()
    session.hide_details("sys-2")
    assert "[sys-2] Refunds" in str(session.window().messages[1])


def test_a_new_system_part_has_nothing_hidden() -> None:
    """``set_system`` drops lines, names and what was opened of the part before."""
    session = ruled_session()
    session.update_page("sys-2", name="Rules")
    session.hide_details("sys-2")
    session.expand_details("sys-2")
    session.set_system([system(RULES)])
    assert [system(RULES)] == session.window().messages[:1]
    assert "[recalled" not in str(session.window().messages)
    session.undo_edit()
    session._core.state._check()
    with pytest.raises(PageNotFoundError):
        session.hide_details("sys-2")
    session.hide_details("sys-3")
    assert session.verify().ok


def test_a_window_has_room_for_what_the_rules_leave() -> None:
    """A budget that the rules alone would fill holds a conversation when they are hidden; a too small one says so."""
    session = ruled_session(budget={"window": 300, "reserve": 0})
    session.hide_details("sys-2")
    talk(session, 10, first=4)
    window = session.window()
    assert window.tokens <= 300
    assert "[sys-2]" in str(window.messages)
    session.expand_details("sys-2")
    assert "hidden" == states(session)["sys-2"]
    with pytest.raises(BudgetError) as refused:
        session.window(budget=80)
    assert refused.value.breakdown["system"] < 60
    session.restore("sys-2")
    with pytest.raises(BudgetError) as refused:
        session.window(budget=200)
    assert refused.value.breakdown["system"] > 150


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_rules_are_hidden_in_every_format(wire: Wire) -> None:
    """The window is valid, and the same when it is rendered or opened again, also under another counter."""
    store = MemoryStore()
    session = open_session(store, format=wire.name)
    session.extend([wire.system("Be brief."), wire.system(RULES), wire.user("go"), *wire.answer("", "done", ())])
    session.hide_details("sys-2")
    window = session.window()
    assert_valid(window, wire.name)
    assert "[sys-2]" in window.to_json().decode() + str(window.system)
    session.expand_details("sys-2")
    opened = session.window()
    assert_valid(opened, wire.name)
    session.hide_details("sys-2")
    again = Engine(store, config_of(format=wire.name)).session("chat")
    assert window.to_json() == again.window().to_json()
    assert window.system == again.window().system
    other = Engine(store, config_of(format=wire.name, counter="approximate")).session("chat").window()
    assert (window.to_json(), window.system) == (other.to_json(), other.system)
    assert other.tokens != window.tokens
    assert other.tokens == sum(other.breakdown.values())


def test_hidden_rules_are_erased() -> None:
    """Neither their line nor their name is left, in earlier windows neither; what was erased stays hidden behind a line."""
    session = ruled_session()
    session.update_page("sys-2", name="Refund rules")
    session.hide_details("sys-2")
    session.expand_details("sys-2")
    made, seq = session.checkpoint("here"), session.seq
    session.restore("sys-2")
    session.restore_checkpoint(made.id)
    session.erase("sys-2")
    for window in (session.window(), session.render(seq)):
        assert "efund" not in str(window.messages)
        assert "[erased]" in str(window.messages[1])
    assert not any("efund" in str(event.data) for event in session.events())
    assert session.verify().ok


def test_only_pages_of_it_are_hidden() -> None:
    """Its root stands open; a page of it is not removed, and nothing is hidden that is not there."""
    session = ruled_session()
    for refused in (session.hide_details, session.remove_page, session.evict):
        with pytest.raises(PermissionDeniedError):
            refused("sys-0")
    for refused in (session.remove_page, session.evict):
        with pytest.raises(PermissionDeniedError):
            refused("sys-2")
    with pytest.raises(PageNotFoundError):
        session.hide_details("sys-7")


def test_rules_stay_hidden_when_the_session_goes_back() -> None:
    """The system part is no part of the conversation: a rewind leaves its lines, and closes what was opened since."""
    session = ruled_session()
    session.expand_details("sys-2")
    session.hide_details("sys-2")
    session.expand_details("sys-2")
    session.rewind("usr-3/1")
    assert "hidden" == states(session)["sys-2"]
    session._core.state._check()
