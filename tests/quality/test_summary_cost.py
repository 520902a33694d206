"""What summaries of folded pages would cost, in two ways of asking for them."""

import pytest

from memci.archive.summarizers.external.model import prompt
from memci.engine.session import Session
from memci.engine.settings.config import Prices
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from memci.quality.played import ANSWER_PRICE, ANSWER_TOKENS, Summaries
from memci.quality.replay import SummaryMeter
from tests.engine.commands.test_trimming import SMALL, looked
from tests.engine.sessions import heard, open_session, talk, turn
from tests.engine.wire import assistant

COUNTER = get_counter("o200k_base")


def alone(session: Session, *indexes: str) -> int:
    """Return the tokens of requests for these pages, each of its own."""
    requests = [prompt([node.message for node in session.page(index).nodes()], ANSWER_TOKENS) for index in indexes]
    return sum(REPLY_TOKENS + sum(count_message(message, COUNTER) for message in request) for request in requests)


def test_pages_are_asked_for_alone_or_after_the_last_window() -> None:
    """The last window is read from the cache, once for all that it showed whole; the rest is asked for alone in any case."""
    session = open_session(active={"min_pages": 1, "max_pages": 50})
    notices, meter = heard(session), SummaryMeter(session, COUNTER)
    talk(session, 4, words=20)
    session.append(turn(5, 20)[0])
    window = session.window()
    meter.heard(notices)
    meter.called(window)
    session.append(turn(5, 20)[1])
    talk(session, 1, first=6, words=20)
    talk(session, 1, first=7, words=2)
    talk(session, 1, first=8, words=20)
    session.fold("all")
    meter.heard(notices)
    found = meter.summaries
    every = [f"usr-{number}" for number in (1, 2, 3, 4, 5, 6)]  # the seventh is too small
    assert (6, alone(session, *every), window.tokens) == (found.pages, found.alone, found.cached)
    asked = found.new - alone(session, "usr-5", "usr-6")
    assert 0 < asked < alone(session, "usr-1", "usr-2", "usr-3", "usr-4")
    meter.heard(notices)
    assert found == meter.summaries


def test_many_pages_take_several_requests() -> None:
    """One for as many as an answer sums up."""
    session = open_session()
    notices, meter = heard(session), SummaryMeter(session, COUNTER)
    talk(session, 70, words=10)
    window = session.window()
    meter.called(window)
    session.fold([f"usr-{number}" for number in range(1, 70)])
    meter.heard(notices)
    assert (69, 3 * window.tokens) == (meter.summaries.pages, meter.summaries.cached)


def test_trimmed_pages_are_asked_for_after_the_window_before() -> None:
    """The last one that showed their results whole; when they fold, nothing is asked again."""
    session = open_session(**SMALL)
    notices, meter = heard(session), SummaryMeter(session, COUNTER)
    for number in range(1, 8):
        for value in looked(number):
            if value == assistant(f"number {number} is fine"):
                window = session.window()
                meter.heard(notices)
                meter.called(window)
            session.append(value)
            meter.heard(notices)
    trimmed = [page for event in session.events("trimmed") for page in event.data["results"]]
    found = meter.summaries
    assert (len(trimmed), alone(session, *trimmed)) == (found.pages, found.alone)
    assert 0 < found.new < found.alone
    session.fold(trimmed)
    meter.heard(notices)
    assert found == meter.summaries


@pytest.mark.parametrize(("read", "dearer"), [(0.1, "alone"), (1.0, "after")])
def test_the_price_of_the_cache_decides(read: float, dearer: str) -> None:
    """What is answered costs the same in both."""
    found = Summaries(pages=10, alone=5_000, cached=8_000, new=600)
    answered = 10 * ANSWER_TOKENS * ANSWER_PRICE
    prices = Prices(read=read, write=1.25)
    assert 5_000 + answered == found.own_cost
    assert pytest.approx(8_000 * read + 600 + answered) == found.window_cost(prices)
    assert dearer == ("alone" if found.own_cost > found.window_cost(prices) else "after")
