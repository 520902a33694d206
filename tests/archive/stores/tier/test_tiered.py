"""A working tier: what it saves, and that it is never wrong, whatever happens to it."""

import logging
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.archive.stores.contract import Store
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.archive.stores.tier import MOST_BYTES, Location, RedisTier, TieredStore, parse
from memci.archive.stores.url import open_store, shown_url
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConfigError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, each_example_cleans_up, new_record, texts_of
from tests.archive.stores.tier.redis_server import RedisServer, running_redis
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import config_of, talk

pytestmark = pytest.mark.server

GONE = b'{"text":"[erased]"}'


@pytest.fixture
def behind() -> CountingStore:
    """Return the store behind the tier, which all workers of a test share."""
    return CountingStore(MemoryStore())


class Workers:
    """Makes the stores of workers with a tier before one store, and closes them."""

    def __init__(self, redis: RedisServer, behind: Store) -> None:
        self.location = parse(redis.url("memory:"))
        self._behind = behind
        self._made: list[TieredStore] = []

    def new(self) -> TieredStore:
        self._made.append(TieredStore(self._behind, RedisTier(self.location)))
        return self._made[-1]

    def close(self) -> None:
        for store in self._made:
            store.close()


@pytest.fixture
def workers(redis: RedisServer, behind: CountingStore) -> Iterator[Workers]:
    made = Workers(redis, behind)
    yield made
    made.close()


def key(workers: Workers, session_id: str = "session") -> str:
    return RedisTier(workers.location).key(TENANT, session_id)


def read_at_once(store: Store) -> list[str]:
    """Open the session, look at its head and read it all."""
    session = store.open(TENANT, "session")
    session.journal.head()
    texts = texts_of(session.journal)
    session.close()
    return texts


def shown(session: Session) -> tuple[object, ...]:
    return session.window().to_json(), session.seq, session.contents, session.pages(), list(session.messages())


def opened(store: Store, **config: object) -> tuple[object, ...]:
    with Engine(store, config_of(**config)) as engine, engine.session("chat") as session:
        return shown(session)


@pytest.mark.parametrize("snapshot_every", [500, 10])
def test_opening_costs_one_round_trip_each(workers: Workers, behind: CountingStore, snapshot_every: int) -> None:
    """A worker that never saw a session opens it with one request to the tier and one reading of eight records behind it."""
    writer = Engine(workers.new(), config_of(snapshot_every=snapshot_every))
    with writer.session("chat") as session:
        talk(session, 30)
        plain = shown(session)
    other = workers.new()
    engine = Engine(other, config_of(snapshot_every=snapshot_every))
    behind.calls.clear()
    behind.records = 0
    with engine.session("chat") as session:
        assert {"find": 1} == dict(other.tier.requests)
        assert {"open": 1, "read": 1} == {call: count for call, count in behind.calls.items() if call != "snapshots"}
        assert 8 == behind.records
        assert plain == shown(session)
    assert 0 == other.tier.failures


def test_an_append_costs_one_more_round_trip(workers: Workers, behind: CountingStore) -> None:
    """Bringing the tier up to an append is one request, and the next worker finds it there."""
    store = workers.new()
    session = store.open(TENANT, "session")
    append_each(session.journal, "a", "b")
    store.tier.requests.clear()
    behind.calls.clear()
    assert 3 == session.journal.append(2, [new_record("c")])
    assert ({"extend": 1}, {"append": 1}) == (dict(store.tier.requests), dict(behind.calls))
    assert ["a", "b", "c"] == read_at_once(workers.new())
    assert 1 == behind.calls["read"]


def test_later_records_are_read_from_the_store(workers: Workers, behind: CountingStore) -> None:
    """What was taken over by an opening is used once; an open session reads from the store, and asks the tier nothing."""
    store = workers.new()
    session = store.open(TENANT, "session")
    append_each(session.journal, *"abcdef")
    behind.calls.clear()
    store.tier.requests.clear()
    assert ["c", "d"] == texts_of(session.journal, 2, 4)
    assert list("abcdef") == texts_of(session.journal)
    assert ({"read": 2}, {}) == (behind.calls, store.tier.requests)


def test_a_snapshot_takes_the_place_of_what_is_before_it(workers: Workers, redis: RedisServer, behind: CountingStore) -> None:
    """The tier keeps the newest snapshot, a few records before it and those after it, and forgets the rest."""
    session = workers.new().open(TENANT, "session")
    append_each(session.journal, *"abcdefghijklmnop")
    session.snapshots.put(14, b'{"state":14}')
    append_each(session.journal, "q")
    with redis.client() as client:
        number, snapshot, *lines = (client.get(f"{key(workers)}:lines") or b"").splitlines()
        assert (b"14", 8 + 3, b"17") == (number, len(lines), client.hget(key(workers), "head"))
        assert b'{"state":14}' in snapshot
    behind.calls.clear()
    other = workers.new().open(TENANT, "session")
    assert 17 == other.journal.head()
    assert (14, b'{"state":14}') == other.snapshots.find()
    assert list("opq") == texts_of(other.journal, 14)
    assert ("read", 1) in behind.calls.items()


def test_the_tier_is_bounded(workers: Workers, redis: RedisServer) -> None:
    """A session with more after its snapshot than fits leaves the tier, and comes back with its next snapshot."""
    session = workers.new().open(TENANT, "session")
    head = session.journal.append(session.journal.head(), [new_record("x" * 1_000)] * (MOST_BYTES // 1_500))
    with redis.client() as client:
        assert 1 == client.exists(key(workers))
        head = session.journal.append(head, [new_record("x" * 1_000)] * (MOST_BYTES // 1_500))
        assert 0 == client.exists(key(workers))
        session.journal.append(head, [new_record("last")])
        session.snapshots.put(head, b"{}")
        assert head + 1 == session.journal.head()
        assert str(head + 1).encode() == client.hget(key(workers), "head")
        assert 2 + 8 + 1 == len((client.get(f"{key(workers)}:lines") or b"").splitlines())
    assert ["last"] == texts_of(session.journal, head)


def test_it_lives_for_its_time(workers: Workers, redis: RedisServer) -> None:
    """What is in the tier expires after the time to live of its last use, and nothing of an id can be read there."""
    append_each(workers.new().open(TENANT, "session").journal, "a")
    with redis.client() as client:
        for name in (key(workers), f"{key(workers)}:lines"):
            assert 3_590 <= client.ttl(name) <= 3_600
        assert [] == [name for name in client.keys("*") if b"session" in name]


@pytest.mark.parametrize("lost", ["both", "lines", "hash"])
def test_what_is_expired_or_flushed_is_made_again(workers: Workers, redis: RedisServer, lost: str) -> None:
    """A worker goes on whose session left the tier, whole or in part, and others read what was written."""
    session = workers.new().open(TENANT, "session")
    append_each(session.journal, "a", "b")
    with redis.client() as client:
        for name in {"both": ("", ":lines"), "lines": (":lines",), "hash": ("",)}[lost]:
            assert 1 == client.pexpireat(key(workers) + name, 1)
    assert ["b"] == texts_of(session.journal, 1)
    session.journal.append(2, [new_record("c")])
    assert list("abc") == read_at_once(workers.new())
    assert ["b", "c"] == texts_of(session.journal, 1)


@given(
    garbage=st.dictionaries(
        st.sampled_from(["token", "head"]),
        st.binary(max_size=4) | st.sampled_from([b"0", b"2"]),
    ),
    lines=st.none() | st.binary(max_size=20) | st.sampled_from([b"0\n", b"2\n", b"0\n{}\n", b"9\n{}\n"]),
    kind=st.sampled_from(["fields", "text", "list", "other session"]),
)
@settings(each_example_cleans_up, max_examples=60)
def test_garbage_in_the_tier_is_not_served(
    workers: Workers, redis: RedisServer, garbage: dict[str, bytes], lines: bytes | None, kind: str
) -> None:
    """Whatever stands in the tier, workers read and append what the store has."""
    writer = workers.new()
    session = writer.open(TENANT, "session")
    append_each(session.journal, "a", "b")
    with redis.client() as client:
        name = key(workers)
        if kind == "text":
            client.set(name, b"text")
        elif kind == "list":
            client.delete(name + ":lines")
            client.rpush(name + ":lines", b"line")
        elif kind == "other session":
            append_each(writer.open(TENANT, "other").journal, "x", "y")
            client.copy(key(workers, "other"), name, replace=True)
            client.copy(key(workers, "other") + ":lines", name + ":lines", replace=True)
        else:
            for field, value in garbage.items():
                client.hset(name, field, value)
            if lines is not None:
                client.set(name + ":lines", lines)
        assert ["a", "b"] == read_at_once(workers.new())
        assert ["b"] == texts_of(session.journal, 1)
        assert 3 == session.journal.append(2, [new_record("c")])
        assert ["a", "b", "c"] == read_at_once(workers.new())
        client.flushall()
    for session_id in ("session", "other"):
        writer.delete(TENANT, session_id)


def test_workers_with_and_without_the_tier(workers: Workers, behind: CountingStore) -> None:
    """Two workers with the tier and one without read what each of them wrote, in order."""
    first, second = workers.new().open(TENANT, "session"), workers.new().open(TENANT, "session")
    third = behind.open(TENANT, "session")
    journals = (first.journal, second.journal, third.journal)
    for number in range(12):
        journal = journals[number * 7 % 3]
        append_each(journal, str(number))
        for reader in journals:
            assert number + 1 == reader.head()
            assert [str(number)] == texts_of(reader, number)
        assert [str(each) for each in range(number + 1)] == read_at_once(workers.new())


def test_a_deletion_without_the_tier_is_seen(workers: Workers, behind: CountingStore) -> None:
    """When a worker without the tier deletes a session, nobody is served its records, also where another begins under its id."""
    session = workers.new().open(TENANT, "session")
    append_each(session.journal, "old", "old too")
    behind.delete(TENANT, "session")
    assert [] == read_at_once(workers.new())
    append_each(behind.open(TENANT, "session").journal, "new", "new too")
    assert ["new", "new too"] == read_at_once(workers.new())
    with pytest.raises(UnavailableError, match="deleted"):
        session.journal.head()


def test_an_erasure_without_the_tier_is_seen(workers: Workers, behind: CountingStore) -> None:
    """When a worker without the tier erases a page, the next opening with the tier has nothing of it."""
    with Engine(workers.new(), config_of()) as engine, engine.session("chat") as session:
        session.append({"role": "user", "content": "my secret is 1234"})
        session.append({"role": "assistant", "content": "noted"})
    with Engine(behind, config_of()) as engine, engine.session("chat") as session:
        session.erase("usr-1")
    after = opened(behind)
    assert b"1234" not in repr(after).encode()
    assert after == opened(workers.new()) == opened(workers.new())


def test_a_successor_with_the_same_last_record_is_told_apart(workers: Workers, behind: CountingStore) -> None:
    """A session that took a deleted one's place is not taken for it when it ends alike, nor when a snapshot is of its end."""
    session = workers.new().open(TENANT, "session")
    append_each(session.journal, *"abcdefghi", "settled")
    session.snapshots.put(10, b'{"of":"old"}')
    behind.delete(TENANT, "session")
    append_each(behind.open(TENANT, "session").journal, *"ABCDEFGHI", "settled")
    other = workers.new().open(TENANT, "session")
    assert 10 == other.journal.head()
    assert other.snapshots.find() is None
    assert [*"ABCDEFGHI", "settled"] == texts_of(other.journal)


@pytest.mark.parametrize("how", ["redact", "delete", "clear"])
def test_what_is_taken_out_leaves_the_tier(workers: Workers, redis: RedisServer, how: str) -> None:
    """Redacting, deleting and clearing snapshots leave nothing of the session in the tier."""
    store = workers.new()
    session = store.open(TENANT, "session")
    append_each(session.journal, "secret", "b")
    with redis.client() as client:
        assert 1 == client.exists(key(workers))
        match how:
            case "redact":
                session.journal.redact({1: GONE})
            case "delete":
                store.delete(TENANT, "session")
            case _:
                session.snapshots.clear()
        assert 0 == client.exists(key(workers), f"{key(workers)}:lines")
    if how == "redact":
        for _ in range(2):  # made anew, and then from the tier
            assert ["[erased]", "b"] == read_at_once(workers.new())


def test_what_was_read_before_a_redaction_does_not_come_back(workers: Workers, behind: CountingStore) -> None:
    """A worker that is slow to fill the tier with what it read before a redaction is refused, and so is a slow append."""
    append_each(behind.open(TENANT, "session").journal, "secret", "b")
    slow, quick = workers.new(), workers.new()
    name = key(workers)
    found = slow.tier.find(name, "announced")
    assert found is not None
    quick.open(TENANT, "session").journal.redact({1: GONE})
    assert ["[erased]", "b"] == read_at_once(quick)
    assert not slow.tier.put(name, found[0], 2, 3, b"late")
    assert not slow.tier.put(name, found[0], None, 0, b"late")
    assert ["[erased]", "b"] == read_at_once(workers.new())


def test_a_deleted_session_leaves_the_tier_first(redis: RedisServer) -> None:
    """When the store behind is asked to delete, the tier has nothing of the session any more."""
    left = []

    class Watching(MemoryStore):
        def delete(self, tenant: str, session_id: str) -> None:
            left.append(client.exists(store.tier.key(tenant, session_id)))
            super().delete(tenant, session_id)

    store = TieredStore(Watching(), RedisTier(parse(redis.url("memory:"))))
    with redis.client() as client:
        append_each(store.open(TENANT, "session").journal, "a")
        assert 1 == client.exists(store.tier.key(TENANT, "session"))
        store.delete(TENANT, "session")
    assert [0] == left
    store.close()


def test_a_worker_that_opens_a_session_during_its_deletion_leaves_nothing(redis: RedisServer) -> None:
    """Text that another worker puts into the tier before the store has deleted the session is removed after that."""

    class OpenedMeanwhile(MemoryStore):
        def delete(self, tenant: str, session_id: str) -> None:
            assert ["a"] == read_at_once(other)
            super().delete(tenant, session_id)

    behind, location = OpenedMeanwhile(), parse(redis.url("memory:"))
    store, other = (TieredStore(behind, RedisTier(location)) for _ in range(2))
    append_each(store.open(TENANT, "session").journal, "a")
    store.delete(TENANT, "session")
    name = store.tier.key(TENANT, "session")
    with redis.client() as client:
        assert 0 == client.exists(name, f"{name}:lines")
    for each in (store, other):
        each.close()


def test_an_open_session_does_not_read_its_successor(workers: Workers) -> None:
    """What the tier has of a session that took a deleted one's place is not served to those who have the old one open."""
    session = workers.new().open(TENANT, "session")
    append_each(session.journal, "old", "old too")
    other = workers.new()
    other.delete(TENANT, "session")
    append_each(other.open(TENANT, "session").journal, "new", "new too")
    with pytest.raises(UnavailableError, match="deleted"):
        texts_of(session.journal, 1)


def test_an_entry_that_missed_a_record_is_removed(workers: Workers, redis: RedisServer, behind: CountingStore) -> None:
    """A worker that appends behind a record that the tier did not get takes the session out of it."""
    session = workers.new().open(TENANT, "session")
    append_each(session.journal, "a")
    append_each(behind.open(TENANT, "session").journal, "b")
    session.journal.append(2, [new_record("c")])
    with redis.client() as client:
        assert 0 == client.exists(key(workers))
    assert ["c"] == texts_of(session.journal, 2)


def test_a_redacted_record_is_known_as_one(workers: Workers, behind: CountingStore) -> None:
    """Records come out of the tier as they come out of the store, redacted ones too."""
    session = workers.new().open(TENANT, "session")
    append_each(session.journal, *"abc")
    session.journal.redact({2: GONE})
    expected = list(behind.open(TENANT, "session").journal.read())
    for _ in range(2):  # made anew, and then from the tier
        assert expected == list(workers.new().open(TENANT, "session").journal.read())
    assert 4 == behind.calls["read"]  # the first look of all, the one just above, one to make the entry and one to compare it


def test_without_a_server_everything_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where no tier answers, the store does all that it does alone, and it is logged once, without text or password."""
    store = open_store(f"redis+unix://user:secret@{tmp_path}/none?store=memory:")
    assert isinstance(store, TieredStore)
    with caplog.at_level(logging.WARNING, "memci"):
        session = store.open(TENANT, "session")
        append_each(session.journal, *"abc")
        session.snapshots.put(2, b"{}")
        for _ in range(20):
            assert list("abc") == read_at_once(store)
    assert 1 == len(caplog.records)
    assert "secret" not in caplog.text
    assert store.tier.requests["find"] <= 6
    store.close()


def test_a_deletion_that_the_tier_did_not_hear_of_is_told(tmp_path: Path) -> None:
    """Where the tier cannot be asked to forget, nothing is deleted, and that is said; the store without it does it."""
    store = open_store(f"redis+unix://{tmp_path}/none?store=memory:")
    append_each(store.open(TENANT, "session").journal, "a")
    with pytest.raises(UnavailableError, match="nothing was done"):
        store.delete(TENANT, "session")
    assert ["session"] == list(store.sessions(TENANT))
    store.close()


def test_a_deletion_asks_a_tier_that_failed_before(tmp_path: Path) -> None:
    """A deletion does not have to wait until reading has found out that the tier answers again."""
    with running_redis() as server, closing(open_store(server.url(f"sqlite:///{tmp_path}/chats.db"), "flush")) as store:
        assert isinstance(store, TieredStore)
        append_each(store.open(TENANT, "session").journal, "a")
        server.stop()
        while store.tier.failures < 3:
            assert ["a"] == read_at_once(store)
        server.start()
        store.delete(TENANT, "session")
        assert [] == list(store.sessions(TENANT))


def test_a_tier_that_is_killed_is_done_without(tmp_path: Path) -> None:
    """A worker whose tier dies under it goes on, and uses the tier again when it is back, empty."""
    with running_redis() as server:
        url = server.url(f"sqlite:///{tmp_path}/chats.db")
        store = open_store(url, "flush")
        assert isinstance(store, TieredStore)
        session = store.open(TENANT, "session")
        append_each(session.journal, "a", "b")
        server.stop()
        assert ["b"] == texts_of(session.journal, 1)
        append_each(session.journal, "c")
        assert list("abc") == read_at_once(store)
        assert 0 < store.tier.failures
        server.start()
        while store.tier.failures:
            assert list("abc") == read_at_once(store)
        append_each(session.journal, "d")
        assert list("abcd") == read_at_once(store)
        other = open_store(url, "flush")
        assert isinstance(other, TieredStore)
        assert list("abcd") == read_at_once(other)
        assert {"find": 1} == dict(other.tier.requests)
        other.close()
        store.close()


def test_a_tier_that_hangs_is_waited_for_once(behind: CountingStore) -> None:
    """A server that takes a connection and says nothing costs its timeout, and then ever fewer tries."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        location = parse(f"redis://127.0.0.1:{server.getsockname()[1]}/0?timeout_ms=20&store=memory:")
        store = TieredStore(behind, RedisTier(location))
        append_each(store.open(TENANT, "session").journal, "a")
        for _ in range(50):
            assert ["a"] == read_at_once(store)
        assert store.tier.requests.total() <= 7
        store.close()


def test_a_url_names_tier_and_store(tmp_path: Path) -> None:
    """Server, time to live, timeout and prefix are read from the URL; the store behind has its durability and everything else."""
    url = f"redis://user:secret@host:6379/2?ttl_s=60&timeout_ms=9&prefix=p&db=3&store=sqlite%3A%2F%2F%2F{tmp_path}%2Fx.db"
    expected = Location("redis://user:secret@host:6379/2?db=3", f"sqlite:///{tmp_path}/x.db", 60, 9, "p")
    assert expected == parse(url)
    assert "secret" not in repr(expected)
    assert "redis://…@host:6379/2?…" == shown_url(url)
    store = open_store(url, "flush")
    assert isinstance(store, TieredStore)
    assert isinstance(store._store, SqliteStore)
    assert "flush" == store.durability
    store.close()


@pytest.mark.parametrize(
    "options",
    ["", "store=", "store=redis://secret", "store=memory:&ttl_s=0", "store=memory:&ttl=5", "store=memory:&timeout_ms=²"],
)
def test_other_urls_are_refused(options: str) -> None:
    """A URL without a store behind, or with an option that is unknown or no number, is refused and not shown."""
    with pytest.raises(ConfigError) as caught:
        open_store(f"redis://user:secret@host/0?{options}")
    assert "store" == caught.value.path
    assert "secret" not in str(caught.value)
