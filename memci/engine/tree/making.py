"""Directories that are made, and where pages are listed: what is asked of them, and how they are edited."""

from collections.abc import Sequence

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.tree import Edit
from memci.chapters.address import is_note, is_range, is_root, segment_of
from memci.engine.commands import recalling
from memci.engine.commands.closing import checked_name
from memci.engine.core.core import Core
from memci.engine.history.events import PagesFaded
from memci.engine.history.state import SYSTEM, USER
from memci.engine.history.tree_events import DirectoryMade, EditUndone, PageMoved, PageUpdated
from memci.engine.reading import pages
from memci.engine.tree import opening
from memci.engine.tree.segments import By, keep_to_capacities, refuse
from memci.errors import ArgumentError, MemciError, PageEvictedError, PermissionDeniedError

DESCRIPTION_CHARACTERS = 500  # of a note or a directory, at most


def make_directory(  # noqa: PLR0913 (the parts of a directory)
    core: Core, name: str, description: str, parent: str | int | None, children: Sequence[str | int], *, by: By
) -> str:
    """Make a directory of these pages, and return its index."""
    named, told, above = checked_name(name, "name"), checked_description(description), checked_parent(core, parent)
    if not isinstance(children, list | tuple):
        raise ArgumentError(argument="children", value=children, wanted="a list of the pages that go into it")
    chosen = [_movable(core, child) for child in children]
    for index in chosen:
        _refuse_cycle(core, index, above)
        if chosen.count(index) > 1:
            raise ArgumentError(argument="children", value=index, wanted="each page once")
        if (node := core.state.tree.find(index)) is not None:
            around = [each.index for each in core.state.tree.path(node.index) if each.index in chosen]
            if around:
                raise ArgumentError(argument="children", value=index, wanted=f"{around[0]} alone: {index} is in it already")
    refuse(core, by, "group", *chosen, above)
    segment = segment_of(core.state.tree.root(above))
    index = f"{segment}-{core.state.next_number[segment]}"
    made = DirectoryMade(page=index, name=named, description=told, parent=above, children=chosen, turn=core.state.turn, by=by)
    core.commit([made])
    keep_to_capacities(core)
    return index


def move(core: Core, source: str | int, target: str | int, *, by: By) -> None:
    """List a page elsewhere: in a directory, or, a page of the conversation at a root, where it came."""
    tree, index = core.state.tree, _movable(core, source)
    above, node = checked_parent(core, target, "target"), tree.find(index)
    _refuse_cycle(core, index, above)
    refuse(core, by, "move", index, above)
    if is_root(above) and segment_of(above) != segment_of(index) and (node is None or not node.name):
        wanted = f"a directory of {segment_of(above)}, or usr-0: other roots list what was made, and no page of the conversation"
        raise ArgumentError(argument="target", value=target, wanted=wanted)
    if not is_root(above) or (node is not None and node.name):
        core.commit([PageMoved(page=index, parent=above, by=by)])
    elif node is not None:
        entries = recalling.own_entries(core, [pages.get_facts(core, index)])
        core.commit([PageMoved(page=index, parent="", entry=entries[0].to_mapping() if entries else None, by=by)])
    keep_to_capacities(core)


def update(core: Core, index: str | int, name: str | None, description: str | None, *, by: By) -> None:
    """Give a note or a directory another name or description."""
    found = pages.page_index(index)
    found = found if found in core.state.system else _movable(core, index)
    refuse(core, by, "update", found)
    node = core.state.tree.find(found)
    if found not in core.state.system and (node is None or not node.name):
        message = f"{found} is a page of the conversation: it has the words that were said, and no name to change"
        raise PermissionDeniedError(message)
    named = None if name is None else checked_name(name, "name")
    told = None if description is None else checked_description(description)
    if (named, told) != (None, None):
        if node is not None and node.is_note:  # the search knows both as one text
            named, told = named or node.name, node.description if told is None else told
        core.commit([PageUpdated(page=found, name=named, description=told, by=by)])


def undo(core: Core, meant: Sequence[Edit], *, by: By) -> None:
    """Take the last edit back, where it is still the one that was *meant*."""
    last = core.state.tree.last_edit
    if tuple(meant) != last:
        what = "the last edit is another one"
        raise core.changed(what)
    if not last:
        message = "there is no edit to undo: nothing was edited yet, or the last edit was undone already"
        raise MemciError(message)
    unplaced = [pages.get_facts(core, index) for what, index, *more in last if (what, more) == ("place", [""])]
    entries = recalling.own_entries(core, unplaced)
    out = [event for what, index, *_ in last if what == "remove" for event in opening.closing(core, index, by=by)]
    gone = [index for what, index, *_ in last if what == "drop" and index in core.state.recalled]
    out += [PagesFaded(pages=gone, reason="evicted", by=by)] if gone else []
    updated = {index: (name, told) for what, index, *more in last if what == "update" and is_note(index) for name, told in [more]}
    core.commit([*out, EditUndone(entries=[entry.to_mapping() for entry in entries], updated=updated, by=by)])
    keep_to_capacities(core)


def facts(core: Core, index: str) -> PageFacts:
    """Return the facts of a page, a directory or a root."""
    return pages.read_facts(core, index)


def children(core: Core, index: str) -> list[PageFacts]:
    """Return the facts of what a directory lists. O(children); of a range, or with one, O(its pages)."""
    state, found = core.state, pages.read_facts(core, index)
    node = state.tree.find(index)
    listed = [] if node is None else [pages.read_facts(core, child.index) for child in state.tree.children(index)]
    if is_range(index):
        return [each for each in pages.read(core, index).pages if each.parent == index]
    if index == f"{SYSTEM}-0":
        listed += pages.read(core, index).pages
    elif index == state.archive.root:
        listed += [pages.read_facts(core, entry.index) for entry in state.archive.entries]
        listed += [pages.read_facts(core, page.index) for page in state.active.pages() if state.tree.find(page.index) is None]
    return [each for each in listed if each.parent == found.index]


def parent(core: Core, index: str) -> PageFacts | None:
    """Return the facts of what lists a page."""
    above = pages.read_facts(core, index).parent
    return None if above is None else pages.read_facts(core, above)


def ancestors(core: Core, index: str) -> list[PageFacts]:
    """Return the facts of the directories that a page is in, the nearest first. O(depth)."""
    found: list[PageFacts] = []
    above = parent(core, index)
    while above is not None:
        found.append(above)
        above = None if above.parent is None else pages.read_facts(core, above.parent)
    return found


def checked_description(value: object) -> str:
    """Return a description as one line, or raise ``ArgumentError``."""
    from memci.archive.summarizers import extractive  # noqa: PLC0415 (compiles many patterns)

    shown = extractive.one_line(value) if isinstance(value, str) else None
    if shown is None or len(shown) > DESCRIPTION_CHARACTERS:
        wanted = f"text of at most {DESCRIPTION_CHARACTERS} characters"
        raise ArgumentError(argument="description", value=value, wanted=wanted)
    return shown


def checked_parent(core: Core, given: str | int | None, argument: str = "parent") -> str:
    """Return the index of a directory that was made, or of a root, ``usr-0`` for none; else say why it is no parent."""
    index = f"{USER}-0" if given is None else pages.page_index(given)
    node = core.state.tree.find(index)
    if node is not None and node.is_directory:
        if core.state.tree.is_removed(index):
            raise PageEvictedError(index)
        return index
    pages.read_facts(core, index)
    why = "a range that nobody made" if is_range(index) else "a page"
    made = "create_contents_page, or the tool group_pages, makes one"
    wanted = f"a directory that was made, or a root such as usr-0: {index} is {why} ({made})"
    raise ArgumentError(argument=argument, value=given, wanted=wanted)


def _movable(core: Core, given: str | int) -> str:
    """Return the index of a page that may be placed in a directory, or raise what says why it may not."""
    index = pages.page_index(given)
    if is_root(index):
        pages.read_facts(core, index)
        message = f"{index} is the root of its segment and stays as it is: name a page or a directory in it"
        raise PermissionDeniedError(message)
    node = core.state.tree.find(index)
    if is_range(index):
        raise pages.not_found(index)
    if index in core.state.system:
        message = f"page {index} is a part of the system prompt, which stays in its place: name another page"
        raise PermissionDeniedError(message)
    if node is not None:
        if core.state.tree.is_removed(index):
            raise PageEvictedError(index)
    elif pages.get_facts(core, index).state is PageState.EVICTED:
        raise PageEvictedError(index)
    return index


def _refuse_cycle(core: Core, index: str, above: str) -> None:
    if index == above or any(index == node.index for node in core.state.tree.path(above)):
        message = f"{index} would be inside itself: name a directory that is not in it"
        raise PermissionDeniedError(message)
