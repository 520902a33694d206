"""Directories of the contents page: what they say of the pages they group, however often they were merged."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs
import pytest

from memci.archive.catalogue.page_facts import PageFacts
from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item
from memci.archive.contents.shrink import MOST_ROWS, Shrinkage, shrink
from memci.archive.summarizers.summary import Word
from memci.chapters.address import is_range, last_number, page_number
from memci.engine.engine import Engine
from memci.engine.history.apply import apply
from memci.engine.history.events import PagesFolded, from_record
from memci.engine.reading.pages import MOST_LINES
from memci.engine.session import Session
from memci.errors import InvalidIdError, PageNotFoundError
from tests.archive.contents.rows import row_of
from tests.engine.core.test_short_ways import called
from tests.word_counter import WordCounter

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


def test_pages_that_go_into_a_directory_at_once_have_no_entry_made(session: Session) -> None:
    """A fold that is read back from the journal makes the entries that are listed then, and no more."""
    folds = [record for record in session._core.store.journal.read() if record.kind == PagesFolded.kind]
    event = from_record(folds[-1])
    assert isinstance(event, PagesFolded)
    state = session._core.state_at(folds[-1].seq - 1)
    calls = called(lambda: apply(state, event, folds[-1].seq))
    kept = {entry.index for entry in state.archive.entries}.intersection(event.folded)
    assert len(kept) <= calls["ContentsEntry.from_mapping"] < len(event.folded)


def test_merged_directories_stay_one_range(session: Session) -> None:
    """Neighbouring pages are one range, by which the directory is called."""
    for directory in directories(session):
        ((first, last),) = directory.covers
        assert f"usr-{first}..{last}" == directory.index
        assert len(listed(session, directory)) == directory.pages == last - first + 1


def test_numbers_that_a_rewind_took_back_part_no_range() -> None:
    """Where an answer is told again and again, numbers of pages are left out; a directory goes on over them."""
    with Engine("memory:", {"budget": {"window": 900, "reserve": 0}}) as engine, engine.session("again") as session:
        session._core.counter = WordCounter()
        for number in range(60):
            for _ in range(2):
                entry = session.append({"role": "user", "content": f"Where is parcel {7 * number} of customer c{number}?"})
                session.append({"role": "assistant", "content": f"Parcel {7 * number} left depot d{number} on some day."})
                if number % 3 == 0:
                    session.rewind(entry.address)
        session.fold("all")
        found = directories(session)
        assert all(1 == len(directory.covers) for directory in found)
        assert any(directory.pages < directory.covers[0][1] - directory.covers[0][0] for directory in found)
        assert all(len(listed(session, directory)) == directory.pages for directory in found)


def test_directories_group_neighbours_of_a_bounded_number() -> None:
    """No directory has more than 16 rows, and what it groups is neighbours."""
    with Engine("memory:", {"budget": {"window": 4_000, "reserve": 0}}) as engine, engine.session("talk") as session:
        session._core.counter = WordCounter()
        for number in range(TURNS):
            session.append({"role": "user", "content": f"Who watered the marigold{number} of neighbour{number} at noon?"})
            session.append({"role": "assistant", "content": f"It was gardener{number} who did, with the watering can."})
        found = directories(session)
        assert len(found) > 2
        assert all(2 <= directory.pages and len(directory.listed) <= MOST_ROWS for directory in found)
        assert all(first.covers[-1][1] < second.covers[0][0] for first, second in pairwise(found))
        for directory in found:
            numbers = [page_number(index) for index in listed(session, directory)]
            told = [any(f"{end}{number - 1}" in row_of(directory, number) for end in "dr") for number in numbers]
            assert len(numbers) / 2 <= sum(told)
            assert len(numbers) == directory.pages


def test_words_that_all_pages_say_are_in_no_directory(session: Session) -> None:
    """What a large part of the pages say, such as a name of who speaks, gives way to what tells a page from the others."""
    for directory in directories(session):
        assert not {"parcel", "left", "where"} & {text.lower() for _, text, *_ in directory.spans}


def test_a_named_page_is_known_by_its_name() -> None:
    """What a directory says first of a page that the application named is that name."""
    with Engine("memory:", {"budget": {"window": 900, "reserve": 0}}) as engine, engine.session("named") as session:
        session._core.counter = WordCounter()
        names = {}
        for number in range(40):
            names[session.begin_page(f"Harbour{number} of the north")] = number
            session.extend([{"role": "user", "content": f"Yes {number}"}, {"role": "assistant", "content": "So it is."}])
        session.fold("all")
        told = "\n".join(directory.render() for directory in directories(session))
        said = [number for index, number in names.items() if f"\n{page_number(index)} Harbour{number}" in told]
        assert len(said) > len(told.splitlines()) / 2
        assert session.verify().ok


@pytest.mark.parametrize("pinned", [[2], [3, 5], [1], [2, 4, 6, 8]])
def test_pinned_pages_do_not_keep_others_apart(pinned: list[int]) -> None:
    """Neighbours of pinned pages are grouped in one directory around them, and no page is evicted."""
    config = {"budget": {"window": 2_000, "reserve": 0}, "eviction": {"zero_recall_turns": None, "stale_turns": None}}
    with Engine("memory:", config) as engine, engine.session("paid") as session:
        for number in range(1, 60):
            text = f"Day {number}: we paid {7 * number} euros. " + f"word{number} " * 60
            session.append({"role": "user", "content": text})
            session.append({"role": "assistant", "content": f"Noted: day {number}, {7 * number} euros."})
            if number in pinned:
                session.pin(number)
        assert [] == session.pages("evicted")
        assert any(directory.encloses(7) for directory in directories(session))
        assert all(session.facts(number).pinned for number in pinned)
        assert session.verify().ok


def test_restored_pages_go_back_to_where_they_were() -> None:
    """Whichever pages are taken out of directories, each is listed once when they are grouped again, in ranges apart."""
    for taken in ([1, 7], [1, 2, 3, 5, 6, 7], [2], [4], [3, 4, 5]):
        with Engine("memory:", {"contents": {"max_tokens": 300}}) as engine, engine.session("orders") as session:
            for number in range(1, 10):
                order(session, number)
                session.fold("all")
            session.pin(8)
            for number in taken:
                session.restore(number)
            for number in range(10, 16):
                order(session, number)
                session.fold("all")
                assert [] == session.pages("evicted")
                assert all(first.covers[-1][1] < second.covers[0][0] for first, second in pairwise(directories(session)))
                listed_pages = [index for each in directories(session) for index in listed(session, each)]
                assert len(listed_pages) == len(set(listed_pages)) == sum(each.pages for each in directories(session))
            session.undo_fold()
            assert session.verify().ok


def order(session: Session, number: int) -> None:
    text = f"Order {number}: the blue kettle number {37 * number} goes to town {number}, please confirm the address."
    session.append({"role": "user", "content": text})
    session.append({"role": "assistant", "content": f"Kettle {37 * number} goes to town {number} on day {3 * number}."})


def test_undoing_a_fold_brings_directories_back_as_they_were() -> None:
    """A page that had its own entry beside a directory has it again, and the directory lists one page less."""
    with Engine("memory:", {"contents": {"max_tokens": 60}}) as engine, engine.session("orders") as session:
        for number in (1, 2, 3):
            order(session, number)
        session.fold("all")
        session.restore(2)
        before = session.contents.render()
        session.fold(["usr-1"])
        session.undo_fold()
        assert before == session.contents.render()


def test_pinned_pages_give_way_to_all_others() -> None:
    """Where pinned entries take all the room, they keep their title, and directories their range, before any page is evicted."""
    with Engine("memory:", {"budget": {"window": 1_500, "reserve": 0}}) as engine, engine.session("pins") as session:
        for number in range(1, 151):
            order(session, number)
        session.fold("all")
        for number in range(3, 150, 10):
            session.pin(number)
        for number in range(151, 170):
            order(session, number)
            session.window()
        session.fold("all")
        assert [] == session.pages("evicted")
        assert "usr-5" == session.recall(5).index


def shrunk(limit: int, entries: Sequence[Item], room: int = 0) -> Shrinkage:
    return shrink(
        entries,
        limit=limit,
        room=room,
        low_share=1.0,
        directories=True,
        turn=9,
        count=lambda text: len(text.split()),
        has_pages=lambda _first, _last: False,
    )


def told_of(number: int, *words: Word) -> ContentsEntry:
    return ContentsEntry(index=f"usr-{number}", title="", words=words, tokens=9, shown_tokens=dict.fromkeys(Detail, 9))


def test_all_pages_pay_the_same_price_for_a_token() -> None:
    """With less room words leave that are worth least for their tokens, wherever they stand; then rows that repay no more."""
    plain = [told_of(number, (f"kite{number}", 1.0, " "), (f"grey{number}", 0.4, " ")) for number in range(1, 6)]
    telling = told_of(6, ("42 EUR", 3.0, " "), ("invoice", 1.2, " "), ("Ada", 1.1, " → "))
    sizes = []
    for limit in (40, 20, 14, 11):
        left = shrunk(limit, [*plain, telling])
        (directory,) = left.entries
        assert isinstance(directory, Directory)
        sizes.append(directory.contents_tokens)
        assert directory.contents_tokens <= limit
        assert "invoice" in row_of(directory, 6) or not directory.listed
    assert sizes == sorted(sizes, reverse=True)


def test_entries_stay_while_there_is_room() -> None:
    """Entries of short pages give way to rows from a fifth of the room on, which may be more than the limit of one window."""
    pages = [told_of(number, ("ferry", 9.0, "")) for number in range(1, 11)]
    assert pages == shrunk(450, pages).entries
    assert 10 == shrunk(449, pages).entries[0].pages
    assert pages == shrunk(90, pages, room=450).entries
    assert 10 == shrunk(89, pages, room=450).entries[0].pages


def test_the_price_only_rises() -> None:
    """What comes later has to be worth what the words are that stand there, however much room is left."""
    first = shrunk(12, [told_of(number, (f"kite{number}", 1.0, " "), (f"grey{number}", 0.4, " ")) for number in range(1, 9)])
    later = told_of(9, ("kite9", 1.0, " "), ("grey9", 0.2, " "))
    again = shrunk(1_000, [*first.entries, later])
    prices = [entry.price for each in (first, again) for entry in each.entries if isinstance(entry, Directory)]
    assert prices[0] == prices[-1] > 0
    assert "grey9" not in again.entries[-1].render()


def test_rows_of_like_pages_do_not_go_at_once() -> None:
    """Where all pages are worth the same, the oldest rows make room, and those of newer pages stay."""
    pages: list[Item] = [told_of(number, (f"kite{number}", 1.0, " "), (f"boat{number}", 1.0, " ")) for number in range(1, 81)]
    left = shrunk(120, pages).entries
    listed = [number for entry in left if isinstance(entry, Directory) for number in entry.listed]
    assert 80 in listed
    assert 16 <= len(listed) < 80


def test_what_is_taken_out_of_a_directory_makes_it_no_longer() -> None:
    """Only a price that leaves no row is told in the heading: without its one row, as that of an erased page, it is shorter."""
    (priced,) = shrunk(14, [told_of(number, (f"kite{number}", 0.2, " ")) for number in range(1, 20)]).entries
    assert isinstance(priced, Directory)
    assert "not listed" in priced.render()
    directory = attrs.evolve(priced, spans=((2, "kite", 9.0, " "),), unlisted=False)
    assert "not listed" not in attrs.evolve(directory, spans=()).render()
    left = directory.without(2)
    assert left is not None
    assert len(left.render()) < len(directory.render())


def test_the_more_pages_the_shorter_their_rows() -> None:
    """With as much room for each, more of many pages have a row than of few, and it says less."""
    listed = {}
    for many in (200, 6_000):
        words = {
            number: [(f"{word}{number}", 2.0 - number % 2, " ") for word in ("kite", "boat", "sky", "dog")]
            for number in range(many)
        }
        left = shrunk(2 * many, [told_of(number + 1, *told) for number, told in words.items()]).entries
        spans = [entry.spans for entry in left if isinstance(entry, Directory)]
        listed[many] = len({number for of_one in spans for number, *_ in of_one}) / many
        assert sum(entry.contents_tokens for entry in left) <= 2 * many
    assert 0.2 < listed[200] < 0.7 * listed[6_000]


def test_a_page_that_was_recalled_twice_leaves_its_directory() -> None:
    """It keeps an entry of its own, as long as such entries take no more than a quarter of the room."""
    pages = [told_of(number, (f"kite{number}", 1.0, " ")) for number in range(1, 9)]
    pages[3] = attrs.evolve(pages[3], recall_count=2, last_recall_turn=8)
    assert ["usr-1..8", "usr-4"] == [entry.index for entry in shrunk(40, pages).entries]
    assert ["usr-1..8"] == [entry.index for entry in shrunk(30, pages).entries]


def test_words_that_are_left_out_leave_no_gap() -> None:
    """What others said is still told apart from what the user said, whichever words are left."""
    page = told_of(1, ("kite", 2.0, " "), ("grey", 0.1, " "), ("ok", 0.1, " → "), ("sky", 0.1, " "), ("Ada", 2.0, " "))
    (directory,) = shrunk(12, [page, told_of(2, ("boat", 2.0, " → "))]).entries
    assert isinstance(directory, Directory)
    assert ("1 kite → Ada", "2 → boat") == (row_of(directory, 1), row_of(directory, 2))


def test_a_rewind_into_a_directory_counts_what_is_left(session: Session) -> None:
    """A directory that loses pages to a rewind says how many are left, and how long its line then is."""
    before = oldest_directory(session)
    session.rewind("usr-100/1")
    directory = oldest_directory(session)
    assert page_number(before.index) == page_number(directory.index)
    assert directory.covers[-1][1] == last_number(directory.index) < 100
    assert len(listed(session, directory)) == directory.pages
    assert len(directory.render().split()) + 1 == directory.shown_tokens


def test_a_directory_can_be_recalled(session: Session) -> None:
    """Recalling a directory attaches the list of its pages, which fades like a page, and counts for no page."""
    directory = directories(session)[1]
    before = session.pages()
    page = session.recall(directory.index)
    (message,) = page.messages
    assert page.messages == session.toolbox.messages(directory.index)
    assert message["content"].startswith(f"[{directory.index}] Directory of {directory.pages} pages")
    assert all(len(message["content"].splitlines()) <= MOST_LINES + 1 for message in page.messages)
    assert before == session.pages()
    assert directories(session)[1].last_recall_turn == session.turn
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
    named = [facts.index for line in opened(session, directory.index) for facts in ranged(session, line)]
    assert listed(session, directory) == named


def ranged(session: Session, line: str) -> list[PageFacts]:
    index = index_in(line)
    low, high = page_number(index), last_number(index)
    return [facts for facts in session.pages() if low <= page_number(facts.index) <= high]


def index_in(line: str) -> str:
    return line.split(" ", maxsplit=1)[0].strip("[]")


def opened(session: Session, index: str) -> list[str]:
    """Return the lines below the heading of a range that is opened."""
    return str(session.toolbox.messages(index)[0]["content"]).splitlines()[1:]


def test_every_page_is_reached_in_a_few_steps(session: Session) -> None:
    """What stands for several pages can be opened in its turn, until each page of a directory has a line."""
    directory = oldest_directory(session)
    found: list[str] = []
    levels, indexes = 0, [directory.index]
    while indexes:
        levels += 1
        indexes = [index_in(line) for index in indexes for line in opened(session, index)]
        found += [index for index in indexes if not is_range(index)]
        indexes = [index for index in indexes if is_range(index)]
    assert listed(session, directory) == sorted(found, key=page_number)
    assert 2 <= levels <= 4


@pytest.mark.parametrize("given", ["usr-3..5", "usr-3..usr-5"])
def test_any_range_can_be_recalled(session: Session, given: str) -> None:
    """A range within a directory, or across several, is recalled as the list of its pages, under its short name."""
    page = session.recall(given)
    assert "usr-3..5" == page.index
    assert ["usr-3", "usr-4", "usr-5"] == [index_in(line) for line in opened(session, page.index)]
    assert [f"> {line}" for line in str(page.messages[0]["content"]).splitlines()] == recalled_lines(session)
    across = [entry.index for entry in session.contents.entries][-1]
    assert f"usr-1..{page_number(across)}" == session.recall(f"usr-1..{page_number(across)}").index


def test_a_range_lists_no_evicted_page(session: Session) -> None:
    """A page that is evicted is invisible in the ranges around it, and a range of such pages only is no page."""
    for number in (3, 4, 5):
        session.evict(number)
    session.fold("all")
    assert ["usr-2", "usr-6"] == [index_in(line) for line in opened(session, "usr-2..6")]
    with pytest.raises(PageNotFoundError, match=r"usr-3\.\.5 holds no pages"):
        session.recall("usr-3..5")


def test_pages_leave_the_window_with_their_directory(session: Session) -> None:
    """What was recalled of a directory that is evicted fades, and what was recalled of others stays."""
    directory = oldest_directory(session)
    inside, outside = directory.covers[0][0], directory.covers[-1][1] + 1
    session.recall(inside)
    session.recall(outside)
    session.evict(directory.index)
    assert [f"usr-{outside}"] == list(session._core.state.recalled.attachments)


@pytest.mark.parametrize("given", ["usr-500..900", "sys-1..2"])
def test_a_range_without_pages_is_an_error(session: Session, given: str) -> None:
    """A range in which there is no page, and one of the system part, is an error that says where pages are listed."""
    with pytest.raises(PageNotFoundError, match="list_pages"):
        session.recall(given)


@pytest.mark.parametrize("given", ["usr-5..3", "usr-3..sys-5", "usr-3..", "usr-3..5..7", "usr-03..5"])
def test_what_is_no_range_is_an_error(session: Session, given: str) -> None:
    """What looks like a range and is none is an error that shows how one is written."""
    with pytest.raises(InvalidIdError, match=r"usr-12\.\.15"):
        session.recall(given)


def test_a_recalled_range_leaves_with_its_pages(session: Session) -> None:
    """A list of pages of which a rewind takes some leaves the window."""
    session.recall("usr-90..110")
    session.rewind("usr-100/1")
    assert [] == recalled_lines(session)
    assert session.verify().ok


def test_what_the_window_shows_can_be_recalled(session: Session) -> None:
    """A page that was evicted from a directory, and a directory that is no more, are recalled while the window shows them."""
    directory = oldest_directory(session)
    session.evict(directory.covers[0][0])
    assert "evicted" == session.facts(directory.covers[0][0]).state
    assert directory.covers[0][0] == page_number(session.recall(directory.covers[0][0]).index)
    assert directory.index == session.recall(directory.index).index


@pytest.mark.parametrize("command", ["fold", "erase", "rewind"])
def test_a_directory_is_no_page(session: Session, command: str) -> None:
    """What is done to one page is refused for a directory, with words that say so."""
    index = oldest_directory(session).index
    with pytest.raises(PageNotFoundError, match="is a directory"):
        getattr(session, command)(f"{index}/1" if command == "rewind" else index)
