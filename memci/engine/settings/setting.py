"""A setting: the field of a section, how its value is checked, and what a refusal says."""

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import attrs

from memci.engine.settings.presets import preset_section
from memci.errors import ArgumentError, ConfigError, shown

MOST: Final = 10**12  # the largest number that is taken: more than anybody has, small enough for every reader of JSON

_Section = TypeVar("_Section")


def setting(  # noqa: PLR0913 (each is another bound)
    default: object,
    comment: str,
    *,
    at_least: int = 1,
    at_most: float = 1,
    example: str = "",
    secret: Callable[[str], str] | None = None,
) -> Any:  # noqa: ANN401 (the annotation is the type)
    """Return the field of a setting, with its comment in the file; its annotation says what is allowed.

    A whole number is from *at_least* to ``MOST``, any other above 0, or from 0 where *at_least* says so, and up to *at_most*.
    What *secret* shows no error does.
    """
    bounds = {"comment": comment, "at_least": at_least, "at_most": at_most, "example": example}
    converter: Any = attrs.Converter(_as_float, takes_field=True)
    return attrs.field(default=default, metadata=bounds, converter=converter, validator=_check, repr=secret or True)


def section(kind: type[_Section], comment: str) -> _Section:
    """Return the field of a section of the file; by default it is as the preset has it."""
    default: Any = attrs.Factory(lambda config: kind(**preset_section(config.preset, name_of(kind))), takes_self=True)
    field: _Section = attrs.field(default=default, metadata={"comment": comment}, validator=_check)
    return field


def name_of(kind: type) -> str:
    """Return the name of a class in the file."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def place_of(kind: type, key: str) -> str:
    """Return where a key of a class stands in the file, such as ``active.max_pages``."""
    name = name_of(kind)
    return key if name == "config" else f"{name}.{key}"


def matches(name: str, known: Sequence[str]) -> list[str]:
    """Return the known name that is most like this one, none where none is."""
    import difflib  # noqa: PLC0415 (only for errors)

    return difflib.get_close_matches(name, known, n=1)


def refusal(path: str, value: object, allowed: str, near: Sequence[str] = ()) -> ConfigError:
    """Return the error for a value that cannot be: what was given, what is allowed, and the nearest name."""
    given = "null" if value is None else shown(value)
    hint = f"; did you mean {near[0]}?" if near else ""
    return ConfigError(f"{given} cannot be used here: give {allowed}{hint}", path=path)


@functools.cache
def _alternatives(annotation: Any) -> tuple[Any, list[str | None]]:  # noqa: ANN401 (any type)
    """Return the type of a setting, ``None`` for one of some words, and the words that are allowed beside it."""
    if get_origin(annotation) is Literal:
        return None, list(get_args(annotation))
    kind, *others = get_args(annotation) or (annotation,)
    return kind, [word for other in others for word in (get_args(other) or (None,))]


def _as_float(value: object, field: "attrs.Attribute[Any]") -> object:
    """Let ``1`` stand for ``1.0``; anything else is left to the validator."""
    kind: Any = field.type
    if type(value) is not int or _alternatives(kind)[0] is not float:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _check(instance: object, field: "attrs.Attribute[Any]", value: object) -> None:
    annotation: Any = field.type
    kind, words = _alternatives(annotation)
    if value in words:
        return
    bounds = field.metadata
    ok, allowed = False, ""
    if kind is int:
        ok = type(value) is int and bounds["at_least"] <= value <= MOST
        allowed = f"a whole number from {bounds['at_least']} to {MOST}"
    elif kind is float:
        is_least = value == bounds["at_least"] == 0
        ok = type(value) is float and (is_least or 0 < value <= bounds["at_most"]) and value < math.inf
        share = "a share above 0 and up to 1" if bounds["at_least"] else "a number from 0 to 1"
        price = "a number above 0, relative to the price of plain input"
        allowed = share if bounds["at_most"] == 1 else f"{price} (0.01 where reading is free)"
    elif kind is bool:
        ok, allowed = isinstance(value, bool), "true or false"
    elif kind is str:
        ok, allowed = isinstance(value, str) and bool(value.strip()), f"text, such as {bounds['example']}"
    elif kind is not None:
        ok, allowed = isinstance(value, kind), f"a {kind.__name__} (Config.from_mapping takes nested dicts)"
    if ok:
        return
    named = [word or "null" for word in words]
    allowed = f"{allowed}, or {named[0]}" if allowed and named else allowed or " or ".join(named)
    path = place_of(type(instance), field.name)
    if field.repr is not True:  # a secret
        message = f"{'is empty' if isinstance(value, str) else f'is a {type(value).__name__}'}: give {allowed}"
        raise ConfigError(message, path=path)
    raise refusal(path, value, allowed, matches(value, named) if isinstance(value, str) else ())


def listed(values: object, argument: str, what: str) -> list[Any]:
    """Return an argument that is a list, a tuple or a set as a list; else raise ``ArgumentError``, which says of *what*."""
    if not isinstance(values, list | tuple | set | frozenset):
        raise ArgumentError(argument=argument, value=values, wanted=f"a list of {what}")
    return list(values)
