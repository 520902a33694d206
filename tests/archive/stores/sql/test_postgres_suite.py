"""The conformance suite on PostgreSQL, in each durability."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.archive.stores.sql.postgres import PostgresStore
from memci.testing.store_suite import StoreSuite
from tests.archive.stores.sql.postgres_server import PostgresServer

pytestmark = pytest.mark.server


class TestPostgresStore(StoreSuite):
    """Durable; the indexes are in memory."""

    store_name = "postgresql, fsync"

    @pytest.fixture
    def store(self, postgres: PostgresServer) -> Iterator[PostgresStore]:
        store = PostgresStore(postgres.new_url())
        yield store
        store.close()


class TestFlushedPostgresStore(StoreSuite):
    """Less durable, through one connection; the indexes are files."""

    store_name = "postgresql, flush"

    @pytest.fixture
    def store(self, postgres: PostgresServer, tmp_path: Path) -> Iterator[PostgresStore]:
        store = PostgresStore(f"{postgres.new_url()}&memci_pool=1&memci_index={tmp_path}", "flush")
        yield store
        store.close()
