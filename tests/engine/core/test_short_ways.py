"""Nothing is done twice, and what a turn costs does not grow with what is visible: counted in calls, not in seconds."""

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import memci
from benchmarks.trace import profiled, ways
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.session import Session
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import folded, heard, open_session, talk
from tests.engine.wire import Value, assistant, calling, result, user

_HOME = str(Path(memci.__file__).parent)
JPEG = "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQ "
FORMATS = ("openai", "responses", "anthropic")


def called(action: Callable[[], object], *, compiled: bool = False) -> Counter[str]:
    """Return how often each function of memci is called while *action* runs, by its name; or each *compiled* one of anybody."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if compiled and event == "c_call":
            calls[getattr(argument, "__name__", "")] += 1
        if not compiled and event == "call" and frame.f_code.co_filename.startswith(_HOME):
            calls[frame.f_code.co_qualname] += 1

    profiled(action, note)
    return calls


def session_of(turns: int, store: CountingStore | None = None, **sections: Any) -> Session:  # noqa: ANN401 (sections of the config)
    """Return a session with so many visible turns, whose user spoke last and whose window was asked for."""
    session = open_session(store or CountingStore(MemoryStore()), **sections)
    talk(session, turns)
    session.append(user("and now?"))
    session.window()
    return session


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Let be loaded what is loaded once in a process, whichever of these tests is the first."""
    session = session_of(3)
    session.extend([assistant("there"), user("thanks"), calling("a")])
    session.window()
    session.append(assistant("gladly"))


@pytest.mark.parametrize("wire", FORMATS)
def test_an_append_encodes_its_message_once_and_decodes_nothing(wire: str) -> None:
    """The message becomes bytes once, which stand in the record; nothing is read back from them."""
    session = session_of(3, format=wire)
    calls = called(lambda: session.append(assistant("it is in the second drawer")))
    assert 2 == calls["encode"]  # the message, and the record around its bytes
    assert 1 == calls["embedded"]
    assert 0 == calls["decode"] + calls["Message.value"] or wire == "anthropic"  # its messages may end otherwise than they go on


@pytest.mark.parametrize("wire", ["openai", "responses"])
def test_the_stub_of_a_plain_message_is_counted_without_being_made(wire: str) -> None:
    """A message that is large enough for a stub is encoded once too, and what is counted is it and the stub's text."""
    session = session_of(3, format=wire)
    calls = called(lambda: session.append(assistant("drawer " * 600)))
    assert (2, 0, 2) == (calls["encode"], calls["decode"], calls["TiktokenCounter.count"])


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("text", ["drawer " * 600, "x \n" * 300, "中文，" * 200, "a" * 90 + "\U0001f600" * 200, JPEG * 60])
def test_the_stub_of_a_plain_message_has_the_same_count_both_ways(wire: str, text: str) -> None:
    """The short way says what counting the stub's message says, of a tool's result too."""
    with session_of(1, format=wire)._open() as core:
        for value in [assistant(text), *([result("call 1", text)] if wire == "openai" else [])]:
            message = core.state.wire.facts(value)
            counted = [core.count_stub("usr-1/3", message, core.count(message), value=given) for given in (value, None)]
            assert counted[0] == counted[1] > 0


def test_an_append_on_files_hashes_its_record_once_and_makes_four_system_calls(tmp_path: Path) -> None:
    """Its body and its line have a checksum each; the lock is taken and given back, and the size says whether others wrote."""
    session = open_session(FileStore(tmp_path, "flush"))
    talk(session, 2)
    calls = called(lambda: session.append(user("and now?")), compiled=True)
    hashes = sum(count for name, count in calls.items() if "sha256" in name)
    assert (2, 2, 1, 1) == (hashes, calls["flock"], calls["fstat"], calls["write"])
    session.window()
    calls = called(session.window, compiled=True)
    assert 0 == calls["flock"] + calls["fstat"] + calls["write"]


def test_a_turn_takes_few_calls() -> None:
    """What the user says, the window and the answer take fewer than 183 calls of functions of memci."""
    session = session_of(3)
    session.append(assistant("there"))

    def turn() -> None:
        session.append(user("and then?"))
        session.window()
        session.append(assistant("here"))

    assert called(turn).total() < 183


@pytest.mark.parametrize("wire", FORMATS)
def test_a_window_reads_back_only_what_is_new(wire: str) -> None:
    """What the last window showed is copied; the messages since are decoded together, and none is encoded again."""
    session = session_of(20, format=wire)
    session.append(assistant("there"))
    session.append(user("and then?"))
    assert 2 == called(session.window)["assembled" if wire == "openai" else "sent"]
    session.append(assistant("here"))
    calls = called(session.window, compiled=True)
    assert (1, 0) == (calls["loads"], calls["dumps"])


@pytest.mark.parametrize("wire", FORMATS)
def test_dicts_of_a_window_are_the_callers_own(wire: str) -> None:
    """What is done to them changes no other window, and not the bytes of this one."""
    session = session_of(3, format=wire)
    session.append({"role": "user", "content": [{"type": "input_text" if wire == "responses" else "text", "text": "and this?"}]})
    window = session.window()
    before = copy.deepcopy(window.messages)
    for value in window.messages:
        if isinstance(value["content"], list):
            value["content"].clear()
        value["content"] = None
    assert before == session.window().messages == json.loads(window.to_json())


def test_an_append_asks_the_journal_only_to_append() -> None:
    """Whether somebody else wrote is told by the commit itself."""
    store = CountingStore(MemoryStore())
    session = session_of(3, store)
    before = dict(store.calls)
    session.append(assistant("it is in the second drawer"))
    assert {"append": 1} == {
        name: count - before.get(name, 0) for name, count in store.calls.items() if count != before.get(name, 0)
    }


def test_an_append_and_a_window_work_the_configuration_out_once() -> None:
    """The settings in force are compared with those that are wanted once a command, and not written again."""
    session = session_of(3)
    assert 1 == called(lambda: session.append(assistant("there")))["Core.configuration"]
    calls = called(session.window)
    assert (1, 0) == (calls["Core.configuration"], calls["configuration"])


def test_an_append_that_folds_lays_the_window_out_once() -> None:
    """What was visible before the fold is known; what is left after it is laid out for its record and for the next window."""
    session = open_session(budget={"window": 700, "reserve": 0})
    notices = heard(session)
    for number in range(1, 60):
        del notices[:]
        message = user(f"question {number} " + "of the order " * 8)
        calls = called(lambda message=message: session.append(message))  # type: ignore[misc]
        if folded(notices):
            break
        session.window()
        session.append(assistant(f"answer {number} " + "to the question " * 8))
    assert folded(notices)
    assert 1 == calls["View._all"]
    assert 0 == called(session.window)["View._all"]


@pytest.mark.parametrize(
    "said", [[assistant("there")], [calling("a")], [assistant("there"), user("thanks"), assistant("gladly")]]
)
def test_what_a_turn_calls_does_not_grow_with_what_is_visible(said: list[Value]) -> None:
    """An append, and the window after it, call as many functions with 400 visible turns as with 20."""

    def counted(turns: int) -> tuple[int, int]:
        session = session_of(turns)
        appended = called(lambda: [session.append(message) for message in said])
        return appended.total(), called(session.window).total()

    assert counted(20) == counted(400)


def test_two_messages_at_once_cost_no_copy_of_what_is_visible() -> None:
    """What ``extend`` calls does not grow with what is visible."""

    def counted(turns: int) -> int:
        session = session_of(turns)
        return called(lambda: session.extend([calling("a"), result("a", "found"), assistant("there")])).total()

    assert counted(20) == counted(400)


def test_a_window_with_nothing_to_do_enters_few_files(tmp_path: Path) -> None:
    """The way of a command through the files of memci is short, and it does not turn back often."""
    found = dict(ways(str(tmp_path)))
    window, append = found["window, nothing to do"], found["append, assistant"]
    assert len(window.files) <= 10
    assert window.changes <= 20
    assert len(append.files) <= 12
    assert append.changes <= 21
