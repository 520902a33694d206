"""The journal of a session as data."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from memci.engine.core.core import Core
from memci.engine.history.events import KINDS, as_value, from_record
from memci.engine.settings.config import MOST, refusal
from memci.errors import ArgumentError


@attrs.frozen(kw_only=True)
class SessionEvent:
    """An event as the journal holds it: its sequence number, its kind, such as ``folded``, and its fields as JSON values."""

    seq: int
    kind: str
    data: Mapping[str, Any]


def events_of(core: Core, kind: str | None, after: int) -> Iterator[SessionEvent]:
    """Return what happened after an event, up to now; see ``Session.events``."""
    if kind is not None and kind not in KINDS:
        raise refusal(path="kind", value=kind, allowed=f"one of {', '.join(KINDS)}")
    if type(after) is not int or not 0 <= after <= MOST:
        raise ArgumentError(argument="after", value=after, wanted="a whole number from 0")
    records = core.store.journal.read(after, core.state.seq)
    return (
        SessionEvent(seq=record.seq, kind=record.kind, data=as_value(from_record(record)))
        for record in records
        if kind in (None, record.kind)
    )
