"""Tools called at random, under each permission; the long run is ``tests.torture.permitted``."""

import pytest

from tests.torture.permitted import drive


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_model_changes_nothing_that_it_may_not(seed: int) -> None:
    """Whatever a model calls with whatever arguments, it gets an answer, and changes only what its permission lets it."""
    counts = drive(seed, 60)
    assert 60 == counts["calls"]
    assert 5 < sum(times for name, times in counts.items() if name.endswith(": done"))
