"""What requests carry in addition to the conversation leaves less of the window to it: tools, extra texts and slots."""

from typing import Any

import attrs
import pytest

import memci
from memci.engine.view import planner
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_tools
from tests.engine.wire import assistant, user

WINDOW, TURNS = 6_000, 120
SENTENCE = "Does something useful with the orders of the shop, and says what came of it. "


def tools_of(number: int) -> list[dict[str, Any]]:
    """Return the schemas of *number* tools."""
    parameters = {"type": "object", "properties": {"order": {"type": "string"}}}
    return [
        {"type": "function", "function": {"name": f"tool_{place}", "description": SENTENCE * 4, "parameters": parameters}}
        for place in range(number)
    ]


@attrs.frozen
class Course:
    """What became of a conversation: its folds, the mean number of answers in a window, and the mean prefix reuse of a call."""

    folds: int
    verbatim: float
    reuse: float


def course(window: int, tools: list[dict[str, Any]] | None = None, **beside: Any) -> Course:  # noqa: ANN401 (as window takes it)
    """Have a conversation of many turns, with a window before each answer, and return its course."""
    config = {"budget": {"window": window, "reserve": 0}, "recall": {"protocol": "none"}}
    with memci.Engine("memory:", config) as engine, engine.session("chat") as session:
        shared, sent, answers, before = 0, 0, 0, list[dict[str, Any]]()
        for number in range(TURNS):
            session.append(user(f"Question {number}: what about order {number * 37}?"))
            made = session.window(tools=tools, **beside)
            now = [message for message in made.messages if "[extra" not in str(message["content"])]
            same = next((place for place, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), len(before))
            shared, sent, before = shared + same, sent + len(now), now
            answers += sum(message["role"] == "assistant" for message in now)
            session.append(assistant(f"It is order {number * 91}, and " + "you may write to the service. " * 12))
        return Course(
            sum(event.kind == "folded" for event in session.events()),
            answers / TURNS,
            shared / sent,
        )


@pytest.mark.slow
@pytest.mark.parametrize("number", [6, 25, 45])
def test_a_window_with_tools_plans_as_a_smaller_one(number: int) -> None:
    """A window of W tokens with tools of N folds as often, shows as many turns, and reuses as much as one of W - N."""
    tools = tools_of(number)
    smaller = WINDOW - count_tools(tools, get_counter("o200k_base"))
    with_tools, without = course(WINDOW, tools), course(smaller)
    assert without.folds > 0
    assert without.folds == pytest.approx(with_tools.folds, rel=0.1)
    assert without.verbatim == pytest.approx(with_tools.verbatim, rel=0.1)
    assert without.reuse == pytest.approx(with_tools.reuse, rel=0.02)


@pytest.mark.slow
def test_a_window_with_an_extra_text_plans_as_a_smaller_one() -> None:
    """A text in addition to the conversation takes its room from it as tools do."""
    with_extra, without = course(WINDOW, extra=SENTENCE * 120), course(WINDOW - 120 * 17)
    assert without.folds == pytest.approx(with_extra.folds, rel=0.15)
    assert without.verbatim == pytest.approx(with_extra.verbatim, rel=0.15)


def marks(session: memci.Session) -> tuple[int, int]:
    """Return what requests are planned to carry, and the size at which the open page is cut."""
    state, config = session._core.state, session._core.config
    return planner.request_tokens(state), planner.cut_tokens(state, config)


def test_the_largest_of_three_windows_counts() -> None:
    """Tools that a host leaves out of two calls still count in the marks; after three calls without them they do not."""
    tools = tools_of(10)
    size = count_tools(tools, get_counter("o200k_base"))
    with memci.Engine("memory:", {"budget": {"window": WINDOW, "reserve": 0}}) as engine, engine.session("chat") as session:
        planned = []
        for number, given in enumerate([tools, None, None, None, None, tools, None]):
            session.append(user(f"question {number}"))
            session.window(tools=given)
            planned.append(marks(session)[0])
            session.append(assistant(f"answer {number}"))
    assert [0, size, size, 0, 0, 0, size] == planned  # that of a call without an answer does not count yet


def test_what_requests_carry_is_known_after_reopening(tmp_path: Any) -> None:  # noqa: ANN401 (a path)
    """A session that is opened again plans with the tools of its last windows, from a snapshot as from its journal."""
    tools, planned = tools_of(10), []
    for snapshot_every in (2, 1_000):
        config = {"budget": {"window": WINDOW, "reserve": 0}, "snapshot_every": snapshot_every}
        store = f"file:{tmp_path}/{snapshot_every}"
        with memci.Engine(store, config) as engine, engine.session("chat") as session:
            for number, given in enumerate([None, tools, None]):
                session.append(user(f"question {number}"))
                session.window(tools=given)
                session.append(assistant(f"answer {number}"))
            planned.append(marks(session))
        with memci.Engine(store, config) as engine, engine.session("chat") as session:
            planned.append(marks(session))
    assert [planned[0]] * 4 == planned
    assert planned[0][0] == count_tools(tools, get_counter("o200k_base"))


def test_slots_and_tools_shorten_the_open_page() -> None:
    """The open page is cut at a share of what requests leave, so that it can be recalled whole."""
    with memci.Engine("memory:", {"budget": {"window": WINDOW, "reserve": 0}}) as engine, engine.session("chat") as session:
        session.append(user("question"))
        session.window()
        _, alone = marks(session)
        session.slots["goal"] = SENTENCE * 60
        session.window(tools=tools_of(10))
        carried, cut = marks(session)
    assert int(planner.OPEN_PAGE_SHARE * WINDOW) == alone
    assert int(planner.OPEN_PAGE_SHARE * (WINDOW - carried)) == cut


def test_requests_larger_than_the_window_leave_a_token() -> None:
    """Where tools alone are over the budget, planning continues, and the window is the usual error."""
    with memci.Engine("memory:", {"budget": {"window": 800, "reserve": 0}}) as engine, engine.session("chat") as session:
        session.append(user("question"))
        with pytest.raises(memci.BudgetError):
            session.window(tools=tools_of(30))
        session.window()
        session.slots["goal"] = SENTENCE * 100
        session.append(assistant("answer"))
        session.append(user("question"))
        assert 1 == planner.conversation_budget(session._core.state, 800)
