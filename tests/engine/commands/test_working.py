"""The working set in a window: made by a fold, counted, and gone with what it was made of."""

import pytest

from memci.archive.contents.noting import latest_kinds
from memci.archive.contents.working_set import render
from memci.archive.stores.memory import MemoryStore
from memci.engine.commands.folding import MOST_WORKING_TOKENS
from memci.engine.session import Session
from memci.messages import codec
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_message
from tests.engine.sessions import open_session
from tests.engine.wire import Value, assistant, calling, result, system, user
from tests.python_calls import python_calls


def work(number: int) -> list[Value]:
    command = f'{{"command": "cat src/part_{number}.py"}}'
    said = [user(f"do part {number}: " + "word " * 60), calling("c1", arguments=command), result("c1", f"line {number} is fine")]
    return [*said, assistant("It is done. " + "so it is " * 20)]


def at_work(turns: int = 8, store: MemoryStore | None = None) -> Session:
    session = open_session(store, budget={"window": 3000, "reserve": 0}, active={"min_pages": 1}, recall={"protocol": "none"})
    session.append(system("be exact"))
    session.append(user("From now on, answer in German."))
    session.append(assistant("Gut."))
    for number in range(1, turns + 1):
        session.extend(work(number))
    return session


def block(session: Session) -> str:
    found = [each["content"] for each in session.window().messages if str(each["content"]).startswith("[working set]")]
    assert len(found) <= 1
    return "".join(found)


def test_it_stands_after_the_contents_page() -> None:
    """After a fold the window says which files calls touched, and the last command; not before."""
    session = at_work()
    assert not block(session)
    assert 0 == session.window().breakdown["work"]
    session.fold("all")
    window = session.window()
    contents, working = window.messages[1:3]
    assert str(contents["content"]).startswith("[usr-0]")
    assert "user" == working["role"]
    assert str(working["content"]).startswith("[working set]")
    assert "src/part_7.py" in block(session)
    assert count_message(working, get_counter("o200k_base")) == window.breakdown["work"]
    assert sum(window.breakdown.values()) == window.tokens


@pytest.mark.parametrize("names", [5, 40, 120])
def test_it_takes_no_more_than_it_may(names: int) -> None:
    """The message that shows it, with its frame, has 300 tokens at most, whatever it has to say."""
    session = open_session(budget={"window": 32_000, "reserve": 0}, active={"min_pages": 1}, recall={"protocol": "none"})
    listed = " ".join(f"src/p{number}/Größe_{number * 7919}.py x{number}_ü{number * 104729}_y" for number in range(names))
    session.extend([user("go"), calling("c1", arguments=f'{{"x": "{listed}"}}'), result("c1", "ok"), assistant("ok")])
    session.extend([user("and on"), assistant("yes"), user("z")])
    session.fold("all")
    assert 0 < session.window().breakdown["work"] <= MOST_WORKING_TOKENS


def test_calls_in_view_are_read_once() -> None:
    """However often pages fold, what the calls of messages that stay in view bring is read once a message."""
    session = at_work()
    calls = python_calls(lambda: [session.fold(f"usr-{number}") for number in (2, 3, 4)])
    assert 7 == calls[latest_kinds.__code__]  # of usr-3 to usr-9


def test_a_command_before_one_in_view_is_not_the_last() -> None:
    """The last command is shown once the pages with it folded, and none before it where it is in view."""
    session = at_work()
    session.fold("all")
    assert "last command" not in block(session)
    session.extend([user("and on"), assistant("yes"), user("go"), assistant("well")])
    session.fold("all")
    assert "last command: cat src/part_8.py → line 8 is fine" in block(session)


def test_undo_fold_brings_the_former_one_back() -> None:
    """After a fold is undone, the window shows the working set that it showed before."""
    session = at_work(4)
    session.fold("all")
    before = block(session)
    session.extend(work(5))
    session.fold("all")
    assert before != block(session)
    session.undo_fold()
    assert before == block(session)


def test_rewind_takes_out_what_comes_back_into_view() -> None:
    """What was noted from pages that are gone, or in view again, is no longer shown."""
    session = at_work()
    session.fold("all")
    session.rewind("usr-4/2")
    session.window()
    assert "src/part_2.py" in block(session)
    assert not [number for number in range(3, 9) if f"src/part_{number}.py" in block(session)]


def test_an_erased_page_leaves_it() -> None:
    """What was noted from an erased page stands in no event and in no window."""
    session = at_work()
    session.fold("all")
    session.checkpoint("here")
    session.fold("all")
    seq = session.seq
    session.restore_checkpoint("cp-1")
    session.erase("usr-4")
    session.erase("usr-1")
    records = [record.body.decode() for record in session._core.store.journal.read()]
    assert not [record for record in records if "part_3" in record or "German" in record]
    assert "part_3" not in session.render(at=seq).to_json().decode()
    assert "src/part_2.py" in block(session)
    assert () == session.verify().problems


def test_another_counter_counts_it_again() -> None:
    """Under another counter the working set has its size by that one."""
    store = MemoryStore()
    at_work(store=store).fold("all")
    again = open_session(store, budget={"window": 3000, "reserve": 0}, active={"min_pages": 1}, counter="approximate")
    again.append(user("and on"))
    core = again._core
    assert core.state.working.shown
    assert core.count(core.state.wire.block(render(core.state.working))) == core.state.working.tokens


def test_an_older_journal_has_none() -> None:
    """Folds of journals that were written before there was a working set make none."""
    session = at_work()
    session.fold("all")
    core = session._core
    (folded,) = [record for record in core.store.journal.read() if record.kind == "folded"]
    body = codec.decode(folded.body)
    del body["working"]
    core.store.journal.redact({folded.seq: codec.encode(body)}, {})
    core.store.snapshots.clear()
    core.reload()
    assert not block(session)


@pytest.mark.parametrize("budget", [400, 700])
def test_it_leaves_a_small_window_with_the_contents_page(budget: int) -> None:
    """A window that has no room for the contents page has none for the working set."""
    session = at_work()
    session.fold("all")
    window = session.window(budget=budget)
    assert bool(window.breakdown["contents"]) == bool(window.breakdown["work"])
    assert window.tokens <= budget
