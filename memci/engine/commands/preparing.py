"""What the fold of a page takes beside the state: its entry of the contents page, its file, its notes for the working set."""

from collections.abc import Callable, Sequence
from functools import partial

import attrs

from memci.archive.contents.contents_page import ContentsEntry, one_line
from memci.archive.contents.working_set import LATEST, Kind, Note
from memci.archive.summarizers.summary import Summary
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.core.indexing import nothing
from memci.engine.core.kept_state import PreparedPage
from memci.engine.core.monitor import logger
from memci.engine.history.page_codec import file_name, page_file
from memci.engine.history.state import USER
from memci.engine.reading import pages
from memci.engine.summaries import summarizing
from memci.engine.view import planner
from memci.errors import CorruptError, PageNotFoundError
from memci.messages.message import Message

NAME_CHARACTERS = 120  # what an entry shows at most of the name that the application gave a page, or a topic

_AHEAD = 7 / 8  # of the events between two snapshots, after which one is kept ahead of the command that would have to
_BATCH = 8  # new pages that are waited for, at most a third of those in view; and files that are written at once


def take(core: Core, page: Page, room: int) -> PreparedPage:
    """Return what the fold of a page takes. O(entries) where it was prepared, else O(its size)."""
    made = core.prepared.pages.get(page.index)
    return made if made is not None and made.fits(page, room) else make(core, page, room)


def make(core: Core, page: Page, room: int) -> PreparedPage:
    """Make what the fold of a page takes, with lines of *room* tokens in its entry. Reads nothing of the state. O(its size)."""
    data, sha256 = page_file(page)
    entry = attrs.evolve(make_entry(core, page, room), sha256=sha256)
    return PreparedPage(page=page, room=room, entry=entry, notes=_notes(page), file=data)


def offer(core: Core) -> None:
    """Let be done what is ahead, once some pages were opened: together they cost less than each for itself.

    O(1); O(attached) where pages are asked for together.
    """
    state, prepared = core.state, core.prepared
    prepared.missing += 1
    gathered = core.pool is not None and core.pool.extends and not summarizing.is_gathering(core)
    if prepared.missing < _BATCH and not gathered:
        has_folded = state.archive.message_list.head is not None
        if prepared.missing < len(state.active) // 3 or not (has_folded or 2 * state.active.tokens > core.config.budget.tokens):
            return
    core.offer(core)


def next_step(core: Core) -> Callable[[], object] | None:
    """Do a step of what is done before a command needs it, and return what of it needs no lock; ``None`` where nothing is left.

    Where a fold is near, the pages that it takes are prepared, and their files written some at a time; then come snapshot and
    index. The session's lock is held.
    """
    if core.closed or core.lost or core.read_only:
        return None
    core.prepared.missing = 0
    if (found := _unprepared(core)) is not None:
        page, room = found
        return partial(_prepare, core, page.copy(), room)
    if summarizing.note_outcomes(core):
        return nothing
    if core.store.journal.head() == core.state.seq:
        if _write_files(core) or core.keep_snapshot(_AHEAD):
            return nothing
        if (rest := core.keep_up()) is not None:
            return rest
    summarizing.ask(core)
    return None


def _prepare(core: Core, page: Page, room: int) -> None:
    core.prepared.pages[page.index] = make(core, page, room)


def _unprepared(core: Core) -> tuple[Page, int] | None:
    """Return a page that folds next and is not prepared, and the room of its entry. O(pages that fold next)."""
    state, prepared = core.state, core.prepared
    limit = planner.contents_limit(state, core.config, core.config.budget.tokens)
    for page in planner.next_folded(state, core.config):
        room = planner.entry_room(limit, page.tokens)
        made = prepared.pages.get(page.index)
        if made is None or (made.room, made.page.length) != (room, page.length) or _last(made.page) is not _last(page):
            return page, room
    for index in list(prepared.pages):
        if index not in state.active:
            del prepared.pages[index]
    return None


def _last(page: Page) -> Message | None:
    return page.tail.message if page.tail is not None else None


def _write_files(core: Core) -> bool:
    """Write some of the files that prepared pages have, and return whether there were any. O(pages)."""
    waiting = [made for made in list(core.prepared.pages.values()) if made.file is not None]
    if not waiting:
        return False
    files = dict[str, bytes]()
    for made in waiting[:_BATCH]:
        page = core.state.active.find_page(made.page.index)
        if page is not None and made.file is not None and made.fits(page, made.room):
            files[file_name(page.index, 0)] = made.file
        else:
            del core.prepared.pages[made.page.index]
    if files:
        core.store.pages.put(files)
    for made in waiting[:_BATCH]:
        made.file = None
    return True


def make_entry(core: Core, page: Page, room: int) -> ContentsEntry:
    """Return the entry alone: extracts of the page in lines of *room* tokens. O(its size)."""
    summary = _extracts(core, page, room)
    head, tail = page.head, page.tail
    first_at, last_at = page.times
    if page.name:
        # A prompt has no halves of characters.
        name = one_line(page.name).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        summary = summarizing.titled(summary, name[:NAME_CHARACTERS])
    elif core.config.summary.headlines and (headline := summarizing.headline(page, core.counter)):
        summary = summarizing.titled(summary, headline)
    entry = ContentsEntry(
        index=page.index,
        **{name: getattr(summary, name) for name in attrs.fields_dict(Summary) if name != "usage"},
        entries=len(page),
        tokens=page.tokens,
        turn=page.turn,
        first_seq=head.seq if head else 0,
        last_seq=tail.seq if tail else 0,
        first_at=first_at,
        last_at=last_at,
    )
    return summarizing.sized(core, entry)


def _extracts(core: Core, page: Page, room: int) -> Summary:
    """Return extracts of a page, nothing where they cannot be made: no message keeps a page from folding."""
    from memci.archive.summarizers.extractive import ExtractiveSummarizer  # noqa: PLC0415 (compiles many patterns)

    try:
        return ExtractiveSummarizer().summarize([node.message for node in page.nodes()], max_tokens=room)
    except Exception:  # noqa: BLE001 (as above)
        logger(core.key).exception("session %r: page %s could not be summarised", core.session_id, page.index)
        return Summary(title="")


def _notes(page: Page) -> tuple[Note, ...]:
    from memci.archive.contents.noting import notes_of  # noqa: PLC0415 (compiles many patterns)

    return tuple(notes_of(((page.index, node.message) for node in page.nodes()), 0))


def notes(core: Core, folded: Sequence[PreparedPage], *, continues: bool) -> tuple[list[Note], int]:
    """Return what pages that fold tell the working set, or a continuation, and how many messages it knows of then.

    A page that was kept is older than what folded before, and tells of nothing that is latest.
    """
    from memci.archive.contents.noting import course_of  # noqa: PLC0415 (compiles many patterns)

    working, newest = core.state.working, dict[Kind, int]()
    clock, found = working.clock, list[Note]()
    if continues and not any(note.kind is Kind.GOAL for note in working.notes):
        found += _first_goal(core)
    for note in working.notes:
        if note.kind in LATEST:
            newest[note.kind] = int(note.page.rpartition("-")[2])
    for each in folded:
        told = [Note(note.kind, note.text, note.page, clock + note.at, note.weight) for note in each.notes]
        if continues:
            told += course_of(((each.page.index, node.message) for node in each.page.nodes()), clock)
        number = int(each.page.index.rpartition("-")[2])
        if number < max(newest.values(), default=0):
            told = [note for note in told if number >= newest.get(note.kind, 0)]
        found += told
        clock += len(each.page)
    return found, clock


def _first_goal(core: Core) -> list[Note]:
    """Return what the user said first of all, where pages folded before there was a continuation. O(its page)."""
    from memci.archive.contents.noting import course_of  # noqa: PLC0415 (compiles many patterns)

    if not core.state.working.clock:
        return []
    try:
        page = pages.load(core, f"{USER}-1")
    except (PageNotFoundError, CorruptError):
        return []
    said = course_of(((page.index, node.message) for node in page.nodes()), 0)
    return [note for note in said if note.kind is Kind.GOAL]
