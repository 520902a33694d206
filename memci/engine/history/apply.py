"""How each event changes the state. Deterministic, no I/O: the same events make the same state, live or replayed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item, within
from memci.archive.contents.working_set import from_values
from memci.chapters.address import last_number, page_number
from memci.chapters.page import MessageNode, Opening, Page
from memci.chapters.recalled import Attachment, Quotes
from memci.engine.history import blocks, events, state_codec
from memci.engine.history.events import Event
from memci.engine.history.page_codec import page_from_value
from memci.engine.history.state import MOST_ANSWERS, SYSTEM, LastFold, LateResult, State, opening_of
from memci.engine.settings.config import Config
from memci.messages.formats import format as formats


def apply(state: State, event: Event, seq: int) -> None:  # noqa: C901, PLR0912, PLR0915 (one branch a kind of event)
    """Change the state as the event says; *seq* is the event's place in the journal. Costs what the event holds."""
    match event:
        case events.MessageAppended():
            _append(state, event, seq)
        case events.AnswerNoted():
            state.answers = (*state.answers, event.sha256)[-MOST_ANSWERS:]
        case events.PagesFolded():
            _fold(state, event)
        case events.SummariesClaimed():
            state.claims |= dict.fromkeys(event.pages, (event.by, event.until))
        case events.SummaryPrepared():
            state.summaries[event.page] = event
            state.claims.pop(event.page, None)
        case events.ResultsTrimmed():
            _trim(state, event)
        case events.WindowSettled():
            state.settled = event
        case events.PageRecalled():
            _recall(state, event, seq)
        case events.PassagesQuoted():
            _quote(state, event)
        case events.PagesMentioned():
            _mention(state, event, seq)
        case events.PagesFaded():
            for index in event.pages:
                state.recalled.fade(index)
        case events.PagesEvicted():
            _evict(state, event)
        case events.PageRestored():
            _restore(state, event)
        case events.PagePinned():
            _pin(state, event)
        case events.PageBegan():
            _begin_page(state, event)
        case events.SystemSet():
            _set_system(state, event, seq)
        case events.FoldUndone():
            _undo_fold(state, event)
        case events.Rewound():
            _rewind(state, event)
        case events.SessionConfigured():
            _configure(state, event)
        case events.UsageReported():
            state.scale = event.scale
            state.ratios = (state.ratios[1], event.scale if event.ratio is None else event.ratio)
        case events.CheckpointMade():
            state.next_checkpoint = event.number + 1
        case events.CheckpointRestored():
            _restore_checkpoint(state, event, seq)
        case events.Forked():
            state.session = event.session
        case events.ForkMade():
            pass
        case events.PageErased():
            state.erased_seq = seq
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
    state.traffic.calls += message.role == "assistant" and not goes_on
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


def _recall(state: State, event: events.PageRecalled, seq: int) -> None:
    if not event.prefetched:
        _count_recall(state, event)
    if event.content is None:
        attached = state.recalled.attachments
        attached[event.page] = attrs.evolve(attached[event.page], turn=event.turn, prefetched=0, used_seq=seq)
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
        used_seq=seq,
    )
    state.recalled.attach(page, attachment)


def _mention(state: State, event: events.PagesMentioned, seq: int) -> None:
    for index in event.pages:
        attachment = state.recalled.attachments[index]
        state.recalled.attachments[index] = attrs.evolve(attachment, turn=event.turn, used_seq=seq)


def _quote(state: State, event: events.PassagesQuoted) -> None:
    state.recalled.quotes.pop(event.beside, None)
    if event.passages:
        block = blocks.passages_block(event.passages, state.wire)
        state.recalled.quotes[event.beside] = Quotes(passages=event.passages, block=block, tokens=event.tokens)


def _count_recall(state: State, event: events.PageRecalled) -> None:
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
    gone = {index for index, _ in event.pages}
    for index in gone:
        state.archive.drop(index)
    if state.last_fold is not None:
        kept = tuple(entry for entry in state.last_fold.entries if entry.index not in gone)
        state.last_fold = attrs.evolve(state.last_fold, entries=kept)


def _restore(state: State, event: events.PageRestored) -> None:
    number = page_number(event.page)
    state.archive.replace(_ungrouped(state.archive.entries, number))
    if state.last_fold is not None:
        state.last_fold = attrs.evolve(state.last_fold, entries=_ungrouped(state.last_fold.entries, number))
    state.archive.put(ContentsEntry.from_mapping(event.entry))


def _ungrouped(entries: Iterable[Item], number: int) -> tuple[Item, ...]:
    """Return the entries with no directory that groups the page of this number. O(entries)."""
    left = (entry.without(number) if isinstance(entry, Directory) and entry.holds(number) else entry for entry in entries)
    return tuple(sorted(filter(None, left), key=lambda entry: page_number(entry.index)))


def _pin(state: State, event: events.PagePinned) -> None:
    entry = state.archive.find_entry(event.page)
    if entry is not None:
        state.archive.put(attrs.evolve(entry, pinned=event.pinned))
    elif event.pinned:
        state.pinned.add(event.page)
    else:
        state.pinned.discard(event.page)


def _configure(state: State, event: events.SessionConfigured) -> None:
    state.session = event.session
    if not state.configured or event.counted is not None:
        state.scale = event.scale
        state.ratios = (event.scale, event.scale)
        if state.settled is not None:  # tools are counted anew by the next window
            state.settled = attrs.evolve(state.settled, tools_sha256="", tools_tokens=0, scale=None, excerpts={})
    state.config = Config.from_stored(event.config)
    state.wire = formats.get(state.config.format)
    state.configured = event.config
    state.renderer = event.renderer
    state.instructions = event.instructions
    state.instruction_tokens = event.instruction_tokens
    counted = event.counted
    if counted is None:
        return
    for chapter in state.verbatim():
        for page in list(chapter.pages()):
            _recount(page, counted["pages"][page.index])
    for index, tokens in counted["blocks"].items():
        state.recalled.attachments[index] = attrs.evolve(state.recalled.attachments[index], tokens=tokens)
    for seq, tokens in counted.get("quotes", {}).items():
        state.recalled.quotes[int(seq)] = attrs.evolve(state.recalled.quotes[int(seq)], tokens=tokens)
    if state.opening is not None:
        _resize(state.opening, counted["opening"])
        state.opening.tokens = sum(node.tokens for node in state.opening.nodes())
    state.archive.recount(counted["contents"])
    state.working = attrs.evolve(state.working, tokens=counted.get("working", 0))


def _restore_checkpoint(state: State, event: events.CheckpointRestored, seq: int) -> None:
    """Take the state of the checkpoint over, but for what only goes forward, and for what was learned about the counter."""
    then = state_codec.from_mapping(event.state)
    for segment, number in state.next_number.items():
        then.next_number[segment] = max(number, then.next_number.get(segment, 1))
    then.next_checkpoint = state.next_checkpoint
    then.session = state.session
    then.erased_seq = state.erased_seq
    then.answers = state.answers
    if then.config.counter == state.config.counter:
        then.scale, then.ratios = state.scale, state.ratios
    then.detours = (*then.detours, (event.target, seq))
    for field in attrs.fields(State):
        setattr(state, field.name, getattr(then, field.name))


def _resize(page: Page, counted: list[list[int]]) -> None:
    for node, (tokens, stub_tokens, *shown) in zip(page.nodes(), counted, strict=True):
        node.tokens, node.stub_tokens = tokens, stub_tokens
        node.trimmed = (*shown, *node.trimmed[len(shown) :])


def _recount(page: Page, counted: list[list[int]]) -> None:
    _resize(page, counted)
    chapter, following = page.chapter, page.next
    assert chapter is not None
    page.detach()
    page.tokens = sum(node.tokens for node in page.nodes())
    chapter.add_page(page, before=following)


def _fold(state: State, event: events.PagesFolded) -> None:
    """Move pages into the contents page, and show it in the window as it is then. Costs what the event holds."""
    directories = event.read
    if directories is None:
        said = state.archive.said
        directories = [Directory.from_mapping(value, said) for value in event.directories]
    # Most pages go into a directory at once, so that their entries would be made for nothing.
    at_once = within(event.folded, directories).difference(event.details)
    entries = [ContentsEntry.from_mapping(value) for value in event.entries if value["index"] not in at_once]
    new = {entry.index: entry for entry in entries}  # an archived page that took in late results keeps them when this is undone
    known = (
        attrs.evolve(new[entry.index], detail=entry.detail) if isinstance(entry, ContentsEntry) and entry.index in new else entry
        for entry in state.archive.entries
    )
    before = tuple(known)
    _take_out(state, event.folded)
    published = {index: each for index, each in state.summaries.items() if index not in state.active}
    state.last_fold = LastFold(tuple(event.folded), before, state.working, published)
    state.summaries = {index: each for index, each in state.summaries.items() if index in state.active}
    state.claims = {index: each for index, each in state.claims.items() if index in state.active or index in event.folded}
    state.recalled.keep_quotes(state.open_seqs().__contains__)
    for index, block_tokens in event.revised.items():
        _take_in_late(state, index, block_tokens)
    for entry in entries:
        if entry.index in event.folded or state.archive.find_entry(entry.index) is not None:
            state.archive.put(entry)
    for index, detail in event.details.items():
        shown = state.archive.find_entry(index)
        assert shown is not None, index
        state.archive.put(attrs.evolve(shown, detail=Detail(detail)))
    for directory in directories:
        _group(state, directory)
    for index, _ in event.evicted:
        state.archive.drop(index)
    if (working := event.working) is not None:
        noted = state.working.noted(working["clock"], from_values(working["notes"]))
        state.working = attrs.evolve(noted, shown=from_values(working["shown"]), tokens=working["tokens"])
    _publish(state, event.contents_tokens)


def _trim(state: State, event: events.ResultsTrimmed) -> None:
    """Show only some stretches of results. O(entries of their pages)."""
    for index, results in event.results.items():
        page = state.active.find_page(index)
        assert page is not None, index
        for node in page.nodes():
            node.trimmed = tuple(results.get(str(node.seq), node.trimmed))


def _take_out(state: State, folded: Sequence[str]) -> None:
    """Take pages out of the window, with the stubs in them."""
    if state.opening is not None and state.opening.index != state.turn_page:
        state.opening = None
    gone: set[int] = set()
    for index in folded:
        page = state.active.find_page(index)
        assert page is not None, index
        if index == state.turn_page and page is not state.active.open_page:
            state.opening = opening_of(page)
        gone.update(node.seq for node in page.nodes())
        page.detach()
        state.pinned.discard(index)
        state.recalls.pop(index, None)
    if state.opening is not None:
        gone.difference_update(node.seq for node in state.opening.nodes())
    if state.settled is not None:
        stubs = [seq for seq in state.settled.stubs if seq not in gone]
        excerpts = {seq: each for seq, each in state.settled.excerpts.items() if int(seq) in stubs}
        state.settled = attrs.evolve(state.settled, stubs=stubs, excerpts=excerpts)


def _group(state: State, directory: Directory) -> None:
    """Put a directory in the place of what it groups."""
    for other in state.archive.entries:
        numbers = [each for ends in other.covers for each in ends] if isinstance(other, Directory) else [page_number(other.index)]
        if other.index != directory.index and all(map(directory.holds, numbers)):
            state.archive.drop(other.index)
    state.archive.put(directory)


def _take_in_late(state: State, index: str, block_tokens: int) -> None:
    late = state.late.pop(index)
    page = state.recalled.find_page(index)
    if page is None:
        return
    known = {node.seq for node in page.nodes()}
    for result in late:
        if result.node.seq not in known:  # a page that was recalled since has it already
            page.join(result.node, [(call_id, result.call_seq) for call_id in result.node.message.answers])
    attachment = state.recalled.attachments[index]
    block = blocks.page_block(page, state.wire, media=attachment.media, dated=attachment.dated)
    state.recalled.attach(page, attrs.evolve(attachment, block=block, tokens=block_tokens))


def _publish(state: State, tokens: int) -> None:
    contents = state.archive.contents
    message = state.wire.block(contents.render()) if contents.entries else None
    directories = [entry for entry in contents.entries if isinstance(entry, Directory)]
    state.archive.publish(message, tokens, (entry.index for entry in contents.entries), directories)


def _undo_fold(state: State, event: events.FoldUndone) -> None:
    """Bring the pages of the last fold back into view. Costs what the event holds."""
    for value in event.pages:
        page = page_from_value(value, state.wire.facts)
        state.recalled.fade(page.index)
        state.late.pop(page.index, None)
        _keep_pin(state, page.index, event.recalls.get(page.index))
        number = page_number(page.index)
        younger = (other for other in state.active.pages() if page_number(other.index) > number)
        state.active.add_page(page, before=next(younger, None))
        if state.opening is not None and state.opening.index == page.index:
            state.opening = None
    state.recalled.quotes.clear()  # they may be of these pages
    state.archive.replace(entries_before_fold(state))
    if state.last_fold is not None:
        state.working = state.last_fold.working
        state.summaries |= state.last_fold.summaries
    state.last_fold = None
    _publish(state, event.contents_tokens)


def _keep_pin(state: State, index: str, recalls: Sequence[int] | None = None) -> None:
    """Keep of an archived page that comes back into view whether it is pinned, and how often it was recalled. O(1)."""
    entry = state.archive.find_entry(index)
    if entry is not None and entry.pinned:
        state.pinned.add(index)
    if entry is not None and entry.recall_count:
        state.recalls[index] = (entry.recall_count, entry.last_recall_turn)
    elif recalls is not None:  # a page in a directory, or an evicted one, has no entry that tells
        state.recalls[index] = (recalls[0], recalls[1])


def entries_before_fold(state: State) -> list[Item]:
    """Return the entries of the contents page without the last fold, with what happened to them since. O(entries)."""
    last = state.last_fold
    assert last is not None
    undone = set(last.folded)
    now = {entry.index: entry for entry in state.archive.entries}
    known = {entry.index for entry in last.entries}
    before = [_counts_of(entry, now.get(entry.index)) for entry in last.entries if entry.index not in undone]
    since = [entry for entry in now.values() if entry.index not in known | undone and isinstance(entry, ContentsEntry)]
    return sorted((*before, *since), key=lambda entry: page_number(entry.index))


def _counts_of(entry: Item, now: Item | None) -> Item:
    """Return an entry as it was before a fold, with how often it was recalled since."""
    if isinstance(entry, ContentsEntry) and isinstance(now, ContentsEntry):
        return attrs.evolve(now, detail=entry.detail)
    if isinstance(entry, Directory) and isinstance(now, Directory):
        return attrs.evolve(entry, last_recall_turn=now.last_recall_turn)
    return entry


def _rewind(state: State, event: events.Rewound) -> None:
    """Go back to before an entry. O(visible)."""
    number = page_number(event.page)
    for later in state.active.pages():
        if page_number(later.index) > number:
            later.detach()
    page = state.active.find_page(event.page)
    if event.content is not None:
        state.active.add_page(page_from_value(event.content, state.wire.facts))
        _keep_pin(state, event.page, event.recalls)
    elif page is not None and event.removed:
        page.detach()
    elif page is not None:
        page.cut(event.position)
    _show_open_page(state)
    gone = number if event.removed else number + 1
    last = state.active.message_list.tail
    for index, attachment in list(state.recalled.attachments.items()):
        recalled_later = attachment.anchor and page_number(attachment.anchor) >= gone
        if recalled_later or last_number(index) >= number or attachment.prefetched > (last.seq if last else 0):
            state.recalled.fade(index)
    state.recalled.keep_quotes(lambda beside: beside <= (last.seq if last else 0))
    left = {page_number(directory.index): directory for directory in map(Directory.from_mapping, event.directories)}
    state.archive.replace(entries_before_page(state, number, left))
    state.pinned = {index for index in state.pinned if page_number(index) <= number}
    state.recalls = {index: recalls for index, recalls in state.recalls.items() if page_number(index) <= number}
    state.late = {index: late for index, late in state.late.items() if page_number(index) < number}
    state.summaries = {index: each for index, each in state.summaries.items() if page_number(index) < number}
    state.claims = {index: each for index, each in state.claims.items() if page_number(index) < number}
    state.working = state.working.without(lambda index: page_number(index) >= number)
    state.turn_page = event.opening_page
    state.opening = None if event.opening is None else page_from_value(event.opening, state.wire.facts)
    state.last_fold = None
    if event.contents_tokens is not None:
        _publish(state, event.contents_tokens)


def _show_open_page(state: State) -> None:
    """Show the page whole that is open again. O(its entries)."""
    page = state.active.open_page
    for node in page.nodes() if page is not None else ():
        node.trimmed = ()


def entries_before_page(state: State, number: int, left: Mapping[int, Directory]) -> list[Item]:
    """Return the entries of the contents page for pages below a number, with what is left of directories. O(entries)."""
    entries = (left.get(page_number(entry.index), entry) for entry in state.archive.entries)
    return [entry for entry in entries if last_number(entry.index) < number]
