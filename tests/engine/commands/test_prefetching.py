"""Pages that are attached without being asked for, since they match what the user says."""

from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Prefetch, Recall
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.engine.sessions import config_of, heard, open_session, states, talk
from tests.engine.wire import assistant, user


def asked(question: str, **recall: int) -> Session:
    """Return a session of five archived turns and one that stands in the window, with a question that nobody answered yet."""
    session = open_session(recall={"passages_tokens": 500, **recall})
    talk(session, 6)
    session.fold([f"usr-{number}" for number in range(1, 6)])
    session.append(user(question))
    return session


def attached(session: Session) -> list[str]:
    return [index for index, state in states(session).items() if state == "attached"]


def test_what_matches_is_attached_before_the_call() -> None:
    """The pages that the user's words match stand in the window, in front of the page that the message opened."""
    session = asked("what was say3x4 say3x5?")
    notices = heard(session)
    texts = [message["content"] for message in session.window().messages]
    assert ["usr-3"] == attached(session)
    assert "[recalled page usr-3" in texts[-2]
    assert "what was say3x4 say3x5?" == texts[-1]
    assert [("usr-3",)] == [notice.pages for notice in notices if isinstance(notice, Prefetch)]


def test_it_is_no_recall() -> None:
    """What nobody asked for does not count as a recall; a recall of it does, once, and lets it stay."""
    session = asked("what was say3x4 say3x5?", turns=4)
    session.window()
    assert (0, None) == (session.facts("usr-3").recall_count, session.facts("usr-3").last_recall_turn)
    notices = heard(session)
    session.recall("usr-3")
    session.recall("usr-3")
    assert 1 == session.facts("usr-3").recall_count
    assert 1 == sum(isinstance(notice, Recall) for notice in notices)
    session.append(assistant("it was that"))
    talk(session, 1, first=8)
    assert ["usr-3"] == attached(session)


def test_it_fades_with_the_next_turn() -> None:
    """A page that was attached for one message leaves when the next one opens a turn."""
    session = asked("what was say3x4 say3x5?")
    session.window()
    session.append(assistant("it was that"))
    session.append(user("and say5x2 say5x3?"))
    assert [] == attached(session)
    session.window()
    assert ["usr-5"] == attached(session)


def test_once_a_turn() -> None:
    """Windows that are asked for again write nothing, and answers of the assistant attach nothing."""
    session = asked("what was say3x4 say3x5?")
    first = session.window()
    assert first.to_json() == session.window().to_json()
    assert first.seq == session.seq
    session.append(assistant("say1x1 say1x2 say2x3 say2x4"))
    session.window()
    assert ["usr-3"] == attached(session)


def test_a_second_message_of_the_user_attaches_more() -> None:
    """A user who writes again before the answer gets the pages of that message too, within the same bound."""
    session = asked("what was say3x4 say3x5?")
    session.window()
    session.append(user("and say5x2 say5x3?"))
    session.window()
    assert {"usr-3", "usr-5"} <= set(attached(session))
    small = asked("what was say3x4 say3x5?", passages_tokens=session.window().breakdown["recalled"] // 2)
    small.window()
    small.append(user("and say5x2 say5x3?"))
    assert small.window().breakdown["recalled"] <= session.window().breakdown["recalled"] // 2


def test_what_hardly_matches_is_left() -> None:
    """Words that no page has attach nothing, and one word of many does not attach its page."""
    session = asked("thanks, great!")
    session.window()
    assert [] == attached(session)
    session = asked("say5x1 say5x2 say5x3 say5x4 say5x5 say5x6 say1x4")
    session.window()
    assert {"usr-5"} <= set(attached(session)) <= {"usr-3", "usr-4", "usr-5"}  # neighbours may hold what is asked for


def test_the_bound_holds() -> None:
    """No more tokens are attached than the settings and a quarter of the budget allow; what does not fit is passed over."""
    everything = "say1x4 say2x4 say3x4 say4x4 say5x4"
    session = asked(everything)
    most = session.window().breakdown["recalled"]
    assert 1 < len(attached(session))
    session = asked(everything, passages_tokens=most // 2)
    assert 0 < session.window().breakdown["recalled"] <= most // 2
    session = asked(everything)
    assert session.window(budget=2 * most).breakdown["recalled"] <= most // 2
    session = asked(everything, passages_tokens=3)
    assert 0 == session.window().breakdown["recalled"]


def test_off_by_default() -> None:
    """Without the setting nothing is attached."""
    session = asked("what was say3x4 say3x5?", passages_tokens=0)
    session.window()
    assert [] == attached(session)


def test_evicted_pages_are_attached_too() -> None:
    """A page that the contents page lists no more is memory all the same."""
    session = asked("what was say3x4 say3x5?")
    session.evict("usr-3")
    session.window()
    assert ["usr-3"] == attached(session)
    session.append(assistant("it was that"))
    session.append(user("good"))
    assert "evicted" == states(session)["usr-3"]


def test_it_survives_a_restart() -> None:
    """A session that is opened again has the same window, from a snapshot and from the journal alone."""
    for every in (1, 1_000):
        store = MemoryStore()
        config = config_of(recall={"passages_tokens": 500}, snapshot_every=every)
        with Engine(store, config).session("chat") as session:
            talk(session, 6)
            session.fold([f"usr-{number}" for number in range(1, 6)])
            session.append(user("what was say3x4 say3x5?"))
            window = session.window()
        with Engine(store, config).session("chat") as session:
            assert window.to_json() == session.window().to_json()
            assert window.seq == session.seq
            session.append(assistant("it was that"))
            session.append(user("good"))
            assert [] == attached(session)
            assert window.to_json() == session.render(window.seq).to_json()
            assert session.verify().ok


def test_a_rewind_takes_back_what_the_message_attached() -> None:
    """Going back to before a message lets the pages go that it attached, and the next message gets its own."""
    session = asked("hello")
    entry = session.append(user("what was say3x4 say3x5?"))
    session.window()
    session.rewind(entry.address)
    assert [] == attached(session)
    session.append(user("and say5x2 say5x3?"))
    session.window()
    assert ["usr-5"] == attached(session)


def test_what_had_to_leave_is_not_attached_again() -> None:
    """Once a window had no room for what was attached, it is asked for again without a search, and nothing is written."""
    session = asked("what was say3x4 say3x5?")
    sizes = session.window().breakdown
    assert 0 < sizes["recalled"]
    small = session.window(sizes["recalled"] + sizes["open"])
    assert 0 == small.breakdown["recalled"]
    for budget in (small.budget, None, small.budget):
        window = session.window(budget)
        assert 0 == window.breakdown["recalled"]
        seq = session.seq
        assert window.to_json() == session.window(budget).to_json()
        assert seq == session.seq
