"""Reads facts in a tool's JSON result: the scalars of each object that has a name or an id."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeAlias

from memci.archive.facts.table import LONGEST_ENTITY, LONGEST_KEY, LONGEST_VALUE, SEPARATOR

Value: TypeAlias = tuple[str, str, str]  # entity, key, value

_MOST_READ = 200_000  # characters of a result
_MOST_VALUES = 120  # of a result, the first ones: a longer result is a listing
_MOST_INNER = 8  # fields of an object without a name, to belong to the object around it
_NAME_KEY = re.compile(r"(?:.*[_-])?(?:id|name|number|code|sku|key)|.*[a-z](?:Id|Name|Number|Code)")
_OTHER_KEY = re.compile(  # names a part of a name, or another object
    "(?:first|last|middle|given|family|nick|user|customer|client|account|owner|parent|team|author|creator|sender|session|tenant"
    "|org|organi[sz]ation|project|company|phone|zip|postal|country|error|status|tool|event|request|trace)",
    re.IGNORECASE,
)
_SECRET_KEY = re.compile("passw|secret|token|api_?key|credential|authori[sz]ation|private|cookie|signature", re.IGNORECASE)
_OWN_KEYS = frozenset({"id", "name"})


def values_in_result(text: str) -> Iterator[Value]:
    """Yield the values of the named objects of a JSON result, each with its owner, in order. O(its length).

    The owner is the object's first field, if that is a name or an id, otherwise its field ``id`` or ``name``. The values of an
    object without an owner belong to the object that it is a field of, if that has one. Objects in a list are skipped unless
    they have a field ``id``: a search's hit may be true of that search only, such as a flight's free seats on one day.
    """
    if text.lstrip()[:1] not in ("{", "[") or len(text) > _MOST_READ:
        return
    try:
        document = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return
    yield from islice(_values(document), _MOST_VALUES)


def _values(document: Any) -> Iterator[Value]:  # noqa: ANN401 (JSON)
    waiting = [(document, False)]
    while waiting:
        match waiting.pop():
            case dict() as fields, bool(listed):
                owner = _owner(fields, listed=listed)
                yield from _fields(owner, fields) if owner else ()
                waiting += [(each, listed) for each in reversed(fields.values()) if isinstance(each, dict | list)]
            case list() as items, _:
                waiting += [(each, True) for each in reversed(items) if isinstance(each, dict | list)]


def _owner(fields: dict[str, Any], *, listed: bool = False) -> str:
    """Return the name of an object; empty for none."""
    first = next(iter(fields), "")
    keys = [key for key in fields if key in _OWN_KEYS and (key == "id" or not listed)]
    if not listed and _NAME_KEY.fullmatch(first) and not (_OTHER_KEY.match(first) or _SECRET_KEY.search(first)):
        keys = [first]
    return next((fields[key] for key in keys if _is_plain(fields[key], LONGEST_ENTITY)), "")


def _fields(owner: str, fields: dict[str, Any]) -> Iterator[Value]:
    for key, value in fields.items():
        text = _scalar(value)
        if text and text != owner and _is_shown(key):
            yield owner, key, text
        elif isinstance(value, dict) and _is_shown(key) and len(value) <= _MOST_INNER and not _owner(value):
            inner = ((f"{key}.{name}", _scalar(each)) for name, each in value.items())
            yield from ((owner, path, text) for path, text in inner if text and _is_shown(path))


def _is_shown(key: str) -> bool:
    return _is_plain(key, LONGEST_KEY) and not _SECRET_KEY.search(key)


def _scalar(value: Any) -> str:  # noqa: ANN401 (JSON)
    """Return a scalar as written; empty for other values, and for one too long to be shown whole."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if _is_plain(value, LONGEST_VALUE) else ""


def _is_plain(value: Any, longest: int) -> bool:  # noqa: ANN401 (JSON)
    return isinstance(value, str) and 0 < len(value) <= longest and value.isprintable() and SEPARATOR not in value
