"""Archived pages are read without what nobody asks for: their messages are counted when somebody asks for a size."""

from pathlib import Path

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.file.store import FileStore
from memci.chapters.page import Page
from memci.engine.session import Session
from tests.engine.core.test_short_ways import FORMATS, called
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, calling, result, user

_COUNTED = "TiktokenCounter.count"


def archived(path: Path, *, wire: str = "openai") -> tuple[Session, list[list[int]]]:
    """Return a session whose pages are archived, and the sizes of the messages of each page while it stood in the window."""
    session = open_session(FileStore(path, "flush"), format=wire)
    talk(session, 3)
    session.extend([user("and this?"), assistant("a long answer " * 300)])
    sizes = [sizes_of(session.page(number)) for number in range(1, 5)]
    session.append(user("and now?"))
    session.fold("all")
    session.facts(1)  # the index is up to date
    return session, sizes


def sizes_of(page: Page) -> list[int]:
    return [size for node in page.nodes() for size in (node.tokens, node.stub_tokens)]


@pytest.mark.parametrize("wire", FORMATS)
def test_a_page_is_counted_when_somebody_asks_for_a_size(wire: str, tmp_path: Path) -> None:
    """Reading it and its messages counts nothing; the sizes are those that it had in the window, and the sum is theirs."""
    session, sizes = archived(tmp_path, wire=wire)
    for number, known in enumerate(sizes, start=1):
        assert 0 == called(lambda number=number: session.page(number).messages)[_COUNTED]  # type: ignore[misc]
        page = session.page(number)
        assert page.copy().tokens == sum(known[::2]) == page.tokens
        assert known == sizes_of(page)
        assert 0 == called(lambda page=page: (page.tokens, sizes_of(page)))[_COUNTED]  # type: ignore[misc]


def test_a_page_is_read_by_one_question_and_one_file(tmp_path: Path) -> None:
    """An index that is up to date is asked one statement, which names the file and its SHA-256."""
    session, _ = archived(tmp_path)
    calls = called(lambda: session.page(2), compiled=True)
    assert (1, 1, 1) == (calls["execute"], calls["open"], calls["openssl_sha256"])
    assert 0 == called(lambda: session.page(2))["Core.facts"]


def test_undoing_a_fold_asks_for_the_facts_of_each_page_once(tmp_path: Path) -> None:
    """What the event holds of them beside their messages is how often they were recalled."""
    session, sizes = archived(tmp_path)
    assert len(sizes) == called(session.undo_fold)["get_facts"]
    assert sizes == [sizes_of(session.page(number)) for number in range(1, 5)]


def test_a_late_result_is_a_part_of_the_sum(tmp_path: Path) -> None:
    """A page whose call is answered after it was archived takes the result in, with its size."""
    session = open_session(FileStore(tmp_path, "flush"))
    session.extend([user("look it up"), calling("a"), assistant("it takes time " * 100), user("and now?")])
    session.window(budget=100)  # has no room for a page that waits
    before = session.facts(1).tokens
    late = session.append(result("a", "found in the drawer"))
    page = session.page(1)
    assert ["user", "assistant", "tool", "assistant"] == [entry.role for entry in page.entries]
    assert before + page.entries[2].tokens == page.tokens
    assert late.tokens == page.entries[2].tokens
    session.fold("all")
    assert (PageState.ARCHIVED, before + late.tokens) == (session.facts(1).state, session.facts(1).tokens)
