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

    def __init__(self, stored: Journal, begun: "_Journal | None") -> None:
        self._stored = stored
        self.begins: int | None = None if begun is None else begun.begins  # after which record, once there is one
        self.records: list[Record] = [] if begun is None else [*begun.records]

    def head(self) -> int:
        return self._stored.head() if self.begins is None else self.begins + len(self.records)

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        check_commit(records)
        if (head := self.head()) != expected:
            raise refusal.conflict(expected, head)
        if self.begins is None:
            self.begins = head
        self.records += [Record(seq, new.kind, new.version, new.body) for seq, new in enumerate(records, head + 1)]
        return self.head()

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        if self.begins is None:
            yield from self._stored.read(after, until)
            return
        if after < self.begins:
            yield from self._stored.read(after, self.begins if until is None else min(until, self.begins))
        for record in self.records[max(after - self.begins, 0) :]:
            if until is not None and record.seq > until:
                return
            yield record

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:  # noqa: ARG002 (the contract's)
        message = "a draft erases nothing, as it writes nothing: erase in the session itself"
        raise PermissionDeniedError(message)


class _Pages:
    def __init__(self, stored: Pages, begun: "_Pages | None") -> None:
        self._stored = stored
        self.written: dict[str, bytes | None] = {} if begun is None else {**begun.written}  # None for one that was removed

    def put(self, pages: Mapping[str, bytes]) -> None:
        self.written |= pages

    def find(self, name: str) -> bytes | None:
        return self.written[name] if name in self.written else self._stored.find(name)

    def names(self) -> Iterator[str]:
        yield from (name for name in self._stored.names() if name not in self.written)
        yield from (name for name, page in self.written.items() if page is not None)

    def remove(self, names: Collection[str]) -> None:
        self.written |= dict.fromkeys(names)


class _Snapshots:
    """Those that were stored before the draft began; it does not last as long as one would serve."""

    def __init__(self, stored: Snapshots, journal: _Journal) -> None:
        self.problems = stored.problems
        self._stored = stored
        self._journal = journal

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        bounds = [bound for bound in (at_most, self._journal.begins) if bound is not None]
        return self._stored.find(min(bounds, default=None))

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

    Of what the contract asks, it has no redaction and keeps no snapshots. One that was *begun* over the same session is gone on
    from, and is none the wiser. For one thread at a time.
    """

    def __init__(self, stored: SessionStore, begun: "DraftSession | None" = None) -> None:
        self.durability = "memory"
        self.journal: _Journal = _Journal(stored.journal, None if begun is None else begun.journal)
        self.pages: _Pages = _Pages(stored.pages, None if begun is None else begun.pages)
        self.snapshots: Snapshots = _Snapshots(stored.snapshots, self.journal)
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
