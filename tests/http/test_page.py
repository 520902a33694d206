"""What docs/http.md says is what the API does."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memci.http.guard import Rules
from memci.http.tokens import Scope, Tokens, new_token
from tests.http.serving import assistant, problem, serving, user, value
from tests.http.test_notices import running
from tests.test_readme import code_lines, text

PAGE = "docs/http.md"


def rows() -> Iterator[tuple[str, str, Scope]]:
    """Yield method, path and scope of each resource that the page names."""
    for method, path, scope in re.findall(r"^\| `([A-Z]+) (\S+)` \| .+ \| (read|write|admin) \|$", text(PAGE), re.MULTILINE):
        yield method, path.replace("…", "/v1/sessions/{session_id}"), Scope(scope)


def test_the_page_names_every_resource() -> None:
    """Each operation of the description has its row, and no other."""
    with serving() as api:
        paths = value(api.get("/openapi.json"))["paths"]
    described = {(method.upper(), path) for path, operations in paths.items() for method in operations}
    assert described == {(method, path) for method, path, _ in rows()}


def test_each_resource_needs_the_scope_that_the_page_says(tmp_path: Path) -> None:
    """Less is refused for the scope alone; with that scope it is not."""
    path = tmp_path / "tokens.yaml"
    tokens = {scope: {"Authorization": f"Bearer {new_token(path, 't', scope)}"} for scope in Scope}
    refused, allowed = list[tuple[str, str]](), list[tuple[str, str]]()
    with serving(tokens=Tokens(path)) as api:
        body = {"messages": [user("one"), assistant("two")]}
        for method, resource, needed in rows():
            if resource.endswith("/notices"):  # it does not end
                continue
            value(api.post("/v1/sessions/chat/messages", json=body, headers=tokens[Scope.ADMIN]), 201)
            asked = resource.format(session_id="chat", index="usr-1", checkpoint_id="cp-1", action="keep", view="tree")
            for scope in Scope:
                status = api.request(method, asked, headers=tokens[scope]).status_code
                (allowed if status != 403 else refused).append((method, resource))
                assert (status == 403) == (not scope.allows(needed)), (method, resource, scope, status)
    assert refused
    assert allowed


def test_the_samples_are_what_is_answered() -> None:
    """An append, a window and a refusal are as the page shows them."""
    lines = code_lines(text(PAGE), "console")
    shown = [line for line in lines if line.startswith(("[{", '{"messages'))]
    body = {"messages": [user("Where is my order?")]}
    with serving(config={"durability": "flush"}) as api:
        append = api.post("/v1/sessions/support-42/messages", json=body, headers={"Idempotency-Key": "7c1e"})
        window = api.post("/v1/sessions/support-42/window")
        refused = problem(api.post("/v1/sessions/support-42/window", json={"budget": 5}), 422)
    assert append.text == shown[0]
    assert json.loads("\n".join(code_lines(text(PAGE), "json"))) == refused
    assert window.text.startswith(shown[1].partition("…")[0])


@pytest.mark.server
def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """What the page shows of the client is a program, which a server answers."""
    program = "\n".join(code_lines(text(PAGE), "python"))
    with running(Rules()) as (url, _):
        known: dict[str, Any] = {}
        exec(compile(program.replace("http://127.0.0.1:8484", url), PAGE, "exec"), known)  # noqa: S102 (a page of ours)
        assert f"{known['window'].tokens} of 1000 tokens; usr-1/1\n" == capsys.readouterr().out
