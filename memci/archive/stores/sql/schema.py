"""The tables, how those of an older database are brought up to date, and whether a database is whole."""

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING

from memci.archive.stores.sql.rows import Found
from memci.errors import CorruptError, StoreError

if TYPE_CHECKING:
    import sqlite3

Run = Callable[..., Found]
"""Runs a statement with its values and returns its rows."""

APPLICATION_ID = 0x6D656D63
"""``memc``: what tells an SQLite database of memci from others (``PRAGMA application_id``), and the lock in PostgreSQL."""

# The statements that lead from each version to the next; the version of a database is the number of those steps. The number of a
# deleted session is never given to another one. SQLite keeps this text, and a database is compared with it.
_TABLES = (
    (
        """CREATE TABLE {}session (
            id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, name TEXT NOT NULL, session_id BLOB NOT NULL,
            head INTEGER NOT NULL, UNIQUE (tenant, name)
        ) STRICT""",
        """CREATE TABLE {}record (
            session INTEGER NOT NULL REFERENCES {}session (id) ON DELETE CASCADE, seq INTEGER NOT NULL, line BLOB NOT NULL,
            PRIMARY KEY (session, seq)
        ) STRICT""",
        """CREATE TABLE {}page (
            session INTEGER NOT NULL REFERENCES {}session (id) ON DELETE CASCADE, name TEXT NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (session, name)
        ) STRICT""",
        """CREATE TABLE {}snapshot (
            session INTEGER NOT NULL REFERENCES {}session (id) ON DELETE CASCADE, seq INTEGER NOT NULL, line BLOB NOT NULL,
            PRIMARY KEY (session, seq)
        ) STRICT""",
    ),
    (
        "CREATE TABLE {}blob (tenant TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (tenant, name)) STRICT",
        """CREATE TABLE {}blob_use (
            session INTEGER NOT NULL REFERENCES {}session (id) ON DELETE CASCADE, name TEXT NOT NULL, seq INTEGER NOT NULL,
            PRIMARY KEY (session, name)
        ) STRICT""",
        "CREATE INDEX {}blob_use_name ON {}blob_use (name)",
    ),
)
_IN_POSTGRES = {
    "{}": "memci_",
    "PRIMARY KEY AUTOINCREMENT": "GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "INTEGER": "bigint",
    "BLOB": "bytea",
    " STRICT": "",
}
_ONLY_IN_POSTGRES = (
    ("ALTER TABLE memci_record ADD COLUMN token text NOT NULL", "CREATE SEQUENCE memci_writer"),
    ("ALTER TABLE memci_blob ADD COLUMN puts bigint NOT NULL",),
)


def _in_postgres(sql: str) -> str:
    for here, there in _IN_POSTGRES.items():
        sql = sql.replace(here, there)
    return sql


SQLITE = [[sql.replace("{}", "") for sql in step] for step in _TABLES]
POSTGRES = [[*map(_in_postgres, step), *more] for step, more in zip(_TABLES, _ONLY_IN_POSTGRES, strict=True)]


def _checked_version(version: int) -> int:
    if version > len(_TABLES):
        message = f"the database has version {version}, written by a newer memci: upgrade memci to read it"
        raise StoreError(message)
    return version


def sqlite_version(connection: "sqlite3.Connection") -> int:
    """Return the version of a database of memci, 0 for an empty one.

    Raises:
        CorruptError: It has tables and no version.
        StoreError: It is another program's, or a newer memci's.
    """
    # In one query, so that all is of one moment: another process may be making the tables.
    version, owner, tables = connection.execute(
        "SELECT *, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version, pragma_application_id"
    ).fetchone()
    if owner == APPLICATION_ID and tables and not version:
        message = "its version is gone"
        raise CorruptError(message, session="", place="the database")
    if owner != APPLICATION_ID and (version or owner or tables):
        message = "the database is not one of memci: give the path of another file, or of one that is not there yet"
        raise StoreError(message)
    return _checked_version(version)


def migrate_sqlite(connection: "sqlite3.Connection", steps: Sequence[Sequence[str]] = SQLITE) -> None:
    """Bring a database to the newest version in one transaction; nothing happens where it is there. Safe for many at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version < len(steps):  # else another process was faster
            for statement in chain.from_iterable(steps[version:]):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def sqlite_problem(connection: "sqlite3.Connection", what: str) -> str:
    """Return what is wrong with the schema, or with *what* (``1``: everything, O(database)); empty for nothing."""
    import sqlite3  # noqa: PLC0415 loads only when a database is opened

    tables = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        migrate_sqlite(new)
        if set(new.execute(tables)) - set(connection.execute(tables)):
            return "its tables are not those that were made"
    found = str(connection.execute(f"PRAGMA integrity_check({what})").fetchone()[0])
    return "" if found == "ok" else found.splitlines()[-1]


def postgres_id(run: Run) -> str:
    """Return what tells a database from all others, once its tables are made, or brought up to date. ``StoreError`` if newer."""
    sql = "SELECT version, database_id::text FROM memci_schema"
    found = run(sql) if run("SELECT to_regclass('memci_schema')::text")[0][0] else []
    if not found or _checked_version(found[0][0]) < len(POSTGRES):
        migrate_postgres(run)
        found = run(sql)
    return str(found[0][1])


def migrate_postgres(run: Run, steps: Sequence[Sequence[str]] = POSTGRES) -> None:
    """Bring the tables to the newest version in one transaction; nothing happens where they are there. Safe for many at once.

    Whoever catches an error closes the connection, which undoes the transaction.
    """
    run("BEGIN")
    # CREATE TABLE IF NOT EXISTS fails where two do it at once, so that they go one after the other.
    run("SELECT pg_advisory_xact_lock(%s)", (APPLICATION_ID,))
    run("CREATE TABLE IF NOT EXISTS memci_schema (version bigint NOT NULL, database_id uuid NOT NULL)")
    found = run("SELECT version FROM memci_schema")
    if not found:
        run("INSERT INTO memci_schema VALUES (0, gen_random_uuid())")
    version = found[0][0] if found else 0
    if version < len(steps):
        for statement in chain.from_iterable(steps[version:]):
            run(statement)
        run("UPDATE memci_schema SET version = %s", (len(steps),))
    run("COMMIT")
