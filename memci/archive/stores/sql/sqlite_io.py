"""Every call that the SQLite store makes to the library, counted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3


_WAL_FIXED = (3, 51, 3)
_WAL_FIXED_BRANCHES = {(3, 44): 6, (3, 50): 7}


def is_wal_safe(version: Sequence[int]) -> bool:
    """Tell whether a library may use a write-ahead log that several connections write to.

    From 3.7.0 to 3.51.2 two of them that commit and checkpoint at once can damage the database, but for 3.44.6 and 3.50.7 and
    what follows them in their branches (https://sqlite.org/wal.html#walresetbug).
    """
    major, minor, patch = version[:3]
    return (major, minor, patch) >= _WAL_FIXED or patch >= _WAL_FIXED_BRANCHES.get((major, minor), patch + 1)


class SqliteIo:
    """The SQLite library as the store uses it. All calls raise ``sqlite3.Error``.

    One object may serve many stores and threads; the counts are then approximate. A subclass can make calls fail.

    Attributes:
        connections: Connections that were opened.
        statements: Statements that were run within transactions and beside them; each is a call into the library.
        transactions: Transactions that were committed; what each of them costs in syncs is a matter of the journal mode.
        wait_s: How long a call waits for other connections that write.
    """

    wait_s = 10.0

    def __init__(self) -> None:
        self.connections = 0
        self.statements = 0
        self.transactions = 0

    def version(self) -> tuple[int, ...]:
        """Return the version of the library."""
        import sqlite3  # noqa: PLC0415 loads only when a database is opened

        return sqlite3.sqlite_version_info

    def connect(self, uri: str) -> "sqlite3.Connection":
        """Open a database; transactions begin and end only where it is said."""
        import sqlite3  # noqa: PLC0415 as above

        self.connections += 1
        # The store's turns see to it that one thread at a time is here.
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=self.wait_s)

    def execute(self, connection: "sqlite3.Connection", sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement to its end, so that it holds no lock, and return its rows."""
        self.statements += 1
        return connection.execute(sql, values).fetchall()

    def commit(self, connection: "sqlite3.Connection") -> None:
        """Commit; what was written is on the disk when it returns, as far as ``synchronous`` promises."""
        self.transactions += 1
        connection.execute("COMMIT")
