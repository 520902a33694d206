"""Why a provider's cache missed: what memci changed since the call before, or that nothing of it did."""

from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import CacheMiss
from memci.engine.engine import Engine
from memci.engine.reading.caching import CacheReport
from memci.engine.session import Session
from memci.messages.usage import cached_tokens
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import assistant, user

TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}


def long_session(**sections: Any) -> Session:  # noqa: ANN401 (sections of the config)
    """Return a session of some 9,000 tokens, of whose last window the usage was reported."""
    session = open_session(**sections)
    session.append({"role": "system", "content": "Be brief."})
    talk(session, 60, words=25)
    called(session, 0)
    return session


def called(session: Session, cached: int, **given: Any) -> CacheReport | None:  # noqa: ANN401 (arguments of window)
    """Ask for a window, as for a call, and report its usage."""
    session.append(user("and now?"))
    tokens = session.window(**given).tokens
    session.append(assistant("So it is."))
    return session.report_usage({"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": cached}}).cache


def kinds(report: CacheReport | None) -> list[str]:
    assert report is not None
    return [change.kind for change in report.changes]


def test_what_went_well_is_no_miss() -> None:
    """Where the provider had what it could, nothing changed and nothing is missed; the first report has nothing to compare."""
    session = open_session()
    talk(session, 60, words=25)
    assert None is called(session, 0)
    before = session.window().tokens
    report = called(session, before)
    assert report is not None
    assert (False, ()) == (report.missed, report.changes)
    assert report.shared_tokens == report.expected_tokens > 5_000
    assert report.reason.startswith("no miss")


def test_a_fold_is_told() -> None:
    """After a fold most of the prompt is new, and the report says that it was one, at which event."""
    session = long_session()
    session.fold([f"usr-{number}" for number in range(1, 40)])
    report = called(session, 500)
    assert report is not None
    assert report.missed
    assert "folded" in kinds(report)
    assert report.shared_tokens < report.expected_tokens / 2
    assert "a fold" in report.reason
    assert all(change.seq <= session.seq for change in report.changes)


def test_tools_are_told() -> None:
    """Other tools change a prompt from its beginning."""
    report = called(long_session(), 0, tools=[TOOL])
    assert report is not None
    assert ("tools", 0, True) == (report.changes[0].kind, report.shared_tokens, report.missed)


@pytest.mark.parametrize("wire_format", ["openai", "responses", "anthropic"])
def test_another_system_prompt_begins_another_prompt(wire_format: str) -> None:
    """Nothing is shared with the prompt before, whether the system prompt is its first message or a parameter of its own."""
    session = long_session(format=wire_format)
    session.set_system([{"role": "system", "content": "Be long."}])
    report = called(session, 0)
    assert report is not None
    assert 0 == report.shared_tokens < report.expected_tokens
    assert "system_set" in kinds(report)


@pytest.mark.parametrize("change", ["system_set", "recalled", "rewound", "slots_set", "end"])
def test_other_changes_are_told(change: str) -> None:
    """A new system part, a recall, a rewind, slots and extra texts have names."""
    session = long_session()
    session.fold(["usr-1"])
    called(session, 0)
    if change == "system_set":
        session.set_system([{"role": "system", "content": "Be long."}])
    elif change == "recalled":
        session.recall("usr-1")
    elif change == "rewound":
        session.rewind("usr-60/1")
    elif change == "slots_set":
        session.slots["goal"] = "ship"
        called(session, 0)
        session.slots["goal"] = "ship soon"
    else:
        called(session, 0, extra="It is Monday.")
    assert change in kinds(called(session, 0))


def test_time_and_the_provider_are_told() -> None:
    """Where the prompt begins as the one before, it was the provider: after minutes its time, else that it kept nothing."""
    session = long_session()
    report = called(session, 0)
    assert report is not None
    assert (True, ()) == (report.missed, report.changes)
    assert "did not keep" in report.reason
    reported = session._core.prepared.reported
    assert reported is not None
    session._core.prepared.reported = reported._replace(at=reported.at - 1_000)
    report = called(session, 0)
    assert report is not None
    assert "seconds since the call before" in report.reason


def test_observers_hear_of_a_miss() -> None:
    """Observers of the engine hear of each miss, with session and report, and of nothing else."""
    heard: list[object] = []
    engine = Engine(MemoryStore(), config_of())
    engine.observe(heard.append)
    session = engine.session("chat")
    talk(session, 60, words=25)
    called(session, 0)
    called(session, session.window().tokens)
    called(session, 0)
    (miss,) = [each for each in heard if isinstance(each, CacheMiss)]
    assert ("chat", True) == (miss.session, isinstance(miss.report, CacheReport))


def test_anthropics_marks_are_no_change() -> None:
    """Where to cache moves from call to call, and is no part of the prompt."""
    session = open_session(format="anthropic", cache_breakpoints=True)
    talk(session, 60, words=25)
    for _ in range(2):
        session.append(user("and now?"))
        tokens = session.window().tokens
        session.append(assistant("So it is."))
        report = session.report_usage({"input_tokens": 50, "cache_read_input_tokens": tokens - 50}).cache
    assert report is not None
    assert report.shared_tokens == report.expected_tokens


def test_cached_tokens_of_each_provider() -> None:
    """Where each provider says them; None where it does not."""
    assert 5 == cached_tokens({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5}})
    assert 5 == cached_tokens({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 5}})
    assert 5 == cached_tokens({"input_tokens": 4, "cache_read_input_tokens": 5})
    assert None is cached_tokens({"prompt_tokens": 9})
