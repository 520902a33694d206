"""The threads that ask a summariser: what they do about one that hangs, fails for ever, or is left behind by a fork."""

import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import attrs
import pytest

from memci.archive.stores.names import SessionKey
from memci.archive.summarizers.external.extension import Part
from memci.archive.summarizers.summary import SentWindow, Summary
from memci.engine.core.summary_pool import Outcome, Request, SummaryPool
from memci.errors import ModelError
from memci.messages.message import Message

SECONDS = 60
CHAT = SessionKey("default", "chat")


def request(number: int) -> Request:
    return Request(session=CHAT, page=f"usr-{number}", revision=0, sha256=f"{number:064}", tokens=100, max_tokens=24, messages=())


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
    """What has not begun is dropped, what does not end in time is left and told of no more, and nothing more is asked."""
    pool = SummaryPool(held, outcomes.append, SECONDS)
    pool.patience_s, pool.most_threads = 0.01, 1
    pool.ask(request(1))
    assert held.reached.wait(SECONDS)
    pool.ask(request(2))
    threads = list(pool._threads)
    assert [(CHAT, "usr-1"), (CHAT, "usr-2")] == sorted(pool.close())
    assert not pool.ask(request(3))
    held.released.set()
    for thread in threads:
        thread.join(SECONDS)
    assert pool.finish(SECONDS)
    assert [] == pool.close()
    assert [] == outcomes


def test_what_cannot_be_noted_is_told_again_at_the_end(held: Held) -> None:
    """And where it cannot be then either, its page is among those that nothing came of."""
    told: list[str] = []

    def done(outcome: Outcome) -> None:
        told.append(outcome.request.page)
        if outcome.request.page == "usr-2" or len(told) < 3:
            raise ValueError

    held.released.set()
    pool = SummaryPool(held, done, SECONDS)
    for number in (1, 2):
        pool.ask(request(number))
        assert pool.finish(SECONDS)
    assert [(CHAT, "usr-2")] == pool.close()
    assert ["usr-1", "usr-2", "usr-1", "usr-2"] == told


def test_what_was_paid_for_is_asked_for_once(outcomes: list[Outcome]) -> None:
    """An answer that is no summary is the last word; a call that took too long is not repeated, but in another round."""
    begun = threading.Event()

    class Slow(Held):
        def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            self.calls += 1
            begun.wait(SECONDS)
            return str(max_tokens)

    class Wrong(Held):
        def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            self.calls += 1
            return Summary(title="a", lines=cast("Any", "b"), usage={"price": max_tokens})  # type: ignore[return-value]

    for summarizer, timeout_s in ((Slow(), 0.01), (Wrong(), SECONDS)):
        pool = SummaryPool(summarizer, outcomes.append, timeout_s)
        pool.pauses_s = (0.0, 0.0)
        pool.ask(request(1))
        assert pool.finish(SECONDS)
        assert 1 == summarizer.calls
    begun.set()
    assert [(2, {}), (0, {"price": 24})] == [(each.tries, each.usage) for each in outcomes]


def test_a_server_that_wants_a_pause_gets_it(outcomes: list[Outcome]) -> None:
    """A short one is made, a long one ends the round."""
    errors = [ModelError("busy", retry_after_s=0.0), ModelError("busy", status=429, retry_after_s=77.0)]

    class Busy:
        def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            assert max_tokens
            raise errors.pop(0)

    pool = SummaryPool(Busy(), outcomes.append, SECONDS)
    pool.pauses_s = (0.0, 0.0, 0.0)
    pool.ask(request(1))
    assert pool.finish(SECONDS)
    assert [(1, 77.0)] == [(each.tries, each.wait_s) for each in outcomes]


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


class HeldAfterWindows(Held):
    """One that also waits when it is asked of several pages after a window, and then says something of the first."""

    extends = True

    def summarize_parts(self, _window: SentWindow, parts: Sequence[Part]) -> str:
        self.reached.set()
        assert self.released.wait(SECONDS)
        return f"{parts[0].index}: after a window"


def shown(*numbers: int) -> list[Request]:
    """Return requests of pages that one window shows."""
    sent = SentWindow(
        seq=1, at=datetime.now(UTC), format="openai", tokens=1, raws=(b"{}",), system=b"null", tools=b"[]", pages={}
    )
    return [attrs.evolve(request(number), window=sent) for number in numbers]


def test_pages_are_asked_for_together_once(outcomes: list[Outcome]) -> None:
    """None of them is taken again meanwhile, nor while it is asked for on its own as the answer says nothing of it."""
    held = HeldAfterWindows()
    pool = SummaryPool(held, outcomes.append, SECONDS)
    pool.ask_together(shown(1, 2, 3))
    assert held.reached.wait(SECONDS)
    pool.ask(request(2))
    pool.ask_together(shown(3, 4))
    assert [False, False, True] == [pool.takes(CHAT, f"usr-{number}") for number in (1, 3, 4)]
    held.released.set()
    assert pool.finish(SECONDS)
    assert ["usr-1", "usr-2", "usr-3"] == sorted(each.request.page for each in outcomes)
    assert ["after a window", "room of 24"] == sorted({each.summary.title for each in outcomes if each.summary})
    assert 2 == held.calls
    assert pool.takes(CHAT, "usr-1")


def test_closing_tells_the_pages_of_all_that_was_not_answered(outcomes: list[Outcome]) -> None:
    """Others may ask of each of them then; what comes later is not told any more."""
    held = HeldAfterWindows()
    pool = SummaryPool(held, outcomes.append, SECONDS)
    pool.patience_s, pool.most_threads = 0.01, 1
    pool.ask_together(shown(1, 2))
    assert held.reached.wait(SECONDS)
    pool.ask_together(shown(3, 4))
    assert [(CHAT, f"usr-{number}") for number in (1, 2, 3, 4)] == sorted(pool.close())
    held.released.set()
    pool.finish(SECONDS)
    assert ([], 0) == ([each.request.page for each in outcomes], held.calls)


def test_a_request_after_a_window_that_never_returns_is_left(outcomes: list[Outcome]) -> None:
    """After its time each page is asked for on its own, and the outcome says why."""
    held = HeldAfterWindows()
    pool = SummaryPool(held, outcomes.append, 0.01)
    pool.pauses_s = ()
    pool.ask_together(shown(1, 2))
    assert pool.finish(SECONDS)
    assert ["usr-1", "usr-2"] == sorted(each.request.page for each in outcomes)
    assert all("did not answer within 0.01 s" in each.request.asked for each in outcomes)
    held.released.set()


def test_what_was_paid_is_shared_out(outcomes: list[Outcome]) -> None:
    """In parts that add up, whole numbers in whole ones; of a page that is asked for again, its part goes with it."""

    class Counted(HeldAfterWindows):
        def summarize_parts(self, _window: SentWindow, parts: Sequence[Part]) -> Summary:  # type: ignore[override]
            return Summary(title=f"{parts[0].index}: said", usage={"prompt_tokens": 100, "price": 0.3})

    held = Counted()
    held.released.set()
    pool = SummaryPool(held, outcomes.append, SECONDS)
    pool.ask_together(shown(1, 2, 3))
    assert pool.finish(SECONDS)
    paid = [each.request.paid for each in sorted(outcomes, key=lambda each: each.request.page)]
    assert [34, 33, 33] == [each["prompt_tokens"] for each in paid]
    assert pytest.approx(0.3) == sum(each["price"] for each in paid)
