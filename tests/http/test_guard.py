"""Who is let in: tokens and scopes, tenants, the names of the host, pages from elsewhere, and the size and number of requests."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.responses import Response
from starlette.types import ASGIApp, Message

from memci.http.guard import Guard, Rules
from memci.http.tokens import Scope, Tokens, new_token
from tests.http.serving import HOST, problem, serving, user, value

CHAT = "/v1/sessions/chat"
SAID = {"messages": [user("x")]}

ASKED: dict[Scope, list[tuple[str, str, Any]]] = {
    Scope.READ: [("GET", "/v1/sessions", None), ("GET", f"{CHAT}/window", None), ("POST", f"{CHAT}/search", {"query": "x"})],
    Scope.WRITE: [("POST", f"{CHAT}/messages", SAID), ("POST", f"{CHAT}/window", {}), ("PATCH", CHAT, {"title": "x"})],
    Scope.ADMIN: [("DELETE", CHAT, None)],
}

Login = Callable[[str, Scope], dict[str, str]]


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return tmp_path / "tokens.yaml"


@pytest.fixture
def login(tokens: Path) -> Login:
    """Make a token, and return the header that has it."""

    def made(tenant: str, scope: Scope) -> dict[str, str]:
        return {"Authorization": f"Bearer {new_token(tokens, tenant, scope)}"}

    return made


@pytest.fixture
def guarded(tokens: Path) -> Iterator[TestClient]:
    new_token(tokens, "anybody", Scope.READ)
    with serving(tokens=Tokens(tokens), per_minute=60) as client:
        yield client


@pytest.mark.parametrize("given", [None, "Bearer memci_00_x", "Basic memci_00_x", "Bearer", "é"])
def test_a_stranger_is_refused(guarded: TestClient, given: str | None) -> None:
    """Without a token that the server knows nothing is answered, not even whether a session is there."""
    answer = guarded.get(CHAT, headers={} if given is None else {b"Authorization": given.encode("latin-1")})
    told = problem(answer, 401)
    assert ("urn:memci:PermissionDeniedError", "Unauthorized") == (told["type"], told["title"])
    assert "Bearer" == answer.headers["www-authenticate"]


@pytest.mark.parametrize("path", ["/%76%31/sessions", "//v1/sessions", "/v1//sessions", "/x/../v1/sessions", "/V1/sessions"])
def test_no_other_way_of_writing_a_path_passes_the_guard(guarded: TestClient, path: str) -> None:
    """What is not written as a resource is none."""
    answer = guarded.get(f"{HOST}{path}")
    assert answer.status_code in {401, 404}


def test_the_description_needs_no_token(guarded: TestClient) -> None:
    """It tells nothing of anybody."""
    value(guarded.get("/openapi.json"))


@pytest.mark.parametrize("scope", list(Scope))
def test_a_token_is_good_for_its_scope(guarded: TestClient, login: Login, scope: Scope) -> None:
    """What needs less is answered, what needs more is 403, and says which scope that is."""
    say_with(guarded, login("t", Scope.WRITE))
    header = login("t", scope)
    for needed, asked in ASKED.items():
        for method, path, body in asked:
            answer = guarded.request(method, path, json=body, headers=header)
            if scope.allows(needed):
                assert answer.is_success, answer.text
            else:
                told = problem(answer, 403)
                assert ("Forbidden", True) == (told["title"], f"and {needed} is needed" in told["detail"])


def say_with(client: TestClient, header: dict[str, str]) -> None:
    value(client.post(f"{CHAT}/messages", json=SAID, headers=header), 201)


def test_tenants_do_not_see_each_other(guarded: TestClient, login: Login) -> None:
    """The same id is another session for each; lists and searches hold their own alone."""
    one, other = login("one", Scope.ADMIN), login("other", Scope.ADMIN)
    say_with(guarded, one)
    problem(guarded.get(CHAT, headers=other), 404)
    problem(guarded.delete(CHAT, headers=other), 404)
    assert [] == value(guarded.get("/v1/sessions", headers=other))["sessions"]
    assert [] == value(guarded.post("/v1/search", json={"query": "x"}, headers=other))
    assert 1 == len(value(guarded.post("/v1/search", json={"query": "x"}, headers=one)))


def test_a_token_has_so_many_requests_a_minute(guarded: TestClient, login: Login) -> None:
    """Beyond them it is told when to come again; another token is not kept waiting."""
    first, second = login("t", Scope.READ), login("t", Scope.READ)
    answers = [guarded.get("/v1/sessions", headers=first) for _ in range(100)]
    late = [answer for answer in answers if answer.status_code != 200]
    assert late
    assert 60 <= 100 - len(late)
    assert "1" == late[0].headers["retry-after"]
    problem(late[0], 429)
    value(guarded.get("/v1/sessions", headers=second))


@pytest.mark.parametrize(("seconds", "passed"), [(30, 30), (60, 60), (120, 60), (3_600, 60)])
def test_requests_come_back_evenly(tokens: Path, login: Login, seconds: int, passed: int) -> None:
    """After its requests are used up a token earns one per second, and never more than those of a minute."""
    now, header = [1_000.0], login("t", Scope.READ)
    rules = Rules(tokens=Tokens(tokens), per_minute=60)
    client = TestClient(Guard(Response(), rules, clock=lambda: now[0]), base_url=HOST)

    def count_passed() -> int:
        return sum(client.get("/v1/sessions", headers=header).status_code == 200 for _ in range(100))

    assert 60 == count_passed()
    now[0] += seconds
    assert passed == count_passed()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8484", "localhost:1", "[::1]:8484"])
def test_without_tokens_this_machine_is_asked_by_name(api: TestClient, host: str) -> None:
    """These names are those of the machine itself."""
    value(api.get("/v1/sessions", headers={"Host": host}))


@pytest.mark.parametrize("path", ["/v1/sessions", "/openapi.json", "/"])
@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:8484", "127.0.0.1.rebound.example", "[", "", "192.168.0.1"])
def test_without_tokens_no_other_name_is_answered(api: TestClient, host: str, path: str) -> None:
    """A page whose name was bound to this machine's address reads nothing."""
    problem(api.get(path, headers={"Host": host}), 421)


def test_without_tokens_a_page_from_elsewhere_is_refused(api: TestClient) -> None:
    """A browser says where the page stands that asks; those of the server itself may."""
    problem(api.post(f"{CHAT}/messages", json=SAID, headers={"Origin": "https://elsewhere.example"}), 403)
    problem(api.post(f"{CHAT}/messages", json=SAID, headers={"Origin": "null"}), 403)
    problem(api.get(CHAT), 404)
    value(api.post(f"{CHAT}/messages", json=SAID, headers={"Origin": HOST}), 201)


def test_pages_may_ask_where_they_are_named() -> None:
    """With an origin that is named, a browser is told that it may; others still are not."""
    named, other = {"Origin": "https://chat.example"}, {"Origin": "https://other.example"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    with serving(origins=["https://chat.example"]) as api:
        answer = api.options(f"{CHAT}/messages", headers=named | asked)
        assert (200, "https://chat.example") == (answer.status_code, answer.headers["access-control-allow-origin"])
        assert "https://chat.example" == api.get("/v1/sessions", headers=named).headers["access-control-allow-origin"]
        assert "access-control-allow-origin" not in api.get("/v1/sessions", headers=other).headers
        problem(api.get("/v1/sessions", headers=other), 403)


def test_no_page_is_told_that_it_may_where_none_is_named(api: TestClient) -> None:
    """Without an origin there are no headers for pages from elsewhere."""
    answer = api.get("/v1/sessions", headers={"Origin": HOST})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_may_be_so_large(*, announced: bool) -> None:
    """What is larger is refused, whether it says so before or is found to be; nothing of it is stored."""
    body = b'{"messages": [{"role": "user", "content": "' + b"x" * 2_000 + b'"}]}'
    sent: Any = body if announced else iter([body[:1_000], body[1_000:]])
    with serving(body_bytes=1_000) as api:
        told = problem(api.post(f"{CHAT}/messages", content=sent, headers={"Content-Type": "application/json"}), 413)
        assert "at most 1000 bytes" in told["detail"]
        problem(api.get(CHAT), 404)
    with serving(body_bytes=len(body)) as api:
        value(api.post(f"{CHAT}/messages", content=body, headers={"Content-Type": "application/json"}), 201)


async def answered(app: ASGIApp, pieces: Sequence[bytes], *, ended: bool) -> list[Message]:
    """Send messages to the session as a body in pieces, of which no more come where it has not *ended*; return what is sent."""
    came = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    came[-1]["more_body"] = not ended
    sent = list[Message]()

    async def receive() -> Message:
        if not came:
            await asyncio.Event().wait()
        return came.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    path = f"{CHAT}/messages"
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http"}
    await app({**scope, "headers": headers, "http_version": "1.1", "root_path": "", "server": ("localhost", 80)}, receive, send)
    return sent


@pytest.mark.parametrize(("most", "status"), [(999, 413), (1_000, 201)])
def test_pieces_of_a_body_count_together(most: int, status: int) -> None:
    """A body that comes in many small pieces is refused as soon as all of them are too large, and nothing of it is stored."""
    body = json.dumps(SAID).encode().ljust(1_000)
    pieces = [body[start : start + 100] for start in range(0, 1_000, 100)]
    with serving(body_bytes=most) as api:
        start, *_ = asyncio.run(answered(api.app, pieces, ended=True))
        assert status == start["status"]
        assert (200 if status == 201 else 404) == api.get(CHAT).status_code


def test_a_body_may_take_so_long() -> None:
    """One that does not go on is refused when its time is over, and nothing of it is stored."""
    with serving(body_s=0.05) as api:
        start, body = asyncio.run(answered(api.app, [b'{"mess'], ended=False))
        assert 408 == start["status"]
        assert (b"connection", b"close") in start["headers"]
        assert b"did not arrive within 0.05 seconds" in body["body"]
        problem(api.get(CHAT), 404)


def test_answers_are_kept_nowhere(api: TestClient) -> None:
    """No proxy and no browser keeps what was said, or takes it for something else than JSON."""
    headers = api.get("/v1/sessions").headers
    assert ("no-store", "nosniff") == (headers["cache-control"], headers["x-content-type-options"])


def test_the_page_stands_beside_the_resources(api: TestClient) -> None:
    """Its files need no token, and are never in the place of a resource."""
    assert {"text/html; charset=utf-8"} == {api.get(path).headers["content-type"] for path in ("/", "/sessions/chat/")}
    for path, status in (("/v1/nothing", 404), ("/v1/sessions/", 404), ("/none.js", 404), ("/sessions/a/b/", 404)):
        problem(api.get(path), status)
    problem(api.post("/"), 404)
    problem(api.put(CHAT), 405)
    value(api.get("/openapi.json"))
    problem(api.get("/", headers={"Host": "elsewhere.example"}), 421)
