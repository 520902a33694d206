"""Segments: which there are, what they permit the model, and that they last."""

import pytest

from memci.archive.contents.tree import Permission, Segment
from memci.archive.stores.memory import MemoryStore
from memci.engine.session import Session
from memci.engine.tree.segments import Action, permits, refuse
from memci.errors import ArgumentError, MemciError, PageNotFoundError, PermissionDeniedError
from tests.engine.sessions import open_session, talk

READING: tuple[Action, ...] = ("read", "recall", "open", "close")
EDITING: tuple[Action, ...] = ("write", "group", "move", "update", "remove", "restore")


@pytest.fixture
def session() -> Session:
    session = open_session(active={"min_pages": 1})
    talk(session, 4)
    return session


def names(session: Session) -> list[str]:
    return [segment.name for segment in session.segments()]


def test_a_segment_has_a_root(session: Session) -> None:
    """A segment that is added stands after those that are always there, and its root is a page without messages."""
    assert "lessons-0" == session.add_segment("lessons", "notes of mine", "read_write", 500)
    assert ["sys", "usr", "lessons"] == names(session)
    assert Segment("lessons", "notes of mine", Permission.READ_WRITE, 500) == session.segments()[-1]
    assert ("lessons-0", []) == ((root := session.page("lessons-0")).index, root.messages)


def test_a_segment_that_is_there_gets_other_settings(session: Session) -> None:
    """Adding it again changes permission and capacity and keeps its type; the same settings are no event."""
    session.add_segment("lessons", "notes of mine", "read_write", 500)
    session.add_segment("lessons")
    assert Segment("lessons", "notes of mine") == session.segments()[-1]
    session.add_segment("usr", permission="read_write")
    before = session.seq
    session.add_segment("usr", permission="read_write")
    assert (before, ["sys", "usr", "lessons"]) == (session.seq, names(session))


@pytest.mark.parametrize(
    "given",
    [
        {"name": "note"},
        {"name": "Lessons"},
        {"name": "7up"},
        {"name": "a-b"},
        {"name": ""},
        {"name": "x" * 33},
        {"name": 7},
        {"name": "own", "type": "two\nlines"},
        {"name": "own", "permission": "write"},
        {"name": "own", "capacity_tokens": 0},
        {"name": "own", "capacity_tokens": True},
    ],
)
def test_what_is_no_segment_is_refused(session: Session, given: dict[str, object]) -> None:
    """A name that no index can have, and settings that there are not, are errors that say what to give; nothing is written."""
    before = session.seq
    with pytest.raises(ArgumentError, match="give"):
        session.add_segment(**given)  # type: ignore[arg-type]
    assert before == session.seq


@pytest.mark.parametrize("root", ["own-0", "note-0"])
def test_a_root_of_no_segment_is_no_page(session: Session, root: str) -> None:
    """The root of a segment that nobody added is not found; that of one that is there is not to be changed."""
    for command in (session.page, session.facts, session.recall, session.pin, session.erase):
        with pytest.raises(PageNotFoundError):
            command(root)
    session.add_segment("own")
    with pytest.raises(PermissionDeniedError):
        session.erase("own-0")


def test_segments_last() -> None:
    """They are there after the session was opened again, in a fork, and after a checkpoint that was made with them."""
    store = MemoryStore()
    session = open_session(store)
    talk(session, 2)
    before = session.checkpoint("before")
    session.add_segment("lessons", permission="read_write", capacity_tokens=9)
    session.close()
    session = open_session(store)
    assert Segment("lessons", "", Permission.READ_WRITE, 9) == session.segments()[-1]
    session.restore_checkpoint(before.id)
    assert ["sys", "usr"] == names(session)


@pytest.mark.parametrize("permission", list(Permission))
def test_a_permission_binds_the_model(session: Session, permission: Permission) -> None:
    """Read-only is to be read, read-write to be edited, system-managed to be looked at; the application may do everything."""
    session.add_segment("own", permission=permission)
    core = session._core
    allowed = {Permission.READ_ONLY: READING, Permission.READ_WRITE: READING + EDITING, Permission.SYSTEM_MANAGED: ()}[permission]
    for action in READING + EDITING:
        refuse(core, "application", action, "own-0", "usr-1")
        assert (action in allowed) == permits(core, action, "own-0")
        if action in allowed:
            refuse(core, "model", action, "own-0")
            continue
        with pytest.raises(PermissionDeniedError, match=f"{action} 'own-0': the segment own is {permission}"):
            refuse(core, "model", action, "own-0")


def test_both_ends_are_checked(session: Session) -> None:
    """Where either end does not permit an edit, the model is told where edits are permitted."""
    session.add_segment("own", permission="read_write")
    for indexes in (("own-0", "usr-1"), ("usr-1", "own-0"), ("usr-1..3",)):
        with pytest.raises(PermissionDeniedError, match="edit is in own-0"):
            refuse(session._core, "model", "move", *indexes)


def test_an_index_of_nothing_is_not_found(session: Session) -> None:
    """A note or a segment that is not there is said to be none, and is no crash."""
    for index in ("note-1", "own-3", "own-0"):
        with pytest.raises(MemciError, match="is no page"):
            refuse(session._core, "model", "read", index)


def test_opened_pages_have_half_of_the_capacity() -> None:
    """The least recently used page of the segment fades for another one; a page larger than the half is not attached."""
    session = open_session(active={"min_pages": 1})
    talk(session, 8)
    session.fold("all")
    session.recall(1)
    block = session._core.state.recalled.attachments["usr-1"].tokens
    session.add_segment("usr", capacity_tokens=5 * block)
    session.recall(2)
    session.recall(3)
    assert ["usr-2", "usr-3"] == list(session._core.state.recalled.attachments)
    session.add_segment("usr", capacity_tokens=2 * block + 2)
    assert ["usr-3"] == list(session._core.state.recalled.attachments)
    session.add_segment("usr", capacity_tokens=block)
    assert [] == list(session._core.state.recalled.attachments)
    assert session.recall(4).messages
    assert [] == list(session._core.state.recalled.attachments)


def test_what_is_open_closes_where_its_new_segment_has_no_room_for_it(session: Session) -> None:
    """A page that moves into a segment takes of its capacity at once, by itself, in a directory or because an edit is undone."""
    session.add_segment("small", capacity_tokens=100)
    note = session.create_detail_page("Rule", "", "more " * 200)
    directory = session.create_contents_page("Rules", "", None, [note])
    for move in (
        lambda: session.move_page(note, "small-0"),
        lambda: session.move_page(directory, "small-0"),
        lambda: session.create_contents_page("Few", "", "small-0", [note]),
    ):
        session.expand_details(note)
        assert note in session._core.state.recalled
        move()
        assert note not in session._core.state.recalled
        session.undo_edit()
    session.move_page(note, "small-0")
    session.move_page(note, directory)
    session.expand_details(note)
    session.undo_edit()
    assert note not in session._core.state.recalled


def test_a_root_lists_no_page_of_the_conversation_but_its_own(session: Session) -> None:
    """A page of the conversation goes into a directory of another segment; where it goes to its root, that is said."""
    session.add_segment("own")
    with pytest.raises(ArgumentError, match="a directory of own"):
        session.move_page(1, "own-0")
    made = session.create_contents_page("Kept", parent="own-0")
    session.move_page(1, made)
    assert ("own-1", "own-1") == (made, session.facts(1).parent)
    assert "own" == session._core.state.tree.segment("usr-1").name


@pytest.mark.parametrize("notes", [0, 3])
def test_lines_have_half_of_the_capacity(notes: int) -> None:
    """The lines of the conversation and of what was made at its root take half of its capacity, those of other segments more."""
    session = open_session(active={"min_pages": 1})
    talk(session, 30)
    for name in ("usr", "own"):
        session.add_segment(name, capacity_tokens=2_000)
        for number in range(notes):
            session.create_detail_page(f"Note {number}", "What this note is about, in some words", "Text", f"{name}-0")
    session.fold("all")
    own, rest = split_by(session, "own-0")
    count = session._core.counter.count
    assert sum(count(line) for line in rest) <= 1_000
    assert 3 < len(rest)
    assert notes == len([line for line in own if "Note" in line])
    session.add_segment("own", capacity_tokens=40)
    session.fold()
    assert sum(count(line) for line in split_by(session, "own-0")[0]) <= 20
    assert session.facts(3).index in {hit.index for hit in session.search("ask3x2")}


def split_by(session: Session, root: str) -> tuple[list[str], list[str]]:
    """Return the lines of the contents page as the window shows it: those of what is listed at a root, and the others."""
    (block,) = [text for text in map(str, (m["content"] for m in session.window().messages)) if "Contents of earlier" in text]
    children = {facts.index for facts in session.get_children(root)}
    found: tuple[list[str], list[str]] = ([], [])
    is_own = False
    for line in block.splitlines()[1:]:
        is_own = line[1:].partition("]")[0] in children or root in line if line.startswith("[") else is_own
        found[0 if is_own else 1].append(line)
    return found
