"""What values a tool takes and gives: one shape for each annotation, with its check, its JSON schema and its stub.

A shape checks strictly. It takes what its schema describes, and changes no more than its type asks for: an ``int`` where a
``float`` is wanted, a list where a tuple or set is. What a tool gives becomes plain data before anything else sees it.
"""

import dataclasses
import datetime as dt
import enum
import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import repeat
from typing import Any, NoReturn, TypeAlias

import attrs

from memci.errors import MOST_SHOWN, shown

Schema = dict[str, Any]
Check: TypeAlias = Callable[[Any, str], Any]
"""Returns a value as the function is given it, or raises ``ShapeError`` with the value's path before the problem. O(its size)."""

MAX_DEPTH = 64  # of plain data; what nests deeper is a mistake, such as a list that holds itself

_SCALARS = {
    str: ("string", "str", "a string"),
    int: ("integer", "int", "an integer"),
    float: ("number", "float", "a number"),
    bool: ("boolean", "bool", "True or False"),
    type(None): ("null", "None", "None"),
}
_SETS: dict[type, Callable[[list[Any]], Any]] = {set: set, frozenset: frozenset, AbstractSet: frozenset}
_CONTAINERS: dict[type, Callable[[list[Any]], Any]] = {list: list, Sequence: list, Iterable: list, tuple: tuple, **_SETS}
_CHOICES = (str, int, bool, type(None))
_SUPPORTED = (
    "use str, int, float, bool, None, Literal, an Enum, list, tuple, set, dict with str keys, a union of these, or a TypedDict"
)

_SECTION = re.compile(r"(Args|Arguments|Attributes|Example|Examples|Note|Notes|Raises|Returns|Yields):[ \t]*")
_ENTRY = re.compile(r"\*{0,2}(?P<name>[A-Za-z_][\w.]*)(?:[ \t]*\([^)\n]*\))?:[ \t]*(?P<text>.*)")


class ShapeError(Exception):
    """A value does not have its shape, or an annotation describes none. It never leaves this package: the toolbox says whose."""


@attrs.frozen(eq=False)
class Shape:
    """What a value looks like: the annotation that the model reads, the JSON schema, and the check.

    Whoever gives the schema away copies it. The records are the classes that the stub names, as the model reads them, by name;
    those first that others name.
    """

    stub: str
    schema: Schema
    check: Check
    records: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Field:
    """One key of a record, or one parameter of a tool; its description may be empty."""

    name: str
    shape: Shape
    required: bool
    description: str
    default: Any = None  # as plain data, of a parameter that is not required
    by_name: bool = False  # a parameter that cannot be given by position


def shape_of(annotation: Any, *, result: bool, outer: tuple[type, ...] = ()) -> Shape:  # noqa: ANN401, PLR0911 (one return a kind)
    """Return the shape of what a parameter takes, or of a *result* after it became plain data.

    Raises ``ShapeError`` for an annotation that no arguments of a model could meet, or whose values are no plain data.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    inner = functools.partial(shape_of, result=result, outer=outer)
    if annotation is None or annotation in tuple(_SCALARS):
        kind = type(None) if annotation is None else annotation
        return Shape(_SCALARS[kind][1], {"type": _SCALARS[kind][0]}, functools.partial(_checked_scalar, kind))
    if annotation is Any or annotation is object:
        return Shape("Any", {}, lambda value, _: value)
    if origin is typing.Literal:
        if not all(isinstance(option, _CHOICES) and not isinstance(option, enum.Enum) for option in arguments):
            _unsupported("a Literal of anything but str, int, bool and None is not supported")
        return _choice(arguments, None)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return inner(arguments[0])
    if origin in (typing.Union, types.UnionType):
        options = list(map(inner, arguments))
        stub = " | ".join(option.stub for option in options)
        schema = {"anyOf": [option.schema for option in options]}
        return Shape(stub, schema, functools.partial(_checked_union, stub, options), records(options))
    if isinstance(origin or annotation, type):
        return _class_shape(origin or annotation, arguments, inner, result=result, outer=outer)
    return _unsupported(f"the annotation {annotation} is not supported; {_SUPPORTED}")


def description_of(annotation: object) -> str:
    """Return the text in ``Annotated[…, "text"]``; empty where there is none."""
    return next((extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, str)), "")


def records(shapes: Iterable[Shape]) -> dict[str, str]:
    """Return the records that the stubs of shapes name, those first that others name."""
    return {name: text for shape in shapes for name, text in shape.records.items()}


def object_schema(fields: Sequence[Field]) -> Schema:
    """Return the JSON schema of an object with these keys and no others; a new dict of the fields' own."""
    properties = {
        field.name: field.shape.schema | ({"description": field.description} if field.description else {}) for field in fields
    }
    required = [field.name for field in fields if field.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def plain(  # noqa: C901, PLR0911 (one return a kind of value)
    value: object, *, depth: int = 0, text: Callable[[str], str] = str
) -> Any:  # noqa: ANN401 (JSON data)
    """Return a value as plain data: ``None``, booleans, numbers, text, lists, and dicts with text as keys. O(its size).

    Members of enums become their values; instances of attrs and dataclasses dicts of their public fields, in order; tuples
    lists; sets sorted lists; dates and times ISO text. Containers are copied; scalars are instances of the built-in types
    themselves, not of subclasses that could write themselves otherwise. Each text, also of a key, is what *text* makes of it.
    Raises TypeError where it is, or holds, something else, and ValueError where it nests deeper than 64.
    """
    if depth > MAX_DEPTH:
        message = f"the value nests deeper than {MAX_DEPTH}"
        raise ValueError(message)
    inner = functools.partial(plain, depth=depth + 1, text=text)
    match value:
        case None | bool():
            return value
        case enum.Enum():
            return inner(value.value)
        case str():
            return text(str.__str__(value))
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case Mapping():
            return {text(_key(key)): inner(item) for key, item in value.items()}
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
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif attrs.has(kind):
        names = [field.name for field in attrs.fields(kind)]
    else:
        return None
    return [name for name in names if not name.startswith("_")]


def _key(key: object) -> str:
    found = plain(key)
    if isinstance(found, list | dict):
        message = f"a key of the type {type(key).__name__} is no plain data"
        raise TypeError(message)
    return str(found)


def sections(text: str) -> list[tuple[str, list[str]]]:
    """Return the lines of a clean docstring by section, each with its heading; other paragraphs have no name.

    https://google.github.io/styleguide/pyguide.html#383-functions-and-methods
    """
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        heading = _SECTION.fullmatch(line)
        if heading or (line and not line.startswith((" ", "\t")) and found[-1][0]):
            found.append((heading[1] if heading else "", []))
        found[-1][1].append(line)
    return found


def entries(text: str, *names: str) -> dict[str, str]:
    """Return what sections of a docstring say of each name, such as a parameter's; on one line each."""
    found: dict[str, str] = {}
    for section, lines in sections(text):
        last = ""
        for line in inspect.cleandoc("\n" + "\n".join(lines[1:])).split("\n") if section in names else ():
            entry = None if line.startswith((" ", "\t")) else _ENTRY.match(line)
            if entry:
                last = entry["name"]
                found[last] = entry["text"].strip()
            elif last and line.strip():
                found[last] = f"{found[last]} {line.strip()}".strip()
    return found


def _class_shape(  # noqa: C901, PLR0911 (one return a kind)
    kind: type, arguments: tuple[Any, ...], inner: Callable[[Any], Shape], *, result: bool, outer: tuple[type, ...]
) -> Shape:
    if issubclass(kind, enum.Enum):
        options = tuple(member.value for member in kind)
        if not options or not all(type(option) in _CHOICES for option in options):
            _unsupported(f"the enum {kind.__name__} is not supported, as its values are not all str or int")
        return _choice(options, kind)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        items, count = list(map(inner, arguments)), len(arguments)
        schema = {"type": "array", "prefixItems": [item.schema for item in items], "minItems": count, "maxItems": count}
        stub = f"tuple[{', '.join(item.stub for item in items)}]"
        return Shape(stub, schema, _items_check(items, tuple, (list, tuple), count), records(items))
    if kind in _CONTAINERS:
        item = inner(arguments[0] if arguments else Any)
        schema = {"type": "array", "items": item.schema}
        if kind not in _SETS:
            check = _items_check(repeat(item), _CONTAINERS[kind], (list, tuple))
            return Shape(f"list[{item.stub}]", schema, check, item.records)
        if "enum" not in item.schema and item.schema.get("type", "array") in {"array", "object"}:
            _unsupported(f"a {kind.__name__} of anything but text, numbers and choices is not supported; use list")
        check = _items_check(repeat(item), _CONTAINERS[kind], (list, tuple, set, frozenset))
        return Shape(f"set[{item.stub}]", schema | {"uniqueItems": True}, check)
    if kind in (dict, Mapping):
        if arguments and arguments[0] is not str:
            _unsupported(
                f"a dict with keys of the type {getattr(arguments[0], '__name__', arguments[0])} is not supported; use str"
            )
        item = inner(arguments[1] if arguments else Any)
        schema = {"type": "object", "additionalProperties": item.schema}
        return Shape(f"dict[str, {item.stub}]", schema, functools.partial(_checked_table, item), item.records)
    if typing.is_typeddict(kind) or (result and field_names(kind) is not None):
        return _record(kind, result=result, outer=outer)
    if result and kind in (dt.date, dt.datetime, dt.time):
        return inner(str)
    return _unsupported(f"the type {kind.__name__} is not supported; {_SUPPORTED}")


def _choice(options: tuple[Any, ...], members: type[enum.Enum] | None) -> Shape:
    kinds = {type(option) for option in options}
    schema = ({"type": _SCALARS[kinds.pop()][0]} if len(kinds) == 1 else {}) | {"enum": list(options)}
    return Shape(f"Literal[{', '.join(map(repr, options))}]", schema, functools.partial(_checked_choice, options, members))


def _record(kind: type, *, result: bool, outer: tuple[type, ...]) -> Shape:
    """Return the shape of a ``TypedDict``, or of what becomes of an instance of an attrs class or a dataclass."""
    if kind in outer:
        _unsupported(f"{kind.__name__} holds itself, which is not supported")
    hints = typing.get_type_hints(kind, include_extras=True)
    names = field_names(kind)
    required: Iterable[str] = kind.__required_keys__ if names is None else names  # type: ignore[attr-defined]  # it is a TypedDict
    described = entries(inspect.cleandoc(kind.__doc__ or ""), "Attributes")
    fields = []
    lines = [f"class {kind.__name__}(TypedDict):"]
    for name in hints if names is None else names:
        annotation = hints[name]
        shape = shape_of(annotation, result=result, outer=(*outer, kind))
        while typing.get_origin(annotation) in (typing.Required, typing.NotRequired):
            (annotation,) = typing.get_args(annotation)
        description = described.get(name) or description_of(annotation)
        fields.append(Field(name=name, shape=shape, required=name in required, description=description))
        stub = shape.stub if name in required else f"NotRequired[{shape.stub}]"
        lines.append(f"    {name}: {stub}" + (f"  # {description}" if description else ""))
    text = "\n".join(lines if fields else [*lines, "    pass"])
    known = records(field.shape for field in fields) | {kind.__name__: text}
    return Shape(kind.__name__, object_schema(fields), functools.partial(_checked_record, fields), known)


def _unsupported(message: str) -> NoReturn:
    raise ShapeError(message)


def _checked_scalar(kind: type, value: object, path: str) -> Any:  # noqa: ANN401 (a value of any type)
    if kind in (int, float):
        if isinstance(value, int | float) and not isinstance(value, bool):
            with suppress(OverflowError, ValueError):  # of infinity, and of what is too large for a float
                number = kind(value)
                if math.isfinite(number) if kind is float else number == value:
                    return number
    elif isinstance(value, kind):
        return value
    return _refuse(path, _SCALARS[kind][2], value)


def _checked_choice(options: tuple[object, ...], members: type[enum.Enum] | None, value: object, path: str) -> Any:  # noqa: ANN401 (one of them)
    if members and isinstance(value, members):
        return value
    if not any(type(value) is type(option) and value == option for option in options):
        _refuse(path, f"one of {', '.join(map(repr, options))}", value)
    return members(value) if members else value


def _items_check(
    items: Iterable[Shape], make: Callable[[list[Any]], Any], kinds: tuple[type[Any], ...], count: int | None = None
) -> Check:
    wanted = "a list" if count is None else f"a list of {count} items"

    def check(value: Any, path: str) -> Any:  # noqa: ANN401 (as above)
        if not isinstance(value, kinds) or (count is not None and len(value) != count):
            _refuse(path, wanted, value)
        found = enumerate(zip(value, items, strict=False))
        return make([item.check(inner, f"{path}[{place}]") for place, (inner, item) in found])

    return check


def _checked_table(item: Shape, value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        _refuse(path, "a dict with strings as keys", value)
    return {key: item.check(inner, f"{path}[{key[:MOST_SHOWN]!r}]") for key, inner in value.items()}


def _checked_union(stub: str, options: list[Shape], value: object, path: str) -> Any:  # noqa: ANN401 (a value of any type)
    """Return what the first option that leaves the value's type makes of it, else the first that takes it at all."""
    substantial = [option for option in options if option.stub != "None"]
    if value is not None and len(substantial) == 1:
        return substantial[0].check(value, path)
    taken = []
    for option in options:
        with suppress(ShapeError):
            taken.append(option.check(value, path))
    if not taken:
        _refuse(path, stub, value)
    return next((found for found in taken if type(found) is type(value)), taken[0])


def _checked_record(fields: list[Field], value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(path, "a dict", value)
    names = [field.name for field in fields]
    problems = [f" has no key {shown(key)}; its keys are {', '.join(names)}" for key in value if key not in names]
    problems += [f" lacks the key {field.name!r}" for field in fields if field.required and field.name not in value]
    if problems:
        raise ShapeError(path + problems[0])
    return {
        field.name: field.shape.check(value[field.name], f"{path}[{field.name!r}]") for field in fields if field.name in value
    }


def _refuse(path: str, wanted: str, value: object) -> NoReturn:
    message = f"{path} must be {wanted}, not {shown(value)}"
    raise ShapeError(message)
