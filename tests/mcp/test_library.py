"""All sessions of a tenant over MCP: listed, searched and read as each permits its model, recalled where that is wanted."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

import memci
from memci.mcp.library import Library
from tests.cli.processes import ran
from tests.engine.sessions import talk
from tests.engine.wire import assistant, user
from tests.mcp.serving import Served, served, text_of

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Three sessions of a tenant, and one of another; one keeps a secret, one has a picture and a name that has to be quoted."""
    url = f"file:{tmp_path}/store"
    with memci.Engine(url, {"active": {"min_pages": 1, "max_pages": 2}}, on_conflict="retry") as engine:
        for number, name in enumerate(("chat-1", "chat-2", "Ünïted: 3"), start=1):
            with engine.session(name) as session:
                talk(session, 6, first=10 * number)
                session.describe(title=f"About boat {number}")
        with engine.session("chat-2") as session:
            session.add_segment("secret", permission="system_managed")
            session.create_detail_page("Hidden", "a secret", "The marmalade is a secret.", "secret-0")
        with engine.session("Ünïted: 3") as session:
            source = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw==", "detail": "low"}}
            session.append({"role": "user", "content": [{"type": "text", "text": "Look, a marmalade."}, source]})
            session.append({"role": "assistant", "content": "So it is."})
            session.append(user("and now?"))
        with engine.session("theirs", tenant="other") as session:
            session.append(user("Their marmalade."))
    return url


@pytest.fixture
def library(store: str) -> Iterator[Served]:
    with served(store, "", "--all") as server:
        yield server


def test_sessions_are_listed(library: Served) -> None:
    """Those used last first, part by part, with what the host said of them; none of another tenant."""
    whole = library.value("list_sessions")["sessions"]
    assert {"chat-1", "chat-2", "Ünïted: 3"} == {row["session"] for row in whole}
    assert {"About boat 1", "About boat 2", "About boat 3"} == {row["title"] for row in whole}
    found, after = [], ""
    while True:
        part = library.value("list_sessions", limit=1, after=after)
        found += part["sessions"]
        if not (after := part["after"]):
            break
    assert whole == found[: len(whole)]


def test_a_search_reaches_all(library: Served) -> None:
    """Pages of every session, with the id that reads them; nothing that a session keeps from its model."""
    (hit,) = library.value("search_sessions", query="marmalade")["result"]
    assert ("Ünïted: 3", True) == (hit["session"], "marmalade" in hit["snippet"])
    assert "chat-2" == library.value("search_sessions", query="ask22x3 say22x4")["result"][0]["session"]
    result = library.call("read_page", {"session": hit["session"], "index": hit["index"]})
    text, picture = result.content
    assert isinstance(picture, types.ImageContent)
    assert isinstance(text, types.TextContent)
    assert "Look, a marmalade." in text.text
    assert picture.data == "iVBORw=="


def test_pages_are_listed_and_recalled(library: Served, store: str) -> None:
    """By the tools of the session that is named; a recall stands in that session's window."""
    pages = library.value("list_pages", session="chat-1", limit=50)["pages"]
    assert 6 == len(pages)
    assert pages[0]["index"] == library.value("recall_page", session="chat-1", index=pages[0]["index"])["index"]
    with memci.Engine(store, read_only=True) as engine, engine.session("chat-1") as session:
        assert [pages[0]["index"]] == [facts.index for facts in session.pages("attached")]


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("read_page", {"session": "chat-9", "index": "usr-1"}, "InvalidIdError"),
        ("read_page", {"session": "theirs", "index": "usr-1"}, "InvalidIdError"),
        ("read_page", {"session": "../other/theirs", "index": "usr-1"}, "InvalidIdError"),
        ("read_page", {"session": "chat-1", "index": "usr-99"}, "PageNotFoundError"),
        ("read_page", {"session": "chat-2", "index": "note-1"}, "PermissionDeniedError"),
        ("list_sessions", {"limit": 0}, "ArgumentError"),
        ("search_sessions", {"query": "boat", "limit": 99}, "ArgumentError"),
        ("search_pages", {"query": "boat"}, "ToolNotFoundError"),
    ],
)
def test_what_the_model_did_wrong_is_a_result(library: Served, name: str, arguments: dict[str, object], kind: str) -> None:
    """No other tenant and no session that is not there is reached, or made."""
    result = library.call(name, arguments)
    assert result.is_error
    assert kind == json.loads(text_of(result))["error"]["kind"]
    assert 3 == len(library.value("list_sessions")["sessions"])


def test_resources(library: Served) -> None:
    """The list of sessions, and contents pages, rules and pages by templates."""
    assert 3 == len(json.loads(library.read("memci://sessions"))["sessions"])
    assert "[usr-0] Contents" in library.read("memci://chat-1/contents")
    assert "question30" in library.read("memci://%C3%9Cn%C3%AFted%3A%203/pages/usr-1")
    assert [] == json.loads(library.read("memci://chat-1/rules"))
    for uri in ("memci://chat-9/contents", "memci://chat-1/other", "memci://"):
        with pytest.raises(MCPError):
            library.read(uri)


def test_rules_of_a_closed_page_are_left_out(library: Served, store: str) -> None:
    """What a session keeps from its model is in no list of its rules; the others are."""
    with memci.Engine(store, keep_settings=True, on_conflict="retry") as engine, engine.session("chat-2") as session:
        session.extend([user("Never push to main without asking me."), assistant("Good."), user("Call me Dr. Weber.")])
        closed, kept = (rule.page for rule in session.rules())
        session.create_contents_page("Closed", "pages", "secret-0", [closed])
    assert [kept] == [rule["address"].partition("/")[0] for rule in json.loads(library.read("memci://chat-2/rules"))]


def test_one_that_only_reads(store: str) -> None:
    """With --read-only there is no recall, and nothing is written."""
    with served(store, "", "--all", "--read-only") as server:
        tools = [tool.name for tool in server.portal.call(server.client.list_tools).tools]
        assert ["list_sessions", "search_sessions", "list_pages", "read_page"] == tools
        assert server.value("search_sessions", query="ask12x1")["result"]


def test_what_others_wrote_is_seen(store: str) -> None:
    """Each call sees what another process wrote before it, also while the engine has the session open for itself."""
    with (
        closing(Library(store, "default", memci.Config())) as library,
        library._engine.session("chat-1"),  # as one of the engine's threads may have it
        memci.Engine(store) as other,
        other.session("chat-1") as session,
    ):
        session.append(user("Where is the harbour?"))
        text, failed = library.answer("list_pages", {"session": "chat-1", "limit": 50})
    assert not failed
    assert 7 == json.loads(text)["total"]


@pytest.mark.parametrize("options", [("--read-only",), ("--all", "--session", "chat-1")])
def test_options_that_do_not_go_together(store: str, options: tuple[str, ...]) -> None:
    """They are refused before anything is opened."""
    refused = ran("mcp", "--store", store, *options)
    assert 2 == refused.code
    assert "--all" in refused.err
