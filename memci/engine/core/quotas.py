"""Quotas of tenants: how many sessions and bytes one may have, checked before anything is written."""

import threading
from collections.abc import Callable, Sequence
from time import monotonic

import attrs

from memci.archive.stores.contract import Journal, NewRecord, Store
from memci.engine.settings.config import Limits
from memci.errors import QuotaError

_MEASURED_S = 60.0  # for which what was measured is believed, and what this process wrote added to it


@attrs.define(eq=False)
class _Usage:
    measured_at: float
    sessions: int
    stored_bytes: int


class Quotas:
    """What tenants have in a store, as far as somebody limits it. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()  # protects what is known
        self._known: dict[str, _Usage] = {}

    def check(self, tenant: str, limits: Limits, new_bytes: int, *, begins: bool = False) -> None:
        """Raise ``QuotaError`` where so many more bytes, or a session that begins, are more than its tenant may have.

        Sessions are counted and bytes measured once a minute, O(what the store holds of the tenant) in one question; in between,
        what this process wrote is added, and what others write is not known.
        """
        usage = self._usage(tenant)
        for quota, used, wanted, most in (
            ("limits.tenant_sessions", usage.sessions, int(begins), limits.tenant_sessions),
            ("limits.tenant_bytes", usage.stored_bytes, new_bytes, limits.tenant_bytes),
        ):
            if most is not None and wanted and used + wanted > most:
                raise QuotaError(quota=quota, tenant=tenant, used=used, wanted=wanted, most=most)

    def first(self, tenant: str, limits: Limits, journal: Journal) -> Callable[[int, Sequence[NewRecord]], int]:
        """Return what appends the first records of a session, where its tenant may have one more; raises what ``check`` does."""
        if limits.tenant_sessions is None:
            return journal.append
        self.check(tenant, limits, 0, begins=True)

        def append(expected: int, records: Sequence[NewRecord]) -> int:
            head = journal.append(expected, records)
            with self._lock:
                if (usage := self._known.get(tenant)) is not None:
                    usage.sessions += 1
            return head

        return append

    def note(self, tenant: str, new_bytes: int) -> None:
        """Note what was written after ``check``."""
        with self._lock:
            if (usage := self._known.get(tenant)) is not None:
                usage.stored_bytes += new_bytes

    def forget(self, tenant: str) -> None:
        """Measure a tenant anew the next time, as something of it was deleted."""
        with self._lock:
            self._known.pop(tenant, None)

    def _usage(self, tenant: str) -> _Usage:
        with self._lock:
            usage = self._known.get(tenant)
        if usage is None or monotonic() - usage.measured_at > _MEASURED_S:
            found = self._store.usage(tenant)
            usage = _Usage(monotonic(), found.sessions, found.stored_bytes)
            with self._lock:
                self._known[tenant] = usage
        return usage
