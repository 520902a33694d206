"""What an edit of the page tree does to the state. Costs the way to the root, and what the event holds."""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from memci.archive.contents.contents_page import ContentsEntry
from memci.archive.contents.tree import Node, Segment
from memci.chapters.address import page_number, segment_of
from memci.engine.history import tree_events as events
from memci.engine.history.folded import ungroup
from memci.engine.history.state import HiddenPage, State, line_message


def edit(state: State, event: events.TreeEvent) -> None:  # noqa: C901, PLR0912 (one branch a kind of event)
    """Change the tree as the event says, and note what takes that back."""
    tree = state.tree
    match event:
        case events.SegmentAdded(name=name):
            tree.add_segment(Segment(name, event.type, event.permission, event.capacity_tokens))
            state.next_number.setdefault(name, 1)
        case events.NoteWritten():
            told = (event.page, event.parent, event.name, event.description, event.tokens, event.turn, event.by)
            tree.add(Node(*told, origin=event.origin))
            tree.last_edit = (("remove", event.page),)
        case events.DirectoryMade():
            _number(state, event.page)
            made = Node(event.page, event.parent, event.name, event.description, turn=event.turn, by=event.by, is_directory=True)
            tree.add(made)
            back = []
            for child in event.children:
                back.append(_back(state, child))  # where it is when those before it have gone
                _place(state, child, event.page, by=event.by)
            tree.last_edit = (*reversed(back), ("drop", event.page))
        case events.PageMoved():
            tree.last_edit = (_back(state, event.page),)
            _place(state, event.page, event.parent, by=event.by)
            _list(state, [event.entry] if event.entry is not None else ())
        case events.PageUpdated():
            name, description = _names(state, event.page)
            tree.last_edit = (("update", event.page, name, description),)
            name = name if event.name is None else event.name
            _name(state, event.page, name, description if event.description is None else event.description)
        case events.PageRemoved():
            tree.last_edit = (("return", event.page, tree.get(event.page).parent, tree.following(event.page)),)
            tree.remove(event.page)
        case events.PageReturned():
            tree.restore(event.page, event.parent)
            tree.last_edit = (("remove", event.page),)
        case events.EditUndone():
            for step in tree.last_edit:
                _step(state, *step)
            tree.last_edit = ()
            _list(state, event.entries)
        case events.SystemHidden():
            page = state.system.find_page(event.page)
            assert page is not None, event.page
            state.hidden[event.page] = HiddenPage(line_message(state.wire, page, event.line), event.tokens)
            state.measure_hidden()
        case events.SystemShown():
            del state.hidden[event.page]
            state.measure_hidden()
        case _:
            assert_never(event)


def _names(state: State, index: str) -> tuple[str, str]:
    """Return the name and the description of a note, a directory or a system page."""
    node = state.tree.find(index)
    return state.system_names.get(index, ("", "")) if node is None else (node.name, node.description)


def _name(state: State, index: str, name: str, description: str) -> None:
    node = state.tree.find(index)
    if node is not None:
        node.name, node.description = name, description
    elif index in state.system:
        state.system_names[index] = (name, description)


def _number(state: State, index: str) -> None:
    segment = segment_of(index)
    state.next_number[segment] = max(state.next_number.get(segment, 1), page_number(index) + 1)


def _back(state: State, index: str) -> tuple[str, ...]:
    """Return what puts a page back where it is now."""
    node = state.tree.find(index)
    if node is None:
        return ("place", index, "")
    return ("place", index, node.parent, state.tree.following(index), node.placed_by)


def _place(state: State, index: str, parent: str, before: str = "", by: str = "") -> None:
    """List a page in a directory, or where it came."""
    if parent:
        if state.tree.find(index) is None:
            if (entry := state.archive.find_entry(index)) is not None and entry.pinned:
                state.pinned.add(index)
            ungroup(state, [page_number(index)], [index])
        state.tree.place(index, parent, before, by)
    elif state.tree.find(index) is not None:
        state.tree.drop(index)


def _list(state: State, entries: Iterable[Mapping[str, Any]]) -> None:
    for value in entries:
        entry = ContentsEntry.from_mapping(value)
        ungroup(state, [page_number(entry.index)])
        state.archive.put(entry)
        state.pinned.discard(entry.index)


def _step(state: State, what: str, index: str, *more: str) -> None:
    """Take a step back."""
    tree = state.tree
    if what == "place":
        _place(state, index, *more)
    elif what == "update":
        _name(state, index, *more)
    elif what == "remove":
        tree.remove(index)
    elif what == "return":
        tree.restore(index, *more)
    elif what == "drop":
        tree.drop(index)
