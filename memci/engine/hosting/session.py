"""What a session does for the backend that hosts it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Any, Literal, TypeVar

from memci.chapters.page import Entry
from memci.engine.commands import appending, window
from memci.engine.core.core import Core
from memci.engine.core.monitor import Notice, check_observer
from memci.engine.hosting import leasing, listing, syncing, transcript
from memci.engine.hosting.recap import Recap, recap
from memci.engine.hosting.status import Stats, Status, stats, status
from memci.engine.hosting.streaming import Stream
from memci.engine.hosting.syncing import Synced
from memci.engine.hosting.transcript import Said, Variant
from memci.engine.reading.journal import SessionEvent, events_of
from memci.engine.reading.pages import page_index
from memci.engine.settings.setting import listed
from memci.engine.sharing.handing import PARTS, checked_parts
from memci.errors import LockedError
from memci.messages.codec import MessageLike, as_list
from memci.messages.streaming import assembler

OnConflict = Literal["raise", "retry"]

_Answer = TypeVar("_Answer")


class HostedSession(ABC):
    """The part of a session for hosts that keep lists of their own, and show sessions to people."""

    _core: Core

    @property
    @abstractmethod
    def seq(self) -> int:
        """The sequence number of the last event that this process knows."""

    @abstractmethod
    def extend(
        self, messages: Sequence[MessageLike], *, at: object = None, key: str | None = None, on_conflict: OnConflict | None = None
    ) -> list[Entry]:
        """Take messages in."""

    @abstractmethod
    def _tell_appended(self, entries: Sequence[Entry]) -> None:
        """Tell observers of the engine that messages came in."""

    @abstractmethod
    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command."""

    def observe(self, callback: Callable[[Notice], None]) -> None:
        """Call *callback* after each fold, eviction, recall and zone change. It runs within the session's lock."""
        check_observer(callback)
        self._run(lambda core: core.monitor.observers.append(callback))

    def events(
        self, kind: str | None = None, after: int = 0, pages: Collection[str | int] | None = None
    ) -> Iterator[SessionEvent]:
        """Yield what happened after event *after*, oldest first, as the journal holds it.

        Only what is of a *kind*, and what names one of these *pages*, where they are given. O(events), read as they are asked
        for. ``ConfigError`` for a kind that there is not, ``InvalidIdError`` for what is no index.
        """
        named = None if pages is None else frozenset(map(page_index, listed(pages, "pages", "page indexes")))
        last, until = after, self.seq
        while True:  # some at a time: the store is for one thread at once
            events, last = self._run(partial(events_of, kind=kind, after=last, until=until, pages=named))
            yield from events
            if last >= until:
                return

    def status(self) -> Status:
        """Return how the session stands: tokens by part and role, what waits, what is advised. Nothing is written. O(visible)."""
        return self._run(status)

    def stats(self) -> Stats:
        """Return the session in figures, for a list: what was said and sent so far, its cost, its zone. O(visible)."""
        return self._run(stats)

    def count(self, messages: Sequence[MessageLike], tools: Sequence[Mapping[str, Any]] | None = None) -> int:
        """Return the tokens of *messages* in the session's format and of the schemas of *tools*, as a window counts them.

        By the settings' counter, framing included, scaled as the last window or report says; the start of the reply (3 tokens)
        comes on top. Nothing is written, no network is asked. O(their size). ``session.count(window.messages, tools)``, with the
        tools of that window, is at most ``window.tokens``; where the system prompt is a parameter of its own, it is so with
        ``{"role": "system", "content": window.system}`` before them, too. ``InvalidMessageError`` for what is no message.
        """
        return self._run(lambda core: window.count(core, as_list(messages), tools))

    def describe(self, /, **values: Any) -> None:  # noqa: ANN401 (JSON values)
        """Say something of the session itself, such as ``title``, ``owner`` or ``stars``, for ``engine.list_sessions``.

        JSON values by name, 16 kB in all; ``None`` takes one away. No window shows it. Forks and copies take it along, and
        ``rewind``, ``restore_checkpoint`` and ``erase`` leave it as it is. ``ArgumentError`` for what is no value of JSON.
        """
        self._run(lambda core: listing.describe(core, values))

    @property
    def metadata(self) -> dict[str, Any]:
        """What was said of the session itself."""
        return self._run(lambda core: dict(core.state.described))

    @contextmanager
    def lease(self, ttl_s: float = 60.0, wait_s: float = 30.0) -> Iterator[None]:
        """Have the session alone while the block lasts, for *ttl_s* seconds at most: one request at a time, of all workers.

        Whoever else asks for a lease waits up to *wait_s* seconds, then it is a ``LockedError``: 0 refuses a double click at
        once. It binds those who ask for one, and ends by itself where a worker is killed. Two events of the journal.
        """
        leasing.check(ttl_s, wait_s)
        pause, waited = Event(), 0.0
        while True:
            try:
                number = self._run(lambda core: leasing.take(core, ttl_s))
                break
            except LockedError:
                if waited >= wait_s:
                    raise
            pause.wait(leasing.AGAIN_S)
            waited += leasing.AGAIN_S
        try:
            yield
        finally:
            self._run(lambda core: leasing.end(core, number))

    def recap(self, max_tokens: int = 600, *, since: int | None = None, include: Collection[str] = PARTS) -> Recap:
        """Return where the session stands, for whoever comes back: goal, outcomes, failures, findings, the last messages.

        In some *max_tokens*, without a model, in the session's own words; nothing is written. *since* is an event, such as the
        ``seq`` that they saw last: what happened after it is counted, by default in the open turn. O(visible, and those events).
        ``ArgumentError`` for what is no such argument.
        """
        wanted = checked_parts(include)

        def command(core: Core) -> Recap:
            page = core.state.active.find_page(core.state.turn_page)
            first = page.head.seq - 1 if page is not None and page.head is not None else 0
            return recap(core, max_tokens, first if since is None else since, wanted)

        return self._run(command)

    def annotate(self, address: str, values: Mapping[str, Any]) -> None:
        """Say something of a message, such as ``rating``, ``model`` or ``cost``, for ``transcript``: JSON values by name.

        ``None`` takes one away; 16 kB at once. No provider and no window sees it. It lasts through rewinds, forks and restored
        checkpoints, and is erased with the page. ``ArgumentError`` for what is no value of JSON.
        """
        self._run(lambda core: transcript.annotate(core, address, values))

    def transcript(self, limit: int = 50, before: str | None = None) -> list[Said]:
        """Return the conversation's newest *limit* messages, newest first, without the system part; on from *before*, an address.

        What an application shows: a list goes on with the ``address`` of its last one, and ends where one is shorter. O(limit).
        """
        return self._run(lambda core: transcript.transcript(core, limit, before))

    def variants(self, address: str) -> list[Variant]:
        """Return all messages that stand, or stood, at the place of an entry, oldest first, itself included.

        Several, where an answer was generated anew, or a question edited (``rewind``, ``sync``). O(history).
        """
        return self._run(lambda core: transcript.variants(core, address))

    def choose(self, variant: Variant | int) -> str:
        """Go on with a variant, or the one of that *seq*, and return its address: all is as it was when it stood there last.

        What followed it then is back; what is there now becomes a variant, which can be chosen again. As
        ``restore_checkpoint`` to that moment, recalls, folds and slots included. O(history).
        """
        return self._run(lambda core: transcript.choose(core, variant))

    def stream(self, *, at: object = None, key: str | None = None) -> Stream:
        """Return what puts a streamed answer together, in a block: ``stream.add(chunk)`` for each chunk, ``stream.text`` so far.

        Chunks are the provider's of the session's format, dicts or the SDK's objects. The answer is one append, when the block is
        left: whole, or as far as it came where the model, the network or the user broke off, or the task was cancelled, without
        calls that are in parts. *at* and *key* are those of ``append``: where an answer was stored under the key before, it stays
        the only one. What others wrote meanwhile, such as a title or a rating, comes before it; where they took back the message
        that it answers, leaving the block is a ``ConflictError``, and ``stream.text`` has what came. One that broke off is
        annotated as ``interrupted``. A process that is killed meanwhile has stored nothing of it.
        """
        said, asked = {transcript.INTERRUPTED: True}, list[tuple[str, int]]()

        def append(messages: list[dict[str, Any]], *, complete: bool) -> list[Entry]:
            def command(core: Core) -> list[Entry]:
                if not all(transcript.is_there(core, index, position) for index, position in asked):
                    what = "the message that it answers was taken back"
                    raise core.changed(what)
                return self.extend(messages, at=at, key=key, on_conflict="raise")

            with self._core.lock:
                entries = self._core.run(command, "retry")  # nobody can ask for it again
                if not complete:
                    self._core.run(lambda core: transcript.annotate(core, entries[0].address, said), "retry")
            return entries

        def find(core: Core) -> tuple[list[Entry], bool]:
            last = core.state.active.last_page
            asked[:] = [] if last is None else [(last.index, last.length)]
            entries = [] if key is None else appending.answered(core, key)
            return entries, not (entries and transcript.is_interrupted(core, entries[0]))

        return Stream(assembler(self._core.config.format), lambda: self._run(find), append)

    def sync(self, messages: Sequence[MessageLike]) -> Synced:
        """Take over the whole list of messages that the host keeps, from its first one on, and return what that changed.

        What is known stays, what is new comes in; where the list differs, as something was edited or generated anew, the session
        goes back to before that (``rewind``) and on from there; what it leaves stays in the journal. A list that ends earlier
        goes back to its end. Leading system messages are the system part; without any, that stays as it is. What was erased
        counts as known whatever the list has there. Keys of messages may stand in any order, and what belongs to a provider's
        answer only, such as ``id`` and ``usage``, may be there or not.

        O(messages), and O(history) once in a process. ``ArgumentError`` for a list without its beginning, ``ConflictError`` where
        somebody else wrote: their messages are in no list of the host's yet.
        """
        several = as_list(messages)
        with self._core.lock:
            synced = self._run(lambda core: syncing.sync(core, several))
            self._tell_appended(synced.appended)
        return synced
