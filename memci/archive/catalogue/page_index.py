"""The derived index of one session: the facts of its pages, and full-text search over them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memci.archive import disk, refusal
from memci.archive.catalogue import index_file
from memci.archive.catalogue.checkpoint import Checkpoint, CheckpointKind
from memci.archive.catalogue.index_file import Database, damaged, row_sum, storable
from memci.archive.catalogue.index_writer import COLUMNS, FACTS, IndexWriter
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.catalogue.page_search import PageSearch
from memci.archive.catalogue.query import ExtraPage, Filter, IndexHit
from memci.errors import CorruptError, PermissionDeniedError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.embedding import Embedder

_BATCH_PAGES = 256
_CHECKPOINTS = "SELECT id, seq, label, kind, turn, at FROM checkpoint"
_PAGES = f"SELECT {COLUMNS}, page_sum FROM page"  # noqa: S608 names of columns
_BY_AGE = "ORDER BY first_seq, number, id"
_ALL_ROWS = (
    f"SELECT {COLUMNS} FROM page ORDER BY number, name",  # noqa: S608 names of columns
    "SELECT seq, page, position, role, at, key, text FROM entry ORDER BY seq",
    "SELECT call_id, seq, page, answered FROM call ORDER BY seq, id",
    f"{_CHECKPOINTS} ORDER BY seq",
    # The newest page is searchable only once it is complete; until then its text may be of any time.
    """SELECT name, text.user, text.page, text.contents FROM text JOIN page USING (id)
    WHERE number < (SELECT max(number) FROM page) ORDER BY number, name""",
)
_MOST = (1 << 63) - 1  # the largest integer that the database holds


class PageIndex:
    """Page facts and full-text search of one session, in one SQLite file that can be lost without harm.

    A damaged file, and one of another version, is made anew when it is opened; ``seq`` is then 0. Damage that shows later is a
    ``CorruptError`` of the method that meets it: call ``reset`` and fill the index again. Safe for one thread at a time; other
    processes may have it open too. Memory does not grow with the history. Without a *path* the index is kept in memory.
    *read_only* never writes to the file, nor beside it where no other process has it open, and opens it anew at each call; a
    file that it cannot read is an empty index. Raises ``UnavailableError`` if the file can be neither opened nor made.
    """

    def __init__(self, path: str | None, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._opened: Database | None = None
        self._db()

    @classmethod
    def in_directory(cls, directory: Path, name: object, *, root: Path, read_only: bool) -> Self:
        """Open the index of a name in a directory of this machine, which other processes may be opening too.

        No symbolic link below *root* leads there. Raises ``UnavailableError`` if the file can be neither opened nor made.
        """
        path = str(directory / f"{name}.sqlite")
        try:
            disk.refuse_links(str(root), str(directory))
            if read_only:
                return cls(path, read_only=True)
            with disk.locked(str(directory)):
                return cls(path)
        except OSError as error:
            raise refusal.unavailable(error, "the directory of the indexes") from error

    @property
    def seq(self) -> int:
        """The last journal record that is in the index; 0 when it is new."""
        return self._position()[0]

    @property
    def mark(self) -> str:
        """The text that was stored with ``seq``; empty when the index is new."""
        return self._position()[1]

    @contextmanager
    def write(self) -> Iterator[IndexWriter]:
        """Begin a transaction, waiting for other processes; all of it is stored when the block ends, nothing when it raises."""
        if self._read_only:
            message = "the index was opened to be read only"
            raise PermissionDeniedError(message)
        database = self._db()
        with database.transaction():
            writer = IndexWriter(database)
            yield writer
            writer.finish()

    def reset(self) -> None:
        """Empty the index, so that none of the old bytes is left in its file. O(its size).

        The file stays the same one, as other processes may have it open; only a damaged one is deleted and made anew. Raises
        ``UnavailableError`` if it is not known to be done, such as where another process reads it all the time.
        """
        try:
            with self.write() as writer:
                writer.clear()
            self._db().run("VACUUM")
            is_read = self._db().one("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        except CorruptError:
            self.close()
            self._opened = None  # where it cannot be made now, whoever asks next tries again
            if self._path is not None:
                index_file.remove(self._path)
            self._db()
            return
        if is_read:
            message = "another process reads the index of pages, which cannot be emptied meanwhile: do it again"
            raise UnavailableError(message)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield all that it holds, in an order that depends on nothing else: two indexes of one journal yield the same."""
        for sql in _ALL_ROWS:
            yield from self._db().each(sql)

    def check(self) -> None:
        """Raise ``CorruptError`` where the full-text index does not match the texts that it was made from. O(their size)."""
        if not self._read_only:
            self._db().run("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")

    def copy_in_memory(self) -> "PageIndex":
        """Return a copy that lives in memory and can be written to. O(size of the file)."""
        copy = PageIndex(None)
        self._db().copy_to(copy._db())
        return copy

    def close(self) -> None:
        """Give the file back. May be called twice."""
        if self._opened is not None:
            self._opened.close()

    def find_page(self, index: str) -> PageFacts | None:
        """Return the facts of a page, or ``None`` where there is none. O(1); O(pages) where there is none."""
        row = self._db().one(f"{_PAGES} WHERE name = ?", index)
        if row is not None:
            return _facts(row)
        if any(facts.index == index for facts in self.all_pages()):
            message = "a page is not found by its name"
            raise damaged(message)
        return None

    def all_pages(self) -> list[PageFacts]:
        """Return the facts of all pages, oldest first: by first entry, then by number. O(pages)."""
        sums = "(SELECT page_sum FROM meta)"
        rows = self._db().all(f"SELECT {COLUMNS}, page_sum, {sums} FROM page {_BY_AGE}")  # noqa: S608 names of columns
        if sum(row[-2] for row in rows) != (rows[0][-1] if rows else self._db().one("SELECT page_sum FROM meta")[0]):
            message = "pages are missing, or there twice"
            raise damaged(message)
        return [_facts(row[:-1]) for row in rows]

    def pages(self, *, numbers: tuple[int, int] = (0, _MOST)) -> Iterator[PageFacts]:
        """Yield the facts of pages with these numbers, both ends included, oldest first: by first entry, then by number.

        Pages are read a few at a time, so that the index may be changed meanwhile; a page that moves then may be missed.
        """
        sql = (
            f"SELECT first_seq, number, id, {COLUMNS}, page_sum FROM page WHERE number BETWEEN ? AND ? "  # noqa: S608 (as above)
            f"AND (first_seq, number, id) > (?, ?, ?) {_BY_AGE} LIMIT {_BATCH_PAGES}"
        )
        last: tuple[Any, ...] = (-1, -1, -1)
        while rows := self._db().all(sql, *numbers, *last):
            yield from (_facts(row[3:]) for row in rows)
            last = rows[-1][:3]

    def page_range(self, offset: int, limit: int) -> list[PageFacts]:
        """Return the facts of *limit* pages from a position on, oldest first. O(position), at a few nanoseconds each."""
        return [_facts(row) for row in self._db().all(f"{_PAGES} {_BY_AGE} LIMIT ? OFFSET ?", limit, offset)]

    def count_pages(self, first: int = 0, last: int = _MOST) -> int:
        """Return how many pages have these numbers, both ends included. O(their number), at a few nanoseconds each."""
        return int(self._db().one("SELECT count(*) FROM page WHERE number BETWEEN ? AND ?", first, last)[0])

    def find_key(self, key: str) -> list[int]:
        """Return the sequence numbers of the entries that were appended under an idempotency key, in order."""
        return [seq for (seq,) in self._db().all("SELECT seq FROM entry WHERE key = ? ORDER BY seq", storable(key))]

    def entry_seqs(self, page: str) -> list[int]:
        """Return the sequence numbers of a page's entries, in the order of their positions."""
        return [seq for (seq,) in self._db().all("SELECT seq FROM entry WHERE page = ? ORDER BY position", page)]

    def find_entry(self, seq: int) -> tuple[str, int] | None:
        """Return page and position of the entry that a journal record holds, or ``None``."""
        row: tuple[str, int] | None = self._db().one("SELECT page, position FROM entry WHERE seq = ?", seq)
        return row

    def find_call(self, call_id: str, *, before: int = _MOST) -> tuple[str, int] | None:
        """Return page and sequence number of the latest call with this id and no answer, made before an event."""
        sql = "SELECT page, seq FROM call WHERE call_id = ? AND seq < ? AND answered IS NULL ORDER BY seq DESC LIMIT 1"
        row: tuple[str, int] | None = self._db().one(sql, storable(call_id), before)
        return row

    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first. O(their number)."""
        return [_checkpoint(row) for row in self._db().all(f"{_CHECKPOINTS} ORDER BY seq")]

    def find_checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """Return the checkpoint with an id, or ``None``. O(1)."""
        row = self._db().one(f"{_CHECKPOINTS} WHERE id = ?", storable(checkpoint_id))
        return None if row is None else _checkpoint(row)

    def search(
        self,
        query: str,
        *,
        limit: int,
        only: Filter | None = None,
        extra: Sequence[ExtraPage] = (),
        embedder: "Embedder | None" = None,
    ) -> list[IndexHit]:
        """Return at most *limit* pages that answer a query, best first; none where the query holds no word.

        The query is plain text: any of its words counts, and nothing in it is syntax. Costs about what the one full-text query
        costs, and no more than a bounded number of pages beside it; a filter is asked for each match, and limited to roles, the
        text of each match where one of them speaks may be read. *extra* pages are not in the index, or not as they are now.

        With an embedder, pages of a similar meaning are found too, except where roles limit the search. Missing vectors are made
        first, of the youngest 256 pages or 100,000 characters, and all vectors are read: O(pages), at a microsecond or two each.
        """
        if embedder is not None:
            self._add_vectors(embedder)
        return PageSearch(self._db(), query, extra, embedder).hits(limit, only or Filter())

    def _add_vectors(self, embedder: "Embedder") -> None:
        """Make vectors of pages that have none; without effect where another process changed the index meanwhile."""
        from memci.archive.catalogue.embedding import encoded, missing  # noqa: PLC0415 (for those who use vectors)

        seq = self.seq
        if texts := missing(self._db(), embedder.name):
            vectors = encoded(texts, embedder)
            with self.write() as writer:
                if writer.seq == seq:
                    writer.put_vectors(embedder.name, vectors)

    def _db(self) -> Database:
        """Return the open file; to who only reads, as it is now: others may begin to write at any time."""
        if self._path is None:
            self._opened = self._opened or index_file.open_in_memory()
        elif self._read_only:
            self.close()
            self._opened = index_file.open_for_reading(self._path) or index_file.open_in_memory()
        elif self._opened is None:
            self._opened = index_file.open_for_writing(self._path)
        return self._opened

    def _position(self) -> tuple[int, str]:
        row = self._db().one("SELECT seq, mark FROM meta")
        if row is None or [type(value) for value in row] != [int, str]:
            message = "its metadata row is missing"
            raise damaged(message)
        return row  # type: ignore[no-any-return]  # the types were looked at


def _checkpoint(row: Sequence[Any]) -> Checkpoint:
    checkpoint_id, seq, label, kind, turn, at = row
    try:
        return Checkpoint(id=checkpoint_id, seq=seq, label=label, kind=CheckpointKind(kind), turn=turn, at=at)
    except ValueError as error:
        raise damaged(error) from error


def _facts(row: Sequence[Any]) -> PageFacts:
    """Make facts of a row of a page with its checksum; a damaged file may hold anything in any column."""
    *facts, known = row
    if row_sum(facts) != known:
        message = f"the facts of {str(facts[0])[:40]!r} are not what was written"
        raise damaged(message)
    values = dict(zip(FACTS, facts, strict=True))
    return PageFacts(**values | {"state": PageState(values["state"]), "pinned": bool(values["pinned"])})
