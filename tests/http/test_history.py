"""What happened, over HTTP: checkpoints, the journal, handing over, verifying."""

from collections import Counter

import pytest
from fastapi.testclient import TestClient

from tests.http.serving import assistant, problem, say, user, value

CHAT, NEW = "/v1/sessions/chat", "/v1/sessions/new"


@pytest.fixture(autouse=True)
def said(api: TestClient) -> None:
    say(api, "chat", "the boiler", "the gasket")


def test_a_session_comes_back_to_a_checkpoint(api: TestClient) -> None:
    """It is listed with what the application gave it, and what came after it is gone from view."""
    wanted = {"label": "before", "kind": "milestone", "variables": {"step": 3}}
    made = value(api.post(f"{CHAT}/checkpoints", json=wanted), 201)
    assert wanted.items() <= made.items()
    say(api, "chat", "the valve")
    assert [made] == value(api.get(f"{CHAT}/checkpoints"))
    undo = value(api.post(f"{CHAT}/checkpoints/{made['id']}/restore"))
    assert 4 == len(value(api.get(f"{CHAT}/transcript")))
    value(api.post(f"{CHAT}/checkpoints/{undo['id']}/restore"))
    assert 6 == len(value(api.get(f"{CHAT}/transcript")))


def test_a_checkpoint_that_there_is_not_is_refused(api: TestClient) -> None:
    """And so is one of no kind."""
    problem(api.post(f"{CHAT}/checkpoints/cp-9/restore"), 422)
    problem(api.post(f"{CHAT}/checkpoints", json={"label": "x", "kind": "whim"}), 422)


def test_the_journal_is_listed_part_by_part(api: TestClient) -> None:
    """Each part goes on after the last event of the one before; together they are all events."""
    whole = value(api.get(f"{CHAT}/events"))
    assert list(range(1, 1 + len(whole))) == [event["seq"] for event in whole]
    parts, after = list[object](), 0
    while part := value(api.get(f"{CHAT}/events", params={"after": after, "limit": 2})):
        parts += part
        after = part[-1]["seq"]
    assert whole == parts


def test_the_journal_is_narrowed(api: TestClient) -> None:
    """To a kind, or to what names a page."""
    kinds = Counter(event["kind"] for event in value(api.get(f"{CHAT}/events")))
    assert kinds["appended"] == len(value(api.get(f"{CHAT}/events", params={"kind": "appended"}))) == 4
    named = value(api.get(f"{CHAT}/events", params={"page": ["usr-2"]}))
    assert named
    assert all("usr-2" in str(event["data"]) for event in named)
    problem(api.get(f"{CHAT}/events", params={"kind": "whim"}), 422)


def test_another_session_goes_on(api: TestClient) -> None:
    """It has a note of where this one stands, once for a key."""
    value(api.post("/v1/sessions", json={"id": "next", "config": {"budget": {"window": 8_000}}}), 201)
    header = {"Idempotency-Key": "h-1"}
    note = value(api.post(f"{CHAT}/handoff", json={"to": "next"}, headers=header))["index"]
    assert {"index": note} == value(api.post(f"{CHAT}/handoff", json={"to": "next"}, headers=header))
    said = value(api.get(f"/v1/sessions/next/pages/{note}"))["messages"]
    assert "the gasket" in str(said)
    problem(api.post(f"{CHAT}/handoff", json={"to": "chat"}), 422)
    problem(api.post(f"{CHAT}/handoff", json={"to": "next", "include": ["whim"]}), 422)


def test_a_session_is_verified(api: TestClient) -> None:
    """The report has what was compared, and no problem."""
    report = value(api.get(f"{CHAT}/verify"))
    assert {"session": "chat", "problems": []}.items() <= report.items()
    assert report["events"] == value(api.get(CHAT))["seq"]


def test_an_answer_is_generated_anew(api: TestClient) -> None:
    """Going back leaves a variant, which is listed and can be chosen again."""
    value(api.post(f"{NEW}/messages", json={"messages": [user("A name?"), assistant("Argo.")]}), 201)
    assert 204 == api.post(f"{NEW}/rewind", json={"address": "usr-1/2"}).status_code
    value(api.post(f"{NEW}/messages", json={"messages": [assistant("Pequod.")]}), 201)
    found = value(api.get(f"{NEW}/variants", params={"address": "usr-1/2"}))
    assert [("Argo.", False), ("Pequod.", True)] == [(each["message"]["content"], each["current"]) for each in found]
    assert {"address": "usr-1/2"} == value(api.post(f"{NEW}/choose", json={"seq": found[0]["seq"]}))
    assert "Argo." == value(api.get(f"{NEW}/transcript"))[0]["text"]
    problem(api.post(f"{NEW}/rewind", json={"address": "usr-9/1"}), 404)
    problem(api.post(f"{NEW}/choose", json={"seq": 999}), 422)


def test_messages_are_marked_for_people(api: TestClient) -> None:
    """What is said of a message is in the transcript, a bookmark in its list; null takes each away."""
    say(api, "new", "one")
    assert 204 == api.post(f"{NEW}/annotate", json={"address": "usr-1/2", "values": {"rating": 5}}).status_code
    assert {"rating": 5} == value(api.get(f"{NEW}/transcript"))[0]["metadata"]
    assert 204 == api.post(f"{NEW}/bookmark", json={"address": "usr-1/1", "label": "here"}).status_code
    assert [("usr-1/1", "here")] == [(each["address"], each["label"]) for each in value(api.get(f"{NEW}/bookmarks"))]
    assert 204 == api.post(f"{NEW}/bookmark", json={"address": "usr-1/1", "label": None}).status_code
    assert [] == value(api.get(f"{NEW}/bookmarks"))


def test_who_comes_back_is_told(api: TestClient) -> None:
    """A recap says where the session stands, and what happened after an event."""
    say(api, "new", "one")
    seq = value(api.get(NEW))["seq"]
    say(api, "new", "two")
    told = value(api.get(f"{NEW}/recap", params={"since": seq}))
    assert ({"messages": 2}, 2) == (told["happened"], told["turn"])
    assert "it is so" in str(told["parts"])


def test_a_fork_begins_with_what_was(api: TestClient) -> None:
    """It is a session of its own, as this one was after an event; its id is to be a new one."""
    say(api, "new", "one")
    seq = value(api.get(NEW))["seq"]
    say(api, "new", "two")
    made = value(api.post(f"{NEW}/fork", json={"to": "branch", "at": seq}), 201)
    assert ("branch", 1) == (made["id"], made["turn"])
    say(api, "branch", "three")
    assert 2 == value(api.get(NEW))["turn"] == value(api.get("/v1/sessions/branch"))["turn"]
    problem(api.post(f"{NEW}/fork", json={"to": "branch"}), 409)
    problem(api.post(f"{NEW}/fork", json={"to": "other", "at": 999}), 422)
    problem(api.post("/v1/sessions/none/fork", json={"to": "other"}), 404)
