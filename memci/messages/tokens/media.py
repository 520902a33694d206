"""Pictures, sound, files and encrypted texts wherever they stand in a JSON value: found by their published shapes.

Sources of the shapes: the references of OpenAI's chat completions and Responses API and of Anthropic's Messages API.
"""

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from memci.messages.tokens.attachments import OPAQUE_KEYS, attachment_tokens, encrypted_tokens, spoken_tokens
from memci.messages.tokens.images import image_tokens

_DATA_URL_CHARACTERS = 200
"""How much of a text is looked at to find that it is a ``data:`` URL."""


@attrs.frozen
class Weighed:
    """A JSON value, taken apart.

    Attributes:
        rest: The value without what the other two stand for: media are ``None`` in it, encrypted texts are left out.
        media_tokens: What its pictures, sound and files cost.
        opaque_tokens: What its encrypted texts cost.
    """

    rest: Any
    media_tokens: int = 0
    opaque_tokens: int = 0


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
    """Take a value of a known shape apart; ``None`` for any other."""
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
