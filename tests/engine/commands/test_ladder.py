"""The steps that make a window fit: what goes first, and what stays."""

from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import BudgetError
from tests.engine.sessions import folded, heard, indexes, open_session, talk
from tests.engine.wire import assistant, calling, result, system, user


def test_a_page_shown_as_a_stub_makes_little_room() -> None:
    """Folding counts what a page takes in the window: one that is a stub is not taken for all that is needed."""
    session = open_session()
    session.extend([user("read the log"), calling("a"), result("a", "row " * 5_000), assistant("read")])
    assert "[usr-1/3: " in session.window(500).messages[2]["content"]
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


def test_passages_go_before_the_contents_page_is_shortened() -> None:
    """What nobody asked for leaves a window without room, and the contents page stays as it is."""
    session = booked(recall={"passages_tokens": 300})
    session.append(user("What was said of booking R370 and R407?"))
    session.fold("all")
    sizes = session.window().breakdown
    before = session.contents
    assert 0 < sizes["recalled"]
    assert 0 == session.window(session.window().tokens - 5).breakdown["recalled"]
    assert before == session.contents


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


def sliding(turns: int, **config: Any) -> Session:  # noqa: ANN401 (any section of the file)
    """Return a session whose window of 4,000 tokens has been full for some turns."""
    session = Engine("memory:", {"budget": {"window": 4_000, "reserve": 0}, **config}).session("full")
    for number in range(turns):
        session.append(user(f"Booking R{37 * number}: change seat {number}. " + "please " * 60))
        session.window()
        session.append(assistant(f"R{37 * number} has seat {number} now. " + "Fine. " * 60))
    return session


def recalls_before(session: Session, pages: list[int]) -> dict[str, int]:
    """Recall pages, one after the other with a window after each, and return the breakdown of the last window."""
    for number in pages:
        session.recall(number)
        session.window()
    session.append(user("Compare these."))
    return dict(session.window().breakdown)


@pytest.mark.parametrize("turns", [60, 63, 66, 69])
@pytest.mark.parametrize("pages", [[3], [3, 4], list(range(3, 11)), [3, 9, 3, 5, 9, 3]])
def test_recalls_take_no_more_than_their_share(turns: int, pages: list[int]) -> None:
    """However many pages are recalled, what is verbatim is that of a session without recalls, less the share, less a page."""
    without, recalled = (recalls_before(sliding(turns), each) for each in ([], pages))
    assert 0 < recalled["recalled"] <= 1_000
    assert recalled["active"] + recalled["open"] >= without["active"] + without["open"] - 1_000 - 160


def test_the_least_recently_used_page_fades_for_another() -> None:
    """Beyond the share of recalled pages those fade that were recalled or renewed longest ago."""
    session = sliding(60, recall={"max_share": 0.15})
    session.recall(3)
    session.recall(4)
    session.recall(3)
    session.recall(5)
    assert ["usr-3", "usr-5"] == indexes(session, PageState.ATTACHED)


def test_the_least_recently_used_page_fades_first_for_want_of_room() -> None:
    """Where a window has less room than the one before, the pages that were used last stay longest."""
    session = sliding(60)
    for number in (3, 4, 5, 3):
        session.recall(number)
    session.window(1_200)
    assert ["usr-3"] == indexes(session, PageState.ATTACHED)


def test_a_group_chat_cuts_its_pages() -> None:
    """Thousands of messages without a reply fit a window, which holds the newest word for word, in few pages."""
    session = open_session(budget={"window": 2_000, "reserve": 0})
    said = [{**user(f"Message {number} of the trip to town {number}."), "name": f"user{number % 7}"} for number in range(2_000)]
    for number, message in enumerate(said, start=1):
        session.append(message)
        if number % 50 == 0:
            window = session.window()
            assert said[number - 10 : number] == window.messages[-10:]
            assert window.to_json() == session.render(at=window.seq).to_json()
    assert 1 == session.turn
    session.append(assistant("Here I am."))
    assert said[-10:] == session.window().messages[-11:-1]
    assert said == list(session.messages())[:-1]
    session.append(user("Thanks."))
    assert 2 == session.turn


def test_what_opened_a_turn_that_ended_is_no_reason_for_a_refusal() -> None:
    """The opening messages of the turn before leave with the next fold, and a window is measured without them."""
    session = open_session(
        budget={"window": 1_000, "reserve": 0}, active={"min_pages": 1, "page_tokens": 300}, recall={"protocol": "none"}
    )
    session.append(user("word " * 700))
    for _ in range(6):
        session.append(assistant("word " * 60))
        session.window()
    session.append(user("word " * 60))
    answer = assistant("word " * 255)
    session.append(answer)
    window = session.window()
    assert answer == window.messages[-1]
    assert window.breakdown["contents"]


@pytest.mark.parametrize("first", [1, 20, 100, 200])
@pytest.mark.parametrize("asked", [100, 200, 230])
@pytest.mark.parametrize("last", [250, 300, 350])
def test_a_window_that_was_made_to_fit_is_the_same_when_asked_again(first: int, asked: int, last: int) -> None:
    """Near the budget too a second window writes nothing and is equal, and no contents page is left out that has room."""
    session = open_session(budget={"window": 500, "reserve": 0}, contents={"max_tokens": 300})
    session.extend([user("word " * 20), assistant("word " * first), user("word " * asked), assistant("yes")])
    session.append(assistant("word " * last))
    window = session.window()
    seq = session.seq
    assert window.to_json() == session.window().to_json()
    assert seq == session.seq
    room = 500 - window.tokens - 120  # what tells of the contents page, and its heading
    assert window.breakdown["contents"] or not session.contents.entries or session.contents.tokens > room


def recalling(words: int = 60, **config: Any) -> Session:  # noqa: ANN401 (any section of the file)
    """Return a session of twelve turns, the first six folded, that nothing folds or fades by itself."""
    given = {"active": {"min_pages": 1}, "recall": {"protocol": "none", "turns": 99}, **config}
    session = open_session(**given)
    talk(session, 12, words=words)
    session.fold([f"usr-{number}" for number in range(1, 7)])
    return session


def test_what_is_recalled_beyond_its_share_goes_before_pages_fold() -> None:
    """Where recalled pages take more than their share of a smaller budget, one of them leaves, and nothing folds."""
    session = recalling()
    for index in ("usr-1", "usr-2", "usr-3"):
        session.recall(index)
    full = session.window()
    budget = full.tokens - 20
    assert 0.25 * budget < full.breakdown["recalled"]
    notices = heard(session)
    window = session.window(budget)
    assert [] == folded(notices)
    assert ["usr-2", "usr-3"] == indexes(session, PageState.ATTACHED)
    assert full.breakdown["active"] == window.breakdown["active"]


def test_pages_fold_before_recalled_ones_fade() -> None:
    """Within their share recalled pages stay, and the oldest pages fold."""
    session = recalling()
    session.recall("usr-1")
    full = session.window()
    budget = full.tokens - 20
    assert 0.25 * budget > full.breakdown["recalled"]
    notices = heard(session)
    session.window(budget)
    assert "usr-7" == folded(notices)[0][0]
    assert ["usr-1"] == indexes(session, PageState.ATTACHED)


def test_pages_fold_before_the_contents_page_shrinks() -> None:
    """Where folding makes room enough, what the contents page lists already stays as it was."""
    session = recalling(contents={"max_tokens": 20_000})
    before = session.contents.entries
    notices = heard(session)
    session.window(session.window().tokens - 20)
    assert "usr-7" == folded(notices)[0][0]
    assert before == session.contents.entries[: len(before)]


def test_the_contents_page_shrinks_before_recalled_pages_fade() -> None:
    """Once nothing is left to fold, entries of the contents page lose detail, and recalled pages stay."""
    session = recalling(words=30, contents={"max_tokens": 20_000})
    session.fold("all")
    session.recall("usr-1")
    full = session.window()
    budget = full.tokens - 20
    assert 0.25 * budget > full.breakdown["recalled"]
    window = session.window(budget)
    assert full.breakdown["contents"] > window.breakdown["contents"]
    assert ["usr-1"] == indexes(session, PageState.ATTACHED)
    assert [] == indexes(session, PageState.EVICTED)


def test_recalled_pages_fade_before_what_is_being_said_is_a_stub() -> None:
    """Where neither folds nor the contents page make room, recalled pages leave, and what the user says is shown whole."""
    session = recalling(words=12)
    session.fold("all")
    session.recall("usr-1")
    said = user("and this: " + "please " * 900)
    session.append(said)
    session.fold("all")
    window = session.window(1_100)
    assert said == window.messages[-1]
    assert [] == indexes(session, PageState.ATTACHED)


def large_recall() -> Session:
    """Return a session whose newest turn is long, and in which a page that is larger than the contents page was recalled."""
    session = open_session(contents={"max_tokens": 60}, recall={"max_share": 1.0})
    talk(session, 3, words=100)
    session.append(user("and this: " + "please " * 900))
    session.fold("all")
    session.recall("usr-1")
    return session


def test_a_page_recalled_in_its_turn_goes_before_the_contents_page() -> None:
    """Where one of the two has no room, the page that was just asked for stays, and the contents page is left out once."""
    session = large_recall()
    sizes = session.window().breakdown
    window = session.window(sizes["recalled"] + sizes["open"] + sizes["reply"])
    assert (0, sizes["recalled"]) == (window.breakdown["contents"], window.breakdown["recalled"])
    assert 0 < session.window().breakdown["contents"]


def test_a_page_recalled_in_its_turn_fades_before_what_is_being_said_is_a_stub() -> None:
    """Where only one of the two has room, what is being said is shown whole."""
    session = large_recall()
    sizes = session.window().breakdown
    window = session.window(sum(sizes.values()) - sizes["recalled"])
    assert [] == indexes(session, PageState.ATTACHED)
    assert sizes["open"] == window.breakdown["open"]


def test_what_is_being_said_is_a_stub_before_a_window_is_refused() -> None:
    """The last step before ``BudgetError`` shows a large entry of the open page as a stub; the refusal itself writes nothing."""
    session = recalling(words=12)
    session.append(user("and this: " + "please " * 900))
    window = session.window(600)
    assert window.tokens <= 600
    assert "please" in window.messages[-1]["content"]
    seq = session.seq
    with pytest.raises(BudgetError):
        session.window(40)
    assert seq == session.seq
