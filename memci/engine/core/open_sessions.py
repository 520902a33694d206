"""Which sessions of an engine are open, and which states of closed ones are kept."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import attrs

from memci.engine.core.core import Core
from memci.engine.core.kept_states import KeptState, KeptStates
from memci.errors import UnavailableError


@attrs.define(eq=False)
class _Gate:
    """Lets one thread at a time open a session."""

    lock: threading.Lock = attrs.field(factory=threading.Lock)
    users: int = 0


class OpenCores:
    """The cores of the sessions that have handles, each of them once, by id. Safe to use from many threads.

    What is open of a session that was closed, its files and connections, is given back; its state is kept for the next
    opening, as long as there is room.

    Args:
        load: Makes the core of a session, with the state that was kept of it, if any. Different sessions load at once.
        max_bytes: Most memory that the states of closed sessions take.
    """

    def __init__(self, load: Callable[[str, KeptState | None], Core], max_bytes: int) -> None:
        self.kept = KeptStates(max_bytes)
        self._load = load
        self._lock = threading.Lock()  # protects all that is here, for moments: never held while a store is asked
        self._cores: dict[str, Core] = {}
        self._gates: dict[str, _Gate] = {}

    def acquire(self, session_id: str) -> Core:
        """Return the core of a session with one handle more, loaded where it is not open or must be loaded again.

        What must be loaded again is so for all its handles. Only where that cannot be, as the session was deleted, another core
        takes its place, and closes it.
        """
        with self._lock:
            former = self._cores.get(session_id)
        if former is not None and former.lost:
            _recover(former)
        with self._alone(session_id):
            with self._lock:
                core = self._cores.get(session_id)
                if core is not None and not core.lost:
                    core.handles += 1
                    return core
                kept = self.kept.pop(session_id)
            loaded = self._load(session_id, kept)
            with self._lock:
                if core is not None:
                    core.closed = True
                loaded.handles += 1
                self._cores[session_id] = loaded
            return loaded

    def release(self, core: Core) -> None:
        """Take a handle away; with the last one the core is closed and its state is kept. The core's lock is held. O(visible).

        Not kept is the state of a session that was deleted, that must be loaded again, or that has no event yet.
        """
        with self._lock:
            core.handles -= 1
            if core.handles:
                return
            if self._cores.get(core.session_id) is core:
                del self._cores[core.session_id]
            kept = None if core.closed or core.lost else core.keep()
            core.closed = True
            if kept is not None:
                self.kept.put(core.session_id, kept)
        core.store.close()

    def drop(self, session_id: str) -> None:
        """Close the core of a session, whoever has handles on it, and forget its state."""
        with self._lock:
            core = self._cores.pop(session_id, None)
            self.kept.pop(session_id)
        if core is not None:
            with core.lock:
                core.closed = True
                core.store.close()

    def forget(self) -> None:
        """Forget the states of closed sessions, and keep none from now on."""
        with self._lock:
            self.kept = KeptStates(0)

    @contextmanager
    def _alone(self, session_id: str) -> Iterator[None]:
        """Keep out others who open the session, and nobody else."""
        with self._lock:
            gate = self._gates.setdefault(session_id, _Gate())
            gate.users += 1
        try:
            with gate.lock:
                yield
        finally:
            with self._lock:
                gate.users -= 1
                if not gate.users:
                    del self._gates[session_id]


def _recover(core: Core) -> None:
    """Load a session again after its store failed; where that cannot be, loading it into another core says why."""
    with core.lock, suppress(UnavailableError):
        if core.lost and not core.closed:
            core.recover()
