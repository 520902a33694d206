"""The conformance suite, run on objects in memory and on a server that speaks S3."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from memci.archive.stores.objects.io import ObjectIo
from memci.archive.stores.objects.store import ObjectStore
from memci.testing.store_suite import StoreSuite
from tests.archive.stores.objects.s3_server import s3_server


class TestObjectsInMemory(StoreSuite):
    """The driver's store in memory, which has conditional puts; indexes in memory too."""

    store_name = "objects in memory"

    @pytest.fixture
    def store(self) -> ObjectStore:
        return ObjectStore(ObjectIo(MemoryStore))


class TestObjectsOverS3(StoreSuite):
    """A server that speaks S3, a bucket for each test, and indexes in a directory."""

    store_name = "objects over S3"

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ObjectStore]:
        server = s3_server()
        store = ObjectStore.from_url(server.url(server.new_bucket(), options=f"&memci_index={tmp_path}/indexes"))
        yield store
        store.close()
