"""The tables of the SQLite store, how an older database is brought to them, and whether one is whole."""

from collections.abc import Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING

from memci.errors import CorruptError, StoreError

if TYPE_CHECKING:
    import sqlite3

APPLICATION_ID = 0x6D656D63
"""``memc``: what tells a database of memci from others (``PRAGMA application_id``)."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # AUTOINCREMENT: the number of a deleted session is never given to another one.
        """CREATE TABLE session (
            id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, name TEXT NOT NULL, session_id BLOB NOT NULL,
            head INTEGER NOT NULL, UNIQUE (tenant, name)
        ) STRICT""",
        """CREATE TABLE record (
            session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE, seq INTEGER NOT NULL, line BLOB NOT NULL,
            PRIMARY KEY (session, seq)
        ) STRICT""",
        """CREATE TABLE page (
            session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE, name TEXT NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (session, name)
        ) STRICT""",
        """CREATE TABLE snapshot (
            session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE, seq INTEGER NOT NULL, line BLOB NOT NULL,
            PRIMARY KEY (session, seq)
        ) STRICT""",
    ),
    (
        "CREATE TABLE blob (tenant TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (tenant, name)) STRICT",
        """CREATE TABLE blob_use (
            session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE, name TEXT NOT NULL, seq INTEGER NOT NULL,
            PRIMARY KEY (session, name)
        ) STRICT""",
        "CREATE INDEX blob_use_name ON blob_use (name)",
    ),
)
"""The statements that lead from each version to the next; the version of a database is the number of those it went through.

A database is compared with the text of these, spaces included.
"""


def version_of(connection: "sqlite3.Connection") -> int:
    """Return the version of a database of memci, 0 for an empty one.

    Raises:
        CorruptError: It has tables and no version.
        StoreError: It is another program's, or a newer memci's.
    """
    connection.execute("BEGIN")  # all of one moment: another process may be making the tables
    try:
        tables = _number(connection, "SELECT count(*) FROM sqlite_master")
        version = _number(connection, "PRAGMA user_version")
        owner = _number(connection, "PRAGMA application_id")
    finally:
        connection.execute("ROLLBACK")
    if owner == APPLICATION_ID and tables and not version:
        message = "its version is gone"
        raise CorruptError(message, session="", place="the database")
    if owner != APPLICATION_ID and (version or owner or tables):
        message = "the database is not one of memci: give the path of another file, or of one that is not there yet"
        raise StoreError(message)
    if version > len(MIGRATIONS):
        message = f"the database has version {version}, written by a newer memci: upgrade memci to read it"
        raise StoreError(message)
    return version


def migrate(connection: "sqlite3.Connection", migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring a database to the newest version in one transaction; nothing happens where it is there. Safe for many at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _number(connection, "PRAGMA user_version")
        if version < len(migrations):  # else another process was faster
            for statement in chain.from_iterable(migrations[version:]):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def problem_of(connection: "sqlite3.Connection", what: str) -> str:
    """Return what is wrong with the schema, or with *what* (``1``: everything, O(database)); empty for nothing."""
    import sqlite3  # noqa: PLC0415 loads only when a database is opened

    tables = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        migrate(new)
        if set(new.execute(tables)) - set(connection.execute(tables)):
            return "its tables are not those that were made"
    found = str(connection.execute(f"PRAGMA integrity_check({what})").fetchone()[0])
    return "" if found == "ok" else found.splitlines()[-1]


def size_bytes(connection: "sqlite3.Connection") -> int:
    """Return the size of the database."""
    return _number(connection, "PRAGMA page_count") * _number(connection, "PRAGMA page_size")


def _number(connection: "sqlite3.Connection", sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])
