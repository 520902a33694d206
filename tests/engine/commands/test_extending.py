"""Pages in the last window are asked for together, by a request that begins with all of it; the others on their own."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memci.archive.stores.contract import Store
from memci.archive.stores.memory import MemoryStore
from memci.archive.summarizers.external.extension import Extension
from memci.archive.summarizers.external.model import ModelSummarizer, Prompt
from memci.archive.summarizers.summary import Summary
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.summaries import summarizing
from memci.messages import codec
from tests.engine.commands.test_summarizing import entries, events, pool, summarised
from tests.engine.commands.test_trimming import looked
from tests.engine.sessions import config_of, prepare, talk
from tests.engine.wire import assistant, user
from tests.engine.wires import WIRES
from tests.python_calls import python_calls

TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"z": 1, "a": {}}}}]
SECTIONS: dict[str, Any] = {
    "budget": {"window": 20_000, "reserve": 0},
    "active": {"min_pages": 2, "max_pages": 7},
    "contents": {"max_tokens": 4_000},
}


class Model:
    """Answers of each page that it is asked of, on its own or after a window; *said* may say something else after one."""

    def __init__(self, said: Callable[[str], str] = lambda text: text) -> None:
        self.said = said
        self.alone: list[Prompt] = []
        self.extended: list[Extension] = []
        self.held = threading.Event()
        self.held.set()

    def ask(self, prompt: Prompt) -> str:
        assert self.held.wait(60)
        self.alone.append(prompt)
        number = prompt[1]["content"].split("question")[1].split()[0]
        return f"question{number} was asked with ask{number}x1"

    def extend(self, window: Extension) -> Summary:
        assert self.held.wait(60)
        self.extended.append(window)
        lines = [line for line in window.messages[-1]["content"].splitlines() if line.startswith("usr-")]
        numbers = [line.split("question")[1].split()[0] for line in lines]
        pairs = zip((line.split()[0] for line in lines), numbers, strict=True)
        said = self.said("\n".join(f"{index}: question{number} was asked in /srv/box{number}" for index, number in pairs))
        first, *others = said.splitlines() or [""]
        usage = {"prompt_tokens": 1_001, "completion_tokens": 7, "cached_tokens": 900, "price": 0.5}
        return Summary(title=first, lines=tuple(others), usage=usage)


def engine_of(model: Model, store: Store | None = None, **sections: object) -> Engine:
    summarizer = ModelSummarizer(model.ask, name="model", extend=model.extend)
    engine = Engine(store or MemoryStore(), config_of(**{**SECTIONS, **sections}), summarizer=summarizer)
    pool(engine).pauses_s = ()
    return engine


def called(session: Session, turns: int, *, first: int = 1, words: int = 120) -> None:
    """Append turns, with a window before each answer."""
    for number in range(first, first + turns):
        session.append(user(f"question{number} in /srv/box{number} " + " ".join(f"ask{number}x{word}" for word in range(words))))
        session.window(tools=TOOLS)
        session.append(assistant(f"answer{number} " + " ".join(f"say{number}x{word}" for word in range(words))))


def asked(session: Session) -> dict[str, str]:
    return {event.data["page"]: event.data["asked"] for event in events(session)}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_the_request_begins_as_the_last_window(wire: Any) -> None:  # noqa: ANN401 (a format's messages)
    """Byte for byte, in each wire format, with its system prompt and tools, and calls and results among the messages."""
    model = Model()
    with engine_of(model, format=wire.name) as engine, engine.session("chat") as session:
        session.append(wire.system("Be brief."))
        for number in range(1, 8):
            said = " ".join(f"ask{number}x{word}" for word in range(60))
            session.append(wire.user(f"question{number} in /srv/box{number} {said}"))
            session.extend(wire.answer("", "I look.", [f"call{number}"]))
            session.append(wire.result(f"call{number}", " ".join(f"found{number}x{word}" for word in range(30))))
            sent = session.window(tools=TOOLS)
            session.extend(wire.answer("", f"answer{number}", []))
        summarised(engine, session)
        (request,) = model.extended
        assert request.to_json().startswith(session.render(at=sent.seq).to_json()[:-1] + b",")
        assert len(sent.messages) + 1 == len(request.messages)
        assert (wire.name, sent.system, TOOLS) == (request.format, request.system, request.tools)
        assert codec.encode(TOOLS) == codec.encode(request.tools)
        assert {f"usr-{number}": "window" for number in range(1, 7)} == asked(session)
        assert [] == model.alone


def test_pages_are_asked_for_when_the_fold_is_close() -> None:
    """All that it takes in one request; the fold publishes what came, and each event has its part of what that cost."""
    model = Model()
    with engine_of(model) as engine, engine.session("chat") as session:
        called(session, 5)
        summarised(engine, session)
        assert [] == model.extended
        called(session, 1, first=6)
        assert pool(engine).finish(60)
        summarised(engine, session)
        assert (1, []) == (len(model.extended), model.alone)
        usages = [event.data["usage"] for event in events(session)]
        assert [5, 1_001, 7, 900] == [len(usages), *(sum(each[name] for each in usages) for name in list(usages[0])[:3])]
        assert pytest.approx(0.5) == sum(each["price"] for each in usages)
        called(session, 3, first=7)
        assert "question3 was asked in /srv/box3" == entries(session)["usr-3"].title
        assert () == session.verify().problems


@pytest.mark.parametrize("by", ["its own process", "another"])
def test_a_window_that_shows_what_was_erased_is_not_extended(by: str) -> None:
    """What the provider's cache holds of it is not sent again: pages are asked for on their own until there is a new window."""
    model, store = Model(), MemoryStore()
    with engine_of(model, store) as engine, engine.session("chat") as session:
        called(session, 6)
        with Engine(store, engine.config) as other:
            (session if by == "its own process" else other.session("chat")).erase("usr-2")
        session.refresh()
        summarised(engine, session)
        assert ([], True) == (model.extended, bool(model.alone))
        assert "ask2x1" not in str(model.alone)
        assert {"this process made no window of it"} <= set(asked(session).values())


def test_pages_that_folded_are_asked_for_after_the_window_before() -> None:
    """Where the fold came sooner: the provider has that window too, and the next fold publishes what comes."""
    model = Model()
    with engine_of(model) as engine, engine.session("chat") as session:
        called(session, 7)
        before = session.seq
        called(session, 1, first=8)
        folds = list(session.events("folded", after=before))
        assert ([], 1) == (model.extended, len(folds))
        last, _answer, _question = [each.seq for each in session.events("appended") if each.seq < folds[0].seq][-3:]
        called(session, 1, first=9)
        assert pool(engine).finish(60)
        summarised(engine, session)
        (request,) = model.extended
        assert request.to_json().startswith(session.render(at=last).to_json()[:-1] + b",")
        assert set(folds[0].data["folded"]) == asked(session).keys()
        assert {"window"} == set(asked(session).values())
        session.fold("all")
        assert "question3 was asked in /srv/box3" == entries(session)["usr-3"].title


def test_a_window_of_long_ago_is_not_extended() -> None:
    """No cache holds it any more, so that it would cost what it did at first."""
    model, minutes = Model(), [0]
    with engine_of(model) as engine:
        engine._clock = lambda: datetime(2026, 3, 1, 12, minutes[0], tzinfo=UTC)
        session = engine.session("chat")
        called(session, 6)
        minutes[0] = 5
        session.summarize()
        assert ([], {"the window was made too long ago"}) == (model.extended, set(asked(session).values()))
        session.close()


def test_what_is_missing_is_asked_for_on_its_own() -> None:
    """An answer that leaves pages out, mixes them up or is none: each page has a summary of its own, or the reason."""
    lost = Model(lambda text: "\n".join(line for line in text.splitlines() if not line.startswith(("usr-2", "usr-4"))))
    with engine_of(lost) as engine, engine.session("chat") as session:
        called(session, 6)
        summarised(engine, session)
        assert {"usr-2", "usr-4"} == {page for page, how in asked(session).items() if "says nothing of it" in how}
        assert (2, 5) == (len(lost.alone), len(events(session)))
        assert 1_001 == sum(event.data["usage"]["prompt_tokens"] for event in events(session))
        assert all(event.data["title"] for event in events(session))
    mixed = Model(lambda text: text.replace("usr-1:", "usr-9:").replace("usr-3:", "usr-1:").replace("usr-9:", "usr-3:"))
    with engine_of(mixed) as engine, engine.session("chat") as session:
        called(session, 6)
        summarised(engine, session)
        assert {"usr-1", "usr-3"} == {event.data["page"] for event in events(session) if "does not say" in event.data["reason"]}


@pytest.mark.parametrize("problem", [ValueError("no model today"), SystemExit(3)])
def test_a_request_that_fails_is_made_of_each(problem: BaseException) -> None:
    """The events tell what the one after the window said."""

    def fail(_text: str) -> str:
        raise problem

    model = Model(fail)
    with engine_of(model) as engine, engine.session("chat") as session:
        called(session, 6)
        summarised(engine, session)
        assert 5 == len(model.alone) == len([how for how in asked(session).values() if type(problem).__name__ in how])
        assert "today" not in str(asked(session))  # which may be of a page that is erased later
        assert all(event.data["title"] and not event.data["usage"] for event in events(session))


def test_a_session_that_is_opened_for_each_request_has_it_too() -> None:
    """The last window is known for as long as the engine keeps what it knows of a closed session; others do not know it."""
    model, store = Model(), MemoryStore()
    with engine_of(model, store) as engine:
        for number in range(1, 7):
            with engine.session("chat") as session:
                called(session, 1, first=number)
        assert pool(engine).finish(60)
        assert (1, 0) == (len(model.extended), len(model.alone))
    other = Model()
    with engine_of(other, store) as engine, engine.session("chat") as session:
        talk(session, 6, first=7, words=120)
        summarised(engine, session)
        assert [] == other.extended
        assert "this process made no window of it" in asked(session).values()


def test_the_cheaper_request_is_made() -> None:
    """Where the window is read at a price that is above what the pages cost together, they are asked for on their own."""
    model = Model()
    with engine_of(model, prices={"read": 1.0, "write": 1.0}) as engine, engine.session("chat") as session:
        called(session, 6)
        summarised(engine, session)
        assert ([], 5) == (model.extended, len(model.alone))
        assert {"on its own it costs less"} == set(asked(session).values())


def test_what_no_window_shows_whole_is_asked_for_on_its_own() -> None:
    """A page that was not complete when the last window was made; the others are asked for after that all the same."""
    model = Model()
    with engine_of(model) as engine, engine.session("chat") as session:
        called(session, 4)
        talk(session, 2, first=5, words=120)
        session.summarize()
        window = {f"usr-{number}": "window" for number in (1, 2, 3)}
        assert {**window, "usr-4": "no window shows all of it", "usr-5": "no window shows all of it"} == asked(session)
        assert (1, 2) == (len(model.extended), len(model.alone))


def test_trimmed_pages_are_asked_for_after_the_window_before() -> None:
    """That shows their results whole; it is known until they are asked for, which nobody has to say."""
    model = Model()
    with engine_of(model, budget={"window": 6_000, "reserve": 0}, active={"low_water": 0.6}) as engine:
        session = engine.session("chat")
        for number in range(1, 8):
            asks, looks, found, says = looked(number)
            session.extend([{**asks, "content": f"question{number}: {asks['content']}"}, looks, found])
            session.window(tools=TOOLS)
            session.append(says)
        (event,) = session.events("trimmed")
        summarised(engine, session)
        assert set(event.data["results"]) <= {page for page, how in asked(session).items() if how == "window"}
        assert looked(1)[2] in model.extended[0].messages
        assert 1 == len(session._core.prepared.windows)


def test_pages_that_changed_since_are_asked_for_as_they_are() -> None:
    """After a rewind, an undone fold, a restored checkpoint and in a fork: only what the window shows is asked for after it."""
    model = Model()
    with engine_of(model) as engine, engine.session("chat") as session:
        called(session, 4)
        checkpoint = session.checkpoint("here")
        session.fold("all")
        session.undo_fold()
        session.rewind("usr-3/2")
        session.append(assistant("another answer to question3 " + "well " * 60))
        session.append(user("question9 " + "more " * 60))
        session.summarize()
        assert {"usr-1": "window", "usr-2": "window", "usr-3": "no window shows all of it"} == asked(session)
        assert "another answer" in str(model.alone)
        session.restore_checkpoint(checkpoint.id)
        with engine.fork("chat", "fork") as fork:
            talk(fork, 2, first=10, words=120)
            fork.summarize()
            assert {"this process made no window of it"} == {
                how for page, how in asked(fork).items() if page not in asked(session)
            }
        assert () == session.verify().problems


def test_nothing_that_was_erased_is_sent_again() -> None:
    """A window from before an erasure is not extended."""
    model = Model()
    with engine_of(model) as engine, engine.session("chat") as session:
        called(session, 5)
        session.erase("usr-2")
        session.summarize()
        assert ([], {"this process made no window of it"}) == (model.extended, set(asked(session).values()))
        assert "ask2x" not in str(model.alone)


def test_asking_renders_nothing_while_it_holds_a_session() -> None:
    """The window is the one that was made: nothing is laid out, read or written of it, however many messages it has."""
    model = Model()
    model.held.clear()
    with engine_of(model, active={"min_pages": 2, "max_pages": 40}) as engine, engine.session("chat") as session:
        called(session, 35, words=60)
        with session._open() as core:
            made = python_calls(lambda: summarizing.ask(core))
        names = {code.co_name for code in made}
        assert "ask_together" in names
        assert names.isdisjoint({"lay_out", "written", "decode_list", "decode", "extension", "transcript", "assembled"})
        model.held.set()
        assert pool(engine).finish(60)
        assert model.extended


def test_an_engine_that_closes_begins_nothing() -> None:
    """What an answer leaves out as the engine is closed is asked for by the next engine."""
    model, store = Model(lambda _text: ""), MemoryStore()
    model.held.clear()
    engine = engine_of(model, store)
    pool(engine).patience_s = 0.01
    session = engine.session("chat")
    called(session, 6)
    prepare(session)
    engine.close()
    model.held.set()
    assert [] == model.alone
