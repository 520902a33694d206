"""What becomes of commands when another process wrote first."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.archive.stores.url import open_store
from memci.engine.aio.engine import AsyncEngine
from memci.engine.engine import Engine
from memci.engine.history.events import CheckpointRestored
from memci.engine.hosting.session import OnConflict
from memci.engine.session import Session
from memci.errors import ArgumentError, ConfigError, ConflictError, PageNotFoundError, PermissionDeniedError, UnavailableError
from tests.engine.counting_store import CountingStore, Hold
from tests.engine.many_writers import at_once, check
from tests.engine.sessions import config_of, indexes, talk, turn
from tests.engine.wire import assistant, calling, result, system, user
from tests.interrupts import interruptions
from tests.together import in_threads

ROOT = Path(__file__).parents[3]
STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "file": lambda path: FileStore(path, "flush"),
    "sqlite": lambda path: SqliteStore(path / "chats.db", "flush"),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = STORES[request.param](tmp_path)
    yield store
    store.close()


def process_on(store: Store, on_conflict: OnConflict | None = "retry", **sections: object) -> Session:
    """Open the session ``chat`` as another process does."""
    config = config_of(active={"min_pages": 1}, **sections)
    return Engine(store, config, on_conflict=on_conflict).session("chat")


def call(name: str, arguments: str) -> dict[str, object]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


COMMANDS: dict[str, Callable[[Session], object]] = {
    "append": lambda session: session.append(user("mine")),
    "append with a key": lambda session: session.append(user("mine"), key="k"),
    "extend": lambda session: session.extend(turn(50)),
    "window": lambda session: session.window(tools=session.toolbox.openai()),
    "window that folds": lambda session: session.window(budget=120),
    "recall": lambda session: session.recall(2),
    "fade": lambda session: session.fade(1),
    "evict": lambda session: session.evict(3),
    "restore": lambda session: session.restore(4),
    "pin": lambda session: session.pin(2),
    "unpin": lambda session: session.unpin(5),
    "fold": lambda session: session.fold("all"),
    "undo_fold": lambda session: session.undo_fold(),
    "close_topic": lambda session: session.close_topic("it"),
    "rewind": lambda session: session.rewind("usr-6/2"),
    "checkpoint": lambda session: session.checkpoint("here"),
    "restore_checkpoint": lambda session: session.restore_checkpoint("cp-1"),
    "set_system": lambda session: session.set_system([system("be long")]),
    "begin_page": lambda session: session.begin_page("named"),
    "report_usage": lambda session: session.report_usage(prompt_tokens=session._core.prepared.counted),
    "erase": lambda session: session.erase(2),
    "recall_page": lambda session: session.handle_tool_call(call("recall_page", '{"index": "usr-2"}')),
    "close_topic as a tool": lambda session: session.handle_tool_call(call("close_topic", '{"title": "it"}')),
    "pages": lambda session: session.pages(),
    "page": lambda session: session.page(2),
    "search": lambda session: session.search("ask2x2"),
    "explain": lambda session: session.explain(2),
    "checkpoints": lambda session: session.checkpoints(),
    "messages": lambda session: list(session.messages()),
}

ALWAYS_ANEW = {"erase", "recall_page", "close_topic as a tool"}
"""What takes in what others wrote whatever the settings say."""

READING = {"pages", "page", "search", "explain", "checkpoints", "messages"}


def begun(store: Store) -> None:
    """Make a session with pages in every state, and a checkpoint."""
    session = process_on(store)
    session.append(system("be brief"))
    talk(session, 5)
    session.checkpoint("begun")
    talk(session, 2, first=6)
    session.fold([1, 2, 3, 4, 5])
    session.recall(1)
    session.evict(4)
    session.pin(5)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_goes_on_where_others_wrote(store: Store, name: str) -> None:
    """With retry, each command that finds itself behind takes in what others wrote, and is done once, with nothing lost."""
    begun(store)
    session, other = process_on(store), process_on(store)
    session.window()
    other.refresh()
    talk(other, 1, first=8)
    other.search("say8x1")  # the index of the other process is ahead
    COMMANDS[name](session)
    for each in (session, other):
        each.refresh()
    assert session.window().to_json() == other.window().to_json()
    if name not in {"restore_checkpoint", "rewind"}:
        assert set(map(str, turn(8))) <= set(map(str, session.messages()))
    assert () == session.verify().problems
    session._core.state._check()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ALWAYS_ANEW | READING])
def test_a_command_is_refused_where_others_wrote(store: Store, name: str) -> None:
    """With raise, each command that finds itself behind raises, and nothing of it is written."""
    begun(store)
    session, other = process_on(store, "raise"), process_on(store)
    session.window()
    other.refresh()
    talk(other, 1, first=8)
    with pytest.raises(ConflictError) as caught:
        COMMANDS[name](session)
    assert (session.seq, other.seq) == (caught.value.expected, caught.value.head)
    other.refresh()
    assert caught.value.head == other.seq


class Meanwhile:
    """Another process that writes once: before the call of this number that the first one makes to its journal."""

    def __init__(self, session: Session, moment: int) -> None:
        self._session = session
        self.left = moment

    def __call__(self) -> None:
        if not self.left:
            self._session.append(assistant("meanwhile"))
            self._session.search("meanwhile")  # its index is ahead, too
        self.left -= 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_goes_on_whenever_others_write(name: str) -> None:
    """Whichever look at the journal or commit of the command another process comes before, it is done, and nothing doubled."""
    for moment in range(100):
        store = MemoryStore()
        begun(store)
        counted = CountingStore(store)
        session, other = process_on(counted), process_on(store)
        session.window()
        other.refresh()
        counted.before = meanwhile = Meanwhile(other, moment)
        COMMANDS[name](session)
        counted.before = None
        for each in (session, other):
            each.refresh()
        assert session.window().to_json() == other.window().to_json()
        assert () == session.verify().problems
        said = [message["content"] for message in session.messages() if message["content"] != "[erased]"]
        assert len(set(said)) == len(said)
        if meanwhile.left >= 0:
            return
    pytest.fail("it never ends")


def test_a_keyed_append_is_retried_as_any_other(store: Store) -> None:
    """Appends with keys, in four threads with an engine each, are all there, once, and none raises."""
    begun(store)

    def work(name: int) -> None:
        session = process_on(store, "raise")
        for number in range(20):
            session.append(assistant(f"{name}.{number}"), key=f"{name}.{number}", on_conflict="retry")

    in_threads(work, range(4))
    said = [message["content"] for message in process_on(store).messages()]
    assert {f"{name}.{number}" for name in range(4) for number in range(20)} <= set(said)
    assert len(said) == len(set(said))


def test_two_first_requests_lose_nothing(store: Store) -> None:
    """Two processes that both find the session empty, and both begin it, leave in it what each of them said."""
    first, second = process_on(store), process_on(store)
    for session, name in ((first, "a"), (second, "b")):
        session.append(system("be brief"))
        session.append(user(f"I am {name}"))
    first.refresh()
    said = [message["content"] for message in first.messages()]
    assert ["be brief", "I am a", "be brief", "I am b"] == said
    assert first.window().to_json() == second.window().to_json()
    for session in (first, second):
        session.set_system([system("be long")])
    assert ["be long", "I am a", "be brief", "I am b"] == [message["content"] for message in second.messages()]


def test_an_iterator_of_system_messages_is_read_once(store: Store) -> None:
    """A system part that comes from an iterator is whole, also where others wrote first."""
    begun(store)
    session, other = process_on(store), process_on(store)
    talk(other, 1, first=8)
    session.set_system(iter([system("a"), system("b")]))  # type: ignore[arg-type] # any iterable will do
    assert ["a", "b"] == [message["content"] for message in list(session.messages())[:2]]


def test_a_fold_that_others_folded_behind_is_not_undone(store: Store) -> None:
    """Undoing means the fold that was the last one for who asks: where others folded since, it is refused."""
    begun(store)
    session, other = process_on(store), process_on(store)
    other.fold("all")
    before = other.seq
    with pytest.raises(ConflictError, match="another one"):
        session.undo_fold()
    other.refresh()
    assert before == other.seq


def test_an_entry_that_others_replaced_is_not_rewound(store: Store) -> None:
    """Rewinding means the entry that had the address for who asks: where another one has it now, it is refused."""
    begun(store)
    session, other = process_on(store), process_on(store)
    other.rewind("usr-7/2")
    other.append(assistant("something else"))
    with pytest.raises(ConflictError, match="another entry"):
        session.rewind("usr-7/2")
    other.rewind("usr-7/2")
    with pytest.raises(PageNotFoundError):
        session.rewind("usr-7/2")


def test_a_topic_is_not_closed_over_one_that_others_closed(store: Store) -> None:
    """Whoever closes a topic means the pages since the last one it knows."""
    begun(store)
    session, other = process_on(store), process_on(store)
    other.close_topic("one")
    talk(other, 2, first=8)
    with pytest.raises(ConflictError, match="another topic"):
        session.close_topic("two")
    session.close_topic("two")
    assert all(title in session.contents.render() for title in ("one", "two"))


def test_pages_that_others_folded_are_not_folded_again(store: Store) -> None:
    """Folding pages by name leaves those alone that others folded meanwhile."""
    begun(store)
    session, other = process_on(store), process_on(store)
    assert ("usr-6",) == other.fold([6]).pages
    assert () == session.fold([6]).pages
    assert indexes(session) == indexes(other)


def test_the_engine_says_what_conflicts_do(store: Store) -> None:
    """The argument wins over the config, and a call's own over both."""
    begun(store)
    config = config_of(on_conflict="retry")
    other = process_on(store)
    for engine, retries in (
        (Engine(store, config), True),
        (Engine(store, config, on_conflict="raise"), False),
        (Engine(store), False),
        (Engine(store, on_conflict="retry"), True),
    ):
        assert ("retry" if retries else "raise") == engine.config.on_conflict
        session = engine.session("chat")
        other.append(assistant("more"))
        if not retries:
            with pytest.raises(ConflictError):
                session.checkpoint("a")
        session.append(user("a"), on_conflict="retry")
        other.append(assistant("more"))
        with pytest.raises(ConflictError):
            session.append(user("b"), on_conflict="raise")
        if retries:
            session.checkpoint("b")


@pytest.mark.parametrize("kind", [Engine, AsyncEngine])
def test_other_words_for_conflicts_are_refused(kind: type[Engine | AsyncEngine]) -> None:
    """What is neither raise nor retry is a ``ConfigError``, of the engine as of a call."""
    with pytest.raises(ConfigError) as caught:
        kind(MemoryStore(), on_conflict="again")  # type: ignore[arg-type]
    assert "on_conflict" == caught.value.path
    with pytest.raises(ConfigError) as caught:
        process_on(MemoryStore()).append(user("a"), on_conflict="again")  # type: ignore[arg-type]
    assert "on_conflict" == caught.value.path


def test_all_commands_at_once_lose_and_double_nothing(store: Store) -> None:
    """Four writers that give all commands at random meet no conflict, and each message is in the journal once."""
    at_once(store, 4, 40)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["file:{}/chats", "sqlite:///{}/chats.db"])
def test_processes_lose_and_double_nothing(scheme: str, tmp_path: Path) -> None:
    """Three processes that give all commands at random meet no conflict, and each message is in the journal once."""
    url = scheme.format(tmp_path)
    command = [sys.executable, "-m", "tests.engine.many_writers", url]
    processes = [
        subprocess.Popen([*command, f"p{number}", "40"], cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603 (fixed words)
        for number in range(3)
    ]
    told = [process.communicate()[0].splitlines() for process in processes]
    assert [0, 0, 0] == [process.returncode for process in processes]
    with closing(open_store(url, "flush")) as store:
        check(store, [text for texts in told for text in texts])


def test_an_append_that_is_written_is_never_refused(tmp_path: Path) -> None:
    """Others who write just behind a late result, whose page only the index knows, keep the answer from nobody."""
    store = FileStore(tmp_path, "flush")
    begun = process_on(store)
    begun.extend([user("start " + "word " * 50), calling("c1")])
    talk(begun, 6)
    begun.window(150)
    counted = CountingStore(store)
    session, other = process_on(counted, "raise"), process_on(store)

    def meanwhile() -> None:
        other.append(assistant("meanwhile"))
        other.search("meanwhile")

    counted.behind = meanwhile
    entry = session.append(result("c1", "done late"))
    assert ("usr-1/3", "done late") == (entry.address, entry.message["content"])
    assert 1 == sum(message.get("tool_call_id") == "c1" for message in other.messages())


@pytest.mark.parametrize("on_conflict", ["raise", "retry"])
def test_a_checkpoint_that_is_restored_is_not_restored_again(tmp_path: Path, on_conflict: OnConflict) -> None:
    """Others who write just behind the restoring are brought in, and it is done once."""
    store = FileStore(tmp_path, "flush")
    begun(store)
    counted = CountingStore(store)
    session = process_on(counted, on_conflict, recall={"turns": 9})  # settings that are put in force again behind the restoring
    session.window()
    other = process_on(store)

    def meanwhile() -> None:
        counted.behind = lambda: None
        other.append(assistant("meanwhile"))
        other.search("meanwhile")

    counted.behind = meanwhile
    session.restore_checkpoint("cp-1")
    session.refresh()
    restored = [record.seq for record in session._core.store.journal.read() if record.kind == CheckpointRestored.kind]
    assert 1 == len(restored)
    assert [*turn(5), assistant("meanwhile")] == list(session.messages())[-3:]
    assert () == session.verify().problems


def test_after_an_interrupted_command_refresh_is_enough(store: Store) -> None:
    """Wherever a signal handler raises, the message is there or not; the next command works, after a refresh at the latest."""
    session, count = process_on(store, None), 0
    for _ in interruptions(lambda: session.append(user("interrupted"))):
        count += 1
        try:
            session.append(user(f"say {count}"))
        except ConflictError:
            session.refresh()
            session.append(user(f"say {count}"))
    assert count > 100
    said = [message for message in session.messages() if message != user("interrupted")]
    assert [user(f"say {number}") for number in range(1, count + 1)] == said
    assert () == session.verify().problems


def test_what_is_in_view_is_given_until_the_store_is_asked(store: Store) -> None:
    """Another engine's deletion is met by whatever asks the store; what is in memory is given until then."""
    session = process_on(store)
    talk(session, 2)
    shown = session.window().messages
    Engine(store).delete("chat")
    assert shown == session.window().messages
    assert [*turn(2)] == list(session.page(2).messages)
    with pytest.raises(UnavailableError, match="deleted"):
        session.refresh()


def test_a_reader_that_cannot_make_a_window_is_told_how_it_is_read(store: Store) -> None:
    """With another config, the window would be written down: the error says so, and names the way to the last one."""
    session = process_on(store)
    talk(session, 2)
    last = session.window()
    reader = Engine(store, config_of(active={"min_pages": 3}), read_only=True).session("chat")
    with pytest.raises(PermissionDeniedError, match=r"config.*render\(session\.seq\)"):
        reader.window()
    assert last == reader.render(reader.seq)
    assert last == Engine(store, config_of(active={"min_pages": 1}), read_only=True).session("chat").window()


@pytest.mark.parametrize("engines", [1, 2])
def test_of_those_who_begin_a_session_at_once_one_does(store: Store, engines: int) -> None:
    """While one begins it, another one of the same id does, in the same process or another: one is told of the conflict."""
    counting = CountingStore(store)
    opened = [Engine(counting, config_of(), on_conflict="retry") for _ in range(engines)]
    begun, refused, ready = list[int](), list[ConflictError](), threading.Barrier(2, timeout=20)

    def begin(number: int) -> None:
        session = opened[number % engines].session("chat")
        ready.wait()
        try:
            session.begin({"title": f"by {number}"}, {"budget": {"window": 5_000 + number}})
            begun.append(number)
        except ConflictError as error:
            refused.append(error)
        finally:
            held.released.set()

    held = counting.hold("append") if engines > 1 else Hold()  # one engine's second one waits for the session's lock
    in_threads(begin, range(2))
    assert [(0, 2)] == [(error.expected, error.head) for error in refused]
    session = Engine(store).session("chat")
    assert 2 == session.seq
    assert (f"by {begun[0]}", 5_000 + begun[0]) == (session.metadata["title"], session.config.budget.window)


@pytest.mark.parametrize(
    ("metadata", "config"),
    [
        ({"title": 1j}, None),
        ({"title": "x" * 20_000}, None),
        ({"title": "x"}, {"budget": {"window": -1}}),
        (None, {"store": "x"}),
    ],
)
def test_what_cannot_be_begins_no_session(store: Store, metadata: dict[str, object], config: dict[str, object]) -> None:
    """Where one of what is given cannot be, nothing is written, and the session can be begun otherwise."""
    session = process_on(store)
    with pytest.raises((ArgumentError, ConfigError)):
        session.begin(metadata, config)
    assert (0, []) == (session.seq, list(Engine(store).sessions()))
    session.begin()
    assert 1 == session.seq
    assert ["chat"] == list(Engine(store).sessions())
