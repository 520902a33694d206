"""What PostgreSQL is asked for, counted; connections that are lost, busy or refused; secrets; versions and forks."""

import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memci.archive.stores.sql import schema
from memci.archive.stores.sql.postgres import PostgresStore
from memci.archive.stores.sql.postgres_connections import PostgresIo
from memci.archive.stores.sql.schema import Found, Statement
from memci.errors import ConfigError, ConflictError, CorruptError, MemciError, StoreError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.counting import CountingPostgres
from tests.archive.stores.sql.postgres_server import PostgresServer, running_server
from tests.engine.many_writers import at_once
from tests.together import in_child, in_threads

pytestmark = pytest.mark.server


class LosingIo(CountingPostgres):
    """Loses the connection at the next statement that writes records, as often as it is told to.

    Attributes:
        before: How often it is lost before the statement is done.
        after: How often once it is done, so that nobody hears of it.
        changes: How often it is lost before several statements that belong together are done.
        meanwhile: What others do before the writer hears that it lost the connection.
    """

    wait_s = 0.05

    def __init__(self) -> None:
        super().__init__()
        self.before = 0
        self.after = 0
        self.changes = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def execute(self, connection: psycopg.Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if "INSERT INTO memci_record" in sql and self.before:
            self.before -= 1
            self._lose(connection)
        rows = super().execute(connection, sql, values)
        if "INSERT INTO memci_record" in sql and self.after:
            self.after -= 1
            self._lose(connection)
        return rows

    def execute_all(self, connection: psycopg.Connection, statements: Sequence[Statement]) -> list[Found]:
        if len(statements) > 1 and self.changes:
            self.changes -= 1
            self._lose(connection)
        return super().execute_all(connection, statements)

    def _lose(self, connection: psycopg.Connection) -> None:
        connection.close()
        self.meanwhile()
        message = "server closed the connection unexpectedly"
        raise psycopg.OperationalError(message)


class LosingStore(PostgresStore):
    """A store that loses its connections."""

    io: LosingIo


class LaxIo(PostgresIo):
    """A server that runs with fsync = off."""

    def execute(self, connection: psycopg.Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        rows = super().execute(connection, sql, values)
        return [("off", *rows[0][1:])] if "current_setting('fsync')" in sql else rows


class FailingIo(PostgresIo):
    """Raises what it is told to instead of looking for a session."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__()
        self._error = error

    def execute(self, connection: psycopg.Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if "max(seq)" in sql:
            raise self._error
        return super().execute(connection, sql, values)


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_url()


@pytest.fixture
def store(url: str) -> Iterator[LosingStore]:
    store = LosingStore(url, io=LosingIo())
    yield store
    store.close()


def run(url: str, sql: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def end_connections(url: str) -> None:
    """End all connections of the stores, as a restarted server or a firewall would."""
    run(url, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'memci'")


def test_all_commands_at_once_lose_and_double_nothing(url: str) -> None:
    """Three writers that give all commands at random meet no conflict, and each message is in the journal once."""
    store = PostgresStore(url)
    at_once(store, 3, 30)
    store.close()


def test_what_a_turn_costs(store: LosingStore) -> None:
    """An append is one round trip whatever its length, and so is nearly every other call."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "begin")
    calls: list[Callable[[], object]] = [
        session.journal.head,
        lambda: session.journal.append(1, [new_record("a")]),
        lambda: session.journal.append(2, [new_record(str(number)) for number in range(50)]),
        lambda: session.pages.put({f"usr-{number}": b"page" for number in range(50)}),
        lambda: session.pages.find("usr-7"),
        lambda: session.pages.remove(["usr-7", "usr-8"]),
        lambda: list(session.journal.read(2)),
        lambda: session.snapshots.put(2, b"{}"),
        session.snapshots.find,
        lambda: session.journal.redact({2: b"{}", 3: b"{}"}),
        lambda: list(store.sessions(TENANT)),
        lambda: store.delete(TENANT, "session"),
    ]
    counts = []
    for call in calls:
        before = store.io.round_trips
        call()
        counts.append(store.io.round_trips - before)
    # A read looks where the journal ends first, a snapshot which ones there are, a deletion for its row; a redaction looks there,
    # reads the lines and writes them.
    assert [1, 1, 1, 1, 1, 1, 2, 2, 1, 3, 1, 2] == counts
    assert 1 == store.io.connections


def test_a_connection_lost_between_calls_is_not_noticed(store: LosingStore, url: str) -> None:
    """When the server has ended the connections, reads and writes go on with new ones."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    end_connections(url)
    assert 1 == session.journal.head()
    end_connections(url)
    assert 2 == session.journal.append(1, [new_record("b")])
    end_connections(url)
    session.pages.put({"usr-1": b"page"})
    assert ["a", "b"] == texts_of(session.journal)


@pytest.mark.parametrize("expected", [0, 1])
@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_commit_of_unknown_outcome_is_found_out(store: LosingStore, lost: str, expected: int) -> None:
    """Whether the connection was lost before or after a commit, it is in the journal once, and it is acknowledged."""
    session = store.open(TENANT, "session")
    append_each(session.journal, *"a"[:expected])
    setattr(store.io, lost, 1)
    assert expected + 2 == session.journal.append(expected, [new_record("b"), new_record("c")])
    assert [*"a"[:expected], "b", "c"] == texts_of(session.journal)


def test_a_commit_that_the_server_lost_is_not_gone_on_from(store: LosingStore, url: str) -> None:
    """Where a crash took a commit, and another worker wrote as much since, the next append is refused; what is there is read."""
    journal = store.open(TENANT, "session").journal
    append_each(journal, "a", "b")
    run(url, "DELETE FROM memci_record WHERE seq = 2")
    run(url, "UPDATE memci_session SET head = 1")
    with closing(PostgresStore(url)) as other:
        other.open(TENANT, "session").journal.append(1, [new_record("of another")])
    with pytest.raises(UnavailableError, match="loaded again"):
        journal.append(2, [new_record("c")])
    again = store.open(TENANT, "session").journal
    assert ["a", "of another"] == texts_of(again)
    assert 3 == again.append(2, [new_record("c")])
    assert 4 == again.append(3, [new_record("d")])


@pytest.mark.parametrize("lost", ["before", "after"])
def test_another_writers_equal_commit_is_not_taken_for_ones_own(store: LosingStore, url: str, lost: str) -> None:
    """Who lost the connection while another wrote the same bytes is told what became of its own commit, not of the other's."""
    io = store.io
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    other = PostgresStore(url)
    journal = other.open(TENANT, "session").journal
    setattr(io, lost, 1)
    if lost == "before":
        io.meanwhile = lambda: journal.append(1, [new_record("same")])
        with pytest.raises(ConflictError) as caught:
            session.journal.append(1, [new_record("same")])
        assert 2 == caught.value.head
        assert ["a", "same"] == texts_of(session.journal)
    else:
        io.meanwhile = lambda: journal.append(2, [new_record("same")])
        assert 2 == session.journal.append(1, [new_record("same")])
        assert ["a", "same", "same"] == texts_of(session.journal)
    other.close()


def test_a_connection_that_is_lost_twice_is_said(store: LosingStore) -> None:
    """When it is lost again, nobody knows what was written: an error says so, and what is there is seen by refreshing."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    store.io.before = 2
    with pytest.raises(UnavailableError, match="lost"):
        session.journal.append(1, [new_record("b")])
    assert 2 == session.journal.append(session.journal.head(), [new_record("b")])


def test_a_change_is_done_again_once(store: LosingStore) -> None:
    """Whoever loses the connection while something else than records is written does not notice, unless it is lost again."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    store.io.changes = 1
    session.pages.put({"usr-1": b"page", "usr-2": b"page"})
    store.io.changes = 2
    with pytest.raises(UnavailableError, match="lost"):
        session.pages.remove(["usr-1"])
    assert ["usr-1", "usr-2"] == sorted(session.pages.names())


def test_a_connection_that_breaks_amid_a_change_is_not_used_again(store: LosingStore, url: str) -> None:
    """When the server ends connections while they are written to, calls go on with new ones."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")

    def write() -> None:
        for _ in range(100):
            with suppress(UnavailableError):
                session.pages.put({f"usr-{number}": b"page" * 1_000 for number in range(20)})

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        end_connections(url)
    writer.join()
    session.pages.put({"usr-1": b"last"})
    assert b"last" == session.pages.find("usr-1")


def test_a_deletion_meanwhile_is_told(store: LosingStore, url: str) -> None:
    """Who lost the connection while the session was deleted is told that."""
    io = store.io
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    other = PostgresStore(url)
    io.before, io.meanwhile = 1, lambda: other.delete(TENANT, "session")
    with pytest.raises(UnavailableError, match="deleted"):
        session.journal.append(1, [new_record("b")])
    other.close()


def test_a_server_can_be_restarted() -> None:
    """While the server is away calls say so, and once it is back they go on; what was acknowledged survived its crash."""
    with running_server() as server:
        store = PostgresStore(server.url())
        session = store.open(TENANT, "session")
        append_each(session.journal, "a")
        server.stop()
        for call in (session.journal.head, lambda: session.journal.append(1, [new_record("b")])):
            with pytest.raises(UnavailableError, match="see to the server"):
                call()
        server.start()
        assert ["a"] == texts_of(session.journal)
        assert 2 == session.journal.append(1, [new_record("b")])
        store.close()


def test_a_pool_has_a_limit(url: str) -> None:
    """A process opens no more connections than the URL allows; who waits too long for one is told what to raise."""
    store = PostgresStore(f"{url}&memci_pool=2", io=LosingIo())
    pool = store._database
    with (
        pool.connection(),
        pool.connection(),
        pytest.raises(UnavailableError, match="memci_pool"),
    ):
        list(store.sessions(TENANT))
    store.close()
    io = CountingPostgres()  # this one waits longer
    store = PostgresStore(f"{url}&memci_pool=2", io=io)
    in_threads(lambda name: append_each(store.open(TENANT, name).journal, *"ab"), "12345678")
    assert 8 == len(list(store.sessions(TENANT)))
    assert 2 == io.connections
    store.close()


def test_an_interrupted_call_gives_its_connection_up(url: str) -> None:
    """A call that is interrupted keeps no connection of the pool, and leaves none that an answer is still on its way to."""

    class InterruptedIo(CountingPostgres):
        is_due = False

        def execute(self, connection: psycopg.Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            if self.is_due:
                raise KeyboardInterrupt
            return super().execute(connection, sql, values)

    io = InterruptedIo()
    store = PostgresStore(f"{url}&memci_pool=1", io=io)
    assert [] == list(store.sessions(TENANT))
    io.is_due = True
    with pytest.raises(KeyboardInterrupt):
        list(store.sessions(TENANT))
    io.is_due = False
    assert [] == list(store.sessions(TENANT))
    assert 2 == io.connections
    store.close()


def test_a_server_without_syncs_keeps_no_promise(url: str) -> None:
    """A server that runs with fsync = off is refused, unless the weaker durability was asked for."""
    store = PostgresStore(url, io=LaxIo())
    with pytest.raises(UnavailableError, match="fsync"):
        list(store.sessions(TENANT))
    weaker = PostgresStore(url, "flush", io=LaxIo())
    assert [] == list(weaker.sessions(TENANT))
    store.close()
    weaker.close()


@pytest.mark.parametrize(
    ("durability", "asked", "found"), [("fsync", "off", "on"), ("fsync", "local", "local"), ("flush", "on", "off")]
)
def test_a_commit_waits_for_the_disk(url: str, durability: str, asked: str, found: str) -> None:
    """A commit is synced unless the weaker durability was asked for, whatever the server's default; stronger ones are kept."""
    store = PostgresStore(f"{url}%20-csynchronous_commit%3D{asked}", durability)
    assert [(found,)] == store._database.read("SHOW synchronous_commit")
    assert [("1min",)] == store._database.read("SHOW statement_timeout")
    store.close()


def test_what_is_put_together_is_there_together_or_not_at_all(store: LosingStore) -> None:
    """Where one statement of a change fails, nothing is done of those before it, and the next change goes through."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    page = "INSERT INTO {}page (session, name, body) VALUES (?, ?, ?)"
    values = [(1, "usr-1", b"page"), (1, "usr-2", b"page"), (1, "usr-1", b"page")]
    with pytest.raises(CorruptError):
        store._database.run([(page, each) for each in values], "session")
    assert [] == list(session.pages.names())
    session.pages.put({"usr-1": b"page"})
    assert ["usr-1"] == list(session.pages.names())


def test_a_blob_that_is_put_again_survives_a_sweep_that_began_before(store: LosingStore, url: str) -> None:
    """Who drops the last reference to a blob waits for another session that is just putting it, and leaves it alone."""
    one, two = store.open(TENANT, "one"), store.open(TENANT, "two")
    name = "a" * 64
    for session in (one, two):
        append_each(session.journal, "a")
    one.blobs.put({name: b"blob"}, 1)
    with psycopg.connect(url) as other:
        other.execute("UPDATE memci_blob SET puts = puts + 1")
        other.execute("INSERT INTO memci_blob_use SELECT id, %s, 1 FROM memci_session WHERE name = 'two'", [name])
        thread = threading.Thread(target=one.blobs.drop, args=([name], 1))
        thread.start()
        while not run(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'memci'"):
            pass
        other.commit()
        thread.join()
    assert ([], [name]) == (list(one.blobs.names()), list(two.blobs.names()))
    assert b"blob" == two.blobs.find(name)


def test_a_statement_that_takes_too_long_is_ended(url: str) -> None:
    """An append that waits for a lock longer than the timeout is an error, and nothing of it is written."""
    store = PostgresStore(f"{url}%20-cstatement_timeout%3D50")
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM memci_session FOR UPDATE")
        with pytest.raises(UnavailableError, match="too long"):
            session.journal.append(1, [new_record("b")])
    assert 2 == session.journal.append(1, [new_record("b")])
    store.close()


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (psycopg.errors.DiskFull("full"), UnavailableError, "make room"),
        (psycopg.errors.TooManyConnections("many"), UnavailableError, "max_connections"),
        (psycopg.errors.SerializationFailure("race"), UnavailableError, "do it again"),
        (psycopg.errors.DeadlockDetected("race"), UnavailableError, "do it again"),
        (psycopg.errors.ReadOnlySqlTransaction("standby"), UnavailableError, "primary"),
        (psycopg.errors.DataCorrupted("invalid page"), CorruptError, "backup"),
        (psycopg.errors.IndexCorrupted("invalid page"), CorruptError, "backup"),
        (psycopg.errors.UndefinedTable("no table"), UnavailableError, "tables"),
        (psycopg.InterfaceError("odd"), UnavailableError, "see to the server"),
        (psycopg.DataError(""), UnavailableError, "DataError"),
    ],
)
def test_errors_of_the_driver_are_mapped(url: str, error: psycopg.Error, kind: type[StoreError], text: str) -> None:
    """Whatever the driver raises becomes an error of memci that says what to do."""
    store = PostgresStore(url, io=FailingIo(error))
    with pytest.raises(kind, match=text):
        store.open(TENANT, "session").journal.head()
    store.close()


def test_a_user_without_rights_is_told(url: str) -> None:
    """Who may not make the tables, or not write them, is told that a right is missing."""
    schema = url.rpartition("%3D")[2]
    run(url, f"CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA {schema} TO guest")
    guest = PostgresStore(url.replace("memci@", "guest@"))
    with pytest.raises(UnavailableError, match=r"permission denied.*right"):
        list(guest.sessions(TENANT))
    guest.close()
    run(url, f"REVOKE ALL ON SCHEMA {schema} FROM guest; DROP ROLE guest")


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("user:hush%%zz@nowhere.invalid/chats", ConfigError),
        ("user:hush@nowhere.invalid:1/chats?connect_timeout=1", UnavailableError),
        ("user:hush@/chats?host=/nowhere&sslpassword=hush", UnavailableError),
        ("user:hush@/chats?host=/nowhere&unknown=hush", ConfigError),
    ],
)
def test_no_secret_is_shown(place: str, kind: type[MemciError]) -> None:
    """What cannot be read or reached is an error whose whole traceback shows no password, and nor does the store."""
    store = PostgresStore(f"postgresql://{place}")
    with pytest.raises(kind) as caught:
        list(store.sessions(TENANT))
    shown = "".join(traceback.format_exception(caught.value)) + repr(store) + repr(store._database)
    assert "hush" not in shown.replace(f'"{place}"', "")
    store.close()


def test_an_older_schema_is_migrated(url: str) -> None:
    """Only the steps that the tables did not go through yet are done, all or none, by many at once."""
    first, second, broken = (
        ("CREATE TABLE a (x int)",),
        ("ALTER TABLE a ADD COLUMN y int", "INSERT INTO a VALUES (1, 2)"),
        ("CREATE no",),
    )

    def migrate(*steps: tuple[str, ...]) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            schema.migrate_postgres(lambda sql, values=None: PostgresIo().execute(connection, sql, values or ()), steps)

    migrate(first)
    with pytest.raises(psycopg.errors.SyntaxError):
        migrate(first, second, broken)
    assert [] == run(url, "SELECT * FROM a")
    in_threads(lambda _: migrate(first, second), range(4))
    migrate(first)
    assert [(1, 2)] == run(url, "SELECT x, y FROM a")
    assert [(2,)] == run(url, "SELECT version FROM memci_schema")


def test_newer_tables_are_refused(store: LosingStore, url: str) -> None:
    """Tables that a newer memci made are neither read nor written."""
    append_each(store.open(TENANT, "session").journal, "a")
    run(url, "UPDATE memci_schema SET version = 99")
    later = PostgresStore(url)
    with pytest.raises(StoreError, match="newer memci"):
        list(later.sessions(TENANT))
    later.close()


def test_many_can_begin_at_once(url: str) -> None:
    """Workers that make the tables at the same time all succeed."""
    stores = [PostgresStore(url) for _ in range(8)]
    in_threads(lambda number: append_each(stores[number].open(TENANT, str(number)).journal, "a"), range(8))
    assert [str(number) for number in range(8)] == sorted(stores[0].sessions(TENANT))
    for store in stores:
        store.close()


def test_indexes_of_two_databases_share_a_directory(postgres: PostgresServer, tmp_path: Path) -> None:
    """Each session of each database has an index file of its own, which goes with the session."""
    stores = [PostgresStore(f"{postgres.new_url()}&memci_index={tmp_path}") for _ in range(2)]
    for number, store in enumerate(stores):
        session = store.open(TENANT, "session")
        append_each(session.journal, "a")
        with session.index.write() as writer:
            writer.set_seq(number + 1, "mark")
        session.close()
    assert [1, 2] == [store.open(TENANT, "session", read_only=True).index.seq for store in stores]
    assert 2 == len(list(tmp_path.rglob("1.sqlite")))
    for store in stores:
        store.delete(TENANT, "session")
        store.close()
    assert [] == list(tmp_path.rglob("*.sqlite*"))


def test_a_forked_child_and_its_parent_append_in_turn(store: LosingStore) -> None:
    """After a fork each has connections of its own, and the parent's goes on."""
    session = store.open(TENANT, "session")
    append_each(session.journal, "parent")
    assert [0, 0] == [in_child(lambda: append_each(session.journal, "child")), in_child(store.close)]
    append_each(session.journal, "parent again")
    assert ["parent", "child", "parent again"] == texts_of(session.journal)
    assert 1 == store.io.connections


def test_a_driver_that_is_not_there_is_named() -> None:
    """Without psycopg the first call says what to install."""
    script = """
import sys
sys.modules["psycopg"] = None  # importing it fails
import memci
try:
    memci.Engine("postgresql://localhost/chats").session("chat")
except memci.ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603 (fixed words)
    assert "its extra postgres" in done.stdout
