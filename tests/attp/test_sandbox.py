import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.attp.sandbox import Limits, Outcome, Sandbox
from memci.errors import LimitExceededError, SandboxError
from tests.together import in_threads

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(Limits(time_s=0.5))
    yield made
    made.close()


def add(first: int, second: int = 1) -> int:
    return first + second


def run(sandbox: Sandbox, code: str, **tools: Callable[..., object]) -> Any:  # noqa: ANN401 (JSON data)
    return sandbox.run(code, tools or {"add": add}).value


def failure(sandbox: Sandbox, code: str, **tools: Callable[..., object]) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        sandbox.run(code, tools or {"add": add})
    return caught.value


def limit(sandbox: Sandbox, code: str, **tools: Callable[..., object]) -> str:
    with pytest.raises(LimitExceededError) as caught:
        sandbox.run(code, tools or {"add": add})
    assert caught.value.limit in str(caught.value)
    return caught.value.limit


def test_result_is_what_was_assigned(sandbox: Sandbox) -> None:
    """What the code assigns last to ``__result__`` comes back, with what it printed and how many tools it called."""
    code = "print('a', 1)\n__result__ = add(1)\n__result__ = add(__result__, second=5)"
    assert Outcome(value=7, printed="a 1\n", calls=2) == sandbox.run(code, {"add": add})


def test_last_expression_is_not_the_result(sandbox: Sandbox) -> None:
    """A value that the code ends with, and assigns to nothing, stays inside."""
    assert run(sandbox, "__result__ = 1\n2") == 1


@given(value=JSON)
def test_plain_data_go_in_and_out(sandbox: Sandbox, value: object) -> None:
    """Any JSON value comes through a tool and out of the sandbox as it was, and so does an argument of a tool."""
    seen: list[object] = []
    assert value == run(sandbox, "__result__ = get()\nput(__result__)", get=lambda: value, put=seen.append)
    assert [value] == seen


@given(text=st.text(st.characters(codec="utf-8")))
def test_literals_mean_what_python_means(sandbox: Sandbox, text: str) -> None:
    """Any text that code holds as a literal is the same text in the sandbox."""
    assert text == run(sandbox, f"__result__ = {text!r}")


def test_half_of_a_surrogate_pair_is_its_escape(sandbox: Sandbox) -> None:
    """Text that UTF-8 cannot hold is readable inside, in values, keys and errors."""

    def broken() -> None:
        message = "\udfff"
        raise ValueError(message)

    assert ["\\ud800x", {"\\udc00": "😀"}] == run(sandbox, "__result__ = get()", get=lambda: ["\ud800x", {"\udc00": "😀"}])
    assert "\\udfff" == str(failure(sandbox, "__result__ = broken()", broken=broken))


def test_results_of_tools_become_plain(sandbox: Sandbox) -> None:
    """What a tool returns is made plain on its way in; what cannot become plain is an error of that tool."""

    @attrs.frozen
    class Hit:
        index: str

    assert [{"index": "usr-1"}] == run(sandbox, "__result__ = get()", get=lambda: (Hit("usr-1"),))
    error = failure(sandbox, "__result__ = get()", get=object)
    assert ("TypeError", 1) == (error.kind, error.line)


@pytest.mark.parametrize(
    "code",
    ["lambda: 1", "len", "add", "int", "math", "{1, 2}", "b'x'", "datetime.date(2026, 1, 1)", "range(3)", "P()", "P", "1j",
     "float('nan')", "float('inf')", "[1, [len]]", "{(1, 2): 3}", "ValueError('x')", "endless", "10 ** 5000"],
)  # fmt: skip
def test_only_plain_data_come_out(code: str, sandbox: Sandbox) -> None:
    """Functions, classes, instances, sets, bytes, dates and numbers that JSON has not are refused by a message that says so."""
    error = failure(sandbox, f"class P:\n    pass\nendless = []\nendless.append(endless)\n__result__ = {code}")
    assert error.kind in {"TypeError", "ValueError"}
    assert str(error).startswith("__result__ is not plain data: ")


def test_nesting_has_an_end(sandbox: Sandbox) -> None:
    """A result that nests deeper than any reader would follow is refused."""
    assert "ValueError" == failure(sandbox, "__result__ = []\nfor _ in range(90):\n    __result__ = [__result__]").kind


def test_arguments_of_tools_are_plain(sandbox: Sandbox) -> None:
    """A tool is given plain data alone; the code sees anything else as its own mistake, on its own line."""
    error = failure(sandbox, "x = 1\n__result__ = add(lambda: 1)")
    assert ("TypeError", 2) == (error.kind, error.line)


@pytest.mark.parametrize("name", ["datetime", "json", "math", "random", "re", "statistics"])
def test_modules_are_just_there(name: str, sandbox: Sandbox) -> None:
    """The modules of the protocol need no import; an import of one is refused with a word that it is there."""
    assert name in run(sandbox, f"__result__ = str({name})")
    for code in (f"import {name}\n__result__ = 1", f"from {name} import x\n__result__ = 1"):
        error = failure(sandbox, code)
        assert ("ImportError", 1) == (error.kind, error.line)
        assert f"{name} is just there" in str(error)


def test_randomness_and_time_are_there(sandbox: Sandbox) -> None:
    """Random numbers, dates, patterns and JSON work as in Python."""
    code = """\
random.seed(3)
__result__ = [
    0 <= random.random() < 1,
    (datetime.date(2026, 3, 1) - datetime.timedelta(days=1)).isoformat(),
    re.findall(r"\\d+", "a1b22"),
    json.loads('{"a": [1, null]}'),
    math.isqrt(17),
]
"""
    assert [True, "2026-02-28", ["1", "22"], {"a": [1, None]}, 4] == run(sandbox, code)


def test_next_takes_from_a_generator_expression(sandbox: Sandbox) -> None:
    """``next`` works on generator expressions and iterators, with and without a default."""
    code = """\
squares = (x * x for x in [1, 2])
letters = iter("a")
__result__ = [next(squares), next(squares), next(squares, "end"), next(letters), next(letters, "end")]
__result__.append(next((x for x in [1, 2, 3] if x > 1), None))
try:
    next(x for x in [])
except StopIteration:
    __result__.append("stopped")
"""
    assert [1, 4, "end", "a", "end", 2, "stopped"] == run(sandbox, code)


def test_an_async_tool_may_be_awaited_or_not(sandbox: Sandbox) -> None:
    """Code that awaits a tool gets the same as code that calls it."""
    assert [3, 3] == [run(sandbox, f"__result__ = {call}") for call in ("await add(1, 2)", "add(1, 2)")]


def test_own_functions_may_have_the_names_of_tools(sandbox: Sandbox) -> None:
    """Code that defines a function of a tool's name calls its own."""
    assert run(sandbox, "def add(a, b):\n    return 'mine'\n__result__ = add(1, 2)") == "mine"


def test_nothing_is_kept_between_runs(sandbox: Sandbox) -> None:
    """A later run in the same worker knows no names of an earlier one."""
    assert run(sandbox, "kept = 1\n__result__ = kept") == 1
    assert ["NameError"] * 4 == [failure(sandbox, "__result__ = kept").kind for _ in range(4)]


def test_code_without_a_result_is_refused_before_it_runs(sandbox: Sandbox) -> None:
    """Code that assigns no ``__result__`` calls no tool; the error says what to write."""
    called = []
    error = failure(sandbox, "tool()", tool=lambda: called.append(1))
    assert ([], "NameError") == (called, error.kind)
    assert "__result__" in str(error)


@pytest.mark.parametrize(
    ("code", "kind", "line"),
    [
        ("x = 1\ny = 1 / 0\n__result__ = y", "ZeroDivisionError", 2),
        ("def f():\n    return [][3]\n\n\n__result__ = f()", "IndexError", 2),
        ("__result__ = 1\n\n__result__ = missing", "NameError", 3),
        ("__result__ = 1\nmissing(1)", "NameError", 2),
        ("__result__ = (", "SyntaxError", 1),
        ("__result__ = 1\x00", "SyntaxError", None),
        ("__result__ = " + "-" * 20_000 + "1", "SyntaxError", None),
        ("__result__ = 1\nraise ValueError('told')", "ValueError", 2),
        ("__result__ = 1\nraise KeyboardInterrupt", "KeyboardInterrupt", 2),
        ("__result__ = 1\nraise SystemExit", "SystemExit", 2),
        ("__result__ = {}\n__result__['k']", "KeyError", 2),
        ("def f():\n    yield 1\n__result__ = f()", "NotImplementedError", 2),
        ("class A(dict):\n    pass\n__result__ = 1", "NotImplementedError", 1),
        ("__result__ = list(map(add, [1]))", "NotImplementedError", 1),
    ],
)
def test_errors_name_kind_and_line(code: str, kind: str, line: int | None, sandbox: Sandbox) -> None:
    """An error has the name that Python gives it and the line of the model's own code."""
    error = failure(sandbox, code)
    assert (kind, line) == (error.kind, error.line)
    assert "monty" not in str(error)


def test_a_name_that_looks_wide_is_the_name_it_means(sandbox: Sandbox) -> None:
    """Names are compared as Python normalises them."""
    assert "belongs to the sandbox" in str(failure(sandbox, "__result__ = _memci＿call({1: 2})"))


def test_warnings_of_the_parser_stay_silent(sandbox: Sandbox) -> None:
    """A pattern without the ``r`` in front runs, and writes nothing to the host's log; warnings are errors in this test."""
    assert run(sandbox, "__result__ = re.findall('\\d', 'a1')") == ["1"]


def test_exceptions_of_tools_can_be_caught(sandbox: Sandbox) -> None:
    """The code can catch what a tool raises, as the nearest exception that it knows."""

    class StaleError(LookupError):
        pass

    def stale() -> None:
        message = "too old"
        raise StaleError(message)

    code = "try:\n    stale()\nexcept LookupError as error:\n    __result__ = str(error)"
    assert run(sandbox, code, stale=stale) == "too old"
    error = failure(sandbox, "x = 1\n__result__ = stale()", stale=stale)
    assert ("StaleError", "too old", 2) == (error.kind, str(error), error.line)


def test_interrupts_are_the_hosts(sandbox: Sandbox) -> None:
    """What is no ``Exception`` ends the run and is raised to the caller; the worker serves the next run."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    code = "try:\n    tool()\nexcept BaseException:\n    pass\n__result__ = 1"
    with pytest.raises(KeyboardInterrupt):
        sandbox.run(code, {"tool": interrupted})
    assert run(sandbox, "__result__ = 1") == 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("while True:\n    pass\n__result__ = 1", "time_s"),
        ("while True:\n    try:\n        sum(range(10**9))\n    except BaseException:\n        pass\n__result__ = 1", "time_s"),
        ("__result__ = [0] * 10 ** 9", "memory_bytes"),
        ("def f():\n    return f()\n__result__ = f()", "depth"),
        ("for i in range(65):\n    add(i)\n__result__ = 1", "calls"),
        ("while True:\n    try:\n        add(1)\n    except BaseException:\n        pass\n__result__ = 1", "calls"),
        ("while True:\n    try:\n        missing\n    except NameError:\n        pass\n__result__ = 1", "calls"),
        ("print('x' * 70_000)\n__result__ = 1", "output_bytes"),
        ("for i in range(7_000):\n    print('0123456789')\n__result__ = 1", "output_bytes"),
        ("__result__ = 'x' * 70_000", "output_bytes"),
        ("__result__ = 'é' * 40_000", "output_bytes"),
        ("len = lambda text: 0\n__result__ = 'x' * 70_000", "output_bytes"),
        ("__result__ = add('x' * 70_000)", "output_bytes"),
        ("__result__ = 1\n#" + "x" * 65_536, "code_bytes"),
    ],
)  # fmt: skip
def test_each_limit_is_named(code: str, expected: str, sandbox: Sandbox) -> None:
    """A run that goes past a limit is stopped, whatever it catches, and the error names the limit."""
    assert expected == limit(sandbox, code)
    assert run(sandbox, "__result__ = 1") == 1


def test_calls_up_to_the_limit_are_made(sandbox: Sandbox) -> None:
    """As many calls as the limit says go through, and not one more reaches a tool."""
    called: list[int] = []
    assert run(sandbox, "for i in range(64):\n    tool(i)\n__result__ = 1", tool=called.append) == 1
    assert limit(sandbox, "for i in range(99):\n    tool(i)\n__result__ = 1", tool=called.append) == "calls"
    assert [*range(64), *range(64)] == called


def test_time_of_tools_has_a_limit_of_its_own() -> None:
    """Tools that take longer than they may end the run when they return, and no further one is begun."""
    called = []
    waiting = threading.Event()

    def slow() -> None:
        called.append(1)
        waiting.wait(0.06)

    sandbox = Sandbox(Limits(tools_s=0.1))
    assert limit(sandbox, "while True:\n    slow()\n__result__ = 1", slow=slow) == "tools_s"
    assert len(called) == 2
    sandbox.close()


def test_time_of_tools_is_not_the_codes() -> None:
    """A tool may take longer than the code may."""
    waiting = threading.Event()
    sandbox = Sandbox(Limits(time_s=0.05))
    assert run(sandbox, "slow()\n__result__ = 1", slow=lambda: waiting.wait(0.2)) == 1
    sandbox.close()


def test_runs_wait_for_a_worker_and_say_so() -> None:
    """With all workers busy for longer than a run may take, a further run fails with the limit's name."""
    sandbox = Sandbox(Limits(time_s=0.05, tools_s=0.05, workers=1))
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        leave.wait(10)

    holder = threading.Thread(target=lambda: limit(sandbox, "hold()\n__result__ = 1", hold=hold))
    holder.start()
    inside.wait(10)
    assert limit(sandbox, "__result__ = 1") == "workers"
    leave.set()
    holder.join()
    assert run(sandbox, "__result__ = 1") == 1
    sandbox.close()


def test_many_threads_share_the_workers(sandbox: Sandbox) -> None:
    """Runs from many threads at once each get their own result."""
    found: dict[int, object] = {}

    def one(number: int) -> None:
        found[number] = run(sandbox, f"__result__ = add({number}, {number})")

    in_threads(one, range(16))
    assert {number: 2 * number for number in range(16)} == found


def test_closing_twice_and_running_again() -> None:
    """A sandbox may be closed before it ran and twice; after that it runs with new workers."""
    sandbox = Sandbox()
    sandbox.close()
    assert run(sandbox, "__result__ = 1") == 1
    sandbox.close()
    sandbox.close()
    assert run(sandbox, "__result__ = 2") == 2
    sandbox.close()


@pytest.mark.parametrize(
    "limits", [{"time_s": 0}, {"memory_bytes": 0}, {"depth": 0}, {"calls": -1}, {"output_bytes": 0}, {"workers": 0}]
)
def test_impossible_limits_are_refused(limits: dict[str, Any]) -> None:
    """A limit under which nothing could run is an error where it is written."""
    with pytest.raises(ValueError, match=next(iter(limits))):
        Limits(**limits)


def test_results_are_json(sandbox: Sandbox) -> None:
    """Tuples come out as lists and keys as text, as JSON writes them."""
    assert {"a": [1, [2]], "1": None} == run(sandbox, "__result__ = {'a': (1, (2,)), 1: None}")
    assert json.dumps({"a": [1, [2]], "1": None}) == run(sandbox, "__result__ = json.dumps({'a': (1, (2,)), 1: None})")
