"""What a search in a page index is asked, and what it answers."""

from collections.abc import Callable, Sequence

import attrs


@attrs.frozen(kw_only=True)
class Filter:
    """Which pages may answer; all by default."""

    turns: tuple[int, int] | None = None  # only pages opened in these turns, both ends included
    roles: frozenset[str] | None = None  # only what these roles said: other entries' words, and the contents entry, do not count
    where: Callable[[str], bool] | None = None  # only pages whose index this admits
    exclude: frozenset[str] = frozenset()  # indexes of pages that are not wanted; they still count as neighbours

    def admits(self, index: str, turn: int) -> bool:
        """Return whether a page may answer, by its facts."""
        if index in self.exclude or (self.turns is not None and not self.turns[0] <= turn <= self.turns[1]):
            return False
        return self.where is None or self.where(index)


@attrs.frozen(kw_only=True)
class ExtraPage:
    """A page to be searched that is not in the index yet, such as the open one; entries are position, role and text."""

    index: str
    turn: int
    entries: Sequence[tuple[int, str, str]]


@attrs.frozen(kw_only=True)
class IndexHit:
    """A page that was found: position (from 1) and passage of its best entry; scores are comparable within one answer."""

    index: str
    entry: int
    score: float
    snippet: str
