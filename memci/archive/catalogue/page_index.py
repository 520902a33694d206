"""The derived index of one session: the facts of its pages, and full-text search over them."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import attrs
import orjson

from memci.archive import disk, refusal
from memci.archive.catalogue import index_file
from memci.archive.catalogue.index_file import COLUMNS, FACTS, PAGES, Database, refuse_damaged, row_sum, storable
from memci.archive.catalogue.page_facts import Checkpoint, CheckpointKind, PageFacts
from memci.archive.catalogue.page_search import IndexHit, PageSearch
from memci.archive.catalogue.search import APART, ExtraPage, Filter, PageText, term_line
from memci.chapters.address import is_note, page_number, segment_of
from memci.chapters.dates import span
from memci.errors import CorruptError, PageNotFoundError, PermissionDeniedError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.embedding import Embedder

_BATCH_PAGES = 256
_CHECKPOINT = tuple(field.name for field in attrs.fields(Checkpoint))
_ADD_TEXT = "INSERT INTO search (rowid, user, page, contents) VALUES (?, ?, ?, ?)"
_ADD_PAGE = f"INSERT INTO page ({COLUMNS}, page_sum, id, number) VALUES ({', '.join('?' * (len(FACTS) + 3))})"  # noqa: S608
_CHANGE_PAGE = f"UPDATE page SET ({COLUMNS}, page_sum) = ({', '.join('?' * (len(FACTS) + 1))}) WHERE id = ?"  # noqa: S608
_NAMED = "WHERE number = ? AND name = ?"
_STORED = f"""SELECT {COLUMNS.replace(" entries", " page.entries")}, page_sum, page.id, lines, said.entries
FROM page LEFT JOIN said USING (id) {_NAMED}"""  # noqa: S608
_CHECKPOINTS = f"SELECT {', '.join(_CHECKPOINT)} FROM checkpoint"  # noqa: S608 names of columns
_BY_AGE = "ORDER BY first_seq, number, name"
_NEWEST = "SELECT name FROM page WHERE number >= 0 ORDER BY number DESC LIMIT 1"
# The newest page is searchable only once it is complete; until then its text may be of any time. Notes have numbers below 0.
_COMPLETE = "(number < 0 OR number < (SELECT max(number) FROM page))"
_ALL_ROWS = (
    f"SELECT {COLUMNS} FROM page ORDER BY number, name",  # noqa: S608 names of columns
    f"SELECT name, CASE WHEN {_COMPLETE} THEN lines END, said.entries FROM page JOIN said USING (id) ORDER BY number, name",  # noqa: S608
    "SELECT key, seq FROM key ORDER BY key, seq",
    "SELECT call_id, seq, page FROM call ORDER BY seq, call_id",
    f"{_CHECKPOINTS} ORDER BY seq",
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

    def close(self) -> None:
        """Give the file back. May be called twice."""
        if self._opened is not None:
            self._opened.close()

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


@attrs.define(eq=False)
class _Page:
    """A page as a transaction leaves it."""

    id: int
    facts: dict[str, Any]
    contents: str = ""  # terms of its contents entry
    entries: list[list[Any]] = attrs.field(factory=list)  # seq, role, text, time, key, and the calls it answers: id, seq, page
    stored: int | None = None  # sum of its facts as they were; None for a new one
    former: tuple[str, list[list[Any]]] | None = None  # contents entry and entries as they are searched; None where they are not
    searched: bool = False  # whether it is searchable
    changed: bool = False
    said: bool = False  # whether entries or what is searched of them changed


class IndexWriter:
    """Changes a page index, within the transaction of ``PageIndex.write``; *seq* is the last record in it as that began.

    Changes of pages are kept in memory, and written at the end.
    """

    def __init__(self, database: Database) -> None:
        self._db = database
        row = database.one("SELECT seq FROM meta")
        self.seq: int = 0 if row is None else row[0]  # none in a damaged file, which can still be cleared
        self._pages: dict[str, _Page] = {}
        self._position: tuple[int, str] | None = None
        self._calls: list[tuple[str, int, str]] = []  # new ones without an answer: id, seq and page
        self._answered: dict[int, list[list[Any]]] = {}  # calls by the new entries that answer them
        self._sums = [0, 0, 0, 0]  # what pages, entries, terms and page_sum of the table meta change by
        self._last: tuple[str | None, int] | None = None  # the page with the highest number, and the highest id

    def set_seq(self, seq: int, mark: str) -> None:
        """Note the last journal record in the index, and a text that tells its journal from others."""
        self._position = seq, mark

    def clear(self) -> None:
        """Empty the index: it is as if it was new. The file keeps its size."""
        self._db.create()
        for kept in (self._pages, self._calls, self._answered):
            kept.clear()
        self._sums, self._last = [0, 0, 0, 0], None

    def add_checkpoint(self, checkpoint: Checkpoint, *, keep: int | None) -> None:
        """Add a checkpoint; of those of the kind ``auto`` only the newest *keep* are left, ``None`` for all."""
        self._db.run(f"INSERT INTO checkpoint ({', '.join(_CHECKPOINT)}) VALUES (?, ?, ?, ?, ?, ?)", *attrs.astuple(checkpoint))  # noqa: S608
        if keep is not None:
            oldest = "SELECT seq FROM checkpoint WHERE kind = ? ORDER BY seq DESC LIMIT -1 OFFSET ?"
            self._db.run(f"DELETE FROM checkpoint WHERE seq IN ({oldest})", CheckpointKind.AUTO.value, keep)  # noqa: S608 (text above)

    def put_page(self, facts: PageFacts) -> None:
        """Add a page, or replace the facts of one; a page added later counts as younger in search, a note as older than all."""
        newest, youngest = self._ends()
        is_newest = (number := page_number(facts.index)) >= 0 and (newest is None or number > page_number(newest))
        page = None if is_newest else self._find(facts.index)
        if page is None:
            page = self._pages[facts.index] = _Page(youngest + 1 if number >= 0 else APART * number, {}, said=True)
            self._last = facts.index if is_newest else newest, max(youngest, page.id)
        page.facts, page.changed = {name: getattr(facts, name) for name in FACTS}, True

    def change_page(self, index: str, **changes: Any) -> None:  # noqa: ANN401 the attributes of PageFacts
        """Change one or more facts of a page, by the names of their attributes."""
        page = self._page(index)
        page.facts |= changes
        page.changed = True

    def add_entry(  # noqa: PLR0913 the parts of an entry
        self, *, seq: int, page: str, position: int, role: str, text: str, at: str, key: str | None = None
    ) -> None:
        """Add an entry of the record *seq* to a page; those at *position* (from 1) and after it move on. *at* is any text."""
        answers = self._answered[seq] = []
        found = self._page(page)
        found.entries.insert(position - 1, [seq, *map(storable, (role, text, at, key)), answers])
        found.said = True
        if key is not None:
            self.add_key(key, seq)

    def add_key(self, key: str, seq: int) -> None:
        """Note the idempotency key of the record *seq*."""
        self._db.run("INSERT INTO key VALUES (?, ?)", key, seq)

    def add_call(self, call_id: str, *, seq: int, page: str) -> None:
        """Add a call that the entry *seq* makes and that has no answer yet."""
        self._calls.append((storable(call_id), seq, page))

    def answer_call(self, call_id: str, *, seq: int, call_seq: int) -> None:
        """Note that the entry *seq* answers the call with this id that the entry *call_seq* made."""
        asked = (storable(call_id), call_seq)
        call = next((call for call in reversed(self._calls) if call[:2] == asked), None)
        if call is not None:
            self._calls.remove(call)
        else:
            one = "SELECT rowid FROM call WHERE call_id = ? AND seq = ? LIMIT 1"
            call = self._db.one(f"DELETE FROM call WHERE rowid = ({one}) RETURNING *", *asked)  # noqa: S608 (text above)
        if call is not None and seq in self._answered:
            self._answered[seq].append(list(call))

    def index_page(self, index: str, *, entry: str | None = None) -> None:
        """Make a page searchable, with its contents entry, as it is when the transaction ends; ``None`` keeps the entry."""
        page = self._page(index)
        first_at, last_at = span(entry[3] for entry in page.entries)
        self.change_page(index, first_at=first_at, last_at=last_at)
        page.searched = page.said = True
        if entry is not None:
            page.contents = term_line(entry)

    def drop_page(self, index: str) -> None:
        """Remove a page, if it is there, with its entries, keys and calls. O(its size)."""
        if (page := self._find(index)) is not None:
            self._drop_entries(page, 1)
            del self._pages[index]
            self._last = None
            if page.stored is not None:
                self._sums[3] -= page.stored
                self._remove_text(page)
                for table in ("page", "said"):
                    self._db.run(f"DELETE FROM {table} WHERE id = ?", page.id)  # noqa: S608 (one of two)

    def newest_page(self) -> str | None:
        """Return the index of the page with the highest number, or ``None``; notes are none."""
        return self._ends()[0]

    def drop_from(self, index: str, position: int) -> None:
        """Go back to before an entry: it, the entries after it in its page, and all later pages go, with their keys and calls.

        Calls that they answered are open again. An emptied page goes; else facts, but for ``tokens``, and text are mended.
        """
        number = page_number(index)
        stored = [name for (name,) in self._db.run("SELECT name FROM page WHERE number > ?", number)]
        for later in dict.fromkeys((*stored, *self._pages)):
            if segment_of(later) == segment_of(index) and page_number(later) > number:
                self.drop_page(later)
        page = self._page(index)
        self._drop_entries(page, position)
        if not page.entries:
            self.drop_page(index)
            return
        seqs = [entry[0] for entry in page.entries]
        self.change_page(index, entries=len(seqs), first_seq=min(seqs), last_seq=max(seqs))
        if page.searched:
            self.index_page(index)

    def put_vectors(self, model: str, vectors: Sequence[tuple[str, float, bytes]]) -> None:
        """Keep vectors (page, scale, codes) until a page or its text changes. Those that another model made go."""
        if self._db.one("SELECT model FROM meta") != (model,):
            self._db.run("DELETE FROM vector")
            self._db.run("UPDATE meta SET model = ?", model)
        put = f"INSERT OR IGNORE INTO vector SELECT id, ?, ? FROM page JOIN said USING (id) {_NAMED} AND lines IS NOT NULL"  # noqa: S608
        self._db.run_many(put, [(scale, codes, page_number(index), index) for index, scale, codes in vectors])

    def finish(self) -> None:
        """Write the changes of pages."""
        pages = [page for page in self._pages.values() if page.changed or page.said]
        rows: dict[bool, list[Sequence[object]]] = {True: [], False: []}
        for page in pages:
            row = [int(value) if isinstance(value, bool) else storable(value) for value in page.facts.values()]
            total = row_sum(row)
            number = (page_number(page.facts["index"]),) if page.stored is None else ()
            rows[page.stored is None].append((*row, total, page.id, *number))
            self._sums[3] += total - (page.stored or 0)
        self._db.run_many(_ADD_PAGE, rows[True])
        self._db.run_many(_CHANGE_PAGE, rows[False])
        rows_said: list[Sequence[object]] = []
        for page in sorted((page for page in pages if page.said), key=lambda page: page.id):
            # By age, the old words of each page just before the new: else FTS5 writes what it has in between.
            same = self._remove_text(page)
            text = (same or index_file.text_of("", page.entries)) if page.searched else None
            line = None if text is None else orjson.dumps(text.lines).decode()
            rows_said.append((page.id, line, index_file.packed(page.contents, page.entries)))
            if text is not None:
                self._count(text, 1)
                self._db.run(_ADD_TEXT, page.id, text.user, text.page, page.contents)
        self._db.run_many("INSERT OR REPLACE INTO said VALUES (?, ?, ?)", rows_said)
        self._db.run_many("INSERT INTO call VALUES (?, ?, ?)", self._calls)
        sums = "pages = pages + ?, entries = entries + ?, terms = terms + ?, page_sum = page_sum + ?"
        self._db.run(f"UPDATE meta SET {sums}", *self._sums)  # noqa: S608 (text above)
        if self._position is not None:
            self._db.run("UPDATE meta SET seq = ?, mark = ?", *self._position)

    def _find(self, index: str) -> _Page | None:
        """Return a page, read where this transaction did not change it yet."""
        if index not in self._pages:
            row = self._db.one(_STORED, page_number(index), index)
            if row is None:
                return None
            *facts, total, page_id, lines, entries = row
            contents, said = index_file.unpacked(entries)
            page = _Page(page_id, dict(zip(FACTS, facts, strict=True)), contents, said, total, searched=lines is not None)
            page.former = (contents, list(said)) if page.searched else None
            self._pages[index] = page
        return self._pages[index]

    def _page(self, index: str) -> _Page:
        page = self._find(index)
        if page is None:
            message = f"the index knows no page {index}"
            raise PageNotFoundError(message, index=index)
        return page

    def _ends(self) -> tuple[str | None, int]:
        """Return the index of the page with the highest number, and the highest id."""
        if self._last is None:
            newest, youngest = self._db.one(f"SELECT ({_NEWEST}), max(id) FROM page")  # noqa: S608 (text above)
            named = [name for name in (*self._pages, newest) if name is not None and not is_note(name)]
            self._last = max(named, key=page_number, default=None), max([youngest or 0, 0, *(p.id for p in self._pages.values())])
        return self._last

    def _drop_entries(self, page: _Page, position: int) -> None:
        """Take out entries, with their keys and calls; calls that they answered are open again."""
        gone = page.entries[position - 1 :]
        del page.entries[position - 1 :]
        page.said = True
        seqs = {entry[0] for entry in gone}
        self._calls += [tuple(call) for *_, answers in gone for call in answers if call[1] not in seqs]
        self._calls = [call for call in self._calls if call[1] not in seqs]
        self._db.run_many("DELETE FROM call WHERE seq = ?", [(seq,) for seq in seqs])
        self._db.run_many("DELETE FROM key WHERE key = ? AND seq = ?", [(key, seq) for seq, _, _, _, key, _ in gone if key])

    def _remove_text(self, page: _Page) -> PageText | None:
        """Make what is stored of a page unsearchable, and return what it was, if the page's entries are still the same."""
        if page.former is None:
            return None
        self._count(text := index_file.text_of(*page.former), -1)
        # FTS5 takes a row out only when it is told the very text that went in.
        remove = "INSERT INTO search (search, rowid, user, page, contents) VALUES ('delete', ?, ?, ?, ?)"
        self._db.run(remove, page.id, text.user, text.page, text.contents)
        self._db.run("DELETE FROM vector WHERE id = ?", page.id)
        return text if page.former[1] == page.entries else None

    def _count(self, text: PageText, sign: int) -> None:
        for place, number in enumerate((1, len(text.lines) // 2, sum(text.lines[2::2]))):
            self._sums[place] += sign * number
