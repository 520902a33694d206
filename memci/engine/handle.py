"""A handle on a session: how it is opened and closed, and what is known without looking into its pages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

from memci.archive.contents.contents_page import ContentsPage
from memci.engine.core import conflict
from memci.engine.core.core import Core
from memci.engine.core.monitor import Notice
from memci.engine.settings.config import Config
from memci.errors import SessionClosedError, shown

_Answer = TypeVar("_Answer")


class Handle:
    """What every call of a session goes through: its one lock, and a look whether the handle is still open.

    Args:
        core: The session.
        release: Called once, when the handle is closed.
    """

    def __init__(self, core: Core, release: Callable[["Handle", Core], None]) -> None:
        self._core = core
        self._release = release
        self._closed = False

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Close the handle."""
        self.close()

    def close(self) -> None:
        """Close this handle. May be called twice."""
        with self._core.lock:
            if not self._closed:
                self._closed = True
                self._release(self, self._core)

    @property
    def id(self) -> str:
        """The session's id."""
        return self._core.session_id

    @property
    def seq(self) -> int:
        """Sequence number of the last event that this process knows; 0 for a session without any."""
        with self._open() as core:
            return core.state.seq

    @property
    def turn(self) -> int:
        """The clock of every policy: how many turns were opened so far."""
        with self._open() as core:
            return core.state.turn

    @property
    def config(self) -> Config:
        """The settings in force, as the journal holds them: those of the process that wrote last; before any event this one's.

        Where sessions are stored, and how safely, is no part of them and has its defaults here.
        """
        with self._open() as core:
            return core.state.config

    @property
    def durability(self) -> str:
        """``fsync``, or the name of the weaker promise that was asked for."""
        return self._core.store.durability

    @property
    def contents(self) -> ContentsPage:
        """The contents page as it is now; the window shows it as it was at the last fold. O(entries)."""
        with self._open() as core:
            return core.state.archive.contents

    def refresh(self) -> None:
        """Apply what others wrote since; after the store failed, load the session again. O(what they wrote)."""
        with self._open() as core:
            core.refresh()

    def observe(self, callback: Callable[[Notice], None]) -> None:
        """Call *callback* after each fold, eviction, recall and zone change. It runs within the session's lock.

        Raises:
            ConfigError: It cannot be called.
        """
        with self._open() as core:
            core.monitor.add(callback)

    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command, which may be done again when somebody else wrote first, where the settings say so."""
        with self._open() as core:
            return conflict.run(core, command, core.config.on_conflict)

    @contextmanager
    def _open(self) -> Iterator[Core]:
        with self._core.lock:
            if self._closed or self._core.closed:
                message = f"session {shown(self._core.session_id)} was closed: open it again with engine.session"
                raise SessionClosedError(message)
            yield self._core
