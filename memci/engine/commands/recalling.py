"""Pages that come back, leave again, and what the contents page lists."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import Directory
from memci.chapters.address import is_range, last_number, page_number, segment_of
from memci.chapters.page import Page
from memci.engine.commands import folding
from memci.engine.core.core import Core
from memci.engine.core.monitor import Eviction, Recall
from memci.engine.history import blocks
from memci.engine.history.events import PagePinned, PageRecalled, PageRestored, PagesEvicted, PagesFaded
from memci.engine.history.page_codec import page_value
from memci.engine.history.state import SYSTEM, USER
from memci.engine.reading import listing, pages
from memci.engine.view import planner
from memci.engine.view.layout import lay_out_least
from memci.engine.view.planner import FoldPlan
from memci.errors import PageEvictedError, PageNotFoundError, PermissionDeniedError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

RECEIPT_TOKENS = 128
"""What the answer to whoever recalled a page takes of the next window."""


def recall(core: Core, index: str) -> Page:
    """Attach an archived page and return it; one that is attached stays longer, one in the window is just returned.

    Of a range of pages, such as a directory, their list is attached. Recalled pages have a share of the budget: beyond it the
    least recently used ones fade. A page for which there is no room is returned and not attached, and observers hear of that.
    """
    state = core.state
    if is_range(index):
        return _attach(core, index, recall_count=0)
    facts = pages.get_facts(core, index)
    if facts.state in (PageState.OPEN, PageState.ACTIVE):
        if index not in folds_next(core):
            return pages.load(core, index)
        folding.fold(core, FoldPlan(pages=(index,), reason="budget"))
        facts = pages.get_facts(core, index)
    if facts.state is PageState.ATTACHED and not state.recalled.attachments[index].prefetched:
        return _attach(core, index, recall_count=facts.recall_count)
    if facts.state is PageState.EVICTED and not state.archive.shows(index):
        raise PageEvictedError(index)
    page = _attach(core, index, recall_count=facts.recall_count + 1)
    if index in state.recalled:
        core.monitor.tell(Recall(page=index, recall_count=facts.recall_count + 1))
    return page


def folds_next(core: Core) -> Sequence[str]:
    """Return the pages that the next window folds, once it holds the answer to whoever recalls a page. O(visible)."""
    state, budget = core.state, max(planner.next_budget(core.state, core.config) - RECEIPT_TOKENS, 1)
    settled = None if state.settled is None else attrs.evolve(state.settled, excerpts={})
    layout = core.lay_out(state, settled)
    return planner.plan_budget(state, core.config, layout, budget).pages if layout.tokens > budget else ()


def _attach(core: Core, index: str, *, recall_count: int) -> Page:
    """Attach a page or the list of a range, or renew how long it stays, where recalled pages may have the room."""
    page = pages.load(core, index)
    event = attaching(core, page, recall_count=recall_count)
    faded = _giving_way(core, event)
    if faded is None:
        if index in core.state.recalled:  # the next window would let it go
            core.commit([PagesFaded(pages=[index], reason="share")])
        known = core.facts(index)
        core.monitor.tell(Recall(page=index, recall_count=known.recall_count if known is not None else 0, refused=True))
        return page
    core.commit([*([PagesFaded(pages=faded, reason="share")] if faded else []), event])
    return page


def _giving_way(core: Core, event: PageRecalled) -> list[str] | None:
    """Return which recalled pages fade for another one, the least recently used first; ``None`` where it has no room.

    The room is the share of recalled pages, where the next window can spare it: whatever else gives way there before a page that
    was recalled in its turn.
    """
    state, budget = core.state, planner.next_budget(core.state, core.config)
    least = lay_out_least(state, state.settled).tokens
    room = min(int(core.config.recall.max_share * budget), budget - RECEIPT_TOKENS - least)
    known = state.recalled.attachments.get(event.page)
    left = _scaled(core, event.block_tokens if known is None else known.tokens)
    if left > room:
        return None
    others = [(index, _scaled(core, each.tokens)) for index, each in state.recalled.least_used() if index != event.page]
    left += sum(tokens for _, tokens in others)
    faded = []
    for index, tokens in others:
        if left > room:
            faded.append(index)
            left -= tokens
    return faded


def _scaled(core: Core, tokens: int) -> int:
    return math.ceil(tokens * core.state.scale)


def attaching(core: Core, page: Page, *, recall_count: int = 0, prefetched: int = 0) -> PageRecalled:
    """Return the event that attaches a page, or the list of a range, or that renews how long it stays."""
    state = core.state
    attached = page.index in state.recalled
    block = None if attached else blocks.page_block(page, state.wire)
    return PageRecalled(
        page=page.index,
        turn=state.turn,
        recall_count=recall_count,
        anchor=state.active.open_page.index if state.active.open_page is not None else "",
        content=None if attached else page_value(page),
        block_tokens=0 if block is None else core.count(block),
        prefetched=prefetched,
        media=True,
        read=None if block is None else (page.copy(), block),
    )


def fade(core: Core, index: str) -> None:
    """Let a recalled page, or the list of a range, leave the window; nothing happens when it is not attached."""
    if index in core.state.recalled:
        core.commit([PagesFaded(pages=[index], reason="command")])
    else:
        _chosen(core, index)
        _refuse_system(index)


def evict(core: Core, index: str) -> None:
    """Take an archived page's entry out of the contents page, or those of a range; what is attached leaves the window too.

    A directory that lies in the range goes as it is, so that its pages need not be looked at.
    """
    directories = _directories_within(core, index)
    chosen = _chosen(core, index, directories)
    _refuse_system(index)
    for facts in chosen:
        if facts.state in (PageState.OPEN, PageState.ACTIVE):
            message = f"page {facts.index} is in the window, not in the contents page: fold it first"
            raise PageNotFoundError(message, index=facts.index)
    listed = [facts for facts in chosen if _is_listed(core, facts.index)]
    if not listed and not directories:
        raise PageEvictedError(index)
    for facts in listed:
        if facts.pinned:
            message = f"page {facts.index} is pinned: unpin it first"
            raise PermissionDeniedError(message)
    gone = (*(directory.index for directory in directories), *(facts.index for facts in listed))
    faded = [each for each in core.state.recalled.attachments if each in (index, *gone) or _is_within(each, directories)]
    core.commit(
        [
            *_restored(core, listed),
            *([PagesFaded(pages=faded, reason="evicted")] if faded else []),
            PagesEvicted(pages=[[each, "command"] for each in gone]),
        ]
    )
    core.monitor.tell(Eviction(pages=tuple((each, "command") for each in gone)))


def restore(core: Core, index: str) -> None:
    """Put the entry of an evicted page, or of one in a directory, back into the contents page, or those of a range.

    Its age begins anew. Nothing happens for a page that has its own entry.
    """
    archived = [facts for facts in _chosen(core, index) if facts.state not in (PageState.OPEN, PageState.ACTIVE)]
    events = _restored(core, archived)
    if events:
        core.commit(events)


def pin(core: Core, index: str, *, pinned: bool) -> None:
    """Keep a page's entry, or those of a range, from ever being evicted, or let it go again.

    A page in a directory gets its own entry first; pages of a range that are evicted are passed over.
    """
    chosen = _chosen(core, index)
    _refuse_system(index)
    shown = (PageState.OPEN, PageState.ACTIVE)
    there = [facts for facts in chosen if facts.state in shown or facts.pinned == pinned or _is_listed(core, facts.index)]
    if not there:
        raise PageEvictedError(index)
    changed = [facts for facts in there if facts.pinned != pinned]
    restored = _restored(core, [facts for facts in changed if facts.state not in shown])
    if changed:
        core.commit([*restored, *(PagePinned(page=facts.index, pinned=pinned) for facts in changed)])


def _refuse_system(index: str) -> None:
    """Refuse to do to the system part what concerns pages that leave the window."""
    if segment_of(index) == SYSTEM:
        message = f"page {index} is a part of the system prompt, which never leaves the window: it needs no pin, and cannot go"
        raise PermissionDeniedError(message)


def _directories_within(core: Core, index: str) -> list[Directory]:
    """Return the directories of the contents page all of whose pages lie in a range. O(entries)."""
    if not is_range(index) or segment_of(index) != USER:
        return []
    first, last = page_number(index), last_number(index)
    directories = [entry for entry in core.state.archive.entries if isinstance(entry, Directory)]
    return [each for each in directories if first <= each.covers[0][0] and each.covers[-1][1] <= last]


def _is_within(index: str, directories: Sequence[Directory]) -> bool:
    """Return whether an attached page is one of those that directories group."""
    return not is_range(index) and any(directory.holds(page_number(index)) for directory in directories)


def _chosen(core: Core, index: str, but: Sequence[Directory] = ()) -> list[PageFacts]:
    """Return the facts of the page of an index, or of the pages of a range, evicted ones too, but of those in directories."""
    pages.refuse_root(index)
    if not is_range(index):
        return [pages.get_facts(core, index)]
    if segment_of(index) == SYSTEM:
        return list(pages.read(core, index).pages)
    first, last = page_number(index), last_number(index)

    def found(known: "PageIndex") -> list[PageFacts]:
        return [facts for facts in known.pages(numbers=(first, last)) if not _is_within(facts.index, but)]

    chosen = core.ask(found) if segment_of(index) == USER else []
    if not chosen and not but:
        raise listing.empty(index)
    return [core.facts_now(facts) for facts in chosen]


def _is_listed(core: Core, index: str) -> bool:
    """Return whether the contents page lists a page, in a directory or for itself."""
    return core.state.archive.find_entry(index) is not None or core.state.archive.find_directory(index) is not None


def _restored(core: Core, chosen: Sequence[PageFacts]) -> list[PageRestored]:
    """Return the events that give archived pages entries of their own, where they have none. O(their size)."""
    limit = planner.contents_limit(core.state, core.config, core.config.budget.tokens)
    events = []
    for facts in chosen:
        if core.state.archive.find_entry(facts.index) is not None:
            continue
        page = pages.load(core, facts.index)
        entry = folding.make_entry(core, page, limit, sha256=facts.sha256, revision=facts.revision)
        entry = attrs.evolve(entry, recall_count=facts.recall_count, last_recall_turn=facts.last_recall_turn)
        events.append(PageRestored(page=facts.index, entry=entry.to_mapping()))
    return events
