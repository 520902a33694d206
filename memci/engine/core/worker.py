"""The engine's own thread: between the commands of a session it makes what later ones would have to wait for."""

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush, heapreplace
from itertools import count
from weakref import WeakSet

from memci.engine.core.core import Core
from memci.engine.core.monitor import logger
from memci.engine.core.summary_pool import SummaryPool, summary_pools
from memci.errors import StoreError


class Worker:
    """One thread, begun when there is work and ended when there was none for a while. Safe to use from many threads.

    *next_step* is called with a session's lock, does what needs that, and returns what is to be done without it before it is
    called again; ``None`` where nothing is left. No command waits for a session's work: what is not done in time, it does.
    """

    grace_s = 0.02  # for which a session had no command, before it is worked on
    idle_s = 10.0  # without work, after which the thread ends
    patience_s = 5.0  # in which a step has to end that others wait for; a summariser that takes longer is left to itself

    def __init__(self, next_step: Callable[[Core], Callable[[], object] | None]) -> None:
        self._next_step = next_step
        # Protects what follows, for moments. A signal handler may raise after any call, and only a lock of C is then given back.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: list[tuple[float, int, Core]] = []  # a heap by when each is due at the earliest
        self._offered: set[Core] = set()  # the same sessions
        self._numbers = count()
        self._thread: threading.Thread | None = None  # the one that goes on; one that was left to itself is not
        self._works = self._rests = self._closed = False
        with _forking:
            _workers.add(self)

    def offer(self, core: Core) -> None:
        """Work on a session as soon as no command needs it. O(log sessions)."""
        with self._lock:
            if self._closed:
                return
            if core not in self._offered:
                self._offered.add(core)
                heappush(self._waiting, (core.used_at + self.grace_s, next(self._numbers), core))
                if len(self._waiting) == 1:  # else the thread wakes by itself
                    self._changed.notify_all()
            if self._thread is None and not self._rests:
                self._begin()

    def close(self) -> None:
        """End the thread for good; what waits is left undone. May be called twice."""
        with self._lock:
            self._closed = True
            self._clear()
        self._end()

    def rest(self) -> None:
        """End the thread, and keep all others out of here until ``go_on``: the process forks."""
        with self._lock:
            self._rests = True
        self._end()
        self._lock.acquire()

    def go_on(self, *, in_child: bool) -> None:
        """Let others in again. A forked child begins with nothing to do: what its parent left is the parent's to do."""
        self._rests = False
        if in_child:
            self._clear()
        elif self._waiting:
            self._begin()
        self._lock.release()

    def _clear(self) -> None:
        self._waiting.clear()
        self._offered.clear()

    def _begin(self) -> None:
        thread = threading.Thread(target=self._run, name="memci-worker", daemon=True)
        with suppress(RuntimeError):  # the interpreter ends
            thread.start()
            self._thread = thread  # it waits for the lock that is held here

    def _end(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(self.patience_s)
        with self._lock:
            self._works = False

    def _run(self) -> None:
        try:
            while (core := self._next()) is not None:
                more = self._tried(core)
                with self._lock:
                    if self._thread is threading.current_thread():
                        self._works = False
                        if more:
                            self.offer(core)
                        self._changed.notify_all()
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread, self._works = None, False
                    self._changed.notify_all()

    def _tried(self, core: Core) -> bool:
        """Do a step for a session, and return whether there may be another. Nobody waits for it who could hear of an error.

        The command that needs what is missing makes it, and raises.
        """
        try:
            return self._step(core)
        except StoreError as error:
            logger(core.key).info("session %r: nothing more is done ahead of its next turn: %s", core.session_id, error)
        except Exception:  # noqa: BLE001 (as above)
            if threading.main_thread().is_alive():  # else the interpreter ends, and modules cannot be loaded any more
                logger(core.key).exception("session %r: nothing more is done ahead of its next turn", core.session_id)
        return False

    def _step(self, core: Core) -> bool:
        if not core.lock.acquire(blocking=False):
            core.used_at = time.monotonic()
            return True
        try:
            rest = self._next_step(core)
        finally:
            core.lock.release()
        if rest is not None:
            rest()
        return rest is not None

    def _next(self) -> Core | None:
        """Wait for a session that is due, and return it; ``None`` where this thread is to end."""
        with self._lock:
            while self._thread is threading.current_thread():
                if not self._waiting:
                    if not self._changed.wait(self.idle_s) and not self._waiting:
                        self._thread = None  # who offers work from here on begins another one
                    continue
                due, _, core = self._waiting[0]
                now = time.monotonic()
                if due <= now:
                    later = core.used_at + self.grace_s
                    if later <= now:
                        heappop(self._waiting)
                        self._offered.discard(core)
                        self._works = True
                        return core
                    heapreplace(self._waiting, (later, next(self._numbers), core))
                else:
                    self._changed.wait(due - now)
        return None


_workers: WeakSet[Worker] = WeakSet()
_resting: list[Worker | SummaryPool] = []
_forking = threading.Lock()  # held during a fork; protects the list


def _before_fork() -> None:
    _forking.acquire()
    for pool in list(summary_pools):  # before the workers, which what they tell of is offered to
        pool.rest()
        _resting.append(pool)
    for worker in list(_workers):
        worker.rest()
        _resting.append(worker)


def _after_fork(*, in_child: bool) -> None:
    while _resting:
        _resting.pop().go_on(in_child=in_child)
    _forking.release()


def _at_exit() -> None:
    """End the threads while the interpreter still runs: one that comes back from other code later cannot."""
    for worker in list(_workers):
        worker.close()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=partial(_after_fork, in_child=False),
    after_in_child=partial(_after_fork, in_child=True),
)
atexit.register(_at_exit)
