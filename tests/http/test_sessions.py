"""Sessions as such over HTTP: new ones, lists, what is said of them, their end."""

import threading
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from memci.archive.stores.memory import MemoryStore
from tests.engine.counting_store import CountingStore
from tests.http.serving import problem, say, serving, value


def test_a_session_begins_with_what_is_said_of_it(api: TestClient) -> None:
    """A new one has its metadata and its settings, before its first message."""
    begun = value(
        api.post("/v1/sessions", json={"id": "chat", "metadata": {"title": "Boilers"}, "config": {"budget": {"window": 50}}}), 201
    )
    assert {"id": "chat", "turn": 0, "metadata": {"title": "Boilers"}}.items() <= begun.items()
    say(api, "chat", "the boiler")
    assert 50 == problem(api.post("/v1/sessions/chat/window"), 422)["budget"]


def test_a_session_gets_an_id_where_none_is_given(api: TestClient) -> None:
    """Each time another one, and it is there at once."""
    ids = {value(api.post("/v1/sessions", json={}), 201)["id"] for _ in range(2)}
    assert 2 == len(ids)
    assert ids == {each["id"] for each in value(api.get("/v1/sessions"))["sessions"]}


def test_a_session_begins_once(api: TestClient) -> None:
    """Beginning one that is there is a conflict, and changes nothing."""
    say(api, "chat", "the boiler")
    assert 0 == problem(api.post("/v1/sessions", json={"id": "chat", "metadata": {"title": "other"}}), 409)["expected"]
    assert {} == value(api.get("/v1/sessions/chat"))["metadata"]


def test_of_two_who_begin_a_session_at_once_one_does() -> None:
    """While one server begins it, another one does: the second to write is refused, and changes nothing."""
    store = CountingStore(MemoryStore())
    answers = dict[str, Response]()
    with serving(store) as one, serving(store) as other:
        held = store.hold("append")

        def begin(api: TestClient, title: str) -> None:
            answers[title] = api.post("/v1/sessions", json={"id": "chat", "metadata": {"title": title}})

        late = threading.Thread(target=begin, args=(one, "late"))
        late.start()
        assert held.reached.wait(20)
        begin(other, "early")
        held.released.set()
        late.join()
        assert {"title": "early"} == value(answers["early"], 201)["metadata"] == value(one.get("/v1/sessions/chat"))["metadata"]
    assert 0 == problem(answers["late"], 409)["expected"]


@pytest.mark.parametrize(
    "wanted",
    [
        {"config": {"budget": {"window": -1}}},
        {"config": {"store": "memory:"}},
        {"config": {"preset": "none"}, "metadata": {"title": "x"}},
        {"config": {"preset": "sliding"}, "metadata": {"title": "x" * 20_000}},
    ],
)
def test_what_cannot_be_begins_no_session(api: TestClient, wanted: dict[str, Any]) -> None:
    """Settings that a session cannot have, and more than may be said of one, are refused before anything is stored."""
    problem(api.post("/v1/sessions", json={"id": "chat", **wanted}), 422)
    problem(api.get("/v1/sessions/chat"), 404)


def test_lists_go_on(api: TestClient) -> None:
    """Part by part there are all sessions, those used last first."""
    for number in range(5):
        say(api, f"chat-{number}", "the boiler")
    found, after = list[str](), ""
    while part := value(api.get("/v1/sessions", params={"limit": 2, **({"after": after} if after else {})})):
        found += [each["id"] for each in part["sessions"]]
        if not (after := part["after"]):
            break
    assert [f"chat-{number}" for number in (4, 3, 2, 1, 0)] == found


def test_sessions_are_found_by_what_is_said_of_them(api: TestClient) -> None:
    """A title and an owner, which may be taken back again."""
    for session, owner in (("a", "ann"), ("b", "bob")):
        value(api.post("/v1/sessions", json={"id": session, "metadata": {"owner": owner}}), 201)
    assert ["b"] == [each["id"] for each in value(api.get("/v1/sessions", params={"owner": "bob"}))["sessions"]]
    assert {"title": "B"} == value(api.patch("/v1/sessions/b", json={"title": "B", "owner": None}))["metadata"]
    assert [] == value(api.get("/v1/sessions", params={"owner": "bob"}))["sessions"]


@pytest.mark.parametrize("session", ["a/b", "what? 100%", "räuber", "a+b", "../up", "pages"])
def test_any_id_is_one_segment_of_a_path(api: TestClient, session: str) -> None:
    """A session's id may hold what has a meaning in URLs, percent-encoded."""
    say(api, quote(session, safe=""), "the boiler")
    assert session == value(api.get(f"/v1/sessions/{quote(session, safe='')}"))["id"]
    assert [session] == [each["id"] for each in value(api.get("/v1/sessions"))["sessions"]]


def test_a_deleted_session_is_gone(api: TestClient) -> None:
    """The receipt says what there was; a second time there is nothing."""
    say(api, "chat", "the boiler")
    assert {"session": "chat", "events": 3}.items() <= value(api.delete("/v1/sessions/chat")).items()
    problem(api.get("/v1/sessions/chat"), 404)
    problem(api.delete("/v1/sessions/chat"), 404)


@pytest.mark.parametrize("path", ["", "/transcript", "/window", "/status", "/pages", "/pages/usr-1"])
def test_reading_begins_no_session(api: TestClient, path: str) -> None:
    """One that is not there is not found, and not there afterwards."""
    assert "chat" == problem(api.get(f"/v1/sessions/chat{path}"), 404)["value"]
    assert [] == value(api.get("/v1/sessions"))["sessions"]
