"""How folds, undone folds and rewinds change the state. A part of ``apply``: deterministic, no I/O."""

from collections.abc import Mapping, Sequence

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item
from memci.chapters.address import last_number, page_number
from memci.chapters.page import MessageNode, Page
from memci.engine.history import blocks
from memci.engine.history.events import FoldUndone, PagesFolded, Rewound
from memci.engine.history.page_codec import page_from_value
from memci.engine.history.state import LastFold, OpenTurn, State


def fold(state: State, event: PagesFolded) -> None:
    """Move pages into the contents page, and show it in the window as it is then. Costs what the event holds."""
    entries = [ContentsEntry.from_mapping(value) for value in event.entries]
    state.last_fold = LastFold(tuple(event.folded), _revised(state, entries))
    _drop_old_opening(state)
    gone: set[int] = set()
    for index in event.folded:
        page = state.active.find_page(index)
        assert page is not None, index
        if index == state.turn_page and page is not state.active.open_page:
            state.opening = OpenTurn(index, opening_nodes(page))
        gone.update(node.seq for node in page.nodes())
        page.detach()
        state.pinned.discard(index)
        state.recalls.pop(index, None)
    for index, block_tokens in event.revised.items():
        _take_in_late(state, index, block_tokens)
    for entry in entries:
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
        kept = {node.seq for node in state.opening.nodes} if state.opening is not None else set()
        stubs = [seq for seq in state.settled.stubs if seq not in gone or seq in kept]
        excerpts = {seq: each for seq, each in state.settled.excerpts.items() if int(seq) in stubs}
        state.settled = attrs.evolve(state.settled, stubs=stubs, excerpts=excerpts)
    _publish(state, event.contents_tokens)


def _revised(state: State, made: Sequence[ContentsEntry]) -> tuple[Item, ...]:
    """Return what the contents page lists, with what these entries say of pages that took in late results. O(entries)."""
    new = {entry.index: entry for entry in made}
    return tuple(
        attrs.evolve(new[known.index], detail=known.detail) if isinstance(known, ContentsEntry) and known.index in new else known
        for known in state.archive.entries
    )


def _group(state: State, directory: Directory) -> None:
    """Put a directory in the place of what it groups."""
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
            page.join(result.node, [(call_id, result.call_seq) for call_id in result.node.message.answers])
    attachment = state.recalled.attachments[index]
    block = blocks.page_block(page, state.wire, media=attachment.media)
    state.recalled.attach(page, attrs.evolve(attachment, block=block, tokens=block_tokens))


def _publish(state: State, tokens: int) -> None:
    contents = state.archive.contents
    message = state.wire.block(contents.render()) if contents.entries else None
    directories = [entry for entry in contents.entries if isinstance(entry, Directory)]
    state.archive.publish(message, tokens, (entry.index for entry in contents.entries), directories)


def undo_fold(state: State, event: FoldUndone) -> None:
    """Bring the pages of the last fold back into view. Costs what the event holds."""
    assert state.last_fold is not None
    for value in event.pages:
        page = page_from_value(value, state.wire.facts)
        state.recalled.fade(page.index)
        state.late.pop(page.index, None)
        _keep_pin(state, page.index)
        number = page_number(page.index)
        younger = (other for other in state.active.pages() if page_number(other.index) > number)
        state.active.add_page(page, before=next(younger, None))
        if state.opening is not None and state.opening.page == page.index:
            state.opening = None
    state.archive.replace(entries_before_fold(state))
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
    if last is None:
        return list(state.archive.entries)
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


def rewind(state: State, event: Rewound) -> None:
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
    gone = number if event.removed else number + 1
    last = state.active.message_list.tail
    for index, attachment in list(state.recalled.attachments.items()):
        recalled_later = attachment.anchor and page_number(attachment.anchor) >= gone
        if recalled_later or last_number(index) >= number or attachment.prefetched > (last.seq if last else 0):
            state.recalled.fade(index)
    left = {page_number(directory.index): directory for directory in map(Directory.from_mapping, event.directories)}
    state.archive.replace(entries_before_page(state, number, left))
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


def entries_before_page(state: State, number: int, left: Mapping[int, Directory]) -> list[Item]:
    """Return the entries of the contents page for pages below a number, with what is left of directories. O(entries)."""
    entries = (left.get(page_number(entry.index), entry) for entry in state.archive.entries)
    return [entry for entry in entries if _last_number(entry) < number]


def _last_number(entry: Item) -> int:
    return page_number(entry.index) if isinstance(entry, ContentsEntry) else entry.covers[-1][1]
