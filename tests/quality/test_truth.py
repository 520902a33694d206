"""Tests of the yardstick for what lines about pages say."""

import pytest

from memci.quality.scoring.truth import cut_numbers, inverted, said_of

PAGE = "Please use +31 6 5513 0862. We met 12 people on 5 June 2026, in rooms 3 and 4. abc123 1-20,25-30."


@pytest.mark.parametrize(
    ("row", "cut"),
    [
        ("use +31 6 5513 0862", []),
        ("use +31 5513 0862", ["31 5513 0862"]),
        ("5 June 2026; rooms 3 4", []),
        ("rooms 12 5; 2026", []),
        ("met 2 people in 202", ["2", "202"]),
        ("usr 17", ["17"]),
        ("abc123; 1-20,25-30", []),
        ("1-20", ["1-20"]),
    ],
)
def test_numbers_are_whole(row: str, cut: list[str]) -> None:
    """A number of a row is one of the page with all its groups, or several such side by side."""
    assert cut == cut_numbers(PAGE, row)


@pytest.mark.parametrize(
    ("said", "row", "turned"),
    [
        ("Do not deploy to production.", "deploy production", ["Do not deploy to production"]),
        ("Do not deploy to production.", "Do not deploy to production → Noted", []),
        ("Do not deploy to production.", "production", []),
        ("Do not deploy to production. We deploy to production on Friday.", "deploy production Friday", []),
        ("Pack the boxes, but never drop the vases.", "Pack boxes; drop vases", ["but never drop the vases"]),
        ("请不要打电话", "打电话", ["请不要打电话"]),
        ("附近有没有餐馆", "附近餐馆", []),
        ('{"text": "Do not\\nstop"}', "text", []),
    ],
)
def test_clauses_keep_what_limits_them(said: str, row: str, turned: list[str]) -> None:
    """Two words of a clause without its negation turn it round, unless another clause of the page says them too."""
    assert turned == inverted(said, row)


def test_facts_of_an_entry_are_no_words_of_it() -> None:
    """Its size and dates are left out, its lines are not."""
    assert "boiler cost\nuser: gasket" == said_of("boiler cost · 2 entries · 46 tokens · 2026-03-02\nuser: gasket")
