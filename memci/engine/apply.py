"""How each event changes the state. Deterministic, no I/O: the same events make the same state, live or replayed."""

from collections.abc import Iterable, Mapping
from typing import assert_never

import attrs

from memci.archive.contents import ContentsEntry, Detail, Directory
from memci.archive.eviction import page_number
from memci.chapters.message_list import MessageNode, Run
from memci.chapters.page import Opening, Page
from memci.chapters.recalled import Attachment
from memci.engine import blocks
from memci.engine.config import Config
from memci.engine.events import (
    Event,
    FoldUndone,
    MessageAppended,
    PageBegan,
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
from memci.engine.page_codec import page_from_value
from memci.engine.state import SYSTEM, Item, LastFold, LateResult, OpenTurn, State, Traffic


def apply(state: State, event: Event, seq: int) -> None:  # noqa: C901, PLR0912 (one branch a kind of event)
    """Change the state as the event says; *seq* is the event's place in the journal. Costs what the event holds."""
    match event:
        case MessageAppended():
            _append(state, event, seq)
        case PagesFolded():
            _fold(state, event)
        case WindowSettled():
            state.settled = event
        case PageRecalled():
            _recall(state, event)
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
            _undo_fold(state, event)
        case Rewound():
            _rewind(state, event)
        case SessionConfigured():
            _configure(state, event)
        case UsageReported():
            state.scale = event.scale
        case _:
            assert_never(event)
    state.seq = seq


def _append(state: State, event: MessageAppended, seq: int) -> None:
    message = state.wire.facts(event.message)
    node = MessageNode(message=message, tokens=event.tokens, seq=seq, stub_tokens=event.stub_tokens, at=event.at)
    calls = state.traffic.calls + (message.role == "assistant")
    state.traffic = Traffic(tokens=state.traffic.tokens + event.tokens, calls=calls)
    state.turn = event.turn
    if event.opens == SYSTEM:
        page = _numbered(state, event.page, Opening.TURN)
        state.system.add_page(page)
        page.add(node)
        return
    if event.opens is not None:
        page = _numbered(state, event.page, Opening(event.opens))
        state.active.add_page(page)
        if page.opened_by is Opening.TURN or not state.turn_page:
            state.turn_page = page.index
    found = state.active.find_page(event.page)
    if found is None:
        state.late.setdefault(event.page, []).append(LateResult(event.answers[0][1], node))
        return
    join(found, node, [(call_id, call_seq) for call_id, call_seq in event.answers])


def join(page: Page, node: MessageNode, answers: list[tuple[str, int]]) -> int:
    """Add a message to its page, a result behind the call it answers, and return its position."""
    if not answers:
        return page.add(node)
    call_seq = answers[0][1]
    call = find_seq(page, call_seq)
    position = page.add(node, after=page.results_end(call))
    for call_id, _ in answers:
        page.answer(call_id)
    return position


def find_seq(page: Page, seq: int) -> MessageNode:
    """Return the node of a page that came with the event *seq*. O(entries behind it)."""
    node = page.tail
    while node is not None and node.seq != seq:
        node = node.previous
    assert node is not None, (page.index, seq)
    return node


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


def _fold(state: State, event: PagesFolded) -> None:
    state.last_fold = LastFold(tuple(event.folded), state.archive.entries)
    _drop_old_opening(state)
    for index in event.folded:
        page = state.active.find_page(index)
        assert page is not None, index
        if index == state.turn_page and page is not state.active.open_page:
            state.opening = OpenTurn(index, opening_nodes(page))
        page.detach()
        state.pinned.discard(index)
        state.recalls.pop(index, None)
    for index, block_tokens in event.revised.items():
        _take_in_late(state, index, block_tokens)
    for value in event.entries:
        entry = ContentsEntry.from_mapping(value)
        if entry.index in event.folded or state.archive.find_entry(entry.index) is not None:
            state.archive.put(entry)
    for index, detail in event.details.items():
        shown = state.archive.find_entry(index)
        assert shown is not None, index
        state.archive.put(attrs.evolve(shown, detail=Detail(detail)))
    for value in event.directories:
        _group(state, Directory.from_mapping(value))
    for index, _ in event.evicted:
        state.archive.drop(index)
    if state.settled is not None:
        state.settled = attrs.evolve(state.settled, stub_tokens=None)
    _publish(state, event.contents_tokens)


def _group(state: State, directory: Directory) -> None:
    """Put a directory in the place of what it groups."""
    segment = directory.index.rpartition("-")[0]
    state.next_number[segment] = max(state.next_number[segment], page_number(directory.index) + 1)
    for other in state.archive.entries:
        number = page_number(other.index)
        inside = directory.holds(number) if isinstance(other, ContentsEntry) else _within(other, directory)
        if inside and other.index != directory.index:
            state.archive.drop(other.index)
    state.archive.put(directory)


def opening_nodes(page: Page) -> list[MessageNode]:
    """Return copies of the user messages that a page begins with. O(those)."""
    nodes = []
    for node in page.nodes():
        if not node.message.from_user:
            break
        nodes.append(attrs.evolve(node, previous=None, next=None))
    return nodes


def _within(inner: Directory, outer: Directory) -> bool:
    return all(outer.holds(first) and outer.holds(last) for first, last in inner.covers)


def _drop_old_opening(state: State) -> None:
    if state.opening is not None and state.opening.page != state.turn_page:
        state.opening = None


def _take_in_late(state: State, index: str, block_tokens: int) -> None:
    late = state.late.pop(index)
    page = state.recalled.find_page(index)
    if page is None:
        return
    known = {node.seq for node in page.nodes()}
    for result in late:
        if result.node.seq not in known:  # a page that was recalled since has it already
            join(page, result.node, [(call_id, result.call_seq) for call_id in result.node.message.answers])
    attachment = state.recalled.attachments[index]
    block = state.wire.block(blocks.page_block(page))
    state.recalled.attach(page, attrs.evolve(attachment, block=block, tokens=block_tokens))


def _publish(state: State, tokens: int) -> None:
    contents = state.archive.contents
    message = state.wire.block(contents.render()) if contents.entries else None
    state.archive.publish(message, tokens, (entry.index for entry in contents.entries))


def _recall(state: State, event: PageRecalled) -> None:
    index = event.page
    entry = state.archive.find_entry(index)
    if entry is not None:
        state.archive.put(attrs.evolve(entry, recall_count=event.recall_count, last_recall_turn=event.turn))
    else:
        directory = state.archive.find_directory(index)
        if directory is not None:
            state.archive.put(attrs.evolve(directory, last_recall_turn=event.turn))
    if event.content is None:
        page = state.recalled.find_page(index)
        assert page is not None, index
        state.recalled.attach(page, attrs.evolve(state.recalled.attachments[index], turn=event.turn))
        return
    page = page_from_value(event.content, state.wire.facts)
    block = state.wire.block(blocks.page_block(page))
    attachment = Attachment(anchor=event.anchor, turn=event.turn, block=block, tokens=event.block_tokens)
    state.recalled.attach(page, attachment)


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
        if rest is None:
            state.archive.drop(directory.index)
        else:
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


def _undo_fold(state: State, event: FoldUndone) -> None:
    assert state.last_fold is not None
    for value in event.pages:
        page = page_from_value(value, state.wire.facts)
        state.recalled.fade(page.index)
        state.late.pop(page.index, None)
        _keep_marks(state, page.index)
        number = page_number(page.index)
        younger = (other for other in state.active.pages() if page_number(other.index) > number)
        state.active.add_page(page, before=next(younger, None))
        if state.opening is not None and state.opening.page == page.index:
            state.opening = None
    state.archive.replace(entries_before_fold(state))
    state.last_fold = None
    _publish(state, event.contents_tokens)


def _keep_marks(state: State, index: str) -> None:
    """Keep of an archived page that comes back into view whether it is pinned, and how often it was recalled. O(1)."""
    entry = state.archive.find_entry(index)
    if entry is not None and entry.pinned:
        state.pinned.add(index)
    if entry is not None and entry.recall_count:
        state.recalls[index] = (entry.recall_count, entry.last_recall_turn)


def entries_before_fold(state: State) -> list[Item]:
    """Return the entries of the contents page without the last fold, with what happened to them since. O(entries)."""
    last = state.last_fold
    if last is None:
        return list(state.archive.entries)
    undone = set(last.folded)
    now = {entry.index: entry for entry in state.archive.entries}
    known = {entry.index for entry in last.entries}
    before = [_counts_of(entry, now.get(entry.index)) for entry in last.entries if entry.index not in undone]
    since = [entry for entry in now.values() if entry.index not in known | undone and isinstance(entry, ContentsEntry)]
    return sorted((*before, *since), key=lambda entry: entry.first_seq)


def _counts_of(entry: Item, now: Item | None) -> Item:
    if isinstance(entry, ContentsEntry) and isinstance(now, ContentsEntry):
        return attrs.evolve(now, detail=entry.detail)
    return now if now is not None else entry


def _rewind(state: State, event: Rewound) -> None:
    number = page_number(event.page)
    for later in state.active.pages():
        if page_number(later.index) > number:
            later.detach()
    page = state.active.find_page(event.page)
    if event.content is not None:
        state.active.add_page(page_from_value(event.content, state.wire.facts))
        _keep_marks(state, event.page)
    elif page is not None and event.removed:
        page.detach()
    elif page is not None:
        page.cut(event.position)
    for attached in state.recalled.pages():
        if page_number(attached.index) >= number:
            state.recalled.fade(attached.index)
    directories = map(Directory.from_mapping, event.directories)
    state.archive.replace(entries_before_page(state, number, {directory.index: directory for directory in directories}))
    state.pinned = {index for index in state.pinned if page_number(index) <= number}
    state.recalls = {index: recalls for index, recalls in state.recalls.items() if page_number(index) <= number}
    state.late = {index: late for index, late in state.late.items() if page_number(index) < number}
    state.turn_page = event.opening_page
    state.opening = None
    if event.opening is not None:
        state.opening = OpenTurn(event.opening_page, list(page_from_value(event.opening, state.wire.facts).nodes()))
    state.last_fold = None
    if event.contents_tokens is not None:
        _publish(state, event.contents_tokens)


def entries_before_page(state: State, number: int, left: Mapping[str, Directory]) -> list[Item]:
    """Return the entries of the contents page for pages below a number, with what is left of directories. O(entries)."""
    entries = (left.get(entry.index, entry) for entry in state.archive.entries)
    return [entry for entry in entries if _last_number(entry) < number]


def _last_number(entry: Item) -> int:
    return page_number(entry.index) if isinstance(entry, ContentsEntry) else entry.covers[-1][1]


def _configure(state: State, event: SessionConfigured) -> None:
    state.session = event.session
    if not state.configured or event.counted is not None:
        state.scale = event.scale
        if state.settled is not None:  # tools are counted anew by the next window
            state.settled = attrs.evolve(state.settled, tools_sha256="", tools_tokens=0)
    state.config = Config.from_mapping(event.config)
    state.configured = event.config
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


def _recount(page: Page, counted: list[list[int]]) -> None:
    for node, (tokens, stub_tokens) in zip(page.nodes(), counted, strict=True):
        node.tokens, node.stub_tokens = tokens, stub_tokens
    chapter, following = page.chapter, page.next
    assert chapter is not None
    page.detach()
    page.run = Run(page.head, page.tail, len(page), sum(node.tokens for node in page.nodes()))
    chapter.add_page(page, before=following)
