"""Base64 in texts: what is described in its place, and what is left to be read."""

import base64
import json
from hashlib import sha512

import pytest

from benchmarks.trace import profiled
from memci.messages.base64_runs import described, described_value

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 12).decode()
OTHER = base64.b64encode(b"#" + bytes(range(256)) * 12).decode()


def noise(seed: int) -> bytes:
    return b"".join(sha512(bytes([seed, number])).digest() for number in range(47))


NOISE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + noise(5)).decode()  # with all signs of base64
SHORT = NOISE[:400]
SAFE = base64.urlsafe_b64encode(base64.b64decode(NOISE)).decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0\0\x10JFIF" + noise(6)).decode()


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


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"picture": NOISE}).replace("/", "\\/"), id="escaped slashes"),
        pytest.param(json.dumps({"picture": JPEG}).replace("/", "\\/"), id="an escaped slash at the beginning"),
        pytest.param(
            json.dumps({"picture": f"data:image/png;base64,{NOISE}"}).replace("/", "\\/"), id="escaped slashes in a URL"
        ),
        pytest.param(NOISE.replace("+", "\\u002B").replace("=", "\\u003D"), id="signs as escapes"),
        pytest.param(json.dumps(json.dumps({"picture": wrapped(NOISE, 76)})), id="lines in JSON in JSON"),
        pytest.param(json.dumps(json.dumps({"picture": NOISE})).replace("/", "\\\\/"), id="escaped slashes in JSON in JSON"),
        pytest.param(f"logo.png: |\n    {wrapped(NOISE, 76, chr(10) + ' ' * 4)}\nnext: 1", id="YAML"),
        pytest.param(f"> {wrapped(NOISE, 76, chr(10) + '> ')}\n> So?", id="a quotation"),
        pytest.param(f"{wrapped(NOISE, 76, ' ')} was it", id="spaces"),
        pytest.param(f"{'-' * 80}\n{wrapped(NOISE, 76)}", id="below a rule"),
        pytest.param(f"see data:;base64,{SHORT} there", id="a URL of no kind"),
        pytest.param(f"see DATA:Image/PNG;BASE64,{SHORT} there", id="a URL in capitals"),
        pytest.param(
            "see data:image/png;base64,{} there".format(SHORT.replace("+", "%2B").replace("/", "%2f").replace("=", "%3D")),
            id="a URL with percent signs",
        ),
        pytest.param(
            "?u=data%3Aimage%2Fpng%3Bbase64%2C{}&next".format(SHORT.replace("+", "%2B").replace("/", "%2F")), id="a URL in a URL"
        ),
        pytest.param(SAFE, id="the alphabet of URLs"),
        pytest.param(f"picture={NOISE}", id="after a key"),
        pytest.param(json.dumps({"o": f'"{NOISE}"'}).replace('\\"', "\\u0022"), id="a quote as an escape"),
        pytest.param(f"{NOISE.rstrip('=')}\n{NOISE}", id="two of them"),
    ],
)
def test_no_piece_of_a_picture_is_shown(text: str) -> None:
    """However it is wrapped and escaped, of the letters of a picture nothing is left that is worth a word."""
    values = [described(text, "usr-1/2"), described_value({"key": text}, "usr-1/2")["key"]]
    for said in values:
        assert ", kept at usr-1/2]" in said
        shown = said.replace("\\", "").replace("%2B", "+").replace("%2f", "/")
        assert not [
            place for run in (NOISE, SAFE, JPEG) for place in range(0, len(run) - 16, 16) if run[place : place + 16] in shown
        ]


def test_the_sizes_of_escaped_pictures_are_those_of_their_bytes() -> None:
    """Escapes and what stands between lines are not counted."""
    plain = described(NOISE)
    assert [plain] * 3 == [
        described(text)
        for text in (
            NOISE.replace("/", "\\/").replace("+", "\\u002b"),
            wrapped(NOISE, 76, "\n  > "),
            SAFE,
        )
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\n".join(f"{number:064x}" for number in range(9**9, 9**9 + 90)), id="hashes"),
        pytest.param("\n".join(f"/usr/share/{'Very/Long/' * 9}file{number}" for number in range(40)), id="paths"),
        pytest.param("一段很长的文字" * 400, id="Chinese"),
        pytest.param(json.dumps("一段很长的文字" * 400), id="Chinese in escapes"),
        pytest.param("%E4%B8%80" * 900, id="Chinese in a URL"),
        pytest.param("Write data:;base64, and then what you have; data:image/png;base64,… is one.", id="of URLs"),
        pytest.param("The quick brown fox jumps over the lazy dog. " * 200, id="prose"),
        pytest.param("\\" * 5_000, id="backslashes"),
    ],
)
def test_texts_stay_as_they_are(text: str) -> None:
    """Nothing but base64 is described."""
    assert (text, text) == (described(text), described_value({"key": text}, "")["key"])


def test_rules_and_long_paths_cost_no_search() -> None:
    """A text with lines of marks or long paths in it is not searched for files, of which it has no beginning."""
    text = f"{'=' * 80}\n/usr/share/{'very/long/' * 9}file\n{'-' * 80}\n" * 10
    called: list[str] = []

    def note(_frame: object, kind: str, function: object) -> None:
        if kind == "c_call":
            called.append(getattr(function, "__name__", ""))

    profiled(lambda: described(text), note)
    assert "translate" in called
    assert "sub" not in called


def test_a_short_picture_that_the_provider_made_is_described() -> None:
    """An icon that a model drew stands bare in its item."""
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": SHORT}
    assert described_value(item, "usr-1/2") == item | {
        "result": f"[image, {described(NOISE)[8:].rpartition(', ')[0]}, 300 bytes, kept at usr-1/2]"
    }


@pytest.mark.slow
def test_looking_takes_time_in_proportion_to_the_text() -> None:
    """Escapes without end, and URLs that hold nothing, are passed over once."""
    for text in ("%41%42%43" * 200_000, "\\" * 1_000_000, "data:" * 300_000 + ";base64,", "\\n" * 500_000, "%2B" * 300_000):
        assert text == described(text)
