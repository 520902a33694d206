"""How many requests of which kind each operation costs, counted; docs/stores.md names these tests."""

import obstore
import pytest
from obstore.store import MemoryStore

from memci.archive.stores.contract import SessionStore
from memci.archive.stores.objects.io import Found, Version
from memci.archive.stores.objects.store import ObjectStore
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.counting import CountedObjectStore, CountingObjects
from tests.archive.stores.objects.faulty_objects import stored


class BodyCountingIo(CountingObjects):
    """Counts the answers that have a body."""

    bodies = 0

    def find(self, path: str, unless: "Version | None" = None) -> Found | None:
        found = super().find(path, unless)
        self.bodies += found is not None
        return found


@pytest.fixture
def bucket() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def store(bucket: MemoryStore) -> CountedObjectStore:
    return CountedObjectStore(CountingObjects(lambda: bucket))


@pytest.fixture
def session(store: CountedObjectStore) -> SessionStore:
    session = store.open(TENANT, "session")
    append_each(session.journal, "first")
    store.io.requests.clear()
    return session


def test_a_first_append_is_one_request(store: CountedObjectStore) -> None:
    """A new session begins with one conditional put, and opening it costs nothing."""
    assert 1 == store.open(TENANT, "session").journal.append(0, [new_record()])
    assert {"put": 1} == store.io.requests


def test_an_append_is_one_request(session: SessionStore, store: CountedObjectStore) -> None:
    """An append after the head that is known is one put; of 64 in a row one is two."""
    for seq in range(1, 65):
        session.journal.append(seq, [new_record()])
    assert {"put": 65} == store.io.requests


def test_a_large_append_is_as_many_requests_as_segments(session: SessionStore, store: CountedObjectStore) -> None:
    """A commit of a megabyte goes into segments of 256 KiB at most, which are put at a time, and then the manifest."""
    session.journal.append(1, [new_record("x" * 10_000)] * 100)
    assert {"put": 5} == store.io.requests


def test_a_first_append_of_any_size_is_one_request(store: CountedObjectStore) -> None:
    """Before there is a manifest no segment is put: who deletes the session of before could not tell it from what is left."""
    store.open(TENANT, "session").journal.append(0, [new_record("x" * 10_000)] * 100)
    assert {"put": 1} == store.io.requests


def test_a_look_at_the_head_is_one_request_without_a_body(bucket: MemoryStore) -> None:
    """Where nobody wrote, the answer has no body; where somebody did, it is the manifest."""
    io = BodyCountingIo(lambda: bucket)
    store = ObjectStore(io)
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    io.requests.clear()
    io.bodies = 0
    assert 1 == session.journal.head()
    assert ({"get": 1}, 0) == (io.requests, io.bodies)
    append_each(store.open(TENANT, "session").journal, "b")
    io.requests.clear()
    io.bodies = 0
    assert 2 == session.journal.head()
    assert ({"get": 1}, 1) == (io.requests, io.bodies)


def test_a_stale_append_is_three_requests(session: SessionStore, store: CountedObjectStore) -> None:
    """Whoever was overtaken pays a refused put and a look, and then the put that works."""
    append_each(store.open(TENANT, "session").journal, "b")
    store.io.requests.clear()
    with pytest.raises(Exception, match="nothing was written"):
        session.journal.append(1, [new_record()])
    assert 3 == session.journal.append(2, [new_record()])
    assert {"put": 2, "get": 1} == store.io.requests


def test_pages_are_one_request_each_between_two_looks(session: SessionStore, store: CountedObjectStore) -> None:
    """A fold of five pages puts five objects and looks at the manifest before and after."""
    session.pages.put({f"usr-{number}": b"page" for number in range(5)})
    assert {"put": 5, "get": 2} == store.io.requests


def test_a_page_is_read_in_one_request(session: SessionStore, store: CountedObjectStore) -> None:
    """An open session reads a page by its name, and asks for nothing else."""
    session.pages.put({"usr-1": b"page"})
    store.io.requests.clear()
    assert b"page" == session.pages.find("usr-1")
    assert {"get": 1} == store.io.requests


def test_a_snapshot_is_two_requests(session: SessionStore, store: CountedObjectStore) -> None:
    """The state is put and then named by the manifest; finding it is a look and the state."""
    session.snapshots.put(1, b"{}")
    assert {"put": 2} == store.io.requests
    store.io.requests.clear()
    assert (1, b"{}") == session.snapshots.find()
    assert {"get": 2} == store.io.requests


def test_nothing_but_names_and_erasing_lists(session: SessionStore, store: CountedObjectStore) -> None:
    """Opening, appending, reading, pages and snapshots name what they want: none of them lists."""
    for number in range(20):
        session.journal.append(1 + 65 * number, [new_record()] * 65)
    session.pages.put({"usr-1": b"page"})
    for seq in range(10, 100, 10):
        session.snapshots.put(seq, b"{}")
    again = store.open(TENANT, "session")
    assert 1301 == len(texts_of(again.journal))
    assert again.snapshots.find() is not None
    assert b"page" == again.pages.find("usr-1")
    assert 0 == store.io.requests["list"]


def test_sessions_are_listed_by_thousands(store: CountedObjectStore) -> None:
    """The ids of 30 sessions come from one request, as their manifests stand in one folder."""
    for number in range(30):
        append_each(store.open(TENANT, f"session {number}").journal, "a")
    store.io.requests.clear()
    assert 30 == len(list(store.sessions(TENANT)))
    assert {"list": 1} == store.io.requests


def test_the_manifest_stays_small(store: CountedObjectStore, bucket: MemoryStore) -> None:
    """After 60,000 records the manifest has less than 5 KB, and an append still costs the same."""
    session = store.open(TENANT, "session")
    head = session.journal.append(0, [new_record()])
    commit = [new_record()] * 65
    sizes = []
    while head < 60_000:
        head = session.journal.append(head, commit)
        sizes.append(obstore.head(bucket, f"{TENANT}/manifests/session")["size"])
    assert max(sizes) < 5_000
    store.io.requests.clear()
    session.journal.append(head, [new_record()])
    assert {"put": 1} == store.io.requests


def test_any_record_of_a_long_journal_is_few_requests_away(store: CountedObjectStore) -> None:
    """A record among 40,000 costs the manifest, at most two lists and its segment."""
    session = store.open(TENANT, "session")
    head = session.journal.append(0, [new_record("0")])
    while head < 40_000:
        head = session.journal.append(head, [new_record(str(head + number)) for number in range(65)])
    for seq in (2, 700, 20_000, head - 3_000, head):
        again = store.open(TENANT, "session")
        store.io.requests.clear()
        assert [str(seq - 1)] == texts_of(again.journal, seq - 1, seq)
        assert store.io.requests["get"] <= 4
        assert {"get"} == set(store.io.requests)


def test_a_long_journal_lies_in_segments_and_lists(store: CountedObjectStore, bucket: MemoryStore) -> None:
    """After 2,100 records in commits of one there are 32 segments and a list of 16 of them."""
    append_each(store.open(TENANT, "session").journal, *["x"] * 2_100)
    paths = list(stored(bucket))
    assert 32 == len([path for path in paths if "/segments/" in path])
    assert 1 == len([path for path in paths if "/lists/" in path])


def test_many_names_come_by_thousands(session: SessionStore, store: CountedObjectStore) -> None:
    """The names of 2,500 pages come from three requests, and as many delete them."""
    pages = {f"usr-{number}": b"" for number in range(2_500)}
    session.pages.put(pages)
    store.io.requests.clear()
    assert sorted(pages) == sorted(session.pages.names())
    assert {"list": 3} == store.io.requests
    session.pages.remove(pages)
    assert {"list": 3, "get": 1, "delete": 3} == store.io.requests
    assert [] == list(session.pages.names())
