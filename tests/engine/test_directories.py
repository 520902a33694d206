"""Directories of the contents page: what they say of the pages they group, however often they were merged."""

from collections.abc import Iterator

import pytest

from memci.archive.contents import Directory
from memci.archive.eviction import page_number
from memci.archive.page_facts import PageFacts
from memci.engine.engine import Engine
from memci.engine.listing import MOST_LINES
from memci.engine.session import Session
from memci.errors import PageNotFoundError
from memci.testing.counters import WordCounter

TURNS = 300


@pytest.fixture
def session() -> Iterator[Session]:
    """A session that folded so often that its oldest pages went through many directories."""
    with Engine("memory:", {"budget": {"window": 900, "reserve": 100}}) as engine, engine.session("long") as session:
        session._core.counter = WordCounter()
        for number in range(TURNS):
            session.append(
                {"role": "user", "content": f"Where is parcel {7 * number} of customer c{number} in depot d{number % 13}?"}
            )
            session.append(
                {"role": "assistant", "content": f"Parcel {7 * number} left depot d{number % 13} on day {number % 30}."}
            )
        yield session


def only_directory(session: Session) -> Directory:
    (directory,) = (entry for entry in session.contents.entries if isinstance(entry, Directory))
    return directory


def listed(session: Session, directory: Directory) -> list[str]:
    return [facts.index for facts in session.pages() if directory.holds(page_number(facts.index))]


def test_merged_directories_stay_one_range(session: Session) -> None:
    """Neighbouring pages are one range, though directories that are no more took numbers between them."""
    directory = only_directory(session)
    assert 1 == len(directory.covers)
    assert len(listed(session, directory)) == directory.pages < directory.covers[0][1]
    assert len(directory.gaps) <= 3


def test_a_rewind_into_a_directory_counts_what_is_left(session: Session) -> None:
    """A directory that loses pages to a rewind says how many are left, and how long its line then is."""
    before = only_directory(session)
    session.rewind("usr-100/1")
    directory = only_directory(session)
    assert before.index == directory.index
    assert directory.covers[-1][1] < 100
    assert len(listed(session, directory)) == directory.pages
    assert len(directory.render().split()) + 1 == directory.shown_tokens


def test_a_directory_can_be_recalled(session: Session) -> None:
    """Recalling a directory attaches the list of its pages, which fades like a page, and counts for no page."""
    directory = only_directory(session)
    before = session.pages()
    page = session.recall(directory.index)
    (message,) = page.messages
    assert page.messages == session.page(directory.index).messages
    assert message["content"].startswith(f"[{directory.index}] Directory of {directory.pages} pages")
    assert all(len(message["content"].splitlines()) <= MOST_LINES + 1 for message in page.messages)
    assert before == session.pages()
    assert only_directory(session).last_recall_turn == session.turn
    assert page.messages == session.recall(directory.index).messages
    assert [f"> {line}" for line in message["content"].splitlines()] == recalled_lines(session)
    session.fade(directory.index)
    assert [] == recalled_lines(session)
    assert session.verify().ok


def recalled_lines(session: Session) -> list[str]:
    texts = [str(message["content"]) for message in session.window().messages]
    return [line for text in texts if text.startswith("[recalled page") for line in text.splitlines() if line.startswith("> ")]


def test_an_opened_directory_names_its_pages(session: Session) -> None:
    """Each line of a directory names one page, or the first and the last of several neighbours: no page is missing."""
    directory = only_directory(session)
    named = [
        facts.index
        for line in str(session.page(directory.index).messages[0]["content"]).splitlines()[1:]
        for facts in ranged(session, line)
    ]
    assert listed(session, directory) == named


def ranged(session: Session, line: str) -> list[PageFacts]:
    first, _, last = line.split(" ", maxsplit=1)[0].strip("[]").partition("..")
    low, high = page_number(first), page_number(last or first)
    return [facts for facts in session.pages() if low <= page_number(facts.index) <= high]


def test_what_the_window_shows_can_be_recalled(session: Session) -> None:
    """A page that was evicted from a directory, and a directory that is no more, are recalled while the window shows them."""
    directory = only_directory(session)
    session.evict(directory.covers[0][0])
    assert "evicted" == session.facts(directory.covers[0][0]).state
    assert directory.covers[0][0] == page_number(session.recall(directory.covers[0][0]).index)
    assert directory.index == session.recall(directory.index).index


@pytest.mark.parametrize("command", ["evict", "restore", "pin", "fold", "facts", "explain"])
def test_a_directory_is_no_page(session: Session, command: str) -> None:
    """What is done to pages is refused for a directory, with words that say so."""
    with pytest.raises(PageNotFoundError, match="is a directory"):
        getattr(session, command)(only_directory(session).index)
