"""Strategies by name: what windows show under each preset, and what none of them loses."""

from typing import Any

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.engine.session import Session
from memci.engine.settings.presets import PRESETS
from memci.engine.view.layout import PARTS
from tests.engine.sessions import indexes, open_session, talk, turn
from tests.engine.wire import Value, assistant, system, user

SMALL = {"budget": {"window": 900, "reserve": 0}}


def filled(preset: str, turns: int = 60, **sections: Any) -> Session:  # noqa: ANN401 (sections of the config)
    """Return a session that has outgrown its budget."""
    session = open_session(**{**SMALL, "preset": preset, **sections})
    session.append(system("You are a clerk."))
    talk(session, turns)
    return session


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_keeps_all_and_fits(preset: str) -> None:
    """Whatever the strategy, windows fit, and every message, search and page is there."""
    session = filled(preset)
    window = session.window()
    assert window.tokens <= 900
    assert [system("You are a clerk."), *(message for number in range(1, 61) for message in turn(number))] == list(
        session.messages()
    )
    assert "usr-3" == session.search("ask3x4")[0].index
    assert "usr-3" == session.recall(3).index
    assert "ask3x4" in session.window().to_json().decode()
    assert session.verify().ok


@pytest.mark.parametrize("preset", ["sliding", "truncate", "threshold", "query_only"])
def test_nothing_is_listed_and_everything_is_kept(preset: str) -> None:
    """The window shows neither contents page nor working set, at most a continuation; the session has them all."""
    session = filled(preset)
    window = session.window()
    assert 0 == window.breakdown["contents"]
    assert (preset == "threshold") == bool(window.breakdown["work"])
    assert "Contents of earlier pages" not in window.to_json().decode()
    assert session.contents.entries
    assert not session.explain(3).in_contents
    assert "contents.listed" in str(session.explain(3))
    assert "contents.listed" in str(session.explain(0))


def test_a_contents_page_that_is_not_shown_takes_no_room() -> None:
    """What is not shown is not counted: more pages stay word for word."""
    larger = {"window": 2_000, "reserve": 0}
    chapters, truncated = (
        sum(len(indexes(filled(name, turns=turns, budget=larger), PageState.ACTIVE)) for turns in range(50, 60))
        for name in ("chapters", "truncate")
    )
    assert truncated > chapters


def test_sliding_shows_the_last_pages() -> None:
    """The last n messages stay, rounded up to whole pages, and what is older is out of view."""
    session = filled("sliding", active={"max_messages": 6, "keep_messages": 5})
    assert [f"usr-{number}" for number in (58, 59, 60)] == indexes(session, PageState.ACTIVE, PageState.OPEN)[1:]


def test_truncate_drops_nothing_before_the_budget() -> None:
    """While there is room, all stands word for word; the model is told of no tools."""
    session = filled("truncate", turns=4)
    assert 9 == len(session.window().messages)
    assert "search_pages" not in filled("truncate").window().to_json().decode()


def test_query_only_tells_of_the_tools() -> None:
    """Once something left the window, the system part says how to find it."""
    assert "search_pages" not in filled("query_only", turns=2).window().to_json().decode()
    session = filled("query_only")
    assert "search_pages" not in session.window().to_json().decode()  # as they are not offered
    assert "search_pages" in session.window(2_000, tools=session.toolbox.openai()).to_json().decode()


def test_parts_of_a_window_add_up() -> None:
    """The breakdown has the same parts under every preset."""
    for preset in PRESETS:
        window = filled(preset).window()
        assert sum(window.breakdown.values()) == window.tokens
        assert set(PARTS) == set(window.breakdown)


def spoken(number: int) -> list[Value]:
    """Return a turn of about 550 tokens."""
    return [
        user(f"Question {number}: " + f"what of part {number}? " * 46),
        assistant(f"Answer {number}: " + f"it is {number} mm. " * 46),
    ]


def test_threshold_makes_one_summary_of_all_but_the_last_messages() -> None:
    """Of 49 messages and 13,000 tokens the last 15 stand word for word, after the system part, the host's block and a summary."""
    first = [system("You are a clerk."), system("The host's own block, about the user.")]
    said = [*(message for number in range(23) for message in spoken(number)), user("And now?")]
    session = open_session(preset="threshold", budget={"window": 32_000, "reserve": 4_000})
    session.extend([*first, *said])
    assert 49 == len(first) + len(said)
    assert session.window().tokens < 13_000 < sum(facts.tokens for facts in session.pages())
    messages = session.window().messages
    assert first == messages[:2]
    assert messages[2]["content"].startswith("[continuation]")
    assert said[-15:] == messages[3:]
    assert [*first, *said] == list(session.messages())
    assert session.search("part 3")


def test_threshold_waits_for_both_marks() -> None:
    """Few messages, or few tokens, are all shown."""
    few = open_session(preset="threshold", budget={"window": 32_000, "reserve": 4_000})
    few.extend([message for number in range(14) for message in spoken(number)])
    short = open_session(preset="threshold", budget={"window": 32_000, "reserve": 4_000})
    talk(short, 60)
    assert (28, 120) == (len(few.window().messages), len(short.window().messages))


def test_a_continuation_is_shown_by_the_strategies_that_have_one() -> None:
    """With and without a contents page; a session that goes to another strategy shows it no more."""
    for preset in ("two_layer", "hybrid", "threshold"):
        session = filled(preset)
        assert "[continuation]" in session.window().to_json().decode()
        session.configure(preset="truncate")
        assert "[continuation]" not in session.window().to_json().decode()
        session.configure(preset=preset)
        assert "[continuation]" in session.window().to_json().decode()
