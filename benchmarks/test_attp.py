"""What a trivial tool call costs on a warm runtime, against the function itself called in this process."""

import gc
import statistics
from collections.abc import Callable
from time import perf_counter

from benchmarks.report import Report
from memci.attp.runtime import Runtime
from memci.attp.toolbox import Toolbox

ROUNDS = 200
ROUND_S = 0.001
CODE = "__result__ = add(1, 2)"
REPLY = f"thought = \"add\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"a sum\"\ncode = '''\n{CODE}\n'''\n"
MOST_US = 20_000  # a bound that only a fault passes, such as a worker started for each call


def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


def test_a_trivial_call(report: Report) -> None:
    """A call through the runtime, the sandbox and the toolbox, each against the function, in rounds that alternate."""
    toolbox = Toolbox()
    toolbox.register(add)
    with Runtime(toolbox) as runtime:
        ways: dict[str, Callable[[], object]] = {
            "function": lambda: add(1, 2),
            "toolbox.call": lambda: toolbox.call("add", {"first": 1, "second": 2}),
            "sandbox.run": lambda: runtime.sandbox.run(CODE, {"add": add}),
            "runtime.run": lambda: runtime.run(REPLY),
            "and its TOML": lambda: runtime.run(REPLY).to_toml(),
        }
        assert {3} == {ways["function"](), ways["toolbox.call"](), runtime.run(REPLY).value}
        repeats = {name: _repeats(way) for name, way in ways.items()}
        gc.collect()
        gc.disable()
        try:
            rounds = [_round(ways, repeats, number) for number in range(ROUNDS)]
        finally:
            gc.enable()
    for name in ways:
        median_us = 1e6 * statistics.median(spent[name] for spent in rounds)
        ratio = statistics.median(spent[name] / spent["function"] for spent in rounds)
        report.growth.append({"trivial tool call": name, "median_us": median_us, "times the function": ratio})
        assert median_us < MOST_US


def _repeats(way: Callable[[], object]) -> int:
    """Return how often a way is to be gone for a round of about a millisecond; it is warm after that."""
    times = []
    for _ in range(50):
        start = perf_counter()
        way()
        times.append(perf_counter() - start)
    return max(1, round(ROUND_S / statistics.median(times)))


def _round(ways: dict[str, Callable[[], object]], repeats: dict[str, int], number: int) -> dict[str, float]:
    """Return seconds a call, each way after another, beginning with another one each time."""
    names = list(ways)
    spent = {}
    for name in names[number % len(names) :] + names[: number % len(names)]:
        way = ways[name]
        start = perf_counter()
        for _ in range(repeats[name]):
            way()
        spent[name] = (perf_counter() - start) / repeats[name]
    return spent
