"""Arguments are checked strictly, and a refusal tells the model what to write."""

import asyncio
import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.attp.toolbox import Toolbox
from memci.errors import AttpError, ToolArgumentError


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Filter(TypedDict):
    kind: str
    pages: NotRequired[list[int]]


def taken(annotation: object, value: object) -> Any:  # noqa: ANN401 (a value of any type)
    """Return what a function is given whose one parameter has this annotation."""
    given_values = []

    def look(value: Any) -> None:  # noqa: ANN401 (replaced below)
        """Look at a value."""
        given_values.append(value)

    look.__annotations__["value"] = annotation
    toolbox = Toolbox()
    toolbox.register(look)
    toolbox.call("look", {"value": value})
    return given_values[0]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (str, "a", "a"),
        (int, 3, 3),
        (int, 3.0, 3),
        (float, 3, 3.0),
        (bool, True, True),
        (None, None, None),
        (int | None, None, None),
        (int | str, "a", "a"),
        (float | int, 3, 3),
        (int | float, 2.0, 2.0),
        (Literal["a", 1], 1, 1),
        (Size, 2, Size.LARGE),
        (Size, Size.SMALL, Size.SMALL),
        (list[int], (1, 2), [1, 2]),
        (Sequence[str], ["a"], ["a"]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[str], ["a", "b", "a"], {"a", "b"}),
        (frozenset[int], {1}, frozenset({1})),
        (dict[str, list[float]], {"a": [1]}, {"a": [1.0]}),
        (Mapping[str, int], {}, {}),
        (list, [1, "a", None], [1, "a", None]),
        (dict, {"a": {}}, {"a": {}}),
        (Any, {"a": [None]}, {"a": [None]}),
        (Filter, {"kind": "tool"}, {"kind": "tool"}),
        (Filter, {"pages": [1], "kind": "tool"}, {"kind": "tool", "pages": [1]}),
    ],
)
def test_value_is_given_as_its_type_asks(annotation: object, value: object, expected: object) -> None:
    """A value that fits is given as the annotation says, converted only where JSON has no such type."""
    found = taken(annotation, value)
    assert (type(expected), expected) == (type(found), found)


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (int, True, "value must be an integer, not True"),
        (int, "3", "value must be an integer, not '3'"),
        (int, 3.5, "value must be an integer, not 3.5"),
        (int, math.inf, "value must be an integer, not inf"),
        (float, False, "value must be a number, not False"),
        (float, math.nan, "value must be a number, not nan"),
        pytest.param(float, 10**5000, "value must be a number, not a number too large to be shown", id="long"),
        (bool, 1, "value must be True or False, not 1"),
        (str, None, "value must be a string, not None"),
        (str, 1, "value must be a string, not 1"),
        (int | None, "a", "value must be an integer, not 'a'"),
        (int | str, [], "value must be int | str, not []"),
        (Literal["a", 1], True, "value must be one of 'a', 1, not True"),
        (Size, 3, "value must be one of 1, 2, not 3"),
        (list[int], "12", "value must be a list, not '12'"),
        (list[int], [1, "a"], "value[1] must be an integer, not 'a'"),
        (tuple[int, str], [1], "value must be a list of 2 items, not [1]"),
        (set[str], [1], "value[0] must be a string, not 1"),
        (dict[str, int], {1: 1}, "value must be a dict with strings as keys, not {1: 1}"),
        (dict[str, list[int]], {"a": [None]}, "value['a'][0] must be an integer, not None"),
        (Filter, {}, "value lacks the key 'kind'"),
        (Filter, {"kind": "a", "page": 1}, "value has no key 'page'; its keys are kind, pages"),
        (Filter, {"kind": "a", "pages": [True]}, "value['pages'][0] must be an integer, not True"),
        (Filter, [], "value must be a dict, not []"),
        (str, list(range(100)), "value must be a string, not [0, 1, 2, 3, 4, 5, ...]"),
    ],
)
def test_value_that_does_not_fit_is_refused(annotation: object, value: object, problem: str) -> None:
    """A refusal says where, what is wanted, what was given, and how the tool is called."""
    with pytest.raises(ToolArgumentError) as caught:
        taken(annotation, value)
    assert f"look: {problem}; call it as {caught.value.signature}" == str(caught.value)
    assert ("look", "value") == (caught.value.tool, caught.value.parameter)
    assert caught.value.signature.startswith("look(value: ")


@pytest.fixture
def toolbox() -> Toolbox:
    made = Toolbox()

    @made.register
    def add(left: int, right: int = 1, *, times: int = 1) -> int:
        """Add two numbers."""
        return (left + right) * times

    return made


@pytest.mark.parametrize(
    ("positional", "named", "parameter", "problem"),
    [
        ([], {}, "left", "the argument left is missing"),
        ([1], {"rihgt": 2}, "rihgt", "it has no parameter 'rihgt'"),
        ([1, 2], {"left": 1}, "left", "left was given twice"),
        ([1, 2, 3], {}, "", "it takes 2 arguments by position, and 3 were given"),
    ],
)
def test_wrong_call_names_parameter_and_signature(
    toolbox: Toolbox, positional: list[object], named: dict[str, object], parameter: str, problem: str
) -> None:
    """Unknown, missing and doubled arguments are answered with the signature."""
    with pytest.raises(ToolArgumentError) as caught:
        toolbox.call("add", named, positional=positional)
    assert parameter == caught.value.parameter
    assert f"add: {problem}; call it as add(left: int, right: int = 1, *, times: int = 1) -> int" == str(caught.value)


def test_defaults_are_the_functions_own(toolbox: Toolbox) -> None:
    """An argument that is left out has the function's default."""
    assert [3, 6, 10] == [
        toolbox.call("add", {"left": 2}),
        toolbox.call("add", {"times": 2}, positional=[2]),
        toolbox.call("add", {"left": 3, "right": 7}),
    ]


_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
_ANNOTATIONS = (
    int,
    float,
    str,
    bool,
    int | None,
    list[int],
    tuple[int, str],
    set[str],
    dict[str, int],
    Literal["a", 1],
    Size,
    Filter,
)


@given(st.sampled_from(_ANNOTATIONS), _data)
def test_any_value_is_taken_or_refused(annotation: object, value: object) -> None:
    """Whatever a model gives, the function gets what it asked for, or the model an answer."""
    try:
        answer = f"call it as look({taken(annotation, value)!r}"
    except AttpError as error:
        answer = str(error)
    assert "call it as look(" in answer


@pytest.mark.parametrize("arguments", [[], ["a"], "x", "", None, 5])
def test_arguments_are_an_object(arguments: Any) -> None:  # noqa: ANN401 (what a model may write)
    """Anything but a mapping is an error that says how the tool is called, sync and async, with parameters and without."""
    toolbox = Toolbox()

    @toolbox.register
    def ping() -> str:
        """Answer."""
        return "pong"

    @toolbox.register
    async def wait(turns: int = 1) -> int:
        """Wait."""
        return turns

    for name, signature in (("ping", "ping() -> str"), ("wait", "wait(turns: int = 1) -> int")):
        with pytest.raises(ToolArgumentError, match="are an object") as caught:
            toolbox.call(name, arguments)
        assert (name, signature) == (caught.value.tool, caught.value.signature)
        with pytest.raises(ToolArgumentError, match="are an object"):
            asyncio.run(toolbox.acall(name, arguments))
