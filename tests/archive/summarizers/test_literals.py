"""Tests of finding literal values."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.summarizers.literals import LiteralKind, literals


def found(text: str) -> list[str]:
    return [text[literal.start : literal.end] for literal in literals(text)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("see https://x.y/a?b=1&c=(2)). Then", ["https://x.y/a?b=1&c=(2)"]),
        ("write to mia.li3818@example.com.", ["mia.li3818@example.com"]),
        ("the user ID is mia_li_3668, thanks", ["mia_li_3668"]),
        ("booking SI5UKW on HAT069", ["SI5UKW", "HAT069"]),
        (
            "in src/marshmallow/fields.py:1474 and ~/notes or C:\\new\\x.txt",
            ["src/marshmallow/fields.py:1474", "~/notes", "C:\\new\\x.txt"],
        ),
        ("saved as invoices-2026-03.csv", ["invoices-2026-03.csv"]),
        ("raised ValueError: ERR_FOO, then ENOENT", ["ValueError", "ERR_FOO", "ENOENT"]),
        ("costs $1,200.50 or 45% of 12,50 €", ["$1,200.50", "45%", "12,50 €"]),
        ("412 rows in 3.5 hours", ["412 rows", "3.5 hours"]),
        ("on May 20th, 7 May 2023, 2024-05-20T10:00:00Z", ["May 20th", "7 May 2023", "2024-05-20T10:00:00Z"]),
        ("from 11:30-14:00 or 11 AM", ["11:30-14:00", "11 AM"]),
        ("call +86 010-6655 0888 or (415) 555-0199", ["+86 010-6655 0888", "(415) 555-0199"]),
        ("+31 6 5513 0862, +33 1 42 68 53 00 or 06 12 34 56 78", ["+31 6 5513 0862", "+33 1 42 68 53 00", "06 12 34 56 78"]),
        ("seats 10 20 30 40", ["10", "20", "30", "40"]),
        ('she read "Nothing is Impossible" twice', ['"Nothing is Impossible"']),
        ("评分4.5分以上，价格100-200元，电话是010-66550888", ["4.5分", "100-200元", "010-66550888"]),
        ("《红楼梦》和“全聚德”，「东京」", ["《红楼梦》", "“全聚德”", "「东京」"]),
        ("周一至周日 10:30-21:30，三百元", ["周一至周日", "10:30-21:30", "三百元"]),
        ("v1.2.3 of marshmallow.fields", ["v1.2.3", "marshmallow.fields"]),
    ],
)
def test_finds_values_whole(text: str, values: list[str]) -> None:
    """Each kind of literal value is found from its first character to its last."""
    assert values == found(text)


@pytest.mark.parametrize(
    "text",
    ["I don't think they're John's", "and/or", "Well-known words, e.g. these", "ENTER", "", "</command>", 'join with ", " here'],
)
def test_finds_none_in_plain_words(text: str) -> None:
    """Plain words, contractions, slashes between words and tags are no literal values."""
    assert [] == found(text)


def test_a_token_too_long_for_a_line_is_a_blob() -> None:
    """A run of characters too long for any line is told apart, so that nobody cuts it."""
    assert [LiteralKind.BLOB] == [literal.kind for literal in literals("a1" * 200)]


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("09 a/.:-@$%\"'“”《》`元年月日")), max_size=200))
def test_values_are_in_order_and_do_not_overlap(text: str) -> None:
    """Whatever the text holds, its literal values are in order, apart from each other, and inside the text."""
    spans = [(literal.start, literal.end) for literal in literals(text)]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
