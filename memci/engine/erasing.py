"""Erasing a page: its content leaves the journal and all that was made of it, and the rest of the history stays checkable."""

import attrs

from memci.chapters.message_list import MessageNode
from memci.chapters.page import Page
from memci.engine import pages
from memci.engine.core import Core
from memci.engine.events import PageErased, from_record
from memci.engine.page_codec import file_name, page_file
from memci.engine.redaction import Redaction
from memci.engine.time_events import ForkMade
from memci.errors import ConflictError
from memci.messages import codec

MOST_ATTEMPTS = 16
"""How often erasing begins again because others wrote meanwhile."""


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
    erasing again does the rest.

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


def _erase(core: Core, index: str) -> Receipt:
    core.configure()
    facts = core.facts(index)
    revision = facts.revision if facts is not None else 0
    archived = facts is not None and bool(facts.sha256)
    data, sha256 = _file(core, index) if archived else (b"", "")
    redaction = Redaction(
        page=index,
        wire=core.state.wire,
        count=core.count,
        count_text=core.count_text,
        sha256=sha256,
        revision=revision,
    )
    bodies, forks = _bodies(core, redaction)
    if facts is None and not bodies:
        pages.get_facts(core, index)  # says what it is instead
    store = core.store
    stem = index + "."
    names = sorted(name for name in store.pages.names() if name == index or name.startswith(stem))
    _forget(core)
    store.pages.remove(names)
    store.journal.redact(bodies)
    event = PageErased(page=index, records=len(bodies), at=core.now())
    core.commit([event])
    _forget(core)
    if archived:
        store.pages.put({file_name(index, revision): data})
    core.reload()
    core.write_snapshot()
    return Receipt(
        session=core.session_id,
        page=index,
        seq=core.state.erased_seq,
        records=len(bodies),
        files=tuple(names),
        forks=forks,
        at=event.at,
    )


def _forget(core: Core) -> None:
    """Remove what holds copies and can be made again."""
    core.store.snapshots.clear()
    core.empty_index()


def _bodies(core: Core, redaction: Redaction) -> tuple[dict[int, bytes], tuple[str, ...]]:
    """Return what is left of the records that hold something of the page, and the forks that were made with it."""
    bodies: dict[int, bytes] = {}
    forks: list[str] = []
    begun: int | None = None
    for record in core.store.journal.read():
        event = from_record(record)  # refuses a kind that is not known: nobody could tell what is in it
        body = codec.decode(record.body)
        left = redaction.event(record.kind, body)
        if left != body:
            bodies[record.seq] = codec.encode(left)
        if begun is None and (record.seq in bodies or body.get("page") == redaction.page):
            begun = record.seq
        if isinstance(event, ForkMade) and begun is not None and begun <= event.fork_at:
            forks.append(event.session)
    return bodies, tuple(dict.fromkeys(forks))


def _file(core: Core, index: str) -> tuple[bytes, str]:
    """Return the file of an archived page as it will be, with its SHA-256."""
    known = pages.rebuild(core, index)
    page = Page(index=known.index, turn=known.turn, opened_by=known.opened_by)
    for node in known.nodes():
        page.add(MessageNode(message=core.state.wire.erased(node.message), tokens=0, seq=node.seq, at=node.at))
    return page_file(page)
