"""The events of time travel: checkpoints, what goes back to them, and forks."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs


@attrs.frozen(kw_only=True)
class CheckpointMade:
    """The session can come back to here.

    Attributes:
        number: Its number, counted from 1 and never used again; the id of number 3 is ``cp-3``.
        checkpoint_kind: Why it was made: the value of a ``CheckpointKind``.
        keep: How many ``auto`` checkpoints are listed from then on, the newest; ``None`` for all.
    """

    kind: ClassVar = "checkpoint_made"
    version: ClassVar = 1
    number: int
    label: str
    checkpoint_kind: str
    turn: int
    at: str
    keep: int | None = None


@attrs.frozen(kw_only=True)
class CheckpointRestored:
    """The session goes on from a checkpoint; what came after it is gone from view.

    Attributes:
        state: The state as it was there, as ``state_codec`` writes it.
    """

    kind: ClassVar = "checkpoint_restored"
    version: ClassVar = 1
    checkpoint: str
    target: int
    state: Mapping[str, Any]
    at: str


@attrs.frozen(kw_only=True)
class ForkMade:
    """A fork of this session was begun. Nothing changes; whoever erases content learns where copies of it may be.

    Attributes:
        fork_at: Sequence number of the last event that it takes over.
    """

    kind: ClassVar = "fork_made"
    version: ClassVar = 1
    session: str
    fork_at: int
    at: str


@attrs.frozen(kw_only=True)
class Forked:
    """All before this event was taken over from another session, which it is independent of.

    Attributes:
        fork_at: Sequence number of the last event that was taken over.
    """

    kind: ClassVar = "forked"
    version: ClassVar = 1
    source: str
    fork_at: int
    session: str
    at: str
