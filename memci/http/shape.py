"""The values that sessions return, as JSON and as the schema of it. Adding a resource needs neither."""

import functools
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, get_args, get_origin

import attrs
import orjson
from fastapi import APIRouter, Response
from pydantic import create_model


class JsonResponse(Response):
    """An answer as JSON, with all that messages may hold: integers of any size, and lone surrogates as escapes."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return a value as JSON."""
        return encoded(content)


class Router(APIRouter):
    """Routes whose functions return what sessions do; the schemas of their answers are made of what they say they return."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 (FastAPI's)
        """Add a route; its answer is the JSON of what *endpoint* returns, no content for ``None``, or a stream of events."""
        if inspect.isasyncgenfunction(endpoint):
            super().add_api_route(path, endpoint, **options)
            return
        returned = typing.get_type_hints(endpoint)["return"]
        status = options.get("status_code") or (204 if returned is type(None) else 200)

        @functools.wraps(endpoint)
        async def answer(*positional: Any, **named: Any) -> Response:  # noqa: ANN401 (what the endpoint takes)
            value = await endpoint(*positional, **named)
            return Response(status_code=204) if value is None else JsonResponse(value, status)

        options |= {"status_code": status, "response_model": None if status == 204 else schema_of(returned)}  # noqa: PLR2004
        super().add_api_route(path, answer, **options)


def encoded(value: object) -> bytes:
    """Return the JSON of a value whose parts may be values of sessions. O(its size)."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:  # integers beyond 64 bits and lone surrogates
        return json.dumps(value, default=_plain, allow_nan=False, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Exception):
        return str(value)
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _fields(kind)}


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 (any class; TypeError for what is not of attrs)
    try:
        return tuple(field.name for field in attrs.fields(kind) if not field.name.startswith("_"))
    except attrs.exceptions.NotAnAttrsClassError as error:
        message = f"a {kind.__name__} has no form in JSON"
        raise TypeError(message) from error


@functools.cache
def schema_of(kind: Any) -> Any:  # noqa: ANN401 (any annotation)
    """Return an annotation in which each class of attrs is a model of Pydantic with its fields and what its docstring says."""
    if isinstance(kind, type) and attrs.has(kind):
        hints = typing.get_type_hints(kind)
        fields: dict[str, Any] = {name: (schema_of(hints[name]), ...) for name in _fields(kind)}
        return create_model(kind.__name__, __doc__=kind.__doc__, **fields)
    if not (parts := get_args(kind)):
        return Any if isinstance(kind, type) and issubclass(kind, Exception) else kind
    if isinstance(kind, UnionType):
        return functools.reduce(lambda one, other: one | other, map(schema_of, parts))
    origin: Any = get_origin(kind)
    return kind if origin is typing.Literal else origin[tuple(map(schema_of, parts))]
