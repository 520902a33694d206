"""What it costs to bring a contents page below its limit, in calls: work for what is new in it."""

from functools import partial
from itertools import groupby
from operator import itemgetter

import attrs

from memci.archive.contents import contents_page
from memci.archive.contents.contents_page import ContentsEntry, Detail, Item
from memci.archive.contents.shrink import Shrinkage, shrink
from memci.archive.summarizers.summary import ALWAYS, GIVEN, OTHERS, PASSAGE, RESULT, SENTENCE, plain_words
from tests.python_calls import python_calls

ROWS = 16  # of a directory


def entry(number: int) -> ContentsEntry:
    words = plain_words(f"{word}{number}" for word in ("harbour", "lantern", "orchard"))
    shown = {Detail.FULL: 30, Detail.BRIEF: 20, Detail.BARE: 10}
    return ContentsEntry(index=f"usr-{number}", title="harbour", words=words, tokens=200, shown_tokens=shown)


def shrunk(entries: list[Item], limit: int, *, directories: bool = True, length: float = 0.0) -> Shrinkage:
    return shrink(
        entries,
        limit=limit,
        low_share=0.9,
        directories=directories,
        turn=1,
        count=len,
        has_pages=lambda _first, _last: False,
        length=length,
    )


def test_directories_that_stay_are_read_once() -> None:
    """However many directories a contents page has, a fold reads the words of new pages only."""
    known = shrunk([entry(number) for number in range(1, 20 * ROWS + 1)], 9_000).entries
    assert len(known) > 10
    shrunk(known, 9_000)
    calls = python_calls(lambda: shrunk([*known, entry(20 * ROWS + 1), entry(20 * ROWS + 2)], 9_000))
    assert 2 == calls[contents_page._forms.__code__]


def test_a_price_costs_no_call_a_word() -> None:
    """What rows say is weighed and chosen as columns: four times the words a page take hardly more calls."""
    calls = []
    for words in (10, 40):
        said = tuple((f"harbour{number}", 5.0 + number % 7, " ") for number in range(words))
        entries: list[Item] = [attrs.evolve(entry(number), words=said) for number in range(1, 8 * ROWS + 1)]
        calls.append(python_calls(partial(shrunk, entries, 3_000)).total())
    assert calls[1] <= 1.2 * calls[0]


def test_less_detail_costs_a_few_calls_an_entry() -> None:
    """Entries lose detail one after the other, without a sum over all of them for each: twice as many take twice the calls."""
    few, many = ([entry(number) for number in range(1, pages + 1)] for pages in (50, 100))
    once, twice = (python_calls(partial(shrunk, list(each), 20 * len(each), directories=False)).total() for each in (few, many))
    assert twice <= 2.1 * once


def test_a_word_that_is_always_shown_needs_another_one() -> None:
    """At any price a row has it as long as it has any other word, and goes with the last of them."""
    entries: list[Item] = []
    for number in range(1, 8 * ROWS + 1):
        words = (
            (f"harbour{number}", 9.0, ""),
            (f"lantern{number}", 3.0, " "),
            ("unable", ALWAYS, OTHERS),
            (f"orchard{number}", 1.0, " "),
        )
        entries.append(attrs.evolve(entry(number), words=words))
    rows = [said for limit in (3_800, 3_500, 2_500) for said in rows_of(shrunk(entries, limit))]
    assert {2, 3} == set(map(len, rows))
    assert all(said[-2] == "unable" or said[-1] == "unable" for said in rows)


def test_what_a_call_was_given_is_shown_only_after_what_it_is_about() -> None:
    """At any price, its other words and its result stand behind its file; they bring that where they tell more."""
    entries: list[Item] = []
    for number in range(1, 8 * ROWS + 1):
        words = (
            (f"lunch{number}", 2.0, " "),
            (f"Edit a{number}.py", 0.1, OTHERS),
            (f"quokka{number}", 1.0 + number % 3, GIVEN),
            (f"passed{number}", 0.5 + number % 4, RESULT),
            (f"quickly{number}", 0.5 + number % 5, " "),
            (f"Done{number}", 1.0, PASSAGE),
        )
        entries.append(attrs.evolve(entry(number), words=words))
    rows = [said for limit in (6_000, 4_500, 3_500, 2_500) for said in rows_of(shrunk(entries, limit))]
    assert all(any(text.startswith(word) for said in rows for text in said) for word in ("quokka", "passed", "quickly"))
    for said in rows:
        of_call = any(text.startswith(("quokka", "passed", "quickly")) for text in said)
        assert any(text.startswith("Edit ") for text in said) or not of_call


def test_a_question_keeps_its_mark() -> None:
    """As long as a row has a word of a question it has the mark, though the word before it is left out."""
    entries: list[Item] = []
    for number in range(1, 8 * ROWS + 1):
        words = ((f"lunch{number}", 9.0, " "), (f"transfer{number}", 8.0, OTHERS), (f"human{number}?", 0.2, " "))
        entries.append(attrs.evolve(entry(number), words=(*words, (f"Done{number}", 9.0, SENTENCE))))
    rows = [said for limit in (4_000, 3_500, 2_500) for said in rows_of(shrunk(entries, limit))]
    left = [said for said in rows if not any("human" in text for text in said)]
    assert left
    assert all(text.endswith("?") == text.startswith(("transfer", "human")) for said in left for text in said)


def test_rows_of_long_pages_are_shorter_and_more() -> None:
    """In the same room more of them have a row, each with fewer words."""
    entries: list[Item] = []
    for number in range(1, 4 * ROWS + 1):
        words = tuple((f"word{place}of{number}", 1.0 + 0.1 * (number % 9), " ") for place in range(12))
        entries.append(attrs.evolve(entry(number), words=words))
    short, long = (rows_of(shrunk(entries, 1_500, length=length)) for length in (0.0, 1.0))
    assert len(short) < len(long)
    assert max(map(len, short)) > max(map(len, long))


def rows_of(made: Shrinkage) -> list[tuple[str, ...]]:
    """Return the words of each page in each directory."""
    return [tuple(span[1] for span in said) for item in made.directories for _, said in groupby(item.spans, itemgetter(0))]
