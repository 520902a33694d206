"""A session's tree against a plain one, whatever is asked of both, in any order; the long run is ``tests.torture.trees``."""

from pathlib import Path

import pytest

from tests.torture.driven import STORES
from tests.torture.driver import drive
from tests.torture.trees import STEPS, TreeDriver


@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("store", STORES)
def test_a_tree_is_what_a_plain_one_is(store: str, seed: int, tmp_path: Path) -> None:
    """After each operation the tree is the model's, nothing is lost or hidden that must be seen, and windows render again."""
    driver = drive(seed, store, tmp_path, steps=STEPS, kind=TreeDriver)
    assert driver.counts["edits"] > 0
