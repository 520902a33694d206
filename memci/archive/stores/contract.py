"""What the engine asks of a store. Every store passes the whole suite in ``memci.testing.store_suite``.

Every call raises ``SessionClosedError`` once the session was closed, and every call that writes raises ``PermissionDeniedError``
where it was opened read-only, and ``UnavailableError`` where it was deleted while it was open, or where the change is not known
to be done: call again then.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


@attrs.frozen
class NewRecord:
    """An event on its way into a journal.

    *kind* is a word of a-z, 0-9 and _ that begins with a letter, such as ``appended``, and *version* that of the kind, from 0;
    *body* is the event as compact JSON: not empty, no raw line break, no NUL.
    """

    kind: str
    version: int
    body: bytes


@attrs.frozen
class Record:
    """One event as it lies in a journal, at the place *seq*, dense from 1; the others as in ``NewRecord``.

    It is *redacted* where the body is not the one that was appended, but what ``Journal.redact`` put in its place.
    """

    seq: int
    kind: str
    version: int
    body: bytes
    redacted: bool = False


class Journal(Protocol):
    """The append-only log of one session. Safe for one thread at a time; other processes may have it open too.

    To look into a session that was deleted while it was open raises ``UnavailableError`` too.
    """

    def head(self) -> int:
        """Return the sequence number of the last whole commit as stored now, 0 for none; raise ``CorruptError`` for damage."""

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        """Commit the records after *expected*, all or none, and return the new head. Durable once it returns.

        Raises ``ValueError`` if there is no record, or one that is not what ``NewRecord`` says; ``ConflictError`` if the head is
        not *expected*, with nothing written; and ``UnavailableError`` if the bytes are not safe (a full disk, a failed sync).
        After a failed sync every further append raises too: close the session and open it again.
        """

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` in order; a commit that was torn is not there.

        What is committed while it reads is not read; bodies that are redacted meanwhile are the former or the new ones. Costs
        what is read and O(log n) to find the place; memory is bounded by the largest record. Raises ``CorruptError`` at a
        record that is damaged, after those before it.
        """

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put other bodies in the place of those of the records with these sequence numbers, for good.

        Place, kind and version of a record stay as they are, and their checksums hold. Once it returns the new bodies are
        durable, and no file or row of the journal holds the former ones. Whoever has the journal open reads the new ones.
        *former* has the SHA-256, in hex, of bodies that must still be there; others are replaced whatever they are.

        Raises ``ValueError`` if there is no such record, or a body is not what ``NewRecord`` says: nothing was changed; and
        ``ConflictError`` if others redacted one meanwhile: it is as they left it, and so may the rest be. Read again.
        """


class Pages(Protocol):
    """The page files of one session, by name (such as ``usr-12``, or ``usr-12.r1`` for a revision).

    Where a name is no page's, all raise ``InvalidIdError`` and change nothing.
    """

    def put(self, pages: Mapping[str, bytes]) -> None:
        """Write page files, over older ones of the same name, durably."""

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a page file, or ``None`` where there is none."""

    def names(self) -> Iterator[str]:
        """Yield the names of all page files, in no order."""

    def remove(self, names: Collection[str]) -> None:
        """Delete page files, durably; names that are not there are passed over."""


class Snapshots(Protocol):
    """Cached states of one session. All of them can be lost without harm."""

    def put(self, seq: int, body: bytes) -> None:
        """Keep a state; older ones are thinned out, so that their number grows with the logarithm of the history."""

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state with ``seq <= at_most``, or ``None``."""

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot. Raises ``CorruptError`` if what holds them all, a database, is damaged."""

    def clear(self) -> None:
        """Delete all of them, durably."""


class Blobs(Protocol):
    """Large data under the SHA-256 of its bytes in hex, as one session sees it: each is there as long as it is referred to.

    Sessions of a tenant share it, where the store can do that safely.
    """

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        """Keep blobs, and that the session refers to them in records up to *seq*; return the names of those that were kept.

        They are durable once it returns. Records hold what was not kept themselves.
        """

    def find(self, name: str) -> bytes | None:
        """Return a blob that the session refers to, as it is stored, or ``None`` where there is none."""

    def names(self) -> Iterator[str]:
        """Yield the names of the blobs that the session refers to, in no order."""

    def drop(self, names: Collection[str], seq: int) -> None:
        """Forget, durably, that the session refers to blobs, but for those that it put for a record after *seq*.

        Those that nobody refers to are deleted. Deleting a session does this for all that it refers to.
        """


class SessionStore(Protocol):
    """All that is stored of one session; ``durability`` is ``fsync``, or the name of the weaker promise that was asked for."""

    durability: str

    @property
    def journal(self) -> Journal:
        """The log of events, the truth."""

    @property
    def pages(self) -> Pages:
        """The raw pages, rebuildable from the journal."""

    @property
    def snapshots(self) -> Snapshots:
        """The cached states, rebuildable."""

    @property
    def blobs(self) -> Blobs:
        """The large data that the others refer to; see ``memci.archive.stores.blobs``."""

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, rebuildable; opened when first asked for, perhaps empty or older than the journal."""

    def indexed_seq(self) -> int:
        """Return the last record that an index kept and backed up with the journal knows of: it was so long once; 0 for none."""

    def rest(self) -> None:
        """Give back files that the next call opens again, with nothing lost: the session is open, and is idle for now."""

    def close(self) -> None:
        """Give back what it holds. May be called twice."""


@attrs.frozen(kw_only=True)
class Usage:
    """What a store holds of a tenant: sessions with at least one record, and bytes of all that is stored of them."""

    sessions: int
    stored_bytes: int


class Store(Protocol):
    """Where sessions live, by tenant and id; ``durability`` as in ``SessionStore``.

    Ids are any text that UTF-8 can encode, and no two ever meet; every call raises ``InvalidIdError`` for anything else.
    """

    durability: str

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> SessionStore:
        """Open what is stored of a session; a new session takes no room until its first append."""

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order."""

    def usage(self, tenant: str) -> Usage:
        """Measure what is stored of a tenant; data that sessions share counts as often as it is stored. O(what is stored)."""

    def sweep(self, tenant: str) -> None:
        """Remove what is there of a tenant's sessions without a record: of deletions that broke off, and lost journals."""

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none.

        Whoever has it open can close it; the next write raises ``UnavailableError``, and the id can begin anew.
        """

    def close(self) -> None:
        """Give back what it holds. May be called twice."""
