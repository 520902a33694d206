"""Levels of detail: what is shown of a page follows from how many turns ago it was opened, or touched."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memci.archive.stores.contract import Record, Store
from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Eviction, Fold, FoldFailed
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import from_record
from memci.engine.history.state import MOST_TOUCHED, State
from memci.engine.session import Session
from memci.engine.settings.config import Config
from memci.engine.upkeep.copying import copy_session
from memci.engine.view import planner
from memci.engine.view.planner import FoldPlan
from memci.errors import BudgetError, PageEvictedError
from memci.testing.planner_suite import PlannerSuite
from tests.engine.core.test_short_ways import called
from tests.engine.sessions import config_of, heard, open_session, states
from tests.engine.wire import Value, assert_paired, assistant, calling, result, user

LEVELS = {"trimmed": 2, "lines": 4, "directory": 7, "gone": 11}
LONG = "a line of what the tool found\n" * 120


def look(session: Session, number: int, path: str = "", *, said: str = "", text: str = LONG) -> None:
    """Append a turn in which a tool reads a file of the turn's own, or another one."""
    arguments = json.dumps({"path": path or f"src/part{number}.py"})
    session.extend([user(said or "please look"), calling(f"c{number}", arguments=arguments), result(f"c{number}", text)])
    session.append(assistant("done"))


def looked(turns: int, levels: dict[str, int] | None = None, store: Store | None = None, **sections: Any) -> Session:  # noqa: ANN401
    """Return a session with so many of these turns."""
    session = open_session(store, levels=LEVELS if levels is None else levels, **sections)
    for number in range(1, turns + 1):
        look(session, number)
    return session


def where(session: Session) -> dict[str, list[int]]:
    """Return the numbers of the pages by where they are, those that are trimmed apart."""
    found: dict[str, list[int]] = {}
    for index, state in states(session).items():
        page = session._core.state.active.find_page(index)
        trimmed = page is not None and any(node.trimmed for node in page.nodes())
        found.setdefault("trimmed" if trimmed else state, []).append(int(index.removeprefix("usr-")))
    return found


def test_a_page_shows_less_the_further_away_it_is() -> None:
    """Whole, then with its results in part, then by an entry, then in a directory, then not at all."""
    session = looked(20)
    assert {
        "evicted": list(range(1, 9)),
        "hidden": list(range(9, 13)),
        "archived": [13, 14, 15],
        "trimmed": [16, 17],
        "active": [18, 19],
        "open": [20],
    } == where(session)
    assert "[usr-9..12] 4 pages" in session.window().messages[0]["content"]
    assert () == session.verify().problems


@pytest.mark.parametrize(
    ("level", "found"),
    [
        ("trimmed", {"trimmed": [1, 2], "active": [3, 4, 5], "open": [6]}),
        ("lines", {"archived": [1, 2], "active": [3, 4, 5], "open": [6]}),
    ],
)
def test_each_level_stands_for_itself(level: str, found: dict[str, list[int]]) -> None:
    """Without the others, one level is carried out."""
    assert found == where(looked(6, {level: 3}))


@pytest.mark.parametrize(("level", "found"), [("directory", {"hidden": [1, 2]}), ("gone", {"evicted": [1, 2]})])
def test_the_contents_page_has_levels_of_its_own(level: str, found: dict[str, list[int]]) -> None:
    """A directory is made in the next fold, whatever asks for that; what is gone leaves when a turn begins."""
    session = looked(5, {level: 4})
    session.fold(["usr-1", "usr-2", "usr-3"])
    look(session, 6)
    look(session, 7)
    session.fold("usr-4")
    assert {**found, "archived": [3, 4], "active": [5, 6], "open": [7]} == where(session)


def test_the_newest_pages_stay_as_they_are() -> None:
    """However far away, the last ``min_pages`` are neither trimmed nor folded."""
    session = looked(6, {"trimmed": 1, "lines": 2}, active={"min_pages": 5})
    assert {"archived": [1], "active": [2, 3, 4, 5], "open": [6]} == where(session)


@pytest.mark.parametrize(
    "said",
    [
        [user("so"), calling("x", arguments='{"path": "src/part1.py"}'), result("x")],
        [user("so"), calling("x", arguments='{"command": "grep -n main src/part1.py | head"}'), result("x")],
        [user("so"), calling("x", arguments='{"file_path": "/home/me/project/src/part1.py"}'), result("x")],
        [user("and order 65939?")],
        [user("so"), assistant("order 65939 is paid")],
        [user("so"), calling("x", arguments='{"query": "order 65939"}'), result("x")],
    ],
)
def test_a_page_whose_file_or_identifier_is_touched_counts_as_near(said: list[Value]) -> None:
    """Its distance is counted from the turn in which calls, the user or the assistant name it again."""
    session = open_session(levels={"lines": 4})
    look(session, 1, "/home/me/project/src/part1.py", said="it is about order 65939")
    for number in (2, 3):
        look(session, number)
    session.extend([*said, assistant("yes")])
    assert {"usr-1": 4} == session._core.state.touched
    for number in range(5, 9):
        look(session, number)
    assert {"archived": [2, 3], "active": [1, 4, 5, 6, 7], "open": [8]} == where(session)
    look(session, 9)
    assert "archived" == states(session)["usr-1"]


@pytest.mark.parametrize(
    "said",
    [
        [user("look at the parts again")],
        [user("so"), calling("x", arguments='{"path": "src"}'), result("x", "src/part1.py, order 65939")],
        [user("so"), calling("x", arguments='{"path": "other/part9.py"}'), result("x")],
    ],
)
def test_plain_words_and_what_tools_answer_touch_nothing(said: list[Value]) -> None:
    """A list of files that a tool gives brings none of them near, nor do the keys of a call's arguments."""
    session = open_session(levels={"lines": 4})
    look(session, 1, said="it is about order 65939")
    look(session, 2)
    session.extend([*said, assistant("yes")])
    assert {} == session._core.state.touched


def test_a_name_touches_the_newest_pages_that_hold_it() -> None:
    """These are three, so that a name which every page holds brings none near that is far away; once in a turn."""
    session = open_session(levels={"gone": 100})
    look(session, 1, "src/main.py")
    for number in range(2, 7):
        look(session, number)
    for number in range(7, 9):
        look(session, number, "src/main.py")
    session.append(user("so"))
    for _ in range(3):
        session.append(assistant("src/main.py it is"))
    assert {"usr-1": 9, "usr-7": 9, "usr-8": 9} == session._core.state.touched
    assert [["usr-1"], ["usr-1", "usr-7", "usr-8"]] == [each.data["pages"] for each in session.events(kind="touched")][1:]
    session.append(user("and"))
    session.append(assistant("src/main.py again"))
    assert {"usr-1": 9, "usr-7": 10, "usr-8": 10, "usr-9": 10} == session._core.state.touched


def test_pages_in_directories_are_touched_too() -> None:
    """They stay in the directory, and on the contents page for as long as if they were opened then."""
    session = looked(10)
    assert "hidden" == states(session)["usr-2"]
    look(session, 11, "src/part2.py")
    for number in range(12, 23):
        look(session, number)
    assert ("hidden", "evicted", "evicted") == tuple(states(session)[index] for index in ("usr-2", "usr-1", "usr-3"))
    look(session, 23)
    assert "evicted" == states(session)["usr-2"]


def test_a_pinned_page_keeps_its_entry() -> None:
    """It folds, but shares no directory, and never leaves the contents page."""
    session = looked(3)
    session.pin(2)
    for number in range(4, 30):
        look(session, number)
    assert "archived" == states(session)["usr-2"]
    assert {"evicted"} == {states(session)[index] for index in ("usr-1", "usr-3", "usr-4")}


def test_what_is_gone_is_told_found_and_put_back() -> None:
    """Observers hear of it; search finds the page, a recall is refused, and a restored page is near again."""
    session = looked(12)
    notices = heard(session)
    look(session, 13)
    assert [(("usr-1", "Distance"),)] == [each.pages for each in notices if isinstance(each, Eviction)]
    assert "usr-1" in [hit.index for hit in session.search("src/part1.py")]
    with pytest.raises(PageEvictedError):
        session.recall(1)
    session.restore(1)
    look(session, 14)
    assert "archived" == states(session)["usr-1"]
    for number in range(15, 26):
        look(session, number)
    assert "evicted" == states(session)["usr-1"]


def test_all_levels_are_carried_out_together() -> None:
    """A turn has one fold at most, as it begins: until the next one the window only grows at its end."""
    session = open_session(levels=LEVELS, recall={"protocol": "none"})
    notices = heard(session)
    for number in range(1, 20):
        del notices[:]
        session.append(user("please look"))
        before = session.window().messages
        assert sum(isinstance(notice, Fold) for notice in notices) <= 1
        for value in [
            calling(f"c{number}", arguments=f'{{"path": "src/p{number}.py"}}'),
            result(f"c{number}", LONG),
            assistant("done"),
        ]:
            session.append(value)
            after = session.window().messages
            if value["role"] != "assistant" or value["content"]:  # a call is shown with its result, or with none
                assert before == after[: len(before)]
                before = after


def test_marks_and_levels_fold_together() -> None:
    """Where the window is too large as well, one fold has the pages of both."""
    session = looked(3, {"lines": 4}, budget={"window": 10_000, "reserve": 0}, active={"low_water": 0.9, "max_pages": 30})
    for number in range(4, 12):
        look(session, number, text="short")
    notices = heard(session)
    session.append(user("so"))
    session.append(assistant(LONG * 10))
    session.append(user("and now"))
    done = [notice for notice in notices if isinstance(notice, Fold)]
    assert ["levels", "marks"] == [each.reason for each in done]
    assert ("usr-7",) == done[0].pages
    assert "usr-8" == done[1].pages[0]
    assert session.window().tokens <= 10_000


def test_a_fold_that_is_undone_is_not_made_again_at_once() -> None:
    """Its pages are as near as if they were opened then; once they are far away again they fold again."""
    session = looked(6)
    session.undo_fold()
    assert {"active": [1, 4, 5], "trimmed": [2, 3], "open": [6]} == where(session)
    for number in range(7, 11):
        look(session, number)
    assert "active" == states(session)["usr-1"]
    look(session, 11)
    assert "archived" == states(session)["usr-1"]


def test_a_page_to_which_the_session_goes_back_is_near() -> None:
    """What a rewind brings back from the archive does not fold as soon as the next turn begins."""
    session = looked(9)
    look(session, 10, "src/part7.py")
    session.rewind("usr-2/4")
    assert {"usr-2": 10} == session._core.state.touched
    look(session, 11)
    assert {"hidden": [1], "active": [2], "open": [11]} == where(session)
    for number in range(12, 16):
        look(session, number)
    assert "archived" == states(session)["usr-2"]


def test_a_recalled_page_is_near() -> None:
    """Its distance is counted from the recall; while it stands in the window it keeps its entry."""
    session = looked(10, recall={"turns": 3})
    session.recall(4)
    for number in range(11, 21):
        look(session, number)
    assert "hidden" == states(session)["usr-4"]
    assert "evicted" == states(session)["usr-5"]
    look(session, 21)
    look(session, 22)
    assert "evicted" == states(session)["usr-4"]


def test_a_page_that_waits_for_a_result_stays() -> None:
    """It neither folds nor is trimmed; once the result is there it does what its distance says."""
    session = open_session(levels=LEVELS)
    session.extend([user("so"), calling("done", "waits"), result("done", LONG), assistant("one is missing")])
    for number in range(2, 9):
        look(session, number)
    assert {"archived": [2, 3], "active": [1, 6, 7], "trimmed": [4, 5], "open": [8]} == where(session)
    session.append(result("waits", "late"))
    look(session, 9)
    assert "archived" == states(session)["usr-1"]
    assert [result("done", LONG), result("waits", "late")] == session.page(1).messages[2:4]


def test_levels_of_a_long_session_take_hold_at_the_next_turn() -> None:
    """A session that goes on with other levels is as if it had had them, as far as nothing was touched before."""
    store = MemoryStore()
    with Engine(store, config_of()) as engine, engine.session("chat") as session:
        for number in range(1, 40):
            look(session, number)
        session.fold([f"usr-{number}" for number in range(1, 30)])
        session.recall(3)
    with Engine(store, config_of(levels=LEVELS)) as engine, engine.session("chat") as session:
        look(session, 40)
        assert where(looked(40))["active"] == where(session)["active"]
        assert [*range(1, 3), *range(4, 29)] == where(session)["evicted"]


def test_who_opens_copies_forks_or_goes_back_has_the_same_distances() -> None:
    """What was touched is in the journal: it lasts, is in a copy and in a fork, and is as it was at a checkpoint."""
    store, target = MemoryStore(), MemoryStore()
    with Engine(store, config_of(levels=LEVELS)) as engine, engine.session("chat") as session:
        for number in range(1, 4):
            look(session, number)
        look(session, 4, "src/part1.py")
        session.checkpoint("four")
        look(session, 5, "src/part2.py")
        known = dict(session._core.state.touched)
    with Engine(store, config_of(levels=LEVELS)) as engine, engine.session("chat") as session:
        assert known == session._core.state.touched == {"usr-1": 4, "usr-2": 5}
        copy_session(store, target, "chat", now="2026-03-01T10:00:00+00:00")
        with engine.fork("chat", "other") as fork, Engine(target, config_of(levels=LEVELS)).session("chat") as copy:
            for each in (session, fork, copy):
                look(each, 6)
            assert where(session) == where(fork) == where(copy)
        session.restore_checkpoint("cp-1")
        assert {"usr-1": 4} == session._core.state.touched


def test_evictions_of_earlier_journals_are_read() -> None:
    """A record of the first version names entries and directories, which leave as ever."""
    session = looked(10, {"lines": 2, "directory": 4})
    assert "usr-1..5" in [entry.index for entry in session.contents.entries]
    event = from_record(Record(session.seq + 1, "evicted", 1, b'{"pages":[["usr-1..5","Stale"],["usr-7","Stale"]]}'))
    apply(session._core.state, event, session.seq + 1)
    assert ["usr-6"] == [entry.index for entry in session._core.state.archive.entries]


def test_an_erased_page_is_no_obstacle() -> None:
    """Erasing takes its words out of the records; distances hold no words, and stay."""
    store = MemoryStore()
    with Engine(store, config_of(levels=LEVELS)) as engine, engine.session("chat") as session:
        for number in range(1, 5):
            look(session, number)
        look(session, 5, "src/part1.py")
        session.erase(1)
        for number in range(6, 20):
            look(session, number)
        assert () == session.verify().problems
        assert "src/part1.py" not in "".join(str(value) for value in session.page(1).messages)
        shown = where(session)
    with Engine(store, config_of(levels=LEVELS)) as engine, engine.session("chat") as session:
        assert shown == where(session)


def test_what_is_remembered_of_touches_is_bounded() -> None:
    """The pages that were touched last are known; the others count from the turn in which they were opened."""
    state = State()
    for number in range(1, 2 * MOST_TOUCHED):
        state.touch([f"usr-{number}", "usr-1"], number)
    assert MOST_TOUCHED == len(state.touched)
    assert [f"usr-{2 * MOST_TOUCHED - 1}", "usr-1"] == list(state.touched)[-2:]


def test_what_a_turn_costs_does_not_grow() -> None:
    """The dearest of fifteen turns calls about as many functions after 60 turns as after 30."""
    session = looked(30, snapshot_every=10_000)
    numbers = iter(range(31, 1_000))

    def dearest() -> int:
        return max(called(lambda: look(session, next(numbers))).total() for _ in range(15))

    first = dearest()
    for _ in range(15):
        look(session, next(numbers))
    assert dearest() < 1.5 * first


def test_what_folds_for_its_distance_is_known_before() -> None:
    """It is prepared, and asked of a summariser, turns before."""
    session = open_session(levels={"lines": 4})
    notices, core = heard(session), session._core
    for number in range(1, 15):
        known = [page.index for page in planner.next_folded(core.state, core.config)]
        assert len(known) <= 3
        look(session, number)
        done = [notice.pages for notice in notices if isinstance(notice, Fold)]
        assert all(set(pages) <= set(known) for pages in done)
        assert bool(done) == (number > 5)
        notices.clear()


def test_a_planner_of_ones_own_sees_distances() -> None:
    """It decides what is trimmed and what folds, by the same state; the contents page keeps to its levels beside it."""

    class Nearest:
        def plan(self, state: State, _config: Config) -> FoldPlan:
            pages = [page for page in state.active.pages() if page is not state.active.open_page and not page.open_calls]
            return FoldPlan(pages=tuple(each.index for each in pages if planner.distance(state, each) > 1), reason="marks")

    engine = Engine(MemoryStore(), config_of(levels=LEVELS), planner=Nearest())
    session = engine.session("chat")
    for number in range(1, 5):
        look(session, number, "src/part1.py" if number == 3 else "")
    assert {"archived": [2], "active": [1, 3], "open": [4]} == where(session)
    for number in range(5, 20):
        look(session, number)
    assert {"evicted", "hidden", "archived", "active", "open"} == where(session).keys()
    engine.close()


class TestLevels(PlannerSuite):
    """What every planner has to do, by the planner of levels."""

    @pytest.fixture
    def planner(self) -> Any:  # noqa: ANN401 (a planner)
        class Levelled:
            def plan(self, state: State, config: Config) -> FoldPlan:
                given = {**config.to_mapping(), "levels": {"trimmed": 1, "lines": 3}, "active": {"max_messages": 12}}
                return planner.plan(state, Config.from_mapping(given))

        return Levelled()


def test_why_a_page_is_where_it_is_tells_its_distance() -> None:
    """The turns, and the levels that are set."""
    session = looked(4, {"lines": 9, "gone": 12})
    assert "It is 3 turns away" in str(session.explain(1))
    assert "lines above 9, gone above 12" in str(session.explain(1))
    assert 3 == session.explain(1).facts["distance"]


NAMES = ("src/app.py", "src/view.py", "order 65939", "HAT-136", "nothing of note")


@st.composite
def level_keys(draw: st.DrawFn) -> dict[str, int]:
    """Draw levels that rise, some of them left out."""
    turns = sorted(draw(st.lists(st.integers(1, 12), min_size=4, max_size=4, unique=True)))
    named = zip(LEVELS, turns, strict=True)
    return {name: count for name, count in named if draw(st.booleans())}


marks = st.sampled_from(
    [{}, {}, {"max_messages": 9, "keep_messages": 4}, {"max_calls": 3}, {"every_turns": 3, "least_tokens": 300}]
)
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["turn", "turn", "turn", "call", "call", "open call", "late", "rewind", "undo", "recall", "pin", "window"]
        ),
        st.integers(0, 11),
    ),
    min_size=4,
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 4 // 5, deadline=None)
@example(levels={"gone": 4}, active={}, given_steps=[("turn", 0)] * 10 + [("call", 8)], budget=900)
@given(levels=level_keys(), active=marks, given_steps=steps, budget=st.sampled_from([900, 2_500]))
def test_whatever_the_levels_are_nothing_is_lost(
    levels: dict[str, int], active: dict[str, int], given_steps: list[tuple[str, int]], budget: int
) -> None:
    """Windows keep to the budget, calls and results stay together, every message and page is there, and all of it replays."""
    store = MemoryStore()
    active = {"min_pages": 1, **active}
    config = config_of(levels=levels, budget={"window": budget, "reserve": 0}, active=active, snapshot_every=9)
    windows: dict[int, bytes] = {}
    with Engine(store, config) as engine, engine.session("chat") as session:
        wrong: list[object] = []
        session.observe(lambda notice: wrong.append(notice) if isinstance(notice, FoldFailed) else None)
        open_ids: list[str] = []
        for number, step in enumerate(given_steps):
            _take(session, number, step, open_ids)
            try:
                window = session.window()
            except BudgetError:
                continue
            assert window.tokens <= budget
            assert_paired(window.messages)
            windows[window.seq] = window.to_json()
            if step[0] in ("turn", "call", "open call"):
                _assert_levels(session, levels)
        assert [] == wrong
        assert () == session.verify().problems
        session._core.state._check()
        held = [value for facts in session.pages() for value in session.page(facts.index).messages]
        assert sorted(map(str, held)) == sorted(map(str, session.messages()))
        live, seq = state_codec.to_mapping(session._core.state), session.seq
    with Engine(store, config) as engine, engine.session("chat") as session:
        assert seq == session.seq
        assert json.dumps(live, sort_keys=True) == json.dumps(state_codec.to_mapping(session._core.state), sort_keys=True)
        for at, shown in windows.items():
            assert shown == session.render(at=at).to_json()


def _assert_levels(session: Session, levels: dict[str, int]) -> None:
    """Assert that pages show no more than they may so far away, as a turn just began.

    Those that the window had no room for since then leave the contents page with the next turn.
    """
    state = session._core.state
    for facts in session.pages():
        turns = state.turn - max(facts.turn, state.touched.get(facts.index, 0))
        page = state.active.find_page(facts.index)
        if page is not None and not page.open_calls:
            assert turns <= levels.get("lines", turns)
            assert turns <= levels.get("trimmed", turns) or not list(planner.long_results(state, page))
        elif page is None and facts.state in ("archived", "hidden") and not facts.pinned and facts.archived_turn != state.turn:
            assert turns <= levels.get("gone", turns)


def _take(session: Session, number: int, step: tuple[str, int], open_ids: list[str]) -> None:
    kind, place = step
    name = NAMES[place % len(NAMES)]
    pages = [facts.index for facts in session.pages()]
    match kind:
        case "turn":
            session.extend([user(f"question {number} about {name}"), assistant(f"answer {number} " + "and so on " * place)])
        case "call":
            ask = calling(f"c{number}", arguments=json.dumps({"path": name}))
            session.extend([user(f"question {number}"), ask, result(f"c{number}", f"{number} found\n" * 30 * place)])
        case "open call":
            session.extend([user(f"question {number}"), calling(f"c{number}", arguments=json.dumps({"path": name}))])
            open_ids.append(f"c{number}")
        case "late" if open_ids:
            session.append(result(open_ids.pop(place % len(open_ids)), "late"))
        case "rewind" if pages:
            session.rewind(f"{pages[-1 - place % min(len(pages), 4)]}/1")
            open_ids[:] = _waiting(session.messages())
        case "undo" if session._core.state.last_fold is not None:
            session.undo_fold()
        case "recall" if pages and states(session)[pages[place % len(pages)]] in ("archived", "hidden"):
            session.recall(pages[place % len(pages)])
        case "pin" if pages and states(session)[pages[place % len(pages)]] != "evicted":
            session.pin(pages[place % len(pages)])
        case _:
            pass


def _waiting(messages: Iterable[Value]) -> list[str]:
    waiting: list[str] = []
    for value in messages:
        waiting += [call["id"] for call in value.get("tool_calls") or ()]
        if value["role"] == "tool":
            waiting.remove(value["tool_call_id"])
    return waiting
