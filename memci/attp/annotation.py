"""From a function's annotations to shapes: what a tool may take and give, and a clear refusal of everything else."""

import dataclasses
import datetime as dt
import enum
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import attrs

from memci.attp.docstring import read_docstring
from memci.attp.shape import Anything, Choice, Field, Fixed, Many, OneOf, Record, Scalar, Shape, Table

_SCALARS = (str, int, float, bool, type(None))
_SETS: dict[type, Callable[[list[Any]], Any]] = {set: set, frozenset: frozenset, AbstractSet: frozenset}
_CONTAINERS: dict[type, Callable[[list[Any]], Any]] = {list: list, Sequence: list, Iterable: list, tuple: tuple, **_SETS}
_CHOICES = (str, int, bool, type(None))
_SUPPORTED = (
    "use str, int, float, bool, None, Literal, an Enum, list, tuple, set, dict with str keys, a union of these, or a TypedDict"
)


class UnsupportedError(Exception):
    """An annotation says nothing that could be checked or written as a JSON schema. It never leaves this package."""


def parameter_shape(annotation: object) -> Shape:
    """Return the shape of what a parameter takes.

    Raises:
        UnsupportedError: The annotation is none that a model's arguments could meet.
    """
    return _shape(annotation, result=False, outer=())


def result_shape(annotation: object) -> Shape:
    """Return the shape of a result after it became plain data: instances of attrs classes and dataclasses are records.

    Raises:
        UnsupportedError: The annotation is none whose values are plain data.
    """
    return _shape(annotation, result=True, outer=())


def description_of(annotation: object) -> str:
    """Return the text in ``Annotated[…, "text"]``; empty where there is none."""
    texts = (extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, str))
    return next(texts, "")


def _shape(annotation: Any, *, result: bool, outer: tuple[type, ...]) -> Shape:  # noqa: ANN401 (an annotation may be anything)
    origin = typing.get_origin(annotation)
    if annotation is None or annotation in _SCALARS:
        return Scalar(type(None) if annotation is None else annotation)
    if annotation is Any or annotation is object:
        return Anything()
    if origin is typing.Literal:
        return _literal(typing.get_args(annotation))
    if origin is typing.Annotated:
        return _shape(typing.get_args(annotation)[0], result=result, outer=outer)
    if origin in (typing.Union, types.UnionType):
        return OneOf(tuple(_shape(option, result=result, outer=outer) for option in typing.get_args(annotation)))
    if isinstance(origin or annotation, type):
        return _class_shape(origin or annotation, typing.get_args(annotation), result=result, outer=outer)
    message = f"the annotation {_name(annotation)} is not supported; {_SUPPORTED}"
    raise UnsupportedError(message)


def _class_shape(kind: type, arguments: tuple[Any, ...], *, result: bool, outer: tuple[type, ...]) -> Shape:
    def inner(annotation: object) -> Shape:
        return _shape(annotation, result=result, outer=outer)

    if issubclass(kind, enum.Enum):
        return _enum(kind)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        return Fixed(tuple(map(inner, arguments)))
    if kind in _CONTAINERS:
        item = inner(arguments[0] if arguments else Any)
        return Many(_hashable(item, kind) if kind in _SETS else item, _CONTAINERS[kind])
    if kind in (dict, Mapping):
        if arguments and arguments[0] is not str:
            message = f"a dict with keys of the type {_name(arguments[0])} is not supported; use str"
            raise UnsupportedError(message)
        return Table(inner(arguments[1] if arguments else Any))
    if typing.is_typeddict(kind) or (result and (attrs.has(kind) or dataclasses.is_dataclass(kind))):
        return _record(kind, result=result, outer=outer)
    if result and kind in (dt.date, dt.datetime, dt.time):
        return Scalar(str)
    message = f"the type {_name(kind)} is not supported; {_SUPPORTED}"
    raise UnsupportedError(message)


def _literal(options: tuple[Any, ...]) -> Choice:
    if not all(isinstance(option, _CHOICES) and not isinstance(option, enum.Enum) for option in options):
        message = "a Literal of anything but str, int, bool and None is not supported"
        raise UnsupportedError(message)
    return Choice(options)


def _enum(kind: type[enum.Enum]) -> Choice:
    options = tuple(member.value for member in kind)
    if not options or not all(type(option) in _CHOICES for option in options):
        message = f"the enum {kind.__name__} is not supported, as its values are not all str or int"
        raise UnsupportedError(message)
    return Choice(options, kind)


def _hashable(item: Shape, kind: type) -> Shape:
    if not isinstance(item, Scalar | Choice):
        message = f"a {kind.__name__} of anything but text, numbers and choices is not supported; use list"
        raise UnsupportedError(message)
    return item


def _record(kind: Any, *, result: bool, outer: tuple[type, ...]) -> Record:  # noqa: ANN401 (a class of one of three sorts)
    if kind in outer:
        message = f"{kind.__name__} holds itself, which is not supported"
        raise UnsupportedError(message)
    hints = typing.get_type_hints(kind, include_extras=True)
    if typing.is_typeddict(kind):
        required = kind.__required_keys__
        names = list(hints)
    else:
        found = attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind)
        names = [field.name for field in found if not field.name.startswith("_")]
        required = frozenset(names)
    described = read_docstring(kind.__doc__).entries("Attributes")
    fields = []
    for name in names:
        annotation = hints[name]
        while typing.get_origin(annotation) in (typing.Required, typing.NotRequired):
            (annotation,) = typing.get_args(annotation)
        shape = _shape(annotation, result=result, outer=(*outer, kind))
        description = described.get(name, "") or description_of(annotation)
        fields.append(Field(name=name, shape=shape, required=name in required, description=description))
    return Record(kind.__name__, tuple(fields))


def _name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
