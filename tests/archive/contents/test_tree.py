"""The page tree against a plain one: dicts of parents and of lists of children."""

import json
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from memci.archive.contents.tree import Node, Segment, Tree
from memci.chapters.address import is_root

ROOTS = ("sys-0", "usr-0", "lessons-0")


class TreeMachine(RuleBasedStateMachine):
    """Notes, directories and pages come, move, go and return, at any place."""

    made = Bundle("made")

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()
        self.tree.add_segment(Segment("lessons", capacity_tokens=100))
        self.parents: dict[str, str] = {}
        self.children: dict[str, list[str]] = {root: [] for root in ROOTS}
        self.removed: set[str] = set()
        self.number = 0

    def next(self, segment: str) -> str:
        self.number += 1
        return f"{segment}-{self.number}"

    def above(self, index: str) -> list[str]:
        """Return what an index is in, the nearest first."""
        found = [self.parents[index]] if index in self.parents else []
        while found and found[-1] in self.parents:
            found.append(self.parents[found[-1]])
        return found

    def is_gone(self, index: str) -> bool:
        return not self.removed.isdisjoint([index, *self.above(index)])

    def put(self, index: str, parent: str, before: str) -> None:
        siblings = self.children[parent]
        siblings.insert(siblings.index(before) if before in siblings else len(siblings), index)
        self.parents[index] = parent

    def chosen(self, data: st.DataObject, *, among: list[str] | None = None) -> tuple[str, str]:
        """Return a directory, and a child of it or nothing, in front of which something may be put."""
        parents = [index for index in self.children if not self.is_gone(index)] if among is None else among
        parent = data.draw(st.sampled_from(parents))
        return parent, data.draw(st.sampled_from(["", *self.children[parent]]))

    @rule(target=made, data=st.data())
    def make(self, data: st.DataObject) -> str:
        kind = data.draw(st.sampled_from(["note", "directory", "page"]))
        parent, before = self.chosen(data)
        index = self.next("note" if kind == "note" else "usr")
        if kind == "page":
            self.tree.place(index, parent, before, "model")
        else:
            self.tree.add(Node(index, parent, "Made", tokens=5, is_directory=kind == "directory"), before)
        if kind == "directory":
            self.children[index] = []
        self.put(index, parent, before)
        return index

    @rule(index=made, data=st.data())
    def move(self, index: str, data: st.DataObject) -> None:
        places = [each for each in self.children if index not in (each, *self.above(each)) and not self.is_gone(each)]
        if self.is_gone(index):
            return
        self.children[self.parents[index]].remove(index)
        parent, before = self.chosen(data, among=places)
        self.tree.place(index, parent, before)
        self.put(index, parent, before)

    @rule(index=consumes(made))
    def forget(self, index: str) -> None:
        """What holds something, or was removed, stays."""
        if self.children.get(index) or index in self.removed or index in self.parents.values():
            return
        self.children[self.parents.pop(index)].remove(index)
        self.children.pop(index, None)
        self.tree.drop(index)

    @rule(index=made)
    def remove(self, index: str) -> None:
        if index in self.parents and not self.is_gone(index):
            self.children[self.parents[index]].remove(index)
            self.removed.add(index)
            self.tree.remove(index)

    @precondition(lambda self: self.removed)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(sorted(self.removed)))
        places = [each for each in self.children if index not in (each, *self.above(each)) and not self.is_gone(each)]
        parent, before = self.chosen(data, among=places)
        self.tree.restore(index, parent, before)
        self.removed.remove(index)
        self.put(index, parent, before)

    @invariant()
    def it_is_the_plain_one(self) -> None:
        self.tree._check()
        assert self.tree.length == len(self.parents)
        assert {node.index: node.parent for node in self.tree} == self.parents
        for index, children in self.children.items():
            assert [node.index for node in self.tree.children(index)] == children
        for index in self.parents:
            assert [node.index for node in self.tree.path(index)] == self.above(index)
            assert self.tree.root(index) == self.above(index)[-1]
            assert self.tree.is_removed(index) == self.is_gone(index)
            siblings = [*self.children[self.parents[index]], ""]
            assert self.tree.following(index) == (siblings[siblings.index(index) + 1] if index in siblings else "")

    @invariant()
    def it_comes_back_from_json(self) -> None:
        again = Tree.from_mapping(json.loads(json.dumps(self.tree.to_mapping())))
        again._check()
        assert self.tree == again
        assert [node.pages for node in self.tree] == [node.pages for node in again]


TestTreeMachine = TreeMachine.TestCase


def test_pages_that_are_gone_take_what_undoes_them_along() -> None:
    """What would put a page back that a rewind took is not done any more; the rest of the edit can be undone."""
    tree = Tree()
    tree.add(Node("usr-5", "usr-0", "Invoices", is_directory=True))
    tree.place("usr-3", "usr-5")
    tree.place("usr-4", "usr-5")
    kept = (("place", "usr-3", ""), ("drop", "usr-5"))
    tree.last_edit = (("place", "usr-4", ""), *kept)
    tree.forget(["usr-4"])
    assert kept == tuple(tree.last_edit)
    assert ["usr-3"] == list(tree.get("usr-5").children)


@pytest.mark.parametrize("index", ["usr-0", "usr-7", "note-1", "lessons-3"])
def test_the_segment_of_an_index(index: str) -> None:
    """A node belongs to the segment of its root, wherever its number comes from; any other page to that of its name."""
    tree = Tree()
    tree.add_segment(Segment("lessons"))
    tree.add(Node("lessons-3", "lessons-0", "Rules", is_directory=True))
    tree.add(Node("note-1", "lessons-3", "Limit"))
    expected = {"note-1": "lessons", "lessons-3": "lessons"}.get(index, "usr")
    assert expected == tree.segment(index).name


def test_only_what_is_there_can_be_asked_for() -> None:
    """An index of no node is found as nothing, and a key error where it has to be there."""
    tree = Tree()
    assert not tree
    assert tree.find("usr-1") is None
    assert all(is_root(index) for index in ("usr-0", "sys-0"))
    asked: list[Any] = [tree.get, tree.path, tree.children, tree.remove]
    for ask in asked:
        with pytest.raises(KeyError):
            ask("usr-1")
