"""The derived index of one session: the facts of its pages, and full-text search over them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import attrs

from memci.archive import disk, refusal
from memci.archive.catalogue import index_file
from memci.archive.catalogue.index_file import Database, refuse_damaged, row_sum
from memci.archive.catalogue.page_facts import Checkpoint, CheckpointKind, PageFacts
from memci.archive.catalogue.page_search import IndexHit, PageSearch
from memci.archive.catalogue.search import ExtraPage, Filter, page_text, term_line
from memci.chapters.address import page_number, segment_of
from memci.errors import CorruptError, PageNotFoundError, PermissionDeniedError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.embedding import Embedder

_BATCH_PAGES = 256
_CHECKPOINT = tuple(field.name for field in attrs.fields(Checkpoint))
_FACTS = tuple(field.name for field in attrs.fields(PageFacts))
_COLUMNS = ", ".join(("name", *_FACTS[1:]))
_PUT_PAGE = (
    f"INSERT INTO page ({_COLUMNS}, number) VALUES ({', '.join('?' * (len(_FACTS) + 1))}) ON CONFLICT (name) DO UPDATE SET "  # noqa: S608
    + ", ".join(f"{name} = excluded.{name}" for name in _FACTS[1:])
)
_CHECKPOINTS = f"SELECT {', '.join(_CHECKPOINT)} FROM checkpoint"  # noqa: S608 names of columns
_PAGES = f"SELECT {_COLUMNS}, page_sum FROM page"  # noqa: S608 names of columns
_BY_AGE = "ORDER BY first_seq, number, name"
_ALL_ROWS = (
    f"SELECT {_COLUMNS} FROM page ORDER BY number, name",  # noqa: S608 names of columns
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
        """Open the index of a name in a directory to which no link below *root* leads, and which others may be opening too."""
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
    def write(self) -> Iterator["IndexWriter"]:
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

        Only a damaged file is deleted, as others may have it open; ``UnavailableError`` where one reads it all the time.
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
        found = self._facts("WHERE name = ?", index)
        if not found and any(facts.index == index for facts in self.all_pages()):
            refuse_damaged("a page is not found by its name")
        return found[0] if found else None

    def _facts(self, condition: str, *values: object) -> list[PageFacts]:
        return [_checked(row) for row in self._db().run(f"{_PAGES} {condition}", *values)]

    def all_pages(self) -> list[PageFacts]:
        """Return the facts of all pages, oldest first: by first entry, then by number. O(pages)."""
        sums = "(SELECT page_sum FROM meta)"
        rows = self._db().run(f"SELECT {_COLUMNS}, page_sum, {sums} FROM page {_BY_AGE}")  # noqa: S608 names of columns
        if sum(row[-2] for row in rows) != (rows[0][-1] if rows else self._db().one("SELECT page_sum FROM meta")[0]):
            refuse_damaged("pages are missing, or there twice")
        return [_checked(row[:-1]) for row in rows]

    def pages(self, *, numbers: tuple[int, int] = (0, _MOST)) -> Iterator[PageFacts]:
        """Yield the facts of pages with these numbers, by age; the index may change meanwhile, what moves then may be missed."""
        following = f"WHERE number BETWEEN ? AND ? AND (first_seq, number, name) > (?, ?, ?) {_BY_AGE} LIMIT {_BATCH_PAGES}"
        last: tuple[int, int, str] = (-1, -1, "")
        while found := self._facts(following, *numbers, *last):
            yield from found
            last = (found[-1].first_seq, page_number(found[-1].index), found[-1].index)

    def page_range(self, offset: int, limit: int) -> list[PageFacts]:
        """Return the facts of *limit* pages from a position on, oldest first. O(position), at a few nanoseconds each."""
        return self._facts(f"{_BY_AGE} LIMIT ? OFFSET ?", limit, offset)

    def count_pages(self, first: int = 0, last: int = _MOST) -> int:
        """Return how many pages have these numbers, both ends included. O(their number), at a few nanoseconds each."""
        return int(self._db().one("SELECT count(*) FROM page WHERE number BETWEEN ? AND ?", first, last)[0])

    def pages_holding(self, text: str, limit: int) -> list[str]:
        """Return the indexes of at most *limit* complete pages that hold the words of a text one after the other."""
        phrase = term_line(text).strip()
        sql = "SELECT name FROM search JOIN page ON page.id = search.rowid WHERE search MATCH ? LIMIT ?"
        return [name for (name,) in self._db().run(sql, f'"{phrase}"', limit)] if phrase else []

    def find_key(self, key: str) -> list[int]:
        """Return the sequence numbers of the entries that were appended under an idempotency key, in order."""
        return [seq for (seq,) in self._db().run("SELECT seq FROM entry WHERE key = ? ORDER BY seq", key)]

    def entry_seqs(self, page: str) -> list[int]:
        """Return the sequence numbers of a page's entries, in the order of their positions."""
        return [seq for (seq,) in self._db().run("SELECT seq FROM entry WHERE page = ? ORDER BY position", page)]

    def find_entry(self, seq: int) -> tuple[str, int] | None:
        """Return page and position of the entry that a journal record holds, or ``None``."""
        return self._db().one("SELECT page, position FROM entry WHERE seq = ?", seq)  # type: ignore[no-any-return]

    def find_call(self, call_id: str, *, before: int = _MOST) -> tuple[str, int] | None:
        """Return page and sequence number of the latest call with this id and no answer, made before an event."""
        sql = "SELECT page, seq FROM call WHERE call_id = ? AND seq < ? AND answered IS NULL ORDER BY seq DESC LIMIT 1"
        return self._db().one(sql, call_id, before)  # type: ignore[no-any-return]

    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first. O(their number)."""
        return self._checkpoints("ORDER BY seq")

    def find_checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        """Return the checkpoint with an id, or ``None``. O(1)."""
        return next(iter(self._checkpoints("WHERE id = ?", checkpoint_id)), None)

    def _checkpoints(self, condition: str, *values: object) -> list[Checkpoint]:
        try:
            rows = self._db().run(f"{_CHECKPOINTS} {condition}", *values)
            return [Checkpoint(**dict(zip(_CHECKPOINT, row, strict=True))) for row in rows]
        except ValueError as error:
            refuse_damaged(error)

    def search(
        self,
        query: str,
        *,
        limit: int,
        only: Filter | None = None,
        extra: Sequence[ExtraPage] = (),
        embedder: "Embedder | None" = None,
    ) -> list[IndexHit]:
        """Return at most *limit* pages that answer a query, best first: any of its words counts, nothing in it is syntax.

        Costs about what the one full-text query costs, and a bounded number of pages beside it; a filter is asked for each match,
        and limited to roles, the text of each match may be read. *extra* pages are not in the index, or not as they are now. With
        an embedder, pages of a similar meaning are found too, except where roles limit the search: missing vectors are made, of
        the youngest 256 pages or 100,000 characters, and all vectors are read: O(pages), at a microsecond or two each.
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
        if self._read_only and self._path is not None:
            self.close()
            self._opened = index_file.open_for_reading(self._path)
        elif self._opened is None:
            self._opened = index_file.open_in_memory() if self._path is None else index_file.open_for_writing(self._path)
        return self._opened

    def _position(self) -> tuple[int, str]:
        row = self._db().one("SELECT seq, mark FROM meta")
        if row is None or [type(value) for value in row] != [int, str]:
            refuse_damaged("its metadata row is missing")
        return row  # type: ignore[no-any-return]  # the types were looked at


class IndexWriter:
    """Changes a page index, within the transaction of ``PageIndex.write``; *seq* is the last record in it as that began."""

    def __init__(self, database: Database) -> None:
        self._db = database
        row = database.one("SELECT seq FROM meta")
        self.seq: int = 0 if row is None else row[0]  # none in a damaged file, which can still be cleared
        self._waiting: dict[str, str | None] = {}  # pages to be made searchable at the end, with their new contents entries
        self._changed: set[str] = set()  # pages whose facts have another checksum at the end

    def set_seq(self, seq: int, mark: str) -> None:
        """Note the last journal record in the index, and a text that tells its journal from others."""
        self._db.run("UPDATE meta SET seq = ?, mark = ?", seq, mark)

    def clear(self) -> None:
        """Empty the index: it is as if it was new. The file keeps its size."""
        self._db.create()
        self._waiting.clear()
        self._changed.clear()

    def add_checkpoint(self, checkpoint: Checkpoint, *, keep: int | None) -> None:
        """Add a checkpoint; of those of the kind ``auto`` only the newest *keep* are left, ``None`` for all."""
        self._db.run(f"INSERT INTO checkpoint ({', '.join(_CHECKPOINT)}) VALUES (?, ?, ?, ?, ?, ?)", *attrs.astuple(checkpoint))  # noqa: S608
        if keep is not None:
            oldest = "SELECT seq FROM checkpoint WHERE kind = ? ORDER BY seq DESC LIMIT -1 OFFSET ?"
            self._db.run(f"DELETE FROM checkpoint WHERE seq IN ({oldest})", CheckpointKind.AUTO.value, keep)  # noqa: S608 (text above)

    def add_entry(  # noqa: PLR0913 the columns of a row
        self, *, seq: int, page: str, position: int, role: str, text: str, at: str, key: str | None = None
    ) -> None:
        """Add an entry of the record *seq*; those at *position* (from 1) and after it move on. *at* is ISO 8601 or any text."""
        self._db.run("UPDATE entry SET position = position + 1 WHERE page = ? AND position >= ?", page, position)
        put = "INSERT INTO entry (seq, page, position, role, at, key, text) VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._db.run(put, seq, page, position, role, at, key, text)

    def add_call(self, call_id: str, *, seq: int, page: str) -> None:
        """Add a call that the entry *seq* makes and that has no answer yet."""
        self._db.run("INSERT INTO call (call_id, seq, page) VALUES (?, ?, ?)", call_id, seq, page)

    def answer_call(self, call_id: str, *, seq: int, call_seq: int) -> None:
        """Note that the entry *seq* answers the call with this id that the entry *call_seq* made."""
        self._db.run(
            "UPDATE call SET answered = ? WHERE id = "
            "(SELECT id FROM call WHERE call_id = ? AND seq = ? AND answered IS NULL ORDER BY id LIMIT 1)",
            seq, call_id, call_seq,
        )  # fmt: skip

    def put_page(self, facts: PageFacts) -> None:
        """Add a page, or replace the facts of one; a page added later counts as younger in search."""
        self._changed.add(facts.index)
        self._db.run(_PUT_PAGE, *attrs.astuple(facts, recurse=False), page_number(facts.index))

    def change_page(self, index: str, **changes: Any) -> None:  # noqa: ANN401 the attributes of PageFacts
        """Change one or more facts of a page, by the names of their attributes."""
        assignments = ", ".join(f"{name} = ?" for name in changes)
        put = f"UPDATE page SET {assignments} WHERE id = ?"  # noqa: S608 names of attributes
        self._db.run(put, *changes.values(), self._page_id(index))
        self._changed.add(index)

    def index_page(self, index: str, *, entry: str | None = None) -> None:
        """Make a page searchable, with its contents entry, as it is when the transaction ends; ``None`` keeps the entry."""
        first_at, last_at = self._db.one("SELECT min(at), max(at) FROM entry WHERE page = ?", index)
        self.change_page(index, first_at=first_at or "", last_at=last_at or "")
        self._waiting[index] = self._waiting.get(index) if entry is None else entry

    def finish(self) -> None:
        """Do what was left for the end of the transaction."""
        for name in self._changed:
            row = self._db.one(f"{_PAGES} WHERE name = ?", name)
            if row is None:
                refuse_damaged(f"page {name} is gone")
            *facts, old = row
            new = row_sum(facts)
            self._db.run("UPDATE page SET page_sum = ? WHERE name = ?", new, name)
            self._db.run("UPDATE meta SET page_sum = page_sum + ?", new - old)
        for index, entry in self._waiting.items():
            page_id = self._page_id(index)
            contents = self._remove_text(page_id)
            self._add_text(index, page_id, contents if entry is None else term_line(entry))

    def put_vectors(self, model: str, vectors: Sequence[tuple[str, float, bytes]]) -> None:
        """Keep vectors (page, scale, codes) until a page or its text changes. Those that another model made go."""
        if self._db.one("SELECT model FROM meta") != (model,):
            self._db.run("DELETE FROM vector")
            self._db.run("UPDATE meta SET model = ?", model)
        put = "INSERT OR IGNORE INTO vector SELECT text.id, ?, ? FROM page JOIN text USING (id) WHERE page.name = ?"
        for index, scale, codes in vectors:
            self._db.run(put, scale, codes, index)

    def drop_page(self, index: str) -> None:
        """Remove a page, if it is there, with its entries, keys and calls. O(its size)."""
        self._waiting.pop(index, None)
        self._changed.discard(index)
        page = self._db.one("SELECT id, page_sum FROM page WHERE name = ?", index)
        if page is not None:
            self._db.run("UPDATE meta SET page_sum = page_sum - ?", page[1])
            self._remove_text(page[0])
            self._db.run("DELETE FROM page WHERE id = ?", page[0])
        self._drop_entries(index, 1)

    def newest_page(self) -> str | None:
        """Return the index of the page with the highest number, or ``None``."""
        row = self._db.one("SELECT name FROM page ORDER BY number DESC LIMIT 1")
        return None if row is None else row[0]

    def drop_from(self, index: str, position: int) -> None:
        """Go back to before an entry: it, the entries after it in its page, and all later pages go, with their keys and calls.

        Calls that they answered are open again. An emptied page goes; else facts, but for ``tokens``, and text are mended.
        """
        for (later,) in self._db.run("SELECT name FROM page WHERE number > ?", page_number(index)):
            if segment_of(later) == segment_of(index):
                self.drop_page(later)
        self._drop_entries(index, position)
        left, first, last = self._db.one("SELECT count(*), min(seq), max(seq) FROM entry WHERE page = ?", index)
        if not left:
            self.drop_page(index)
            return
        self.change_page(index, entries=left, first_seq=first, last_seq=last)
        if index in self._waiting or self._db.one("SELECT 1 FROM text JOIN page USING (id) WHERE name = ?", index):
            self.index_page(index)

    def _page_id(self, index: str) -> int:
        row = self._db.one("SELECT id FROM page WHERE name = ?", index)
        if row is None:
            message = f"the index knows no page {index}"
            raise PageNotFoundError(message, index=index)
        return int(row[0])

    def _drop_entries(self, page: str, position: int) -> None:
        gone = "IN (SELECT seq FROM entry WHERE page = ? AND position >= ?)"
        for sql in (
            "UPDATE call SET answered = NULL WHERE answered",
            "DELETE FROM call WHERE seq",
            "DELETE FROM entry WHERE seq",
        ):
            self._db.run(f"{sql} {gone}", page, position)

    def _add_text(self, index: str, page_id: int, contents: str) -> None:
        entries = self._db.run("SELECT role, text, at FROM entry WHERE page = ? ORDER BY position", index)
        text = page_text(entries, contents)
        count, columns = text.terms(), (text.user, text.page, text.contents)
        self._db.run("INSERT INTO text VALUES (?, ?, ?, ?, ?, ?)", page_id, len(entries), count, *columns)
        self._db.run("INSERT INTO search (rowid, user, page, contents) VALUES (?, ?, ?, ?)", page_id, *columns)
        self._db.run("UPDATE meta SET pages = pages + 1, entries = entries + ?, terms = terms + ?", len(entries), count)

    def _remove_text(self, page_id: int) -> str:
        """Make a page unsearchable, and return the terms of its contents entry; empty where there are none."""
        row = self._db.one("SELECT entries, terms, user, page, contents FROM text WHERE id = ?", page_id)
        if row is None:
            return ""
        self._db.run("UPDATE meta SET pages = pages - 1, entries = entries - ?, terms = terms - ?", *row[:2])
        # FTS5 takes a row of an external-content table out only when it is told the very text that went in.
        remove = "INSERT INTO search (search, rowid, user, page, contents) VALUES ('delete', ?, ?, ?, ?)"
        self._db.run(remove, page_id, *row[2:])
        self._db.run("DELETE FROM text WHERE id = ?", page_id)
        self._db.run("DELETE FROM vector WHERE id = ?", page_id)
        return str(row[-1])


def _checked(row: Sequence[Any]) -> PageFacts:
    """Make facts of a row of a page with its checksum; a damaged file may hold anything in any column."""
    *facts, known = row
    if row_sum(facts) != known:
        refuse_damaged(f"the facts of {str(facts[0])[:40]!r} are not what was written")
    return PageFacts(**dict(zip(_FACTS, facts, strict=True)))
