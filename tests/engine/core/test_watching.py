"""What an observer of the engine hears: what happens in any session, whose it is, and how long it took."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import memci
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import ConfigError, ConflictError, UnavailableError
from tests.engine.sessions import config_of, talk
from tests.engine.wire import user

SMALL = {"window": 1_500, "reserve": 0}


def test_it_hears_of_all_sessions() -> None:
    """Open already or opened later, of any tenant; observers of a session hear of that alone, and of less."""
    heard, own = list[memci.EngineNotice](), list[memci.Notice]()
    with Engine(MemoryStore(), config_of()) as engine:
        before = engine.session("before")
        before.observe(own.append)
        engine.observe(heard.append)
        later = engine.session("later", tenant="they")
        for session in (before, later):
            talk(session, 3)
            session.window()
            session.fold([1, 2])
            session.recall(1)
            session.fade(1)
    for name, tenant in (("before", "default"), ("later", "they")):
        kinds = [type(each).__name__ for each in heard if (each.session, each.tenant) == (name, tenant)]
        assert ["Appended", "Appended", "Appended", "ZoneChange", "WindowMade", "Fold", "Recall", "Fade"] == kinds
    assert ["ZoneChange", "Fold", "Recall"] == [type(each).__name__ for each in own]
    assert {""} == {each.session for each in own}


def test_it_hears_how_long_and_how_much() -> None:
    """Appends and windows have their numbers; seconds are above 0."""
    heard = list[memci.EngineNotice]()
    with Engine(MemoryStore(), config_of(budget=SMALL)) as engine, engine.session("chat") as session:
        engine.observe(heard.append)
        talk(session, 10, words=30)
        window = session.window()
        appended = [each for each in heard if isinstance(each, memci.Appended)]
        made = [each for each in heard if isinstance(each, memci.WindowMade)]
        assert (20, 10) == (sum(each.messages for each in appended), len(appended))
        assert [(window.tokens, 1_500, window.zone, session.seq)] == [(e.tokens, e.budget, e.zone, e.seq) for e in made]
        assert all(0 < seconds < 60 for seconds in [*(each.seconds for each in appended), *(each.seconds for each in made)])


def test_it_hears_of_conflicts_and_fades(tmp_path: Path) -> None:
    """Where somebody else wrote first, also where the command was begun again; and of what leaves by itself."""
    heard = list[memci.EngineNotice]()
    with Engine(FileStore(tmp_path), config_of(recall={"turns": 1})) as one, Engine(FileStore(tmp_path), config_of()) as two:
        session, other = one.session("chat"), two.session("chat")
        one.observe(heard.append)
        talk(session, 3)
        other.refresh()
        talk(other, 1, first=4)
        with pytest.raises(ConflictError):
            session.append(user("Mine."))
        session.append(user("Mine."), on_conflict="retry")
        assert [True] * 2 == [each.expected < each.head for each in heard if isinstance(each, memci.Conflict)]
        session.fold([1])
        session.recall(1)
        talk(session, 3, first=5)
        assert [("usr-1",)] == [each.pages for each in heard if isinstance(each, memci.Fade)]


def test_an_observer_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and the others hear."""
    heard = list[memci.EngineNotice]()

    def fail(_notice: memci.EngineNotice) -> None:
        message = "no"
        raise ValueError(message)

    with Engine(MemoryStore(), config_of()) as engine, engine.session("chat") as session, caplog.at_level(logging.ERROR):
        engine.observe(fail)
        engine.observe(heard.append)
        session.append(user("Hello."))
        assert 1 == len(heard)
    assert "an observer failed on Appended" in caplog.text


def test_what_cannot_be_called_is_refused() -> None:
    """Of an engine as of a session."""
    with Engine("memory:") as engine, pytest.raises(ConfigError, match="cannot be called"):
        engine.observe(7)  # type: ignore[arg-type]


def test_a_ping_asks_the_store(tmp_path: Path) -> None:
    """It makes nothing, and a store that gives no answer is told."""
    with Engine(f"sqlite:///{tmp_path}/chats.db") as engine:
        assert 0 < engine.ping() < 60
        assert [] == list(engine.sessions())
    assert [] == list(tmp_path.iterdir())
    with Engine("postgresql://memci@/chats?host=/nowhere") as engine, pytest.raises(UnavailableError):
        engine.ping()


def test_records_of_the_log_have_fields(caplog: pytest.LogCaptureFixture) -> None:
    """Each record of a session has its id and its tenant as fields, and no word that anybody said."""
    fails: Any = SimpleNamespace(name="fails", plan=int)  # it is called with two arguments
    engine = Engine(MemoryStore(), config_of(budget={"window": 900, "reserve": 0}), planner=fails)
    talk(engine.session("chat", tenant="acme"), 9)
    records = [record for record in caplog.records if record.name == "memci"]
    assert records
    assert {("chat", "acme")} == {(vars(record)["session"], vars(record)["tenant"]) for record in records}
    assert not any("ask1x" in record.getMessage() for record in records)
