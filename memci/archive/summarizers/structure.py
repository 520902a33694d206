"""Writes structured data as one line of text."""

import json
from typing import Any

import attrs

from memci.archive.summarizers.passage import SCANNED_CHARACTERS

_LONGEST_PAIR = 60
_DEEPEST = 32
_NAMES = {None: "null", True: "true", False: "false"}


@attrs.frozen
class FlatText:
    """Text that may have been structured data.

    Attributes:
        text: The text.
        pairs: Where its keys and short ``key: value`` pairs stand, in order, as start and end.
    """

    text: str
    pairs: tuple[tuple[int, int], ...] = ()


def flat(text: str, equals: str = ": ") -> FlatText:
    """Write a JSON object or array as ``key: value, key: value``; any other text comes back as it is. O(its length).

    Numbers stay as they are written. Data nested deeper than 32 levels or longer than ``SCANNED_CHARACTERS`` counts as text.
    """
    if len(text) > SCANNED_CHARACTERS or text.lstrip()[:1] not in ("{", "["):
        return FlatText(text)
    try:
        value = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return FlatText(text)
    writer = _Writer(equals)
    return FlatText("".join(writer.pieces), tuple(writer.pairs)) if writer.write(value, 0) else FlatText(text)


@attrs.define(eq=False)
class _Writer:
    equals: str
    pieces: list[str] = attrs.field(factory=list)
    pairs: list[tuple[int, int]] = attrs.field(factory=list)
    length: int = 0

    def write(self, value: object, depth: int) -> bool:
        """Append a value; return whether it was not nested too deeply."""
        if depth > _DEEPEST:
            return False
        if not isinstance(value, dict | list):
            self._append(value if isinstance(value, str) else _NAMES.get(value, ""))  # type: ignore[call-overload]  # a constant
            return True
        items: Any = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        start = self.length
        for key, item in items:
            if self.length > start:
                self._append(", ")
            begin = self.length
            nested = isinstance(item, dict | list)
            if key is not None:
                self._append(key + (" " if nested else self.equals))
            end = self.length - 1
            if key is not None and nested and 0 < end - begin <= _LONGEST_PAIR:
                self.pairs.append((begin, end))
            if not self.write(item, depth + 1):
                return False
            if key is not None and not nested and self.length - begin <= _LONGEST_PAIR:
                self.pairs.append((begin, self.length))
        return True

    def _append(self, piece: str) -> None:
        self.pieces.append(piece)
        self.length += len(piece)
