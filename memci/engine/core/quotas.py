"""Quotas of tenants: how many sessions and bytes one may have, checked before anything is written."""

import math
import threading
from collections.abc import Callable, Sequence
from time import monotonic

import attrs

from memci.archive.stores.contract import Journal, NewRecord, Store
from memci.engine.history.events import CheckpointMade, MessageAnnotated, MessageAppended, SessionDescribed, SlotsSet, SystemSet
from memci.engine.history.tree_events import DirectoryMade, NoteWritten, PageUpdated
from memci.engine.settings.config import Limits
from memci.errors import QuotaError

# Kinds of events by which somebody says something; folds, recalls and windows go on beyond a quota, and so do erasures.
_SAYING = frozenset(
    event.kind
    for event in (
        *(MessageAppended, SystemSet, SlotsSet, MessageAnnotated, SessionDescribed, CheckpointMade),
        *(NoteWritten, DirectoryMade, PageUpdated),
    )
)
_MEASURED_S = 60.0  # for which what was measured is believed, and what this process wrote added to it


@attrs.define(eq=False)
class _Usage:
    measured_at: float
    sessions: int
    stored_bytes: int
    written_bytes: int = 0  # by this process since


class Quotas:
    """What tenants have in a store, as far as somebody limits it. Threads may share it."""

    def __init__(self, store: Store, clock: Callable[[], float] = monotonic) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()  # protects what is known
        self._known: dict[str, _Usage] = {}

    def check(self, tenant: str, limits: Limits, new_bytes: int, *, begins: bool = False) -> None:
        """Raise ``QuotaError`` where so many more bytes, or a session that begins, are more than its tenant may have.

        Sessions are counted and bytes measured once a minute, and after each tenth of the quota that this process wrote, O(what
        the store holds of the tenant) in one question; in between, what it wrote is added, and what others write is not known.
        """
        usage = self._usage(tenant, limits)
        for quota, used, wanted, most in (
            ("limits.tenant_sessions", usage.sessions, int(begins), limits.tenant_sessions),
            ("limits.tenant_bytes", usage.stored_bytes + usage.written_bytes, new_bytes, limits.tenant_bytes),
        ):
            if most is not None and wanted and used + wanted > most:
                raise QuotaError(quota=quota, tenant=tenant, used=used, wanted=wanted, most=most)

    def append(self, tenant: str, limits: Limits, journal: Journal, expected: int, records: Sequence[NewRecord]) -> None:
        """Append to a session's journal what its tenant may have, or raise what ``check`` does, and what the journal raises."""
        begins = not expected and limits.tenant_sessions is not None
        new_bytes = (
            sum(len(record.body) for record in records if record.kind in _SAYING) if limits.tenant_bytes is not None else 0
        )
        if begins or new_bytes:
            self.check(tenant, limits, new_bytes, begins=begins)
        journal.append(expected, records)
        with self._lock:
            if (usage := self._known.get(tenant)) is not None:
                usage.sessions += begins
                usage.written_bytes += new_bytes

    def forget(self, tenant: str) -> None:
        """Measure a tenant anew the next time, as something of it was deleted."""
        with self._lock:
            self._known.pop(tenant, None)

    def _usage(self, tenant: str, limits: Limits) -> _Usage:
        with self._lock:
            usage = self._known.get(tenant)
        most_written = math.inf if limits.tenant_bytes is None else limits.tenant_bytes / 10
        if usage is None or self._clock() - usage.measured_at > _MEASURED_S or usage.written_bytes > most_written:
            found = self._store.usage(tenant)
            usage = _Usage(self._clock(), found.sessions, found.stored_bytes)
            with self._lock:
                self._known[tenant] = usage
        return usage
