"""Recalled pages stay as long as somebody mentions them."""

from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.engine.session import Session
from tests.engine.sessions import indexes, open_session, talk
from tests.engine.wire import Value, assistant, calling, result, user


def recalled(store: Any = None, *, others: int = 4) -> Session:  # noqa: ANN401 (a store)
    """Return a session in which a page that holds a file's name is recalled, and fades two turns later."""
    session = open_session(store, active={"min_pages": 1}, recall={"turns": 2})
    session.extend([user("Where are the totals of March?"), assistant("In reports/march-2026.csv, and again in totals.txt.")])
    talk(session, others, first=2)
    session.fold("all")
    session.recall(1)
    return session


def attached(session: Session) -> list[str]:
    return indexes(session, PageState.ATTACHED)


@pytest.mark.parametrize(
    "mention",
    [
        [user("look at usr-1 again")],
        [user("as usr-1/2 says")],
        [user("and reports/march-2026.csv?")],
        [user("so"), assistant("reports/march-2026.csv has them")],
        [user("so"), calling("a", arguments='{"path": "reports/march-2026.csv"}'), result("a")],
    ],
)
def test_a_mention_renews_a_recalled_page(mention: list[Value]) -> None:
    """The page's index, or a rare value of it, in a message or a call's arguments lets it stay for its turns from then on."""
    session = recalled()
    talk(session, 1, first=7)
    session.extend([*mention, assistant("yes")])
    assert ["usr-1"] == attached(session)
    talk(session, 1, first=8)
    assert ["usr-1"] == attached(session)
    talk(session, 1, first=9)
    assert [] == attached(session)


@pytest.mark.parametrize("said", ["usr-10 and usr-11, usr-1..3 too", "the March totals?"])
def test_other_words_are_no_mention(said: str) -> None:
    """Another index, a range, and plain words of the page name nothing."""
    session = recalled()
    talk(session, 1, first=7)
    session.append(user(said))
    assert [] == attached(session)


def test_a_value_that_many_pages_hold_is_no_mention() -> None:
    """Where one other archived page in a hundred holds a value, it names none of them."""
    session = open_session(active={"min_pages": 1}, recall={"turns": 2})
    session.extend([user("Where?"), assistant("In totals.txt."), user("Sure?"), assistant("Yes, in totals.txt.")])
    talk(session, 4, first=3)
    session.fold("all")
    session.recall(1)
    talk(session, 1, first=8)
    session.append(user("and totals.txt?"))
    assert [] == attached(session)


def test_a_mention_is_no_recall() -> None:
    """The recall count and the turn of the last recall stay as they are."""
    session = recalled()
    before = session.facts(1)
    talk(session, 1, first=7)
    session.append(user("usr-1?"))
    assert before == session.facts(1)


def test_a_page_is_noted_once_a_turn() -> None:
    """However often it is named in a turn, it stays as long as if it had been named once, and the journal says so once."""
    session = recalled()
    talk(session, 1, first=7)
    for said in (user("usr-1?"), assistant("usr-1, yes"), assistant("usr-1 it is")):
        session.append(said)
    assert 1 == sum(1 for _ in session.events("mentioned"))


def test_mentions_survive_a_restart() -> None:
    """A session loaded from its journal alone lets the page stay as long."""
    store = MemoryStore()
    session = recalled(store)
    talk(session, 1, first=7)
    session.append(user("usr-1?"))
    session.close()
    session = open_session(store, active={"min_pages": 1}, recall={"turns": 2})
    session.append(assistant("yes"))
    talk(session, 1, first=8)
    assert ["usr-1"] == attached(session)
    assert session.verify().ok
