"""The engines that memci is compared with."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from memci.quality.baselines import (
    AppendedLeads,
    FullTextSearch,
    RewrittenLeads,
    SlidingMessages,
    SlidingPages,
    WholeHistory,
    lead,
)
from memci.quality.playing import play
from memci.quality.scoring.contents import ShownContents
from tests.quality.small import COUNTER, MESSAGES, SYSTEM, assistant, conversation, user

Make = Callable[[int, TokenCounter], WholeHistory]

LEADS: tuple[Make, ...] = (AppendedLeads, RewrittenLeads)


def filled(make: Make, budget: int, messages: tuple[dict[str, Any], ...] = MESSAGES) -> WholeHistory:
    """Return an engine that took the messages in, with a window before each answer."""
    engine = make(budget, COUNTER)
    for message in messages:
        if message["role"] == "assistant":
            engine.window()
        engine.add(message)
    return engine


def lines(engine: WholeHistory) -> dict[str, str]:
    """Return what the window's contents page says of each turn."""
    return ShownContents(message["content"] for message in engine.window() if isinstance(message["content"], str)).lines


def size(*messages: dict[str, Any]) -> int:
    return REPLY_TOKENS + sum(count_message(message, COUNTER) for message in messages)


def long_talk(turns: int) -> tuple[dict[str, Any], ...]:
    said = [SYSTEM]
    for number in range(turns):
        said += [user(f"What is the price of part {number}? I need it today. " * 3), assistant(f"It costs {number} euros. " * 5)]
    return tuple(said)


def test_the_whole_history_is_sent() -> None:
    """Every message is in the window, and every turn is a page."""
    engine = filled(WholeHistory, 1)
    assert list(MESSAGES) == engine.window()
    assert ["system", "turn-1", "turn-2", "turn-3"] == [page.page for page in engine.pages()]


def test_last_messages_slide() -> None:
    """System messages stay, with as many of the last messages as fit, and only whole turns are pages."""
    engine = filled(SlidingMessages, size(SYSTEM, *MESSAGES[5:]))
    assert [SYSTEM, *MESSAGES[5:]] == engine.window()
    assert ["system", "turn-3"] == [page.page for page in engine.pages()]


def test_last_turns_slide() -> None:
    """System messages stay, with as many of the last turns as fit."""
    engine = filled(SlidingPages, size(SYSTEM, *MESSAGES[3:]) - 1)
    assert [SYSTEM, *MESSAGES[7:]] == engine.window()
    assert ["system", "turn-3"] == [page.page for page in engine.pages()]


def test_the_open_turn_stays() -> None:
    """A turn that is too large for the budget is sent as long as it is the last one."""
    engine = filled(SlidingPages, 10)
    assert [SYSTEM, *MESSAGES[7:]] == engine.window()


def test_older_turns_become_a_line() -> None:
    """The first words of the user and of the last answer stand for a turn, and the turn comes back whole."""
    engine = filled(AppendedLeads, 1_000, long_talk(20))
    window = engine.window()
    assert SYSTEM == window[0]
    (page, line), *_ = lines(engine).items()
    number = int(page.removeprefix("turn-")) - 1
    asked = f"What is the price of part {number}? I need it today."
    assert line.startswith(f"{asked} {asked}")
    assert list(long_talk(20)[1:3]) == engine.recall("turn-1")


def test_appended_lines_only_grow_until_they_are_too_many() -> None:
    """A call begins with all of the call before, unless turns left, so that most of it can be reused."""
    found = play(AppendedLeads(1_000, COUNTER), conversation(messages=long_talk(60)), 1_000).calls
    rewritten = play(RewrittenLeads(1_000, COUNTER), conversation(messages=long_talk(60)), 1_000).calls
    assert found.prefix / found.length > 0.8 > rewritten.prefix / rewritten.length
    assert found.verbatim < rewritten.verbatim


def test_rewritten_lines_get_shorter() -> None:
    """The more turns have left, the shorter are the leads; the oldest go only where even the shortest do not fit."""
    few, some, many = (filled(RewrittenLeads, 1_000, long_talk(turns)) for turns in (14, 20, 40))
    assert len(lines(few)["turn-4"]) > len(lines(some)["turn-4"])
    assert "turn-4" not in lines(many)
    assert lines(many)["turn-31"]


@pytest.mark.parametrize("make", [SlidingMessages, SlidingPages, *LEADS])
@given(budget=st.integers(min_value=250, max_value=2_000), turns=st.integers(min_value=1, max_value=40))
def test_windows_fit(make: Make, budget: int, turns: int) -> None:
    """No window of short turns is over its budget, and no pair is broken."""
    faults = play(make(budget, COUNTER), conversation(messages=long_talk(turns)), budget).faults
    assert (0, 0) == (faults.over_budget, faults.broken_pairs)


@pytest.mark.parametrize("make", LEADS)
def test_pages_are_kept(make: Make) -> None:
    """What left the window comes back as it was."""
    assert 0 == play(make(300, COUNTER), conversation(messages=long_talk(30)), 300).faults.lost


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Short.", "Short."),
        ("One is here. Two is longer.", "One is here."),
        ("no sentence ends in here", "no sentence en…"),
        ("第一句在这里。第二句在那里很长很长很长。", "第一句在这里。"),
    ],
)
def test_a_lead_is_the_first_sentences_that_fit(text: str, shown: str) -> None:
    """Whole sentences where one fits, else the beginning of the first."""
    assert shown == lead(text, 14)


def test_any_word_of_a_query_finds_a_page() -> None:
    """The page with more of the words is first, and the text is its best passage."""
    pages = [("a", "The cat sleeps."), ("b", "A dog and a cat play."), ("c", "Nothing else.")]
    found = FullTextSearch(pages).search('which "dog" AND cat?', 5)
    assert ["b", "a"] == [hit.page for hit in found]
    assert '{"index":"b","snippet":"A dog and a cat play."}' == found[0].text


@pytest.mark.parametrize("make", LEADS)
def test_a_search_finds_what_came_since_the_last_one(make: Make) -> None:
    """A turn is found as soon as it was said, whatever was searched before."""
    engine = filled(make, 1_000)
    assert [] == engine.search("umbrella", 5)
    engine.add(user("Where is my umbrella?"))
    assert ["turn-4"] == [hit.page for hit in engine.search("umbrella", 5) or ()]
    engine.add(assistant("In the hallway."))
    assert ["turn-4"] == [hit.page for hit in engine.search("hallway", 5) or ()]


def test_chinese_is_found() -> None:
    """Words without spaces between them are found by their pairs of characters."""
    found = FullTextSearch([("a", "附近有地铁站。"), ("b", "今天下雨。")]).search("地铁在哪里？", 5)
    assert ["a"] == [hit.page for hit in found]


def test_a_query_of_marks_finds_nothing() -> None:
    """A query without a word is no error."""
    assert [] == FullTextSearch([("a", "The cat.")]).search("?!", 5)


def test_a_search_closes_its_connection() -> None:
    """Whoever lets go of a full-text search leaves no connection open."""
    search = FullTextSearch([("a", "The cat.")])
    connection = search._connection
    del search
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
