"""What commands write."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.cli import output

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def controls(text: str) -> set[str]:
    """Return the characters of a text that a terminal may act on, line feeds and tabs aside."""
    return {character for character in text if unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs")} - {"\n", "\t"}


@given(st.text(st.characters()))
def test_no_control_character_is_left(text: str) -> None:
    """Text that is made safe holds no control character but line feeds and tabs."""
    assert set() == controls(output.safe(text))


def test_what_is_written_out_can_be_told() -> None:
    """Escape sequences, carriage returns and changes of direction are written out, in ASCII."""
    assert r"\x1b[31mred\x0d\u202eabc\x9b2J" == output.safe("\x1b[31mred\r\u202eabc\x9b2J")


def test_ordinary_text_is_left_alone() -> None:
    """Letters of every script, emoji, lines and markup stay as they are."""
    text = "Größe\t猫\nمرحبا 👩‍🔧 [bold]x[/bold]"
    assert text == output.safe(text)


def test_one_line_has_no_breaks() -> None:
    """A cell is one line."""
    assert "a b c" == output.one_line("a\nb\t\nc\n")


@given(json_values)
def test_json_says_the_same(value: Any) -> None:  # noqa: ANN401 (any JSON value)
    """A document reads as the value that it was made of, on one line, and holds no control character."""
    text = output.json_text(value)
    assert value == json.loads(text)
    assert set() == controls(text)
    assert "\n" not in text


def test_plain_tables_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no terminal is, each row is one line, nothing is cut, and numbers stand on the right."""
    output.show([output.Table(["page", "tokens#", "title"], [["usr-1", "7", "x" * 300], ["usr-10", "1,234", "y"]])])
    assert capsys.readouterr().out.splitlines() == [
        "page    tokens  title",
        f"usr-1        7  {'x' * 300}",
        "usr-10   1,234  y",
    ]
