"""How the contents page reads, and that it survives being written down."""

from itertools import chain
from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.contents.contents_page import ContentsEntry, ContentsPage, Detail, Directory, one_line, tokens_text
from tests.archive.contents.rows import row_of

texts = st.text(st.characters(exclude_categories=()), max_size=40)
lines = st.lists(texts, max_size=4).map(tuple)
leads = st.sampled_from(["", " ", ", ", " → "])
worths = st.floats(0, 9)
entries = st.builds(
    ContentsEntry,
    index=st.integers(1, 10**6).map("usr-{}".format),
    title=texts,
    summary=texts,
    lines=lines,
    outcome=texts,
    keywords=lines,
    words=st.lists(st.tuples(texts, worths, leads), max_size=4).map(tuple),
    entities=lines,
    state_changes=lines,
    importance=st.floats(0, 1),
    entries=st.integers(1, 99),
    tokens=st.integers(1, 10**6),
    recall_count=st.integers(0, 9),
    last_recall_turn=st.none() | st.integers(0, 99),
    pinned=st.booleans(),
    detail=st.sampled_from(Detail),
    shown_tokens=st.fixed_dictionaries({detail: st.integers(1, 99) for detail in Detail}),
)
directories = st.builds(
    Directory,
    index=st.integers(1, 99).map("usr-1..{}".format),
    spans=st.lists(st.tuples(st.integers(1, 99), st.text(max_size=20), worths, leads), max_size=9).map(tuple),
    price=st.floats(0, 2),
    covers=st.lists(st.tuples(st.integers(1, 50), st.integers(51, 99)), min_size=1, max_size=3).map(tuple),
    pages=st.integers(2, 99),
    archived_turn=st.integers(1, 99),
    last_recall_turn=st.none() | st.integers(1, 99),
    shown_tokens=st.integers(1, 99),
)


EXPORT = ContentsEntry(
    index="usr-12",
    title="Export of March invoices",
    summary="Invoices went to a CSV file.",
    lines=("user: how do I export March invoices as CSV?", "tool export_invoices: 412 rows → invoices-2026-03.csv"),
    entries=6,
    tokens=1_900,
    recall_count=2,
    last_recall_turn=41,
    shown_tokens={Detail.FULL: 60, Detail.BRIEF: 30, Detail.BARE: 20},
)


def with_detail(detail: Detail, **changes: Any) -> ContentsEntry:  # noqa: ANN401 (any attribute)
    return ContentsEntry.from_mapping({**EXPORT.to_mapping(), "detail": detail, **changes})


def test_an_entry_reads_as_documented() -> None:
    """An entry shows index, title, entries, size and recalls, and one indented line an entry."""
    assert (
        "[usr-12] Export of March invoices · 6 entries · 1.9k tokens · recalled 2×, last in turn 41\n"
        "  user: how do I export March invoices as CSV?\n"
        "  tool export_invoices: 412 rows → invoices-2026-03.csv"
    ) == EXPORT.render()


def test_detail_goes_in_steps() -> None:
    """With less detail an entry shows its summary, then its title alone, and its size goes with it."""
    head = EXPORT.render().splitlines()[0]
    assert f"{head}\n  Invoices went to a CSV file." == with_detail(Detail.BRIEF).render()
    assert head == with_detail(Detail.BARE).render() == with_detail(Detail.BRIEF, summary="").render()
    assert [60, 30, 20] == [with_detail(detail).contents_tokens for detail in Detail]


def test_only_recalled_pages_show_counts() -> None:
    """A page that was never recalled says nothing of recalls, and one entry is called so."""
    entry = with_detail(Detail.BARE, recall_count=0, last_recall_turn=None, entries=1, tokens=211)
    assert "[usr-12] Export of March invoices · 1 entry · 211 tokens" == entry.render()


@given(entries)
def test_an_entry_is_one_head_and_indented_lines(entry: ContentsEntry) -> None:
    """Whatever a page says, its entry is a line that begins with its index and indented lines, and nothing else."""
    head, *below = entry.render().split("\n")
    assert head.startswith(f"[{entry.index}] ")
    assert all(line.startswith("  ") for line in below)
    assert len(below) <= len(entry.lines) + 1
    assert entry.render().split("\n") == entry.render().splitlines()


@given(directories)
def test_a_directory_has_a_line_for_each_page_of_which_it_says_something(directory: Directory) -> None:
    """Whatever it says, a directory is a line that begins with its index, and lines that begin with numbers of pages."""
    heading, *below = directory.render().split("\n")
    assert directory.render().split("\n") == directory.render().splitlines()
    assert heading.startswith(f"[{directory.index}] ")
    assert sorted({number for number, *_ in directory.spans}) == [int(line.split(" ")[0]) for line in below]


@given(entries | directories)
def test_entries_survive_being_written(entry: ContentsEntry | Directory) -> None:
    """An entry or a directory read back from its mapping equals the one that was written."""
    assert entry == type(entry).from_mapping(entry.to_mapping())
    assert entry.render() == type(entry).from_mapping(entry.to_mapping()).render()


def test_a_directory_says_what_it_groups() -> None:
    """A directory shows its range, the number of its pages, and a row for each that has words: the user's, then the others'."""
    directory = Directory(
        index="usr-1..6",
        spans=(
            (2, "parcel", 1.0, " "),
            (2, "7", 1.0, " "),
            (4, "invoice", 1.0, ", "),
            (4, "412 rows", 1.0, " → "),
            (6, "sent", 1.0, " → "),
        ),
        covers=((1, 4), (6, 6)),
        pages=5,
        archived_turn=9,
    )
    assert "[usr-1..6] 5 pages\n2 parcel 7\n4 invoice → 412 rows\n6 → sent" == directory.render()
    assert ("2 parcel 7", "") == (row_of(directory, 2), row_of(directory, 3))
    assert [False, True, True, False, True, False] == [directory.holds(number) for number in (0, 1, 4, 5, 6, 7)]
    assert not directory.pinned
    unlisted = attrs.evolve(directory, spans=(), unlisted=True)
    assert "[usr-1..6] 5 pages · not listed" == unlisted.render()


def test_what_older_journals_hold_reads_as_it_did() -> None:
    """A directory whose stretches have no worth shows them as before; an entry's are its words."""
    value = {"index": "usr-1..6", "covers": [[1, 6]], "pages": 5, "archived_turn": 9, "shown_tokens": 7, "last_recall_turn": None}
    directory = Directory.from_mapping({**value, "spans": [[4, "invoice of March"], [2, "parcel 7"], [4, "412 rows"]]})
    assert "[usr-1..6] 5 pages\n2 parcel 7\n4 invoice of March, 412 rows" == directory.render()
    older = {key: item for key, item in EXPORT.to_mapping().items() if key != "words"} | {"spans": ["March invoices", "412 rows"]}
    assert (("March invoices", 1.0, ", "), ("412 rows", 1.0, ", ")) == ContentsEntry.from_mapping(older).words


def test_a_contents_page_is_its_heading_and_entries() -> None:
    """The contents page is a heading and its entries; without entries it is empty."""
    page = ContentsPage(index="usr-0", entries=(EXPORT,), tokens=60)
    assert page.render() == f"{page.heading()}\n{EXPORT.render()}"
    assert page.heading().startswith("[usr-0] ")
    assert "" == ContentsPage(index="usr-0", entries=(), tokens=0).render()


@pytest.mark.parametrize("breaking", ["\n", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\0", "\x1b"])
def test_every_line_break_is_a_space(breaking: str) -> None:
    """Nothing that ends a line, in any program's view, is left in a line."""
    assert "a b" == one_line(f"{breaking}a{breaking}{breaking}b{breaking}")


@pytest.mark.parametrize(
    ("tokens", "text"), [(0, "0 tokens"), (999, "999 tokens"), (1_000, "1.0k tokens"), (47_123, "47.1k tokens")]
)
def test_sizes_are_for_people(tokens: int, text: str) -> None:
    """Sizes below a thousand are exact, larger ones in thousands."""
    assert text == tokens_text(tokens)


DIRECTORY = Directory(index="usr-1..9", spans=(), covers=((1, 9),), pages=9, archived_turn=9)
words = st.tuples(st.sampled_from("abc"), st.sampled_from([1.0, 0.25]), st.sampled_from([" ", ", ", ""]))
rows = st.dictionaries(st.integers(1, 4), st.lists(words, min_size=1, max_size=5))


@given(said=rows, known=rows, kept=st.lists(st.booleans(), min_size=20, max_size=20))
def test_a_directory_is_read_back_by_what_was_known_of_its_pages(
    said: dict[int, list[Any]], known: dict[int, list[Any]], kept: list[bool]
) -> None:
    """What a directory says is the same written whole, or by what is known of each page."""
    before = {number: [(number, *word) for word in row] for number, row in known.items()}
    left = [span for span, stays in zip(chain.from_iterable(before.values()), kept, strict=False) if stays]
    for spans in (left, [(number, *word) for number, row in said.items() for word in row]):
        directory = attrs.evolve(DIRECTORY, spans=tuple(spans))
        written = orjson.loads(orjson.dumps(directory.to_mapping(before)))
        assert directory == Directory.from_mapping(written, before)
        assert directory == Directory.from_mapping(orjson.loads(orjson.dumps(directory.to_mapping())))


def test_a_directory_writes_no_word_that_is_known() -> None:
    """Of words that are known there are numbers: none for all of a page, else their places, with a lead where it is another."""
    before = {number: [(number, text, 1.0, " ") for text in "abc"] for number in (1, 2)}
    spans = (*before[1], (2, "a", 1.0, " "), (2, "c", 1.0, ", "), (3, "d", 1.0, " "), (3, "e", 0.5, ", "))
    written = attrs.evolve(DIRECTORY, spans=spans).to_mapping(before)
    assert [[1], [2, 0, 2, ", "], [3, "d", 1.0, " ", "e", 0.5, ", "]] == written["spans"]


def test_a_directory_that_lost_a_page_says_nothing_of_it() -> None:
    """Without one of its pages a directory keeps its index, and what it says of the others."""
    directory = Directory(
        index="usr-1..3", spans=((1, "kite", 1.0, " "), (2, "boat", 1.0, " ")), covers=((1, 3),), pages=3, archived_turn=9
    )
    left = directory.without(2)
    assert left is not None
    assert (((1, 1), (3, 3)), "[usr-1..3] 2 pages\n1 kite") == (left.covers, left.render())
    assert left.without(1) is not None
    assert attrs.evolve(left, pages=1).without(1) is None
