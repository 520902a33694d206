"""A session: one conversation, and all that can be done with it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from memci.archive.checkpoint import Checkpoint, CheckpointKind
from memci.archive.contents import ContentsPage
from memci.archive.page_facts import PageFacts, PageState
from memci.chapters.page import Entry, Page
from memci.engine import appending, checkpointing, commands, folding, pages, recalling, rewinding
from memci.engine.config import Config
from memci.engine.core import Core
from memci.engine.erasing import Receipt, erase
from memci.engine.explain import Explanation, explain
from memci.engine.listing import page_range, page_state
from memci.engine.monitor import Fold, Notice
from memci.engine.searching import Hit, search
from memci.engine.verify import Report, verify
from memci.engine.window import Window, make_window, render_at
from memci.errors import ConfigError, SessionClosedError, shown

if TYPE_CHECKING:
    from memci.attp.result import Result
    from memci.attp.runtime import Runtime
    from memci.attp.toolbox import Toolbox

OnConflict = Literal["raise", "retry"]


class Session:
    """A handle on one conversation. Threads may share it: each call holds the session's one lock.

    Handles of one engine on the same id share the conversation; each is closed for itself. Every call but ``close`` raises
    ``SessionClosedError`` on a closed handle, and every call that writes raises ``ConflictError`` when another process wrote
    first (``refresh`` brings that in; reading facts of pages raises it too), ``UnavailableError`` when the store fails, and
    ``PermissionDeniedError`` on an engine that only reads. Page indexes are text such as ``usr-12``, or the number alone.
    """

    def __init__(self, core: Core, release: Callable[["Session", Core], None]) -> None:
        self._core = core
        self._release = release
        self._closed = False
        self._toolbox: Toolbox | None = None
        self._runtime: Runtime | None = None

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
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
        """The settings in force, as the journal holds them: those of the process that wrote last; before any event this one's.

        Where sessions are stored, and how safely, is no part of them and has its defaults here.
        """
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
            return core.state.archive.contents

    def append(
        self, message: Mapping[str, Any], *, at: object = None, key: str | None = None, on_conflict: OnConflict = "raise"
    ) -> Entry:
        """Take a message in, and return its entry once the message is safe.

        Args:
            message: A message in the session's wire format; it is copied.
            at: When it was said: a datetime or ISO 8601 text, taken as UTC when it names no zone; now by default.
            key: Idempotency key: repeating the command with it gives the first answer again.
            on_conflict: ``retry`` refreshes and appends again, at the end, when somebody else wrote first.

        Raises:
            InvalidMessageError: It was refused, and why; nothing was stored.
            ConflictError: Somebody else wrote first, or the key was used for another message.
        """
        return self.extend([message], at=at, key=key, on_conflict=on_conflict)[0]

    def extend(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        at: object = None,
        key: str | None = None,
        on_conflict: OnConflict = "raise",
    ) -> list[Entry]:
        """Take messages in, all or none, in one commit, and return their entries; see ``append``. O(messages + visible)."""
        if on_conflict not in ("raise", "retry"):
            message = f"{on_conflict!r} is not known: give raise or retry"
            raise ConfigError(message, path="on_conflict")
        with self._open() as core:
            several = appending.as_list(messages)
            return appending.append(core, several, at=at, key=key, retry=on_conflict == "retry") if several else []

    def refresh(self) -> None:
        """Apply what others wrote since. O(what they wrote)."""
        with self._open() as core:
            core.refresh()

    def window(self, budget: int | None = None, tools: Sequence[Mapping[str, Any]] | None = None) -> Window:
        """Return what the next call sends: it fits, or ``BudgetError`` says which part is too large. O(visible).

        While it does not fit: completed pages fold, then the contents page shrinks, recalled pages fade, and large entries are
        shown as stubs.

        Args:
            budget: Tokens it may hold; by default the configured window without its reserve.
            tools: Tool schemas that are sent with it; their tokens count.

        Raises:
            BudgetError: It does not fit, with the tokens by part; the session goes on.
        """
        with self._open() as core:
            return make_window(core, budget, tools)

    def render(self, at: int) -> Window:
        """Return the window as it was after the event *at*, byte for byte. Costs a snapshot and the events behind it.

        Raises:
            ConfigError: There is no such event.
        """
        with self._open() as core:
            if type(at) is not int or not 0 <= at <= core.state.seq:
                message = f"there is no event {shown(at)}: the session is at {core.state.seq}"
                raise ConfigError(message, path="at")
            return render_at(core, at)

    def pages(self, state: PageState | str | None = None) -> list[PageFacts]:
        """Return the facts of all pages, or of those in a state, oldest first, system pages included. O(pages)."""
        wanted = None if state is None else page_state(state)
        with self._open() as core:
            return [facts for facts in core.all_facts() if wanted is None or facts.state is wanted]

    def page_range(self, start: int, limit: int) -> tuple[list[PageFacts], int]:
        """Return the facts of at most *limit* pages behind the first *start*, oldest first, and how many pages there are."""
        with self._open() as core:
            return page_range(core, start, limit)

    def page(self, index: str | int) -> Page:
        """Return a page with all its messages, or the list of a directory; it does not count as a recall. O(its size).

        Raises:
            PageNotFoundError: No page has this index.
        """
        with self._open() as core:
            return pages.load(core, pages.page_index(index))

    def facts(self, index: str | int) -> PageFacts:
        """Return the facts of one page. O(1).

        Raises:
            PageNotFoundError: No page has this index.
        """
        with self._open() as core:
            return pages.get_facts(core, pages.page_index(index))

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield every message of the conversation, in order, page by page. Messages that were rewound are not there."""
        for facts in self.pages():
            yield from self.page(facts.index).messages

    def recall(self, index: str | int) -> Page:
        """Bring an archived page back into the window for some turns, and return it; of a directory, the list of its pages.

        O(its size).

        Raises:
            PageNotFoundError: No page has this index.
            PageEvictedError: The contents page lists it no more: ``search`` finds it, ``restore`` puts it back.
        """
        with self._open() as core:
            return recalling.recall(core, pages.page_index(index))

    def fade(self, index: str | int) -> None:
        """Let a recalled page leave the window now."""
        with self._open() as core:
            recalling.fade(core, pages.page_index(index))

    def evict(self, index: str | int) -> None:
        """Take a page's entry out of the contents page; the page stays stored and searchable."""
        with self._open() as core:
            recalling.evict(core, pages.page_index(index))

    def restore(self, index: str | int) -> None:
        """Put an evicted page's entry back into the contents page."""
        with self._open() as core:
            recalling.restore(core, pages.page_index(index))

    def pin(self, index: str | int) -> None:
        """Keep a page's entry from ever being evicted."""
        with self._open() as core:
            recalling.pin(core, pages.page_index(index), pinned=True)

    def unpin(self, index: str | int) -> None:
        """Let a page's entry be evicted again."""
        with self._open() as core:
            recalling.pin(core, pages.page_index(index), pinned=False)

    def fold(self, pages: str | int | Collection[str | int] | None = None) -> Fold:
        """Fold down to the low mark; ``"all"`` folds everything that is complete, indexes name pages.

        Raises:
            SummaryError: A page could not be summarised; nothing was folded.
        """
        with self._open() as core:
            return folding.fold_command(core, pages)

    def undo_fold(self) -> Fold:
        """Bring the pages of the last fold back into view.

        Raises:
            MemciError: There is no fold to undo.
        """
        with self._open() as core:
            return folding.undo_fold(core)

    def rewind(self, address: str) -> None:
        """Go on before an entry, such as ``usr-12/3``: it and all that follows is gone from view and stays in the journal.

        Raises:
            PageNotFoundError: There is no such entry, or it is a system message.
        """
        with self._open() as core:
            rewinding.rewind(core, address)

    def checkpoint(self, label: str, *, kind: CheckpointKind | str = "manual") -> Checkpoint:
        """Note that the session can come back to where it is: ``manual``, or a milestone, mode_switch, approval or recovery."""
        with self._open() as core:
            return checkpointing.make_checkpoint(core, label, kind)

    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first, those included that a restored one took out of view. O(their number)."""
        with self._open() as core:
            return checkpointing.checkpoints(core)

    def restore_checkpoint(self, checkpoint_id: str) -> Checkpoint:
        """Go on from a checkpoint, and return one that was made just before: restoring that one takes this back. O(history).

        Raises:
            InvalidIdError: There is no such checkpoint.
        """
        with self._open() as core:
            return checkpointing.restore_checkpoint(core, checkpoint_id)

    def set_system(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Replace the system part by these system or developer messages."""
        with self._open() as core:
            commands.set_system(core, messages)

    def begin_page(self, name: str | None = None) -> str:
        """Open a page, which begins a turn, and return its index; an open page without entries only takes the name."""
        with self._open() as core:
            return commands.begin_page(core, name)

    def search(
        self,
        query: str,
        limit: int = 10,
        include_visible: bool = False,  # noqa: FBT001, FBT002 (the published signature)
    ) -> list[Hit]:
        """Return the best pages for some words, best first; any text is a query, and none of it is syntax.

        Args:
            query: Words, in any language.
            limit: At most so many.
            include_visible: Whether pages that stand in the window are searched too.
        """
        with self._open() as core:
            return search(core, query, limit=limit, include_visible=include_visible)

    @property
    def toolbox(self) -> "Toolbox":
        """The tools that bring pages back: ``.openai()``, ``.responses()`` and ``.anthropic()`` are their schemas."""
        if self._toolbox is None:
            from memci.engine.recall_tools import make_toolbox  # noqa: PLC0415 (for those who offer tools)

            self._toolbox = make_toolbox(self)
        return self._toolbox

    def handle_tool_call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a native tool call of any format, and return the message to append, in the format of the call.

        What the model did wrong is in the message; nothing is raised for it.

        Raises:
            InvalidMessageError: It is no tool call of any format.
        """
        from memci.engine.recall_tools import handle_tool_call  # noqa: PLC0415 (as above)

        return handle_tool_call(self.toolbox, call)

    def attp_prompt(self, lang: Literal["en", "zh"] = "en") -> str:
        """Return the system prompt that tells a model of ATTP and of the session's tools."""
        from memci.attp.prompt import prompt  # noqa: PLC0415 (as above)

        return prompt(self.toolbox, lang)

    def attp(self, text: str, call_id: str | None = None) -> "Result":
        """Carry out a model's reply in ATTP; whatever the model did wrong is in the result.

        Args:
            text: The reply, whole.
            call_id: The same reply under the same id runs once; a retry gets the stored result.
        """
        if self._runtime is None:
            from memci.attp.runtime import Runtime  # noqa: PLC0415 (as above)

            self._runtime = Runtime(self.toolbox)
        return self._runtime.run(text, call_id)

    def explain(self, index: str | int) -> Explanation:
        """Say why a page is where it is."""
        with self._open() as core:
            return explain(core, pages.page_index(index))

    def report_usage(self, *, prompt_tokens: int) -> None:
        """Calibrate the counter by what the provider counted for the last window.

        Raises:
            ConfigError: It is not a number above 0, or no window was asked for yet.
        """
        with self._open() as core:
            commands.report_usage(core, prompt_tokens)

    def observe(self, callback: Callable[[Notice], None]) -> None:
        """Call *callback* after each fold, eviction, recall and zone change. It runs within the session's lock.

        Raises:
            ConfigError: It cannot be called.
        """
        with self._open() as core:
            core.monitor.add(callback)

    def verify(self) -> Report:
        """Compare the journal with page files, snapshots and index. O(history)."""
        with self._open() as core:
            return verify(core)

    def erase(self, index: str | int) -> Receipt:
        """Take what a page holds out of everything that is stored: journal, page files, contents entries, snapshots, index.

        The page keeps its index and its place, its messages say ``[erased]``, in earlier windows too (``render``), and the
        journal stays checkable. Other processes load the session again at their next refresh. Forks that hold the page are
        named (``Engine.erase`` erases there too). If it raises, erase again: that does the rest. O(history).

        Raises:
            PageNotFoundError: No page has this index.
            UnavailableError: It is not known to be done.
        """
        with self._open() as core:
            return erase(core, pages.page_index(index))

    @contextmanager
    def _open(self) -> Iterator[Core]:
        with self._core.lock:
            if self._closed or self._core.closed:
                message = f"session {self._core.session_id!r} was closed: open it again with engine.session"
                raise SessionClosedError(message)
            yield self._core
