"""The chat service, as it is deployed: two workers of uvicorn, one SQLite store, and a model that speaks OpenAI's API."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from fastapi.testclient import TestClient
from starlette.requests import ClientDisconnect

import memci
from tests.archive.stores.sql.postgres_server import running_server
from tests.chat.model_server import problems

pytestmark = pytest.mark.server

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SECONDS = 60.0  # until which anything has happened, on a machine under load
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

Value = dict[str, Any]
Event = tuple[str, Any]


def until(happened: Callable[[], Any]) -> Any:  # noqa: ANN401 (whatever it is)
    """Ask again and again, until the answer is true."""
    end, pause = time.monotonic() + SECONDS, threading.Event()
    while not (answer := happened()):
        assert time.monotonic() < end
        pause.wait(0.02)
    return answer


class Model:
    """An endpoint that streams; what the user says tells it how.

    Attributes:
        requests: Messages of good requests, in order.
        refused: What was wrong with others.
        released: Held answers go on once it is set.
    """

    def __init__(self) -> None:
        self.requests: list[list[Value]] = []
        self.refused: list[str] = []
        self.released = threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                with suppress(OSError):  # whoever asked has gone
                    model.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the overridden method)
                """Stay silent."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        request = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        if wrong := list(problems(request)):
            self.refused += wrong
        self.requests.append(request["messages"])
        last = request["messages"][-1]
        if said(last).startswith("fail") and self.asked(said(last)) == 1:
            handler.send_error(400)
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for delta in self.deltas(last):
            choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
            self.send(handler, json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [choice]}))
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        self.send(handler, json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": usage}))
        self.send(handler, "[DONE]")

    def send(self, handler: BaseHTTPRequestHandler, event: str) -> None:
        handler.wfile.write(f"data: {event}\n\n".encode())

    def deltas(self, last: Value) -> Iterator[Value]:
        yield {"role": "assistant", "content": ""}
        text = said(last)
        if last["role"] == "tool":
            yield {"content": "It was found."}
        elif text.startswith("find"):
            for index, name, arguments in ((0, "search_pages", {"query": text}), (1, "list_pages", {})):
                function = {"name": name, "arguments": json.dumps(arguments)}
                yield {"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]}
        else:
            yield {"content": f"Answer {self.asked(text)} "}
            if text.startswith("hold"):
                assert self.released.wait(SECONDS)
            if text == "break off" and self.asked(text) == 1:
                return
            yield {"content": f"to {text}"}
        yield {}

    def asked(self, text: str) -> int:
        """Return how often it was asked to answer a text."""
        return sum(said(messages[-1]) == text for messages in self.requests)

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def said(message: Value) -> str:
    content = message["content"]
    return content if isinstance(content, str) else " ".join(part["text"] for part in content if part["type"] == "text")


class Chat:
    """A conversation with the service, over connections of its own."""

    def __init__(self, url: str) -> None:
        self.id = str(uuid4())
        self.url = f"{url}/chats/{self.id}"

    @contextmanager
    def asking(self, path: str, key: str = "", body: Value | None = None) -> Iterator[tuple[int, Iterator[Event]]]:
        """Send a request, and give its status and the events as they come; who leaves the block leaves the service."""
        headers = {"Idempotency-Key": key} if key else {}
        with httpx2.stream("POST", f"{self.url}/{path}", headers=headers, json=body, timeout=SECONDS) as response:
            yield response.status_code, events(response.iter_lines())

    def post(self, path: str, key: str = "", body: Value | None = None) -> tuple[int, list[Event]]:
        with self.asking(path, key, body) as (status, told):
            return status, list(told)

    def say(self, text: str, key: str, **more: str) -> list[Event]:
        """Say something until it is answered, and return what was told."""
        status, told = self.post("messages", key, {"text": text, **more})
        assert 200 == status
        return told

    def get(self, path: str, **query: str | int) -> list[Value]:
        response = httpx2.get(f"{self.url}/{path}", params=query, timeout=SECONDS)
        assert 200 == response.status_code
        value: list[Value] = response.json()
        return value

    def texts(self) -> list[str]:
        """Return what was said, oldest first."""
        return [message["text"] for message in reversed(self.get("messages", limit=500))]


def events(lines: Iterator[str]) -> Iterator[Event]:
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def text_of(told: list[Event]) -> str:
    """Return the text of an answer that came to its end."""
    assert "done" == told[-1][0]
    return "".join(piece for kind, piece in told if kind == "text")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


@contextmanager
def serving(store: str, model: Model, log: Path) -> Iterator[str]:
    """Run two workers, and give their URL."""
    environment = {"MEMCI_STORE": store, "OPENAI_BASE_URL": f"http://127.0.0.1:{model.http.server_port}/v1", "NO_PROXY": "*"}
    command = ["uvicorn", "--app-dir", str(EXAMPLES), "--workers", "2", "--port", "0", "chat_service:app"]
    with log.open("w") as out:
        service = subprocess.Popen(  # noqa: S603 (our own words)
            [sys.executable, "-m", *command], env={**os.environ, **environment}, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        until(lambda: service.poll() is not None or log.read_text().count("startup complete") == 2)
        found = re.search(r"http://127\.0\.0\.1:[0-9]+", log.read_text())
        assert found, log.read_text()
        yield found[0]
    finally:
        model.released.set()
        service.terminate()
        service.wait(SECONDS)
    told = log.read_text()
    assert "Traceback" not in told, told
    assert 2 == told.count("shutdown complete")


@pytest.fixture(scope="module")
def url(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("service")
    with serving(f"sqlite:///{folder / 'chats.db'}", model, folder / "log") as url:
        yield url


@pytest.fixture
def chat(url: str, model: Model) -> Iterator[Chat]:
    model.released.clear()
    yield Chat(url)
    assert [] == model.refused


@pytest.mark.slow
def test_an_answer_is_streamed_and_asked_for_once(chat: Chat, model: Model) -> None:
    """The first words come while the model is at the next ones, and a request that is sent again hears the same."""
    with chat.asking("messages", "1", {"text": "hold the line"}) as (status, told):
        assert (200, ("text", "Answer 1 ")) == (status, next(told))
        model.released.set()
        assert [("text", "to hold the line"), "done"] == [event if event[0] == "text" else event[0] for event in told]
    assert ["Answer 1 to hold the line"] * 2 == [text_of(chat.say("hold the line", "1")) for _ in range(2)]
    assert ["hold the line", "Answer 1 to hold the line"] == chat.texts()
    assert 1 == model.asked("hold the line")


def test_a_key_is_for_one_question(chat: Chat) -> None:
    """A key that another question had is refused, and so is a question without one."""
    chat.say("one", "1")
    assert 409 == chat.post("messages", "1", {"text": "two"})[0]
    assert 422 == chat.post("messages", "", {"text": "two"})[0]
    assert ["one", "Answer 1 to one"] == chat.texts()


def test_a_double_click_is_refused(chat: Chat, model: Model) -> None:
    """While a question is answered, neither the same one nor another one is taken; whoever heard the end may go on at once."""
    with chat.asking("messages", "1", {"text": "hold twice"}) as (_, told):
        next(told)
        clicks = [("1", "hold twice"), ("2", "another")] * 4
        assert [409] * 8 == [chat.post("messages", key, {"text": text})[0] for key, text in clicks]
        assert ["hold twice"] == chat.texts()
        model.released.set()
        list(told)
    assert "Answer 1 to another" == text_of(chat.say("another", "2"))
    assert ["hold twice", "Answer 1 to hold twice", "another", "Answer 1 to another"] == chat.texts()


def test_a_client_that_leaves_loses_nothing(chat: Chat, model: Model) -> None:
    """What came until a client left is there, told to be interrupted; the same request asks again, and leaves one answer."""
    with chat.asking("messages", "1", {"text": "hold and leave"}) as (_, told):
        next(told)
    left = until(lambda: [each for each in chat.get("messages") if "interrupted" in each["metadata"]])
    assert ["Answer 1 "] == [message["text"] for message in left]
    model.released.set()
    status, again = until(lambda: (asked := chat.post("messages", "1", {"text": "hold and leave"}))[0] == 200 and asked)
    assert (200, "Answer 2 to hold and leave") == (status, text_of(again))
    assert ["hold and leave", "Answer 2 to hold and leave"] == chat.texts()
    assert [False, True] == [variant["current"] for variant in chat.get("variants", address="usr-1/2")]


def test_what_a_client_left_stays_when_it_asks_on(chat: Chat, model: Model) -> None:
    """Where the next question comes after an answer that broke off, both stay, and the first request hears what there is."""
    with chat.asking("messages", "1", {"text": "hold and go on"}) as (_, told):
        next(told)
    until(lambda: [each for each in chat.get("messages") if "interrupted" in each["metadata"]])
    until(lambda: chat.post("messages", "2", {"text": "next"})[0] == 200)
    assert "Answer 1 " == text_of(chat.say("hold and go on", "1"))
    assert ["hold and go on", "Answer 1 ", "next", "Answer 1 to next"] == chat.texts()
    assert 1 == model.asked("hold and go on")


def test_an_answer_is_generated_anew(chat: Chat, model: Model) -> None:
    """Another answer takes the place of the first one, once however often it is asked for; both are variants to choose from."""
    chat.say("a name?", "1")
    first = chat.get("messages", limit=1)[0]
    anew = [chat.post(f"regenerate/{first['seq']}") for _ in range(2)]
    assert [(200, "Answer 2 to a name?")] * 2 == [(status, text_of(told)) for status, told in anew]
    assert ["a name?", "Answer 2 to a name?"] == chat.texts()
    assert "Answer 2 to a name?" == text_of(chat.say("a name?", "1"))
    variants = chat.get("variants", address=first["address"])
    assert ["Answer 1 to a name?", "Answer 2 to a name?"] == [variant["message"]["content"] for variant in variants]
    chosen = httpx2.post(f"{chat.url}/variants/{first['seq']}", timeout=SECONDS)
    assert (200, first["address"]) == (chosen.status_code, chosen.json())
    assert ["a name?", "Answer 1 to a name?"] == chat.texts()
    assert "Answer 1 to a name?" == text_of(chat.say("a name?", "1"))
    assert 2 == model.asked("a name?")


def test_what_is_no_answer_is_not_generated_anew(service: ModuleType) -> None:
    """A question, what is not there, an answer to an earlier question and anything in an empty chat are refused with a reason."""
    with TestClient(service.app) as client:
        assert 404 == client.post("/chats/1/regenerate/1").status_code
        for key in ("1", "2"):
            client.post("/chats/1/messages", headers={"Idempotency-Key": key}, json={"text": "Hello."})
        newest, question, earlier, *_ = [said["seq"] for said in client.get("/chats/1/messages").json()]
        for seq in (question, earlier, 999, 0, -1):
            refused = client.post(f"/chats/1/regenerate/{seq}")
            assert 404 == refused.status_code
            assert f"{seq} is no answer to what was said last: give the seq of one" == refused.json()["detail"]
        assert newest == client.get("/chats/1/messages").json()[0]["seq"]
        assert 200 == client.post(f"/chats/1/regenerate/{newest}").status_code


def test_an_id_may_hold_slashes(service: ModuleType) -> None:
    """Each resource of a chat is found, whether a client encodes the slash or not."""
    with TestClient(service.app) as client:
        told = client.post("/chats/a/messages/messages", headers={"Idempotency-Key": "1"}, json={"text": "Hello."})
        assert "I have read 2 messages." == text_of(list(events(iter(told.text.splitlines()))))
        answer = client.get("/chats/a%2Fmessages/messages").json()[0]
        assert 1 == len(client.get("/chats/a/messages/variants", params={"address": answer["address"]}).json())
        assert 200 == client.post(f"/chats/a/messages/regenerate/{answer['seq']}").status_code
        assert answer["address"] == client.post(f"/chats/a/messages/variants/{answer['seq']}").json()


def test_whoever_is_too_early_hears_when_to_come_again(service: ModuleType) -> None:
    """A chat that is busy, as after its worker was killed, says so with Retry-After; that a key was used before does not pass."""

    async def ask(text: str) -> httpx2.Response:
        async with client.app_state["engine"].session("1") as session, session.lease(wait_s=0):
            return await to_thread(client.post, "/chats/1/messages", headers={"Idempotency-Key": "1"}, json={"text": text})

    with TestClient(service.app) as client:
        assert client.portal is not None
        busy = client.portal.call(ask, "Hello.")
        assert (409, "1") == (busy.status_code, busy.headers["Retry-After"])
        assert "another request has a lease on it" in busy.json()["detail"]
        said = [client.post("/chats/1/messages", headers={"Idempotency-Key": "1"}, json={"text": text}) for text in "ab"]
        assert [(200, None), (409, None)] == [(each.status_code, each.headers.get("Retry-After")) for each in said]


def test_a_picture_goes_to_the_model_and_into_the_transcript(chat: Chat, model: Model) -> None:
    """A data URL stands in the question that the model reads, and in the transcript; what is no picture is refused."""
    assert "Answer 1 to look here" == text_of(chat.say("look here", "1", image=PICTURE))
    parts = [{"type": "text", "text": "look here"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
    assert parts == chat.get("messages")[1]["message"]["content"]
    assert parts == model.requests[-1][-1]["content"]
    assert 422 == chat.post("messages", "2", {"text": "look", "image": "https://example.org/a.png"})[0]


def test_tools_are_carried_out_once(chat: Chat, model: Model) -> None:
    """The model's calls get their results before it is asked again; a request that is sent again hears it and repeats nothing."""
    told = chat.say("find the invoice", "1")
    assert (["tool", "tool", "text", "done"], "It was found.") == ([kind for kind, _ in told], text_of(told))
    assert ["search_pages", "list_pages"] == [call["name"] for kind, call in told if kind == "tool"]
    roles = ["assistant", "tool", "tool", "assistant", "user"]
    newest = chat.get("messages")
    assert roles == [message["role"] for message in newest]
    assert "It was found." == text_of(chat.post(f"regenerate/{newest[0]['seq']}")[1])
    assert roles == [message["role"] for message in chat.get("messages")]
    chat.say("find another", "2")  # pages are other ones than before
    asked = len(model.requests)
    assert told[:-1] == chat.say("find the invoice", "1")[:-1]
    assert roles * 2 == [message["role"] for message in chat.get("messages")]
    assert asked == len(model.requests)


def test_a_model_that_fails_is_asked_again(chat: Chat) -> None:
    """Where the model gives no answer the client is told, and the same request has it answered."""
    assert ["error"] == [kind for kind, _ in chat.say("fail at first", "1")]
    assert ["fail at first"] == chat.texts()
    assert "Answer 2 to fail at first" == text_of(chat.say("fail at first", "1"))
    assert ["fail at first", "Answer 2 to fail at first"] == chat.texts()


def test_a_model_that_breaks_off_is_asked_again(chat: Chat) -> None:
    """Where the model does not end its answer the client is told, what came is there, and the same request asks anew."""
    assert ["text", "error"] == [kind for kind, _ in chat.say("break off", "1")]
    assert ["break off", "Answer 1 "] == chat.texts()
    assert "Answer 2 to break off" == text_of(chat.say("break off", "1"))
    assert ["break off", "Answer 2 to break off"] == chat.texts()


def test_nobody_answers_in_the_middle_of_a_chat(chat: Chat) -> None:
    """A question whose answer failed, and after which others came, is not answered any more."""
    assert ["error"] == [kind for kind, _ in chat.say("fail and go on", "1")]
    chat.say("and on", "2")
    assert ["done"] == [kind for kind, _ in chat.say("fail and go on", "1")]
    assert ["fail and go on", "and on", "Answer 1 to and on"] == chat.texts()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_workers_serve_one_chat(kind: str, model: Model, tmp_path: Path) -> None:
    """Both workers answer, several clients and double clicks at once; each question is there once, and its answer after it."""
    with ExitStack() as opened:
        server = opened.enter_context(running_server()) if kind == "postgres" else None
        store = f"sqlite:///{tmp_path / 'chats.db'}" if server is None else server.new_url()
        chat = Chat(opened.enter_context(serving(store, model, tmp_path / "log")))
        texts = talk(chat, kind)
        pages = [chat.get("messages", limit=5)]
        while len(pages[-1]) == 5:
            pages.append(chat.get("messages", limit=5, before=pages[-1][-1]["address"]))
        assert texts[::-1] == [message["text"] for page in pages for message in page]
        with memci.Engine(store) as engine, engine.session(chat.id) as session:
            assert session.verify().ok
            assert texts == [message["content"] for message in session.messages() if message["role"] != "system"]
    assert [] == model.refused


def talk(chat: Chat, about: str) -> list[str]:
    """Let many talk at once, all with double clicks, until both workers have answered; return what was said."""
    workers: set[str] = set()

    def ask(text: str) -> str:
        _, told = until(lambda: (asked := chat.post("messages", text, {"text": text}))[0] == 200 and asked)
        workers.add(told[-1][1]["worker"])
        return text_of(told)

    texts: list[str] = []
    with ThreadPoolExecutor(6) as clients:
        while len(workers) < 2 or len(texts) < 12:
            several = [f"{about} {number}" for number in range(len(texts), len(texts) + 6)]
            clicked = [text for text in several for _ in range(2)]
            assert [f"Answer 1 to {text}" for text in clicked] == list(clients.map(ask, clicked))
            texts += several
    said = chat.texts()
    assert sorted(texts) == sorted(said[::2])
    assert [f"Answer 1 to {text}" for text in said[::2]] == said[1::2]
    return said


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the service in this process, without an endpoint."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("MEMCI_STORE", f"sqlite:///{tmp_path / 'chats.db'}")
    spec = importlib.util.spec_from_file_location("chat_service", EXAMPLES / "chat_service.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_runs_without_a_model(service: ModuleType) -> None:
    """Without an endpoint a stand-in answers."""
    with TestClient(service.app) as client:
        told = client.post("/chats/1/messages", headers={"Idempotency-Key": "1"}, json={"text": "Hello."})
        assert "I have read 2 messages." == text_of(list(events(iter(told.text.splitlines()))))


def call(service: ModuleType, client: TestClient, send: Callable[[Value], Awaitable[None]]) -> None:
    """Say something as a server of ASGI does, which hands each part of the answer to *send*."""

    async def receive() -> Value:
        return {"type": "http.request", "body": b'{"text": "Hello."}'}

    headers = [(b"idempotency-key", b"1"), (b"content-type", b"application/json")]
    scope: Value = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "state": client.app_state}
    scope |= {"method": "POST", "path": "/chats/1/messages", "query_string": b"", "headers": headers}
    assert client.portal is not None
    client.portal.call(service.app, scope, receive, send)


def test_a_chat_is_free_once_the_end_is_told(service: ModuleType) -> None:
    """Whoever hears that an answer is done may ask on before the connection has ended."""
    free: list[int] = []

    async def send(message: Value) -> None:
        if b"event: done" in message.get("body", b""):
            async with client.app_state["engine"].session("1") as session, session.lease(wait_s=0):
                free.append(await session.turn)

    with TestClient(service.app) as client:
        call(service, client, send)
    assert [1] == free


def test_what_came_is_kept_whatever_the_server_does(service: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server tells by an error of ``send`` that the client left, what came is there, and the chat is free."""

    async def model(*_: object) -> AsyncIterator[Value]:
        for word in ("Came, ", "sent, ", "never sent"):
            yield {"choices": [{"delta": {"content": word}, "finish_reason": "stop" if word == "never sent" else None}]}

    async def send(message: Value) -> None:
        if b"sent" in message.get("body", b""):
            raise OSError

    monkeypatch.setattr(service, "model", model)
    with TestClient(service.app) as client:
        with pytest.raises(ClientDisconnect):
            call(service, client, send)
        newest = client.get("/chats/1/messages").json()[0]
        assert ("Came, sent, ", {"interrupted": True}) == (newest["text"], newest["metadata"])
        told = client.post("/chats/1/messages", headers={"Idempotency-Key": "1"}, json={"text": "Hello."})
        assert "Came, sent, never sent" == text_of(list(events(iter(told.text.splitlines()))))
