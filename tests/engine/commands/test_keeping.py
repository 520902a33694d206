"""Pages that are kept: verbatim through folds, within their share, and in the way of nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.commands import keeping
from memci.engine.core.monitor import Fold, FoldFailed
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import from_record
from memci.engine.history.state import State
from memci.engine.session import Session
from memci.engine.view import planner
from memci.engine.view.planner import FoldPlan
from memci.errors import ArgumentError, BudgetError, InvalidIdError, PageEvictedError, PageNotFoundError, PermissionDeniedError
from tests.engine.sessions import config_of, folded, heard, indexes, open_session, states, talk, turn
from tests.engine.wire import Value, assert_paired, assistant, calling, is_subsequence, result, user

LONG = "a line of what the tool found\n" * 120


def in_view(session: Session) -> list[str]:
    return indexes(session, PageState.ACTIVE, PageState.OPEN)


def looked(turns: int, **sections: Any) -> Session:  # noqa: ANN401 (sections of the config)
    """Return a session with turns in which a tool finds much."""
    session = open_session(**sections)
    for number in range(1, turns + 1):
        session.extend([user(f"look {number}"), calling(f"c{number}"), result(f"c{number}", LONG), assistant("done")])
    return session


def replayed(session: Session) -> dict[str, Any]:
    """Return the state that the journal makes."""
    state = State(session="chat")
    for record in session._core.store.journal.read():
        apply(state, from_record(record), record.seq)
    return state_codec.to_mapping(state)


def test_a_kept_page_stays_in_view_through_folds() -> None:
    """Marks, ``fold()``, ``fold("all")``, topics and levels pass it by; its messages stand in the window as they are."""
    session = open_session(active={"max_pages": 3}, levels={"lines": 6})
    talk(session, 2)
    session.keep("usr-1")
    talk(session, 8, first=3)
    assert ["usr-1", "usr-8", "usr-9", "usr-10"] == in_view(session)
    session.fold()
    session.fold("all")
    session.fold(to="heavy")
    talk(session, 2, first=11)
    session.close_topic("a topic")
    assert ["usr-1", "usr-12"] == in_view(session)
    assert session.window().messages[-4:] == [*turn(1), *turn(12)]
    assert session.facts(1).kept
    assert ["usr-1"] == [facts.index for facts in session.pages() if facts.kept]


def test_a_kept_page_folds_again_once_it_is_let_go() -> None:
    """``unkeep`` leaves it to the next fold; nothing is written where there is nothing to change."""
    session = open_session(active={"max_pages": 2})
    talk(session, 3)
    session.keep(2)
    seq = session.seq
    session.keep(2)
    session.unkeep(3)
    assert seq == session.seq
    session.unkeep(2)
    talk(session, 1, first=4)
    assert ["usr-3", "usr-4"] == in_view(session)
    assert not session.facts(2).kept


def test_an_archived_page_comes_back_to_its_place() -> None:
    """It stands after the contents page, oldest first, out of the contents; a directory lists its neighbours still."""
    session = open_session(active={"max_pages": 2}, contents={"max_tokens": 60})
    talk(session, 12)
    assert "hidden" == states(session)["usr-4"]
    session.recall(4)
    session.keep(4)
    session.keep(3)
    assert ["usr-3", "usr-4", "usr-11", "usr-12"] == in_view(session)
    assert session.window().messages[-8:] == [*turn(3), *turn(4), *turn(11), *turn(12)]
    assert not any("usr-4" == entry.index for entry in session.contents.entries)
    assert (1, 0) == (session.facts(4).recall_count, session.facts(3).recall_count)
    talk(session, 3, first=13)
    assert ["usr-3", "usr-4", "usr-14", "usr-15"] == in_view(session)
    assert () == session.verify().problems
    assert replayed(session) == state_codec.to_mapping(session._core.state)


def test_kept_pages_have_a_share_of_the_budget() -> None:
    """Beyond it a page is refused, by an error that names the share and what is kept."""
    session = open_session(budget={"window": 400, "reserve": 0}, active={"keep_share": 0.5})
    talk(session, 3)
    tokens = session.facts(1).tokens
    session.configure(active={"keep_share": (tokens + 5) / 400})
    session.keep(1)
    with pytest.raises(PermissionDeniedError, match=f"usr-2 has {tokens} tokens.*kept are usr-1 with {tokens}: unkeep") as caught:
        session.keep(2)
    assert f"{tokens + 5} tokens" in str(caught.value)
    session.unkeep(1)
    session.keep(2)


def test_the_budget_wins_over_what_is_kept() -> None:
    """Where a window has no room, kept pages fold last, and that is told."""
    session = open_session(active={"keep_share": 0.9})
    talk(session, 8)
    session.keep(2)
    session.keep(5)
    notices = heard(session)
    most = session.window().tokens
    floor = session.render(session.seq).breakdown["open"]
    budgets = range(most - 1, floor, -15)
    gone: list[str] = []
    for budget in budgets:
        try:
            window = session.window(budget)
        except BudgetError:
            break
        assert window.tokens <= budget
        for notice in notices:
            if isinstance(notice, Fold):
                gone += notice.pages
                others = set(in_view(session)) - {"usr-2", "usr-5", "usr-8"}
                assert not notice.kept or not others
                assert notice.kept == tuple(index for index in notice.pages if index in ("usr-2", "usr-5"))
        notices.clear()
    assert ["usr-2", "usr-5"] == gone[-2:]


def test_results_of_kept_pages_are_not_trimmed() -> None:
    """Others are, before pages fold; a page whose results were trimmed is whole again when it is kept."""
    sections: Any = {"budget": {"window": 4_500, "reserve": 0}, "active": {"min_pages": 1, "keep_share": 0.4}}
    session = looked(3, **sections)
    session.keep(1)
    for number in range(4, 7):
        session.extend([user(f"look {number}"), calling(f"c{number}"), result(f"c{number}", LONG), assistant("done")])
    session.window()
    assert result("c1", LONG) in session.window().messages
    pages = session._core.state.active.pages()
    trimmed = [(page.index, node.message.answers[0]) for page in pages for node in page.nodes() if node.trimmed]
    page, call = trimmed[0]
    assert page != "usr-1"
    session.unkeep(1)
    session.keep(page)
    assert result(call, LONG) in session.window().messages


def test_the_open_page_may_be_kept() -> None:
    """It is held once it is complete; of a turn that is cut, only the page that was named."""
    session = open_session(active={"max_pages": 2})
    talk(session, 1)
    session.append(user("and this?"))
    session.keep(2)
    session.append(assistant("this"))
    talk(session, 5, first=3)
    assert ["usr-2", "usr-6", "usr-7"] == in_view(session)


def test_kept_pages_do_not_count_for_the_marks_in_numbers() -> None:
    """As many others are in view as without them, so that not every turn folds."""
    session = open_session(active={"min_pages": 1, "max_pages": 4})
    talk(session, 3)
    session.keep(1)
    session.keep(2)
    session.keep(3)
    notices = heard(session)
    talk(session, 4, first=4)
    assert [] == folded(notices)
    talk(session, 1, first=8)
    assert [("usr-4", "usr-5", "usr-6", "usr-7")] == folded(notices)


def test_a_late_result_joins_a_page_that_came_back() -> None:
    """It is in the page that is kept, whether it came before that or after it, and calls and results stay together."""
    session = open_session(active={"max_pages": 2, "keep_share": 0.9})
    session.extend([user("look"), calling("a", "b"), assistant("meanwhile")])
    talk(session, 4, first=2)
    session.fold("all")
    session.window(160)
    assert "usr-1" not in in_view(session)
    session.append(result("a", "early"))
    session.keep(1)
    session.append(result("b", "late"))
    page = session.page(1).messages
    assert [user("look"), calling("a", "b"), result("a", "early"), result("b", "late"), assistant("meanwhile")] == page
    assert is_subsequence(page, session.window().messages)
    assert_paired(session.window().messages)
    session.unkeep(1)
    session.fold("all")
    assert page == session.page(1).messages
    assert () == session.verify().problems


def test_going_back_takes_along_what_is_kept() -> None:
    """Checkpoints, forks and a rewind have what was kept then; erasing leaves the page where it is, without its words."""
    store = MemoryStore()
    session = open_session(store, active={"max_pages": 2})
    talk(session, 6)
    session.keep(2)
    session.keep(5)
    made = session.checkpoint("here")
    session.unkeep(2)
    session.restore_checkpoint(made.id)
    assert ["usr-2", "usr-5", "usr-6"] == in_view(session)
    engine = Engine(store, config_of(active={"max_pages": 2}))
    assert ["usr-2", "usr-5"] == [facts.index for facts in engine.fork("chat", "other").pages() if facts.kept]
    session.refresh()
    session.rewind("usr-4/2")
    assert ["usr-2", "usr-4"] == in_view(session)
    session.erase(2)
    assert session.facts(2).kept
    assert not any("ask2x1" in str(message) for message in session.window().messages)
    assert () == session.verify().problems
    assert b"ask2x1" not in b"".join(record.body for record in session._core.store.journal.read())


def test_undoing_a_fold_keeps_its_pages_again() -> None:
    """What was kept when it folded is kept when it is back."""
    session = open_session()
    talk(session, 3)
    session.keep(1)
    session.configure(active={"keep_share": 1e-06})
    session.fold("all")
    assert ["usr-3"] == in_view(session)
    session.undo_fold()
    assert [True, False, False] == [facts.kept for facts in session.pages()]


def test_undoing_a_fold_leaves_a_page_that_was_kept_since() -> None:
    """A page of the last fold that is kept is in view already; the others come back beside it."""
    session = open_session()
    talk(session, 5)
    session.fold("all")
    session.keep(2)
    session.undo_fold()
    assert ["usr-1", "usr-2", "usr-3", "usr-4", "usr-5"] == in_view(session)
    assert replayed(session) == state_codec.to_mapping(session._core.state)


def test_what_cannot_be_kept_is_refused() -> None:
    """Roots, system pages, ranges, evicted pages and none; a kept page does not even fold by its name."""
    session = open_session()
    session.append({"role": "system", "content": "be kind"})
    talk(session, 4)
    session.fold("usr-1")
    session.evict(1)
    with pytest.raises(PageEvictedError):
        session.keep(1)
    for index in ("usr-0", "sys-0", "sys-1"):
        with pytest.raises(PermissionDeniedError):
            session.keep(index)
    for index in ("usr-77", "usr-1..3"):
        with pytest.raises(PageNotFoundError):
            session.unkeep(index)
    session.keep(2)
    assert ("usr-3",) == session.fold(["usr-3", "usr-2"]).pages


def test_the_last_command_is_not_that_of_a_kept_page() -> None:
    """The working set tells of the newest one that folded, while the kept page is in view and when it folds."""
    session = open_session(active={"min_pages": 1, "max_pages": 2})
    for number in range(1, 6):
        call = calling(f"c{number}", arguments=f'{{"command": "make part{number} | tee log"}}')
        session.extend([user(f"go {number}"), call, result(f"c{number}", f"part{number} done"), assistant("done")])
        if number == 1:
            session.keep(1)
    talk(session, 3, first=6)
    assert ["usr-1", "usr-8"] == in_view(session)
    told = str(session.window().messages[1])
    assert "make part5" in told
    session.unkeep(1)
    session.fold("all")
    told = str(session.window().messages[1])
    assert "make part5" in told
    assert "make part1" not in told


def test_a_planner_of_ones_own_cannot_fold_what_is_kept() -> None:
    """What it names of kept pages stays, the rest of its plan holds."""

    class Everything:
        def plan(self, state: State, _config: object) -> FoldPlan:
            pages = [page.index for page in state.active.pages() if page is not state.active.open_page]
            return FoldPlan(pages=tuple(pages), reason="all")

    session = Engine(MemoryStore(), config_of(), planner=Everything()).session("chat")
    session.extend(turn(1))
    session.keep(1)
    talk(session, 3, first=2)
    assert ["usr-1", "usr-4"] == in_view(session)


def test_explain_says_who_keeps_a_page() -> None:
    """It names the share, and where a page has no room in it."""
    session = open_session(budget={"window": 1_000, "reserve": 0})
    talk(session, 3)
    session.keep(1)
    told = session.explain(1)
    assert told.facts["kept"] is True
    assert "It is kept by the application, in the share of 250 tokens: folds pass it by, and it goes last." in told.reasons
    session.configure(active={"keep_share": 0.01})
    assert any("no room there" in reason for reason in session.explain(1).reasons)


def test_an_entry_has_a_bookmark() -> None:
    """It is listed by its address, with its label and how the entry begins; another label takes the first one's place."""
    session = open_session()
    session.extend([user("look"), calling("a"), assistant("meanwhile"), *turn(2)])
    session.bookmark("usr-2/2", "second")
    session.bookmark("usr-1/3", "first")
    session.append(result("a"))
    session.bookmark("usr-2/2", "the answer")
    told = [(mark.address, mark.label, mark.text[:9]) for mark in session.bookmarks()]
    assert [("usr-1/4", "first", "meanwhile"), ("usr-2/2", "the answer", "answer2 s")] == told
    session.bookmark("usr-1/4", None)
    session.rewind("usr-2/2")
    assert [] == session.bookmarks()


def test_bookmarks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """At their most, another is refused, the label of one can be changed, and one that is taken away makes room."""
    monkeypatch.setattr(keeping, "MOST_BOOKMARKS", 2)
    session = open_session()
    talk(session, 3)
    session.bookmark("usr-1/1", "first")
    session.bookmark("usr-2/1", "second")
    with pytest.raises(PermissionDeniedError, match="which is the most"):
        session.bookmark("usr-3/1", "third")
    session.bookmark("usr-2/1", "another")
    session.bookmark("usr-1/1", None)
    session.bookmark("usr-3/1", "third")
    assert ["another", "third"] == [mark.label for mark in session.bookmarks()]


def test_a_bookmark_in_a_page_that_the_application_keeps_changes_nothing() -> None:
    """The page is kept by the application still, and no rule lets go of it."""
    session = open_session(active={"keep_bookmarks": True})
    talk(session, 3)
    session.keep("usr-1")
    session.bookmark("usr-1/1", "look")
    session.bookmark("usr-2/1", "here")
    assert {"usr-1": "application", "usr-2": "rule"} == session._core.state.kept


def test_a_bookmark_goes_with_what_is_erased() -> None:
    """Neither the journal nor a snapshot has its label afterwards; others stay, also after a checkpoint is restored."""
    session = open_session()
    talk(session, 3)
    session.bookmark("usr-1/1", "a secret mark")
    session.bookmark("usr-2/1", "another")
    made = session.checkpoint("here")
    session.restore_checkpoint(made.id)
    session.erase(1)
    session.restore_checkpoint(made.id)
    assert ["another"] == [mark.label for mark in session.bookmarks()]
    assert b"secret" not in b"".join(record.body for record in session._core.store.journal.read())


@pytest.mark.parametrize("label", ["", " ", "two\nlines", 7, "x" * 300])
def test_a_bookmark_needs_a_line(label: Any) -> None:  # noqa: ANN401 (what is wrong)
    """Whatever is no line of text is refused, and so is what is no entry."""
    session = open_session()
    talk(session, 1)
    with pytest.raises(ArgumentError):
        session.bookmark("usr-1/1", label)
    with pytest.raises(PageNotFoundError):
        session.bookmark("usr-1/9", "there")
    with pytest.raises(InvalidIdError):
        session.bookmark("usr-1", "there")


def tried(session: Session, number: int, name: str, text: str) -> None:
    """Append a turn in which a tool of a name answers with a text."""
    call: Value = calling(f"c{number}")
    call["tool_calls"][0]["function"]["name"] = name
    session.extend([user(f"try {number}"), call, result(f"c{number}", text), assistant("so")])


@pytest.mark.parametrize(
    ("rule", "kept"),
    [("errors", ["usr-2"]), ("first_successes", ["usr-4"]), ("decisions", ["usr-5"]), ("bookmarks", ["usr-1", "usr-6"])],
)
def test_rules_keep_what_is_worth_it(rule: str, kept: list[str]) -> None:
    """Errors, the first success after one, calls that change something, and bookmarks; as events, and off by default."""
    session = open_session(active={f"keep_{rule}": True})
    tried(session, 1, "read_file", "all fine")
    tried(session, 2, "get_report", "E   AssertionError: 3 is not 4\n1 failed")
    tried(session, 3, "read_file", "all fine")
    tried(session, 4, "get_report", "4 passed")
    tried(session, 5, "write_file", "written")
    session.append(user("and now?"))
    session.bookmark("usr-1/2", "where it began")
    session.bookmark("usr-6/1", "the question")
    session.append(assistant("done"))
    talk(session, 1, first=7)
    assert kept == [facts.index for facts in session.pages() if facts.kept]
    assert replayed(session) == state_codec.to_mapping(session._core.state)
    session.unkeep(kept[0])
    talk(session, 2, first=8)
    assert kept[1:] == [facts.index for facts in session.pages() if facts.kept]


def test_rules_leave_the_share_to_the_newest() -> None:
    """Where more is kept by rule than fits the share, the oldest fold, and what the application keeps has the room first."""
    session = open_session(active={"keep_errors": True, "min_pages": 1, "max_pages": 2}, budget={"window": 700, "reserve": 0})
    talk(session, 1)
    session.keep(1)
    for number in range(2, 14):
        tried(session, number, "get_report", f"ERROR in number {number}")
    kept = [facts.index for facts in session.pages() if facts.kept and facts.state is PageState.ACTIVE]
    assert "usr-1" in kept
    assert "usr-2" not in in_view(session)
    state, config = session._core.state, session._core.config
    held = planner.held(state, config)
    assert "usr-1" in held
    assert sum(session.facts(index).tokens for index in held) <= 0.25 * 700


def test_what_is_kept_survives_reopening(tmp_path: Any) -> None:  # noqa: ANN401 (a path)
    """Another process finds pages and bookmarks as they were, from the journal alone and from a snapshot."""
    config = config_of(active={"max_pages": 2}, snapshot_every=5)
    with Engine(FileStore(tmp_path, "flush"), config) as engine, engine.session("chat") as session:
        talk(session, 6)
        session.keep(3)
        session.bookmark("usr-3/1", "here")
        talk(session, 2, first=7)
        window = session.window().to_json()
    with Engine(FileStore(tmp_path, "flush"), config) as engine, engine.session("chat") as session:
        assert window == session.window().to_json()
        assert ["usr-3"] == [facts.index for facts in session.pages() if facts.kept]
        assert ["usr-3/1"] == [mark.address for mark in session.bookmarks()]


@pytest.mark.slow
@given(data=st.data(), wire=st.sampled_from(["openai", "responses", "anthropic"]), budget=st.sampled_from([300, 500, 900]))
def test_kept_pages_stand_in_every_window_within_its_budget(data: st.DataObject, wire: str, budget: int) -> None:
    """Whatever is kept and let go: no window passes its budget, what is held is in it word for word, and folds are in order."""
    session = open_session(budget={"window": budget, "reserve": 0}, format=wire, active={"min_pages": 1})
    notices = heard(session)
    for number in range(1, data.draw(st.integers(3, 25))):
        notices.clear()
        session.extend(turn(number, data.draw(st.sampled_from([2, 8, 20]))))
        for command in data.draw(st.lists(st.sampled_from(["keep", "unkeep", "fold"]), max_size=2)):
            index = f"usr-{data.draw(st.integers(1, number))}"
            held = set(planner.held(session._core.state, session._core.config))
            if command == "fold":
                notices.clear()
                session.fold(data.draw(st.sampled_from([None, "all"])))
                assert not held & {each for pages in folded(notices) for each in pages}
                continue
            try:
                getattr(session, command)(index)
            except PermissionDeniedError:
                assert command == "keep"
        held = set(planner.held(session._core.state, session._core.config))
        notices.clear()
        window = session.window()
        assert window.tokens <= budget
        state = session._core.state
        kept_out = [index for notice in notices if isinstance(notice, Fold) for index in notice.kept]
        for index in held - set(kept_out):
            assert is_subsequence(session.page(index).messages, window.messages)
        if kept_out:  # nothing else could go
            assert {page.index for page in state.active.pages()} <= held | {f"usr-{number}"}
        numbers = [int(page.index[4:]) for page in state.active.pages()]
        assert sorted(numbers) == numbers
        state._check()
    assert not any(isinstance(notice, FoldFailed) for notice in notices)
    assert replayed(session) == state_codec.to_mapping(session._core.state)
    assert () == session.verify().problems


def test_a_page_in_a_directory_that_was_made_is_kept() -> None:
    """It comes back into view and stays listed there; a directory itself is no page of the conversation."""
    session = open_session(active={"max_pages": 2})
    talk(session, 6)
    made = session.create_contents_page("Invoices", children=["usr-2", "usr-3"])
    session.keep(2)
    assert ["usr-2", "usr-5", "usr-6"] == in_view(session)
    assert made == session.facts(2).parent
    talk(session, 2, first=8)
    session.unkeep(2)
    session.fold("all")
    assert made == session.facts(2).parent
    assert turn(2) == session.page(2).messages
    with pytest.raises(PermissionDeniedError):
        session.keep(made)
    session._core.state._check()
    assert replayed(session) == state_codec.to_mapping(session._core.state)
    assert () == session.verify().problems
