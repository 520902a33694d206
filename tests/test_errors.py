"""What holds for every error that memci raises, those included that nobody has written yet."""

import copy
import importlib
import inspect
import pickle
import pkgutil
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import pytest

import memci
from memci import errors as memci_errors
from memci.cli.exit_code import CommandError, ExitCode
from memci.errors import (
    BudgetError,
    ConfigError,
    CorruptError,
    InvalidIdError,
    InvalidMessageError,
    MemciError,
    PageNotFoundError,
    ToolNotFoundError,
    UnavailableError,
    shown,
)

_Error = TypeVar("_Error", bound=Exception)

ENOUGH_CHARACTERS = 3_000
"""More than any error's text may have."""

HOSTILE = "\ud800" + "x" * 1_000_000

SAMPLES: dict[object, object] = {
    object: "usr-12",
    str: "usr-12",
    int: 7,
    float: 1.5,
    int | None: 3,
    float | None: 2.5,
    str | None: "usr-12",
    Sequence[str]: ("usr-1", "usr-2"),
    Sequence[Any]: (),
    Mapping[str, float] | None: {"price": 0.5},
    Mapping[str, int]: {"system": 3, "open": 4},
    Mapping[str, MemciError]: {"support-42": UnavailableError("the disk is full")},
    ExitCode: ExitCode.STORE,
    HTTPStatus: HTTPStatus.CONFLICT,
    MemciError: UnavailableError("the disk is full"),
    Mapping[str, str] | None: {"Retry-After": "1"},
}
"""A value for each type that a parameter of an error has."""


FRAMEWORKS = (
    "agent_framework",
    "anthropic",
    "importing.agents_sdk",
    "importing.langgraph",
    "langchain",
    "openai_agents",
    "pydantic_ai",
)
ADAPTERS = tuple(f"memci.adapters.{name}" for name in FRAMEWORKS)
"""Modules that import a framework; a test shows that they define no errors."""


def all_errors() -> list[type[Exception]]:
    """Return every class of exceptions that memci defines."""
    for module in pkgutil.walk_packages(memci.__path__, "memci."):
        if not module.name.endswith("__main__") and not module.name.startswith(ADAPTERS):
            importlib.import_module(module.name)
    found, classes = [], [Exception]
    for each in classes:
        classes += [kind for kind in each.__subclasses__() if kind not in classes]
    found = [kind for kind in classes if kind.__module__.startswith("memci.")]
    return sorted(found, key=lambda kind: kind.__qualname__)


def sample(kind: type[Exception]) -> Exception:
    """Return an error of a class, made with a value for each of its parameters."""
    initialiser = inspect.getattr_static(kind, "__init__")
    if not inspect.isfunction(initialiser):
        return kind("what to do next")
    hints = typing.get_type_hints(initialiser)
    given = {name: SAMPLES[hints[name]] for name in inspect.signature(kind).parameters}
    return kind(**given)


def told(error: object) -> object:
    """Return all that an error says, in a form that can be compared."""
    if isinstance(error, BaseException):
        return type(error), error.args, str(error), {name: told(value) for name, value in vars(error).items()}
    if isinstance(error, Mapping):
        return {key: told(value) for key, value in error.items()}
    return error


def pickled(error: _Error, protocol: int | None = None) -> _Error:
    """Return an error after a round trip through pickle."""
    again: _Error = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 (written here)
    return again


@pytest.mark.frameworks
@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_define_no_errors(name: str) -> None:
    """An adapter raises memci's errors, and those of its framework."""
    defined = vars(importlib.import_module(name)).values()
    assert [] == [kind for kind in defined if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == name]


@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_can_be_pickled_and_copied(kind: type[Exception], again: Callable[[Exception], Exception]) -> None:
    """An error that crosses to another process, or is copied, is the same error with the same data."""
    error = sample(kind)
    assert told(error) == told(again(error))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_are_pickled_by_every_protocol(protocol: int) -> None:
    """The oldest protocol carries an error's data as the newest does."""
    error = sample(BudgetError)
    assert told(error) == told(pickled(error, protocol))


def test_an_error_with_a_value_that_cannot_be_pickled_can_be() -> None:
    """An id of a type that pickle does not know does not keep the error from its caller."""
    error = InvalidIdError("give text", value=lambda: None)
    assert told(error) == told(pickled(error))


@pytest.mark.parametrize(
    "error",
    [
        MemciError(HOSTILE),
        ConfigError("wrong", path=HOSTILE),
        InvalidMessageError("wrong", path=HOSTILE),
        PageNotFoundError(HOSTILE, index=HOSTILE),
        CorruptError("damaged", session=HOSTILE, place="journal"),
        ToolNotFoundError(HOSTILE),
        ToolNotFoundError("x", nearest=[HOSTILE]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_errors_text_is_bounded_and_can_be_encoded(error: MemciError) -> None:
    """Whatever an error quotes, its text is short, and can be printed anywhere."""
    text = str(error)
    assert len(text) < ENOUGH_CHARACTERS
    text.encode()


def test_the_advice_at_the_end_of_a_long_text_is_kept() -> None:
    """A text that is cut loses its middle, and says still what to do."""
    assert str(MemciError("x" * 1_000_000 + ": make it shorter")).endswith(": make it shorter")


class _Rude:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    "value", ["x" * 1_000_000, 10**5_000, [["x"] * 99] * 99, b"x" * 10_000, _Rude(), "\ud800", float("nan")], ids=type
)
def test_a_quoted_value_is_bounded(value: object) -> None:
    """Any value can be quoted in an error's text, on one short line."""
    text = shown(value)
    assert len(text) <= 80
    assert text.isascii() or "…" in text
    text.encode()


def test_a_list_that_holds_itself_can_be_quoted() -> None:
    """Quoting a value ends, however deep it nests."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert len(shown(deep)) <= 80


def test_a_commands_error_keeps_its_code() -> None:
    """The code of a command's error is its own after a round trip too."""
    assert ExitCode.STORE == pickled(CommandError("gone", ExitCode.STORE)).code


def test_the_tree_of_errors_is_drawn_and_exported() -> None:
    """The docstring of ``memci.errors`` draws each class of its tree below its parent, and memci exports each."""
    drawn: list[tuple[str, str]] = []
    above: list[str] = []
    for line in inspect.cleandoc(memci_errors.__doc__ or "").splitlines():
        if found := re.search(r"(?<=[ ─])(\w+Error)\b(?: \(a TypeError too\))?$", line):
            depth = (found.start() - 4) // 4
            above[depth:] = [found[1]]
            drawn.append((found[1], above[depth - 1] if depth else ""))
    classes = [kind for kind in vars(memci_errors).values() if inspect.isclass(kind) and issubclass(kind, MemciError)]
    parents = {kind.__name__: [base.__name__ for base in kind.__bases__ if issubclass(base, MemciError)] for kind in classes}
    assert sorted(parents) == sorted(name for name, _ in drawn)
    assert [] == [(name, parent) for name, parent in drawn if parents[name] != ([parent] if parent else [])]
    assert [] == [name for name in parents if name not in memci.__all__]
