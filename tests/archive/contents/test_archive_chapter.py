"""The archive chapter: entries by age, and the one message that shows them."""

from hypothesis import given
from hypothesis import strategies as st

from memci.archive.contents.archive_chapter import ArchiveChapter
from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory
from memci.messages.formats import openai


def entry(number: int, tokens: int = 5) -> ContentsEntry:
    return ContentsEntry(index=f"usr-{number}", title=f"page {number}", first_seq=10 * number, shown_tokens={Detail.FULL: tokens})


def directory(*covers: tuple[int, int]) -> Directory:
    return Directory(
        index=f"usr-{covers[0][0]}..{covers[-1][1]}",
        spans=(),
        covers=covers,
        pages=sum(last - first + 1 for first, last in covers),
        archived_turn=9,
    )


def chapter_of(*entries: ContentsEntry | Directory) -> ArchiveChapter:
    chapter = ArchiveChapter("usr-0")
    for each in entries:
        chapter.put(each)
    return chapter


@given(st.lists(st.integers(1, 30), max_size=12))
def test_entries_stand_by_age(numbers: list[int]) -> None:
    """In whatever order entries come, they stand by their first entry, each once, the latest put."""
    chapter = ArchiveChapter("usr-0")
    for place, number in enumerate(numbers):
        chapter.put(entry(number, tokens=place))
    assert sorted(set(numbers)) == [int(each.index[4:]) for each in chapter.entries]
    latest = {number: place for place, number in enumerate(numbers)}
    assert [latest[number] for number in sorted(latest)] == [each.contents_tokens for each in chapter.entries]
    assert sum(latest.values()) == chapter.contents.tokens


def test_pages_are_found_by_index() -> None:
    """A page is found by its own entry or by the directory that groups it, and by nothing once it is dropped."""
    chapter = chapter_of(directory((1, 3), (5, 5)), entry(4), entry(6))
    assert entry(4) == chapter.find_entry("usr-4")
    assert chapter.find_entry("usr-1..5") is None
    assert ["usr-1..5", None, "usr-1..5"] == [
        found.index if (found := chapter.find_directory(f"usr-{number}")) else None for number in (1, 4, 5)
    ]
    assert entry(4) == chapter.drop("usr-4")
    assert chapter.drop("usr-4") is None
    assert chapter.find_entry("usr-4") is None


def test_ranges_are_of_what_is_listed_or_shown() -> None:
    """Of a range of numbers, those are returned that have an entry, are in a directory, or stand in the window's message."""
    chapter = chapter_of(directory((1, 3), (5, 8)), entry(4), entry(10))
    assert [(3, 3), (5, 6), (4, 4)] == chapter.ranges(3, 6)
    assert [(10, 10)] == chapter.ranges(9, 99)
    chapter.publish(openai.block("shown"), 9, ["usr-1..8", "usr-9"], [directory((1, 8))])
    assert {(9, 9), (10, 10), (7, 8)} == set(chapter.ranges(7, 12))
    assert [] == chapter.ranges(11, 12)


def test_the_shown_message_changes_only_when_it_is_published() -> None:
    """The chapter's one message is what was published last; entries change beside it."""
    chapter = chapter_of(entry(1))
    assert (0, 0) == (len(chapter.message_list), chapter.tokens)
    chapter.publish(openai.block(chapter.contents.render()), 42, ["usr-1"])
    chapter.put(entry(2))
    assert (1, 42, frozenset({"usr-1"})) == (len(chapter.message_list), chapter.tokens, chapter.published)
    chapter.publish(openai.block(chapter.contents.render()), 50, ["usr-1", "usr-2"])
    assert (1, 50) == (len(chapter.message_list), chapter.tokens)
    chapter.recount(60)
    assert (60, frozenset({"usr-1", "usr-2"})) == (chapter.tokens, chapter.published)
    chapter.publish(None, 0, ())
    assert (0, frozenset()) == (chapter.tokens, chapter.published)
    chapter.recount(60)
    assert 0 == chapter.tokens
    chapter._check()


def test_a_preview_changes_nothing() -> None:
    """The contents page with other entries can be looked at without putting them in."""
    chapter = chapter_of(entry(1, tokens=3))
    assert 12 == chapter.preview([entry(1, tokens=3), entry(2, tokens=9)]).tokens
    assert 3 == chapter.contents.tokens
    chapter.replace([entry(7), entry(8)])
    assert ["usr-7", "usr-8"] == [each.index for each in chapter.entries]
