"""What messages and tools take: counted as a window counts them, without asking for one."""

import pytest

from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import InvalidMessageError
from tests.engine.pictures import png
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import system, user
from tests.engine.wires import WIRES, Value, Wire

SMALL = {"window": 1_500, "reserve": 0}
TOOLS: list[Value] = [{"name": "look", "description": "Look " + "around " * 40, "parameters": {"enum": ["a", "b"]}}]


def say_much(session: Session, wire: Wire) -> None:
    """Say what a window has to fold, shorten and quote, with calls whose ids repeat, and one that waits."""
    session.append(wire.system("Be kind."))
    for number in range(8):
        session.append(wire.user(f"Question {number}: " + "why? " * 20))
        session.extend(wire.answer("hm " * 10, "I look.", ["a", "b"]))
        session.extend([wire.result("a", "found " * 40), wire.result("b", "nothing")])
        session.extend(wire.answer("", f"Answer {number}. ", []))
    session.slots["goal"] = "Ask less."
    session.append(wire.picture("And this?", png(length=300)))
    session.extend(wire.answer("so ", "I look again.", ["c"]))


@pytest.mark.parametrize("scale", [1.0, 1.37])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_it_is_at_most_what_the_window_says(wire: Wire, scale: float) -> None:
    """Messages and tools of a window that folded take no more than its tokens, nearly as many, before and after a report."""
    marks = wire.name == "anthropic"
    session = open_session(format=wire.name, budget=SMALL, active={"min_pages": 2}, cache_breakpoints=marks)
    say_much(session, wire)
    session.window(tools=TOOLS)
    session.report_usage(prompt_tokens=int(scale * session._core.prepared.counted))
    window = session.window(tools=TOOLS, extra={"date": "It is Monday, and the office is open. " * 5})
    assert session.contents.entries
    first = [] if window.system is None else [{"role": "system", "content": window.system}]
    seq, counted = session.seq, session.count([*first, *window.messages], TOOLS)
    assert 0.9 * window.tokens < counted < window.tokens
    assert session.count(window.messages, TOOLS) <= counted
    assert seq == session.seq


def test_it_is_exact_where_nothing_was_shortened() -> None:
    """All but the start of the reply, with and without tools; none of both is nothing."""
    session = open_session()
    session.append(system("Be kind."))
    talk(session, 3)
    for tools in (None, TOOLS):
        window = session.window(tools=tools)
        assert window.tokens - window.breakdown["reply"] == session.count(window.messages, tools)
    assert 0 == session.count([])
    assert window.breakdown["tools"] == session.count([], TOOLS)


def test_it_tells_what_a_message_would_take() -> None:
    """What a message adds to the next window, before it is appended, and as the first one of a session."""
    session = open_session(counter="approximate")
    for text in ("Where is my order? " * 20, "And the other one?"):
        before = session.window().tokens if session.seq else 3
        more = session.count([user(text)])
        session.append(user(text))
        assert before + more - 2 <= session.window().tokens <= before + more + 2


def test_what_is_no_message_is_refused() -> None:
    """As it is when it is appended; a tool that is no schema too."""
    session = open_session()
    with pytest.raises(InvalidMessageError, match="role"):
        session.count([{"content": "x"}])
    with pytest.raises(InvalidMessageError, match="give a list of messages"):
        session.count("x")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidMessageError, match="tools are a list"):
        session.count([], "x")  # type: ignore[arg-type]  # as above


def test_an_engine_that_only_reads_counts_too() -> None:
    """By the settings that it has, with nothing written."""
    with Engine("memory:", config_of(), read_only=True) as engine, engine.session("new") as session:
        assert session.count([user("Where is my order?")]) > 0
        assert 0 == session.seq


def test_a_window_that_a_report_would_refuse_is_counted_without_it() -> None:
    """Where the last window fits only by the counter alone, it is by the counter alone that messages are counted."""
    session = open_session(budget=SMALL)
    session.extend([system("word " * 500), user("Hello.")])
    session.window()
    assert session.report_usage(prompt_tokens=900).scale > 1
    window = session.window(budget=700)
    assert window.tokens - window.breakdown["reply"] == session.count(window.messages)
