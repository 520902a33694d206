"""Erasing a page in the forks that took it over, whatever became of those between."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memci.engine.engine import Engine
from memci.errors import CorruptError, ErasureError, StoreError
from tests.engine.sessions import config_of, talk, turn
from tests.engine.wire import assistant, user

WORD = "zanzibarprotocol"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(f"file:{tmp_path}", config_of(active={"min_pages": 2})) as engine:
        with engine.session("chat") as session:
            talk(session, 1)
            session.extend([user(f"what of {WORD}?"), assistant(WORD)])
            talk(session, 1, first=3)
        yield engine


def holders(root: Path) -> list[str]:
    """Return the sessions in whose files the word is left."""
    found = (path for path in root.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes())
    return sorted({path.relative_to(root).parts[1] for path in found})


def damage(root: Path, session: str) -> None:
    journal = root / "default" / session / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40] + b"?" + journal.read_bytes()[-39:])


def cut_short(root: Path, session: str) -> None:
    """Leave a fork as it is when its process dies before the last record."""
    journal = root / "default" / session / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))


def test_a_fork_of_a_deleted_fork(tmp_path: Path, engine: Engine) -> None:
    """A fork is found by where it comes from, also where the forks between were deleted."""
    for source, fork in (("chat", "one"), ("one", "two"), ("two", "three")):
        engine.fork(source, fork).close()
    engine.delete("one")
    engine.delete("two")
    receipts = engine.erase("chat", "usr-2", forks=True)
    assert ["chat", "three"] == [receipt.session for receipt in receipts]
    assert [] == holders(tmp_path)
    with engine.session("three") as left:
        assert () == left.verify().problems


def test_only_what_comes_from_the_session_is_erased(tmp_path: Path, engine: Engine) -> None:
    """Its source, and other forks of that, keep the page; none of them is in the receipt."""
    for source, fork in (("chat", "sibling"), ("chat", "branch"), ("branch", "twig")):
        engine.fork(source, fork).close()
    receipts = engine.erase("branch", "usr-2", forks=True)
    assert [("branch", ("twig",)), ("twig", ())] == [(receipt.session, receipt.forks) for receipt in receipts]
    assert ["chat", "sibling"] == holders(tmp_path)


def test_a_fork_of_a_session_that_had_the_id_before(tmp_path: Path, engine: Engine) -> None:
    """A session that was deleted is another one than that which has its id now, and so are its forks."""
    engine.fork("chat", "branch").close()
    engine.delete("chat")
    with engine.session("chat") as session:
        talk(session, 3)
    assert ["chat"] == [receipt.session for receipt in engine.erase("chat", "usr-2", forks=True)]
    assert ["branch"] == holders(tmp_path)


def test_a_page_that_has_a_name_and_no_messages(engine: Engine) -> None:
    """A page that was begun and has no messages yet is erased in forks, and so is what the system prompt said."""
    with engine.session("chat") as session:
        index = session.begin_page(WORD)
        session.set_system([{"role": "system", "content": WORD}])
    engine.fork("chat", "branch").close()
    for each in (index, "sys-1"):
        assert ["chat", "branch"] == [receipt.session for receipt in engine.erase("chat", each, forks=True)]
        assert ("branch",) == engine.erase("chat", each)[0].forks


@pytest.mark.parametrize(("harm", "kind"), [(damage, CorruptError), (cut_short, StoreError)])
def test_a_fork_that_cannot_be_erased(
    tmp_path: Path, engine: Engine, harm: Callable[[Path, str], None], kind: type[StoreError]
) -> None:
    """A damaged fork, or an unfinished one, keeps no other; the error has the receipts, names it, and says what to do."""
    for fork in ("a", "b", "c"):
        engine.fork("chat", fork).close()
    engine.close()
    harm(tmp_path, "b")
    with Engine(f"file:{tmp_path}", engine.config) as again:
        for _ in range(2):
            with pytest.raises(ErasureError, match="delete") as raised:
                again.erase("chat", "usr-2", forks=True)
            assert ["chat", "a", "c"] == [receipt.session for receipt in raised.value.receipts]
            assert {"b": kind} == {session: type(error) for session, error in raised.value.failed.items()}
            assert "usr-2" == raised.value.page
            assert ["b"] == holders(tmp_path)
        again.delete("b")
        assert ["chat", "a", "c"] == [receipt.session for receipt in again.erase("chat", "usr-2", forks=True)]
        with again.session("a") as left:
            assert turn(1) == left.page("usr-1").messages
