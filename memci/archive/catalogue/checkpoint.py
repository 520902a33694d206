"""What is known of a checkpoint: a named place in a journal to which its session can go back."""

from enum import StrEnum

import attrs


class CheckpointKind(StrEnum):
    """Why a checkpoint was made."""

    MANUAL = "manual"
    AUTO = "auto"
    MILESTONE = "milestone"
    MODE_SWITCH = "mode_switch"
    APPROVAL = "approval"
    RECOVERY = "recovery"


@attrs.frozen(kw_only=True)
class Checkpoint:
    """A named place in a journal.

    Attributes:
        id: Such as ``cp-3``; numbers are never used again.
        seq: Sequence number of its event: ``session.render(at=seq)`` shows what the model saw there.
        label: What the caller named it.
        kind: Why it was made.
        turn: The turn that was open.
        at: When, in UTC, as ISO 8601.
    """

    id: str
    seq: int
    label: str
    kind: CheckpointKind
    turn: int
    at: str
