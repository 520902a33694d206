"""Directories that the application makes: what they take, where they show, and what else a session does meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.chapters.address import is_range
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.session import Session
from memci.errors import (
    ArgumentError,
    ConflictError,
    InvalidIdError,
    MemciError,
    PageEvictedError,
    PageNotFoundError,
    PermissionDeniedError,
)
from memci.messages import codec
from tests.engine.sessions import config_of, folded, heard, open_session, states, talk
from tests.engine.wire import calling, result, user

TIGHT: dict[str, Any] = {"contents": {"max_tokens": 150}}
"""So little room that pages share ranges."""


def listed(session: Session) -> list[str]:
    """Return what the contents page lists, by index."""
    return [entry.index for entry in session.contents.entries]


def inside(session: Session, index: str) -> list[str]:
    """Return what a directory lists, by index."""
    return [facts.index for facts in session.get_children(index)]


def shown(session: Session) -> str:
    """Return the contents page as the next window shows it; empty for none."""
    texts = (str(message["content"]) for message in session.window().messages)
    return next((text for text in texts if text.startswith("[usr-0]")), "")


def invoices(session: Session, *pages: str | int) -> str:
    return session.create_contents_page("Invoices", "what was billed", children=pages or ("usr-2", 3))


def check(session: Session) -> None:
    """Assert that the state holds together, is that of the journal, and comes back from a snapshot."""
    state = session._core.state
    state._check()
    assert state.tree == session._core.state_at(state.seq).tree
    assert state.tree == state_codec.from_mapping(codec.decode(codec.encode(state_codec.to_mapping(state)))).tree
    assert () == session.verify().problems


def test_a_directory_takes_pages_and_shows_its_line() -> None:
    """It has the next number of its segment; what is in it has no entry of its own, and its line says how much that is."""
    session = open_session()
    talk(session, 5)
    assert "usr-6" == invoices(session)
    talk(session, 1, first=7)
    session.fold("all")
    assert ["usr-6", "usr-1", "usr-4", "usr-5"] == listed(session)
    assert "[usr-6] Invoices · 2 pages\n  what was billed\n[usr-1]" in shown(session)
    assert {"usr-2": "hidden", "usr-3": "hidden", "usr-4": "archived", "usr-7": "open"}.items() <= states(session).items()
    check(session)


def test_what_is_asked_of_the_tree() -> None:
    """Every page but a root has one parent, and the directories around a page end with its root."""
    session = open_session(**TIGHT)
    talk(session, 9)
    outer = invoices(session)
    inner = session.create_contents_page("Old ones", parent=outer, children=[4])
    session.fold("all")
    assert ["usr-2", "usr-3", inner] == inside(session, outer)
    assert ["usr-4"] == inside(session, inner)
    assert [inner, outer, "usr-0"] == [facts.index for facts in session.get_ancestors(4)]
    facts = session.get_page(outer)
    assert ("Invoices", 3, PageState.ARCHIVED, "usr-0") == (facts.title, facts.entries, facts.state, facts.parent)
    assert "usr-0" == getattr(session.get_parent(outer), "index", None)
    assert session.get_parent("usr-0") is None
    assert outer in inside(session, "usr-0")
    for page in session.pages():
        assert page.index in inside(session, page.parent or "")
    assert ["usr-2", "usr-3", inner] == [each.index for each in session.page(outer).pages]
    assert [] == inside(session, "usr-1")
    check(session)


def test_the_order_of_messages_stays() -> None:
    """Where pages are listed changes nothing of what was said, or in which order."""
    session = open_session()
    talk(session, 4)
    before = list(session.messages())
    directory = invoices(session, 3, 1)
    session.move_page(2, directory)
    session.fold("all")
    assert before == list(session.messages())
    assert [f"usr-{number}" for number in range(1, 5)] == [facts.index for facts in session.pages()]


def test_edits_show_with_the_next_fold() -> None:
    """The contents page has them at once; the window keeps what it shows until something folds, or it is told to."""
    session = open_session()
    talk(session, 4)
    session.fold(1)
    before = session.window()
    directory = invoices(session)
    assert directory in listed(session)
    assert before.messages == session.window().messages
    assert not session.fold(directory).pages
    assert f"[{directory}] Invoices" in shown(session)
    assert 0 == session.fold(directory).seq
    check(session)


def test_a_session_that_never_folds_shows_what_was_made() -> None:
    """Where the window shows no contents page yet, the next one does; observers hear of it, and it can be rendered again."""
    session = open_session()
    talk(session, 2)
    session.window()
    notices = heard(session)
    directory = invoices(session, 1)
    assert f"{session.contents.heading()}\n[{directory}] Invoices · 1 page\n  what was billed" == shown(session)
    window = session.window()
    assert window.breakdown["contents"] > 0
    assert window.to_json() == session.render(window.seq).to_json()
    assert [()] == folded(notices)
    session.undo_edit()
    session.fold()
    assert "" == shown(session)
    check(session)


def test_a_fold_leaves_placed_pages_out_of_ranges() -> None:
    """Neighbours share a range of the contents page; a page between them that is placed elsewhere is in none."""
    session = open_session(**TIGHT)
    talk(session, 12)
    directory = invoices(session, 4, 5)
    talk(session, 12, first=14)
    session.fold("all")
    covers = [each for entry in session._core.state.archive.entries for each in entry.covers]
    numbers = {number for first, last in covers for number in range(first, last + 1)}
    assert numbers.isdisjoint({4, 5})
    assert {1, 12} <= numbers
    facts = session.facts(5)
    assert (PageState.HIDDEN, directory) == (facts.state, facts.parent)
    names = [facts.index for facts in session.page("usr-1..20").pages]
    assert [f"usr-{number}" for number in range(1, 21) if number != 13] == names
    check(session)


def test_a_page_comes_back_to_where_it_came() -> None:
    """Moved to its root, it is listed for itself, as a page that was restored; one in view shows where it stands."""
    session = open_session(**TIGHT)
    talk(session, 6)
    directory = invoices(session, 2, 3, 6)
    session.fold(["usr-1", "usr-2", "usr-3"])
    for page in (3, 6, 1):
        session.move_page(page, "usr-0")
    assert ["usr-2"] == inside(session, directory)
    assert {"usr-3": "archived", "usr-6": "open"}.items() <= states(session).items()
    assert "usr-3" in listed(session)
    check(session)


def test_a_directory_moves_with_what_is_in_it() -> None:
    """It stands at the end of where it is moved to; to its own inside it cannot be moved."""
    session = open_session()
    talk(session, 3)
    outer, inner = invoices(session, 1), session.create_contents_page("Old ones", children=[2])
    session.move_page(inner, outer)
    assert ["usr-1", inner] == inside(session, outer)
    for target in (inner, outer):
        with pytest.raises(PermissionDeniedError, match=f"{outer} would be inside itself"):
            session.move_page(outer, target)
    session.move_page(inner, "usr-0")
    assert (["usr-1"], [outer, inner]) == (inside(session, outer), inside(session, "usr-0")[:2])
    check(session)


def test_names_and_descriptions() -> None:
    """Either can be given anew; a description is any text, as one line."""
    session = open_session()
    talk(session, 2)
    directory = invoices(session, 1)
    session.update_page(directory, name=" Bills ", description="of\nthe\tyear \ud800")
    assert f"[{directory}] Bills · 1 page\n  of the year \ufffd" == session.contents.entries[0].render()
    session.update_page(directory, description="")
    session.update_page(directory)
    assert f"[{directory}] Bills · 1 page" == session.contents.entries[0].render()
    check(session)


REFUSED: list[tuple[type[MemciError], str, Callable[[Session], Any]]] = [
    (ArgumentError, "name: ''", lambda session: session.create_contents_page("")),
    (ArgumentError, "name: ", lambda session: session.create_contents_page("two\nlines")),
    (ArgumentError, "name: ", lambda session: session.create_contents_page("[usr-12] forged")),
    (ArgumentError, "name: ", lambda session: session.create_contents_page("x" * 121)),
    (ArgumentError, "description: ", lambda session: session.create_contents_page("x", "y" * 501)),
    (ArgumentError, "parent: .*usr-1 is a page", lambda session: session.create_contents_page("x", parent=1)),
    (ArgumentError, "parent: .*nobody made", lambda session: session.create_contents_page("x", parent="usr-3..4")),
    (ArgumentError, "children: ", lambda session: session.create_contents_page("x", children="usr-1")),
    (ArgumentError, "children: .*once", lambda session: session.create_contents_page("x", children=[1, "usr-1"])),
    (ArgumentError, "children: .*alone", lambda session: session.create_contents_page("x", children=["usr-8", 2])),
    (PermissionDeniedError, "inside itself", lambda session: session.create_contents_page("x", parent=8, children=[8])),
    (PageNotFoundError, "usr-99", lambda session: session.create_contents_page("x", children=[99])),
    (PageNotFoundError, "usr-3..4 is a directory of pages", lambda session: session.move_page("usr-3..4", 8)),
    (PageNotFoundError, "usr-8 is no page of the conversation", lambda session: session.rewind("usr-8/1")),
    (PageNotFoundError, "usr-9 is no page", lambda session: session.create_contents_page("x", parent=9)),
    (PageEvictedError, "usr-5 was evicted", lambda session: session.move_page(5, 8)),
    (PermissionDeniedError, "root", lambda session: session.move_page("usr-0", 8)),
    (PermissionDeniedError, "system prompt", lambda session: session.move_page("sys-1", 8)),
    (ArgumentError, "target: .*other roots list", lambda session: session.move_page(1, "sys-0")),
    (PermissionDeniedError, "no name to change", lambda session: session.update_page(1, name="x")),
    (PermissionDeniedError, "pin those", lambda session: session.pin(8)),
    (InvalidIdError, "not a page index", lambda session: session.move_page("nowhere", 8)),
]


@pytest.mark.parametrize(("error", "words", "command"), REFUSED, ids=[str(place) for place in range(len(REFUSED))])
def test_what_is_refused(error: type[MemciError], words: str, command: Callable[[Session], Any]) -> None:
    """What a directory does not take is refused, with what to do, and nothing happens."""
    session = open_session()
    session.set_system([{"role": "system", "content": "Be brief."}])
    talk(session, 7)
    session.fold([1, 3, 4, 5])
    invoices(session, 2, 6)
    session.evict(5)
    before = session.seq
    with pytest.raises(error, match=words):
        command(session)
    assert before == session.seq


def test_the_last_edit_is_undone_exactly() -> None:
    """Each edit can be taken back at once, order and all, and not twice."""
    session = open_session()
    talk(session, 8)
    session.fold([1, 2, 3, 4])
    first, second = invoices(session, 1, 6, 2), session.create_contents_page("Others", children=[4])
    pages = ["usr-0", *(f"usr-{number}" for number in (1, 2, 3, 4, 6, 7)), first, second]
    edits: list[Callable[[], Any]] = [
        lambda: session.create_contents_page("All", children=[3, first, 7]),
        lambda: session.create_contents_page("Some", children=[2, 4, 3]),
        lambda: session.move_page(6, second),
        lambda: session.move_page(6, "usr-0"),
        lambda: session.move_page(2, "usr-0"),
        lambda: session.move_page(3, first),
        lambda: session.move_page(first, second),
        lambda: session.update_page(first, name="Bills", description=""),
    ]
    for edit in edits:
        before = [(session.get_page(index), inside(session, index)) for index in pages]
        edit()
        session.undo_edit()
        assert before == [(session.get_page(facts.index), inside(session, facts.index)) for facts, _ in before]
        with pytest.raises(MemciError, match="there is no edit to undo"):
            session.undo_edit()
        check(session)


def test_what_a_directory_took_goes_back_in_its_order() -> None:
    """Siblings that a directory took are where they were, in whatever order they were named, when it is undone."""
    session = open_session()
    notes = [session.create_detail_page(f"Note {number}", "", "It says little.") for number in range(4)]
    for named in ([0, 1, 2], [2, 0, 1], [3, 1, 2], [1, 3]):
        session.create_contents_page("Group", children=[notes[number] for number in named])
        session.undo_edit()
        assert notes == listed(session)


def test_somebody_elses_edit_is_not_undone() -> None:
    """Where others edited meanwhile, the edit that was meant is not the last one any more."""
    store = MemoryStore()
    mine, theirs = (Engine(store, config_of(on_conflict="retry")).session("chat") for _ in range(2))
    talk(mine, 3)
    invoices(mine, 1)
    theirs.refresh()
    theirs.create_contents_page("Others")
    with pytest.raises(ConflictError, match="the last edit is another one"):
        mine.undo_edit()


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_in_every_format(wire: str) -> None:
    """Directories show alike in windows of all formats."""
    session = open_session(format=wire)
    session.extend([user("about the invoices"), user("and the offers")])
    session.begin_page()
    directory = invoices(session, 1)
    session.append(user("and now?"))
    session.fold("all")
    window = session.window()
    assert f"[{directory}] Invoices · 1 page" in window.to_json().decode()
    assert window.to_json() == session.render(window.seq).to_json()


def test_a_late_result_joins_a_page_in_a_directory() -> None:
    """It is taken in with the next fold, and gives the page no entry of its own."""
    session = open_session()
    session.extend([user("look"), calling("a")])
    talk(session, 3, first=2)
    directory = invoices(session, 1)
    assert session.window(120).tokens <= 120
    assert PageState.HIDDEN is session.facts(1).state
    session.append(result("a", "found it"))
    session.fold("all")
    assert [directory, "usr-2", "usr-3"] == listed(session)
    assert ["look", None, "found it"] == [message["content"] for message in session.page(1).messages]
    assert 1 == session.facts(1).revision
    check(session)


def test_undo_fold_leaves_pages_in_their_directories() -> None:
    """A fold that is undone brings pages into view; where they are listed stays, as placing them was no part of it."""
    session = open_session()
    talk(session, 5)
    session.fold([1, 2, 3])
    directory = invoices(session, 1, 2)
    session.move_page(2, "usr-0")
    session.undo_fold()
    assert {"active"} == set(states(session).values()) - {"open"}
    assert (["usr-1"], [directory]) == (inside(session, directory), listed(session))
    session.fold([1, 2])
    assert [directory, "usr-2"] == listed(session)
    check(session)


@pytest.mark.parametrize("removed", ["usr-1", "usr-6"])
def test_what_comes_back_into_view_is_no_more_removed(removed: str) -> None:
    """A page that was removed, or with its directory, and that an undone fold brings back, is listed for itself from then on."""
    session = open_session()
    talk(session, 5)
    directory = invoices(session, 1, 2)
    session.fold([1, 2, 3])
    session.remove_page(removed)
    session.undo_fold()
    assert (PageState.ACTIVE, "usr-0") == ((facts := session.facts(1)).state, facts.parent)
    session.fold(1)
    assert "usr-1" in listed(session)
    check(session)
    if removed == directory:
        session.undo_edit()
        assert [] == inside(session, directory)


def test_an_undone_edit_closes_what_it_takes_away() -> None:
    """A directory or a note that was opened since it was made leaves the window; a pinned note stays, and so does the edit."""
    session = open_session()
    talk(session, 3)
    session.fold(1)
    directory = invoices(session, 1)
    session.expand_details(directory)
    session.undo_edit()
    assert 0 == session.window().breakdown["recalled"]
    note = session.create_detail_page("Limit", "how many rows", "At most 500.")
    session.expand_details(note)
    session.pin(note)
    with pytest.raises(PermissionDeniedError, match=f"page {note} is pinned"):
        session.undo_edit()
    session.unpin(note)
    session.undo_edit()
    assert 0 == session.window().breakdown["recalled"]
    assert PageState.EVICTED is session.get_page(note).state
    check(session)


def test_rewind_takes_placed_pages_along() -> None:
    """Directories stay; pages that are gone leave them, and undoing the last edit brings none of them back."""
    session = open_session()
    talk(session, 6)
    directory = invoices(session, 2, 5, 4)
    session.fold("all")
    session.rewind("usr-4/1")
    assert ["usr-2"] == inside(session, directory)
    assert f"[{directory}] Invoices · 1 page\n" in shown(session)
    check(session)
    talk(session, 1, first=8)
    assert "usr-8" == session.pages()[-1].index
    session.undo_edit()
    assert {"usr-1", "usr-2"} <= {"usr-1", *inside(session, "usr-0")}
    check(session)


def test_a_restored_checkpoint_restores_the_tree() -> None:
    """It is as it was then, the edit that was the last one included; numbers are not used again."""
    session = open_session()
    talk(session, 4)
    first = invoices(session, 1)
    there = session.checkpoint("there").id
    second = session.create_contents_page("Others", children=[2, first])
    session.restore_checkpoint(there)
    assert ["usr-1"] == inside(session, first)
    with pytest.raises(PageNotFoundError):
        session.get_page(second)
    assert "usr-7" == session.create_contents_page("More")
    session.undo_edit()
    session.fold("all")
    check(session)


def test_a_fork_has_the_tree_of_then() -> None:
    """A fork has the directories; one at an earlier event has those that there were."""
    with Engine(MemoryStore(), config_of()) as engine:
        session = engine.session("chat")
        talk(session, 4)
        directory = invoices(session, 1)
        at = session.seq
        session.move_page(2, directory)
        session.fold("all")
        assert ["usr-1", "usr-2"] == inside(engine.fork("chat", "now"), directory)
        then = engine.fork("chat", "then", at=at)
        assert ["usr-1"] == inside(then, directory)
        check(then)


def test_an_erased_page_stays_in_its_directory() -> None:
    """Erasing takes what a page says, not where it is."""
    session = open_session(snapshot_every=1)
    talk(session, 4)
    directory = invoices(session, 1, 2)
    session.fold("all")
    session.move_page(2, "usr-0")
    session.erase(1)
    session.erase(2)
    assert ["usr-1"] == inside(session, directory)
    assert "[erased]" in session.contents.render()
    assert "ask2x1" not in str([event.data for event in session.events()])
    check(session)


def test_a_pin_stays_with_a_page() -> None:
    """Whether a page is pinned is kept where it is placed, folded, and listed for itself again."""
    session = open_session()
    talk(session, 5)
    session.fold(1)
    session.pin(1)
    session.pin(2)
    directory = invoices(session, 1, 2, 3)
    session.pin(3)
    session.fold("all")
    assert [True, True, True] == [facts.pinned for facts in session.get_children(directory)]
    session.unpin(3)
    for page in (1, 2, 3):
        session.move_page(page, "usr-0")
    assert [True, True, False] == [session.facts(page).pinned for page in (1, 2, 3)]
    session.unpin(1)
    session.move_page(1, directory)
    assert not session.facts(1).pinned
    check(session)


def test_a_page_in_a_directory_is_recalled() -> None:
    """It comes back into the window and fades, and stays where it is listed, however often."""
    session = open_session()
    talk(session, 3)
    directory = invoices(session, 1)
    session.fold("all")
    for _ in range(2):
        assert "question1" in str(session.recall(1).messages)
        assert PageState.ATTACHED is session.facts(1).state
        session.fade(1)
    assert PageState.HIDDEN is session.facts(1).state
    assert "usr-1" not in listed(session)
    session.restore(1)
    assert ["usr-1"] == inside(session, directory)
    check(session)


def test_topics_are_of_pages_that_nobody_placed() -> None:
    """A topic takes the others; where all that is complete is placed, there is none to close."""
    session = open_session()
    talk(session, 5)
    directory = invoices(session, 2, 3)
    session.close_topic("the rest")
    assert [directory, "usr-1..4"] == listed(session)
    talk(session, 2, first=7)
    session.move_page(5, directory)
    session.move_page(7, directory)
    with pytest.raises(MemciError, match="there is no topic to close"):
        session.close_topic("nothing")
    check(session)


def test_levels_and_eviction_leave_placed_pages_alone() -> None:
    """What leaves the contents page for its age is what it lists for itself."""
    session = open_session(eviction={"zero_recall_turns": 2}, levels={"gone": 3})
    talk(session, 4)
    directory = invoices(session, 1, 2)
    session.fold("all")
    talk(session, 8, first=6)
    assert ["evicted", "hidden", "hidden"] == [states(session)[index] for index in ("usr-3", "usr-2", "usr-1")]
    assert [directory] == listed(session)
    check(session)


@pytest.mark.slow
def test_directories_fit_into_the_window() -> None:
    """However many are made, and however long their descriptions are, windows keep to the budget, and pages keep entries."""
    session = open_session(budget={"window": 3_000, "reserve": 0})
    for number in range(150):
        talk(session, 1, first=number)
        session.create_contents_page(f"Directory {number}", "about it " * 50)
        assert session.window().tokens <= 3_000
    session.fold("all")
    text = shown(session)
    assert "more notes and directories: read_page(" in text
    assert "Directory 149" in text
    assert session._core.state.tree.outline_tokens <= session.window().breakdown["contents"]
    assert any(is_range(index) for index in listed(session))
    assert session.window(600).tokens <= 600
    check(session)


def test_why_a_page_is_where_it_is() -> None:
    """It is said of directories and of what is in them who put them where they are."""
    session = open_session()
    talk(session, 3)
    directory = invoices(session, 1)
    inner = session.create_contents_page("Old ones", children=[2])
    session.move_page(inner, directory)
    session.fold(1)
    assert f"It is listed in {directory} (Invoices), where the application put it." in session.explain(1).reasons
    assert f"It is listed in {inner} (Old ones), where the application put it." in session.explain(2).reasons
    assert "The contents page that the window shows lists it." in session.explain(directory).reasons
    told = session.explain(inner)
    assert "It is a directory that the application made in turn 3, with 1 page in it." == told.reasons[0]
    assert (False, False, 1) == (told.in_window, told.in_contents, told.facts["pages"])


def test_what_nobody_uses_costs_nothing() -> None:
    """A session without edits has no word of a tree in its journal or its snapshots."""
    session = open_session(**TIGHT)
    talk(session, 9)
    session.fold("all")
    session.undo_fold()
    session.rewind("usr-7/1")
    assert not any(event.data.get("outline") for event in session.events())
    assert "tree" not in state_codec.to_mapping(session._core.state)
