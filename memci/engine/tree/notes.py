"""Notes: pages with a text of their own that no turn holds."""

from collections.abc import Mapping

from memci.archive.catalogue.page_facts import PageFacts
from memci.archive.contents.tree import Origin
from memci.chapters.page import MessageNode, Page
from memci.engine.commands.closing import checked_name
from memci.engine.core.core import Core
from memci.engine.history.events import from_record
from memci.engine.history.page_codec import page_file
from memci.engine.history.tree_events import NoteWritten
from memci.engine.reading import pages
from memci.engine.settings.setting import MOST
from memci.engine.tree import making
from memci.engine.tree.segments import By, refuse
from memci.errors import ArgumentError, ConflictError

_NUMBERS = (-MOST, -1)  # of notes, in the index of pages


def write_note(  # noqa: PLR0913 (the parts of a note)
    core: Core, name: str, description: str, detail: str, parent: str | int | None, *, by: By, origin: Origin | None = None
) -> str:
    """Write a note that shows by its line alone, and return its index: its file first, then the event."""
    named, told = checked_name(name, "name"), making.checked_description(description)
    above, value = making.checked_parent(core, parent), {"role": "user", "content": checked_detail(core, detail)}
    refuse(core, by, "write", above)
    core.configure()  # so that it is known which event the note is
    message, at, index = core.state.wire.facts(value), core.now(), f"note-{core.state.tree.next_note}"
    tokens, page = core.count(message), Page(index=index, turn=core.state.turn)
    page.add(MessageNode(message=message, tokens=tokens, seq=core.state.seq + 1, at=at))
    data, sha256 = page_file(page)
    made = NoteWritten(
        page=index,
        name=named,
        description=told,
        message=value,
        tokens=tokens,
        sha256=sha256,
        parent=above,
        turn=page.turn,
        at=at,
        by=by,
        origin=None if origin is None else origin.to_mapping(),
    )
    core.quotas.check(core.key.tenant, core.config.limits, len(data))  # the file comes first
    core.store.pages.put({index: data})
    try:
        core.commit([made])
    except ConflictError:
        core.store.pages.put(_written_meanwhile(core, index))
        raise
    return index


def notes(core: Core) -> list[PageFacts]:
    """Return the facts of all notes, removed ones too, oldest first. O(notes)."""
    return [core.facts_now(facts) for facts in core.ask(lambda index: list(index.pages(numbers=_NUMBERS)))]


def checked_detail(core: Core, detail: object) -> str:
    """Return what a note says, or raise ``ArgumentError``."""
    most = core.config.limits.message_bytes
    if not isinstance(detail, str) or not detail:
        raise ArgumentError(argument="detail", value=detail, wanted="text of 1 character or more")
    size = len(core.state.wire.facts({"role": "user", "content": detail}).raw)
    if size > most:
        wanted = f"text that makes a message of at most {most} bytes as JSON, and it has {size}, or raise limits.message_bytes"
        raise ArgumentError(argument="detail", value=detail, wanted=wanted)
    return detail


def _written_meanwhile(core: Core, index: str) -> Mapping[str, bytes]:
    """Return the file of a note of this index that others wrote first: it must not stay that of another note."""
    for record in core.store.journal.read(core.state.seq):
        event = from_record(record)
        if isinstance(event, NoteWritten) and event.page == index:
            return {index: page_file(pages.note_page(core, event, record.seq))[0]}
    return {}
