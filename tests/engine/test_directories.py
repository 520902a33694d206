"""Directories of the contents page: what they say of the pages they group, however often they were merged."""

from collections.abc import Iterator

import pytest

from memci.archive.contents import Directory
from memci.archive.eviction import page_number
from memci.engine.engine import Engine
from memci.engine.session import Session
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
