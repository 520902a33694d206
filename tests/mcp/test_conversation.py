"""A session that a server is not alone with."""

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from mcp import Client

import memci
from memci.archive.catalogue.page_facts import PageState
from memci.engine.settings.config import Budget
from memci.errors import UnavailableError
from memci.mcp.conversation import Conversation
from memci.mcp.server import make_server
from tests.cli.stored import CONFIG, chat, files_below, store_chat
from tests.mcp.serving import text_of

ANOTHER = {"role": "user", "content": "Anything else?"}


@pytest.fixture
def store(tmp_path: Path) -> str:
    """URL of a store with the session ``s`` of 20 turns, most of them archived."""
    return store_chat(tmp_path, "s", chat(20))


@pytest.fixture
def other(store: str) -> Iterator[memci.Session]:
    """The session as another writer has it open."""
    with memci.Engine(store, CONFIG) as engine, engine.session("s") as session:
        yield session


@pytest.fixture
def conversation(store: str, other: memci.Session) -> Iterator[Conversation]:
    found = Conversation(store, "default", "s", other.config)
    yield found
    found.close()


@pytest.mark.parametrize("times", [0, 1, 15])
def test_a_recall_is_tried_again(conversation: Conversation, other: memci.Session, times: int) -> None:
    """A recall comes after what somebody else wrote while it was being made."""

    def recall_late(session: memci.Session) -> str:
        for _ in range(times):
            other.append(ANOTHER)
        return session.recall("usr-3").index

    assert "usr-3" == conversation.ask(recall_late)
    other.refresh()
    assert PageState.ATTACHED is other.facts("usr-3").state
    assert other.verify().ok
    assert other.seq == conversation.ask(lambda session: session.seq)


def test_settings_of_others_stay_in_force(conversation: Conversation, store: str, other: memci.Session) -> None:
    """A recall is written under the settings in force, also where another process changed them after the server began."""
    conversation.answer("list_pages", {})
    changed = attrs.evolve(other.config, budget=Budget(window=900, reserve=0))
    with memci.Engine(store, changed) as engine, engine.session("s") as session:
        session.append(ANOTHER)
    conversation.answer("recall_page", {"index": "usr-3"})
    other.refresh()
    assert (900, PageState.ATTACHED) == (other.config.budget.window, other.facts("usr-3").state)


def test_a_deleted_session_is_not_made_again(conversation: Conversation, store: str, tmp_path: Path) -> None:
    """After the session was deleted every call says so, and leaves nothing behind."""
    conversation.answer("recall_page", {"index": "usr-3"})
    with memci.Engine(store) as engine:
        engine.delete("s")
    before = files_below(tmp_path)
    for _ in range(2):
        text, failed = conversation.answer("recall_page", {"index": "usr-4"})
        assert (True, {"kind", "message"}) == (failed, set(json.loads(text)["error"]))
    with pytest.raises(UnavailableError):
        conversation.ask(lambda session: session.contents.render())
    assert before == files_below(tmp_path)


class _Busy(Conversation):
    """Its tools answer only once they are let go, and tell that they were called."""

    def __init__(self) -> None:
        super().__init__("memory:", "default", "s", memci.Config())
        self.called = threading.Event()
        self.let_go = threading.Event()

    def answer(self, name: str, arguments: object) -> tuple[str, bool]:
        del arguments
        self.called.set()
        self.let_go.wait()
        return json.dumps({"error": {"kind": name, "message": ""}}), True


def test_pings_are_answered_during_a_call() -> None:
    """The server answers a ping while a tool is running."""
    busy = _Busy()
    answers = []

    async def talk() -> None:
        async with Client(make_server(busy), mode="legacy") as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                answers.append(text_of(await client.call_tool("slow", {})))

            tasks.start_soon(call)
            await anyio.to_thread.run_sync(busy.called.wait)
            await client.session.send_ping()
            answers.append("pong")
            busy.let_go.set()

    anyio.run(talk)
    assert ["pong", '{"error":{"kind":"slow","message":""}}'] == answers


class _Broken(Conversation):
    """A conversation with a mistake in it."""

    def answer(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        message = f"cannot open '/home/ada/chats/{name}' with {len(arguments)} arguments"
        raise OSError(message)


def test_a_mistake_of_ours_is_a_result(store: str, other: memci.Session, caplog: pytest.LogCaptureFixture) -> None:
    """An exception that nobody foresaw is a result for the model, without paths of this machine; the log has all of it."""

    async def call() -> str:
        async with Client(make_server(_Broken(store, "default", "s", other.config))) as client:
            result = await client.call_tool("list_pages", {})
            assert result.is_error
            return text_of(result)

    assert {"error": {"kind": "OSError", "message": "cannot open '…' with 0 arguments"}} == json.loads(anyio.run(call))
    assert "the tool 'list_pages' failed" in caplog.text
    assert "/home/ada/chats/list_pages" in caplog.text


def test_tools_of_the_tree_come_with_what_is_permitted(conversation: Conversation, other: memci.Session) -> None:
    """Once the application lets a model edit, the server has the tools for it, and the application sees what they wrote."""
    before = conversation.ask(lambda session: list(session.toolbox.tools))
    other.add_segment("lessons", permission="read_write")
    assert before == conversation.ask(lambda session: list(session.toolbox.tools))[: len(before)]
    given = {"name": "Boiler", "description": "What it needs", "detail": "The boiler needs a new valve."}
    text, failed = conversation.answer("write_note", given)
    assert ("note-1", "lessons-0", False) == ((answer := json.loads(text))["index"], answer["parent"], failed)
    other.refresh()
    assert ["note-1"] == [facts.index for facts in other.notes()]
    text, failed = conversation.answer("move_page", {"index": "usr-3", "target": "lessons-0"})
    assert failed
    assert "usr is read_only" in text


def test_other_sessions_are_searched_once_the_session_chose_it(
    conversation: Conversation, other: memci.Session, store: str
) -> None:
    """The tools are listed from then on, and only read; what they find is of the same tenant."""
    for name, tenant in (("trip", "default"), ("secret", "others")):
        with memci.Engine(store, CONFIG, tenant) as engine, engine.session(name) as session:
            session.append({"role": "user", "content": "A zeppelin."})
    assert "search_sessions" not in [tool.name for tool in conversation.tools()]
    other.configure(recall={"search_sessions": True})
    assert ["search_sessions", "read_session_page"] == [tool.name for tool in conversation.tools()][-2:]
    text, failed = conversation.answer("search_sessions", {"query": "zeppelin"})
    assert (False, ["trip"]) == (failed, [row["session"] for row in json.loads(text)])
    text, failed = conversation.answer("read_session_page", {"session": "trip", "index": "usr-1"})
    assert (False, True) == (failed, "A zeppelin." in json.loads(text)["text"])
