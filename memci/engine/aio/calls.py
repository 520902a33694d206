"""Calls that run in threads, so that an event loop goes on meanwhile."""

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")


_MOST_THREADS = 1 << 16


class Threads:
    """Threads of its own: what waits for a slow store in them takes no thread from anybody else.

    At most so many calls are begun at once. One that takes longer than ``patience_s``, as it waits for a disk, a lock or a model,
    keeps its thread and counts no more, so that calls that hang never stop those behind them, however many they are.

    Attributes:
        patience_s: How long others wait for the thread of a call.
    """

    patience_s = 0.1

    def __init__(self, most: int) -> None:
        self._most = most
        self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="memci")  # it begins a thread only where none is free
        self._turn = threading.Condition()  # protects what follows, for moments
        self._under_way: set[Future[Any]] = set()
        self._waiting: deque[Callable[[], None]] = deque()
        self._begun: dict[object, float] = {}  # the work that counts, the oldest first, and when it began
        self._watched = False

    def start(self, work: Callable[[], None]) -> bool:
        """Let a thread do some work as soon as it is its turn; return whether there are threads still."""
        with self._turn:
            try:
                if len(self._begun) < self._most:
                    self._begin(work)
                else:
                    if not self._watched:
                        self._pool.submit(self._watch)
                        self._watched = True
                    self._waiting.append(work)
            except RuntimeError:  # the pool was shut down, or the interpreter ends
                return False
        return True

    def watch(self, future: Future[Any]) -> None:
        """Let ``finish`` wait for a call."""
        with self._turn:
            self._under_way.add(future)
        future.add_done_callback(self._done)

    def finish(self) -> None:
        """Return when all calls that are watched now are done. Blocks."""
        with self._turn:
            under_way = list(self._under_way)
        wait(under_way)

    def end(self) -> None:
        """End the threads once their work is done. Blocks."""
        self._pool.shutdown()

    def _done(self, future: Future[Any]) -> None:
        with self._turn:
            self._under_way.discard(future)

    def _begin(self, work: Callable[[], None]) -> None:
        """Begin some work in a thread; the lock is held."""
        ticket = object()
        self._pool.submit(self._run, work, ticket)
        self._begun[ticket] = time.monotonic()

    def _run(self, work: Callable[[], None], ticket: object) -> None:
        """Do some work, and then, in its place, what waits."""
        while True:
            work()
            with self._turn:
                counted = self._begun.pop(ticket, None) is not None
                if not self._waiting or not (counted or len(self._begun) < self._most):
                    return
                work = self._waiting.popleft()
                self._begun[ticket] = time.monotonic()

    def _watch(self) -> None:
        """While work waits, count that no more which takes too long."""
        with self._turn:
            while self._waiting and self._begun:
                ticket, since = next(iter(self._begun.items()))
                left = since + self.patience_s - time.monotonic()
                if left > 0:
                    self._turn.wait(left)
                    continue
                del self._begun[ticket]
                try:
                    self._begin(self._waiting[0])
                except RuntimeError:  # the interpreter ends: those that work do the rest
                    break
                self._waiting.popleft()
            self._watched = False


class CallQueue:
    """Runs calls one at a time, in the order in which they were given, in threads that many queues share. Thread-safe.

    A queue holds one thread at most, and gives it back after each call, so that no session is served before all others.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = threading.Lock()  # protects what follows, for moments
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._working = False

    def submit(self, call: Callable[[], _Answer], *, certain: bool = False) -> Future[_Answer]:
        """Put a call at the end, and return the future of its answer; it runs in the context of who calls this.

        Args:
            call: A call that may block.
            certain: It runs even if its future is cancelled before; otherwise it then does not begin.
        """
        future: Future[_Answer] = Future()
        if certain:
            future.set_running_or_notify_cancel()
        self._threads.watch(future)
        context = contextvars.copy_context()
        with self._lock:
            self._waiting.append((future, lambda: context.run(call)))
            if self._working:
                return future
            self._working = True
        if not self._threads.start(self._work):
            threading.Thread(target=self._work, name="memci-closed").start()  # what is closed answers at once
        return future

    async def run(self, call: Callable[[], _Answer], *, certain: bool = False) -> _Answer:
        """Put a call at the end, and return its answer or raise what it raises.

        Where this is cancelled, a call that did not begin does not begin, and one that runs is finished by its thread.
        """
        return await asyncio.wrap_future(self.submit(call, certain=certain))

    def _work(self) -> None:
        while True:
            with self._lock:
                future, call = self._waiting.popleft()
            if future.running() or future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 (whoever waits for the future gets it)
                    future.set_exception(error)
            with self._lock:
                if not self._waiting:
                    self._working = False
                    return
            if self._threads.start(self._work):
                return
