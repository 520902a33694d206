"""What values a tool takes and gives: one shape for each annotation, from which come its check, its JSON schema and its stub.

A shape checks strictly. It takes what its schema describes, and changes no more than its type asks for: an ``int`` where a
``float`` is wanted, a list where a tuple or set is.
"""

import enum
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, Protocol

import attrs

from memci.errors import PicklableError, shown

Schema = dict[str, Any]


class ShapeError(PicklableError):
    """A value does not have its shape. It never leaves this package: the toolbox says whose value it was.

    Attributes:
        path: Where in the value, such as ``.kinds[0]``; empty when it is the whole.
        problem: What is wrong, to stand behind the value's name.
    """

    def __init__(self, problem: str, *, path: str = "") -> None:
        super().__init__(path + problem)
        self.path = path
        self.problem = problem


class Shape(Protocol):
    """What a value has to look like."""

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the value as the function is given it; raises ``ShapeError``. O(its size)."""

    def schema(self) -> Schema:
        """Return its JSON schema; a new dict."""

    def stub(self) -> str:
        """Return its annotation as the model reads it."""

    def records(self) -> "tuple[Record, ...]":
        """Return the records that its stub names, those first that others name."""


def _refuse(wanted: str, value: object) -> NoReturn:
    problem = f" must be {wanted}, not {shown(value)}"
    raise ShapeError(problem)


@attrs.frozen
class Anything:
    """Any plain data."""

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the value."""
        return value

    def schema(self) -> Schema:
        """Return the schema that everything meets."""
        return {}

    def stub(self) -> str:
        """Return the annotation."""
        return "Any"

    def records(self) -> "tuple[Record, ...]":
        """Return nothing."""
        return ()


_SCALARS = {
    str: ("string", "str", "a string"),
    int: ("integer", "int", "an integer"),
    float: ("number", "float", "a number"),
    bool: ("boolean", "bool", "True or False"),
    type(None): ("null", "None", "None"),
}


@attrs.frozen
class Scalar:
    """Text, a number, a truth value or ``None``. A truth value is no number, and text is never read as one."""

    kind: type

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the value; an integral float where an integer is wanted, and an int where a float is, are converted."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.kind is float and number and math.isfinite(_as_float(value)):
            return _as_float(value)
        if self.kind is int and number and isinstance(value, float) and value.is_integer():
            return int(value)
        if self.kind is float or not isinstance(value, self.kind) or (self.kind is int and not number):
            _refuse(_SCALARS[self.kind][2], value)
        return value

    def schema(self) -> Schema:
        """Return the schema."""
        return {"type": _SCALARS[self.kind][0]}

    def stub(self) -> str:
        """Return the annotation."""
        return _SCALARS[self.kind][1]

    def records(self) -> "tuple[Record, ...]":
        """Return nothing."""
        return ()


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # the caller knows that it is a number
    except OverflowError:
        return math.inf


@attrs.frozen
class Choice:
    """One of a few values, of a ``Literal`` or an enum; the function is given the enum's member."""

    options: tuple[str | int | bool | None, ...]
    members: type[enum.Enum] | None = None

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the value, or the member that has it."""
        if self.members and isinstance(value, self.members):
            return value
        for option in self.options:
            if type(value) is type(option) and value == option:
                return self.members(value) if self.members else value
        _refuse(f"one of {', '.join(map(repr, self.options))}", value)

    def schema(self) -> Schema:
        """Return the schema."""
        kinds = {type(option) for option in self.options}
        return ({"type": _SCALARS[kinds.pop()][0]} if len(kinds) == 1 else {}) | {"enum": list(self.options)}

    def stub(self) -> str:
        """Return the annotation."""
        return f"Literal[{', '.join(map(repr, self.options))}]"

    def records(self) -> "tuple[Record, ...]":
        """Return nothing."""
        return ()


@attrs.frozen
class Many:
    """A list, a set, or a tuple of any length."""

    item: Shape
    container: Callable[[list[Any]], Any] = list

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the container of its checked items."""
        if not isinstance(value, list | tuple) and not (isinstance(value, set | frozenset) and self._unique()):
            _refuse("a list", value)
        return self.container([_inner(self.item, inner, f"[{place}]") for place, inner in enumerate(value)])

    def schema(self) -> Schema:
        """Return the schema."""
        unique = {"uniqueItems": True} if self._unique() else {}
        return {"type": "array", "items": self.item.schema()} | unique

    def stub(self) -> str:
        """Return the annotation."""
        return f"set[{self.item.stub()}]" if self._unique() else f"list[{self.item.stub()}]"

    def records(self) -> "tuple[Record, ...]":
        """Return the records of its items."""
        return self.item.records()

    def _unique(self) -> bool:
        return self.container in (set, frozenset)


@attrs.frozen
class Fixed:
    """A tuple of so many items, each of its own shape."""

    items: tuple[Shape, ...]

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the tuple of its checked items."""
        if not isinstance(value, list | tuple) or len(value) != len(self.items):
            _refuse(f"a list of {len(self.items)} items", value)
        pairs = zip(self.items, value, strict=True)
        return tuple(_inner(item, inner, f"[{place}]") for place, (item, inner) in enumerate(pairs))

    def schema(self) -> Schema:
        """Return the schema."""
        count = len(self.items)
        return {"type": "array", "prefixItems": [item.schema() for item in self.items], "minItems": count, "maxItems": count}

    def stub(self) -> str:
        """Return the annotation."""
        return f"tuple[{', '.join(item.stub() for item in self.items)}]"

    def records(self) -> "tuple[Record, ...]":
        """Return the records of its items."""
        return _distinct(self.items)


@attrs.frozen
class Table:
    """A dict with text as keys."""

    item: Shape

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the dict of its checked values."""
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            _refuse("a dict with strings as keys", value)
        return {key: _inner(self.item, inner, f"[{shown(key)}]") for key, inner in value.items()}

    def schema(self) -> Schema:
        """Return the schema."""
        return {"type": "object", "additionalProperties": self.item.schema()}

    def stub(self) -> str:
        """Return the annotation."""
        return f"dict[str, {self.item.stub()}]"

    def records(self) -> "tuple[Record, ...]":
        """Return the records of its values."""
        return self.item.records()


@attrs.frozen
class OneOf:
    """A union."""

    options: tuple[Shape, ...]

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the value by the first option that takes it as it is, else by the first that takes it at all."""
        substantial = [option for option in self.options if option != Scalar(type(None))]
        if value is not None and len(substantial) == 1:
            return substantial[0].check(value)
        taken = []
        for option in self.options:
            try:
                taken.append(option.check(value))
            except ShapeError:
                continue
            if type(taken[-1]) is type(value):
                return taken[-1]
        if not taken:
            _refuse(self.stub(), value)
        return taken[0]

    def schema(self) -> Schema:
        """Return the schema."""
        return {"anyOf": [option.schema() for option in self.options]}

    def stub(self) -> str:
        """Return the annotation."""
        return " | ".join(option.stub() for option in self.options)

    def records(self) -> "tuple[Record, ...]":
        """Return the records of its options."""
        return _distinct(self.options)


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
    shape: Shape
    required: bool
    description: str


@attrs.frozen
class Record:
    """A dict with known keys: a ``TypedDict``, or what becomes of an instance of an attrs class or a dataclass."""

    name: str
    fields: tuple[Field, ...]

    def check(self, value: object) -> Any:  # noqa: ANN401 (a value of any type)
        """Return the dict of its checked values."""
        if not isinstance(value, Mapping):
            _refuse("a dict", value)
        unknown = [key for key in value if key not in {field.name for field in self.fields}]
        if unknown:
            keys = ", ".join(field.name for field in self.fields)
            problem = f" has no key {shown(unknown[0])}; its keys are {keys}"
            raise ShapeError(problem)
        missing = [field.name for field in self.fields if field.required and field.name not in value]
        if missing:
            problem = f" lacks the key {missing[0]!r}"
            raise ShapeError(problem)
        return {
            field.name: _inner(field.shape, value[field.name], f"[{field.name!r}]")
            for field in self.fields
            if field.name in value
        }

    def schema(self) -> Schema:
        """Return the schema."""
        return object_schema(self.fields)

    def stub(self) -> str:
        """Return the annotation: its name."""
        return self.name

    def records(self) -> "tuple[Record, ...]":
        """Return the records of its fields, and itself."""
        return (*_distinct(field.shape for field in self.fields), self)


def object_schema(fields: tuple[Field, ...]) -> Schema:
    """Return the JSON schema of an object with these keys and no others."""
    properties = {
        field.name: field.shape.schema() | ({"description": field.description} if field.description else {}) for field in fields
    }
    required = [field.name for field in fields if field.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _inner(shape: Shape, value: object, path: str) -> Any:  # noqa: ANN401 (a value of any type)
    try:
        return shape.check(value)
    except ShapeError as error:
        raise ShapeError(error.problem, path=path + error.path) from None


def _distinct(shapes: Iterable[Shape]) -> tuple[Record, ...]:
    return tuple(dict.fromkeys(record for shape in shapes for record in shape.records()))
