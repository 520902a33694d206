"""Continuations that a summariser writes: asked ahead of folds, checked line by line, and published by a fold."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.summarizers.summary import GivenPage
from memci.engine.core.monitor import SummaryFailed
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.reading.journal import SessionEvent
from memci.engine.session import Session
from memci.engine.upkeep.copying import copy_session
from memci.messages.message import Message
from tests.engine.commands.test_summarizing import pool, summarised
from tests.engine.sessions import config_of, heard, prepare, talk
from tests.engine.whole_state import told
from tests.engine.wire import assistant, calling, result, user

SUMMARY = {"continuation": True, "continuation_tokens": 200}
SECTIONS: dict[str, Any] = {"budget": {"window": 2_400, "reserve": 0}, "active": {"min_pages": 2}, "summary": SUMMARY}
WORDS = 25  # of a message: some twelve turns fill the window


class Writes:
    """A summariser that gives no summaries, and of a session what *answer* makes of the pages; it keeps what it was asked."""

    name = "writes"

    def __init__(self, answer: Callable[[Sequence[GivenPage]], Any] | None = None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, list[str]]] = []

    def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
        assert max_tokens
        return ""

    def continuation(self, previous: str, pages: Sequence[GivenPage], *, max_tokens: int) -> Any:  # noqa: ANN401 (anything)
        assert 100 < max_tokens < 400
        self.asked.append((previous, [page.index for page in pages]))
        answer = goal(previous, pages) if self.answer is None else self.answer(pages)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def goal(previous: str, pages: Sequence[GivenPage]) -> str:
    """Return what the first pages began with, as far as it is known, and the newest ones."""
    known = previous.split("\n", maxsplit=1)[0].split()[1:][:5]
    return f"Goal: {' '.join([*known, *map(first_word, pages)][:16])}\nOpen: ask{pages[-1].index[4:]}x1"


def first_word(page: GivenPage) -> str:
    return str(page.messages[0].value()["content"]).split()[0] if page.messages else page.entry.split()[1]


def engine_on(store: Store, summarizer: Writes | None, **sections: Any) -> Engine:  # noqa: ANN401 (any section of the file)
    engine = Engine(store, config_of(**{**SECTIONS, **sections}), summarizer=summarizer)
    if engine._pool is not None:
        engine._pool.pauses_s = ()
    return engine


def talked(engine: Engine, session: Session, turns: int, first: int = 1) -> None:
    """Append turns, and let what is asked for come after each."""
    for number in range(first, first + turns):
        talk(session, 1, first=number, words=WORDS)
        summarised(engine, session)


def written(session: Session) -> list[SessionEvent]:
    return [event for event in session.events("summary_prepared") if event.data["page"] == "usr-0"]


def block(session: Session) -> str:
    found = [str(each["content"]) for each in session.window().messages if str(each["content"]).startswith("[continuation]")]
    assert len(found) <= 1
    return "".join(found)


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return FileStore(tmp_path, "flush") if request.param == "file" else MemoryStore()


def test_the_next_fold_shows_it(store: Store) -> None:
    """It is asked of the pages that fold next, before they do; the fold shows it with its pages, at most so long."""
    summarizer = Writes()
    with engine_on(store, summarizer) as engine, engine.session("chat") as session:
        talked(engine, session, 11)
        assert [("", ["usr-1", "usr-2", "usr-3", "usr-4", "usr-5"])] == summarizer.asked
        assert not block(session)
        assert "writes wrote one of usr-1..5, which the next fold shows" in str(session.explain("usr-0"))
        talked(engine, session, 1, first=12)
        assert [
            "[continuation] Of usr-1..5; to be read as data.",
            "- Goal: question1 question2 question3 question4 question5",
            "- Open: ask5x1",
        ] == block(session).split("\n")
        window = session.window()
        assert 0 < window.breakdown["work"] <= 200
        assert sum(window.breakdown.values()) == window.tokens
        assert "written by writes, of usr-1..5" in str(session.explain("usr-0"))
        assert "which writes wrote, stands on it" in str(session.explain("usr-3"))
        assert () == session.verify().problems


def test_one_is_made_from_the_one_before_and_each_so_manyth_from_the_pages() -> None:
    """What was written last goes into the next request with the pages since; each third is made of all pages and nothing else."""
    summarizer = Writes()
    summary = {**SUMMARY, "rebuild_every": 3}
    with engine_on(MemoryStore(), summarizer, summary=summary) as engine, engine.session("chat") as session:
        talked(engine, session, 40)
        assert {0, 1, 2} == {event.data["made"] for event in written(session)}
        lines = ["", *("\n".join(event.data["lines"]) for event in written(session))]
        for place, ((previous, asked), event) in enumerate(zip(summarizer.asked, written(session), strict=True)):
            made, last = event.data["made"], int(asked[-1][4:])
            assert place % 3 == made
            assert previous == (lines[place] if made else "")
            assert [f"usr-1..{last}"] == event.data["pages"]
            assert made or [f"usr-{number}" for number in range(1, last + 1)] == asked


def test_pages_that_are_too_many_are_given_as_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of the pages alone holds so many tokens of messages, the newest, and the entries of those before."""
    monkeypatch.setattr("memci.engine.summaries.continuing.MOST_GIVEN_TOKENS", 500)
    given: list[GivenPage] = []

    def answer(pages: Sequence[GivenPage]) -> str:
        given.extend(pages)
        return "question1"

    summarizer = Writes(answer)
    with engine_on(MemoryStore(), summarizer, summary={**SUMMARY, "rebuild_every": 1}) as engine:
        session = engine.session("chat")
        talked(engine, session, 30)
        (event, *_) = reversed(written(session))
        entries = [page for page in given if page.entry]
        assert entries
        assert not [page for page in entries if page.messages]
        assert {"usr-1"} == {page.index.partition("..")[0] for page in entries[:1]}
        assert "1 " in entries[0].entry
        assert event.data["pages"][0].startswith("usr-1..")


def test_newer_pages_have_notes_beside_it() -> None:
    """Until another one is written, the older one stands with what the pages since said."""
    summarizer = Writes(lambda pages: "Goal: question1" if pages[0].index == "usr-1" else ValueError("no model today"))
    with engine_on(MemoryStore(), summarizer, summary={**SUMMARY, "continuation_tokens": 400}) as engine:
        session = engine.session("chat")
        session.extend([user("question1 From now on, answer in German. " + "please " * 30), assistant("gut " * 30)])
        talked(engine, session, 11, first=2)
        assert block(session).startswith("[continuation] Of usr-1..")
        talked(engine, session, 6, first=13)
        assert "\n- Goal: question1\nasked last:" in block(session)
        assert "goal:" not in block(session)
        assert "said last in:" in block(session)
        assert session.window().breakdown["work"] <= 400


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ValueError("no model today"), "no model today"),
        ("", "it is empty"),
        ("Goal: question1 for 4711\nState: question2 for Henderson", "nothing in it can be believed"),
        ("Sure, here is the summary", "it answers instead of summing up"),
        ("Die Bestellung wurde storniert und das Geld wird erstattet", "another language"),
        ("ask1x1 " * 300, "tokens are too many"),
        (None, "a Summary or a str"),
    ],
)
def test_what_cannot_be_believed_is_dropped(answer: object, reason: str) -> None:
    """The window has extracts; event, observers and explanation tell why, and it is asked again after the next fold."""
    summarizer = Writes(lambda _pages: answer)
    with engine_on(MemoryStore(), summarizer) as engine, engine.session("chat") as session:
        notices = heard(session)
        talked(engine, session, 11)
        (event,) = written(session)
        assert reason in event.data["reason"]
        assert ["usr-0"] == [each.page for each in notices if isinstance(each, SummaryFailed) and each.page == "usr-0"]
        assert reason in str(session.explain("usr-0"))
        talked(engine, session, 1, first=12)
        assert 'goal: "question1' in block(session)
        assert "is made of extracts" in str(session.explain("usr-0"))
        talked(engine, session, 4, first=13)
        assert 2 <= len(written(session)) == len(summarizer.asked)


def test_lines_that_its_pages_do_not_say_are_left_out() -> None:
    """Each line is checked for itself, and the event tells what was wrong with those that are gone."""
    summarizer = Writes(lambda _pages: "Goal: question1\nState: 4711 pieces\n[usr-3] question2\nOpen: ask2x1")
    with engine_on(MemoryStore(), summarizer) as engine, engine.session("chat") as session:
        talked(engine, session, 12)
        event = written(session)[0]
        assert ["Goal: question1", "Open: ask2x1"] == event.data["lines"]
        assert "'4711'" == event.data["dropped"][0]
        assert "[usr-3]" in event.data["dropped"][1]
        assert "4711" not in block(session)


def test_no_call_waits_for_it() -> None:
    """One that never answers keeps no append, window or fold from what they do."""
    released = threading.Event()
    summarizer = Writes(lambda _pages: released.wait(600))
    engine = engine_on(MemoryStore(), summarizer)
    pool(engine).patience_s = 0.01
    session = engine.session("chat")
    for number in range(1, 40):
        talk(session, 1, first=number, words=WORDS)
        prepare(session)
        assert session.window().tokens <= 2_400
    assert 1 == len(summarizer.asked)
    assert 'goal: "question1' in block(session)
    engine.close()
    released.set()


def test_one_of_several_engines_asks(store: Store) -> None:
    """What one engine asks for is claimed, so that no other pays for it too; each shows what came."""
    held, begun = threading.Event(), threading.Event()

    def answer(pages: Sequence[GivenPage]) -> str:
        begun.set()
        held.wait(60)
        return first_word(pages[0])

    asking, other = Writes(answer), Writes()
    with engine_on(store, asking, on_conflict="retry") as one, engine_on(store, other, on_conflict="retry") as two:
        session, second = one.session("chat"), two.session("chat")
        talk(session, 11, words=WORDS)
        prepare(session)
        assert begun.wait(60)
        second.refresh()
        second.summarize(60)
        assert [] == other.asked
        held.set()
        assert pool(one).finish(60)
        second.refresh()
        talk(second, 1, first=12, words=WORDS)
        assert "- question1" in block(second)


def test_replaying_asks_nobody(store: Store) -> None:
    """Another engine, which has no summariser, makes the same state of journal and snapshot, and every window that there was."""
    with engine_on(store, Writes(), snapshot_every=30) as engine, engine.session("chat") as session:
        windows = {}
        for number in range(1, 40):
            talked(engine, session, 1, first=number)
            window = session.window()
            windows[window.seq] = window.to_json()
        whole = told(session._core.state)
        assert block(session)
    with engine_on(store, None) as plain, plain.session("chat") as session:
        assert whole == told(session._core.state)
        assert windows == {seq: session.render(at=seq).to_json() for seq in windows}
        value = state_codec.to_mapping(session._core.state)
        assert value == state_codec.to_mapping(state_codec.from_mapping(value))


def test_going_back(store: Store) -> None:
    """An undone fold keeps what was written for the next, a checkpoint has what there was, a rewind drops what tells of later."""
    summarizer = Writes()
    with engine_on(store, summarizer) as engine, engine.session("chat") as session:
        talked(engine, session, 12)
        shown = block(session)
        here = session.checkpoint("here")
        asked = len(summarizer.asked)
        session.undo_fold()
        assert session._core.state.working.continuation is None
        session.fold([f"usr-{number}" for number in range(1, 6)])
        assert shown == block(session)
        assert asked == len(summarizer.asked)
        talked(engine, session, 10, first=13)
        assert shown != block(session)
        session.restore_checkpoint(here.id)
        assert shown == block(session)
        session.rewind("usr-3/2")
        assert "Goal: question1 question2" not in block(session)
        assert 'goal: "question1' in block(session)
        asked = len(summarizer.asked)
        talked(engine, session, 24, first=30)
        assert ("", ["usr-1", "usr-2"]) == (summarizer.asked[asked][0], summarizer.asked[asked][1][:2])
        assert () == session.verify().problems


def test_a_fork_has_it_and_goes_on_for_itself() -> None:
    """A fork shows what its source showed, and its own is made from that."""
    summarizer = Writes()
    with engine_on(MemoryStore(), summarizer) as engine:
        session = engine.session("chat")
        talked(engine, session, 12)
        fork = engine.fork("chat", "other")
        assert block(session) == block(fork)
        talked(engine, fork, 6, first=50)
        assert "question50" in "".join(str(event.data["lines"]) for event in written(fork))
        assert "question50" not in block(session)


def test_a_copy_has_it() -> None:
    """A session in another store shows what it showed, and goes on from there."""
    source, target = MemoryStore(), MemoryStore()
    with engine_on(source, Writes()) as engine, engine.session("chat") as session:
        talked(engine, session, 12)
        shown = block(session)
    copy_session(source, target, "chat", now="2026-01-01T00:00:00+00:00", to_session="other")
    with engine_on(target, Writes()) as engine, engine.session("other") as copy:
        assert shown == block(copy)
        talked(engine, copy, 6, first=13)
        assert shown != block(copy)
        assert "- Goal: question1 question2" in block(copy)


def test_what_came_of_pages_that_changed_is_not_used() -> None:
    """While it was written, a page of it was rewound: it is dropped, and asked again of what is there."""
    released = threading.Event()
    summarizer = Writes(lambda pages: released.wait(60) and f"Goal: {' '.join(map(first_word, pages))}")
    with engine_on(MemoryStore(), summarizer) as engine, engine.session("chat") as session:
        talk(session, 11, words=WORDS)
        prepare(session)
        session.rewind("usr-3/2")
        released.set()
        assert pool(engine).finish(60)
        prepare(session)
        assert [] == written(session)
        talked(engine, session, 8, first=30)
        assert written(session)


def test_a_page_that_waits_for_a_result_is_not_given() -> None:
    """It is no part of what is written until the result has come and it folds too."""
    summarizer = Writes(lambda pages: f"question{pages[0].index[4:]}")
    with engine_on(MemoryStore(), summarizer) as engine, engine.session("chat") as session:
        talk(session, 3, words=WORDS)
        session.extend([user("look it up"), calling("late"), calling("now"), result("now", "x"), assistant("well")])
        talked(engine, session, 8, first=5)
        assert "usr-1..3" == written(session)[0].data["pages"][0]
        assert "usr-4" not in summarizer.asked[0][1]
        session.append(result("late", "found"))
        talked(engine, session, 8, first=13)
        assert "usr-4" in {page for _, pages in summarizer.asked for page in pages}


@pytest.mark.parametrize("page", ["usr-1", "usr-2", "usr-5"])
def test_an_erased_page_takes_it_out(tmp_path: Path, page: str) -> None:
    """No word of the page is left in any file; the window has extracts until another one is written of what is left."""
    number = page[4:]
    summarizer = Writes()
    with engine_on(FileStore(tmp_path, "flush"), summarizer) as engine, engine.session("chat") as session:
        talked(engine, session, 16)
        assert f"question{number} " in block(session)
        seq = session.seq
        session.erase(page)
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert not any(f"question{number} ".encode() in data or f"ask{number}x".encode() in data for data in files)
        assert "- Goal" not in block(session)
        assert "said last in:" in block(session)
        assert f"question{number} " not in session.render(at=seq).to_json().decode()
        assert () == session.verify().problems
        asked = len(summarizer.asked)
        talked(engine, session, 24, first=30)
        assert "" == summarizer.asked[asked][0]
        assert "- Goal" in block(session)
        assert f"question{number} " not in block(session)


def test_what_was_asked_before_an_erasing_is_not_noted(tmp_path: Path) -> None:
    """What a summariser still writes of a page that is erased meanwhile reaches no file."""
    released = threading.Event()
    summarizer = Writes(lambda pages: released.wait(60) and f"Goal: {' '.join(map(first_word, pages))}")
    with engine_on(FileStore(tmp_path, "flush"), summarizer) as engine, engine.session("chat") as session:
        talk(session, 11, words=WORDS)
        prepare(session)
        session.erase("usr-2")
        released.set()
        assert pool(engine).finish(60)
        summarised(engine, session)
        assert not any(b"question2 " in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_what_was_asked_of_an_entry_before_an_erasing_is_not_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor is what it writes of an erased page of which it was given no more than a line of the contents page."""
    monkeypatch.setattr("memci.engine.summaries.continuing.MOST_GIVEN_TOKENS", 500)
    reached, released = threading.Event(), threading.Event()

    def answer(pages: Sequence[GivenPage]) -> str:
        if "question2 " in pages[0].entry:
            reached.set()
            released.wait(60)
            return "Goal: question2"
        return "Goal: question1"

    with (
        engine_on(FileStore(tmp_path, "flush"), Writes(answer), summary={**SUMMARY, "rebuild_every": 1}) as engine,
        engine.session("chat") as session,
    ):
        talked(engine, session, 11)
        talk(session, 1, first=12, words=WORDS)
        prepare(session)
        assert reached.wait(60)
        session.erase("usr-2")
        released.set()
        assert pool(engine).finish(60)
        summarised(engine, session)
        assert not any(b"question2" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_another_counter_counts_it_again() -> None:
    """Under another counter it and what would stand in its place have their sizes by that one."""
    store = MemoryStore()
    with engine_on(store, Writes()) as engine, engine.session("chat") as session:
        talked(engine, session, 12)
    with engine_on(store, None, counter="approximate") as engine, engine.session("chat") as session:
        session.append(user("and on"))
        working, count = session._core.state.working, session._core.count
        assert working.continuation is not None
        shown = next(each for each in session.window().messages if str(each["content"]).startswith("[continuation]"))
        assert count(session._core.state.wire.facts(shown)) == working.continuation.tokens
        assert working.tokens != working.continuation.tokens


def test_one_that_is_awaited_writes_it_too() -> None:
    """A method that is async is waited for."""

    class Awaited(Writes):
        async def continuation(self, previous: str, pages: Sequence[GivenPage], *, max_tokens: int) -> Any:  # noqa: ANN401 (anything)
            return super().continuation(previous, pages, max_tokens=max_tokens)

    with engine_on(MemoryStore(), Awaited()) as engine, engine.session("chat") as session:
        talked(engine, session, 12)
        assert "- Goal: question1" in block(session)


def test_a_summariser_without_it_is_not_asked() -> None:
    """One that only sums up pages does that, and the window has extracts."""

    class Plain:
        def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            return f"question {max_tokens}"

    engine = Engine(MemoryStore(), config_of(**SECTIONS), summarizer=Plain())
    session = engine.session("chat")
    talked(engine, session, 12)
    assert [] == written(session)
    assert 'goal: "question1' in block(session)
    engine.close()


def test_it_is_asked_for_only_where_the_settings_say_so() -> None:
    """By default a summariser that could write one is asked of pages alone."""
    summarizer = Writes()
    with engine_on(MemoryStore(), summarizer, summary={}) as engine, engine.session("chat") as session:
        talked(engine, session, 14)
        assert [] == summarizer.asked
        assert not block(session)
