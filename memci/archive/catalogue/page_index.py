"""The derived index of one session: the facts of its pages, and full-text search over them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from memci.archive.catalogue import index_file
from memci.archive.catalogue.checkpoint import Checkpoint, CheckpointKind
from memci.archive.catalogue.index_file import damaged, mapped_errors, row_sum, storable
from memci.archive.catalogue.index_writer import CHECKPOINT_COLUMNS, COLUMNS, IndexWriter
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.catalogue.page_filter import ANY_PAGE, Filter
from memci.archive.catalogue.page_search import PageSearch
from memci.archive.catalogue.search import ExtraPage, IndexHit
from memci.errors import CorruptError, PermissionDeniedError, UnavailableError

if TYPE_CHECKING:
    import sqlite3

    from memci.archive.catalogue.embedding import Embedder

_BATCH_PAGES = 256
_ALL_ROWS = (
    f"SELECT {COLUMNS} FROM page ORDER BY number, name",  # noqa: S608 names of columns
    "SELECT seq, page, position, role, at, key, text FROM entry ORDER BY seq",
    "SELECT call_id, seq, page, answered FROM call ORDER BY seq, id",
    f"SELECT {CHECKPOINT_COLUMNS} FROM checkpoint ORDER BY seq",  # noqa: S608 (as above)
    # The newest page is searchable only once it is complete; until then its text may be of any time.
    """SELECT name, text.user, text.page, text.contents FROM text JOIN page USING (id)
    WHERE number < (SELECT max(number) FROM page) ORDER BY number, name""",
)
_ROW = f"{COLUMNS}, page_sum"
_MOST = (1 << 63) - 1  # the largest integer that the database holds


class PageIndex:
    """Page facts and full-text search of one session, in one SQLite file that can be lost without harm.

    A damaged file, and one of another version, is made anew when it is opened; ``seq`` is then 0. Damage that shows later is a
    ``CorruptError`` of the method that meets it: call ``reset`` and fill the index again. Safe for one thread at a time; other
    processes may have it open too. Memory does not grow with the history.

    Args:
        path: The file; ``None`` keeps the index in memory.
        read_only: Never write to the file, nor beside it where no other process has it open; a file that cannot be read is
            an empty index.

    Raises:
        UnavailableError: The file can be neither opened nor made.
    """

    def __init__(self, path: str | None, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        # What the file looked like when it was opened as unchanging; None when it was not.
        self._seen: tuple[int, int] | None = None
        # The state of the index in which nothing was found to be missing last.
        self._checked_seq = -1
        self._opened: sqlite3.Connection | None = self._open()

    @property
    def seq(self) -> int:
        """The last journal record that is in the index; 0 when it is new."""
        return self._meta("seq")  # type: ignore[no-any-return]  # it is looked at there

    @property
    def mark(self) -> str:
        """The text that was stored with ``seq``; empty when the index is new."""
        return self._meta("mark")  # type: ignore[no-any-return]  # as above

    @contextmanager
    def write(self) -> Iterator[IndexWriter]:
        """Begin a transaction, waiting for other processes; all of it is stored when the block ends, and nothing when it raises.

        Raises:
            PermissionDeniedError: The index was opened to be read only.
            UnavailableError: The disk is full, or another process did not end its transaction.
        """
        if self._read_only:
            message = "the index was opened to be read only"
            raise PermissionDeniedError(message)
        connection = self._connection()
        with mapped_errors():
            connection.execute("BEGIN IMMEDIATE")
        try:
            writer = IndexWriter(connection)
            yield writer
            writer.finish()
            with mapped_errors():
                connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk may have ended it already
                connection.execute("ROLLBACK")
            raise

    def reset(self) -> None:
        """Empty the index, so that none of the old bytes is left in its file. O(its size).

        The file stays the same one, as other processes may have it open; only a damaged one is deleted and made anew.

        Raises:
            PermissionDeniedError: The index was opened to be read only.
            UnavailableError: It is not known to be done, such as where another process reads it all the time.
        """
        try:
            with self.write() as writer:
                writer.clear()
            with mapped_errors():
                connection = self._connection()
                connection.execute("VACUUM")
                is_read = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                index_file.check_schema(connection)
        except CorruptError:
            self._make_anew()
            return
        if is_read:
            message = "another process reads the index of pages, which cannot be emptied meanwhile: do it again"
            raise UnavailableError(message)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield all that it holds, in an order that depends on nothing else: two indexes of one journal yield the same."""
        connection = self._connection()
        for sql in _ALL_ROWS:
            with mapped_errors():
                yield from connection.execute(sql)

    def check(self) -> None:
        """Compare the full-text index with the texts that it was made from. O(their size).

        Raises:
            CorruptError: They differ.
        """
        if not self._read_only:
            with mapped_errors():
                self._connection().execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")

    def copy_in_memory(self) -> "PageIndex":
        """Return a copy that lives in memory and can be written to. O(size of the file)."""
        copy = PageIndex(None)
        with mapped_errors():
            self._connection().backup(copy._connection())
        return copy

    def close(self) -> None:
        """Give the file back. May be called twice."""
        if self._opened is not None:
            self._opened.close()

    def find_page(self, index: str) -> PageFacts | None:
        """Return the facts of a page, or ``None`` where there is none. O(1); O(pages) where there is none."""
        row = self._one(f"SELECT {_ROW} FROM page WHERE name = ?", index)  # noqa: S608 names of columns
        if row is None:
            self._check_missing(index)
        return None if row is None else _facts(row)

    def all_pages(self) -> list[PageFacts]:
        """Return the facts of all pages, oldest first: by first entry, then by number. O(pages).

        Raises:
            CorruptError: They are not all that were written.
        """
        sql = f"SELECT {_ROW}, (SELECT page_sum FROM meta) FROM page ORDER BY first_seq, number, id"  # noqa: S608 names of columns
        rows = self._all(sql)
        if sum(row[-2] for row in rows) != (rows[0][-1] if rows else self._meta("page_sum")):
            message = "pages are missing, or there twice"
            raise damaged(message)
        return [_facts(row[:-1]) for row in rows]

    def pages(self, state: PageState | None = None, *, numbers: tuple[int, int] = (0, _MOST)) -> Iterator[PageFacts]:
        """Yield the facts of pages, all or those in a state or with these numbers, oldest first: by first entry, then by number.

        Pages are read a few at a time, so that the index may be changed meanwhile; a page that moves then may be missed.
        """
        condition = "number BETWEEN ? AND ? AND" if state is None else "number BETWEEN ? AND ? AND state = ? AND"
        chosen = numbers if state is None else (*numbers, state.value)
        sql = (
            f"SELECT first_seq, number, id, {_ROW} FROM page "  # noqa: S608 names of columns
            f"WHERE {condition} (first_seq, number, id) > (?, ?, ?) ORDER BY first_seq, number, id LIMIT {_BATCH_PAGES}"
        )
        last: tuple[Any, ...] = (-1, -1, -1)
        while rows := self._all(sql, *chosen, *last):
            for row in rows:
                yield _facts(row[3:])
            last = rows[-1][:3]

    def page_range(self, offset: int, limit: int) -> list[PageFacts]:
        """Return the facts of so many pages from a position on, oldest first.

        O(position) within the database, at a few nanoseconds each.
        """
        sql = (
            f"SELECT {_ROW} FROM page "  # noqa: S608 names of columns
            "ORDER BY first_seq, number, id LIMIT ? OFFSET ?"
        )
        return [_facts(row) for row in self._all(sql, limit, offset)]

    def count_pages(self, first: int = 0, last: int = _MOST) -> int:
        """Return how many pages have these numbers, both ends included. O(their number), at a few nanoseconds each."""
        return int(self._one("SELECT count(*) FROM page WHERE number BETWEEN ? AND ?", first, last)[0])

    def find_key(self, key: str) -> list[int]:
        """Return the sequence numbers of the entries that were appended under an idempotency key, in order."""
        return [row[0] for row in self._all("SELECT seq FROM entry WHERE key = ? ORDER BY seq", storable(key))]

    def entry_seqs(self, page: str) -> list[int]:
        """Return the sequence numbers of a page's entries, in the order of their positions."""
        return [row[0] for row in self._all("SELECT seq FROM entry WHERE page = ? ORDER BY position", page)]

    def find_entry(self, seq: int) -> tuple[str, int] | None:
        """Return page and position of the entry that a journal record holds, or ``None``."""
        row = self._one("SELECT page, position FROM entry WHERE seq = ?", seq)
        return None if row is None else (row[0], row[1])

    def find_call(self, call_id: str, *, before: int = _MOST) -> tuple[str, int] | None:
        """Return page and sequence number of the latest call with this id that has no answer, or ``None``.

        Args:
            call_id: The id.
            before: Only calls with smaller sequence numbers count.
        """
        sql = "SELECT page, seq FROM call WHERE call_id = ? AND seq < ? AND answered IS NULL ORDER BY seq DESC LIMIT 1"
        row = self._one(sql, storable(call_id), before)
        return None if row is None else (row[0], row[1])

    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first. O(their number)."""
        return [_checkpoint(row) for row in self._all(f"SELECT {CHECKPOINT_COLUMNS} FROM checkpoint ORDER BY seq")]  # noqa: S608

    def find_checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """Return the checkpoint with an id, or ``None``. O(1)."""
        row = self._one(f"SELECT {CHECKPOINT_COLUMNS} FROM checkpoint WHERE id = ?", storable(checkpoint_id))  # noqa: S608
        return None if row is None else _checkpoint(row)

    def search(
        self,
        query: str,
        *,
        limit: int,
        only: Filter = ANY_PAGE,
        extra: Sequence[ExtraPage] = (),
        embedder: "Embedder | None" = None,
    ) -> list[IndexHit]:
        """Return the pages that answer a query best, best first; none where the query holds no word.

        The query is plain text: any of its words counts, and nothing in it is syntax. Costs about what the one full-text query
        costs, and no more than a bounded number of pages beside it. Where the filter admits too few of the best, each match is
        looked up; limited to roles, the text of each match where one of them speaks may be read.

        With an embedder, pages that are like the query in meaning are found too, except where roles limit the search. Missing
        vectors are made first, of the youngest 256 pages or 100,000 characters, and all vectors are read:
        O(pages), at a microsecond or two each.

        Args:
            query: What is looked for, in any language.
            limit: At most so many pages.
            only: Which pages may answer.
            extra: Pages that are not in the index, or not as they are now; they are searched as if they were.
            embedder: Tells what texts mean; ``None`` ranks by words alone.

        Raises:
            UnavailableError: With an embedder, where the index cannot be written now.
        """
        if embedder is not None:
            self._add_vectors(embedder)
        connection = self._connection()
        with mapped_errors():
            return PageSearch(connection, query, extra, embedder).hits(limit, only)

    def _add_vectors(self, embedder: "Embedder") -> None:
        """Make vectors of pages that have none; without effect where another process changed the index meanwhile."""
        from memci.archive.catalogue.vectors import encoded, missing  # noqa: PLC0415 (for those who use vectors)

        connection = self._connection()
        with mapped_errors():
            found = missing(connection, embedder.name)
        if found.texts:
            vectors = encoded(found.texts, embedder)
            with self.write() as writer:
                if writer.seq == found.seq:
                    writer.put_vectors(embedder.name, vectors)

    def _make_anew(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = None  # where it cannot be made now, whoever asks next tries again
        if self._path is not None:
            index_file.remove(self._path)
        self._opened = self._open()

    def _open(self) -> "sqlite3.Connection":
        if self._path is None:
            return index_file.open_in_memory()
        if not self._read_only:
            return index_file.open_for_writing(self._path)
        # A process that writes keeps a log beside the file; without one the file stays as it is until one comes.
        self._seen = None if self._has_log() else self._stamp()
        connection = index_file.open_for_reading(self._path, unchanging=self._seen is not None)
        return index_file.open_in_memory() if connection is None else connection

    def _connection(self) -> "sqlite3.Connection":
        """Return the connection, opened again where it took the file for unchanging and a process began to write."""
        changed = self._seen is not None and (self._stamp() != self._seen or self._has_log())
        if changed and self._opened is not None:
            self._opened.close()
            self._opened = None
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _has_log(self) -> bool:
        return os.path.exists(f"{self._path}-wal")  # noqa: PTH110 (no error on a failing disk)

    def _stamp(self) -> tuple[int, int]:
        try:
            status = Path(str(self._path)).stat()
        except OSError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_size)

    def _check_missing(self, name: str) -> None:
        """Look whether a page that was not found is there all the same, or whether rows are missing. O(pages)."""
        if self._one("SELECT 1 FROM page NOT INDEXED WHERE name = ?", name) is not None:
            message = "a page is not found by its name"
            raise damaged(message)
        if self._checked_seq != (seq := self.seq):
            self.all_pages()
            self._checked_seq = seq

    def _meta(self, column: str) -> Any:  # noqa: ANN401 a number or a text
        row = self._one(f"SELECT {column} FROM meta")  # noqa: S608 the name of a column
        if row is None or type(row[0]) is not (str if column == "mark" else int):
            message = "what it knows of itself is gone"
            raise damaged(message)
        return row[0]

    def _all(self, sql: str, *values: object) -> list[Any]:
        connection = self._connection()
        with mapped_errors():
            return connection.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: object) -> Any:  # noqa: ANN401 a row, or None
        connection = self._connection()
        with mapped_errors():
            return connection.execute(sql, values).fetchone()


def _checkpoint(row: Sequence[Any]) -> Checkpoint:
    values = dict(zip((field.name for field in attrs.fields(Checkpoint)), row, strict=True))
    try:
        return Checkpoint(**values | {"kind": CheckpointKind(values["kind"])})
    except ValueError as error:
        raise damaged(str(error)) from error


def _facts(row: Sequence[Any]) -> PageFacts:
    """Make facts of a row of ``_ROW``; a damaged file may hold anything in any column."""
    *facts, known = row
    if row_sum(facts) != known:
        message = f"the facts of {str(facts[0])[:40]!r} are not what was written"
        raise damaged(message)
    values = dict(zip((field.name for field in attrs.fields(PageFacts)), facts, strict=True))
    return PageFacts(**values | {"state": PageState(values["state"]), "pinned": bool(values["pinned"])})
