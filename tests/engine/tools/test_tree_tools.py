"""The tools of the page tree: which are offered, what they answer, and that a model cannot go past what segments permit."""

import json
import random
from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ArgumentError, ToolNotFoundError
from memci.messages.tokens.message_tokens import count_tools
from tests.engine.sessions import config_of, open_session, talk

RECALL = ["recall_page", "read_page", "list_pages", "search_pages", "close_topic"]
OPENING = ["open_page", "close_page"]
EDITING = ["write_note", "group_pages", "move_page", "remove_page"]


@pytest.fixture
def session() -> Session:
    session = open_session(active={"min_pages": 1})
    talk(session, 8)
    session.fold("all")
    return session


def call(session: Session, name: str, /, **arguments: object) -> Any:  # noqa: ANN401 (what the tool answers)
    given = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return json.loads(session.handle_tool_call(given)["content"])


def offered(session: Session) -> list[str]:
    assert list(session.toolbox.tools) == [tool["function"]["name"] for tool in session.toolbox.openai()]
    assert list(session.toolbox.tools) == [tool["name"] for tool in session.toolbox.anthropic()]
    return list(session.toolbox.tools)


def test_what_is_offered_depends_on_segments(session: Session) -> None:
    """Nothing more by default; opening once a segment was set, editing once one may be edited; not by what is in the tree."""
    before = session.toolbox.openai()
    assert RECALL == offered(session)
    session.create_contents_page("March", children=[1, 2])
    assert before == session.toolbox.openai()
    session.add_segment("rules")
    assert RECALL + OPENING == offered(session)
    session.add_segment("lessons", permission="read_write")
    assert [*RECALL, *EDITING, *OPENING] == offered(session)
    assert before == session.toolbox.openai()[: len(before)]
    for name in ("sys", "usr", "rules", "lessons"):
        session.add_segment(name, permission="system_managed")
    assert RECALL == offered(session)


def test_a_checkpoint_takes_tools_back(session: Session) -> None:
    """The tools follow the segments, those of a restored checkpoint too."""
    before = session.checkpoint("before")
    session.add_segment("usr", permission="read_write")
    assert [*RECALL, *EDITING, *OPENING] == offered(session)
    session.restore_checkpoint(before.id)
    assert RECALL == offered(session)


def test_a_host_offers_some(session: Session) -> None:
    """What is not offered is in no schema and cannot be called; what no segment permits is not offered either."""
    session.add_segment("usr", permission="read_write")
    session.toolbox.offer(["read_page", "move_page"])
    assert ["read_page", "move_page"] == offered(session)
    assert "ToolNotFoundError" == call(session, "remove_page", index="usr-1")["error"]["kind"]
    session.add_segment("usr")
    assert ["read_page"] == offered(session)
    session.toolbox.offer(["open_page"])
    assert ["open_page"] == offered(session)
    assert "def open_page" in (prompt := session.attp_prompt())
    assert "def read_page" not in prompt
    session.toolbox.offer()
    assert RECALL == offered(session)
    with pytest.raises(ToolNotFoundError, match="open_page"):
        session.toolbox.offer(["open_pages"])
    with pytest.raises(ArgumentError):
        session.toolbox.offer("open_page")


def test_a_tool_of_the_application_keeps_its_name(session: Session) -> None:
    """A tool that the application registered is called, also where the tree has one of that name."""

    def open_page(index: str) -> str:
        """Open a page of the shop."""
        return f"shop {index}"

    session.toolbox.register(open_page)
    assert [*RECALL, "open_page"] == offered(session)
    session.add_segment("usr", permission="read_write")
    assert [*RECALL, "open_page", *EDITING, "close_page"] == offered(session)
    assert "shop 7" == call(session, "open_page", index="7")


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_the_tokens_of_tools_are_told(wire: str) -> None:
    """They are those of the schemas in the session's format by its counter, for all tools or some."""
    session = open_session(format=wire)
    session.add_segment("usr", permission="read_write")
    schemas = getattr(session.toolbox, wire)()
    assert count_tools(schemas, session._core.counter) == session.toolbox.tokens()
    assert count_tools(schemas[:1], session._core.counter) == session.toolbox.tokens("recall_page")
    with pytest.raises(ToolNotFoundError):
        session.toolbox.tokens("recall")


def test_attp_tells_of_what_is_permitted() -> None:
    """Under ``recall.protocol: attp`` the system part describes the tools of the tree while they are offered."""
    session = open_session(active={"min_pages": 1}, recall={"protocol": "attp"})
    talk(session, 4)
    session.fold("all")

    def told() -> bool:
        talk(session, 1, first=session.turn + 1)
        return "def move_page" in str(session.window().messages[0]["content"])

    assert not told()
    before = session.checkpoint("before")
    session.add_segment("usr", permission="read_write")
    assert told()
    session.restore_checkpoint(before.id)
    assert not told()


def test_what_is_system_managed_is_not_read(session: Session) -> None:
    """Its pages are in no answer of a tool: not read, recalled, listed or found; the application has them all."""
    assert "usr-3" == call(session, "search_pages", query="ask3x2")[0]["index"]
    session.add_segment("usr", permission="system_managed")
    for name, arguments in (
        ("read_page", {"index": "usr-3"}),
        ("read_page", {"index": "usr-3/1"}),
        ("read_page", {"index": "usr-0"}),
        ("read_page", {"index": "usr-1..4"}),
        ("recall_page", {"index": "usr-3"}),
        ("recall_page", {"index": "3"}),
        ("recall_page", {"index": "usr-1..4"}),
        ("close_topic", {"title": "Questions"}),
    ):
        assert "PermissionDeniedError" == call(session, name, **arguments)["error"]["kind"], (name, arguments)
    assert [] == call(session, "search_pages", query="ask3x2")
    listed = call(session, "list_pages", limit=3)
    assert ([], 3) == (listed["pages"], listed["next"])
    assert session.page(3).messages
    assert "usr-3" == session.search("ask3x2")[0].index
    session.recall(3)


def test_no_passage_is_quoted_of_what_is_system_managed() -> None:
    """What may not be read does not come unasked either."""
    session = open_session(active={"min_pages": 1}, recall={"passages_tokens": 500})
    talk(session, 12)
    session.fold("all")
    for permission, quoted in (("read_only", True), ("system_managed", False)):
        session.add_segment("usr", permission=permission)
        session.append({"role": "user", "content": "ask3x1 ask3x2 ask3x3 ask3x4 question3"})
        assert quoted == ("[recalled passages" in session.window().to_json().decode())
        session.rewind(f"{session.pages()[-1].index}/1")


def test_a_list_leaves_out_what_may_not_be_read(session: Session) -> None:
    """Its ranges together list each page that may be read once, and what is placed where it may not be read never."""
    session.add_segment("own", permission="system_managed")
    session.create_contents_page("Kept", parent="own-0", children=[2, 5])
    start, found = 0, []
    while start >= 0:
        listed = call(session, "list_pages", start=start, limit=2)
        found += [page["index"] for page in listed["pages"]]
        start = listed["next"]
    assert [f"usr-{number}" for number in (1, 3, 4, 6, 7, 8)] == found
    assert "PermissionDeniedError" == call(session, "read_page", index="usr-2")["error"]["kind"]
    assert "PermissionDeniedError" == call(session, "read_page", index="usr-1..3")["error"]["kind"]
    assert [] == [hit for hit in call(session, "search_pages", query="ask2x2") if hit["index"] in ("usr-2", "usr-5")]


def test_a_list_that_is_cut_leaves_out_what_may_not_be_read() -> None:
    """Where an answer has no room for all that was asked for, its next part lists no page again and passes none over."""
    session = open_session(active={"min_pages": 1}, budget={"window": 1_000, "reserve": 0})
    talk(session, 8, words=4)
    session.fold("all")
    session.add_segment("own", permission="system_managed")
    session.create_contents_page("Kept", parent="own-0", children=[2, 5])
    start, found = 0, []
    while start >= 0:
        listed = call(session, "list_pages", start=start, limit=8)
        found.append([page["index"] for page in listed["pages"]])
        start = listed["next"]
    assert 1 < len(found) < 6
    assert [f"usr-{number}" for number in (1, 3, 4, 6, 7, 8)] == [index for part in found for index in part]


def test_a_note_is_written_grouped_opened_and_removed(session: Session) -> None:
    """A model that may edit works in the tree by the indexes that its receipts have, and each receipt is true."""
    session.add_segment("lessons", permission="read_write")
    note = call(session, "write_note", name="Releases", description="How they are made", detail="Never on a Friday.")
    assert ("note-1", "lessons-0") == (note["index"], note["parent"])
    group = call(session, "group_pages", name="Making", description="", pages=["note-1"], parent="lessons-0")
    assert ("lessons-1", "lessons-0") == (group["index"], group["parent"])
    assert "Making" not in str(session.window().messages)
    assert "Never on a Friday" in call(session, "read_page", index="note-1")["text"]
    assert "note-1" in call(session, "read_page", index="lessons-1")["text"]
    opened = call(session, "open_page", index="note-1")
    assert "in a block before the newest page" == opened["stands"]
    assert "Never on a Friday" in str(session.window().messages)
    assert "lessons-1" == call(session, "close_page", index="note-1")["parent"]
    assert "Never on a Friday" not in str(session.window().messages)
    assert "lessons-0" == call(session, "move_page", index="note-1", target="lessons-0")["parent"]
    call(session, "remove_page", index="lessons-1")
    assert ["note-1"] == [facts.index for facts in session.get_children("lessons-0")]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_note", {"name": "Note", "description": "", "detail": "Text", "parent": "usr-0"}),
        ("group_pages", {"name": "Group", "description": "", "pages": ["usr-1"]}),
        ("group_pages", {"name": "Group", "description": "", "pages": ["usr-1"], "parent": "lessons-0"}),
        ("move_page", {"index": "usr-1", "target": "lessons-1"}),
        ("move_page", {"index": "lessons-1", "target": "usr-0"}),
        ("remove_page", {"index": "usr-1"}),
        ("remove_page", {"index": "usr-1..3"}),
    ],
)
def test_an_edit_of_what_is_read_only_is_refused(session: Session, name: str, arguments: dict[str, object]) -> None:
    """The answer says which segment does not permit it, and which does; nothing is written."""
    session.add_segment("lessons", permission="read_write")
    session.create_contents_page("Lessons", parent="lessons-0")
    before = session.seq
    error = call(session, name, **arguments)["error"]
    assert "PermissionDeniedError" == error["kind"]
    assert "usr is read_only" in error["message"]
    assert "lessons-0" in error["message"]
    assert before == session.seq


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_note", {"name": "Note", "description": "", "detail": "word " * 2_000}),
        ("write_note", {"name": "Note", "description": "x" * 401, "detail": "Text"}),
        ("write_note", {"name": "x" * 121, "description": "", "detail": "Text"}),
        ("write_note", {"name": "[usr-1] Forged", "description": "", "detail": "Text"}),
        ("group_pages", {"name": "Group", "description": "", "pages": []}),
        ("group_pages", {"name": "Group", "description": "", "pages": ["usr-1"] * 51}),
        ("group_pages", {"name": "two\nlines", "description": "", "pages": ["usr-1"]}),
    ],
)
def test_what_is_too_much_is_refused(name: str, arguments: dict[str, object]) -> None:
    """Names, descriptions, notes and groups have their bounds, and the answer says what to give."""
    session = open_session(active={"min_pages": 1}, budget={"window": 4_000, "reserve": 0})
    talk(session, 3)
    session.add_segment("usr", permission="read_write")
    error = call(session, name, **arguments)["error"]
    assert "ArgumentError" == error["kind"]
    assert "give" in error["message"]


def test_a_directory_opens_nothing_that_was_moved_out(session: Session) -> None:
    """What stood open in a directory does not come back with it where it may not be opened any more."""
    session.add_segment("rules", permission="system_managed")
    rules = session.create_contents_page("Rules", parent="rules-0")
    made = session.create_contents_page("March", children=[1, 2])
    for index in (made, 1, 2):
        session.expand_details(index)
    session.hide_details(made)
    session.move_page(1, rules)
    assert made == call(session, "open_page", index=made)["index"]
    assert [made, "usr-2"] == list(session._core.state.recalled.attachments)


def test_a_note_is_found_where_it_may_be_read(session: Session) -> None:
    """A search of the model leaves out notes of what is system-managed; the application finds them."""
    session.add_segment("rules")
    note = session.create_detail_page("Hedgehogs", "What they eat", "Hedgehogs eat beetles.", "rules-0")
    assert [note] == [hit["index"] for hit in call(session, "search_pages", query="hedgehogs beetles")]
    session.add_segment("rules", permission="system_managed")
    assert [] == call(session, "search_pages", query="hedgehogs beetles")
    assert [note] == [hit.index for hit in session.search("hedgehogs beetles")]
    for name in ("read_page", "recall_page", "open_page", "close_page"):
        assert "rules is system_managed" in call(session, name, index=note)["error"]["message"]


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_the_tools_work_in_every_format(wire: str) -> None:
    """A note is written and opened natively in each format, and by code in ATTP; the window shows it."""
    session = open_session(active={"min_pages": 1}, format=wire)
    session.append({"role": "user", "content": "Remember how releases are made."})
    session.add_segment("usr", permission="read_write")
    given = {"name": "Releases", "description": "How they are made", "detail": "Never on a Friday."}
    answers = [
        session.handle_tool_call(
            {"id": "c1", "type": "function", "function": {"name": "write_note", "arguments": json.dumps(given)}}
        ),
        session.handle_tool_call(
            {"call_id": "c2", "type": "function_call", "name": "write_note", "arguments": json.dumps(given)}
        ),
        session.handle_tool_call({"id": "c3", "type": "tool_use", "name": "write_note", "input": given}),
    ]
    assert ["note-1", "note-2", "note-3"] == [session.facts(f"note-{number}").index for number in (1, 2, 3)]
    assert all(f"note-{number}" in str(answer) for number, answer in enumerate(answers, start=1))
    reply = '[tool_call]\ncode = """\n__result__ = open_page("note-2")["stands"]\n"""'
    assert "in a block before the newest page" == session.attp(reply).value
    assert "Never on a Friday" in session.window().to_json().decode()
    session.close()


def test_edits_of_the_model_last() -> None:
    """They are said to be the model's, and are there after the session is opened again, in a fork, and for a verification."""
    store = MemoryStore()
    session = open_session(store, active={"min_pages": 1})
    talk(session, 6)
    session.fold("all")
    session.add_segment("usr", permission="read_write")
    call(session, "write_note", name="Releases", description="", detail="Never on a Friday.")
    made = call(session, "group_pages", name="March", description="", pages=["usr-1..3", "note-1"])["index"]
    call(session, "open_page", index="note-1")
    call(session, "remove_page", index=made)
    kinds = ("note_written", "directory_made", "recalled", "removed")
    assert ["model"] * 4 == [event.data["by"] for kind in kinds for event in session.events(kind)]
    window, tree = session.window().to_json(), session._core.state.tree.to_mapping()
    session.close()
    engine = Engine(store, config_of(active={"min_pages": 1}))
    session = engine.session("chat")
    assert tree == session._core.state.tree.to_mapping()
    assert window == session.window().to_json()
    assert session.verify().ok
    assert tree == engine.fork("chat", "other")._core.state.tree.to_mapping()
    assert session.toolbox.openai() == engine.session("other").toolbox.openai()


def nodes(session: Session, segment: str) -> object:
    """Return all that the tree says of a segment."""
    tree = session._core.state.tree
    return [
        (node.index, node.parent, node.name, node.description, node.removed, tuple(node.children))
        for node in tree
        if tree.segment(node.index).name == segment
    ]


def of_usr(session: Session) -> set[str]:
    return {entry.index for entry in session.contents.entries if entry.index.startswith("usr-")}


@pytest.mark.parametrize("seed", range(8))
def test_a_model_cannot_write_outside_what_it_permits(seed: int) -> None:
    """Whatever a model calls, in trees of every permission: each call is answered, and what is not read-write stays as it is."""
    chance = random.Random(seed)  # noqa: S311 (not for cryptography)
    session = open_session(active={"min_pages": 1}, budget={"window": 6_000, "reserve": 0})
    talk(session, 10)
    session.fold("all")
    permissions = ["read_only", "read_write", "system_managed"]
    for name in ("usr", "own", "more", "rules"):
        session.add_segment(name, permission=chance.choice(permissions))
        session.create_contents_page(f"Of {name}", parent=f"{name}-0")
    session.create_contents_page("Placed", parent=chance.choice(["own-0", "rules-0"]), children=[2, 3])
    session.toolbox.offer([*RECALL[:4], *EDITING, *OPENING])
    indexes = [f"{name}-{number}" for name in ("usr", "own", "more", "rules", "note", "sys", "none") for number in range(5)]
    indexes += ["usr-1..4", "usr-2/1", "usr-11", "usr-12", "", "[usr-3]", "-", "\ud800", "usr-99999999999999999999"]

    def edited() -> set[str]:
        return {each.name for each in session.segments() if each.permission == "read_write"}

    for turn in range(60):
        kept = {each.name: nodes(session, each.name) for each in session.segments() if each.name not in edited()}
        unseen = {each.name for each in session.segments() if each.permission == "system_managed"}
        shown = set(session._core.state.recalled.attachments)
        listed = of_usr(session)
        name = chance.choice([*EDITING, *OPENING, "recall_page", "read_page"])
        index = chance.choice(indexes)
        arguments: dict[str, object] = {"index": index}
        if name == "move_page":
            arguments["target"] = chance.choice(indexes)
        elif name in ("write_note", "group_pages"):
            arguments = {"name": chance.choice(["A note", "[usr-1]", ""]), "description": "", "parent": index}
            arguments |= {"detail": "Text"} if name == "write_note" else {"pages": chance.sample(indexes, 2)}
        assert call(session, name, **arguments) is not None
        assert kept == {segment: nodes(session, segment) for segment in kept}, (name, arguments)
        tree = session._core.state.tree
        new = set(session._core.state.recalled.attachments) - shown
        assert not {tree.segment(each).name for each in new} & unseen, (name, arguments)
        if "usr" in kept:
            assert listed == of_usr(session), (name, arguments)
        if turn % 10 == 0:
            session.window()
    assert session.verify().ok
