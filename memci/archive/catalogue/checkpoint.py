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
    """A named place in a journal."""

    id: str  # such as cp-3; numbers are never used again
    seq: int  # of its event: session.render(at=seq) shows what the model saw there
    label: str  # as the caller named it
    kind: CheckpointKind = attrs.field(converter=CheckpointKind)
    turn: int  # that was open
    at: str  # when, in UTC, as ISO 8601
