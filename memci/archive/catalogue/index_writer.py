"""The writing side of a page index: one transaction."""

from collections.abc import Sequence
from typing import Any

import attrs

from memci.archive.catalogue.checkpoint import Checkpoint, CheckpointKind
from memci.archive.catalogue.index_file import Database, damaged, row_sum, storable
from memci.archive.catalogue.page_facts import PageFacts
from memci.archive.catalogue.search import page_text, term_line
from memci.errors import PageNotFoundError

FACTS = tuple(field.name for field in attrs.fields(PageFacts))
COLUMNS = ", ".join(("name", *FACTS[1:]))
"""The columns of a page's facts, in the order of the attributes of ``PageFacts``."""

_PUT_PAGE = (
    f"INSERT INTO page ({COLUMNS}, number) VALUES ({', '.join('?' * (len(FACTS) + 1))}) ON CONFLICT (name) DO UPDATE SET "  # noqa: S608
    + ", ".join(f"{name} = excluded.{name}" for name in FACTS[1:])
)


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
        self._db.run("UPDATE meta SET seq = ?, mark = ?", seq, storable(mark))

    def clear(self) -> None:
        """Empty the index: it is as if it was new. The file keeps its size."""
        self._db.create()
        self._waiting.clear()
        self._changed.clear()

    def add_checkpoint(self, checkpoint: Checkpoint, *, keep: int | None) -> None:
        """Add a checkpoint; of those of the kind ``auto`` only the newest *keep* are left, ``None`` for all."""
        values = map(_stored, attrs.astuple(checkpoint))
        self._db.run("INSERT INTO checkpoint (id, seq, label, kind, turn, at) VALUES (?, ?, ?, ?, ?, ?)", *values)
        if keep is not None:
            oldest = "SELECT seq FROM checkpoint WHERE kind = ? ORDER BY seq DESC LIMIT -1 OFFSET ?"
            self._db.run(f"DELETE FROM checkpoint WHERE seq IN ({oldest})", CheckpointKind.AUTO.value, keep)  # noqa: S608 (text above)

    def add_entry(  # noqa: PLR0913 the columns of a row
        self, *, seq: int, page: str, position: int, role: str, text: str, at: str, key: str | None = None
    ) -> None:
        """Add an entry of the record *seq*; those of its page at *position* (from 1) and after it move on. O(their number).

        Its text is what a reader sees, calls included; *at* is ISO 8601, any other text is indexed as it is.
        """
        self._db.run("UPDATE entry SET position = position + 1 WHERE page = ? AND position >= ?", page, position)
        row = (seq, page, position, role, storable(at), None if key is None else storable(key), storable(text))
        self._db.run("INSERT INTO entry (seq, page, position, role, at, key, text) VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

    def add_call(self, call_id: str, *, seq: int, page: str) -> None:
        """Add a call that the entry *seq* makes and that has no answer yet."""
        self._db.run("INSERT INTO call (call_id, seq, page) VALUES (?, ?, ?)", storable(call_id), seq, page)

    def answer_call(self, call_id: str, *, seq: int, call_seq: int) -> None:
        """Note that the entry *seq* answers the call with this id that the entry *call_seq* made."""
        self._db.run(
            "UPDATE call SET answered = ? WHERE id = "
            "(SELECT id FROM call WHERE call_id = ? AND seq = ? AND answered IS NULL ORDER BY id LIMIT 1)",
            seq, storable(call_id), call_seq,
        )  # fmt: skip

    def put_page(self, facts: PageFacts) -> None:
        """Add a page, or replace the facts of one; a page added later counts as younger in search."""
        number = int(facts.index.rpartition("-")[2])
        self._changed.add(facts.index)
        self._db.run(_PUT_PAGE, *(_stored(value) for value in attrs.astuple(facts, recurse=False)), number)

    def change_page(self, index: str, **changes: Any) -> None:  # noqa: ANN401 the attributes of PageFacts
        """Change one or more facts of a page, by the names of their attributes."""
        assignments = ", ".join(f"{name} = ?" for name in changes)
        values = map(_stored, changes.values())
        self._db.run(f"UPDATE page SET {assignments} WHERE id = ?", *values, self._page_id(index))  # noqa: S608 names of attributes
        self._changed.add(index)

    def index_page(self, index: str, *, entry: str | None = None) -> None:
        """Make a page searchable, with its contents entry, as it is when the transaction ends; ``None`` keeps the entry."""
        self._page_id(index)
        self._waiting[index] = self._waiting.get(index) if entry is None else entry

    def finish(self) -> None:
        """Do what was left for the end of the transaction."""
        for name in self._changed:
            row = self._db.one(f"SELECT {COLUMNS}, page_sum FROM page WHERE name = ?", name)  # noqa: S608 names of columns
            if row is None:
                message = f"page {name} is gone"
                raise damaged(message)
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
        for (seq,) in self._db.all("SELECT seq FROM entry WHERE page = ?", index):
            self._drop_entry(seq)

    def newest_page(self) -> str | None:
        """Return the index of the page with the highest number, ``None`` where there is none."""
        row = self._db.one("SELECT name FROM page ORDER BY number DESC LIMIT 1")
        return None if row is None else row[0]

    def drop_from(self, index: str, position: int) -> None:
        """Go back to before an entry: it, the entries after it in its page, and all later pages go, with their keys and calls.

        Calls that the dropped entries answered are open again. The page goes too when it loses all its entries; else its facts
        and its searchable text are mended, but for ``tokens``. O(size of the pages concerned).
        """
        segment, _, number = index.rpartition("-")
        for (later,) in self._db.all("SELECT name FROM page WHERE number > ?", int(number)):
            if later.rpartition("-")[0] == segment:
                self.drop_page(later)
        for (gone,) in self._db.all("SELECT seq FROM entry WHERE page = ? AND position >= ?", index, position):
            self._drop_entry(gone)
        left = [row[0] for row in self._db.all("SELECT seq FROM entry WHERE page = ? ORDER BY position", index)]
        if not left:
            self.drop_page(index)
            return
        self.change_page(index, entries=len(left), first_seq=min(left), last_seq=max(left))
        if self._db.one("SELECT 1 FROM text JOIN page USING (id) WHERE name = ?", index):
            self.index_page(index)

    def _page_id(self, index: str) -> int:
        row = self._db.one("SELECT id FROM page WHERE name = ?", index)
        if row is None:
            message = f"the index knows no page {index}"
            raise PageNotFoundError(message, index=index)
        return int(row[0])

    def _drop_entry(self, seq: int) -> None:
        self._db.run("UPDATE call SET answered = NULL WHERE answered = ?", seq)
        self._db.run("DELETE FROM call WHERE seq = ?", seq)
        self._db.run("DELETE FROM entry WHERE seq = ?", seq)

    def _add_text(self, index: str, page_id: int, contents: str) -> None:
        entries = self._db.all("SELECT role, text, at FROM entry WHERE page = ? ORDER BY position", index)
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


def _stored(value: object) -> object:
    return storable(value) if isinstance(value, str) else value
