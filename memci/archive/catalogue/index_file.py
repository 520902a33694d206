"""The SQLite file of a page index: its tables, opening it, and what its errors mean."""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import attrs
import orjson

from memci.archive import disk
from memci.archive.catalogue.page_facts import INDEX_PLACE, PageFacts
from memci.archive.catalogue.search import PageText, page_text
from memci.archive.refusal import MORE_DESCRIPTORS, loading
from memci.errors import CorruptError, UnavailableError

with loading("sqlite3"):
    import sqlite3

# Raise it with every change of the tables, or of what they hold: ``search.page_text``, ``indexing.entry_text``.
SCHEMA_VERSION = 16

# Texts are there once: the full-text index keeps none, and says which words stand where (in ``term``). It has an index of the
# first six letters of words, ``terms.ROOT_LETTERS``, so that the first pages with a root are found without reading the others.
_SCHEMA = """
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, mark TEXT NOT NULL,
    pages INTEGER NOT NULL, entries INTEGER NOT NULL, terms INTEGER NOT NULL,  -- of searchable pages
    page_sum INTEGER NOT NULL,  -- sum of the column of this name in the table page
    model TEXT NOT NULL  -- what made the vectors
) STRICT;
INSERT INTO meta VALUES (1, 0, '', 0, 0, 0, 0, '');
CREATE TABLE page (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, number INTEGER NOT NULL, state TEXT NOT NULL, turn INTEGER NOT NULL,
    entries INTEGER NOT NULL, tokens INTEGER NOT NULL, title TEXT NOT NULL, recall_count INTEGER NOT NULL,
    last_recall_turn INTEGER, archived_turn INTEGER, pinned INTEGER NOT NULL, revision INTEGER NOT NULL, sha256 TEXT NOT NULL,
    parent TEXT, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, first_at TEXT NOT NULL, last_at TEXT NOT NULL,
    page_sum INTEGER NOT NULL DEFAULT 0  -- row_sum of the facts
) STRICT;
CREATE INDEX page_by_age ON page (first_seq, number);
CREATE UNIQUE INDEX page_by_number ON page (number, name);
CREATE TABLE said (  -- what is said in a page
    id INTEGER PRIMARY KEY,
    lines TEXT,  -- PageText.lines as JSON; NULL while the page is not searchable
    entries BLOB NOT NULL  -- packed: the contents entry, and the entries in order
) STRICT;
CREATE TABLE key (key TEXT, seq INTEGER, PRIMARY KEY (key, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE call (  -- those without an answer
    call_id TEXT NOT NULL, seq INTEGER NOT NULL, page TEXT NOT NULL
) STRICT;
CREATE INDEX call_by_id ON call (call_id, seq);
CREATE TABLE vector (id INTEGER PRIMARY KEY, scale REAL NOT NULL, codes BLOB NOT NULL) STRICT;
CREATE TABLE checkpoint (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, label TEXT NOT NULL, kind TEXT NOT NULL, turn INTEGER NOT NULL,
    at TEXT NOT NULL, ttl_turns INTEGER, variables TEXT NOT NULL
) STRICT;
CREATE TABLE annotation (seq INTEGER, name TEXT, value TEXT, PRIMARY KEY (seq, name)) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE search USING fts5 (user, page, contents, content = '', tokenize = 'ascii', prefix = '6');
CREATE VIRTUAL TABLE term USING fts5vocab (search, instance);
INSERT INTO search (search, rank) VALUES ('automerge', 8);  -- parts that are merged at once: more are written less often
"""
FACTS = tuple(field.name for field in attrs.fields(PageFacts) if field.name != "kept")  # which only the state knows
COLUMNS = ", ".join(("name", *FACTS[1:]))
PAGES = f"SELECT {COLUMNS}, page_sum FROM page"  # noqa: S608 names of columns
_CACHE_KIB = 32  # of memory that an open index may keep; its statements and tables take twice as much beside
_LOG_FLAG = 19  # place of the byte of the file that is 2 where a log belongs to it (SQLite's file format, 1.3.3)
_LISTED = "(SELECT value FROM json_each(?))"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC"
_PASSING = frozenset({"BUSY", "LOCKED", "FULL", "IOERR", "CANTOPEN", "READONLY", "PERM", "NOMEM"})  # kinds of SQLite's errors


class _Connection(sqlite3.Connection):
    """Is closed with whoever asked an index in memory, and needs nobody who says so."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it could not be opened
            self.close()


class Database:
    """An open index; its statements raise memci's own errors, and write a lone surrogate of a value out in ASCII."""

    def __init__(self, path: str, *, uri: bool = False) -> None:
        # The session's lock sees to it that one thread at a time is here.
        self.connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=10.0, uri=uri, factory=_Connection
        )
        self._transactions = 0  # so far

    def run(self, sql: str, *values: object) -> list[Any]:
        """Run a statement and return its rows."""
        with _mapped_errors():
            return self.connection.execute(sql, [storable(value) for value in values]).fetchall()

    def run_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each of some rows, whose texts UTF-8 can encode."""
        with _mapped_errors():
            self.connection.executemany(sql, rows)

    def each(self, sql: str, *values: object) -> Iterator[Any]:
        """Yield the rows of a query as they are read; its values are no texts."""
        with _mapped_errors():
            yield from self.connection.execute(sql, values)

    def one(self, sql: str, *values: object) -> Any:  # noqa: ANN401 a row, or None
        """Return the first row of a statement, ``None`` where it has none."""
        rows = self.run(sql, *values)
        return rows[0] if rows else None

    def chosen(self, sql: str, values: Sequence[int], end: str = "", *given: object) -> list[Any]:
        """Return the rows of a query that ends with ``IN``, for any number of values; *given* are those of its *end*."""
        return self.run(f"{sql} {_LISTED} {end}", orjson.dumps(values).decode(), *given)

    def add_function(self, name: str, arguments: int, function: Callable[..., Any]) -> None:
        """Let statements call a function."""
        self.connection.create_function(name, arguments, function)

    def rollback(self) -> None:
        """Undo the transaction that is open, if one is."""
        self.connection.rollback()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin a transaction, waiting for other processes, and end it with the block; undo it when that raises.

        One that a signal handler interrupted outside its block is undone by the next.
        """
        number = self._transactions = self._transactions + 1
        self.rollback()
        try:
            self.run("BEGIN IMMEDIATE")
            yield
            self.run("COMMIT")
        except BaseException:  # that of an interrupted one may come late
            if number == self._transactions:
                self.rollback()
            raise

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Write what the block changes into the file, and not into the log before; by the log where others have the file open."""
        try:
            self.set_journal("TRUNCATE")
            yield
        finally:
            self.set_journal("WAL")

    def set_journal(self, mode: str) -> None:
        """Choose where a transaction writes first; without effect while others have the file open."""
        with _mapped_errors(), suppress(sqlite3.OperationalError):  # others have it open
            self.connection.execute(f"PRAGMA journal_mode = {mode}")

    def is_usable(self) -> bool:
        """Tell whether the tables are there, in this version."""
        return bool(self.one("PRAGMA user_version") == (SCHEMA_VERSION,) and self.one("SELECT count(*) FROM meta") == (1,))

    def create(self) -> None:
        """Put new, empty tables in the place of all there are, within a transaction. The file keeps its size."""
        for (name,) in self.run(_TABLES):
            self.run(f'DROP TABLE IF EXISTS "{name.replace(chr(34), chr(34) * 2)}"')
        for statement in _SCHEMA.split(";\n"):
            self.run(statement)
        self.run(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def copy_to(self, other: "Database") -> None:
        """Make another database a copy of this one. O(size of the file)."""
        with _mapped_errors():
            self.connection.backup(other.connection)

    def close(self) -> None:
        """Give the file back. May be called twice."""
        self.connection.close()


def refuse_damaged(what: object) -> NoReturn:
    """Raise the error of an index that is not what was written; *what* may be the error that told it."""
    message = f"the index of pages is damaged ({what}); it is rebuilt from the journal"
    raise CorruptError(message, session="", place=INDEX_PLACE) from (what if isinstance(what, Exception) else None)


def open_for_writing(path: str) -> Database:
    """Open the index at *path*, made anew where there is none, or only a damaged one or one of another version. O(1)."""
    try:
        return _opened(path)
    except CorruptError:
        remove(path)
        return _opened(path)


def open_for_reading(path: str) -> Database:
    """Open the index at *path* without writing a file; one that cannot be read is an empty one in memory. O(1)."""
    with suppress(CorruptError, UnavailableError), ExitStack() as on_failure, _mapped_errors():
        # A process that writes keeps a log beside the file, or locks it; else the file alone is read, with no lock.
        disk.check_database(path)
        with Path(path).open("rb") as file:
            has_log = file.read(_LOG_FLAG + 1)[_LOG_FLAG:] == b"\2"
        mode = "mode=ro&immutable=1" if has_log and not Path(f"{path}-wal").exists() else "mode=ro"
        database = Database(f"{Path(path).absolute().as_uri()}?{mode}", uri=True)
        on_failure.callback(database.close)
        if database.is_usable():
            on_failure.pop_all()
            return database
    return open_in_memory()


def stored_seq(path: str) -> int:
    """Return the last record that the index at *path* knows of; 0 where none can be read. Nothing is written. O(1)."""
    with closing(open_for_reading(path)) as database, suppress(CorruptError, UnavailableError):
        (seq,) = database.one("SELECT seq FROM meta")
        return seq if type(seq) is int else 0
    return 0


def open_in_memory() -> Database:
    """Open a new, empty index that lives in memory only."""
    database = Database(":memory:")
    database.create()
    return database


def remove(path: str) -> None:
    """Delete the index at *path*, as far as it is there."""
    with _mapped_errors():
        for ending in ("", *disk.DATABASE_ENDINGS):
            Path(path + ending).unlink(missing_ok=True)


def row_sum(row: Sequence[object]) -> int:
    """Return a checksum of a row, of 40 bits: those of eight million pages can be added up in a column."""
    return int.from_bytes(hashlib.blake2b(repr(tuple(row)).encode(), digest_size=5).digest())


def facts_of(row: Sequence[Any]) -> PageFacts:
    """Make facts of a row of a page with its checksum; a damaged file may hold anything in any column."""
    return PageFacts(**dict(zip(FACTS, checked(row), strict=True)))


def checked(row: Sequence[Any]) -> list[Any]:
    """Return the columns of a row of a page with its checksum, without that."""
    *facts, known = row
    if row_sum(facts) != known:
        refuse_damaged(f"the facts of {str(facts[0])[:40]!r} are not what was written")
    return facts


def storable(value: object) -> Any:  # noqa: ANN401 (what it is given, or a text)
    """Return a value as the database takes it: a lone surrogate of a text is written out in ASCII."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def packed(contents: str, entries: Sequence[Sequence[object]]) -> bytes:
    """Return the terms of a page's contents entry and its entries as the database holds them. O(their size)."""
    return zlib.compress(orjson.dumps([contents, entries]), 1)


def unpacked(data: Any) -> tuple[str, list[Any]]:  # noqa: ANN401 (a damaged file may hold anything)
    """Return what ``packed`` was given."""
    try:
        contents, entries = orjson.loads(zlib.decompress(data))
    except (TypeError, ValueError, zlib.error) as error:
        refuse_damaged(error)
    return contents, entries


def _opened(path: str) -> Database:
    with ExitStack() as on_failure:
        with _mapped_errors():
            disk.check_database(path, make=True)
            database = Database(path)
        on_failure.callback(database.close)
        database.run("PRAGMA synchronous = NORMAL")
        database.run(f"PRAGMA cache_size = -{_CACHE_KIB}")
        database.run("PRAGMA secure_delete = OFF")  # who erases makes the file anew
        database.run("PRAGMA temp_store = MEMORY")  # an index in memory holds what may be in no file
        database.run("PRAGMA cache_spill = OFF")  # what a transaction changes is written once, at its end
        database.set_journal("WAL")
        if not database.is_usable():
            with database.transaction():
                if not database.is_usable():  # another process may have made them meanwhile
                    database.create()
        on_failure.pop_all()
    return database


@contextmanager
def _mapped_errors() -> Iterator[None]:
    """Turn errors of the database into memci's own: the file is not what was written, or cannot be used now."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a wrong call, such as one after close()
    except (OSError, sqlite3.DatabaseError, UnicodeDecodeError) as error:
        kind = getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_").partition("_")[0]
        if not isinstance(error, OSError) and kind not in _PASSING:
            refuse_damaged(error)
        advice = MORE_DESCRIPTORS if disk.is_out_of_descriptors() else "see to the room and the rights of its file, or try again"
        message = f"the index of pages cannot be used now ({error}): {advice}; the journal is not affected"
        raise UnavailableError(message) from error


def text_of(contents: str, entries: Sequence[Sequence[Any]]) -> PageText:
    """Return the searchable text of a page, from its contents entry and its entries as they are stored."""
    return page_text(((role, text, at) for _, role, text, at, *_ in entries), contents)
