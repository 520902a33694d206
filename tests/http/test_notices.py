"""Notices over HTTP: what happens in a session reaches those who listen to it, as it happens."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

import memci
from memci.archive.stores.names import SessionKey
from memci.client.answer import Written
from memci.engine.core.monitor import Appended
from memci.errors import UnavailableError
from memci.http.guard import Rules
from memci.http.notices import Notices
from memci.http.tokens import Scope, Tokens, new_token
from tests.http.serving import CONFIG, assistant, made, user

SECONDS = 60.0


@contextmanager
def running(rules: Rules, store: str = "memory:", config: dict[str, Any] | None = None) -> Iterator[tuple[str, Any]]:
    """Serve a store on a port, in a thread, and yield where, and the application."""
    app = made(store, rules, config or CONFIG)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, ws="none", timeout_graceful_shutdown=1))
    sockets = [server.config.bind_socket()]
    thread = threading.Thread(target=server.run, args=[sockets])
    thread.start()
    while not server.started and thread.is_alive():  # the socket refuses until then
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}", app
    finally:
        app.state.notices.close()
        server.should_exit = True
        thread.join(SECONDS)
        asyncio.run(app.state.engine.close())


def heard(lines: Iterator[str], number: int) -> list[tuple[str, dict[str, Any]]]:
    """Return so many events of a stream: the name and the data of each."""
    found, name = list[tuple[str, dict[str, Any]]](), ""
    for line in lines:
        kind, _, rest = line.partition(": ")
        if kind == "event":
            name = rest
        elif kind == "data":
            found.append((name, json.loads(rest)))
            if len(found) == number:
                break
    return found


def post(url: str, path: str, body: object, **headers: str) -> None:
    assert httpx2.post(f"{url}/v1/sessions/{path}", json=body, headers=headers, timeout=SECONDS).is_success


@pytest.mark.server
def test_whoever_listens_hears_what_happens() -> None:
    """Messages, windows and folds of the session come in order, and those of other sessions do not."""
    with running(Rules()) as (url, _), httpx2.Client(timeout=SECONDS) as client:
        for session in ("chat", "other"):
            post(url, f"{session}/messages", {"messages": [user("one"), assistant("two")]})
        with client.stream("GET", f"{url}/v1/sessions/chat/notices") as answer:
            assert "text/event-stream; charset=utf-8" == answer.headers["content-type"]
            post(url, "other/messages", {"messages": [user("elsewhere")]})
            post(url, "chat/messages", {"messages": [user("three")]})
            post(url, "chat/window", {})
            post(url, "chat/fold", {"pages": "all"})
            appended, zone, window, fold = heard(answer.iter_lines(), 4)
    assert ("Appended", "chat", 1) == (appended[0], appended[1]["session"], appended[1]["messages"])
    assert ("ZoneChange", "green") == (zone[0], zone[1]["zone"])
    assert ("WindowMade", 1_000) == (window[0], window[1]["budget"])
    assert ("Fold", "command", ["usr-1"]) == (fold[0], fold[1]["reason"], fold[1]["pages"])


@pytest.mark.server
@pytest.mark.slow
def test_what_others_write_is_told(tmp_path: Path) -> None:
    """New events of another process, and those without a notice, come as the number of the last; a deletion is the end."""
    store = f"file:{tmp_path}/chats"
    with running(Rules(), store) as (url, _), httpx2.Client(timeout=SECONDS) as client, memci.Engine(store, CONFIG) as other:
        post(url, "chat/messages", {"messages": [user("one"), assistant("two")]})
        with client.stream("GET", f"{url}/v1/sessions/chat/notices") as answer:
            lines = answer.iter_lines()
            with other.session("chat") as session:
                seq = session.append(user("three")).node.seq
            ((name, told),) = heard(lines, 1)
            assert ("Written", "chat", seq) == (name, told["session"], told["seq"])
            post(url, "chat/annotate", {"address": "usr-1/1", "values": {"stars": 5}})
            ((name, told),) = heard(lines, 1)
            assert ("Written", seq + 1) == (name, told["seq"])
            other.delete("chat")
            assert [] == heard(lines, 1)


@pytest.mark.server
def test_nobody_hears_another_tenant(tmp_path: Path) -> None:
    """The session of the same id is another one; without a session there is nothing to hear."""
    path = tmp_path / "tokens.yaml"
    one, other = ({"Authorization": f"Bearer {new_token(path, tenant, Scope.WRITE)}"} for tenant in ("one", "other"))
    with running(Rules(tokens=Tokens(path))) as (url, _), httpx2.Client(timeout=SECONDS) as client:
        post(url, "chat/messages", {"messages": [user("one")]}, **one)
        assert 404 == client.get(f"{url}/v1/sessions/chat/notices", headers=other).status_code
        post(url, "chat/messages", {"messages": [user("first of the other")]}, **other)
        with client.stream("GET", f"{url}/v1/sessions/chat/notices", headers=other) as answer:
            post(url, "chat/messages", {"messages": [user("secret")]}, **one)
            post(url, "chat/messages", {"messages": [user("second of the other")]}, **other)
            ((_, notice),) = heard(answer.iter_lines(), 1)
    assert ("other", "chat") == (notice["tenant"], notice["session"])


@pytest.mark.server
def test_a_server_that_ends_lets_listeners_go() -> None:
    """The stream ends, and whoever listened is forgotten."""
    with running(Rules()) as (url, app), httpx2.Client(timeout=SECONDS) as client:
        post(url, "chat/messages", {"messages": [user("one")]})
        with client.stream("GET", f"{url}/v1/sessions/chat/notices") as answer:
            app.state.notices.close()
            assert [] == heard(answer.iter_lines(), 1)
        post(url, "chat/messages", {"messages": [user("two")]})
        assert {} == app.state.notices._listeners


def test_new_events_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often nothing new is found, or the store cannot be asked, what is new is told once, until the session is gone."""
    monkeypatch.setattr("memci.http.notices._LOOK_S", 0)
    found: Iterator[int | UnavailableError] = iter([3, 3, 4, 4, UnavailableError("not now"), 4, 6, 6])

    async def head() -> int:
        told = next(found, 0)
        if isinstance(told, UnavailableError):
            raise told
        return told

    async def listen() -> list[object]:
        with Notices().listening(SessionKey("t", "chat"), 3, head) as heard:
            return [notice async for notice in heard]

    assert [Written(session="chat", tenant="t", seq=seq) for seq in (4, 6)] == asyncio.run(listen())


def test_whoever_is_too_slow_is_sent_away() -> None:
    """What waits for one listener is bounded: after some notices comes the end."""

    async def listen() -> int:
        notices, key = Notices(), SessionKey("t", "chat")

        async def head() -> int:
            return 1

        with notices.listening(key, 1, head) as heard:
            for number in range(5_000):
                notices.hear(Appended(session="chat", tenant="t", messages=1, seq=number, seconds=0))
                await asyncio.sleep(0)  # as the engine's threads give the loop its turn
            return len([notice async for notice in heard])

    assert 1_000 == asyncio.run(listen())
