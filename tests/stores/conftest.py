"""One PostgreSQL server for all tests of a run (of a worker, where there are several)."""

from collections.abc import Iterator

import pytest

from tests.stores.postgres_server import PostgresServer, running_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server
