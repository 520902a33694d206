"""The conformance suite on stores with a working tier before them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.archive.stores.tier import TieredStore
from memci.archive.stores.url import open_store
from memci.testing.store_suite import StoreSuite
from tests.archive.stores.tier.redis_server import RedisServer

pytestmark = pytest.mark.server


class TestTierBeforeMemory(StoreSuite):
    """Memory behind it."""

    store_name = "redis tier before memory"

    @pytest.fixture
    def store(self, redis: RedisServer) -> Iterator[TieredStore]:
        store = open_store(redis.url("memory:"))
        assert isinstance(store, TieredStore)
        yield store
        store.close()
        assert 0 == store.tier.failures


class TestTierBeforeSqlite(StoreSuite):
    """A database behind it."""

    store_name = "redis tier before sqlite"

    @pytest.fixture
    def store(self, redis: RedisServer, quick_path: Path) -> Iterator[TieredStore]:
        store = open_store(redis.url(f"sqlite:///{quick_path}/chats.db"), "flush")
        assert isinstance(store, TieredStore)
        yield store
        store.close()
        assert 0 == store.tier.failures
