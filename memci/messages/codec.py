"""JSON values as bytes and back, losing nothing, and how values come in from callers.

orjson does the work; integers beyond 64 bits and lone surrogates go through the standard library, after a space that tells them.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NoReturn, Protocol, TypeAlias

import attrs
import orjson

from memci.errors import InvalidMessageError, shown

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

MAX_DEPTH = 200  # levels of nesting that a value may have; orjson writes 254, and events and files wrap a message in a few
_MARK = b" "
_NO_LIST = (str, bytes, bytearray, Mapping)
_FACTORY: Any = attrs.Factory  # which attrs declares as a function
_ENDLESS = 10**4_300  # has more digits than Python writes and reads


class SdkObject(Protocol):
    """An object of a provider's SDK, such as ``response.choices[0].message``: it gives itself as JSON, like pydantic's models."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, Any]:
        """Return it as JSON values where *mode* is ``json``, without the fields that nobody set."""


MessageLike: TypeAlias = Mapping[str, Any] | SdkObject  # what is taken as a message


def defaults(kind: type) -> dict[str, object]:
    """Return the fields of an attrs class, each with its default; those without one with what equals no value."""
    made = {name: field.default for name, field in attrs.fields_dict(kind).items()}
    return {name: item.factory() if isinstance(item, _FACTORY) else item for name, item in made.items()}


def told(value: object, fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of an object that do not have their default, as ``defaults`` gave it, in order. O(fields)."""
    return {name: item for name, default in fields.items() if (item := getattr(value, name)) != default}


def encode(value: object) -> bytes:
    """Write a JSON value compactly, keys in their order, as UTF-8; ``ValueError`` for an integer of more than 4,300 digits."""
    try:
        # Copied, as orjson gives its whole buffer away with the bytes: 4 kB for a message of 120 bytes (version 3.13).
        return bytes(memoryview(orjson.dumps(value)))
    except TypeError:
        return _MARK + json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def embedded(data: bytes) -> object:
    """Return what stands in a value that is to be encoded for one that ``encode`` wrote already."""
    return decode(data) if data.startswith(_MARK) else orjson.Fragment(data)


def decode(data: bytes) -> Any:  # noqa: ANN401 (a JSON value; the caller knows its shape)
    """Read what ``encode`` wrote; the value is the caller's own. ``ValueError`` for what is no JSON."""
    return json.loads(data) if data.startswith(_MARK) else orjson.loads(data)


def decode_list(several: Sequence[bytes]) -> list[Any]:
    """Read several of what ``encode`` wrote."""
    if _MARK in {data[:1] for data in several}:
        return list(map(decode, several))
    values: list[Any] = orjson.loads(b"[" + b",".join(several) + b"]")
    return values


def decode_foreign(data: bytes) -> Any:  # noqa: ANN401 (as above)
    """Read JSON that somebody else wrote, with integers of any size and lone surrogates; ``ValueError`` where it is none."""
    try:
        return json.loads(data)
    except RecursionError as error:
        message = "nested too deeply"
        raise ValueError(message) from error


def digest(value: object) -> bytes:
    """Return 16 bytes that tell a JSON value from others, whatever the order of its keys; ``InvalidMessageError`` for none."""
    try:
        data: bytes = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        data = json.dumps(checked_copy(value), sort_keys=True, separators=(",", ":")).encode()
    return blake2b(data, digest_size=16).digest()


def refuse(problem: str, path: str = "") -> NoReturn:
    """Raise the error of a message that is none, or that the provider would refuse; *path* is the place in it."""
    raise InvalidMessageError(problem, path=path)


def as_list(messages: object) -> list[object]:
    """Return several messages as a list; ``InvalidMessageError`` where they are no iterable of messages."""
    if type(messages) is list or (isinstance(messages, Iterable) and not isinstance(messages, _NO_LIST)):
        return list(messages)
    refuse(f"give a list of messages, not a {type(messages).__name__}")


def checked_copy(value: object, path: str = "", depth: int = 0) -> JsonValue:
    """Copy a value deeply, objects of SDKs as what they stand for; InvalidMessageError names the place of what is no JSON."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not -_ENDLESS < value < _ENDLESS:
            refuse("cannot be written as JSON: the number has more than 4,300 digits", path)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            refuse(f"{value} has no form in JSON: send a finite number, null or text", path)
        return float(value)
    if depth >= MAX_DEPTH:
        refuse(f"nested deeper than {MAX_DEPTH} levels: flatten it, or send it as text", path[:80])
    if isinstance(value, dict):
        return {_key(key, path): checked_copy(item, f"{path}.{key}" if path else key, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [checked_copy(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(value)]
    dump = dumped(value)
    if dump is value:
        refuse(f"a {type(value).__name__} is not a JSON value: convert it first", path)
    return checked_copy(dump, path, depth + 1)


def dumped(value: object) -> object:
    """Return what an object of a provider's SDK stands for; any other value as it is."""
    dump = None if isinstance(value, type) else getattr(value, "model_dump", None)
    return dump(mode="json", exclude_unset=True) if callable(dump) else value


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        refuse(f"the key {shown(key)} is not text, as JSON wants", path)
    return key
