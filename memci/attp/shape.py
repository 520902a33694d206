"""What values a tool takes and gives: one shape for each annotation, from which come its check, its JSON schema and its stub.

A shape checks strictly. It takes what its schema describes, and changes no more than its type asks for: an ``int`` where a
``float`` is wanted, a list where a tuple or set is. What a tool gives becomes plain data before anything else sees it.
"""

import dataclasses
import datetime as dt
import enum
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeAlias

import attrs

from memci.errors import PicklableError, shown

Schema = dict[str, Any]

MAX_DEPTH = 64
"""How deep plain data nest. Deeper than that is a mistake, such as a list that holds itself."""


class ShapeError(PicklableError):
    """A value does not have its shape. It never leaves this package: the toolbox says whose value it was.

    Attributes:
        path: Where in the value, such as ``.kinds[0]``; empty when it is the whole.
        problem: What is wrong, to follow the value's name.
    """

    def __init__(self, problem: str, *, path: str = "") -> None:
        super().__init__(path + problem)
        self.path = path
        self.problem = problem


@attrs.frozen
class Anything:
    """Any plain data."""


@attrs.frozen
class Scalar:
    """Text, a number, a truth value or ``None``. A truth value is no number, and text is never read as one."""

    kind: type


@attrs.frozen
class Choice:
    """One of a few values, of a ``Literal`` or an enum; the function is given the enum's member."""

    options: tuple[str | int | bool | None, ...]
    members: type[enum.Enum] | None = None


@attrs.frozen
class Many:
    """A list, a set, or a tuple of any length."""

    item: "Shape"
    container: Callable[[list[Any]], Any] = list

    @property
    def unique(self) -> bool:
        """Whether it is a set."""
        return self.container in (set, frozenset)


@attrs.frozen
class Fixed:
    """A tuple of so many items, each of its own shape."""

    items: "tuple[Shape, ...]"


@attrs.frozen
class Table:
    """A dict with text as keys."""

    item: "Shape"


@attrs.frozen
class OneOf:
    """A union. A value is taken by the first option that leaves its type, else by the first that takes it at all."""

    options: "tuple[Shape, ...]"


@attrs.frozen(kw_only=True)
class Field:
    """One key of a record.

    Attributes:
        name: The key.
        shape: What its value looks like.
        required: It is always there.
        description: What it means; may be empty.
    """

    name: str
    shape: "Shape"
    required: bool
    description: str


@attrs.frozen
class Record:
    """A dict with known keys: a ``TypedDict``, or what becomes of an instance of an attrs class or a dataclass."""

    name: str
    fields: tuple[Field, ...]


Shape: TypeAlias = Anything | Scalar | Choice | Many | Fixed | Table | OneOf | Record

_SCALARS = {
    str: ("string", "str", "a string"),
    int: ("integer", "int", "an integer"),
    float: ("number", "float", "a number"),
    bool: ("boolean", "bool", "True or False"),
    type(None): ("null", "None", "None"),
}


def check(shape: Shape, value: object) -> Any:  # noqa: ANN401, C901, PLR0911 (a value of any type; one return a shape)
    """Return the value as the function is given it. O(its size).

    Raises:
        ShapeError: It does not have the shape.
    """
    match shape:
        case Anything():
            return value
        case Scalar(kind):
            return _checked_scalar(kind, value)
        case Choice(options, members):
            return _checked_choice(options, members, value)
        case Many(item, container):
            if not isinstance(value, list | tuple) and not (isinstance(value, set | frozenset) and shape.unique):
                _refuse("a list", value)
            return container([_inner(item, inner, f"[{place}]") for place, inner in enumerate(value)])
        case Fixed(items):
            if not isinstance(value, list | tuple) or len(value) != len(items):
                _refuse(f"a list of {len(items)} items", value)
            pairs = zip(items, value, strict=True)
            return tuple(_inner(item, inner, f"[{place}]") for place, (item, inner) in enumerate(pairs))
        case Table(item):
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                _refuse("a dict with strings as keys", value)
            return {key: _inner(item, inner, f"[{shown(key)}]") for key, inner in value.items()}
        case OneOf(options):
            return _checked_union(shape, options, value)
        case Record(fields=fields):
            return _checked_record(fields, value)


def schema(shape: Shape) -> Schema:  # noqa: PLR0911 (one return a shape)
    """Return its JSON schema; a new dict."""
    match shape:
        case Anything():
            return {}
        case Scalar(kind):
            return {"type": _SCALARS[kind][0]}
        case Choice(options):
            kinds = {type(option) for option in options}
            return ({"type": _SCALARS[kinds.pop()][0]} if len(kinds) == 1 else {}) | {"enum": list(options)}
        case Many(item):
            return {"type": "array", "items": schema(item)} | ({"uniqueItems": True} if shape.unique else {})
        case Fixed(items):
            count = len(items)
            return {"type": "array", "prefixItems": list(map(schema, items)), "minItems": count, "maxItems": count}
        case Table(item):
            return {"type": "object", "additionalProperties": schema(item)}
        case OneOf(options):
            return {"anyOf": list(map(schema, options))}
        case Record(fields=fields):
            return object_schema(fields)


def object_schema(fields: Iterable[Field]) -> Schema:
    """Return the JSON schema of an object with these keys and no others."""
    fields = tuple(fields)
    properties = {
        field.name: schema(field.shape) | ({"description": field.description} if field.description else {}) for field in fields
    }
    required = [field.name for field in fields if field.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def stub(shape: Shape) -> str:  # noqa: PLR0911 (one return a shape)
    """Return its annotation as the model reads it."""
    match shape:
        case Anything():
            return "Any"
        case Scalar(kind):
            return _SCALARS[kind][1]
        case Choice(options):
            return f"Literal[{', '.join(map(repr, options))}]"
        case Many(item):
            return f"{'set' if shape.unique else 'list'}[{stub(item)}]"
        case Fixed(items):
            return f"tuple[{', '.join(map(stub, items))}]"
        case Table(item):
            return f"dict[str, {stub(item)}]"
        case OneOf(options):
            return " | ".join(map(stub, options))
        case Record(name):
            return name


def records(shapes: Iterable[Shape]) -> tuple[Record, ...]:
    """Return the records that the stubs of shapes name, those first that others name."""
    found: dict[Record, None] = {}
    for shape in shapes:
        match shape:
            case Many(item) | Table(item):
                inner: tuple[Shape, ...] = (item,)
            case Fixed(several) | OneOf(several):
                inner = several
            case Record(fields=fields):
                inner = tuple(field.shape for field in fields)
            case _:
                inner = ()
        found |= dict.fromkeys(records(inner))
        if isinstance(shape, Record):
            found[shape] = None
    return tuple(found)


def plain(value: object, *, depth: int = 0) -> Any:  # noqa: ANN401, C901, PLR0911 (JSON data; one return a kind of value)
    """Return a value as plain data: ``None``, booleans, numbers, text, lists, and dicts with text as keys. O(its size).

    Members of enums become their values; instances of attrs and dataclasses dicts of their public fields, in order; tuples
    lists; sets sorted lists; dates and times ISO text. Containers are copied; scalars are instances of the built-in types
    themselves, not of subclasses that could write themselves otherwise.

    Raises:
        TypeError: It is, or holds, something else.
        ValueError: It nests deeper than 64.
    """
    if depth > MAX_DEPTH:
        message = f"the value nests deeper than {MAX_DEPTH}"
        raise ValueError(message)
    inner = functools.partial(plain, depth=depth + 1)
    match value:
        case None | bool():
            return value
        case enum.Enum():
            return inner(value.value)
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case Mapping():
            return {_key(key): inner(item) for key, item in value.items()}
        case list() | tuple():
            return list(map(inner, value))
        case set() | frozenset():
            return sorted(map(inner, value), key=lambda item: (type(item).__name__, repr(item)))
    names = field_names(type(value))
    if names is None:
        message = f"{type(value).__name__} is no plain data"
        raise TypeError(message)
    return {name: inner(getattr(value, name)) for name in names}


def field_names(kind: type) -> list[str] | None:
    """Return the public fields of an attrs class or a dataclass, in order; ``None`` for any other class."""
    if attrs.has(kind):
        names = [field.name for field in attrs.fields(kind)]
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    else:
        return None
    return [name for name in names if not name.startswith("_")]


def _key(key: object) -> str:
    if isinstance(key, enum.Enum):
        return _key(key.value)
    if key is None or isinstance(key, str | int | float | dt.date | dt.time):
        return str(plain(key))
    message = f"a key of the type {type(key).__name__} is no plain data"
    raise TypeError(message)


def _checked_scalar(kind: type, value: object) -> Any:  # noqa: ANN401 (a value of any type)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if kind is float and math.isfinite(number := _as_float(value)):
            return number
        if kind is int and (isinstance(value, int) or value.is_integer()):
            return int(value) if isinstance(value, float) else value
    elif isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    return _refuse(_SCALARS[kind][2], value)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _checked_choice(options: tuple[object, ...], members: type[enum.Enum] | None, value: object) -> Any:  # noqa: ANN401 (one of them)
    if members and isinstance(value, members):
        return value
    if not any(type(value) is type(option) and value == option for option in options):
        _refuse(f"one of {', '.join(map(repr, options))}", value)
    return members(value) if members else value


def _checked_union(shape: Shape, options: tuple[Shape, ...], value: object) -> Any:  # noqa: ANN401 (a value of any type)
    substantial = [option for option in options if option != Scalar(type(None))]
    if value is not None and len(substantial) == 1:
        return check(substantial[0], value)
    taken = []
    for option in options:
        try:
            taken.append(check(option, value))
        except ShapeError:
            continue
        if type(taken[-1]) is type(value):
            return taken[-1]
    return taken[0] if taken else _refuse(stub(shape), value)


def _checked_record(fields: tuple[Field, ...], value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _refuse("a dict", value)
    names = [field.name for field in fields]
    for key in value:
        if key not in names:
            problem = f" has no key {shown(key)}; its keys are {', '.join(names)}"
            raise ShapeError(problem)
    for field in fields:
        if field.required and field.name not in value:
            problem = f" lacks the key {field.name!r}"
            raise ShapeError(problem)
    return {field.name: _inner(field.shape, value[field.name], f"[{field.name!r}]") for field in fields if field.name in value}


def _inner(shape: Shape, value: object, path: str) -> Any:  # noqa: ANN401 (a value of any type)
    try:
        return check(shape, value)
    except ShapeError as error:
        raise ShapeError(error.problem, path=path + error.path) from None


def _refuse(wanted: str, value: object) -> NoReturn:
    problem = f" must be {wanted}, not {shown(value)}"
    raise ShapeError(problem)
