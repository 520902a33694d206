"""The asynchronous engine and session have all that the others have."""

import inspect
from typing import Any

import pytest

from memci.engine.aio.engine import AsyncEngine, AsyncSession, AsyncSlots
from memci.engine.commands.slots import SessionSlots
from memci.engine.engine import Engine
from memci.engine.session import Session

TWINS: list[tuple[type[Any], type[Any]]] = [(Engine, AsyncEngine), (Session, AsyncSession)]
ENTERING = {"__enter__": "__aenter__", "__exit__": "__aexit__"}
NOT_AWAITED = {"config", "durability", "from_config", "session", "fork", "id", "slots", "toolbox", "lease", "stream", "draft"}
"""What cannot block, makes an engine, or can be entered as well as awaited."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


PAIRS = [(kind, twin, name) for kind, twin in TWINS for name in sorted(public(kind))]


@pytest.mark.parametrize(("kind", "twin"), TWINS)
def test_both_have_the_same_names(kind: type, twin: type) -> None:
    """No name is missing, and none is added."""
    assert public(kind) == public(twin)
    assert {ENTERING[name] for name in ENTERING if hasattr(kind, name)} <= set(dir(twin))


@pytest.mark.parametrize(("kind", "twin", "name"), PAIRS)
def test_both_say_the_same(kind: type, twin: type, name: str) -> None:
    """What a name does is said in the same words, of properties too."""
    assert inspect.getdoc(inspect.getattr_static(kind, name)) == inspect.getdoc(inspect.getattr_static(twin, name))


@pytest.mark.parametrize(("kind", "twin", "name"), [pair for pair in PAIRS if callable(getattr(pair[0], pair[2]))])
def test_both_take_the_same(kind: type, twin: type, name: str) -> None:
    """Parameters have the same names, kinds, defaults and types."""
    expected, found = (inspect.signature(getattr(each, name)).parameters for each in (kind, twin))
    assert list(expected.values()) == list(found.values())


@pytest.mark.parametrize(("kind", "twin", "name"), PAIRS)
def test_what_may_block_is_awaited(kind: type, twin: type, name: str) -> None:
    """Calls are coroutine functions or asynchronous generators, iterators the latter; readings of the state are awaited."""
    found = inspect.getattr_static(twin, name)
    if isinstance(found, property):
        awaited = name not in NOT_AWAITED or (kind is Session and name == "config")
        assert found.fget is not None
        assert awaited is ("Coroutine" in str(inspect.signature(found.fget).return_annotation))
    elif name in NOT_AWAITED:
        assert not inspect.iscoroutinefunction(found)
    else:
        iterates = inspect.isgeneratorfunction(getattr(kind, name))
        assert iterates is inspect.isasyncgenfunction(found)
        assert iterates is not inspect.iscoroutinefunction(found)


@pytest.mark.parametrize("name", sorted(public(AsyncSlots)))
def test_slots_are_awaited(name: str) -> None:
    """What the asynchronous slots have is of the same name, words and parameters, and a coroutine function."""
    kind, twin = getattr(SessionSlots, name), getattr(AsyncSlots, name)
    assert inspect.iscoroutinefunction(twin)
    assert inspect.getdoc(kind) == inspect.getdoc(twin)
    assert [*inspect.signature(kind).parameters.values()] == [*inspect.signature(twin).parameters.values()]


def test_an_engine_is_made_alike() -> None:
    """Both take the same arguments, but for the number of threads."""
    expected, found = (dict(inspect.signature(kind).parameters) for kind in (Engine, AsyncEngine))
    assert "threads" == found.pop("threads").name
    assert expected == found
