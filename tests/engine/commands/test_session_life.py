"""Sessions and engines: opening, closing, sharing, deleting; keys and conflicts; threads."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import (
    ConfigError,
    ConflictError,
    InvalidIdError,
    InvalidMessageError,
    PermissionDeniedError,
    SessionClosedError,
    UnavailableError,
)
from tests.engine.sessions import config_of, heard, open_session, states, talk, turn
from tests.engine.wire import assistant, calling, system, user
from tests.together import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable


def engine_on(root: Path) -> Engine:
    return Engine(FileStore(root, "flush"), config_of(active={"min_pages": 1}))


def test_a_session_goes_on_where_it_was(tmp_path: Path) -> None:
    """What was said, folded, recalled and pinned is there again when another engine opens the session."""
    with engine_on(tmp_path) as engine, engine.session("chat") as session:
        talk(session, 6)
        session.fold([1, 2, 3])
        session.recall(2)
        session.pin(1)
        before = (list(session.messages()), session.window().to_json(), session.pages(), session.turn)
    with engine_on(tmp_path) as engine, engine.session("chat") as session:
        assert before == (list(session.messages()), session.window().to_json(), session.pages(), session.turn)


def test_an_id_opened_twice_is_one_conversation() -> None:
    """Two handles of one engine share the state; each is closed for itself, and more than once."""
    engine = Engine(MemoryStore(), config_of())
    first, second = engine.session("chat"), engine.session("chat")
    first.extend(turn(1))
    assert turn(1) == list(second.messages())
    first.close()
    first.close()
    second.append(user("still here"))
    with pytest.raises(SessionClosedError, match=r"engine\.session"):
        first.append(user("a"))
    second.close()
    assert 3 == len(list(engine.session("chat").messages()))


def test_a_closed_session_does_nothing() -> None:
    """Every call on a closed handle raises ``SessionClosedError``."""
    session = open_session()
    talk(session, 1)
    session.close()
    calls: list[Callable[[], object]] = [
        lambda: session.append(user("a")), lambda: session.extend([]), session.window, session.pages, session.fold,
        session.refresh, session.undo_fold, session.verify, session.begin_page, lambda: session.recall(1),
        lambda: session.page(1), lambda: session.search("a"), lambda: session.rewind("usr-1/1"), lambda: session.set_system([]),
        lambda: list(session.messages()), lambda: session.contents, lambda: session.seq, lambda: session.explain(1),
        lambda: session.render(at=1), lambda: session.observe(print), lambda: session.report_usage(prompt_tokens=1),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(SessionClosedError):
            call()
    assert "chat" == session.id


def test_closing_the_engine_closes_its_sessions() -> None:
    """After the engine was closed its handles are closed, and it opens no more."""
    engine = Engine(MemoryStore(), config_of())
    session = engine.session("chat")
    engine.close()
    engine.close()
    for call in (session.window, lambda: engine.session("chat"), lambda: list(engine.sessions()), lambda: engine.delete("chat")):
        with pytest.raises(SessionClosedError):
            call()


def test_an_unused_session_takes_no_room(tmp_path: Path) -> None:
    """Opening and looking leaves nothing behind; the first message makes the session."""
    with engine_on(tmp_path / "chats") as engine:
        session = engine.session("chat")
        assert ([], 0, []) == (session.pages(), session.seq, list(engine.sessions()))
        with pytest.raises(InvalidMessageError):
            session.append({"role": "ghost"})
        assert [] == list(engine.sessions())
        session.append(user("a"))
        assert ["chat"] == list(engine.sessions())


def test_tenants_never_see_each_other() -> None:
    """The same id of two tenants is two conversations."""
    store = MemoryStore()
    mine, other = Engine(store, config_of(), "a").session("chat"), Engine(store, config_of(), "b").session("chat")
    mine.append(user("secret"))
    assert [] == list(other.messages())
    assert [] == list(Engine(store, config_of(), "b").sessions())


@pytest.mark.parametrize("session_id", ["", 7, None, b"chat", "\ud800"])
def test_what_is_no_id_is_refused(session_id: object) -> None:
    """A session id is text that UTF-8 can encode, of at least one character."""
    with pytest.raises(InvalidIdError):
        Engine(MemoryStore(), config_of()).session(session_id)  # type: ignore[arg-type]


def test_deleting_removes_everything(tmp_path: Path) -> None:
    """Journal, page files, index and snapshots go; open handles are closed, and the id can begin anew."""
    with engine_on(tmp_path) as engine:
        session = engine.session("chat")
        talk(session, 6)
        session.fold("all")
        engine.session("other").append(user("stay"))
        engine.delete("chat")
        engine.delete("never there")
        assert ["other"] == list(engine.sessions())
        assert ["other"] == [path.name for path in (tmp_path / "default").iterdir()]
        with pytest.raises(SessionClosedError):
            session.window()
        again = engine.session("chat")
        again.append(user("anew"))
        assert [user("anew")] == list(again.messages())


def test_a_session_deleted_by_another_process_writes_nothing(tmp_path: Path) -> None:
    """A handle on a session that another engine deleted refuses to write."""
    with engine_on(tmp_path) as engine, engine_on(tmp_path) as other:
        session = engine.session("chat")
        talk(session, 2)
        other.delete("chat")
        with pytest.raises(UnavailableError):
            session.append(user("a"))
        assert [] == list(other.sessions())


def two_handles(root: Path) -> tuple[Session, Session]:
    """Return two sessions of two engines, as two processes have them."""
    first, second = engine_on(root).session("chat"), engine_on(root).session("chat")
    talk(first, 1)
    second.refresh()
    return first, second


def test_whoever_is_behind_writes_nothing(tmp_path: Path) -> None:
    """A session that finds itself behind raises with the head, writes nothing, and goes on after ``refresh``."""
    first, second = two_handles(tmp_path)
    talk(first, 2, first=2)
    for write in (lambda: second.append(user("a")), lambda: second.pin(1), second.begin_page, lambda: second.set_system([])):
        with pytest.raises(ConflictError) as caught:
            write()
        assert (first.seq, second.seq) == (caught.value.head, caught.value.expected)
    second.refresh()
    assert "usr-4/1" == second.append(user("a")).address
    first.refresh()
    assert list(first.messages()) == list(second.messages())
    assert () == first.verify().problems == second.verify().problems


def test_a_conflict_can_be_retried_at_the_end(tmp_path: Path) -> None:
    """With ``on_conflict="retry"`` a message is appended behind what the other wrote."""
    first, second = two_handles(tmp_path)
    talk(first, 1, first=2)
    assert "usr-3/1" == second.append(user("behind"), on_conflict="retry").address
    with pytest.raises(ConfigError, match="raise or retry"):
        second.append(user("a"), on_conflict="later")  # type: ignore[arg-type]


def test_a_process_that_is_behind_says_so(tmp_path: Path) -> None:
    """Before a refresh a session that reads page facts which another has gone on writing learns that it is behind."""
    first, second = two_handles(tmp_path)
    talk(first, 4, first=2)
    first.fold("all")
    first.pages()  # which brings the index up to date
    with pytest.raises(ConflictError) as caught:
        second.pages()
    assert (second.seq, first.seq) == (caught.value.expected, caught.value.head)
    second.refresh()
    assert states(first) == states(second)
    assert first.contents == second.contents


def test_two_processes_append_in_turns(tmp_path: Path) -> None:
    """Two engines that retry lose nothing and agree in the end."""
    handles = two_handles(tmp_path)
    for number in range(20):
        handles[number % 2].append(user(f"message {number}"), on_conflict="retry")
    for session in handles:
        session.refresh()
        assert [f"message {number}" for number in range(20)] == [value["content"] for value in session.messages()][2:]
        assert () == session.verify().problems


def test_a_key_gives_the_first_answer_again() -> None:
    """Repeating a command with its key writes nothing and returns the entries it made, also after folding and reopening."""
    store = MemoryStore()
    session = open_session(store, active={"min_pages": 1})
    session.append(system("be brief"), key="s")
    first = session.append(user("once"), key="k")
    many = session.extend([assistant("a"), *turn(2)], key="m")
    talk(session, 2, first=3)

    def repeat() -> None:
        seq = session.seq
        assert first.address == session.append(user("once"), key="k").address
        assert "sys-1/1" == session.append(system("be brief"), key="s").address
        again = session.extend([assistant("a"), *turn(2)], key="m")
        assert [entry.address for entry in many] == [entry.address for entry in again]
        assert [entry.message for entry in many] == [entry.message for entry in again]
        assert seq == session.seq

    repeat()
    session.fold("all")
    repeat()
    session.close()
    session = open_session(store, active={"min_pages": 1})
    repeat()


def test_a_key_outlives_its_page() -> None:
    """A system message that was replaced since is not said again under its key."""
    session = open_session()
    first = session.append(system("one"), key="s")
    session.set_system([system("two")])
    again = session.append(system("one"), key="s")
    assert (first.address, first.message) == (again.address, again.message)
    assert [system("two")] == list(session.messages())


def test_a_key_is_for_one_command() -> None:
    """Another message, or other messages, under a known key are refused."""
    session = open_session()
    session.append(user("once"), key="k")
    for values in ([user("twice")], [user("once"), user("once")], [assistant("once")]):
        with pytest.raises(ConflictError, match="take a new key"):
            session.extend(values, key="k")
    assert 1 == len(list(session.messages()))


def test_a_retried_command_finds_its_key_in_what_the_other_wrote(tmp_path: Path) -> None:
    """When another process wrote the very command meanwhile, the retry returns its entry and writes nothing."""
    first, second = two_handles(tmp_path)
    address = first.append(user("paid once"), key="pay").address
    assert address == second.append(user("paid once"), key="pay", on_conflict="retry").address
    assert 3 == len(list(second.messages()))


@pytest.mark.parametrize("key", ["", 7, b"k", "\ud800", ["k"]])
def test_what_is_no_key_is_refused(key: object) -> None:
    """A key is text of at least one character that UTF-8 can encode."""
    session = open_session()
    with pytest.raises(InvalidIdError):
        session.append(user("a"), key=key)  # type: ignore[arg-type]
    assert 0 == session.seq


def test_a_long_key_is_a_key() -> None:
    """A key of 10,000 characters works like any other."""
    session = open_session()
    key = "k" * 10_000
    assert session.append(user("a"), key=key).address == session.append(user("a"), key=key).address
    assert session.append(user("b"), key=f"{key}2").address != session.append(user("a"), key=key).address


def test_times_are_kept_in_utc() -> None:
    """A message's time is taken in any zone, as datetime or text, without a zone as UTC, and from the clock otherwise."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    session = Engine(MemoryStore(), config_of(), clock=lambda: noon).session("chat")
    given = [
        None, noon, noon.replace(tzinfo=None), "2026-03-01T12:00:00", "2026-03-01T12:00:00Z",
        noon.astimezone(timezone(timedelta(hours=8))), "2026-03-01T14:00:00+02:00",
    ]  # fmt: skip
    assert {"2026-03-01T12:00:00+00:00"} == {session.append(user("a"), at=at).node.at for at in given}
    for at in ("yesterday", 7, "", object()):
        with pytest.raises(InvalidMessageError, match="is not a time"):
            session.append(user("a"), at=at)


def test_threads_lose_nothing() -> None:
    """Eight threads that append to one session, with windows and folds between, leave every message once, theirs in order."""
    session = open_session(active={"min_pages": 2, "max_pages": 8}, budget={"window": 2_000, "reserve": 0})

    def write(thread: int) -> None:
        for number in range(50):
            session.append(user(f"{thread}:{number}") if number % 2 else assistant(f"{thread}:{number}"))
            if number % 10 == thread:
                session.window()

    in_threads(write, range(8))
    said = [value["content"] for value in session.messages()]
    for number in range(8):
        assert [f"{number}:{each}" for each in range(50)] == [text for text in said if text.startswith(f"{number}:")]
    assert () == session.verify().problems


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    """A read-only engine shows everything, windows that need no step included, and refuses to write."""
    with engine_on(tmp_path) as engine, engine.session("chat") as session:
        talk(session, 5)
        session.fold([1, 2])
        session.window()
        before = (list(session.messages()), states(session), session.window().to_json())
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    reader = Engine(FileStore(tmp_path, "flush"), config_of(active={"min_pages": 1}), read_only=True).session("chat")
    assert before == (list(reader.messages()), states(reader), reader.window().to_json())
    assert "usr-1" == reader.search("say1x3")[0].index
    assert turn(1) == reader.page(1).messages
    for write in (lambda: reader.append(user("a")), lambda: reader.recall(1), lambda: reader.fold([3])):
        with pytest.raises(PermissionDeniedError):
            write()
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_explain_says_why_a_page_is_where_it_is() -> None:
    """In each state a page's explanation names the state, the rule and its numbers, as data and as text."""
    session = open_session(active={"min_pages": 1}, contents={"max_tokens": 400, "low_share": 0.8})
    session.append(system("be brief"))
    session.extend([user("look"), calling("x")])
    talk(session, 14, first=2)
    session.fold("all")
    session.recall(3)
    session.evict(4)
    session.restore(5)
    session.fold()
    expected = {"sys-1": "system prompt", "usr-1": "waits for its result", "usr-3": "fades in turn 21", "usr-4": "restore"}
    for index, words in expected.items():
        assert words in str(session.explain(index))
    seen = set()
    for index, state in states(session).items():
        explanation = session.explain(index)
        seen.add(state)
        assert (index, state) == (explanation.index, explanation.state.value)
        assert str(explanation).startswith(f"{index} is {state}.")
        assert explanation.reasons
        assert (state in ("open", "active", "attached")) is explanation.in_window
        assert 1_000_000 == explanation.facts["budget_tokens"]
    assert {"open", "active", "archived", "hidden", "attached", "evicted"} == seen


def test_explain_knows_what_a_directory_shows() -> None:
    """A page in a directory is in the contents page; evicted, it is told for as long as the window shows the directory."""
    session = open_session(active={"min_pages": 1}, contents={"max_tokens": 400, "low_share": 0.8})
    session.append(system("be brief"))
    talk(session, 14)
    session.fold("all")
    session.window()
    hidden = [index for index, state in states(session).items() if state == "hidden"]
    assert all(session.explain(index).in_contents for index in hidden)
    assert not session.explain("sys-1").in_contents
    session.evict(hidden[0])
    explanation = session.explain(hidden[0])
    assert ("evicted", True) == (explanation.state.value, explanation.in_contents)
    assert "The window still shows its entry" in str(explanation)
    assert hidden[0] == session.recall(hidden[0]).index


def test_settings_of_the_system_part() -> None:
    """``set_system`` replaces the system part, by nothing too, and refuses other roles; the same once more writes nothing."""
    session = open_session()
    session.append(system("one"))
    talk(session, 1)
    session.set_system([system("two"), {"role": "developer", "content": "three"}])
    assert [system("two"), {"role": "developer", "content": "three"}, *turn(1)] == session.window().messages
    before = session.seq
    session.set_system([system("two"), {"content": "three", "role": "developer"}])
    assert before == session.seq
    with pytest.raises(InvalidMessageError, match="message 1 has the role"):
        session.set_system([system("four"), user("five")])
    session.set_system([])
    assert turn(1) == session.window().messages == list(session.messages())


def test_notices_of_a_closed_fold_are_not_repeated() -> None:
    """Reopening a session tells observers nothing of what happened before."""
    store = MemoryStore()
    with open_session(store, active={"min_pages": 1}) as session:
        talk(session, 4)
        session.fold("all")
    session = open_session(store, active={"min_pages": 1})
    notices = heard(session)
    session.append(assistant("more"))
    assert [] == notices


def test_keys_hold_between_processes(tmp_path: Path) -> None:
    """A command that another process carried out under the same key gives that answer, once this one catches up by itself."""
    first, second = two_handles(tmp_path)
    address = first.append(assistant("once"), key="k").address
    first.search("once")
    assert address == second.append(assistant("once"), key="k", on_conflict="retry").address
    assert first.seq == second.seq


def test_tools_are_counted_anew_by_another_counter() -> None:
    """A session that goes on with another counter does not keep the size that the old one gave the tools."""
    store, tools = MemoryStore(), [{"type": "function", "function": {"name": "look", "description": "word " * 50}}]
    open_session(store).window(tools=tools)
    session = open_session(store, counter="approximate")
    fresh = open_session(counter="approximate").window(tools=tools)
    assert fresh.breakdown["tools"] == session.window(tools=tools).breakdown["tools"]


def test_a_session_that_another_engine_deleted_is_not_served(tmp_path: Path) -> None:
    """Who has a deleted session open hears of it with the next refresh, and reads none of its archived pages any more."""
    with Engine(f"file:{tmp_path}", config_of(active={"min_pages": 1})) as here, Engine(f"file:{tmp_path}") as there:
        session = here.session("chat")
        talk(session, 6)
        session.fold("all")
        other = there.session("chat")
        here.delete("chat")
        for call in (other.refresh, lambda: other.page("usr-2"), lambda: other.append({"role": "user", "content": "on"})):
            with pytest.raises(UnavailableError, match="deleted"):
                call()
