"""Leases: one request of a session is answered at a time, whatever worker answers it."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from memci.engine.core.core import Core
from memci.engine.history.events import Leased, LeaseEnded
from memci.engine.settings.setting import MOST
from memci.errors import ArgumentError, ConflictError, LockedError

AGAIN_S = 0.05  # after which whoever waits asks again
_ATTEMPTS = 5  # where others wrote meanwhile


def check(ttl_s: object, wait_s: object) -> None:
    """Raise ``ArgumentError`` for what are no seconds."""
    for name, value, least in (("ttl_s", ttl_s, 0.001), ("wait_s", wait_s, 0)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= MOST:
            raise ArgumentError(argument=name, value=value, wanted=f"a number of seconds from {least}")


def take(core: Core, ttl_s: float) -> int:
    """Take a lease and return its number; ``LockedError`` while somebody has one, or others write all the time."""
    for _ in range(_ATTEMPTS):
        core.refresh()
        number, until = core.state.lease
        if number and datetime.fromisoformat(until) > _now(core):
            message = f"another request has a lease on it until {until}: wait for that"
            raise LockedError(message, session=core.session_id)
        with suppress(ConflictError):
            core.commit([Leased(until=(_now(core) + timedelta(seconds=ttl_s)).isoformat())])
            return core.state.seq
    message = "others write to it all the time: do it again"
    raise LockedError(message, session=core.session_id)


def end(core: Core, number: int) -> None:
    """Give a lease back, unless it ended and another one has it."""

    def give_back(core: Core) -> None:
        if core.state.lease[0] == number:
            core.commit([LeaseEnded(lease=number)])

    core.run(give_back, "retry")


def _now(core: Core) -> datetime:
    return core.clock().astimezone(UTC)
