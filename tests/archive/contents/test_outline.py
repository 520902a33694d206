"""What was made at the roots, as the contents page lists it, and how it gets shorter."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.contents.contents_page import Outlined
from memci.archive.contents.outline import outline, shorten
from memci.archive.contents.tree import Node, Segment, Tree


def tree_of(notes: int, *, name: str = "usr", description: str = "about it", tree: Tree | None = None) -> Tree:
    """Return a tree with so many notes at a root."""
    made = Tree() if tree is None else tree
    for _ in range(notes):
        number = made.next_note
        made.add(Node(f"note-{number}", f"{name}-0", f"Note {number}", description, tokens=10))
    return made


def text(items: Sequence[Outlined]) -> str:
    return "".join(f"{item.render()}\n" for item in items)


def test_lines_of_notes_and_directories() -> None:
    """A note says its size, a directory how many pages and notes are in it, at any depth; a description stands below."""
    tree = tree_of(1)
    tree.add(Node("usr-4", "usr-0", "Invoices", is_directory=True))
    tree.add(Node("usr-5", "usr-4", "Old", is_directory=True))
    tree.place("usr-1", "usr-4")
    tree.place("usr-2", "usr-5")
    lines = ["[note-1] Note 1 · note · 10 tokens", "  about it", "[usr-4] Invoices · 2 pages"]
    assert lines == text(outline(tree)).splitlines()
    assert "[usr-4] Invoices · 1 page" in text(outline(tree, gone={"usr-4": 1}))


def test_added_segments_come_first() -> None:
    """What stands in segments of the application's own comes first, in the order in which these were added."""
    tree = tree_of(1)
    for name in ("zeta", "alpha"):
        tree.add_segment(Segment(name))
        tree_of(1, name=name, tree=tree)
    assert ["note-2", "note-3", "note-1"] == [item.index for item in outline(tree)]


def test_the_oldest_give_way_first() -> None:
    """Descriptions go before lines, the oldest first, and a line tells how many there are more."""
    tree = tree_of(4)
    full = len(text(outline(tree)))
    assert ({}, full) == shorten(tree, full, len)
    shortened, _ = shorten(tree, full - 1, len)
    assert {"usr": (1, 0)} == shortened
    assert ["", "about it", "about it", "about it"] == [item.description for item in outline(tree, shortened)]
    shortened, _ = shorten(tree, full // 2, len)
    first, *others = outline(tree, shortened)
    assert f'[…] {4 - len(others)} more notes and directories: read_page("{first.index}")' == first.render()
    assert ["note-3", "note-4"][-len(others) :] == [item.index for item in others]


@given(
    notes=st.lists(st.integers(0, 30), min_size=3, max_size=3),
    capacities=st.lists(st.none() | st.integers(0, 400), min_size=2, max_size=2),
    limit=st.integers(0, 3_000),
)
def test_it_fits(notes: list[int], capacities: list[int | None], limit: int) -> None:
    """It has the size that is told, at most the limit and the capacity of each segment, but for one line a segment."""
    tree = tree_of(notes[0])
    for name, number, capacity in zip(("one", "two"), notes[1:], capacities, strict=True):
        tree.add_segment(Segment(name, capacity_tokens=capacity))
        tree_of(number, name=name, tree=tree)
    shortened, size = shorten(tree, limit, len)
    items = outline(tree, shortened)
    assert len(text(items)) <= size  # of the line that tells of the others, the longest is counted
    single = outline(tree, {name: (number, number) for name, number in zip(("usr", "one", "two"), notes, strict=True)})
    assert size <= limit + sum(len(item.render()) + 2 for item in single)
    tree.shortened = shortened
    assert items == outline(tree)


@pytest.mark.parametrize("notes", [100, 10_000])
def test_what_has_no_line_costs_nothing(notes: int) -> None:
    """However many notes there are, as many are counted as have room, and are looked at when it is rendered."""
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    tree = tree_of(notes)
    shortened, _ = shorten(tree, 400, count)
    assert len(counted) < 60
    assert len(outline(tree, shortened)) < 20
