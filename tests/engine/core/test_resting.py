"""Of many open sessions, only those that were used last have open files; the others go on as if they had never rested."""

import random
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.engine.core.open_sessions import MOST_AWAKE
from memci.engine.engine import Engine
from memci.errors import CorruptError, UnavailableError
from tests.engine.sessions import config_of, talk
from tests.engine.wire import user
from tests.faulty_io import FaultyIo
from tests.together import in_threads

CONFIG = config_of(active={"min_pages": 1, "max_pages": 2}, snapshot_every=20)
DESCRIPTORS = Path("/proc/self/fd")
SESSIONS, MOST_FILES = 1_000, 400  # beside those that are open when the test begins
FILES = 5  # a session's at most: journal, lock, and the index with what SQLite keeps beside it


def descriptors() -> int:
    return len(list(DESCRIPTORS.iterdir()))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(f"file:{tmp_path}/chats", CONFIG) as engine:
        yield engine


def put_to_rest(engine: Engine) -> None:
    """Use so many other sessions, without a file, that all that were used before rest."""
    for number in range(MOST_AWAKE):
        engine.session(f"other-{number}").refresh()


@pytest.mark.slow
def test_the_files_of_idle_sessions_are_closed(engine: Engine) -> None:
    """However many sessions are open, and used at random, no more files are open than those of a few."""
    before = descriptors()
    sessions = [engine.session(f"chat-{number}") for number in range(2 * MOST_AWAKE)]
    chance = random.Random(20_261_123)  # noqa: S311 (no secret)
    said = {session.id: 0 for session in sessions}
    for session in (*sessions, *chance.choices(sessions, k=MOST_AWAKE)):
        said[session.id] += 1
        session.extend([user(f"say {session.id} {said[session.id]}")])
        if said[session.id] > 1:
            assert session.search(f"say {session.id}", include_visible=True)
        assert descriptors() - before <= FILES * MOST_AWAKE + FILES
    assert said == {session.id: len(list(session.messages())) for session in sessions}


@pytest.mark.slow
def test_threads_use_more_sessions_than_files_can_be_open(tmp_path: Path) -> None:
    """Some hundred descriptors are enough for any number of sessions, with appends and searches in them at random."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(descriptors() + MOST_FILES, soft), hard))
    try:
        with Engine(f"file:{tmp_path}/chats", CONFIG) as engine:
            sessions = [engine.session(f"chat-{number}") for number in range(SESSIONS)]

            def work(seed: int) -> None:
                chance = random.Random(seed)  # noqa: S311 (no secret)
                for number in range(30):
                    session = chance.choice(sessions)
                    session.append(user(f"say{seed}x{number} and more"), on_conflict="retry")
                    assert session.search(f"say{seed}x{number}", include_visible=True)

            in_threads(work, range(4))
            assert 120 == sum(len(list(session.messages())) for session in sessions if session.seq)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_engine_takes_half_of_the_files_that_may_be_open(tmp_path: Path) -> None:
    """Where the limit of open files is low, fewer sessions have theirs open, and any number goes on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * (before + 10 * FILES), hard))
    try:
        with Engine(f"file:{tmp_path}/chats", CONFIG) as engine:
            for number in range(MOST_AWAKE):
                session = engine.session(f"chat-{number}")
                session.append(user("say it"))
                assert session.search("say", include_visible=True)
                assert descriptors() - before <= before + 11 * FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_a_session_gives_back(engine: Engine) -> None:
    """A session that rests has no open file, and opens them again when it is used."""
    session = engine.session("chat")
    talk(session, 5)
    for _ in range(2):
        session.search("say2x1")
        session.append(user("more"))
        used = descriptors()
        put_to_rest(engine)
        assert FILES == used - descriptors()


def test_a_session_that_rested_appends_with_one_sync(tmp_path: Path) -> None:
    """What was known of the journal holds if nobody else wrote: the next commit syncs no more than others do."""
    io = FaultyIo()
    with Engine(FileStore(tmp_path, io=io), config_of()) as engine, engine.session("chat") as session:
        talk(session, 2)
        for _ in range(2):
            before = io.syncs
            session.append(user("more"))
            assert 1 == io.syncs - before
            put_to_rest(engine)


def test_what_others_wrote_meanwhile_is_seen(engine: Engine, tmp_path: Path) -> None:
    """A session whose journal went on in another process while it rested takes that in."""
    session = engine.session("chat")
    talk(session, 2)
    put_to_rest(engine)
    with Engine(f"file:{tmp_path}/chats", CONFIG) as other, other.session("chat") as beside:
        beside.append(user("from elsewhere"))
    session.append(user("and here"), on_conflict="retry")
    assert ["from elsewhere", "and here"] == [message["content"] for message in session.messages()][-2:]


def test_what_was_erased_meanwhile_is_not_shown(engine: Engine, tmp_path: Path) -> None:
    """Another process replaced the journal while the session rested."""
    session = engine.session("chat")
    talk(session, 4)
    put_to_rest(engine)
    with Engine(f"file:{tmp_path}/chats", CONFIG) as other, other.session("chat") as beside:
        beside.erase("usr-2")
    session.refresh()
    assert not session.search("say2x1", include_visible=True)
    assert session.append(user("goes on")).address in session.window().to_json().decode() or session.verify().ok


@pytest.mark.parametrize("begun_anew", [False, True])
def test_a_session_that_was_deleted_meanwhile(engine: Engine, tmp_path: Path, *, begun_anew: bool) -> None:
    """It is told, and nothing is written into what took its place."""
    session = engine.session("chat")
    talk(session, 2)
    put_to_rest(engine)
    with Engine(f"file:{tmp_path}/chats", CONFIG) as other:
        other.delete("chat")
        if begun_anew:
            with other.session("chat") as successor:
                successor.append(user("another life"))
    with pytest.raises((UnavailableError, CorruptError)):
        session.append(user("lost"))
    with Engine(f"file:{tmp_path}/chats", CONFIG) as other, other.session("chat") as successor:
        assert (["another life"] if begun_anew else []) == [message["content"] for message in successor.messages()]


def test_messages_go_on_though_the_session_rests_between_them(engine: Engine) -> None:
    """Whoever reads page by page loses nothing."""
    session = engine.session("chat")
    talk(session, 6)
    expected = list(session.messages())
    read = []
    for message in session.messages():
        put_to_rest(engine)
        read.append(message)
    assert expected == read
