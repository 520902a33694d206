"""What becomes of a command when somebody else wrote first."""

from collections.abc import Callable
from typing import TypeVar

from memci.engine.core.core import Core
from memci.errors import ConflictError

MOST_ATTEMPTS = 500
"""How often a command is begun again because others wrote first: each time costs what they wrote."""

_Answer = TypeVar("_Answer")


def run(core: Core, command: Callable[[Core], _Answer], on_conflict: str) -> _Answer:
    """Return what a command returns. For ``retry``, it takes in what others wrote first, and begins again.

    What it had committed before stays, and it finds that.
    """
    for _ in range(MOST_ATTEMPTS):
        try:
            return command(core)
        except ConflictError as error:
            if on_conflict != "retry" or error.head == error.expected:  # these do not say that others wrote
                raise
            core.refresh()
    return command(core)


def changed(core: Core, what: str) -> ConflictError:
    """Return the error of a command that others took the sense from: begun again it would do something else than was meant."""
    message = f"{what} since somebody else wrote: look at the session, then say what to do; nothing was written"
    return ConflictError(message, expected=core.state.seq, head=core.state.seq)
