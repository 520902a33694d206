"""In a small window two tools find and read pages: the schemas of five take a large part of it."""

import pytest

from memci.engine.session import Session
from tests.engine.sessions import open_session, talk

FEW = ["read_page", "search_pages"]


def names(session: Session) -> list[str]:
    return [tool["function"]["name"] for tool in session.toolbox.openai()]


@pytest.mark.parametrize("budget", [1_000, 3_999])
def test_a_small_window_has_two_tools(budget: int) -> None:
    """In every native format, and counted as they are; the others work where a model calls them all the same."""
    session = open_session(budget={"window": budget, "reserve": 0})
    talk(session, 3)
    session.fold("all")
    assert FEW == names(session) == [tool["name"] for tool in session.toolbox.anthropic()]
    assert FEW == [tool["name"] for tool in session.toolbox.responses()]
    assert session.toolbox.tokens() == session.toolbox.tokens(*FEW) < 500
    assert 5 == len(session.toolbox.mcp())
    assert "usr-1" == session.toolbox.call("recall_page", {"index": "usr-1"})["index"]


def test_a_larger_window_has_all() -> None:
    """So has one of ATTP, whose tools are described otherwise, and one for which the application chose tools."""
    assert 5 == len(names(open_session(budget={"window": 4_000, "reserve": 0})))
    assert 5 == len(names(open_session(budget={"window": 2_000, "reserve": 0}, recall={"protocol": "attp"})))
    session = open_session(budget={"window": 2_000, "reserve": 0})
    session.toolbox.offer(["recall_page", "search_pages"])
    assert ["recall_page", "search_pages"] == names(session)


def test_the_system_part_explains_the_two() -> None:
    """In calls that offer them, once there is a contents page; it names no tool that is not offered."""
    session = open_session(budget={"window": 2_000, "reserve": 0})
    talk(session, 3)
    session.fold("all")
    (told,) = [value for value in session.window(tools=session.toolbox.openai()).messages if value["role"] == "system"]
    assert "read_page" in told["content"]
    assert "search_pages" in told["content"]
    assert "recall_page" not in told["content"]
    assert [] == [value for value in session.window().messages if value["role"] == "system"]


def test_the_tools_stay_for_as_long_as_the_handle() -> None:
    """A prompt begins with their schemas: another budget does not change them between two calls."""
    session = open_session(budget={"window": 2_000, "reserve": 0})
    before = names(session)
    session.configure(budget={"window": 9_000, "reserve": 0})
    assert before == names(session)
