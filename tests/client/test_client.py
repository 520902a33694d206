"""A client's session does over HTTP what the session of its name does, and raises what that raises."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from fastapi.testclient import TestClient

import memci
from memci.client import AsyncClient, AsyncRemoteSession, Client, RemoteSession
from memci.client.answer import Written
from memci.client.requests import ServerRequests, SessionRequests
from memci.engine.core.monitor import Fold, WindowMade
from memci.engine.reading.journal import SessionEvent
from memci.http.guard import Rules
from memci.http.problem import refused
from memci.http.tokens import Scope, Tokens, new_token
from tests.http.serving import CONFIG, HOST, assistant, serving, user
from tests.http.test_notices import running
from tests.http.test_problem import ERRORS

TEXTS = [f"part {number} of the boiler" for number in range(6)]
SAID = [each for text in TEXTS for each in (user(text), assistant(f"About {text}: " + "it is so. " * 20))]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Client, Path]]:
    """Yield a client, and where the sessions are that it asks for."""
    with serving(f"file:{tmp_path}") as api, Client(HOST, http=api) as client:
        yield client, tmp_path


def test_it_answers_what_the_session_returns(served: tuple[Client, Path]) -> None:
    """Values of the library come back as they are, and others have what theirs have."""
    client, path = served
    remote = client.session("chat")
    stored = remote.extend(SAID)
    made = remote.window(300)
    remote.checkpoint("here", variables={"step": 1})
    with memci.Engine(f"file:{path}", CONFIG) as engine, engine.session("chat") as session:
        window = session.render(made.seq)
        assert [(each.address, each.seq) for each in stored[:2]] == [("usr-1/1", 2), ("usr-1/2", 3)]
        assert (window.messages, window.tokens, window.zone, dict(window.breakdown)) == (
            made.messages,
            made.tokens,
            made.zone,
            made.breakdown,
        )
        assert made == attrs.evolve(remote.render(made.seq), budget=made.budget, zone=made.zone)
        assert session.status() == remote.status()
        assert session.transcript() == remote.transcript()
        assert session.pages() == [*remote.pages().pages]
        assert session.pages("archived") == [*remote.pages("archived").pages]
        assert session.page("usr-2").messages == remote.page(2).messages
        assert session.explain("usr-2") == remote.explain("usr-2")
        assert session.search("boiler", 3) == remote.search("boiler", 3)
        assert session.checkpoints() == remote.checkpoints()
        assert list(session.events()) == remote.events(limit=1_000)
        assert session.verify() == remote.verify()
        assert session.stats() == remote.stats() == client.stats("chat")[0] == client.stats(["none", "chat"])[0]
        assert session.variants("usr-2/1") == remote.variants("usr-2/1")
        assert session.recap(since=5).text == remote.recap(since=5).text
        assert session.config.policy_mapping() == remote.config()
        assert session.toolbox.responses() == remote.tools("responses")
        assert engine.list_sessions() == [*client.list_sessions().sessions]
        assert engine.search("boiler") == client.search("boiler")


def test_it_changes_the_session(served: tuple[Client, Path]) -> None:
    """Each call does what its namesake does."""
    client, _ = served
    remote = client.session("chat")
    remote.extend(SAID)
    folded = remote.fold([1, "usr-2"])
    assert isinstance(folded, Fold)
    assert ("usr-1", "usr-2") == folded.pages == remote.undo_fold().pages
    remote.fold("all")
    assert TEXTS[0] == remote.recall(1).messages[0]["content"]
    remote.fade("usr-1")
    assert 0 == remote.status().breakdown["recalled"]
    for action, holds in ((remote.pin, "pinned"), (remote.keep, "kept")):
        action("usr-3")
        assert getattr(remote.page("usr-3").facts, holds)
    for action, holds in ((remote.unpin, "pinned"), (remote.unkeep, "kept")):
        action("usr-3")
        assert not getattr(remote.page("usr-3").facts, holds)
    remote.evict(2)
    assert "evicted" == remote.page(2).facts.state
    remote.restore(2)
    assert "archived" == remote.page(2).facts.state
    assert "usr-2" == remote.erase("usr-2", forks=True)[0].page
    assert {"title": "Boilers"} == remote.describe(title="Boilers", owner=None).metadata
    assert {} == remote.describe(title=None).metadata
    assert remote.set_auto(enabled=True, zone="red") == remote.auto()
    compacted = remote.compact("heavy")
    assert compacted.checkpoint in remote.checkpoints()
    assert remote.restore_checkpoint(compacted.checkpoint.id).seq > compacted.checkpoint.seq
    assert 0 == client.create("next", config={"budget": {"window": 8_000}}).turn
    note = remote.handoff("next", 0.4, ["last"], key="h")
    assert note == remote.handoff("next", 0.4, ["last"], key="h")
    assert "chat" in str(client.session("next").page(note.index).messages)
    assert "chat" == client.delete("chat").session
    assert ["next"] == [each.id for each in client.list_sessions().sessions]


def test_it_keeps_the_session_as_a_host_does(served: tuple[Client, Path]) -> None:
    """The system part, lists of a host, usage, slots, marks, variants, tools, settings, forks."""
    client, _ = served
    remote = client.session("chat")
    assert ["usr-1/1", "usr-1/2"] == [each.address for each in remote.sync(SAID[:2]).appended]
    remote.set_system([{"role": "system", "content": "Be kind."}])
    assert "Be kind." == remote.window().messages[0]["content"]
    assert remote.report_usage({"prompt_tokens": remote.window().tokens, "prompt_tokens_details": {"cached_tokens": 9}}).accepted
    assert 9 == remote.stats().cached_tokens
    assert {"goal": "dry"} == remote.set_slots({"goal": "dry", "none": None}) == remote.slots()
    assert {"at": "10"} == remote.set_slots({"goal": None, "at": "10"}) == remote.slots()
    remote.annotate("usr-1/2", {"rating": 5})
    remote.bookmark("usr-1/1", "here")
    assert ("here", {"rating": 5}) == (remote.bookmarks()[0].label, remote.transcript(1)[0].metadata)
    remote.rewind("usr-1/2")
    remote.extend([assistant("anew"), *SAID[2:6]])
    variant = remote.variants("usr-1/2")[0]
    assert "usr-1/2" == remote.choose(variant).address
    remote.extend(SAID[2:6])
    assert remote.close_topic("Parts").pages
    call = {"id": "c", "name": "read_page", "arguments": {"index": "usr-1"}}
    assert TEXTS[0] in remote.handle_tool_call(call)["content"]
    assert 5 == remote.configure(active={"max_pages": 5})["active"]["max_pages"]
    assert ("branch", 1) == (client.fork("chat", "branch").id, len(client.stats(["branch"])))


def test_it_has_the_rules_of_the_session(served: tuple[Client, Path]) -> None:
    """They are listed part by part, added and removed, and an address that no rule has is the session's own error."""
    client, path = served
    remote = client.session("chat")
    remote.extend([user("Call me Dr. Weber."), assistant("Gladly."), user("Call me Anna.")])
    added = remote.add_rule("Quote prices with VAT.", key="rule")
    assert added == remote.add_rule("Quote prices with VAT.", key="rule")
    listed = remote.rules()
    assert (added, 3) == (listed.rules[-1], listed.total)
    with memci.Engine(f"file:{path}", CONFIG) as engine, engine.session("chat") as session:
        assert session.rules() == [*listed.rules]
        assert session.explain("usr-1") == remote.explain("usr-1")
    assert listed.rules[1:2] == remote.rules(start=1, limit=1).rules
    remote.remove_rule("usr-2/1")
    remote.remove_rule(added.address)
    assert ["Call me Dr. Weber."] == [rule.text for rule in remote.rules().rules]
    with pytest.raises(memci.ArgumentError, match="usr-1/1"):
        remote.remove_rule("usr-9/1#2")


def test_a_message_may_be_what_an_sdk_gives(served: tuple[Client, Path]) -> None:
    """An object that tells of itself as JSON is a message; times may be datetimes; what JSON can hold comes back."""

    class Reply:
        def model_dump(self, **_: object) -> dict[str, Any]:
            return assistant("half a pair: \ud83d") | {"number": 2**70}

    remote = served[0].session("chat")
    remote.append(user("hello"), at=datetime(2026, 5, 8, tzinfo=UTC), key="k")
    first = remote.append(Reply(), key="r")
    assert first == remote.append(Reply(), key="r")
    assert ["2026-05-08T00:00:00+00:00"] == [said.at for said in remote.transcript()][1:]
    assert Reply().model_dump() == remote.transcript(1)[0].message


@pytest.mark.parametrize("session_id", ["a/b", "..", ".", "what? 100%#", "räuber+1"])
def test_any_id_is_a_session(served: tuple[Client, Path], session_id: str) -> None:
    """What has a meaning in URLs has none in an id."""
    client, _ = served
    client.session(session_id).append(user("hello"))
    assert session_id == client.session(session_id).overview().id == client.list_sessions().sessions[0].id


@pytest.mark.parametrize(("error", "status", "members"), ERRORS, ids=lambda given: type(given).__name__)
def test_it_raises_what_the_server_tells_of(error: memci.MemciError, status: int, members: dict[str, Any]) -> None:
    """An error comes out as it went in: its class, its data, and its words where these may be told."""
    answer = refused(error)
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=bytes(answer.body)))
    with httpx2.Client(transport=transport) as http, pytest.raises(type(error)) as raised:
        Client(HOST, http=http).session("chat").status()
    assert type(error) is type(raised.value)
    told = {name: dict(value) if name == "breakdown" else value for name, value in vars(raised.value).items()}
    assert {**members, **({"failed": told["failed"]} if "failed" in members else {})}.items() <= told.items()
    if status < 500 or status == 507:
        assert str(error) == str(raised.value)


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (502, b"<html>bad gateway</html>", memci.UnavailableError),
        (504, b"", memci.UnavailableError),
        (429, b'{"detail": "slowly"}', memci.UnavailableError),
        (401, b"no", memci.PermissionDeniedError),
        (404, b"[]", memci.MemciError),
        (200, b"<html>hello</html>", memci.MemciError),
        (307, b"", memci.MemciError),
        (418, b'{"type": "urn:memci:copyreg"}', memci.MemciError),
        (418, b'{"type": "urn:memci:PicklableError", "detail": "x"}', memci.MemciError),
    ],
)
def test_other_answers_are_errors_too(status: int, content: bytes, kind: type[memci.MemciError]) -> None:
    """What a proxy answers in the server's place is an error of memci that fits."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=content))
    with httpx2.Client(transport=transport) as http, pytest.raises(memci.MemciError) as raised:
        Client(HOST, http=http).session("chat").status()
    assert kind is type(raised.value)


def test_no_answer_is_an_error() -> None:
    """Where nothing listens, the store is not available."""
    with Client("http://127.0.0.1:9") as client, pytest.raises(memci.UnavailableError, match="did not answer"):
        client.session("chat").status()


def test_errors_of_a_session_come_through(served: tuple[Client, Path]) -> None:
    """A key that was used, a window that cannot fit, a page and a session that are not there."""
    client, _ = served
    remote = client.session("chat")
    with pytest.raises(memci.InvalidIdError):
        remote.status()
    remote.append(user("once"), key="k")
    with pytest.raises(memci.ConflictError) as conflict:
        remote.append(user("twice"), key="k")
    assert conflict.value.head >= conflict.value.expected
    with pytest.raises(memci.BudgetError) as budget:
        remote.window(2)
    assert budget.value.tokens == sum(budget.value.breakdown.values())
    with pytest.raises(memci.PageNotFoundError):
        remote.page(9)
    with pytest.raises(memci.InvalidMessageError):
        remote.append({"role": "user", "content": float("nan")})
    with pytest.raises(memci.ArgumentError) as argument:
        client.list_sessions(limit=0)
    assert "query.limit" == argument.value.argument


def test_a_token_is_sent(tmp_path: Path) -> None:
    """It lets in, as far as its scope goes; and no error or repr shows it."""
    path = tmp_path / "tokens.yaml"
    token = new_token(path, "support", Scope.WRITE)
    with serving(tokens=Tokens(path)) as api:
        with pytest.raises(memci.PermissionDeniedError):
            Client(HOST, http=api).list_sessions()
        client = Client(HOST, token=token, http=api)
        client.session("chat").append(user("hello"))
        with pytest.raises(memci.PermissionDeniedError, match="admin is needed"):
            client.delete("chat")
    assert token not in repr(vars(client))


def test_the_twins_have_the_same_names() -> None:
    """What can be asked can be asked of each class, by the same arguments and with the same words of help."""
    for requests, classes in ((SessionRequests, (RemoteSession, AsyncRemoteSession)), (ServerRequests, (Client, AsyncClient))):
        asked = {name: each for name, each in vars(requests).items() if callable(each) and not name.startswith("_")}
        assert asked
        for kind in classes:
            for name, method in asked.items():
                if name != "notices":
                    assert inspect.signature(method) == inspect.signature(getattr(kind, name))
                    assert method.__doc__ == getattr(kind, name).__doc__
                assert hasattr(kind, name)


def test_the_awaited_one_does_the_same(served: tuple[Client, Path], api_of: Callable[[Client], TestClient]) -> None:
    """An event loop goes on while it waits."""
    transport = httpx2.ASGITransport(app=api_of(served[0]).app)

    async def ask() -> list[str]:
        async with httpx2.AsyncClient(transport=transport) as http, AsyncClient(HOST, http=http) as client:
            remote = client.session("chat")
            await asyncio.gather(*(remote.append(user(text), key=text) for text in TEXTS))
            with pytest.raises(memci.PageNotFoundError):
                await remote.page(9)
            assert "chat" == remote.id
            return [said.text for said in await remote.transcript()]

    assert sorted(TEXTS) == sorted(asyncio.run(ask()))


@pytest.fixture
def api_of() -> Callable[[Client], TestClient]:
    return lambda client: client._http


@pytest.mark.server
def test_notices_come_as_they_are() -> None:
    """Both clients hear what happens as the library's notices, and errors as errors."""

    async def listen(url: str) -> object:
        async with AsyncClient(url) as client:
            with pytest.raises(memci.InvalidIdError):
                await anext(client.session("none").notices())
            heard = client.session("chat").notices()
            first = asyncio.ensure_future(anext(heard))
            while not first.done():
                await client.session("chat").window()
            await heard.aclose()
            return first.result()

    with running(Rules()) as (url, _), Client(url) as client:
        remote = client.session("chat")
        remote.extend(SAID)
        with pytest.raises(memci.InvalidIdError):
            next(client.session("none").notices())
        assert isinstance(asyncio.run(listen(url)), memci.ZoneChange | WindowMade)
        assert isinstance(remote.events(limit=1)[0], SessionEvent)


def test_notices_of_newer_servers_are_left_out() -> None:
    """A notice of a kind that this version does not know is none, and those around it come as they are."""
    data = 'data: {"session": "chat", "tenant": "t", "seq": %d}\n\n'
    told = "".join(f"event: {name}\n" + data % seq for seq, name in enumerate(("Written", "Unheard", "Written"), start=1))
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, text=told))
    with httpx2.Client(transport=transport) as http:
        heard = [*Client(HOST, http=http).session("chat").notices()]
    assert [Written(session="chat", tenant="t", seq=seq) for seq in (1, 3)] == heard


def test_importing_it_loads_no_library() -> None:
    """What sends and what reads answers is loaded when the first client is made."""
    code = "import memci.client, sys; print({'httpx2', 'cattrs', 'asyncio', 'ssl'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 (fixed words)
    assert "set()" == done.stdout.strip()
