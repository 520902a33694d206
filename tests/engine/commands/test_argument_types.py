"""Every argument of every public call, given what it does not take: an error of memci, or it works."""

import inspect
import math
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.engine.aio.engine import AsyncEngine, AsyncSession
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ArgumentError, MemciError
from memci.messages.formats import format as formats
from tests.engine.sessions import config_of, talk
from tests.engine.wire import user
from tests.together import in_loop

ENOUGH_CHARACTERS = 3_000
"""More than any error's text may have."""


def nested(levels: int) -> list[Any]:
    """Return lists in lists."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


VALUES: tuple[Any, ...] = (
    *(None, True, 0, 5, -1, 10**5_000, -(10**5_000), 1.5, math.nan, math.inf, 1j),
    *("", "x", "\ud800", "a\0b", "x" * 100_000, b"x", bytearray(b"x")),
    *([], [5], [None], [[]], [{}], ["\ud800"], [10**5_000], nested(5_000), (), (1, 2), {1}),
    *({}, {5: 5}, {"\ud800": "\ud800"}, {"role": "user"}, {"content": nested(5_000)}, {"id": 5, "function": {"name": 10**5_000}}),
    *({"id": "a", "function": {"name": 10**5_000, "arguments": 5}}, {"type": "tool_use", "id": "a", "input": nested(5_000)}),
    *(object(), object, print, math),
)
"""What nobody should give for anything, and what fits some parameters and not others."""

GOOD: dict[str, Any] = {
    "address": "usr-3/1",
    "call": {"id": "a", "type": "function", "function": {"name": "list_pages", "arguments": "{}"}},
    "callback": print,
    "checkpoint_id": "1",
    "description": "how many rows",
    "detail": "At most 500.",
    "from_": "openai",
    "index": "usr-1",
    "label": "here",
    "limit": 3,
    "message": user("hello"),
    "messages": [user("hello")],
    "name": "Invoices",
    "new_id": "other",
    "other": "project",
    "older_than": "2026-03-01",
    "path": "/nowhere/memci.yaml",
    "prompt_tokens": 100,
    "query": "words",
    "at": 3,
    "session_id": "chat",
    "source": "usr-1",
    "start": 0,
    "store": "memory:",
    "target": "usr-0",
    "text": "hello",
    "to": "anthropic",
    "variant": 3,
    "values": {"rating": 1},
}
"""A value for each parameter that has no default."""


def calls(owner: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 (a class)
    """Yield the public methods of a class with each of their parameters."""
    for name, member in inspect.getmembers(owner, callable):
        if not name.startswith("_"):
            yield from ((name, parameter) for parameter in parameters(member) if parameter != "self")


def parameters(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(call).parameters)


def arguments(call: Callable[..., Any], name: str, value: object) -> dict[str, Any]:
    """Return arguments of a call, one of which is the value."""
    taken = parameters(call)
    several = {each for each, parameter in taken.items() if parameter.kind is inspect.Parameter.VAR_KEYWORD}  # sections
    required = {each for each, parameter in taken.items() if parameter.default is inspect.Parameter.empty} - several
    return {each: GOOD[each] for each in required if each not in (name, "self")} | {"active" if name in several else name: value}


def check(error: MemciError) -> None:
    """Assert that an error can be shown."""
    assert len(str(error)) < ENOUGH_CHARACTERS
    str(error).encode()


def attempt(call: Callable[..., Any], given: dict[str, Any]) -> None:
    """Call, and read what comes; an error that is none of memci's fails the test."""
    try:
        found = call(**given)
        if inspect.isgenerator(found):
            list(found)
    except MemciError as error:
        check(error)


async def attempt_later(call: Callable[..., Any], given: dict[str, Any]) -> None:
    """Do the same with what is awaited."""
    try:
        found = call(**given)
        if isinstance(found, AsyncIterator):
            [each async for each in found]
        elif inspect.isawaitable(found):
            await found
    except MemciError as error:
        check(error)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine("memory:", config_of(budget={"window": 900, "reserve": 0})) as made:
        talk(made.session("chat"), 4)
        made.session("chat").fold("all")
        yield made


@pytest.mark.parametrize(("method", "parameter"), list(calls(Session)))
def test_a_sessions_arguments(engine: Engine, method: str, parameter: str) -> None:
    """A session answers any argument with what it does or with an error of memci, and goes on."""
    session = engine.session("chat")
    session.window()
    call = getattr(session, method)
    for value in VALUES:
        attempt(call, arguments(call, parameter, value))
    session.append(user("and on"))
    assert () == session.verify().problems


@pytest.mark.parametrize(("method", "parameter"), list(calls(Engine)))
def test_an_engines_arguments(engine: Engine, method: str, parameter: str) -> None:
    """An engine answers any argument with what it does or with an error of memci."""
    call = getattr(engine, method)
    for value in VALUES:
        attempt(call, arguments(call, parameter, value))


@pytest.mark.parametrize("parameter", [name for name in parameters(AsyncEngine) if name != "threads"])
def test_arguments_of_a_new_engine(parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine is made of any argument and can be used, or there is an error of memci."""
    monkeypatch.chdir(tmp_path)

    def use(**given: Any) -> None:  # noqa: ANN401 (arguments of an engine)
        with Engine(**given) as engine:
            talk(engine.session("chat"), 1)

    for value in VALUES:
        attempt(use, {"store": "memory:"} | {parameter: value})


@pytest.mark.parametrize(("method", "parameter"), list(calls(AsyncSession)))
@in_loop
async def test_an_asynchronous_sessions_arguments(method: str, parameter: str) -> None:
    """What is awaited raises the errors that its twin raises."""
    async with AsyncEngine("memory:", config_of()) as engine, engine.session("chat") as session:
        await session.extend([user("a"), user("b")])
        call = getattr(session, method)
        for value in VALUES:
            await attempt_later(call, arguments(call, parameter, value))
        await session.append(user("and on"))


@pytest.mark.parametrize(("method", "parameter"), list(calls(AsyncEngine)))
@in_loop
async def test_an_asynchronous_engines_arguments(method: str, parameter: str) -> None:
    """An asynchronous engine raises the errors that its twin raises."""
    async with AsyncEngine("memory:", config_of()) as engine:
        call = getattr(engine, method)
        for value in VALUES:
            await attempt_later(call, arguments(call, parameter, value))


@pytest.mark.parametrize("threads", VALUES, ids=lambda value: type(value).__name__)
def test_a_number_of_threads_is_one(threads: object) -> None:
    """An asynchronous engine refuses a number of threads that is none."""
    attempt(AsyncEngine, {"store": "memory:", "threads": threads})


@pytest.mark.parametrize("call", [memci.convert, memci.validate])
def test_arguments_of_functions(call: Callable[..., Any]) -> None:
    """The functions on lists of messages answer any argument with what they do or with an error of memci."""
    for parameter in parameters(call):
        for value in VALUES:
            attempt(call, arguments(call, parameter, value))


@pytest.mark.parametrize("name", formats.NAMES)
def test_parts_of_messages(name: str) -> None:
    """A message of any shape is taken or refused, and so converted or not."""
    calls = ({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}, "id"), ({"type": "tool_use"}, "input")
    for value in VALUES:
        shapes: list[dict[str, Any]] = [
            {"role": value, "content": "a"},
            {"role": "user", "content": value},
            {"role": "user", "content": [value]},
            {"role": "user", "content": "a", "more": value},
            {"role": "user", "content": [{"type": value, "text": value, "source": value, "image_url": value}]},
            {"role": "assistant", "content": None, "tool_calls": value},
            {"role": "assistant", "content": None, "tool_calls": [value]},
            *(
                {"role": "assistant", "content": [{**call, key: value}], "tool_calls": [{**call, key: value}]}
                for call, key in calls
            ),
            {"role": "tool", "tool_call_id": value, "content": value},
            {"type": value},
            {"type": "function_call", "call_id": value, "name": value, "arguments": value},
        ]
        for shape in shapes:
            attempt(memci.validate, {"messages": [shape], "format": name})
            for to in formats.NAMES:
                attempt(memci.convert, {"messages": [shape], "from_": name, "to": to})


def sections() -> Iterator[tuple[str, str | None]]:
    """Yield the keys of a configuration, with those inside of each."""
    for key, inner in memci.Config().to_mapping().items():
        yield key, None
        yield from ((key, each) for each in inner) if isinstance(inner, dict) else ()


@pytest.mark.parametrize(("key", "inner"), list(sections()))
def test_values_of_settings(key: str, inner: str | None) -> None:
    """A setting of any value is taken or refused."""
    for value in VALUES:
        attempt(memci.Config.from_mapping, {"mapping": {key: value if inner is None else {inner: value}}})


def test_a_wrong_type_is_a_type_error_too() -> None:
    """Who catches Python's error catches memci's, which names the parameter."""
    with pytest.raises(TypeError) as caught:
        Engine.from_config(5)  # type: ignore[arg-type]  # that is what is tested
    assert isinstance(caught.value, ArgumentError)
    assert "path" == caught.value.argument
