"""What the stores on SQL databases ask of a database: rows that make up a session.

::

    session   id (never used again), tenant, name, session_id, head
    record    session, seq, line       the truth; the primary key (session, seq) is the compare-and-set
    page      session, name, body      raw pages
    snapshot  session, seq, line       cached states
    blob      tenant, name, body       large data, each once
    blob_use  session, name, seq       which session refers to it, and the last record that it was put for

A line is what ``record_codec`` writes. Each call below is one query or one transaction, and a ``LockedError`` where others
keep it waiting for too long.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

from memci.archive.stores.names import file_name, find_identifier
from memci.errors import CorruptError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

BATCH_RECORDS = 500
"""Most records that one query reads."""

BATCH_BYTES = 4_000_000
"""A query stops before the record that begins after so many bytes, so that memory is bounded by the largest record."""


class SyncFailedError(UnavailableError):
    """A commit failed in such a way that nobody knows what is on the disk; the session must be opened again."""


@attrs.frozen
class Key:
    """Which session is meant.

    Attributes:
        tenant: The tenant as ``file_name`` spells it: at most 180 bytes of ASCII, fit for any index and readable in a shell.
        name: The session id, spelled alike.
        session_id: The id itself.
    """

    tenant: str
    name: str
    session_id: str


@attrs.frozen
class Place:
    """Where the journal of a session is.

    Attributes:
        row: Number of the session's row.
        head: Where the row says that the journal ends.
        last: Highest sequence number of a record, 0 for none; other than ``head`` only after damage.
    """

    row: int
    head: int
    last: int


class SessionRows(Protocol):
    """The rows of sessions."""

    def find(self, key: Key) -> Place | None:
        """Return where the journal is now, ``None`` where there is no such session. One query."""
        ...

    def begin(self, key: Key) -> int:
        """Return the number of the session's row, which is made if there is none."""
        ...

    def check(self) -> None:
        """Raise ``CorruptError`` where the database is damaged, as far as it can tell. O(database), at most."""
        ...


class RecordRows(Protocol):
    """The records of sessions. A row number stands for a session that was looked up."""

    def append(self, key: Key, row: int | None, expected: int, lines: Sequence[bytes]) -> int:
        """Write the lines behind *expected* in one transaction, and return the session's row, which is made if need be.

        Raises:
            ConflictError: The head is not *expected*; nothing was written.
            CorruptError: The last record is missing, or there is one behind the head; nothing was written.
            UnavailableError: The session was deleted, or the lines are not safe.
        """
        ...

    def read(self, key: Key, row: int, after: int, until: int) -> Sequence[tuple[int, bytes]]:
        """Return lines with ``after < seq <= until`` in order, as many as ``BATCH_RECORDS`` and ``BATCH_BYTES`` allow."""
        ...

    def pick(self, key: Key, row: int, seqs: Collection[int]) -> Mapping[int, bytes]:
        """Return the lines of these records, as far as they are there."""
        ...

    def replace(self, key: Key, row: int, lines: Mapping[int, tuple[bytes, bytes]]) -> None:
        """Write other lines in the place of those that were picked in one transaction; the former bytes are then in no row.

        Args:
            key: The session.
            row: Its row.
            lines: The line that was picked and the one in its place, by record.

        Raises:
            ConflictError: A record has another line by now, which stays; the others may have been replaced.
            UnavailableError: The session was deleted.
        """
        ...


class PageRows(Protocol):
    """The pages of sessions."""

    def put(self, key: Key, row: int, pages: Mapping[str, bytes]) -> None:
        """Write pages over older ones in one transaction. Raises ``UnavailableError`` where the session was deleted."""
        ...

    def find(self, key: Key, row: int, name: str) -> bytes | None:
        """Return a page, ``None`` where there is none."""
        ...

    def names(self, key: Key, row: int) -> Sequence[str]:
        """Return the names of all pages."""
        ...

    def remove(self, key: Key, row: int, names: Collection[str]) -> None:
        """Delete pages in one transaction. Raises ``UnavailableError`` where the session was deleted."""
        ...


class SnapshotRows(Protocol):
    """The snapshots of sessions."""

    def put(self, key: Key, row: int, seq: int, line: bytes) -> None:
        """Write a snapshot and delete those that are superfluous. Raises ``UnavailableError`` where the session was deleted."""
        ...

    def newest(self, key: Key, row: int, at_most: int | None) -> tuple[int, bytes] | None:
        """Return the newest snapshot up to *at_most*, damaged or not."""
        ...

    def clear(self, key: Key, row: int) -> None:
        """Delete all. Raises ``UnavailableError`` where the session was deleted."""
        ...


class BlobRows(Protocol):
    """Large data of tenants, and which sessions refer to it."""

    def put(self, key: Key, row: int, blobs: Mapping[str, bytes], seq: int) -> None:
        """Write blobs that are not there and references in one transaction; raises ``UnavailableError`` for a deleted session."""
        ...

    def find(self, key: Key, name: str) -> bytes | None:
        """Return a blob of the tenant, ``None`` where there is none."""
        ...

    def names(self, row: int) -> Sequence[str]:
        """Return the names of the blobs that a session refers to."""
        ...

    def drop(self, key: Key, row: int, names: Collection[str], seq: int) -> None:
        """Delete references up to *seq*, and blobs without any, in one transaction; the bytes are then in no row."""
        ...


class IndexFiles(Protocol):
    """The derived indexes of sessions, which are not part of the database."""

    def open(self, row: int | None, *, read_only: bool) -> "PageIndex":
        """Open the index of a session; without a row it is an empty one in memory."""
        ...


@attrs.frozen
class Tables:
    """All that is asked of a database.

    Attributes:
        sessions: The rows of sessions.
        records: The rows of journals.
        pages: The rows of pages.
        snapshots: The rows of snapshots.
        blobs: The rows of blobs.
        index: Opens indexes.
    """

    sessions: SessionRows
    records: RecordRows
    pages: PageRows
    snapshots: SnapshotRows
    blobs: BlobRows
    index: IndexFiles


def corrupt(key: Key, place: str, problem: str, seq: int | None = None) -> CorruptError:
    """Make the error of rows that are not what was written."""
    return CorruptError(problem, session=key.session_id, place=place, seq=seq)


def listed_id(name: str, session_id: bytes | None) -> str:
    """Return the id of a session by its row.

    Raises:
        CorruptError: The id is damaged, and the name does not spell it.
    """
    identifier = (session_id or b"").decode(errors="replace")
    if identifier and file_name(identifier) == name:
        return identifier
    spelled = find_identifier(name)
    if spelled is None:
        problem = "the session's id is not the one that its row is named after: restore it from a backup"
        raise CorruptError(problem, session="", place=f"row of {name}")
    return spelled


def checked_head(key: Key, place: Place) -> int:
    """Return the head.

    Raises:
        CorruptError: Row and records do not agree on it.
    """
    if place.head != place.last:
        problem = f"the session's row says {place.head} and the last record is {place.last}: restore it from a backup"
        raise corrupt(key, "head", problem, min(place.head, place.last) + 1)
    return place.head
