"""Comparing what is derived with the journal, and making it again: page files, snapshots, the index."""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
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


@attrs.frozen(kw_only=True)
class Repair:
    """What was wrong with a session, and what makes it good.

    Attributes:
        session: The session's id.
        applied: Whether it was done.
        steps: What is, or was, to be done, a sentence each; none where nothing is wrong, or nothing can be done.
        report: How the session is now: after the steps where they were applied.
    """

    session: str
    applied: bool
    steps: tuple[str, ...]
    report: Report


def verify(core: Core) -> Report:
    """Read the journal from its beginning, and compare everything that is derived from it. O(history)."""
    return _Examination(core).report()


def repair(core: Core, *, apply: bool) -> Repair:
    """Say what makes the session good, and do it with *apply*. O(history).

    Index, page files and snapshots are made again from the journal. A journal that is damaged itself is beyond it: the
    report says where, and a backup has to help.
    """
    found = _Examination(core)
    steps = dict(found.steps)
    if apply and steps:
        for step in steps.values():
            step()
        found = _Examination(core)
    return Repair(session=core.session_id, applied=apply, steps=tuple(steps), report=found.report())


class _Examination:
    """Compares everything that is derived from the journal of a session with it; *steps* make the problems good, in order."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._events = self._files = 0
        self._snapshots = dict(_snapshots(core))
        self.problems: list[str] = []
        self.steps: dict[str, Callable[[], object]] = {}
        try:
            self._examine()
        except CorruptError as error:  # of the journal: nothing after it is looked at
            self.problems.append(str(error))

    def report(self) -> Report:
        """Return what was found."""
        return Report(
            session=self._core.session_id,
            events=self._events,
            pages=self._files,
            snapshots=len(self._snapshots),
            durability=self._core.store.durability,
            problems=tuple(self.problems),
        )

    def _examine(self) -> None:
        from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads SQL)

        core = self._core
        # A copy that stands still, older than what is read of the journal below: others may be writing.
        stored = core.ask(lambda index: index.copy_in_memory())
        index, state = PageIndex(None), State(session=core.session_id)
        erased: set[str] = set()
        for record in core.store.journal.read():
            event = from_record(record)
            apply(state, event, record.seq)
            self._events += 1
            erased |= {event.page} if isinstance(event, PageErased) else set()
            if record.seq in self._snapshots:
                self._examine_snapshot(state, record.seq)
        while index.seq != state.seq:
            advance(index, core.store.journal, state)
        for problem in core.store.snapshots.problems():
            self._add_snapshot(problem)
        if state_codec.to_mapping(state) != state_codec.to_mapping(core.state) and state.seq == core.state.seq:
            problem = "the state in memory differs from the one that the journal makes: close the session and open it again"
            self._add(problem, "load the state again from the journal", core.reload)
        self._examine_index(index, stored, state)
        for facts in core.all_facts():
            if facts.state not in (PageState.OPEN, PageState.ACTIVE):
                self._files += 1
                self._examine_page(facts)
        for name in [name for page in sorted(erased) for name in stray_files(core, page)]:
            problem = f"the page file {name} may hold what was erased: memci repair removes it"
            self._add(problem, f"remove the page file {name}", partial(core.store.pages.remove, [name]))

    def _add(self, problem: str, step: str, make_good: Callable[[], object]) -> None:
        self.problems.append(problem)
        self.steps[step] = make_good

    def _add_snapshot(self, problem: str) -> None:
        def make_again() -> None:
            self._core.store.snapshots.clear()
            self._core.reload()
            self._core.write_snapshot()

        self._add(problem, "delete all snapshots, and keep one of the state as it is now", make_again)

    def _add_index(self, problem: str) -> None:
        self.problems.append(f"{problem}: {_MADE_AGAIN}")
        self.steps = {"make the index again from the journal": self._core.empty_index} | self.steps  # first: others ask it

    def _examine_snapshot(self, state: State, seq: int) -> None:
        value = codec.decode(self._snapshots[seq])
        if value["state"]["v"] != state_codec.VERSION:  # of another memci: loading passes it over
            return
        if value["state"] != codec.decode(codec.encode(state_codec.to_mapping(state))):
            differs = f"snapshot {seq} is not the state that the journal makes"
            self._add_snapshot(f"{differs}: memci repair deletes it, and loading begins earlier")

    def _examine_index(self, index: "PageIndex", stored: "PageIndex", state: State) -> None:
        try:
            while stored.seq != state.seq:
                advance(stored, self._core.store.journal, state)
            for expected, found in zip_longest(index.rows(), stored.rows()):
                if expected != found:
                    self._add_index(f"the index differs from what the journal makes, first at {(expected or found)[0]!r}")
                    break
            stored.check()
        except CorruptError as error:
            if error.place != INDEX_PLACE:
                raise
            self._add_index(f"the index is damaged ({error})")

    def _examine_page(self, facts: PageFacts) -> None:
        core, index = self._core, facts.index
        expected, sha256 = page_file(pages.rebuild(core, index))
        if sha256 != facts.sha256:
            self._add_index(f"the facts of page {index} name another content than the journal holds")
        data = core.store.pages.find(file_name(index, facts.revision))
        if data == expected:
            return
        wrong = "missing" if data is None else f"damaged (SHA-256 {hashlib.sha256(data).hexdigest()[:12]}…)"
        step = f"write the file of page {index} again from the journal"
        self._add(f"the file of page {index} is {wrong}: {_WRITTEN_AGAIN}", step, partial(pages.put_file, core, index))


def _snapshots(core: Core) -> Iterator[tuple[int, bytes]]:
    found = core.store.snapshots.find()
    while found is not None:
        yield found
        found = core.store.snapshots.find(found[0] - 1)
