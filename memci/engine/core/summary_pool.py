"""Threads that ask a summariser of pages, ahead of the folds that publish what it writes. Nobody waits for them."""

import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

import attrs

from memci.archive.stores.names import SessionKey
from memci.archive.summarizers.summary import Continuer, GivenPage, SentWindow, Summarizer, Summary, name_of
from memci.engine.core.monitor import logger
from memci.engine.core.summary_cache import SummaryCache
from memci.engine.history.events import Event, PageErased, SummaryPrepared
from memci.errors import MemciError, ModelTimeoutError, SummaryError, SummaryTimeoutError, shortened
from memci.messages.message import Message

MOST_SAID = 300  # characters of what an exception says
_MOST_WAIT_S = 86_400.0  # that a server may ask for
LEASE_MARGIN_S = 60.0  # for which a page is claimed beyond the time that its summary may take

WINDOW = "window"  # how a page was asked for that a window showed

_Key: TypeAlias = tuple[SessionKey, str]  # a session, and its page; empty for what is of no one page
_Content: TypeAlias = tuple[str, str, int]  # whose it is, and what a summariser is given: the SHA-256 of messages, and the room
_Said = TypeVar("_Said")

summary_pools: "WeakSet[SummaryPool]" = WeakSet()
"""All there are, to be told of a fork of the process."""


@attrs.frozen(kw_only=True)
class Request:
    """A page to be summarised, or the pages of a continuation, which is of the root."""

    session: SessionKey
    page: str
    revision: int
    sha256: str  # of its messages, see ``continuing.content_sha256``, or of all that a continuation is made of
    tokens: int  # of the page
    max_tokens: int  # of the summary
    messages: tuple[Message, ...] = attrs.field(eq=False, repr=False)
    window: SentWindow | None = attrs.field(default=None, eq=False, repr=False)  # that shows it whole
    asked: str = ""  # where it is wanted after such a window: ``window``, or why it is asked for on its own
    paid: Mapping[str, float] = attrs.field(factory=dict)  # its part of the usage of a request that brought nothing of it
    given: tuple[GivenPage, ...] = attrs.field(default=(), eq=False, repr=False)
    previous: str = attrs.field(default="", eq=False, repr=False)  # the continuation before, its lines
    pages: tuple[str, ...] = ()  # that the continuation stands on then, neighbours as ranges
    made: int = 0  # how many were made since one that was made from pages alone
    tries: int = 0  # rounds of calls that failed before

    @property
    def key(self) -> _Key:
        """What tells it from all others that are under way."""
        return self.session, self.page

    @property
    def content(self) -> _Content:
        """What it shares with those for which the same is to be written."""
        return self.session.tenant, self.sha256, self.max_tokens


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a request: a summary, or why there is none."""

    request: Request
    by: str
    summary: Summary | None = None
    problem: str = ""
    usage: Mapping[str, float] = attrs.field(factory=dict)  # of an answer that is no summary
    tries: int = 0  # where calls failed: rounds, with those of the request; a call that took too long counts twice
    wait_s: float = 0.0  # as the summariser's server wants it


class SummaryPool:
    """At most *most_threads* threads, begun when there is work and ended with it. Safe to use from many threads.

    *done* is told of each outcome, once, and again at the end where it raised; *ask_of* asks of the pages of a session.
    A call that raises is tried again after pauses; one that takes more than *timeout_s* is left to itself, and so is what it
    answers later. Where many such calls are under way still, no other is made. Nor is one for a
    content of which it wrote lately, or is writing.
    """

    most_threads = 4
    most_waiting = 256  # requests; others are asked again later
    most_left = 8  # calls that nobody waits for any more
    pauses_s: Sequence[float] = (1.0, 5.0)  # after a failure; then the round is over
    patience_s = 5.0  # for what is under way when the engine is closed
    telling_s = 5.0  # for an outcome that is told just then

    def __init__(
        self,
        summarizer: Summarizer,
        done: Callable[[Outcome], None],
        timeout_s: float,
        ask_of: Callable[[SessionKey], None] = lambda _session: None,
    ) -> None:
        self.name = name_of(summarizer)
        self.extends: bool = getattr(summarizer, "extends", False)
        self.continues = isinstance(summarizer, Continuer)
        self._summarizer: Any = summarizer
        self._done, self._timeout_s, self._ask_of = done, timeout_s, ask_of
        self.lease_s = (1 + self.extends + len(self.pauses_s)) * timeout_s + sum(self.pauses_s) + LEASE_MARGIN_S
        self._begin_empty()
        summary_pools.add(self)

    def _begin_empty(self) -> None:
        self.id = uuid.uuid4().hex  # tells it from all others in claims
        self._changed = threading.Condition()  # protects what follows, for moments
        self._waiting: deque[tuple[set[_Key], Callable[[], None]]] = deque()
        self._taken: set[_Key] = set()  # the keys of these, and of what is under way
        self._asked: dict[_Content, list[Request]] = {}  # the request that waits or is under way, and those that wait for that
        self._written = SummaryCache()
        self._threads: set[threading.Thread] = set()
        self._left: list[threading.Thread] = []
        self._unnoted: list[Outcome] = []  # as *done* raised
        self._given_up: set[_Key] = set()  # as the engine was closed
        self._closing, self._ended = threading.Event(), False
        self._at_rest, self._is_at_rest = threading.Lock(), False  # held while an outcome is told, and during a fork

    def takes(self, session: SessionKey, page: str) -> bool:
        """Return whether a page can be asked for: not while it is under way, or too much is."""
        with self._changed:
            return self._has_room() and (session, page) not in self._taken

    def ask(self, request: Request) -> bool:
        """Have a page summarised, and return at once whether it ``takes`` that."""
        with self._changed:
            if not self._has_room() or request.key in self._taken:
                return False
            if request.content in self._asked:
                self._taken.add(request.key)
                self._asked[request.content].append(request)
                return True
            self._asked[request.content] = [request]
            return self._add({request.key}, partial(self._summarize, request))

    def ask_together(self, requests: Sequence[Request]) -> bool:
        """Have pages of a session summarised that a window shows, by one request after it; each it brings nothing of, on its own.

        Returns at once whether it takes them.
        """
        new = [request for request in requests if self._written.find(*request.content) is None]
        keys = {request.key for request in new}
        known = [self.ask(request) for request in requests if request not in new]
        return all(known) and (not new or self._add(keys, partial(self._summarize_together, new, keys)))

    def learn(self, session: SessionKey, event: Event) -> None:
        """Take in what an event of a session tells of summaries: what was written of a page, or that a page was erased. O(it)."""
        if isinstance(event, PageErased):
            self._written.forget(session, event.page)
        elif isinstance(event, SummaryPrepared) and event.by == self.name:
            self._written.put(session, event)

    def look_at(self, session: SessionKey) -> None:
        """Have a session that is closed looked at, for pages to ask of. Returns at once."""
        self._add({(session, "")}, partial(self._look, session))

    def finish(self, timeout_s: float | None, session: SessionKey | None = None) -> bool:
        """Wait until nothing is left to do, or nothing of a session, for so long at most; return whether that is so.

        Nobody waits any longer once it is closed.
        """

        def is_done() -> bool:
            return not any(session in (None, taken) for taken, _ in self._taken)

        with self._changed:
            self._changed.wait_for(lambda: self._ended or is_done(), timeout_s)
            return is_done()

    def close(self) -> list[_Key]:
        """Begin nothing more, wait a while for what is under way, and return session and page of what nothing came of.

        What is still under way then is cancelled, where the summariser can, and what it answers is not told. May be called twice.
        """
        with self._changed:
            self._closing.set()
            gone = {key for keys, _ in self._waiting for key in keys}
            gone.update(each.key for first, *others in self._asked.values() if first.key in gone for each in others)
            self._given_up |= gone
            self._taken -= gone
            self._waiting.clear()
        self.finish(self.patience_s)
        is_told = self._at_rest.acquire(timeout=self.telling_s)
        with self._changed:
            self._ended = True
            left, unnoted = list(self._given_up | self._taken), self._unnoted
            self._given_up, self._unnoted = set(), []
            self._changed.notify_all()
        if is_told:
            self._at_rest.release()
        if callable(cancel := getattr(self._summarizer, "cancel", None)):
            cancel()
        for outcome in unnoted:
            try:
                self._done(outcome)
            except Exception:  # noqa: BLE001 (it was logged)
                left.append(outcome.request.key)
        return left

    def _has_room(self) -> bool:
        return not self._closing.is_set() and len(self._waiting) < self.most_waiting

    def _add(self, keys: set[_Key], work: Callable[[], None]) -> bool:
        with self._changed:
            if not self._has_room() or not keys.isdisjoint(self._taken):
                return False
            self._taken.update(keys)
            self._waiting.append((keys, work))
            if len(self._threads) < self.most_threads:
                thread = threading.Thread(target=self._run, name="memci-summaries", daemon=True)
                self._threads.add(thread)
                thread.start()
            return True

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
                keys, work = self._waiting.popleft()
                session = min(keys)[0]
            try:
                work()
            except Exception as error:  # noqa: BLE001 (nobody waits for it: pages keep their extracts)
                _log(session, error)
            finally:
                with self._changed:
                    self._taken.difference_update(keys)
                    self._changed.notify_all()

    def _look(self, session: SessionKey) -> None:
        with self._at_rest:
            if not self._closing.is_set():
                self._ask_of(session)

    def _summarize(self, request: Request) -> None:
        known = self._written.find(*request.content)
        outcome = self._outcome(request) if known is None else Outcome(request=request, by=self.name, summary=known)
        self._tell(request, outcome)
        if outcome is not None and outcome.summary is not None:
            outcome = attrs.evolve(outcome, summary=attrs.evolve(outcome.summary, usage={}))
        while others := self._others(request.content):
            for each in others:
                self._tell(each, outcome)
                with self._changed:
                    self._taken.discard(each.key)
                    self._changed.notify_all()

    def _tell(self, request: Request, outcome: Outcome | None) -> None:
        """Tell what came of a request; without anything it is given up, as it failed while the engine was closed."""
        if outcome is None:
            with self._changed:
                self._given_up.add(request.key)
            return
        told = attrs.evolve(outcome, request=request)
        with self._at_rest:
            if self._ended:
                return
            try:
                self._done(told)
            except Exception as error:  # noqa: BLE001 (nobody waits for it: it is told again at the end)
                self._unnoted.append(told)
                _log(request.session, error)

    def _others(self, content: _Content) -> list[Request]:
        """Return those that wait for what was written of a content; where there are none, a request for it is made anew."""
        with self._changed:
            first, *others = self._asked[content]
            if others:
                self._asked[content] = [first]
            else:
                del self._asked[content]
            return others

    def _summarize_together(self, requests: Sequence[Request], keys: set[_Key]) -> None:
        from memci.archive.summarizers.external.calling import summarize_parts  # noqa: PLC0415 (compiles many patterns)
        from memci.archive.summarizers.external.extension import Part  # noqa: PLC0415 (as above)

        window = requests[0].window
        assert window is not None
        parts = [Part(index=each.page, messages=each.messages, max_tokens=each.max_tokens) for each in requests]
        found: Mapping[str, Summary] = {}
        usage: Mapping[str, float] = {}
        problem = "the answer after the window says nothing of it"
        try:
            found, usage = self._answer(lambda: summarize_parts(self._summarizer, window, parts, self._timeout_s))
        except Exception as error:  # noqa: BLE001 (a summariser is anybody's code)
            # What others say may hold words of any page of the window, each of which may be erased.
            problem = f"after the window: {_told(error) if isinstance(error, SummaryError) else type(error).__name__}"
            usage = getattr(error, "usage", None) or {}
        missing = []
        for request, paid in zip(requests, _shared(usage, len(requests)), strict=True):
            if (summary := found.get(request.page)) is None:
                missing.append(attrs.evolve(request, asked=problem, paid=paid))
                continue
            asked = attrs.evolve(request, asked=WINDOW, paid=paid)
            self._tell(asked, Outcome(request=asked, by=self.name, summary=summary))
        with self._changed:
            left = {request.key for request in missing}
            keys -= left
            self._taken -= left
            self._given_up.update(request.key for request in missing if not self.ask(request))

    def _outcome(self, request: Request) -> Outcome | None:
        """Return what came of a request; ``None`` where it failed as the engine was closed: it is asked again another time."""
        from memci.archive.summarizers.external.calling import continuation, summarize  # noqa: PLC0415 (compiles many patterns)

        bounds = request.max_tokens, self._timeout_s

        def ask() -> Summary:
            if request.given:
                return continuation(self._summarizer, request.previous, request.given, *bounds)
            return summarize(self._summarizer, request.messages, *bounds)

        made = partial(Outcome, request=request, by=self.name)
        for pause in (*self.pauses_s, None):
            try:
                return made(summary=self._answer(ask))
            except Exception as error:  # noqa: BLE001 (a summariser is anybody's code)
                is_late, wait_s = isinstance(error, SummaryTimeoutError | ModelTimeoutError), _wait_s(error)
                if isinstance(error, SummaryError) and error.usage is not None:
                    return made(problem=_told(error), usage=error.usage)
                failed = made(problem=_told(error), tries=request.tries + 1 + is_late, wait_s=wait_s)
            if self._closing.is_set():
                return None
            if pause is None or is_late or wait_s > max(self.pauses_s):
                return failed
            if self._closing.wait(max(pause, wait_s)):
                return None
        raise AssertionError

    def _answer(self, ask: Callable[[], _Said]) -> _Said:
        """Return what the summariser answers, called in a thread of its own, which may never end."""
        from concurrent.futures import Future  # noqa: PLC0415 (for those who have a summariser)

        self._left = [thread for thread in self._left if thread.is_alive()]
        if len(self._left) >= self.most_left:
            message = f"{len(self._left)} earlier calls of it have not returned"
            raise SummaryError(message)
        answer: Future[_Said] = Future()

        def call() -> None:
            try:
                answer.set_result(ask())
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
            raise SummaryTimeoutError(message) from None


def _log(session: SessionKey, error: Exception) -> None:
    """Say what went wrong, where nobody waits for it: with a traceback, unless it is one of memci's own errors."""
    text = "session %r: a summary was not asked for, or not noted: %s"
    if isinstance(error, MemciError):
        logger(session).warning(text, session.session_id, error)
    else:
        logger(session).error(text, session.session_id, error, exc_info=error)


def _shared(usage: Mapping[str, float], parts: int) -> list[dict[str, float]]:
    """Return a usage in so many parts that add up to it, whole numbers in whole ones."""
    even = {name: number // parts if isinstance(number, int) else number / parts for name, number in usage.items()}
    rest = {name: number - parts * even[name] if isinstance(number, int) else 0 for name, number in usage.items()}
    return [{name: even[name] + (0 if place else rest[name]) for name in usage} for place in range(parts)]


def _wait_s(error: Exception) -> float:
    """Return for how long the server of a summariser wants not to be asked, as far as an error knows."""
    wait_s = getattr(error, "retry_after_s", None)
    return wait_s if isinstance(wait_s, int | float) and 0 <= wait_s <= _MOST_WAIT_S else 0.0


def _told(error: Exception) -> str:
    """Return what an exception says, in one line of bounded length."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 (its class is anybody's)
        text = ""
    said = f"{type(error).__name__}: {text[:MOST_SAID]}" if text else type(error).__name__
    return " ".join(shortened(said).split())
