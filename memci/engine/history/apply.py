"""How each event changes the state. Deterministic, no I/O: the same events make the same state, live or replayed."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import ceil
from typing import Any, assert_never

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Directory, Item
from memci.archive.rules.listing import Rule, without
from memci.chapters.address import ends, is_foreign, is_range, last_number, page_number, segment_of
from memci.chapters.page import MessageNode, Opening, Page
from memci.chapters.recalled import Attachment, Quotes
from memci.engine.history import blocks, events, state_codec
from memci.engine.history.edited import edit
from memci.engine.history.events import Event
from memci.engine.history.folded import fold, keep, keep_pin, publish, trim, undo_fold, ungroup
from memci.engine.history.page_codec import page_from_value
from memci.engine.history.shared_events import HandedOver, MountNoted, PagePromoted, SessionMounted, SessionUnmounted
from memci.engine.history.state import MOST_ANSWERS, MOST_LEFT_OPEN, SYSTEM, USER, LateResult, Mount, Slots, Spent, State
from memci.engine.history.tree_events import (
    DirectoryMade,
    EditUndone,
    NoteWritten,
    PageMoved,
    PageRemoved,
    PageReturned,
    PageUpdated,
    SegmentAdded,
    SystemHidden,
    SystemShown,
)
from memci.engine.settings.config import Config
from memci.messages.formats import format as formats
from memci.messages.tokens.message_tokens import REPLY_TOKENS


def apply(state: State, event: Event, seq: int) -> None:  # noqa: C901, PLR0912, PLR0915 (one branch a kind of event)
    """Change the state as the event says; *seq* is the event's place in the journal. Costs what the event holds."""
    match event:
        case events.MessageAppended():
            _append(state, event, seq)
        case events.AnswerNoted():
            state.answers = (*state.answers, event.sha256)[-MOST_ANSWERS:]
        case events.RulesSet():
            _set_rules(state, event)
        case events.RuleRemoved(address=address):
            state.removed_rules += tuple(rule for rule in state.rules if rule.address == address)
            state.rules = without(state.rules, address.__eq__)
        case events.PagesFolded():
            fold(state, event)
        case events.SummariesClaimed():
            state.claims |= dict.fromkeys(event.pages, (event.by, event.until))
        case events.SummaryPrepared():
            state.summaries[event.page] = event
            state.claims.pop(event.page, None)
        case events.ResultsTrimmed():
            trim(state, event)
        case events.WindowSettled():
            state.settled = event
            state.carry(event.tools_tokens + event.extra_tokens)
        case events.PageRecalled():
            _recall(state, event, seq)
        case events.PassagesQuoted():
            _quote(state, event)
        case events.SlotsSet():
            _set_slots(state, event)
        case events.PagesMentioned():
            _mention(state, event, seq)
        case events.PagesTouched():
            state.touch(event.pages, event.turn)
        case events.PagesFaded():
            _fade(state, event)
        case events.PagesEvicted():
            _evict(state, event)
        case events.PageRestored():
            _restore(state, event)
        case events.PagePinned():
            _pin(state, event)
        case events.PageKept():
            keep(state, event)
        case events.EntryBookmarked():
            _bookmark(state, event)
        case events.SessionDescribed(values=values):
            state.described = {name: value for name, value in {**state.described, **values}.items() if value is not None}
        case events.PageBegan():
            _begin_page(state, event)
        case events.SystemSet():
            _set_system(state, event, seq)
        case events.FoldUndone():
            undo_fold(state, event)
        case events.Rewound():
            _rewind(state, event)
        case events.SessionConfigured():
            _configure(state, event)
        case events.UsageReported(prompt_tokens=tokens, cached_tokens=cached):
            state.spent.reports += 1
            state.spent.reported_tokens += tokens
            state.spent.cached_tokens += cached
            state.scale = event.scale
            state.ratios = (state.ratios[1], event.scale if event.ratio is None else event.ratio)
        case events.CheckpointMade():
            state.next_checkpoint = event.number + 1
        case events.CheckpointRestored():
            _restore_checkpoint(state, event, seq)
        case events.Leased(until=until):
            state.lease = seq, until
        case events.LeaseEnded(lease=number):
            state.lease = (0, "") if state.lease[0] == number else state.lease
        case events.Forked():
            state.session, state.lease = event.session, (0, "")
            state.spent = Spent(said_tokens=state.spent.said_tokens)
        case SessionMounted(name=name):
            state.mounts[name] = Mount(**{field.name: getattr(event, field.name) for field in attrs.fields(Mount)})
        case PagePromoted(page=page):
            state.promoted[page] = event.note, event.revision
        case SessionUnmounted(name=name):
            state.mounts.pop(name, None)
            for index in [each for each in state.recalled.attachments if each.startswith(f"{name}/")]:
                state.recalled.fade(index)
        case events.ForkMade() | events.MessageAnnotated() | HandedOver() | MountNoted():
            pass
        case events.PageErased():
            state.erased_seq = seq
            state.bookmarks = {at: each for at, each in state.bookmarks.items() if each[0] != event.page}
            state.keep_directives(lambda directive: directive.page != event.page)
            _forget_rules(state, lambda address: address.partition("/")[0] == event.page)
        case (
            SegmentAdded()
            | NoteWritten()
            | DirectoryMade()
            | PageMoved()
            | PageUpdated()
            | PageRemoved()
            | PageReturned()
            | EditUndone()
            | SystemHidden()
            | SystemShown()
        ):
            edit(state, event)
        case _:
            assert_never(event)
    state.seq = seq


def _append(state: State, event: events.MessageAppended, seq: int) -> None:
    message = event.read or state.wire.facts(event.message).marked(event.attp)
    node = MessageNode(message=message, tokens=event.tokens, seq=seq, stub_tokens=event.stub_tokens, at=event.at)
    newest = state.active.last_page
    tail = newest.tail if newest is not None else None
    goes_on = message.partial and tail is not None and tail.message.partial
    state.traffic.tokens += event.tokens
    state.spent.said_tokens += event.tokens
    if message.role == "assistant" and not goes_on:
        state.traffic.calls += 1
        state.spent.calls += state.settled is not None
        state.spent.sent_tokens += _window_tokens(state)
    state.turn = event.turn
    if event.opens == SYSTEM:
        page = _numbered(state, event.page, Opening.TURN)
        state.system.add_page(page)
        page.add(node)
        return
    if event.opens is not None:
        only_user = newest is not None and newest.only_user
        newest = _numbered(state, event.page, Opening(event.opens))
        state.active.add_page(newest)
        if newest.opened_by is Opening.TURN or only_user or not state.turn_page:  # the newest part of what the user says
            state.turn_page = event.page
    found = newest if newest is not None and newest.index == event.page else state.active.find_page(event.page)
    state.summaries.pop(event.page, None)  # what was written of it is of another page now
    if found is None:
        state.late.setdefault(event.page, []).append(LateResult(event.answers[0][1], node))
        return
    found.join(node, [(call_id, call_seq) for call_id, call_seq in event.answers] if event.answers else ())


def _set_rules(state: State, event: events.RulesSet) -> None:
    known: Iterable[Rule] = state.rules
    if event.superseded:
        known = (
            attrs.evolve(rule, superseded_by=event.superseded[rule.address]) if rule.address in event.superseded else rule
            for rule in state.rules
        )
    state.rules = (*known, *event.made())
    state.next_rule += not event.entry_seq


def _forget_rules(state: State, is_gone: Callable[[str], bool]) -> None:
    """Drop the rules of messages that are gone, also from those that were removed."""
    state.rules, state.removed_rules = (without(rules, is_gone) for rules in (state.rules, state.removed_rules))


def _window_tokens(state: State) -> int:
    """Return what the window takes as it was asked for last, about: see ``Spent``; 0 before the first. O(what was recalled)."""
    if (settled := state.settled) is None:
        return 0
    shown, recalled = state.archive.message_list, state.recalled
    tokens = REPLY_TOKENS + settled.tools_tokens + settled.extra_tokens
    tokens += state.system.message_list.tokens + state.hidden_tokens + state.headlines_tokens + state.active.message_list.tokens
    tokens += state.directive_tokens if state.directives else 0
    tokens += state.rule_tokens if state.rules else 0
    if shown.head is not None:
        tokens += shown.tokens + state.instruction_tokens * settled.explains
        tokens += state.working.message_tokens + state.working.facts.tokens
    for part in (state.opening, state.slots, *state.mounts.values(), *recalled.attachments.values(), *recalled.quotes.values()):
        tokens += part.tokens if part is not None else 0
    return min(ceil(tokens * (state.scale if settled.scale is None else settled.scale)), settled.budget)


def _numbered(state: State, index: str, opened_by: Opening) -> Page:
    segment, _, number = index.rpartition("-")
    state.next_number[segment] = max(state.next_number[segment], int(number) + 1)
    return Page(index=index, turn=0 if segment == SYSTEM else state.turn, opened_by=opened_by)


def _begin_page(state: State, event: events.PageBegan) -> None:
    state.turn = event.turn
    page = state.active.find_page(event.page)
    if page is None:
        page = _numbered(state, event.page, Opening.TURN)
        state.active.add_page(page)
        state.turn_page = event.page
    page.name = event.name


def _set_system(state: State, event: events.SystemSet, seq: int) -> None:
    pages = []
    for value in event.pages:
        page = _numbered(state, value["index"], Opening.TURN)
        message = state.wire.facts(value["message"])
        page.add(MessageNode(message=message, tokens=value["tokens"], seq=seq, at=event.at))
        pages.append(page)
    state.system.replace(pages)
    for index in state.hidden:
        state.recalled.fade(index)
    state.hidden, state.system_names, state.hidden_tokens = {}, {}, 0
    state.system_seq = seq
    state.keep_directives(lambda _: False)


def _recall(state: State, event: events.PageRecalled, seq: int) -> None:
    if not event.prefetched:
        _count_recall(state, event)
    if event.content is None:
        attached = state.recalled.attachments
        known = attached[event.page]
        lasting = known.lasting or event.lasting
        attached[event.page] = attrs.evolve(known, turn=event.turn, prefetched=0, used_seq=seq, lasting=lasting)
        return
    if event.read is not None:
        page, block = event.read
    else:
        page = page_from_value(event.content, state.wire.facts)
        block = blocks.page_block(page, state.wire, media=event.media, dated=event.dated)
    attachment = Attachment(
        anchor=event.anchor,
        turn=event.turn,
        block=block,
        tokens=event.block_tokens,
        prefetched=event.prefetched,
        media=event.media,
        dated=event.dated,
        lasting=event.lasting,
        used_seq=seq,
    )
    state.recalled.attach(page, attachment)


def _fade(state: State, event: events.PagesFaded) -> None:
    """Let pages go, and note what stood open in a directory that was closed."""
    if event.closed:
        attached = state.recalled.attachments
        inside = [index for index in event.pages if index != event.closed and attached[index].lasting]
        state.tree.left_open.pop(event.closed, None)
        if inside:
            state.tree.left_open[event.closed] = tuple(inside[-MOST_LEFT_OPEN:])
    for index in event.pages:
        state.recalled.fade(index)


def _mention(state: State, event: events.PagesMentioned, seq: int) -> None:
    state.touch(event.pages, event.turn)
    for index in event.pages:
        attachment = state.recalled.attachments[index]
        state.recalled.attachments[index] = attrs.evolve(attachment, turn=event.turn, used_seq=seq)


def _quote(state: State, event: events.PassagesQuoted) -> None:
    state.recalled.quotes.pop(event.beside, None)
    if event.passages:
        block = blocks.passages_block(event.passages, state.wire)
        state.recalled.quotes[event.beside] = Quotes(passages=event.passages, block=block, tokens=event.tokens)


def _set_slots(state: State, event: events.SlotsSet) -> None:
    known = state.slots.texts if state.slots is not None else {}
    texts = {name: text for name, text in {**known, **event.slots}.items() if text is not None}
    block = blocks.slots_block(texts, state.wire)
    state.slots = Slots(texts=texts, block=block, tokens=event.tokens) if texts else None


def _count_recall(state: State, event: events.PageRecalled) -> None:
    if is_foreign(event.page):
        return
    state.touch([event.page], event.turn)
    if state.is_made(event.page):
        return
    entry = state.archive.find_entry(event.page)
    if entry is not None:
        state.archive.put(_recalled(entry, event))
        return
    directory = state.archive.find_directory(event.page)
    if directory is not None:
        state.archive.put(attrs.evolve(directory, last_recall_turn=event.turn))
    if state.last_fold is not None:  # undoing it brings the entry of a page back that it took into a directory
        entries = (_recalled(entry, event) for entry in state.last_fold.entries)
        state.last_fold = attrs.evolve(state.last_fold, entries=tuple(entries))


def _recalled(entry: Item, event: events.PageRecalled) -> Item:
    """Return an entry with a recall of its page counted."""
    if isinstance(entry, Directory) or entry.index != event.page:
        return entry
    return attrs.evolve(entry, recall_count=event.recall_count, last_recall_turn=event.turn)


def _evict(state: State, event: events.PagesEvicted) -> None:
    gone = [index for index, _ in event.pages]
    ungroup(state, [page_number(index) for index in gone if not is_range(index)], gone)


def _restore(state: State, event: events.PageRestored) -> None:
    state.touch([event.page], state.turn)
    ungroup(state, [page_number(event.page)])
    state.archive.put(ContentsEntry.from_mapping(event.entry))


def _pin(state: State, event: events.PagePinned) -> None:
    entry = state.archive.find_entry(event.page)
    if entry is not None:
        state.archive.put(attrs.evolve(entry, pinned=event.pinned))
    elif event.pinned:
        state.pinned.add(event.page)
    else:
        state.pinned.discard(event.page)


def _bookmark(state: State, event: events.EntryBookmarked) -> None:
    if event.label:
        state.bookmarks[event.entry_seq] = (event.page, event.label)
    else:
        state.bookmarks.pop(event.entry_seq, None)


def _configure(state: State, event: events.SessionConfigured) -> None:
    state.session = event.session
    if not state.configured or event.counted is not None:
        state.scale = event.scale
        state.ratios = (event.scale, event.scale)
        if state.settled is not None:  # tools are counted anew by the next window
            anew: dict[str, Any] = {"tools_sha256": "", "tools_tokens": 0, "extra": {}, "extra_tokens": 0}
            state.settled = attrs.evolve(state.settled, scale=None, excerpts={}, sizes={}, **anew)
            state.carried = ()
    state.config = Config.from_stored(event.config)
    state.wire = formats.get(state.config.format)
    state.configured, state.chosen = event.config, event.chosen
    state.renderer = event.renderer
    state.instructions, state.instruction_tokens = event.instructions, event.instruction_tokens
    state.headlines, state.headlines_tokens = event.headlines, event.headlines_tokens
    state.rules_tokens = event.rules_tokens
    if event.counted is not None:
        _recount_visible(state, event.counted)


def _recount_visible(state: State, counted: Mapping[str, Any]) -> None:
    """Give all that is visible the sizes that it has under another counter. O(visible)."""
    for chapter in state.verbatim():
        for page in list(chapter.pages()):
            _recount(page, counted["pages"][page.index])
    for index, tokens in counted["blocks"].items():
        state.recalled.attachments[index] = attrs.evolve(state.recalled.attachments[index], tokens=tokens)
    for seq, tokens in counted.get("quotes", {}).items():
        state.recalled.quotes[int(seq)] = attrs.evolve(state.recalled.quotes[int(seq)], tokens=tokens)
    if state.slots is not None:
        state.slots = attrs.evolve(state.slots, tokens=counted["slots"])
    state.mounts = {name: attrs.evolve(each, tokens=counted["mounts"][name]) for name, each in state.mounts.items()}
    state.hidden = {index: attrs.evolve(each, tokens=counted["hidden"][index]) for index, each in state.hidden.items()}
    state.measure_hidden()
    if state.opening is not None:
        _resize(state.opening, counted["opening"])
        state.opening.tokens = sum(node.tokens for node in state.opening.nodes())
    for directive, tokens in zip(state.all_directives(), counted.get("directives", ()), strict=True):
        directive.node.tokens = tokens
    sizes = counted.get("rules", {})
    state.rules = tuple(attrs.evolve(rule, tokens=sizes[rule.address]) for rule in state.rules)
    state.archive.recount(counted["contents"])
    made, tokens = state.working.continuation, counted.get("working", 0)
    made = None if made is None else attrs.evolve(made, tokens=counted.get("continuation", 0))
    facts = attrs.evolve(state.working.facts, tokens=counted.get("facts", 0))
    state.working = attrs.evolve(state.working, tokens=tokens, continuation=made, facts=facts)


def _restore_checkpoint(state: State, event: events.CheckpointRestored, seq: int) -> None:
    """Take the state of the checkpoint over, but for what only goes forward, and for what was learned about the counter."""
    then = state_codec.from_mapping(event.state)
    for segment, number in state.next_number.items():
        then.next_number[segment] = max(number, then.next_number.get(segment, 1))
    then.tree.next_note = max(state.tree.next_note, then.tree.next_note)
    then.next_checkpoint = state.next_checkpoint
    then.next_rule = max(state.next_rule, then.next_rule)
    then.session, then.described, then.lease, then.spent = state.session, state.described, state.lease, state.spent
    then.erased_seq = state.erased_seq
    then.answers = state.answers
    if then.config.counter == state.config.counter:
        then.scale, then.ratios = state.scale, state.ratios
    then.detours = (*then.detours, (event.target, seq))
    for field in attrs.fields(State):
        setattr(state, field.name, getattr(then, field.name))


def _resize(page: Page, counted: list[list[int]]) -> None:
    for node, (tokens, stub_tokens, *shown) in zip(page.nodes(), counted, strict=True):
        node.tokens, node.stub_tokens, node.stub = tokens, stub_tokens, None
        node.trimmed = (*shown, *node.trimmed[len(shown) :])


def _recount(page: Page, counted: list[list[int]]) -> None:
    _resize(page, counted)
    chapter, following = page.chapter, page.next
    assert chapter is not None
    page.detach()
    page.tokens = sum(node.tokens for node in page.nodes())
    chapter.add_page(page, before=following)


def _rewind(state: State, event: events.Rewound) -> None:
    """Go back to before an entry. O(visible)."""
    number = page_number(event.page)
    for later in state.active.pages():
        if page_number(later.index) > number:
            later.detach()
    page = state.active.find_page(event.page)
    if event.content is not None:
        state.active.add_page(page_from_value(event.content, state.wire.facts))
        keep_pin(state, event.page, event.recalls)
    elif page is not None and event.removed:
        page.detach()
    elif page is not None:
        page.cut(event.position)
    _show_open_page(state)
    gone = number if event.removed else number + 1
    last = state.active.message_list.tail
    for index, attachment in list(state.recalled.attachments.items()):
        recalled_later = attachment.anchor and page_number(attachment.anchor) >= gone
        if recalled_later or _tells_of(state, index, number) or attachment.prefetched > (last.seq if last else 0):
            state.recalled.fade(index)
    state.recalled.keep_quotes(lambda beside: beside <= (last.seq if last else 0))
    left = {page_number(directory.index): directory for directory in map(Directory.from_mapping, event.directories)}
    state.archive.replace(entries_before_page(state, number, left))
    state.tree.forget(placed_pages(state, gone))
    state.pinned = {index for index in state.pinned if page_number(index) <= number or state.is_made(index)}
    state.kept = {index: by for index, by in state.kept.items() if index in state.active}
    _keep_bookmarks(state, event.page)
    state.recalls = {index: recalls for index, recalls in state.recalls.items() if page_number(index) <= number}
    state.touched = {index: turn for index, turn in state.touched.items() if page_number(index) <= number or state.is_made(index)}
    state.late = {index: late for index, late in state.late.items() if page_number(index) < number}
    state.summaries = {
        index: each
        for index, each in state.summaries.items()
        if all(page_number(last) < number for last in (index, *ends(each.pages)))
    }
    state.claims = {index: each for index, each in state.claims.items() if page_number(index) < number}
    state.promoted = {
        index: note for index, note in state.promoted.items() if page_number(index) < number or state.is_made(index)
    }
    state.working = state.working.without(lambda index: page_number(index) >= number)
    state.topic = min(state.topic, number - 1)
    state.turn_page = event.opening_page
    state.opening = None if event.opening is None else page_from_value(event.opening, state.wire.facts)
    state.last_fold = None
    state.keep_directives(lambda directive: page_number(directive.page) < number)
    _forget_rules(state, partial(_is_later, event))
    if event.contents_tokens is not None:
        publish(state, event.contents_tokens)


def _is_later(event: events.Rewound, address: str) -> bool:
    """Return whether a message, or a rule of it, is gone with what a session goes back from."""
    page, slash, position = address.partition("#")[0].partition("/")
    if not slash or segment_of(page) != segment_of(event.page):
        return False
    number, first = page_number(page), page_number(event.page)
    return number > first or (number == first and (event.removed or int(position) >= event.position))


def _keep_bookmarks(state: State, last: str) -> None:
    """Forget the bookmarks of entries that are gone; *last* is the index of the last page that may have some left. O(those)."""
    newest = state.active.open_page
    left = {node.seq for node in newest.nodes()} if newest is not None and newest.index == last else set()
    number, marks = page_number(last), state.bookmarks.items()
    state.bookmarks = {seq: each for seq, each in marks if page_number(each[0]) < number or seq in left}


def _tells_of(state: State, index: str, number: int) -> bool:
    """Return whether what is attached is of a page of the conversation from a number on, or lists one. O(its children)."""
    node = state.tree.find(index)
    if node is not None and node.is_directory:
        return any(_tells_of(state, child.index, number) for child in state.tree.children(index) if not child.is_directory)
    return segment_of(index) == USER and last_number(index) >= number


def _show_open_page(state: State) -> None:
    """Show the page whole that is open again. O(its entries)."""
    page = state.active.open_page
    for node in page.nodes() if page is not None else ():
        node.trimmed = ()


def placed_pages(state: State, number: int) -> list[str]:
    """Return the pages of the conversation from a number on that are placed in the tree. O(numbers from there on)."""
    numbers = range(number, state.next_number[USER]) if state.tree else ()
    placed = (state.tree.find(f"{USER}-{each}") for each in numbers)
    return [node.index for node in placed if node is not None and not node.name]


def entries_before_page(state: State, number: int, left: Mapping[int, Directory]) -> list[Item]:
    """Return the entries of the contents page for pages below a number, with what is left of directories. O(entries)."""
    entries = (left.get(page_number(entry.index), entry) for entry in state.archive.entries)
    return [entry for entry in entries if last_number(entry.index) < number]
