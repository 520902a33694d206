"""The model's own tools: natively in both forms, and in ATTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import InvalidMessageError
from tests.engine.sessions import open_session, talk, turn
from tests.engine.wire import assert_paired


@pytest.fixture
def session() -> Session:
    session = open_session(active={"min_pages": 1})
    talk(session, 12)
    session.fold("all")
    return session


def openai(session: Session, name: str, **arguments: object) -> Any:  # noqa: ANN401 (what the tool answers)
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    message = session.handle_tool_call(call)
    assert ("tool", "c1") == (message["role"], message["tool_call_id"])
    return json.loads(message["content"])


def attp(session: Session, code: str) -> Any:  # noqa: ANN401 (what the code gives)
    reply = ['thought = "look"', "[tool_call]", 'status = "success"', 'target = "look"', f"code = '''\n{code}\n'''"]
    result = session.attp("\n".join(reply))
    assert result.error is None, result.error
    return result.value


def test_a_page_is_recalled_natively(session: Session) -> None:
    """Recalling answers with a receipt, and the page stands in the next window."""
    receipt = openai(session, "recall_page", index="usr-3")
    assert ("usr-3", session.page(3).tokens) == (receipt["index"], receipt["tokens"])
    assert any("[recalled page usr-3" in str(message["content"]) for message in session.window().messages)


@pytest.mark.parametrize("limit", [1, 7, 4_000])
def test_all_ranges_together_are_the_page(session: Session, limit: int) -> None:
    """Reading on from where the last range ended gives the page exactly, and attaches nothing."""
    text, start = "", 0
    while start >= 0:
        reading = openai(session, "read_page", index="usr-3", start=start, limit=limit)
        text, start = text + reading["text"], reading["next"]
    assert session.page(3).messages == json.loads(text)
    assert "archived" == session.facts(3).state


def test_every_page_is_reached_in_attp(session: Session) -> None:
    """Code lists the pages, reads each of them and recalls the one that a search finds."""
    rows = attp(session, "__result__ = [page['index'] for page in list_pages(limit=50)['pages']]")
    assert [facts.index for facts in session.pages()] == rows
    read = attp(session, "__result__ = [read_page(page['index'], limit=8000)['text'] for page in list_pages(limit=50)['pages']]")
    assert [session.page(index).messages for index in rows] == [json.loads(text) for text in read]
    receipt = attp(session, "hits = search_pages('ask4x2 say4x1', limit=3)\n__result__ = recall_page(hits[0]['index'])")
    assert "usr-4" == receipt["index"]
    assert "attached" == session.facts(4).state
    session.close()


def test_anthropic_blocks_are_answered(session: Session) -> None:
    """A tool_use block is answered by a user message with its result, an error marked as one."""
    message = session.handle_tool_call({"type": "tool_use", "id": "t1", "name": "list_pages", "input": {"limit": 2}})
    (block,) = message["content"]
    assert ("user", "t1", 2) == (message["role"], block["tool_use_id"], len(json.loads(block["content"])["pages"]))
    message = session.handle_tool_call({"type": "tool_use", "id": "t2", "name": "nothing", "input": {}})
    assert message["content"][0]["is_error"]


@pytest.mark.parametrize(
    ("name", "arguments", "advice"),
    [
        ("recall_page", {"index": "usr-99"}, "list_pages"),
        ("recall_page", {"index": 5}, "index"),
        ("recall_page", {}, "index"),
        ("recal_page", {"index": "usr-1"}, "recall_page"),
        ("read_page", {"index": "usr-1", "limit": 10**9}, "8000"),
        ("read_page", {"index": "usr-1/99"}, "usr-1/2"),
        ("list_pages", {"limit": 0}, "50"),
        ("list_pages", {"start": 2**63}, "50"),
        ("read_page", {"index": "page twelve"}, "usr-12"),
        ("read_page", {"index": "usr-1/x"}, "usr-12/3"),
    ],
)
def test_what_the_model_did_wrong_is_an_answer(session: Session, name: str, arguments: dict[str, Any], advice: str) -> None:
    """A wrong call is answered with what to do instead, and harms nothing."""
    seq = session.seq
    assert advice in openai(session, name, **arguments)["error"]["message"]
    assert seq == session.seq


@pytest.mark.parametrize("index", ["[usr-3]", " USR-3 ", "3", "[usr-3] question"[:7]])
def test_an_index_is_read_as_it_is_meant(session: Session, index: str) -> None:
    """A model may write an index as the contents page shows it, in capitals, or the number alone."""
    assert "usr-3" == openai(session, "recall_page", index=index)["index"]
    assert openai(session, "read_page", index="usr-3/2")["text"] == openai(session, "read_page", index=f"{index}/2")["text"]


def test_an_evicted_page_leads_to_the_search(session: Session) -> None:
    """Recalling a page that is no longer listed names search_pages."""
    session.evict(2)
    session.append({"role": "user", "content": "on"})
    session.append({"role": "assistant", "content": "yes"})
    session.append({"role": "user", "content": "and on"})
    session.fold("all")
    error = openai(session, "recall_page", index="usr-2")["error"]
    assert "search_pages" in error["message"]
    problem = session.attp("[tool_call]\ncode = '''\n__result__ = recall_page('usr-2')\n'''").error
    assert problem is not None
    assert ("PageEvictedError", error["message"]) == (problem.kind, problem.message)
    session.close()


def test_a_call_and_its_answer_are_messages(session: Session) -> None:
    """The tool message can be appended behind its call, and the window stays well formed."""
    call = {"id": "c9", "type": "function", "function": {"name": "recall_page", "arguments": '{"index": "usr-2"}'}}
    session.append({"role": "user", "content": "what was the second question?"})
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append(session.handle_tool_call(call))
    window = session.window(tools=session.toolbox.openai())
    assert_paired(window.messages)
    assert window.breakdown["tools"] > 0


@pytest.mark.parametrize("call", [None, {}, {"id": 5}, {"type": "tool_use"}, {"id": "x", "function": "f"}])
def test_what_is_no_call_is_refused(session: Session, call: dict[str, Any]) -> None:
    """The backend learns that it passed on something else."""
    with pytest.raises(InvalidMessageError):
        session.handle_tool_call(call)


def test_the_prompt_names_the_tools(session: Session) -> None:
    """The ATTP prompt holds the signature of each tool."""
    for lang in ("en", "zh"):
        prompt = session.attp_prompt(lang)
        names = ("recall_page", "read_page", "list_pages", "search_pages", "close_topic")
        assert all(f"def {name}(" in prompt for name in names)


def test_a_model_closes_a_topic() -> None:
    """The pages before its turn leave the window under the title, natively and in ATTP, and its own call stays in view."""
    session = open_session()
    talk(session, 3)
    call = {"id": "c1", "type": "function", "function": {"name": "close_topic", "arguments": '{"title": "First things"}'}}
    session.append({"role": "user", "content": "now for something else"})
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    answer = session.handle_tool_call(call)
    assert {"index": "usr-1..3", "title": "First things"} == json.loads(answer["content"])
    session.append(answer)
    assert_paired(session.window().messages)
    talk(session, 1, first=5)
    assert {"index": "usr-4", "title": "Second things"} == attp(session, '__result__ = close_topic("Second things")')
    first, second = session.contents.entries
    assert first.render().startswith("[usr-1..3] First things · 3 pages")
    assert second.render().startswith("[usr-4] Second things · 3 entries")
    session.close()


BAD_TITLES = [("[usr-3] is it", "1 to 120 characters"), ("x" * 121, "1 to 120 characters"), ("again", "talk on first")]


@pytest.mark.parametrize(("title", "advice"), BAD_TITLES)
def test_a_model_learns_why_a_topic_is_not_closed(session: Session, title: str, advice: str) -> None:
    """The answer says what is wrong with the title, or that there is nothing to close."""
    openai(session, "close_topic", title="all of it")
    assert advice in openai(session, "close_topic", title=title)["error"]["message"]


def test_a_tool_takes_in_what_another_process_wrote(tmp_path: Path) -> None:
    """Where somebody else wrote meanwhile, a tool refreshes its session and does its work again."""
    with Engine(f"file:{tmp_path}") as here, Engine(f"file:{tmp_path}") as there:
        session, other = here.session("chat"), there.session("chat")
        talk(session, 4)
        session.fold("all")
        other.refresh()
        talk(other, 2, first=5)
        assert "usr-2" == openai(session, "recall_page", index="usr-2")["index"]
        assert 6 == openai(session, "list_pages")["total"]


def test_the_list_of_pages_is_read_in_parts(session: Session) -> None:
    """The parts of the list are the list, system pages first, wherever it is cut."""
    session.set_system([{"role": "system", "content": "be exact"}])
    rows: list[dict[str, Any]] = []
    start = 0
    while start >= 0:
        part = openai(session, "list_pages", start=start, limit=5)
        rows, start = rows + part["pages"], part["next"]
    known = session.pages()
    assert [facts.index for facts in known] == [row["index"] for row in rows]
    assert [(facts.state, facts.tokens, facts.title) for facts in known] == [(r["state"], r["tokens"], r["title"]) for r in rows]


def test_answers_tell_when_it_was_said() -> None:
    """Lists and readings give the days of a page, hits and readings of one entry the minute, in UTC."""
    session = open_session(active={"min_pages": 1})
    for at, message in zip(
        ["2023-05-08T13:56:07", "2023-05-09T01:30:00+02:00", "2023-05-10"], [*turn(1), *turn(2)], strict=False
    ):
        session.append(message, at=at)
    session.fold("all")
    assert ["2023-05-08", "2023-05-10"] == [row["at"] for row in openai(session, "list_pages")["pages"]]
    assert "2023-05-08" == openai(session, "read_page", index="usr-1")["at"]
    assert "2023-05-08 23:30" == openai(session, "read_page", index="usr-1/2")["at"]
    assert "2023-05-08 13:56" == openai(session, "search_pages", query="question1")[0]["at"]


def test_a_reading_gives_the_days_of_all_it_reads() -> None:
    """Where messages came out of order, the days of a reading are the earliest and the latest of them."""
    session = open_session()
    for at, message in zip(["2023-05-08", "2023-05-10", "2023-05-07", "2023-05-09"], [*turn(1), *turn(2)[1:] * 2], strict=True):
        session.append(message, at=at)
    assert "2023-05-07..10" == openai(session, "read_page", index="usr-1")["at"]


def test_the_system_part_teaches_attp() -> None:
    """With the protocol attp, the prompt stands in the window as soon as there is a contents page."""
    session = open_session(active={"min_pages": 1}, recall={"protocol": "attp"})
    talk(session, 4)
    assert "system" not in [message["role"] for message in session.window().messages]
    session.fold("all")
    window = session.window()
    assert session.attp_prompt() in window.messages[0]["content"]
    assert window.breakdown["system"] > 500
    assert window.to_json() == session.render(at=window.seq).to_json()


def test_a_model_searches_by_day(session: Session) -> None:
    """The model names days, too; what is none of them is answered with what to write."""
    assert [] == openai(session, "search_pages", query="question1", until="1999-12-31")
    assert "question1" == openai(session, "search_pages", query="question1", since="1999-12-31")[0]["why"]
    error = openai(session, "search_pages", query="question1", since="last week")["error"]
    assert "ConfigError" == error["kind"]
    assert "since" in error["message"]


@pytest.mark.parametrize("option", ["roles", "turns"])
def test_what_a_tool_does_not_take_is_told(session: Session, option: str) -> None:
    """The model's search takes words, a limit and days; any other argument is answered with how it is called, in both forms."""
    told = f"it has no parameter '{option}'; call it as search_pages(query: str, limit: int = 5, since: str = '', "
    assert told in openai(session, "search_pages", query="ask", **{option: "alien"})["error"]["message"]
    code = f"__result__ = search_pages('ask', {option}='alien')"
    reply = f"thought = 'look'\n[tool_call]\nstatus = 'success'\ntarget = 'look'\ncode = \"{code}\""
    error = session.attp(reply).error
    assert error is not None
    assert told in error.message
