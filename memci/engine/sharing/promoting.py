"""Long-term memory: pages worth keeping are written down as notes of a session that all others of the tenant may mount."""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.tree import Origin
from memci.archive.summarizers.whole import beginning
from memci.chapters.address import is_foreign, is_note
from memci.chapters.page import Page
from memci.engine.commands.closing import checked_name
from memci.engine.core.core import Core
from memci.engine.history.shared_events import PagePromoted
from memci.engine.reading import pages
from memci.engine.settings.config import Memory
from memci.engine.tree import making, notes, opening
from memci.errors import ArgumentError
from memci.messages.headline import unheaded
from memci.messages.parts import parts, text_of

NOTE_TOKENS = 600  # of a promoted page, at most
_TITLE_CHARACTERS = 100


@attrs.frozen
class Promotion:
    """What of a page goes into long-term memory: the note that is made of it."""

    origin: Origin
    name: str
    description: str
    detail: str

    @property
    def page(self) -> str:
        """The page that is promoted."""
        return self.origin.pages[0]


def prepare(core: Core, index: str, title: str | None) -> Promotion:
    """Return what a page says as a note: who said what, as far as there is room. O(its size)."""
    if title is not None:
        title = checked_name(title, "title")
    pages.refuse_root(core, index)
    if index in pages.erased_since(core, 0):
        raise ArgumentError(argument="index", value=index, wanted="a page that was not erased")
    facts, page = pages.get_facts(core, index), pages.load(core, index)
    name = _name(pages.shown_title(facts.title), f"{index} of {core.session_id}") if title is None else title
    detail = "\n".join(_lines(page, core.counter.count)) or facts.title
    source = core.session_id if core.session_id.isprintable() else "another session"
    told = f"from {index} of session {source}, event {core.state.seq}"
    origin = Origin(session=core.session_id, pages=(index,), seq=core.state.seq, revision=facts.revision)
    return Promotion(origin, name, told[:400], detail)


def _name(*titles: str) -> str:
    """Return the first of these that may name a note."""
    for title in titles:
        printable = "".join(each if each.isprintable() else " " for each in title)
        with suppress(ArgumentError):  # it holds marks or indexes
            return checked_name(" ".join(printable.split())[:_TITLE_CHARACTERS], "title")
    return "A page"


def _lines(page: Page, count: Callable[[str], int]) -> Iterator[str]:
    room = NOTE_TOKENS
    for node in page.nodes():
        for part in parts(node.message.value()):
            text = unheaded(node.message, part.text).strip()
            line = f"{node.message.speaker}: {text}"
            if text and room > 0:
                tokens = count(line) + 1
                yield line if tokens <= room else beginning(line, max(len(line) * room // tokens, 1) + 1)
                room -= tokens


def write(core: Core, promotion: Promotion, *, is_named: bool) -> str:
    """Write the note, or find the one that says the same, and return its index; what was written of the page before it removes.

    Where *is_named*, a note that was there gets the name.
    """
    meant = promotion.origin.session, promotion.origin.pages, ""  # no checkpoint, as what was handed over has
    made = (
        (node, node.origin) for node in core.state.tree if node.origin is not None and not core.state.tree.is_removed(node.index)
    )
    before = [node for node, origin in made if (origin.session, origin.pages, origin.checkpoint) == meant]
    for node in before:
        if text_of(pages.load(core, node.index).messages[0]) == promotion.detail:
            if is_named and node.name != promotion.name:
                making.update(core, node.index, promotion.name, None, by="application")
            return node.index
    told = (promotion.name, promotion.description, promotion.detail)
    index = notes.write_note(core, *told, None, by="application", origin=promotion.origin)
    for node in before:
        opening.remove(core, node.index, by="application")
    return index


def note(core: Core, promotion: Promotion, session: str, index: str) -> None:
    """Note in a session that a page of it is in long-term memory."""
    revision = promotion.origin.revision
    if core.state.promoted.get(promotion.page) == (index, revision):
        return
    core.commit([PagePromoted(page=promotion.page, revision=revision, session=session, note=index, at=core.now())])


def due(core: Core) -> list[str]:
    """Return the pages that the rules of the settings promote, and that are not promoted yet. O(entries of the contents page)."""
    rules, state = core.config.memory, core.state
    found = dict.fromkeys(state.kept) if rules.kept else {}
    if rules.bookmarked:
        found |= dict.fromkeys(page for page, _ in state.bookmarks.values())
    if rules.recalled is not None:
        counted = {entry.index: getattr(entry, "recall_count", 0) for entry in state.archive.entries}
        for index in state.recalled.attachments:  # one that shares a directory has no entry of its own
            if not is_foreign(index) and (facts := core.facts(index)) is not None:
                counted[index] = facts.recall_count
        found |= dict.fromkeys(index for index, count in counted.items() if count >= rules.recalled)
    known = (index for index in found if not is_note(index) and index not in state.promoted)
    return [index for index in known if state.page_state(index) is not PageState.OPEN]


def surplus(core: Core, rules: Memory) -> list[str]:
    """Return the notes whose time to live has ended, and those that are too many, not recalled for longest. O(notes)."""
    if rules.max_notes is None and rules.ttl_s is None:
        return []
    listed = [node for node in core.state.tree if node.is_note and not core.state.tree.is_removed(node.index)]
    facts = [found for node in listed if (found := core.facts(node.index)) is not None]
    now, ttl_s = datetime.fromisoformat(core.now()), math.inf if rules.ttl_s is None else rules.ttl_s
    ended = [each.index for each in facts if (now - datetime.fromisoformat(each.first_at)).total_seconds() > ttl_s]
    oldest = sorted(facts, key=lambda each: (each.index not in ended, each.last_recall_turn or 0, each.first_seq))
    most = len(oldest) if rules.max_notes is None else rules.max_notes
    return [each.index for each in oldest[: max(len(oldest) - most, len(ended))]]
