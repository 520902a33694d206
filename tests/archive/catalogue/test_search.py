"""Terms, times and the ranking of pages, without a database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.catalogue.search import Candidate, PageText, page_text, rank, weigh
from memci.archive.catalogue.snippets import why
from memci.archive.catalogue.terms import query_terms, term, term_line
from memci.archive.summarizers.words import words


@pytest.mark.parametrize(
    "forms",
    [
        ("hike", "hikes", "hiked", "hiking"),
        ("city", "cities"),
        ("movie", "movies"),
        ("carry", "carries", "carried"),
        ("box", "boxes"),
        ("stop", "stopped", "stopping"),
        ("care", "cares", "cared", "caring"),
        ("donate", "donated", "donating"),
        ("add", "adds", "added", "adding"),
        ("café", "cafe"),
        ("Обуча́ть".lower(), "обучать"),
    ],
)
def test_forms_of_a_word_are_one_term(forms: tuple[str, ...]) -> None:
    """Inflected forms and accents of a word are found by each other."""
    assert 1 == len({term(form) for form in forms})


@pytest.mark.parametrize(("one", "another"), [("car", "care"), ("hop", "hope"), ("not", "note"), ("plan", "plane")])
def test_short_words_that_end_in_e_are_others_than_those_without(one: str, another: str) -> None:
    """Their forms keep them apart too."""
    assert term(one) != term(another)


@pytest.mark.parametrize("word", ["glass", "status", "this", "speed", "string", "한국", "हिन्दी", "v2s", "as"])
def test_words_without_an_ending_stay(word: str) -> None:
    """What only looks like an ending, and words of other scripts, are kept whole."""
    assert word == term(word)


@given(st.text())
def test_terms_are_never_empty(text: str) -> None:
    """Every word has a term, and a line of terms has no gap, so that counting its spaces counts its words."""
    assert len(words(text)) == term_line(text).count(" ") - 1


def test_query_terms_leave_out_function_words() -> None:
    """Only the content words of a query are looked for, each once."""
    assert ["order", "ship"] == query_terms("Where is my order? Has the order been shipped?")
    assert ["营业", "业时", "时间"] == query_terms("营业时间")


def test_query_of_function_words_only() -> None:
    """A query that has nothing else looks for its function words; one without any word for nothing."""
    assert ["what", "is", "it"] == query_terms("What is it?")
    assert [] == query_terms('"*" ^ (:)')


def test_page_text_holds_time_and_entries() -> None:
    """A page's searchable form begins with its time, as people and machines write it, and who speaks; each entry is a line."""
    at = "2023-05-08T13:56:00+00:00"
    text = page_text([("user", "My bikes", at), ("tool", "", at), ("assistant", "Two!", "2023-05-09T00:00:00Z")])
    times = " 8 may 2023 13 56 2023 05 08 9 may 2023 2023 05 09"
    expected = f"{times} §2023§05§08 §2023§05§09 §user §tool §assistant \n my bike \n \n two "
    assert PageText(" my bike ", expected, "", [19, "user", 2, "tool", 0, "assistant", 1]) == text


def test_page_text_keeps_a_time_of_another_form() -> None:
    """A time that is not in ISO 8601 is indexed in its own words."""
    assert " 1 56 pm on 8 may 2023 §user \n hi " == page_text([("user", "hi", "1:56 pm on 8 May, 2023")]).page


def _rank(pages: list[list[tuple[str, str]]], query: str) -> list[int]:
    texts = [page_text((role, text, "") for role, text in page) for page in pages]
    counts = {name: sum(f" {name} " in text.page for text in texts) for name in query_terms(query)}
    weights = weigh(len(pages), {name: count for name, count in counts.items() if count})
    candidates = [Candidate.of_text(place, text, weights) for place, text in enumerate(texts)]
    return [candidate.place for _, candidate in rank(candidates, weights, 5.0)]


def test_rare_words_count_more() -> None:
    """A page with the rare word of a query stands before pages with its common one."""
    pages = [[("user", "the invoice came")], [("user", "an invoice again")], [("user", "nothing")], [("user", "a zebra came")]]
    assert 3 == _rank(pages, "invoice zebra")[0]


def test_neighbours_break_the_tie() -> None:
    """Of two equal pages, the one whose neighbour speaks of the matter stands first."""
    filler = [("user", "hello there")]
    phone = [("user", "phone number please")]
    pages = [phone, filler, filler, filler, filler, filler, [("user", "Hotel Lotus please")], phone]
    found = _rank(pages, "phone number of Hotel Lotus")
    assert found.index(7) < found.index(0)


def test_long_answers_do_not_drown_the_user() -> None:
    """A word the user said in a short message counts more than the same word in a very long answer."""
    long = "rust " + "filler words on and on " * 200
    pages = [[("user", "hi"), ("assistant", long)], [("user", "I learn rust"), ("assistant", long.replace("rust", "nice"))]]
    assert [1, 0] == _rank(pages, "rust")


def test_the_words_of_the_user_count_for_more_on_a_long_page() -> None:
    """Of a page with long answers, more of the score comes from what the user said, up to a bound."""

    def added(words: int) -> float:
        text = page_text([("user", "I learn rust", ""), ("assistant", "well " * words, "")])
        candidate = Candidate.of_text(0, text, ["rust"])
        rank([candidate], {"rust": 1.0}, 50.0)
        return candidate.user

    assert added(10) == added(100) < added(300) < added(600) == added(4_000)


def test_words_before_a_page_count_more_than_words_after_it() -> None:
    """What answers stands behind what was asked: of two pages beside the words, the later one stands first."""
    filler = [("user", "hello there")]
    pages = [[("user", "Hotel Lotus")], [("user", "its phone number")], [("user", "Hotel Lotus")], filler, filler]
    assert [2, 0] == [place for place in _rank(pages, "phone number of Hotel Lotus") if place in (0, 2)]


@pytest.mark.parametrize(
    ("query", "held", "told"),
    [
        (
            "When did Caroline go to the LGBTQ support group?",
            {"support": 1.0, "group": 1.0, "carolin": 0.5},
            "support group, Caroline",
        ),
        ("Any photographers? photographers!", {"photograph": 1.0}, "photographers"),
        ("北京站的电话", {"北京": 1.0, "京站": 1.0, "电话": 3.0}, "电话, 北京站"),
        ("nothing", {}, ""),
    ],
)
def test_why(query: str, held: dict[str, float], told: str) -> None:
    """The words of a query that are held, as they stand in it, each once, the rarest first."""
    assert told == why(query, held)


def test_why_is_short() -> None:
    """Of a long query, only the rarest words are told."""
    names = [f"number{number}" for number in range(50)]
    told = why(" and ".join(names), {name: float(place) for place, name in enumerate(names)})
    assert told.startswith("number49, number48, ")
    assert len(told) <= 60


def test_pages_without_a_word_of_the_query_are_left_out() -> None:
    """A page that holds no word of the query is no answer, even beside one that holds its only word."""
    assert [1] == _rank([[("user", "hello")], [("user", "a zebra")], [("user", "bye")]], "zebra")


def test_the_best_entry_is_told() -> None:
    """The line of the entry that holds the most of the query is noted on the candidate."""
    text = page_text([("user", "hi", ""), ("assistant", "the red fox", ""), ("user", "a fox", "")])
    candidate = Candidate.of_text(0, text, ["red", "fox"])
    rank([candidate], {"red": 2.0, "fox": 1.0}, 3.0)
    assert 2 == candidate.best
