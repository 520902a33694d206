"""Long-term memory: pages that are promoted by hand or by rule, what others of the tenant see of them, and how they end."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import ArgumentError, PageNotFoundError
from tests.engine.sessions import config_of, talk
from tests.engine.wire import assistant, user

BUDGET = {"window": 6_000, "reserve": 0}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(MemoryStore(), config_of(budget=BUDGET), on_conflict="retry") as engine:
        yield engine


def test_a_page_is_promoted(engine: Engine) -> None:
    """It is a note of the memory session, with its words, a name and its provenance; both journals have it."""
    session = engine.session("chat")
    talk(session, 3)
    address = session.promote("usr-2", "Second question")
    assert "memory/note-1" == address
    page = engine.page(address)
    assert "user: question2" in str(page.messages)
    assert "Second question" == page.name
    with engine.session("memory") as memory:
        assert "from usr-2 of session chat" in memory.contents.render()
    assert ["promoted"] == [event.kind for event in session.events(pages=["usr-2"]) if event.kind == "promoted"]
    assert () == session.verify().problems


def test_the_same_page_is_one_note(engine: Engine) -> None:
    """Promoting it again gives the note that is there; another page makes another one."""
    session = engine.session("chat")
    talk(session, 3)
    assert ["memory/note-1", "memory/note-1", "memory/note-2"] == [
        session.promote(index) for index in ("usr-1", "usr-1", "usr-2")
    ]


def test_a_page_that_goes_on(engine: Engine) -> None:
    """One that says more since then is a new note in the place of the old; another title renames the one that is there."""
    session = engine.session("chat")
    session.append(user("what is the answer?"))
    assert "memory/note-1" == session.promote("usr-1")
    session.append(assistant("forty-two"))
    assert ["memory/note-2"] * 3 == [session.promote("usr-1", title) for title in (None, "The answer", "The answer")]
    with engine.session("memory") as memory:
        assert ["The answer"] == [memory.facts(entry.index).title for entry in memory.contents.entries]
        assert "forty-two" in str(memory.page("note-2").messages)


def test_others_see_and_recall_it(engine: Engine) -> None:
    """A session that mounts the memory shows the note, finds it, and recalls it; one of another tenant does not."""
    session = engine.session("chat")
    session.append(user("my size of shoe is marmalade"))
    session.append(assistant("Noted."))
    session.append(user("and now?"))
    session.promote("usr-1", "Shoes")
    other = engine.session("other")
    other.append(user("which shoes?"))
    other.mount("memory")
    assert "[memory/note-1] Shoes" in other.window().to_json().decode()
    assert "marmalade" in str(other.recall("memory/note-1").messages)
    (hit, *_) = engine.search("marmalade", sessions=["memory"])
    assert "memory/note-1" == hit.address
    assert "marmalade" in str(engine.page(hit.address).messages)
    assert [] == engine.search("marmalade", tenant="stranger")


def test_rules_promote(engine: Engine) -> None:
    """Pages that were recalled often, are kept or have a bookmark are promoted as the next turn's window is made, once each."""
    rules = {"recalled": 2, "kept": True, "bookmarked": True}
    session = engine.session("chat", config={"memory": rules})
    talk(session, 6)
    session.keep("usr-4")
    session.bookmark("usr-5/1", "here")
    session.fold(["usr-1", "usr-2"])
    for _ in range(2):
        session.recall("usr-1")
        session.fade("usr-1")
    session.recall("usr-2")
    for _ in range(3):
        session.append(user("and now?"))
        session.window()
        session.append(assistant("So it is."))
    with engine.session("memory") as memory:
        assert {"usr-1", "usr-4", "usr-5"} == set(re.findall(r"from (\S+) of session chat", memory.contents.render()))
    assert 3 == sum(event.kind == "promoted" for event in session.events())


def test_what_was_taken_out_of_the_memory_stays_out(engine: Engine) -> None:
    """A rule promotes a page once: a note of it that was removed since does not come back with the next turns."""
    session = engine.session("chat", config={"memory": {"bookmarked": True}})
    talk(session, 3)
    session.bookmark("usr-1/1", "here")
    session.window()
    with engine.session("memory") as memory:
        memory.remove_page("note-1")
        for number in (4, 5):
            talk(session, 1, first=number)
            session.window()
        assert ["note-1"] == [note.index for note in memory.notes()]
        assert [] == list(memory.contents.entries)


def test_a_page_that_was_said_anew_is_promoted_anew(engine: Engine) -> None:
    """After a rewind into a page that a rule promoted, the note says what the page says then."""
    session = engine.session("chat", config={"memory": {"bookmarked": True}})
    session.extend([user("what is the answer?"), assistant("forty-one"), user("sure?")])
    session.bookmark("usr-1/1", "here")
    session.window()
    session.rewind("usr-1/2")
    session.extend([assistant("forty-two"), user("sure?")])
    session.window()
    with engine.session("memory") as memory:
        (entry,) = memory.contents.entries
        assert "forty-two" in str(memory.page(entry.index).messages)


def test_one_recall_is_enough_where_it_is_asked_for() -> None:
    """A page that shares a directory is promoted by its first recall where the rule says so."""
    engine = Engine(MemoryStore(), config_of(budget=BUDGET, memory={"recalled": 1}), on_conflict="retry")
    session = engine.session("chat")
    talk(session, 60)
    session.fold("all")
    assert not any(entry.index == "usr-30" for entry in session.contents.entries)
    session.recall("usr-30")
    session.append(user("and now?"))
    session.window()
    with engine.session("memory") as memory:
        assert "from usr-30 of session chat" in memory.contents.render()


def test_pages_whose_words_are_no_name(caplog: pytest.LogCaptureFixture) -> None:
    """What a page begins with may look like a mark: its note has another name, and no page keeps others from being promoted."""
    engine = Engine(MemoryStore(), config_of(budget=BUDGET, memory={"bookmarked": True}), on_conflict="retry")
    session = engine.session("chat")
    for text in ("[recalled page usr-1] my marmalade", "[usr-7]", "plain words of mine"):
        session.append(user(text))
        session.append(assistant("So it is."))
    for number in (1, 2, 3):
        session.bookmark(f"usr-{number}/1", "here")
    session.append(user("and now?"))
    session.window()
    with engine.session("memory") as memory:
        assert 3 == len(memory.notes())
    assert "marmalade" not in caplog.text


def test_nothing_is_promoted_by_itself(engine: Engine) -> None:
    """By default no rule is on, and no session of the memory is made."""
    session = engine.session("chat")
    talk(session, 6)
    session.keep("usr-4")
    session.window()
    assert ["chat"] == list(engine.sessions())


def test_the_memory_keeps_its_size() -> None:
    """Beyond max_notes the notes that were not recalled for longest leave its contents page; they stay stored and found."""
    engine = Engine(MemoryStore(), config_of(budget=BUDGET, memory={"max_notes": 2}), on_conflict="retry")
    session = engine.session("chat")
    talk(session, 4)
    session.promote("usr-1")
    session.promote("usr-2")
    memory = engine.session("memory")
    memory.append(user("what is there?"))
    memory.recall("note-1")
    session.promote("usr-3")
    assert ["note-1", "note-3"] == [entry.index for entry in memory.contents.entries]
    assert 3 == len(memory.notes())


def test_a_note_has_a_time_to_live() -> None:
    """Older ones leave the contents page as the next page is promoted; they stay stored."""
    now = [datetime(2026, 11, 1, tzinfo=UTC)]
    engine = Engine(MemoryStore(), config_of(budget=BUDGET, memory={"ttl_s": 3_600}), on_conflict="retry", clock=lambda: now[0])
    session = engine.session("chat")
    talk(session, 4)
    session.promote("usr-1")
    now[0] += timedelta(minutes=50)
    session.promote("usr-2")
    memory = engine.session("memory")
    assert ["note-1", "note-2"] == [entry.index for entry in memory.contents.entries]
    now[0] += timedelta(minutes=20)
    session.promote("usr-3")
    assert ["note-2", "note-3"] == [entry.index for entry in memory.contents.entries]
    assert 3 == len(memory.notes())


def test_an_expired_note_leaves_however_lately_it_was_recalled() -> None:
    """The end of its time counts more than a recall: a fresh note that was never recalled stays."""
    now = [datetime(2026, 11, 1, tzinfo=UTC)]
    engine = Engine(MemoryStore(), config_of(budget=BUDGET, memory={"ttl_s": 3_600}), on_conflict="retry", clock=lambda: now[0])
    session = engine.session("chat")
    talk(session, 4)
    session.promote("usr-1")
    memory = engine.session("memory")
    memory.append(user("what is there?"))
    now[0] += timedelta(minutes=50)
    session.promote("usr-2")
    memory.recall("note-1")
    now[0] += timedelta(minutes=20)
    session.promote("usr-3")
    assert ["note-2", "note-3"] == [entry.index for entry in memory.contents.entries]


def test_erasing_reaches_it(tmp_path: Path) -> None:
    """With forks, erasing a page takes its note out, byte by byte; deleting the session leaves the note."""
    with Engine(f"file:{tmp_path}", config_of(budget=BUDGET)) as engine:
        session = engine.session("chat")
        session.append(user("the zebrafinch sings"))
        session.append(user("at night"))
        session.append(assistant("So it does."))
        talk(session, 1, first=9)
        session.promote("usr-1", "Birds")
        session.promote("usr-2", "Nine")
        assert ("memory",) == session.erase("usr-1").shared_with
        receipts = engine.erase("chat", "usr-1", forks=True)
        assert [("chat", "usr-1"), ("memory", "note-1")] == [(each.session, each.page) for each in receipts]
        assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and b"zebrafinch" in path.read_bytes()]
        session.close()
        engine.delete("chat")
        assert "question9" in str(engine.page("memory/note-2").messages)


def test_what_cannot_be_promoted(engine: Engine) -> None:
    """A page that is not there or was erased, a root, a title that is none, and a page of the memory itself are refused."""
    session = engine.session("chat")
    talk(session, 1)
    with pytest.raises(PageNotFoundError):
        session.promote("usr-9")
    with pytest.raises(ArgumentError):
        session.promote("usr-1", " ")
    session.promote("usr-1")
    with engine.session("memory") as memory, pytest.raises(ArgumentError):
        memory.promote("note-1")
    before = session.checkpoint("before")
    session.erase("usr-1")
    for _ in range(2):
        with pytest.raises(ArgumentError, match="erased"):
            session.promote("usr-1")
        session.restore_checkpoint(before.id)
    for bad in ("usr-1", "", 7):
        with pytest.raises(ArgumentError):
            engine.page(bad)  # type: ignore[arg-type]
