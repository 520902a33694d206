"""How each event changes the state. Deterministic, no I/O: the same events make the same state, live or replayed."""

from collections.abc import Iterable
from typing import assert_never

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Directory, Item
from memci.chapters.address import page_number
from memci.chapters.page import MessageNode, Opening, Page
from memci.chapters.recalled import Attachment
from memci.engine.history import apply_fold, blocks, state_codec
from memci.engine.history.events import (
    AnswerNoted,
    Event,
    FoldUndone,
    MessageAppended,
    PageBegan,
    PageErased,
    PagePinned,
    PageRecalled,
    PageRestored,
    PagesEvicted,
    PagesFaded,
    PagesFolded,
    Rewound,
    SessionConfigured,
    SystemSet,
    UsageReported,
    WindowSettled,
)
from memci.engine.history.page_codec import page_from_value
from memci.engine.history.state import MOST_ANSWERS, SYSTEM, LateResult, State
from memci.engine.history.time_events import CheckpointMade, CheckpointRestored, Forked, ForkMade
from memci.engine.settings.config import Config


def apply(state: State, event: Event, seq: int) -> None:  # noqa: C901, PLR0912 (one branch a kind of event)
    """Change the state as the event says; *seq* is the event's place in the journal. Costs what the event holds."""
    match event:
        case MessageAppended():
            _append(state, event, seq)
        case AnswerNoted():
            state.answers = (*state.answers, event.sha256)[-MOST_ANSWERS:]
        case PagesFolded():
            apply_fold.fold(state, event)
        case WindowSettled():
            state.settled = event
        case PageRecalled():
            _recall(state, event, seq)
        case PagesFaded():
            for index in event.pages:
                state.recalled.fade(index)
        case PagesEvicted():
            _evict(state, event)
        case PageRestored():
            _restore(state, event)
        case PagePinned():
            _pin(state, event)
        case PageBegan():
            _begin_page(state, event)
        case SystemSet():
            _set_system(state, event, seq)
        case FoldUndone():
            apply_fold.undo_fold(state, event)
        case Rewound():
            apply_fold.rewind(state, event)
        case SessionConfigured():
            _configure(state, event)
        case UsageReported():
            state.scale = event.scale
            state.ratios = (state.ratios[1], event.scale if event.ratio is None else event.ratio)
        case CheckpointMade():
            state.next_checkpoint = event.number + 1
        case CheckpointRestored():
            _restore_checkpoint(state, event, seq)
        case Forked():
            state.session = event.session
        case ForkMade():
            pass
        case PageErased():
            state.erased_seq = seq
        case _:
            assert_never(event)
    state.seq = seq


def _append(state: State, event: MessageAppended, seq: int) -> None:
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
        page = _numbered(state, event.page, Opening(event.opens))
        state.active.add_page(page)
        if page.opened_by is Opening.TURN or only_user or not state.turn_page:  # the newest part of what the user says
            state.turn_page = page.index
    found = newest if newest is not None and newest.index == event.page else state.active.find_page(event.page)
    if found is None:
        state.late.setdefault(event.page, []).append(LateResult(event.answers[0][1], node))
        return
    found.join(node, [(call_id, call_seq) for call_id, call_seq in event.answers] if event.answers else ())


def _numbered(state: State, index: str, opened_by: Opening, name: str | None = None) -> Page:
    segment = index.rpartition("-")[0]
    state.next_number[segment] = max(state.next_number[segment], page_number(index) + 1)
    return Page(index=index, turn=0 if segment == SYSTEM else state.turn, opened_by=opened_by, name=name)


def _begin_page(state: State, event: PageBegan) -> None:
    state.turn = event.turn
    page = state.active.find_page(event.page)
    if page is not None:
        page.name = event.name
        return
    state.active.add_page(_numbered(state, event.page, Opening.TURN, event.name))
    state.turn_page = event.page


def _set_system(state: State, event: SystemSet, seq: int) -> None:
    pages = []
    for value in event.pages:
        page = _numbered(state, value["index"], Opening.TURN)
        message = state.wire.facts(value["message"])
        page.add(MessageNode(message=message, tokens=value["tokens"], seq=seq, at=event.at))
        pages.append(page)
    state.system.replace(pages)


def _recall(state: State, event: PageRecalled, seq: int) -> None:
    if not event.prefetched:
        _count_recall(state, event)
    if event.content is None:
        page = state.recalled.find_page(event.page)
        assert page is not None, event.page
        renewed = attrs.evolve(state.recalled.attachments[event.page], turn=event.turn, prefetched=0, used_seq=seq)
        state.recalled.attach(page, renewed)
        return
    if event.read is not None:
        page, block = event.read
    else:
        page = page_from_value(event.content, state.wire.facts)
        block = blocks.page_block(page, state.wire, media=event.media)
    attachment = Attachment(
        anchor=event.anchor,
        turn=event.turn,
        block=block,
        tokens=event.block_tokens,
        prefetched=event.prefetched,
        media=event.media,
        used_seq=seq,
    )
    state.recalled.attach(page, attachment)


def _count_recall(state: State, event: PageRecalled) -> None:
    index = event.page
    entry = state.archive.find_entry(index)
    if entry is not None:
        state.archive.put(attrs.evolve(entry, recall_count=event.recall_count, last_recall_turn=event.turn))
    else:
        directory = state.archive.find_directory(index)
        if directory is not None:
            state.archive.put(attrs.evolve(directory, last_recall_turn=event.turn))
        _count_in_last_fold(state, event)


def _count_in_last_fold(state: State, event: PageRecalled) -> None:
    """Count a recall of a page that the last fold took into a directory: undoing the fold brings its entry back."""
    last = state.last_fold
    if last is not None:
        entries = tuple(
            attrs.evolve(entry, recall_count=event.recall_count, last_recall_turn=event.turn)
            if isinstance(entry, ContentsEntry) and entry.index == event.page
            else entry
            for entry in last.entries
        )
        state.last_fold = attrs.evolve(last, entries=entries)


def _evict(state: State, event: PagesEvicted) -> None:
    gone = {index for index, _ in event.pages}
    for index in gone:
        state.archive.drop(index)
    if state.last_fold is not None:
        kept = tuple(entry for entry in state.last_fold.entries if entry.index not in gone)
        state.last_fold = attrs.evolve(state.last_fold, entries=kept)


def _restore(state: State, event: PageRestored) -> None:
    directory = state.archive.find_directory(event.page)
    if directory is not None:
        rest = directory.without(page_number(event.page))
        state.archive.drop(directory.index)
        if rest is not None:
            state.archive.put(rest)
    if state.last_fold is not None:
        state.last_fold = attrs.evolve(state.last_fold, entries=_ungrouped(state.last_fold.entries, page_number(event.page)))
    state.archive.put(ContentsEntry.from_mapping(event.entry))


def _ungrouped(entries: Iterable[Item], number: int) -> tuple[Item, ...]:
    """Return the entries with no directory that groups the page of this number. O(entries)."""
    left = (entry.without(number) if isinstance(entry, Directory) and entry.holds(number) else entry for entry in entries)
    return tuple(entry for entry in left if entry is not None)


def _pin(state: State, event: PagePinned) -> None:
    entry = state.archive.find_entry(event.page)
    if entry is not None:
        state.archive.put(attrs.evolve(entry, pinned=event.pinned))
    elif event.pinned:
        state.pinned.add(event.page)
    else:
        state.pinned.discard(event.page)


def _configure(state: State, event: SessionConfigured) -> None:
    state.session = event.session
    if not state.configured or event.counted is not None:
        state.scale = event.scale
        state.ratios = (event.scale, event.scale)
        if state.settled is not None:  # tools are counted anew by the next window
            state.settled = attrs.evolve(state.settled, tools_sha256="", tools_tokens=0, scale=None, excerpts={})
    state.config = Config.from_stored(event.config)
    state.configured = event.config
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
    if state.opening is not None:
        for node, (tokens, stub_tokens) in zip(state.opening.nodes, counted["opening"], strict=True):
            node.tokens, node.stub_tokens = tokens, stub_tokens
    state.archive.recount(counted["contents"])


def _restore_checkpoint(state: State, event: CheckpointRestored, seq: int) -> None:
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


def _recount(page: Page, counted: list[list[int]]) -> None:
    for node, (tokens, stub_tokens) in zip(page.nodes(), counted, strict=True):
        node.tokens, node.stub_tokens = tokens, stub_tokens
    chapter, following = page.chapter, page.next
    assert chapter is not None
    page.detach()
    page.tokens = sum(node.tokens for node in page.nodes())
    chapter.add_page(page, before=following)
