"""What stays as it was, and what does not, when a session goes back, is counted again, or has another system part."""

import threading

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.history.apply import apply
from memci.engine.history.events import PageErased
from memci.engine.session import Session
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_message
from tests.engine.commands.test_summarizing import Says, engine_on, summarised
from tests.engine.sessions import config_of, open_session, prepare, talk, turn
from tests.engine.wire import assistant, calling, result, system, user


def stubs(session: Session) -> list[int]:
    settled = session._core.state.settled
    return [] if settled is None else list(settled.stubs)


def test_a_pinned_note_stays_pinned_after_a_rewind() -> None:
    """A note is of no turn: going back before all of them takes nothing from it."""
    session = open_session()
    talk(session, 4)
    note = session.create_detail_page("Limit", "How many rows", "Ten thousand rows at most.")
    session.pin(note)
    session.rewind("usr-2/1")
    assert note in session._core.state.pinned or session.facts(note).pinned


def test_a_rewind_leaves_nothing_of_what_went() -> None:
    """Marks, recalls and passages of entries that are gone are in no state: it stays as small as what is there."""
    session = open_session(recall={"passages_tokens": 500})
    talk(session, 4)
    session.fold(["usr-1", "usr-3"])
    for index in ("usr-1", "usr-3"):
        session.pin(index)
        session.recall(index)
    session.undo_fold()
    for address in ("usr-2/1", "usr-2/2", "usr-4/1"):
        session.bookmark(address, "look here")
    session.fold("usr-2")
    session.append(user("what was ask2x2 ask2x3?"))
    session.window()
    state = session._core.state
    assert (3, 2, 2, 1) == tuple(map(len, (state.bookmarks, state.pinned, state.recalls, state.recalled.quotes)))
    session.rewind("usr-2/2")
    state = session._core.state
    assert ({"usr-1"}, ["usr-1"]) == (state.pinned, list(state.recalls))
    assert [("usr-2", "look here")] == list(state.bookmarks.values())
    assert {} == state.recalled.quotes


def test_an_erased_page_has_no_bookmarks() -> None:
    """They go with the event itself: the records of the journal may be redacted some moments later."""
    session = open_session()
    talk(session, 3)
    for address in ("usr-1/1", "usr-1/2", "usr-2/1"):
        session.bookmark(address, f"look at {address}")
    state = session._core.state
    apply(state, PageErased(page="usr-1", records=0, at=""), session.seq + 1)
    assert ["look at usr-2/1"] == [label for _, label in state.bookmarks.values()]


def test_recalled_pages_are_counted_by_a_new_counter() -> None:
    """The block of a recalled page has the size that the new counter gives it."""
    store = MemoryStore()
    session = open_session(store)
    talk(session, 4, words=40)
    session.fold("all")
    session.recall("usr-2")
    with Engine(store, config_of(counter="approximate")) as engine, engine.session("chat") as again:
        window = again.window()
        (block,) = [value for value in window.messages if value["content"].startswith("[recalled page usr-2")]
        assert count_message(block, get_counter("approximate")) == again._core.state.recalled.attachments["usr-2"].tokens


def test_a_system_part_that_is_shown_again_counts_whole() -> None:
    """What hiding spared is spared as long as it is hidden."""
    session = open_session()
    session.append(system("policy " * 200))
    talk(session, 2)
    tokens = session.window().tokens
    session.hide_details("sys-1")
    session.restore("sys-1")
    assert (0, tokens) == (session._core.state.hidden_tokens, session.window().tokens)


def test_a_fold_leaves_no_stub_of_what_it_takes() -> None:
    """Entries that were too large are stubs in the window as long as their pages are there."""
    session = open_session(budget={"window": 1_500, "reserve": 0})
    session.extend([user("read it"), calling("c"), result("c", "word " * 3_000)])
    session.window()
    assert stubs(session)
    session.extend([assistant("I read it."), *turn(2)])
    session.fold("usr-1")
    assert [] == stubs(session)


def test_a_fold_leaves_no_claim_of_pages_that_folded_before() -> None:
    """Nobody asks for a summary of those any more, so that the state holds none."""
    released = threading.Event()
    summarizer = Says(lambda number: released.wait(60) and f"question{number} was asked")
    with engine_on(MemoryStore(), summarizer) as engine, engine.session("chat") as session:
        talk(session, 6, words=20)
        prepare(session)
        session.fold("all")
        assert session._core.state.claims
        talk(session, 2, first=7, words=20)
        session.fold("all")
        assert not {f"usr-{number}" for number in range(1, 6)} & session._core.state.claims.keys()
        released.set()


def test_a_new_system_part_has_no_hidden_lines() -> None:
    """What hidden pages of the old one spared is spared no longer."""
    session = open_session()
    session.append(system("policy " * 200))
    talk(session, 2)
    session.hide_details("sys-1")
    assert session._core.state.hidden_tokens < 0
    session.set_system([system("be brief")])
    assert 0 == session._core.state.hidden_tokens


def test_a_restored_checkpoint_keeps_what_reports_told() -> None:
    """Of both of the last two reports, as the next one is compared with them."""
    session = open_session()
    talk(session, 2, words=60)
    checkpoint = session.checkpoint("before")
    for share in (1.2, 1.3):
        session.report_usage(prompt_tokens=int(share * session.window().tokens))
        talk(session, 1, first=int(10 * share), words=60)
    ratios = session._core.state.ratios
    assert (1.0, 1.0) != ratios
    session.restore_checkpoint(checkpoint.id)
    assert ratios == session._core.state.ratios


def test_a_request_is_shown_once_when_its_page_comes_back() -> None:
    """While its turn is open, the request stands apart from its folded page; undone, it is in the page alone."""
    session = open_session(active={"page_tokens": 60})
    asked = user("please go through all files of the folder")
    session.append(asked)
    for number in range(6):
        session.extend([calling(f"c{number}"), result(f"c{number}", f"file {number} " * 30)])
    session.fold("all")
    assert 1 == session.window().messages.count(asked)
    session.undo_fold()
    assert 1 == session.window().messages.count(asked)


def test_directories_that_are_shown_stay_so_under_a_new_counter() -> None:
    """Pages that the window lists in them can be recalled as before."""
    store = MemoryStore()
    session = open_session(store, budget={"window": 1_000, "reserve": 0})
    talk(session, 40)
    session.window()
    shown = session._core.state.archive.shown_directories
    assert shown
    config = config_of(counter="approximate", budget={"window": 2_000, "reserve": 0})
    with Engine(store, config) as engine, engine.session("chat") as again:
        again.configure(eviction={"stale_turns": 90})
        assert [each.covers for each in shown] == [each.covers for each in again._core.state.archive.shown_directories]
        assert "usr-3" == again.recall("usr-3").index


def test_a_summary_of_a_page_that_was_cut_is_dropped() -> None:
    """Also before anything else is said in the page."""
    engine = engine_on(MemoryStore(), Says())
    session = engine.session("chat")
    talk(session, 4, words=20)
    summarised(engine, session)
    assert {"usr-2", "usr-3"} <= session._core.state.summaries.keys()
    session.rewind("usr-3/2")
    assert "usr-2" in session._core.state.summaries
    assert "usr-3" not in session._core.state.summaries


def test_a_restored_page_has_no_summary_of_what_took_its_place() -> None:
    """Summaries that came since hold for pages that are the same in the checkpoint, and for no others."""
    engine = engine_on(MemoryStore(), Says())
    session = engine.session("chat")
    talk(session, 4, words=20)
    before = session.checkpoint("before")
    session.rewind("usr-3/2")
    session.extend([assistant("something else"), *turn(5, words=20), *turn(6, words=20)])
    summarised(engine, session)
    assert {"usr-2", "usr-3"} <= session._core.state.summaries.keys()
    session.restore_checkpoint(before.id)
    assert "usr-2" in session._core.state.summaries
    assert "usr-3" not in session._core.state.summaries


def test_what_another_engine_erased_is_in_no_kept_state() -> None:
    """A session that was closed and is opened again was read before the erasure."""
    store = MemoryStore()
    with Engine(store, config_of()) as first, Engine(store, config_of()) as second:
        with first.session("chat") as session:
            talk(session, 3)
            secret = next(session.messages())
            assert secret in session.window().messages
        with second.session("chat") as session:
            session.erase("usr-1")
        with first.session("chat") as session:
            assert secret not in session.window().messages
            assert secret not in list(session.messages())
