"""Directories of the contents page: what they say of the pages they group, however often they were merged."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from memci.archive.contents import ContentsEntry, Directory
from memci.archive.eviction import page_number
from memci.archive.page_facts import PageFacts
from memci.engine.engine import Engine
from memci.engine.grouping import MOST_GAPS, MOST_PAGES, ROOMS, Grouping
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


def directories(session: Session) -> list[Directory]:
    return [entry for entry in session.contents.entries if isinstance(entry, Directory)]


def oldest_directory(session: Session) -> Directory:
    return directories(session)[0]


def listed(session: Session, directory: Directory) -> list[str]:
    return [facts.index for facts in session.pages() if directory.holds(page_number(facts.index))]


def test_merged_directories_stay_one_range(session: Session) -> None:
    """Neighbouring pages are one range, though directories that are no more took numbers between them."""
    for directory in directories(session):
        assert 1 == len(directory.covers)
        assert len(listed(session, directory)) == directory.pages <= directory.covers[0][1] - directory.covers[0][0] + 1
        assert len(directory.gaps) <= MOST_GAPS


def test_directories_group_neighbours_of_a_bounded_number() -> None:
    """Where there is room for their lines, no directory groups more than 32 pages, and what it groups is neighbours."""
    with Engine("memory:", {"budget": {"window": 4_000, "reserve": 0}}) as engine, engine.session("talk") as session:
        session._core.counter = WordCounter()
        for number in range(TURNS):
            session.append({"role": "user", "content": f"Who watered the marigold{number} of neighbour{number} at noon?"})
            session.append({"role": "assistant", "content": f"It was gardener{number} who did, with the watering can."})
        found = directories(session)
        assert len(found) > 2
        assert all(2 <= directory.pages <= MOST_PAGES for directory in found)
        assert all(first.covers[-1][1] < second.covers[0][0] for first, second in pairwise(found))
        for directory in found:
            told = directory.render()
            numbers = [page_number(index) for index in listed(session, directory)]
            assert len(numbers) / 2 < sum(f"d{number} " in told or f"r{number}" in told for number in range(TURNS))
            assert len(numbers) == directory.pages


def test_words_that_all_pages_say_are_in_no_directory(session: Session) -> None:
    """What stands in a large part of the entries, such as a name of who speaks, opens and closes no stretch of a directory."""
    for directory in directories(session):
        for span in directory.keywords:
            assert not {"parcel", "left", "where"} & {span.split()[0].lower(), span.split()[-1].lower()}


def test_a_directory_gets_shorter_with_its_room() -> None:
    """A directory says of each page what tells most, without words that all have; with less room it keeps the first of it."""
    entries = [
        ContentsEntry(
            index=f"usr-{number}", title="", spans=(f"red kite{number}", f"blue boat{number}"), turn=number, first_seq=number
        )
        for number in range(1, 5)
    ]
    grouping = Grouping(entries, "usr-9", lambda text: len(text.split()))
    directory = grouping.group(entries)
    assert ("usr-9", ((1, 4),), 4) == (directory.index, directory.covers, directory.pages)
    assert ("kite1", "kite2", "kite3", "kite4", "boat1", "boat2", "boat3", "boat4") == directory.keywords
    for room in ROOMS[1:]:
        thinned = grouping.thinned(directory, room)
        assert directory.keywords[: len(thinned.keywords)] == thinned.keywords != ()
        assert thinned.shown_tokens <= directory.shown_tokens
    assert 1 == len(grouping.thinned(directory, 0.0).keywords)


def test_a_rewind_into_a_directory_counts_what_is_left(session: Session) -> None:
    """A directory that loses pages to a rewind says how many are left, and how long its line then is."""
    before = oldest_directory(session)
    session.rewind("usr-100/1")
    directory = oldest_directory(session)
    assert before.index == directory.index
    assert directory.covers[-1][1] < 100
    assert len(listed(session, directory)) == directory.pages
    assert len(directory.render().split()) + 1 == directory.shown_tokens


def test_a_directory_can_be_recalled(session: Session) -> None:
    """Recalling a directory attaches the list of its pages, which fades like a page, and counts for no page."""
    directory = oldest_directory(session)
    before = session.pages()
    page = session.recall(directory.index)
    (message,) = page.messages
    assert page.messages == session.page(directory.index).messages
    assert message["content"].startswith(f"[{directory.index}] Directory of {directory.pages} pages")
    assert all(len(message["content"].splitlines()) <= MOST_LINES + 1 for message in page.messages)
    assert before == session.pages()
    assert oldest_directory(session).last_recall_turn == session.turn
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
    directory = oldest_directory(session)
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
    directory = oldest_directory(session)
    session.evict(directory.covers[0][0])
    assert "evicted" == session.facts(directory.covers[0][0]).state
    assert directory.covers[0][0] == page_number(session.recall(directory.covers[0][0]).index)
    assert directory.index == session.recall(directory.index).index


@pytest.mark.parametrize("command", ["evict", "restore", "pin", "fold", "facts", "explain"])
def test_a_directory_is_no_page(session: Session, command: str) -> None:
    """What is done to pages is refused for a directory, with words that say so."""
    with pytest.raises(PageNotFoundError, match="is a directory"):
        getattr(session, command)(oldest_directory(session).index)
