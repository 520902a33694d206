"""Pages and their entries: positions, calls, refusals."""

from typing import Any

import pytest

from memci.chapters.page import ActiveChapter, Chapter, MessageNode, Page, SystemChapter
from memci.chapters.recalled import Attachment, RecallChapter
from memci.messages.formats import openai


def node(value: dict[str, Any], tokens: int = 5) -> MessageNode:
    return MessageNode(message=openai.read(value), tokens=tokens)


def user(text: str = "hello") -> MessageNode:
    return node({"role": "user", "content": text})


def call(*ids: str) -> MessageNode:
    calls = [{"id": each, "type": "function", "function": {"name": "look", "arguments": "{}"}} for each in ids]
    return node({"role": "assistant", "content": None, "tool_calls": calls})


def result(call_id: str) -> MessageNode:
    return node({"role": "tool", "tool_call_id": call_id, "content": "found"})


def page_of(*nodes: MessageNode, index: str = "usr-1") -> Page:
    page = Page(index=index, turn=1)
    for each in nodes:
        page.add(each)
    return page


def test_an_entry_knows_its_address_and_message() -> None:
    """An entry gives its address, its message as a new dict, its role and its size."""
    entry = page_of(user("hello"), call("a"), index="usr-12").entries[0]
    assert ("usr-12/1", {"role": "user", "content": "hello"}, "user", 5) == (
        entry.address, entry.message, entry.role, entry.tokens,
    )  # fmt: skip
    assert entry.message is not entry.message


def test_a_page_without_entries_is_true() -> None:
    """A page or chapter without entries has length 0 and is still no ``None`` to ``if``."""
    page, chapter = Page(index="usr-1", turn=1), Chapter()
    assert (0, 0, [], []) == (len(page), page.tokens, page.messages, page.entries)
    assert page
    assert chapter


def test_a_page_is_the_users_while_nobody_else_spoke() -> None:
    """``only_user`` holds for an empty page and for user messages, and ends with the first other one."""
    page = page_of(user(), user())
    assert page.only_user
    page.add(call("a"))
    assert not page.only_user


def test_the_latest_open_call_of_an_id_is_answered() -> None:
    """With one id in two calls, a result takes the later call, and the earlier one stays open."""
    first, second = call("a"), call("a")
    page = page_of(user(), first, second)
    page.answer("a")
    assert [first] == page.open_calls["a"]
    assert ["a"] == [each.id for each in page.unanswered(first)]
    assert [] == page.unanswered(second)


def test_a_result_belongs_to_the_nearest_call_of_its_id() -> None:
    """Of open calls with one id, in a page and before it, the latest is found."""
    chapter = ActiveChapter()
    nearest = call("a")
    chapter.add_page(page_of(user(), call("a")))
    chapter.add_page(page := page_of(user(), call("a"), nearest, index="usr-2"))
    assert (page, nearest) == chapter.find_call("a")


def test_a_copy_waits_for_the_same_results() -> None:
    """In a copy of a page those calls are open that were open in the page, as its own nodes."""
    page = page_of(user(), call("a"), result("a"), call("b"))
    page.answer("a")
    copy = page.copy()
    assert {"b": [copy.tail]} == copy.open_calls
    assert copy.tail is not page.tail


def test_results_end_passes_the_results_of_a_call() -> None:
    """The results behind a call belong to it, up to the first message that answers none of its ids."""
    made = call("a", "b")
    last = result("a")
    page = page_of(user(), made, result("b"), last, node({"role": "assistant", "content": "done"}), result("a"))
    assert page.results_end(made) is last


def test_results_end_stops_at_the_end_of_the_page() -> None:
    """A result in the next page of the chapter is not one of this page's call."""
    made = call("a")
    chapter = Chapter()
    page = page_of(user(), made)
    chapter.add_page(page)
    chapter.add_page(page_of(result("a"), index="usr-2"))
    assert page.results_end(made) is made


def test_a_cut_opens_the_calls_whose_results_it_drops() -> None:
    """A call that stays is open again once its result is cut away, and a call that is cut away is forgotten."""
    kept = call("a")
    page = page_of(user(), kept, call("b"))
    page.add(result("a"), after=kept)
    page.answer("a")
    page.cut(3)
    assert {"a": [kept]} == page.open_calls
    page.cut(2)
    assert {} == page.open_calls


@pytest.mark.parametrize("position", [0, 3, -1])
def test_a_cut_outside_the_page_is_refused(position: int) -> None:
    """Cutting at a position that the page does not have raises and changes nothing."""
    page = page_of(user(), call("a"))
    with pytest.raises(ValueError, match="has 2 entries"):
        page.cut(position)
    assert 2 == len(page)


def test_a_page_that_stands_somewhere_cannot_be_added() -> None:
    """A page joins no second chapter, nor the same one twice, before it is detached."""
    chapter, page = Chapter(), page_of(user())
    chapter.add_page(page)
    for other in (chapter, Chapter()):
        with pytest.raises(ValueError, match="attached already"):
            other.add_page(page)
    chapter._check()


def test_an_index_stands_once_in_a_chapter() -> None:
    """Another page of the same index is refused."""
    chapter = Chapter()
    chapter.add_page(page_of(user()))
    with pytest.raises(ValueError, match="usr-1 is attached already"):
        chapter.add_page(page_of(user()))


def test_a_page_of_another_chapter_is_no_neighbour() -> None:
    """Adding in front of a page of another chapter raises, and so does removing one."""
    chapter, stranger = Chapter(), page_of(user(), index="usr-2")
    with pytest.raises(ValueError, match="usr-2 is not a page"):
        chapter.add_page(page_of(user()), before=stranger)
    with pytest.raises(ValueError, match="usr-2 is not a page"):
        chapter.remove_page(stranger)
    assert 0 == len(chapter)


def test_a_detached_page_detaches_again() -> None:
    """Detaching a page that stands nowhere does nothing."""
    page = page_of(user())
    page.detach()
    assert 1 == len(page)


def test_the_system_part_is_replaced_whole() -> None:
    """New system pages take the place of all that were there, in their order."""
    chapter = SystemChapter()
    chapter.add_page(page_of(user(), index="sys-1"))
    chapter.replace([page_of(user(), index="sys-2"), page_of(user(), index="sys-3")])
    assert ["sys-2", "sys-3"] == [page.index for page in chapter.pages()]
    chapter._check()


def test_attaching_again_renews() -> None:
    """A recalled page that is attached again keeps its one place and takes the new attachment; fading it twice is fine."""
    chapter, page = RecallChapter(), page_of(user())
    block = openai.block("page")
    chapter.attach(page, Attachment(anchor="usr-7", turn=7, block=block, tokens=4))
    renewed = Attachment(anchor="usr-7", turn=9, block=block, tokens=4)
    chapter.attach(page, renewed)
    assert (1, {"usr-1": renewed}) == (len(chapter), chapter.attachments)
    chapter.fade("usr-1")
    chapter.fade("usr-1")
    assert (0, {}) == (len(chapter), chapter.attachments)
