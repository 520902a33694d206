"""A session as it could become: what is written stays in memory, over what is stored, and is gone when it is closed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from memci.archive import refusal
from memci.archive.stores.contract import Blobs, Journal, NewRecord, Pages, Record, SessionStore, Snapshots
from memci.archive.stores.record_codec import check_commit
from memci.errors import PermissionDeniedError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


class _Journal:
    """What others write after the first record of the draft is not seen."""

    def __init__(self, stored: Journal) -> None:
        self._stored = stored
        self._begins: int | None = None  # after which record, once there is one
        self._records = list[Record]()

    def head(self) -> int:
        return self._stored.head() if self._begins is None else self._begins + len(self._records)

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        check_commit(records)
        if (head := self.head()) != expected:
            raise refusal.conflict(expected, head)
        if self._begins is None:
            self._begins = head
        self._records += [Record(seq, new.kind, new.version, new.body) for seq, new in enumerate(records, head + 1)]
        return self.head()

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        if self._begins is None:
            yield from self._stored.read(after, until)
            return
        if after < self._begins:
            yield from self._stored.read(after, self._begins if until is None else min(until, self._begins))
        for record in self._records[max(after - self._begins, 0) :]:
            if until is not None and record.seq > until:
                return
            yield record

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:  # noqa: ARG002 (the contract's)
        message = "a draft erases nothing, as it writes nothing: erase in the session itself"
        raise PermissionDeniedError(message)


class _Pages:
    def __init__(self, stored: Pages) -> None:
        self._stored = stored
        self._written = dict[str, bytes | None]()  # None for one that was removed

    def put(self, pages: Mapping[str, bytes]) -> None:
        self._written |= pages

    def find(self, name: str) -> bytes | None:
        return self._written[name] if name in self._written else self._stored.find(name)

    def names(self) -> Iterator[str]:
        yield from (name for name in self._stored.names() if name not in self._written)
        yield from (name for name, page in self._written.items() if page is not None)

    def remove(self, names: Collection[str]) -> None:
        self._written |= dict.fromkeys(names)


class _Snapshots:
    """Those that are stored; a draft does not last as long as one would serve."""

    def __init__(self, stored: Snapshots) -> None:
        self.find = stored.find
        self.problems = stored.problems

    def put(self, seq: int, body: bytes) -> None:
        pass

    def clear(self) -> None:
        pass


class _Blobs:
    """Those that are stored; records of the draft hold theirs themselves."""

    def __init__(self, stored: Blobs) -> None:
        self.find = stored.find
        self.names = stored.names

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:  # noqa: ARG002 (the contract's)
        return ()

    def drop(self, names: Collection[str], seq: int) -> None:
        pass


class DraftSession:
    """Implements ``memci.archive.stores.contract.SessionStore`` over another one, which is closed with it and never written to.

    Of what the contract asks, it has no redaction and keeps no snapshots. For one thread at a time.
    """

    def __init__(self, stored: SessionStore) -> None:
        self.durability = "memory"
        self.journal: Journal = _Journal(stored.journal)
        self.pages: Pages = _Pages(stored.pages)
        self.snapshots: Snapshots = _Snapshots(stored.snapshots)
        self.blobs: Blobs = _Blobs(stored.blobs)
        self._stored = stored

    @cached_property
    def index(self) -> "PageIndex":
        """A copy of what is stored, in memory. O(its size), once it is asked for."""
        return self._stored.index.branch()

    def indexed_seq(self) -> int:
        """Return what the store says."""
        return self._stored.indexed_seq()

    def rest(self) -> None:
        """Do nothing: a draft is not open for long."""

    def close(self) -> None:
        """Give back what it holds. May be called twice."""
        if "index" in self.__dict__:
            self.index.close()
        self._stored.close()
