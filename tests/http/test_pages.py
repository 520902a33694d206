"""Pages over HTTP: lists, one page, why it is where it is, and what a search finds."""

import pytest
from fastapi.testclient import TestClient

from tests.http.serving import problem, say, value

CHAT = "/v1/sessions/chat"


@pytest.fixture(autouse=True)
def said(api: TestClient) -> None:
    say(api, "chat", "the boiler", "the gasket", "the valve")


def test_pages_are_listed_in_parts(api: TestClient) -> None:
    """A list says how many there are in all, and goes on where it is told."""
    whole = value(api.get(f"{CHAT}/pages"))
    assert (3, ["usr-1", "usr-2", "usr-3"]) == (whole["total"], [each["index"] for each in whole["pages"]])
    part = value(api.get(f"{CHAT}/pages", params={"start": 1, "limit": 1}))
    assert (3, whole["pages"][1:2]) == (part["total"], part["pages"])


def test_pages_are_listed_by_state(api: TestClient) -> None:
    """Only those in a state are there, and counted."""
    found = value(api.get(f"{CHAT}/pages", params={"state": "open"}))
    assert (1, ["usr-3"]) == (found["total"], [each["index"] for each in found["pages"]])


@pytest.mark.parametrize("index", ["usr-2", "2"])
def test_a_page_is_read_whole(api: TestClient, index: str) -> None:
    """Its facts and its messages are there, by its index or its number; this is no recall."""
    page = value(api.get(f"{CHAT}/pages/{index}"))
    assert ["the gasket", "About the gasket: " + "it is so. " * 20] == [each["content"] for each in page["messages"]]
    assert {"index": "usr-2", "recall_count": 0, "entries": 2}.items() <= page["facts"].items()


def test_a_root_is_the_list_of_its_pages(api: TestClient) -> None:
    """It has no messages of its own."""
    page = value(api.get(f"{CHAT}/pages/usr-0"))
    assert ([], 3) == (page["messages"], len(page["pages"]))


def test_a_page_is_explained(api: TestClient) -> None:
    """There is a reason for where it is."""
    assert value(api.get(f"{CHAT}/pages/usr-3/explain"))["reasons"]


def test_a_search_finds_pages(api: TestClient) -> None:
    """In one session and in all of the tenant's; the hits of these say which session they are of."""
    say(api, "other", "a gasket of copper")
    words = {"query": "gasket", "include_visible": True}
    assert ["usr-2"] == [hit["index"] for hit in value(api.post(f"{CHAT}/search", json=words))]
    hits = value(api.post("/v1/search", json={"query": "gasket"}))
    assert {("chat", "usr-2"), ("other", "usr-1")} == {(hit["session"], hit["index"]) for hit in hits}
    assert ["other"] == [hit["session"] for hit in value(api.post("/v1/search", json={"query": "gasket", "sessions": ["other"]}))]


def test_a_search_is_narrowed(api: TestClient) -> None:
    """By who said it, and by the turns in which a page was opened."""
    words = {"query": "boiler gasket valve", "include_visible": True, "roles": ["user"], "turns": [2, 3]}
    assert {"usr-2", "usr-3"} == {hit["index"] for hit in value(api.post(f"{CHAT}/search", json=words))}


def test_a_page_that_is_not_there_is_named(api: TestClient) -> None:
    """The problem has the index."""
    assert "usr-9" == problem(api.get(f"{CHAT}/pages/usr-9"), 404)["index"]
