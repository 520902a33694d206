"""The threads that ask a summariser: what they do about one that hangs, fails for ever, or is left behind by a fork."""

import os
import threading
from collections.abc import Sequence

import pytest

from memci.engine.core.summary_pool import Outcome, Request, SummaryPool
from memci.messages.message import Message

SECONDS = 60


def request(number: int) -> Request:
    return Request(
        session_id="chat", page=f"usr-{number}", revision=0, sha256=f"{number:064}", tokens=100, max_tokens=24, messages=()
    )


class Held:
    """A summariser that waits until it is let go."""

    def __init__(self) -> None:
        self.reached, self.released = threading.Event(), threading.Event()
        self.calls = 0

    def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
        self.calls += 1
        self.reached.set()
        assert self.released.wait(SECONDS)
        return f"room of {max_tokens}"


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def outcomes() -> list[Outcome]:
    return []


@pytest.fixture
def pool(held: Held, outcomes: list[Outcome]) -> SummaryPool:
    pool = SummaryPool(held, outcomes.append, SECONDS)
    pool.pauses_s = ()
    return pool


def test_a_request_is_made_once(pool: SummaryPool, held: Held, outcomes: list[Outcome]) -> None:
    """However often a page is asked for while that is under way, there is one call and one outcome."""
    for _ in range(5):
        pool.ask(request(1))
    held.released.set()
    assert pool.finish(SECONDS)
    assert 1 == held.calls
    assert [("room of 24", "Held", "")] == [
        (each.summary.title if each.summary else "", each.by, each.problem) for each in outcomes
    ]


def test_threads_and_requests_are_bounded(pool: SummaryPool, held: Held, outcomes: list[Outcome]) -> None:
    """Of many requests some are under way, some wait, and the rest is asked again by who needs it."""
    for number in range(2 * pool.most_waiting):
        pool.ask(request(number))
    assert pool.most_threads == len(pool._threads)
    assert pool.most_waiting == len(pool._waiting)
    held.released.set()
    assert pool.finish(SECONDS)
    assert pool.most_waiting <= len(outcomes) <= pool.most_waiting + pool.most_threads
    assert set() == pool._threads


def test_a_call_that_never_returns_is_left(held: Held, outcomes: list[Outcome]) -> None:
    """It is told as a failure after its time; where many are left, no other is made until one comes back."""
    pool = SummaryPool(held, outcomes.append, 0.01)
    pool.pauses_s, pool.most_threads = (), 1
    for number in range(pool.most_left + 3):
        pool.ask(request(number))
    assert pool.finish(SECONDS)
    assert pool.most_left == held.calls
    problems = [each.problem for each in outcomes]
    assert all("did not answer within 0.01 s" in each for each in problems[: pool.most_left])
    assert all("have not returned" in each for each in problems[pool.most_left :])
    held.released.set()
    for thread in pool._left:
        thread.join(SECONDS)
    pool.ask(request(99))
    assert pool.finish(SECONDS)
    assert pool.most_left + 1 == held.calls


def test_closing_waits_a_while_for_what_is_under_way(held: Held, outcomes: list[Outcome]) -> None:
    """What has not begun is dropped, what does not end in time is left, and nothing more is asked."""
    pool = SummaryPool(held, outcomes.append, SECONDS)
    pool.patience_s, pool.most_threads = 0.01, 1
    pool.ask(request(1))
    assert held.reached.wait(SECONDS)
    pool.ask(request(2))
    pool.close()
    pool.ask(request(3))
    pool.close()
    assert [] == outcomes
    held.released.set()
    assert pool.finish(SECONDS)
    assert ["usr-1"] == [each.request.page for each in outcomes]


def test_a_fork_leaves_what_is_under_way_to_the_parent(pool: SummaryPool, held: Held, outcomes: list[Outcome]) -> None:
    """The child begins with nothing asked and may ask itself; the parent gets what it asked for."""
    pool.ask(request(1))
    child = os.fork()
    if child == 0:
        held.released.set()
        pool.ask(request(2))
        ended = pool.finish(SECONDS)
        os._exit(0 if ended and ["usr-2"] == [each.request.page for each in outcomes] else 1)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    held.released.set()
    assert pool.finish(SECONDS)
    assert ["usr-1"] == [each.request.page for each in outcomes]


def test_what_an_exception_says_is_bounded(outcomes: list[Outcome]) -> None:
    """However long it is, and where it says nothing at all."""

    class Mute(Exception):  # noqa: N818 (a name is all that it has)
        def __str__(self) -> str:
            raise self

    errors = iter([ValueError("k" * 5_000_000), Mute()])

    class Fails:
        def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            assert max_tokens
            raise next(errors)

    pool = SummaryPool(Fails(), outcomes.append, SECONDS)
    pool.pauses_s, pool.most_threads = (), 1
    pool.ask(request(1))
    pool.ask(request(2))
    assert pool.finish(SECONDS)
    assert len(outcomes[0].problem) < 400
    assert "Mute" == outcomes[1].problem
