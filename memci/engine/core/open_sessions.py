"""Which sessions of an engine are open, which of them have open files, and which states of closed ones are kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakValueDictionary

from memci.archive.disk import most_descriptors
from memci.archive.stores.names import SessionKey
from memci.engine.core.core import Core
from memci.engine.core.kept_state import KeptState, Prepared
from memci.engine.settings.config import Config
from memci.errors import UnavailableError

# Sessions of an engine that have open files, five each at most; the others open theirs when they are used. Fewer where the limit
# of open files is low: half of them are left to the process, and to its other engines.
MOST_AWAKE, _LEAST_AWAKE = 64, 4
_FILES, _SHARE = 5, 0.5
_STATE_BYTES = 16_000
_ITEM_BYTES = 4_500  # a message beside its text, or an entry of the contents page, as measured
_PREPARED_BYTES = 12_500  # a page that is prepared, beside its file, which is not there for long


def _estimated_bytes(kept: KeptState) -> int:
    """Return about how much memory a state takes, with what is prepared of its pages. O(visible)."""
    state, prepared = kept.state, kept.prepared or Prepared()
    raw = [len(node.message.raw) for chapter in (*state.verbatim(), state.archive) for node in chapter.message_list]
    raw += [len(attachment.block.raw) for attachment in state.recalled.attachments.values()]
    raw += [len(quotes.block.raw) for quotes in state.recalled.quotes.values()]
    raw += [len(state.slots.block.raw)] if state.slots is not None else []
    raw += [len(node.message.raw) for node in (state.opening.nodes() if state.opening else ())]
    raw += [len(directive.node.message.raw) for directive in state.directives]
    sent = sum(len(message) for window in prepared.windows for message in window.raws)
    items = len(raw) + len(state.archive.entries)
    return _STATE_BYTES + sum(raw) + sent + _ITEM_BYTES * items + _PREPARED_BYTES * len(prepared.pages)


class KeptStates:
    """States by session, at most so many bytes of them, each with the settings given for it; who closed first leaves first."""

    def __init__(self, max_bytes: int) -> None:
        self.total_bytes = 0  # as estimated
        self._max_bytes = max_bytes
        self._states: OrderedDict[SessionKey, tuple[KeptState, Config | None, int]] = OrderedDict()

    def put(self, session: SessionKey, kept: KeptState, given: Config | None) -> None:
        """Keep a state in the place of an older one of the session; one that is larger than the bound is not kept. O(visible)."""
        self.pop(session)
        size_bytes = _estimated_bytes(kept)
        if size_bytes <= self._max_bytes:
            self._states[session] = (kept, given, size_bytes)
            self.total_bytes += size_bytes
            while self.total_bytes > self._max_bytes:
                self.pop(next(iter(self._states)))

    def tails(self) -> dict[SessionKey, int]:
        """Return how many events no snapshot holds, by session, the one closed first at the front."""
        return {session: kept.tail for session, (kept, _, _) in self._states.items()}

    def pop(self, session: SessionKey) -> tuple[KeptState | None, Config | None]:
        """Give a state away, ``None`` where there is none. O(1)."""
        kept, given, size_bytes = self._states.pop(session, (None, None, 0))
        self.total_bytes -= size_bytes
        return kept, given


class OpenCores:
    """The cores of the sessions that have handles, each of them once. Safe to use from many threads.

    *load* makes the core of a session, of its kept state if there is one, with settings if any are given; different sessions load
    at once. A closed session gives
    back its files and connections, and its state is kept for the next opening, as long as *max_bytes* of memory hold it.
    """

    def __init__(self, load: Callable[[SessionKey, KeptState | None, Config | None], Core], max_bytes: int) -> None:
        self.kept = KeptStates(max_bytes)
        self._load = load
        self.most_awake = max(_LEAST_AWAKE, min(MOST_AWAKE, int(_SHARE * most_descriptors()) // _FILES))
        self._lock = threading.Lock()  # protects all that is here, for moments: never held while a store is asked
        self._cores: dict[SessionKey, Core] = {}
        self._awake: OrderedDict[Core, None] = OrderedDict()  # those that may have open files, in the order to look at them
        self._gates: WeakValueDictionary[SessionKey, threading.Lock] = WeakValueDictionary()  # held by whoever opens one

    def acquire(self, session: SessionKey, given: Config | None = None) -> Core:
        """Return the core of a session with one handle more, loaded where it is not open or must be loaded again.

        It is loaded with the settings *given*, by default those that it had. All its handles go on with that; only where it was
        deleted, another core takes its place, and closes it.
        """
        with self._lock:
            former = self._cores.get(session)
            gate = self._gates.setdefault(session, threading.Lock())
        if former is not None and former.lost:
            with former.lock, suppress(UnavailableError):  # where it cannot be loaded again, another core says why
                if not former.closed and former.lost:
                    former.recover()
        with gate:
            with self._lock:
                core = self._cores.get(session)
                if core is not None and not core.lost:
                    core.handles += 1
                    return core
                kept, had = self.kept.pop(session)
            if kept is not None and given is not None and given != had:
                kept = kept._replace(prepared=None)  # it was made with other settings
            loaded = self._load(session, kept, given or had)
            with self._lock:
                if core is not None:
                    core.closed = True
                loaded.handles += 1
                self._cores[session] = loaded
            self.wake(loaded)
            return loaded

    def wake(self, core: Core) -> None:
        """Note that a session opens its files; where many have theirs open, one that nobody used lately rests. O(1), amortised.

        Nothing is lost, and no lock is given back: one on the store is held within a call only.
        """
        with self._lock:
            core.idle = False
            self._awake[core] = None
        for _ in range(2 * self.most_awake):
            with self._lock:
                if len(self._awake) <= self.most_awake:
                    return
                other = next(iter(self._awake))
                self._awake.move_to_end(other)
                is_idle, other.idle = other.idle, True
            if is_idle and other is not core and other.lock.acquire(blocking=False):  # else another thread uses it
                try:
                    self._rest(other)
                finally:
                    other.lock.release()

    def _rest(self, core: Core) -> None:
        with self._lock:
            self._awake.pop(core, None)
            core.idle = None
        core.indexed = None
        with suppress(UnavailableError):  # of its disk: whoever uses it next is told
            core.store.rest()

    def release(self, core: Core) -> None:
        """Take a handle away; the last one closes the core, whose state is kept if it can go on. Its lock is held. O(visible)."""
        with self._lock:
            core.handles -= 1
            if core.handles:
                return
            self._awake.pop(core, None)
            if self._cores.get(core.key) is core:
                del self._cores[core.key]
            kept = None if core.closed or core.lost else core.keep()
            core.closed = True
            if kept is not None:
                self.kept.put(core.key, kept, core.given if core.follow is None else None)
        core.store.close()

    def tails(self) -> dict[SessionKey, int]:
        """Return how many events no snapshot holds, by session: closed ones whose states are kept, then open ones."""
        with self._lock:
            cores = {session: core.state.seq - core.last_snapshot for session, core in self._cores.items()}
            return self.kept.tails() | cores

    def drop(self, session: SessionKey) -> None:
        """Close the core of a session, whoever has handles on it, and forget its state."""
        with self._lock:
            core = self._cores.pop(session, None)
            self.kept.pop(session)
            if core is not None:
                self._awake.pop(core, None)
        if core is not None:
            with core.lock:
                core.closed = True
                core.store.close()

    def forget(self) -> None:
        """Forget the states of closed sessions, and keep none from now on."""
        with self._lock:
            self.kept = KeptStates(0)
