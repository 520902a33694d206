"""What the engine does for a backend over all sessions of a tenant."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from datetime import datetime, timedelta
from time import monotonic

from memci.archive.stores.contract import Store, Usage
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.core.monitor import EngineNotice, check_observer
from memci.engine.hosting import listing
from memci.engine.hosting.listing import DeletionReceipt, SessionFacts, TenantReceipt
from memci.engine.reading import pages
from memci.engine.reading.searching import Hit
from memci.engine.settings.config import Config
from memci.engine.settings.setting import MOST, listed
from memci.engine.sharing import finding
from memci.errors import ArgumentError

_NOBODY = "memci ping"  # a session that is asked for, and never made


class HostedEngine(ABC):
    """The part of an engine for those who run it: watching, lists, search over sessions, their end."""

    _store: Store
    _config: Config
    _tenant: str
    _clock: Callable[[], datetime]
    _watchers: list[Callable[[EngineNotice], None]]
    _listing: listing.Listing

    @abstractmethod
    def sessions(self, *, tenant: str | None = None) -> Iterator[str]:
        """Yield the ids of a tenant's sessions."""

    @abstractmethod
    def delete(self, session_id: str, *, tenant: str | None = None) -> DeletionReceipt:
        """Remove all that is stored of a session."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise ``SessionClosedError`` after the engine was closed."""

    @abstractmethod
    def _opened(self, tenant: str | None, session_id: str) -> AbstractContextManager[Core]:
        """Open a session for one question."""

    def observe(self, callback: Callable[[EngineNotice], None]) -> None:
        """Call *callback* on what happens in any session of the engine, open now or later; notices have session and tenant.

        It hears of all that ``Session.observe`` tells of, and of messages that came in, windows, fades and conflicts. It runs
        within the lock of the session, in any thread.
        """
        check_observer(callback)
        self._watchers.append(callback)

    def ping(self) -> float:
        """Ask the store for an answer, and return how many seconds it took; ``UnavailableError`` where it gives none."""
        self._check_open()
        started = monotonic()
        with closing(self._store.open(self._tenant, _NOBODY, read_only=True)) as stored:
            stored.journal.head()
        return monotonic() - started

    def search(
        self, query: str, tenant: str | None = None, sessions: Collection[str] | None = None, limit: int = 10
    ) -> list[Hit]:
        """Return at most *limit* pages of all of a tenant's sessions, or of those named, that fit some words best, best first.

        As ``Session.search``, by one ranking over all of them; hits have their ``session``, and no page is left out as it stands
        in a window. A session that cannot be read is logged and left out. O(sessions), one of them open at a time.
        """
        self._check_open()
        named = self.sessions(tenant=tenant) if sessions is None else listed(sessions, "sessions", "session ids")
        return finding.search(functools.partial(self._opened, tenant), named, query, limit)

    def page(self, address: str, *, tenant: str | None = None) -> Page:
        """Return a page of any session of a tenant by its address, ``session/usr-12``, as ``Hit.address`` is. O(its size)."""
        if not isinstance(address, str) or "/" not in address:  # type: ignore[redundant-expr]  # any caller's
            raise ArgumentError(argument="address", value=address, wanted="a session and a page, such as chat-7/usr-12")
        session_id, _, index = address.rpartition("/")
        with self._opened(tenant, session_id) as core:
            return pages.read(core, pages.page_index(index))

    def list_sessions(  # noqa: PLR0913 (each narrows it in another way)
        self,
        tenant: str | None = None,
        *,
        owner: str | None = None,
        title: str | None = None,
        used_since: datetime | str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> list[SessionFacts]:
        """Return the facts of at most *limit* sessions of a tenant, those used last first.

        Those of an *owner*, whose *title* holds some words, used since a time; a list goes on *after* the ``cursor`` of its last
        one. What owner and title are, ``Session.describe`` says. O(sessions), one of them open at a time: of one that was listed
        before no more than its last record is read, where nothing happened since. One that cannot be read is logged and left out.
        ``ArgumentError`` for what is no such argument.
        """
        self._check_open()
        for name, value in (("owner", owner), ("title", title), ("after", after)):
            if not isinstance(value, str | None):
                raise ArgumentError(argument=name, value=value, wanted="text")
        if type(limit) is not int or not 0 < limit <= MOST:
            raise ArgumentError(argument="limit", value=limit, wanted="a whole number from 1")
        found = self._facts(tenant, self.sessions(tenant=tenant))
        return listing.newest(found, owner=owner, title=title, used_since=used_since, limit=limit, after=after)

    def _facts(self, tenant: str | None, sessions: Iterable[str]) -> Iterator[SessionFacts]:
        opened = functools.partial(self._opened, tenant)
        return self._listing.listed(opened, self._tenant if tenant is None else tenant, sessions)

    def prune(
        self, older_than: timedelta | datetime | str | None = None, *, tenant: str | None = None, dry_run: bool = True
    ) -> list[SessionFacts]:
        """Delete the sessions of a tenant that were not used since a time, or for so long, and return what they were.

        Without *older_than*, those whose own time to live has ended: ``session.describe(ttl_s=…)`` says for how many seconds
        after its last use one stays. Never the long-term memory, and none that a session which stays has mounted, unless their
        own time has ended; nor one on which a request has a lease, or that somebody came back to while this goes on (each is
        looked at once more just before it is deleted). With *dry_run*, as by default, they are only returned. O(sessions), see
        ``list_sessions``.
        """
        self._check_open()
        now = self._clock()
        until = None if older_than is None else listing.before(older_than, now)
        facts = self._facts(tenant, [*self.sessions(tenant=tenant)])
        if until is None:
            found = [each for each in facts if each.has_ended(now)]
        else:
            found = listing.old(facts, until, self._config.memory.session)
        ended = [each for each in found if not each.is_leased(now)]
        return ended if dry_run else [each for each in ended if self._delete_unused(each)]

    def _delete_unused(self, facts: SessionFacts) -> bool:
        """Delete a session, unless somebody came back to it since it was looked at; return whether it is gone."""
        with closing(self._store.open(facts.tenant, facts.id, read_only=True)) as stored:
            is_unused = stored.journal.head() == facts.events
        if is_unused:
            self.delete(facts.id, tenant=facts.tenant)
        return is_unused

    def erase_tenant(self, tenant: str) -> TenantReceipt:
        """Delete all sessions of a tenant, with all that is stored of them, and return a receipt. O(its sessions).

        What a store's delete promises holds: docs/durability.md says what is left of deleted bytes in which store.
        """
        gone = [self.delete(session_id, tenant=tenant) for session_id in sorted(self.sessions(tenant=tenant))]
        self._store.sweep(tenant)
        names = tuple(each.session for each in gone)
        return TenantReceipt(tenant=tenant, sessions=names, receipts=tuple(gone), at=self._clock().isoformat())

    def usage(self, tenant: str | None = None) -> Usage:
        """Return how many sessions a tenant has, and how many bytes the store holds of it. O(what is stored)."""
        self._check_open()
        return self._store.usage(self._tenant if tenant is None else tenant)
