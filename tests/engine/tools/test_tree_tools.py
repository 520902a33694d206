"""The tools of the page tree: which are offered, what they answer, and that a model cannot go past what segments permit."""

import json
from typing import Any

import pytest

from memci.engine.session import Session
from memci.errors import ToolNotFoundError
from memci.messages.tokens.message_tokens import count_tools
from tests.engine.sessions import open_session, talk

RECALL = ["recall_page", "read_page", "list_pages", "search_pages", "close_topic"]
OPENING: list[str] = []
EDITING = ["group_pages", "move_page"]


@pytest.fixture
def session() -> Session:
    session = open_session(active={"min_pages": 1})
    talk(session, 8)
    session.fold("all")
    return session


def call(session: Session, name: str, **arguments: object) -> Any:  # noqa: ANN401 (what the tool answers)
    given = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return json.loads(session.handle_tool_call(given)["content"])


def offered(session: Session) -> list[str]:
    assert list(session.toolbox.tools) == [tool["function"]["name"] for tool in session.toolbox.openai()]
    assert list(session.toolbox.tools) == [tool["name"] for tool in session.toolbox.anthropic()]
    return list(session.toolbox.tools)


def test_what_is_offered_depends_on_segments(session: Session) -> None:
    """Nothing more by default; opening once a segment was set, editing once one may be edited; not by what is in the tree."""
    before = session.toolbox.openai()
    assert RECALL == offered(session)
    session.create_contents_page("March", children=[1, 2])
    assert before == session.toolbox.openai()
    session.add_segment("rules")
    assert RECALL + OPENING == offered(session)
    session.add_segment("lessons", permission="read_write")
    assert [*RECALL, *EDITING, *OPENING] == offered(session)
    assert before == session.toolbox.openai()[: len(before)]
    for name in ("sys", "usr", "rules", "lessons"):
        session.add_segment(name, permission="system_managed")
    assert RECALL == offered(session)


def test_a_checkpoint_takes_tools_back(session: Session) -> None:
    """The tools follow the segments, those of a restored checkpoint too."""
    before = session.checkpoint("before")
    session.add_segment("usr", permission="read_write")
    assert [*RECALL, *EDITING, *OPENING] == offered(session)
    session.restore_checkpoint(before.id)
    assert RECALL == offered(session)


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_the_tokens_of_tools_are_told(wire: str) -> None:
    """They are those of the schemas in the session's format by its counter, for all tools or some."""
    session = open_session(format=wire)
    session.add_segment("usr", permission="read_write")
    schemas = getattr(session.toolbox, wire)()
    assert count_tools(schemas, session._core.counter) == session.toolbox.tokens()
    assert count_tools(schemas[:1], session._core.counter) == session.toolbox.tokens("recall_page")
    with pytest.raises(ToolNotFoundError):
        session.toolbox.tokens("recall")


def test_attp_tells_of_what_is_permitted() -> None:
    """Under ``recall.protocol: attp`` the system part describes the tools of the tree while they are offered."""
    session = open_session(active={"min_pages": 1}, recall={"protocol": "attp"})
    talk(session, 4)
    session.fold("all")

    def told() -> bool:
        talk(session, 1, first=session.turn + 1)
        return "def move_page" in str(session.window().messages[0]["content"])

    assert not told()
    before = session.checkpoint("before")
    session.add_segment("usr", permission="read_write")
    assert told()
    session.restore_checkpoint(before.id)
    assert not told()


def test_what_is_system_managed_is_not_read(session: Session) -> None:
    """Its pages are in no answer of a tool: not read, recalled, listed or found; the application has them all."""
    assert "usr-3" == call(session, "search_pages", query="ask3x2")[0]["index"]
    session.add_segment("usr", permission="system_managed")
    for name, arguments in (
        ("read_page", {"index": "usr-3"}),
        ("read_page", {"index": "usr-3/1"}),
        ("read_page", {"index": "usr-0"}),
        ("read_page", {"index": "usr-1..4"}),
        ("recall_page", {"index": "usr-3"}),
        ("recall_page", {"index": "3"}),
        ("recall_page", {"index": "usr-1..4"}),
        ("close_topic", {"title": "Questions"}),
    ):
        assert "PermissionDeniedError" == call(session, name, **arguments)["error"]["kind"], (name, arguments)
    assert [] == call(session, "search_pages", query="ask3x2")
    listed = call(session, "list_pages", limit=3)
    assert ([], 3) == (listed["pages"], listed["next"])
    assert session.page(3).messages
    assert "usr-3" == session.search("ask3x2")[0].index
    session.recall(3)


def test_a_list_leaves_out_what_may_not_be_read(session: Session) -> None:
    """Its ranges together list each page that may be read once, and what is placed where it may not be read never."""
    session.add_segment("own", permission="system_managed")
    session.create_contents_page("Kept", parent="own-0", children=[2, 5])
    start, found = 0, []
    while start >= 0:
        listed = call(session, "list_pages", start=start, limit=2)
        found += [page["index"] for page in listed["pages"]]
        start = listed["next"]
    assert [f"usr-{number}" for number in (1, 3, 4, 6, 7, 8)] == found
    assert "PermissionDeniedError" == call(session, "read_page", index="usr-2")["error"]["kind"]
    assert "PermissionDeniedError" == call(session, "read_page", index="usr-1..3")["error"]["kind"]
    assert [] == [hit for hit in call(session, "search_pages", query="ask2x2") if hit["index"] in ("usr-2", "usr-5")]
