"""What a session does for the backend that hosts it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from memci.engine.core.core import Core
from memci.engine.hosting import syncing
from memci.engine.hosting.syncing import Synced
from memci.messages.codec import MessageLike, as_list

_Answer = TypeVar("_Answer")


class HostedSession(ABC):
    """The part of a session for hosts that keep lists of their own, and show sessions to people."""

    @abstractmethod
    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command."""

    def sync(self, messages: Sequence[MessageLike]) -> Synced:
        """Take over the whole list of messages that the host keeps, from its first one on, and return what that changed.

        What is known stays, what is new comes in; where the list differs, as something was edited or generated anew, the session
        goes back to before that (``rewind``) and on from there; what it leaves stays in the journal. A list that ends earlier
        goes back to its end. Leading system messages are the system part; without any, that stays as it is. What was erased
        counts as known whatever the list has there. Keys of messages may stand in any order.

        O(messages), and O(history) once in a process. ``ArgumentError`` for a list without its beginning, ``ConflictError`` where
        somebody else wrote: their messages are in no list of the host's yet.
        """
        several = as_list(messages)
        return self._run(lambda core: syncing.sync(core, several))
