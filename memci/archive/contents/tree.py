"""The page tree: notes, directories that were made, and the pages that somebody placed in them; all else stays where it came."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import attrs

from memci.chapters.address import is_foreign, is_note, is_root, segment_of
from memci.messages import codec

Edit = tuple[str, ...]  # a step that takes an edit back: what to do, the index, and what that needs


class Permission(StrEnum):
    """What the model may do to the pages of a segment; the application may do everything."""

    READ_ONLY = "read_only"  # read, recall, open and close
    READ_WRITE = "read_write"  # edit, too
    SYSTEM_MANAGED = "system_managed"  # see what stands open


@attrs.frozen
class Segment:
    """A named part of the tree, with a root of its own."""

    name: str
    type: str = ""  # what the application calls its kind
    permission: Permission = attrs.field(default=Permission.READ_ONLY, converter=Permission)
    capacity_tokens: int | None = None  # what its lines and opened pages may take of a window; None for any part of the budget

    @property
    def half_tokens(self) -> int | None:
        """What its lines may take, and what its opened pages may: half of its capacity each."""
        return None if self.capacity_tokens is None else self.capacity_tokens // 2


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True)
class Origin:
    """What a note was made of: pages of another session, as of one of its events."""

    session: str
    pages: tuple[str, ...] = attrs.field(converter=_texts)  # indexes and ranges there
    seq: int
    revision: int = 0  # of the page that was promoted; 0 also for one that has no other
    checkpoint: str = ""  # of whoever handed over
    key: str = ""  # by which whoever handed over knows it again

    def to_mapping(self) -> dict[str, Any]:
        """Return it as a JSON value, without what has its default."""
        return codec.told(self, _ORIGIN) | {"pages": list(self.pages)}


_ORIGIN = codec.defaults(Origin)


def _origin(value: "Origin | Mapping[str, Any] | None") -> Origin | None:
    return value if value is None or isinstance(value, Origin) else Origin(**value)


@attrs.define
class Node:
    """A note, a directory or a placed page in the tree."""

    index: str
    parent: str  # index of the directory, or the root, that lists it
    name: str = ""  # of notes and directories; pages have their titles
    description: str = ""
    tokens: int = 0  # of a note
    turn: int = 0  # in which it was made
    by: str = ""  # who made it: application or model
    placed_by: str = ""  # who moved it to where it is; empty where it was made there
    removed: bool = False  # evicted, with all that is in it
    pages: int = 0  # notes and pages in it, at any depth, but for what was removed
    is_directory: bool = False
    origin: Origin | None = attrs.field(default=None, converter=_origin)  # of a note that says what another session said
    children: dict[str, None] = attrs.field(factory=dict)  # in the order in which they are listed; None that was removed

    @property
    def is_note(self) -> bool:
        """Whether it is a note."""
        return is_note(self.index)


_NODE = {name: default for name, default in codec.defaults(Node).items() if name not in ("pages", "origin", "children")}


def _told_origin(node: Node) -> dict[str, Any]:
    return {} if node.origin is None else {"origin": node.origin.to_mapping()}


class Tree:
    """Every node but a root has one parent, a directory; there are no cycles. Roots are always there.

    An operation costs as much as the way to the root, unless it says so. What is asked of an index that is not here is a
    ``KeyError``: commands check before.
    """

    def __init__(self, segments: Sequence[Segment] = (Segment("sys"), Segment("usr"))) -> None:
        self.segments: dict[str, Segment] = {}
        self.next_note = 1  # numbers are never used again
        self.last_edit: tuple[Edit, ...] = ()  # what takes the last edit back, in order; empty where there is none to undo
        self.left_open: dict[str, tuple[str, ...]] = {}  # by closed directory: what stood open in it, in the order it was opened
        # As the contents page shows the roots since the last fold: its size, and by segment how many of the oldest have no
        # description there, and how many no line of their own.
        self.outline_tokens = 0
        self.shortened: dict[str, tuple[int, int]] = {}
        self._nodes: dict[str, Node] = {}
        for segment in segments:
            self.add_segment(segment)

    def __bool__(self) -> bool:
        """Return whether there is anything but roots. O(1)."""
        return len(self._nodes) > len(self.segments)

    @property
    def length(self) -> int:
        """How many nodes there are but roots. O(1)."""
        return len(self._nodes) - len(self.segments)

    def __iter__(self) -> Iterator[Node]:
        """Yield all nodes but roots, in the order they came. O(nodes)."""
        return (node for node in self._nodes.values() if not is_root(node.index))

    def __eq__(self, other: object) -> bool:
        """Return whether two trees are the same. O(nodes)."""
        return isinstance(other, Tree) and self.to_mapping() == other.to_mapping()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def add_segment(self, segment: Segment) -> None:
        """Add a segment with its root, or give one that is there other settings."""
        root = f"{segment.name}-0"
        self.segments[segment.name] = segment
        self._nodes.setdefault(root, Node(root, "", is_directory=True))

    def find(self, index: str) -> Node | None:
        """Return a node, roots included, ``None`` for a page that nobody placed. O(1)."""
        return self._nodes.get(index)

    def get(self, index: str) -> Node:
        """Return a node that is there. O(1)."""
        return self._nodes[index]

    def path(self, index: str) -> list[Node]:
        """Return the directories that a node is in, the nearest first, its root last."""
        found, node = [], self._nodes[index]
        while node.parent:
            node = self._nodes[node.parent]
            found.append(node)
        return found

    def root(self, index: str) -> str:
        """Return the root that a node is in, or is."""
        return (self.path(index) or [self._nodes[index]])[-1].index

    def segment(self, index: str) -> Segment:
        """Return the segment that an index belongs to: that of a node by its root, that of any other page by its name.

        A page of a mounted session counts as one of the common segment.
        """
        if is_foreign(index):
            return self.segments["usr"]
        return self.segments[segment_of(index if index not in self._nodes else self.root(index))]

    def is_removed(self, index: str) -> bool:
        """Return whether a node, or a directory that it is in, was removed."""
        return any(node.removed for node in (self._nodes[index], *self.path(index)))

    def children(self, index: str) -> list[Node]:
        """Return what a directory lists. O(children)."""
        return [self._nodes[child] for child in self._nodes[index].children]

    def inside(self, index: str) -> Iterator[Node]:
        """Yield all that is in a directory, at any depth, but for what was removed. O(those)."""
        for child in self.children(index):
            yield child
            yield from self.inside(child.index)

    def add(self, node: Node, before: str = "") -> None:
        """Put a new node into the directory that it names, at the end or in front of a child."""
        if node.is_note:
            self.next_note = max(self.next_note, int(node.index.rpartition("-")[2]) + 1)
        self._nodes[node.index] = node
        self._link(node, before)

    def place(self, index: str, parent: str, before: str = "", by: str = "") -> None:
        """Put a node into another directory; a page that has none yet gets one."""
        node = self._nodes.get(index)
        if node is None:
            self.add(Node(index, parent, placed_by=by), before)
            return
        self._unlink(node)
        node.parent, node.placed_by = parent, by
        self._link(node, before)

    def drop(self, index: str) -> None:
        """Forget a node without children: a page that is where it came, or a directory that was not made after all."""
        self._unlink(self._nodes[index])
        del self._nodes[index]
        self.left_open.pop(index, None)

    def forget(self, indexes: Sequence[str]) -> None:
        """Drop pages that are gone; what would put one of them back is not done any more when the last edit is undone."""
        for index in indexes:
            self.drop(index)
        self.last_edit = tuple(edit for edit in self.last_edit if edit[1] not in indexes)

    def remove(self, index: str) -> None:
        """Take a node out of its directory, with all that is in it; it keeps its place for ``restore``."""
        node = self._nodes[index]
        self._unlink(node)
        node.removed = True

    def restore(self, index: str, parent: str, before: str = "") -> None:
        """Put a node that was removed into a directory again."""
        node = self._nodes[index]
        node.removed, node.parent = False, parent
        self._link(node, before)

    def following(self, index: str) -> str:
        """Return the child that follows a node in its directory; empty for the last one. O(children)."""
        siblings = iter(self._nodes[self._nodes[index].parent].children)
        return next(siblings, "") if index in siblings else ""

    def _link(self, node: Node, before: str) -> None:
        siblings = self._nodes[node.parent].children
        siblings[node.index] = None
        if before in siblings:
            for sibling in list(siblings)[list(siblings).index(before) : -1]:
                siblings[sibling] = siblings.pop(sibling)
        self._count(node, 1)

    def _unlink(self, node: Node) -> None:
        if not node.removed:
            del self._nodes[node.parent].children[node.index]
            self._count(node, -1)

    def _count(self, node: Node, sign: int) -> None:
        """Count the pages of a node in the directories above it, up to one that was removed."""
        pages = node.pages if node.is_directory else 1
        above: Node | None = node
        while above is not None and above.parent and not above.removed:
            above = self._nodes[above.parent]
            above.pages += sign * pages

    def to_mapping(self) -> dict[str, Any]:
        """Return the tree as a JSON value, without what has its default. O(nodes)."""
        return {
            "segments": [attrs.asdict(segment) for segment in self.segments.values()],
            "next_note": self.next_note,
            "last_edit": [list(edit) for edit in self.last_edit],
            "left_open": {index: list(pages) for index, pages in self.left_open.items()},
            "outline_tokens": self.outline_tokens,
            "shortened": {name: list(counts) for name, counts in self.shortened.items()},
            "nodes": [codec.told(node, _NODE) | _told_origin(node) for node in self],
            "children": {node.index: list(node.children) for node in self._nodes.values() if node.children},
        }

    @classmethod
    def from_mapping(cls, value: Mapping[str, Any]) -> Self:
        """Make a tree of what ``to_mapping`` gave. O(nodes)."""
        tree = cls([Segment(**each) for each in value["segments"]])
        tree.next_note = value["next_note"]
        tree.last_edit = tuple(tuple(edit) for edit in value["last_edit"])
        tree.left_open = {index: tuple(pages) for index, pages in value["left_open"].items()}
        tree.outline_tokens = value["outline_tokens"]
        tree.shortened = {name: (plain, unlisted) for name, (plain, unlisted) in value["shortened"].items()}
        for each in value["nodes"]:
            tree._nodes[each["index"]] = Node(**each)
        for index, children in value["children"].items():
            tree._nodes[index].children = dict.fromkeys(children)
        tree._recount()
        return tree

    def _recount(self) -> None:
        """Count the pages of all directories anew. O(nodes · depth)."""
        for node in self._nodes.values():
            node.pages = 0
        for node in self:
            if not node.is_directory and not node.removed:
                self._count(node, 1)

    def _check(self) -> None:
        """Assert that every node but a root has one parent, a directory, and that there is no cycle. O(n²)."""
        for node in self._nodes.values():
            if is_root(node.index):
                assert not node.parent, node
                assert not node.removed, node
                continue
            parent = self._nodes[node.parent]
            assert parent.is_directory, node
            assert (node.index in parent.children) == (not node.removed), node
            assert node not in self.path(node.index), node
            assert is_root(self.path(node.index)[-1].index), node
        for node in self._nodes.values():
            assert all(self._nodes[child].parent == node.index for child in node.children), node
            assert node.pages == sum(not each.is_directory for each in self.inside(node.index)), node
