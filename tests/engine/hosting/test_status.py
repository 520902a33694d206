"""What a session says of how it stands: true numbers, the same advice as the planner's, and nothing written."""

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.view.planner import FoldPlan
from tests.engine.sessions import config_of, open_session, talk, turn
from tests.engine.wire import assistant, calling, result, user

SMALL = {"window": 2_000, "reserve": 0}


def test_the_numbers_are_those_of_the_window() -> None:
    """Tokens, parts and zone, where the window fits as it is; and nothing is written, however often it is asked."""
    session = open_session(budget=SMALL)
    assert (0, "none") == (session.status().turn, session.status().advised)
    for number in range(1, 12):
        talk(session, 1, first=number, words=12)
        window, seq = session.window(), session.seq
        found = session.status()
        assert (window.tokens, window.breakdown, window.zone) == (found.tokens, found.breakdown, found.zone)
        assert (seq, number) == (found.seq, found.turn)
        assert seq == session.seq


def test_text_of_one_call_is_none_of_the_next() -> None:
    """A line of the status that stood beside a call is not counted in the status after it."""
    session = open_session(budget=SMALL)
    talk(session, 3)
    before = session.status().tokens
    session.window(extra={"status": session.status().line()})
    assert before == session.status().tokens


def test_what_is_in_view_by_role_and_state() -> None:
    """Messages, calls and those that wait; pages by state; notes."""
    session = open_session()
    session.append({"role": "system", "content": "Be kind."})
    talk(session, 3)
    session.fold([1, 2])
    session.recall(1)
    session.create_detail_page("Lesson", "", "Never twice.")
    session.extend([user("Look."), calling("one", "two"), result("one", "1")])
    found = session.status()
    assert {"system", "user", "assistant", "tool"} == found.roles.keys()
    assert (8, 2, 1) == (found.messages, found.calls, found.waiting)
    assert {"open": 1, "active": 1, "archived": 2, "attached": 1} == found.pages
    assert 1 == found.notes
    assert "1 calls wait" in found.line()


def test_it_advises_what_the_marks_ask_for() -> None:
    """Pages over the marks, a window that is nearly full, and one that is full of what cannot fold."""
    session = open_session(budget=SMALL)
    talk(session, 1)
    assert "none" == session.status().advised
    while session.status().tokens < 1_600:
        talk(session, 1, first=session.turn + 1)
    assert ("fold", "the window takes") == ((found := session.status()).advised, found.why[:16])
    session.append(user("word " * 1_700))
    assert ("hand_over", True) == ((found := session.status()).advised, "do not fold" in found.why)


def test_it_asks_a_planner_of_ones_own() -> None:
    """What that one would fold or trim is advised."""

    class Plans:
        def plan(self, state: object, _config: object) -> FoldPlan:
            pages = [page.index for page in state.active.pages()]  # type: ignore[attr-defined]
            return FoldPlan(pages=(), trimmed=tuple(pages[:1]) if len(pages) > 2 else (), reason="mine")

    with Engine(MemoryStore(), config_of(), planner=Plans()) as engine, engine.session("chat") as session:
        talk(session, 3)
        assert "trim" == session.status().advised


def test_a_line_has_no_words_of_anybody() -> None:
    """It is short, and holds numbers and fixed words alone."""
    session = open_session(budget=SMALL)
    talk(session, 40)
    line = session.status().line()
    assert len(line) < 200
    assert "question" not in line
    assert "\n" not in line


@pytest.mark.parametrize("turns", [50, 400])
def test_it_costs_what_is_visible(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the journal nor pages nor the index are read, however long the history."""
    session = open_session(budget=SMALL)
    talk(session, turns)
    session.window()

    def refuse(*_asked: object, **_named: object) -> None:
        message = "the store was asked"
        raise AssertionError(message)

    store = session._core.store
    for part, name in ((store.journal, "read"), (store.journal, "head"), (store.pages, "find")):
        monkeypatch.setattr(part, name, refuse)
    monkeypatch.setattr(type(session._core), "ask", refuse)
    assert turns == session.status().turn


def test_events_of_pages() -> None:
    """Those that name one of them, in whatever role; not those that only say so."""
    session = open_session()
    talk(session, 3)
    session.append(user("usr-1"))
    session.append(assistant("What of it?"))
    session.fold([1, 2])
    session.recall(1)
    session.pin(2)
    kinds = [event.kind for event in session.events(pages=[1])]
    assert ["appended", "appended", "folded", "recalled"] == kinds
    assert ["folded", "pinned"] == [event.kind for event in session.events(pages=["usr-2"]) if event.kind != "appended"]
    assert ["recalled"] == [event.kind for event in session.events("recalled", pages=[1, 2])]
    assert [] == list(session.events(pages=[9]))


def called(session: Session, turns: int, *, first: int = 1) -> int:
    """Talk with a window before each answer, and return what these windows took."""
    sent = 0
    for number in range(first, first + turns):
        question, answer = turn(number)
        session.append(question)
        sent += session.window().tokens
        session.append(answer)
    return sent


def test_what_was_sent_is_what_windows_took() -> None:
    """Folds and recalls included, but for what came in before the first window, of which nothing was sent."""
    session = open_session(budget={"window": 400, "reserve": 0})
    talk(session, 3)
    assert (0, 0, None) == (session.stats().calls, session.stats().sent_tokens, session.stats().cost)
    sent = called(session, 20, first=4)
    session.recall(4)
    sent += called(session, 2, first=24)
    found = session.stats()
    assert (22, sent) == (found.calls, found.sent_tokens)
    assert sum(each.tokens for each in session.pages()) == found.said_tokens
    assert (session.status().tokens, session.status().zone) == (found.tokens, found.zone)


def test_what_was_sent_stays_sent() -> None:
    """Going back takes nothing back of it, a session that is read anew has it, and a fork has sent nothing yet."""
    store = MemoryStore()
    with Engine(store, config_of(budget=SMALL)) as engine:
        session = engine.session("chat")
        begun = session.checkpoint("begun")
        sent = called(session, 3)
        session.rewind("usr-3/1")
        session.restore_checkpoint(begun.id)
        sent += called(session, 1, first=4)
        assert (4, sent) == (session.stats().calls, session.stats().sent_tokens)
        assert session.stats() == Engine(store, config_of(budget=SMALL), read_only=True).session("chat").stats()
        fork = engine.fork("chat", "fork").stats()
        assert (0, 0, session.stats().said_tokens) == (fork.calls, fork.sent_tokens, fork.said_tokens)


def test_reports_have_a_cost() -> None:
    """What the provider's cache had costs a read, the rest a write, by the prices of the settings."""
    session = open_session(budget=SMALL, prices={"write": 1.0, "read": 0.5})
    called(session, 2)
    for cached in (0, 20):
        tokens = session.window().tokens
        assert session.report_usage({"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": cached}}).accepted
    found = session.stats()
    assert (2, 2 * tokens, 20, 2 * tokens - 10) == (found.reports, found.reported_tokens, found.cached_tokens, found.cost)
