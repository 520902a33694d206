"""The rules of a session over HTTP: listed, added and removed."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from memci.http.tokens import Scope, Tokens, new_token
from tests.http.serving import assistant, problem, serving, user, value

RULES = "/v1/sessions/chat/rules"
RULE, NAME, OTHER_NAME = "Never push to main without asking me.", "Call me Dr. Weber.", "Call me Anna."
SAID = [user(f"{RULE} {NAME}"), assistant("Good."), user(OTHER_NAME)]


@pytest.fixture
def ruled(api: TestClient) -> TestClient:
    """An application with a session of three rules, of which the third replaced the second."""
    value(api.post("/v1/sessions/chat/messages", json={"messages": SAID, "at": ["2026-03-01T10:00:00+00:00"] * 3}), 201)
    return api


def listed(api: TestClient, **query: int) -> list[dict[str, Any]]:
    """Return the rules that the server lists."""
    found: list[dict[str, Any]] = value(api.get(RULES, params=query))["rules"]
    return found


def test_rules_are_listed_as_the_session_has_them(ruled: TestClient) -> None:
    """Oldest first, those that were replaced too, each with all its fields."""
    assert [RULE, NAME, OTHER_NAME] == [rule["text"] for rule in listed(ruled)]
    expected = {"address": "usr-1/1#2", "at": "2026-03-01T10:00:00+00:00", "speaker": "", "kind": "identity"}
    assert {**expected, "text": NAME, "superseded_by": "usr-2/1"}.items() <= listed(ruled)[1].items()


def test_the_list_has_parts(ruled: TestClient) -> None:
    """A part begins where it is asked to, and says how many rules there are; what is no part is refused."""
    part = value(ruled.get(RULES, params={"start": 1, "limit": 1}))
    assert ([NAME], 3) == ([rule["text"] for rule in part["rules"]], part["total"])
    assert [] == listed(ruled, start=3)
    problem(ruled.get(RULES, params={"start": -1}), 422)
    problem(ruled.get(RULES, params={"limit": 1_001}), 422)


def test_a_rule_is_added(ruled: TestClient) -> None:
    """The answer is the rule, and the next window has it."""
    added = value(ruled.post(RULES, json={"text": "Quote prices with VAT."}), 201)
    assert ("rule-1", "added") == (added["address"], added["kind"])
    assert added == listed(ruled)[-1]
    assert "Quote prices with VAT." in ruled.post("/v1/sessions/chat/window").text


def test_a_key_adds_a_rule_once(ruled: TestClient) -> None:
    """A request that is repeated with its key gets the first answer; for another rule, or for messages, the key is a conflict."""
    key = {"Idempotency-Key": "7c1e"}
    first = value(ruled.post(RULES, json={"text": "Quote prices with VAT."}, headers=key), 201)
    assert first == value(ruled.post(RULES, json={"text": "Quote prices with VAT."}, headers=key), 201)
    assert 4 == len(listed(ruled))
    assert "urn:memci:ConflictError" == problem(ruled.post(RULES, json={"text": "Be brief."}, headers=key), 409)["type"]
    problem(ruled.post("/v1/sessions/chat/messages", json={"messages": SAID[:1]}, headers=key), 409)
    assert 4 == len(listed(ruled))


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": 7}, {"text": "x" * 2_001}, {"text": "a\x00b"}])
def test_what_is_no_rule_is_refused(ruled: TestClient, body: dict[str, Any]) -> None:
    """Nothing is written."""
    problem(ruled.post(RULES, json=body), 422)
    assert 3 == len(listed(ruled))


@pytest.mark.parametrize("address", ["usr-1/1", "usr-1/1#2"])
def test_a_rule_is_removed(ruled: TestClient, address: str) -> None:
    """It is named by its address, as the list has it; the explanation of its page says that it was removed."""
    answer = ruled.delete(RULES, params={"address": address})
    assert (204, b"") == (answer.status_code, answer.content)
    assert address not in [rule["address"] for rule in listed(ruled)]
    explained = value(ruled.get("/v1/sessions/chat/pages/usr-1/explain"))["rules"]
    assert [address] == [rule["address"] for rule in explained if rule["state"] == "removed"]


def test_an_address_that_no_rule_has_is_not_found(ruled: TestClient) -> None:
    """The refusal is the error of the session; without an address nothing is removed."""
    assert "urn:memci:ArgumentError" == problem(ruled.delete(RULES, params={"address": "usr-9/1"}), 404)["type"]
    problem(ruled.delete(RULES), 422)
    assert 3 == len(listed(ruled))


def test_a_session_that_is_not_there_has_no_rules(api: TestClient) -> None:
    """It does not begin with a rule."""
    problem(api.get(RULES), 404)
    problem(api.post(RULES, json={"text": RULE}), 404)
    problem(api.delete(RULES, params={"address": "rule-1"}), 404)
    assert [] == value(api.get("/v1/sessions"))["sessions"]


def test_a_token_that_reads_changes_no_rule(tmp_path: Path) -> None:
    """It lists rules; adding and removing one needs a token that writes."""
    path = tmp_path / "tokens"
    reading, writing = ({"Authorization": f"Bearer {new_token(path, 'default', scope)}"} for scope in (Scope.READ, Scope.WRITE))
    with serving(tokens=Tokens(path)) as api:
        value(api.post("/v1/sessions/chat/messages", json={"messages": SAID}, headers=writing), 201)
        problem(api.post(RULES, json={"text": RULE}, headers=reading), 403)
        problem(api.delete(RULES, params={"address": "usr-1/1"}, headers=reading), 403)
        assert 3 == value(api.get(RULES, headers=reading))["total"]
        value(api.post(RULES, json={"text": RULE}, headers=writing), 201)
        assert 204 == api.delete(RULES, params={"address": "usr-1/1"}, headers=writing).status_code


def test_the_description_names_the_rules(api: TestClient) -> None:
    """A rule is described by its fields, and the list by its parts."""
    schemas = value(api.get("/openapi.json"))["components"]["schemas"]
    assert {"text", "address", "at", "speaker", "kind", "superseded_by"} <= set(schemas["Rule"]["properties"])
    assert {"rules", "total"} == set(schemas["RuleList"]["properties"])
