"""What LangGraph's checkpointers and sessions of the OpenAI Agents SDK keep becomes sessions, and is left as it is."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from agents.memory import SQLiteSession
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

import memci
from memci.adapters.importing.agents_sdk import database, history
from memci.adapters.importing.imported import import_into
from memci.adapters.importing.langgraph import threads
from memci.errors import ConfigError, InvalidMessageError

pytestmark = pytest.mark.frameworks

CALL = {"name": "look", "args": {"at": "boiler"}, "id": "call-1"}
ITEMS: list[Any] = [
    {"role": "user", "content": "How hot is it?"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "90"},
    {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "90."}],
    },
]


def answer(state: MessagesState) -> dict[str, list[AnyMessage]]:
    """Call a tool, and answer with what it said."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        usage = {"input_tokens": 7, "output_tokens": 1, "total_tokens": 8}
        thinking = {"type": "thinking", "thinking": "It is hot."}
        return {"messages": [AIMessage([thinking, {"type": "text", "text": "90 degrees."}], id="a2", usage_metadata=usage)]}
    return {"messages": [AIMessage("", tool_calls=[CALL], id="a1")]}


def look(state: MessagesState) -> dict[str, list[AnyMessage]]:
    del state
    return {"messages": [ToolMessage("90", tool_call_id="call-1", id="t1", artifact={"raw": 90})]}


def talked(*thread_ids: str) -> InMemorySaver:
    """Return a checkpointer with threads in which a graph answered."""
    saver, graph = InMemorySaver(), StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_node("look", look)
    graph.add_edge(START, "answer")
    graph.add_conditional_edges("answer", lambda state: "look" if state["messages"][-1].tool_calls else END)
    graph.add_edge("look", "answer")
    made = graph.compile(checkpointer=saver)
    for thread_id in thread_ids:
        said: list[Any] = [SystemMessage("Be brief.", id="s"), HumanMessage("How hot is it?", id="h", name="Ada")]
        made.invoke({"messages": said}, {"configurable": {"thread_id": thread_id}})
    return saver


def test_threads_of_a_checkpointer() -> None:
    """The newest checkpoint of each thread is a conversation; its messages have the time of the first checkpoint with them."""
    imported, other = threads(talked("b", "a"))
    assert ("a", "b", "openai") == (imported.session_id, other.session_id, imported.format)
    call = {"type": "function", "id": "call-1", "function": {"name": "look", "arguments": '{"at": "boiler"}'}}
    assert [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "name": "Ada", "content": "How hot is it?"},
        {"role": "assistant", "tool_calls": [call], "content": None},
        {"role": "tool", "tool_call_id": "call-1", "content": "90"},
        {"role": "assistant", "content": "90 degrees."},
    ] == list(imported.messages)
    assert sorted(map(str, imported.times)) == [*imported.times]
    assert imported.times[1] == imported.times[0] != imported.times[2]
    told = {str(each) for each in imported.lost}
    assert {
        "a.messages[3]: the keys id, artifact",
        "a.messages[4]: thinking",
        "a.messages[4]: the keys id, usage_metadata",
    } <= told
    with memci.Engine("memory:") as engine:
        assert [5, 5, 0] == [import_into(engine, each) for each in (imported, other, imported)]


def test_a_thread_in_other_formats() -> None:
    """Threads go into the other wire formats as well, and a run that stands still is told of."""
    for to in ("responses", "anthropic"):
        (imported,) = threads(talked("a"), to=to)
        with memci.Engine("memory:", {"format": to}) as engine:
            assert len(imported.messages) == import_into(engine, imported)


class Other(TypedDict):
    """A state without messages."""

    messages: Any


def test_what_is_no_message() -> None:
    """A state that holds no messages under the key is an error that names the thread; another key has none."""
    saver, graph = InMemorySaver(), StateGraph(Other)
    graph.add_node("answer", lambda _: {"messages": [5]})
    graph.add_edge(START, "answer")
    graph.compile(checkpointer=saver).invoke({"messages": "a"}, {"configurable": {"thread_id": "chat"}})
    assert [] == list(threads(saver, key="said"))
    with pytest.raises(InvalidMessageError, match="a int is no message") as caught:
        list(threads(saver))
    assert "chat.messages[0]" == caught.value.path


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Two sessions of the SDK in a file."""
    path = tmp_path / "agents.db"
    for name, items in (("one", ITEMS), ("two", ITEMS[:1])):
        with closing(SQLiteSession(name, path)) as session:
            asyncio.run(session.add_items(items))
    return path


def test_items_of_a_session() -> None:
    """Items of any session of the SDK come through as they are."""

    async def read() -> Any:
        with closing(SQLiteSession("chat")) as session:
            await session.add_items(ITEMS)
            return await history(session)

    imported = asyncio.run(read())
    assert ("chat", ITEMS, ()) == (imported.session_id, list(imported.messages), imported.lost)
    assert {None} == set(imported.times)


def test_sessions_of_a_file(sessions: Path) -> None:
    """All sessions of a file are read, with the times at which items were stored, and nothing is written to it."""
    before = {path.name: path.read_bytes() for path in sessions.parent.iterdir()}
    one, two = database(sessions)
    assert before == {path.name: path.read_bytes() for path in sessions.parent.iterdir()}
    assert [("one", ITEMS), ("two", ITEMS[:1])] == [(each.session_id, list(each.messages)) for each in (one, two)]
    assert all(str(at).endswith("+00:00") for at in one.times)
    assert () == one.lost
    (chat, _) = database(sessions, to="openai")
    assert ["user", "assistant", "tool", "assistant"] == [message["role"] for message in chat.messages]
    with memci.Engine("memory:", {"format": "responses"}) as engine:
        assert [5, 1, 0] == [import_into(engine, each) for each in (one, two, one)]


def test_rows_that_are_no_json(sessions: Path) -> None:
    """Rows that the SDK passes over are counted."""
    with closing(sqlite3.connect(sessions)) as connection, connection:
        connection.execute("UPDATE agent_messages SET message_data = '{' WHERE id = 1")
    one, _ = database(sessions)
    assert 4 == len(one.messages)
    assert ["one: 1 row of no JSON, and when the others were stored"] == [*map(str, one.lost)]


def test_files_that_are_no_sessions(tmp_path: Path, sessions: Path) -> None:
    """A database without the SDK's tables, a damaged one and an item that is none are errors that say so."""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(InvalidMessageError, match="no sessions of the Agents SDK"):
        list(database(other))
    other.write_bytes(b"SQLite format 3\0" + b"x" * 500)
    with pytest.raises(InvalidMessageError, match="no SQLite database"):
        list(database(other))
    with pytest.raises(ConfigError, match="no such file"):
        list(database(tmp_path / "gone.db"))
    with closing(sqlite3.connect(sessions)) as connection, connection:
        connection.execute("UPDATE agent_messages SET message_data = '5' WHERE id = 1")
    with pytest.raises(InvalidMessageError, match="an item is a JSON object") as caught:
        list(database(sessions))
    assert "one[0]" == caught.value.path
