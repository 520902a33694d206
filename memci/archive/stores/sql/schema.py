"""The tables of a database, what sessions ask of them, and how those of an older database are brought up to date.

Statements that both dialects understand have ``{}`` before the names of tables, and ``?`` for values.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from memci.errors import CorruptError, StoreError, UnavailableError

if TYPE_CHECKING:
    import sqlite3

Found = list[tuple[Any, ...]]  # rows that a statement returned
Statement = tuple[str, Sequence[Any]]  # with its values
Runner = Callable[..., Found]  # runs a statement with its values

APPLICATION_ID = 0x6D656D63  # ``memc``: tells an SQLite database of memci from others, and is the lock in PostgreSQL

# The statements that lead from each version to the next; the version of a database is the number of those steps. The number of a
# deleted session is never given to another one. A line is what ``record_codec`` writes; the primary key of a record is the
# compare-and-set. A use of a blob has the last record that it was put for. SQLite keeps this text, and is compared with it.
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
_ONLY_IN_POSTGRES = (
    ("ALTER TABLE memci_record ADD COLUMN token text NOT NULL", "CREATE SEQUENCE memci_writer"),
    ("ALTER TABLE memci_blob ADD COLUMN puts bigint NOT NULL",),
    (
        """CREATE TABLE memci_index_copy (
            session bigint PRIMARY KEY REFERENCES memci_session (id) ON DELETE CASCADE, seq bigint NOT NULL, body bytea NOT NULL
        )""",
    ),
    (
        "DROP TABLE memci_index_copy",
        """CREATE TABLE memci_search_index (
            session bigint PRIMARY KEY REFERENCES memci_session (id) ON DELETE CASCADE,
            version uuid NOT NULL, size bigint NOT NULL
        )""",
        """CREATE TABLE memci_search_block (
            session bigint NOT NULL REFERENCES memci_session (id) ON DELETE CASCADE, number bigint NOT NULL, body bytea NOT NULL,
            PRIMARY KEY (session, number)
        )""",
        "ALTER TABLE memci_search_block ALTER COLUMN body SET STORAGE EXTERNAL",  # it is compressed already
    ),
)


def _in_postgres(sql: str) -> str:
    sql = sql.replace("PRIMARY KEY AUTOINCREMENT", "GENERATED ALWAYS AS IDENTITY PRIMARY KEY").replace(" STRICT", "")
    return sql.replace("{}", "memci_").replace("INTEGER", "bigint").replace("BLOB", "bytea")


SQLITE = [[sql.replace("{}", "") for sql in step] for step in _TABLES]
POSTGRES = [[*map(_in_postgres, step), *more] for step, more in zip_longest(_TABLES, _ONLY_IN_POSTGRES, fillvalue=())]


class SyncFailedError(UnavailableError):
    """Nobody knows what a commit left on the disk; the session must be opened again."""


class Key(NamedTuple):
    """Which session is meant: tenant and id as ``file_name`` spells them, and the id itself."""

    tenant: str
    name: str
    session_id: str

    @property
    def find(self) -> Statement:
        """The query for the ``Place`` of the session."""
        sql = """SELECT id, head, coalesce((SELECT max(seq) FROM {}record WHERE session = owner.id), 0)
        FROM {}session AS owner WHERE tenant = ? AND name = ?"""
        return sql, (self.tenant, self.name)

    @property
    def begin(self) -> Statement:
        """The statement that makes the row of the session if there is none, and returns its number."""
        sql = """INSERT INTO {}session AS owner (tenant, name, session_id, head) VALUES (?, ?, ?, 0)
        ON CONFLICT (tenant, name) DO UPDATE SET head = owner.head RETURNING id"""
        return sql, (self.tenant, self.name, self.session_id.encode())


class Place(NamedTuple):
    """Where the journal of a session ends: by its row, whose number is 0 before the session began, and by its last record."""

    row: int = 0
    head: int = 0
    last: int = 0


class Rows(Protocol):
    """The tables of one database. Each call is one transaction; a ``LockedError`` where others keep it waiting for too long."""

    clear_index: Sequence[str]  # statements that take a session's search index out of the database, where it lies there
    put_blob: str  # statement that puts a blob with the values tenant, name and body, over one that is damaged
    sweep: str  # statement that deletes the blobs of a tenant that no session refers to; O(blobs of the tenant)

    def read(self, sql: str, values: Sequence[object], session: str = "") -> Found:
        """Run a query; it finds nothing where there is no database yet."""

    def change(self, key: Key, row: int, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        """Run statements that may run twice, and return what each returned. With a *row*, that session has to be there still.

        With *removes*, the bytes that they take out are in no file of the database when it returns; a large one may keep copies
        of rows that it moved, until it is vacuumed.
        """

    def append(self, key: Key, row: int, expected: int, lines: Sequence[bytes], before: str) -> tuple[int, str]:
        """Write lines as ``Journal.append`` does, unless row and records disagree.

        Return the row, made if need be, and what tells this commit from all others; *before* is that of the one before it, empty
        where it is not known.
        """

    def check(self) -> None:
        """Raise ``CorruptError`` if the database is damaged, as far as it can tell. O(database)."""

    def close(self) -> None:
        """Close idle connections; the next call opens one. May be called twice."""


def place_of(found: Found) -> Place:
    """Return what ``Key.find`` found; a damaged number is -1, which no head is."""
    return Place(*(value if isinstance(value, int) else -1 for value in found[0])) if found else Place()


def checked_head(key: Key, place: Place) -> int:
    """Return the head. Raises ``CorruptError`` where row and records do not agree on it."""
    if place.head != place.last:
        problem = f"the session's row says {place.head} and the last record is {place.last}: restore it from a backup"
        raise CorruptError(problem, session=key.session_id, place="head", seq=min(place.head, place.last) + 1)
    return place.head


def _checked_version(version: int, steps: Sequence[Sequence[str]]) -> int:
    if version > len(steps):
        message = f"the database has version {version}, written by a newer memci: upgrade memci to read it"
        raise StoreError(message)
    return version


def sqlite_version(connection: "sqlite3.Connection") -> int | None:
    """Return the version, ``None`` for an empty database; ``StoreError`` if it is another program's, or a newer memci's."""
    # In one query, so that all is of one moment: another process may be making the tables.
    sql = "SELECT *, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version, pragma_application_id"
    version, owner, tables = connection.execute(sql).fetchone()
    if owner != APPLICATION_ID and (version or owner or tables):
        message = "the database is not one of memci: give the path of another file, or of one that is not there yet"
        raise StoreError(message)
    return _checked_version(version, SQLITE) if version or tables else None


def sqlite_problem(connection: "sqlite3.Connection", what: str) -> str:
    """Return what is wrong with the schema, or with *what* (``1``: everything, O(database)); empty for nothing."""
    import sqlite3  # noqa: PLC0415 loads only when a database is opened

    tables = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        migrate_sqlite(new)
        if set(new.execute(tables)) - set(connection.execute(tables)):
            return "its schema does not match"
    found = str(connection.execute(f"PRAGMA integrity_check({what})").fetchone()[0])
    return "" if found == "ok" else found.splitlines()[-1]


def migrate_sqlite(connection: "sqlite3.Connection", steps: Sequence[Sequence[str]] = SQLITE) -> None:
    """Bring a database to the newest version in one transaction, which closing the connection undoes. Safe for many at once."""
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version < len(steps):  # else another process was faster
        for statement in chain.from_iterable(steps[version:]):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
    connection.execute("COMMIT")


def migrate_postgres(run: Runner, steps: Sequence[Sequence[str]] = POSTGRES) -> None:
    """Bring a database to the newest version in one transaction, which closing the connection undoes. Safe for many at once."""
    run("BEGIN")
    # CREATE TABLE IF NOT EXISTS fails where two do it at once, so that they go one after the other.
    run("SELECT pg_advisory_xact_lock(%s)", (APPLICATION_ID,))
    run("CREATE TABLE IF NOT EXISTS memci_schema (version bigint NOT NULL, database_id uuid NOT NULL)")
    run("INSERT INTO memci_schema SELECT 0, gen_random_uuid() WHERE NOT EXISTS (SELECT FROM memci_schema)")
    version = run("SELECT version FROM memci_schema")[0][0]
    if version < len(steps):
        for statement in chain.from_iterable(steps[version:]):
            run(statement)
        run("UPDATE memci_schema SET version = %s", (len(steps),))
    run("COMMIT")


def postgres_id(run: Runner) -> str:
    """Return what tells a database from all others, once its tables are up to date. Raises ``StoreError`` if they are newer."""
    sql = "SELECT version, database_id::text FROM memci_schema"
    found = run(sql) if run("SELECT to_regclass('memci_schema')::text")[0][0] else []
    if not found or _checked_version(found[0][0], POSTGRES) < len(POSTGRES):
        migrate_postgres(run)
        found = run(sql)
    return str(found[0][1])
