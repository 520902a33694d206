"""Roots and ranges: pages to every command that reads, and what may be done to them."""

import json
from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Eviction
from memci.engine.session import Session
from memci.errors import PageEvictedError, PageNotFoundError, PermissionDeniedError
from tests.engine.sessions import heard, open_session, states, talk
from tests.engine.wire import system

ROOTS = ("usr-0", "sys-0")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def session(store: MemoryStore) -> Session:
    """Return a session of two system pages, four archived and two active ones."""
    session = open_session(store, active={"min_pages": 2})
    session.extend([system("be kind"), system("be brief")])
    talk(session, 6)
    session.fold("all")
    session.undo_fold()
    session.fold([1, 2, 3, 4])
    return session


def grouped() -> Session:
    """Return a session whose contents page groups its oldest pages in directories."""
    session = open_session(budget={"window": 1_500, "reserve": 0}, active={"min_pages": 1}, contents={"max_tokens": 150})
    talk(session, 60)
    return session


def indexes(session: Session, index: str | int) -> list[str]:
    return [facts.index for facts in session.page(index).pages]


@pytest.mark.parametrize(
    ("index", "pages"),
    [
        ("usr-0", [f"usr-{number}" for number in range(1, 7)]),
        (0, [f"usr-{number}" for number in range(1, 7)]),
        ("sys-0", ["sys-1", "sys-2"]),
        ("usr-3..5", ["usr-3", "usr-4", "usr-5"]),
        ("usr-5..90", ["usr-5", "usr-6"]),
        ("sys-2..7", ["sys-2"]),
    ],
)
def test_a_root_and_a_range_have_pages_and_no_messages(session: Session, index: str | int, pages: list[str]) -> None:
    """Each is a page without messages, with the facts of its pages, oldest first."""
    page = session.page(index)
    assert ([], pages) == (page.messages, [facts.index for facts in page.pages])
    assert [facts for facts in session.pages() if facts.index in pages] == list(page.pages)


def test_other_pages_have_none(session: Session) -> None:
    """A page of messages has no pages in it."""
    assert () == session.page(1).pages == session.page(6).pages


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_of_nothing_is_a_page(root: str) -> None:
    """Before the first message there are both roots, and nothing in them."""
    session = open_session()
    assert ([], ()) == (session.page(root).messages, session.page(root).pages)
    assert (root, None, 0) == ((facts := session.facts(root)).index, facts.parent, facts.tokens)
    assert not session.explain(root).in_window


@pytest.mark.parametrize("root", ROOTS)
def test_facts_of_a_root(session: Session, root: str) -> None:
    """A root has no parent, stands open, and has the size of what the window shows of it."""
    facts = session.facts(root)
    assert (root, PageState.ACTIVE, None, 0) == (facts.index, facts.state, facts.parent, facts.entries)
    assert session.page(root).turn == facts.turn
    assert session.window().breakdown["contents" if root == "usr-0" else "system"] >= facts.tokens > 0


def test_facts_of_a_range(session: Session) -> None:
    """A range has the size of its pages, and is where they are: archived, attached as a list, or active."""
    facts = session.facts("usr-3..5")
    assert (PageState.ARCHIVED, "usr-0") == (facts.state, facts.parent)
    assert sum(session.facts(number).tokens for number in (3, 4, 5)) == facts.tokens
    assert PageState.ACTIVE == session.facts("usr-5..6").state
    session.recall("usr-3..5")
    assert PageState.ATTACHED == session.facts("usr-3..5").state


@pytest.mark.parametrize("index", [*ROOTS, "usr-3..5", "usr-5..6"])
def test_roots_and_ranges_are_explained(session: Session, index: str) -> None:
    """How many pages there are in it, and where, and whether the window shows it."""
    said = session.explain(index)
    assert (index, len(indexes(session, index))) == (said.index, said.facts["pages"])
    assert str(said).startswith(f"{index} is {session.facts(index).state}.")
    assert (index != "usr-3..5") == said.in_window


@pytest.mark.parametrize("root", ROOTS)
def test_recalling_a_root_changes_nothing(session: Session, root: str) -> None:
    """A root stands in the window: it is returned, and nothing is written."""
    seq = session.seq
    assert indexes(session, root) == [facts.index for facts in session.recall(root).pages]
    assert seq == session.seq


@pytest.mark.parametrize("root", ROOTS)
def test_tools_take_roots(session: Session, root: str) -> None:
    """A model that calls a tool with the index at the head of the contents page gets the list of all pages."""
    receipt = session.toolbox.call("recall_page", {"index": root})
    assert (root, session.facts(root).tokens) == (receipt["index"], receipt["tokens"])
    (message,) = json.loads(session.toolbox.call("read_page", {"index": f"[{root}]"})["text"])
    assert message["content"].startswith(f"[{root}] Directory of {len(indexes(session, root))} pages")
    assert all(f"[{index}] " in message["content"] for index in indexes(session, root))


def test_the_list_of_a_root_is_bounded() -> None:
    """A root of many pages is read in a bounded number of lines, each of which can be opened."""
    session = open_session()
    talk(session, 250, words=2)
    (message,) = session.toolbox.messages("usr-0")
    assert 100 >= len(message["content"].splitlines()) - 1
    assert "[usr-1..3] 3 pages" in message["content"]


@pytest.mark.parametrize("root", [*ROOTS, 0])
def test_a_root_stays_as_it_is(session: Session, root: str | int) -> None:
    """What would change a root is refused, and nothing is written."""
    seq = session.seq
    calls: Any = (
        *(session.evict, session.restore, session.pin, session.unpin, session.fade, session.erase, session.fold),
        lambda index: session.rewind("usr-0" if index == 0 else index),
        lambda index: session.rewind(f"{f'usr-{index}' if index == 0 else index}/1"),
    )
    for call in calls:
        with pytest.raises(PermissionDeniedError):
            call(root)
    assert seq == session.seq


def test_a_range_is_evicted_and_restored(store: MemoryStore, session: Session) -> None:
    """Evicting a range takes the entries of its pages, in one commit, and restoring it puts them back."""
    notices = heard(session)
    session.recall("usr-1..3")
    session.recall(2)
    seq = session.seq
    session.evict("usr-1..3")
    assert seq + 2 == session.seq
    assert ["evicted"] * 3 == [states(session)[f"usr-{number}"] for number in (1, 2, 3)]
    assert [Eviction(pages=tuple((f"usr-{number}", "command") for number in (1, 2, 3)))] == notices[-1:]
    assert 0 == session.window().breakdown["recalled"]
    assert 6 == len(indexes(session, "usr-0"))  # the window shows them still
    with pytest.raises(PageEvictedError):
        session.evict("usr-1..3")
    session.evict("usr-2..4")
    session.fold([5])
    assert ["usr-5", "usr-6"] == indexes(session, "usr-0")
    session.restore("usr-1..9")
    assert ["archived"] * 4 == [states(session)[f"usr-{number}"] for number in (1, 2, 3, 4)]
    assert session.verify().ok
    assert states(session) == states(open_session(store, active={"min_pages": 2}))


def test_a_range_that_cannot_go_stays_whole(session: Session) -> None:
    """One page in the window, or a pinned one, keeps the range: all are evicted, or none."""
    seq = session.seq
    with pytest.raises(PageNotFoundError, match="usr-5 is in the window"):
        session.evict("usr-3..5")
    session.pin("usr-2..3")
    with pytest.raises(PermissionDeniedError, match="usr-2 is pinned"):
        session.evict("usr-1..4")
    assert seq + 2 == session.seq
    assert "archived" == states(session)["usr-1"]


def test_a_range_is_pinned(session: Session) -> None:
    """Pinning a range pins its pages, active ones too; evicted ones are passed over, and a range of them is an error."""
    session.evict("usr-1..2")
    session.pin("usr-2..6")
    assert ["usr-3", "usr-4", "usr-5", "usr-6"] == [facts.index for facts in session.pages() if facts.pinned]
    with pytest.raises(PageEvictedError):
        session.pin("usr-1..2")
    seq = session.seq
    session.pin("usr-3..6")
    assert seq == session.seq
    session.unpin("usr-1..9")
    assert [] == [facts.index for facts in session.pages() if facts.pinned]


def test_a_directory_is_evicted_by_its_index() -> None:
    """A directory leaves with all its pages, none of which is read for it; restoring it gives each an entry."""
    session = grouped()
    directory = next(entry for entry in session.contents.entries if ".." in entry.index)
    pages = indexes(session, directory.index)
    seq = session.seq
    session.evict(directory.index)
    assert seq + 1 == session.seq
    assert {"evicted"} == {states(session)[index] for index in pages}
    session.restore(directory.index)
    assert {"archived"} == {states(session)[index] for index in pages}
    assert session.verify().ok


def test_a_part_of_a_directory_is_evicted_and_pinned() -> None:
    """Pages of a directory get entries of their own before they are pinned or go; the others stay grouped."""
    session = grouped()
    directory = next(entry for entry in session.contents.entries if ".." in entry.index)
    first, second, third, *_, last = indexes(session, directory.index)
    session.evict(f"{first}..{second.removeprefix('usr-')}")
    session.pin(f"{third}..{third.removeprefix('usr-')}")
    assert ["evicted", "evicted", "archived", "hidden"] == [states(session)[index] for index in (first, second, third, last)]
    assert session.facts(third).pinned
    assert session.verify().ok


@pytest.mark.parametrize("command", ["pin", "unpin", "evict", "fade"])
def test_pages_of_the_system_part_stay(session: Session, command: str) -> None:
    """A range of system pages is refused as one of them is."""
    for index in ("sys-1", "sys-1..2"):
        with pytest.raises(PermissionDeniedError, match="part of the system prompt"):
            getattr(session, command)(index)


@pytest.mark.parametrize("command", ["page", "recall", "pin", "evict", "restore", "fade"])
@pytest.mark.parametrize("index", ["usr-71..80", "sys-71..80"])
def test_a_range_without_pages_is_not_found(session: Session, command: str, index: str) -> None:
    """All commands on ranges say the same of one that holds no pages."""
    with pytest.raises(PageNotFoundError, match="holds no pages"):
        getattr(session, command)(index)


@pytest.mark.parametrize("index", ["usr-99", "usr-98..99", "usr-1", "own-0", "nothing"])
def test_what_a_model_reads_of_an_error_names_no_python_call(session: Session, index: str) -> None:
    """An error that a tool answers with names tools, and nothing that only an application can call."""
    session.evict(1)
    session.fold("all")
    call = {"id": "c", "type": "function", "function": {"name": "recall_page", "arguments": json.dumps({"index": index})}}
    answer = session.handle_tool_call(call)["content"]
    assert "error" in json.loads(answer)
    assert "()" not in answer
    assert not any(name in answer for name in ("pages(", "restore(", "refresh(", "session."))


def test_how_far_away_a_page_is_counts_from_its_last_recall() -> None:
    """An explanation tells how many turns ago a page was said, or touched since."""
    session = open_session(active={"min_pages": 1})
    talk(session, 6)
    session.fold("all")
    session.recall(2)
    assert [0, 3] == [session.explain(index).facts["distance"] for index in (2, 3)]
