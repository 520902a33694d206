"""Folding down to a size: by a word, or to a number of tokens."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.archive.catalogue.page_facts import PageState
from memci.engine.commands.folding import LIGHTER
from memci.engine.settings.presets import PRESETS
from memci.errors import ConfigError
from tests.engine.sessions import indexes, open_session, prepare, states, talk, turn
from tests.engine.wire import calling, result, system, user


@pytest.mark.parametrize("word", LIGHTER)
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_word_makes_the_window_smaller(word: Any, preset: str) -> None:  # noqa: ANN401 (a word of three)
    """The window loses its share and not much more, and one undo brings all of it back."""
    session = open_session(preset=preset, active={"max_messages": None, "keep_messages": None})
    talk(session, 80, words=12)
    before, messages = session.window(), list(session.messages())
    fold = session.fold(to=word)
    assert (before.tokens, session.window().tokens) == (fold.tokens_before, fold.tokens_after)
    most = (1 - LIGHTER[word]) * before.tokens
    assert most - 0.15 * before.tokens < fold.tokens_after <= most
    assert messages == list(session.messages())
    session.undo_fold()
    assert before.to_json() == session.window().to_json()


def test_a_number_is_one_of_tokens() -> None:
    """Pages fold until the window has so many; the open page and calls that wait stay, whatever is asked for."""
    session = open_session()
    talk(session, 30)
    assert session.fold(to=10**6).pages == ()
    assert session.fold(to=900).tokens_after <= 900
    session.extend([user("look it up"), calling("a"), user("meanwhile?"), turn(31)[1], user("and?")])
    session.fold(to=1)
    assert ["active", "open"] == [states(session)[index] for index in ("usr-31", "usr-33")]
    assert ["usr-31"] == indexes(session, PageState.ACTIVE)


def test_nothing_folds_where_that_makes_the_window_larger() -> None:
    """What tells of some short pages, and of recalling, may take more than they do."""
    session = open_session()
    talk(session, 4, words=1)
    before = session.window()
    assert ((), 0) == ((fold := session.fold(to="heavy")).pages, fold.seq)
    assert before.to_json() == session.window().to_json()


@pytest.mark.parametrize("to", ["lite", "", 0, -1, True, 0.5, [800], "all"])
def test_other_sizes_are_refused(to: Any) -> None:  # noqa: ANN401 (what anybody may give)
    """What is neither a known word nor a number of tokens names the argument; nothing is folded."""
    session = open_session()
    talk(session, 5)
    with pytest.raises(ConfigError) as caught:
        session.fold(to=to)
    assert "to" == caught.value.path
    with pytest.raises(ConfigError, match="not both"):
        session.fold("all", to=500)
    assert not indexes(session, PageState.ARCHIVED)


@settings(max_examples=settings().max_examples * 3 // 5, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([2, 8, 40, 120]), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 4_000),
    st.sampled_from(["listed", "unlisted", "prepared"]),
)
def test_it_gets_there_wherever_complete_pages_allow(turns: list[tuple[int, bool]], to: int, way: str) -> None:
    """The window has at most so many tokens then, or no complete page is left in it, or that would make it larger."""
    session = open_session(contents={"listed": way != "unlisted"})
    session.append(system("You are a clerk."))
    for number, (words, calls) in enumerate(turns):
        said, answered = turn(number, words)
        session.extend([said, *([calling("a"), result("a", "found it " * words)] if calls else []), answered])
    if way == "prepared":
        prepare(session)
    fold = session.fold(to=to)
    window = session.window()
    assert window.tokens == fold.tokens_after
    assert window.tokens <= to or not indexes(session, PageState.ACTIVE)[1:] or not fold.seq
    assert window.tokens <= fold.tokens_before
    assert session.render(at=window.seq).to_json() == window.to_json()
