"""Segments: named parts of the page tree, and what each of them permits the model."""

import re
from typing import Final, Literal, TypeAlias

from memci.archive.contents.tree import Permission, Segment
from memci.chapters.address import NOTES, is_range, last_number, page_number, segment_of
from memci.engine.commands.recalling import over_capacity
from memci.engine.core.core import Core
from memci.engine.history.events import PagesFaded
from memci.engine.history.state import USER
from memci.engine.history.tree_events import SegmentAdded
from memci.engine.reading import pages
from memci.engine.settings.setting import MOST
from memci.errors import ArgumentError, PermissionDeniedError, is_line, shown

By: TypeAlias = Literal["application", "model"]  # who does something
Action: TypeAlias = Literal["read", "recall", "open", "close", "write", "group", "move", "update", "remove", "restore"]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_READING: Final = ("read", "recall", "open", "close")
_PERMITTED: Final = {
    Permission.READ_ONLY: "where pages are read, recalled, opened and closed",
    Permission.SYSTEM_MANAGED: "which shows you what stands open in it, and no more",
}


def add_segment(core: Core, name: object, kind: object, permission: object, capacity_tokens: object) -> str:
    """Add a segment, or give one that is there other settings, and return the index of its root; see ``Session.add_segment``."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None or name == NOTES:
        allowed = f"a name of 1 to 32 small letters, digits and underscores, a letter first, that is not {NOTES!r}"
        raise ArgumentError(argument="name", value=name, wanted=allowed)
    if kind is not None and kind != "" and not is_line(kind):
        raise ArgumentError(argument="type", value=kind, wanted="one line of text, or None")
    if not isinstance(permission, str) or permission not in tuple(Permission):
        raise ArgumentError(argument="permission", value=permission, wanted=f"one of {', '.join(Permission)}")
    if capacity_tokens is not None and (type(capacity_tokens) is not int or not 0 < capacity_tokens <= MOST):
        raise ArgumentError(argument="capacity_tokens", value=capacity_tokens, wanted="a number of tokens above 0, or None")
    known = core.state.tree.segments.get(name)
    called = str(kind) if kind is not None else known.type if known is not None else ""
    wanted = Segment(name, called, Permission(permission), capacity_tokens)
    if known != wanted:
        faded = over_capacity(core, wanted) if known is not None else []
        event = SegmentAdded(name=name, type=called, permission=permission, capacity_tokens=capacity_tokens, by="application")
        core.commit([event, *([PagesFaded(pages=faded, reason="share")] if faded else [])])
    return f"{name}-0"


def keep_to_capacities(core: Core) -> None:
    """Close what stands open beyond the capacity of a segment that pages were moved into. O(segments · what is open)."""
    faded = [index for segment in core.state.tree.segments.values() for index in over_capacity(core, segment)]
    if faded:
        core.commit([PagesFaded(pages=faded, reason="share")])


def allows(segment: Segment, action: Action) -> bool:
    """Return whether a segment permits the model to do this to its pages."""
    if segment.permission is Permission.READ_ONLY:
        return action in _READING
    return segment.permission is Permission.READ_WRITE


def permits(core: Core, action: Action, index: str) -> bool:
    """Return whether the model may do this to a page, a note, a directory, a root or a range of pages. O(depth).

    ``PageNotFoundError`` for the index of a note or segment that there is not.
    """
    return all(allows(segment, action) for segment in _segments(core, index, action))


def refuse(core: Core, by: By, action: Action, *indexes: str) -> None:
    """Raise ``PermissionDeniedError`` where the model would do what a segment does not permit; the application may do everything.

    *indexes* are all ends: what is moved, and where it goes. O(depth), of a range O(its pages that somebody placed).
    """
    if by == "application":
        return
    for index in indexes:
        for segment in _segments(core, index, action):
            if not allows(segment, action):
                raise PermissionDeniedError(_refusal(core, action, index, segment))


def _segments(core: Core, index: str, action: Action) -> list[Segment]:
    """Return the segments that an index belongs to: several where it lists pages that were placed elsewhere."""
    tree = core.state.tree
    if segment_of(index) not in tree.segments and tree.find(index) is None:
        raise pages.not_found(index)
    found = [tree.segment(index)]
    if is_range(index) or (action == "read" and index == f"{USER}-0"):
        name, first, last = segment_of(index), page_number(index), last_number(index) or MOST
        if last - first < tree.length:
            placed = [each for each in (f"{name}-{number}" for number in range(first, last + 1)) if tree.find(each) is not None]
        else:
            numbers = ((node.index, page_number(node.index)) for node in tree if segment_of(node.index) == name)
            placed = [each for each, number in numbers if first <= number <= last]
        found += map(tree.segment, placed)
    return found


def _refusal(core: Core, action: Action, index: str, segment: Segment) -> str:
    told = f"the model may not {action} {shown(index)}: the segment {segment.name} is {segment.permission}, "
    told += _PERMITTED[segment.permission]
    others = [f"{each.name}-0" for each in core.state.tree.segments.values() if allows(each, action)]
    if action in _READING or not others:
        return f"{told}; leave it as it is, and say in your answer what you would have done"
    return f"{told}; what you may edit is in {', '.join(others)}"
