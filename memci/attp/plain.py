"""Plain data: what JSON and TOML can write. Results of tools become plain before anything else sees them."""

import dataclasses
import datetime as dt
import enum
from collections.abc import Mapping
from typing import Any

import attrs

MAX_DEPTH = 64
"""How deep plain data nest. Deeper than that is a mistake, such as a list that holds itself."""

_SCALARS = (str, int, float, dt.date, dt.time)


def plain(value: object, *, depth: int = 0) -> Any:  # noqa: ANN401 (JSON data)
    """Return a value as plain data: ``None``, booleans, numbers, text, lists, and dicts with text as keys. O(its size).

    Members of enums become their values; instances of attrs and dataclasses dicts of their public fields, in order; tuples
    lists; sets sorted lists; dates and times ISO text. Containers are copied.

    Raises:
        TypeError: It is, or holds, something else.
        ValueError: It nests deeper than 64.
    """
    if depth > MAX_DEPTH:
        message = f"the value nests deeper than {MAX_DEPTH}"
        raise ValueError(message)
    if isinstance(value, enum.Enum):
        return plain(value.value, depth=depth + 1)
    if value is None or isinstance(value, _SCALARS):
        return _scalar(value)
    if isinstance(value, Mapping):
        return {_key(key): plain(inner, depth=depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, depth=depth + 1) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(inner, depth=depth + 1) for inner in value), key=lambda inner: (type(inner).__name__, repr(inner)))
    names = _fields(value)
    if names is None:
        message = f"{type(value).__name__} is no plain data"
        raise TypeError(message)
    return {name: plain(getattr(value, name), depth=depth + 1) for name in names}


def _scalar(value: object) -> str | float | bool | None:
    """Return a scalar as an instance of the built-in type itself, not of a subclass that could write itself otherwise."""
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case dt.date() | dt.time():
            return value.isoformat()
    message = f"{type(value).__name__} is no scalar"
    raise TypeError(message)


def _key(key: object) -> str:
    if isinstance(key, enum.Enum):
        return _key(key.value)
    if key is None or isinstance(key, _SCALARS):
        return str(_scalar(key))
    message = f"a key of the type {type(key).__name__} is no plain data"
    raise TypeError(message)


def _fields(value: object) -> list[str] | None:
    """Return the public fields of an instance of an attrs class or a dataclass; ``None`` for anything else."""
    kind = type(value)
    if attrs.has(kind):
        names = [field.name for field in attrs.fields(kind)]
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    else:
        return None
    return [name for name in names if not name.startswith("_")]
