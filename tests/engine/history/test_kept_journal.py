"""A journal as it was written before records left out what has its default: each of its windows is what it was."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.engine.sessions import config_of
from tests.engine.wire import assistant, user

KEPT = Path(__file__).parent / "kept"
"""``journal.jsonl`` has folds, late results, recalls, a fold undone, a checkpoint restored, a rewind and an erased page."""

SETTINGS = {
    "budget": {"window": 1_500, "reserve": 0},
    "active": {"min_pages": 2},
    "contents": {"max_tokens": 300},
    "recall": {"passages_tokens": 0},
    "snapshot_every": 20,
}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Return the session of the kept journal; its page files are made again."""
    directory = tmp_path / "default" / "chat"
    directory.mkdir(parents=True)
    shutil.copyfile(KEPT / "journal.jsonl", directory / "journal.jsonl")
    engine = Engine(FileStore(tmp_path, "flush"), config_of(**SETTINGS))
    engine.repair("chat", apply=True)
    return engine.session("chat")


def windows(session: Session, until: int) -> list[str]:
    return [sha256(session.render(at=seq).to_json()).hexdigest()[:8] for seq in range(1, 3 * until, 3)]


@pytest.mark.slow
def test_the_windows_of_a_kept_journal_are_what_they_were(session: Session) -> None:
    """Each third window of a journal of older records is byte-equal, and stays so when the session goes on and folds."""
    expected = json.loads((KEPT / "windows.json").read_text(encoding="ascii"))
    assert expected == windows(session, len(expected))
    for number in range(20):
        session.append(user(f"The new invoice number {number} goes to Marwen on Friday."))
        session.window()
        session.append(assistant(f"Marwen has the invoice number {number} from the northern office."))
    session.fold("all")
    shown = session.window().to_json()
    assert expected == windows(session, len(expected))
    assert shown == session.render(at=session.seq).to_json()
    assert () == session.verify().problems


@pytest.mark.slow
def test_a_page_of_a_kept_journal_is_erased(session: Session) -> None:
    """Older records lose what an erased page held, and the windows before and after it are there."""
    word = "39220"
    index = session.search(word)[0].index
    session.window()
    session.fold("all")
    session.erase(index)
    assert all(word not in session.render(at=seq).to_json().decode() for seq in range(1, session.seq + 1))
    assert () == session.verify().problems


def test_settings_that_a_kept_journal_does_not_name_yet_are_in_force(session: Session, tmp_path: Path) -> None:
    """An engine that only reads finds its own settings in a journal that lacks the keys which came later."""
    del session
    config = config_of(**SETTINGS)
    with Engine(FileStore(tmp_path, "flush"), config, read_only=True) as engine, engine.session("chat") as read:
        assert "listed" not in json.loads((KEPT / "journal.jsonl").read_bytes().splitlines()[0])["body"]["config"]["contents"]
        assert read.config.policy_mapping() == config.policy_mapping()
        assert read.window().to_json() == read.render(at=read.seq).to_json()
