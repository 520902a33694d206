"""What images, sound and files cost."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.messages.tokens.media import block_tokens, image_size, image_tokens


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(40)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(10)


def jpeg(width: int, height: int, profile_bytes: int = 60_000) -> bytes:
    profile = b"\xff\xe1" + struct.pack(">H", profile_bytes + 2) + bytes(profile_bytes)
    table = b"\xff\xc4" + struct.pack(">H", 5) + bytes(3)
    return b"\xff\xd8" + profile + b"\xff" + table + b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 12 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


def webp_lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", width, height) + bytes(20))


def webp_lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(20))


def webp_extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


WRITERS = [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended]


def openai_image(data: bytes, **keys: str) -> dict[str, object]:
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": url, **keys}}


@pytest.mark.parametrize("write", WRITERS)
def test_sizes_are_read_from_each_format(write: object) -> None:
    """Width and height come out of the first bytes of each format."""
    assert callable(write)
    assert image_size(write(1024, 333)) == (1024, 333)


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBPVP8L"]))
def test_any_bytes_are_read_without_failing(data: bytes, start: bytes) -> None:
    """Damaged images have no size or a positive one, and raise nothing."""
    size = image_size(start + data)
    assert size is None or min(size) > 0


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (1024, 1024, 765),  # the two examples of OpenAI's guide
        (2048, 4096, 1105),
        (512, 512, 255),
        (513, 512, 425),
        (1, 1, 255),
        (768, 8, 425),
        (60_000, 1, 765),
        (16_383, 6_000, 1445),
    ],
)
def test_openai_images_cost_their_tiles(width: int, height: int, tokens: int) -> None:
    """High detail costs 85 and 170 a tile of 512 pixels after scaling down, whichever side is longer."""
    assert tokens == image_tokens(openai_image(png(width, height), detail="high"))
    assert tokens == image_tokens(openai_image(png(height, width)))


def test_low_detail_has_one_price() -> None:
    """Low detail costs 85 tokens whatever the size, where each of OpenAI's shapes says it."""
    assert image_tokens(openai_image(png(4096, 4096), detail="low")) == 85
    assert image_tokens({"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"}) == 85


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a.png",
        "data:image/svg+xml,%3Csvg/%3E",
        "data:image/png;base64,",
        "data:image/png;base64,%%%é",
        "data:image/png;base64," + "A" * 9_999,
        "",
    ],
)
def test_an_unknown_size_costs_the_most_there_is(url: str) -> None:
    """Where the size is not in the message, the figure is the highest of the rule."""
    assert image_tokens({"type": "image_url", "image_url": {"url": url}}) == 1445
    assert image_tokens({"type": "input_image", "image_url": url}) == 1445
    assert image_tokens({"type": "image_url"}) == 1445


def test_the_most_there_is_covers_every_size() -> None:
    """No size costs more than an unknown one."""

    @given(st.integers(1, 100_000), st.integers(1, 100_000))
    def covered(width: int, height: int) -> None:
        assert image_tokens(openai_image(png(width, height))) <= 1445

    covered()


def anthropic_image(data: bytes) -> dict[str, object]:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (200, 200, 64),  # the examples of Anthropic's guide
        (1000, 1000, 1296),
        (1092, 1092, 1521),
        (1920, 1080, 1560),
        (2000, 1500, 1564),
        (3840, 2160, 1560),
        (1075, 1520, 33 * 47),
        (1, 1, 1),
        (3000, 100, 112),
        (100_000, 1, 56),
    ],
)
def test_anthropic_images_cost_their_patches(width: int, height: int, tokens: int) -> None:
    """A token for each patch of 28 by 28 pixels after scaling down, whichever side is longer."""
    assert tokens == image_tokens(anthropic_image(png(width, height)))
    assert tokens == image_tokens(anthropic_image(png(height, width)))


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_no_anthropic_image_costs_more_than_an_unknown_one(width: int, height: int) -> None:
    """Where the size is not in the message, the figure is the highest of the rule."""
    most = image_tokens({"type": "image", "source": {"type": "url", "url": "https://example.com"}})
    assert most == image_tokens(anthropic_image(b"?")) == 1568
    assert 0 < image_tokens(anthropic_image(png(width, height))) <= most


def test_attachments_cost_by_their_bytes() -> None:
    """Sound and files that a message holds are estimated from their size; other blocks are not estimated."""
    data = base64.b64encode(bytes(4_000)).decode()
    assert block_tokens({"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}}) == 11
    assert block_tokens({"type": "file", "file": {"file_data": data, "filename": "a.pdf"}}) == 401
    assert block_tokens({"type": "input_file", "file_data": data}) == 401
    assert block_tokens({"type": "file", "file": {"file_id": "file-1"}}) == 3_000
