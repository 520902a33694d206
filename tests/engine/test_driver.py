"""The random driver in small: sessions of each format in each store, whatever is asked of them, in any order."""

from pathlib import Path

import pytest

from tests.engine.wires import WIRES, Wire
from tests.torture.driven import STORES
from tests.torture.driver import drive

pytestmark = pytest.mark.slow


@pytest.mark.timeout(300)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_driven_session_holds_what_plain_lists_hold(wire: Wire, store: str, tmp_path: Path) -> None:
    """Every message comes back in its place, every window fits, is counted right, and comes back byte for byte."""
    drive(WIRES.index(wire) + 1, store, tmp_path, wire=wire, steps=70)
