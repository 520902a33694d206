"""An application of the HTTP API, and what asks it in the same process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response

import memci
from memci.archive.stores.contract import Store
from memci.archive.stores.url import open_store
from memci.http.app import make_app
from memci.http.guard import Rules
from memci.messages.tokens.counter import TokenCounter

CONFIG: dict[str, Any] = {"budget": {"window": 1_000, "reserve": 0}, "counter": "approximate", "durability": "flush"}
HOST = "http://127.0.0.1:8484"


def made(store: str | Store, rules: Rules, config: dict[str, Any], counter: TokenCounter | None = None) -> FastAPI:
    """Return the application on a store."""
    stored = open_store(store, config["durability"]) if isinstance(store, str) else store
    engine = memci.AsyncEngine(stored, config, counter=counter, on_conflict="retry")
    return make_app(engine, memci.Engine(stored, config, counter=counter, read_only=True), rules)


@contextmanager
def serving(
    store: str | Store = "memory:",
    config: dict[str, Any] | None = None,
    counter: TokenCounter | None = None,
    **rules: Any,  # noqa: ANN401 (those of Rules)
) -> Iterator[TestClient]:
    """Serve a store while the block runs; an error that no answer tells of is raised in the test."""
    app = made(store, Rules(**rules), config or CONFIG, counter)
    with TestClient(app, base_url=HOST) as client:
        yield client
        client.portal.call(app.state.engine.close)  # type: ignore[union-attr]  # it is there in the block


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def say(client: TestClient, session: str, *texts: str) -> None:
    """Append turns, each a question of the user's and an answer."""
    said = [each for text in texts for each in (user(text), assistant(f"About {text}: " + "it is so. " * 20))]
    answer = client.post(f"/v1/sessions/{session}/messages", json={"messages": said})
    assert 201 == answer.status_code, answer.text


def value(answer: Response, status: int = 200) -> Any:  # noqa: ANN401 (the JSON of an answer)
    """Return what was answered, as JSON."""
    assert status == answer.status_code, answer.text
    return answer.json()


def problem(answer: Response, status: int) -> dict[str, Any]:
    """Return the problem detail of a refusal; it has all that RFC 9457 asks for."""
    assert status == answer.status_code, answer.text
    assert "application/problem+json" == answer.headers["content-type"]
    told: dict[str, Any] = answer.json()
    assert status == told["status"]
    assert all(isinstance(told[name], str) and told[name] for name in ("type", "title", "detail"))
    return told
