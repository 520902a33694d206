"""Errors over HTTP: each is a problem detail with the status that fits it."""

import logging
from http import HTTPStatus
from typing import Any

import pytest
from fastapi.testclient import TestClient

import memci.errors
from memci.errors import (
    BudgetError,
    ConflictError,
    CorruptError,
    ErasureError,
    LockedError,
    MemciError,
    PageEvictedError,
    PermissionDeniedError,
    QuotaError,
    SessionClosedError,
    UnavailableError,
)
from memci.http.problem import refused
from tests.http.serving import CONFIG, problem, say, serving, user, value
from tests.word_counter import WordCounter

CHAT = "/v1/sessions/chat"
ERRORS: list[tuple[MemciError, int, dict[str, Any]]] = [
    (ConflictError("somebody wrote", expected=3, head=5), 409, {"expected": 3, "head": 5}),
    (LockedError("wait", session="chat"), 423, {"session": "chat"}),
    (UnavailableError("the disk at db.internal is full"), 503, {}),
    (SessionClosedError("closed"), 503, {}),
    (PermissionDeniedError("no"), 403, {}),
    (PageEvictedError("usr-1"), 409, {"index": "usr-1"}),
    (QuotaError(quota="limits.tenant_bytes", tenant="t", used=1, wanted=2, most=2), 507, {"used": 1, "most": 2}),
    (BudgetError(budget=5, tokens=9, breakdown={"open": 9}), 422, {"budget": 5, "breakdown": {"open": 9}}),
    (CorruptError("bytes differ", session="chat", place="db.internal", seq=7), 500, {"session": "chat", "place": "", "seq": 7}),
    (ErasureError("usr-1", [], {"fork": UnavailableError("full")}), 503, {"page": "usr-1", "failed": {"fork": "full"}}),
    (MemciError("nothing to undo"), 409, {}),
]


class Failing(WordCounter):
    """A counter with a bug, whose error quotes what it counts."""

    def count(self, text: str) -> int:
        if "secret" in text:
            raise ZeroDivisionError(text)
        return super().count(text)


@pytest.mark.parametrize(("error", "status", "members"), ERRORS, ids=lambda given: type(given).__name__)
def test_each_error_has_its_status_and_its_data(error: MemciError, status: int, members: dict[str, Any]) -> None:
    """The type is the name of the error, the members are its attributes, and no place in the store is told."""
    answer = refused(error)
    told = memci.messages.codec.decode(bytes(answer.body))
    assert (status, f"urn:memci:{type(error).__name__}") == (answer.status_code, told["type"])
    assert members.items() <= told.items()
    assert b"db.internal" not in answer.body


@pytest.mark.parametrize("status", [423, 503])
def test_what_passes_says_when_to_come_again(status: int) -> None:
    """Refusals that end by themselves have Retry-After."""
    assert {"1"} == {refused(error).headers.get("retry-after") for error, known, _ in ERRORS if known == status}


def test_every_error_that_a_store_or_session_raises_has_a_status() -> None:
    """None of memci's errors falls to the rest unseen: those of models and tools alone are no errors of this API."""
    kinds = {kind for kind in vars(memci.errors).values() if isinstance(kind, type) and issubclass(kind, MemciError)}
    made = {kind: refused(kind.__new__(kind, "why")).status_code for kind in kinds}
    rest = {kind.__name__ for kind, status in made.items() if status == HTTPStatus.CONFLICT}
    of_models = {"ModelError", "ModelTimeoutError", "SummaryError", "SummaryTimeoutError"}
    of_tools = {kind.__name__ for kind in kinds if issubclass(kind, memci.AttpError)}
    assert {"ConflictError", "MemciError", "PageEvictedError"} == rest - of_models - of_tools


def test_an_event_that_is_not_there_is_no_matter_of_settings(api: TestClient) -> None:
    """The title fits an argument as well as a setting."""
    say(api, "chat", "the boiler")
    told = problem(api.get(f"{CHAT}/window", params={"at": 999}), 422)
    assert ("urn:memci:ConfigError", "A setting or an argument cannot be used") == (told["type"], told["title"])
    assert "there is no event 999" in told["detail"]


def test_a_window_that_cannot_fit_says_by_part_why(api: TestClient) -> None:
    """The tokens of the smallest one add up."""
    say(api, "chat", "the boiler")
    told = problem(api.post(f"{CHAT}/window", json={"budget": 3}), 422)
    assert (3, told["tokens"]) == (told["budget"], sum(told["breakdown"].values()))


@pytest.mark.parametrize(
    "message", [{}, {"role": "judge", "content": "x"}, {"role": "tool", "content": "x"}, {"role": "user", "content": 1}]
)
def test_a_message_that_is_none_is_refused(api: TestClient, message: dict[str, Any]) -> None:
    """The problem says why; nothing was stored, no session begun."""
    assert "urn:memci:InvalidMessageError" == problem(api.post(f"{CHAT}/messages", json={"messages": [message]}), 422)["type"]
    problem(api.get(CHAT), 404)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"{", "application/json"),
        (b'{"messages": []}', "application/json"),
        (b'{"messages": 1}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"messages": [{"role": "user", "content": "x"}]}', "text/plain"),
        (b"\xff\xfe", "application/json"),
        (b"", "application/json"),
    ],
)
def test_a_body_that_is_none_is_refused(api: TestClient, content: bytes, kind: str) -> None:
    """What is no JSON, or not of this shape, is a problem like any other, and quotes nothing of the body."""
    answer = api.post(f"{CHAT}/messages", content=content, headers={"Content-Type": kind})
    problem(answer, 400 if content.startswith(b"[[") else 422)


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/nothing", 404), ("PUT", CHAT, 405), ("GET", "/nothing", 404)]
)
def test_what_is_not_there_is_a_problem_too(api: TestClient, method: str, path: str, status: int) -> None:
    """Paths and methods that there are not."""
    assert "about:blank" == problem(api.request(method, path), status)["type"]


def test_a_failure_tells_nothing_of_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    """An error that nobody foresaw is a 500; the log says where it came from, and no message of a user."""
    with serving(counter=Failing()) as api, caplog.at_level(logging.ERROR):
        problem(api.post(f"{CHAT}/messages", json={"messages": [user("secret words")]}), 500)
    assert "ZeroDivisionError" in caplog.text
    assert "test_problem.py" in caplog.text
    assert "secret words" not in caplog.text


def test_what_is_wrong_with_a_request_is_listed(api: TestClient) -> None:
    """Each place that is wrong is named, without what stood there."""
    say(api, "chat", "the boiler")
    told = problem(api.post(f"{CHAT}/search", json={"limit": "private"}), 422)
    assert {"body.query", "body.limit"} == {each["place"] for each in told["errors"]}
    assert "private" not in str(told)


def test_the_description_is_there(api: TestClient) -> None:
    """``/openapi.json`` names every resource and what refusals look like."""
    described = value(api.get("/openapi.json"))
    operation = described["paths"]["/v1/sessions/{session_id}/transcript"]["get"]
    assert {"200", "4XX", "5XX"} == set(operation["responses"])
    assert ["application/problem+json"] == list(operation["responses"]["4XX"]["content"])


def test_a_tenant_that_has_enough_is_told_so() -> None:
    """A session more than its quota is refused, as trying again would not help."""
    with serving(config=CONFIG | {"limits": {"tenant_sessions": 1}}) as api:
        say(api, "chat", "the boiler")
        told = problem(api.post("/v1/sessions/other/messages", json={"messages": [user("x")]}), 507)
        assert ("limits.tenant_sessions", 1) == (told["quota"], told["most"])
        problem(api.get("/v1/sessions/other"), 404)
