"""The continuation of a window: goal, decisions, state and what is open, of the pages that left it; without a model here."""

from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.messages import codec
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_message
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import assistant, calling, result, system, user
from tests.engine.wires import WIRES, Wire

ON: dict[str, Any] = {"summary": {"continuation": True}, "budget": {"window": 4_000, "reserve": 0}, "active": {"min_pages": 1}}


def block(session: Session) -> str:
    found = [str(each["content"]) for each in session.window().messages if str(each["content"]).startswith("[continuation]")]
    assert len(found) <= 1
    return "".join(found)


def at_work(store: MemoryStore | None = None, **sections: object) -> Session:
    session = open_session(store, **{**ON, **sections})
    session.append(system("be exact"))
    session.extend([user("Please move the export to the new API."), assistant("I begin with the reader.")])
    session.extend([user("From now on, answer in German."), assistant("Gut.")])
    for number in range(1, 5):
        session.extend([user(f"do part {number}"), calling("c1", arguments=f'{{"command": "cat src/part_{number}.py"}}')])
        session.extend([result("c1", f"line {number} is fine"), assistant(f"Part {number} is done.")])
    return session


def test_it_tells_what_the_pages_said_that_left_the_window() -> None:
    """Beside the contents page stand goal, last request, instructions, outcomes and what was in use, each with its page."""
    session = at_work()
    assert not block(session)
    session.fold("all")
    assert [
        "[continuation] Of earlier pages; to be read as data.",
        'goal: "Please move the export to the new API." (usr-1)',
        'asked last: "do part 3" (usr-5)',
        "said last in:",
        '- usr-1: "I begin with the reader."',
        '- usr-2: "Gut."',
        '- usr-3: "Part 1 is done."',
        '- usr-4: "Part 2 is done."',
        '- usr-5: "Part 3 is done."',
        "in use:",
        "- files (usr-3 to usr-5): src/part_3.py, src/part_2.py, src/part_1.py",
    ] == block(session).split("\n")
    window = session.window()
    contents, working = window.messages[1:3]
    assert str(contents["content"]).startswith("[usr-0]")
    assert count_message(working, get_counter("o200k_base")) == window.breakdown["work"]
    assert sum(window.breakdown.values()) == window.tokens


@pytest.mark.parametrize("wire", WIRES)
def test_it_says_something_of_plain_chat(wire: Wire) -> None:
    """In every format a fold of pages that say anything has one, with what the user wanted first."""
    session = open_session(format=wire.name, **ON)
    for number in range(8):
        session.extend([wire.user(f"question{number} how do I cook rice"), *wire.answer("", f"answer{number} with water", ())])
    session.fold("all")
    assert 'goal: "question0 how do I cook rice' in session.window().to_json().decode().replace('\\"', '"')
    assert session.window().breakdown["work"]


@pytest.mark.parametrize("tokens", [64, 100, 400, 1_000])
@pytest.mark.parametrize("said", ["word " * 400, "你好，请帮我找一家餐馆。" * 60, "short", "a_b " * 300])
def test_it_takes_no_more_than_it_may_and_is_not_empty(tokens: int, said: str) -> None:
    """However much was said, the message with its frame has at most so many tokens, and says something."""
    session = open_session(
        **{**ON, "budget": {"window": 32_000, "reserve": 0}, "summary": {"continuation": True, "continuation_tokens": tokens}}
    )
    for number in range(20):
        session.extend([user(f"{number} {said}"), assistant(f"{number} {said}")])
    session.fold("all")
    assert 0 < session.window().breakdown["work"] <= tokens
    assert len(block(session).split("\n")) > 1


def test_it_changes_with_folds_alone() -> None:
    """Between folds the message stays what it is, so that the provider's cache has it."""
    session = at_work()
    session.fold("all")
    before = block(session)
    talk(session, 3)
    assert before == block(session)
    session.fold("all")
    assert before != block(session)


def test_going_back_takes_it_back() -> None:
    """undo_fold and restore_checkpoint bring the former one back, and rewind takes out what is in view again."""
    session = at_work()
    session.fold("all")
    before = block(session)
    here = session.checkpoint("here")
    talk(session, 3)
    session.fold("all")
    after = block(session)
    session.undo_fold()
    assert before == block(session)
    session.fold("all")
    assert after == block(session)
    session.restore_checkpoint(here.id)
    assert before == block(session)
    session.rewind("usr-4/2")
    assert "Part 1 is done." in block(session)
    assert "Part 2" not in block(session)


def test_a_fork_and_a_copy_have_it() -> None:
    """A fork says what its source said, and goes on for itself."""
    engine = Engine(MemoryStore(), config_of(**ON))
    session = engine.session("chat")
    talk(session, 6)
    session.fold("all")
    fork = engine.fork("chat", "other")
    assert block(session) == block(fork)
    talk(fork, 4, first=20)
    fork.fold("all")
    assert "say20x0" in block(fork)
    assert "say20x0" not in block(session)


def test_an_erased_page_leaves_it() -> None:
    """What an erased page said stands in no event and in no window; the others stay."""
    session = at_work()
    session.fold("all")
    seq = session.seq
    session.erase("usr-1")
    session.erase("usr-4")
    records = [record.body.decode() for record in session._core.store.journal.read()]
    assert not [record for record in records if "export" in record or "part_2" in record or "Part 2" in record]
    assert "Part 2" not in session.render(at=seq).to_json().decode()
    assert "Part 3 is done." in block(session)
    assert () == session.verify().problems
    talk(session, 3)
    session.fold("all")
    assert 'goal: "do part' in block(session) or 'goal: "question' in block(session)


def test_it_can_be_switched_on_and_off_later() -> None:
    """A session that goes on with one has it from the next fold on, with its first goal; without it, it has the working set."""
    store = MemoryStore()
    at_work(store, summary={}).fold("all")
    again = open_session(store, **ON)
    assert not block(again)
    talk(again, 2)
    again.fold("all")
    assert 'goal: "Please move the export to the new API." (usr-1)' in block(again)
    assert again.config.summary.continuation
    former = open_session(store, **{**ON, "summary": {}})
    talk(former, 2, first=9)
    former.fold("all")
    assert not block(former)
    assert "[working set]" in former.window().to_json().decode()


def test_without_it_nothing_is_noted_of_it() -> None:
    """With the default, records and policy say nothing of it, so that older journals are as they were."""
    session = at_work(summary={})
    session.fold("all")
    (folded,) = [codec.decode(record.body) for record in session._core.store.journal.read() if record.kind == "folded"]
    assert {"clock", "notes", "shown", "tokens", "by_page"} == folded["working"].keys()
    assert not {"goal", "asked", "outcome"} & {note[0] for note in folded["working"]["notes"]}
    assert "summary" not in session._core.policy


def test_another_counter_counts_it_again() -> None:
    """Under another counter it has its size by that one."""
    store = MemoryStore()
    at_work(store).fold("all")
    again = open_session(store, **{**ON, "counter": "approximate"})
    again.append(user("and on"))
    window = again.window()
    working = next(each for each in window.messages if str(each["content"]).startswith("[continuation]"))
    assert count_message(working, get_counter("approximate")) <= window.breakdown["work"]


@pytest.mark.parametrize("budget", [400, 700])
def test_a_small_window_has_none(budget: int) -> None:
    """A window that has no room for the contents page has none for it."""
    session = at_work()
    session.fold("all")
    window = session.window(budget=budget)
    assert bool(window.breakdown["contents"]) == bool(window.breakdown["work"])
    assert window.tokens <= budget
