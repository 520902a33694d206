"""The page index of a session in a database: it works in memory, and a copy of it is kept there for the next opening."""

import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from memci.archive.catalogue.page_index import PageIndex
from memci.archive.stores.sql.schema import Found, Statement

_LEAST_RECORDS, _SHARE = 200, 8  # a copy is kept after so many records, and an eighth of all: what is written stays in proportion

_FIND = "SELECT body FROM {}index_copy WHERE session = ?"
# An older one never replaces a newer one; and the copy of one who does not know of an erasure never what that left, see _EMPTY.
_KEEP = """
INSERT INTO {}index_copy (session, seq, body) VALUES (?, ?, ?)
ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body WHERE {}index_copy.seq <= excluded.seq
"""
# Nothing, as of the end of the journal: only an index that has come as far is kept after it.
_EMPTY = """
INSERT INTO {}index_copy (session, seq, body) SELECT id, head, '' FROM {}session WHERE id = ?
ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body
"""


class OwnRows(Protocol):
    """The rows of a session: queries whose first value is the number of its *row*."""

    row: int

    def read_own(self, sql: str, *values: object) -> Found:
        """Run a query; it finds nothing before the session began."""

    def change(self, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        """Run statements in one transaction, in which the session is there still."""

    def remove(self, sql: str, values: Sequence[Sequence[object]]) -> None:
        """Run a deletion for each of *values*."""


class KeptIndex(PageIndex):
    """An index in memory that begins as the copy in the database, and is kept there from time to time."""

    def __init__(self, session: OwnRows) -> None:
        """Read the copy, where there is one that can be used. One query, and O(size of the index) in bytes."""
        super().__init__(None)
        self._session = session
        if found := session.read_own(_FIND):
            with suppress(zlib.error):  # it is damaged, or what an erasure left
                self.load(zlib.decompress(bytes(found[0][0])))
        self._kept = self.seq

    def keep(self) -> None:
        """Keep a copy, where much came since the last one. O(size of the index), then."""
        seq = self.seq
        if seq - self._kept >= max(_LEAST_RECORDS, seq // _SHARE):
            body = zlib.compress(self.image(), 1)
            self._session.change([(_KEEP, (self._session.row, seq, body))])
            self._kept = seq

    def reset(self) -> None:
        """Empty the index, and take the copy out of the database."""
        super().reset()
        self._session.remove(_EMPTY, [()])
        self._kept = 0
