"""How the contents page is brought below its limit: its pages share directories, whose rows say what is worth its tokens."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import TypeAlias, assert_never

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item, Span
from memci.archive.summarizers.summary import OTHERS, PASSAGE
from memci.archive.summarizers.words import estimate, forms
from memci.chapters.address import page_number, range_index, segment_of

MOST_ROWS, LARGEST, ROWS_SHARE = 16, 64, 1 / 30  # of one directory; a share of all pages, up to the largest, where that is more
ROW_TOKENS = 3.0  # what a row has to be worth more than, at the price of a token: its number, and a place in the list
WORD_TOKENS = 0.3  # what a word takes beside its own tokens
RARER = 0.35  # the worth of a word that n pages say is divided by n to this power
FEW_PAGES, MANY_TOKENS = 500, 45_000  # a word is worth half after MANY_TOKENS / (pages - FEW_PAGES) tokens of better ones
FEWEST_TOKENS = 2.5  # for each page, to which rows are brought down at least where nothing may be lost for one window
LOWEST_PRICE, PRICE_STEP, _MOST_STEPS = 0.1, 1.05, 200
SHORT_PAGE = 3  # times the size of its entry; where most are shorter, rows say the same for less
ROOMY_SHARE = 0.2  # of the limit, which entries of short pages may take
KEPT_SHARE = 0.25  # of the limit, which entries of pages that were recalled more than once may hold beside the rows
_RECALLED_AGAIN = 2
_FEWEST_PAGES = 2  # a directory of one page says less than its entry

_estimate = lru_cache(maxsize=10_000)(estimate)  # of words of pages, many of which say the same

_Weighed: TypeAlias = list[tuple[Span, float, float]]  # the words of a page, each with what it is worth among all, and its tokens


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
    room: int = 0,
    low_share: float,
    directories: bool,
    turn: int,
    count: Callable[[str], int],
    has_pages: Callable[[int, int], bool],
    evict: bool = True,
) -> Shrinkage:
    """Bring a contents page of over *limit* tokens, oldest first, down to *low_share* of it, as far as that goes. O(entries).

    Where there may be *directories*, all pages get rows there, and go on to get them once there is one. Only with *evict*
    entries may lose all but their title, all rows go, and entries be evicted in the end. *room* is what the page may have where
    *limit* is less for one window: entries stay while there is that. *count* gives the tokens of a text; *has_pages* tells
    whether any page has a number from one to another.
    """
    page = Shrinking(entries, limit, count, has_pages)
    if directories and page.is_crowded(max(limit, room)):
        page.group()
        if page.total > limit:
            page.reprice(max(low_share * limit, 0 if evict else FEWEST_TOKENS * sum(entry.pages for entry in entries)))
    for detail in (Detail.BRIEF, Detail.BARE)[: 1 + evict]:
        page.strip(limit, detail)
    policies = [LeastRecentlyRecalled(max_tokens=limit, low_share=low_share)] if evict else []
    gone = dict(evictions(policies, page.entries, turn))
    left = [entry for entry in page.entries if entry.index not in gone]
    known = {entry.index: entry for entry in entries}
    changed = [entry for entry in left if (before := known.get(entry.index)) is not entry and before != entry]
    return Shrinkage(
        details={entry.index: entry.detail for entry in changed if isinstance(entry, ContentsEntry)},
        directories=[entry for entry in changed if isinstance(entry, Directory)],
        evicted=[(each, policy) for index, policy in gone.items() for each in page.members.get(index, [index])],
        entries=left,
    )


class Shrinking:
    """A contents page that gets shorter, step by step; what its directories say are words of the pages themselves."""

    def __init__(
        self, entries: Sequence[Item], limit: int, count: Callable[[str], int], has_pages: Callable[[int, int], bool]
    ) -> None:
        self.entries = list(entries)
        self.members: dict[str, list[str]] = {}  # what new directories group, of entries and directories that there were
        self._limit = limit
        self._count = count
        self._has_pages = has_pages
        self._weights = _Weights(entries)
        pages = sum(entry.pages for entry in entries)
        self._terse = max(0, pages - FEW_PAGES) / MANY_TOKENS  # rows of many pages are short, so that more have one
        self._most_rows = max(MOST_ROWS, min(round(ROWS_SHARE * pages), LARGEST))

    @property
    def total(self) -> int:
        """Size of what it shows."""
        return sum(entry.contents_tokens for entry in self.entries)

    def is_crowded(self, room: int) -> bool:
        """Return whether pages are to share directories: they do, or need more than there is, or, short ones, than a share."""
        own = [entry for entry in self.entries if isinstance(entry, ContentsEntry)]
        short = sum(SHORT_PAGE * entry.contents_tokens > entry.tokens for entry in own)
        most = self._limit if 2 * short < len(own) else min(self._limit, ROOMY_SHARE * room)
        return len(own) < len(self.entries) or self.total > most

    def group(self) -> None:
        """Give each page a row in the directory of its neighbours, at the price in force; entries that are kept stay."""
        kept = self._kept()
        price = next((entry.price for entry in reversed(self.entries) if isinstance(entry, Directory)), 0.0) or LOWEST_PRICE
        loose = [entry for entry in self.entries if entry.index not in kept]
        priced = {each.index: _priced(self._weighed(each.spans), price) for each in loose if isinstance(each, ContentsEntry)}
        spans = {each.index: each.spans for each in loose if isinstance(each, Directory)} | priced
        packs: list[list[Item]] = []
        rows, end = 0, 0
        for item in loose:
            new = len({span[0] for span in spans[item.index]})
            goes_on = packs and not isinstance(item, Directory) and rows + new <= self._most_rows
            if packs and (goes_on or item.covers[0][0] < end):
                packs[-1].append(item)
                rows += new
            else:
                packs.append([item])
                rows = new
            end = max(end, item.covers[-1][1])
        for pack in packs:
            if len(pack) >= _FEWEST_PAGES:
                self._put_together(pack, [span for item in pack for span in spans[item.index]], price)

    def _kept(self) -> set[str]:
        """Return what no directory takes: pinned entries, and those of pages that are recalled again, or were restored."""
        kept = {entry.index for entry in self.entries if entry.pinned}
        left = KEPT_SHARE * self._limit
        newest = max((each.covers[-1][1] for each in self.entries if isinstance(each, Directory)), default=0)
        entries = [each for each in self.entries if isinstance(each, ContentsEntry)]
        wanted = [each for each in entries if each.recall_count >= _RECALLED_AGAIN or page_number(each.index) < newest]
        for entry in sorted(wanted, key=_last_use, reverse=True):
            left -= entry.contents_tokens
            if left >= 0:
                kept.add(entry.index)
        return kept

    def reprice(self, goal: float) -> None:
        """Raise the price of a token until the page is short enough, or no row is left; directories with few rows are merged.

        The oldest directories have the new price first: where pages are alike, it is not all of their rows that go at once.
        """
        price = min((entry.price for entry in self._directories()), default=0.0)
        while self.total > goal:
            weighed = {entry.index: list(self._weighed(entry.spans)) for entry in self._directories()}
            pages = [page for each in weighed.values() for page in each]
            if not pages:
                return
            most = sum([cost for page in pages for _, _, cost in page]) * goal / self.total
            steps = [price * PRICE_STEP**step for step in range(1, _MOST_STEPS)]
            price = steps[bisect_right(steps, _highest(pages, most), hi=_MOST_STEPS - 2)]
            total = self.total
            for place, entry in enumerate(self.entries):
                if isinstance(entry, Directory) and entry.price < price and total > goal:
                    self.entries[place] = self._at(price, entry, weighed[entry.index])
                    total += self.entries[place].contents_tokens - entry.contents_tokens
            self._merge()

    def _directories(self) -> list[Directory]:
        return [entry for entry in self.entries if isinstance(entry, Directory)]

    def _weighed(self, spans: Iterable[Span]) -> Iterator[_Weighed]:
        """Yield the words of each page with what they are worth and their tokens, as estimated."""
        known = self._weights
        for _, said in groupby(spans, itemgetter(0)):
            page = [(span, span[2] / rarity, cost) for span in said for rarity, cost in (known[span[1]],)]
            yield _tersely(page, self._terse) if self._terse else page

    def _at(self, price: float, directory: Directory, pages: Iterable[_Weighed]) -> Directory:
        spans = _priced(pages, price)
        return attrs.evolve(directory, spans=spans, price=price, unlisted=not spans).counted(self._count)

    def _merge(self) -> None:
        """Put neighbouring directories together that have few rows."""
        pack: list[Directory] = []
        for directory in [*self._directories(), None]:
            if directory is not None and sum(len(each.listed) for each in (*pack, directory)) <= self._most_rows:
                pack.append(directory)
                continue
            if len(pack) >= _FEWEST_PAGES:
                self._put_together(pack, [span for directory in pack for span in directory.spans])
            pack = [] if directory is None else [directory]

    def strip(self, limit: float, detail: Detail) -> None:
        """Leave entries less detail, the oldest first, until the page fits."""
        total = self.total
        for place, entry in enumerate(self.entries):
            if total <= limit:
                return
            if isinstance(entry, ContentsEntry) and entry.shown_tokens.get(detail, 0) < entry.contents_tokens:
                self.entries[place] = attrs.evolve(entry, detail=detail)
                total += self.entries[place].contents_tokens - entry.contents_tokens

    def _put_together(self, items: Sequence[Item], spans: Iterable[Span], price: float = 0.0) -> None:
        directory = self._directory(items, spans, price)
        grouped = dict.fromkeys(item.index for item in items)
        self.members[directory.index] = [each for index in grouped for each in self.members.pop(index, [index])]
        rest = (entry for entry in self.entries if entry is items[0] or entry.index not in grouped)
        self.entries = [directory if entry is items[0] else entry for entry in rest]

    def _directory(self, items: Sequence[Item], spans: Iterable[Span], price: float) -> Directory:
        """Make one directory of items, oldest first, with these words, those of new pages at a price. O(the words)."""
        covers = self._joined(each for item in items for each in item.covers)
        recalls = [item.last_recall_turn for item in items if item.last_recall_turn is not None]
        said = tuple(sorted(spans, key=itemgetter(0)))
        return Directory(
            index=range_index(segment_of(items[0].index), covers[0][0], covers[-1][1]),
            spans=said,
            covers=covers,
            pages=sum(item.pages for item in items),
            archived_turn=max(item.archived_turn for item in items),
            last_recall_turn=max(recalls, default=None),
            price=max([price, *(item.price for item in items if isinstance(item, Directory))]),
            unlisted=not said,
            first_at=min(item.first_at for item in items),
            last_at=max(item.last_at for item in items),
        ).counted(self._count)

    def _joined(self, covers: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Join ranges that meet, or that only numbers without a page lie between."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted(covers):
            if joined and (joined[-1][1] + 1 >= first or not self._has_pages(joined[-1][1] + 1, first - 1)):
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return tuple(joined)


class _Weights(dict[str, tuple[float, float]]):
    """By what the worth of a word is divided, and its tokens."""

    def __init__(self, entries: Iterable[Item]) -> None:
        super().__init__()
        self._pages = Counter(chain.from_iterable([each for entry in entries for each in entry.said]))  # that say a word

    def __missing__(self, text: str) -> tuple[float, float]:
        """Weigh a word, once."""
        pages, said = self._pages, forms(text)
        rarest = pages[said[0]] if len(said) == 1 else min([pages[form] for form in said], default=1)
        self[text] = weight = rarest**RARER, _estimate(text) + WORD_TOKENS
        return weight


def _tersely(page: _Weighed, factor: float) -> _Weighed:
    """Return the words of a page, each worth less the more tokens those have that tell more for each of theirs."""
    said = 0.0
    left: dict[int, float] = {}
    for place in sorted(range(len(page)), key=lambda place: -page[place][1] / page[place][2]):
        _, worth, cost = page[place]
        left[place] = worth / (1 + factor * said)
        said += cost
    return [(span, left[place], cost) for place, (span, _, cost) in enumerate(page)]


def _priced(pages: Iterable[_Weighed], price: float) -> tuple[Span, ...]:
    """Return the words that are worth a price, of pages whose row is worth it."""
    return tuple([span for page in pages if (kept := _worth_it(page, price)) for span in _led(page, kept)])


def _worth_it(page: _Weighed, price: float) -> _Weighed:
    """Return the words of a page that are worth a price for each of their tokens; none where they do not repay their row's."""
    kept = [each for each in page if each[1] >= price * each[2]]
    return kept if sum([worth - price * cost for _, worth, cost in kept]) >= price * ROW_TOKENS else []


def _highest(pages: Iterable[_Weighed], most: float) -> float:
    """Return the highest price at which rows have more than *most* tokens, as estimated; 0 where they never have."""
    ends: list[tuple[float, float]] = []  # up to which price each word is shown, and its tokens
    for page in pages:
        ratios = [(worth / cost, cost) for _, worth, cost in page]
        told, tokens, end = 0.0, ROW_TOKENS, 0.0  # up to which price the row is: the more words, while each raises it
        for ratio, cost in sorted(ratios, reverse=True):
            if ratio <= end:
                break
            told += ratio * cost
            tokens += cost
            end = told / tokens
        ends += [(min(ratio, end), cost) for ratio, cost in ratios]
    ends.sort(reverse=True)
    sizes = accumulate(cost for _, cost in ends)
    return next((end for (end, _), size in zip(ends, sizes, strict=True) if size > most), 0.0)


def _led(page: _Weighed, kept: _Weighed) -> Iterator[Span]:
    """Yield the words that are kept; where words before one are left out, the strongest of their leads stands there."""
    left = iter(kept)
    following = next(left, None)
    skipped: list[str] = []
    for each in page:
        number, text, worth, lead = each[0]
        if each is not following:
            skipped.append(lead)
            continue
        following = next(left, None)
        if skipped:
            lead = next((strong for strong in (OTHERS, PASSAGE) if strong in (lead, *skipped)), " ")
            skipped = []
        yield number, text, worth, lead


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
