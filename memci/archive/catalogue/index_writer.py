"""Changes of a page index, within one transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import orjson

from memci.archive.catalogue import index_file
from memci.archive.catalogue.index_file import COLUMNS, FACTS, Database, row_sum, storable
from memci.archive.catalogue.page_facts import Checkpoint, CheckpointKind, PageFacts
from memci.archive.catalogue.search import APART, PageText
from memci.archive.catalogue.terms import term_line
from memci.chapters.address import is_note, page_number, segment_of
from memci.chapters.dates import span
from memci.errors import PageNotFoundError
from memci.messages import codec

_CHECKPOINT = tuple(field.name for field in attrs.fields(Checkpoint))
_NAMED = "WHERE number = ? AND name = ?"
_ADD_TEXT = "INSERT INTO search (rowid, user, page, contents) VALUES (?, ?, ?, ?)"
_ADD_PAGE = f"INSERT INTO page ({COLUMNS}, page_sum, id, number) VALUES ({', '.join('?' * (len(FACTS) + 3))})"  # noqa: S608
_CHANGE_PAGE = f"UPDATE page SET ({COLUMNS}, page_sum) = ({', '.join('?' * (len(FACTS) + 1))}) WHERE id = ?"  # noqa: S608
_STORED = f"""SELECT {COLUMNS.replace(" entries", " page.entries")}, page_sum, page.id, lines, said.entries
FROM page LEFT JOIN said USING (id) {_NAMED}"""  # noqa: S608
_NEWEST = "SELECT name FROM page WHERE number >= 0 ORDER BY number DESC LIMIT 1"


@attrs.define(eq=False)
class _Page:
    """A page as a transaction leaves it."""

    id: int
    facts: dict[str, Any]
    contents: str = ""  # terms of its contents entry
    entries: list[list[Any]] = attrs.field(factory=list)  # seq, role, text, time, key, name, and calls it answers: id, seq, page
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
        *row, variables = attrs.astuple(checkpoint, recurse=False)
        marks = ", ".join("?" * len(_CHECKPOINT))
        values = (*row, codec.encode(variables).decode())
        self._db.run(f"INSERT INTO checkpoint ({', '.join(_CHECKPOINT)}) VALUES ({marks})", *values)  # noqa: S608 (names of columns)
        if keep is not None:
            oldest = "SELECT seq FROM checkpoint WHERE kind = ? ORDER BY seq DESC LIMIT -1 OFFSET ?"
            self._db.run(f"DELETE FROM checkpoint WHERE seq IN ({oldest})", CheckpointKind.AUTO.value, keep)  # noqa: S608 (text above)

    def annotate(self, seq: int, values: Mapping[str, str | None]) -> None:
        """Say something of a message by names, as JSON; ``None`` takes it away."""
        self._db.run_many("DELETE FROM annotation WHERE seq = ? AND name = ?", [(seq, name) for name in values])
        rows = [(seq, name, value) for name, value in values.items() if value is not None]
        self._db.run_many("INSERT INTO annotation VALUES (?, ?, ?)", rows)

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
        self, *, seq: int, page: str, position: int, role: str, text: str, at: str, key: str | None = None, name: str = ""
    ) -> None:
        """Add an entry of the record *seq* to a page; those at *position* (from 1) and after it move on.

        *at* is any text; *name* is that of the speaker, with which *text* begins; empty where there is none.
        """
        answers = self._answered[seq] = []
        found = self._page(page)
        found.entries.insert(position - 1, [seq, *map(storable, (role, text, at, key, name)), answers])
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
        self._db.run_many("DELETE FROM key WHERE key = ? AND seq = ?", [(key, seq) for seq, _, _, _, key, *_ in gone if key])

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
