"""Which pages may answer a search."""

from collections.abc import Callable

import attrs


@attrs.frozen(kw_only=True)
class Filter:
    """Which pages may answer.

    Attributes:
        turns: Only pages opened in these turns, both ends included; ``None`` for all.
        roles: Only what these roles said; the words of other entries of a page, and its contents entry, do not count.
        where: Only pages whose index this admits.
        exclude: Indexes of pages that are not wanted; they still count as neighbours.
    """

    turns: tuple[int, int] | None = None
    roles: frozenset[str] | None = None
    where: Callable[[str], bool] | None = None
    exclude: frozenset[str] = frozenset()

    def admits(self, index: str, turn: int) -> bool:
        """Return whether a page may answer, by its facts."""
        if index in self.exclude or (self.turns is not None and not self.turns[0] <= turn <= self.turns[1]):
            return False
        return self.where is None or self.where(index)

    @property
    def looks_closer(self) -> bool:
        """Whether the database cannot tell which pages are admitted."""
        return self.roles is not None or self.where is not None


ANY_PAGE = Filter()
"""All pages."""
