"""Summaries by a model behind an endpoint, named in the configuration."""

from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import ConfigError
from tests.chat.model_server import Http, Said, said, serving
from tests.engine.sessions import config_of, prepare, talk


def engine_of(summarizer: Any, **sections: Any) -> Engine:  # noqa: ANN401 (any setting)
    active = {"min_pages": 2, "max_pages": 4}
    return Engine(MemoryStore(), config_of(summarizer=summarizer, active=active, summary={"timeout_s": 60}, **sections))


def test_a_model_is_named_in_the_configuration() -> None:
    """Its line is published by the next fold, and the event says what it cost; the key is in no file and no journal."""
    answer = Said(said("question1 was asked with ask1x1"), prompt_tokens=200_000)
    with serving(lambda _: answer) as server:
        setting = {"model": "small", "base_url": server.url, "input_price": 1.0, "output_price": 4.0, "api_key": "sk-3nrc9d"}
        with engine_of(setting) as engine, engine.session("chat") as session:
            talk(session, 4, words=20)
            prepare(session)
            assert engine._pool is not None
            assert engine._pool.finish(60)
            found = [event.data for event in session.events("summary_prepared") if event.data["page"] == "usr-1"]
            assert ["question1 was asked with ask1x1"] == [data["title"] for data in found]
            assert [{"prompt_tokens": 200_000, "completion_tokens": 1, "price": 0.200004}] == [data["usage"] for data in found]
            assert ["small (prompt 1)"] == [data["by"] for data in found]
            session.fold("all")
            assert "[usr-1] question1 was asked" in session.contents.render()
            assert "sk-3nrc9d" not in repr(list(session.events()))
    assert all(request["messages"][0]["content"].startswith("Sum up") for request in server.requests)


def test_a_model_that_fails_is_told_of() -> None:
    """What the endpoint answers is the reason in the event."""
    with serving(lambda _: Http(500)) as server, engine_of({"model": "small", "base_url": server.url}) as engine:
        assert engine._pool is not None
        engine._pool.pauses_s = ()
        session = engine.session("chat")
        talk(session, 4, words=20)
        prepare(session)
        assert engine._pool.finish(60)
        assert all("status 500" in event.data["reason"] for event in session.events("summary_prepared"))
        assert 3 == len(list(session.events("summary_prepared")))


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("nobody", "there is no summarizer nobody: give one of extractive"),
        ({"base_url": "http://localhost:1/v1"}, "there is no summarizer"),
        ({"model": "small"}, "base_url"),
        ({"model": "small", "base_url": "localhost"}, "base_url"),
        ({"model": "small", "base_url": "http://localhost:1/v1", "colour": 3}, "colour"),
        ({"model": "small", "base_url": "http://localhost:1/v1", "api_key": "env:MEMCI_NO_SUCH_KEY"}, "MEMCI_NO_SUCH_KEY"),
        ({"command": "python"}, "a program and its arguments"),
    ],
)
def test_what_cannot_be_made_is_refused(setting: Any, problem: str) -> None:  # noqa: ANN401 (as above)
    """The error says which setting, and what to give."""
    with pytest.raises(ConfigError, match=problem):
        engine_of(setting)
