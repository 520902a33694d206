"""The file behind a page index: opening, schema, and what becomes of a damaged one."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memci.archive import disk
from memci.archive.catalogue.page_facts import INDEX_PLACE
from memci.archive.refusal import MORE_DESCRIPTORS, loading
from memci.errors import CorruptError, UnavailableError

if TYPE_CHECKING:
    import sqlite3

SCHEMA_VERSION = 6
"""Raise it with every change of the tables, of ``words``, ``search.page_text`` or ``projection.entry_text``.

Older files are then made anew.
"""

_SCHEMA = """
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, mark TEXT NOT NULL,
    pages INTEGER NOT NULL, entries INTEGER NOT NULL, terms INTEGER NOT NULL,  -- sums over the table text
    page_sum INTEGER NOT NULL,  -- sum of the column of this name in the table page
    vectors INTEGER NOT NULL, model TEXT NOT NULL  -- rows of the table vector, and what made them
) STRICT;
INSERT INTO meta VALUES (1, 0, '', 0, 0, 0, 0, 0, '');
CREATE TABLE page (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, number INTEGER NOT NULL, state TEXT NOT NULL, turn INTEGER NOT NULL,
    entries INTEGER NOT NULL, tokens INTEGER NOT NULL, title TEXT NOT NULL, recall_count INTEGER NOT NULL,
    last_recall_turn INTEGER, archived_turn INTEGER, pinned INTEGER NOT NULL, revision INTEGER NOT NULL, sha256 TEXT NOT NULL,
    parent TEXT, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
    page_sum INTEGER NOT NULL DEFAULT 0  -- row_sum of the facts
) STRICT;
CREATE INDEX page_by_age ON page (first_seq, number);
CREATE INDEX page_by_number ON page (number);
CREATE INDEX page_by_state ON page (state, first_seq, number);
CREATE TABLE entry (
    seq INTEGER PRIMARY KEY, page TEXT NOT NULL, position INTEGER NOT NULL, role TEXT NOT NULL, at TEXT NOT NULL, key TEXT,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX entry_by_page ON entry (page, position);
CREATE INDEX entry_by_key ON entry (key) WHERE key IS NOT NULL;
CREATE TABLE call (
    id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, seq INTEGER NOT NULL, page TEXT NOT NULL, answered INTEGER
) STRICT;
CREATE INDEX call_by_call_id ON call (call_id, seq);
CREATE INDEX call_by_seq ON call (seq);
CREATE INDEX call_by_answer ON call (answered) WHERE answered IS NOT NULL;
CREATE TABLE text (
    id INTEGER PRIMARY KEY, entries INTEGER NOT NULL, terms INTEGER NOT NULL,
    user TEXT NOT NULL, page TEXT NOT NULL, contents TEXT NOT NULL
) STRICT;
CREATE TABLE vector (id INTEGER PRIMARY KEY, scale REAL NOT NULL, codes BLOB NOT NULL) STRICT;
CREATE TABLE checkpoint (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, label TEXT NOT NULL, kind TEXT NOT NULL, turn INTEGER NOT NULL,
    at TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE search USING fts5 (user, page, contents, content = 'text', content_rowid = 'id', tokenize = 'ascii');
"""


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Turn errors of the database into memci's own.

    Raises:
        CorruptError: The file is not what was written; ``PageIndex.reset`` makes it anew.
        UnavailableError: The disk is full or fails, or another process kept the file locked.
    """
    with loading("sqlite3"):
        import sqlite3  # noqa: PLC0415 loads only when an index is opened
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a wrong call, such as one after close()
    except UnicodeDecodeError as error:
        raise damaged(str(error)) from error
    except OSError as error:
        raise _unavailable(error) from error
    except sqlite3.DatabaseError as error:
        raise (_unavailable(error) if _is_unavailable(error) else damaged(str(error))) from error


def _unavailable(error: Exception) -> UnavailableError:
    advice = MORE_DESCRIPTORS if disk.is_out_of_descriptors() else "see to the room and the rights of its file, or try again"
    return UnavailableError(f"the index of pages cannot be used now ({error}): {advice}; the journal is not affected")


def damaged(what: str) -> CorruptError:
    """Return the error for an index that is not what was written."""
    return CorruptError(f"the index of pages is damaged ({what}); it is rebuilt from the journal", session="", place=INDEX_PLACE)


def open_in_memory() -> "sqlite3.Connection":
    """Open a new, empty index that lives in memory only."""
    connection = _connect(":memory:")
    _create(connection)
    return connection


def open_for_writing(path: str) -> "sqlite3.Connection":
    """Open the index at *path*, made anew where there is none, or only a damaged one or one of another version. O(1).

    Raises:
        UnavailableError: It can be neither opened nor made.
    """
    with mapped_errors():
        try:
            return _open_for_writing(path)
        except CorruptError:
            remove(path)
            return _open_for_writing(path)


def open_for_reading(path: str, *, unchanging: bool) -> "sqlite3.Connection | None":
    """Open the index at *path* without ever writing to it; ``None`` where there is none that can be read. O(1).

    Args:
        path: The file.
        unchanging: No process has it open for writing: the file alone is read, with no lock, and no file appears beside it.
    """
    mode = "mode=ro&immutable=1" if unchanging else "mode=ro"
    try:
        with mapped_errors():
            disk.check_database(path)
            connection = _connect(f"{Path(path).absolute().as_uri()}?{mode}", uri=True)
            if _is_usable(connection):
                return connection
            connection.close()
    except (CorruptError, UnavailableError):
        pass
    return None


def check_schema(connection: "sqlite3.Connection") -> None:
    """Look whether the tables are still those that were made.

    Raises:
        CorruptError: They are not.
    """
    tables = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
    with closing(open_in_memory()) as new:
        if connection.execute(tables).fetchall() != new.execute(tables).fetchall():
            message = "its tables are others"
            raise damaged(message)


def remove(path: str) -> None:
    """Delete the index at *path*, as far as it is there.

    Raises:
        UnavailableError: Something is left.
    """
    with mapped_errors():
        for ending in ("", *disk.DATABASE_ENDINGS):
            Path(path + ending).unlink(missing_ok=True)


def row_sum(row: Sequence[object]) -> int:
    """Return a checksum of a row, of 40 bits: those of eight million pages can be added up in a column."""
    return int.from_bytes(hashlib.blake2b(repr(tuple(row)).encode(), digest_size=5).digest())


def storable(text: str) -> str:
    """Return *text* as the database can hold it: a lone surrogate is written out in ASCII, as Python would escape it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text


def _open_for_writing(path: str) -> "sqlite3.Connection":
    with mapped_errors():
        disk.make_database(path)
        connection = _connect(path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            if not _is_usable(connection):
                _create(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _connect(path: str, *, uri: bool = False) -> "sqlite3.Connection":
    import sqlite3  # noqa: PLC0415 as above

    # The session's lock sees to it that one thread at a time is here.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0, uri=uri)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -2048")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_usable(connection: "sqlite3.Connection") -> bool:
    """Tell whether the tables are there, in this version."""
    if _version(connection) != SCHEMA_VERSION:
        return False
    with closing(connection.execute("SELECT count(*) FROM meta")) as rows:
        return bool(rows.fetchone()[0])


def _create(connection: "sqlite3.Connection") -> None:
    """Make the tables, unless another process did so meanwhile.

    Raises:
        CorruptError: There are tables of another version.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) != SCHEMA_VERSION:
            _check_empty(connection)
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _check_empty(connection: "sqlite3.Connection") -> None:
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        message = "it was written by another version"
        raise damaged(message)


def _version(connection: "sqlite3.Connection") -> int:
    with closing(connection.execute("PRAGMA user_version")) as rows:
        return int(rows.fetchone()[0])


def _is_unavailable(error: "sqlite3.DatabaseError") -> bool:
    import sqlite3  # noqa: PLC0415 as above

    passing = (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
    )
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in passing  # the low byte is the kind, the rest a refinement
