"""The conformance suite on SQLite, in each journal mode and durability."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.archive.stores.sql.sqlite import SqliteIo, SqliteStore
from memci.testing.store_suite import StoreSuite


class SafeIo(SqliteIo):
    """A library that says it is one with which a write-ahead log is safe; the tests use it in one process only."""

    def version(self) -> tuple[int, ...]:
        return (3, 51, 3)


class OldIo(SqliteIo):
    """A library that says it is one with which a write-ahead log is not safe."""

    def version(self) -> tuple[int, ...]:
        return (3, 51, 2)


class TestSqliteStore(StoreSuite):
    """With a write-ahead log, durable."""

    store_name = "sqlite, write-ahead log, fsync"

    @pytest.fixture
    def store(self, quick_path: Path) -> Iterator[SqliteStore]:
        store = SqliteStore(quick_path / "chats.db", io=SafeIo())
        yield store
        assert "wal" == store.journal_mode
        store.close()


class TestFlushedSqliteStore(StoreSuite):
    """With a rollback journal, less durable."""

    store_name = "sqlite, rollback journal, flush"

    @pytest.fixture
    def store(self, quick_path: Path) -> Iterator[SqliteStore]:
        store = SqliteStore(quick_path / "chats.db", "flush", io=OldIo())
        yield store
        assert "truncate" == store.journal_mode
        store.close()
