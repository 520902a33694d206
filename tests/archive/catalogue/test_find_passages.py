"""The search for passages that are quoted unasked: by rare words, at a cost that a long history does not raise."""

import re
import sqlite3

import pytest

from memci.archive.catalogue.days import days_in
from memci.archive.catalogue.page_index import PageIndex
from memci.archive.catalogue.questions import asks
from memci.archive.catalogue.search import REACH, Filter
from tests.archive.catalogue.test_page_index_search import add


def history(turns: int) -> PageIndex:
    """Return an index of so many pages that say the same common words; three say a rare one, long ago."""
    index = PageIndex(None)
    pages = [
        [("user", f"please book hotel {number} near the station"), ("assistant", "It is booked.")] for number in range(turns)
    ]
    for number in (10, 20, 30):
        pages[number] = [("user", "my zebra Lola eats gherkins"), ("assistant", f"Gherkins, noted as number {number}.")]
    add(index, pages)
    return index


def found(index: PageIndex, query: str) -> list[str]:
    """Return the pages that hold rare words of a query."""
    return [hit.index for hit in index.find_passages(query, limit=5, characters=250, only=Filter())]


def test_rare_words_find_pages_and_common_ones_none() -> None:
    """A word that many pages hold is not searched for; a rare one is, wherever it was said, in another form too."""
    index = history(200)
    assert ["usr-11", "usr-21", "usr-31"] == sorted(found(index, "please book what the zebras of Lola eat near the station")[:3])
    assert [] == found(index, "please book a hotel near the station")


def test_a_page_much_worse_than_the_best_is_left_out_where_asked() -> None:
    """The score that is needed is told by that of the best page."""
    index, best = history(200), list[float]()

    def least(score: float) -> float:
        best.append(score)
        return score - 0.1

    query = "what gherkins did number 20 eat, the zebra Lola?"
    hits = index.find_passages(query, limit=5, characters=250, only=Filter())
    kept = index.find_passages(query, limit=5, characters=250, only=Filter(), least=least)
    assert best == [hits[0].score]
    assert 0 < len(kept) < len(hits)
    assert [hit.index for hit in hits if hit.score >= best[0] - 0.1] == [hit.index for hit in kept]


def test_pages_that_are_not_wanted_take_the_place_of_none() -> None:
    """Those in view are not read instead of others, though they match best."""
    index = PageIndex(None)
    talk = [("user", "please book hotel number 1 near the station"), ("assistant", "It is booked.")]
    said = ("my zebra eats grass", "book a hotel near the station for my zebra", "my zebra eats hay")
    add(index, [[("user", text), ("assistant", "Fine.")] for text in said])
    add(index, [talk] * 200)
    add(index, [[("user", "zebra, zebra, zebra"), ("assistant", "Which zebra?")]] * 12)
    only = Filter(exclude=frozenset(f"usr-{number}" for number in range(204, 216)))
    hits = index.find_passages("which hotel near the station did I book for the zebra?", limit=5, characters=250, only=only)
    assert "usr-2" == hits[0].index


def test_the_cost_does_not_grow_with_the_history() -> None:
    """With 10,000 turns, a search reads within a tenth as many rows, and the text of as many pages, as with 1,000: few."""
    (rows, pages), (rows_then, pages_then) = cost(1_000), cost(10_000)
    assert rows_then <= 1.1 * rows
    assert 0 < pages == pages_then <= 10 * (2 * REACH + 1) + 5  # the first with their neighbours, and those of the answer


def cost(turns: int) -> tuple[int, int]:
    """Return how many rows a search reads, those that it counts included, and of how many pages the text."""
    index, statements, rows = history(turns), list[str](), list[tuple[object, ...]]()

    def read(_cursor: sqlite3.Cursor, row: tuple[object, ...]) -> tuple[object, ...]:
        rows.append(row)
        return row

    connection = index._db().connection
    connection.set_trace_callback(statements.append)
    connection.row_factory = read
    hits = found(index, "please book what my zebra Lola eats near the station, gherkins?")
    connection.row_factory = None
    assert {"usr-11", "usr-21", "usr-31"} <= set(hits)
    counted = [row[0] for row in rows if len(row) == 1 and isinstance(row[0], int)]
    texts = [statement for statement in statements if statement.startswith("SELECT id, entries FROM said")]
    return len(rows) + sum(counted), sum(len(re.findall(r"\d+", text.partition("json_each")[2])) for text in texts)


def test_a_day_finds_its_pages() -> None:
    """A day that a query names is a word of the pages in which something was said on it; without a year, the last such day."""
    index = PageIndex(None)
    add(index, [[("user", "we went sailing")]], at="2025-05-08T10:00:00+00:00")
    add(index, [[("user", "we went climbing")]], at="2026-05-08T10:00:00+00:00")
    add(index, [[("user", "we stayed at home")]] * 3, at="2026-06-01T10:00:00+00:00")
    assert "usr-2" == found(index, "what did we do on May 8th?")[0]
    assert "usr-1" == found(index, "Was war am 8. Mai 2025?")[0]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 2023-05-08 and 2023/05/09", ["2023-05-08", "2023-05-09"]),
        ("8 May 2023", ["2023-05-08"]),
        ("May 8th, 2023", ["2023-05-08"]),
        ("am 08.05.2023", ["2023-05-08"]),
        ("el 8 de mayo", ["2023-05-08"]),
        ("le 1er août", ["2023-08-01"]),
        ("8 мая", ["2023-05-08"]),
        ("2023年5月8日", ["2023-05-08"]),
        ("on December 24", ["2022-12-24"]),
        ("version 1.2.2023x, 3 sets, May 45, 2023-13-01", []),
    ],
)
def test_days_are_read_as_people_write_them(text: str, days: list[str]) -> None:
    """ISO 8601, names of months in nine languages, Chinese and Japanese; no day that there is not."""
    assert days == days_in(text, "2023-08-28")


@pytest.mark.parametrize(
    "text",
    [
        "What was the code of the gate?", "which hotel did we pick", "Remind me of the budget.", "wie hieß das Lokal",
        "Quel était le prix ?", "dime el número", "那家酒店的电话是多少", "駅の近くの店を教えて", "напомни номер",
        "you said it was blue",
    ],
)  # fmt: skip
def test_questions_and_requests_to_look_back_ask(text: str) -> None:
    """With or without a mark, in many languages."""
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    ["ok", "thanks, that helps a lot", "please continue", "I'm off to the gym now", "好的，谢谢", "Danke dir!", "merci beaucoup"],
)
def test_thanks_and_statements_ask_nothing(text: str) -> None:
    """No page is searched for them."""
    assert not asks(text)
