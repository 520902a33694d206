"""Planners and counters that are objects of the application's."""

import math
from typing import Any, cast

import attrs
import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.commands.folding import fold
from memci.engine.core.monitor import FoldFailed
from memci.engine.engine import Engine
from memci.engine.history.state import State
from memci.engine.settings.config import Config
from memci.engine.view.planner import FoldPlan
from memci.errors import ArgumentError, ConfigError
from tests.engine.sessions import config_of, folded, heard, talk
from tests.engine.wire import user


@attrs.frozen
class Every:
    """Folds all complete pages when there are so many."""

    pages: int
    plans: Any = None  # what it answers instead

    def plan(self, state: State, _config: Config) -> FoldPlan:
        if self.plans is not None:
            return self.plans  # type: ignore[no-any-return]
        complete = [page.index for page in state.active.pages() if page is not state.active.open_page and not page.open_calls]
        return FoldPlan(pages=tuple(complete) if len(complete) >= self.pages else (), reason="marks")


class Words:
    """Counts words, but for answers that it is given."""

    name, exact, margin = "words", True, 1.0

    def __init__(self, answer: Any = None, **facts: Any) -> None:  # noqa: ANN401 (what no counter has)
        self.answer = answer
        self.__dict__ |= facts

    def count(self, text: str) -> int:
        return len(text.split()) if self.answer is None else cast("int", self.answer)


def test_a_planner_decides_which_pages_fold() -> None:
    """It is asked when a page opens; windows still keep to their budget."""
    with Engine(MemoryStore(), config_of(), planner=Every(4)) as engine, engine.session("chat") as session:
        notices = heard(session)
        talk(session, 9)
        assert [("usr-1", "usr-2", "usr-3", "usr-4"), ("usr-5", "usr-6", "usr-7", "usr-8")] == folded(notices)
        assert session.window(budget=150).tokens <= 150


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("usr-1", "a planner returns a FoldPlan, not a str"),
        (FoldPlan(pages=("usr-1", "usr-3"), reason="marks"), "usr-3"),
        (FoldPlan(pages=("usr-9",), reason="marks"), "usr-9"),
        (FoldPlan(pages=("usr-1", "usr-1"), reason="marks"), "it names a page twice"),
        (FoldPlan(pages=("usr-1",), trimmed=("usr-1",), reason="marks"), "it names a page twice"),
        (FoldPlan(pages=(), trimmed=cast("Any", ("usr-1", 3, [])), reason="marks"), "3, []"),
        (FoldPlan(pages=cast("Any", None), reason="marks"), "tuples of page indexes"),
        (FoldPlan(pages=("usr-1",), reason=cast("Any", 7)), "its reason is 7"),
        (FoldPlan(pages=("usr-1",), reason="half \ud800"), "its reason is"),
        (FoldPlan(pages=("usr-1",), reason="long " * 50), "its reason is"),
        (FoldPlan(pages=("usr-1",), reason="marks", contents_tokens=cast("Any", "many")), "its contents_tokens are 'many'"),
        (FoldPlan(pages=("usr-1",), reason="marks", contents_tokens=-5), "its contents_tokens are -5"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(answer: object, problem: str) -> None:
    """The append is done, nothing folds, and observers hear why."""
    with Engine(MemoryStore(), config_of(), planner=Every(1, answer)) as engine, engine.session("chat") as session:
        notices = heard(session)
        talk(session, 3)
        assert 6 == len(list(session.messages()))
        assert [] == folded(notices)
        assert problem in str([each.error for each in notices if isinstance(each, FoldFailed)][-1])
        session.append(user("it goes on"))
        assert () == session.verify().problems


def test_a_fold_takes_each_page_once() -> None:
    """Whoever planned it: what is written can be applied."""
    with Engine(MemoryStore(), config_of()) as engine, engine.session("chat") as session:
        talk(session, 3)
        with session._open() as core:
            done = fold(core, FoldPlan(pages=("usr-1", "usr-1", "usr-9"), reason="command"))
        assert ("usr-1",) == done.pages
        assert () == session.verify().problems


def test_a_counter_counts() -> None:
    """Windows fit its budget; a session that goes on with another one is counted anew."""
    store = MemoryStore()
    with Engine(store, config_of(budget={"window": 200, "reserve": 0}), counter=Words()) as engine:
        session = engine.session("chat")
        talk(session, 30)
        by_words = session.window()
        assert by_words.tokens <= 200
        assert "words" == engine.config.counter
    with Engine(store, config_of(budget={"window": 2_000, "reserve": 0})) as engine, engine.session("chat") as session:
        assert session.window().tokens > by_words.tokens
        assert by_words.to_json() == session.render(at=by_words.seq).to_json()
        assert () == session.verify().problems


def test_what_is_none_is_refused() -> None:
    """An object without the method, and a name that nobody brings, are told."""
    for name in ("summarizer", "counter", "planner"):
        with pytest.raises(ArgumentError, match=name):
            Engine("memory:", **cast("Any", {name: object()}))
    with pytest.raises(ConfigError, match="there is no planner mine: give one of marks"):
        Engine("memory:", {"planner": "mine"})


@pytest.mark.parametrize("count", [math.nan, math.inf, 0.5, True, -5, "7", 10**30])
def test_a_count_that_is_none_is_refused(count: object) -> None:
    """Before anything is written, and with the counter's name; a session goes on when it counts again."""
    counter = Words()
    with Engine(MemoryStore(), config_of(), counter=counter) as engine, engine.session("chat") as session:
        talk(session, 3)
        before, counter.answer = session.seq, count
        with pytest.raises(ConfigError, match=r"counter: the counter words counts .* tokens"):
            session.append(user("a question"))
        with pytest.raises(ConfigError, match="the counter words"):
            session.fold("all")
        counter.answer = None
        assert before == session.seq
        session.fold("all")
        assert () == session.verify().problems


@pytest.mark.parametrize(
    "facts", [{"margin": math.nan}, {"margin": 0}, {"margin": "x"}, {"name": 7}, {"name": "x\n"}, {"exact": None}]
)
def test_a_counter_says_what_it_is(facts: dict[str, object]) -> None:
    """What lacks that is refused by the engine."""
    with pytest.raises(ArgumentError, match="counter"):
        Engine(MemoryStore(), counter=Words(**facts))
