"""What happens in sessions, for those who listen over HTTP."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import attrs

from memci.archive.stores.names import SessionKey
from memci.client.answer import ServerNotice, Written
from memci.engine.core.monitor import EngineNotice
from memci.errors import MemciError

_LOOK_S = 0.5  # between two looks at what others wrote
_MOST_WAITING = 1_000  # notices that wait for one listener; whoever is slower than that is sent away, and may come again


@attrs.define(eq=False)
class _Listener:
    """A queue of one event loop, ``None`` in it is the end."""

    queue: asyncio.Queue[ServerNotice | None] = attrs.field(factory=asyncio.Queue)
    loop: asyncio.AbstractEventLoop = attrs.field(factory=asyncio.get_running_loop)

    def put(self, notice: ServerNotice | None) -> None:
        """Put a notice in, from any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.queue.put_nowait, notice)

    async def heard(self) -> AsyncIterator[ServerNotice]:
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
    def listening(self, key: SessionKey, seq: int, head: Callable[[], Awaitable[int]]) -> Iterator[AsyncIterator[ServerNotice]]:
        """Listen to a session, which is at the event *seq*, while the block lasts; *head* asks at which it is.

        What is yielded is what the engine tells of it from now on, and that there are new events, whoever wrote them. The end is
        where it was deleted.
        """
        listener = _Listener()
        self._listeners[key].append(listener)
        watch = asyncio.create_task(_watch(listener, key, seq, head))
        try:
            yield listener.heard()
        finally:
            watch.cancel()
            self._listeners[key].remove(listener)
            if not self._listeners[key]:
                del self._listeners[key]

    def close(self) -> None:
        """Let all who listen go, as the server ends."""
        for listeners in [*self._listeners.values()]:
            for listener in [*listeners]:
                listener.put(None)


async def _watch(listener: _Listener, key: SessionKey, seq: int, head: Callable[[], Awaitable[int]]) -> None:
    """Tell a listener of new events; a store that cannot be asked now is asked again."""
    while True:
        await asyncio.sleep(_LOOK_S)
        with suppress(MemciError):
            known, seq = seq, await head()
            if seq != known:
                listener.put(Written(session=key.session_id, tenant=key.tenant, seq=seq) if seq else None)
