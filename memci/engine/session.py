"""A session: one conversation, and all that can be done with it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import attrs

from memci.archive.catalogue.page_facts import Checkpoint, CheckpointKind
from memci.archive.contents.contents_page import ContentsPage, Outlined
from memci.archive.stores.names import SessionKey
from memci.chapters.address import is_foreign, is_root
from memci.chapters.page import Entry, Page
from memci.engine.commands import appending, calibrating, checkpointing, closing, folding, keeping, recalling, rewinding
from memci.engine.commands.calibrating import Calibration
from memci.engine.commands.keeping import Bookmark
from memci.engine.commands.slots import SessionSlots
from memci.engine.commands.window import Window, make_window, not_made, render_at
from memci.engine.core.core import Core
from memci.engine.core.monitor import Appended, Fold, WindowMade
from memci.engine.erasure.erasing import Receipt, erase
from memci.engine.history.state import SLOTS
from memci.engine.hosting import listing
from memci.engine.hosting.drafting import open_draft
from memci.engine.hosting.session import HostedSession, OnConflict
from memci.engine.reading import pages
from memci.engine.rules.session import RuledSession
from memci.engine.settings.config import Config
from memci.engine.settings.presets import Preset
from memci.engine.settings.setting import refusal
from memci.engine.sharing.session import SharingSession
from memci.engine.summaries import summarizing
from memci.engine.tree import opening
from memci.engine.upkeep.verify import Report, verify
from memci.errors import ArgumentError, PermissionDeniedError, SessionClosedError, is_span, shown
from memci.messages.codec import MessageLike, as_list
from memci.messages.headline import parted

if TYPE_CHECKING:
    from memci.attp.runtime import Result, Runtime
    from memci.engine.tools.tree_tools import TreeToolbox

_Answer = TypeVar("_Answer")

_ON_CONFLICT = (None, *get_args(OnConflict))


class Session(HostedSession, SharingSession, RuledSession, AbstractContextManager["Session"]):
    """A handle on one conversation. Threads may share it: each call holds the session's one lock.

    Handles of one engine on the same id share the conversation; each is closed for itself. Every call but ``close`` raises
    ``SessionClosedError`` on a closed handle. A call that writes raises ``ConflictError`` where another process wrote first
    (``refresh`` brings that in; reading facts of pages raises it too), ``UnavailableError`` where the store fails,
    ``PermissionDeniedError`` on an engine that only reads. With ``on_conflict: retry``, a call takes in what others wrote and
    begins again, unless it would then do something else than was meant. Page indexes are text such as ``usr-12``, or the number
    alone: ``PageNotFoundError`` for that of no page, ``PermissionDeniedError`` to change a root or a system page.
    """

    def __init__(
        self,
        core: Core,
        release: Callable[["Session", Core], None],
        wake: Callable[[Core], None],
        sibling: Callable[[SessionKey], "Session"],
        session_ids: Callable[[str], Iterable[str]] | None = None,
    ) -> None:
        self._core = core
        self._session_ids = session_ids
        self._sibling: Callable[[SessionKey], Session] = sibling
        self._release = release
        self._wake = wake
        self._closed = False
        self._runtime: Runtime | None = None

    def __exit__(self, *_error: object) -> None:
        """Close the handle."""
        self.close()

    def close(self) -> None:
        """Close this handle. May be called twice."""
        with self._core.lock:
            if not self._closed:
                self._closed = True
                if self._runtime is not None:
                    self._runtime.close()
                self._release(self, self._core)

    def draft(self) -> "Session":
        """Open a draft: a session to try things on, which begins as this one is stored. O(events since a snapshot).

        All calls work on it and its windows are those that there would be, but for entries that a summariser would write:
        ``with session.draft() as draft: draft.fold("all"); print(draft.status())``. Nothing is written, in other sessions neither
        and by an engine that only reads; what was done is in memory, and gone once it is closed. It hears of nobody, and nobody
        of it. Close it as any handle; the engine does not close it. ``erase`` raises ``PermissionDeniedError``.
        """
        with self._open() as core:
            draft = open_draft(Session, core, self._sibling)
        draft._promoted_turn = self._promoted_turn  # noqa: SLF001 (its own)
        return draft

    @property
    def id(self) -> str:
        """The session's id."""
        return self._core.session_id

    @property
    def seq(self) -> int:
        """Sequence number of the last event that this process knows; 0 for a session without any."""
        with self._open() as core:
            return core.state.seq

    @property
    def turn(self) -> int:
        """The clock of every policy: how many turns were opened so far."""
        with self._open() as core:
            return core.state.turn

    @property
    def config(self) -> Config:
        """The settings in force, those of the last event, without store and durability; at first this engine's."""
        with self._open() as core:
            return core.state.config

    @property
    def durability(self) -> str:
        """``fsync``, or the name of the weaker promise that was asked for."""
        return self._core.store.durability

    @property
    def contents(self) -> ContentsPage:
        """The contents page as it is now; the window shows it as it was at the last fold. O(entries)."""
        with self._open() as core:
            page = core.state.contents
            made = sum(core.counter.count(item.render()) + 1 for item in page.entries if isinstance(item, Outlined))
            return attrs.evolve(page, tokens=page.tokens + made) if made else page

    def refresh(self) -> None:
        """Apply what others wrote since; after the store failed, load the session again. O(what they wrote)."""
        with self._open() as core:
            core.refresh()
            summarizing.note_outcomes(core)

    def append(
        self, message: MessageLike, *, at: object = None, key: str | None = None, on_conflict: OnConflict | None = None
    ) -> Entry:
        """Take a message in, and return its entry once the message is safe.

        It is in the session's wire format: a dict, or the object of a provider's SDK, such as ``response.choices[0].message``,
        whose ``model_dump(mode="json", exclude_unset=True)`` it then is; it is copied. *at* is when it was said: a datetime or
        ISO 8601 text, taken as UTC when it names no zone; now by default. Repeating the command with its idempotency *key* gives
        the first answer again. Where others wrote first, *on_conflict* ``retry`` refreshes and appends at the end, ``raise``
        raises; by default as the config says. ``InvalidMessageError`` says why one is refused: nothing was stored.
        ``ConflictError`` also where the key was used for another message.
        """
        return self.extend([message], at=at, key=key, on_conflict=on_conflict)[0]

    def extend(
        self, messages: Sequence[MessageLike], *, at: object = None, key: str | None = None, on_conflict: OnConflict | None = None
    ) -> list[Entry]:
        """Take messages in, all or none, in one commit, and return their entries; see ``append``. O(messages + visible).

        *at* may be a list with a time for each message, ``None`` where that is now.
        """
        if on_conflict not in _ON_CONFLICT:
            raise refusal(path="on_conflict", value=on_conflict, allowed="raise or retry")
        with self._core.lock:
            core, several = self._checked(), as_list(messages)
            wanted = on_conflict or core.config.on_conflict
            entries = appending.append(core, several, at=at, key=key, on_conflict=wanted) if several else []
            if core.monitor.watchers:
                self._tell_appended(entries)
            return entries

    def _tell_appended(self, entries: Sequence[Entry]) -> None:
        if (core := self._core).monitor.watchers and entries:
            took = monotonic() - core.used_at
            core.monitor.report(Appended(messages=len(entries), seq=entries[-1].node.seq, seconds=took))

    def window(
        self,
        budget: int | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        extra: str | Mapping[str, str] | None = None,
    ) -> Window:
        """Return what the next call sends: at most *budget* tokens, by default the configured window without its reserve.

        O(visible). The schemas of *tools* count, and so does *extra*, text for this call alone, such as the date or passages that
        were found elsewhere: one, or several by name, as quoted data at the end, in no page, transcript or search. While it does
        not fit: completed pages fold, then the contents page shrinks, recalled pages fade, and large entries are shown as stubs;
        then ``BudgetError`` has the tokens by part, and the session goes on.
        """

        def command(core: Core) -> Window:
            made = make_window(core, budget, tools, extra)
            if core.monitor.watchers:
                took = monotonic() - core.used_at
                core.monitor.report(
                    WindowMade(tokens=made.tokens, budget=made.budget, zone=made.zone, seq=made.seq, seconds=took)
                )
            return made

        if self._core.state.mounts:
            self._show_mounts()
        rules = self._core.config.memory
        if rules.kept or rules.bookmarked or rules.recalled is not None:
            self._promote_due()
        try:
            return self._run(command)
        except PermissionDeniedError as error:  # an engine that only reads
            raise not_made(self.id) from error

    def render(self, at: int) -> Window:
        """Return the window as it was after event *at*, byte for byte; ``ConfigError`` for none. O(events since a snapshot)."""
        with self._open() as core:
            return render_at(core, at)

    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first, those included that a restored one took out of view. O(their number)."""

        def listed(core: Core) -> list[Checkpoint]:
            return [each for each in core.ask(lambda index: index.checkpoints()) if checkpointing.is_listed(core.state, each)]

        return self._run(listed)

    def verify(self) -> Report:
        """Compare the journal with page files, snapshots and index. O(history)."""
        return self._run(verify)

    def recall(self, index: str | int) -> Page:
        """Bring an archived page back into the window for some turns, and return it. O(its size).

        Of a directory or any other range, it is the list of its pages. A root is returned as by ``page``: it always stands in the
        window. What is larger than recalled pages may be (``recall.max_share``) is returned and not shown; observers hear of it.
        ``PageEvictedError`` where the contents page lists it no more: ``search`` finds it, ``restore`` puts it back.
        """
        if (page := self._recalled(index)) is not None:
            return page
        name = pages.page_index(index)
        return self._run(lambda core: pages.read(core, name) if is_root(name) else recalling.recall(core, name))

    def fade(self, index: str | int) -> None:
        """Let a recalled page, or the list of a range, leave the window now."""
        name = str(index) if self._mounted(index) is not None else pages.page_index(index)
        self._run(lambda core: recalling.fade(core, name))

    def evict(self, index: str | int) -> None:
        """Take a page's entry out of the contents page; the page stays stored and searchable.

        Of a range, such as a directory, those go that are listed, all or none. ``PageNotFoundError`` also where one stands in the
        window (fold it first), ``PageEvictedError`` where all are evicted, ``PermissionDeniedError`` where one is pinned.
        """
        self._run(lambda core: opening.remove(core, index, by="application"))

    def restore(self, index: str | int) -> None:
        """Put the entry of an evicted page, or of one in a directory, back into the contents page; or those of a range."""
        self._run(lambda core: opening.restore(core, index, by="application"))

    def pin(self, index: str | int) -> None:
        """Keep a page's entry, or those of a range, from being evicted; ``PageEvictedError`` where all are: restore first."""
        self._run(lambda core: recalling.pin(core, pages.page_index(index), pinned=True))

    def unpin(self, index: str | int) -> None:
        """Let a page's entry, or those of a range of pages, be evicted again."""
        self._run(lambda core: recalling.pin(core, pages.page_index(index), pinned=False))

    def keep(self, index: str | int) -> None:
        """Hold a page verbatim through folds, as far as kept pages have room in ``active.keep_share`` of the budget.

        The open page is held once it is complete; an archived one comes back into view, oldest first, after the contents page.
        Where a window has no room without them, kept pages fold last. ``PageEvictedError`` for a page that is evicted,
        ``PermissionDeniedError`` beyond the share.
        """
        self._run(lambda core: keeping.keep(core, pages.page_index(index)))

    def unkeep(self, index: str | int) -> None:
        """Let folds take a page again."""
        self._run(lambda core: keeping.unkeep(core, pages.page_index(index)))

    def bookmark(self, address: str, label: str | None) -> None:
        """Mark an entry, such as ``usr-12/3``, with a line of text; ``None`` takes the mark away."""
        self._run(lambda core: keeping.bookmark(core, address, label))

    def bookmarks(self) -> list[Bookmark]:
        """Return the bookmarks, in the order of their entries. O(the pages that have one)."""
        return self._run(keeping.bookmarks)

    def fold(
        self,
        pages: str | int | Collection[str | int] | None = None,
        *,
        to: Literal["light", "medium", "heavy"] | int | None = None,
    ) -> Fold:
        """Fold down to the low mark, ``"all"``: what is complete, or pages by index; after ``StoreError`` nothing was folded.

        Or fold *to* a size, as far as complete pages go: ``light``, ``medium`` and ``heavy`` make the window smaller by 20, 40
        and 60%, a number is one of tokens. ``ConfigError`` for both, or another word.
        """
        return self._run(lambda core: folding.fold_command(core, pages, to))

    def close_topic(self, title: str) -> Fold:
        """Fold what is complete since the last topic was closed, or since the beginning, under a title.

        Several pages become a directory of that title with a row for each; of those that folded before, the newest come in that
        are listed for themselves, side by side. One page is listed under the title. ``ArgumentError`` for a title that is not a
        line of 1 to 120 characters, or holds marks or indexes of memci's; ``MemciError`` where nothing is complete;
        ``ConflictError`` also where somebody else closed a topic meanwhile.
        """
        with self._open() as core:
            last = core.state.topic
            return self._run(lambda core: closing.close_topic(core, title, last))

    def summarize(self, timeout_s: float | None = None) -> int:
        """Have the pages summarised that the next fold takes, wait for it, at most so long, and return how many are now.

        A summariser is asked without it too, ahead of folds; this is for who wants to wait, as workers do. 0 without one. A
        continuation counts as a page.
        ``ArgumentError`` for no number of seconds from 0.
        """
        if timeout_s is not None and not (is_span(timeout_s) or (timeout_s == 0 and timeout_s is not False)):
            raise ArgumentError(argument="timeout_s", value=timeout_s, wanted="a number of seconds from 0, or None")
        with self._open() as core:
            before, pool = core.state.seq, core.pool
            summarizing.ask(core, early=True)
        if pool is None:
            return 0
        pool.finish(timeout_s, self._core.key)
        return sum(not event.data["reason"] for event in self.events("summary_prepared", before))

    def undo_fold(self) -> Fold:
        """Bring the pages of the last fold back into view.

        ``MemciError`` where there is none to undo, ``ConflictError`` also where somebody else folded, or undid it, meanwhile.
        """
        with self._open() as core:
            last = core.state.last_fold
            return self._run(lambda core: folding.undo_fold(core, last))

    def rewind(self, address: str) -> None:
        """Go on before an entry, such as ``usr-12/3``: it and all that follows is gone from view and stays in the journal.

        ``PageNotFoundError`` for no entry or a system message, ``ConflictError`` also where others put another entry there.
        """
        with self._open():
            seq = self._run(lambda core: rewinding.entry_seq(core, address))
            self._run(lambda core: rewinding.rewind(core, address, seq))

    def checkpoint(
        self,
        label: str,
        *,
        kind: CheckpointKind | str = "manual",
        ttl_turns: int | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        """Note that the session can come back to where it is: ``manual``, or of another kind.

        The kinds are start, end, milestone, mode_switch, approval (before one is asked for) and recovery. After *ttl_turns* it is
        listed no more. *variables* of the application, JSON values by name, 64 kB at most, come back with ``checkpoints``; slots
        are restored with the session. ``ArgumentError`` for what is none.
        """
        return self._run(lambda core: checkpointing.make_checkpoint(core, label, kind, ttl_turns, variables))

    def restore_checkpoint(self, checkpoint_id: str) -> Checkpoint:
        """Go on from a checkpoint, or raise ``InvalidIdError``; return one made just before, to take this back. O(history)."""
        return self._run(lambda core: checkpointing.restore_checkpoint(core, checkpoint_id))

    def begin(self, metadata: Mapping[str, Any] | None = None, config: Mapping[str, object] | None = None) -> None:
        """Begin the session, as ``describe`` and ``configure`` do with what is given here, all or none.

        A session also begins with its first message. Of several who begin one of the same id at once, on any store, one does:
        ``ConflictError`` where it has begun, whatever ``on_conflict`` says.
        """
        with self._open() as core:
            listing.begin(core, metadata or {}, config or {})

    def configure(self, /, preset: Preset | None = None, **config: Mapping[str, object]) -> None:
        """Choose settings for this session, which win over those of whatever engine opens it, from now on.

        *config* are sections as a YAML file has them, such as ``active={"max_pages": 8}``, over what was chosen before, after
        which a *preset* begins anew. It is an event: earlier windows render as they were, a fork takes it along, and
        ``restore_checkpoint`` goes back to what was chosen then. The window changes at once, folds come as ever. ``ConfigError``
        names what cannot be, and keys that a session has of its engine, such as format, counter and store.
        """
        given: dict[str, object] = {**config} if preset is None else {"preset": preset, **config}
        self._run(lambda core: core.choose(given))

    def set_system(self, messages: Sequence[MessageLike]) -> None:
        """Replace the system part by these system or developer messages; where it says the same already, nothing is written."""
        several = as_list(messages)
        self._run(lambda core: appending.set_system(core, several))

    def begin_page(self, name: str | None = None) -> str:
        """Open a page, which begins a turn, and return its index; an open page without entries only takes the name."""
        return self._run(lambda core: appending.begin_page(core, name))

    @cached_property
    def slots(self) -> SessionSlots:
        """Named texts near the end of the window, such as open files, errors or a goal, which the application refreshes."""
        return SessionSlots(self._run)

    @cached_property
    def toolbox(self) -> "TreeToolbox":
        """The tools that find pages, bring them back, and edit the tree where segments permit it.

        ``.openai()``, ``.responses()`` and ``.anthropic()`` are their schemas; ``.offer(names)`` leaves some out.
        """
        from memci.engine.sharing.tools import SharedToolbox  # noqa: PLC0415 (for those who offer tools)

        return SharedToolbox(self._open, self._core, self, read_only=self._core.read_only)

    def handle_tool_call(self, call: MessageLike) -> dict[str, Any]:
        """Carry out a native tool call of any format, and return the message to append, in the format of the call.

        It is a dict, or the object of a provider's SDK, else ``InvalidMessageError``. What the model did wrong is in the message.
        """
        return self.toolbox.handle(call)

    def attp_prompt(self, lang: Literal["en", "zh"] = "en") -> str:
        """Return the system prompt that tells a model of ATTP and of the session's tools."""
        from memci.attp.prompt import prompt  # noqa: PLC0415 (as above)

        return prompt(self.toolbox, lang)

    def attp(self, text: str, call_id: str | None = None, *, calls_left: int | None = None) -> "Result":
        """Carry out a model's reply in ATTP, given whole; whatever the model did wrong is in the result.

        ``result.message()`` is the message to append, unless ``result.answer`` is what the model says to the user, without a
        headline; append the reply itself as it came. The journal
        notes it: a user's message is taken for an answer of ATTP only if it is one of the latest that this gave. The same reply
        under the same *call_id* runs once; a retry gets the stored result. *calls_left*, this one included, are the replies of
        this turn that may call tools: at 1 the answer says that it was the last, at 0 nothing is run and it says why.
        ``ArgumentError`` for a wrong type.
        """
        if calls_left is not None and (type(calls_left) is not int or calls_left < 0):
            raise ArgumentError(argument="calls_left", value=calls_left, wanted="a whole number from 0, or None")
        if self._runtime is None:
            from memci.attp.runtime import Runtime  # noqa: PLC0415 (as above)

            self._runtime = Runtime(self.toolbox)
        result = self._runtime.refuse(text) if calls_left == 0 else self._runtime.run(text, call_id)
        if result.answer is None:
            result = attrs.evolve(result, last=calls_left == 1)
            with self._open() as core:
                appending.note_answer(core, result.message())
        elif result.reply is not None:
            result = attrs.evolve(result, reply=attrs.evolve(result.reply, answer=parted(result.reply.answer)[0]))
        return result

    def report_usage(self, usage: object = None, *, prompt_tokens: int | None = None) -> Calibration:
        """Calibrate the counter by what the provider counted for the last window, and return what came of it.

        *usage* is that of the provider's answer, as its SDK gives it or as a dict (cached tokens count as well); or
        *prompt_tokens* are those of the whole prompt. ``ConfigError`` for no usage, or no number above 0. A report that cannot be
        about that window changes nothing. One makes windows smaller at once, but never so small that no message fits; two that
        agree make them larger. An exact counter's count is never made less.
        """
        return self._run(lambda core: calibrating.report_usage(core, usage, prompt_tokens))

    def erase(self, index: str | int) -> Receipt:
        """Take what a page holds out of everything that is stored: journal, page files, contents entries, snapshots, index.

        The page keeps its index and its place, its messages say ``[erased]``, in earlier windows too (``render``), and the
        journal stays checkable. Other processes load the session again at their next refresh. Forks that hold the page, and
        sessions that may have copies, are named (``Engine.erase`` erases there too). O(history). After ``UnavailableError``,
        erase again: that does the rest. ``"slots"`` stands for all that slots and extra texts of windows ever said: names stay.
        """
        is_own = not isinstance(index, str) or (index != SLOTS and not is_foreign(index))
        name = pages.page_index(index) if is_own else str(index)
        return self._run(lambda core: erase(core, name))

    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command, again where somebody else wrote first and the settings say so."""
        with self._core.lock:
            core = self._checked()
            return core.run(command, core.config.on_conflict)

    @contextmanager
    def _open(self) -> Iterator[Core]:
        with self._core.lock:
            yield self._checked()

    def _checked(self) -> Core:
        """Return the core, whose lock is held, where nobody closed it."""
        if self._closed or self._core.closed:
            message = f"session {shown(self._core.session_id)} was closed: open it again with engine.session"
            raise SessionClosedError(message)
        if self._core.idle is None:
            self._wake(self._core)
        self._core.idle = False
        self._core.used_at = monotonic()
        return self._core
