"""The page tree as plain lists: what a session's tree must hold, said in the simplest way."""

import copy
from collections.abc import Iterator, Sequence

import attrs

from memci.archive.contents.tree import Tree
from memci.chapters.address import is_root

ROOTS = ("sys-0", "usr-0")


@attrs.define(eq=False)
class TreeModel:
    """By directory what it lists, by page the directory that lists it, or listed it before it was removed.

    A page of a turn that nobody placed is not in it.
    """

    children: dict[str, list[str]] = attrs.field(factory=lambda: {root: [] for root in ROOTS})
    parents: dict[str, str] = attrs.field(factory=dict)
    names: dict[str, tuple[str, str]] = attrs.field(factory=dict)  # of notes and directories, with descriptions; "" is erased
    details: dict[str, str] = attrs.field(factory=dict)  # of notes, in the order they were written
    removed: set[str] = attrs.field(factory=set)
    before: "TreeModel | None" = None  # what undoing the last edit gives

    @property
    def directories(self) -> list[str]:
        """The directories that are listed, roots included."""
        return [index for index in self.children if not self.is_removed(index)]

    @property
    def made(self) -> list[str]:
        """Notes and directories, removed ones too."""
        return [*self.names]

    def path(self, index: str) -> list[str]:
        """Return what a page is in, the nearest first, its root last."""
        found = []
        while index in self.parents:
            index = self.parents[index]
            found.append(index)
        return found

    def is_removed(self, index: str) -> bool:
        return bool(self.removed & {index, *self.path(index)})

    def inside(self, index: str) -> Iterator[str]:
        """Yield what is in a directory, at any depth, itself included."""
        yield index
        for child in self.children.get(index, ()):
            yield from self.inside(child)

    def remember(self) -> None:
        """Note what undoing the edit that comes gives."""
        self.before = None
        self.before = copy.deepcopy(self)

    def make(self, index: str, name: str, description: str, parent: str, children: Sequence[str]) -> None:
        self.remember()
        self.names[index] = name, description
        self.children[index] = []
        self._put(index, parent)
        for child in children:
            self._put(child, index)

    def write(self, index: str, name: str, description: str, detail: str, parent: str) -> None:
        self.remember()
        self.names[index] = name, description
        self.details[index] = detail
        self._put(index, parent)

    def move(self, index: str, target: str) -> None:
        """Move a page; one of a turn that is moved to a root is where it came."""
        self.remember()
        if is_root(target) and index not in self.names:
            self.forget(index)
        else:
            self._put(index, target)

    def update(self, index: str, name: str | None, description: str | None) -> None:
        self.remember()
        known = self.names.get(index, ("", ""))
        self.names[index] = known[0] if name is None else name, known[1] if description is None else description

    def remove(self, index: str) -> None:
        """Take a page out of its directory; one of a turn that nobody placed is in none."""
        if index in self.parents:
            self.remember()
            self.children[self.parents[index]].remove(index)
            self.removed.add(index)

    def undo(self) -> None:
        """Take the last edit back. A note that is not written after all is removed, and known as one."""
        then = self.before
        assert then is not None
        for index in self.details.keys() - then.details.keys():
            then.details[index], then.names[index] = self.details[index], self.names[index]
            then.parents[index] = self.parents[index]
            then.removed.add(index)
        self.children, self.parents, self.names, self.details = then.children, then.parents, then.names, then.details
        self.removed, self.before = then.removed, None

    def forget(self, index: str) -> None:
        """Drop the place of a page of a turn."""
        if index in self.parents:
            siblings = self.children[self.parents.pop(index)]
            if index in siblings:
                siblings.remove(index)
            self.removed.discard(index)

    def take(self, tree: Tree, index: str) -> None:
        """Take over where a page is, where more than one answer is right."""
        node = tree.find(index)
        if index in self.parents:
            self.forget(index)
        if node is not None:
            self.parents[index] = node.parent
            if node.removed:
                self.removed.add(index)
            else:
                self.children[node.parent] = [child.index for child in tree.children(node.parent)]

    def check(self, tree: Tree) -> None:
        """Assert that a session's tree is this one."""
        nodes = {node.index: node for node in tree}
        parents = {index: node.parent for index, node in nodes.items()}
        assert self.parents == parents, set(self.parents.items()) ^ set(parents.items())
        assert self.removed == {index for index, node in nodes.items() if node.removed}
        assert {index for index in self.children if not is_root(index)} == {
            each.index for each in nodes.values() if each.is_directory
        }
        for index, children in self.children.items():
            assert children == [child.index for child in tree.children(index)], index
        for index, (name, _) in self.names.items():
            assert index not in nodes or nodes[index].name in ((name,) if name else ("-", "[erased]")), index

    def _put(self, index: str, parent: str) -> None:
        if index in self.parents and index not in self.removed:
            self.children[self.parents[index]].remove(index)
        self.removed.discard(index)
        self.parents[index] = parent
        self.children[parent].append(index)
