"""Erasing a page: its content leaves the journal and all that was made of it, and the rest of the history stays checkable."""

import attrs

from memci.chapters.message_list import MessageNode
from memci.chapters.page import Page
from memci.engine import pages
from memci.engine.core import Core
from memci.engine.events import MessageAppended, PageErased, from_record
from memci.engine.monitor import logger
from memci.engine.page_codec import file_name, page_file
from memci.engine.redaction import Redaction
from memci.engine.time_events import ForkMade
from memci.errors import ConflictError, StoreError
from memci.messages import codec

MOST_ATTEMPTS = 4
"""How often erasing begins again because others changed the page itself meanwhile."""

MOST_COMMITS = 500
"""How often the last event is tried because others wrote meanwhile: each costs what they wrote."""


@attrs.frozen(kw_only=True)
class Receipt:
    """That a page was erased.

    Attributes:
        session: The session's id.
        page: The page's index.
        seq: Sequence number of the event that says so.
        records: How many records of the journal hold something else since.
        files: Page files that were removed or written anew.
        forks: Ids of the forks that took the page over, each a whole copy that has to be asked for itself.
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
    erasing again does the rest. Others may go on writing meanwhile.

    Raises:
        PageNotFoundError: No page has this index, in view or not.
        ConflictError: Others wrote in between too often.
        UnavailableError: It is not known to be done; erase again.
    """
    for _ in range(MOST_ATTEMPTS - 1):
        try:
            return _erase(core, index)
        except ConflictError:
            core.refresh()
    return _erase(core, index)


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
    except StoreError as error:
        logger().warning("session %r: copies of what was erased may be left: %s", core.session_id, error)


def stray_files(core: Core, index: str) -> list[str]:
    """Return the names of the page's files that hold something else than the journal: what was erased there."""
    return [name for name in _files_of(core, index) if not _is_of_journal(core, core.store.pages.find(name))]


def _erase(core: Core, index: str) -> Receipt:
    core.configure()
    stored = _stored_as(core, index)
    redaction = Redaction(
        page=index,
        wire=core.state.wire,
        count=core.count,
        count_text=core.count_text,
        sha256=_file(core, index)[1] if stored[0] else "",
        revision=stored[1],
    )
    scan = _Scan(core, redaction)
    bodies = scan.bodies()
    if core.facts(index) is None and (not bodies or index in redaction.directories):
        pages.get_facts(core, index)  # says what it is instead
    names = tuple(_files_of(core, index))
    _forget(core)
    core.store.pages.remove(names)
    event = _redact(core, scan, bodies, stored)
    _forget(core)
    core.reload()
    _tidy_files(core, index)
    core.write_snapshot()
    return Receipt(
        session=core.session_id,
        page=index,
        seq=core.state.erased_seq,
        records=event.records,
        files=names,
        forks=tuple(dict.fromkeys(scan.forks)),
        at=event.at,
    )


def _redact(core: Core, scan: "_Scan", bodies: dict[int, bytes], stored: tuple[str, int]) -> PageErased:
    """Redact the journal, what others append meanwhile too, and commit the event that says so.

    Raises:
        ConflictError: The page itself changed meanwhile, or others wrote in between too often.
    """
    records = 0
    for _ in range(MOST_COMMITS):
        core.store.journal.redact(bodies)
        records += len(bodies)
        event = PageErased(page=scan.redaction.page, records=records, at=core.now())
        try:
            core.commit([event])
        except ConflictError:
            core.refresh()
            if _stored_as(core, scan.redaction.page) != stored:
                raise
            bodies = scan.bodies()
        else:
            return event
    raise core.conflict()


def _stored_as(core: Core, index: str) -> tuple[str, int]:
    facts = core.facts(index)
    return ("", 0) if facts is None else (facts.sha256, facts.revision)


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
    """Leave the one file that a page's facts name, as the journal makes it, and none where it is not archived."""
    sha256, revision = _stored_as(core, index)
    name = file_name(index, revision) if sha256 else ""
    core.store.pages.remove([each for each in _files_of(core, index) if each != name])
    if sha256:
        data, _ = page_file(pages.rebuild(core, index))
        if core.store.pages.find(name) != data:
            core.store.pages.put({name: data})


@attrs.define
class _Scan:
    """Goes through the journal, and on where it ended when others wrote more.

    Attributes:
        core: The session.
        redaction: Takes the page out.
        forks: Ids of the forks that were made with the page, in order.
    """

    core: Core
    redaction: Redaction
    forks: list[str] = attrs.field(factory=list)
    _seq: int = 0
    _begun: int | None = None

    def bodies(self) -> dict[int, bytes]:
        """Return what is left of the records that hold something of the page, of those that were not seen yet."""
        bodies: dict[int, bytes] = {}
        for record in self.core.store.journal.read(self._seq):
            event = from_record(record)  # refuses a kind that is not known: nobody could tell what is in it
            body = codec.decode(record.body)
            left = self.redaction.event(record.kind, body)
            if left != body:
                bodies[record.seq] = codec.encode(left)
            if self._begun is None and (record.seq in bodies or body.get("page") == self.redaction.page):
                self._begun = record.seq
            if isinstance(event, ForkMade) and self._begun is not None and self._begun <= event.fork_at:
                self.forks.append(event.session)
            self._seq = record.seq
        return bodies


def _file(core: Core, index: str) -> tuple[bytes, str]:
    """Return the file of an archived page as it will be, with its SHA-256."""
    known = pages.rebuild(core, index)
    page = Page(index=known.index, turn=known.turn, opened_by=known.opened_by)
    for node in known.nodes():
        page.add(MessageNode(message=core.state.wire.erased(node.message), tokens=0, seq=node.seq, at=node.at))
    return page_file(page)
