"""What the provider's usage does to the counts: it is believed where it can be true, and never blocks a session."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memci import AsyncEngine, Calibration
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.session import Session
from memci.errors import BudgetError, ConfigError
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_message
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import assistant, calling, result, system, user

TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look up " + "words " * 300, "parameters": {}}}]


def asked(**sections: Any) -> tuple[Session, int]:  # noqa: ANN401 (any section of the file)
    """Return a session whose window was asked for, and the tokens of that by the counter."""
    session = open_session(**sections)
    talk(session, 10)
    session.window()
    return session, session._core.prepared.counted


def test_a_report_says_what_came_of_it() -> None:
    """The scale is what the provider counted for a token, at once where that is more."""
    session, counted = asked()
    calibration = session.report_usage({"prompt_tokens": 2 * counted, "completion_tokens": 5})
    assert (True, 2.0) == (calibration.accepted, calibration.scale)
    assert f"the provider counted {2 * counted} tokens, and the counter {counted}" in calibration.reason
    assert 2 * counted <= session.window().tokens <= 2 * counted + 7


@pytest.mark.parametrize("tokens", [0, 0.4, 4.2, 100])
@pytest.mark.parametrize("counter", ["o200k_base", "approximate"])
def test_what_cannot_be_about_the_window_changes_nothing(tokens: float, counter: str) -> None:
    """A report of far fewer or far more tokens is not accepted: no event, the same window, and why."""
    session, counted = asked(counter=counter)
    seq, before = session.seq, session.window()
    calibration = session.report_usage({"prompt_tokens": int(tokens * counted)})
    assert (False, session._core.state.scale) == (calibration.accepted, calibration.scale)
    assert "not of that window" in calibration.reason
    assert (seq, before) == (session.seq, session.window())


@pytest.mark.parametrize("share", [0.6, 0.9, 1.0])
def test_an_exact_counter_is_never_scaled_below_one(share: float) -> None:
    """However often the provider counts fewer tokens, what is counted stays."""
    session, counted = asked()
    for _ in range(4):
        calibration = session.report_usage(prompt_tokens=int(share * counted))
        assert (True, 1.0) == (calibration.accepted, calibration.scale)
    assert counted == session.window().tokens


def test_an_estimate_follows_down_when_two_reports_agree() -> None:
    """One low report takes nothing off the margin of an estimate; a second one does."""
    session, counted = asked(counter="approximate")
    first, second = (session.report_usage(prompt_tokens=int(0.8 * counted)) for _ in range(2))
    assert (1.15, True) == (first.scale, "one report alone" in first.reason)
    assert 0.83 < second.scale < 0.85


def test_one_low_report_enlarges_no_window() -> None:
    """Once the provider was seen to count twice the tokens, a single report of fewer is not followed."""
    session, counted = asked()
    session.report_usage(prompt_tokens=2 * counted)
    session.report_usage(prompt_tokens=2 * counted)
    assert 2.0 == session.report_usage(prompt_tokens=counted).scale


@pytest.mark.parametrize("history", [[], [1.0], [1.0, 1.0, 1.0]])
def test_a_good_report_mends_a_bad_one(history: list[float]) -> None:
    """After one report of too many tokens the next good one brings the scale back."""
    session, counted = asked()
    for share in [*history, 3.5, 1.0]:
        calibration = session.report_usage(prompt_tokens=int(share * counted))
    assert 1.0 == calibration.scale


def test_cached_tokens_of_anthropic_are_part_of_the_prompt() -> None:
    """With a cache that holds nearly all of each prompt, windows stay within their budget by the provider's count."""
    session = open_session(format="anthropic", budget={"window": 2_000, "reserve": 0}, active={"min_pages": 1})
    counter = get_counter("o200k_base")
    known = 0
    for number in range(1, 60):
        talk(session, 1, first=number, words=12)
        window = session.window()
        real = 3 + sum(count_message(value, counter) for value in window.messages)
        assert real <= 2_000
        usage = {"input_tokens": max(real - known, 1), "cache_read_input_tokens": min(known, real - 1), "output_tokens": 1}
        assert session.report_usage(usage).accepted
        known = real


def test_a_cache_has_no_more_than_the_prompt() -> None:
    """Where a usage tells of more cached tokens than the prompt had, those of the prompt count as cached, and cost as much."""
    session, counted = asked(prices={"read": 0.1, "write": 1.25})
    usage = {"prompt_tokens": counted, "prompt_tokens_details": {"cached_tokens": 3 * counted}}
    assert session.report_usage(usage).accepted
    stats = session.stats()
    assert (counted, counted) == (stats.reported_tokens, stats.cached_tokens)
    assert round(0.1 * counted) == stats.cost


def test_the_rest_beside_a_cache_is_no_report_of_a_window() -> None:
    """Anthropic's ``input_tokens`` alone, given as the prompt, enlarge no window."""
    session, counted = asked(counter="approximate")
    for share in (0.02, 0.02, 0.02, 0.02):
        assert not session.report_usage(prompt_tokens=int(share * counted)).accepted
    assert 1.15 * counted <= session.window().tokens


def fits(session: Session) -> bool:
    try:
        window = session.window(tools=TOOLS)
    except BudgetError:
        return False
    return window.tokens <= window.budget


@given(
    share=st.floats(0.5, 4.0),
    rules=st.integers(1, 400),
    words=st.integers(1, 600),
    counter=st.sampled_from(["o200k_base", "approximate"]),
    budget=st.sampled_from([1_200, 3_000]),
)
@example(share=3.9, rules=10, words=119, counter="o200k_base", budget=1_200)
def test_no_report_blocks_a_session(share: float, rules: int, words: int, counter: str, budget: int) -> None:
    """Whatever one report says, the same window can be asked for again, and what fits without the report does later."""
    sessions = [open_session(counter=counter, budget={"window": budget, "reserve": 0}, active={"min_pages": 1}) for _ in range(2)]
    for session in sessions:
        session.append(system("rule " * rules))
        session.append(user("go"))
        session.window(tools=TOOLS)
    reported, plain = sessions
    calibration = reported.report_usage(prompt_tokens=int(share * reported._core.prepared.counted))
    assert calibration.scale == reported._core.state.scale
    assert fits(reported)
    for text in ("word " * words, "and now?", "word " * (budget // 4)):
        for session in sessions:
            session.extend([assistant("ok"), user(text), user(text)])
        assert fits(reported) or not fits(plain)


@pytest.mark.parametrize("wire_format", ["openai", "responses", "anthropic"])
def test_a_window_that_fits_by_the_counter_alone_is_not_refused(wire_format: str) -> None:
    """What only the scale of a report makes too large is counted without it; later windows are scaled again."""
    session = open_session(format=wire_format, budget={"window": 1_000, "reserve": 0})
    session.append(system("rule " * 250))
    session.append(user("hi"))
    scale = session.report_usage(prompt_tokens=int(3.9 * session.window().tokens)).scale
    session.extend([assistant("hello"), user("word " * 68), user("word " * 120)])  # the first has too little to be cut
    window = session.window()
    assert session._core.prepared.counted == window.tokens
    assert (window, window) == (session.window(), session.render(at=window.seq))
    session.append(user("and now?"))
    assert session.window().tokens > scale * session._core.prepared.counted - 1


def test_what_does_not_fit_by_the_counter_is_refused() -> None:
    """The error counts as the counter does, since no scale is to blame."""
    session, counted = asked()
    session.report_usage(prompt_tokens=2 * counted)
    with pytest.raises(BudgetError) as refused:
        session.window(budget=20)
    session._core.state.scale = 1.0
    with pytest.raises(BudgetError) as unscaled:
        session.window(budget=20)
    assert unscaled.value.tokens == refused.value.tokens


def test_what_no_step_shortens_keeps_room_for_the_next_message() -> None:
    """A report that would leave none is followed as far as there is room, and says so."""
    session = open_session(budget={"window": 1_000, "reserve": 0})
    session.append(user("go"))
    session.window(tools=TOOLS)
    calibration = session.report_usage(prompt_tokens=int(3.9 * session._core.prepared.counted))
    assert (True, True) == (calibration.accepted, 1 < calibration.scale < 3.9)
    assert "no room" in calibration.reason
    assert session.window(tools=TOOLS).tokens <= 751


def test_the_scale_counts_where_the_open_page_is_cut() -> None:
    """A page is cut at its size by the provider: by a scale of two, at half the counter's tokens."""

    def pages(session: Session) -> int:
        for number in range(12):
            session.extend([calling(f"c{number}"), result(f"c{number}", "word " * 40)])
        return len([facts for facts in session.pages() if facts.turn == 11])

    plain, _ = asked(active={"page_tokens": 400})
    plain.append(user("go"))
    scaled, counted = asked(active={"page_tokens": 400})
    scaled.report_usage(prompt_tokens=2 * counted)
    scaled.append(user("go"))
    half, _ = asked(active={"page_tokens": 200})
    half.append(user("go"))
    assert pages(plain) < pages(scaled) == pages(half)


def test_a_session_that_was_opened_again_knows_no_window(tmp_path: Path) -> None:
    """Which window a report is about is known where it was asked for: elsewhere it is not accepted, and says so."""
    with Engine(FileStore(tmp_path), config_of()) as engine:
        session = engine.session("chat")
        talk(session, 3)
        tokens = session.window().tokens
        assert session.report_usage(prompt_tokens=2 * tokens).accepted
    with Engine(FileStore(tmp_path), config_of()) as engine:
        session = engine.session("chat")
        calibration = session.report_usage(prompt_tokens=tokens)
        assert (False, 2.0) == (calibration.accepted, calibration.scale)
        assert "no window was asked for" in calibration.reason
        session.window()
        assert session.report_usage(prompt_tokens=2 * tokens).accepted


def test_the_last_reports_are_kept(tmp_path: Path) -> None:
    """A session that is loaded again, with a snapshot or without, follows the next report as the old one would."""
    for every in (1, 500):
        store = FileStore(tmp_path / str(every))
        with Engine(store, config_of(snapshot_every=every, counter="approximate")) as engine:
            session = engine.session("chat")
            talk(session, 3)
            session.window()
            counted = session._core.prepared.counted
            assert 1.15 == session.report_usage(prompt_tokens=int(0.8 * counted)).scale
        with Engine(store, config_of(snapshot_every=every, counter="approximate")) as engine:
            session = engine.session("chat")
            session.window()
            assert 0.9 > session.report_usage(prompt_tokens=int(0.8 * counted)).scale


def test_a_restored_session_still_takes_the_report() -> None:
    """A report may come after the session went back to before its first window."""
    session = open_session()
    talk(session, 3)
    checkpoint = session.checkpoint("before")
    tokens = session.window().tokens
    session.restore_checkpoint(checkpoint.id)
    assert 2.0 == session.report_usage(prompt_tokens=2 * tokens).scale


def test_snapshots_of_before_have_the_scale_only() -> None:
    """A state that was stored without the last reports takes its scale for them."""
    session, counted = asked()
    session.report_usage(prompt_tokens=2 * counted)
    value = state_codec.to_mapping(session._core.state)
    assert ((1.0, 2.0), (1.0, 2.0)) == (value["ratios"], state_codec.from_mapping(value).ratios)
    del value["ratios"]
    assert (2.0, 2.0) == state_codec.from_mapping(value).ratios


@pytest.mark.parametrize("prompt_tokens", [0, -5, 1.5, None, True, "9", 10**400])
def test_usage_is_a_number_of_tokens(prompt_tokens: object) -> None:
    """What is no number above 0 is an error; so are both forms at once, and neither."""
    session, _ = asked()
    with pytest.raises(ConfigError, match="above 0"):
        session.report_usage(prompt_tokens=prompt_tokens)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="give the provider's usage, or"):
        session.report_usage({"prompt_tokens": 5}, prompt_tokens=5)
    with pytest.raises(ConfigError, match="is no usage"):
        session.report_usage(object())


def test_the_asynchronous_twin_returns_the_same() -> None:
    """``await session.report_usage(usage)`` gives the calibration."""

    async def calibrate() -> Calibration:
        async with AsyncEngine(MemoryStore(), config_of()) as engine, await engine.session("chat") as session:
            await session.append(user("go"))
            window = await session.window()
            return await session.report_usage({"input_tokens": 1, "cache_read_input_tokens": window.tokens})

    assert asyncio.run(calibrate()).accepted
