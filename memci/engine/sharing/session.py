"""What a session does for others of its tenant: agents that work together, and whoever goes on from it."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.tree import Origin, Permission
from memci.archive.stores.names import SessionKey, check_identifier
from memci.chapters.address import among
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.core.monitor import logger
from memci.engine.erasure.erasing import Receipt
from memci.engine.history.state import Mount
from memci.engine.reading import pages
from memci.engine.reading.explain import Explanation
from memci.engine.reading.searching import Hit
from memci.engine.reading.session import ReadSession
from memci.engine.sharing import handing, mounting, promoting
from memci.engine.sharing.handing import PARTS, checked_parts, room
from memci.engine.tree import notes
from memci.engine.tree.session import TreeSession
from memci.errors import ArgumentError, MemciError, PageEvictedError, PageNotFoundError, StoreError
from memci.messages import codec

if TYPE_CHECKING:
    from memci.engine.tools.tree_tools import TreeToolbox

_Answer = TypeVar("_Answer")


class SharingSession(ReadSession, TreeSession):
    """The part of a session for those that share its context.

    Pages of a mounted session have addresses such as ``project/usr-12`` here, where ``project`` is the name of the mount:
    ``page``, ``facts``, ``explain``, ``recall``, ``fade``, ``erase`` and the model's tools take them, and so do edits where it is
    ``read_write``.
    """

    _sibling: Callable[[SessionKey], AbstractContextManager["SharingSession"]]  # opens another session of the engine
    _session_ids: Callable[[str], Iterable[str]] | None  # of a tenant's sessions; None for a session alone, such as a draft
    _promoted_turn = -1  # in which was looked whether pages are to be promoted
    _mounts_turn = -1  # in which was looked whether mounted sessions changed

    @property
    @abstractmethod
    def toolbox(self) -> "TreeToolbox":
        """The tools of the session."""

    @abstractmethod
    def recall(self, index: str | int) -> Page:
        """Bring a page back into the window."""

    @abstractmethod
    def fade(self, index: str | int) -> None:
        """Let a recalled page leave the window."""

    @abstractmethod
    def erase(self, index: str | int) -> Receipt:
        """Take what a page holds out of everything that is stored."""

    @property
    @abstractmethod
    def seq(self) -> int:
        """The sequence number of the last event that this process knows."""

    @abstractmethod
    def _open(self) -> AbstractContextManager[Core]:
        """Hold the session's lock."""

    @abstractmethod
    def _run(self, command: Callable[[Core], _Answer]) -> _Answer:
        """Carry out a command."""

    def handoff(
        self, to: "SharingSession | str", share: float = 0.3, include: Collection[str] = PARTS, *, key: str | None = None
    ) -> str:
        """Hand over to another session of the tenant, which can go on from there; return the index of the note that it has then.

        *to* is a session of this engine, or an id. The note stands open in its window, quoted, with this session's id, event and
        checkpoint: goal, outcomes, failures, findings and the last messages, or those that *include* names, in at most a *share*
        of its budget, and of what opened pages may take (``recall.max_share``). This session is mounted there, showing nothing,
        so that pages which the note names can be read and recalled. Both journals have it. After an error, or where the process
        was killed, handing over again with the same *key* does the rest, and writes no second note. ``ArgumentError`` for another
        tenant's session, this one, a key that is none, or a share in which nothing can be said.
        """
        wanted, token = checked_parts(include), handing.checked_key(key)
        self._core.quotas.check(self._core.key.tenant, self._core.config.limits, handing.LEAST_BYTES)
        with self._receiver(to, "to") as other:
            known = other._run(lambda core: handing.find(core, self._core.session_id, token))
            index, origin = (known.index, known.origin) if known else self._hand_over(other, share, wanted, token)
            if origin is None or any(among(page, origin.pages) for page in self._erased_since(origin.seq)):
                other.erase(index)
                return self.handoff(other, share, wanted, key=key)
            other._run(lambda core: handing.show(core, index))
            name = other._core.session_id
        self._run(lambda core: handing.note(core, origin, name, index))
        return index

    def _hand_over(self, other: "SharingSession", share: float, wanted: tuple[str, ...], key: str) -> tuple[str, Origin]:
        """Write the note, and return its index, and of what it was made."""
        run, name = other._run, other._core.session_id
        most, count, seq = *run(lambda core: (room(core, share), core.counter.count)), self.seq
        mounted = next((each for each, mount in other.mounts().items() if mount.session == self._core.session_id), "")
        if not mounted and seq and other._core.config.format == self._core.config.format:
            mounted = other.mount(self, capacity_tokens=0)
        made = self._run(lambda core: handing.prepare(core, name, wanted, most, count, key=key, seq=seq, mounted=mounted))
        return run(lambda core: handing.receive(core, made)), made.origin

    def _erased_since(self, seq: int) -> list[str]:
        """Return which pages were erased here after an event: what was read of them meanwhile is to be erased too."""
        return self._run(lambda core: pages.erased_since(core, seq))

    def mount(
        self,
        other: "SharingSession | str",
        *,
        segment: str | None = None,
        permission: str = "read_only",
        capacity_tokens: int | None = None,
        only: str | None = None,
    ) -> str:
        """Show another session's contents page in this one's window, after its own, and return the name that it has here.

        *other* is a session of this engine and tenant, or an id; *segment* is the name, by default the id, or ``mount-1`` where
        that is no name. What it shows, entries of its pages and what was made there, is at most *capacity_tokens*, by default a
        tenth of the budget, the newest in full; 0 shows nothing, and pages can be read all the same. With *only*, a segment of
        the other session, no other page is shown or read; its system part never is. It is brought up to date as a turn begins.

        ``read_only`` permits to read and recall its pages, ``read_write`` also notes, directories and moves, which are events of
        the session that owns them, ``system_managed`` nothing but what is shown. Both journals have it; mounting again changes
        how. ``ArgumentError`` for what cannot be mounted so. O(what the other one shows).
        """
        with self._receiver(other, "other") as there:
            session_id = there._core.session_id
            if isinstance(other, str) and not there.seq:
                raise ArgumentError(argument="other", value=other, wanted="the id of a session that has begun, or a Session")
            name, permitted, capacity = self._run(
                lambda core: mounting.checked(core, segment, session_id, permission, capacity_tokens)
            )
            if (kind := there._core.config.format) != (own := self._core.config.format):
                raise ArgumentError(argument="other", value=session_id, wanted=f"a session in the format {own}, not {kind}")
            chosen = there._run(lambda core: mounting.checked_only(core, only))
            noted = there._run(lambda core: mounting.note(core, self._core.session_id, name, permitted))
            mount = attrs.evolve(
                _NONE, session=session_id, permission=permitted, capacity_tokens=capacity, only=chosen, noted=noted
            )
            self._show(name, mount, there)
        return name

    def unmount(self, name: str) -> None:
        """Show a mounted session no more; what was recalled of it leaves the window."""
        self._run(lambda core: mounting.unmount(core, name))

    def mounts(self) -> dict[str, Mount]:
        """Return which sessions are mounted, by the name that each has here, in the order in which they came."""
        return self._run(lambda core: dict(core.state.mounts))

    def promote(self, index: str | int, title: str | None = None) -> str:
        """Write what a page says into the tenant's long-term memory, and return the address of the note, ``memory/note-3``.

        A note of the session that ``memory.session`` names, called as the page or *title*, with its provenance: who said what, in
        600 tokens at most. The same page again gives the same note, with the title where one is given; one that says more since
        then a new one, in the place of the old. Both journals have it. ``ArgumentError`` in that session itself, and for a page
        that was erased.
        """
        name = pages.page_index(index)
        memory = self._core.config.memory
        made = self._run(lambda core: promoting.prepare(core, name, title))
        self._core.quotas.check(self._core.key.tenant, self._core.config.limits, len(made.detail))
        with self._receiver(memory.session, "memory.session") as there:
            note = there._run(lambda core: promoting.write(core, made, is_named=title is not None))
            if made.page in self._erased_since(made.origin.seq):
                there.erase(note)
            for old in there._run(lambda core: promoting.surplus(core, memory)):
                there.remove_page(old)
        self._run(lambda core: promoting.note(core, made, memory.session, note))
        return f"{memory.session}/{note}"

    def _promote_due(self) -> None:
        """Promote what the rules of the settings name, once a turn; a failure is logged, and tried again in the next one."""
        rules, turn = self._core.config.memory, self._core.state.turn
        if turn == self._promoted_turn:
            return
        self._promoted_turn = turn
        if self._core.session_id == rules.session or self._core.read_only:
            return
        for index in self._run(promoting.due):
            try:
                self.promote(index)
            except MemciError as error:
                told, kind = "session %r: page %s is promoted later: %s", type(error).__name__
                logger(self._core.key).warning(told, self._core.session_id, index, kind)

    def page(self, index: str | int) -> Page:
        """Return a page with all its messages; it does not count as a recall. O(its size).

        A root (``usr-0``) or a range (``usr-12..15``) has no messages: ``.pages`` are the facts of its pages, oldest first,
        without those that are evicted and in no window.
        """
        with self._owner(index) as (there, name, own, _):
            if there is None:
                return super().page(index)
            page = there.page(own)
            if pages.is_list(own):
                return page
            copy = page.copy()
        copy.index = f"{name}/{own}"
        return copy

    def facts(self, index: str | int) -> PageFacts:
        """Return the facts of one page, O(1); or of a root or a range of pages, O(its pages)."""
        with self._owner(index) as (there, name, own, _):
            return super().facts(index) if there is None else attrs.evolve(there.facts(own), index=f"{name}/{own}")

    def explain(self, index: str | int) -> Explanation:
        """Say why a page, a root or a range of pages is where it is; of a mounted session, also whose it is."""
        with self._owner(index) as (there, name, own, mount):
            if there is None:
                return super().explain(index)
            told, address = there.explain(own), f"{name}/{own}"
        attached = self._run(lambda core: address in core.state.recalled)
        whose = f"it is page {own} of session {mount.session!r}, mounted as {name}, {mount.permission}"
        return attrs.evolve(
            told,
            index=address,
            state=PageState.ATTACHED if attached else told.state,
            in_window=attached,
            in_contents=f"[{address}]" in mount.text,
            reasons=(f"{whose}; what is shown of it is as of event {mount.seq} there", *told.reasons),
        )

    def create_detail_page(self, name: str, description: str, detail: str, parent: str | int | None = None) -> str:
        """Write a note, a page with a text of its own, and return its index, such as ``note-1``.

        The contents page lists it in its *parent*, a directory or a root, by default that of ``usr``; ``recall`` shows what it
        says. ``ArgumentError`` also for a *detail* that is no text, empty, or longer than ``limits.message_bytes``.
        """
        with self._owner(parent, writes=True) as (there, mounted, own, _):
            if there is None:
                return super().create_detail_page(name, description, detail, parent)
            origin = Origin(session=self._core.session_id, pages=(), seq=self.seq)
            given = (name, description, detail, own)
            return f"{mounted}/{there._run(lambda core: notes.write_note(core, *given, by='application', origin=origin))}"

    def create_contents_page(
        self, name: str, description: str = "", parent: str | int | None = None, children: Sequence[str | int] = ()
    ) -> str:
        """Make a directory, move pages into it, and return its index. Without a *parent* it stands at the root of ``usr``."""
        with self._owner(parent, writes=True) as (there, mounted, own, _):
            if there is None:
                return super().create_contents_page(name, description, parent, children)
            inner = [self._inner(mounted, child) for child in children]
            return f"{mounted}/{there.create_contents_page(name, description, own, inner)}"

    def move_page(self, source: str | int, target: str | int) -> None:
        """List a page in another directory, with all that is in it; a root as the *target* lists it where it came.

        The order of messages stays as it is.
        """
        with self._owner(source, writes=True) as (there, mounted, own, _):
            if there is None:
                if self._mounted(target) is not None:
                    raise ArgumentError(argument="target", value=target, wanted="a directory of the session that has the page")
                return super().move_page(source, target)
            return there.move_page(own, self._inner(mounted, target))

    def update_page(self, index: str | int, *, name: str | None = None, description: str | None = None) -> None:
        """Give a note or a directory another name or description; ``None`` keeps what it has."""
        with self._owner(index, writes=True) as (there, _, own, _):
            if there is None:
                return super().update_page(index, name=name, description=description)
            return there.update_page(own, name=name, description=description)

    def remove_page(self, index: str | int) -> None:
        """Take a page, a note or a directory out of the contents page, with all that is in it; search finds it still."""
        with self._owner(index, writes=True) as (there, _, own, _):
            return super().remove_page(index) if there is None else there.remove_page(own)

    def search_mounts(
        self, query: str, limit: int = 10, *, since: str | date | None = None, until: str | date | None = None
    ) -> list[list[Hit]]:
        """Return what ``search`` finds in each mounted session that may be read, the best first; hits have addresses of here."""
        found = list[list[Hit]]()
        for name, mount in self.mounts().items():
            if mount.permission == Permission.SYSTEM_MANAGED:
                continue
            try:
                with self._sibling(SessionKey(self._core.key.tenant, mount.session)) as there:
                    there._run(partial(mounting.check, name=name, mount=mount))
                    hits = there.search(query, limit, include_visible=True, since=since or None, until=until or None)
                    listed = [hit for hit in hits if there._run(partial(mounting.shows, mount=mount, index=hit.index))]
            except (StoreError, PageNotFoundError) as error:  # it keeps nobody from finding what is elsewhere
                logger(self._core.key).warning("session %r: mount %r is not searched: %s", self._core.session_id, name, error)
                continue
            here = f"{name}/"
            found.append(
                [attrs.evolve(hit, session=mount.session, index=here + hit.index, entry=here + hit.entry) for hit in listed]
            )
        return found

    def _read_mounted(self, address: str, start: int, limit: int) -> dict[str, Any]:
        """Return what the tool ``read_page`` answers for a page of a mounted session, or an entry, ``project/usr-12/3``."""
        name, _, rest = address.partition("/")
        page, _, position = rest.partition("/")
        with self._owner(f"{name}/{page}") as (there, _, own, _):
            assert there is not None
            index = f"{own}/{position}" if position else own
            read: dict[str, Any] = there.toolbox.call("read_page", {"index": index, "start": start, "limit": limit})
        text = mounting.addressed(read["text"], name) if pages.is_list(own) else read["text"]
        return {**read, "index": address, "text": text}

    def _pictures_mounted(self, address: str, reading: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the pictures of what ``read_page`` answered for a page of a mounted session."""
        name, _, rest = address.partition("/")
        with self._owner(f"{name}/{rest.partition('/')[0]}") as (there, *_):
            assert there is not None
            return there.toolbox.pictures("read_page", codec.encode({**reading, "index": rest}).decode())

    def _recalled(self, index: str | int) -> Page | None:
        """Recall a page of a mounted session; ``None`` where the index is one of this session."""
        if self._mounted(index) is None:
            return None
        with self._owner(index) as (there, _, own, _):
            assert there is not None
            seq, page = there.seq, self.page(index)
            if there.facts(own).state is PageState.EVICTED:
                raise PageEvictedError(str(index))
            if pages.is_list(page.index):
                wanted = "one page of a mounted session: a list of its pages is read (read_page, or page())"
                raise ArgumentError(argument="index", value=index, wanted=wanted)
            recalled = self._run(lambda core: mounting.recall(core, page))
            if own in there._erased_since(seq):
                self.erase(page.index)
        return recalled

    def _mounted(self, index: object) -> tuple[str, str] | None:
        if not isinstance(index, str) or "/" not in index:
            return None
        return self._run(lambda core: mounting.parted(core, index))

    @contextmanager
    def _owner(self, index: object, *, writes: bool = False) -> Iterator[tuple["SharingSession | None", str, str, Mount]]:
        """Yield the session that a page of a mount belongs to, the mount's name, the index there, and the mount."""
        if (found := self._mounted(index)) is None:
            yield None, "", "", _NONE
            return
        name, inner = found
        mount = self.mounts()[name]
        if writes:
            mounting.refuse_write(name, mount)
        with self._sibling(SessionKey(self._core.key.tenant, mount.session)) as there:
            there._run(lambda core: mounting.check(core, name, mount))
            yield there, name, there._run(lambda core: mounting.refuse(core, mount, inner)), mount

    def _inner(self, mounted: str, index: object) -> str:
        """Return the index of a page of the mount in the session that owns it."""
        found = self._mounted(index)
        if found is None or found[0] != mounted:
            raise ArgumentError(argument="index", value=index, wanted=f"a page of the same session, such as {mounted}/usr-12")
        return found[1]

    def _show_mounts(self) -> None:
        """Bring what is shown of mounted sessions up to date, once a turn. O(mounts), and what those show that changed."""
        with self._core.lock:
            mounts, turn, read_only = self._core.state.mounts, self._core.state.turn, self._core.read_only
        if not mounts or turn == self._mounts_turn or read_only:
            return
        self._mounts_turn = turn
        for name, mount in list(mounts.items()):
            if not mount.capacity_tokens:
                continue
            try:
                with self._sibling(SessionKey(self._core.key.tenant, mount.session)) as there:
                    there._run(Core.refresh)
                    if there.seq != mount.seq:
                        there._run(partial(mounting.check, name=name, mount=mount))
                        self._show(name, mount, there)
            except (StoreError, PageNotFoundError) as error:  # no other session keeps this one from its window
                logger(self._core.key).warning("session %r: mount %r shows what it did: %s", self._core.session_id, name, error)

    def _show(self, name: str, mount: Mount, there: "SharingSession") -> None:
        count = self._core.counter.count
        found = there._run(lambda core: mounting.read(core, name, mount, count))
        self._run(lambda core: mounting.show(core, name, mount, found))
        for page in there._erased_since(found.seq):
            with suppress(PageNotFoundError):
                self.erase(f"{name}/{page}")

    @contextmanager
    def _receiver(self, to: "SharingSession | str", argument: str) -> Iterator["SharingSession"]:
        key, to = self._core.key, getattr(to, "_twin", to)  # an asynchronous session stands for its own
        if isinstance(to, SharingSession) and to._sibling == self._sibling:
            there = to._core.key
        else:
            there = SessionKey(key.tenant, check_identifier(to, "session id"))
        if there == key or there.tenant != key.tenant:
            raise ArgumentError(argument=argument, value=to, wanted="another session of the same engine and tenant, or its id")
        with self._sibling(there) as other:
            yield other


_NONE = Mount(session="", permission="", capacity_tokens=0, only="", seq=0, text="", tokens=0)
