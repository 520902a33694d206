"""How many connections a process has to PostgreSQL, whose they are, when they are given back, and what of us stays on them."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

import memci
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.sql.postgres import PostgresStore
from memci.archive.stores.sql.postgres_connections import PostgresIo
from memci.archive.stores.sql.schema import Found
from memci.errors import ConfigError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.sql.postgres_server import PostgresServer
from tests.archive.stores.sql.transaction_pooler import transaction_pooler
from tests.engine.wire import user
from tests.together import in_threads

pytestmark = pytest.mark.server

SHOWN = ("synchronous_commit", "statement_timeout", "lock_timeout")


@pytest.fixture
def schema(postgres: PostgresServer) -> str:
    return postgres.new_url().rpartition("%3D")[2]


@pytest.fixture
def url(postgres: PostgresServer, schema: str) -> str:
    """Return a URL that nobody else has, so that nobody else shares its connections."""
    return postgres.url(schema).replace("postgres?", f"postgres?application_name={schema}&")


def connections(url: str) -> int:
    """Return how many connections with the name in the URL the server has."""
    name = url.partition("application_name=")[2].partition("&")[0]
    with psycopg.connect(url.replace(f"application_name={name}", "application_name=tests")) as connection:
        found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [name]).fetchone()
        assert found is not None
        return int(found[0])


def end_connections(url: str) -> None:
    """Have the server end all connections with the name in the URL, as its restart does."""
    with psycopg.connect(url.replace("application_name=", "application_name=x"), autocommit=True) as other:
        name = url.partition("application_name=")[2].partition("&")[0]
        other.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = %s", [name])


def comes_to(number: int, ask: Callable[[], int]) -> bool:
    """Return whether a number is reached: a server takes a moment to let connections go."""
    for _ in range(400):
        if ask() == number:
            return True
        time.sleep(0.025)
    return False


def test_all_stores_of_a_process_share_connections(url: str) -> None:
    """However many engines and tenants there are: thirty stores that write at once have as many as the URL allows."""
    stores = [PostgresStore(f"{url}&memci_pool=3") for _ in range(30)]
    most = list[int]()

    def write(number: int) -> None:
        append_each(stores[number].open(f"tenant {number}", "session").journal, *"abc")
        most.append(connections(url))

    in_threads(write, range(30))
    assert max(most) <= 3
    assert [3] * 30 == [store.open(f"tenant {number}", "session").journal.head() for number, store in enumerate(stores)]
    for store in stores[1:]:
        store.close()
    assert connections(url)
    stores[0].close()
    assert comes_to(0, lambda: connections(url))
    assert 3 == stores[0].open("tenant 0", "session").journal.head()
    stores[0].close()


def test_two_urls_share_nothing(url: str) -> None:
    """Nor do stores of which one promises less: a connection that commits without a sync is not lent to the other."""
    stores = [PostgresStore(url), PostgresStore(f"{url}&memci_pool=2"), PostgresStore(url, "flush")]
    for store in stores:
        list(store.sessions(TENANT))
    assert 3 == connections(url)
    assert ["on", "on", "off"] == [store._database.read("SHOW synchronous_commit")[0][0] for store in stores]
    for store in stores:
        store.close()


def test_idle_connections_are_given_back(url: str) -> None:
    """Those that nobody needed for a while are closed, though the store is open, and opened again when they are needed."""

    class HastyIo(PostgresIo):
        idle_s = 0.05

    store = PostgresStore(url, io=HastyIo())
    for number in range(3):
        in_threads(lambda name: append_each(store.open(TENANT, name).journal, "a"), [f"{number}.{each}" for each in range(4)])
        assert comes_to(0, lambda: connections(url))
    assert 12 == len(list(store.sessions(TENANT)))
    store.close()


def test_after_a_restart_of_the_server_one_call_fails(url: str) -> None:
    """Connections that lay idle meanwhile are not tried one after the other: the first that is lost tells of all."""

    class CountingIo(PostgresIo):
        connected = failed = 0

        def connect(self, url: str) -> psycopg.Connection:
            self.connected += 1
            return super().connect(url)

        def execute(self, connection: psycopg.Connection, sql: str, values: Sequence[object] = ()) -> Found:
            try:
                return super().execute(connection, sql, values)
            except psycopg.OperationalError:
                self.failed += 1
                raise

    io, together = CountingIo(), threading.Barrier(4)
    store = PostgresStore(url, io=io)

    def append(name: str) -> None:
        together.wait()
        append_each(store.open(TENANT, name).journal, "a")

    while io.connected < 3:
        in_threads(append, [f"{io.connected}.{each}" for each in range(4)])
    end_connections(url)
    for each in range(4):
        append_each(store.open(TENANT, f"later {each}").journal, "a")
    assert 1 == io.failed
    store.close()


def test_no_thread_is_left_of_a_store_that_was_closed(url: str) -> None:
    """The one that watches idle connections ends with them."""
    store = PostgresStore(url)
    list(store.sessions(TENANT))
    watching = [thread for thread in threading.enumerate() if thread.name == "memci-connections"]
    assert watching
    store.close()
    for thread in watching:
        thread.join(10)
    assert not any(thread.is_alive() for thread in watching)


@pytest.fixture
def pool(url: str) -> Iterator[ConnectionPool]:
    """A pool as a host has it: its connections begin transactions by themselves, and rows are dicts."""
    with ConnectionPool(url, min_size=1, max_size=2, kwargs={"row_factory": dict_row}, open=True) as pool:
        yield pool


@pytest.mark.parametrize("durability", ["fsync", "flush"])
def test_the_hosts_pool_lends_connections(pool: ConnectionPool, url: str, durability: str) -> None:
    """No others are opened; they are given back as they were, and what was promised holds in our transactions."""
    with pool.connection() as connection:
        before = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in SHOWN]
    engine = memci.Engine("postgresql://", {"durability": durability}, pool=pool)
    for name in ("one", "two"):
        with engine.session(name) as session:
            session.extend([user("Hello."), {"role": "assistant", "content": "Hello."}] * 3)
            session.fold("all")
            assert () == session.verify().problems
    found = engine._store._database.read("SHOW synchronous_commit")  # type: ignore[attr-defined]
    assert [("on" if durability == "fsync" else "off",)] == found
    engine.close()
    assert connections(url) <= 2
    with pool.connection() as connection:
        assert before == [connection.execute(f"SHOW {name}".encode()).fetchone() for name in SHOWN]
        assert not connection.autocommit
        connection.rollback()


def test_a_hosts_pool_without_a_free_connection_is_told(url: str) -> None:
    """Who waits longer than the pool allows is told so; nothing was written."""
    with ConnectionPool(url, min_size=1, max_size=1, timeout=0.05, open=True) as pool:
        store = PostgresStore("postgresql://", pool=pool)
        journal = store.open(TENANT, "session").journal
        append_each(journal, "a")
        with pool.connection(), pytest.raises(UnavailableError, match="couldn't get a connection"):
            journal.append(1, [new_record("b")])
        assert ["a"] == texts_of(journal)
        store.close()


def test_a_connection_of_the_host_that_is_lost_is_not_noticed(pool: ConnectionPool, url: str) -> None:
    """A call is done again on another one."""
    store = PostgresStore("postgresql://", pool=pool)
    journal = store.open(TENANT, "session").journal
    append_each(journal, "a")
    end_connections(url)
    assert 2 == journal.append(1, [new_record("b")])
    assert ["a", "b"] == texts_of(journal)
    store.close()


def test_what_is_no_pool_is_refused(tmp_path: Path) -> None:
    """An asynchronous one too, and a pool for a store that has no use for it."""
    waiting = AsyncConnectionPool("postgresql://nowhere.invalid", open=False)
    with ConnectionPool("postgresql://nowhere.invalid", open=False) as pool:
        for store, given in (
            ("postgresql://", waiting),
            ("postgresql://", 7),
            (f"file:{tmp_path}", pool),
            ("memory:", pool),
            (MemoryStore(), pool),
        ):
            with pytest.raises(ConfigError) as raised:
                memci.Engine(store, pool=given)  # type: ignore[arg-type]
            assert "pool" == raised.value.path


def test_a_pooler_may_give_each_transaction_to_another_connection(postgres: PostgresServer, schema: str) -> None:
    """As PgBouncer does in transaction mode: nothing is lost, what was promised holds, and nothing of us stays there."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pooler = stack.enter_context(transaction_pooler(postgres.directory, directory, schema))
        url = f"postgresql://memci@/postgres?host={directory}"
        store = PostgresStore(f"{url}&memci_pool=2", "flush")
        in_threads(lambda name: append_each(store.open(TENANT, name).journal, *"abcdefghij"), "1234")
        assert [list("abcdefghij")] * 4 == [texts_of(store.open(TENANT, name).journal) for name in "1234"]
        assert min(pooler.transactions) > 1
        assert ["off"] * 6 == [store._database.read("SHOW synchronous_commit")[0][0] for _ in range(6)]
        store.close()
        with psycopg.connect(url, autocommit=True) as client:
            assert [("on",)] * 6 == [client.execute("SHOW synchronous_commit", prepare=False).fetchone() for _ in range(6)]
