"""Comparing what is derived with the journal: page files, snapshots, the index."""

import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

import attrs

from memci.archive.page_facts import PageState
from memci.engine import pages, state_codec
from memci.engine.apply import apply
from memci.engine.core import Core
from memci.engine.events import from_record
from memci.engine.indexing import advance
from memci.engine.page_codec import file_name, page_file
from memci.engine.state import State
from memci.errors import CorruptError
from memci.messages import codec

if TYPE_CHECKING:
    from memci.archive.page_index import PageIndex


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


def verify(core: Core) -> Report:
    """Read the journal from its beginning, and compare everything that is derived from it. O(history)."""
    from memci.archive.page_index import PageIndex  # noqa: PLC0415 (loads SQL)

    problems: list[str] = []
    events = files = 0
    index = PageIndex(None)
    snapshots = dict(_snapshots(core))
    state = State(session=core.session_id)
    try:
        for record in core.store.journal.read():
            apply(state, from_record(record), record.seq)
            events += 1
            if record.seq in snapshots:
                problems += _snapshot_problems(state, record.seq, snapshots[record.seq])
        while index.seq != state.seq:
            advance(index, core.store.journal, state)
        problems += core.store.snapshots.problems()
        if state_codec.to_mapping(state) != state_codec.to_mapping(core.state) and state.seq == core.state.seq:
            problems.append(
                "the state in memory differs from the one that the journal makes: close the session and open it again"
            )
        problems += core.ask(lambda stored: list(_index_problems(index, stored)))
        for facts in core.all_facts():
            if facts.state not in (PageState.OPEN, PageState.ACTIVE):
                files += 1
                problems += _page_problems(core, facts.index, facts.sha256, facts.revision)
    except CorruptError as error:
        problems.append(str(error))
    return Report(
        session=core.session_id,
        events=events,
        pages=files,
        snapshots=len(snapshots),
        durability=core.store.durability,
        problems=tuple(problems),
    )


def _index_problems(index: "PageIndex", stored: "PageIndex") -> Iterator[str]:
    advice = "delete index.sqlite, it is made again from the journal"
    for expected, found in zip_longest(index.rows(), stored.rows()):
        if expected != found:
            yield f"the index differs from what the journal makes, first at {(expected or found)[0]!r}: {advice}"
            break
    try:
        stored.check()
    except CorruptError as error:
        yield f"the full-text index is not that of its texts ({error}): {advice}"


def _snapshots(core: Core) -> Iterator[tuple[int, bytes]]:
    found = core.store.snapshots.find()
    while found is not None:
        yield found
        found = core.store.snapshots.find(found[0] - 1)


def _snapshot_problems(state: State, seq: int, body: bytes) -> Iterator[str]:
    value = codec.decode(body)
    if value["state"] != codec.decode(codec.encode(state_codec.to_mapping(state))):
        yield f"snapshot {seq} is not the state that the journal makes: delete it, loading then begins at an older one"


def _page_problems(core: Core, index: str, sha256: str, revision: int) -> Iterator[str]:
    expected, expected_sha256 = page_file(pages.rebuild(core, index))
    if expected_sha256 != sha256:
        yield f"the facts of page {index} name another content than the journal holds: delete index.sqlite, it is made again"
    data = core.store.pages.find(file_name(index, revision))
    if data is None:
        yield f"the file of page {index} is missing: reading the page makes it again"
    elif data != expected:
        digest = hashlib.sha256(data).hexdigest()
        yield f"the file of page {index} is damaged (SHA-256 {digest[:12]}…): reading the page makes it again"
