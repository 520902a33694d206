"""Comparing what is derived with the journal, and making it again: page files, snapshots, the index."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

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

_Steps: TypeAlias = dict[str, Callable[[], object]]  # what each does, by what is said of it
_Finding: TypeAlias = tuple[str, str, Callable[[], object]]  # a problem, and the step that makes it good

_INDEX_STEP = "make the index again from the journal"


@attrs.frozen(kw_only=True)
class Report:
    """What a verification found: how many records, page files and snapshots it compared, and a sentence for each problem."""

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


@attrs.frozen(kw_only=True)
class Repair:
    """What makes a session good: the steps, a sentence each, none where nothing can be done, and how it is now, after them."""

    session: str
    applied: bool
    steps: tuple[str, ...]
    report: Report


def verify(core: Core) -> Report:
    """Read the journal from its beginning, and compare everything that is derived from it. O(history)."""
    return _examined(core)[0]


def repair(core: Core, *, apply: bool) -> Repair:
    """Say what makes the session good, from its journal, and do it with *apply*. O(history).

    A journal that is damaged itself is beyond it: the report says where, and a backup has to help.
    """
    report, steps = _examined(core)
    if apply and steps:
        for step in steps.values():
            step()
        report, _ = _examined(core)
    return Repair(session=core.session_id, applied=apply, steps=tuple(steps), report=report)


def _examined(core: Core) -> tuple[Report, _Steps]:
    """Return what is not as it should be, and what makes it good, in order."""
    problems: list[str] = []
    steps: _Steps = {}
    counted = {"events": 0, "pages": 0, "snapshots": 0}
    try:
        for problem, step, make_good in _findings(core, counted):
            problems.append(problem)
            steps[step] = make_good
    except CorruptError as error:  # of the journal: nothing after it is looked at
        problems.append(str(error))
    if _INDEX_STEP in steps:
        steps = {_INDEX_STEP: steps[_INDEX_STEP]} | steps  # first: others ask it
    return Report(session=core.session_id, durability=core.store.durability, problems=tuple(problems), **counted), steps


def _findings(core: Core, counted: dict[str, int]) -> Iterator[_Finding]:
    """Compare everything that is derived from the journal of a session with it."""
    from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads SQL)

    # A copy that stands still, older than what is read of the journal below: others may be writing.
    with closing(core.ask(lambda index: index.copy_in_memory())) as stored, closing(PageIndex(None)) as made:
        yield from _differences(core, counted, stored, made)


def _differences(core: Core, counted: dict[str, int], stored: "PageIndex", index: "PageIndex") -> Iterator[_Finding]:
    """Compare with the journal; *stored* is a copy of the session's index, and *index* an empty one, to be made from it."""
    snapshots = dict(_snapshots(core))
    counted["snapshots"] = len(snapshots)
    state, erased = State(session=core.session_id), set[str]()
    for record in core.store.journal.read():
        event = from_record(record)
        apply(state, event, record.seq)
        counted["events"] += 1
        erased |= {event.page} if isinstance(event, PageErased) else set()
        if record.seq in snapshots and not _is_of(state, snapshots[record.seq]):
            differs = f"snapshot {record.seq} is not the state that the journal makes"
            yield _bad_snapshot(core, f"{differs}: memci repair deletes it, and loading begins earlier")
    core.check_length(state.seq, stored.seq)
    while index.seq != state.seq:
        advance(index, core.store.journal, state)
    for problem in core.store.snapshots.problems():
        yield _bad_snapshot(core, problem)
    if state_codec.to_mapping(state) != state_codec.to_mapping(core.state) and state.seq == core.state.seq:
        problem = "the state in memory differs from the one that the journal makes: close the session and open it again"
        yield problem, "load the state again from the journal", core.reload
    for problem in _index_problems(core, index, stored, state):
        yield _bad_index(core, problem)
    for facts in core.all_facts():
        if facts.state not in (PageState.OPEN, PageState.ACTIVE) and facts.index not in core.state.system:
            counted["pages"] += 1
            yield from _page_findings(core, facts)
    for name in [name for page in sorted(erased) for name in stray_files(core, page)]:
        problem = f"the page file {name} may hold what was erased: memci repair removes it"
        yield problem, f"remove the page file {name}", partial(core.store.pages.remove, [name])


def _snapshots(core: Core) -> Iterator[tuple[int, bytes]]:
    found = core.store.snapshots.find()
    while found is not None:
        yield found
        found = core.store.snapshots.find(found[0] - 1)


def _is_of(state: State, snapshot: bytes) -> bool:
    """Return whether a snapshot holds a state; one of another memci, which loading passes over, does."""
    value = codec.decode(snapshot)["state"]
    return value["v"] != state_codec.VERSION or bool(value == codec.decode(codec.encode(state_codec.to_mapping(state))))


def _bad_snapshot(core: Core, problem: str) -> _Finding:
    def make_again() -> None:
        core.store.snapshots.clear()
        core.reload()
        core.write_snapshot()

    return problem, "delete all snapshots, and keep one of the state as it is now", make_again


def _bad_index(core: Core, problem: str) -> _Finding:
    return f"{problem}: memci repair makes it again from the journal", _INDEX_STEP, core.empty_index


def _index_problems(core: Core, index: "PageIndex", stored: "PageIndex", state: State) -> Iterator[str]:
    try:
        while stored.seq != state.seq:
            advance(stored, core.store.journal, state)
        for expected, found in zip_longest(index.rows(), stored.rows()):
            if expected != found:
                yield f"the index differs from what the journal makes, first at {(expected or found)[0]!r}"
                break
        stored.check()
    except CorruptError as error:
        if error.place != INDEX_PLACE:
            raise
        yield f"the index is damaged ({error})"


def _page_findings(core: Core, facts: PageFacts) -> Iterator[_Finding]:
    index = facts.index
    expected, sha256 = page_file(pages.rebuild(core, index))
    if sha256 != facts.sha256:
        yield _bad_index(core, f"the facts of page {index} name another content than the journal holds")
    data = core.store.pages.find(file_name(index, facts.revision))
    if data != expected:
        wrong = "missing" if data is None else f"damaged (SHA-256 {hashlib.sha256(data).hexdigest()[:12]}…)"
        problem = f"the file of page {index} is {wrong}: reading the page makes it again, and so does memci repair"
        step = f"write the file of page {index} again from the journal"
        yield problem, step, lambda: core.store.pages.put(pages.made_file(core, index))
