"""Folding: summarise each page, write its file durably, commit one event; only then do the pages leave the window."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import Any

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Directory, Item, within
from memci.archive.contents.importance import Weights
from memci.archive.contents.outline import SHARE as OUTLINE_SHARE
from memci.archive.contents.outline import Shortened, beside, outline, shorten
from memci.archive.contents.shrink import Shrinkage, shrink
from memci.archive.contents.working_set import Kind, WorkingSet, as_values, continuation_value, render
from memci.archive.facts.finding import facts_of
from memci.archive.facts.table import MOST_FACTS, FactTable, table_value
from memci.archive.facts.table import as_values as fact_values
from memci.chapters.address import page_number
from memci.chapters.page import Page
from memci.engine.commands import keeping, preparing, trimming
from memci.engine.core.core import Core
from memci.engine.core.kept_state import PreparedPage
from memci.engine.core.monitor import Eviction, Fold, FoldFailed, logger
from memci.engine.history import blocks
from memci.engine.history.directives import SHARE, Directive, directives_of, fitting, marked, merged
from memci.engine.history.events import Event, FoldUndone, PageRecalled, PagesFaded, PagesFolded
from memci.engine.history.folded import entries_before_fold
from memci.engine.history.page_codec import file_name, page_value
from memci.engine.history.state import LastFold, State
from memci.engine.reading import pages
from memci.engine.settings.setting import refusal
from memci.engine.summaries import continuing, summarizing
from memci.engine.view import planner
from memci.engine.view.planner import FoldPlan
from memci.errors import ConfigError, ConflictError, MemciError
from memci.messages.tokens.message_tokens import PLAIN_TOKENS

LIGHTER = {"light": 0.2, "medium": 0.4, "heavy": 0.6}  # by which share a fold makes a window smaller
WORKING_SHARE, MOST_WORKING_TOKENS = 0.36, 360  # what the working set may take of the contents page's room, and at most


def fold_at_marks(core: Core, opened: int) -> None:
    """Fold what the marks ask for, once so many pages were *opened*, and keep what the settings ask for of those before them.

    A failure is reported, and tried again when the next page opens.
    """
    complete, active = list[str](), core.config.active
    if active.keep_bookmarks or active.keep_errors or active.keep_first_successes or active.keep_decisions:
        page = core.state.active.open_page
        while page is not None and page.previous is not None and len(complete) < opened:
            page = page.previous
            complete.append(page.index)

    def fold_planned(core: Core) -> None:
        if complete:
            keeping.keep_by_rule(core, complete[::-1])
        if core.planner is None:
            plan = planner.plan(core.state, core.config, core.lay_out)
        else:
            plan = planner.planned_by(core.planner, core.state, core.config)
        if plan.pages or plan.trimmed:
            fold(core, plan)

    try:
        core.run(fold_planned, core.config.on_conflict)
    except Exception as error:  # noqa: BLE001 (the append is committed: nothing that a fold meets may hide it)
        tell = logger(core.key).info if isinstance(error, ConflictError) else logger(core.key).warning
        said = str(error) if isinstance(error, MemciError) else repr(error)
        tell("session %r: a fold failed and is tried again: %s", core.session_id, said)
        core.monitor.tell(FoldFailed(error=error))


def fold_command(core: Core, wanted: str | int | Collection[str | int] | None, to: object = None) -> Fold:
    """Fold down to the low marks for ``None``, all that is complete for ``"all"``, else these pages; or fold down *to* a size."""
    if to is not None and wanted is not None:
        message = "give pages to fold, or a size to fold down to, and not both"
        raise ConfigError(message, path="to")
    if to is not None:
        return _fold_to(core, to)
    if wanted == "all":
        named: Collection[str] | None = {page.index for page in core.state.active.pages()}
    elif wanted is None:
        named = None
    else:
        several = wanted if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
        named = {pages.page_index(index) for index in several}
        for index in named:
            pages.refuse_root(core, index)
            pages.get_facts(core, index)
    return fold(core, planner.plan_command(core.state, core.config, named, core.lay_out))


def _fold_to(core: Core, to: object) -> Fold:
    """Make the window smaller by the share of a word, or bring it down to a number of tokens.

    Opened pages close first, as far as they are too much. The contents page takes what it may of the configured budget, where
    that is enough; else what it would of a budget of that size, unless that evicted entries.
    """
    tokens, most = core.lay_out(core.state, core.state.settled).tokens, core.config.budget.tokens
    if isinstance(to, str) and to in LIGHTER:
        goal = int((1 - LIGHTER[to]) * tokens)
    elif type(to) is int and to > 0:
        goal = to
    else:
        raise refusal(path="to", value=to, allowed=f"{', '.join(LIGHTER)}, or a number of tokens above 0")
    done = Fold(pages=(), tokens_before=tokens, tokens_after=tokens, reason="command", seq=0)
    if tokens > goal and (closed := _opened(core, tokens - goal)):
        core.commit([PagesFaded(pages=closed, reason="fold")])
        done = _told(core, tokens, "command")
    if done.tokens_after <= goal:
        return done
    plan, is_enough = _plan_to(core, goal, most)
    for budget in (most,) if is_enough or goal >= most else (goal, most):
        folded = fold(core, plan if budget == most else _plan_to(core, goal, budget)[0], budget=budget, evict=budget == most)
        if folded.seq:
            return attrs.evolve(folded, tokens_before=tokens)
    return done


def _opened(core: Core, over: int) -> list[str]:
    """Return the opened pages that make so much room when they close, or all there are, the least recently used ones first."""
    closed = []
    for index, attachment in core.state.recalled.least_used():
        if over > 0 and attachment.lasting:
            closed.append(index)
            over -= int(attachment.tokens * core.state.scale)
    return closed


def _plan_to(core: Core, goal: int, budget: int) -> tuple[FoldPlan, bool]:
    """Return what brings a window down to so many tokens with the contents page of a *budget*, and whether that is enough."""
    state, config = core.state, core.config
    usual, listed = planner.contents_limit(state, config, budget), config.contents.listed

    def added(folded: Sequence[Page]) -> float:
        if not folded:
            return 0
        taken = [preparing.take(core, page, planner.entry_room(usual, page.tokens)) for page in folded]
        more = state.instruction_tokens if state.archive.message_list.head is None else 0
        noted = _working(core, taken, usual)
        working, facts = _shown_tokens(noted), _fact_tokens(noted)
        if listed or config.summary.continuation:
            more += working - (state.working.message_tokens if listed or state.working.continues else 0)
        directives, _ = _directives(core, folded)
        more += sum(each.node.tokens for each in directives if not each.repeated) - state.directive_tokens
        if not listed:
            return more
        more += facts - state.working.facts.tokens
        made, most = [_archived(core, each) for each in taken], usual - min(working, int(WORKING_SHARE * usual)) - facts
        contents = _contents_with(core, made, [page.index for page in folded])
        shortened, outline_tokens = _outline(core, contents, most)
        (most,) = beside(state.tree, [most], shortened, outline_tokens, core.counter.count)
        left = _shrunk(core, contents, limit=most, room=most, evict=budget == config.budget.tokens)
        return more + contents_tokens(core, left.entries, shortened) - state.archive.tokens

    plan, layout = planner.plan_to(state, config, goal, added, core.lay_out), core.lay_out(state, state.settled)
    folded = [page for index in plan.pages if (page := state.active.find_page(index)) is not None]
    left = layout.tokens - sum(layout.page(page.index) for page in folded) + added(folded) * state.scale
    return plan, left <= goal


def fold(  # noqa: PLR0913, PLR0915 (what bounds it; its steps in their order)
    core: Core, plan: FoldPlan, *, limit: int | None = None, evict: bool = True, budget: int | None = None, title: str = ""
) -> Fold:
    """Carry a plan out, or do nothing, where nothing is to be done. With a *title*, the topic is closed under it.

    The contents page has its room of a *budget*, by default the configured one. A tighter *limit* brings it down to that and no
    further; without *evict* entries keep some lines, or nothing is done.
    """
    state, config = core.state, core.config
    before, rules = core.lay_out(state, state.settled).tokens, state.rules_in_reach() if state.rules else ()
    trims = trimming.trims(core, plan.trimmed)
    if trims and not plan.pages:
        core.commit(trims)
        return _told(core, before, plan.reason)
    folded = [page for index in dict.fromkeys(plan.pages) if (page := state.active.find_page(index)) is not None]
    kept = [page.index for page in folded if page.index in state.kept] if state.kept else ()
    directives, dropped = _directives(core, folded)
    usual = planner.contents_limit(state, config, config.budget.tokens if budget is None else budget)
    taken = [preparing.take(core, page, planner.entry_room(usual, page.tokens)) for page in folded]
    working = _working(core, taken, usual) if taken else None
    shown = state.working.message_tokens if working is None else _shown_tokens(working)
    facts = state.working.facts.tokens if working is None else _fact_tokens(working)
    most = usual - min(shown, int(WORKING_SHARE * usual)) - facts
    low_share = config.contents.low_share if limit is None or limit >= most else 1.0
    limit = most if limit is None else min(limit, most)
    revised, attached = {index: pages.load(core, index) for index in state.late}, state.recalled.attachments
    taken += [preparing.take(core, page, planner.entry_room(usual, page.tokens)) for page in revised.values()]
    revisions = dict.fromkeys((page.index for page in folded), 0)
    revisions |= {index: pages.get_facts(core, index).revision + 1 for index in revised}
    entries = [summarizing.summarized(core, _archived(core, made, revisions[made.page.index])) for made in taken]
    better = {item.index: item for item in summarizing.improved(core, state.archive.entries) if item.index not in revised}
    entries += [item for item in better.values() if isinstance(item, ContentsEntry)]
    contents = _contents_with(core, [*better.values(), *entries], plan.pages)
    shortened, outline_tokens = _outline(core, contents, limit, grows=bool(plan.pages) or plan.reason != "budget")
    limit, most = beside(state.tree, [limit, most], shortened, outline_tokens, core.counter.count)
    topic, closed = _closing(state, title, contents)
    if len(closed) == 1:
        entries = [each for each in entries if each is not closed[0]]
        entries.append(summarizing.sized(core, summarizing.titled(closed[0], title)))
        contents = _contents_with(core, [*better.values(), *entries], plan.pages)
    shrinkage = _shrunk(
        core,
        contents,
        limit=limit,
        room=most,
        low_share=low_share,
        evict=evict,
        titled=(title, [entry.index for entry in closed]) if len(closed) > 1 else None,
    )
    too_large = not evict and sum(entry.contents_tokens for entry in shrinkage.entries) > limit
    changed = entries or better or shrinkage.details or shrinkage.directories or shrinkage.evicted or _stale_text(core, shortened)
    if too_large or not changed:
        return Fold(pages=(), tokens_before=before, tokens_after=before, reason=plan.reason, seq=0)
    _put_files(core, taken, revisions)
    changes = {each.index for each in shrinkage.directories} | better.keys()
    directories = [each for each in shrinkage.entries if isinstance(each, Directory) and each.index in changes]
    said = state.archive.said(min((each.covers[0][0] for each in directories), default=0))
    at_once = within((page.index for page in folded), directories)
    if state.tree:
        at_once.update(page.index for page in folded if state.tree.find(page.index) is not None)
    is_outlined = (shortened, outline_tokens) == (state.tree.shortened, state.tree.outline_tokens)
    event = PagesFolded(
        reason=plan.reason,
        turn=state.turn,
        entries=[entry.to_catalogue() if entry.index in at_once else entry.to_mapping() for entry in entries],
        folded=[page.index for page in folded],
        revised={
            index: core.count(blocks.page_block(page, state.wire, media=block.media, dated=block.dated))
            if (block := attached.get(index))
            else 0
            for index, page in revised.items()
        },
        details={index: detail.value for index, detail in shrinkage.details.items()},
        directories=[directory.to_mapping(said) for directory in directories],
        evicted=[list(pair) for pair in shrinkage.evicted],
        contents_tokens=contents_tokens(core, shrinkage.entries, shortened),
        topic=topic or None,
        working=working,
        directives=[[each.node.seq, each.last_seq] for each in directives] if directives or state.directives else None,
        outline=None if is_outlined else {"tokens": outline_tokens, "shortened": shortened},
        read=directories,
    )
    core.commit([*trims, event])
    _list_anew(core)
    core.catch_up()
    evicted = [index for index, _ in shrinkage.evicted]
    done = _told(core, before, plan.reason, event.folded, evicted, kept=kept, dropped=dropped, rules=rules)
    if shrinkage.evicted:
        core.monitor.tell(Eviction(pages=tuple(shrinkage.evicted)))
    return done


def _directives(core: Core, folded: Collection[Page]) -> tuple[list[Directive], list[str]]:
    """Return the directives that windows keep once pages fold, and the addresses of those without room. O(visible)."""
    state = core.state
    new = [directive for page in folded for directive in directives_of(page, state.system_seq)]
    if not new and not state.directives:
        return [], []
    gone = {page.index for page in folded}
    visible = (node for page in state.active.pages() if page.index not in gone for node in page.nodes())
    directives = marked(merged([*state.directives, *new]), visible)
    budget = max(core.config.budget.tokens, planner.next_budget(state, core.config))
    shown = fitting(
        [directive for directive in directives if not directive.repeated],
        SHARE * planner.conversation_budget(state, budget) / state.scale,
    )
    kept = [directive for directive in directives if directive.repeated or directive in shown]
    return kept, [directive.address for directive in directives if directive not in kept]


def _put_files(core: Core, taken: Sequence[PreparedPage], revisions: Mapping[str, int]) -> None:
    """Write the files of pages that have none yet."""
    if files := {file_name(made.page.index, revisions[made.page.index]): made.file for made in taken if made.file is not None}:
        core.store.pages.put(files)
        for made in taken:
            made.file = None


def _list_anew(core: Core) -> None:
    """Let opened directories list what is in them now, where they do not. O(what they list)."""
    state, events = core.state, list[Event]()
    for shown in state.recalled.pages():
        node = state.tree.find(shown.index)
        if node is None or not node.is_directory:
            continue
        page, known = pages.load(core, shown.index), state.recalled.attachments[shown.index]
        if [each.message.raw for each in page.nodes()] == [each.message.raw for each in shown.nodes()]:
            continue
        block = blocks.page_block(page, state.wire)
        events.append(PagesFaded(pages=[page.index], reason="listed anew"))
        event = PageRecalled(
            page=page.index,
            turn=known.turn,
            recall_count=0,
            anchor=known.anchor,
            content=page_value(page),
            block_tokens=core.count(block),
            media=True,
            dated=blocks.DATED,
            lasting=known.lasting,
        )
        events.append(event)
    if events:
        core.commit(events)


def undo_fold(core: Core, meant: LastFold | None) -> Fold:
    """Bring the pages of the last fold back into view, where it is still the one that was *meant*."""
    last = core.state.last_fold
    if (last and last.folded) != (meant and meant.folded):
        what = "the last fold is another one"
        raise core.changed(what)
    if last is None:
        message = "there is no fold to undo: none happened since the session began, was rewound, or undid its last fold"
        raise MemciError(message)
    before = core.lay_out(core.state, core.state.settled).tokens
    values = [page_value(pages.load(core, index)) for index in last.folded]
    facts = [pages.get_facts(core, index) for index in last.folded]
    recalls = {each.index: [each.recall_count, each.last_recall_turn] for each in facts if each.last_recall_turn is not None}
    tokens = contents_tokens(core, entries_before_fold(core.state))
    core.commit([FoldUndone(pages=values, contents_tokens=tokens, recalls=recalls, titles=dict(last.titles))])
    return _told(core, before, "undo", last.folded)


def _told(  # noqa: PLR0913 (what a fold tells)
    core: Core,
    before: int,
    reason: str,
    pages: Sequence[str] = (),
    evicted: Sequence[str] = (),
    *,
    kept: Sequence[str] = (),
    dropped: Sequence[str] = (),
    rules: Sequence[str] = (),
) -> Fold:
    """Tell observers of what was committed just now, and return it; before it, *rules* were in reach."""
    in_reach = core.state.rules_in_reach() if rules else ()
    after, seq, gone = core.lay_out(core.state, core.state.settled).tokens, core.state.seq, tuple(evicted)
    done = Fold(
        pages=tuple(pages),
        evicted=gone,
        tokens_before=before,
        tokens_after=after,
        reason=reason,
        seq=seq,
        kept=tuple(kept),
        dropped_directives=tuple(dropped),
        dropped_rules=tuple(address for address in rules if address not in in_reach),
    )
    core.monitor.tell(done)
    return done


def topic_of(items: Sequence[Item], after: int) -> list[ContentsEntry]:
    """Return what a topic that is closed takes of the contents page: the newest entries that are neighbours, oldest first.

    They are of pages with a number above *after*. Pinned ones stay as they are, where there are others.
    """
    singly = takewhile(_is_single, dropwhile(lambda item: not _is_single(item), reversed(items)))
    entries = [item for item in singly if isinstance(item, ContentsEntry) and page_number(item.index) > after]
    return [entry for entry in reversed(entries) if not entry.pinned] or entries[:1]


def _is_single(item: Item) -> bool:
    return isinstance(item, ContentsEntry)


def contents_tokens(
    core: Core, entries: Sequence[Item], shortened: Shortened | None = None, gone: Mapping[str, int] | None = None
) -> int:
    """Return the size of the message that shows the contents page with these entries; 0 for none. O(what is new in it).

    What was made stands there *shortened* as given, by default as it was last, without the pages that are *gone*, by directory.
    """
    made = outline(core.state.tree, shortened, gone) if core.state.tree else ()
    if not entries and not made:
        return 0
    parts = core.state.archive.preview(entries, made).parts()
    return PLAIN_TOKENS + core.contents_count.count(parts, core.counter)


def count_pages(core: Core, first: int, last: int) -> int:
    """Return how many pages have a number from one to another."""
    return core.ask(lambda index: index.count_pages(first, last))


def _archived(core: Core, made: PreparedPage, revision: int = 0) -> ContentsEntry:
    """Return the entry of a page as it is archived now: a new one, or that of a new *revision*, which keeps what it had."""
    state, index = core.state, made.page.index
    known = state.archive.find_entry(index)
    if known is not None:
        kept = {name: getattr(known, name) for name in ("archived_turn", "recall_count", "last_recall_turn", "pinned")}
    else:
        recall_count, last_recall_turn = state.recalls.get(index, (0, None))
        kept = {
            "archived_turn": state.turn,
            "recall_count": recall_count,
            "last_recall_turn": last_recall_turn,
            "pinned": index in state.pinned,
        }
    return attrs.evolve(summarizing.keeping_title(core, made.entry, known), revision=revision, **kept)


def _shown_tokens(working: Mapping[str, Any]) -> int:
    """Return the size of the message that shows the working set of an event, or a continuation in its place."""
    tokens: int = (working.get("continuation") or working)["tokens"]
    return tokens


def _fact_tokens(working: Mapping[str, Any]) -> int:
    """Return the tokens of the facts block in the working set of an event."""
    tokens: int = working["facts"]["tokens"] if "facts" in working else 0
    return tokens


def _closing(state: State, title: str, contents: Sequence[Item]) -> tuple[dict[str, Any], list[ContentsEntry]]:
    """Return what the event tells of a topic that is closed under a title, and its entries; nothing without a title."""
    closed = topic_of(contents, state.topic) if title else []
    if not closed:
        return {}, []
    topic: dict[str, Any] = {"title": title, "first": state.topic + 1, "last": max(item.covers[-1][1] for item in contents)}
    if len(closed) == 1:
        topic["was"] = {closed[0].index: closed[0].title}
    return topic, closed


def _shrunk(  # noqa: PLR0913 (what decides it)
    core: Core,
    contents: Sequence[Item],
    *,
    limit: int,
    room: int,
    low_share: float | None = None,
    evict: bool,
    titled: tuple[str, Sequence[str]] | None = None,
) -> Shrinkage:
    """Return the contents page brought below its limit."""
    return shrink(
        contents,
        limit=limit,
        room=room,
        low_share=core.config.contents.low_share if low_share is None else low_share,
        directories=core.config.contents.directories,
        turn=core.state.turn,
        count=core.counter.count,
        has_pages=lambda first, last: count_pages(core, first, last) > 0,
        evict=evict,
        titled=titled,
        far=_far(core, contents),
        weights=_weights(core) if core.config.eviction.order == "importance" else None,
        length=planner.page_length(core.state),
    )


def show_outline(core: Core) -> None:
    """Let the window show what was made, where it shows no contents page yet, and so would not before a first page folds."""
    shows = core.state.archive.message_list.head is not None or not core.config.contents.listed
    if not shows and core.state.contents.entries:
        fold(core, FoldPlan(pages=(), reason="edits"))


def _outline(core: Core, contents: Sequence[Item], limit: int, *, grows: bool = True) -> tuple[Shortened, int]:
    """Return how the outline is shortened, and its size then: it may take what entries leave, and its share in any case.

    It takes no more than it did unless it *grows*: what a window gave up to fit is not listed again by the next step.
    """
    if not core.state.tree or not core.config.contents.listed:
        return {}, 0
    left = limit - sum(entry.contents_tokens for entry in contents)
    room = max(left, int(OUTLINE_SHARE * limit), 0)
    return shorten(core.state.tree, room if grows else min(room, core.state.tree.outline_tokens), core.counter.count)


def _weights(core: Core) -> Weights:
    """Return what importance is made of."""
    return Weights(**{name: getattr(core.config.eviction, f"{name}_weight") for name in attrs.fields_dict(Weights)})


def _contents_with(core: Core, entries: Sequence[Item], folded: Collection[str]) -> list[Item]:
    made = {entry.index: entry for entry in entries}
    items: list[Item] = [made.pop(item.index, item) for item in core.state.archive.entries]
    items += [entry for index, entry in made.items() if index in folded and core.state.placement(index) is None]
    return sorted(items, key=lambda item: page_number(item.index))


def _far(core: Core, items: Iterable[Item]) -> set[str] | None:
    """Return the pages whose entries go into a directory for their distance; ``None`` where no level asks for that."""
    most = core.config.levels.directory
    if most is None:
        return None
    return {item.index for item in items if isinstance(item, ContentsEntry) and planner.distance(core.state, item) > most}


def _working(core: Core, folded: Sequence[PreparedPage], limit: int) -> dict[str, Any]:
    """Return what the working set takes from pages that fold, and what it shows then: no command or item that is not the last.

    Where there is a continuation, what it shows is that.
    """
    from memci.archive.contents.noting import latest_kinds  # noqa: PLC0415 (compiles many patterns)

    state, gone, continues = core.state, {each.page.index for each in folded}, core.config.summary.continuation
    notes, clock = preparing.notes(core, folded, continues=continues)
    made = WorkingSet().noted(clock, notes)
    newer: set[Kind] = set()
    if state.kept:  # those that are older than what folds
        gone |= {index for index in state.kept if page_number(index) < page_number(folded[-1].page.index)}
    for node in (node for page in state.active.pages() if page.index not in gone for node in page.nodes() if node.message.calls):
        node.brings = latest_kinds(node.message) if node.brings is None else node.brings
        newer.update(map(Kind, node.brings))
    most = min(MOST_WORKING_TOKENS, int(WORKING_SHARE * limit))
    if continues:
        most = continuing.most_tokens(core.config)
    noted = attrs.evolve(state.working.noted(clock, made.notes), continues=continues, continuation=None, by_page=True)
    table, facts = _facts(core, folded, limit)
    texts = table.shown_texts()
    named = [note for note in noted.notes if note.kind is not Kind.NAME or note.text not in texts]
    noted = attrs.evolve(noted, shown=attrs.evolve(noted, notes=tuple(named)).chosen(most, core.counter.count, newer))
    while (tokens := core.count(state.wire.block(render(noted))) if noted.shown else 0) > most:
        noted = attrs.evolve(noted, shown=noted.shown[:-1])
    told = {"clock": clock, "notes": as_values(made.notes), "shown": as_values(noted.shown), "tokens": tokens, "by_page": True}
    told |= facts
    if not continues:
        return told
    written = continuing.shown(core, noted, newer)
    return {**told, "continues": True} | ({} if written is None else {"continuation": continuation_value(written)})


def _facts(core: Core, folded: Sequence[PreparedPage], limit: int) -> tuple[FactTable, dict[str, Any]]:
    """Return the table of facts after *folded*, and its part of the event, which is empty until a fact is found."""
    known, most = core.state.working.facts, int(core.config.contents.facts_share * limit)
    if not most and not known.clock:
        return known, {}
    pages_in_order = sorted((each.page for each in folded), key=lambda page: page_number(page.index))
    said = (
        (page.index, position, node.message) for page in pages_in_order for position, node in enumerate(page.nodes(), start=1)
    )
    found = facts_of(said, known.clock)[-MOST_FACTS:] if most else []
    clock = found[-1].serial + 1 if found else known.clock
    if not clock:
        return known, {}
    table = known.noted(found, clock).fitted(most, core.counter.count)
    while (tokens := core.count(core.state.wire.block(table.render())) if table.chosen else 0) > most:
        table = table.showing(table.shown()[1:])
    table = attrs.evolve(table, tokens=tokens)
    value = table_value(table)
    del value["facts"]
    return table, {"facts": {**value, "found": fact_values(found)}}


def _stale_text(core: Core, shortened: Shortened) -> bool:
    """Whether the window shows what a fold takes away: other contents, the opening of a turn that ended, or its passages."""
    state = core.state
    shown = state.archive.message_list.head
    made = outline(state.tree, shortened) if state.tree else ()
    contents = state.archive.preview(state.archive.entries, made).render()
    changed = (shown.message.raw if shown else b"") != (state.wire.block(contents).raw if contents else b"")
    stale = state.opening is not None and state.opening.index != state.turn_page
    return changed or stale or not state.open_seqs().issuperset(state.recalled.quotes)
