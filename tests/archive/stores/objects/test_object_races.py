"""Many writers on one session, over a server that speaks S3."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import obstore
import pytest
from obstore.exceptions import PreconditionError

from memci.archive.stores.objects.io import connect, parse
from memci.archive.stores.objects.store import ObjectStore
from memci.errors import ConflictError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.objects.s3_server import S3Server

pytestmark = pytest.mark.server

WRITERS = 8
APPENDS = 15


@pytest.fixture
def url(s3: S3Server) -> str:
    return s3.url(s3.new_bucket())


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], ObjectStore]]:
    """Return a function that makes a store of its own, as another machine would."""
    stores: list[ObjectStore] = []

    def make() -> ObjectStore:
        stores.append(ObjectStore.from_url(url))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.mark.slow
def test_the_server_lets_one_of_many_win(url: str) -> None:
    """Of eight puts that all name the same version one is done: what these tests rest on is true of their server."""
    drivers = [connect(*parse(url)[:2]) for _ in range(WRITERS)]

    def is_done(number: int, version: str) -> bool:
        try:
            obstore.put(drivers[number], "object", b"%d, with %b" % (number, version.encode()), mode={"e_tag": version})
        except PreconditionError:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(40):
            version = str(obstore.put(drivers[0], "object", b"version %d" % number)["e_tag"])
            assert [True] == [done for done in pool.map(is_done, range(WRITERS), [version] * WRITERS) if done]


@pytest.mark.slow
def test_of_many_writers_none_loses_a_record(opened: Callable[[], ObjectStore]) -> None:
    """Eight writers append 120 commits of two records: all are there once, whole and in each writer's order."""

    def write(writer: int) -> int:
        session = opened().open(TENANT, "session")
        head = conflicts = 0
        for number in range(APPENDS):
            while True:
                try:
                    head = session.journal.append(head, [new_record(f"{writer}:{number}:{half}") for half in "ab"])
                    break
                except ConflictError as error:
                    head = error.head
                    conflicts += 1
        return conflicts

    with ThreadPoolExecutor(WRITERS) as pool:
        conflicts = sum(pool.map(write, range(WRITERS)))
    texts = texts_of(opened().open(TENANT, "session").journal)
    for writer in range(WRITERS):
        own = [text for text in texts if text.startswith(f"{writer}:")]
        assert [f"{writer}:{number}:{half}" for number in range(APPENDS) for half in "ab"] == own
    assert WRITERS * APPENDS * 2 == len(texts)
    assert [text[:-1] for text in texts[::2]] == [text[:-1] for text in texts[1::2]]
    assert conflicts > 0


@pytest.mark.slow
def test_a_writer_and_those_who_change_what_is_beside_it(opened: Callable[[], ObjectStore]) -> None:
    """While one appends, others redact, keep snapshots and put pages: nothing of any of them is lost."""
    append_each(opened().open(TENANT, "session").journal, *["secret"] * 5)

    def append() -> None:
        append_each(opened().open(TENANT, "session").journal, *map(str, range(70)))

    def redact() -> None:
        for seq in range(1, 6):
            opened().open(TENANT, "session").journal.redact({seq: b'{"text":"[erased]"}'})

    def keep() -> None:
        session = opened().open(TENANT, "session")
        for seq in range(1, 11):
            session.snapshots.put(seq, b'{"seq":%d}' % seq)
            session.pages.put({f"usr-{seq}": b"page"})

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(work) for work in (append, redact, keep)]:
            done.result()
    session = opened().open(TENANT, "session")
    assert [*["[erased]"] * 5, *map(str, range(70))] == texts_of(session.journal)
    assert (10, b'{"seq":10}') == session.snapshots.find()
    assert 10 == len(list(session.pages.names()))
    assert [] == list(session.snapshots.problems())


def test_of_many_who_begin_a_session_one_does(opened: Callable[[], ObjectStore]) -> None:
    """Eight writers begin the same new session at once: one record is there, and all others were told the head."""

    def begin(writer: int) -> int:
        try:
            return opened().open(TENANT, "new").journal.append(0, [new_record(str(writer))])
        except ConflictError as error:
            return -error.head

    with ThreadPoolExecutor(WRITERS) as pool:
        results = list(pool.map(begin, range(WRITERS)))
    assert [1, *[-1] * (WRITERS - 1)] == sorted(results, reverse=True)
    assert [str(results.index(1))] == texts_of(opened().open(TENANT, "new").journal)
