"""Comparing what is derived with the journal: page files, snapshots, the index."""

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

import attrs

from memci.archive.catalogue.page_facts import INDEX_PLACE, PageFacts, PageState
from memci.engine.core.core import Core
from memci.engine.core.indexing import advance
from memci.engine.erasure.erasing import stray_files
from memci.engine.history import state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import PageErased, from_record
from memci.engine.history.page_codec import file_name, page_file
from memci.engine.history.state import State
from memci.engine.reading import pages
from memci.errors import CorruptError
from memci.messages import codec

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


_MADE_AGAIN = "memci repair makes it again from the journal"
_WRITTEN_AGAIN = "reading the page makes it again, and so does memci repair"


@attrs.frozen(kw_only=True)
class Report:
    """What a verification found.

    Attributes:
        session: The session's id.
        events: How many records of the journal were read.
        pages: How many page files were compared.
        snapshots: How many snapshots were compared.
        durability: What the store promises.
        problems: A sentence for each thing that is not as it should be.
    """

    session: str
    events: int
    pages: int
    snapshots: int
    durability: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


@attrs.define
class Findings:
    """What a verification found, by what it is wrong with.

    Attributes:
        events: How many records of the journal were read.
        files: How many page files were compared.
        snapshots: How many snapshots were compared.
        journal: A sentence for damage of the journal; nothing behind it was looked at.
        state: One for a state in memory that is another one.
        index: One for each thing that is wrong with the index.
        snapshot: One for each snapshot that is damaged or another state.
        page: One for each page whose file is damaged or missing, by index.
        stray: One for each page file that may hold what was erased, by name.
    """

    events: int = 0
    files: int = 0
    snapshots: int = 0
    journal: list[str] = attrs.field(factory=list)
    state: list[str] = attrs.field(factory=list)
    index: list[str] = attrs.field(factory=list)
    snapshot: list[str] = attrs.field(factory=list)
    page: dict[str, str] = attrs.field(factory=dict)
    stray: dict[str, str] = attrs.field(factory=dict)


def verify(core: Core) -> Report:
    """Read the journal from its beginning, and compare everything that is derived from it. O(history)."""
    return report_of(core, examine(core))


def report_of(core: Core, found: Findings) -> Report:
    """Return a report of what was found."""
    return Report(
        session=core.session_id,
        events=found.events,
        pages=found.files,
        snapshots=found.snapshots,
        durability=core.store.durability,
        problems=(*found.snapshot, *found.state, *found.index, *found.page.values(), *found.stray.values(), *found.journal),
    )


def examine(core: Core) -> Findings:
    """Compare everything that is derived from the journal with it. O(history)."""
    from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads SQL)

    snapshots = dict(_snapshots(core))
    found = Findings(snapshots=len(snapshots))
    # A copy that stands still, older than what is read of the journal below: others may be writing.
    stored = core.ask(lambda index: index.copy_in_memory())
    index = PageIndex(None)
    state = State(session=core.session_id)
    erased: set[str] = set()
    try:
        for record in core.store.journal.read():
            event = from_record(record)
            apply(state, event, record.seq)
            found.events += 1
            erased |= {event.page} if isinstance(event, PageErased) else set()
            if record.seq in snapshots:
                found.snapshot += _snapshot_problems(state, record.seq, snapshots[record.seq])
        _bring(index, core, state)
        found.snapshot += core.store.snapshots.problems()
        if state_codec.to_mapping(state) != state_codec.to_mapping(core.state) and state.seq == core.state.seq:
            found.state.append(
                "the state in memory differs from the one that the journal makes: close the session and open it again"
            )
        found.index += _index_problems(index, stored, core, state)
        for facts in core.all_facts():
            if facts.state not in (PageState.OPEN, PageState.ACTIVE):
                found.files += 1
                _examine_page(core, found, facts)
        for name in (name for page in sorted(erased) for name in stray_files(core, page)):
            found.stray[name] = f"the page file {name} may hold what was erased: memci repair removes it"
    except CorruptError as error:
        found.journal.append(str(error))
    return found


def _bring(index: "PageIndex", core: Core, state: State) -> None:
    while index.seq != state.seq:
        advance(index, core.store.journal, state)


def _index_problems(index: "PageIndex", stored: "PageIndex", core: Core, state: State) -> Iterator[str]:
    try:
        _bring(stored, core, state)
        for expected, found in zip_longest(index.rows(), stored.rows()):
            if expected != found:
                yield f"the index differs from what the journal makes, first at {(expected or found)[0]!r}: {_MADE_AGAIN}"
                break
        stored.check()
    except CorruptError as error:
        if error.place != INDEX_PLACE:
            raise
        yield f"the index is damaged ({error}): {_MADE_AGAIN}"


def _snapshots(core: Core) -> Iterator[tuple[int, bytes]]:
    found = core.store.snapshots.find()
    while found is not None:
        yield found
        found = core.store.snapshots.find(found[0] - 1)


def _snapshot_problems(state: State, seq: int, body: bytes) -> Iterator[str]:
    value = codec.decode(body)
    if value["state"]["v"] != state_codec.VERSION:  # of another memci: loading passes it over
        return
    if value["state"] != codec.decode(codec.encode(state_codec.to_mapping(state))):
        yield f"snapshot {seq} is not the state that the journal makes: memci repair deletes it, and loading begins earlier"


def _examine_page(core: Core, found: Findings, facts: PageFacts) -> None:
    index = facts.index
    expected, sha256 = page_file(pages.rebuild(core, index))
    if sha256 != facts.sha256:
        found.index.append(f"the facts of page {index} name another content than the journal holds: {_MADE_AGAIN}")
    data = core.store.pages.find(file_name(index, facts.revision))
    if data is None:
        found.page[index] = f"the file of page {index} is missing: {_WRITTEN_AGAIN}"
    elif data != expected:
        digest = hashlib.sha256(data).hexdigest()
        found.page[index] = f"the file of page {index} is damaged (SHA-256 {digest[:12]}…): {_WRITTEN_AGAIN}"
