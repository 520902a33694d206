"""What an image costs, from its size; the size is read from the first bytes of the image, where the message holds it."""

import binascii
import math
from collections.abc import Mapping

_LOW_TOKENS = 85
_TILE_TOKENS = 170
_TILE_PIXELS = 512
_LONGEST_PIXELS = 2048
_SHORTEST_PIXELS = 768
_MOST_TILES = 8

_PATCH_PIXELS = 28
_ANTHROPIC_LONGEST_PIXELS = 1_568  # 56 patches
_ANTHROPIC_MOST_TOKENS = 1_568

_HEAD_CHARACTERS = 4 * 65_536
"""Base64 that is decoded to find the size: 196 kB, more than the profiles and previews that JPEG files put before it."""


def image_tokens(block: Mapping[str, object]) -> int:
    """Return the tokens of an image block of any provider. O(1) in the size of the image.

    OpenAI's blocks cost 85 in low detail; else 85 and 170 for each tile of 512 pixels, after the image was scaled down to fit
    2048 by 2048 and then to a shortest side of 768 pixels (source: OpenAI's guide on images, for the GPT-4o family; models that
    count patches or charge a multiple differ). Anthropic's cost one for each patch of 28 by 28 pixels, after the image was scaled
    down to 1,568 pixels on its longer side and 1,568 patches (source: Anthropic's guide on vision; Claude Opus 4.7 and later
    models take up to 2,576 pixels and 4,784 patches). An image whose size is not in the message, such as one behind a web
    address, costs the most that the rule can give.
    """
    if block.get("type") == "image" and "url" not in block:
        source = block.get("source")
        data = source.get("data") if isinstance(source, Mapping) else None
        return _anthropic_tokens(size_of_base64(data) if isinstance(data, str) else None)
    image = block.get("image_url", block.get("url"))
    holder = image if isinstance(image, Mapping) else block
    if holder.get("detail") == "low":
        return _LOW_TOKENS
    url = image.get("url") if isinstance(image, Mapping) else image
    return _openai_tokens(_size_of_url(url) if isinstance(url, str) else None)


def _openai_tokens(size: tuple[int, int] | None) -> int:
    if size is None:
        return _LOW_TOKENS + _TILE_TOKENS * _MOST_TILES
    shortest, longest = map(float, sorted(size))
    if longest > _LONGEST_PIXELS:
        shortest, longest = shortest * _LONGEST_PIXELS / longest, float(_LONGEST_PIXELS)
    if shortest > _SHORTEST_PIXELS:
        shortest, longest = float(_SHORTEST_PIXELS), longest * _SHORTEST_PIXELS / shortest
    return _LOW_TOKENS + _TILE_TOKENS * _tiles(shortest) * _tiles(longest)


def _tiles(pixels: float) -> int:
    # Rounded first: 1536 pixels that came out as 1536.0000000001 are three tiles.
    return max(1, math.ceil(round(pixels, 6) / _TILE_PIXELS))


def _anthropic_tokens(size: tuple[int, int] | None) -> int:
    if size is None:
        return _ANTHROPIC_MOST_TOKENS
    longest = min(max(size), _ANTHROPIC_LONGEST_PIXELS)
    while (tokens := _patches(longest) * _patches(max(round(longest * min(size) / max(size)), 1))) > _ANTHROPIC_MOST_TOKENS:
        longest -= 1
    return tokens


def _patches(pixels: int) -> int:
    return -(-pixels // _PATCH_PIXELS)


def _size_of_url(url: str) -> tuple[int, int] | None:
    comma = url.find(",", 0, 200)
    if comma < 0 or not url.startswith("data:") or not url[:comma].endswith(";base64"):
        return None
    return size_of_base64(url[comma + 1 : comma + 1 + _HEAD_CHARACTERS])


def size_of_base64(text: str) -> tuple[int, int] | None:
    """Read width and height in pixels from an image in base64, or its beginning; ``None`` where it does not say. O(1)."""
    head = text[:_HEAD_CHARACTERS]
    try:
        data = binascii.a2b_base64(head[: len(head) // 4 * 4])
    except ValueError:
        return None
    return image_size(data)


def image_size(data: bytes) -> tuple[int, int] | None:
    """Read width and height in pixels from the first bytes of a PNG, GIF, JPEG or WebP image; ``None`` where they do not say.

    Sources: PNG (W3C), section 11.2.1; GIF89a, section 18; JPEG (ITU T.81), annex B.2.2; WebP container (RFC 9649), section 2.
    """
    size = None
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        size = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    elif data.startswith((b"GIF87a", b"GIF89a")):
        size = _little(data, 6, 8), _little(data, 8, 10)
    elif data.startswith(b"\xff\xd8"):
        size = _jpeg_size(data)
    elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        size = _webp_size(data)
    return size if size is not None and min(size) > 0 else None


def _little(data: bytes, start: int, end: int) -> int:
    return int.from_bytes(data[start:end], "little")


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 <= len(data) and data[position] == 0xFF:  # noqa: PLR2004 (each marker starts with it)
        marker = data[position + 1]
        if marker == 0xFF:  # noqa: PLR2004 (a fill byte)
            position += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # noqa: PLR2004 (the frame headers, SOF0 to SOF15)
            return int.from_bytes(data[position + 7 : position + 9]), int.from_bytes(data[position + 5 : position + 7])
        position += 2 + int.from_bytes(data[position + 2 : position + 4])
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            return _little(data, 24, 27) + 1, _little(data, 27, 30) + 1
        case b"VP8L" if len(data) >= 25:  # noqa: PLR2004 (the header's end)
            bits = _little(data, 21, 25)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return _little(data, 26, 28) & 0x3FFF, _little(data, 28, 30) & 0x3FFF
        case _:
            return None
