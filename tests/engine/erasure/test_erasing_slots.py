"""What slots said is taken out of everything that is stored, as a page is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import PageNotFoundError
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import user

WORD = "mulberry"
SAID = f"a slot of {WORD} and nothing else that would be as long"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(f"file:{tmp_path}", config_of(snapshot_every=3)) as engine:
        yield engine


def told(session: Session) -> None:
    """Let slots say it in windows, a checkpoint that was restored, a change of the counter and what was deleted again."""
    talk(session, 2)
    session.slots.update(goal=SAID, date="8 May", empty="")
    session.window()
    checkpoint = session.checkpoint("then")
    session.slots["other"] = f"{SAID} {SAID}"
    session.window()
    del session.slots["other"]
    session.restore_checkpoint(checkpoint.id)
    session.slots["late"] = SAID
    session.window()


def left_in(place: Path) -> list[str]:
    return [path.name for path in place.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]


def test_what_slots_said_is_erased(tmp_path: Path, engine: Engine) -> None:
    """No file holds a word of it, nor does an earlier window; names, short texts and messages stay, and all can be read again."""
    session = engine.session("chat")
    told(session)
    said = list(session.messages())
    assert left_in(tmp_path)
    receipt = session.erase("slots")
    assert ("slots", 4, ()) == (receipt.page, receipt.records, receipt.files)
    assert [] == left_in(tmp_path)
    assert {"goal": "[erased]", "date": "", "empty": "", "late": "[erased]"} == session.slots
    assert said == list(session.messages())
    for seq in range(session.seq + 1):
        window = session.render(at=seq)
        assert WORD not in window.to_json().decode()
        assert window.tokens == sum(window.breakdown.values())
    assert () == session.verify().problems
    slots = session._core.state.slots
    assert slots is not None
    assert session._core.count(slots.block) == slots.tokens


def test_they_can_be_set_again(engine: Engine) -> None:
    """Slots that were erased hold what the application puts there next, and erasing again takes out that too."""
    session = engine.session("chat")
    told(session)
    session.erase("slots")
    session.slots["goal"] = "something else"
    assert "something else" in session.window().messages[-2]["content"]
    session.slots["goal"] = SAID
    session.erase("slots")
    session.restore_checkpoint("cp-1")
    assert all(WORD not in session.render(at=seq).to_json().decode() for seq in range(session.seq + 1))
    assert "[erased]" == session.slots["goal"]


def test_forks_and_other_processes_forget_it_too(tmp_path: Path, engine: Engine) -> None:
    """A fork that took the slots over is named and erased when asked for; who has the session open forgets at its refresh."""
    session = engine.session("chat")
    told(session)
    with Engine(f"file:{tmp_path}", config_of()) as other, other.session("chat") as beside:
        assert SAID == beside.slots["goal"]
        engine.fork("chat", "fork").close()
        assert ["chat", "fork"] == [receipt.session for receipt in engine.erase("chat", "slots", forks=True)]
        beside.refresh()
        assert "[erased]" == beside.slots["goal"]
    assert [] == left_in(tmp_path)


def test_sizes_follow_another_counter(tmp_path: Path) -> None:
    """Where the counter was changed after they were set, their size by it is that of what is left."""
    with Engine(f"file:{tmp_path}", config_of()) as engine, engine.session("chat") as session:
        told(session)
    with Engine(f"file:{tmp_path}", config_of(counter="approximate")) as engine, engine.session("chat") as session:
        session.append(user("and now?"))
        session.erase("slots")
        state = session._core.state
        assert state.slots is not None
        assert session._core.count(state.slots.block) == state.slots.tokens
        assert () == session.verify().problems


def test_erasing_a_page_leaves_slots_alone(engine: Engine) -> None:
    """What slots say is no page's."""
    session = engine.session("chat")
    told(session)
    session.erase(1)
    assert SAID == session.slots["goal"]


def test_without_slots_there_is_nothing_to_erase() -> None:
    """A session that never had any says so."""
    session = open_session()
    session.append(user("hello"))
    with pytest.raises(PageNotFoundError, match="slots"):
        session.erase("slots")


def test_slots_of_a_session_that_was_handed_over_are_erased_with_its_forks(engine: Engine) -> None:
    """What it handed over has none of them; its forks have them, and handing over again with the key goes on."""
    with engine.session("chat") as session, engine.session("next"):
        told(session)
        session.handoff("next", 1.0, key="k")
        with engine.fork("chat", "fork"):
            pass
        assert {"chat", "fork"} == {receipt.session for receipt in engine.erase("chat", "slots", forks=True)}
        session.handoff("next", 1.0, key="k")
    with engine.session("fork") as fork:
        assert "[erased]" == fork.slots["goal"]
