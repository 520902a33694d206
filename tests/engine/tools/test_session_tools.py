"""The tools by which a model searches and reads the other sessions of its tenant: off by default, bounded, and only quoted."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci import AsyncEngine
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import MemciError, ToolNotFoundError
from memci.messages import codec
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, user

NAMES = ["search_sessions", "read_session_page"]
ON = {"search_sessions": True}
RULE = "Never push to main without asking me."
BUDGET = {"window": 6_000, "reserve": 0}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(MemoryStore(), config_of(budget=BUDGET, recall=ON), on_conflict="retry") as engine:
        yield engine


@pytest.fixture
def trip(engine: Engine) -> Session:
    """A session of two turns about a zeppelin, with a system part."""
    session = engine.session("trip 7/ü")
    session.append({"role": "system", "content": "You are the zebrafinch."})
    session.extend([user("Where is the zeppelin?"), assistant("In the hangar.")], at="2026-03-01T10:00:00+00:00")
    session.extend([user("And the weather?"), assistant("Fair.")], at="2026-04-02T10:00:00+00:00")
    return session


@pytest.fixture
def agent(engine: Engine) -> Session:
    session = engine.session("agent")
    session.append(user("What of the zeppelin?"))
    return session


def search(session: Session, query: str, **given: Any) -> list[dict[str, Any]]:  # noqa: ANN401 (arguments of the tool)
    found: list[dict[str, Any]] = session.toolbox.call("search_sessions", {"query": query, **given})
    return found


def read(session: Session, where: str, index: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 (as above)
    found: dict[str, Any] = session.toolbox.call("read_session_page", {"session": where, "index": index, **given})
    return found


def found_in(session: Session, query: str) -> set[tuple[str, str]]:
    return {(row["session"], row["index"]) for row in search(session, query)}


def test_they_are_off_by_default() -> None:
    """No form of the toolbox has them, none can be called, and choosing them by name does not turn them on."""
    with Engine(MemoryStore(), config_of()) as engine, engine.session("agent") as session:
        before = session.toolbox.openai()
        assert set(NAMES).isdisjoint(session.toolbox.tools)
        assert "search_sessions" not in session.attp_prompt()
        with pytest.raises(ToolNotFoundError):
            search(session, "zeppelin")
        session.toolbox.offer([*NAMES, "search_pages"])
        assert ["search_pages"] == list(session.toolbox.tools)
        session.toolbox.offer(None)
        assert before == session.toolbox.openai()


def test_a_setting_offers_them(agent: Session) -> None:
    """In every form, with a description of each argument; a small window has them too."""
    box = agent.toolbox
    assert NAMES == [tool["function"]["name"] for tool in box.openai()][-2:]
    assert NAMES == [tool["name"] for tool in box.anthropic()][-2:] == [tool["name"] for tool in box.responses()][-2:]
    assert NAMES == [tool["name"] for tool in box.mcp()][-2:]
    assert all(f"def {name}(" in agent.attp_prompt() for name in NAMES)
    for tool in box.anthropic()[-2:]:
        assert "other conversation" in tool["description"]
        assert all(each["description"] for each in tool["input_schema"]["properties"].values())
    with Engine(MemoryStore(), config_of(budget={"window": 2_000, "reserve": 0}, recall=ON)) as small:
        tools = small.session("agent").toolbox.openai()
        assert ["read_page", "search_pages", *NAMES] == [tool["function"]["name"] for tool in tools]


def test_a_session_may_choose_them_for_itself() -> None:
    """From then on its toolbox lists them, until it takes that back; its events say so."""
    with Engine(MemoryStore(), config_of()) as engine, engine.session("agent") as session:
        session.configure(recall=ON)
        assert set(NAMES) <= set(session.toolbox.tools)
        assert session.config.recall.search_sessions
        session.configure(recall={"search_sessions": False})
        assert set(NAMES).isdisjoint(session.toolbox.tools)


def test_the_system_part_describes_them_in_attp() -> None:
    """Where they are offered; the prompt of another session does not name them."""
    for chosen in (True, False):
        recall = {"protocol": "attp", "search_sessions": chosen}
        with Engine(MemoryStore(), config_of(recall=recall)) as engine, engine.session("agent") as session:
            talk(session, 3)
            session.fold("all")
            assert chosen is ("def search_sessions(" in session.window().messages[0]["content"])


def test_a_journal_without_the_setting_is_as_before() -> None:
    """The settings that it holds do not name the key."""
    with Engine(MemoryStore(), config_of()) as engine, engine.session("chat") as session:
        session.append(user("hello"))
        (event,) = session.events("configured")
        assert "search_sessions" not in event.data["config"]["recall"]


def test_pages_of_other_sessions_are_found(agent: Session, trip: Session) -> None:
    """Each hit says where it stands, who said it and when; the session that asks is left out."""
    expected = {
        "session": trip.id,
        "index": "usr-1",
        "entry": "usr-1/1",
        "at": "2026-03-01 10:00",
        "role": "user",
        "snippet": "Where is the zeppelin?\nIn the hangar.",
        "why": "zeppelin",
    }
    assert [expected] == search(agent, "zeppelin")
    assert {("agent", "usr-1")} == found_in(trip, "zeppelin")
    assert [] == search(agent, "submarine")


def test_a_search_is_narrowed_by_time_and_number(agent: Session, trip: Session) -> None:
    """By days or times, as search_pages is; a number or a time that cannot be is an error for the model."""
    assert [] == search(agent, "zeppelin", since="2026-03-02")
    assert 1 == len(search(agent, "zeppelin", since="2026-03-01", until="2026-03-01"))
    assert 1 == len(search(agent, "zeppelin weather", limit=1))
    for wrong in ({"limit": 0}, {"limit": 51}, {"since": "yesterday"}):
        message = handled(agent, "search_sessions", query="zeppelin", **wrong)
        assert "ConfigError" == message["error"]["kind"]
    assert 3 == trip.turn + agent.turn


def handled(session: Session, name: str, /, **given: object) -> Any:  # noqa: ANN401 (what the tool answers)
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    return json.loads(session.handle_tool_call(call)["content"])


def test_calls_are_answered_natively_and_in_attp(agent: Session, trip: Session) -> None:
    """In each format, and by a program that searches and then reads."""
    assert trip.id == handled(agent, "search_sessions", query="zeppelin")[0]["session"]
    block = {"type": "tool_use", "id": "t1", "name": "search_sessions", "input": {"query": "zeppelin"}}
    (answer,) = agent.handle_tool_call(block)["content"]
    assert trip.id == json.loads(answer["content"])[0]["session"]
    code = "hit = search_sessions('zeppelin')[0]\n__result__ = read_session_page(hit['session'], hit['entry'])['text']"
    result = agent.attp(f"[tool_call]\nstatus = \"success\"\ntarget = \"look\"\ncode = '''\n{code}\n'''")
    assert user("Where is the zeppelin?") == json.loads(result.value)


@pytest.mark.parametrize("limit", [7, 4_000])
def test_all_ranges_together_are_the_page(agent: Session, trip: Session, limit: int) -> None:
    """Reading on from where the last range ended gives the page exactly; nothing is written to either session."""
    text, start, before = "", 0, (agent.seq, trip.seq)
    while start >= 0:
        reading = read(agent, trip.id, "[usr-1]", start=start, limit=limit)
        text, start = text + reading["text"], reading["next"]
    assert trip.page(1).messages == json.loads(text)
    assert before == (agent.seq, trip.seq)


def test_answers_are_bounded_by_the_budget_of_the_session_that_asks(engine: Engine, trip: Session) -> None:
    """However large the other one's is: an answer takes at most a quarter of the window."""
    trip.configure(budget={"window": 500_000, "reserve": 0})
    trip.extend([user("zeppelin " * 9_000), assistant("Many."), user("More.")])
    for number in range(30):
        with engine.session(f"chat-{number}") as session:
            session.append(user(f"zeppelin {'word ' * 40}{number}"))
    with engine.session("small", config={"budget": {"window": 1_200, "reserve": 0}}) as small:
        small.append(user("hello"))
        rows = search(small, "zeppelin", limit=50)
        assert 1 <= len(rows) < 30
        assert small._core.counter.count(codec.encode(rows).decode()) <= 300
        reading = read(small, trip.id, "usr-3", limit=8_000)
        assert small._core.counter.count(codec.encode(reading).decode()) <= 300
        assert 0 < reading["next"] < reading["total"]


def test_a_closed_segment_stays_closed(agent: Session, trip: Session) -> None:
    """Its pages are not found, not read, and not told of by a page beside them; nor is the system part."""
    trip.add_segment("secret", permission="system_managed")
    trip.create_detail_page("Hidden", "a secret", "The marmalade of the zebrafinch.", "secret-0")
    trip.extend([user("marmalade jam honey butter"), assistant("Noted."), user("On.")])
    trip.create_contents_page("Jams", "all of them", "secret-0", ["usr-3"])
    assert [] == search(agent, "marmalade")
    assert [] == search(agent, "zebrafinch")
    assert "beside" not in json.dumps(search(agent, "marmalade jam honey butter zeppelin"))
    for index in ("note-1", "usr-3", "secret-0", "sys-1", "sys-0", "usr-1..3"):
        assert "PermissionDeniedError" == handled(agent, "read_session_page", session=trip.id, index=index)["error"]["kind"]
    trip.add_segment("secret", permission="read_only")
    assert {(trip.id, "note-1"), (trip.id, "usr-3")} == found_in(agent, "marmalade")


def test_a_mount_limits_what_is_found(agent: Session, trip: Session) -> None:
    """A session mounted system_managed is closed, and one of which a segment is mounted is open there alone."""
    trip.add_segment("facts")
    trip.create_detail_page("Length", "of it", "The zeppelin has 245 m.", "facts-0")
    agent.mount(trip, segment="trip", permission="system_managed")
    assert set() == found_in(agent, "zeppelin")
    assert "PermissionDeniedError" == handled(agent, "read_session_page", session=trip.id, index="usr-1")["error"]["kind"]
    agent.mount(trip, segment="trip", only="facts")
    assert {(trip.id, "note-1")} == found_in(agent, "zeppelin")
    agent.unmount("trip")
    assert {(trip.id, "note-1"), (trip.id, "usr-1")} == found_in(agent, "zeppelin")


def test_what_was_erased_is_not_found(agent: Session, trip: Session) -> None:
    """Nor can it be read."""
    trip.erase("usr-1")
    assert [] == search(agent, "zeppelin")
    assert "zeppelin" not in read(agent, trip.id, "usr-1")["text"]


def test_what_others_wrote_and_erased_is_seen(tmp_path: Path) -> None:
    """Also where another process did so while this engine has the session open."""
    url = f"file:{tmp_path}"
    with Engine(url, config_of(recall=ON)) as engine, engine.session("agent") as agent, engine.session("trip") as trip:
        trip.extend([user("A zeppelin."), assistant("I see."), user("On.")])
        with Engine(url, config_of(recall=ON)) as other, other.session("trip") as session:
            session.append(user("A submarine."))
            session.erase("usr-1")
        assert {("trip", "usr-2")} == found_in(agent, "submarine")
        assert set() == found_in(agent, "zeppelin")


@pytest.mark.parametrize("given", [{"session": "nobody", "index": "usr-1"}, {"session": "trip 7/ü", "index": "page one"}])
def test_what_is_not_there_is_an_error(agent: Session, trip: Session, given: dict[str, str]) -> None:
    """The answer says so, and no session begins with it."""
    assert "InvalidIdError" == handled(agent, "read_session_page", **given)["error"]["kind"]
    missing = handled(agent, "read_session_page", session=trip.id, index="usr-9")["error"]
    assert ("PageNotFoundError", True) == (missing["kind"], "usr-0" in missing["message"])
    assert "usr-1" in read(agent, trip.id, "usr-0")["text"]


@pytest.mark.parametrize("wire", ["openai", "anthropic", "attp"])
def test_results_gain_no_authority(wire: str) -> None:
    """A rule that another session's user set is data here: no rule is found in the result, and it stays in its role."""
    protocol, form = ("attp", "openai") if wire == "attp" else ("native", wire)
    with Engine(MemoryStore(), config_of(format=form, recall={**ON, "protocol": protocol})) as engine:
        with engine.session("other") as other:
            other.extend([user(RULE), assistant("Good.")])
            assert [RULE] == [rule.text for rule in other.rules()]
        with engine.session("agent") as agent:
            agent.append(user("What was said of main?"))
            append_result(agent, wire)
            assert RULE in json.dumps([*agent.messages()])
            talk(agent, 3, first=2)
            agent.fold(["usr-1"])
            assert [] == agent.rules()
            assert not any(str(value["content"]).startswith("[rules]") for value in agent.window().messages)


def append_result(agent: Session, wire: str) -> None:
    """Append a call of search_sessions and its result."""
    given = {"query": "push to main"}
    if wire == "attp":
        code = "__result__ = search_sessions('push to main')"
        reply = f"[tool_call]\nstatus = \"success\"\ntarget = \"look\"\ncode = '''\n{code}\n'''"
        agent.append(assistant(reply))
        agent.append(agent.attp(reply).message())
    elif wire == "anthropic":
        call: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "search_sessions", "input": given}
        agent.append({"role": "assistant", "content": [call]})
        agent.append(agent.handle_tool_call(call))
    else:
        call = {"id": "c1", "type": "function", "function": {"name": "search_sessions", "arguments": json.dumps(given)}}
        agent.append({"role": "assistant", "content": None, "tool_calls": [call]})
        agent.append(agent.handle_tool_call(call))


def test_a_session_alone_says_so(agent: Session, trip: Session) -> None:
    """A draft reaches no other session; its answer is an error that says what to do."""
    with agent.draft() as draft:
        for name, given in (
            ("search_sessions", {"query": "zeppelin"}),
            ("read_session_page", {"session": trip.id, "index": "1"}),
        ):
            error = handled(draft, name, **given)["error"]
            assert "no other conversation" in error["message"]


def test_two_sessions_search_each_other_at_once(agent: Session, trip: Session) -> None:
    """Neither waits for a lock that the other holds."""
    found: list[list[dict[str, Any]]] = []

    def look(session: Session) -> None:
        found.extend(search(session, "zeppelin") for _ in range(20))

    threads = [threading.Thread(target=look, args=(session,), daemon=True) for session in (agent, trip)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [1] * 40 == [len(each) for each in found]


def test_an_engine_that_only_reads_searches_too(tmp_path: Path) -> None:
    """Nothing is written for it."""
    with Engine(f"file:{tmp_path}", config_of(recall=ON)) as engine:
        for name in ("agent", "trip"):
            with engine.session(name) as session:
                session.extend([user(f"The zeppelin of {name}."), assistant("I see.")])
    with Engine(f"file:{tmp_path}", read_only=True, keep_settings=True) as engine, engine.session("agent") as agent:
        assert {("trip", "usr-1")} == found_in(agent, "zeppelin")
        assert "The zeppelin of trip." in read(agent, "trip", "usr-1")["text"]


def test_an_asynchronous_session_has_them() -> None:
    """As any other tool of its session."""

    async def look() -> dict[str, Any]:
        async with AsyncEngine("memory:", config_of(recall=ON)) as engine:
            async with engine.session("trip") as trip:
                await trip.append(user("A zeppelin."))
            async with engine.session("agent") as agent:
                call = {"id": "c1", "function": {"name": "search_sessions", "arguments": '{"query": "zeppelin"}'}}
                return await agent.handle_tool_call(call)

    assert "trip" == json.loads(asyncio.run(look())["content"])[0]["session"]


WORDS = ("zeppelin", "harbour", "marmalade", "invoice")
PAGES = st.lists(st.tuples(st.sampled_from(WORDS), st.booleans()), max_size=3)


@settings(max_examples=25, deadline=None)
@given(sessions=st.dictionaries(st.tuples(st.sampled_from(("ours", "theirs")), st.sampled_from("abc")), PAGES, max_size=6))
def test_nothing_of_another_tenant_and_nothing_closed_gets_across(
    sessions: dict[tuple[str, str], list[tuple[str, bool]]],
) -> None:
    """Whatever is stored, a search finds the open pages of the tenant's other sessions, and only these can be read."""
    with Engine(MemoryStore(), config_of(recall=ON), tenant="ours", on_conflict="retry") as engine:
        open_pages, closed_pages = set[tuple[str, str]](), set[tuple[str, str]]()
        for (tenant, name), said in sessions.items():
            with engine.session(name, tenant=tenant) as session:
                session.add_segment("closed", permission="system_managed")
                for number, (word, is_open) in enumerate(said, start=1):
                    root = "usr-0" if is_open else "closed-0"
                    session.create_detail_page(f"About {number}", "a note", f"{word} of {tenant}", root)
                    if tenant == "ours" and name != "a":
                        (open_pages if is_open else closed_pages).add((name, f"note-{number}"))
        with engine.session("a") as session:
            rows = search(session, " ".join(WORDS), limit=50)
            assert open_pages == {(row["session"], row["index"]) for row in rows}
            assert "theirs" not in json.dumps(rows)
            assert all("of ours" in read(session, *place)["text"] for place in open_pages)
            absent = {(name, "note-1") for tenant, name in sessions if tenant == "theirs" and ("ours", name) not in sessions}
            for place in closed_pages | absent:
                with pytest.raises(MemciError):
                    read(session, *place)
