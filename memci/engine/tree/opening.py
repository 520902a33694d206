"""What stands open: opening and closing pages, removing them from the tree, and bringing them back."""

from collections.abc import Iterable

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.tree import Node
from memci.chapters.address import is_range, is_root, last_number, page_number, segment_of
from memci.chapters.page import Page
from memci.engine.commands import folding, recalling
from memci.engine.core.core import Core
from memci.engine.core.monitor import Eviction
from memci.engine.history.events import PagesFaded
from memci.engine.history.state import SYSTEM
from memci.engine.history.tree_events import PageMoved, PageRemoved, PageReturned
from memci.engine.reading import pages
from memci.engine.tree import system
from memci.engine.tree.segments import By, refuse
from memci.engine.view.planner import FoldPlan
from memci.errors import PageEvictedError, PageNotFoundError, PermissionDeniedError

_MOST_NAMED = 3  # pages that an error names


def expand(core: Core, given: str | int, *, by: By) -> Page:
    """Open a page, a note, a directory or a range, and return it; what is in the window for itself is just returned."""
    index = pages.page_index(given)
    refuse(core, by, "open", index)
    if is_root(index):
        return pages.read(core, index)
    return recalling.recall(core, index, lasting=True, by=by)


def hide(core: Core, given: str | int, *, by: By) -> None:
    """Close what is open, with all that is open in it, or fold a complete page of the window; else nothing happens."""
    index = pages.page_index(given)
    refuse(core, by, "close", index)
    if is_root(index):
        pages.read_facts(core, index)
        message = f"{index} is the root of its segment, and always stands open: name a page or a directory in it"
        raise PermissionDeniedError(message)
    node = core.state.tree.find(index)
    if node is None and segment_of(index) == SYSTEM and not is_range(index):
        system.hide(core, index, by=by)
        return
    is_directory = node is not None and node.is_directory
    faded = [each for each in core.state.recalled.attachments if each == index or _is_inside(core, each, index)]
    if faded:
        core.commit([PagesFaded(pages=faded, reason="closed", closed=index if is_directory else "", by=by)])
    elif not is_directory and not is_range(index):
        _fold(core, index)


def _fold(core: Core, index: str) -> None:
    """Fold a page that stands in the window for itself; nothing happens to one that does not."""
    facts = pages.get_facts(core, index)
    page = core.state.active.find_page(index)
    if facts.state is PageState.OPEN or (page is not None and page.turn == core.state.turn):
        message = f"page {index} is of the open turn, which is never hidden: close it when the next turn is open"
        raise PermissionDeniedError(message)
    if index in core.state.kept:
        message = f"page {index} is kept in the window: unkeep it first"
        raise PermissionDeniedError(message)
    if page is not None and page.open_calls:
        message = f"page {index} holds a call that waits for its result: append that, then close the page"
        raise PermissionDeniedError(message)
    if page is not None:
        folding.fold(core, FoldPlan(pages=(index,), reason="command"))


def remove(core: Core, given: str | int, *, by: By) -> None:
    """Take a page out of the tree with all that is in it: it is evicted, and what is open of it closes. O(visible · depth)."""
    index = pages.page_index(given)
    refuse(core, by, "remove", index)
    node = core.state.tree.find(index)
    if node is None or is_root(index):
        recalling.evict(core, index)
        return
    if core.state.tree.is_removed(index):
        raise PageEvictedError(index)
    core.commit([*closing(core, index, by=by), PageRemoved(page=index, by=by)])
    core.monitor.tell(Eviction(pages=((index, "command"),)))


def closing(core: Core, index: str, *, by: By) -> list[PagesFaded]:
    """Return what closes all that is open of what is to be removed, or raise what says why that stays. O(visible · depth)."""
    if shown := _inside(core, index, (page.index for page in core.state.active.pages())):
        is_it = shown == [index]
        message = f"page {index} is" if is_it else f"{_named(shown)} in {index} are"
        message += f" in the window, not in the contents page: fold {'it' if is_it else 'them'} first"
        raise PageNotFoundError(message, index=shown[0])
    if pinned := _inside(core, index, sorted(core.state.pinned)):
        message = f"page {index} is pinned: unpin it first"
        if pinned != [index]:
            message = f"{index} holds what is pinned: unpin {_named(pinned)} first, or move it elsewhere"
        raise PermissionDeniedError(message)
    faded = _inside(core, index, core.state.recalled.attachments)
    return [PagesFaded(pages=faded, reason="evicted", by=by)] if faded else []


def restore(core: Core, given: str | int, *, by: By) -> None:
    """Put what was removed back where it was, or where that was removed, at its root; see ``recalling.restore`` for others."""
    index = pages.page_index(given)
    refuse(core, by, "restore", index)
    tree = core.state.tree
    node = tree.find(index)
    if index in core.state.system:
        system.show(core, index, by=by)
    elif node is None or is_root(index):
        recalling.restore(core, index)
    elif node.removed:
        is_there = not tree.is_removed(node.parent)
        core.commit([PageReturned(page=index, parent=node.parent if is_there else tree.path(index)[-1].index, by=by)])
    elif tree.is_removed(index):
        core.commit([_moved_out(core, node, by)])


def _moved_out(core: Core, node: Node, by: By) -> PageMoved:
    """Return the event that takes a page out of a directory that was removed."""
    if node.name:
        return PageMoved(page=node.index, parent=core.state.tree.path(node.index)[-1].index, by=by)
    entries = recalling.own_entries(core, [pages.get_facts(core, node.index)])
    return PageMoved(page=node.index, parent="", entry=entries[0].to_mapping(), by=by)


def _inside(core: Core, directory: str, indexes: Iterable[str]) -> list[str]:
    """Return which pages are a directory, or in it at any depth. O(those · depth)."""
    return [index for index in indexes if index == directory or _is_inside(core, index, directory)]


def _is_inside(core: Core, index: str, directory: str) -> bool:
    """Return whether a page is in a directory that was made, at any depth, or in a range. O(depth)."""
    tree = core.state.tree
    if is_range(directory):
        is_placed, is_of_segment = tree.find(index) is not None, segment_of(index) == segment_of(directory)
        within = page_number(directory) <= page_number(index) and last_number(index) <= last_number(directory)
        return is_of_segment and within and not is_placed
    return tree.find(index) is not None and any(above.index == directory for above in tree.path(index))


def _named(indexes: list[str]) -> str:
    more = f" and {len(indexes) - _MOST_NAMED} more" if len(indexes) > _MOST_NAMED else ""
    return ", ".join(indexes[:_MOST_NAMED]) + more
