"""The page shows the rules of a session as of each call."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.engine.session import Session
from memci.page.document import document
from memci.page.journal import read_journal
from memci.page.live import LivePage
from tests.page.conftest import Look, Seen, once, written
from tests.page.sessions import SMALL, say, trip

RULE, NAME, OTHER_NAME = "Never book a hotel with a pool.", "Call me Dr. Weber.", "Call me Anna."

ROOMY = {**SMALL, "rules": {"max_share": 0.3}}

LOADED = """
import sys
import memci
from memci.page.document import document

with memci.Engine(sys.argv[1], read_only=True) as engine, engine.session("trip") as session:
    document(session, presets=[])
print(*sys.modules)
"""
"""Writes the page of a session, and then the names of all modules that were loaded."""


def converse(session: Session) -> None:
    """Set a rule in the first two calls, replace one once both have folded, and add and remove one."""
    say(session, RULE, "Gladly.")
    say(session, NAME, "Gladly.")
    trip(session, 30)
    say(session, OTHER_NAME, "Gladly.")
    session.remove_rule(session.add_rule("Quote prices with VAT.").address)
    session.add_rule("Be <b>brief</b>.")
    say(session, "And now?", "Nothing.")


@pytest.fixture
def session() -> Iterator[Session]:
    with memci.Engine("memory:", ROOMY) as engine, engine.session("trip") as opened:
        converse(opened)
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the same session."""

    def write(path: Path) -> None:
        with memci.Engine("memory:", ROOMY) as engine, engine.session("trip") as opened:
            converse(opened)
            written(opened, path, presets=[])

    return once(tmp_path_factory, "rules.html", write)


def listed(session: Session) -> dict[str, dict[str, Any]]:
    """Return the rules of a page by their words."""
    overview = LivePage().answer(session, "overview", {})
    return {rule["text"]: rule for rule in json.loads(json.dumps(overview["rules"]))}


def states(rule: dict[str, Any]) -> list[str]:
    """Return the states of a rule, in the order in which it had them."""
    return [state for _, state, _ in rule["places"]]


def test_each_rule_has_its_words_and_where_it_was_said(session: Session) -> None:
    """They come in the order in which they were set; an added one is of no page."""
    rules = listed(session)
    assert [RULE, NAME, OTHER_NAME, "Be <b>brief</b>.", "Quote prices with VAT."] == [*rules]
    assert ("usr-1/1", "usr-1", "prohibition", "") == tuple(rules[RULE][name] for name in ("address", "page", "kind", "speaker"))
    assert session.rules()[0].at == rules[RULE]["at"]
    assert ("rule-2", "") == (rules["Be <b>brief</b>."]["address"], rules["Be <b>brief</b>."]["page"])


def test_a_rule_is_where_it_was_at_each_call(session: Session) -> None:
    """In view first, then listed, then superseded; what it was at a call is what the session says as of then."""
    rules = listed(session)
    assert ["verbatim", "listed"] == states(rules[RULE])
    assert ["verbatim", "listed", "superseded"] == states(rules[NAME])
    assert rules[OTHER_NAME]["address"] == rules[NAME]["places"][-1][2]
    first, folded = rules[RULE]["places"][0][0], rules[RULE]["places"][1][0]
    calls = read_journal(session).calls
    assert 0 == first < folded
    blocks = ["[rules]" in str(session.render(at=calls[call]).messages) for call in (folded - 1, folded)]
    assert [False, True] == blocks


def test_what_is_taken_back_is_there_no_more(session: Session) -> None:
    """After a rewind the rule of a later message is not there, and the one that it replaced holds again."""
    session.rewind(session.rules()[2].address)
    say(session, "Where were we?", "In town 30.")
    rules = listed(session)
    assert "" == states(rules[OTHER_NAME])[-1]
    assert ["superseded", "listed"] == states(rules[NAME])[-2:]


def test_rules_of_a_session_that_goes_on_are_those_of_one_that_is_read_anew(session: Session) -> None:
    """What was read before is used again, and gives the same."""
    live = LivePage()
    live.answer(session, "overview", {})
    session.append({"role": "user", "content": "Never fly at night."})
    live.answer(session, "overview", {})
    session.remove_rule("usr-1/1")
    say(session, "Go on.", "Gladly.")
    assert LivePage().answer(session, "overview", {})["rules"] == live.answer(session, "overview", {})["rules"]


def test_what_the_application_does_with_rules_is_a_mark(session: Session) -> None:
    """Adding and removing one changes windows, so that both stand among what happened."""
    words = [mark.words for mark in read_journal(session).marks]
    assert ["rule rule-1 was added", "rule rule-1 was removed", "rule rule-2 was added"] == [
        text for text in words if text.startswith("rule ")
    ]


def test_an_erased_rule_is_not_in_the_page(session: Session) -> None:
    """Its words are in no part of it, also as of earlier calls."""
    session.erase("usr-1")
    assert RULE not in json.dumps(LivePage().answer(session, "overview", {}))
    assert NAME in listed(session)


def test_a_page_loads_no_detection(tmp_path: Path) -> None:
    """Showing rules loads none of the patterns that find them."""
    with memci.Engine(f"file:{tmp_path}", ROOMY) as engine, engine.session("trip") as opened:
        converse(opened)
    command = [sys.executable, "-c", LOADED, f"file:{tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (our own words)
    assert {"memci.archive.rules.cues", "memci.archive.rules.detection"}.isdisjoint(done.stdout.split())


def test_a_session_without_rules_has_none(tmp_path: Path) -> None:
    """The list is empty, and the file is written."""
    with memci.Engine(f"file:{tmp_path}", ROOMY) as engine, engine.session("trip") as opened:
        trip(opened, 2)
        assert {} == listed(opened)
        assert '"rules":[]' in document(opened, presets=[])


def section(seen: Seen, place: str) -> list[str]:
    """Return the texts at a place of the section of rules, once everything is drawn."""
    return seen.texts(f"#view-window .session-rules {place}")


@pytest.mark.browser
def test_the_window_stands_beside_its_rules(look: Look, page: Path) -> None:
    """Now those in force are listed with address, day and where they are; text stays text."""
    seen = look(page)
    assert [RULE, OTHER_NAME, "Be <b>brief</b>."] == section(seen, "> ol .rule")
    assert {"listed in the window", "in view word for word", "rule-2"} <= set(section(seen, "> ol span"))
    assert 0 == seen.page.locator(".session-rules b").count()


@pytest.mark.browser
def test_rules_that_are_over_are_struck_through(look: Look, page: Path) -> None:
    """They are folded up below the others, and say what superseded them."""
    seen = look(page)
    assert not seen.page.locator(".session-rules del").first.is_visible()
    seen.page.locator(".session-rules summary").click()
    assert [NAME, "Quote prices with VAT."] == section(seen, "del")
    replaced, removed = section(seen, "details li")
    assert "replaced or taken back by" in replaced
    assert "removed by the application" in removed


@pytest.mark.browser
def test_an_earlier_call_has_the_rules_of_then(look: Look, page: Path) -> None:
    """At the first call there is the first rule alone, in view."""
    seen = look(page, "#view=window&call=1")
    assert [RULE] == section(seen, ".rule")
    assert "in view word for word" in section(seen, "li")[0]
    seen.go("#view=window&call=20")
    assert [RULE, NAME] == section(seen, ".rule")


@pytest.mark.browser
def test_the_address_of_a_rule_opens_its_page(look: Look, page: Path) -> None:
    """One click shows the page, which says that it set the rule."""
    seen = look(page)
    seen.page.locator(".session-rules .page-link").first.click()
    assert f'It set the rule "{RULE}" (usr-1/1), which the window lists.' in seen.settled().locator(".detail").inner_text()
