"""Threads that ask a summariser of pages, ahead of the folds that publish what it writes. Nobody waits for them."""

import threading
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias
from weakref import WeakSet

import attrs

from memci.archive.summarizers.summary import Summarizer, Summary, name_of
from memci.engine.core.monitor import logger
from memci.errors import SummaryError, shortened
from memci.messages.message import Message

MOST_SAID = 300  # characters of what an exception says
LEASE_MARGIN_S = 60.0  # for which a page is claimed beyond the time that its summary may take

_Key: TypeAlias = tuple[str, str]  # a session, and its page; empty for what is of no one page

summary_pools: "WeakSet[SummaryPool]" = WeakSet()
"""All there are, to be told of a fork of the process."""


@attrs.frozen(kw_only=True)
class Request:
    """A page to be summarised."""

    session_id: str
    page: str
    revision: int
    sha256: str  # of its messages, see ``summarizing.content_sha256``
    tokens: int  # of the page
    max_tokens: int  # of the summary
    messages: tuple[Message, ...] = attrs.field(eq=False, repr=False)


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a request: a summary, or why there is none."""

    request: Request
    by: str
    summary: Summary | None = None
    problem: str = ""


class SummaryPool:
    """At most *most_threads* threads, begun when there is work and ended with it. Safe to use from many threads.

    *done* is told of each outcome, once; *ask_of* asks of the pages of a session by its id. A call that raises is tried again
    after pauses; one that takes more than *timeout_s* is left to itself, and so is what it answers later. Where many such calls
    are under way still, no other is made.
    """

    most_threads = 4
    most_waiting = 256  # requests; others are asked again later
    most_left = 8  # calls that nobody waits for any more
    pauses_s: Sequence[float] = (1.0, 5.0)  # after a failure; then the page is given up
    patience_s = 5.0  # for what is under way when the engine is closed

    def __init__(
        self,
        summarizer: Summarizer,
        done: Callable[[Outcome], None],
        timeout_s: float,
        ask_of: Callable[[str], None] = lambda _session_id: None,
    ) -> None:
        self.name = name_of(summarizer)
        self._summarizer, self._done, self._timeout_s, self._ask_of = summarizer, done, timeout_s, ask_of
        self.lease_s = (1 + len(self.pauses_s)) * timeout_s + sum(self.pauses_s) + LEASE_MARGIN_S
        self._begin_empty()
        summary_pools.add(self)

    def _begin_empty(self) -> None:
        self.id = uuid.uuid4().hex  # tells it from all others in claims
        self._changed = threading.Condition()  # protects what follows, for moments
        self._waiting: deque[tuple[_Key, Callable[[], None]]] = deque()
        self._taken: set[_Key] = set()  # the keys of these, and of what is under way
        self._threads: set[threading.Thread] = set()
        self._left: list[threading.Thread] = []
        self._closing = threading.Event()
        self._at_rest, self._is_at_rest = threading.Lock(), False  # held while an outcome is told, and during a fork

    def takes(self, session_id: str, page: str) -> bool:
        """Return whether a page can be asked for: not while it is under way, or too much is."""
        with self._changed:
            return self._has_room() and (session_id, page) not in self._taken

    def ask(self, request: Request) -> None:
        """Have a page summarised, where it ``takes`` that. Returns at once."""
        self._add((request.session_id, request.page), partial(self._summarize, request))

    def look_at(self, session_id: str) -> None:
        """Have a session that is closed looked at, for pages to ask of. Returns at once."""
        self._add((session_id, ""), partial(self._look, session_id))

    def finish(self, timeout_s: float | None, session_id: str | None = None) -> bool:
        """Wait until nothing is left to do, or nothing of a session, for so long at most; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not any(session_id in (None, taken) for taken, _ in self._taken), timeout_s)

    def close(self) -> list[_Key]:
        """Begin nothing more, wait a while for what is under way, and return session and page of what was not begun.

        May be called twice.
        """
        with self._changed:
            self._closing.set()
            left = [key for key, _ in self._waiting]
            self._taken.difference_update(left)
            self._waiting.clear()
        self.finish(self.patience_s)
        return left

    def _has_room(self) -> bool:
        return not self._closing.is_set() and len(self._waiting) < self.most_waiting

    def _add(self, key: _Key, work: Callable[[], None]) -> None:
        with self._changed:
            if not self._has_room() or key in self._taken:
                return
            self._taken.add(key)
            self._waiting.append((key, work))
            if len(self._threads) < self.most_threads:
                thread = threading.Thread(target=self._run, name="memci-summaries", daemon=True)
                self._threads.add(thread)
                thread.start()

    def rest(self) -> None:
        """Tell no outcome until ``go_on``: the process forks. One that is told just now is waited for, for a while."""
        self._is_at_rest = self._at_rest.acquire(timeout=self.patience_s)

    def go_on(self, *, in_child: bool) -> None:
        """Tell outcomes again. A forked child begins with nothing asked: its parent gets what is under way."""
        if in_child:
            self._begin_empty()
        elif self._is_at_rest:
            self._at_rest.release()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._threads.discard(threading.current_thread())
                    return
                key, work = self._waiting.popleft()
            try:
                work()
            except Exception:  # noqa: BLE001 (nobody waits for it: pages keep their extracts)
                logger().exception("session %r: a summary was not asked for, or not noted", key[0])
            finally:
                with self._changed:
                    self._taken.discard(key)
                    self._changed.notify_all()

    def _look(self, session_id: str) -> None:
        with self._at_rest:
            self._ask_of(session_id)

    def _summarize(self, request: Request) -> None:
        if (outcome := self._outcome(request)) is not None:
            with self._at_rest:
                self._done(outcome)

    def _outcome(self, request: Request) -> Outcome | None:
        """Return what came of a request; ``None`` where it failed as the engine was closed: it is asked again another time."""
        problem = ""
        for pause in (*self.pauses_s, None):
            try:
                return Outcome(request=request, by=self.name, summary=self._answer(request))
            except Exception as error:  # noqa: BLE001 (a summariser is anybody's code)
                problem = _told(error)
            if pause is not None and self._closing.wait(pause):
                return None
        return Outcome(request=request, by=self.name, problem=problem)

    def _answer(self, request: Request) -> Summary:
        """Return what the summariser answers, called in a thread of its own, which may never end."""
        from concurrent.futures import Future  # noqa: PLC0415 (for those who have a summariser)

        from memci.archive.summarizers.external.calling import summarize  # noqa: PLC0415 (compiles many patterns)

        self._left = [thread for thread in self._left if thread.is_alive()]
        if len(self._left) >= self.most_left:
            message = f"{len(self._left)} earlier calls of it have not returned"
            raise SummaryError(message)
        answer: Future[Summary] = Future()

        def call() -> None:
            try:
                said = summarize(self._summarizer, request.messages, request.max_tokens, self._timeout_s)
                answer.set_result(said)
            except Exception as error:  # noqa: BLE001 (raised again where it is waited for)
                answer.set_exception(error)
            except BaseException as error:  # noqa: BLE001 (of no concern to other threads)
                answer.set_exception(SummaryError(type(error).__name__))

        thread = threading.Thread(target=call, name="memci-summary", daemon=True)
        thread.start()
        try:
            return answer.result(self._timeout_s)
        except TimeoutError:
            if answer.done():  # it is the summariser's own
                raise
            self._left.append(thread)
            message = f"it did not answer within {self._timeout_s:g} s"
            raise SummaryError(message) from None


def _told(error: Exception) -> str:
    """Return what an exception says, in one line of bounded length."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 (its class is anybody's)
        text = ""
    said = f"{type(error).__name__}: {text[:MOST_SAID]}" if text else type(error).__name__
    return " ".join(shortened(said).split())
