"""The engine: the process-wide owner of sessions, store and config."""

import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

import attrs

from memci.archive.contents.tree import Segment
from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import Store
from memci.archive.stores.names import SessionKey, check_identifier, check_key
from memci.archive.summarizers.summary import Summarizer
from memci.engine.commands import preparing
from memci.engine.core.core import Core
from memci.engine.core.kept_state import KeptState
from memci.engine.core.monitor import EngineNotice, Monitor
from memci.engine.core.open_sessions import OpenCores
from memci.engine.core.quotas import Quotas
from memci.engine.core.summary_pool import Outcome, SummaryPool
from memci.engine.core.worker import Worker
from memci.engine.erasure.erasing import Receipt, forget_erased
from memci.engine.erasure.spreading import erase_everywhere
from memci.engine.hosting.engine import HostedEngine
from memci.engine.hosting.listing import DeletionReceipt, Listing, last_record
from memci.engine.hosting.session import OnConflict
from memci.engine.session import Session
from memci.engine.settings.config import EXTRACTIVE, MARKS, Config
from memci.engine.summaries import summarizing
from memci.engine.upkeep import copying
from memci.engine.upkeep.verify import Repair, repair
from memci.engine.view.planner import Planner
from memci.errors import (
    ArgumentError,
    ConfigError,
    EncryptionError,
    MemciError,
    PageNotFoundError,
    PermissionDeniedError,
    SessionClosedError,
    StoreError,
    shown,
)
from memci.messages.tokens.counter import TokenCounter, checked_counter, get_counter
from memci.messages.tokens.encodings import TiktokenCounter

if TYPE_CHECKING:
    from memci.archive.stores.sql.postgres_connections import HostPool

utc_now = functools.partial(datetime.now, UTC)

_INSTRUCTIONS = (
    "Earlier pages of this conversation are listed in a contents page, under an index such as [usr-12] or, below a range such as "
    "[usr-20..51], by number. When you need one in full, call the tool recall_page with its index (a range gives a list of its "
    "pages); search_pages finds pages by words."
)
_INSTRUCTIONS_FEW = (
    "Earlier pages of this conversation are listed in a contents page, under an index such as [usr-12] or, below a range such as "
    "[usr-20..51], by number. The tool read_page reads one by its index; search_pages finds pages by words."
)
_INSTRUCTIONS_UNLISTED = (
    "Earlier pages of this conversation are kept, and no list of them stands here. The tool search_pages finds them by words; "
    "when you need one in full, call recall_page with its index, such as usr-12."
)
_INSTRUCTIONS_UNLISTED_FEW = (
    "Earlier pages of this conversation are kept, and no list of them stands here. The tool search_pages finds them by words; "
    "read_page reads one by its index, such as usr-12."
)


def _instructions(config: Config, segments: Mapping[str, Segment]) -> str:
    """Return how the system part tells the model to recall; empty for the protocol ``none``, with all of ATTP for ``attp``."""
    protocol, said = config.recall.protocol, _INSTRUCTIONS if config.contents.listed else _INSTRUCTIONS_UNLISTED
    if config.has_few_tools:
        said = _INSTRUCTIONS_FEW if config.contents.listed else _INSTRUCTIONS_UNLISTED_FEW
    if protocol == "attp":
        from memci.engine.tools.tree_tools import attp_prompt  # noqa: PLC0415 (for those who speak ATTP)

        return f"{said}\n\n{attp_prompt(segments, other_sessions=config.recall.search_sessions)}"
    return said if protocol == "native" else ""


_AT_CLOSING = 1 / 4  # of the events between two snapshots, after which one is kept when the engine is closed
_MOST_AT_CLOSING = 32  # of them


def _opened_store(store: str | Store, durability: str, pool: "HostPool | None") -> Store:
    if isinstance(store, str):
        from memci.archive.stores.url import open_store  # noqa: PLC0415 (loads a store's files only when one is opened)

        return open_store(store, durability, pool)
    if not callable(getattr(store, "open", None)):
        message = f"a {type(store).__name__} is no store: give a URL, such as file:./chats or memory:, or a store"
        raise ConfigError(message, path="store")
    if pool is not None:
        message = "a store that is given has its own connections: give the URL of a database beside the pool"
        raise ConfigError(message, path="pool")
    return store


class Engine(HostedEngine, AbstractContextManager["Engine"]):
    """Owns a store, a config, and the sessions that are open. Threads may share it.

    ``ConfigError`` names the path of a setting that cannot be used; ``InvalidIdError`` comes of a tenant that is no text, or
    empty, ``ArgumentError`` of an object without what it needs. What writes raises ``PermissionDeniedError`` where it only reads.

    Args:
        store: A URL such as ``file:./chats`` or ``memory:``, or a store; by default what the config names.
        config: The settings, as a ``Config`` or as the mapping that a YAML file holds; by default all defaults.
        tenant: Whose sessions these are, where a call does not say; tenants never see each other.
        summarizer: What writes the contents entries, ahead of folds and in threads of its own; where it did not, or what it
            wrote cannot be believed, and by default, they are extracts.
        counter: What counts tokens, known to the journal by its name; by default what the config names.
        planner: What decides which pages fold, and when; by default the marks.
        on_conflict: What commands do when somebody else wrote first, ``raise`` or ``retry``; by default what the config says.
        pool: Lends the connections to a database, such as the ``psycopg_pool.ConnectionPool`` that the host has; its store is
            ``postgresql://``, with options of memci's own where there are any.
        read_only: Nothing is written, no file made or mended; for looking at a store that another process uses.
        keep_settings: A session goes on with the settings in force there, and those given here are for new ones; for tools
            beside the application whose sessions they are.
        clock: Tells the time, in UTC.
    """

    def __init__(  # noqa: PLR0913 (each is another thing)
        self,
        store: str | Store | None = None,
        config: Config | Mapping[str, Any] | None = None,
        tenant: str = "default",
        *,
        summarizer: Summarizer | None = None,
        counter: TokenCounter | None = None,
        planner: Planner | None = None,
        on_conflict: OnConflict | None = None,
        pool: "HostPool | None" = None,
        read_only: bool = False,
        keep_settings: bool = False,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._config = config if isinstance(config, Config) else Config.from_mapping(config or {})
        if on_conflict is not None:
            self._config = attrs.evolve(self._config, on_conflict=on_conflict)
        objects = {"summarizer": (summarizer, "summarize"), "planner": (planner, "plan")}
        for name, (given, needed) in objects.items():
            if given is not None and (isinstance(given, type) or not callable(getattr(given, needed, None))):
                raise ArgumentError(argument=name, value=given, wanted=f"an object with {needed}")
        if counter is not None:
            counter = checked_counter(counter)
            self._config = attrs.evolve(self._config, counter=counter.name)
        self._counter = get_counter(self._config.counter) if counter is None else counter
        if self._config.search.vectors:
            from memci.archive.catalogue.embedding import check_installed  # noqa: PLC0415 (for those who use vectors)

            check_installed()
        stored = _opened_store(self._config.store if store is None else store, self._config.durability, pool)
        self._store = self._config.encryption.around(stored)
        self._tenant = check_identifier(tenant, "tenant")
        self._read_only = read_only
        self._given = None if keep_settings else self._config  # for a session for which nobody says more
        summarizer, self._planner = self._named(summarizer, planner)
        self._pool: SummaryPool | None = None
        if summarizer is not None and not read_only:
            self._pool = SummaryPool(summarizer, self._note, self._config.summary.timeout_s, self._ask)
        if not callable(clock):
            raise ArgumentError(argument="clock", value=clock, wanted="a function that returns the time, in UTC")
        self._clock = clock
        self._quotas = Quotas(self._store)
        self._checked_keys = set[str]()  # tenants whose sessions are encrypted, or not, as those of this engine
        self._lock = threading.Lock()  # protects the handles and whether the engine is closed
        self._open = OpenCores(self._load, self._config.open_sessions.max_bytes)
        self._worker = Worker(self._next_step)
        self._sessions: set[Session] = set()
        self._watchers: list[Callable[[EngineNotice], None]] = []
        self._listing = Listing(self._store)
        self._closed = False

    def _named(self, summarizer: Summarizer | None, planner: Planner | None) -> tuple[Summarizer | None, Planner | None]:
        """Return these, or those that the configuration names; ``None`` for memci's own."""
        if (self._config.summarizer, self._config.planner) == (EXTRACTIVE, MARKS):
            return summarizer, planner
        from memci.engine.core.named import make_planner, make_summarizer  # noqa: PLC0415 (for those who name one)

        return summarizer or make_summarizer(self._config.summarizer), planner or make_planner(self._config.planner)

    @classmethod
    def from_config(cls, path: str | os.PathLike[str]) -> Self:
        """Make an engine of a YAML file (``memci config`` prints one); ``ConfigError`` names the place that cannot be used."""
        return cls(config=Config.from_file(path))

    def __exit__(self, kind: type[BaseException] | None = None, *_error: object) -> None:
        """Close the engine; where something interrupts the program, without waiting for summarisers."""
        if self._pool is not None and kind is not None and not issubclass(kind, Exception):
            self._pool.patience_s = 0.0
        self.close()

    @property
    def config(self) -> Config:
        """The settings."""
        return self._config

    @property
    def durability(self) -> str:
        """``fsync``, or the name of the weaker promise that was asked for."""
        return self._store.durability

    def session(
        self, session_id: str, *, tenant: str | None = None, config: Config | Mapping[str, object] | None = None
    ) -> Session:
        """Open a session, of the engine's tenant or another one; a new one takes no room until its first event.

        *config* are settings for it: a whole config, or keys over those of the engine, such as ``{"budget": {"window": 8000}}``.
        An open session keeps what it was opened with, and ``ConfigError`` is raised for other settings.

        Opening reads a snapshot and the events after it, whatever the length of the history, or only what others wrote since this
        engine closed the session. The same id opened twice shares one conversation; each handle is closed for itself.
        ``InvalidIdError`` where the id is not text, is empty, or UTF-8 cannot encode it; ``CorruptError`` where what is stored of
        it is damaged, which does not affect others.
        """
        key, given = self._key(session_id, tenant), self._given if config is None else self._config.for_session(config)
        self._check_open()
        session = self._handle(key, given)
        if config is not None and given != session._core.given:  # noqa: SLF001 (the handle is the engine's)
            session.close()
            message = f"session {shown(session_id)} is open with other settings: close its handles first, or call configure()"
            raise ConfigError(message, path="config")
        return session

    def _handle(self, key: SessionKey, given: Config | None = None) -> Session:
        """Open a session, with the settings that it had unless others are given."""
        core = self._open.acquire(key, given)
        session = Session(core, self._release, self._open.wake, self._handle, self._store.sessions)
        with self._lock:
            self._sessions.add(session)
            closed = self._closed
        if closed:  # while it was loaded
            session.close()
            self._check_open()
        return session

    def sessions(self, *, tenant: str | None = None) -> Iterator[str]:
        """Yield the ids of a tenant's sessions that have at least one event, in no order."""
        self._check_open()
        yield from self._store.sessions(self._tenant if tenant is None else tenant)

    @contextmanager
    def _opened(self, tenant: str | None, session_id: str) -> Iterator[Core]:
        with self._handle(self._key(session_id, tenant)) as session, session._open() as core:  # noqa: SLF001 (its own)
            yield core

    def fork(self, session_id: str, new_id: str, at: int | None = None, *, tenant: str | None = None) -> Session:
        """Make a new session that begins with what another one was after the event *at*, now by default, and open it.

        The two are independent from then on. An interrupted fork can be repeated. O(history), in bounded memory.
        ``InvalidIdError`` for no such session, or a new id that is none; ``ConfigError`` for no such event, or an id that the
        session has or had; ``ConflictError`` where there is a session of the new id.
        """
        new = self._check("fork", new_id, tenant)
        with self._handle(self._key(session_id, tenant)) as source:
            missing = copying.fork(source._core, self._store, new_id, at)  # noqa: SLF001 (the handle is the engine's)
            given = source._core.given  # noqa: SLF001 (as above)
        with self._handle(new, given) as fork:
            copying.mend(fork._core, missing)  # noqa: SLF001 (as above)
        return self._handle(new, given)

    def repair(self, session_id: str, *, apply: bool = False, tenant: str | None = None) -> Repair:
        """Say what of a session differs from its journal and what makes it good; with *apply*, do it. O(history).

        ``CorruptError`` where the end of the journal is damaged: restore it from a backup.
        """
        if apply:
            self._check("repair", session_id, tenant)
        with self._handle(self._key(session_id, tenant)) as session, session._open() as core:  # noqa: SLF001 (as above)
            return repair(core, apply=apply)

    def erase(self, session_id: str, index: str | int, *, forks: bool = False, tenant: str | None = None) -> tuple[Receipt, ...]:
        """Erase a page as ``Session.erase`` does, and with *forks* in all forks that took it over, and wherever copies went.

        Copies are what sessions that mount this one showed or recalled, notes that it was promoted to, notes of a handoff that
        say something of it, and copies of those, out of view too, and where sessions in between were deleted. Returns a receipt
        for each session that it was erased in. With *forks* all sessions of the tenant are read: O(what they hold). After
        ``UnavailableError``, which comes before anything is done elsewhere, erase again. ``ErasureError`` has the receipts where
        it was erased in the session, and could not be in some others.
        """
        key = self._check("erase", session_id, tenant)
        with self._handle(key) as session:
            receipt = session.erase(index)
        if not forks:
            return (receipt,)

        def erased(session_id: str, page: str) -> Receipt | None:
            with self._handle(self._key(session_id, tenant)) as session, suppress(PageNotFoundError):
                return session.erase(page) if session.seq else None
            return None

        return erase_everywhere(self._store, key.tenant, erased, receipt)

    def delete(self, session_id: str, *, tenant: str | None = None) -> DeletionReceipt:
        """Remove all that is stored of a session, if there is one: journal, page files, snapshots, index. It closes handles.

        The receipt says what there was, and holds nothing that anybody said.
        """
        key = self._check("delete", session_id, tenant)
        with closing(self._store.open(*key, read_only=True)) as stored:
            events, sha256 = last_record(stored.journal)
        self._open.drop(key)
        self._store.delete(*key)
        self._quotas.forget(key.tenant)
        at = self._clock().isoformat()
        return DeletionReceipt(session=key.session_id, tenant=key.tenant, events=events, sha256=sha256, at=at)

    def warm_up(self) -> None:
        """Load what a first request needs, so that the first user does not wait for it: vocabulary, tables, modules, connection.

        A request is rehearsed in memory, and the store is asked for a session. 0.3 to 0.6 s, once in a process; call it when a
        worker starts. Nothing is written. ``ConfigError`` where the vocabulary or an extra is missing, ``UnavailableError`` where
        the store cannot be reached.
        """
        if isinstance(self._counter, TiktokenCounter):
            self._counter.load()
        settings = Config(format=self._config.format, counter=self._config.counter)
        with Engine("memory:", settings) as rehearsal, rehearsal.session("warm-up") as session:
            session.extend([{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello."}] * 2)
            session.window()
            session.fold("all")
            session.search("hello")
        next(self.sessions(), None)

    def close(self) -> None:
        """Close all sessions and the store, after what summarisers are at, for five seconds at most. May be called twice."""
        if self._pool is not None:
            for session, keys in groupby(sorted(self._pool.close()), key=itemgetter(0)):
                pages = [page for _, page in keys]
                with suppress(MemciError):
                    self._beside(session, lambda core, pages=pages: summarizing.free(core, pages))  # type: ignore[misc]
        self._keep_snapshots()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            sessions = list(self._sessions)
        self._worker.close()
        for session in sessions:
            session.close()
        self._open.forget()
        self._store.close()

    def _keep_snapshots(self) -> None:
        """Keep the states of those sessions as snapshots that were used last and are far from their last one."""
        least = _AT_CLOSING * self._config.snapshot_every
        behind = [key for key, tail in self._open.tails().items() if tail >= least and not self._read_only]
        for key in behind[-_MOST_AT_CLOSING:]:
            with suppress(MemciError), self._handle(key) as session, session._open() as core:  # noqa: SLF001 (as above)
                core.keep_snapshot(_AT_CLOSING)

    def _next_step(self, core: Core) -> Callable[[], object] | None:
        if core.idle is None and not core.closed:  # its files are opened again
            self._open.wake(core)
        return preparing.next_step(core)

    def _load(self, key: SessionKey, kept: KeptState | None, given: Config | None) -> Core:
        """Load a session with settings, by default those in force there, as nobody asks for others."""

        def open_stored(*, read_only: bool = self._read_only) -> BlobSession:
            return BlobSession(self._store.open(*key, read_only=read_only), key.session_id)

        opened = open_stored()
        core = Core(
            key=key,
            given=given or self._config,
            store=opened,
            reopen=open_stored,
            counter=self._counter_of(given or self._config),
            pool=self._pool,
            planner=self._planner,
            tell=_instructions,
            offer=self._worker.offer,
            forget_erased=forget_erased,
            clock=self._clock,
            quotas=self._quotas,
            follow=self._follow if given is None and self._given is None else None,
            monitor=Monitor(key.session_id, key.tenant, self._watchers),
            read_only=self._read_only,
        )
        try:
            core.load(kept)
            if not core.state.seq:
                self._check_key(key)
            if given is None:
                self._follow(core)
        except BaseException:
            opened.close()
            raise
        return core

    def _follow(self, core: Core) -> None:
        """Let a session go on with the settings in force there."""
        in_force = self._config.with_policy(core.state.config)
        if core.state.configured and in_force != core.given:
            core.use(in_force, self._counter_of(in_force))

    def _check_key(self, key: SessionKey) -> None:
        """Raise ``EncryptionError`` where a new session would have another key than others of its tenant, or none."""
        if key.tenant in self._checked_keys:
            return
        other = next((each for each in self._store.sessions(key.tenant) if each != key.session_id), None)
        if other is not None:
            try:
                with closing(BlobSession(self._store.open(key.tenant, other, read_only=True), other)) as opened:
                    next(iter(opened.journal.read(0, 1)), None)
            except EncryptionError:
                raise
            except StoreError:  # whoever opens that one is told
                return
        self._checked_keys.add(key.tenant)

    def _counter_of(self, config: Config) -> TokenCounter:
        return self._counter if config.counter == self._config.counter else get_counter(config.counter)

    def _note(self, outcome: Outcome) -> None:
        """Note what a summariser wrote of a page; a session that was closed is opened for that."""
        key = outcome.request.session
        with self._handle(key) as session:
            event = summarizing.checked(outcome, session._core.counter, self._clock())  # noqa: SLF001 (as above)
            with session._open() as core:  # noqa: SLF001 (as above)
                is_noted = summarizing.note(core, event)
        if not is_noted:
            self._beside(key, lambda core: summarizing.note(core, event))

    def _beside(self, key: SessionKey, write: Callable[[Core], object]) -> None:
        """Write what no command has to know of first: to a state of its own, so that handles learn of others by ``refresh``."""
        core = self._load(key, None, None)
        try:
            core.run(write, "retry")
        finally:
            core.store.close()

    def _ask(self, key: SessionKey) -> None:
        with self._handle(key) as session, session._open() as core:  # noqa: SLF001 (as above)
            summarizing.ask(core)

    def _release(self, handle: Session, core: Core) -> None:
        with self._lock:
            self._sessions.discard(handle)
        if self._pool is not None and core.handles == 1 and not core.closed and not core.lost and summarizing.is_due(core):
            self._pool.look_at(core.key)  # the engine's thread may not have come to it
        self._open.release(core)

    def _key(self, session_id: str, tenant: str | None) -> SessionKey:
        return check_key(self._tenant if tenant is None else tenant, session_id)

    def _check(self, verb: str, session_id: str, tenant: str | None) -> SessionKey:
        """Return which session is meant; refuse to write where nothing is written, by another id, or after closing."""
        if self._read_only:
            message = f"the engine was opened to read only: {verb} with one that writes"
            raise PermissionDeniedError(message)
        key = self._key(session_id, tenant)
        self._check_open()
        return key

    def _check_open(self) -> None:
        if self._closed:
            message = "the engine was closed: make another one"
            raise SessionClosedError(message)
