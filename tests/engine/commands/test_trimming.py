"""Long results of tools are shown in part before the dialogue around them folds; read by their addresses, they are whole."""

from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.commands.trimming import TRIMMED_BYTES, stretches
from memci.engine.core.monitor import Fold
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.messages import codec
from tests.engine.sessions import config_of, folded, heard, open_session, states, talk
from tests.engine.wire import Value, assert_paired, assistant, calling, result, user
from tests.engine.wires import ANTHROPIC, RESPONSES

BUDGET = 6_000
SMALL: dict[str, Any] = {"budget": {"window": BUDGET, "reserve": 0}, "active": {"low_water": 0.6}}
FAILED = "ERROR: disk full on node7"


def report(number: int, lines: int = 120) -> str:
    """Return a result of about seven tokens a line, with an error in its middle."""
    told = [f"row{number}x{line} was read" for line in range(lines)]
    return "\n".join([*told[: lines // 2], FAILED, *told[lines // 2 :], f"done{number}"])


def looked(number: int, text: str = "") -> list[Value]:
    """Return a turn in which a tool was called."""
    return [
        user(f"please look at number {number}"),
        calling(f"c{number}"),
        result(f"c{number}", text or report(number)),
        assistant(f"number {number} is fine"),
    ]


def look(session: Session, turns: int, *, first: int = 1) -> None:
    for number in range(first, first + turns):
        session.extend(looked(number))


def shown(session: Session, call_id: str) -> str:
    """Return what the window shows of a result."""
    return next(str(value["content"]) for value in session.window().messages if value.get("tool_call_id") == call_id)


def kinds(session: Session) -> set[str]:
    """Return the kinds of all events."""
    return {record.kind for record in session._core.store.journal.read()}


def trimmed_session(turns: int = 7, **sections: Any) -> Session:  # noqa: ANN401 (any section of the file)
    """Return a session whose oldest results were trimmed, and nothing else."""
    session = open_session(**{**SMALL, **sections})
    notices = heard(session)
    look(session, turns)
    session.window()
    assert [()] == folded(notices)
    return session


def test_errors_leave_room_for_the_ends() -> None:
    """However many lines of a result tell an error, no more is shown than one may have, with its beginning and its end."""
    text = "began\n" + "ERROR: disk full on node7\n" * 4_000 + "ended"
    bounds = stretches(text)
    assert sum(bounds[1::2]) - sum(bounds[::2]) <= TRIMMED_BYTES
    assert (0, len(text), sorted(bounds)) == (bounds[0], bounds[-1], bounds)


def test_results_make_room_before_dialogue_does() -> None:
    """Where long results of older pages make room enough, no page folds, and all else stays word for word."""
    session = trimmed_session()
    window = session.window()
    said = [value for number in range(1, 8) for value in looked(number) if value["role"] != "tool"]
    assert said == [value for value in window.messages if value["role"] != "tool"]
    assert window.tokens <= BUDGET
    assert_paired(window.messages)


def test_the_oldest_results_are_trimmed_as_far_as_room_is_needed() -> None:
    """Down to the low mark the oldest are trimmed; the newest, and those of the open page, are whole."""
    session = trimmed_session()
    whole = [number for number in range(1, 8) if shown(session, f"c{number}") == report(number)]
    assert whole
    assert whole == list(range(whole[0], 8))
    assert whole[0] > 1


def test_a_trimmed_result_shows_beginning_errors_and_end() -> None:
    """It says how large it is, and where; its beginning, lines that tell an error, and its end are kept."""
    text = shown(trimmed_session(), "c1")
    assert text.startswith("[usr-1/3: ")
    assert " tokens] row1x0 was read" in text
    assert f" […] {FAILED} […] " in text
    assert text.endswith("done1")
    assert "row1x50" not in text


def test_a_trimmed_result_is_read_whole() -> None:
    """The page, and the tool that reads it by its address, give back what came in."""
    session = trimmed_session()
    session.window(tools=session.toolbox.openai())
    assert "read it whole with read_page('usr-1/3')" in str(session.render(at=session.seq).messages)
    assert looked(1) == session.page("usr-1").messages
    read, start = "", 0
    while start >= 0:
        reading = session.toolbox.call("read_page", {"index": "usr-1/3", "start": start})
        read, start = read + reading["text"], reading["next"]
    assert looked(1)[2] == codec.decode(read.encode())


def test_what_is_shown_in_part_is_found() -> None:
    """A search finds what a trim leaves out of the window, though its page stands there; it passes pages over that are whole."""
    session = trimmed_session()
    assert "row1x40" not in shown(session, "c1")
    assert ["usr-1"] == [hit.index for hit in session.search("row1x40")]
    assert [] == session.search("row7x40")


def test_the_newest_pages_are_not_trimmed() -> None:
    """The last ``active.min_pages`` pages are shown whole as long as the window holds them, like those that marks never fold."""
    session = open_session(**{**SMALL, "active": {"low_water": 0.3, "min_pages": 3}})
    look(session, 7)
    session.window()
    assert [number for number in range(5, 8) if shown(session, f"c{number}") == report(number)] == [5, 6, 7]


def test_windows_before_a_trim_render_again_as_they_were() -> None:
    """The trim is an event: what was sent before it is rendered with the results whole, and what came after as trimmed."""
    session = open_session(**SMALL)
    sent = []
    for number in range(1, 10):
        look(session, 1, first=number)
        sent.append(session.window())
    assert {True, False} == {report(1) in [value["content"] for value in window.messages] for window in sent}
    assert [window.to_json() for window in sent] == [session.render(at=window.seq).to_json() for window in sent]


@pytest.mark.parametrize("snapshot_every", [1, 1_000])
def test_results_stay_trimmed_when_a_session_is_opened_again(snapshot_every: int) -> None:
    """From a snapshot and from the journal alone, the same window is rendered."""
    store, settings = MemoryStore(), config_of(**SMALL, snapshot_every=snapshot_every)
    with Engine(store, settings) as engine, engine.session("chat") as session:
        look(session, 7)
        window = session.window()
    with Engine(store, settings) as engine, engine.session("chat") as session:
        assert window.to_json() == session.window().to_json()
        assert session.verify().ok


def test_a_result_stays_trimmed_until_its_page_folds() -> None:
    """Later windows show the same text of it, so that a provider's cache finds it again; a recalled page is whole."""
    session = trimmed_session()
    before = shown(session, "c1")
    look(session, 1, first=8)
    assert before == shown(session, "c1")
    session.fold(["usr-1"])
    session.recall("usr-1")
    assert FAILED in str(session.window().messages)
    assert "row1x50" in str(session.window().messages)


def test_a_fold_that_is_undone_brings_whole_results_back() -> None:
    """A page that folded with trimmed results in it is word for word when it comes back."""
    session = trimmed_session()
    session.fold(["usr-1"])
    session.undo_fold()
    assert report(1) == session.window(budget=BUDGET * 2).messages[2]["content"]


def test_pages_fold_where_trimming_is_not_enough() -> None:
    """One event trims, the next one folds the oldest pages, and the window is down to the low mark by both."""
    session = open_session(**SMALL)
    notices = heard(session)
    look(session, 60)
    session.window()
    assert any(folded(notices))
    assert [] == [notice for notice in notices if isinstance(notice, Fold) and notice.tokens_after > BUDGET]
    session._core.state._check()


def test_results_that_would_free_little_are_not_trimmed() -> None:
    """Where long results are a small part of what is said, pages fold, and no result in view is cut."""
    session = open_session(**SMALL)
    notices = heard(session)
    session.extend(looked(1, report(1, 80)))
    talk(session, 40, words=40)
    assert any(folded(notices))
    assert "trimmed" not in kinds(session)


def test_observers_hear_of_a_trim_as_a_fold_without_pages() -> None:
    """It tells what the window had before and after, why, and at which event."""
    session = open_session(**SMALL)
    notices = heard(session)
    look(session, 7)
    session.window()
    (fold,) = [notice for notice in notices if isinstance(notice, Fold)]
    assert () == fold.pages
    assert fold.tokens_after < fold.tokens_before
    assert 0 < fold.seq <= session.seq


def test_explain_tells_of_trimmed_results() -> None:
    """The reasons for a page say how many of its results are shown in part."""
    session = trimmed_session()
    assert "Of 1 long results in it only beginning, end and errors are shown" in str(session.explain("usr-1"))
    assert "long results" not in str(session.explain("usr-7"))


def test_a_receipt_says_that_a_page_is_not_in_view_in_full() -> None:
    """Whoever recalls a page with trimmed results hears how to read it."""
    session = trimmed_session()
    receipt = session.toolbox.call("recall_page", {"index": "usr-1"})
    assert 'read it in parts with read_page("usr-1", start=0)' in receipt["stands"]


def test_a_page_that_is_open_again_is_shown_whole() -> None:
    """After a rewind, the page in which the session goes on has no trimmed results."""
    session = trimmed_session()
    session.rewind("usr-1/4")
    assert looked(1)[:3] == session.window().messages
    session._core.state._check()


def test_erasing_takes_what_a_trim_shows() -> None:
    """Nothing of a trimmed result is left in window and journal, and windows are still within their budget."""
    session = trimmed_session()
    session.erase("usr-1")
    assert "row1x" not in str(session.window().messages)
    assert "trimmed" in kinds(session)
    assert [] == [record.seq for record in session._core.store.journal.read() if b"row1x" in record.body]
    assert {"usr-1": "active"}.items() <= states(session).items()


def test_a_new_counter_counts_trimmed_results_anew() -> None:
    """Under another counter, what is shown of a result is counted as it is sent."""
    store = MemoryStore()
    with Engine(store, config_of(**SMALL)) as engine, engine.session("chat") as session:
        look(session, 7)
        session.window()
    with Engine(store, config_of(**SMALL, counter="cl100k_base")) as engine, engine.session("chat") as session:
        session.window()
        counted = [node for page in session._core.state.active.pages() for node in page.nodes() if node.trimmed]
        assert counted
        for node in counted:
            sent = next(value for value in session.window().messages if value.get("tool_call_id") == node.message.answers[0])
            assert session._core.count(session._core.state.wire.facts(sent)) <= node.trimmed[0] < node.tokens


@pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES], ids=["anthropic", "responses"])
def test_results_of_all_formats_are_trimmed(wire: Any) -> None:  # noqa: ANN401 (a wire of the tests)
    """In the other formats too, what answers a call stays its answer, and is shown in part."""
    session = open_session(**SMALL, format=wire.name)
    for number in range(1, 8):
        session.extend(
            [wire.user(f"look at {number}"), *wire.answer("", "", [f"c{number}"]), wire.result(f"c{number}", report(number))]
        )
    window = session.window()
    assert "shortened from" in str(window.messages)
    assert window.tokens <= BUDGET
