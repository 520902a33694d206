"""What chapters promise to do in constant time, counted in calls and lines of Python, not in seconds."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from memci.chapters.page import Chapter, MessageNode, Page
from memci.messages.message import Message

MESSAGE = Message(raw=b"{}", role="assistant")
SMALL, LARGE = 10, 10_000


def page_of(index: str, entries: int) -> Page:
    page = Page(index=index, turn=1)
    for _ in range(entries):
        page.add(MessageNode(message=MESSAGE, tokens=3))
    return page


def chapter_of(pages: int, entries: int) -> Chapter:
    chapter = Chapter()
    for number in range(pages):
        chapter.add_page(page_of(f"usr-{number}", entries))
    return chapter


def lines_run(action: Callable[[], object]) -> int:
    """Return how many lines of Python run while *action* does, those of the garbage collector's callbacks left out."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401 (what settrace asks for)
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
        gc.enable()
    return lines


def append_node(chapter: Chapter) -> None:
    assert chapter.last_page is not None
    chapter.last_page.add(MessageNode(message=MESSAGE, tokens=3))


def detach_middle(chapter: Chapter) -> None:
    middle = chapter.find_page("usr-5")
    assert middle is not None
    middle.detach()


def detach_and_attach(chapter: Chapter) -> None:
    middle, following = chapter.find_page("usr-5"), chapter.find_page("usr-6")
    assert middle is not None
    middle.detach()
    chapter.add_page(middle, before=following)


def splice(chapter: Chapter) -> None:
    middle, other = chapter.find_page("usr-5"), Chapter()
    assert middle is not None
    middle.detach()
    other.add_page(middle)


def measure(chapter: Chapter) -> None:
    assert chapter.last_page is not None
    assert chapter.tokens == 3 * len(chapter.message_list) == chapter.message_list.tokens
    assert chapter.last_page.tokens == 3 * len(chapter.last_page)


@pytest.mark.parametrize("action", [append_node, detach_middle, detach_and_attach, splice, measure])
@pytest.mark.parametrize(("pages", "entries"), [(LARGE, 1), (SMALL, LARGE // SMALL)], ids=["many-pages", "long-pages"])
def test_cost_does_not_depend_on_length(action: Callable[[Chapter], None], pages: int, entries: int) -> None:
    """Appending, detaching, attaching, splicing and measuring run as many lines whatever the length of list and page."""
    small, large = chapter_of(SMALL, 1), chapter_of(pages, entries)
    assert lines_run(lambda: action(small)) == lines_run(lambda: action(large))
    large._check()
