"""What stores say when no further file can be opened, and when the system refuses in any other way: a typed error, always."""

import errno
import gc
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.archive.stores.sql.postgres import PostgresStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.sql.postgres_server import PostgresServer
from tests.engine.sessions import config_of, talk
from tests.engine.wire import user
from tests.faulty_io import FaultyIo

CONFIG = config_of(active={"min_pages": 2, "max_pages": 4}, snapshot_every=10, durability="fsync")
LONG = "long " * 60


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let this process open so many further files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 400), hard))
    held: list[int] = []
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(count):
            os.close(held.pop())
        yield
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def fill(engine: Engine) -> None:
    for session_id in ("chat", "gone", LONG):
        with engine.session(session_id) as session:
            talk(session, 8)
            assert session.search("say2x4")
    engine.fork("chat", "fork").close()


CALLS: dict[str, Callable[[Engine, Session], object]] = {
    "sessions": lambda engine, _: sorted(engine.sessions()),
    "open": lambda engine, _: engine.session(LONG).close(),
    "append": lambda _, session: session.append(user("more")),
    "messages": lambda _, session: list(session.messages()),
    "recall": lambda _, session: session.recall("usr-2"),
    "search": lambda _, session: session.search("say3x4"),
    "fold": lambda _, session: session.fold(pages="all"),
    "erase": lambda _, session: session.erase("usr-3"),
    "verify": lambda _, session: session.verify(),
    "fork": lambda engine, _: engine.fork("chat", "another").close(),
    "begin": lambda engine, _: engine.session("new").append(user("hello")),
    "delete": lambda engine, _: engine.delete("gone"),
}


@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("scheme", ["file:", "sqlite:///"])
def test_who_can_open_no_file_is_told_what_to_do(quick_path: Path, scheme: str, left: int) -> None:
    """Every call does what it should, or says that more files must be allowed, and does it when they are."""
    url = f"{scheme}{quick_path}/chats"
    with Engine(url, CONFIG) as engine:
        fill(engine)
    told = 0
    for name, call in CALLS.items():
        with Engine(url, CONFIG) as engine, engine.session("chat") as session:
            before = list(session.messages())
            reason = "limit of open files"
            try:
                with descriptors_left(left):
                    call(engine, session)
            except UnavailableError as error:
                reason = str(error)
                told += 1
                again = engine.session("chat")
                call(engine, again)
                again.close()
            assert "limit of open files" in reason
            assert name == "erase" or before == [*again_messages(url)][: len(before)]
    assert left or told


def again_messages(url: str) -> Iterator[object]:
    """Yield what a new process reads."""
    with Engine(url, CONFIG, read_only=True) as engine, engine.session("chat") as session:
        yield from session.messages()


ERRORS = ["EMFILE", "ENFILE", "ENOSPC", "EACCES", "EROFS", "EISDIR", "ENOTDIR", "EIO", "ELOOP"]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", ["open", "read", "write", "rename", "unlink", "make_directory", "list_directory"])
def test_whatever_the_system_refuses_is_a_typed_error(tmp_path: Path, call: str, error: str) -> None:
    """Whichever call fails, and with what, the caller gets an ``UnavailableError``, and the store goes on once it works."""
    io = FaultyIo()
    store = FileStore(tmp_path, io=io)
    session = store.open(TENANT, LONG)
    append_each(session.journal, "one")
    session.pages.put({"usr-1": b"page"})
    session.snapshots.put(1, b"{}")
    session.close()
    io.fail(call, getattr(errno, error))
    session = store.open(TENANT, LONG)
    for step in (
        lambda: list(store.sessions(TENANT)),
        session.journal.head,
        lambda: session.pages.find("usr-1"),
        lambda: list(session.pages.names()),
        session.snapshots.find,
        lambda: session.index,
        lambda: session.pages.put({"usr-2": b"page"}),
        lambda: session.snapshots.put(1, b"{}"),
        lambda: session.journal.append(1, [new_record("two")]),
        lambda: append_each(store.open(TENANT, "new").journal, "one"),
        lambda: store.delete(TENANT, "new"),
    ):
        with suppress(UnavailableError):
            step()
    io.mend()
    session = store.open(TENANT, LONG)
    append_each(session.journal, "more")
    texts = texts_of(session.journal)
    assert ["one", "more"] == [text for text in texts if text != "two"]
    assert LONG in store.sessions(TENANT)


def test_a_note_that_cannot_be_read_hides_no_session(tmp_path: Path) -> None:
    """Where the id of a session cannot be read, listing says so, and leaves nothing out."""
    io = FaultyIo()
    store = FileStore(tmp_path, io=io)
    append_each(store.open(TENANT, LONG).journal, "one")
    io.fail("open", errno.EMFILE)
    with pytest.raises(UnavailableError, match="limit of open files"):
        list(store.sessions(TENANT))


@pytest.mark.server
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the driver's, of connections that came to nothing
@pytest.mark.parametrize("is_connected", [True, False])
def test_a_server_that_cannot_be_asked_for_want_of_descriptors(postgres: PostgresServer, *, is_connected: bool) -> None:
    """Where a connection, or waiting for its answer, needs a descriptor that there is not, that is said, and it goes on later."""
    store = PostgresStore(postgres.new_url())
    session = store.open(TENANT, "session")
    append_each(session.journal, "one")
    if not is_connected:
        store.close()
        session = store.open(TENANT, "session")
    reasons = []
    for call in (session.journal.head, lambda: append_each(session.journal, "more"), lambda: list(store.sessions(TENANT))):
        try:
            with descriptors_left(0):
                call()
        except UnavailableError as error:
            reasons.append(str(error))
    assert [] == [reason for reason in reasons if "limit of open files" not in reason]
    assert is_connected or reasons
    assert ["one"] == texts_of(session.journal)[:1]
    store.close()
    gc.collect()
