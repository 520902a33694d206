"""How the contents page is brought below its limit: older entries lose detail first, then they are grouped."""

from collections.abc import Callable, Sequence

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item
from memci.archive.contents.eviction import LeastRecentlyRecalled, evictions
from memci.archive.contents.grouping import MOST_PAGES, ROOMS, Grouping, page_count
from memci.chapters.address import page_number

FULL_SHARE = 0.6
"""Share of the room in which the newest entries keep all their lines."""

_FEWEST_PAGES = 2  # a directory of one page says less than its entry


@attrs.define(kw_only=True)
class Shrinkage:
    """What changes in a contents page, and what is left of it."""

    details: dict[str, Detail] = attrs.field(factory=dict)  # new ones, by index
    directories: list[Directory] = attrs.field(factory=list)  # new ones, and known ones with fewer words
    evicted: list[tuple[str, str]] = attrs.field(factory=list)  # index and policy
    entries: list[Item]


def shrink(  # noqa: PLR0913 (each is a different limit)
    entries: Sequence[Item],
    *,
    limit: int,
    low_share: float,
    directories: bool,
    turn: int,
    count: Callable[[str], int],
    has_pages: Callable[[int, int], bool],
    evict: bool = True,
) -> Shrinkage:
    """Bring a contents page that is over *limit* tokens down to *low_share* of it, as far as that goes. O(entries).

    Args:
        entries: Its entries, oldest first.
        limit: Tokens that they may hold.
        low_share: What it is brought down to, once it is over.
        directories: Whether neighbours may be grouped.
        turn: The turn.
        count: Counts the tokens of a text.
        has_pages: Whether any page has a number from one to another.
        evict: Whether entries may lose all their lines, and be evicted in the end.
    """
    if sum(entry.contents_tokens for entry in entries) <= limit:
        return Shrinkage(entries=list(entries))
    shrinking = _Shrinking(entries, Grouping(entries, count, has_pages))
    goal = low_share * limit
    shrinking.coarsen(goal)
    if directories:
        shrinking.group_oldest(goal)
        shrinking.thin(goal)
        shrinking.merge(goal)
        if evict:
            shrinking.strip(limit)
    result = shrinking.result()
    if evict and shrinking.total > limit:
        _evict(result, LeastRecentlyRecalled(max_tokens=limit, low_share=low_share), shrinking.members, turn)
    left = {entry.index for entry in result.entries}
    result.details = {index: detail for index, detail in result.details.items() if index in left}
    return result


class _Shrinking:
    """A contents page that gets shorter, step by step."""

    def __init__(self, entries: Sequence[Item], grouping: Grouping) -> None:
        self.entries = list(entries)
        self.members: dict[str, list[str]] = {}  # what new directories group, of entries and directories that there were
        self._known = {entry.index: entry for entry in entries}
        self._grouping = grouping

    @property
    def total(self) -> int:
        return sum(entry.contents_tokens for entry in self.entries)

    def result(self) -> Shrinkage:
        changed = [entry for entry in self.entries if self._known.get(entry.index) is not entry]
        return Shrinkage(
            details={entry.index: entry.detail for entry in changed if isinstance(entry, ContentsEntry)},
            directories=[entry for entry in changed if isinstance(entry, Directory)],
            entries=self.entries,
        )

    def coarsen(self, goal: float) -> None:
        """Show less of each entry but the newest."""
        used = 0
        for place in range(len(self.entries) - 1, -1, -1):
            entry = self.entries[place]
            if (
                isinstance(entry, ContentsEntry)
                and entry.detail is Detail.FULL
                and used + entry.contents_tokens > FULL_SHARE * goal
            ):
                entry = self.entries[place] = _shorter(entry, Detail.BRIEF)
            used += entry.contents_tokens

    def group_oldest(self, goal: float) -> None:
        """Group the oldest entries until the page is short enough, or nothing but directories and pinned entries is left."""
        while self.total > goal:
            loose = (place for place, each in enumerate(self.entries) if isinstance(each, ContentsEntry) and not each.pinned)
            oldest = next(loose, None)
            if oldest is None or not self._group_from(oldest):
                return

    def _group_from(self, place: int) -> bool:
        """Group an entry with its next neighbours, or where these are a full directory, with the one before.

        One that was taken out of the midst of a directory goes back into it. Pinned entries are passed over.
        """
        around = self._around(self.entries[place])
        if around is not None:
            self._group([around, self.entries[place]])
            return True
        chosen = [self.entries[place]]
        following = [entry for entry in self.entries[place + 1 :] if not entry.pinned]
        for entry in following:
            if sum(map(page_count, (*chosen, entry))) > MOST_PAGES:
                break
            chosen.append(entry)
        if len(chosen) < _FEWEST_PAGES:
            before = [entry for entry in self.entries[:place] if not entry.pinned]
            chosen = [*before[-1:], *chosen, *following[:1]][:_FEWEST_PAGES]
        if len(chosen) >= _FEWEST_PAGES:
            self._group(chosen)
        return len(chosen) >= _FEWEST_PAGES

    def _around(self, entry: Item) -> Directory | None:
        """Return the directory that has pages before and after a page."""
        number = page_number(entry.index)
        return next((each for each in self.entries if isinstance(each, Directory) and each.encloses(number)), None)

    def thin(self, goal: float) -> None:
        """Leave directories fewer words for each page, all alike, until the page is short enough."""
        for room in ROOMS[1:]:
            if self.total <= goal:
                return
            for place, entry in enumerate(self.entries):
                if isinstance(entry, Directory):
                    self.entries[place] = self._grouping.thinned(entry, room)

    def merge(self, goal: float) -> None:
        """Merge the two oldest directories until the page is short enough."""
        while self.total > goal:
            oldest = [entry for entry in self.entries if isinstance(entry, Directory)][:2]
            if len(oldest) < _FEWEST_PAGES:
                return
            self._group(oldest, ROOMS[-1])

    def strip(self, limit: float) -> None:
        """Leave pinned and newest entries their title, then directories their range, the oldest first, until the page fits."""
        for pages in (True, False):
            for place, entry in enumerate(self.entries):
                if self.total <= limit:
                    return
                if pages and isinstance(entry, ContentsEntry):
                    self.entries[place] = _shorter(entry, Detail.BARE)
                elif not pages and isinstance(entry, Directory):
                    self.entries[place] = self._grouping.thinned(entry, 0.0)

    def _group(self, items: Sequence[Item], room: float = ROOMS[0]) -> None:
        directory = self._grouping.group(items, room)
        grouped = {item.index for item in items}
        self.members[directory.index] = [each for index in grouped for each in self.members.pop(index, [index])]
        rest = [entry for entry in self.entries if entry.index not in grouped]
        self.entries = sorted([*rest, directory], key=lambda entry: page_number(entry.index))


def _shorter(entry: ContentsEntry, detail: Detail) -> ContentsEntry:
    """Return an entry with another detail, where that is shorter."""
    changed = attrs.evolve(entry, detail=detail)
    return changed if changed.contents_tokens < entry.contents_tokens else entry


def _evict(result: Shrinkage, policy: LeastRecentlyRecalled, members: dict[str, list[str]], turn: int) -> None:
    gone = dict(evictions([policy], result.entries, turn))
    result.entries = [entry for entry in result.entries if entry.index not in gone]
    result.directories = [directory for directory in result.directories if directory.index not in gone]
    result.evicted = [(each, name) for index, name in gone.items() for each in members.get(index, [index])]
