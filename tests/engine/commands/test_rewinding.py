"""Going back in a conversation."""

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.engine.session import Session
from memci.errors import InvalidIdError, InvalidMessageError, MemciError, PageNotFoundError
from tests.engine.sessions import indexes, open_session, states, talk, turn
from tests.engine.wire import assistant, calling, result, system, user


def test_rewinding_takes_an_entry_and_what_follows() -> None:
    """The entry and all after it are gone from view, from the pages and from search; the journal keeps them."""
    session = open_session()
    talk(session, 3)
    seq = session.seq
    before = session.window().messages
    session.rewind("usr-2/2")
    assert [*turn(1), turn(2)[0]] == list(session.messages()) == session.window().messages
    assert {"usr-1": "active", "usr-2": "open"} == states(session)
    assert [] == session.search("say3x4", include_visible=True)
    with pytest.raises(PageNotFoundError):
        session.page(3)
    assert before == session.render(at=seq + 1).messages


def test_numbers_are_not_used_again() -> None:
    """A page that is opened after a rewind takes a number that no page had."""
    session = open_session()
    talk(session, 3)
    session.rewind("usr-2/1")
    assert "usr-4/1" == session.append(user("another way")).address


def test_a_regenerated_answer_takes_the_place_of_the_first() -> None:
    """Rewinding to an answer and appending another one gives it the same address."""
    session = open_session()
    talk(session, 2)
    session.rewind("usr-2/2")
    assert "usr-2/2" == session.append(assistant("better")).address
    assert () == session.verify().problems


def test_rewinding_into_the_archive_brings_the_page_back() -> None:
    """The page of the entry stands in view again, up to the entry; later pages leave the contents page."""
    session = open_session(active={"min_pages": 1})
    talk(session, 6)
    session.fold("all")
    session.rewind("usr-3/2")
    assert {"usr-1": "archived", "usr-2": "archived", "usr-3": "open"} == states(session)
    assert ["usr-1", "usr-2"] == [entry.index for entry in session.contents.entries]
    window = session.window().messages
    assert turn(3)[0] == window[-1]
    assert "usr-4" not in str(window)
    session.append(assistant("another answer"))
    talk(session, 1, first=7)
    session.fold("all")
    assert [*turn(1), *turn(2), turn(3)[0], assistant("another answer"), *turn(7)] == list(session.messages())
    assert () == session.verify().problems


def test_the_newest_page_is_always_open() -> None:
    """When a whole page goes and the page before it is archived, that one comes back into view and takes what follows."""
    session = open_session(active={"min_pages": 1})
    talk(session, 4)
    session.fold("all")
    session.rewind("usr-4/1")
    assert {"usr-1": "archived", "usr-2": "archived", "usr-3": "open"} == states(session)
    assert "usr-3/3" == session.append(assistant("and further")).address
    assert () == session.verify().problems


def test_a_gap_in_the_view_does_not_reorder_the_conversation() -> None:
    """With an older page still in view for its open call, what follows a rewind joins the newest page, not that one."""
    session = open_session(active={"min_pages": 1})
    session.extend([user("look it up"), calling("x"), *turn(2), *turn(3), user("and now?")])
    session.fold("all")
    assert ["usr-1"] == indexes(session, PageState.ACTIVE)
    session.rewind("usr-4/1")
    session.append(assistant("one moment"))
    assert [user("look it up"), calling("x"), *turn(2), *turn(3), assistant("one moment")] == list(session.messages())


def test_a_rewind_to_the_beginning_leaves_the_system_part() -> None:
    """Before the first entry of all there is only the system part, and the conversation can begin again."""
    session = open_session()
    session.append(system("be brief"))
    talk(session, 2)
    session.rewind("usr-1/1")
    assert [system("be brief")] == list(session.messages()) == session.window().messages
    assert "usr-3/1" == session.append(user("hello")).address


def test_a_taken_back_result_leaves_its_call_open() -> None:
    """After a rewind to a result its call waits again, in view and in the archive."""
    session = open_session()
    session.extend([user("a"), calling("x"), result("x", "wrong"), assistant("b")])
    session.rewind("usr-1/3")
    assert "usr-1/3" == session.append(result("x", "right")).address
    assert "wrong" not in str(session.window().messages)


def test_a_key_of_a_taken_back_message_is_free() -> None:
    """A message that was taken back can be said again with its key."""
    session = open_session()
    talk(session, 1)
    session.append(user("once"), key="k")
    session.rewind("usr-2/1")
    assert "usr-3/1" == session.append(user("once"), key="k").address


def test_pins_and_recalls_survive_a_way_back_into_view() -> None:
    """A page that comes back into view is still pinned and still knows its recalls when it folds again."""
    session = open_session(active={"min_pages": 1})
    talk(session, 4)
    session.fold("all")
    session.recall(2)
    session.pin(2)
    session.rewind("usr-3/1")
    facts = session.pages()[1]
    assert (PageState.OPEN, True, 1) == (facts.state, facts.pinned, facts.recall_count)
    talk(session, 2, first=5)
    session.fold("all")
    facts = session.pages()[1]
    assert (PageState.ARCHIVED, True, 1) == (facts.state, facts.pinned, facts.recall_count)


def test_a_page_can_be_rebuilt_after_a_rewind() -> None:
    """The journal alone gives a page whose entries were taken back and said anew."""
    session = open_session(active={"min_pages": 1})
    talk(session, 1)
    for text in ("first try", "second try", "third try"):
        session.rewind("usr-1/2")
        session.append(assistant(text))
    talk(session, 1, first=2)
    session.fold("all")
    assert () == session.verify().problems


def test_a_directory_forgets_what_was_taken_back() -> None:
    """A directory whose last pages were taken back names only those that are left, in the window too."""
    session = open_session(active={"min_pages": 1}, contents={"max_tokens": 100})
    talk(session, 14)
    session.fold("all")
    hidden = indexes(session, PageState.HIDDEN)
    assert len(hidden) > 3
    session.rewind(f"{hidden[2]}/1")
    assert hidden[:1] == [index for index in indexes(session, PageState.HIDDEN) if index in hidden[:1]]
    shown = "\n".join(str(value["content"]) for value in session.window().messages)
    assert hidden[3] not in shown
    assert () == session.verify().problems


@pytest.mark.parametrize("address", ["usr-1/3", "usr-9/1", "sys-1/1", "own-1/1"])
def test_unknown_entries_are_refused(address: str) -> None:
    """An entry that is not there, and one of the system part, cannot be gone back to."""
    session = open_session()
    session.append(system("be brief"))
    talk(session, 1)
    seq = session.seq
    with pytest.raises(PageNotFoundError):
        session.rewind(address)
    assert seq == session.seq


@pytest.mark.parametrize("address", ["usr-1", "usr-1/0", "usr-1/-1", "usr-1/1/", "/1", "", None, 7, "usr-01/1", "USR-1/1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    """Anything but a page and a position is refused as an address."""
    session = open_session()
    talk(session, 1)
    with pytest.raises(InvalidIdError):
        session.rewind(address)


def test_a_rewind_ends_what_can_be_undone() -> None:
    """After a rewind there is no fold to undo."""
    session = open_session(active={"min_pages": 1})
    talk(session, 4)
    session.fold("all")
    session.rewind("usr-4/2")
    with pytest.raises(MemciError, match="no fold to undo"):
        session.undo_fold()


def test_a_grouped_page_keeps_its_recalls() -> None:
    """A page of a directory that a rewind brings back is as often recalled as it was, and stays so when it folds again."""
    session = open_session(active={"min_pages": 1}, contents={"max_tokens": 110})
    talk(session, 14)
    session.fold("all")
    hidden = indexes(session, PageState.HIDDEN)[-1]
    session.recall(hidden)
    recalled = session.facts(hidden)
    session.rewind(f"{hidden}/2")
    assert (1, recalled.last_recall_turn) == (session.facts(hidden).recall_count, session.facts(hidden).last_recall_turn)
    talk(session, 1, first=50)
    session.fold("all")
    assert (1, recalled.last_recall_turn) == (session.facts(hidden).recall_count, session.facts(hidden).last_recall_turn)
    assert () == session.verify().problems


def test_what_was_recalled_after_the_entry_is_gone() -> None:
    """A page that was recalled while a page stood open that is rewound is no longer attached; one recalled before is."""
    session = open_session()
    talk(session, 5)
    session.fold(["usr-1", "usr-2"])
    session.recall("usr-1")
    session.append(user("a question"))
    session.recall("usr-2")
    session.rewind("usr-6/1")
    assert ["attached", "archived"] == [session.facts(index).state for index in ("usr-1", "usr-2")]


def with_late_results(*, folded: bool) -> Session:
    """Return a session with late results in two archived pages, taken in by a fold or waiting for one."""
    session = open_session(active={"min_pages": 1})
    for number in (1, 2):
        session.extend([user(f"ask {number} " * 40), calling("x"), assistant("on"), calling("y"), assistant(f"went {number}")])
    talk(session, 2, first=3)
    session.append(user("last"))
    session.window(150)
    assert ["usr-5"] == indexes(session, PageState.OPEN, PageState.ACTIVE)
    session.extend([result("x", "late 2x"), result("y", "late 2y"), result("x", "late 1x")])
    if folded:
        session.fold()
    return session


def said(session: Session) -> list[list[str | None]]:
    """Return what stands behind the user's words in each page with calls."""
    return [[each["content"] for each in session.page(facts.index).messages[1:]] for facts in session.pages()][:2]


FIRST, SECOND = [None, "late 1x", "on", None, "went 1"], [None, "late 2x", "on", None, "late 2y", "went 2"]


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("usr-4/1", [FIRST, SECOND]),
        ("usr-3/1", [FIRST, SECOND]),
        ("usr-2/7", [FIRST, SECOND[:5]]),
        ("usr-2/6", [FIRST, SECOND[:4]]),
        ("usr-2/3", [FIRST, SECOND[:1]]),
        ("usr-2/1", [FIRST]),
        ("usr-1/4", [FIRST[:2]]),
        ("usr-1/3", [FIRST[:1]]),
    ],
)
def test_a_rewind_keeps_late_results_before_it(folded: bool, address: str, left: list[list[str | None]]) -> None:  # noqa: FBT001 (a parameter)
    """Late results in front of the entry stay, each once and in its place, whether a fold took them in or not."""
    session = with_late_results(folded=folded)
    session.rewind(address)
    assert left == said(session)
    [back] = indexes(session, PageState.OPEN)
    talk(session, 2, first=6)
    for _ in range(2):
        session.fold("all")
        assert 0 == session.facts(back).revision
        assert left == [page[: len(kept)] for page, kept in zip(said(session), left, strict=False)]
        assert () == session.verify().problems
    assert sum(text is not None and text.startswith("late") for page in left for text in page) == sum(
        message["role"] == "tool" for message in session.messages()
    )


@pytest.mark.parametrize("folded", [False, True])
def test_a_call_waits_again_when_its_late_result_is_taken_back(folded: bool) -> None:  # noqa: FBT001 (a parameter)
    """A rewind to a late result opens its call again, which takes another result."""
    session = with_late_results(folded=folded)
    session.rewind("usr-2/3")
    assert "usr-2/3" == session.append(result("x", "another")).address
    assert [FIRST, [None, "another"]] == said(session)
    with pytest.raises(InvalidMessageError):
        session.append(result("x"))


def test_the_turn_that_is_open_again_shows_what_opened_it() -> None:
    """The user's words that began a long turn stand in the window again once the turn after it is taken back."""
    session = open_session(active={"min_pages": 1, "page_tokens": 300})
    session.append(user("what was asked"))
    session.extend([assistant(f"step {number} " + "word " * 120) for number in range(8)])
    session.fold(["usr-1", "usr-2"])
    session.extend([user("thanks"), assistant("gladly")])
    session.fold([])  # what opened the former turn leaves
    assert "what was asked" not in [message["content"] for message in session.window().messages]
    session.rewind("usr-4/1")
    assert "what was asked" in [message["content"] for message in session.window().messages]
    assert () == session.verify().problems
