"""Making good what differs from the journal: the index, page files and snapshots."""

import attrs

from memci.engine.core.core import Core
from memci.engine.history.page_codec import file_name, page_file
from memci.engine.reading import pages
from memci.engine.upkeep.verify import Findings, Report, examine, report_of


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


def repair(core: Core, *, apply: bool) -> Repair:
    """Say what makes the session good, and do it with *apply*. O(history).

    Index, page files and snapshots are made again from the journal. A journal that is damaged itself is beyond it: the
    report says where, and a backup has to help.

    Raises:
        UnavailableError: The store failed on the way; repair again.
    """
    found = examine(core)
    steps = _steps(found)
    if apply and steps:
        _apply(core, found)
        found = examine(core)
    return Repair(session=core.session_id, applied=apply, steps=steps, report=report_of(core, found))


def _steps(found: Findings) -> tuple[str, ...]:
    steps = []
    if found.index:
        steps.append("make the index again from the journal")
    steps += [f"write the file of page {index} again from the journal" for index in found.page]
    steps += [f"remove the page file {name}" for name in found.stray]
    if found.snapshot:
        steps.append("delete all snapshots, and keep one of the state as it is now")
    if found.state:
        steps.append("load the state again from the journal")
    return tuple(steps)


def _apply(core: Core, found: Findings) -> None:
    if found.snapshot:
        core.store.snapshots.clear()
    if found.state or found.snapshot:
        core.reload()
    if found.snapshot:
        core.write_snapshot()
    if found.index:
        core.empty_index()
    core.store.pages.remove(list(found.stray))
    files = {}
    for index in found.page:
        facts = pages.get_facts(core, index)
        files[file_name(index, facts.revision)], _ = page_file(pages.rebuild(core, index))
    core.store.pages.put(files)
