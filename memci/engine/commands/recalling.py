"""Pages that come back, leave again, and what the contents page lists."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import attrs

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import ContentsEntry, Directory, Item
from memci.archive.contents.shrink import Policy, Stale, ZeroRecall, evictions
from memci.archive.contents.tree import Segment
from memci.chapters.address import is_foreign, is_range, last_number, page_number, segment_of
from memci.chapters.page import Page
from memci.engine.commands import folding, preparing, quoting
from memci.engine.core.core import Core
from memci.engine.core.monitor import Eviction, Recall
from memci.engine.history import blocks
from memci.engine.history.events import Event, PagePinned, PageRecalled, PageRestored, PagesEvicted, PagesFaded
from memci.engine.history.page_codec import page_value
from memci.engine.history.state import SYSTEM, USER
from memci.engine.reading import pages
from memci.engine.summaries import summarizing
from memci.engine.view import planner
from memci.engine.view.layout import lay_out_least
from memci.engine.view.planner import FoldPlan
from memci.errors import PageEvictedError, PageNotFoundError, PermissionDeniedError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

RECEIPT_TOKENS = 128  # what the answer to whoever recalled a page takes of the next window

DISTANCE = "Distance"  # what evicts a page that is further away than ``levels.gone``
_CHUNK = 16  # numbers of pages of a directory that are looked at together

_VERBATIM = (PageState.OPEN, PageState.ACTIVE)


def recall(core: Core, index: str, *, lasting: bool = False, by: str = "") -> Page:
    """Attach an archived page and return it; one that is attached stays longer, one in the window is just returned.

    Of a range of pages, and of a directory that was made, their list is attached. Recalled pages have a share of the budget:
    beyond it the least recently used ones fade. A page for which there is no room is returned and not attached, and observers
    hear of that. A *lasting* one was opened, and no turn lets it fade; with a directory comes what stood open in it before.
    """
    node = core.state.tree.find(index)
    if node is not None and core.state.tree.is_removed(index):
        raise PageEvictedError(index)
    if is_range(index) or (node is not None and node.is_directory):
        return attach(core, pages.load(core, index), lasting=lasting, by=by)
    facts = pages.get_facts(core, index)
    if facts.state in _VERBATIM:
        if index not in next_steps(core)[0]:
            return pages.load(core, index)
        folding.fold(core, FoldPlan(pages=(index,), reason="budget"))
        facts = pages.get_facts(core, index)
    elif facts.state is PageState.EVICTED and not core.state.archive.shows(index):
        raise PageEvictedError(index)
    is_new = facts.state is not PageState.ATTACHED and index not in core.state.system
    now = attrs.evolve(facts, recall_count=facts.recall_count + is_new, last_recall_turn=core.state.turn)
    again = _restored(core, [now]) if facts.state is PageState.HIDDEN and facts.recall_count else []
    page = attach(core, pages.load(core, index), now.recall_count, again, lasting=lasting, by=by)
    if is_new and index in core.state.recalled:
        core.monitor.tell(Recall(page=index, recall_count=facts.recall_count + 1))
    return page


def next_steps(core: Core) -> tuple[Sequence[str], Sequence[str]]:
    """Return the pages that the next window folds, and those that it trims, once it holds the answer to whoever recalls a page.

    O(visible).
    """
    state, budget = core.state, max(planner.next_budget(core.state, core.config) - RECEIPT_TOKENS, 1)
    if core.next_steps[0] != state.seq:
        layout = core.lay_out(state, None if state.settled is None else attrs.evolve(state.settled, excerpts={}))
        plan = (
            planner.plan_budget(state, core.config, layout, budget) if layout.tokens > budget else FoldPlan(pages=(), reason="")
        )
        core.next_steps = (state.seq, plan.pages, plan.trimmed)
    return core.next_steps[1:]


def attach(  # noqa: PLR0913 (how it is attached)
    core: Core, page: Page, recall_count: int = 0, again: Sequence[PageRestored] = (), *, lasting: bool = False, by: str = ""
) -> Page:
    """Attach a page or the list of several, or renew how long it stays, where recalled pages may have the room.

    *again* gives a page that was recalled before its own entry in the contents page.
    """
    index = page.index
    event = _attaching(core, page, recall_count, lasting=lasting, by=by)
    faded = _giving_way(core, event)
    if faded is None:
        if index in core.state.recalled:  # the next window would let it go
            core.commit([PagesFaded(pages=[index], reason="share")])
        known = None if is_foreign(index) else core.facts(index)
        core.monitor.tell(Recall(page=index, recall_count=known.recall_count if known is not None else 0, refused=True))
        return page
    attached = {index: each.tokens for index, each in core.state.recalled.attachments.items() if index not in faded}
    taken = sum(attached.values()) + (0 if index in attached else event.block_tokens)
    more = list(_reopening(core, index, by, taken)) if lasting and index not in core.state.recalled else []
    taken += sum(each.block_tokens for each in more)
    room = core.config.recall.max_share * planner.next_budget(core.state, core.config) / core.state.scale - taken
    others = quoting.giving_way(core, index, room)
    core.commit([*([PagesFaded(pages=faded, reason="share")] if faded else []), event, *again, *more, *others])
    for each in more:
        core.monitor.tell(Recall(page=each.page, recall_count=each.recall_count))
    return page


def _reopening(core: Core, directory: str, by: str, taken: int) -> Iterator[PageRecalled]:
    """Yield the events that open what stood open in a directory when it was closed, as far as there is room for it."""
    state, room = core.state, _room(core)
    half = state.tree.segment(directory).half_tokens
    room = room if half is None else min(room, half)
    for index in state.tree.left_open.get(directory, ()):
        node = state.tree.find(index)
        if node is None or all(above.index != directory for above in state.tree.path(index)):
            continue  # it was moved out meanwhile, perhaps to where it may not be opened
        if state.page_state(index) not in (PageState.ARCHIVED, PageState.HIDDEN):
            continue
        is_list = node.is_directory
        count = 0 if is_list else pages.get_facts(core, index).recall_count + 1
        event = _attaching(core, pages.load(core, index), count, lasting=True, by=by)
        if math.ceil((taken + event.block_tokens) * state.scale) <= room:
            taken += event.block_tokens
            yield event


def _room(core: Core) -> int:
    """Return what recalled pages may take: their share, as far as the next window spares it when all else gave way."""
    budget = planner.next_budget(core.state, core.config)
    least = lay_out_least(core.state, core.state.settled).tokens
    return min(int(core.config.recall.max_share * budget), budget - RECEIPT_TOKENS - least)


def _giving_way(core: Core, event: PageRecalled) -> list[str] | None:
    """Return which recalled pages fade for another one, the least recently used first; ``None`` where it has no room.

    That is what recalled pages may take, and the room that the capacity of its segment leaves to opened pages.
    """
    state, room = core.state, _room(core)
    known = state.recalled.attachments.get(event.page)
    own = math.ceil((event.block_tokens if known is None else known.tokens) * state.scale)
    if own > room:
        return None
    others = {index: math.ceil(each.tokens * state.scale) for index, each in state.recalled.least_used() if index != event.page}
    segment, faded = state.tree.segment(event.page), list[str]()
    if (half := segment.half_tokens) is not None:
        if own > half:
            return None
        faded = _over({each: others[each] for each in others if state.tree.segment(each) == segment}, own - half)
    return faded + _over({index: others[index] for index in others if index not in faded}, own - room)


def _over(attached: Mapping[str, int], over: int) -> list[str]:
    """Return which pages fade, the first of them first, where they take so much too much together with what is *over*."""
    over, faded = over + sum(attached.values()), []
    for index, tokens in attached.items():
        if over > 0:
            faded.append(index)
            over -= tokens
    return faded


def over_capacity(core: Core, segment: Segment) -> list[str]:
    """Return which pages fade where a segment has these settings, the least recently used first."""
    if (half := segment.half_tokens) is None:
        return []
    state = core.state
    attached = [each for each in state.recalled.least_used() if state.tree.segment(each[0]).name == segment.name]
    return _over({index: math.ceil(each.tokens * state.scale) for index, each in attached}, -half)


def _attaching(core: Core, page: Page, recall_count: int, *, lasting: bool, by: str) -> PageRecalled:
    """Return the event that attaches a page, or the list of several, or that renews how long it stays."""
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
        media=True,
        dated=blocks.DATED,
        lasting=lasting,
        by=by,
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
    """Take archived pages' entries out of the contents page; what is attached fades. Directories that lie in a range go whole."""
    directories = _directories_within(core, index)
    chosen = _chosen(core, index, directories)
    _refuse_system(index)
    for facts in chosen:
        if facts.state in _VERBATIM:
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
    """Give pages their own entry in the contents page again, where they have none; its age begins anew."""
    events = _restored(core, _chosen(core, index))
    if events:
        core.commit(events)


def pin(core: Core, index: str, *, pinned: bool) -> None:
    """Keep pages' entries from ever being evicted, or let them go again; those in a directory get their own entry first."""
    chosen = _chosen(core, index)
    _refuse_system(index)
    if (node := core.state.placement(index)) is not None and node.is_directory:
        message = f"{index} is a directory, which lists pages: pin those of them that are to stay"
        raise PermissionDeniedError(message)
    there = [facts for facts in chosen if facts.pinned == pinned or _may_pin(core, facts)]
    if not there:
        raise PageEvictedError(index)
    changed = [facts for facts in there if facts.pinned != pinned]
    if changed:
        core.commit([*_restored(core, changed), *(PagePinned(page=facts.index, pinned=pinned) for facts in changed)])


def _may_pin(core: Core, facts: PageFacts) -> bool:
    """Return whether a page is there to be pinned: in the window, listed, or in a directory that was made."""
    is_placed = core.state.tree.find(facts.index) is not None and not core.state.tree.is_removed(facts.index)
    return facts.state in _VERBATIM or is_placed or _is_listed(core, facts.index)


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
    pages.refuse_root(core, index)
    if not is_range(index):
        return [pages.get_facts(core, index)]
    if segment_of(index) == SYSTEM:
        return list(pages.read(core, index).pages)
    first, last = page_number(index), last_number(index)

    def found(known: "PageIndex") -> list[PageFacts]:
        return [facts for facts in known.pages(numbers=(first, last)) if not _is_within(facts.index, but)]

    chosen = core.ask(found) if segment_of(index) == USER else []
    if not chosen and not but:
        raise pages.not_found(index, "holds no pages")
    return [core.facts_now(facts) for facts in chosen]


def _is_listed(core: Core, index: str) -> bool:
    """Return whether the contents page lists a page, in a range or for itself, and nobody placed it elsewhere."""
    if core.state.tree.find(index) is not None:
        return False
    return core.state.archive.find_entry(index) is not None or core.state.archive.find_directory(index) is not None


def _restored(core: Core, chosen: Sequence[PageFacts]) -> list[PageRestored]:
    """Return the events that give archived pages entries of their own, where they have none. O(their size)."""
    loose = [facts for facts in chosen if core.state.placement(facts.index) is None]
    return [PageRestored(page=entry.index, entry=entry.to_mapping()) for entry in own_entries(core, loose)]


def own_entries(core: Core, chosen: Sequence[PageFacts]) -> list[ContentsEntry]:
    """Return entries of their own for archived pages that have none. O(their size)."""
    limit = planner.contents_limit(core.state, core.config, core.config.budget.tokens)
    entries = []
    for facts in chosen:
        if facts.state in _VERBATIM or core.state.archive.find_entry(facts.index) is not None:
            continue
        page = pages.load(core, facts.index, late=())  # as its file is, which takes late results in at the next fold
        made = preparing.make_entry(core, page, planner.entry_room(limit, page.tokens))
        kept = {name: getattr(facts, name) for name in ("sha256", "revision", "recall_count", "last_recall_turn")}
        made = summarizing.keeping_title(core, made, core.state.archive.find_directory(facts.index))
        entries.append(attrs.evolve(made, archived_turn=core.state.turn, pinned=facts.index in core.state.pinned, **kept))
    return entries


def turn_events(core: Core, turn: int, mentioned: Collection[str] = (), touched: Collection[str] = ()) -> list[Event]:
    """Return what happens because a turn begins, in which pages were *mentioned* or *touched*. O(entries), and what leaves.

    With ``levels.gone`` the search index is asked for the oldest pages of directories.
    """
    attached, eviction, gone = core.state.recalled.attachments, core.config.eviction, core.config.levels.gone
    most = core.config.recall.turns
    faded = [index for index, each in attached.items() if not (index in mentioned or each.lasting) and turn - each.turn >= most]
    events: list[Event] = [PagesFaded(pages=faded, reason="turns")] if faded else []
    ages = ((ZeroRecall, eviction.zero_recall_turns), (Stale, eviction.stale_turns))
    policies: list[Policy] = [policy(turns=turns) for policy, turns in ages if turns is not None]
    evicted = evictions(policies, core.state.archive.entries, turn) if policies else []
    if gone is not None:
        left = {index for index, _ in evicted}
        entries = (entry for entry in core.state.archive.entries if entry.index not in left)
        evicted += [(index, DISTANCE) for index in _far_away(core, entries, turn - gone) if index not in (*mentioned, *touched)]
    return [*events, PagesEvicted(pages=[list(pair) for pair in evicted])] if evicted else events


def _far_away(core: Core, entries: Iterable[Item], least: int) -> list[str]:
    """Return the pages of entries and directories that were opened and touched before a turn, oldest first; no pinned one."""
    state, far = core.state, list[str]()
    for entry in entries:
        if isinstance(entry, Directory):
            far += (index for index in _opened_before(core, entry, least) if state.touched.get(index, 0) < least)
        elif not entry.pinned and state.near_turn(entry) < least:
            far.append(entry.index)
    return sorted(far, key=page_number)


def _opened_before(core: Core, directory: Directory, least: int) -> Iterator[str]:
    """Yield the pages of a directory, oldest first, that were opened before a turn. O(those)."""
    for first, last in directory.covers:
        for number in range(first, last + 1, _CHUNK):

            def found(index: "PageIndex", first: int = number, last: int = min(last, number + _CHUNK - 1)) -> "list[PageFacts]":
                return list(index.pages(numbers=(first, last)))

            pages = core.ask(found)
            older = [each.index for each in takewhile(lambda each: each.turn < least, pages)]
            yield from older
            if len(older) < len(pages):
                return
