"""The bar of a window's budget: on a terminal, and nowhere else."""

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.cli.bar import _PARTS, shares
from memci.engine.view import layout
from tests.cli.processes import ran
from tests.cli.test_process import on_terminal

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def bar(written: str, *, lines: int) -> list[str]:
    """Return the last lines of what a terminal was sent, without styles."""
    return STYLE.sub("", written).splitlines()[-lines:]


@given(st.lists(st.integers(1, 1_000_000), min_size=1, max_size=12), st.integers(1, 300))
def test_columns_are_shared(sizes: Sequence[int], width: int) -> None:
    """All columns are given away, each part has one as far as there are any, and no larger part has fewer."""
    columns = shares(sizes, width)
    assert width == sum(columns) or len(sizes) > width == sum(columns)
    assert len(sizes) >= width or 1 <= min(columns)
    if len(sizes) < width:
        by_size = sorted(zip(sizes, columns, strict=True))
        assert all(less[1] <= more[1] for less, more in pairwise(by_size) if less[0] < more[0])


def test_every_part_has_a_letter() -> None:
    """Each part that a window can have is known to the bar, by a letter of its own."""
    assert {*layout.PARTS, "mounted", "facts", "rules", "directives", "slots", "extra", "free"} == set(_PARTS)
    assert len(_PARTS) == len({letter for letter, _, _ in _PARTS.values()})


@pytest.mark.slow
@pytest.mark.parametrize("columns", [20, 40, 80, 300])
def test_a_window_has_its_bar_on_a_terminal(store: str, columns: int) -> None:
    """Bar, legend and zone stand below the window in any width, and the bar is as wide as the terminal."""
    found = ran("window", "--store", store, "--json").json()
    written = on_terminal("window", "--store", store, COLUMNS=str(columns))
    drawn = [line for line in STYLE.sub("", written).splitlines() if re.fullmatch("[█░]+", line)]
    assert [columns] == [len(line) for line in drawn]
    told = " ".join(written.partition("\x1b[34m█")[2].split())
    for part, tokens in found["breakdown"].items():
        assert not tokens or f" {_PARTS[part][2]} {tokens:,}" in STYLE.sub("", told)
    assert f"free {found['budget'] - found['tokens']}" in STYLE.sub("", told)
    assert f"zone {found['zone']}, {found['tokens']} of {found['budget']} tokens" in STYLE.sub("", told)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("PYTHONIOENCODING", "ascii")])
def test_without_colours_parts_are_letters(store: str, name: str, value: str) -> None:
    """Where a terminal has no colours, or no character for a block, each part is its letter, in ASCII."""
    drawn = bar(on_terminal("window", "--store", store, errors=False, **{name: value}), lines=3)
    assert re.fullmatch(r"s+c+a+o+y+\.+", drawn[0])
    assert "".join(drawn).isascii()


@pytest.mark.slow
def test_a_window_over_its_budget_leaves_nothing_free(store: str) -> None:
    """The bar then is of the window alone, and by how much it is over stands beside it."""
    found = ran("window", "--store", store, "--json").json()
    written = STYLE.sub("", on_terminal("window", "--store", store, "--budget", "100"))
    assert "░" not in written
    assert f"zone red, {found['tokens']} of 100 tokens, {found['tokens'] - 100} over" in written


def test_elsewhere_nothing_is_drawn(store: str) -> None:
    """Into a pipe the window ends with its numbers, as ever."""
    assert re.fullmatch(r"event \d+ · \d+ of 700 tokens \(.*\)", ran("window", "--store", store).out.splitlines()[-1])
