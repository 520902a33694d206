"""The journal of a session as data."""

from collections.abc import Mapping
from typing import Any

import attrs

from memci.engine.core.core import Core
from memci.engine.history.events import KINDS, as_value, from_record
from memci.engine.settings.setting import MOST, refusal
from memci.errors import ArgumentError

_BATCH = 256  # records that are read with the session's lock at once


@attrs.frozen(kw_only=True)
class SessionEvent:
    """An event as the journal holds it: its sequence number, its kind, such as ``folded``, and its fields as JSON values."""

    seq: int
    kind: str
    data: Mapping[str, Any]


def events_of(core: Core, kind: str | None, after: int, until: int) -> tuple[list[SessionEvent], int]:
    """Return some of what happened after an event, *until* another, and up to which that is; see ``Session.events``."""
    if kind is not None and kind not in KINDS:
        raise refusal(path="kind", value=kind, allowed=f"one of {', '.join(KINDS)}")
    if type(after) is not int or not 0 <= after <= MOST:
        raise ArgumentError(argument="after", value=after, wanted="a whole number from 0")
    last = min(after + _BATCH, until)
    records = (record for record in core.store.journal.read(after, last) if kind in (None, record.kind))
    return [SessionEvent(seq=record.seq, kind=record.kind, data=as_value(from_record(record))) for record in records], last
