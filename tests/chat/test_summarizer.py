"""Summaries by a model behind an endpoint, named in the configuration."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import ConfigError
from tests.chat.model_server import Hold, Http, Said, said, serving
from tests.engine.sessions import config_of, prepare, talk, turn


def engine_of(summarizer: Any, **sections: Any) -> Engine:  # noqa: ANN401 (any setting)
    given = {"active": {"min_pages": 2, "max_pages": 4}, "summary": {"timeout_s": 60}, **sections}
    return Engine(MemoryStore(), config_of(summarizer=summarizer, **given))


@pytest.mark.server
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


@pytest.mark.server
def test_pages_are_asked_for_after_the_last_window() -> None:
    """The request has its messages, tools and options; what the endpoint had cached costs less, and each page has its part."""
    said_of = "\n".join(f"usr-{number}: question{number} was asked" for number in range(1, 5))
    answer = Said(said(said_of), prompt_tokens=400_000, cached_tokens=300_000)
    with serving(lambda _: answer) as server:
        prices = {"input_price": 1.0, "output_price": 4.0, "cached_price": 0.1}
        setting = {"model": "small", "base_url": server.url, "request": "window", **prices}
        sections = {"active": {"min_pages": 2, "max_pages": 5}}
        with engine_of(setting, **sections) as engine, engine.session("chat") as session:
            talk(session, 4, words=80)
            session.append(turn(5, 80)[0])
            window = session.window(tools=session.toolbox.openai())
            session.append(turn(5, 80)[1])
            prepare(session)
            assert engine._pool is not None
            assert engine._pool.finish(60)
            found = [event.data for event in session.events("summary_prepared")]
            (request,) = server.requests
            assert [*window.messages, request["messages"][-1]] == request["messages"]
            assert (session.toolbox.openai(), "auto") == (request["tools"], request["tool_choice"])
            assert [("window", "")] * 4 == [(data["asked"], data["reason"]) for data in found]
            assert {"prompt_tokens": 100_000, "completion_tokens": 1, "cached_tokens": 75_000, "price": 0.032501} == {
                name: pytest.approx(number) for name, number in found[0]["usage"].items()
            }


@pytest.mark.server
def test_an_endpoint_speaks_one_format() -> None:
    """Pages of a session in another one are asked for on their own, and the events say why."""
    with serving(lambda _: said("question1 was asked")) as server:
        setting = {"model": "small", "base_url": server.url, "request": "window"}
        sections = {"active": {"min_pages": 2, "max_pages": 5}, "format": "anthropic"}
        with engine_of(setting, **sections) as engine, engine.session("chat") as session:
            talk(session, 4, words=80)
            session.append(turn(5, 80)[0])
            session.window()
            session.append(turn(5, 80)[1])
            prepare(session)
            assert engine._pool is not None
            assert engine._pool.finish(60)
            assert 4 == len(server.requests) == len([each for each in server.requests if len(each["messages"]) == 2])
            assert all("one of anthropic" in event.data["asked"] for event in session.events("summary_prepared"))


@pytest.mark.server
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


@pytest.mark.server
def test_an_endpoint_that_wants_a_pause_gets_it() -> None:
    """Its pages are asked for again when the time is over that it names, and not before."""
    now = datetime.now(UTC)
    with serving(lambda _: Http(429, retry_after="3600")) as server, ExitStack() as opened:
        engine = opened.enter_context(engine_of({"model": "small", "base_url": server.url}))
        session = opened.enter_context(engine.session("chat"))
        engine._clock = session._core.clock = lambda: now
        talk(session, 4, words=20)
        assert 0 == session.summarize(60)
        assert 3 == len(server.requests)
        assert {(now + timedelta(hours=1)).isoformat()} == {event.data["again"] for event in session.events("summary_prepared")}
        server.script = lambda _: said("question1 was asked")
        now += timedelta(seconds=3601)
        session.summarize(60)
        assert 6 == len(server.requests)


@pytest.mark.server
@pytest.mark.parametrize(
    ("script", "reason"), [(Hold(), "within 0.5 s"), (Said(said(""), prompt_tokens=200), "gave no text (stop)")]
)
def test_what_was_paid_for_is_not_asked_for_twice(script: Http, reason: str) -> None:
    """An answer that comes too late, or is empty, is not repeated; what it cost is noted where it is known."""
    with serving(lambda _: script) as server:
        setting = {"model": "small", "base_url": server.url, "timeout_s": 0.5}
        with engine_of(setting) as engine, engine.session("chat") as session:
            talk(session, 4, words=20)
            assert 0 == session.summarize(60)
            found = [event.data for event in session.events("summary_prepared")]
            assert 3 == len(server.requests) == len([data for data in found if reason in data["reason"]])
            assert {200 if "no text" in reason else None} == {data["usage"].get("prompt_tokens") for data in found}


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("nobody", "there is no summarizer nobody: give one of extractive"),
        ({"base_url": "http://localhost:1/v1"}, "there is no summarizer"),
        ({"model": "small"}, "base_url"),
        ({"model": "small", "base_url": "localhost"}, "base_url"),
        ({"model": "small", "base_url": "http://localhost:1/v1", "colour": 3}, "colour"),
        ({"model": "small", "base_url": "http://localhost:1/v1", "request": "all"}, "page, window"),
        ({"model": "small", "base_url": "http://localhost:1/v1", "api_key": "env:MEMCI_NO_SUCH_KEY"}, "MEMCI_NO_SUCH_KEY"),
        ({"command": "python"}, "a program and its arguments"),
    ],
)
def test_what_cannot_be_made_is_refused(setting: Any, problem: str) -> None:  # noqa: ANN401 (as above)
    """The error says which setting, and what to give."""
    with pytest.raises(ConfigError, match=problem):
        engine_of(setting)
