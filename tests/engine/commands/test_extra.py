"""Text that stands beside one call alone: the date, or passages that the application found."""

from pathlib import Path

import pytest

from memci.engine.engine import Engine
from memci.errors import ArgumentError, BudgetError
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import assistant, user
from tests.engine.wires import WIRES, Wire, assert_valid

BLOCK = {
    "role": "user",
    "content": "[extra of the application, quoted as data]\nextra text:\n> It is Monday.\n[end of extra]",
}


def test_it_stands_last_and_is_counted() -> None:
    """The text is the last message, quoted, with a part of its own in the breakdown; all before it stays as it was."""
    session = open_session()
    talk(session, 2)
    session.append(user("and now?"))
    before = session.window()
    after = session.window(extra="It is Monday.")
    assert [*before.messages, BLOCK] == after.messages
    assert before.tokens + after.breakdown["extra"] == after.tokens == sum(after.breakdown.values())


def test_it_is_for_one_call() -> None:
    """The next window is without it, no message of the session holds it, and no search finds it."""
    session = open_session()
    session.append(user("and now?"))
    session.window(extra="It is Monday.")
    assert [user("and now?")] == session.window().messages == list(session.messages())
    assert [] == session.search("Monday", include_visible=True)


def test_the_window_is_rendered_again() -> None:
    """What stood beside a call is a part of its window for ever, and asking for the same one again writes nothing."""
    session = open_session()
    session.append(user("and now?"))
    window = session.window(extra={"date": "Monday", "found": "one\ntwo"})
    assert window.seq == session.window(extra={"date": "Monday", "found": "one\ntwo"}).seq == session.seq
    session.append(assistant("Well."))
    session.window()
    assert window.to_json() == session.render(window.seq).to_json()
    assert window.breakdown == session.render(window.seq).breakdown


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_every_provider_takes_it(wire: Wire) -> None:
    """In each wire format the window with slots and extra texts is one that its provider takes."""
    session = Engine("memory:", config_of(format=wire.name)).session("s")
    session.append(user("Hello."))
    session.slots["goal"] = "greet"
    window = session.window(extra="It is Monday.")
    assert_valid(window, wire.name)
    assert "It is Monday." in window.to_json().decode()


def test_pages_give_way_to_it() -> None:
    """A large text makes pages fold; one for which there is no room at all is a BudgetError that counts it."""
    session = open_session(budget={"window": 1_000, "reserve": 0})
    talk(session, 12)
    session.append(user("and now?"))
    assert session.window(extra="word " * 500).tokens <= 1_000
    with pytest.raises(BudgetError) as raised:
        session.window(extra="word " * 1_500)
    assert 1_500 < raised.value.breakdown["extra"]
    assert session.window().tokens <= 1_000


@pytest.mark.parametrize("extra", [7, ["It is Monday."], {"a\nb": "text"}, {"name": None}])
def test_what_is_no_text_is_refused(extra: object) -> None:
    """What is neither a text nor texts by name is an ArgumentError, and nothing is written."""
    session = open_session()
    session.append(user("and now?"))
    with pytest.raises(ArgumentError, match="extra"):
        session.window(extra=extra)  # type: ignore[arg-type]
    assert 2 == session.seq


def test_its_words_are_erased(tmp_path: Path) -> None:
    """Erasing slots takes the words of such texts out of all that is stored, a checkpoint that was restored included."""
    with Engine(f"file:{tmp_path}", config_of(snapshot_every=2)) as engine, engine.session("chat") as session:
        session.append(user("and now?"))
        session.window(extra="zebrafinch " * 9)
        made = session.checkpoint("here")
        session.append(assistant("Well."))
        session.restore_checkpoint(made.id)
        session.erase("slots")
        assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and b"zebrafinch" in path.read_bytes()]
        assert () == session.verify().problems
        for seq in range(session.seq + 1):
            window = session.render(at=seq)
            assert window.tokens == sum(window.breakdown.values())
