"""How text is split into words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.summarizers.words import STOPWORDS, runs, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is My order?", ["where", "is", "my", "order"]),
        ("don't use export_invoices(2026-03)", ["don", "t", "use", "export", "invoices", "2026", "03"]),
        ("北京站", ["北京", "京站"]),
        ("去 4.5分", ["去", "4", "5", "分"]),
        ("GPT模型的API", ["gpt", "模型", "型的", "api"]),
        ("\uff21\uff22\uff23\uff11\uff12", ["abc12"]),  # full-width
        ("\ufdfa", ["صلى", "الله", "عليه", "وسلم"]),
        ("日本語のテスト", ["日本", "本語", "語の", "のテ", "テス", "スト"]),
        ("한국어", ["한국", "국어"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Straße, CAFÉ", ["straße", "café"]),
        ("?! …", []),
        ("", []),
    ],
)
def test_words_of_each_script(text: str, expected: list[str]) -> None:
    """Spaced scripts give lower-cased words; scripts without spaces give overlapping pairs of characters."""
    assert expected == words(text)


@given(st.text())
def test_runs_cover_the_words_in_order(text: str) -> None:
    """Runs lie in the text in order, do not overlap, and hold the words that ``words`` returns."""
    found = list(runs(text))
    bounds = [bound for start, end, _ in found for bound in (start, end)]
    assert sorted(bounds) == bounds
    assert all(start < end for start, end, _ in found)
    assert words(text) == [word for _, _, inside in found for word in inside]


@given(st.text())
def test_words_hold_no_space(text: str) -> None:
    """A word is never empty and holds no white space, whatever the text."""
    assert words(text) == " ".join(words(text)).split()


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_is_split_like_all_other_text(text: str) -> None:
    """Plain ASCII, which takes a faster way, gives the same words as beside a character that is not ASCII."""
    assert [*words(text), "é"] == words(f"{text} é")


def test_stopwords_are_words() -> None:
    """Every stopword is what ``words`` yields for it, so that it can be compared with them."""
    assert {word: [word] for word in STOPWORDS} == {word: words(word) for word in STOPWORDS}
