"""What sessions ask of an SQL database.

::

    session   id (never used again), tenant, name, session_id, head
    record    session, seq, line       the truth; the primary key (session, seq) is the compare-and-set
    page      session, name, body      raw pages
    snapshot  session, seq, line       cached states
    blob      tenant, name, body       large data, each once
    blob_use  session, name, seq       which session refers to it, and the last record that it was put for

A line is what ``record_codec`` writes. Statements that both dialects understand have ``{}`` before the names of tables, and ``?``
for values. Each call is one query or one transaction, and a ``LockedError`` where others keep it waiting for too long.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from memci.errors import CorruptError, UnavailableError

Found = list[tuple[Any, ...]]  # rows that a statement returned
Statement = tuple[str, Sequence[Any]]  # with its values

FIND = """
SELECT id, head, coalesce((SELECT max(seq) FROM {}record WHERE session = owner.id), 0)
FROM {}session AS owner WHERE tenant = ? AND name = ?
"""
# Makes the row of a session if there is none, and returns it.
BEGIN = """
INSERT INTO {}session AS owner (tenant, name, session_id, head) VALUES (?, ?, ?, 0)
ON CONFLICT (tenant, name) DO UPDATE SET head = owner.head RETURNING id
"""


class SyncFailedError(UnavailableError):
    """A commit failed in such a way that nobody knows what is on the disk; the session must be opened again."""


@attrs.frozen
class Key:
    """Which session is meant: tenant and id as ``file_name`` spells them, and the id itself."""

    tenant: str
    name: str
    session_id: str


@attrs.frozen
class Place:
    """Where the journal of a session ends, by the session's *row* and by its *last* record; they differ only after damage."""

    row: int
    head: int
    last: int


class Rows(Protocol):
    """The tables of one database."""

    put_blob: str  # statement that puts a blob with the values tenant, name and body, over one that is damaged
    sweep: str  # statement that deletes the blobs of a tenant that no session refers to; O(blobs of the tenant)

    def read(self, sql: str, values: Sequence[object], session: str = "") -> Found:
        """Run a query; it finds nothing where there is no database yet."""
        ...

    def change(self, key: Key, row: int | None, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        """Run statements that may run twice in one transaction, and return what each returned.

        With a *row*, that session has to be there still. With *removes*, the bytes that they take out are in no file of the
        database when it returns, as far as it can say; else call again.
        """
        ...

    def append(self, key: Key, row: int | None, expected: int, lines: Sequence[bytes]) -> int:
        """Write lines after the record *expected* as ``Journal.append`` does; return the session's row, which is made if need be.

        It raises ``CorruptError``, and writes nothing, where the last record is missing, or there is one after the head.
        """
        ...

    def check(self) -> None:
        """Raise ``CorruptError`` where the database is damaged, as far as it can tell. O(database), at most."""
        ...

    def close(self) -> None:
        """Give the connections back; the next call opens one. May be called twice."""
        ...


def place_of(found: Found) -> Place | None:
    """Return what ``FIND`` found. A damaged number is -1, which no head is."""
    return Place(*(value if isinstance(value, int) else -1 for value in found[0])) if found else None


def checked_head(key: Key, place: Place | None) -> int:
    """Return the head, 0 before the session began. Raises ``CorruptError`` where row and records do not agree on it."""
    if place is None:
        return 0
    if place.head != place.last:
        problem = f"the session's row says {place.head} and the last record is {place.last}: restore it from a backup"
        raise CorruptError(problem, session=key.session_id, place="head", seq=min(place.head, place.last) + 1)
    return place.head
