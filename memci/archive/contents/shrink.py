"""How the contents page is brought below its limit: older entries lose detail, neighbours share a directory, entries leave."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias, assert_never

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item
from memci.archive.summarizers.words import STOPWORDS, estimate, words
from memci.chapters.address import page_number, range_index, segment_of

FULL_SHARE = 0.6  # of the room, in which the newest entries keep all their lines
MOST_PAGES = 32  # that are grouped at a time, and that at most give a directory more words
ROOMS = (12.0, 9.0, 7.0, 5.0, 3.5, 2.5)  # what its lines may take for each page, in estimated tokens: most, then less and less
_SPAN_TOKENS = 4.0  # stretches of about that many go first: shorter ones tell little, longer ones leave others no room
_FEWEST_PAGES = 2  # a directory of one page says less than its entry
_COMMON_SHARE = 0.15  # of the entries and directories of a contents page, in which a common word stands
_COMMON_ITEMS = 3
_SEPARATOR_TOKENS = 1.0
_NUMBER_TOKENS = 1.0


@attrs.frozen(kw_only=True)
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
    """Bring a contents page of over *limit* tokens, oldest first, down to *low_share* of it, as far as that goes. O(entries).

    Neighbours are grouped where there may be *directories*; only with *evict* entries may lose all their lines, and be evicted in
    the end. *count* gives the tokens of a text; *has_pages* tells whether any page has a number from one to another.
    """
    if sum(entry.contents_tokens for entry in entries) <= limit:
        return Shrinkage(entries=list(entries))
    page = Shrinking(entries, count, has_pages)
    goal = low_share * limit
    page.coarsen(goal)
    if directories:
        page.group_oldest(goal)
        page.thin(goal)
        page.merge(goal)
        if evict:
            page.strip(limit)
    policies = [LeastRecentlyRecalled(max_tokens=limit, low_share=low_share)] if evict else []
    gone = dict(evictions(policies, page.entries, turn))
    left = [entry for entry in page.entries if entry.index not in gone]
    known = {entry.index: entry for entry in entries}
    changed = [entry for entry in left if known.get(entry.index) is not entry]
    return Shrinkage(
        details={entry.index: entry.detail for entry in changed if isinstance(entry, ContentsEntry)},
        directories=[entry for entry in changed if isinstance(entry, Directory)],
        evicted=[(each, policy) for index, policy in gone.items() for each in page.members.get(index, [index])],
        entries=left,
    )


class Shrinking:
    """A contents page that gets shorter, step by step; what its directories say are words of the pages themselves."""

    def __init__(self, entries: Sequence[Item], count: Callable[[str], int], has_pages: Callable[[int, int], bool]) -> None:
        self.entries = list(entries)
        self.members: dict[str, list[str]] = {}  # what new directories group, of entries and directories that there were
        self._given = entries
        self._count = count
        self._has_pages = has_pages

    @property
    def total(self) -> int:
        """Size of what it shows."""
        return sum(entry.contents_tokens for entry in self.entries)

    def coarsen(self, goal: float) -> None:
        """Show less of each entry but the newest."""
        used = 0
        for place, entry in reversed(list(enumerate(self.entries))):
            full = isinstance(entry, ContentsEntry) and entry.detail is Detail.FULL
            if full and used + entry.contents_tokens > FULL_SHARE * goal:
                self.entries[place] = self._shorter(entry, Detail.BRIEF)
            used += self.entries[place].contents_tokens

    def _shorter(self, item: Item, detail: Detail) -> Item:
        """Return an entry with another detail, where that is shorter; a directory with no words."""
        if isinstance(item, Directory):
            return self.thinned(item, 0.0)
        changed = attrs.evolve(item, detail=detail)
        return changed if changed.contents_tokens < item.contents_tokens else item

    def group_oldest(self, goal: float) -> None:
        """Group the oldest entries until the page is short enough, or nothing but directories and pinned entries is left."""
        while self.total > goal:
            loose = [entry for entry in self.entries if not entry.pinned]
            oldest = next((place for place, entry in enumerate(loose) if isinstance(entry, ContentsEntry)), None)
            if oldest is None or len(loose) < _FEWEST_PAGES:
                return
            self._put_together(self._neighbours(loose, oldest))

    def _neighbours(self, loose: Sequence[Item], place: int) -> Sequence[Item]:
        """Return an entry with those after it, else the one before; where a directory has pages on both sides, with that."""
        number = page_number(loose[place].index)
        around = next((each for each in loose if isinstance(each, Directory) and each.encloses(number)), None)
        if around is not None:
            return [around, loose[place]]
        pages = accumulate(entry.pages for entry in loose[place:])
        chosen = loose[place : place + sum(total <= MOST_PAGES for total in pages)]
        return chosen if len(chosen) >= _FEWEST_PAGES else loose[max(place - 1, 0) :][:_FEWEST_PAGES]

    def thin(self, goal: float) -> None:
        """Leave directories fewer words for each page, all alike, until the page is short enough."""
        for room in ROOMS[1:]:
            if self.total <= goal:
                return
            self.entries = [self.thinned(entry, room) if isinstance(entry, Directory) else entry for entry in self.entries]

    def merge(self, goal: float) -> None:
        """Merge the two oldest directories until the page is short enough."""
        while self.total > goal:
            oldest = [entry for entry in self.entries if isinstance(entry, Directory)][:2]
            if len(oldest) < _FEWEST_PAGES:
                return
            self._put_together(oldest, ROOMS[-1])

    def strip(self, limit: float) -> None:
        """Leave pinned and newest entries their title, then directories their range, the oldest first, until the page fits."""
        for kind in (ContentsEntry, Directory):
            for place, entry in enumerate(self.entries):
                if self.total <= limit:
                    return
                if isinstance(entry, kind):
                    self.entries[place] = self._shorter(entry, Detail.BARE)

    def _put_together(self, items: Sequence[Item], room: float = ROOMS[0]) -> None:
        directory = self.group(items, room)
        grouped = [item.index for item in items]
        self.members[directory.index] = [each for index in grouped for each in self.members.pop(index, [index])]
        rest = [entry for entry in self.entries if entry.index not in grouped]
        self.entries = sorted([*rest, directory], key=lambda entry: page_number(entry.index))

    def group(self, items: Sequence[Item], room: float = ROOMS[0]) -> Directory:
        """Make one directory of items, oldest first; its lines take *room* estimated tokens for each page. O(their words)."""
        covers = self._joined(each for item in items for each in item.covers)
        recalls = [item.last_recall_turn for item in items if item.last_recall_turn is not None]
        directory = Directory(
            index=range_index(segment_of(items[0].index), covers[0][0], covers[-1][1]),
            spans=self._spans(items),
            covers=covers,
            pages=sum(item.pages for item in items),
            archived_turn=max(item.archived_turn for item in items),
            last_recall_turn=max(recalls, default=None),
        )
        return self.thinned(directory, room)

    def thinned(self, directory: Directory, room: float) -> Directory:
        """Return a directory with the most telling of its stretches, as many as there is room for, one where there is any."""
        left = room * min(directory.pages, MOST_PAGES)
        kept: list[tuple[int, str]] = []
        said: set[int] = set()
        for number, span in directory.spans:
            left -= estimate(span) + _SEPARATOR_TOKENS + (0 if number in said else _NUMBER_TOKENS)
            if left < 0:
                break
            kept.append((number, span))
            said.add(number)
        directory = attrs.evolve(directory, spans=tuple(kept or directory.spans[: 1 if room else 0]))
        return attrs.evolve(directory, shown_tokens=self._count(directory.render()) + 1)

    @cached_property
    def _common(self) -> frozenset[str]:
        """Words that tell no page of the contents page from the others."""
        documents = [{word for _, span in entry.told for word in words(span)} for entry in self._given]
        counts = Counter(word for document in documents for word in document)
        most = max(_COMMON_ITEMS, _COMMON_SHARE * len(documents))
        return STOPWORDS | {word for word, items in counts.items() if items > most}

    def _spans(self, items: Sequence[Item]) -> tuple[tuple[int, str], ...]:
        """Return the most telling span of each item, then the second of each, and so on; of directories in proportion to pages.

        Short ones come first each time, so that more pages are named. What only has common words, or those before, is left out.
        """
        found: list[tuple[int, str]] = []
        seen: set[str] = set()
        ranked = []
        for item in items:
            telling = [(number, trimmed) for number, span in item.told if (trimmed := self._trimmed(span))]
            for place, (number, span) in enumerate(telling):
                ranked.append((place / item.pages, abs(estimate(span) - _SPAN_TOKENS), number, span))
        for _, _, number, span in sorted(ranked):
            new = set(words(span)) - self._common - seen
            if new or not words(span):
                found.append((number, span))
                seen |= new
        return tuple(found)

    def _trimmed(self, span: str) -> str:
        """Return a span without the common words at both ends; empty where it holds no others."""
        pieces = span.split(" ")
        telling = [place for place, piece in enumerate(pieces) if not self._common.issuperset(words(piece))]
        return " ".join(pieces[telling[0] : telling[-1] + 1]) if telling else ""

    def _joined(self, covers: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Join ranges that meet, or that only numbers without a page lie between."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted(covers):
            if joined and (joined[-1][1] + 1 >= first or not self._has_pages(joined[-1][1] + 1, first - 1)):
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return tuple(joined)


@attrs.frozen(kw_only=True)
class ZeroRecall:
    """Evicts an entry that was never recalled, once at least *turns* turns passed since it was archived."""

    turns: int


@attrs.frozen(kw_only=True)
class Stale:
    """Evicts an entry once at least *turns* turns passed since its recall count changed, or since it was archived."""

    turns: int


@attrs.frozen(kw_only=True)
class LeastRecentlyRecalled:
    """Evicts the least recently recalled entries of a contents page of over *max_tokens*, down to the *low_share* of them."""

    max_tokens: int
    low_share: float


Policy: TypeAlias = ZeroRecall | Stale | LeastRecentlyRecalled


def evictions(policies: Sequence[Policy], entries: Sequence[Item], turn: int) -> list[tuple[str, str]]:
    """Return what the policies evict, but for pinned entries, as pairs of index and policy name. O(entries · policies)."""
    gone: dict[str, str] = {}
    for policy in policies:
        left = [entry for entry in entries if entry.index not in gone]
        gone |= dict.fromkeys(_evicted(policy, left, turn), type(policy).__name__)
    return list(gone.items())


def _evicted(policy: Policy, entries: Sequence[Item], turn: int) -> list[str]:
    loose = [entry for entry in entries if not entry.pinned]
    match policy:
        case ZeroRecall(turns=turns):
            return [entry.index for entry in loose if entry.last_recall_turn is None and turn - entry.archived_turn >= turns]
        case Stale(turns=turns):
            return [entry.index for entry in loose if turn - _last_use(entry) >= turns]
        case LeastRecentlyRecalled(max_tokens=max_tokens, low_share=low_share):
            total = sum(entry.contents_tokens for entry in entries)
            out: list[str] = []
            for entry in sorted(loose, key=lambda entry: (_last_use(entry), page_number(entry.index))):
                if total <= (low_share * max_tokens if out else max_tokens):
                    break
                out.append(entry.index)
                total -= entry.contents_tokens
            return out
        case _:
            assert_never(policy)


def _last_use(entry: Item) -> int:
    return entry.archived_turn if entry.last_recall_turn is None else entry.last_recall_turn
