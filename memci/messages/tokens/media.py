"""What pictures, sound, files and encrypted texts cost, by the shapes in the references of OpenAI and Anthropic."""

import binascii
import math
from collections.abc import Mapping
from typing import Any

import attrs

_LOW_TOKENS, _TILE_TOKENS, _TILE_PIXELS, _MOST_TILES = 85, 170, 512, 8
_LONGEST_PIXELS, _SHORTEST_PIXELS = 2048, 768
_PATCH_PIXELS = 28
_ANTHROPIC_LONGEST_PIXELS = 1_568  # 56 patches
_ANTHROPIC_MOST_TOKENS = 1_568

_HEAD_CHARACTERS = 4 * 65_536  # decoded to find the size: 196 kB, more than the profiles and previews that JPEG puts before it
_AUDIO_BYTES_A_TOKEN, _SPOKEN_BYTES_A_TOKEN = 400, 200
"""OpenAI counts a token for each 100 ms of a user's audio, and 50 ms of the assistant's (source: its guide on realtime costs);
this is 32 kbit/s, the least that speech is commonly coded with, so that richer files count too high rather than too low."""

_FILE_BYTES_A_TOKEN, _FILE_TOKENS = 10, 3_000
"""No rule is published for files by size. A PDF page of 30 kB comes to 1,500 to 3,000 tokens of text and picture (source:
Anthropic's guide on PDF support); bare text may hold more for its bytes. A file that is named only, by its id or a web address,
counts as a page of the costlier kind; ``report_usage`` corrects what a longer one costs."""

_OPAQUE_CHARACTERS_A_TOKEN = 4
"""Of encrypted text in base64: reasoning, signatures, the pages that search results stand for. No rule is published; a token of
English is about four bytes, which base64 writes as 5.3 characters, so that this is high for most texts."""

_OPAQUE_KEYS = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature"})
_DATA_URL_CHARACTERS = 200  # that are looked at to find that a text is a data: URL


@attrs.define
class Weighed:
    """A JSON value, taken apart."""

    rest: Any = None  # the value without what the other two stand for: media are ``None`` in it, encrypted texts are left out
    media_tokens: int = 0  # what its pictures, sound and files cost
    opaque_tokens: int = 0  # what its encrypted texts cost


def weigh(value: object) -> Weighed:
    """Take a JSON value apart. O(its size)."""
    weighed = Weighed()
    weighed.rest = _rest(value, weighed)
    return weighed


def _rest(value: object, weighed: Weighed) -> object:
    if isinstance(value, list):
        return [_rest(item, weighed) for item in value]
    if isinstance(value, str) and value.startswith("data:") and ";base64," in value[:_DATA_URL_CHARACTERS]:
        media = "input_image" if value.startswith("data:image/") else "input_file"
        value = {"type": media, "image_url": value, "file_data": value}
    if not isinstance(value, Mapping):
        return value
    tokens = block_tokens(value)
    if tokens is not None:
        weighed.media_tokens += tokens
        return None
    match value:
        case {"type": "redacted_thinking", "data": str(data)}:
            weighed.opaque_tokens += _opaque_tokens(data)
            return None
        case {"data": str(data), "transcript": str(said), "expires_at": _, **others}:  # what the assistant said aloud
            weighed.media_tokens += _bytes_tokens(data, _SPOKEN_BYTES_A_TOKEN)
            return {**others, "transcript": said}
    opaque = {key: item for key, item in value.items() if key in _OPAQUE_KEYS and isinstance(item, str)}
    weighed.opaque_tokens += sum(map(_opaque_tokens, opaque.values()))
    return {key: _rest(item, weighed) for key, item in value.items() if key not in opaque}


def block_tokens(block: Mapping[str, Any]) -> int | None:
    """Estimate a block that is a picture, or sound, a file or a document that holds its bytes or names it; else ``None``."""
    match block:
        case (
            {"type": "image", "source": {"type": str()}}
            | {"type": "image", "url": str()}
            | {"type": "image_url", "image_url": _}
            | {"type": "input_image" | "computer_screenshot"}
        ):
            return image_tokens(block)
        case {"type": "input_audio", "input_audio": {"data": str(base64)}}:
            return _bytes_tokens(base64, _AUDIO_BYTES_A_TOKEN)
        case (
            {"type": "file", "file": {"file_data": str(base64)}}
            | {"type": "input_file", "file_data": str(base64)}
            | {"type": "document", "source": {"type": "base64", "data": str(base64)}}
        ):
            return _bytes_tokens(base64, _FILE_BYTES_A_TOKEN)
        case (
            {"type": "document", "source": {"type": "url" | "file"}}
            | {"type": "input_file"}
            | {"type": "file", "file": {"file_id": str()}}
        ):
            return _FILE_TOKENS
        case _:
            return None


def _bytes_tokens(base64: str, bytes_a_token: int) -> int:
    return 1 + len(base64) * 3 // 4 // bytes_a_token


def _opaque_tokens(text: str) -> int:
    return -(-len(text) // _OPAQUE_CHARACTERS_A_TOKEN)


def bytes_mark(block: object) -> str:
    """Return what stands in texts for a block that holds the bytes of a file or of sound, its kind and name; else no text."""
    match block:
        case {"type": "input_audio", "input_audio": {"data": str()}}:
            return "[sound]"
        case {"type": "file", "file": {"file_data": str(), **names}} | {"type": "input_file", "file_data": str(), **names}:
            return f"[file] {names.get('filename') or ''}".rstrip()
        case {"type": "document", "source": {"type": "base64"}, **names}:
            return f"[document] {names.get('title') or ''}".rstrip()
        case _:
            return ""


def image_tokens(block: Mapping[str, object]) -> int:
    """Return the tokens of an image block of any provider. O(1) in the size of the image.

    OpenAI's blocks cost 85 in low detail; else 85 and 170 for each tile of 512 pixels, after the image was scaled down to fit
    2048 by 2048 and then to a shortest side of 768 pixels (source: OpenAI's guide on images, for the GPT-4o family; models that
    count patches or charge a multiple differ). Anthropic's cost one for each patch of 28 by 28 pixels, after the image was scaled
    down to 1,568 pixels on its longer side and 1,568 patches (source: Anthropic's guide on vision; Claude Opus 4.7 and later
    models take up to 2,576 pixels and 4,784 patches). An image whose size is not in the message, such as one at a web
    address, costs the most that the rule can give.
    """
    if block.get("type") == "image" and "url" not in block:
        source = block.get("source")
        data = source.get("data") if isinstance(source, Mapping) else None
        return _anthropic_tokens(size_of_base64(data if isinstance(data, str) else ""))
    image = block.get("image_url", block.get("url"))
    holder = image if isinstance(image, Mapping) else {**block, "url": image}
    if holder.get("detail") == "low":
        return _LOW_TOKENS
    url = holder.get("url")
    head, _, data = url[: _DATA_URL_CHARACTERS + _HEAD_CHARACTERS].partition(",") if isinstance(url, str) else ("", "", "")
    return _openai_tokens(size_of_base64(data if head.startswith("data:") and head.endswith(";base64") else ""))


def _openai_tokens(size: tuple[int, int] | None) -> int:
    if size is None:
        return _LOW_TOKENS + _TILE_TOKENS * _MOST_TILES
    scale = min(1, _LONGEST_PIXELS / max(size), _SHORTEST_PIXELS / min(size))
    # Rounded first: 1536 pixels that came out as 1536.0000000001 are three tiles.
    return _LOW_TOKENS + _TILE_TOKENS * math.prod(math.ceil(round(side * scale, 6) / _TILE_PIXELS) or 1 for side in size)


def _anthropic_tokens(size: tuple[int, int] | None) -> int:
    if size is None:
        return _ANTHROPIC_MOST_TOKENS
    longest = min(max(size), _ANTHROPIC_LONGEST_PIXELS)
    while (tokens := _patches(longest) * _patches(max(round(longest * min(size) / max(size)), 1))) > _ANTHROPIC_MOST_TOKENS:
        longest -= 1
    return tokens


def _patches(pixels: int) -> int:
    return -(-pixels // _PATCH_PIXELS)


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
