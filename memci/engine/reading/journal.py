"""The journal of a session as data."""

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from memci.engine.core.core import Core
from memci.engine.history.events import KINDS, as_value, from_record
from memci.engine.settings.setting import MOST, refusal
from memci.errors import ArgumentError

_SAID = ("message", "messages", "text", "title", "name", "description")  # keys of what anybody may have said
_BATCH = 256  # records that are read with the session's lock at once


@attrs.frozen(kw_only=True)
class SessionEvent:
    """An event as the journal holds it: its sequence number, its kind, such as ``folded``, and its fields as JSON values."""

    seq: int
    kind: str
    data: Mapping[str, Any]


def events_of(
    core: Core, kind: str | None, after: int, until: int, pages: Collection[str] | None = None
) -> tuple[list[SessionEvent], int]:
    """Return some of what happened after an event, *until* another, and up to which that is; see ``Session.events``."""
    if kind is not None and kind not in KINDS:
        raise refusal(path="kind", value=kind, allowed=f"one of {', '.join(KINDS)}")
    if type(after) is not int or not 0 <= after <= MOST:
        raise ArgumentError(argument="after", value=after, wanted="a whole number from 0")
    last = min(after + _BATCH, until)
    records = (record for record in core.store.journal.read(after, last) if kind in (None, record.kind))
    told = (SessionEvent(seq=record.seq, kind=record.kind, data=as_value(from_record(record))) for record in records)
    return [event for event in told if pages is None or _names(event.data, pages)], last


def _names(value: object, pages: Collection[str]) -> bool:
    """Return whether a value of an event holds one of these indexes, but in what is said. O(its size)."""
    if isinstance(value, Mapping):
        return any(key in pages or (key not in _SAID and _names(each, pages)) for key, each in value.items())
    if isinstance(value, list):
        return any(_names(each, pages) for each in value)
    return isinstance(value, str) and value in pages
