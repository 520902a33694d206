"""What a session does for others of its tenant: agents that work together, and whoever goes on from it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from memci.archive.stores.names import SessionKey, check_identifier
from memci.engine.core.core import Core
from memci.engine.sharing import handing
from memci.engine.sharing.handing import PARTS, checked_parts, room
from memci.errors import ArgumentError

_Answer = TypeVar("_Answer")


class SharingSession(ABC):
    """The part of a session for those that share its context."""

    _core: Core
    _sibling: Callable[[SessionKey], AbstractContextManager["SharingSession"]]  # opens another session of the engine

    @abstractmethod
    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command."""

    def handoff(self, to: "SharingSession | str", share: float = 0.3, include: Collection[str] = PARTS) -> str:
        """Hand over to another session of the tenant, which can go on from there; return the index of the note that it has then.

        *to* is a session of this engine, or an id. The note stands open in its window, quoted, with this session's id, event and
        checkpoint: goal, outcomes, failures, findings and the last messages, or those that *include* names, in at most a *share*
        of its budget, and of what opened pages may take (``recall.max_share``). Both journals have it. ``ArgumentError`` for
        another tenant's session, this one, or a share in which nothing can be said.
        """
        wanted = checked_parts(include)
        with self._receiver(to) as other:
            name, run = other._core.session_id, other._run  # noqa: SLF001 (a session, too)
            most, count = run(lambda core: (room(core, share), core.counter.count))
            made = self._run(lambda core: handing.prepare(core, name, wanted, most, count))
            index = run(lambda core: handing.receive(core, made))
        self._run(lambda core: handing.note(core, made, name, index))
        return index

    @contextmanager
    def _receiver(self, to: "SharingSession | str") -> Iterator["SharingSession"]:
        key, to = self._core.key, getattr(to, "_twin", to)  # an asynchronous session stands for its own
        if isinstance(to, SharingSession) and to._sibling == self._sibling:  # noqa: SLF001 (as above)
            there = to._core.key  # noqa: SLF001 (as above)
        else:
            there = SessionKey(key.tenant, check_identifier(to, "session id"))
        if there == key or there.tenant != key.tenant:
            raise ArgumentError(argument="to", value=to, wanted="another session of the same engine and tenant, or its id")
        with self._sibling(there) as other:
            yield other
