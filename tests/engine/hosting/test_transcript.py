"""Transcripts: order, parts, what is said of messages, and the variants of regenerated and edited ones."""

from pathlib import Path
from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ArgumentError, MemciError
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import assistant, calling, result, user


def texts(session: Session, **given: Any) -> list[str]:  # noqa: ANN401 (arguments of transcript)
    return [said.text for said in session.transcript(**given)]


def test_the_newest_comes_first() -> None:
    """All messages but the system part, folded or not, late results in their place, newest first, with times and addresses."""
    session = open_session()
    session.append({"role": "system", "content": "Be brief."})
    session.append(user("one"), at="2026-03-01T10:00:00Z")
    session.append(calling("a"))
    session.append(user("two"))
    session.append(result("a", "late"))
    session.append(assistant("three"))
    session.fold("all")
    said = session.transcript()
    assert list(session.messages())[1:] == [each.message for each in reversed(said)]
    assert ("usr-1/1", "user", "one", "2026-03-01T10:00:00+00:00") == (
        said[-1].address,
        said[-1].role,
        said[-1].text,
        said[-1].at,
    )
    assert [each.address for each in said] == sorted([each.address for each in said], reverse=True)


def test_it_comes_in_parts() -> None:
    """Parts of any size, one after the other, are the whole, across folded pages and those in view."""
    session = open_session()
    talk(session, 30)
    session.fold([f"usr-{number}" for number in range(1, 21)])
    whole = [each.address for each in session.transcript(limit=1_000)]
    assert 60 == len(whole)
    for size in (1, 7, 50):
        found: list[str] = []
        while part := session.transcript(size, found[-1] if found else None):
            found += [each.address for each in part]
        assert whole == found


def test_a_part_costs_what_it_returns() -> None:
    """The newest messages of a long session are read without the rest of it."""
    read = []
    for turns in (20, 200):
        store = CountingStore(MemoryStore())
        session = open_session(store)
        talk(session, turns)
        session.fold("all")
        session.transcript(10)
        before = store.records
        session.transcript(10)
        read.append(store.records - before)
    assert read[0] == read[1]


@pytest.mark.parametrize(
    ("limit", "before"), [(0, None), (True, None), ("5", None), (5, "usr-1"), (5, 7), (5, "sys-1/1"), (5, "")]
)
def test_bad_arguments(limit: Any, before: Any) -> None:  # noqa: ANN401 (no such arguments)
    """What is no number and no address is refused."""
    session = open_session()
    talk(session, 2)
    with pytest.raises(MemciError):
        session.transcript(limit, before)


def test_what_is_said_of_a_message(tmp_path: Path) -> None:
    """Values by name come and go, reach no window, and last through closing, forks, rewinds and restored checkpoints."""
    with Engine(f"file:{tmp_path}", config_of()) as engine:
        session = engine.session("chat")
        talk(session, 2)
        window = session.window()
        session.annotate("usr-1/2", {"rating": 1, "model": "gpt-5", "cost": {"eur": 0.01}})
        session.annotate("usr-1/2", {"rating": -1, "model": None})
        seq = session.seq
        session.annotate("usr-1/2", {"rating": -1})
        assert (seq, window.to_json()) == (session.seq, session.window().to_json())
        made = session.checkpoint("here")
        session.annotate("usr-1/1", {"note": "\ud800 asked twice"})
        session.restore_checkpoint(made.id)
        session.fold("all")
    with Engine(f"file:{tmp_path}", config_of()) as engine, engine.session("chat") as session:
        expected = [{}, {}, {"rating": -1, "cost": {"eur": 0.01}}, {"note": "\ud800 asked twice"}]
        assert expected == [each.metadata for each in session.transcript()]
        with engine.fork("chat", "other") as fork:
            assert expected == [each.metadata for each in fork.transcript()]
        assert () == session.verify().problems


@pytest.mark.parametrize("values", [{"a": object()}, {"a": "x" * 20_000}, {"a\nb": 1}, {"a": float("nan")}])
def test_what_is_no_value_is_refused(values: dict[str, Any]) -> None:
    """What is no JSON, too long, or under a name that is no line, is an ArgumentError, and nothing is written."""
    session = open_session()
    talk(session, 1)
    seq = session.seq
    with pytest.raises(ArgumentError):
        session.annotate("usr-1/1", values)
    with pytest.raises(MemciError):
        session.annotate("usr-7/1", {"rating": 1})
    assert seq == session.seq


def test_it_is_erased_with_its_page(tmp_path: Path) -> None:
    """Erasing a page takes out what was said of its messages, byte by byte."""
    with Engine(f"file:{tmp_path}", config_of()) as engine, engine.session("chat") as session:
        talk(session, 2)
        session.annotate("usr-1/1", {"note": "zebrafinch"})
        session.annotate("usr-2/1", {"note": "stays"})
        session.erase("usr-1")
        assert [{}, {"note": "stays"}, {}, {}] == [each.metadata for each in session.transcript()]
        assert () == session.verify().problems
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and b"zebrafinch" in path.read_bytes()]


def regenerated() -> Session:
    """Return a session whose second answer was generated three times, the first of which went on."""
    session = open_session()
    talk(session, 1)
    session.append(user("which one?"))
    for number, follows in enumerate((True, False, False), start=1):
        session.append(assistant(f"answer {number}"))
        if follows:
            session.append(user("go on"))
            session.append(assistant("gone on"))
        if number < 3:
            session.rewind("usr-2/2")
    return session


def test_a_session_without_messages_in_view() -> None:
    """A new one has an empty transcript, one whose messages were all taken back too, whatever it had before."""
    session = open_session()
    assert [] == session.transcript()
    talk(session, 3)
    session.rewind("usr-1/1")
    assert [] == session.transcript(5)


def test_variants_of_an_answer() -> None:
    """Each message that came after the same one is a variant, oldest first; one alone has only itself."""
    session = regenerated()
    found = session.variants("usr-2/2")
    assert ["answer 1", "answer 2", "answer 3"] == [each.message["content"] for each in found]
    assert [False, False, True] == [each.current for each in found]
    assert 1 == len(session.variants("usr-1/1"))


def test_a_variant_is_chosen() -> None:
    """What followed it is back, and what was there is a variant that can be chosen again, any number of times."""
    session = regenerated()
    first, second, third = session.variants("usr-2/2")
    assert "usr-2/2" == session.choose(first)
    assert ["gone on", "go on", "answer 1", "which one?"] == texts(session, limit=4)
    assert [True, False, False] == [each.current for each in session.variants("usr-2/2")]
    session.choose(second.seq)
    assert ["answer 2", "which one?"] == texts(session, limit=2)
    session.choose(first)
    session.append(user("and further"))
    assert ["and further", "gone on"] == texts(session, limit=2)
    session.choose(third)
    session.choose(first)
    assert ["and further", "gone on"] == texts(session, limit=2)
    seq = session.seq
    session.choose(first)
    assert seq == session.seq
    assert () == session.verify().problems
    session.window()


def test_an_edited_question_is_a_variant() -> None:
    """A host that syncs an edited list has both questions as variants of each other."""
    session = open_session()
    session.sync([user("one"), assistant("first"), user("two"), assistant("second")])
    session.sync([user("one"), assistant("first"), user("two, but edited"), assistant("third")])
    address = session.transcript(limit=2)[1].address
    assert ["two", "two, but edited"] == [each.message["content"] for each in session.variants(address)]
    session.choose(session.variants(address)[0])
    assert ["second", "two"] == texts(session, limit=2)


@pytest.mark.parametrize("variant", [0, 1, 99, "3", None, True])
def test_what_is_no_variant_is_refused(variant: Any) -> None:  # noqa: ANN401 (no variant)
    """A number that is no message's, and what is no number, is an ArgumentError."""
    session = open_session()
    talk(session, 1)
    with pytest.raises(ArgumentError):
        session.choose(variant)
