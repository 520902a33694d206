"""Which page a message joins, and which call a result answers."""

from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.contents_page import ContentsEntry
from memci.archive.stores.memory import MemoryStore
from memci.engine.commands import folding
from memci.engine.session import Session
from memci.engine.view.planner import FoldPlan
from memci.errors import InvalidMessageError
from tests.engine.sessions import heard, indexes, open_session, states, talk, turn
from tests.engine.wire import Value, assert_paired, assistant, calling, result, system, user


def addresses(*values: Value, **sections: Any) -> list[str]:  # noqa: ANN401 (any section of the file)
    """Return the addresses that messages get, appended one by one; ``extend`` must give the same."""
    session, other = open_session(**sections), open_session(**sections)
    one_by_one = [session.append(value).address for value in values]
    other.extend(values)
    assert list(session.messages()) == list(other.messages())
    assert states(session) == states(other)
    return one_by_one


def test_a_turn_is_a_page() -> None:
    """A user message opens a page, and all that answers it joins."""
    values = [user("a"), calling("c"), result("c"), assistant("b"), user("c"), assistant("d")]
    assert ["usr-1/1", "usr-1/2", "usr-1/3", "usr-1/4", "usr-2/1", "usr-2/2"] == addresses(*values)


def test_a_user_who_writes_twice_stays_in_one_page() -> None:
    """User messages in a row share a page, a repeated one too."""
    values = [user("a"), user("a"), user("b"), assistant("c"), user("d"), user("e")]
    assert ["usr-1/1", "usr-1/2", "usr-1/3", "usr-1/4", "usr-2/1", "usr-2/2"] == addresses(*values)


def test_system_messages_before_the_user_are_the_system_part() -> None:
    """System and developer messages make the ``sys`` pages until the user spoke; later ones stay where they were said."""
    developer = {"role": "developer", "content": "be exact"}
    values = [system("a"), developer, user("b"), system("c"), assistant("d")]
    assert ["sys-1/1", "sys-2/1", "usr-1/1", "usr-1/2", "usr-1/3"] == addresses(*values)


def test_an_assistant_may_begin() -> None:
    """A conversation that the assistant begins has a page before the first turn."""
    assert ["usr-1/1", "usr-1/2", "usr-2/1"] == addresses(assistant("welcome"), assistant("again"), user("a"))
    session = open_session()
    session.append(assistant("welcome"))
    assert 0 == session.turn


def test_tool_results_of_the_user_role_open_no_page() -> None:
    """A user message that only carries tool results joins the page of its calls."""
    block = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "found"}]}
    values = [user("a"), {"role": "assistant", "content": [block]}, answer, assistant("b"), user("c")]
    assert ["usr-1/1", "usr-1/2", "usr-1/3", "usr-1/4", "usr-2/1"] == addresses(*values)


def test_the_user_can_speak_beside_tool_results() -> None:
    """Text beside tool results stays with them, and the user message after the assistant's opens a page."""
    block = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    both = [{"type": "tool_result", "tool_use_id": "c", "content": "found"}, {"type": "text", "text": "and?"}]
    values = [user("a"), {"role": "assistant", "content": [block]}, {"role": "user", "content": both}, assistant("b"), user("c")]
    assert ["usr-1/1", "usr-1/2", "usr-1/3", "usr-1/4", "usr-2/1"] == addresses(*values)


def test_begin_page_opens_a_page_by_hand() -> None:
    """A page that the application begins takes whatever comes, and one without entries only takes another name."""
    session = open_session()
    session.extend(turn(1))
    assert "usr-2" == session.begin_page("triage")
    assert "usr-2" == session.begin_page("second triage")
    assert 2 == session.turn
    assert "usr-2/1" == session.append(assistant("beginning")).address
    assert "usr-3/1" == session.append(user("a")).address
    assert "second triage" == session.page(2).name
    assert ["usr-1", "usr-2", "usr-3"] == [facts.index for facts in session.pages()]


def test_a_begun_page_without_entries_shows_nothing() -> None:
    """An empty open page is listed, renders nothing, and survives being opened again."""
    session = open_session()
    session.extend(turn(1))
    before = session.window().messages
    session.begin_page()
    assert before == session.window().messages
    assert {"usr-1": "active", "usr-2": "open"} == states(session)
    assert [] == session.page(2).messages


def long_turn(steps: int) -> list[Value]:
    """Return an agent's turn of calls, each with a result of about 80 tokens."""
    values = [user("migrate everything"), user("and be quick")]
    for step in range(steps):
        values += [calling(f"c{step}"), result(f"c{step}", "step " * 80)]
    return values


def test_a_long_turn_is_cut_between_calls() -> None:
    """A page over ``active.page_tokens`` goes on as a continuation page, after a call with all its results, in the same turn."""
    session = open_session(active={"page_tokens": 150})
    session.extend(long_turn(4))
    roles = {facts.index: [value["role"] for value in session.page(facts.index).messages] for facts in session.pages()}
    assert {
        "usr-1": ["user", "user", "assistant", "tool", "assistant", "tool"],
        "usr-2": ["assistant", "tool", "assistant", "tool"],
    } == roles
    assert {1} == {facts.turn for facts in session.pages()}


@pytest.mark.parametrize(("reported", "address"), [(1.0, "usr-1/3"), (1.4, "usr-2/1")])
def test_a_long_turn_is_cut_by_what_the_provider_counts(reported: float, address: str) -> None:
    """Where the provider counts more than the counter does, a page is as large as the provider says."""
    session = open_session(active={"page_tokens": 100}, recall={"protocol": "none"})
    session.extend([user("go on"), assistant("word " * 70)])
    session.report_usage(prompt_tokens=int(reported * session.window().tokens))
    assert address == session.append(assistant("and so on")).address


def test_an_answer_is_never_cut_off_from_what_opened_it() -> None:
    """A large page of the user's words alone is cut by the user only: the answer stands with what was said last."""
    values = [user("word " * 300), user("more " * 300), assistant("a"), assistant("b")]
    assert ["usr-1/1", "usr-2/1", "usr-2/2", "usr-3/1"] == addresses(*values, active={"page_tokens": 100})


def test_a_page_with_an_unanswered_call_is_cut_where_the_assistant_goes_on() -> None:
    """While a call waits, what others say joins its page; the next message of the assistant opens another."""
    values = [user("a"), calling("c", "d"), result("d", "word " * 200), system("s"), assistant("b"), result("c"), assistant("e")]
    expected = ["usr-1/1", "usr-1/2", "usr-1/3", "usr-1/4", "usr-2/1", "usr-1/4", "usr-2/2"]
    assert expected == addresses(*values, active={"page_tokens": 100})


def test_the_opening_stays_while_the_turn_goes_on() -> None:
    """When the first page of the open turn folds, the user's opening messages stay verbatim until a fold after the turn."""
    session = open_session(active={"page_tokens": 150, "min_pages": 1})
    session.extend(long_turn(6))
    session.fold("all")
    window = session.window().messages
    assert {"usr-1": "archived", "usr-2": "archived", "usr-3": "open"} == states(session)
    assert [user("migrate everything"), user("and be quick")] == [value for value in window if value["role"] == "user"][-2:]
    session.append(assistant("done"))
    session.append(user("thanks"))
    assert user("and be quick") in session.window().messages
    session.append(assistant("you are welcome"))
    session.append(user("one more"))
    session.fold("all")
    assert user("and be quick") not in session.window().messages
    assert user("one more") in session.window().messages


def test_results_go_to_their_calls_in_any_order() -> None:
    """Results of parallel calls stand behind their call in the order in which they came."""
    session = open_session()
    session.extend([user("a"), calling("x", "y", "z"), result("z"), result("x"), result("y")])
    assert [None, None, "z", "x", "y"] == [value.get("tool_call_id") for value in session.messages()]
    assert_paired(session.window().messages)


def test_an_id_may_be_used_again() -> None:
    """With an id in two calls, a result answers the nearest earlier call that waits."""
    session = open_session()
    session.extend([user("a"), calling("x"), result("x", "first"), user("b"), calling("x"), result("x", "second")])
    session.extend([user("c"), calling("x"), calling("x")])
    assert "usr-3/4" == session.append(result("x", "of the last")).address
    assert "usr-3/3" == session.append(result("x", "of the one before")).address
    said = [value["content"] for value in session.messages() if value["role"] == "tool"]
    assert ["first", "second", "of the one before", "of the last"] == said


@pytest.mark.parametrize(
    "values",
    [
        [result("x")],
        [user("a"), result("x")],
        [user("a"), calling("y"), result("x")],
        [user("a"), calling("x"), result("x"), result("x")],
        [result("x"), calling("x")],
    ],
)
def test_a_result_without_a_call_is_refused(values: list[Value]) -> None:
    """A result that no call waits for is refused whole, with the place, and nothing of the command is stored."""
    session = open_session()
    with pytest.raises(InvalidMessageError, match="no call with the id 'x' waits") as caught:
        session.extend(values)
    assert (0, []) == (session.seq, list(session.messages()))
    assert "x" in str(caught.value)


def test_a_missing_result_is_shown_and_not_stored() -> None:
    """A window closes a call that has no result with an explicit one, which no page holds."""
    session = open_session()
    session.extend([user("a"), calling("x", "y"), result("y"), user("b")])
    window = session.window().messages
    assert_paired(window)
    missing = [value for value in window if value.get("tool_call_id") == "x"]
    assert ["[no result: the call was not answered before the conversation went on]"] == [each["content"] for each in missing]
    assert 4 == len(list(session.messages()))


def test_a_late_result_joins_its_call() -> None:
    """A result that comes after the user went on stands behind its call, and takes the place of the explicit one."""
    session = open_session()
    session.extend([user("a"), calling("x", "y"), result("y"), assistant("b"), user("c")])
    assert "usr-1/4" == session.append(result("x", "late")).address
    assert ["a", None, "found", "late", "b", "c"] == [value["content"] for value in session.messages()]
    assert "no result" not in str(session.window().messages)


def test_a_page_with_an_unanswered_call_folds_only_for_room() -> None:
    """Marks and commands leave a page with an unanswered call in view; a window that has no room does not."""
    session = open_session(active={"min_pages": 1})
    session.extend([user("a " * 40), calling("x"), *turn(2), *turn(3), user("b")])
    assert ("usr-2", "usr-3") == session.fold("all").pages
    assert_paired(session.window().messages)
    session.window(130)
    assert ["usr-4"] == indexes(session, PageState.OPEN, PageState.ACTIVE)


def archived_with_open_calls() -> Session:
    session = open_session(active={"min_pages": 1})
    session.extend([user("a " * 120), calling("x", "y"), assistant("waiting for both"), user("b")])
    session.window(160)
    assert ["usr-1"] == indexes(session, PageState.ARCHIVED)
    return session


def test_a_late_result_of_an_archived_page_is_a_revision() -> None:
    """The page holds the result at once; its file, entry and SHA-256 change at the next fold, and the window then."""
    session = archived_with_open_calls()
    before, shown = session.pages()[0], session.window(160).messages
    entry = session.append(result("x", "late parcel"))
    assert "usr-1/3" == entry.address
    assert result("x", "late parcel") == entry.message
    assert ["assistant", "tool", "assistant"] == [value["role"] for value in session.page(1).messages][1:]
    assert shown == session.window(160).messages
    assert before.sha256 == session.pages()[0].sha256
    session.fold()
    after = session.pages()[0]
    assert (before.revision + 1, before.entries + 1) == (after.revision, after.entries)
    assert before.sha256 != after.sha256
    assert "late parcel" in session.contents.render()
    assert () == session.verify().problems


def test_an_entry_that_is_put_back_is_of_the_page_in_its_file() -> None:
    """Where a page is restored while a late result of it waits for a fold, its entry is of the revision that is stored."""
    session = archived_with_open_calls()
    session.evict(1)
    session.append(result("x", "late parcel"))
    session.restore(1)
    facts, entry = session.facts(1), session.contents.entries[0]
    assert isinstance(entry, ContentsEntry)
    assert (facts.sha256, facts.revision, facts.entries, facts.tokens) == (
        entry.sha256, entry.revision, entry.entries, entry.tokens
    )  # fmt: skip
    session.fold()
    assert "late parcel" in session.contents.render()
    assert () == session.verify().problems


def test_late_results_may_come_in_one_command() -> None:
    """Two late results of one archived page, in one command or in two, stand in the order in which they came."""
    together, apart = archived_with_open_calls(), archived_with_open_calls()
    late = [result("y", "first"), result("x", "second")]
    together.extend(late)
    for value in late:
        apart.append(value)
    for session in (together, apart):
        session.fold()
        assert ["first", "second"] == [value["content"] for value in session.page(1).messages if value["role"] == "tool"]
        assert () == session.verify().problems


def two_archived_calls_of_one_id() -> Session:
    """Return a session with two archived pages; each holds two messages that call ``x``, and none has a result."""
    session = open_session(active={"min_pages": 1})
    for text in ("first", "second"):
        session.extend([user(f"{text} " * 40), calling("x"), assistant("going on"), calling("x"), assistant("without both")])
    session.append(user("last"))
    session.window(150)
    assert ["usr-3"] == indexes(session, PageState.OPEN, PageState.ACTIVE)
    return session


@pytest.mark.parametrize("together", [1, 2, 4])
def test_late_results_of_one_id_go_to_the_nearest_calls(together: int) -> None:
    """Late results answer the newest call of their id first, however many of them come in one command."""
    session = two_archived_calls_of_one_id()
    late = [result("x", f"result {number}") for number in range(1, 5)]
    for place in range(0, 4, together):
        session.extend(late[place : place + together])
    for fold in (False, True):
        if fold:
            session.fold()
        assert [None, "result 4", "going on", None, "result 3"] == [each["content"] for each in session.page(1).messages][1:-1]
        assert [None, "result 2", "going on", None, "result 1"] == [each["content"] for each in session.page(2).messages][1:-1]
        assert () == session.verify().problems


def test_a_late_result_prefers_a_nearer_archived_call_to_an_older_one_in_view() -> None:
    """Where an older page with a call of the same id is still in view, a result answers the newer one of an archived page."""
    session = open_session()
    session.extend([user("a"), calling("x"), assistant("b"), user("c"), calling("x"), assistant("d"), user("e")])
    folding.fold(session._core, FoldPlan(pages=("usr-2",), reason="budget"))
    assert ["usr-2/3", "usr-1/3"] == [session.append(result("x")).address for _ in range(2)]
    assert () == session.verify().problems


def test_one_late_result_too_many_refuses_the_command() -> None:
    """A command with more results of one id than calls wait for them stores nothing."""
    session = two_archived_calls_of_one_id()
    seq = session.seq
    with pytest.raises(InvalidMessageError, match="no call with the id 'x'"):
        session.extend([result("x")] * 5)
    assert seq == session.seq
    assert 4 == len(session.extend([result("x")] * 4))


def test_a_late_result_is_taken_once() -> None:
    """A second result for a call of an archived page is refused, before and after the fold that takes the first in."""
    session = archived_with_open_calls()
    session.append(result("x"))
    for _ in range(2):
        with pytest.raises(InvalidMessageError, match="no call with the id 'x'"):
            session.append(result("x"))
        session.fold()


def test_a_late_result_reaches_a_recalled_page() -> None:
    """The block of an attached page shows the result from the next fold on."""
    session = archived_with_open_calls()
    session.recall(1)
    session.append(result("x", "late parcel"))
    assert "late parcel" not in str(session.window(2_000).messages)
    session.fold()
    assert "late parcel" in str(session.window(2_000).messages)


def test_a_command_with_a_bad_message_stores_nothing() -> None:
    """Of many messages in one command all are stored or none, and the error names the bad one."""
    session = open_session()
    session.extend(turn(1))
    seq = session.seq
    with pytest.raises(InvalidMessageError, match="message 2 of 3"):
        session.extend([user("a"), assistant("b"), {"role": "ghost"}])
    assert (seq, turn(1)) == (session.seq, list(session.messages()))
    assert [] == session.extend([])


def test_calls_and_results_may_come_in_the_first_command() -> None:
    """A new session takes a whole conversation at once, calls and results included."""
    session = open_session()
    values = [system("s"), user("a"), calling("x", "y"), result("y"), result("x"), assistant("b")]
    assert ["sys-1/1", *(f"usr-1/{place}" for place in range(1, 6))] == [entry.address for entry in session.extend(values)]
    assert values == list(session.messages())
    assert () == session.verify().problems


def test_many_turns_may_come_in_one_command() -> None:
    """What a long command folds and evicts is what the same messages do one by one."""
    session = open_session(budget={"window": 300, "reserve": 0}, active={"min_pages": 1})
    values = [value for number in range(1, 30) for value in turn(number)]
    notices = heard(session)
    entries = session.extend(values)
    assert values == [entry.message for entry in entries] == list(session.messages())
    assert [f"usr-{number}/{place}" for number in range(1, 30) for place in (1, 2)] == [entry.address for entry in entries]
    assert notices
    talk(session, 1, first=30)
    assert () == session.verify().problems


def test_a_late_result_is_not_taken_twice_after_a_recall() -> None:
    """A page recalled while its late result waits for a fold has it once, before and after the fold and a reopening."""
    store = MemoryStore()
    session = open_session(store, active={"min_pages": 1})
    session.extend([user("start " + "word " * 50), calling("c1")])
    talk(session, 6)
    session.window(150)
    assert session.page("usr-1").chapter is None
    session.append(result("c1", "done late"))
    session.window()
    session.restore("usr-1")
    session.window()
    session.recall("usr-1")
    session.append(user("next"))
    session.fold("all")
    for reopened in (False, True):
        each = open_session(store, active={"min_pages": 1}) if reopened else session
        assert 1 == sum(message.get("tool_call_id") == "c1" for message in each.page("usr-1").messages)
        blocks = [str(message["content"]) for message in each.window().messages if "[recalled page" in str(message["content"])]
        assert [1] == [block.count("done late") for block in blocks]


def test_several_messages_have_their_own_times() -> None:
    """Messages that come in together may each have a time; what has none is said now, and another number of times is refused."""
    session = open_session()
    times = ["2026-01-02T03:04:05", None, "2025-12-31T00:00:00+01:00"]
    entries = session.extend([user("a"), assistant("b"), user("c")], at=times)
    found = [entry.node.at for entry in entries]
    assert ["2026-01-02T03:04:05+00:00", "2025-12-30T23:00:00+00:00"] == found[::2]
    assert found[0] < found[1] <= session.append(user("d")).node.at
    with pytest.raises(InvalidMessageError, match="2 times for 1 messages"):
        session.extend([user("e")], at=times[:2])
    assert 4 == len(list(session.messages()))
