"""The passages by which hits are shown, without a database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.catalogue.snippets import SNIPPET_CHARS, snippet
from memci.archive.catalogue.terms import query_terms

FOX = {"red": 1.0, "fox": 1.0}


def test_snippet_shows_the_densest_passage() -> None:
    """The passage with most words of the query is shown, from the start of its sentence."""
    text = (
        "One red thing. " + "Padding that says nothing at all. " * 20 + "Then a red fox jumped over the fence. " + "More. " * 50
    )
    assert snippet(text, {"red": 1.0, "fox": 1.0}).startswith("Then a red fox jumped")


def test_snippet_of_chinese_text() -> None:
    """A passage is found inside a long run of characters without spaces."""
    text = "好" * 300 + "北京站的电话" + "好" * 300
    assert "北京站的电话" in snippet(text, dict.fromkeys(query_terms("北京站的电话"), 1.0))


def test_snippet_without_a_match_is_the_beginning() -> None:
    """Where nothing matches, the snippet is how the text begins."""
    assert "word word" == snippet("word " * 200, {"fox": 1.0})[:9]


@given(st.text(max_size=600), st.text(max_size=20))
def test_snippet_is_a_bounded_part_of_the_text(text: str, query: str) -> None:
    """A snippet is a piece of the text itself, never longer than its bound."""
    found = snippet(text, dict.fromkeys(query_terms(query), 1.0))
    assert found in text
    assert len(found) <= SNIPPET_CHARS


@given(st.text(alphabet="fox red.\n", max_size=500))
def test_snippet_holds_a_word_of_the_query(text: str) -> None:
    """Where the text holds a word of the query, the snippet does too."""
    weights = {"fox": 1.0, "red": 2.0}
    assert any(name in weights for name in query_terms(text)) == any(
        name in weights for name in query_terms(snippet(text, weights))
    )


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=3), st.lists(st.text(max_size=300), max_size=3))
def test_snippet_is_made_of_pieces_of_its_entries(text: str, before: list[str], after: list[str]) -> None:
    """With its neighbours a snippet keeps to its bound, and each piece stands in one of them, in their order."""
    found = snippet(text, FOX, before, after)
    assert len(found) <= SNIPPET_CHARS
    lines = [line for each in (*before, text, *after) for line in each.split("\n")]
    place = 0
    for piece in filter(None, map(str.strip, found.split("\n"))):
        place = next(number for number in range(place, len(lines)) if piece in lines[number])


@given(st.text(alphabet="fox red?.\n", max_size=500), st.text(max_size=300))
def test_snippet_with_neighbours_holds_a_word_of_the_query(text: str, after: str) -> None:
    """Where the entry holds a word of the query, the snippet does too, whatever stands beside the entry."""
    weights = {"fox": 1.0, "red": 2.0}
    if any(name in weights for name in query_terms(text)):
        assert any(name in weights for name in query_terms(snippet(text, weights, [after], [after])))


def test_a_short_passage_goes_on_into_what_follows() -> None:
    """A question is followed by its answer, and that by the beginning of what comes next; then comes what was said before."""
    found = snippet("Where is the fox?", FOX, ["Good morning."], ["It is in its den, 071 512 34 56.", "Thanks. " * 100])
    assert found.startswith("Where is the fox?\nIt is in its den, 071 512 34 56.\nThanks. Thanks.")
    assert "Good morning.\nWhere is the fox?\nYes." == snippet("Where is the fox?", FOX, ["Good morning."], ["", "Yes."])


def test_a_short_passage_begins_with_what_its_own_entry_says_before_it() -> None:
    """Room that is left goes to the sentences before the passage, not only to those behind it."""
    text = "I am off to have dinner with friends. Talk to you about the fox later!"
    assert text == snippet(text, FOX)


def test_a_long_question_leaves_room_for_its_answer() -> None:
    """What else stands behind a question, and a question longer than a passage, do not keep the answer out."""
    answer = "It lives in the third den from the left."
    assert answer in snippet("Where does the red fox live? " + "I ask as I lost my way. " * 20, FOX, [], [answer])
    wordy = "Where, if I may ask, and you need not answer, does " + "that clever and quick and " * 6 + "red fox live?"
    assert answer in snippet(wordy, FOX, [], [answer])
    assert answer in snippet(
        "请问" + "那只非常聪明的狐狸" * 20 + "住在哪里？", dict.fromkeys(query_terms("狐狸住在哪里"), 1.0), [], [answer]
    )


def test_a_long_entry_shows_its_passage_alone() -> None:
    """An answer, a result or code that fills the room is shown as before, whatever stands beside it."""
    code = "def run(fox):\n" + "\n".join(f"    red_{number} = fox.step({number}) if fox else None" for number in range(40))
    text = "Padding. " * 40 + code
    alone = snippet(text, FOX)
    assert "fox" in alone
    assert alone == snippet(text, FOX, ["before"], ["after"])


OFTEN = "We met often. " * 20


@pytest.mark.parametrize(
    ("text", "query", "kept"),
    [
        (f"{OFTEN}I ask you to never ever give Mr. Brown the key to the yard.", "key yard", "never ever give Mr. Brown"),
        (f"The old barn is sold to Dr. Meyer only if the board agrees. {OFTEN}", "barn sold", "only if the board agrees"),
    ],
)
def test_no_title_ends_a_sentence(text: str, query: str, kept: str) -> None:
    """What a negation or a condition belongs to stays with it, though a title with a dot stands between."""
    assert kept in snippet(text, dict.fromkeys(query_terms(query), 1.0), most=70)
