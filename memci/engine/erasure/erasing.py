"""Erasing a page: its content leaves the journal and all that was made of it, and the rest of the history stays checkable."""

from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

import attrs

from memci.engine.core.core import MOST_ATTEMPTS, Core
from memci.engine.core.monitor import logger
from memci.engine.erasure.redaction import Redaction
from memci.engine.history.events import Forked, ForkMade, MessageAppended, PageErased, from_record
from memci.engine.history.page_codec import file_name, page_file
from memci.engine.reading import pages
from memci.errors import ConflictError, StoreError, UnavailableError
from memci.messages import codec

_Answer = TypeVar("_Answer")


@attrs.frozen(kw_only=True)
class Receipt:
    """Proof of an erasure.

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
    """
    pages.refuse_root(index)
    scan = _Scan(core, index)
    bodies = scan.bodies()
    if not scan.redaction.begun:
        raise pages.not_found(index)
    stored = _files_of(core, index)
    names = scan.redaction.files.union(stored)
    _forget(core)
    core.store.pages.remove(stored)
    told = "was taken out of the journal, and others wrote in between each time that they were to be told: some may still hold it"
    event = _repeated(core, lambda: _redact(core, scan, bodies), f"page {index} of session {core.session_id!r} {told}")
    seq = core.state.seq
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
    """Remove what this process stored of pages that another one erased in events after *after*, before it knew of that.

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


def _redact(core: Core, scan: "_Scan", bodies: dict[int, bytes]) -> PageErased:
    """Redact the journal, what others appended meanwhile too, and commit the event that says so."""
    core.configure()
    bodies |= scan.bodies()
    if bodies:  # to redact nothing would cost as much, and others go on writing meanwhile
        try:
            core.store.journal.redact(bodies, scan.former)
        except ConflictError:  # others erase too: what was read must not bring back what they took out
            scan.begin_again()
            raise
        finally:
            bodies.clear()
    event = PageErased(page=scan.page, records=scan.redaction.records, at=core.now())
    core.commit([event])
    return event


def _repeated(core: Core, step: Callable[[], _Answer], problem: str) -> _Answer:
    """Do a step, and again with what others wrote meanwhile, at most ``MOST_ATTEMPTS`` times."""
    for _ in range(MOST_ATTEMPTS):
        try:
            return step()
        except ConflictError:
            core.refresh()
    message = f"{problem}; erase it again"
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
    """

    def file() -> dict[str, bytes]:  # its index may be that of what others wrote meanwhile
        facts = core.facts(index)
        if facts is None or not facts.sha256:
            return {}
        return {file_name(index, facts.revision): page_file(pages.rebuild(core, index))[0]}

    problem = f"page {index} of session {core.session_id!r} is erased, but others wrote in between each time that its files were"
    files = _repeated(core, file, f"{problem} to be looked at")
    core.store.pages.remove([name for name in stray_files(core, index) if name not in files])
    for name, data in files.items():
        if core.store.pages.find(name) != data:
            core.store.pages.put(files)


class _Scan:
    """Goes through the journal, and on where it ended when others wrote more."""

    def __init__(self, core: Core, page: str) -> None:
        self.page = page
        self._core = core
        self.begin_again()

    def begin_again(self) -> None:
        """Forget what was read."""
        core = self._core
        self.redaction = Redaction(page=self.page, wire=core.state.wire, count=core.count, count_text=core.count_text)
        self.forks: dict[str, None] = {}  # that this session made with the page, in order
        self.former: dict[int, str] = {}  # SHA-256 of the bodies that held something of the page, by sequence number
        self._seq = 0

    def bodies(self) -> dict[int, bytes]:
        """Return what is left of the records that hold something of the page, of those that were not seen yet."""
        bodies: dict[int, bytes] = {}
        for record in self._core.store.journal.read(self._seq):
            event = from_record(record)  # refuses a kind that is not known: nobody could tell what is in it
            body = codec.decode(record.body)
            left = self.redaction.event(record, body)
            if left != body:
                bodies[record.seq] = codec.encode(left)
                self.former[record.seq] = sha256(record.body).hexdigest()
            if isinstance(event, Forked):  # the forks so far are those of the session that this one is a fork of
                self.forks.clear()
            elif isinstance(event, ForkMade) and 0 < self.redaction.begun <= event.fork_at:
                self.forks[event.session] = None
            self._seq = record.seq
        return bodies
