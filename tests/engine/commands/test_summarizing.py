"""Summaries that a summariser writes: no call waits for one, none is believed unchecked, and folds publish what is there."""

import math
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memci.archive.contents.contents_page import ContentsEntry, Directory
from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.names import SessionKey
from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.summary import Summarizer
from memci.engine.core.monitor import SummaryFailed
from memci.engine.core.summary_pool import Outcome, Request, SummaryPool
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.reading import pages
from memci.engine.reading.journal import SessionEvent
from memci.engine.session import Session
from memci.engine.summaries.continuing import content_sha256
from memci.engine.summaries.summarizing import checked
from memci.errors import ArgumentError, ConflictError, ModelError
from memci.messages.message import Message
from tests.engine.sessions import config_of, heard, prepare, talk
from tests.engine.whole_state import told
from tests.engine.wire import assistant, user

SECTIONS = {"active": {"min_pages": 3, "max_pages": 7}, "contents": {"max_tokens": 480}}


class Says:
    """A summariser that answers what *answer* makes of the number of a page's turn; it counts its calls."""

    name = "says"

    def __init__(self, answer: Callable[[str], object] | None = None) -> None:
        self.answer = answer or (lambda number: f"question{number} was asked with ask{number}x1")
        self.calls: list[str] = []

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        assert max_tokens >= 24
        number = str(messages[0].value()["content"]).split()[0].removeprefix("question")
        self.calls.append(number)
        answer = self.answer(number)
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[return-value]


def engine_on(store: Store, summarizer: Summarizer | None, **sections: object) -> Engine:
    config = config_of(budget={"window": 1_200, "reserve": 0}, **{**SECTIONS, **sections})
    engine = Engine(store, config, summarizer=summarizer)
    if engine._pool is not None:
        engine._pool.pauses_s = ()
    return engine


def pool(engine: Engine) -> SummaryPool:
    assert engine._pool is not None
    return engine._pool


def summarised(engine: Engine, session: Session) -> None:
    """Let all summaries come that are asked for now."""
    prepare(session)
    assert pool(engine).finish(60)


def events(session: Session) -> list[SessionEvent]:
    return list(session.events("summary_prepared"))


def entries(session: Session) -> dict[str, ContentsEntry]:
    return {entry.index: entry for entry in session.contents.entries if isinstance(entry, ContentsEntry)}


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return FileStore(tmp_path, "flush") if request.param == "file" else MemoryStore()


def test_a_fold_publishes_what_is_prepared(store: Store) -> None:
    """Pages that fold next are summarised before; their entries say it and name who wrote it, and it is asked for once."""
    summarizer = Says()
    with engine_on(store, summarizer, contents={"max_tokens": 4_000}) as engine, engine.session("chat") as session:
        talk(session, 6, words=20)
        summarised(engine, session)
        assert ["usr-1", "usr-2", "usr-3", "usr-4", "usr-5"] == sorted(event.data["page"] for event in events(session))
        session.fold("all")
        assert {"says"} == {entry.by for entry in entries(session).values()}
        assert "question3 was asked with ask3x1" == entries(session)["usr-3"].title
        assert "[usr-3] question3 was asked with ask3x1 · 2 entries" in session.window().to_json().decode()
        assert "usr-4" == session.search("say4x7")[0].index
        summarised(engine, session)
        assert 5 == len(summarizer.calls)
        assert () == session.verify().problems


def test_no_call_waits_for_a_summariser() -> None:
    """One that never answers keeps no append, window, fold or closing from what they do, and no page from folding."""
    released = threading.Event()
    summarizer = Says(lambda _number: released.wait(600))
    engine = engine_on(MemoryStore(), summarizer)
    pool(engine).patience_s = 0.01
    session = engine.session("chat")
    for number in range(1, 40):
        talk(session, 1, first=number, words=20)
        prepare(session)
        assert session.window().tokens <= 1_200
    assert pool(engine).most_threads == len(summarizer.calls)
    assert [] == events(session)
    assert 78 == len(list(session.messages()))
    engine.close()
    released.set()


def test_what_comes_late_is_published_by_the_next_fold(store: Store) -> None:
    """Pages that folded before their summary came have extracts till then, in entries and in directories."""
    released = threading.Event()
    summarizer = Says(lambda number: released.wait(60) and f"question{number} was asked with ask{number}x1")
    with engine_on(store, summarizer) as engine, engine.session("chat") as session:
        talk(session, 6, words=20)
        prepare(session)
        session.fold("all")
        listed = session.contents.render()
        assert "was asked with" not in listed
        released.set()
        assert pool(engine).finish(60)
        assert listed == session.contents.render()
        talk(session, 2, first=7, words=20)
        session.fold("all")
        assert "question3 was asked with ask3x1" in session.contents.render()
        assert () == session.verify().problems


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda _number: None, "a Summary or a str"),
        (lambda _number: "", "it is empty"),
        (lambda number: f"question{number} cost 4,711 euros", "'4,711 euros'"),
        (lambda number: f"[usr-1] question{number} was asked", "[usr-1]"),
        (lambda _number: "Of course, the invoices are attached", "answers"),
    ],
)
def test_what_cannot_be_believed_is_dropped(answer: Callable[[str], object], reason: str) -> None:
    """The page keeps its extracts; events, explanation and observers tell why, and it is not asked for again."""
    summarizer = Says(answer)
    with engine_on(MemoryStore(), summarizer, contents={"max_tokens": 4_000}) as engine, engine.session("chat") as session:
        notices = heard(session)
        talk(session, 4, words=20)
        summarised(engine, session)
        found = events(session)
        assert 3 == len(found) == len([each for each in notices if isinstance(each, SummaryFailed)])
        assert all(reason in event.data["reason"] and not event.data["title"] for event in found)
        assert reason in str(session.explain("usr-2"))
        calls = len(summarizer.calls)
        session.fold("all")
        assert {""} == {entry.by for entry in entries(session).values()}
        assert reason in str(session.explain("usr-2"))
        talk(session, 2, first=5, words=20)
        summarised(engine, session)
        assert {"1", "2", "3"}.isdisjoint(summarizer.calls[calls:])


@pytest.mark.parametrize("error", [ValueError("no model today"), SystemExit(3)])
def test_an_outage_costs_no_page_its_summary(error: BaseException, store: Store) -> None:
    """What fails is told, and asked for again after a while, by this engine and by others; for a third time, and no more."""
    now = datetime.now(UTC)
    summarizer = Says(lambda _number: error)
    with engine_on(store, summarizer) as engine, engine.session("chat") as session:
        engine._clock = session._core.clock = lambda: now
        notices = heard(session)
        talk(session, 4, words=20)
        for wait_s, calls in ((0.0, 3), (29.0, 3), (2.0, 6), (31.0, 6)):
            now += timedelta(seconds=wait_s)
            assert 0 == session.summarize(60)
            assert calls == len(summarizer.calls)
        assert 6 == len([each for each in notices if isinstance(each, SummaryFailed)])
        assert [1] * 3 + [2] * 3 == [event.data["tries"] for event in events(session)]
        assert f"It is asked for again from {events(session)[-1].data['again']} on" in str(session.explain("usr-1"))
    now += timedelta(seconds=600)
    with engine_on(store, summarizer) as engine, engine.session("chat") as session:
        engine._clock = session._core.clock = lambda: now
        state = state_codec.to_mapping(session._core.state)
        assert state == state_codec.to_mapping(state_codec.from_mapping(state))
        if isinstance(error, ValueError):
            summarizer.answer = lambda number: f"question{number} was asked"
            assert 3 == session.summarize(60)
        else:
            assert 0 == session.summarize(60)
            now += timedelta(days=1)
            assert 0 == session.summarize(60)
            assert "asked for again" not in str(session.explain("usr-1"))
        assert 9 == len(summarizer.calls)
        assert () == session.verify().problems


def test_a_server_that_wants_a_pause_gets_it() -> None:
    """Pages are asked for again once the time is over that the summariser's error names, where that is the longer one."""
    now, summarizer = datetime.now(UTC), Says(lambda _number: ModelError("busy", status=429, retry_after_s=3600.0))
    with engine_on(MemoryStore(), summarizer) as engine, engine.session("chat") as session:
        engine._clock = session._core.clock = lambda: now
        talk(session, 4, words=20)
        assert 0 == session.summarize(60)
        summarizer.answer = lambda number: f"question{number} was asked"
        for wait_s, noted in ((3599.0, 0), (2.0, 3)):
            now += timedelta(seconds=wait_s)
            assert noted == session.summarize(60)
        assert 6 == len(summarizer.calls)


def test_a_call_that_fails_is_repeated() -> None:
    """Of two failures and an answer it is the answer that counts."""
    answers = iter([ValueError("busy"), TimeoutError(), "question1 was asked"])
    engine = engine_on(MemoryStore(), Says(lambda _number: next(answers)))
    pool(engine).pauses_s = (0.0, 0.0)
    session = engine.session("chat")
    talk(session, 4, words=20)
    pool(engine).most_threads = 1
    summarised(engine, session)
    assert ("usr-1", "question1 was asked") == (events(session)[0].data["page"], events(session)[0].data["title"])


def test_what_a_summary_lacks_is_told() -> None:
    """Literal values of the page that it does not hold stand in the event, and in the explanation."""
    engine = engine_on(MemoryStore(), Says(lambda _number: "question1 is where the invoices are"))
    session = engine.session("chat")
    session.extend([user("question1 where are the invoices of march " + "please " * 30), assistant("in /srv/invoices/march.csv")])
    talk(session, 3, first=2, words=20)
    summarised(engine, session)
    assert [["/srv/invoices/march.csv"]] == [event.data["lacks"] for event in events(session) if event.data["page"] == "usr-1"]
    assert "/srv/invoices/march.csv" in str(session.explain("usr-1"))


def test_a_page_that_changed_is_asked_for_again() -> None:
    """What was written of a page before a rewind is not used after it."""
    summarizer = Says()
    engine = engine_on(MemoryStore(), summarizer)
    session = engine.session("chat")
    talk(session, 4, words=20)
    summarised(engine, session)
    session.rewind("usr-3/2")
    talk(session, 2, first=8, words=20)
    summarised(engine, session)
    assert 2 == summarizer.calls.count("3")
    assert 1 == summarizer.calls.count("1")
    assert () == session.verify().problems


def test_a_fold_that_is_undone_keeps_them() -> None:
    """The pages come back with what was written of them, and the next fold publishes it: nothing is asked for twice."""
    summarizer = Says()
    engine = engine_on(MemoryStore(), summarizer, contents={"max_tokens": 4_000})
    session = engine.session("chat")
    talk(session, 5, words=20)
    summarised(engine, session)
    session.fold("all")
    listed = session.contents.render()
    session.undo_fold()
    summarised(engine, session)
    session.fold("all")
    assert listed == session.contents.render()
    assert 4 == len(summarizer.calls)


def test_a_name_of_the_application_stays() -> None:
    """A page that the application named keeps its name, with what was written below it."""
    engine = engine_on(MemoryStore(), Says(), contents={"max_tokens": 4_000})
    session = engine.session("chat")
    session.begin_page("Invoices")
    talk(session, 4, words=20)
    summarised(engine, session)
    session.fold("all")
    entry = entries(session)["usr-1"]
    assert ("Invoices", ("question1 was asked with ask1x1",)) == (entry.title, entry.lines)


def test_a_session_that_is_closed_meanwhile_gets_it(store: Store) -> None:
    """Opened for each request and closed again, a session is asked for all the same, and what comes is noted."""
    summarizer = Says()
    with engine_on(store, summarizer) as engine:
        for number in range(1, 6):
            with engine.session("chat") as session:
                talk(session, 1, first=number, words=20)
        assert pool(engine).finish(60)
        with engine.session("chat") as session:
            assert [f"usr-{number}" for number in range(1, 5)] == sorted(event.data["page"] for event in events(session))


def test_state_and_windows_replay_without_a_summariser(store: Store) -> None:
    """Another engine, which has none, makes the same state of journal and snapshot, and every window that there was."""
    with engine_on(store, Says(), snapshot_every=30) as engine, engine.session("chat") as session:
        windows = {}
        for number in range(1, 40):
            talk(session, 1, first=number, words=20)
            summarised(engine, session)
            window = session.window()
            windows[window.seq] = window.to_json()
        whole = told(session._core.state)
    with engine_on(store, None) as plain, plain.session("chat") as session:
        assert whole == told(session._core.state)
        assert windows == {seq: session.render(at=seq).to_json() for seq in windows}
        assert any(isinstance(entry, Directory) for entry in session.contents.entries)
        written = state_codec.to_mapping(session._core.state)
        assert written == state_codec.to_mapping(state_codec.from_mapping(written))


def test_nobody_conflicts_with_a_summary(store: Store) -> None:
    """Another process that wrote nothing but summaries is no conflict, whatever the settings; one that said something is."""
    with engine_on(store, Says()) as engine, engine_on(store, None) as other:
        session, writer = engine.session("chat"), other.session("chat")
        talk(session, 4, words=20)
        writer.refresh()
        summarised(engine, session)
        assert 3 == len(events(session))
        writer.append(user("no conflict"))
        with pytest.raises(ConflictError):
            session.append(user("a conflict"))
        session.refresh()
        assert "no conflict" == list(session.messages())[-1]["content"]


@pytest.mark.parametrize("folds", [False, True])
def test_going_back_to_a_checkpoint_keeps_them(folds: bool) -> None:  # noqa: FBT001 (a case)
    """What was written since of pages that are the same is not paid for again, whether or not a fold published it."""
    summarizer = Says()
    with engine_on(MemoryStore(), summarizer, contents={"max_tokens": 4_000}) as engine, engine.session("chat") as session:
        talk(session, 5, words=20)
        made = session.checkpoint("here")
        summarised(engine, session)
        if folds:
            talk(session, 4, first=6, words=20)
            session.fold("all")
            summarised(engine, session)
        calls = len(summarizer.calls)
        session.restore_checkpoint(made.id)
        summarised(engine, session)
        assert calls == len(summarizer.calls)
        session.fold("all")
        assert {"says"} == {entry.by for entry in entries(session).values()}
        assert () == session.verify().problems


def test_going_back_in_another_engine_keeps_them(store: Store) -> None:
    """What an earlier engine had written since the checkpoint is not paid for again by the one that goes back."""
    with engine_on(store, Says()) as engine, engine.session("chat") as session:
        talk(session, 5, words=20)
        made = session.checkpoint("here")
        summarised(engine, session)
        written = len(events(session))
    summarizer = Says()
    with engine_on(store, summarizer, contents={"max_tokens": 4_000}) as engine, engine.session("chat") as session:
        session.restore_checkpoint(made.id)
        summarised(engine, session)
        assert ([], 4, 4) == (summarizer.calls, written, len(events(session)))
        session.fold("all")
        assert {"says"} == {entry.by for entry in entries(session).values()}


def test_a_row_of_a_directory_says_whose_it_is() -> None:
    """As the entry of a page does."""
    with engine_on(MemoryStore(), Says(), contents={"max_tokens": 64}) as engine, engine.session("chat") as session:
        talk(session, 6, words=20)
        summarised(engine, session)
        session.fold("all")
        assert any(isinstance(entry, Directory) for entry in session.contents.entries)
        assert "says of it was written by says." in str(session.explain("usr-1"))


@pytest.mark.parametrize("timeout_s", ["x", -1, math.nan, True])
def test_a_time_that_is_none_is_refused(timeout_s: Any) -> None:  # noqa: ANN401 (whatever a caller gives)
    """Before anything is asked."""
    with engine_on(MemoryStore(), Says()) as engine, pytest.raises(ArgumentError, match="timeout_s"):
        engine.session("chat").summarize(timeout_s)


def test_a_name_is_bounded() -> None:
    """In the journal and in explanations it is a short line."""
    summarizer = Says()
    summarizer.name = "a\nb" * 500
    with engine_on(MemoryStore(), summarizer) as engine, engine.session("chat") as session:
        talk(session, 4, words=20)
        summarised(engine, session)
        assert {200} == {len(event.data["by"]) for event in events(session)}
        assert "\n" not in events(session)[0].data["by"]


def test_an_erased_page_takes_what_was_written_of_it(tmp_path: Path) -> None:
    """No word of it is left in any file."""
    with engine_on(FileStore(tmp_path, "flush"), Says()) as engine, engine.session("chat") as session:
        talk(session, 5, words=20)
        summarised(engine, session)
        session.erase("usr-2")
        session.fold("all")
        session.erase("usr-3")
        assert "gave no summary" not in str(session.explain("usr-3"))
        summarised(engine, session)
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert not any(b"ask2x1" in data or b"ask3x1" in data for data in files)
        assert any(b"question4 was asked" in data for data in files)
        assert () == session.verify().problems


def test_an_engine_that_reads_only_asks_nothing(store: Store) -> None:
    """Nothing could be noted of it."""
    with engine_on(store, None) as engine:
        talk(engine.session("chat"), 5, words=20)
    summarizer = Says()
    with Engine(store, config_of(), summarizer=summarizer, read_only=True) as engine, engine.session("chat") as session:
        prepare(session)
        assert [] == summarizer.calls


def test_what_came_is_noted_where_others_wrote(store: Store) -> None:
    """A summary that was paid for waits for no refresh; the session's commands conflict as ever, and nothing is paid twice."""
    released = threading.Event()
    summarizer = Says(lambda number: released.wait(60) and f"question{number} was asked")
    with engine_on(store, summarizer) as engine, engine_on(store, None) as other:
        session, writer = engine.session("chat"), other.session("chat")
        talk(session, 4, words=20)
        prepare(session)
        writer.refresh()
        writer.append(user("meanwhile"))
        released.set()
        assert pool(engine).finish(60)
        summarised(engine, session)
        assert [] == events(session)
        writer.refresh()
        assert 3 == len(events(writer))
        with pytest.raises(ConflictError):
            session.append(user("a conflict"))
        session.refresh()
        assert 3 == len(events(session))
        summarised(engine, session)
        assert ["1", "2", "3", "4"] == sorted(summarizer.calls)
        assert 4 == len(events(session))
        assert () == session.verify().problems


def test_what_waits_is_noted_at_a_refresh() -> None:
    """Where the store had failed, for example."""
    with engine_on(MemoryStore(), Says()) as engine, engine.session("chat") as session:
        talk(session, 3, words=20)
        with session._open() as core:
            request = Request(
                session=SessionKey("default", "chat"),
                page="usr-1",
                revision=0,
                sha256=content_sha256(pages.load(core, "usr-1")),
                tokens=200,
                max_tokens=40,
                messages=tuple(node.message for node in pages.load(core, "usr-1").nodes()),
            )
            outcome = Outcome(request=request, by="says", summary=as_summary("question1 was asked"))
            core.prepared.outcomes["usr-1"] = checked(outcome, core.counter, core.clock())
        session.refresh()
        assert ["question1 was asked"] == [event.data["title"] for event in events(session)]


def test_events_are_read_some_at_a_time(store: Store) -> None:
    """All that there was when the reading began, in order, and nothing that is written while it goes on."""
    with engine_on(store, None) as engine, engine.session("chat") as session:
        talk(session, 150)
        until, seen = session.seq, []
        for event in session.events():
            seen.append(event.seq)
            if event.seq % 100 == 0:
                session.append(user(f"meanwhile {event.seq}"))
        assert until > 256
        assert list(range(1, until + 1)) == seen
        assert [] == list(session.events("folded", after=session.seq))
