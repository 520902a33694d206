"""Base64 in texts: what is described in its place, and what is left to be read."""

import base64

import pytest

from memci.messages.base64_runs import described, described_value

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 12).decode()
OTHER = base64.b64encode(b"#" + bytes(range(256)) * 12).decode()


def wrapped(text: str, columns: int, end: str = "\n") -> str:
    return end.join(text[place : place + columns] for place in range(0, len(text), columns))


@pytest.mark.parametrize("columns", [64, 76, 5_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n", "\\r\\n"])
@pytest.mark.parametrize("before", ["", "data:image/png;base64,"])
def test_a_picture_in_lines_is_described(columns: int, end: str, before: str) -> None:
    """A picture is one description, in one line or in several, in JSON too, and what stands around it stays."""
    said = described(f"plot:{end}{before}{wrapped(PICTURE, columns, end)}{end}That was it.", "usr-1/2")
    assert said.startswith(f"plot:{end}[image, ")
    assert said.endswith(f", 3 kB, kept at usr-1/2]{end}That was it.")


@pytest.mark.parametrize("characters", [1, 60, 500])
def test_what_a_short_url_in_a_text_holds_is_described(characters: int) -> None:
    """The bytes of an icon are no text either."""
    assert described(f"icon: (data:image/png;base64,{PICTURE[:characters]})").startswith("icon: ([image, ")
    assert described(f"icon: (data:image/png;base64,{PICTURE[:characters]})").endswith("])")


@pytest.mark.parametrize(
    "text",
    [
        wrapped(OTHER, 64),
        wrapped(PICTURE[:900], 76),
        wrapped(PICTURE, 40),
        "data:image/png;base64, and the bytes follow",
        "\n".join(["-" * 80] * 40),
    ],
)
def test_what_may_be_meant_to_be_read_stays(text: str) -> None:
    """Lines that do not begin as a file does, that are short or few, and what only looks like a URL, are texts."""
    assert text == described(text)
    assert {"key": text} == described_value({"key": text}, "")


def test_other_values_may_hold_a_picture_in_lines() -> None:
    """Notebooks keep pictures so, under the name of their kind."""
    assert described_value({"image/png": wrapped(PICTURE, 76) + "\n"}, "")["image/png"].startswith("[image, ")
