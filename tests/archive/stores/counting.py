"""What stores ask of SQLite, of PostgreSQL and of a bucket, counted."""

from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from memci.archive.stores.objects.io import ObjectIo
from memci.archive.stores.objects.store import ObjectStore
from memci.archive.stores.sql.postgres_connections import PostgresIo
from memci.archive.stores.sql.schema import Found, Statement
from memci.archive.stores.sql.sqlite import SqliteIo, SqliteStore

if TYPE_CHECKING:
    import sqlite3

    import psycopg
    from obstore.store import ObjectStore as Driver

_T = TypeVar("_T")


class CountingSqlite(SqliteIo):
    """Counts connections that were opened, statements in transactions and beside them, and transactions that were committed."""

    def __init__(self) -> None:
        self.connections = self.statements = self.transactions = 0

    def connect(self, uri: str) -> "sqlite3.Connection":
        self.connections += 1
        return super().connect(uri)

    def execute(self, connection: "sqlite3.Connection", sql: str, values: Sequence[object] = ()) -> Found:
        self.statements += 1
        return super().execute(connection, sql, values)

    def commit(self, connection: "sqlite3.Connection") -> None:
        self.transactions += 1
        super().commit(connection)


class CountedSqliteStore(SqliteStore):
    """A store whose calls of the library are counted."""

    io: CountingSqlite


class CountingPostgres(PostgresIo):
    """Counts connections that were opened, and how often something was sent and answered."""

    def __init__(self) -> None:
        self.connections = self.round_trips = 0

    def connect(self, url: str) -> "psycopg.Connection":
        self.connections += 1
        return super().connect(url)

    def execute(self, connection: "psycopg.Connection", sql: str, values: Sequence[object] = ()) -> Found:
        self.round_trips += 1
        return super().execute(connection, sql, values)

    def execute_all(self, connection: "psycopg.Connection", statements: Sequence[Statement]) -> list[Found]:
        self.round_trips += len(statements) > 1  # one alone is counted above
        return super().execute_all(connection, statements)


class CountingObjects(ObjectIo):
    """Counts requests by kind: ``get``, ``put``, ``list``, ``delete``. What the driver repeats by itself counts once."""

    def __init__(self, connect: "Callable[[], Driver]") -> None:
        super().__init__(connect)
        self.requests: Counter[str] = Counter()
        self.lock = Lock()

    def request(self, kind: str, path: str, call: "Callable[[Driver], _T]", *, creates: bool = False) -> _T:
        with self.lock:
            self.requests[kind] += 1
        return super().request(kind, path, call, creates=creates)


class CountedObjectStore(ObjectStore):
    """A store whose requests are counted."""

    io: CountingObjects
