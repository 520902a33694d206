"""When pages fold, how far, and what a fold leaves behind."""

import math

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.contents_page import ContentsEntry, Directory
from memci.engine.core.monitor import Eviction, Fold, Recall, ZoneChange
from memci.engine.session import Session
from memci.engine.view import planner
from memci.engine.view.layout import lay_out
from memci.errors import InvalidIdError, MemciError, PageNotFoundError
from tests.engine.sessions import folded, heard, indexes, open_session, states, talk, turn
from tests.engine.wire import assistant, calling, result, system, user


def window_tokens(session: Session) -> int:
    state = session._core.state
    return lay_out(state, state.settled).tokens


def test_while_everything_fits_nothing_folds() -> None:
    """Under the marks there is no contents page and every message is verbatim."""
    session = open_session()
    talk(session, 20)
    assert list(session.messages()) == session.window().messages
    assert (0, "") == (session.contents.tokens, session.contents.render())


def test_equal_marks_spill_one_page_a_turn() -> None:
    """With ``min_pages`` equal to ``max_pages`` each turn that opens sends the oldest page to the archive."""
    session = open_session(active={"min_pages": 3, "max_pages": 3})
    notices = heard(session)
    talk(session, 7)
    assert [("usr-1",), ("usr-2",), ("usr-3",), ("usr-4",)] == folded(notices)
    assert ["usr-5", "usr-6", "usr-7"] == indexes(session, PageState.ACTIVE, PageState.OPEN)


def test_page_marks_fold_in_batches() -> None:
    """Over ``max_pages`` the oldest pages fold until ``min_pages`` are left."""
    session = open_session(active={"min_pages": 2, "max_pages": 5})
    notices = heard(session)
    talk(session, 9)
    assert [("usr-1", "usr-2", "usr-3", "usr-4")] == folded(notices)


def test_token_marks_fold_from_high_to_low() -> None:
    """Above the high water the oldest pages fold until the window is at the low water, and not one page more."""
    session = open_session(budget={"window": 1_000, "reserve": 0}, active={"min_pages": 1, "high_water": 0.8, "low_water": 0.5})
    notices = heard(session)
    number = 0
    while not notices:
        number += 1
        talk(session, 1, first=number)
    fold = notices[0]
    assert isinstance(fold, Fold)
    assert ("marks", "usr-1") == (fold.reason, fold.pages[0])
    assert fold.tokens_before > 800
    sizes = {facts.index: facts.tokens for facts in session.pages()}
    left = fold.tokens_before - sum(sizes[index] for index in fold.pages)
    assert left <= 500 < left + sizes[fold.pages[-1]]


def test_the_floor_holds_against_the_marks() -> None:
    """Marks never fold the last ``min_pages`` pages, however large they are."""
    session = open_session(budget={"window": 300, "reserve": 0}, active={"min_pages": 3, "low_water": 0.1})
    talk(session, 8, words=60)
    assert [*turn(6, 60), *turn(7, 60), *turn(8, 60)] == [
        node.message.value() for node in session._core.state.active.message_list
    ]


def test_the_gap_between_auto_marks_is_the_cheapest_one() -> None:
    """With ``low_water: auto`` the gap G and the floor L share the room, and G² = 2·(w-r)/r·(L + C)·t for a contents page C."""
    session = open_session(prices={"write": 0.2, "read": 0.1})
    session.append(system("be brief " * 50))
    talk(session, 30, words=30)
    state, config = session._core.state, session._core.config
    shown = lay_out(session._core.state, session._core.state.settled)
    for budget in (4_000, 8_000, 32_000):
        gap = budget - planner.low_mark(state, config, shown, budget)
        floor = budget - gap - shown.breakdown["system"] - shown.breakdown["reply"]
        per_call = state.traffic.tokens / 30
        assert math.isclose(2 * (0.2 - 0.1) / 0.1 * floor * per_call, gap**2, rel_tol=1e-9)
        assert 0 < gap < budget


def test_the_gap_is_no_wider_than_verbatim_pages_may_swing() -> None:
    """However dear writes are, verbatim pages swing by 30% of their share where pages are short, by 45% where they are long."""
    for words, share, swing in ((10, 0.385, 0.3), (400, 0.475, 0.45)):
        session = open_session(prices={"write": 100, "read": 0.1})
        talk(session, 30, words=words)
        shown = lay_out(session._core.state, session._core.state.settled)
        low = planner.low_mark(session._core.state, session._core.config, shown, 10_000)
        assert math.isclose(2 * swing * share * 10_000, 10_000 - low)


def test_contents_get_what_verbatim_pages_leave() -> None:
    """With ``contents.max_tokens: auto``, longer pages leave the contents page less; a part of the room in any case."""
    limits = []
    for words in (1, 25, 1_000):
        session = open_session(recall={"protocol": "none"})
        talk(session, 10, words=words)
        limits.append(planner.contents_limit(session._core.state, session._core.config, 10_000))
    assert [int(10_000 - 1.3 * 0.385 * 10_000), int(10_000 - 1.45 * 0.475 * 10_000)] == [limits[0], limits[2]]
    assert limits[2] < limits[1] < limits[0]
    session.set_system([system("be brief " * 3_000)])
    room = 10_000 - session._core.state.system.tokens
    assert int(0.13 * room) == planner.contents_limit(session._core.state, session._core.config, 10_000)


def test_contents_get_more_of_a_long_conversation() -> None:
    """From four times its budget on, verbatim pages have less the longer it is, down to a share of theirs, or 5,000 tokens."""
    session = open_session(recall={"protocol": "none"})
    talk(session, 4, words=1_000)
    state, config = session._core.state, session._core.config
    length, limits = state.traffic.tokens, []
    for times in (1, 4, 10, 16, 40):
        state.traffic.tokens = 20_000 * times
        limits.append(planner.contents_limit(state, config, 20_000))
    state.traffic.tokens = length
    shares = (0.475, 0.475, 0.475 * 0.8, 0.475 * 0.6, 0.475 * 0.6)
    assert [20_000 - 1.45 * share * 20_000 for share in shares] == pytest.approx(limits, abs=1)
    state.traffic.tokens = 1_000_000
    assert 12_000 - 1.45 * 5_000 == pytest.approx(planner.contents_limit(state, config, 12_000), abs=1)


def test_dear_writes_widen_the_gap() -> None:
    """The dearer a cache write is against a read, the further a fold goes; where both cost the same it goes least."""
    gaps = []
    for write in (0.1, 0.15, 5.0):
        session = open_session(prices={"write": write, "read": 0.1})
        talk(session, 10)
        low = planner.low_mark(
            session._core.state, session._core.config, lay_out(session._core.state, session._core.state.settled), 4_000
        )
        gaps.append(4_000 - low)
    assert 0 == gaps[0] < gaps[1] < gaps[2]


def test_a_fold_by_command_goes_down_to_the_low_mark() -> None:
    """``fold()`` folds to the low mark though the high one is far, and writes nothing once there is nothing to do."""
    session = open_session(budget={"window": 1_000, "reserve": 0}, active={"min_pages": 1, "low_water": 0.3})
    talk(session, 8)
    done = session.fold()
    assert ("command", True) == (done.reason, bool(done.pages))
    assert window_tokens(session) == done.tokens_after < done.tokens_before
    while session.fold().pages:  # the lines of the contents page take some of the room again
        pass
    seq = session.seq
    assert ((), 0) == (session.fold().pages, session.fold().seq)
    assert seq == session.seq


def test_everything_complete_folds_on_demand() -> None:
    """``fold("all")`` leaves the open page alone in view."""
    session = open_session()
    talk(session, 5)
    assert ("usr-1", "usr-2", "usr-3", "usr-4") == session.fold("all").pages
    assert ["usr-5"] == indexes(session, PageState.OPEN)


def test_named_pages_fold() -> None:
    """Pages fold by index or number, alone or as a list; the open one, and those that are folded, are passed over."""
    session = open_session()
    talk(session, 6)
    assert ("usr-2",) == session.fold("usr-2").pages
    assert ("usr-1", "usr-4") == session.fold([4, "usr-1", 2, 6]).pages
    assert {"usr-3", "usr-5"} == set(indexes(session, PageState.ACTIVE))
    assert [*turn(3), *turn(5), *turn(6)] == session.window().messages[-6:]


def test_unknown_pages_do_not_fold() -> None:
    """Naming a page that is not there is an error, and nothing folds."""
    session = open_session()
    talk(session, 3)
    with pytest.raises(PageNotFoundError):
        session.fold([1, 9])
    with pytest.raises(InvalidIdError):
        session.fold("everything")
    assert [] == indexes(session, PageState.ARCHIVED)


def test_system_pages_never_fold() -> None:
    """The system part stays verbatim, whatever is asked for."""
    session = open_session(active={"min_pages": 1})
    session.append(system("be brief"))
    talk(session, 3)
    assert ("usr-1", "usr-2") == session.fold(["sys-1", 1, 2]).pages
    assert system("be brief") == session.window().messages[0]


def test_undoing_a_fold_brings_the_pages_back() -> None:
    """After ``undo_fold`` the window is what it was before the fold, and there is nothing more to undo."""
    session = open_session()
    talk(session, 6)
    session.fold([1, 2])
    before = session.window().to_json()
    session.fold([3, 4])
    done = session.undo_fold()
    assert (("usr-3", "usr-4"), "undo") == (done.pages, done.reason)
    assert before == session.window().to_json()
    assert {"usr-1": "archived", "usr-3": "active"}.items() <= states(session).items()
    with pytest.raises(MemciError, match="no fold to undo"):
        session.undo_fold()


def test_pages_come_back_in_their_order() -> None:
    """A page that was folded from between others comes back to its place."""
    session = open_session()
    talk(session, 5)
    before = session.window().messages
    session.fold([2, 4])
    session.undo_fold()
    assert before == session.window().messages == list(session.messages())
    session._core.state._check()


def test_what_happened_since_a_fold_outlives_its_undoing() -> None:
    """Evictions, pins and recalls that came after the fold stay when it is undone."""
    session = open_session()
    talk(session, 7)
    session.fold([1, 2, 3])
    session.fold([4])
    session.evict(1)
    session.pin(2)
    session.recall(3)
    session.undo_fold()
    facts = {facts.index: facts for facts in session.pages()}
    assert "evicted" == facts["usr-1"].state
    assert facts["usr-2"].pinned
    assert ("attached", 1) == (facts["usr-3"].state, facts["usr-3"].recall_count)
    assert "active" == facts["usr-4"].state


@pytest.mark.parametrize("evicted", [False, True])
def test_a_page_is_listed_once_after_undoing(evicted: bool) -> None:  # noqa: FBT001 (a parameter)
    """A page that left its directory since the fold that merged directories does not come back into the older one."""
    session = open_session(active={"min_pages": 1}, contents={"max_tokens": 110})
    number = 0
    while len(indexes(session, PageState.HIDDEN)) < 6:
        number += 3
        talk(session, 3, first=number)
        session.fold("all")
    index = indexes(session, PageState.HIDDEN)[2]
    session.restore(index)
    if evicted:
        session.evict(index)
    session.undo_fold()
    entries = session.contents.entries
    grouped = [entry for entry in entries if isinstance(entry, Directory) and entry.holds(int(index[4:]))]
    assert [] == grouped
    assert (not evicted) is any(entry.index == index for entry in entries)
    session._core.state._check()


@pytest.mark.parametrize("directories", [True, False])
def test_undoing_a_fold_leaves_late_results_in_their_pages(directories: bool) -> None:  # noqa: FBT001 (a parameter)
    """A result that a fold took into a page stays there when the fold is undone that grouped or evicted the page as well."""
    session = open_session(
        active={"min_pages": 1}, contents={"max_tokens": 60 if directories else 30, "directories": directories}
    )
    session.extend([user("first " * 60), calling("x", "y", "z"), result("x", "in time"), assistant("going on")])
    session.extend([user("second " * 60), assistant("said " * 60)])
    session.window(250)
    results = ["in time"]
    for call_id in ("y", "z"):
        assert PageState.ARCHIVED is session.facts(1).state
        session.extend([result(call_id, f"late {call_id}"), user(f"and {call_id} " * 60), user("again")])
        results.append(f"late {call_id}")
        session.fold("all")
        assert (PageState.HIDDEN if directories else PageState.EVICTED) is session.facts(1).state
        session.undo_fold()
        assert results == [each["content"] for each in session.page(1).messages if each["role"] == "tool"]
        facts, entry = session.facts(1), session.contents.entries[0]
        assert isinstance(entry, ContentsEntry)
        assert ("usr-1", len(results) - 1, facts.sha256) == (entry.index, facts.revision, entry.sha256)
        assert () == session.verify().problems


def test_a_late_result_of_a_page_in_a_directory_is_a_revision() -> None:
    """A page that stands in a directory has a new revision, and the file of that, once a fold took a late result in."""
    session = open_session(active={"min_pages": 1}, contents={"max_tokens": 60})
    session.extend([user("first " * 60), calling("x"), assistant("going on"), user("more")])
    session.window(90)
    for number in range(4):
        session.extend([user(f"number {number} " * 30), assistant("said " * 30)])
    session.fold("all")
    assert PageState.HIDDEN is session.facts(1).state
    session.append(result("x", "late"))
    session.fold("all")
    assert ("late", 1) == (session.page(1).messages[2]["content"], session.facts(1).revision)
    assert () == session.verify().problems


def test_undoing_a_fold_brings_results_along_that_came_since() -> None:
    """A page that comes back into view holds the late results that waited for a fold, once, also when it folds again."""
    session = open_session(active={"min_pages": 1})
    session.extend([user("first " * 60), calling("x", "y"), assistant("going on"), user("more")])
    session.window(90)
    assert PageState.ARCHIVED is session.facts(1).state
    session.extend([result("y", "late y"), result("x", "late x")])
    session.undo_fold()
    messages = list(session.messages())
    assert ["late y", "late x", "going on"] == [each["content"] for each in messages[2:5]]
    assert messages == session.window().messages
    session.fold("all")
    assert (messages, 0) == (list(session.messages()), session.facts(1).revision)
    assert () == session.verify().problems


def test_without_a_fold_there_is_nothing_to_undo() -> None:
    """Undoing before the first fold is an error that says why."""
    with pytest.raises(MemciError, match="no fold to undo"):
        open_session().undo_fold()


def test_an_entry_is_smaller_than_its_page() -> None:
    """A page that is shorter than its lines would be is listed by index and title."""
    session = open_session()
    session.extend([user("hi"), assistant("yes?"), user("no"), assistant("ok"), user("bye")])
    session.fold("all")
    for entry in session.contents.entries:
        assert 1 == len(entry.render().splitlines())


def test_each_entry_names_its_page_on_one_line() -> None:
    """The contents page begins each entry with the index, the title and the page's size, and indents the rest."""
    session = open_session()
    session.extend(
        [user("How do I export March invoices as CSV?\nThe limit?"), assistant("Use Settings > Billing > Export. " * 9)]
    )
    session.append(user("thanks"))
    session.fold("all")
    head, *below = session.contents.entries[0].render().splitlines()
    assert head.startswith("[usr-1] ")
    assert "2 entries" in head
    assert all(line.startswith("  ") for line in below)
    assert "March" in head + "".join(below)


def test_an_entry_knows_when_its_page_was_said() -> None:
    """A folded page's entry has the times of the first and the last message of the page."""
    session = open_session()
    asked, answered = turn(1)
    session.append(asked, at="2023-05-08T23:50:00+00:00")
    session.append(answered, at="2023-05-09T01:10:00+01:00")
    talk(session, 1, first=2)
    session.fold("all")
    entry = session.contents.entries[0]
    assert isinstance(entry, ContentsEntry)
    assert ("2023-05-08T23:50:00+00:00", "2023-05-09T00:10:00+00:00") == (entry.first_at, entry.last_at)


def test_observers_hear_in_order() -> None:
    """Observers hear of folds, recalls, evictions and zones as they happen; one that raises is no harm to the others."""
    session = open_session(budget={"window": 600, "reserve": 0})

    def broken(_notice: object) -> None:
        message = "a broken observer"
        raise RuntimeError(message)

    session.observe(broken)
    notices = heard(session)
    talk(session, 3)
    session.fold("all")
    session.recall(1)
    session.recall(1)
    session.evict(2)
    session.window()
    session.window()
    session.window(2_000)
    assert [Fold, Recall, Eviction, ZoneChange] == [type(notice) for notice in notices][:4]
    assert Recall(page="usr-1", recall_count=1) == notices[1]
    assert Eviction(pages=(("usr-2", "command"),)) == notices[2]
    assert len(notices) <= 5
