"""Threads in which calls run that are awaited, and queues that keep the calls of one session in their order."""

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")

_MOST_THREADS = 1 << 16


class Threads:
    """Threads of its own, in which at most *most* calls run at once.

    One that takes longer than ``patience_s``, as it waits for a disk, a lock or a model, keeps its thread and counts no more, so
    that calls that hang never stop others, however many they are.
    """

    patience_s = 0.1

    def __init__(self, most: int) -> None:
        self._most = most
        self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="memci")  # it begins a thread only where none is free
        self._turn = threading.Condition()  # protects what follows, for moments
        self._waiting: deque[Callable[[], None]] = deque()
        self._begun: dict[object, float] = {}  # the work that counts, the oldest first, and when it began
        self._watched = self._closed = False

    def start(self, work: Callable[[], None]) -> bool:
        """Let a thread do some work as soon as it is its turn; return whether there are threads still."""
        with self._turn:
            if self._closed:
                return False
            self._waiting.append(work)
            try:
                if len(self._begun) < self._most:
                    self._begin()
                elif not self._watched:
                    self._pool.submit(self._watch)
                    self._watched = True
            except RuntimeError:  # the interpreter ends
                self._waiting.remove(work)
                return False
        return True

    def close(self, last: Callable[[], None]) -> Future[None]:
        """Once all calls are done, end the threads, and do a last thing."""

        def close() -> None:
            with self._turn:
                self._closed = True
                while self._waiting:
                    self._begin()
                self._turn.notify_all()  # the watch is over
            self._pool.shutdown()
            last()

        return ThreadPoolExecutor(1, thread_name_prefix="memci-close").submit(close)

    def _begin(self) -> None:
        """Begin the work that waits longest; the lock is held."""
        ticket = object()
        self._pool.submit(self._run, self._waiting[0], ticket)
        self._waiting.popleft()
        self._begun[ticket] = time.monotonic()

    def _run(self, work: Callable[[], None], ticket: object) -> None:
        work()
        with self._turn:
            self._begun.pop(ticket, None)
            if self._waiting and len(self._begun) < self._most:
                self._begin()

    def _watch(self) -> None:
        """While work waits, count that no more which takes too long."""
        with self._turn:
            while self._waiting:
                ticket, since = next(iter(self._begun.items()))
                left = since + self.patience_s - time.monotonic()
                if left > 0:
                    self._turn.wait(left)
                else:
                    del self._begun[ticket]
                    self._begin()
            self._watched = False


class CallQueue:
    """Runs calls one at a time, in the order in which they were given, in threads that many queues share. Thread-safe.

    A queue holds one thread at most, and gives it back after each call, so that no session is served before all others.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = threading.Lock()  # protects what follows, for moments
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()  # the first one runs, or has a thread ordered

    def submit(self, call: Callable[[], _Answer]) -> Future[_Answer]:
        """Put a call at the end, and return the future of its answer; it runs in the context of who calls this."""
        future: Future[_Answer] = Future()
        context = contextvars.copy_context()
        with self._lock:
            self._calls.append((future, lambda: context.run(call)))
            is_first = len(self._calls) == 1
        if is_first and not self._threads.start(self._work):
            threading.Thread(target=self._work, name="memci-closed").start()  # what is closed answers at once
        return future

    async def run(self, call: Callable[[], _Answer]) -> _Answer:
        """Put a call at the end, and return its answer. Where this is cancelled, a call that runs completes, no other begins."""
        return await asyncio.wrap_future(self.submit(call))

    def _work(self) -> None:
        while True:
            future, call = self._calls[0]
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 (whoever waits for the future gets it)
                    future.set_exception(error)
            with self._lock:
                self._calls.popleft()
                if not self._calls:
                    return
            if self._threads.start(self._work):
                return
