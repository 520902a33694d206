"""The conformance suite, run on each store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.testing.store_suite import StoreSuite


class TestFileStore(StoreSuite):
    """Durable on disk; the tests use a directory of their own each."""

    store_name = "file, fsync"

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[FileStore]:
        store = FileStore(tmp_path / "chats")
        yield store
        store.close()


class TestFlushedFileStore(StoreSuite):
    """The same without syncs."""

    store_name = "file, flush"

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[FileStore]:
        store = FileStore(tmp_path / "chats", "flush")
        yield store
        store.close()


class TestMemoryStore(StoreSuite):
    """In memory."""

    store_name = "memory"

    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
