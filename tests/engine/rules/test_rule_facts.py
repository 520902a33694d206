"""``explain`` and ``status`` say where the rules of a session are."""

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.view.rule_facts import RuleState
from tests.engine.rules.test_rules import NAME, RULE, listed, ruled
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import assistant, user


def rule_states(session: Session, index: str) -> dict[str, str]:
    """Return the state of each rule that a page set, by address."""
    return {rule.address: rule.state.value for rule in session.explain(index).rules}


def test_a_page_in_view_has_its_rules_word_for_word() -> None:
    """The explanation names each rule of the page, as data and in a sentence."""
    session = open_session()
    session.append({"role": "user", "content": f"{RULE} {NAME}", "name": "Ann"}, at="2026-03-01T10:00:00+00:00")
    first, second = session.explain("usr-1").rules
    assert (RULE, "usr-1/1", "2026-03-01T10:00:00+00:00", "Ann", "prohibition", RuleState.VERBATIM, None) == (
        *(first.text, first.address, first.at, first.speaker, first.kind, first.state, first.superseded_by),
    )
    assert ("usr-1/1#2", RuleState.VERBATIM, "usr-1") == (second.address, second.state, second.page)
    assert f'It set the rule "{RULE}" (usr-1/1), which is in view word for word.' in session.explain("usr-1").reasons


def test_a_folded_page_says_that_the_window_lists_its_rule() -> None:
    """Other pages have no rules, and pages of the system part neither."""
    session = ruled()
    assert {"usr-1/1": "listed"} == rule_states(session, "usr-1")
    assert f'It set the rule "{RULE}" (usr-1/1), which the window lists.' in session.explain("usr-1").reasons
    assert () == session.explain("usr-3").rules == session.explain("usr-0").rules


def test_a_rule_without_room_is_named() -> None:
    """The oldest rules lose their room first, and the newest are listed."""
    session = open_session(budget={"window": 1_500, "reserve": 0})
    for number in range(40):
        session.append(user(f"Never open the door of room {number} without asking me first."))
        session.append(assistant("Good. " * 30))
    lines = listed(session)
    assert {"usr-1/1": "no_room"} == rule_states(session, "usr-1")
    assert "has no room in the window (rules.max_share)" in str(session.explain("usr-1"))
    counts = session.status().rules
    assert (len(lines), 40) == (counts["listed"], sum(counts.values()))


def test_a_superseded_rule_says_by_what() -> None:
    """The page of the former rule names the later message."""
    session = open_session()
    session.extend([user(NAME), assistant("Good."), user("Call me Anna.")])
    (former,) = session.explain("usr-1").rules
    assert (RuleState.SUPERSEDED, "usr-2/1") == (former.state, former.superseded_by)
    assert f'It set the rule "{NAME}" (usr-1/1), which usr-2/1 replaced or took back.' in session.explain("usr-1").reasons


@pytest.mark.parametrize("snapshot_every", [1, 500])
def test_a_removed_rule_stays_explained(snapshot_every: int) -> None:
    """Its page says that the application removed it, also in another process, and ``rules()`` has it no more."""
    store = MemoryStore()
    session = ruled(store, snapshot_every=snapshot_every)
    session.remove_rule("usr-1/1")
    again = Engine(store, config_of(snapshot_every=snapshot_every)).session("chat")
    for each in (session, again):
        assert {"usr-1/1": "removed"} == rule_states(each, "usr-1")
        assert f'It set the rule "{RULE}" (usr-1/1), which the application removed.' in each.explain("usr-1").reasons
        assert [NAME] == [rule.text for rule in each.rules()]
    assert session.verify().ok


def test_a_removed_rule_goes_with_its_message() -> None:
    """Neither going back nor erasing its page leaves a word of it."""
    session = ruled(store := MemoryStore(), snapshot_every=1)
    session.remove_rule("usr-1/1")
    session.remove_rule("usr-2/1")
    made = session.checkpoint("before")
    session.erase("usr-1")
    assert {} == rule_states(session, "usr-1")
    session.restore_checkpoint(made.id)
    assert {} == rule_states(session, "usr-1")
    assert {"usr-2/1": "removed"} == rule_states(session, "usr-2")
    assert RULE.encode() not in b"".join(record.body for record in session._core.store.journal.read())
    again = Engine(store, config_of(snapshot_every=1)).session("chat")
    assert session.status().rules == again.status().rules == {"removed": 1}
    session.rewind("usr-2/1")
    assert {} == session.status().rules


def test_the_contents_page_counts_the_rules() -> None:
    """``explain`` of the root and ``status`` count all rules by state; without a rule they say nothing of them."""
    session = ruled()
    session.add_rule("Prices with VAT.")
    session.remove_rule(session.add_rule("Be short.").address)
    session.append(user("Answer in German only."))
    told = session.explain(0)
    assert "The session has 5 rules: 1 in view word for word, 3 listed in the window, 1 removed." in told.reasons
    assert (1, 3, 1) == tuple(told.facts[f"{state}_rules"] for state in ("verbatim", "listed", "removed"))
    assert {"verbatim": 1, "listed": 3, "removed": 1} == session.status().rules
    without = open_session()
    talk(without, 1)
    assert ({}, False) == (without.status().rules, "rule" in str(without.explain(0)))
