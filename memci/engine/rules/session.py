"""What a session does with the rules that its user sets."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from memci.archive.rules.listing import Rule
from memci.engine.core.core import Core
from memci.engine.rules import ruling

_Answer = TypeVar("_Answer")


class RuledSession(ABC):
    """The part of a session that keeps what the user asked for, to hold from then on."""

    @abstractmethod
    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command."""

    def rules(self) -> list[Rule]:
        """Return the rules of the whole session, newest last, those that were replaced or taken back too. O(rules).

        They are sentences of the user's, found as messages come in; what is quoted, pasted or forwarded sets none, nor does what
        tools answer. ``rules.detect`` turns that off.
        """
        return self._run(lambda core: list(core.state.rules))

    def add_rule(self, text: str, *, key: str | None = None) -> Rule:
        """Add a rule of the application's, which the next window shows, and return it.

        Repeating the command with its idempotency *key* gives the first answer again and adds nothing, also where the rule was
        removed since. ``ArgumentError`` for no text, ``ConflictError`` where the key was used for something else.
        """
        return self._run(partial(ruling.add, text=text, key=key))

    def remove_rule(self, address: str) -> None:
        """Take a rule out; it is not found again. ``ArgumentError`` for an address that no rule has."""
        self._run(partial(ruling.remove, address=address))
