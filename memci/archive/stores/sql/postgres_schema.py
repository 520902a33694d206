"""The tables of the PostgreSQL store, and how an older database is brought to them."""

from collections.abc import Callable, Sequence
from itertools import chain

from memci.archive.stores.sql.rows import Found
from memci.errors import StoreError

Run = Callable[..., Found]
"""Runs a statement with its values and returns its rows."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # An identity's number is never given twice, also not after a rollback or a deletion.
        """CREATE TABLE memci_session (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text NOT NULL, name text NOT NULL,
            session_id bytea NOT NULL, head bigint NOT NULL, UNIQUE (tenant, name)
        )""",
        """CREATE TABLE memci_record (
            session bigint NOT NULL REFERENCES memci_session (id) ON DELETE CASCADE, seq bigint NOT NULL,
            line bytea NOT NULL, token text NOT NULL, PRIMARY KEY (session, seq)
        )""",
        """CREATE TABLE memci_page (
            session bigint NOT NULL REFERENCES memci_session (id) ON DELETE CASCADE, name text NOT NULL,
            body bytea NOT NULL, PRIMARY KEY (session, name)
        )""",
        """CREATE TABLE memci_snapshot (
            session bigint NOT NULL REFERENCES memci_session (id) ON DELETE CASCADE, seq bigint NOT NULL,
            line bytea NOT NULL, PRIMARY KEY (session, seq)
        )""",
        "CREATE SEQUENCE memci_writer",
    ),
    (
        """CREATE TABLE memci_blob (
            tenant text NOT NULL, name text NOT NULL, body bytea NOT NULL, puts bigint NOT NULL, PRIMARY KEY (tenant, name)
        )""",
        """CREATE TABLE memci_blob_use (
            session bigint NOT NULL REFERENCES memci_session (id) ON DELETE CASCADE, name text NOT NULL,
            seq bigint NOT NULL, PRIMARY KEY (session, name)
        )""",
        "CREATE INDEX memci_blob_use_name ON memci_blob_use (name)",
    ),
)
"""The statements that lead from each version to the next; the version of a database is the number of those it went through."""

_LOCK = 0x6D656D63


def identity(run: Run) -> str:
    """Return what tells this database from all others, once its tables are made, or brought to the newest version.

    Raises:
        StoreError: A newer memci made them.
    """
    sql = "SELECT version, database_id::text FROM memci_schema"
    found = run(sql) if run("SELECT to_regclass('memci_schema')::text")[0][0] else []
    if not found or found[0][0] < len(MIGRATIONS):
        migrate(run)
        found = run(sql)
    version, database_id = found[0]
    if version > len(MIGRATIONS):
        message = f"the tables have version {version}, written by a newer memci: upgrade memci to read them"
        raise StoreError(message)
    return str(database_id)


def migrate(run: Run, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the tables to the newest version in one transaction; nothing happens where they are there. Safe for many at once.

    Whoever catches an error closes the connection, which undoes the transaction.
    """
    run("BEGIN")
    # CREATE TABLE IF NOT EXISTS fails where two do it at once, so that they go one after the other.
    run("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    run("CREATE TABLE IF NOT EXISTS memci_schema (version bigint NOT NULL, database_id uuid NOT NULL)")
    found = run("SELECT version FROM memci_schema")
    if not found:
        run("INSERT INTO memci_schema VALUES (0, gen_random_uuid())")
    version = found[0][0] if found else 0
    if version < len(migrations):
        for statement in chain.from_iterable(migrations[version:]):
            run(statement)
        run("UPDATE memci_schema SET version = %s", (len(migrations),))
    run("COMMIT")
