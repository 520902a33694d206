"""Erasing a page that was another one at a checkpoint: what is brought back is erased, and agrees with the journal."""

from pathlib import Path

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, calling, result, user

WORD = "zanzibarprotocol"


def do(session: Session, step: str) -> None:  # noqa: C901, PLR0912 (one branch a step)
    """Do one thing with the second page, as it is told in a word."""
    match step:
        case "fold":
            session.fold("all")
            assert session.page(2).chapter is not session._core.state.active
        case "squeeze":  # folds a page whose call waits for its result
            session.window(budget=session.window().tokens // 2)
            assert session.page(2).chapter is not session._core.state.active
        case "undo":
            session.undo_fold()
        case "recall":
            session.recall(2)
        case "evict":
            session.evict(2)
        case "restore":
            session.restore(2)
        case "rewind":
            session.rewind("usr-2/4")
        case "rewind-before":
            session.rewind("usr-1/2")
        case "say":
            session.extend([assistant(f"another {WORD}"), user("on"), assistant("yes")])
        case "late":
            session.append(result("late", f"found {WORD}"))
            session.append(user("thanks"))
        case "checkpoint":
            session.checkpoint("here")
        case "first" | "second":
            session.restore_checkpoint(session.checkpoints()[("first", "second").index(step)].id)
        case "erase":
            session.erase(2)


HISTORIES = [
    "fold checkpoint undo erase first",
    "fold checkpoint undo fold erase first",
    "fold checkpoint undo erase first erase first",
    "fold checkpoint undo checkpoint erase first second first",
    "fold checkpoint undo checkpoint erase first fold second erase first",
    "fold checkpoint rewind erase first",
    "fold checkpoint rewind say fold erase first",
    "fold checkpoint rewind say fold checkpoint erase first second",
    "fold checkpoint rewind-before erase first",
    "checkpoint fold checkpoint rewind-before first fold erase second",
    "squeeze checkpoint late fold erase first",
    "squeeze late checkpoint fold erase first fold",
    "squeeze late checkpoint fold checkpoint erase first second",
    "squeeze late fold checkpoint undo erase first",
    "squeeze checkpoint late fold undo fold erase first",
    "squeeze late fold evict restore checkpoint rewind-before erase first",
    "fold recall checkpoint undo erase first",
    "fold evict checkpoint restore erase first restore",
    "fold evict restore checkpoint rewind-before erase first",
]


@pytest.mark.parametrize("history", HISTORIES)
def test_a_checkpoint_from_before(tmp_path: Path, history: str) -> None:
    """What a checkpoint brings back says that it was erased; page file, facts and snapshots are what the journal makes."""
    with Engine(f"file:{tmp_path}", config_of(active={"min_pages": 1})) as engine, engine.session("chat") as session:
        talk(session, 1)
        session.extend([user(f"what of {WORD}?"), calling("c"), result("c", WORD), assistant(WORD)])
        session.extend([calling("late"), assistant("later " * 2_500)] if "late" in history else [])
        talk(session, 4, first=3, words=30)
        erased = False
        for step in history.split():
            do(session, step)
            erased |= step == "erase"
            if erased:
                assert () == session.verify().problems
        assert [] == [str(path) for path in tmp_path.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
        assert "[erased]" == session.page(2).messages[0]["content"]
        archived = session.facts(2).state not in (PageState.OPEN, PageState.ACTIVE)
        assert archived == bool(session.facts(2).sha256)
