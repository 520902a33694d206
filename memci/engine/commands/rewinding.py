"""Going back: the session continues before an entry; what came after stays in the journal."""

from collections import Counter
from collections.abc import Iterator

import attrs

from memci.archive.catalogue.page_facts import PageFacts
from memci.archive.contents.contents_page import Directory
from memci.chapters.address import is_range, page_number, segment_of
from memci.chapters.page import Opening, Page
from memci.engine.commands import folding
from memci.engine.core.core import Core
from memci.engine.history.apply import entries_before_page, placed_pages
from memci.engine.history.events import Rewound
from memci.engine.history.page_codec import page_value
from memci.engine.history.state import SYSTEM, opening_of
from memci.engine.reading import pages
from memci.errors import PageNotFoundError


def entry_seq(core: Core, address: str) -> int:
    """Return the sequence number of the entry that has an address now."""
    page, position = _find(core, address)
    return page.entries[position - 1].node.seq


def rewind(core: Core, address: str, seq: int) -> None:
    """Let the session continue before an entry: it, and all that follows it in the conversation, is gone from view.

    The newest page then is open, and back in view. *seq* tells the entry that was meant from one that others put in its place.
    """
    page, position = _find(core, address)
    if page.entries[position - 1].node.seq != seq:
        what = f"{address} is another entry"
        raise core.changed(what)
    index, state = page.index, core.state
    before = next(_before(core, index), None) if position == 1 else None
    if before is not None and before.index not in state.active:
        index, page = before.index, pages.load(core, before.index)
        position = len(page) + 1
    number = page_number(index)
    content, recalls = None, None
    if page.chapter is not state.active and position > 1:
        if position <= len(page):
            page.cut(position)
        content, facts = page_value(page), pages.get_facts(core, index)
        recalls = None if facts.last_recall_turn is None else [facts.recall_count, facts.last_recall_turn]
    opening_page, opening = _turn_before(core, page, removed=position == 1)
    left = _directories_before(core, number)
    entries = entries_before_page(state, number, left)
    shown = any(page_number(each) >= number and not state.is_made(each) for each in state.archive.published)
    placed = placed_pages(state, number + (position > 1)) if state.tree else []
    gone = Counter(state.tree.path(each)[-2].index for each in placed if not state.tree.is_removed(each))
    republish = shown or entries != list(state.archive.entries)
    event = Rewound(
        page=index,
        position=position,
        removed=position == 1,
        content=content,
        opening=None if opening is None else page_value(opening),
        opening_page=opening_page,
        contents_tokens=folding.contents_tokens(core, entries, gone=gone) if republish else None,
        directories=[directory.to_mapping() for directory in left.values()],
        recalls=recalls,
    )
    core.commit([event])


def _find(core: Core, address: str) -> tuple[Page, int]:
    """Return the page of an entry, and its position there. O(size of the page)."""
    pages.refuse_root(core, address)
    index, position = pages.entry_address(address)
    pages.refuse_root(core, index)
    if is_range(index):
        raise pages.not_found(index)
    if core.state.is_made(index):
        raise pages.not_found(index, "is no page of the conversation, to which a session could go back")
    if index.startswith(f"{SYSTEM}-"):
        message = f"{address} is a part of the system prompt: replace it with set_system"
        raise PageNotFoundError(message, index=index)
    page = pages.load(core, index)
    if position > len(page):
        message = f"page {index} has {len(page)} entries, not {position}"
        raise PageNotFoundError(message, index=index)
    return page, position


def _directories_before(core: Core, number: int) -> dict[int, Directory]:
    """Return what is left of the directories that list pages from a number on, by the number of their first page."""
    left = {}
    for entry in core.state.archive.entries:
        if isinstance(entry, Directory) and entry.covers[0][0] < number <= entry.covers[-1][1]:
            covers = tuple((first, min(last, number - 1)) for first, last in entry.covers if first < number)
            directory = entry.narrowed(covers, sum(folding.count_pages(core, *each) for each in covers))
            if directory.pages:
                left[page_number(entry.index)] = attrs.evolve(directory, shown_tokens=core.counter.count(directory.render()) + 1)
    return left


def _before(core: Core, index: str) -> Iterator[PageFacts]:
    """Yield the facts of the pages before a page, newest first. O(directories between them)."""
    for number in range(page_number(index) - 1, 0, -1):
        if not folding.count_pages(core, number, number):  # earlier rewinds left it: to ask for its facts is O(pages)
            continue
        facts = core.facts(f"{segment_of(index)}-{number}")
        if facts is not None:
            yield facts


def _turn_before(core: Core, page: Page, *, removed: bool) -> tuple[str, Page | None]:
    """Return the first page of the turn that is open after a rewind, and its opening messages where it is not in view."""
    if page.opened_by is Opening.TURN and not removed:
        return page.index, None
    first, turn = "", None if page.opened_by is Opening.TURN else page.turn
    for facts in _before(core, page.index):
        turn = facts.turn if turn is None else turn
        if facts.turn != turn:
            break
        first = facts.index
    gone = bool(first) and first not in core.state.active
    return first, opening_of(pages.load(core, first)) if gone else None
