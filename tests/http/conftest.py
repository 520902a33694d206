"""What tests of the HTTP API share."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from tests.http.serving import serving


@pytest.fixture
def api() -> Iterator[TestClient]:
    """Ask an application on a store in memory, which needs no tokens."""
    with serving() as client:
        yield client
