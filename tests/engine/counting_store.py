"""A store that counts what is asked of the journals in another one, and that can hold a call up."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from memci.archive.catalogue.page_index import PageIndex
from memci.archive.stores.contract import Blobs, Journal, NewRecord, Pages, Record, SessionStore, Snapshots, Store, Usage


class CountingStore:
    """Another store, with its calls counted.

    Attributes:
        calls: How often each call was made; the names of those of the journal are ``head``, ``append``, ``read``.
        records: How many records were read.
        opened: How many sessions are open in the store.
        before: Is called before each call, if given.
        behind: Is called behind each commit, if given.
    """

    def __init__(self, store: Store) -> None:
        self.durability = store.durability
        self.calls: Counter[str] = Counter()
        self.records = 0
        self.opened = 0
        self.held: dict[str, Hold] = {}
        self.before: Callable[[], object] | None = None
        self.behind: Callable[[], object] = lambda: None
        self._store = store

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> "CountingSession":
        self.count("open")
        self.opened += 1
        return CountingSession(self, self._store.open(tenant, session_id, read_only=read_only))

    def sessions(self, tenant: str) -> Iterator[str]:
        return self._store.sessions(tenant)

    def usage(self, tenant: str) -> Usage:
        self.count("usage")
        return self._store.usage(tenant)

    def sweep(self, tenant: str) -> None:
        self.count("sweep")
        self._store.sweep(tenant)

    def delete(self, tenant: str, session_id: str) -> None:
        self.count("delete")
        self._store.delete(tenant, session_id)

    def close(self) -> None:
        self.count("close")
        self._store.close()

    def hold(self, call: str) -> "Hold":
        """Hold the next call of this name up until it is let go."""
        self.held[call] = Hold()
        return self.held[call]

    def count(self, call: str) -> None:
        self.calls[call] += 1
        if self.before is not None:
            self.before()
        hold = self.held.pop(call, None)
        if hold is not None:
            hold.reached.set()
            assert hold.released.wait(60)


class Hold:
    """A call that is held up.

    Attributes:
        reached: Is set when the call is made.
        released: Lets it go on.
    """

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()


class CountingSession:
    """What a ``CountingStore`` opens."""

    def __init__(self, counter: CountingStore, session: SessionStore) -> None:
        self.durability = session.durability
        self._counter = counter
        self._session = session
        self._closed = False

    @property
    def journal(self) -> Journal:
        return CountingJournal(self._counter, self._session.journal)

    @property
    def pages(self) -> Pages:
        return self._session.pages

    @property
    def snapshots(self) -> Snapshots:
        self._counter.count("snapshots")
        return self._session.snapshots

    @property
    def blobs(self) -> Blobs:
        return self._session.blobs

    @property
    def index(self) -> PageIndex:
        return self._session.index

    def indexed_seq(self) -> int:
        return self._session.indexed_seq()

    def rest(self) -> None:
        self._session.rest()

    def close(self) -> None:
        if not self._closed:
            self._counter.opened -= 1
        self._closed = True
        self._session.close()


class CountingJournal:
    """The journal of a ``CountingSession``."""

    def __init__(self, counter: CountingStore, journal: Journal) -> None:
        self._counter = counter
        self._journal = journal

    def head(self) -> int:
        self._counter.count("head")
        return self._journal.head()

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        self._counter.count("append")
        head = self._journal.append(expected, records)
        self._counter.behind()
        return head

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        self._counter.count("read")
        for record in self._journal.read(after, until):
            self._counter.records += 1
            yield record

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        self._journal.redact(bodies, former)
