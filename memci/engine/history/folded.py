"""What a fold does to the state, trimming too, and what taking it back does."""

from collections.abc import Collection, Iterable, Sequence

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item, within
from memci.chapters.address import is_root, page_number
from memci.chapters.page import Page
from memci.engine.history import blocks, events
from memci.engine.history.directives import Directive, directives_of
from memci.engine.history.page_codec import page_from_value
from memci.engine.history.state import LastFold, State, opening_of


def fold(state: State, event: events.PagesFolded) -> None:  # noqa: C901 (what a fold does, in its order)
    """Move pages into the contents page, and show it in the window as it is then. Costs what the event holds."""
    directories = event.read
    if directories is None:
        said = state.archive.said(min((value["covers"][0][0] for value in event.directories), default=0))
        directories = [Directory.from_mapping(value, said) for value in event.directories]
    # Most pages go into a directory at once, so that their entries would be made for nothing.
    at_once = within(event.folded, directories).difference(event.details)
    if state.tree:
        at_once.update(index for index in event.folded if state.tree.find(index) is not None)
    entries = [ContentsEntry.from_mapping(value) for value in event.entries if value["index"] not in at_once]
    new = {entry.index: entry for entry in entries}  # an archived page that took in late results keeps them when this is undone
    topic = event.topic or {}
    titles = topic.get("was", {})
    known = (_known(entry, new.get(entry.index), titled=entry.index in titles) for entry in state.archive.entries)
    before = tuple(known)
    state.folded_turn = event.turn if event.folded else state.folded_turn
    former = state.directives
    if event.directives is not None:
        state.directives = _directives(state, event)
    kept = {index: state.kept[index] for index in event.folded if index in state.kept} if state.kept else {}
    _take_out(state, event.folded)
    folded, revised = tuple(event.folded), tuple(event.revised)
    stay = {page.index for page in state.active.pages()} | ({state.archive.root} if event.working is None else set())
    published = {index: each for index, each in state.summaries.items() if index not in stay}
    state.last_fold = LastFold(folded, before, state.working, published, state.topic, titles, revised, kept, former)
    state.keep_directives(lambda _: True)
    state.topic = topic.get("last", state.topic)
    state.summaries = {index: each for index, each in state.summaries.items() if index in stay}
    asked = stay.union(folded, revised, [state.archive.root])
    state.claims = {index: each for index, each in state.claims.items() if index in asked}
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
    if event.working is not None:
        state.working = state.working.folded(event.working)
    if event.outline is not None:
        state.tree.outline_tokens = event.outline["tokens"]
        state.tree.shortened = {name: (plain, unlisted) for name, (plain, unlisted) in event.outline["shortened"].items()}
    publish(state, event.contents_tokens)


def _directives(state: State, event: events.PagesFolded) -> tuple[Directive, ...]:
    """Return the directives that a fold keeps. O(entries of what folds)."""
    pages = filter(None, map(state.active.find_page, event.folded))
    new = (directive for page in pages for directive in directives_of(page, state.system_seq))
    known = {directive.node.seq: directive for directive in (*state.directives, *new)}
    return tuple(attrs.evolve(known[seq], last_seq=last_seq) for seq, last_seq in event.directives or ())


def _known(entry: Item, new: ContentsEntry | None, *, titled: bool) -> Item:
    """Return an entry as it was before a fold made a new one; late results stay, a topic's title does not."""
    if new is None or isinstance(entry, Directory):
        return entry
    return new.saying(entry) if titled else attrs.evolve(new, detail=entry.detail)


def trim(state: State, event: events.ResultsTrimmed) -> None:
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
        if state.placement(index) is None:
            state.pinned.discard(index)
        state.kept.pop(index, None)
        state.recalls.pop(index, None)
    if state.opening is not None:
        gone.difference_update(node.seq for node in state.opening.nodes())
    _unstub(state, gone)


def _unstub(state: State, gone: Collection[int]) -> None:
    """Let no stub stand for these messages any more."""
    if state.settled is not None:
        stubs = [seq for seq in state.settled.stubs if seq not in gone]
        excerpts = {seq: each for seq, each in state.settled.excerpts.items() if int(seq) in stubs}
        state.settled = attrs.evolve(state.settled, stubs=stubs, excerpts=excerpts)


def keep(state: State, event: events.PageKept) -> None:
    """Have folds pass a page by, and show it whole, or let them take it. Costs what the page holds."""
    if not event.by:
        del state.kept[event.page]
        return
    if event.content is not None:
        _bring_back(state, page_from_value(event.content, state.wire.facts), event.recalls)
        ungroup(state, [page_number(event.page)], [event.page])
        if (last := state.last_fold) is not None:  # undoing it leaves the page where it is now
            folded = tuple(index for index in last.folded if index != event.page)
            kept = {index: by for index, by in last.kept.items() if index != event.page}
            state.last_fold = attrs.evolve(last, folded=folded, kept=kept)
    page = state.active.find_page(event.page)
    assert page is not None, event.page
    state.kept[event.page] = event.by
    state.keep_directives(lambda _: True)
    if page is not state.active.open_page:
        for node in page.nodes():
            node.trimmed = ()
        _unstub(state, {node.seq for node in page.nodes()})


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


def publish(state: State, tokens: int) -> None:
    """Show the contents page as it is now, which has so many tokens; none where it has no entry. O(entries)."""
    contents = state.contents
    explained = state.renderer >= blocks.EXPLAINING_RENDERER
    message = state.wire.block(contents.render(explained=explained)) if contents.entries else None
    directories = [entry for entry in contents.entries if isinstance(entry, Directory)]
    indexes = (entry.index for entry in contents.entries if not is_root(entry.index))
    state.archive.publish(message, tokens, indexes, directories)


def undo_fold(state: State, event: events.FoldUndone) -> None:
    """Bring the pages of the last fold back into view. Costs what the event holds."""
    for value in event.pages:
        _bring_back(state, page_from_value(value, state.wire.facts), event.recalls.get(value["page"]))
    state.recalled.quotes.clear()  # they may be of these pages
    state.archive.replace(entries_before_fold(state))
    if state.last_fold is not None:
        state.working = state.last_fold.working
        state.summaries |= state.last_fold.summaries
        state.topic = state.last_fold.topic
        state.kept |= state.last_fold.kept
        state.directives = state.last_fold.directives
    state.last_fold, state.folded_turn = None, state.turn
    state.keep_directives(lambda _: True)
    publish(state, event.contents_tokens)


def _bring_back(state: State, page: Page, recalls: Sequence[int] | None) -> None:
    """Show an archived page in its place among those in view. O(pages in view), and its entries."""
    state.recalled.fade(page.index)
    state.late.pop(page.index, None)
    keep_pin(state, page.index, recalls)
    number = page_number(page.index)
    younger = (other for other in state.active.pages() if page_number(other.index) > number)
    state.active.add_page(page, before=next(younger, None))
    if state.opening is not None and state.opening.index == page.index:
        state.opening = None


def keep_pin(state: State, index: str, recalls: Sequence[int] | None = None) -> None:
    """Keep of an archived page that comes back into view, as near, whether it is pinned, and how often it was recalled. O(1).

    One that was removed from the tree, or with its directory, is where it came again. O(depth).
    """
    state.touch([index], state.turn)
    if state.placement(index) is not None and state.tree.is_removed(index):
        state.tree.forget([index])
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
        return now.saying(entry)
    if isinstance(entry, Directory) and isinstance(now, Directory):
        return attrs.evolve(entry, last_recall_turn=now.last_recall_turn)
    return entry


def ungroup(state: State, numbers: Sequence[int], gone: Collection[str] = ()) -> None:
    """Take pages of these numbers out of directories, and entries that are *gone* out of the contents page, for good."""
    state.archive.replace(_ungrouped(state.archive.entries, numbers, gone))
    if state.last_fold is not None:
        state.last_fold = attrs.evolve(state.last_fold, entries=_ungrouped(state.last_fold.entries, numbers, gone))


def _ungrouped(entries: Iterable[Item], numbers: Sequence[int], gone: Collection[str]) -> tuple[Item, ...]:
    """Return entries, but for those *gone*, with no directory that groups pages of these numbers. O(entries · numbers)."""
    left: list[Item] = [entry for entry in entries if entry.index not in gone]
    for number in numbers:
        held = (entry.without(number) if isinstance(entry, Directory) and entry.holds(number) else entry for entry in left)
        left = list(filter(None, held))
    return tuple(sorted(left, key=lambda entry: page_number(entry.index)))
