"""The conformance suite, run on objects in memory and on a server that speaks S3."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from obstore.store import MemoryStore

from memci.archive.stores.objects.io import ObjectIo
from memci.archive.stores.objects.store import ObjectStore
from memci.testing.store_suite import StoreSuite

if TYPE_CHECKING:
    from tests.archive.stores.objects.s3_server import S3Server


class TestObjectsInMemory(StoreSuite):
    """The driver's store in memory, which has conditional puts; indexes in memory too."""

    store_name = "objects in memory"

    @pytest.fixture
    def store(self) -> ObjectStore:
        return ObjectStore(ObjectIo(MemoryStore))


@pytest.mark.server
class TestObjectsOverS3(StoreSuite):
    """A server that speaks S3, a bucket for each test, and indexes in a directory."""

    store_name = "objects over S3"

    @pytest.fixture
    def store(self, s3: "S3Server", tmp_path: Path) -> Iterator[ObjectStore]:
        store = ObjectStore.from_url(s3.url(s3.new_bucket(), options=f"&memci_index={tmp_path}/indexes"))
        yield store
        store.close()
