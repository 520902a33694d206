"""All that a state holds, field by field and link by link, as plain values that can be compared."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

import attrs

from memci.chapters.page import Chapter, MessageList, MessageNode, Page

_LINKED = (Chapter, MessageList, MessageNode, Page)
"""What others refer to; all else is a value, and may be shared or not."""

_DERIVED = ("wire", "stub", "brings")
"""Attributes that follow from others."""

_UNORDERED = ("_pages", "next_number", "recalls")
"""Attributes that hold a dict whose order means nothing: it is only ever asked by key."""


def told(value: object) -> object:
    """Return a value with all that it refers to, what was met before by its place: equal for equal structures."""
    return _told(value, {}, [])


def objects(value: object) -> list[object]:
    """Return all objects with fields that a value refers to, itself among them."""
    kept: list[object] = []
    _told(value, {}, kept)
    return kept


def fields(value: object) -> dict[str, Any]:
    """Return the fields of an object, also those that its class keeps for itself; none for a plain value."""
    kind: Any = type(value)
    if attrs.has(kind):
        return {field.name: getattr(value, field.name) for field in attrs.fields(kind) if field.name not in _DERIVED}
    return dict(getattr(value, "__dict__", {}))


def _told(value: object, met: dict[int, int], kept: list[object]) -> object:
    if value is None or isinstance(value, str | bytes | int | float | Enum):
        return value
    if isinstance(value, dict):
        return [(key, _told(item, met, kept)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *(_told(item, met, kept) for item in value)]
    if isinstance(value, set | frozenset):
        return sorted(value)
    if id(value) in met:
        return f"object {met[id(value)]}"
    if isinstance(value, _LINKED):
        met[id(value)] = len(met)
    kept.append(value)
    name = type(value).__name__.removeprefix("Stored")  # whether it was read from a page file says nothing of the state
    return [name, *_fields(value, met, kept)]


def _fields(value: object, met: dict[int, int], kept: list[object]) -> Iterator[tuple[str, object]]:
    for name, given in fields(value).items():
        item = given
        if name in _UNORDERED:
            item = dict(sorted(item.items()))
        yield name, _told(item, met, kept)
