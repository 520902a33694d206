"""A message as the page shows it: who said it, its words, and whatever else is sent of it as JSON."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import orjson

from memci.messages import codec
from memci.messages.base64_runs import described
from memci.messages.parts import parts, text_of

Tell: TypeAlias = Callable[[bytes, Mapping[str, Any]], Any]  # makes of a message, its bytes and itself, what stands for it

MOST_CHARACTERS = 64_000  # of its words, and of the rest, that are shown; how many more there are is said


def shown_message(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message for the page: ``role``, ``text``, and ``rest``, JSON without the role and without a content of text alone.

    The text has a line for each call. ``cut`` has how many characters of both are left out, where these are many.
    """
    content = value.get("content")
    plain = isinstance(content, str)
    calls = [f"→ {part.call.name}({described(part.call.arguments)})" for part in parts(dict(value)) if part.call is not None]
    text = "\n".join(filter(None, (content if isinstance(content, str) else text_of(dict(value)), *calls)))
    others = {key: item for key, item in value.items() if key != "role" and not (plain and key == "content") and item is not None}
    rest = _json(others) if others else ""
    left_out = max(len(text) - MOST_CHARACTERS, 0) + max(len(rest) - MOST_CHARACTERS, 0)
    role = str(value.get("role") or value.get("type") or "")
    told = {"role": role, "text": text[:MOST_CHARACTERS], "rest": rest[:MOST_CHARACTERS]}
    return told | ({"cut": left_out} if left_out else {})


def shown(_raw: bytes, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message for the page, whatever its bytes are."""
    return shown_message(value)


def _json(value: object) -> str:
    """Return JSON as people read it; what orjson does not write stands on one line."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # an integer of more than 64 bits, or a lone surrogate
        return codec.encode(value).decode().strip()


class Messages:
    """The messages of a file, each once: *add* gives its number."""

    def __init__(self) -> None:
        self.shown: list[dict[str, Any]] = []
        self._numbers: dict[bytes, int] = {}

    def add(self, raw: bytes, value: Mapping[str, Any]) -> int:
        """Return the number of a message of these bytes, which is shown as *value*."""
        number = self._numbers.setdefault(raw, len(self.shown))
        if number == len(self.shown):
            self.shown.append(shown_message(value))
        return number
