"""Erasing a note: what it says, its name and its description are left nowhere, and the tree keeps its shape."""

from pathlib import Path

import pytest

from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import PageNotFoundError
from tests.engine.erasure.test_erasing import WORD, left_in, open_on
from tests.engine.sessions import config_of, talk
from tests.engine.wire import user

HISTORIES = [
    "",
    "fold",
    "recall",
    "recall fade",
    "move",
    "move open",
    "move fold open close",
    "rename",
    "rename undo",
    "rename checkpoint undo back",
    "move open checkpoint fade back",
    "checkpoint recall fold back",
    "remove",
    "remove return",
    "pin rewind",
    "quote",
]


def do(session: Session, note: str, directory: str, step: str) -> None:  # noqa: C901, PLR0912 (one branch a step)
    match step:
        case "fold":
            session.fold("all")
        case "recall":
            session.recall(note)
        case "fade":
            session.fade(note)
        case "move":
            session.move_page(note, directory)
        case "open":
            session.expand_details(directory)
        case "close":
            session.hide_details(directory)
        case "rename":
            session.update_page(note, name=f"The {WORD} again", description=f"more {WORD}")
        case "undo":
            session.undo_edit()
        case "checkpoint":
            session.checkpoint("here")
        case "back":
            session.restore_checkpoint("cp-1")
        case "remove":
            session.remove_page(note)
        case "return":
            session.restore(note)
        case "pin":
            session.pin(note)
        case "rewind":
            session.rewind("usr-6/1")
        case "quote":
            session.fold("all")
            session.append(user("who is the keeper at the office?"))
    session.window()


@pytest.mark.parametrize("history", HISTORIES)
def test_nothing_is_left(tmp_path: Path, history: str) -> None:
    """No file holds a word of it, whatever came of it; earlier windows can be rendered, and the session is as it must be."""
    with open_on(tmp_path, recall={"passages_tokens": 200}) as session:
        talk(session, 7)
        directory = session.create_contents_page("Lessons")
        note = session.create_detail_page(f"On {WORD}", f"what {WORD} is", f"its keeper is the {WORD} office")
        other = session.create_detail_page("Another", "one", "that stays", directory)
        for step in history.split():
            do(session, note, directory, step)
        at, removed = session.seq, session.facts(note).state
        assert left_in(tmp_path)
        receipt = session.erase(note)
        assert note in receipt.files
        assert [] == left_in(tmp_path)
        assert () == session.verify().problems
        assert removed == session.facts(note).state
        assert WORD not in "".join(str(session.render(seq).messages) for seq in range(1, at + 1))
        assert [{"role": "user", "content": "[erased]"}] == session.page(note).messages
        assert [{"role": "user", "content": "that stays"}] == session.page(other).messages
        assert [] == session.search(WORD)
    with open_on(tmp_path) as session:
        talk(session, 2, first=8)
        session.fold("all")
        assert [] == left_in(tmp_path)
        assert () == session.verify().problems


def test_its_line_says_so(tmp_path: Path) -> None:
    """The contents page lists the note as erased, without a description."""
    with open_on(tmp_path) as session:
        talk(session, 3)
        note = session.create_detail_page(f"On {WORD} and much else", f"what {WORD} is", WORD)
        session.fold("all")
        session.erase(note)
        assert f"[{note}] [erased] · note" in session.contents.render()
        assert [("[erased]", 3)] == [(facts.title, facts.turn) for facts in session.notes()]
        session.update_page(note, name="A new name")
        assert "A new name" == session.facts(note).title


def test_a_directory_loses_its_name(tmp_path: Path) -> None:
    """Erasing a directory that was made takes its name and description; what is in it stays."""
    with open_on(tmp_path) as session:
        talk(session, 3)
        directory = session.create_contents_page(f"On {WORD}", f"what {WORD} is")
        note = session.create_detail_page("Note", "", "that stays", directory)
        session.fold("all")
        session.expand_details(directory)
        session.window()
        session.erase(directory)
        assert [] == left_in(tmp_path)
        assert [note] == [facts.index for facts in session.get_children(directory)]
        assert () == session.verify().problems


def test_a_note_that_there_is_not(tmp_path: Path) -> None:
    """Erasing no note is refused."""
    with open_on(tmp_path) as session:
        talk(session, 1)
        with pytest.raises(PageNotFoundError):
            session.erase("note-1")


def test_forks_are_named_and_erased(tmp_path: Path) -> None:
    """A fork that was made after the note holds it, is named and can be erased too; one made before it has none."""
    engine = Engine(f"file:{tmp_path}", config_of())
    with engine.session("chat") as session:
        talk(session, 3)
        engine.fork("chat", "before").close()
        note = session.create_detail_page(f"On {WORD}", "", WORD)
        engine.fork("chat", "after").close()
        receipts = engine.erase("chat", note, forks=True)
    assert ["chat", "after"] == [receipt.session for receipt in receipts]
    assert [] == left_in(tmp_path)
    with engine.session("after") as fork:
        assert () == fork.verify().problems
