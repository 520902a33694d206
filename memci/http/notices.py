"""What happens in sessions, for those who listen over HTTP."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import attrs

from memci.archive.stores.names import SessionKey
from memci.engine.core.monitor import EngineNotice

_MOST_WAITING = 1_000  # notices that wait for one listener; whoever is slower than that is sent away, and may come again


@attrs.define(eq=False)
class _Listener:
    """A queue of one event loop, ``None`` in it is the end."""

    queue: asyncio.Queue[EngineNotice | None] = attrs.field(factory=asyncio.Queue)
    loop: asyncio.AbstractEventLoop = attrs.field(factory=asyncio.get_running_loop)

    def put(self, notice: EngineNotice | None) -> None:
        """Put a notice in, from any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.queue.put_nowait, notice)

    async def heard(self) -> AsyncIterator[EngineNotice]:
        """Yield what was put in, until the end."""
        while (notice := await self.queue.get()) is not None:
            yield notice


class Notices:
    """Hears what an engine tells, and passes it on to those who listen to the session that it is about."""

    def __init__(self) -> None:
        self._listeners: defaultdict[SessionKey, list[_Listener]] = defaultdict(list)

    def hear(self, notice: EngineNotice) -> None:
        """Pass a notice on; it is called by threads of the engine."""
        for listener in [*self._listeners.get(SessionKey(notice.tenant, notice.session), ())]:
            listener.put(notice if listener.queue.qsize() < _MOST_WAITING else None)

    @contextmanager
    def listening(self, key: SessionKey) -> Iterator[AsyncIterator[EngineNotice]]:
        """Listen to a session while the block lasts; what is yielded is what happens in it from now on."""
        listener = _Listener()
        self._listeners[key].append(listener)
        try:
            yield listener.heard()
        finally:
            self._listeners[key].remove(listener)
            if not self._listeners[key]:
                del self._listeners[key]

    def close(self) -> None:
        """Let all who listen go, as the server ends."""
        for listeners in [*self._listeners.values()]:
            for listener in [*listeners]:
                listener.put(None)
