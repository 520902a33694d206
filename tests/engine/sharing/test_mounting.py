"""Mounting: what is shown of another session, what may be read and written there, and that nothing else gets across."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.engine.commands.window import Window
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.view.planner import contents_limit
from memci.errors import ArgumentError, MemciError, PageEvictedError, PageNotFoundError, PermissionDeniedError
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, user

BUDGET = {"window": 6_000, "reserve": 0}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(MemoryStore(), config_of(budget=BUDGET), on_conflict="retry") as engine:
        yield engine


@pytest.fixture
def project(engine: Engine) -> Session:
    """A session of four turns, two of which are folded, with a system part and a note."""
    session = engine.session("project")
    session.append({"role": "system", "content": "You are the zebrafinch."})
    talk(session, 4)
    session.fold(["usr-1", "usr-2"])
    session.create_detail_page("Releases", "how they are made", "Run the tests, then tag.")
    return session


@pytest.fixture
def agent(engine: Engine) -> Session:
    session = engine.session("agent")
    session.append(user("what is known?"))
    return session


def shown(window: Window) -> str:
    """Return what a window shows of mounted sessions."""
    found = [value["content"] for value in window.messages if str(value["content"]).startswith("[contents of")]
    return "\n".join(found)


def call(session: Session, tool: str, **given: Any) -> Any:  # noqa: ANN401 (what a tool answers)
    return session.toolbox.call(tool, given)


def test_a_contents_page_is_shown(project: Session, agent: Session) -> None:
    """Pages, folded or not, and notes stand in the window under addresses of the mount, counted; no system page does."""
    before = agent.window()
    assert "project" == agent.mount(project)
    window = agent.window()
    text = shown(window)
    for address in ("project/usr-1", "project/usr-2", "project/usr-3", "project/usr-4", "project/note-1"):
        assert f"[{address}]" in text
    assert "zebrafinch" not in window.to_json().decode()
    assert before.tokens + window.breakdown["mounted"] == window.tokens == sum(window.breakdown.values())
    assert window.to_json() == agent.render(window.seq).to_json()


def test_it_stands_in_front_of_the_conversation(project: Session, agent: Session) -> None:
    """The block comes after one's own contents page and before the active pages, and closes by its own line."""
    talk(agent, 4, first=50)
    agent.fold("all")
    agent.mount(project)
    texts = [str(value["content"]) for value in agent.window().messages]
    own = next(place for place, text in enumerate(texts) if "Contents of earlier pages" in text)
    mounted = next(place for place, text in enumerate(texts) if text.startswith("[contents of project"))
    assert own < mounted < len(texts) - 1
    assert texts[mounted].endswith("\n[end of contents of project]")


def test_it_is_brought_up_to_date_as_a_turn_begins(project: Session, agent: Session) -> None:
    """What the other session says shows with the next turn, and not within one; a turn without news writes nothing of it."""
    agent.mount(project)
    first = agent.window()
    project.append(user("a question about marmalade"))
    assert first.to_json() == agent.window().to_json()
    agent.append(assistant("Let me see."))
    agent.append(user("and now?"))
    assert "marmalade" in shown(agent.window())
    agent.append(user("and again?"))
    agent.append(assistant("Yes."))
    agent.append(user("well?"))
    agent.window()
    assert 2 == sum(event.kind == "mounted" for event in agent.events())


def test_what_another_worker_says_there_is_shown() -> None:
    """A session that this process has open too shows as another one left it, from the next turn on."""
    store = MemoryStore()
    engine, other = (Engine(store, config_of(budget=BUDGET)) for _ in range(2))
    with engine, other, engine.session("project") as project, engine.session("agent") as agent:
        project.append(user("what is there?"))
        agent.append(user("what is known?"))
        agent.mount(project)
        with other.session("project") as theirs:
            theirs.append(user("a question about marmalade"))
        agent.append(assistant("Let me see."))
        agent.append(user("and now?"))
        assert "marmalade" in shown(agent.window())


def test_its_capacity_bounds_it(project: Session, agent: Session) -> None:
    """What is shown takes no more than the capacity: the newest in full, then first lines, and a count of what is left out."""
    talk(project, 40, first=5, words=20)
    for capacity in (100, 200, 400, 1_000):
        agent.mount(project, capacity_tokens=capacity)
        window = agent.window()
        assert 0 < window.breakdown.get("mounted", 0) <= capacity
        assert "not listed" in shown(window)
    agent.mount(project, capacity_tokens=0)
    assert "mounted" not in agent.window().breakdown


def test_a_window_without_room_is_without_it(project: Session, agent: Session) -> None:
    """In a window of which it would take more than half it is left out, and it is there again in the next one."""
    agent.mount(project, capacity_tokens=500)
    small = agent.window(budget=200)
    assert "mounted" not in small.breakdown
    assert small.tokens <= 200
    assert "mounted" in agent.window().breakdown


def test_the_contents_page_leaves_it_its_room(project: Session, agent: Session) -> None:
    """Entries of the session's own pages may fill what mounted sessions leave."""
    alone = contents_limit(agent._core.state, agent.config, BUDGET["window"])
    agent.mount(project)
    mounted = agent.window().breakdown["mounted"]
    assert alone - mounted == contents_limit(agent._core.state, agent.config, BUDGET["window"])


def test_many_share_half_of_a_window(engine: Engine, agent: Session) -> None:
    """Of many mounts those stand in the window that came first and have room, and all is repeatable."""
    for number in range(12):
        with engine.session(f"pool-{number}") as pool:
            talk(pool, 12, words=12)
            agent.mount(pool)
    window = agent.window()
    names = re.findall(r"^\[contents of (pool-\d+),", shown(window), re.MULTILINE)
    assert [f"pool-{number}" for number in range(len(names))] == names
    assert 2 <= len(names) < 12
    assert window.breakdown["mounted"] <= window.budget / 2
    assert window.to_json() == agent.render(at=window.seq).to_json()
    assert "mounted" not in agent.window(budget=300).breakdown
    assert window.messages == agent.window().messages


def test_an_id_that_is_used_again(engine: Engine, project: Session, agent: Session) -> None:
    """A session that begins under the id of one that was deleted is not the one that was mounted: nothing of it is seen."""
    agent.mount(project)
    before = shown(agent.window())
    project.close()
    engine.delete("project")
    other = engine.session("project")
    other.append(user("marmalade for whoever comes next"))
    other.create_detail_page("Marmalade", "", "Marmalade.")
    agent.append(assistant("Well."))
    agent.append(user("and now?"))
    assert before == shown(agent.window())
    assert [] == agent.search_mounts("marmalade")
    for look in (agent.page, agent.recall, agent.facts):
        with pytest.raises(PageNotFoundError, match="deleted"):
            look("project/usr-1")
    agent.mount("project")
    assert "armalade" in shown(agent.window())


def test_a_page_is_recalled(project: Session, agent: Session) -> None:
    """A page of a mounted session comes in as a quoted block with its address, counts as no recall there, and fades."""
    agent.mount(project)
    page = agent.recall("project/usr-1")
    assert project.page("usr-1").messages == page.messages == agent.page("project/usr-1").messages
    window = agent.window()
    assert "[recalled page project/usr-1, turn 1" in window.to_json().decode()
    assert window.to_json() == agent.render(window.seq).to_json()
    assert 0 == project.facts("usr-1").recall_count
    told = agent.explain("project/usr-1")
    assert ("project/usr-1", PageState.ATTACHED, True, True) == (told.index, told.state, told.in_window, told.in_contents)
    assert "session 'project', mounted as project, read_only" in told.reasons[0]
    agent.fade("project/usr-1")
    assert "[recalled page" not in agent.window().to_json().decode()
    agent.recall("project/note-1")
    assert "Run the tests" in agent.window().to_json().decode()


def test_it_fades_by_turns_and_with_the_mount(engine: Engine, project: Session) -> None:
    """A recalled page leaves after the turns that the settings say, and at once where the session is mounted no more."""
    agent = engine.session("agent", config={"recall": {"turns": 2}})
    agent.append(user("what is known?"))
    agent.mount(project)
    agent.recall("project/usr-1")
    talk(agent, 3, first=70)
    assert "[recalled page" not in agent.window().to_json().decode()
    agent.recall("project/usr-1")
    agent.unmount("project")
    assert "project/" not in agent.window().to_json().decode()
    with pytest.raises(ArgumentError):
        agent.unmount("project")


def test_it_lasts(tmp_path: Path) -> None:
    """After closing and opening again, with snapshots, the window is the same, and checkpoints and forks have the mount."""
    with Engine(f"file:{tmp_path}", config_of(budget=BUDGET, snapshot_every=3)) as engine:
        project, agent = engine.session("project"), engine.session("agent")
        talk(project, 3)
        talk(agent, 2, first=50)
        agent.mount(project)
        agent.recall("project/usr-2")
        window = agent.window()
        made = agent.checkpoint("here")
        agent.unmount("project")
    with Engine(f"file:{tmp_path}", config_of(budget=BUDGET)) as engine:
        agent = engine.session("agent")
        assert window.to_json() == agent.render(window.seq).to_json()
        agent.restore_checkpoint(made.id)
        assert ["project"] == list(agent.mounts())
        assert window.to_json() == agent.window().to_json()
        with engine.fork("agent", "other") as fork:
            assert "[recalled page project/usr-2" in fork.window().to_json().decode()
        assert () == agent.verify().problems == engine.session("project").verify().problems


def test_names() -> None:
    """An id that is no name gets one; segments and other mounts keep theirs; the same session may be mounted anew."""
    engine = Engine(MemoryStore(), config_of(budget=BUDGET))
    agent = engine.session("agent")
    for name in ("Über uns", "usr", "PLAN"):
        engine.session(name).append(user("Hello."))
    assert ["mount-1", "mount-2", "plan"] == [agent.mount(name) for name in ("Über uns", "usr", "PLAN")]
    assert "plan" == agent.mount("PLAN", capacity_tokens=50)
    assert "global" == agent.mount("PLAN", segment="global")
    bad: Any
    for bad in ("usr", "a/b", "", "A", 7, "plan"):
        with pytest.raises(ArgumentError, match="segment"):
            agent.mount("Über uns", segment=bad)


def test_what_cannot_be_mounted(engine: Engine, project: Session, agent: Session) -> None:
    """Itself, a session of another tenant, engine or format, and bad arguments are refused; nothing is written then."""
    other = engine.session("project", tenant="other")
    foreign = Engine(MemoryStore(), config_of()).session("project")
    anthropic = engine.session("anthropic", config={"format": "anthropic"})
    anthropic.append(user("Hello."))
    seqs = (agent.seq, project.seq, anthropic.seq)
    for bad in (agent, "agent", "never begun", other, foreign, 7, "", anthropic):
        with pytest.raises(MemciError):
            agent.mount(bad)  # type: ignore[arg-type]
    for arguments in ({"permission": "all"}, {"capacity_tokens": -1}, {"capacity_tokens": True}, {"only": "facts"}):
        with pytest.raises(ArgumentError):
            agent.mount(project, **arguments)
    assert seqs == (agent.seq, project.seq, anthropic.seq)


def test_only_a_segment_is_shown(project: Session, agent: Session) -> None:
    """Of a session that is mounted for one segment nothing else is shown, read, found or recalled; of no one its system part."""
    project.add_segment("facts", permission="read_write")
    project.create_detail_page("Prices", "of marmalade", "Marmalade costs 4 euros.", "facts-0")
    agent.mount(project, only="facts")
    text = shown(agent.window())
    assert "[project/note-2] Prices" in text
    assert "note-1" not in text
    assert "usr-" not in text.split("\n", 1)[1]
    assert "4 euros" in str(call(agent, "read_page", index="project/note-2"))
    for index in ("project/usr-1", "project/note-1", "project/sys-1", "project/usr-0"):
        with pytest.raises(PageNotFoundError):
            agent.recall(index)
        with pytest.raises(PageNotFoundError):
            call(agent, "read_page", index=index)
    assert ["project/note-2"] == [hit["index"] for hit in call(agent, "search_pages", query="marmalade releases question1")]


def test_segments_that_no_model_reads(project: Session, agent: Session) -> None:
    """No mount shows a ``system_managed`` segment; nothing there is found, read, recalled or written."""
    project.add_segment("secret", permission="system_managed")
    index = project.create_detail_page("Marmalade", "what it costs", "Marmalade is 43.", "secret-0")
    agent.mount(project, permission="read_write")
    assert "armalade" not in shown(agent.window())
    assert "armalade" not in str(call(agent, "search_pages", query="marmalade"))
    for tool in ("recall_page", "read_page", "remove_page"):
        with pytest.raises(PageNotFoundError):
            call(agent, tool, index=f"project/{index}")
    with pytest.raises(PageNotFoundError):
        call(agent, "write_note", name="a", description="b", detail="c", parent="project/secret-0")
    with pytest.raises(ArgumentError):
        agent.mount(project, only="secret")


def test_what_is_no_longer_listed_is_not_recalled(project: Session, agent: Session) -> None:
    """A note that was removed there, and a page that was evicted, are found and read here, and not recalled."""
    project.remove_page("note-1")
    project.evict("usr-1")
    agent.mount(project)
    for index in ("project/note-1", "project/usr-1"):
        with pytest.raises(PageEvictedError):
            agent.recall(index)
    assert agent.page("project/note-1").messages


def test_what_was_made_has_room_first(project: Session, agent: Session) -> None:
    """Notes stand before the newest pages where there is no room for all; a directory that is left out counts its pages."""
    talk(project, 60, first=5)
    project.fold("all")
    agent.mount(project, capacity_tokens=160)
    text = shown(agent.window())
    assert "[project/note-1] Releases" in text
    assert 60 <= int(re.findall(r"^(\d+) older", text, re.MULTILINE)[0])


def test_the_models_tools_reach_it(project: Session, agent: Session) -> None:
    """By an address the model reads pages and entries exactly, recalls, closes, and its search finds pages of both sessions."""
    agent.mount(project)
    page = call(agent, "read_page", index="[project/usr-1]")
    own = call(project, "read_page", index="usr-1")
    assert {**own, "index": "project/usr-1"} == page
    assert "ask1x3" in call(agent, "read_page", index="project/usr-1/1")["text"]
    receipt = call(agent, "recall_page", index="project/usr-1")
    assert ("project/usr-1", "in a block before the newest page") == (receipt["index"], receipt["stands"])
    assert "[recalled page project/usr-1" in agent.window().to_json().decode()
    agent.add_segment("facts")
    call(agent, "close_page", index="project/usr-1")
    assert "[recalled page" not in agent.window().to_json().decode()
    agent.append(assistant("The question1 was asked."))
    talk(agent, 2, first=60)
    agent.fold("all")
    found = [hit["index"] for hit in call(agent, "search_pages", query="question1 ask1x3")]
    assert {"usr-1", "project/usr-1"} <= set(found)
    answer = agent.handle_tool_call(
        {"id": "a", "type": "function", "function": {"name": "recall_page", "arguments": '{"index": "project/usr-99"}'}}
    )
    assert "PageNotFoundError" in answer["content"]


def test_what_a_list_says_is_of_the_mount(engine: Engine, agent: Session) -> None:
    """A list of a mounted session's pages names them as they are named here, and their pictures come with them."""
    with engine.session("album") as album:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
        album.append({"role": "user", "content": [{"type": "text", "text": "[usr-9] look"}, picture]})
        talk(album, 2, first=2)
        agent.mount(album)
    for index in ("album/usr-0", "album/usr-1..3"):
        text = call(agent, "read_page", index=index)["text"]
        assert 3 == text.count("[album/usr-")
        assert "\\n[usr-" not in text
    read = call(agent, "read_page", index="album/usr-1")
    assert "[usr-9] look" in read["text"]
    assert [picture] == agent.toolbox.pictures("read_page", json.dumps(read))
    assert [] == agent.toolbox.pictures("read_page", json.dumps(call(agent, "read_page", index="usr-1")))


def test_a_mount_that_cannot_be_read_ends_no_search(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is elsewhere is found, and the log says what was not searched."""
    with Engine(f"file:{tmp_path}", config_of(budget=BUDGET)) as engine, engine.session("agent") as agent:
        for name in ("sound", "damaged"):
            with engine.session(name) as session:
                talk(session, 2)
                agent.mount(session)
        talk(agent, 2)
    (journal,) = (tmp_path / "default" / "damaged").rglob("journal.jsonl")
    journal.write_bytes(b"\0" * 40 + journal.read_bytes()[40:])
    with Engine(f"file:{tmp_path}", config_of(budget=BUDGET)) as engine, engine.session("agent") as agent:
        assert {"sound"} == {hit.session for hits in agent.search_mounts("ask1x3") for hit in hits}
        assert call(agent, "search_pages", query="ask1x3")
    assert "damaged" in caplog.text


def test_nothing_is_written_where_it_is_not_permitted(project: Session, agent: Session) -> None:
    """Where a session is mounted read_only, neither application nor model changes it; system_managed shows, and no more."""
    agent.add_segment("usr", permission="read_write")
    agent.mount(project)
    seq = project.seq
    with pytest.raises(PermissionDeniedError, match="mounted read_only"):
        agent.create_detail_page("A", "", "b", "project/usr-0")
    with pytest.raises(PermissionDeniedError):
        call(agent, "write_note", name="A", description="", detail="b", parent="project/usr-0")
    with pytest.raises(PermissionDeniedError):
        agent.remove_page("project/usr-1")
    agent.mount(project, permission="system_managed")
    assert "[project/usr-1]" in shown(agent.window())
    for tool in ("recall_page", "read_page"):
        with pytest.raises(PermissionDeniedError, match="system_managed"):
            call(agent, tool, index="project/usr-1")
    assert [] == call(agent, "search_pages", query="question1")
    assert {"mounted_by"} == {event.kind for event in project.events(after=seq)}


def test_a_common_pool(engine: Engine, project: Session) -> None:
    """Agents that may write see in their next turn what the others noted; the events are in the session that owns the pages."""
    agents = [engine.session(f"agent-{number}") for number in range(3)]
    for number, agent in enumerate(agents):
        agent.append(user("begin"))
        agent.mount(project, segment="pool", permission="read_write")
        agent.add_segment("usr", permission="read_write")
        made = call(agent, "write_note", name=f"Finding {number}", description="", detail="It is so.", parent="pool/usr-0")
        assert f"pool/note-{number + 2}" == made["index"]
    agents[0].create_contents_page("Findings", "", "pool/usr-0", ["pool/note-2", "pool/note-3"])
    for agent in agents:
        agent.append(assistant("Done."))
        agent.append(user("go on"))
        text = shown(agent.window())
        assert "Findings" in text
        assert "[pool/note-4] Finding 2" in text
        assert [] == agent.notes()
    assert 4 == len(project.notes())


def test_erasing_reaches_it(tmp_path: Path) -> None:
    """With forks, erasing a page takes it out of all sessions that showed or recalled it, byte by byte; else out of its own."""
    with Engine(f"file:{tmp_path}", config_of(budget=BUDGET, snapshot_every=2)) as engine:
        project, agent = engine.session("project"), engine.session("agent")
        project.append(user("the zebrafinch sings"))
        project.append(assistant("So the zebrafinch does."))
        project.append(user("and now?"))
        agent.append(user("what is known?"))
        agent.mount(project)
        agent.recall("project/usr-1")
        agent.window()
        made = agent.checkpoint("here")
        agent.append(assistant("Well."))
        agent.restore_checkpoint(made.id)
        agent.window()
        receipts = engine.erase("project", "usr-1", forks=True)
        assert [("project", "usr-1"), ("agent", "project/usr-1")] == [(each.session, each.page) for each in receipts]
        assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and b"zebrafinch" in path.read_bytes()]
        for session in (project, agent):
            assert () == session.verify().problems
            for seq in range(session.seq + 1):
                window = session.render(at=seq)
                assert window.tokens == sum(window.breakdown.values())
        assert "project/usr-1/1 user:\\n> [erased]" in agent.window().to_json().decode()


def test_a_deleted_session_stays_as_it_was_shown(engine: Engine, project: Session, agent: Session) -> None:
    """Where the other session is gone, windows go on, and its pages are not found."""
    agent.mount(project)
    project.close()
    engine.delete("project")
    agent.append(assistant("Well."))
    agent.append(user("and now?"))
    agent.window()
    with pytest.raises(PageNotFoundError):
        agent.recall("project/usr-1")


def test_the_receiver_of_a_handoff_reads_its_pages(project: Session, agent: Session) -> None:
    """The note says under which address pages of the sender are read, and recalling one works; no line of it is shown."""
    index = project.handoff(agent)
    assert "project/usr-1" in str(agent.page(index).messages)
    assert "ask1x3" in str(agent.recall("project/usr-1").messages)
    assert "mounted" not in agent.window().breakdown
    project.handoff(agent)
    assert ["project"] == list(agent.mounts())


def test_two_that_mount_each_other(engine: Engine) -> None:
    """Sessions that show each other do not go round in circles: what is shown is never what the other one is shown."""
    first, second = engine.session("first"), engine.session("second")
    talk(first, 2)
    talk(second, 2, first=50)
    first.mount(second)
    second.mount(first)
    for _ in range(3):
        for session, other in ((first, "second"), (second, "first")):
            session.append(user("again"))
            text = shown(session.window())
            assert f"[{other}/usr-1]" in text
            assert f"{other}/{session.id}" not in text
            session.append(assistant("Yes."))
