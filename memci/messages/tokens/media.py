"""What pictures, sound, files and encrypted texts cost, wherever they stand in a JSON value: base64 is never counted as text.

They are found by their published shapes, and costed by their size. Sources of the shapes: the references of OpenAI's chat
completions and Responses API and of Anthropic's Messages API.
"""

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from memci.messages.tokens.images import image_tokens

_AUDIO_BYTES_A_TOKEN = 400
"""OpenAI counts a token for each 100 ms of a user's audio (source: OpenAI's guide on realtime costs); this is 32 kbit/s, the
least that speech is commonly coded with, so that richer files count too high rather than too low."""

_SPOKEN_BYTES_A_TOKEN = 200
"""OpenAI counts a token for each 50 ms of the assistant's audio (source: as above), at the same 32 kbit/s."""

_FILE_BYTES_A_TOKEN = 10
"""No rule is published for files by size. A PDF page of 30 kB comes to 1,500 to 3,000 tokens of text and picture; pages of bare
text may hold more tokens for their bytes."""

_FILE_TOKENS = 3_000
"""A file that is named only, by its id or a web address: a page of the costlier kind (source: Anthropic's guide on PDF support,
1,500 to 3,000 tokens of text a page). ``report_usage`` corrects what a longer one costs."""

_OPAQUE_CHARACTERS_A_TOKEN = 4
"""Of encrypted text in base64. No rule is published; a token of English is about four bytes, which base64 writes as 5.3
characters, so that this is high for most texts."""

OPAQUE_KEYS = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature"})
"""Under which keys encrypted texts stand."""

_DATA_URL_CHARACTERS = 200
"""How much of a text is looked at to find that it is a ``data:`` URL."""


@attrs.frozen
class Weighed:
    """A JSON value, taken apart."""

    rest: Any  # the value without what the other two stand for: media are ``None`` in it, encrypted texts are left out
    media_tokens: int = 0  # what its pictures, sound and files cost
    opaque_tokens: int = 0  # what its encrypted texts cost


def weigh(value: object) -> Weighed:
    """Take a JSON value apart. O(its size)."""
    if isinstance(value, Mapping):
        return _weigh_block(value) or _weigh_mapping(value)
    if isinstance(value, list):
        items = list(map(weigh, value))
        media_tokens, opaque_tokens = _sums(items)
        return Weighed([item.rest for item in items], media_tokens, opaque_tokens)
    if isinstance(value, str) and value.startswith("data:") and ";base64," in value[:_DATA_URL_CHARACTERS]:
        return Weighed(None, _url_tokens(value))
    return Weighed(value)


def _weigh_block(value: Mapping[str, Any]) -> Weighed | None:
    match value:
        case (
            {"type": "image", "source": {"type": str()}}
            | {"type": "image", "url": str()}
            | {"type": "image_url", "image_url": _}
            | {"type": "input_image" | "computer_screenshot"}
        ):
            return Weighed(None, image_tokens(value))
        case {"data": str(data), "transcript": str(said), "expires_at": _, **others}:  # what the assistant said aloud
            return Weighed({**others, "transcript": said}, spoken_tokens(data))
        case {"type": "redacted_thinking", "data": str(data)}:
            return Weighed(None, opaque_tokens=encrypted_tokens(data))
        case _:
            tokens = attachment_tokens(value)
            return None if tokens is None else Weighed(None, tokens)


def _weigh_mapping(value: Mapping[str, Any]) -> Weighed:
    opaque = {key: item for key, item in value.items() if key in OPAQUE_KEYS and isinstance(item, str)}
    inner = {key: weigh(item) for key, item in value.items() if key not in opaque}
    media_tokens, opaque_tokens = _sums(inner.values())
    rest = {key: item.rest for key, item in inner.items()}
    return Weighed(rest, media_tokens, opaque_tokens + sum(map(encrypted_tokens, opaque.values())))


def _sums(items: Collection[Weighed]) -> tuple[int, int]:
    return sum(item.media_tokens for item in items), sum(item.opaque_tokens for item in items)


def _url_tokens(url: str) -> int:
    if url.startswith("data:image/"):
        return image_tokens({"type": "input_image", "image_url": url})
    tokens = attachment_tokens({"type": "input_file", "file_data": url})
    assert tokens is not None
    return tokens


def attachment_tokens(block: Mapping[str, object]) -> int | None:
    """Estimate a block of sound, a file or a document that holds its bytes or names it; ``None`` for any other block."""
    match block:
        case {"type": "input_audio", "input_audio": {"data": str(base64)}}:
            return 1 + len(base64) * 3 // 4 // _AUDIO_BYTES_A_TOKEN
        case (
            {"type": "file", "file": {"file_data": str(base64)}}
            | {"type": "input_file", "file_data": str(base64)}
            | {"type": "document", "source": {"type": "base64", "data": str(base64)}}
        ):
            return 1 + len(base64) * 3 // 4 // _FILE_BYTES_A_TOKEN
        case (
            {"type": "document", "source": {"type": "url" | "file"}}
            | {"type": "input_file"}
            | {"type": "file", "file": {"file_id": str()}}
        ):
            return _FILE_TOKENS
        case _:
            return None


def bytes_mark(block: object) -> str:
    """Return what stands in texts for a block that holds the bytes of a file or of sound: its kind and its name.

    Empty for any other block.
    """
    match block:
        case {"type": "input_audio", "input_audio": {"data": str()}}:
            return "[sound]"
        case {"type": "file", "file": {"file_data": str(), **names}} | {"type": "input_file", "file_data": str(), **names}:
            return f"[file] {names.get('filename') or ''}".rstrip()
        case {"type": "document", "source": {"type": "base64"}, **names}:
            return f"[document] {names.get('title') or ''}".rstrip()
        case _:
            return ""


def spoken_tokens(base64: str) -> int:
    """Estimate what the assistant said aloud, in base64."""
    return 1 + len(base64) * 3 // 4 // _SPOKEN_BYTES_A_TOKEN


def encrypted_tokens(text: str) -> int:
    """Estimate an encrypted text: reasoning, signatures, the pages behind search results."""
    return -(-len(text) // _OPAQUE_CHARACTERS_A_TOKEN)
