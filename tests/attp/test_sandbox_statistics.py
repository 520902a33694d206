import statistics
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.attp.sandbox import Sandbox
from memci.errors import SandboxError

ORDINARY = [
    "mean([1, 2, 4])",
    "mean([1, 3])",
    "mean([0.1] * 10)",
    "fmean([1, 2, 4])",
    "fmean([1, 2], weights=[3, 1])",
    "geometric_mean([54, 24, 36])",
    "harmonic_mean([40, 60])",
    "harmonic_mean([40, 0])",
    "median([3, 1, 2])",
    "median([4, 1, 2, 3])",
    "median_low([4, 1, 2, 3])",
    "median_high([4, 1, 2, 3])",
    "mode('aabbc')",
    "multimode('aabbc')",
    "multimode([])",
    "variance([2.75, 1.75, 1.25, 0.25, 0.5])",
    "variance([1, 3, 5], 3)",
    "pvariance([0.0, 0.25, 0.25, 1.25])",
    "stdev([1.5, 2.5, 2.5, 2.75])",
    "pstdev([1, 2, 3, 4])",
    "quantiles([105, 129, 87, 86, 111, 111, 89, 81, 108, 92])",
    "quantiles([1, 2], n=10)",
    "quantiles([1, 2, 3, 4], n=3, method='inclusive')",
    "covariance([1, 2, 3], [1, 5, 7])",
    "correlation([1, 2, 3], [3, 2, 1])",
]

REFUSED = [
    "mean([])",
    "fmean([1], weights=[1, 2])",
    "fmean([1], weights=[0])",
    "geometric_mean([-1])",
    "harmonic_mean([-1])",
    "median([])",
    "mode([])",
    "stdev([1])",
    "pstdev([])",
    "quantiles([1, 2], n=0)",
    "quantiles([])",
    "covariance([1], [1])",
    "correlation([1, 1], [1, 2])",
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


@pytest.mark.parametrize("call", ORDINARY)
def test_gives_what_the_standard_library_gives(call: str, sandbox: Sandbox) -> None:
    """Each function of the sandbox's statistics gives what the standard library's gives."""
    expected = eval(call, vars(statistics))  # noqa: S307 (a call from the list above)
    assert pytest.approx(expected) == sandbox.run(f"__result__ = statistics.{call}", {}).value


@pytest.mark.parametrize("call", REFUSED)
def test_refuses_what_the_standard_library_refuses(call: str, sandbox: Sandbox) -> None:
    """Data of which there is no such figure are an error that code can catch as in Python."""
    with pytest.raises(statistics.StatisticsError):
        eval(call, vars(statistics))  # noqa: S307 (a call from the list above)
    with pytest.raises(SandboxError) as caught:
        sandbox.run(f"__result__ = statistics.{call}", {})
    assert "ValueError" == caught.value.kind
    code = f"try:\n    statistics.{call}\nexcept statistics.StatisticsError:\n    __result__ = 'caught'"
    assert "caught" == sandbox.run(code, {}).value


def test_builtins_may_be_shadowed(sandbox: Sandbox) -> None:
    """Code that calls its own values sum, len or list has its statistics all the same."""
    code = "sum = len = list = 0\n__result__ = [statistics.mean([1, 2]), statistics.stdev([1, 3]), statistics.median([1, 2])]"
    assert pytest.approx([1.5, statistics.stdev([1, 3]), 1.5]) == sandbox.run(code, {}).value


@given(values=st.lists(st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_figures_agree_on_any_data(sandbox: Sandbox, values: list[float]) -> None:
    """Mean, median, spread and quantiles agree with the standard library's, whatever the numbers."""
    names = ("mean", "fmean", "median", "median_low", "stdev", "pvariance", "multimode", "quantiles")
    calls = ", ".join(f"statistics.{name}(values)" for name in names)
    found = sandbox.run(f"values = source()\n__result__ = [{calls}]", {"source": lambda: values}).value
    for name, value in zip(names, found, strict=True):
        assert pytest.approx(getattr(statistics, name)(values), rel=1e-9, abs=1e-6) == value
