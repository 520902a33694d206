"""The outline: what was made at the roots of the tree, as the contents page lists it above its entries, and in how much room."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from memci.archive.contents.contents_page import Outlined, pages_text, tokens_text
from memci.archive.contents.tree import Node, Tree

SHARE = 0.5  # of the contents page's room, that the outline may take where entries need the rest

_BUILT_IN = ("sys", "usr")  # segments that every session has

Shortened = Mapping[str, tuple[int, int]]  # by segment: how many of the oldest have no description, and no line of their own


def outline(tree: Tree, shortened: Shortened | None = None, gone: Mapping[str, int] | None = None) -> list[Outlined]:
    """Return what was made at the roots, that of added segments first, each in its order. O(what has a line).

    It is *shortened* as at the last fold, or as given; *gone* are pages by directory at a root that do not count any more.
    """
    known = tree.shortened if shortened is None else shortened
    items: list[Outlined] = []
    for name in _in_order(tree):
        children = tree.get(f"{name}-0").children
        plain, unlisted = known.get(name, (0, 0))
        kept = list(islice(reversed(children), max(len(children) - unlisted, 0)))
        if left_out := len(children) - len(kept):
            items.append(_others(name, left_out))
        for place, index in enumerate(reversed(kept), start=left_out):
            item = _outlined(tree.get(index), (gone or {}).get(index, 0))
            items.append(_plain(item) if place < plain else item)
    return items


def shorten(tree: Tree, limit: int, count: Callable[[str], int]) -> tuple[dict[str, tuple[int, int]], int]:
    """Return how the outline is shortened to a number of tokens, and its size; O(what has a line then), counted.

    Half the capacity of a segment bounds its part, the rest is shared alike: none takes what another one needs. Where that is too
    little, the oldest lose their descriptions, then their lines. A line that tells of those is there in any room.
    """
    parts = {name: _Part(tree, name, count) for name in _in_order(tree) if tree.get(f"{name}-0").children}
    sizes = {name: part.size(min(limit, part.capacity)) for name, part in parts.items()}
    shortened: dict[str, tuple[int, int]] = {}
    total, left = 0, limit
    for place, name in enumerate(sorted(parts, key=sizes.__getitem__)):
        part = parts[name]
        counts, size = part.shortened(min(part.capacity, left // (len(parts) - place)))
        if counts != (0, 0):
            shortened[name] = counts
        total, left = total + size, max(left - size, 0)
    return shortened, total


def beside(tree: Tree, rooms: Sequence[int], shortened: Shortened, tokens: int, count: Callable[[str], int]) -> list[int]:
    """Return what an outline of so many tokens leaves to entries of each room, as far as the capacity of their segment has it."""
    left = [max(room - tokens, 0) for room in rooms]
    if (half := tree.segments[_BUILT_IN[1]].half_tokens) is None:
        return left
    root = f"{_BUILT_IN[1]}-0"
    made = (item for item in outline(tree, shortened) if item.index == root or item.index in tree.get(root).children)
    most = max(half - sum(count(item.render()) + 1 for item in made), 0)
    return [min(room, most) for room in left]


class _Part:
    """The outline of a segment, from its newest line on; what is counted is counted once."""

    def __init__(self, tree: Tree, name: str, count: Callable[[str], int]) -> None:
        capacity = tree.segments[name].half_tokens
        self.capacity = 1 << 60 if capacity is None else capacity
        self._name, self._tree, self._count = name, tree, count
        self._children = tree.get(f"{name}-0").children
        self._newest = reversed(self._children)
        self._sizes: list[tuple[int, int]] = []  # with description, and without

    def _lines(self) -> Iterator[tuple[int, int]]:
        """Yield the sizes of lines, the newest first."""
        place = 0
        while True:
            if place == len(self._sizes):
                if (index := next(self._newest, None)) is None:
                    return
                item = _outlined(self._tree.get(index))
                self._sizes.append((self._size(item), self._size(_plain(item))))
            yield self._sizes[place]
            place += 1

    def _size(self, item: Outlined) -> int:
        return self._count(item.render()) + 1

    def size(self, most: int) -> int:
        """Return its size, or one above *most*. O(what fits)."""
        total = 0
        for full, _ in self._lines():
            total += full
            if total > most:
                break
        return total

    def shortened(self, most: int) -> tuple[tuple[int, int], int]:
        """Return how many of the oldest have no description and no line, so that it fits, and its size then. O(what fits)."""
        if (size := self.size(most)) <= most:
            return (0, 0), size
        number = len(self._children)
        others = self._size(_others(self._name, number))
        most = max(most, others)  # which is there in any room
        if (size := self.size(most)) <= most:
            return (0, 0), size
        shown, total = 0, 0
        for _, bare in self._lines():
            if total + bare > most:
                break
            shown, total = shown + 1, total + bare
        if shown < number:
            while shown and total + others > most:
                shown -= 1
                total -= self._sizes[shown][1]
            total += others
        described = 0
        for full, bare in self._sizes[:shown]:
            if total + full - bare > most:
                break
            described, total = described + 1, total + full - bare
        return (number - described, number - shown), total


def _in_order(tree: Tree) -> list[str]:
    return sorted(tree.segments, key=lambda name: name in _BUILT_IN)


def outlined_size(node: Node, gone: int = 0) -> str:
    """Return how much a note or a directory holds, for people; *gone* pages of it do not count any more."""
    return pages_text(node.pages - gone) if node.is_directory else f"note · {tokens_text(node.tokens)}"


def _outlined(node: Node, gone: int = 0) -> Outlined:
    return Outlined(index=node.index, name=node.name, description=node.description, size=outlined_size(node, gone))


def _plain(item: Outlined) -> Outlined:
    return Outlined(index=item.index, name=item.name, size=item.size)


def _others(name: str, number: int) -> Outlined:
    size = f"{number} more notes and directories" if number > 1 else "1 more note or directory"
    return Outlined(index=f"{name}-0", size=size)
