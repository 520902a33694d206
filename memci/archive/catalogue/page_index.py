"""The derived index of one session: the facts of its pages, and full-text search over them."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self

import attrs

from memci.archive import disk, refusal
from memci.archive.catalogue import index_file, index_folder
from memci.archive.catalogue.index_file import COLUMNS, PAGES, Database, refuse_damaged
from memci.archive.catalogue.index_folder import IndexPlace
from memci.archive.catalogue.index_writer import IndexWriter
from memci.archive.catalogue.page_facts import Checkpoint, PageFacts
from memci.archive.catalogue.page_search import IndexHit, PageSearch, TermCounts
from memci.archive.catalogue.passage_search import PassageSearch
from memci.archive.catalogue.search import ExtraPage, Filter
from memci.archive.catalogue.terms import term_line
from memci.chapters.address import page_number
from memci.errors import CorruptError, PermissionDeniedError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.embedding import Embedder

_BATCH_PAGES = 256
_CHECKPOINT = tuple(field.name for field in attrs.fields(Checkpoint))
_NAMED = "WHERE number = ? AND name = ?"
_CHECKPOINTS = f"SELECT {', '.join(_CHECKPOINT)} FROM checkpoint"  # noqa: S608 names of columns
_BY_AGE = "ORDER BY first_seq, number, name"
# The newest page is searchable only once it is complete; until then its text may be of any time. Notes have numbers below 0.
_COMPLETE = "(number < 0 OR number < (SELECT max(number) FROM page))"
_ALL_ROWS = (
    f"SELECT {COLUMNS} FROM page ORDER BY number, name",  # noqa: S608 names of columns
    f"SELECT name, CASE WHEN {_COMPLETE} THEN lines END, said.entries FROM page JOIN said USING (id) ORDER BY number, name",  # noqa: S608
    "SELECT key, seq FROM key ORDER BY key, seq",
    "SELECT call_id, seq, page FROM call ORDER BY seq, call_id",
    f"{_CHECKPOINTS} ORDER BY seq",
    "SELECT seq, name, value FROM annotation ORDER BY seq, name",
    f"SELECT term, doc, col, offset FROM term WHERE doc IN (SELECT id FROM page WHERE {_COMPLETE})",  # noqa: S608 (text above)
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
        self.path, self._read_only = path, read_only
        self._opened: Database | None = None
        self._used: int | None = None  # while it is open, what keeps it in its directory
        self._db()

    @classmethod
    def at(cls, place: IndexPlace, *, read_only: bool) -> Self:
        """Open the index at a place, which others may be opening too, and other indexes for which there is no room giving way."""
        try:
            disk.refuse_links(str(place.root), str(place.directory))
            if read_only:
                return cls(place.path, read_only=True)
            if place.most_bytes is None:
                with disk.locked(str(place.directory)):
                    return cls(place.path)
            with disk.locked(str(place.root)):
                used = index_folder.use(place, place.most_bytes)
                try:
                    made = cls(place.path)
                except BaseException:
                    os.close(used)
                    raise
        except OSError as error:
            raise refusal.unavailable(error, "the directory of the indexes") from error
        made._used = used
        return made

    @property
    def has_file(self) -> bool:
        """Tell whether it is stored; one in memory is lost when it is closed."""
        return self.path is not None

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
        with self._db().transaction():
            yield (writer := IndexWriter(self._db()))
            writer.finish()

    def in_place(self) -> AbstractContextManager[None]:
        """Let large transactions write half as much, while the block lasts."""
        return self._db().in_place()

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
            if self.path is not None:
                index_file.remove(self.path)
            self._db()
            return
        if is_read:
            message = "another process reads the index of pages, which cannot be emptied meanwhile: do it again"
            raise UnavailableError(message)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield all that it holds, in an order that depends on nothing else: two indexes of one journal yield the same."""
        for sql in _ALL_ROWS:
            for row in self._db().each(sql):
                yield (*row[:-1], index_file.unpacked(row[-1])) if isinstance(row[-1], bytes) else row

    def check(self) -> None:
        """Raise ``CorruptError`` where the full-text index is not one. O(its size)."""
        if not self._read_only:
            self._db().run("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")

    def copy_in_memory(self) -> "PageIndex":
        """Return a copy that lives in memory and can be written to. O(size of the file)."""
        copy = PageIndex(None)
        self._db().copy_to(copy._db())
        return copy

    def branch(self) -> "PageIndex":
        """Return an index that begins as this one is, can be written to, and is not kept. O(size of the file)."""
        return self.copy_in_memory()

    def close(self) -> None:
        """Give the file back. May be called twice."""
        if self._opened is not None:
            self._opened.close()
        if self._used is not None:
            os.close(self._used)
            self._used = None

    def find_page(self, index: str) -> PageFacts | None:
        """Return the facts of a page, or ``None`` where there is none. O(1); O(pages) where there is none."""
        found = self._facts(_NAMED, page_number(index), index)
        if not found and any(facts.index == index for facts in self.all_pages()):
            refuse_damaged("a page is not found by its name")
        return found[0] if found else None

    def find_file(self, index: str, seq: int) -> tuple[int, str] | None:
        """Return revision and SHA-256 of a page's file; ``None`` where it has none, or the index is not at the record *seq*."""
        sql = f"SELECT revision, sha256 FROM page {_NAMED} AND sha256 <> '' AND (SELECT seq FROM meta) = ?"  # noqa: S608
        return self._db().one(sql, page_number(index), index, seq)  # type: ignore[no-any-return]

    def _facts(self, condition: str, *values: object) -> list[PageFacts]:
        return [index_file.facts_of(row) for row in self._db().run(f"{PAGES} {condition}", *values)]

    def all_pages(self) -> list[PageFacts]:
        """Return the facts of all pages and notes, oldest first: by first entry, then by number. O(pages)."""
        sums = "(SELECT page_sum FROM meta)"
        rows = self._db().run(f"SELECT {COLUMNS}, page_sum, {sums} FROM page {_BY_AGE}")  # noqa: S608 names of columns
        if sum(row[-2] for row in rows) != (rows[0][-1] if rows else self._db().one("SELECT page_sum FROM meta")[0]):
            refuse_damaged("pages are missing, or there twice")
        return [index_file.facts_of(row[:-1]) for row in rows]

    def pages(self, *, numbers: tuple[int, int] = (0, _MOST)) -> Iterator[PageFacts]:
        """Yield the facts of pages with these numbers, by age; the index may change meanwhile, what moves then may be missed."""
        following = f"WHERE number BETWEEN ? AND ? AND (first_seq, number, name) > (?, ?, ?) {_BY_AGE} LIMIT {_BATCH_PAGES}"
        last: tuple[int, int, str] = (-1, -1, "")
        while found := self._facts(following, *numbers, *last):
            yield from found
            last = (found[-1].first_seq, page_number(found[-1].index), found[-1].index)

    def page_range(self, offset: int, limit: int) -> list[PageFacts]:
        """Return the facts of *limit* pages from a position on, oldest first. O(position), at a few nanoseconds each."""
        return self._facts(f"WHERE number >= 0 {_BY_AGE} LIMIT ? OFFSET ?", limit, offset)

    def count_pages(self, first: int = 0, last: int = _MOST) -> int:
        """Return how many pages have these numbers, both ends included. O(their number), at a few nanoseconds each."""
        return int(self._db().one("SELECT count(*) FROM page WHERE number BETWEEN ? AND ?", first, last)[0])

    def pages_holding(self, text: str, limit: int) -> list[str]:
        """Return the indexes of the newest *limit* complete pages that hold the words of a text one after the other."""
        phrase = term_line(text).strip()
        sql = "SELECT name FROM search JOIN page ON id = search.rowid WHERE search MATCH ? ORDER BY search.rowid DESC LIMIT ?"
        return [name for (name,) in self._db().run(sql, f'"{phrase}"', limit)] if phrase else []

    def find_key(self, key: str) -> list[int]:
        """Return the sequence numbers of the entries that were appended under an idempotency key, in order."""
        return [seq for (seq,) in self._db().run("SELECT seq FROM key WHERE key = ? ORDER BY seq", key)]

    def annotations(self, seqs: Sequence[int]) -> dict[int, dict[str, str]]:
        """Return what is said of messages, as JSON by name, by the sequence numbers of those of which something is."""
        found: dict[int, dict[str, str]] = {}
        for seq, name, value in self._db().chosen(
            "SELECT seq, name, value FROM annotation WHERE seq IN", seqs, "ORDER BY seq, name"
        ):
            found.setdefault(seq, {})[name] = value
        return found

    def entry_seqs(self, page: str) -> list[int]:
        """Return the sequence numbers of a page's entries, in the order of their positions."""
        found = self._db().one(f"SELECT said.entries FROM page JOIN said USING (id) {_NAMED}", page_number(page), page)  # noqa: S608
        return [entry[0] for entry in index_file.unpacked(found[0])[1]] if found else []

    def find_call(self, call_id: str, *, before: int = _MOST) -> tuple[str, int] | None:
        """Return page and sequence number of the latest call with this id and no answer, made before an event."""
        sql = "SELECT page, seq FROM call WHERE call_id = ? AND seq < ? ORDER BY seq DESC LIMIT 1"
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

    def search(  # noqa: PLR0913 (each narrows it in another way)
        self,
        query: str,
        *,
        limit: int,
        only: Filter | None = None,
        extra: Sequence[ExtraPage] = (),
        embedder: "Embedder | None" = None,
        among: TermCounts | None = None,
    ) -> list[IndexHit]:
        """Return at most *limit* pages that answer a query, best first: any of its words counts, nothing in it is syntax.

        Costs about what the one full-text query costs, and a bounded number of pages beside it; a filter is asked for each match,
        and limited to roles, the text of each match may be read. *extra* pages are not in the index, or not as they are now. With
        an embedder, pages of a similar meaning are found too, except where roles limit the search: missing vectors are made, of
        the youngest 256 pages or 100,000 characters, and all vectors are read: O(pages), at a microsecond or two each.
        Scores of several sessions compare where words weigh what they do *among* all of them.
        """
        if embedder is not None:
            self._add_vectors(embedder)
        return PageSearch(self._db(), query, extra, embedder, among).hits(limit, only or Filter())

    def find_passages(  # noqa: PLR0913 (each narrows it in another way)
        self,
        query: str,
        *,
        limit: int,
        characters: int,
        only: Filter,
        extra: Sequence[ExtraPage] = (),
        least: Callable[[float], float] | None = None,
    ) -> list[IndexHit]:
        """Return at most *limit* pages that hold rare words of a query, best first, each with a passage of so many *characters*.

        *least* returns the score that is needed, for that of the best page; with ``None`` any will do.

        Costs the same in a history of any length: at most 8 words are searched for, none that more than 50 pages hold, at most
        200 places are scored, and the text is read of the ten best pages and their neighbours.
        """
        return PassageSearch(self._db(), query, extra, characters).hits(limit, only, least)

    def count_terms(self, query: str, *, extra: Sequence[ExtraPage] = ()) -> TermCounts:
        """Return how many pages there are, and how many hold each word of a query; *extra* pages too. O(words)."""
        return PageSearch(self._db(), query, extra).counted

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
        if self._read_only and self.path is not None:
            self.close()
            self._opened = index_file.open_for_reading(self.path)
        elif self._opened is None:
            self._opened = index_file.open_in_memory() if self.path is None else index_file.open_for_writing(self.path)
        return self._opened

    def _position(self) -> tuple[int, str]:
        row = self._db().one("SELECT seq, mark FROM meta")
        if row is None or [type(value) for value in row] != [int, str]:
            refuse_damaged("its metadata row is missing")
        return row  # type: ignore[no-any-return]  # the types were looked at
