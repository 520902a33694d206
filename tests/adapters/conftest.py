"""What tests of adapters share."""

from collections.abc import Iterator

import pytest

import memci
from tests.adapters.budget import WINDOW


@pytest.fixture
def engine() -> Iterator[memci.Engine]:
    with memci.Engine("memory:", {"budget": {"window": WINDOW, "reserve": 0}}) as engine:
        yield engine
