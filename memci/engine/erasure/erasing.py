"""Erasing a page: its content leaves the journal and all that was made of it, and the rest of the history stays checkable."""

from hashlib import sha256

import attrs

from memci.engine.core.conflict import MOST_ATTEMPTS
from memci.engine.core.core import Core
from memci.engine.core.monitor import logger
from memci.engine.erasure.redaction import Redaction
from memci.engine.history.events import MessageAppended, PageErased, from_record
from memci.engine.history.page_codec import file_name, page_file
from memci.engine.history.time_events import Forked, ForkMade
from memci.engine.reading import pages
from memci.errors import ConflictError, StoreError, UnavailableError
from memci.messages import codec


@attrs.frozen(kw_only=True)
class Receipt:
    """That a page was erased.

    Attributes:
        session: The session's id.
        page: The page's index.
        seq: Sequence number of the event that says so.
        records: How many records of the journal held something of the page, and do not any more; also those that an earlier
            erasing, such as one that failed on the way, took it from.
        files: Page files that the page had or has; what is left of them was written anew.
        forks: Ids of the forks that this session made with the page in it, each a whole copy that has to be asked for itself;
            one may have been deleted since, and leave forks of its own (``Engine.erase`` finds those).
        at: When, in UTC, as ISO 8601.
    """

    session: str
    page: str
    seq: int
    records: int
    files: tuple[str, ...]
    forks: tuple[str, ...]
    at: str


def erase(core: Core, index: str) -> Receipt:
    """Take what a page holds out of everything that is stored of the session. O(history).

    What is derived goes first, then the journal is redacted, and the event that says so comes last: if it does not come to that,
    erasing again does the rest. Others may go on writing meanwhile: what they write is redacted too.

    Raises:
        PageNotFoundError: No page has this index, in view or not; nothing was changed.
        PermissionDeniedError: It is a root.
        UnavailableError: It is not known to be done; erase again.
    """
    pages.refuse_root(index)
    scan = _Scan(core, index)
    bodies = scan.bodies()
    if not scan.redaction.trace.begun:
        raise pages.not_found(index)
    stored = _files_of(core, index)
    names = scan.redaction.files.union(stored)
    _forget(core)
    core.store.pages.remove(stored)
    event, seq = _redact(core, scan, bodies)
    _forget(core)
    core.reload()
    _tidy_files(core, index)
    core.store.drop_unused()
    core.write_snapshot()
    return Receipt(
        session=core.session_id,
        page=index,
        seq=seq,
        records=event.records,
        files=tuple(sorted(names | scan.redaction.files)),
        forks=tuple(scan.forks),
        at=event.at,
    )


def forget_erased(core: Core, after: int) -> None:
    """Remove what this process stored of pages that another one erased in events behind *after*, before it knew of that.

    It has loaded the session again. A store that fails is logged: ``verify`` finds what is left, and ``repair`` removes it.
    """
    try:
        core.store.snapshots.clear()
        core.write_snapshot()
        for record in core.store.journal.read(after):
            event = from_record(record)
            if isinstance(event, PageErased):
                _tidy_files(core, event.page)
        core.store.drop_unused()
    except StoreError as error:
        logger().warning("session %r: copies of what was erased may be left: %s", core.session_id, error)


def stray_files(core: Core, index: str) -> list[str]:
    """Return the names of the page's files that hold something else than the journal: what was erased there."""
    return [name for name in _files_of(core, index) if not _is_of_journal(core, core.store.pages.find(name))]


def _redact(core: Core, scan: "_Scan", bodies: dict[int, bytes]) -> tuple[PageErased, int]:
    """Redact the journal, what others append meanwhile too, and commit the event that says so; return it and its place.

    Raises:
        UnavailableError: Others wrote in between too often.
    """
    page = scan.page
    for _ in range(MOST_ATTEMPTS):
        try:
            core.configure()
            bodies |= scan.bodies()
            if bodies:  # to redact nothing would cost as much, and others go on writing meanwhile
                try:
                    core.store.journal.redact(bodies, scan.former)
                except ConflictError:  # others erase too: what was read must not bring back what they took out
                    scan.begin_again()
                    raise
                finally:
                    bodies = {}
            event = PageErased(page=page, records=scan.redaction.records, at=core.now())
            core.commit([event])
        except ConflictError:
            core.refresh()
        else:
            return event, core.state.seq
    message = (
        f"page {page} of session {core.session_id!r} was taken out of the journal, and others wrote in between each time that "
        "they were to be told: some may still hold it; erase it again"
    )
    raise UnavailableError(message)


def _forget(core: Core) -> None:
    """Remove what holds copies and can be made again."""
    core.store.snapshots.clear()
    core.empty_index()


def _files_of(core: Core, index: str) -> list[str]:
    return sorted(name for name in core.store.pages.names() if name.partition(".")[0] == index)


def _is_of_journal(core: Core, data: bytes | None) -> bool:
    try:
        entries = codec.decode(data or b"")["entries"]
        said = {entry["seq"]: entry["message"] for entry in entries}
    except (ValueError, KeyError, TypeError):
        return False  # damaged: nobody knows what is in it
    for seq, message in said.items():
        event = next((from_record(record) for record in core.store.journal.read(seq - 1, seq)), None)
        if not isinstance(event, MessageAppended) or event.message != message:
            return False
    return True


def _tidy_files(core: Core, index: str) -> None:
    """Write the file that an archived page's facts name as the journal makes it, and remove all that hold something else.

    A file that holds what the journal holds may be one that another process writes for a fold: it stays.

    Raises:
        UnavailableError: Others wrote in between too often.
    """
    for _ in range(MOST_ATTEMPTS):
        try:
            facts = core.facts(index)
            archived = facts is not None and facts.sha256
            name = file_name(index, facts.revision) if facts is not None and archived else ""
            data = page_file(pages.rebuild(core, index))[0] if archived else b""
        except ConflictError:  # the index is that of what others wrote meanwhile
            core.refresh()
            continue
        core.store.pages.remove([each for each in stray_files(core, index) if each != name])
        if archived and core.store.pages.find(name) != data:
            core.store.pages.put({name: data})
        return
    message = (
        f"page {index} of session {core.session_id!r} is erased, but others wrote in between each time that its files were "
        "to be looked at: erase it again"
    )
    raise UnavailableError(message)


@attrs.define
class _Scan:
    """Goes through the journal, and on where it ended when others wrote more.

    Attributes:
        core: The session.
        page: The page's index.
        redaction: Takes the page out.
        forks: Ids of the forks that this session made with the page, in order, each once.
        former: SHA-256 of the bodies that held something of the page, in hex, by sequence number.
    """

    core: Core
    page: str
    redaction: Redaction = attrs.field(init=False)
    forks: dict[str, None] = attrs.field(init=False)
    former: dict[int, str] = attrs.field(init=False)
    _seq: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Begin before the first record."""
        self.begin_again()

    def begin_again(self) -> None:
        """Forget what was read."""
        core = self.core
        self.redaction = Redaction(page=self.page, wire=core.state.wire, count=core.count, count_text=core.count_text)
        self.forks, self.former, self._seq = {}, {}, 0

    def bodies(self) -> dict[int, bytes]:
        """Return what is left of the records that hold something of the page, of those that were not seen yet."""
        bodies: dict[int, bytes] = {}
        for record in self.core.store.journal.read(self._seq):
            event = from_record(record)  # refuses a kind that is not known: nobody could tell what is in it
            body = codec.decode(record.body)
            left = self.redaction.event(record, body)
            if left != body:
                bodies[record.seq] = codec.encode(left)
                self.former[record.seq] = sha256(record.body).hexdigest()
            if isinstance(event, Forked):  # the forks so far are those of the session that this one is a fork of
                self.forks.clear()
            elif isinstance(event, ForkMade) and 0 < self.redaction.trace.begun <= event.fork_at:
                self.forks[event.session] = None
            self._seq = record.seq
        return bodies
