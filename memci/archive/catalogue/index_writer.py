"""The writing side of a page index: one transaction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from memci.archive.catalogue.checkpoint import Checkpoint, CheckpointKind
from memci.archive.catalogue.index_file import damaged, mapped_errors, row_sum, storable
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.catalogue.search import PageText, page_text, term_line
from memci.errors import PageNotFoundError

if TYPE_CHECKING:
    import sqlite3

_FACTS = tuple(field.name for field in attrs.fields(PageFacts))
COLUMNS = ", ".join(("name", *_FACTS[1:]))
"""The columns of a page's facts, in the order of the attributes of ``PageFacts``."""

CHECKPOINT_COLUMNS = ", ".join(field.name for field in attrs.fields(Checkpoint))
"""The columns of a checkpoint, in the order of its attributes."""

_PUT_PAGE = (
    f"INSERT INTO page ({COLUMNS}, number) VALUES ({', '.join('?' * (len(_FACTS) + 1))}) ON CONFLICT (name) DO UPDATE SET "  # noqa: S608
    + ", ".join(f"{name} = excluded.{name}" for name in _FACTS[1:])
)


class IndexWriter:
    """Changes a page index, within the transaction of ``PageIndex.write``.

    Attributes:
        seq: The last journal record in the index, as it was when the transaction began: what another process wrote is in it.
    """

    def __init__(self, connection: "sqlite3.Connection") -> None:
        self._connection = connection
        row = self._one("SELECT seq FROM meta")
        self.seq: int = 0 if row is None else row[0]  # none in a damaged file, which can still be cleared
        # Pages to be made searchable, with the new text of their contents entries. A page that is completed and folded in one
        # transaction is so indexed once.
        self._waiting: dict[str, str | None] = {}
        # Pages whose facts have another checksum at the end of the transaction.
        self._changed: set[str] = set()

    def set_seq(self, seq: int, mark: str) -> None:
        """Note the last journal record that is in the index, and a text that tells its journal from others."""
        self._run("UPDATE meta SET seq = ?, mark = ?", seq, storable(mark))

    def clear(self) -> None:
        """Empty the index: it is as if it was new. The file keeps its size."""
        for table in ("page", "entry", "call", "text", "vector", "checkpoint"):
            self._run(f"DELETE FROM {table}")  # noqa: S608 (the words above)
        self._run("INSERT INTO search (search) VALUES ('delete-all')")
        self._run("DELETE FROM meta")
        self._run("INSERT INTO meta VALUES (1, 0, '', 0, 0, 0, 0, 0, '')")
        self._waiting.clear()
        self._changed.clear()

    def add_checkpoint(self, checkpoint: Checkpoint, *, keep: int | None) -> None:
        """Add a checkpoint; of those of the kind ``auto`` only the newest *keep* are left, ``None`` for all."""
        self._run(
            f"INSERT INTO checkpoint ({CHECKPOINT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 (names of attributes)
            *map(_stored, attrs.astuple(checkpoint)),
        )
        if keep is not None:
            oldest = "SELECT seq FROM checkpoint WHERE kind = ? ORDER BY seq DESC LIMIT -1 OFFSET ?"
            self._run(f"DELETE FROM checkpoint WHERE seq IN ({oldest})", CheckpointKind.AUTO.value, keep)  # noqa: S608 (as above)

    def add_entry(  # noqa: PLR0913 the columns of a row
        self, *, seq: int, page: str, position: int, role: str, text: str, at: str, key: str | None = None
    ) -> None:
        """Add an entry; those of its page at *position* and after it move on by one. O(their number).

        Args:
            seq: The journal record that holds it.
            page: Index of its page.
            position: Its place in the page, from 1.
            role: The provider's role; ``user`` is the user's own text.
            text: Its words as a reader sees them, calls included.
            at: When it was said, in ISO 8601; any other text is indexed as it is.
            key: The idempotency key under which it was appended.
        """
        self._run("UPDATE entry SET position = position + 1 WHERE page = ? AND position >= ?", page, position)
        row = (seq, page, position, role, storable(at), None if key is None else storable(key), storable(text))
        self._run("INSERT INTO entry (seq, page, position, role, at, key, text) VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

    def add_call(self, call_id: str, *, seq: int, page: str) -> None:
        """Add a call that the entry *seq* makes and that has no answer yet."""
        self._run("INSERT INTO call (call_id, seq, page) VALUES (?, ?, ?)", storable(call_id), seq, page)

    def answer_call(self, call_id: str, *, seq: int, call_seq: int) -> None:
        """Note that the entry *seq* answers the call with this id that the entry *call_seq* made."""
        self._run(
            "UPDATE call SET answered = ? WHERE id = "
            "(SELECT id FROM call WHERE call_id = ? AND seq = ? AND answered IS NULL ORDER BY id LIMIT 1)",
            seq, storable(call_id), call_seq,
        )  # fmt: skip

    def put_page(self, facts: PageFacts) -> None:
        """Add a page, or replace the facts of one; a page added later counts as younger in search."""
        number = int(facts.index.rpartition("-")[2])
        self._changed.add(facts.index)
        self._run(_PUT_PAGE, *(_stored(value) for value in attrs.astuple(facts, recurse=False)), number)

    def change_page(self, index: str, **changes: Any) -> None:  # noqa: ANN401 the attributes of PageFacts
        """Change some facts of a page, by the names of their attributes.

        Raises:
            PageNotFoundError: No page has this index.
            TypeError: A name is not one of a fact that can change.
        """
        if unknown := changes.keys() - set(_FACTS[1:]):
            message = f"PageFacts has nothing to change named {', '.join(sorted(unknown))}"
            raise TypeError(message)
        if not changes:
            return
        assignments = ", ".join(f"{name} = ?" for name in changes)
        values = map(_stored, changes.values())
        if not self._run(f"UPDATE page SET {assignments} WHERE name = ?", *values, index):  # noqa: S608 names of attributes
            raise _page_not_found(index)
        self._changed.add(index)

    def index_page(self, index: str, *, entry: str | None = None) -> None:
        """Make a page searchable, as it is when the transaction ends. O(its text), then.

        Args:
            index: The page.
            entry: The text of its contents entry; ``None`` keeps what was given before.

        Raises:
            PageNotFoundError: No page has this index.
        """
        if self._one("SELECT 1 FROM page WHERE name = ?", index) is None:
            raise _page_not_found(index)
        self._waiting[index] = self._waiting.get(index) if entry is None else entry

    def finish(self) -> None:
        """Do what was left for the end of the transaction."""
        for name in self._changed:
            row = self._one(f"SELECT {COLUMNS}, page_sum FROM page WHERE name = ?", name)  # noqa: S608 names of columns
            if row is None:
                message = f"page {name} is gone"
                raise damaged(message)
            *facts, old = row
            new = row_sum(facts)
            self._run("UPDATE page SET page_sum = ? WHERE name = ?", new, name)
            self._run("UPDATE meta SET page_sum = page_sum + ?", new - old)
        self._changed.clear()
        for index, entry in self._waiting.items():
            page_id = self._one("SELECT id FROM page WHERE name = ?", index)[0]
            old = self._one("SELECT contents FROM text WHERE id = ?", page_id)
            contents = (old[0] if old else "") if entry is None else term_line(entry)
            entries = self._all("SELECT role, text, at FROM entry WHERE page = ? ORDER BY position", index)
            self._remove_text(page_id)
            self._add_text(page_id, page_text(entries, contents))
        self._waiting.clear()

    def put_vectors(self, model: str, vectors: Sequence[tuple[str, float, bytes]]) -> None:
        """Keep vectors of searchable pages, until a page or its text changes. Those that another model made go.

        Args:
            model: What made them.
            vectors: Index of the page, scale, codes.
        """
        if self._one("SELECT model FROM meta")[0] != model:
            self._run("DELETE FROM vector")
            self._run("UPDATE meta SET vectors = 0, model = ?", model)
        put = "INSERT OR IGNORE INTO vector SELECT text.id, ?, ? FROM page JOIN text USING (id) WHERE page.name = ?"
        added = sum(self._run(put, scale, codes, index) for index, scale, codes in vectors)
        self._run("UPDATE meta SET vectors = vectors + ?", added)

    def drop_page(self, index: str) -> None:
        """Remove a page with its entries, keys and calls; nothing happens where there is none. O(its size)."""
        self._waiting.pop(index, None)
        self._changed.discard(index)
        page = self._one("SELECT id, page_sum FROM page WHERE name = ?", index)
        if page is not None:
            self._run("UPDATE meta SET page_sum = page_sum - ?", page[1])
            self._remove_text(page[0])
            self._run("DELETE FROM page WHERE id = ?", page[0])
        for (seq,) in self._all("SELECT seq FROM entry WHERE page = ?", index):
            self._drop_entry(seq)

    def newest_page(self) -> str | None:
        """Return the index of the page with the highest number, ``None`` where there is none."""
        row = self._one("SELECT name FROM page ORDER BY number DESC LIMIT 1")
        return None if row is None else row[0]

    def drop_from(self, index: str, position: int) -> None:
        """Go back to before an entry: it, the entries behind it in its page, and all later pages go, with their keys and calls.

        Calls that the dropped entries answered are open again. The page goes too when it loses all its entries; else its facts
        ``entries``, ``first_seq`` and ``last_seq`` and its searchable text are mended, and ``tokens`` is left as it was.
        O(size of the pages concerned).
        """
        segment, _, number = index.rpartition("-")
        for (later,) in self._all("SELECT name FROM page WHERE number > ?", int(number)):
            if later.rpartition("-")[0] == segment:
                self.drop_page(later)
        for (gone,) in self._all("SELECT seq FROM entry WHERE page = ? AND position >= ?", index, position):
            self._drop_entry(gone)
        left = [row[0] for row in self._all("SELECT seq FROM entry WHERE page = ? ORDER BY position", index)]
        if not left:
            self.drop_page(index)
            return
        self._changed.add(index)
        self._run(
            "UPDATE page SET entries = ?, first_seq = ?, last_seq = ? WHERE name = ?", len(left), min(left), max(left), index
        )
        if self._one("SELECT 1 FROM text JOIN page USING (id) WHERE name = ?", index):
            self.index_page(index)

    def _drop_entry(self, seq: int) -> None:
        self._run("UPDATE call SET answered = NULL WHERE answered = ?", seq)
        self._run("DELETE FROM call WHERE seq = ?", seq)
        self._run("DELETE FROM entry WHERE seq = ?", seq)

    def _add_text(self, page_id: int, text: PageText) -> None:
        terms, entries = text.size()
        columns = (text.user, text.page, text.contents)
        self._run("INSERT INTO text VALUES (?, ?, ?, ?, ?, ?)", page_id, entries, terms, *columns)
        self._run("INSERT INTO search (rowid, user, page, contents) VALUES (?, ?, ?, ?)", page_id, *columns)
        self._run("UPDATE meta SET pages = pages + 1, entries = entries + ?, terms = terms + ?", entries, terms)

    def _remove_text(self, page_id: int) -> None:
        row = self._one("SELECT entries, terms, user, page, contents FROM text WHERE id = ?", page_id)
        if row is None:
            return
        self._run("UPDATE meta SET pages = pages - 1, entries = entries - ?, terms = terms - ?", *row[:2])
        # FTS5 takes a row of an external-content table out only when it is told the very text that went in.
        remove = "INSERT INTO search (search, rowid, user, page, contents) VALUES ('delete', ?, ?, ?, ?)"
        self._run(remove, page_id, *row[2:])
        self._run("DELETE FROM text WHERE id = ?", page_id)
        gone = self._run("DELETE FROM vector WHERE id = ?", page_id)
        self._run("UPDATE meta SET vectors = vectors - ?", gone)

    def _run(self, sql: str, *values: object) -> int:
        """Run a statement and return how many rows it changed."""
        with mapped_errors():
            return self._connection.execute(sql, values).rowcount

    def _all(self, sql: str, *values: object) -> list[Any]:
        with mapped_errors():
            return self._connection.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: object) -> Any:  # noqa: ANN401 a row, or None
        with mapped_errors():
            return self._connection.execute(sql, values).fetchone()


def _stored(value: object) -> object:
    if isinstance(value, PageState | CheckpointKind):
        return value.value
    return storable(value) if isinstance(value, str) else value


def _page_not_found(index: str) -> PageNotFoundError:
    return PageNotFoundError(f"the index knows no page {index}", index=index)
