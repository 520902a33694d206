"""The bytes of a search index as rows of a database: blocks that are read when they are asked for, and written together."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from memci.archive.catalogue.index_file import refuse_damaged
from memci.archive.catalogue.page_facts import ReopenIndexError
from memci.archive.stores.sql.schema import Found, Statement
from memci.errors import UnavailableError

BLOCK_BYTES = 16384
_FIRST_BLOCKS = 64  # are read as a file is opened: all of a short session's index, and where the tables of a long one begin
_HELD_BLOCKS = 192  # at most, of those that were read

_FIND = """
SELECT version::text, size, number, body FROM (SELECT * FROM {}search_index WHERE session = ?) AS kept
LEFT JOIN {}search_block AS block ON block.session = kept.session AND number < ?
"""
_READ = """
SELECT number, body FROM {}search_block JOIN {}search_index USING (session)
WHERE session = ? AND version = ?::uuid AND number = ?
"""
# Only over the version that it began with: done twice, or after an erasure or another worker, it changes nothing.
_KEEP = """
WITH moved AS (
    INSERT INTO {}search_index AS kept (session, version, size) VALUES (?, gen_random_uuid(), ?)
    ON CONFLICT (session) DO UPDATE SET version = excluded.version, size = excluded.size WHERE kept.version = ?::uuid
    RETURNING session, version
), written AS (
    INSERT INTO {}search_block (session, number, body)
    SELECT moved.session, number, body FROM moved, unnest(?::bigint[], ?::bytea[]) AS block (number, body)
    ON CONFLICT (session, number) DO UPDATE SET body = excluded.body
) SELECT version::text FROM moved
"""
# Nobody who loaded the file before can keep it after these. Two: the second sees what was written while the first waited for it.
CLEAR = (
    """INSERT INTO {}search_index AS kept (session, version, size) VALUES (?, gen_random_uuid(), 0)
    ON CONFLICT (session) DO UPDATE SET version = excluded.version, size = 0""",
    "DELETE FROM {}search_block WHERE session = ?",
)


class OwnRows(Protocol):
    """The rows of a session: queries whose first value is the number of its row."""

    def begin(self) -> int:
        """Return the number of the row, which is made if there is none."""

    def read_own(self, sql: str, *values: object) -> Found:
        """Run a query; it finds nothing before the session began."""

    def change(self, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        """Run statements in one transaction, in which the session is there still."""


class Blocks:
    """A file of whole blocks: those that were written since it was loaded are here only, the others in rows of one version.

    For one thread at a time. Memory: what was written, and a number of the blocks that were read.
    """

    def __init__(self, session: OwnRows) -> None:
        self._session = session
        self._version: str | None = None  # none is in the database
        self._read: dict[int, bytes] = {}
        self._written: dict[int, bytes] = {}
        self.size = 0  # in bytes

    @property
    def written(self) -> int:
        """How many blocks are here only."""
        return len(self._written)

    def load(self) -> None:
        """Become what the database has now. One query, of a bounded number of rows."""
        found = self._asked(_FIND, _FIRST_BLOCKS)
        self._version, self.size = found[0][:2] if found else (None, 0)
        self._written = {}
        self._read = _unpacked(row[2:] for row in found if row[2] is not None)

    def copy(self) -> "Blocks":
        """Return another file that begins as this one is. O(blocks that are here)."""
        copy = Blocks(self._session)
        copy._version, copy._read, copy._written, copy.size = self._version, dict(self._read), dict(self._written), self.size
        return copy

    def read(self, number: int) -> bytes:
        """Return a block that lies within the size. Raises ``ReopenIndexError`` where the database has another version."""
        if (block := self._written.get(number)) is None and (block := self._read.get(number)) is None:
            found = _unpacked(self._asked(_READ, self._version, number))
            if not found:
                if self._asked("SELECT version::text FROM {}search_index WHERE session = ?") == [(self._version,)]:
                    refuse_damaged(f"its block {number} is missing")
                message = "others went on with the index of pages meanwhile: do it again"
                raise ReopenIndexError(message)
            self._hold(found)
            block = found[number]
        return block

    def read_all(self) -> None:
        """Read what is not here, so that nobody can take it away."""
        self._written = {number: self.read(number) for number in range(self.size // BLOCK_BYTES)}

    def write(self, number: int, block: bytes) -> None:
        """Put a block into the file, which may grow by it."""
        self._read.pop(number, None)
        self._written[number] = block
        self.size = max(self.size, (number + 1) * BLOCK_BYTES)

    def empty(self) -> None:
        """Become a file without blocks, that takes the place of the one in the database when it is kept."""
        self._read, self._written, self.size = {}, {}, 0

    def _asked(self, sql: str, *values: object) -> Found:
        try:
            return self._session.read_own(sql, *values)
        except UnavailableError as error:
            raise ReopenIndexError(str(error)) from error

    def keep(self) -> bool:
        """Write what is here only, and return true, unless others wrote since it was loaded. One statement."""
        numbers = sorted(self._written)
        bodies = [zlib.compress(self._written[number], 1) for number in numbers]
        ((found),) = self._session.change([(_KEEP, (self._session.begin(), self.size, self._version, numbers, bodies))])
        if found:
            self._version = found[0][0]
            self._hold(self._written)
            self._written = {}
        return bool(found)

    def _hold(self, blocks: Mapping[int, bytes]) -> None:
        """Hold blocks that are in the database too, and let go of those that came first, where they are too many."""
        self._read |= blocks
        while len(self._read) > _HELD_BLOCKS:
            del self._read[next(iter(self._read))]

    def clear(self) -> None:
        """Take the file out of the database; nobody who loaded it before can keep it again."""
        row = self._session.begin()
        self._session.change([(sql, (row,)) for sql in CLEAR], removes=True)


def _unpacked(rows: Iterable[Sequence[object]]) -> dict[int, bytes]:
    try:
        blocks = {int(str(number)): zlib.decompress(bytes(body)) for number, body in rows}  # type: ignore[call-overload]
    except zlib.error as error:
        refuse_damaged(error)
    return blocks
