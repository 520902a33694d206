"""Passages of earlier pages that stand beside a message without being asked for, since they match it."""

import re

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Prefetch
from memci.engine.engine import Engine
from memci.engine.history.events import PageRecalled
from memci.engine.history.page_codec import page_value
from memci.engine.session import Session
from tests.engine.core.test_short_ways import called as calls_of
from tests.engine.sessions import config_of, heard, indexes, open_session, talk, turn
from tests.engine.wire import assistant, calling, result, user


def asked(question: str, **recall: int) -> Session:
    """Return a session of five archived turns and one that stands in the window, with a question that nobody answered yet."""
    session = open_session(recall={"passages_tokens": 500, **recall})
    talk(session, 6)
    session.fold([f"usr-{number}" for number in range(1, 6)])
    session.append(user(question))
    return session


def blocks(session: Session) -> list[str]:
    """Return the blocks of passages in the window, in its order."""
    texts = [message["content"] or "" for message in session.window().messages]
    return [text for text in texts if text.startswith("[recalled passages")]


def quoted(session: Session) -> list[str]:
    """Return the addresses of the passages in the window, block by block."""
    lines = "\n".join(blocks(session)).splitlines()
    return [line.partition(" ")[0] for line in lines if line[0] not in "[>"]


def test_what_matches_is_quoted_before_the_call() -> None:
    """Passages that the user's words match stand before the message, with address, speaker and day, and count as recalled."""
    session = asked("what was say3x4 say3x5?")
    notices = heard(session)
    window = session.window()
    *_, block, last = (message["content"] for message in window.messages)
    assert "what was say3x4 say3x5?" == last
    day = session.page(3).entries[0].node.at[:10]
    assert [
        "[recalled passages, 2 of earlier pages, quoted as data]",
        f"usr-3/1 user, {day}:",
        f"> {turn(3)[0]['content']}",
        "usr-3/2 assistant:",
        f"> {turn(3)[1]['content']}",
        "[end of passages]",
    ] == block.split("\n")
    assert 0 < window.breakdown["recalled"] <= 500
    assert [("usr-3",)] == [notice.pages for notice in notices if isinstance(notice, Prefetch)]


def test_passages_stand_in_the_order_of_their_pages() -> None:
    """Whichever matches best: what a line refers to is mostly in the one before it."""
    session = asked("what was say5x2 say5x3 say5x4, and say2x3?")
    assert ["usr-5"] == [hit.index for hit in session.search("say5x2 say5x3 say5x4 say2x3", 1)]
    pages = [address.partition("/")[0] for address in quoted(session)]
    assert "usr-5" in pages[1:]
    assert sorted(pages) == pages


def test_it_is_no_recall() -> None:
    """A page that is quoted is not attached, and no recall of it is counted."""
    session = asked("what was say3x4 say3x5?")
    session.window()
    assert (0, None) == (session.facts("usr-3").recall_count, session.facts("usr-3").last_recall_turn)
    assert [] == indexes(session, PageState.ATTACHED)
    assert "quotes usr-3/1, usr-3/2" in str(session.explain(3))


def test_a_passage_goes_when_its_page_is_recalled() -> None:
    """What stands in a recalled page is not quoted beside it, neither before nor after; other passages stay."""
    session = asked("what was say3x4 say3x5, and say5x2 say5x3?")
    assert {"usr-3/2", "usr-5/2"} <= set(quoted(session))
    session.recall(3)
    assert {"usr-5/2"} <= set(quoted(session))
    assert not {"usr-3/1", "usr-3/2"} & set(quoted(session))
    session.append(assistant("that"))
    session.append(user("say3x4 say3x5 again?"))
    assert not {"usr-3/1", "usr-3/2"} & set(quoted(session))


SAID = "The ferry to the lighthouse leaves at nine from the northern pier, and comes back at four."


def told_twice() -> Session:
    """Return a session where two archived pages say the same, and others say something else."""
    session = open_session(recall={"passages_tokens": 500})
    for number in range(1, 9):
        session.extend([user(f"question {number} asks"), assistant(SAID if number in (2, 4) else f"answer {number} says little")])
    session.fold([f"usr-{number}" for number in range(1, 8)])
    return session


@pytest.mark.parametrize(("recalled", "times"), [(None, 1), (2, 0)])
def test_what_two_pages_say_is_quoted_once(recalled: int | None, times: int) -> None:
    """A passage of another page that is the same word for word is left out, and so is one that a recalled page shows."""
    session = told_twice()
    if recalled is not None:
        session.recall(recalled)
    session.append(user("ferry lighthouse northern pier?"))
    assert times == "\n".join(blocks(session)).count(SAID)


def test_what_speakers_with_names_say_stands_under_their_own_entries() -> None:
    """The name of a speaker is in front of the passage, next to the role, and not a part of it."""
    session = named_twice()
    session.fold([f"usr-{number}" for number in range(1, 5)])
    session.append(user("lighthouse ferry northern pier?"))
    heads = ["user Ann", "> When does the lighthouse ferry leave?", "assistant Bob:", "> From the northern pier, at ten."]
    lines = [line for block in blocks(session) for line in block.split("\n")]
    assert heads == [re.sub(r"^usr-\S+ |, .{10}:$", "", line) for line in lines[1:5]]


def test_what_speakers_with_names_say_in_view_is_not_quoted() -> None:
    """A passage that the same speaker says in a message of the window is left out."""
    session = named_twice()
    session.fold([f"usr-{number}" for number in range(1, 4)])
    session.append(user("lighthouse ferry northern pier?"))
    assert [] == blocks(session)


def named_twice() -> Session:
    """Return a session whose first and fourth page say the same, by speakers with names; others say something else."""
    session = open_session(recall={"passages_tokens": 500})
    for number in range(1, 6):
        asked, answered = (
            ("When does the lighthouse ferry leave?", "From the northern pier, at ten.") if number in (1, 4) else ("x", "y")
        )
        session.extend([user(asked) | {"name": "Ann"}, assistant(answered) | {"name": "Bob"}])
    return session


def test_a_short_answer_stands_under_its_own_entry() -> None:
    """An answer whose words are a part of the question's stands under the entry that has it as a line."""
    session = open_session(recall={"passages_tokens": 500})
    session.extend([user("Is the Nordic lighthouse ferry gone?"), assistant("No")])
    talk(session, 6, first=2)
    session.fold([f"usr-{number}" for number in range(1, 6)])
    session.append(user("lighthouse ferry?"))
    assert ["usr-1/1", "usr-1/2"] == quoted(session)


def test_what_the_open_page_says_is_not_quoted() -> None:
    """A passage that stands in a message of the window, over several lines there, is left out."""
    session = told_twice()
    first, second = SAID.split(", ")
    session.append(user(f"You said:\n> {first},\n> {second}\nIs the ferry to the lighthouse still so?"))
    assert not any(SAID in block for block in blocks(session))


def test_a_short_answer_is_quoted_with_its_question() -> None:
    """A short passage stays beside one that brings something, though its words stand in the window elsewhere."""
    session = open_session(recall={"passages_tokens": 500})
    session.extend([user("Which pier does the lighthouse ferry leave from on Sundays?"), assistant("The northern pier.")])
    talk(session, 6, first=2)
    session.fold([f"usr-{number}" for number in range(1, 6)])
    session.extend([assistant("The northern pier."), user("lighthouse ferry Sundays pier?")])
    assert ["usr-1/1", "usr-1/2"] == quoted(session)[:2]


def test_all_passages_go_where_the_share_has_no_room_for_them() -> None:
    """A recalled page is worth more than passages, where both are more than the share of recalled pages."""
    session = asked("say3x4 say3x5 say5x2 say5x3")
    window = session.window()
    share = window.breakdown["recalled"] / window.budget * 1.2
    session = open_session(recall={"passages_tokens": 500, "max_share": share})
    talk(session, 6)
    session.fold([f"usr-{number}" for number in range(1, 6)])
    session.append(user("say3x4 say3x5 say5x2 say5x3"))
    assert quoted(session)
    session.recall(1)
    assert [] == quoted(session)
    assert session.window().breakdown["recalled"] <= share * window.budget


def test_passages_go_with_the_turn() -> None:
    """When the user speaks again, the passages of the turn before make room."""
    session = asked("what was say3x4 say3x5?")
    session.window()
    session.append(assistant("it was that"))
    session.append(user("and say5x2 say5x3?"))
    assert ["usr-5/1", "usr-5/2"] == quoted(session)


def test_passages_stay_while_the_turn_goes_on() -> None:
    """As long as the user says nothing the prefix of the window only grows; a fold leaves what stands beside the open message."""
    session = asked("what was say3x4 say3x5?")
    before = session.window().messages
    session.extend([calling("a"), result("a", "row " * 200), assistant("it was that")])
    assert before == session.window().messages[: len(before)]
    session.fold("all")
    assert ["usr-3/1", "usr-3/2"] == quoted(session)


def test_once_a_message() -> None:
    """Windows that are asked for again write nothing, and answers of the assistant quote nothing."""
    session = asked("what was say3x4 say3x5?")
    first = session.window()
    assert first.to_json() == session.window().to_json()
    assert first.seq == session.seq
    session.append(assistant("say1x1 say1x2 say2x3 say2x4"))
    assert ["usr-3/1", "usr-3/2"] == quoted(session)


def test_a_second_message_of_the_user_is_looked_for_too() -> None:
    """A user who writes again before the answer gets the passages of that message."""
    session = asked("what was say3x4 say3x5?")
    session.window()
    session.append(user("and say5x2 say5x3?"))
    assert {"usr-5/1", "usr-5/2"} <= set(quoted(session))


def test_what_hardly_matches_is_left() -> None:
    """Words that no page has quote nothing, and one word of many does not quote its page."""
    assert [] == quoted(asked("thanks, great!"))
    session = asked("say5x1 say5x2 say5x3 say5x4 say5x5 say5x6 say1x4")
    assert "usr-1" not in {address.partition("/")[0] for address in quoted(session)}


def test_the_bound_holds() -> None:
    """No more is quoted than the settings and a quarter of the budget allow; what does not fit is passed over."""
    everything = "say1x4 say2x4 say3x4 say4x4 say5x4"
    session = asked(everything)
    most = session.window().breakdown["recalled"]
    assert 2 < len(quoted(session))
    assert 0 < asked(everything, passages_tokens=most // 2).window().breakdown["recalled"] <= most // 2
    assert asked(everything).window(budget=2 * most).breakdown["recalled"] <= most // 2
    assert 0 == asked(everything, passages_tokens=3).window().breakdown["recalled"]


def test_the_setting_turns_them_off() -> None:
    """With 0 tokens nothing is quoted."""
    assert [] == quoted(asked("what was say3x4 say3x5?", passages_tokens=0))


def test_evicted_pages_are_quoted_too() -> None:
    """A page that the contents page lists no more is memory all the same."""
    session = asked("what was say3x4 say3x5?")
    session.evict("usr-3")
    assert ["usr-3/1", "usr-3/2"] == quoted(session)


@pytest.mark.parametrize("every", [1, 1_000])
def test_it_survives_a_restart(every: int) -> None:
    """A session that is opened again has the same window, from a snapshot and from the journal alone."""
    store = MemoryStore()
    config = config_of(recall={"passages_tokens": 500}, snapshot_every=every)
    with Engine(store, config).session("chat") as session:
        talk(session, 6)
        session.fold([f"usr-{number}" for number in range(1, 6)])
        session.append(user("what was say3x4 say3x5?"))
        window = session.window()
    with Engine(store, config).session("chat") as session:
        assert window.to_json() == session.window().to_json()
        assert window.seq == session.seq
        session.append(assistant("it was that"))
        session.append(user("good"))
        assert [] == quoted(session)
        assert window.to_json() == session.render(window.seq).to_json()
        assert session.verify().ok


def test_another_counter_counts_passages_anew() -> None:
    """Under a new counter the passages in the window have their new size."""
    store = MemoryStore()
    with Engine(store, config_of(recall={"passages_tokens": 500})).session("chat") as session:
        talk(session, 6)
        session.fold([1, 2, 3, 4, 5])
        session.append(user("what was say3x4 say3x5?"))
        before = session.window()
    with Engine(store, config_of(recall={"passages_tokens": 500}, counter="approximate")).session("chat") as session:
        after = session.window()
    assert before.to_json() == after.to_json()
    assert 0 < after.breakdown["recalled"] != before.breakdown["recalled"]


def test_going_back_takes_passages_away() -> None:
    """A rewind to before a message takes its passages, undoing a fold those that may be of its pages."""
    session = asked("what was say3x4 say3x5?")
    assert quoted(session)
    session.undo_fold()
    assert [] == quoted(session)
    session = asked("hello")
    entry = session.append(user("what was say3x4 say3x5?"))
    assert quoted(session)
    session.rewind(entry.address)
    assert [] == quoted(session)


def test_an_erased_page_leaves_the_passages() -> None:
    """What was quoted of a page goes with it, from the window and from the journal; what was quoted of others stays."""
    session = asked("say3x4 say3x5 say5x2 say5x3")
    assert {"usr-3/2", "usr-5/2"} <= set(quoted(session))
    made = session.checkpoint("then")
    session.append(assistant("yes"))
    session.restore_checkpoint(made.id)
    session.erase(3)
    assert {"usr-5/2"} <= set(quoted(session))
    assert not {"usr-3/1", "usr-3/2"} & set(quoted(session))
    assert not any(
        b"say3x4" in record.body.replace(b"say3x4 say3x5 say5x2", b"") for record in session._core.store.journal.read()
    )
    assert session.verify().ok


def test_what_had_to_leave_is_not_quoted_again() -> None:
    """Once a window had no room for passages, it is asked for again without a search, and nothing is written."""
    session = asked("what was say3x4 say3x5?")
    sizes = session.window().breakdown
    assert 0 < sizes["recalled"]
    small = session.window(sizes["recalled"] + sizes["open"])
    assert 0 == small.breakdown["recalled"]
    for budget in (small.budget, None, small.budget):
        window = session.window(budget)
        assert 0 == window.breakdown["recalled"]
        seq = session.seq
        assert window.to_json() == session.window(budget).to_json()
        assert seq == session.seq


def test_what_had_to_leave_a_result_is_not_quoted_again() -> None:
    """Passages beside a tool's result that a window had no room for stay away from the windows after it too."""
    session = called('{"file": "src/billing/invoice_totals.py"}')
    sizes = session.window().breakdown
    assert 0 < sizes["recalled"]
    small = session.window(sizes["recalled"] + sizes["open"])
    for budget in (small.budget, None):
        assert 0 == session.window(budget).breakdown["recalled"]


def test_journals_with_prefetched_pages_load() -> None:
    """A page that an older memci attached unasked stands in the window, is no recall, and goes with the message it came for."""
    session = asked("hello", passages_tokens=0)
    entry = session.append(user("what was say3x4 say3x5?"))
    core, page = session._core, session.page(3)
    event = PageRecalled(
        page="usr-3", turn=7, recall_count=0, anchor="usr-7", content=page_value(page), block_tokens=90,
        prefetched=entry.node.seq, media=True,
    )  # fmt: skip
    core.commit([event])
    window = session.window()
    assert "[recalled page usr-3" in str(window.messages)
    assert 0 == session.facts(3).recall_count
    session.rewind(entry.address)
    assert [] == indexes(session, PageState.ATTACHED)
    assert window.to_json() == session.render(window.seq).to_json()


def called(arguments: str, answer: str = "done") -> Session:
    """Return a session with an archived page about a file and an error, in which a call was just answered."""
    session = open_session(recall={"passages_tokens": 500})
    session.extend([user("Fix it"), calling("a", arguments='{"path": "src/billing/invoice_totals.py"}')])
    session.extend([result("a", "RoundingError: 0.1 in line 12"), assistant("RoundingError went away with Decimal in line 12.")])
    talk(session, 9, first=2)
    session.fold("all")
    session.evict("usr-1..9")
    session.fold()
    session.append(user("go on, as ask10x3 says"))
    session.window()
    session.extend([calling("b", arguments=arguments), result("b", answer)])
    return session


@pytest.mark.parametrize(
    ("arguments", "answer", "address"),
    [
        ('{"file": "src/billing/invoice_totals.py"}', "done", "usr-1/2"),
        ('{"command": "test"}', "RoundingError: 0.2 in line 40", "usr-1/3"),
    ],
)
def test_what_a_call_or_an_error_names_is_quoted(arguments: str, answer: str, address: str) -> None:
    """Passages for a rare value that was not in view stand after the result, where the prefix of the window goes on."""
    session = called(arguments, answer)
    before = session.render(session.seq - 2).messages
    window = session.window()
    assert before == window.messages[: len(before)]
    assert window.messages[-1]["content"].startswith("[recalled passages")
    assert address in quoted(session)
    seq = session.seq
    assert window.to_json() == session.window().to_json()
    assert seq == session.seq
    session.extend([calling("c", arguments=arguments), result("c", answer)])
    assert 1 == len(blocks(session))


@pytest.mark.parametrize(("arguments", "answer"), [('{"command": "test"}', "done"), ('{"file": "ask10x3"}', "of say3x4")])
def test_a_call_that_names_nothing_known_quotes_nothing(arguments: str, answer: str) -> None:
    """Plain words, what stands in view already, and results without an error bring no passage."""
    session = called(arguments, answer)
    before = len(blocks(session))
    session.extend([calling("c", arguments=arguments), result("c", answer)])
    assert before == len(blocks(session))


@pytest.mark.parametrize(
    ("said", "addresses"),
    [
        ("please continue", []),
        ("let us use `say3x4` again", ["usr-3/1", "usr-3/2"]),
        ("and say3x4?", ["usr-3/1", "usr-3/2"]),
    ],
)
def test_only_questions_and_rare_values_are_searched(said: str, addresses: list[str]) -> None:
    """A request without content finds nothing; a literal value that is not in view is looked up in a statement too."""
    assert addresses == quoted(asked(said))


def test_a_statement_is_not_searched() -> None:
    """It asks for nothing, even in words that a page has."""
    session = told_twice()
    session.append(user("thanks, the ferry to the lighthouse from the northern pier was lovely"))
    assert [] == quoted(session)


def test_a_message_without_passages_writes_nothing() -> None:
    """A search that finds nothing is not an event, and the window asked for again is the same."""
    session = asked("hello there, how are you?")
    session.window()
    session.append(assistant("fine"))
    session.append(user("and what else is new?"))
    before = session.seq
    first = session.window()
    assert (before, first.to_json()) == (session.seq, session.window().to_json())


def test_a_message_is_searched_for_once() -> None:
    """Windows asked for again, and renderings, have the bytes of the first, also after another page has folded."""
    session = asked("what was say3x4 say3x5?")
    first = session.window()
    assert first.to_json() == session.window().to_json() == session.render(at=session.seq).to_json()
    with session.draft() as draft:
        assert first.to_json() == draft.window().to_json()


def test_a_cache_breakpoint_stands_before_the_passages() -> None:
    """In Anthropic's format, what precedes the block is a prefix of its own: dropping the block does not break it."""
    session = open_session(format="anthropic", cache_breakpoints=True, recall={"passages_tokens": 500})
    talk(session, 6)
    session.fold([f"usr-{number}" for number in range(1, 5)])
    session.append(user("what was say3x4 say3x5?"))
    messages = session.window().messages
    texts = [str(message["content"]) for message in messages]
    place = next(number for number, text in enumerate(texts) if "[recalled passages" in text)
    assert "cache_control" in texts[place - 1]


STORY = "We drove along the coast. " * 12
FOUND = "The harbour of Lindau has a lighthouse."


def test_what_is_left_out_of_a_passage_is_marked() -> None:
    """A passage is cut between sentences, and says that it is a part; one that is whole does not."""
    session = open_session(recall={"passages_tokens": 500})
    session.extend([user(f"{STORY}{FOUND} {STORY}"), assistant("Lovely!"), user("hello"), assistant("hi")])
    session.fold(["usr-1"])
    session.append(user("which lighthouse was in Lindau's harbour?"))
    (block,) = blocks(session)
    _, about, passage, *answer, _ = block.splitlines()
    assert about.endswith(", in part:")
    assert passage.startswith(f"> {FOUND} We drove")
    assert passage.endswith("along the coast.")
    assert [] == answer


@pytest.mark.parametrize(("more", "found"), [(0, True), (40, False)])
def test_a_long_message_needs_a_closer_match(more: int, *, found: bool) -> None:
    """It brings along what it is about: what a short question finds, one of 300 characters does not, by the same words."""
    session = open_session(recall={"passages_tokens": 500})
    talk(session, 6)
    session.fold([f"usr-{number}" for number in range(1, 6)])
    session.append(user("what was say3x4 in the plan?" + " And so it is, or so it was." * more))
    assert found == bool(blocks(session))


def test_a_question_reads_no_page() -> None:
    """Passages are quoted from the index."""
    session = asked("what was say3x4 say3x5?")
    assert 0 == calls_of(session.window)["load"]
    assert "usr-3/1" in quoted(session)
    assert 1 == calls_of(lambda: session.page(2))["load"]


def test_a_name_is_no_part_of_a_passage_wherever_that_is_cut() -> None:
    """A name with a dot, or in front of a long message, stands in the heading alone."""
    session = open_session(recall={"passages_tokens": 500})
    said = f"{STORY}The zebra of J. Doe eats gherkins."
    session.extend([{**user(said), "name": "J. Doe"}, assistant("Lovely!"), user("hello"), assistant("hi")])
    session.fold(["usr-1"])
    session.append(user("what does the zebra eat, gherkins?"))
    (block,) = blocks(session)
    assert "usr-1/1 user J. Doe, " in block
    assert "> Doe:" not in block
    assert said.endswith(next(line for line in block.splitlines() if line.startswith("> "))[2:])
