"""What a value of the config has to be: validators, and the words in which one is refused."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from memci.errors import ConfigError, shown

MOST: Final = 10**12
"""The largest number that is taken: more tokens, pages or turns than anybody has, small enough for every reader of JSON."""

Validator: TypeAlias = Callable[[Any, Any, Any], None]


def integer(path: str, *, at_least: int, otherwise: str | None = "") -> Validator:
    """Make a validator for a whole number; *otherwise* is one more value that is allowed, ``""`` for none."""
    also = {"": "", None: ", or null"}.get(otherwise, f", or {otherwise}")

    def check(_instance: object, _attribute: object, value: object) -> None:
        if otherwise != "" and value == otherwise:
            return
        if type(value) is not int or not at_least <= value <= MOST:
            raise refusal(path, value, f"a whole number from {at_least} to {MOST}{also}")

    return check


def share(path: str, *, otherwise: str = "") -> Validator:
    """Make a validator for a share of something, above 0 and up to 1; *otherwise* is one more value that is allowed."""
    also = f", or {otherwise}" if otherwise else ""

    def check(_instance: object, _attribute: object, value: object) -> None:
        if otherwise and value == otherwise:
            return
        if type(value) is not float or not 0 < value <= 1:
            raise refusal(path, value, f"a share above 0 and up to 1{also}")

    return check


def price(path: str) -> Validator:
    """Make a validator for a price relative to that of plain input."""

    def check(_instance: object, _attribute: object, value: object) -> None:
        if type(value) is not float or not 0 < value < math.inf:
            raise refusal(path, value, "a number above 0, relative to the price of plain input (0.01 where reading is free)")

    return check


def one_of(path: str, allowed: Sequence[str]) -> Validator:
    """Make a validator for one of some names."""

    def check(_instance: object, _attribute: object, value: object) -> None:
        if value not in allowed:
            raise refusal(path, value, " or ".join(allowed), near=matches(value, allowed) if isinstance(value, str) else ())

    return check


def text(path: str, example: str) -> Validator:
    """Make a validator for text that says something."""

    def check(_instance: object, _attribute: object, value: object) -> None:
        if not isinstance(value, str) or not value.strip():
            raise refusal(path, value, f"text, such as {example}")

    return check


def section(path: str, kind: type) -> Validator:
    """Make a validator for a section of the file."""

    def check(_instance: object, _attribute: object, value: object) -> None:
        if not isinstance(value, kind):
            raise refusal(path, value, f"a {kind.__name__} (Config.from_mapping takes nested dicts)")

    return check


def flag(path: str) -> Validator:
    """Make a validator for true or false."""

    def check(_instance: object, _attribute: object, value: object) -> None:
        if not isinstance(value, bool):
            raise refusal(path, value, "true or false")

    return check


def whole_as_float(value: object) -> Any:  # noqa: ANN401 (the field's type is what the validator lets through)
    """Let ``1`` stand for ``1.0``; anything else is left to the validator."""
    if type(value) is not int:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf


def matches(name: str, known: Sequence[str]) -> list[str]:
    """Return the known name that is most like this one, none where none is."""
    import difflib  # noqa: PLC0415 (only for errors)

    return difflib.get_close_matches(name, known, n=1)


def refusal(path: str, value: object, allowed: str, near: Sequence[str] = ()) -> ConfigError:
    """Return the error for a value that cannot be: what was given, what is allowed, and the nearest name."""
    given = "null" if value is None else shown(value)
    hint = f"; did you mean {near[0]}?" if near else ""
    return ConfigError(f"{given} cannot be used here: give {allowed}{hint}", path=path)
