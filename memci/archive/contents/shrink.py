"""How the contents page is brought below its limit: its pages share directories, whose rows say what is worth its tokens."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain, groupby
from operator import itemgetter, truediv
from typing import TypeAlias, assert_never

import attrs

from memci.archive.contents.base_path import Base, find_base
from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item, Span
from memci.archive.contents.importance import Weights, importance
from memci.archive.summarizers.summary import ALWAYS, EXCHANGE, GIVEN, LEFT_OUT, OTHERS, PASSAGE, RESULT, SENTENCE, USER
from memci.archive.summarizers.words import estimate, forms
from memci.chapters.address import page_number, range_index, segment_of

MOST_ROWS, LARGEST, ROWS_SHARE = 16, 64, 1 / 30  # of one directory; a share of all pages, up to the largest, where that is more
ROW_TOKENS = 3.0  # what a row has to be worth more than, at the price of a token: its number, and a place in the list
WORD_TOKENS, MARK_TOKENS = 0.3, 1.0  # what a word takes beside its own tokens; what the mark before another sentence does
RARER = 0.35  # the worth of a word that n pages say is divided by n to this power
FEW_PAGES, MANY_TOKENS = 500, 45_000  # a word is worth half after MANY_TOKENS / (pages - FEW_PAGES) tokens of better ones
TERSE, LONG_TERSE = 0.1, 0.05  # the same of all pages, after 10 tokens; beside that of the longest (``memci bench quality``)
FEWEST_TOKENS = 2.5  # for each page, to which rows are brought down at least where nothing may be lost for one window
LOWEST_PRICE, PRICE_STEP, _MOST_STEPS = 0.1, 1.05, 200
SHORT_PAGE = 3  # times the size of its entry; where most are shorter, rows say the same for less
ROOMY_SHARE = 0.2  # of the limit, which entries of short pages may take
KEPT_SHARE = 0.25  # of the limit, which entries of pages that were recalled more than once may hold beside the rows
_RECALLED_AGAIN = 2
_FEWEST_PAGES = 2  # a directory of one page says less than its entry
TITLES_CHARACTERS = 240  # of the titles of a directory; where several become one, the newest that fit are kept

# By what a page's words are worth more, by its number: of pages that tell alike some have a row, evenly spread, rather than none.
_SPREAD = [1 + 0.25 * int(f"{number:08b}"[::-1], 2) / 256 for number in range(256)]
_OF_CALL, _STARTS = frozenset({GIVEN, RESULT}), frozenset({PASSAGE, OTHERS, USER, EXCHANGE})
_ASKING = ("?", "？")
_MARKS = frozenset({SENTENCE, USER, LEFT_OUT})
_ENDS_SENTENCE = re.compile("[.!?;。！？；]")
_estimate = lru_cache(maxsize=10_000)(estimate)  # of words of pages, many of which say the same


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
    titled: tuple[str, Collection[str]] | None = None,
    far: Collection[str] | None = None,
    weights: Weights | None = None,
    length: float = 0.0,
) -> Shrinkage:
    """Bring a contents page of over *limit* tokens, oldest first, down to *low_share* of it, as far as that goes. O(entries).

    First, what is *titled* becomes a directory: a title, and the indexes of entries that are neighbours, pinned ones aside.
    Where there may be *directories*, all pages get rows there, and go on to get them once there is one. Only with *evict*
    entries may lose all but their title, all rows go, and entries be evicted in the end. *room* is what the page may have where
    *limit* is less for one window: entries stay while there is that. *count* gives the tokens of a text; *has_pages* tells
    whether any page has a number from one to another. Entries that are *far* share directories in any case, and then the others
    only where the page is too large; ``None`` where it is not distance that decides. With *weights*, the least important
    entries lose detail and leave first, and the most important ones stay beside directories. *length* is that of pages, from 0
    for short ones to 1: more of what a long one says is left out, so that more of them have a row.
    """
    worth = None if weights is None else partial(importance, turn=turn, weights=weights)
    page = Shrinking(entries, limit, count, has_pages, worth, length=length)
    if titled is not None:
        page.close_topic(*titled)
    if far is not None:
        page.group(far)
    if directories and page.is_crowded(max(limit, room), by_distance=far is not None):
        page.group()
        if page.total > limit:
            page.reprice(max(low_share * limit, 0 if evict else FEWEST_TOKENS * sum(entry.pages for entry in entries)))
    for detail in (Detail.BRIEF, Detail.BARE)[: 1 + evict]:
        page.strip(limit, detail)
    policies: list[Policy] = [LeastRecentlyRecalled(max_tokens=limit, low_share=low_share)] if evict else []
    if evict and weights is not None:
        policies = [LeastImportant(max_tokens=limit, low_share=low_share, weights=weights)]
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

    def __init__(  # noqa: PLR0913 (each is a different measure)
        self,
        entries: Sequence[Item],
        limit: int,
        count: Callable[[str], int],
        has_pages: Callable[[int, int], bool],
        worth: Callable[[Item], float] | None = None,
        *,
        length: float = 0.0,
    ) -> None:
        self.entries = list(entries)
        self.members: dict[str, list[str]] = {}  # what new directories group, of entries and directories that there were
        self._limit = limit
        self._count = count
        self._has_pages = has_pages
        self._worth = worth
        self._weights = _Weights(entries, find_base(chain.from_iterable([entry.spans for entry in entries])))
        pages = sum(entry.pages for entry in entries)
        # Rows are short, and shorter still of long pages and of many pages, so that more have one.
        self._terse = TERSE + LONG_TERSE * length + max(0, pages - FEW_PAGES) / MANY_TOKENS
        self._most_rows = max(MOST_ROWS, min(round(ROWS_SHARE * pages), LARGEST))

    @property
    def total(self) -> int:
        """Size of what it shows."""
        return sum(entry.contents_tokens for entry in self.entries)

    def is_crowded(self, room: int, *, by_distance: bool) -> bool:
        """Return whether pages are to share directories: they do, or need more than there is, or, short ones, than a share.

        Where distance decides, only that they need more.
        """
        if by_distance:
            return self.total > self._limit
        own = [entry for entry in self.entries if isinstance(entry, ContentsEntry)]
        short = sum(SHORT_PAGE * entry.contents_tokens > entry.tokens for entry in own)
        most = self._limit if 2 * short < len(own) else min(self._limit, ROOMY_SHARE * room)
        grouped = any(isinstance(entry, Directory) and not entry.titles for entry in self.entries)
        return grouped or self.total > most

    def close_topic(self, title: str, indexes: Collection[str]) -> None:
        """Put entries together in a directory of their own that has a title."""
        items, price = [entry for entry in self.entries if entry.index in indexes], self._price()
        spans = [span for item in items for span in self._weighed(item.spans).priced(price)]
        self._put_together(items, spans, price, title)

    def _price(self) -> float:
        """Return the price of a token in the rows that there are."""
        return next((entry.price for entry in reversed(self.entries) if isinstance(entry, Directory)), 0.0) or LOWEST_PRICE

    def group(self, far: Collection[str] | None = None) -> None:
        """Give each page a row in the directory of its neighbours, at the price in force; entries that are kept stay.

        With *far*, all others are, and of these only the pinned ones.
        """
        own = (each for each in self.entries if isinstance(each, ContentsEntry))
        kept = self._kept() if far is None else {each.index for each in own if each.pinned or each.index not in far}
        price = self._price()
        loose = [entry for entry in self.entries if entry.index not in kept]
        priced = {each.index: self._weighed(each.spans).priced(price) for each in loose if isinstance(each, ContentsEntry)}
        spans = {each.index: each.spans for each in loose if isinstance(each, Directory)} | priced
        packs: list[list[Item]] = []
        rows, end = 0, 0
        for item in loose:
            new = len(item.listed) if isinstance(item, Directory) else bool(spans[item.index])
            is_topic = packs and any(isinstance(each, Directory) and each.titles for each in packs[-1])  # which was closed
            goes_on = packs and not is_topic and not isinstance(item, Directory) and rows + new <= self._most_rows
            if packs and far is not None and isinstance(item, Directory):  # a single entry before it would stay alone
                goes_on = len(packs[-1]) < _FEWEST_PAGES and not isinstance(packs[-1][0], Directory) and not item.titles
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
        if self._worth is not None:
            wanted = entries
        for entry in sorted(wanted, key=self._worth or _last_use, reverse=True):
            left -= entry.contents_tokens
            if left >= 0:
                kept.add(entry.index)
        return kept

    def reprice(self, goal: float) -> None:
        """Raise the price of a token until the page is short enough, or no row is left; directories with few rows are merged.

        The oldest directories have the new price first: where pages are alike, it is not all of their rows that go at once.
        """
        price = min((entry.price for entry in self._directories()), default=0.0) or LOWEST_PRICE  # 0 is no price to raise
        while self.total > goal:
            weighed = {entry.index: self._weighed(entry.spans) for entry in self._directories()}
            costs = [cost for rows in weighed.values() for cost in rows.costs]
            if not costs:
                self._merge_oldest(goal)
                return
            ends = [end for rows in weighed.values() for end in rows.ends()]
            steps = [price * PRICE_STEP**step for step in range(1, _MOST_STEPS)]
            price = steps[bisect_right(steps, _highest(ends, costs, sum(costs) * goal / self.total), hi=_MOST_STEPS - 2)]
            total = self.total
            for place, entry in enumerate(self.entries):
                if isinstance(entry, Directory) and entry.price < price and total > goal:
                    self.entries[place] = self._at(price, entry, weighed[entry.index])
                    total += self.entries[place].contents_tokens - entry.contents_tokens
            self._merge()

    def _directories(self) -> list[Directory]:
        return [entry for entry in self.entries if isinstance(entry, Directory)]

    def _weighed(self, spans: Sequence[Span]) -> "_Rows":
        return _Rows(spans, self._weights, self._terse)

    def _at(self, price: float, directory: Directory, rows: "_Rows") -> Directory:
        spans = rows.priced(price)
        base = find_base(spans)
        return attrs.evolve(directory, spans=spans, price=price, unlisted=not spans, base=base).counted(self._count)

    def _merge(self) -> None:
        """Put neighbouring directories together that have few rows, those of topics as long as no title is lost."""
        pack: list[Directory] = []
        rows = 0
        for directory in [*self._directories(), None]:
            new = 0 if directory is None else len(directory.listed)
            if directory is not None and rows + new <= self._most_rows and self._may_merge([*pack, directory]):
                pack.append(directory)
                rows += new
                continue
            if len(pack) >= _FEWEST_PAGES:
                self._put_together(pack, [span for directory in pack for span in directory.spans])
            pack, rows = [] if directory is None else [directory], new

    def _may_merge(self, pack: Sequence[Directory]) -> bool:
        titles = dict.fromkeys(chain.from_iterable(directory.titles for directory in pack))
        are_alike = len({bool(directory.titles) for directory in pack}) == 1
        return are_alike and sum(map(len, titles)) <= TITLES_CHARACTERS

    def _merge_oldest(self, goal: float) -> None:
        """Put the oldest directories together, where titles alone are too much, until the page is short enough."""
        directories = self._directories()
        while self.total > goal and len(directories) > 1 and any(directory.titles for directory in directories):
            self._put_together(directories[:2], [span for directory in directories[:2] for span in directory.spans])
            directories = self._directories()

    def strip(self, limit: float, detail: Detail) -> None:
        """Leave entries less detail, the oldest first, or the least important, until the page fits."""
        total, order = self.total, list(enumerate(self.entries))
        if self._worth is not None:
            worth = self._worth
            order.sort(key=lambda each: worth(each[1]))
        for place, entry in order:
            if total <= limit:
                return
            if isinstance(entry, ContentsEntry) and entry.shown_tokens.get(detail, 0) < entry.contents_tokens:
                self.entries[place] = attrs.evolve(entry, detail=detail)
                total += self.entries[place].contents_tokens - entry.contents_tokens

    def _put_together(self, items: Sequence[Item], spans: Iterable[Span], price: float = 0.0, title: str = "") -> None:
        directory = self._directory(items, spans, price, title)
        grouped = dict.fromkeys(item.index for item in items)
        self.members[directory.index] = [each for index in grouped for each in self.members.pop(index, [index])]
        rest = (entry for entry in self.entries if entry is items[0] or entry.index not in grouped)
        self.entries = [directory if entry is items[0] else entry for entry in rest]

    def _directory(self, items: Sequence[Item], spans: Iterable[Span], price: float, title: str) -> Directory:
        """Make one directory of items, oldest first, with these words, those of new pages at a price. O(the words)."""
        titles = [each for item in items if isinstance(item, Directory) for each in item.titles]
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
            titles=_newest_titles([*titles, title]),
            base=find_base(said),
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


def _newest_titles(titles: Iterable[str]) -> tuple[str, ...]:
    """Return the newest titles that there is room for, each once, oldest first."""
    newest = list(dict.fromkeys(filter(None, reversed(list(titles)))))
    sizes = accumulate(map(len, newest))
    return tuple(reversed([title for title, size in zip(newest, sizes, strict=True) if size <= TITLES_CHARACTERS]))


class _Weights(dict[str, tuple[float, float]]):
    """By what the worth of a word is divided, and its tokens."""

    def __init__(self, entries: Iterable[Item], base: Base) -> None:
        super().__init__()
        self._base = base  # that directories will show paths below, about
        self._pages = Counter(chain.from_iterable([each for entry in entries for each in entry.said]))  # that say a word

    def __missing__(self, text: str) -> tuple[float, float]:
        """Weigh a word, once."""
        pages, said = self._pages, forms(text)
        rarest = pages[said[0]] if len(said) == 1 else min([pages[form] for form in said], default=1)
        rarest = max(rarest, 1)  # a word may have got the mark of its question
        written = self._base.shorten(text) if self._base.path else text
        self[text] = weight = rarest**RARER, _estimate(written) + WORD_TOKENS
        return weight


class _Rows:
    """The words of pages, page after page, as parallel lists: what each is worth among all, and its tokens, as estimated."""

    def __init__(self, spans: Sequence[Span], weights: _Weights, terse: float) -> None:
        self.spans = spans
        weighed = [weights[text] for _, text, _, _ in spans]
        self.costs = [cost + MARK_TOKENS * (span[3] in _MARKS) for span, (_, cost) in zip(spans, weighed, strict=True)]
        self._worths = [span[2] * _SPREAD[span[0] % 256] / rarity for span, (rarity, _) in zip(spans, weighed, strict=True)]
        sizes = [len(list(page)) for _, page in groupby([span[0] for span in spans])]
        self._pages = [range(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
        self._calls = _calls(spans, self._pages)
        self._shorten(terse)

    def _shorten(self, terse: float) -> None:
        """Make each word worth less the more tokens those of its page have that tell more for each of theirs."""
        costs, worths = self.costs, self._worths
        densities = list(map(truediv, worths, costs))
        for page in self._pages:
            said = 0.0
            for place in sorted(page, key=densities.__getitem__, reverse=True):
                worths[place] /= 1 + terse * said
                said += costs[place]

    def ends(self) -> list[float]:
        """Return up to which price each word is shown."""
        costs, ends = self.costs, list(map(truediv, self._worths, self.costs))
        for page in self._pages:
            told, tokens = 0.0, self._row_tokens(page)
            end = 0.0  # up to which price the row is: the more words, while each raises it
            for place in sorted(page, key=ends.__getitem__, reverse=True):
                if (ratio := ends[place]) <= end:
                    break
                told += ratio * costs[place]
                tokens += costs[place]
                end = told / tokens
            ends[page.start : page.stop] = [min(ratio, end) if ratio else end for ratio in ends[page.start : page.stop]]
        return ends

    def _row_tokens(self, page: range) -> float:
        """Return what the row of a page has beside its words for a price."""
        return ROW_TOKENS + sum([self.costs[place] for place in page if self._worths[place] == ALWAYS])

    def priced(self, price: float) -> tuple[Span, ...]:
        """Return the words that are worth a price for each of their tokens, of pages that repay those of their row with it."""
        pairs = zip(self._worths, self.costs, strict=True)
        gains = [0.0 if worth == ALWAYS else worth - price * cost for worth, cost in pairs]
        self._bind(gains)
        found: list[Span] = []
        for page in self._pages:
            some = slice(page.start, page.stop)
            kept = [gain for gain in gains[some] if gain >= 0]
            if sum(kept) >= price * self._row_tokens(page):
                found += self.spans[some] if len(kept) == len(page) else _led(self.spans[some], gains[some])
        return tuple(found)

    def _bind(self, gains: list[float]) -> None:
        """Show what a call is about where what else was given to it, and its result, repay that; else nothing of the call."""
        for call, *rest in self._calls:
            if gains[call] < 0:
                gains[call] = min(0.0, gains[call] + sum([gains[place] for place in rest if gains[place] > 0]))
                if gains[call] < 0:
                    for place in rest:
                        gains[place] = -1.0


def _calls(spans: Sequence[Span], pages: Iterable[range]) -> list[list[int]]:
    """Return the words of each call that has several: what it is about first, then what else it was given, and its result."""
    found = list[list[int]]()
    for page in pages:
        words = list[int]()
        for place in page:
            lead = spans[place][3]
            if words and (lead in _OF_CALL or (len(words) > 1 and lead not in _STARTS)):
                words.append(place)
            else:
                found.append(words)
                words = [place]
        found.append(words)
    return [words for words in found if len(words) > 1]


def _highest(ends: Sequence[float], costs: Sequence[float], most: float) -> float:
    """Return the highest price at which words have more than *most* tokens, by where each of them ends; 0 if they never have."""
    order = sorted(range(len(ends)), key=ends.__getitem__, reverse=True)
    sizes = accumulate(map(costs.__getitem__, order))
    return next((ends[place] for place, size in zip(order, sizes, strict=True) if size > most), 0.0)


def _led(spans: Iterable[Span], gains: Iterable[float]) -> list[Span]:
    """Return the words that gain; where words before one are left out, the strongest of their leads stands there.

    A question keeps its mark as long as it has a word.
    """
    kept: list[Span] = []
    skipped: list[str] = []
    for span, gain in zip(spans, gains, strict=True):
        if gain < 0:
            skipped.append(span[3])
            if kept and span[1][-1:] in _ASKING and not any(map(_ends_sentence, skipped)):
                kept[-1] = _asking(kept[-1], span[1][-1])
        elif skipped:
            skipped.append(span[3])
            kept.append((*span[:3], _strongest(skipped)))
            skipped = []
        else:
            kept.append(span)
    return kept


def _asking(span: Span, mark: str) -> Span:
    """Return a word with the mark of its question."""
    number, text, worth, lead = span
    return span if text.endswith(_ASKING) else (number, text + mark, worth, lead)


def _ends_sentence(lead: str) -> bool:
    """Return whether a lead is between words of two sentences."""
    return lead in _OF_CALL | _STARTS or _ENDS_SENTENCE.search(lead) is not None


def _strongest(leads: Sequence[str]) -> str:
    """Return what shows the most of what lies between two words: another speaker, message or sentence, or words left out."""
    speakers = [lead for lead in leads if lead in {OTHERS, USER}]
    if speakers:
        return speakers[-1]
    if EXCHANGE in leads:
        return EXCHANGE
    if PASSAGE in leads:
        return PASSAGE
    if RESULT in leads:
        return RESULT
    if GIVEN in leads:
        return GIVEN
    return SENTENCE if any(map(_ENDS_SENTENCE.search, leads)) else LEFT_OUT


@attrs.frozen(kw_only=True)
class ZeroRecall:
    """Evicts an entry that was never recalled, once at least *turns* turns passed since it was archived."""

    turns: int


@attrs.frozen(kw_only=True)
class Stale:
    """Evicts an entry once at least *turns* turns passed since its recall count changed, or since it was archived."""

    turns: int


@attrs.frozen(kw_only=True)
class LeastImportant:
    """Evicts the least important entries of a contents page of over *max_tokens*, down to the *low_share* of them."""

    max_tokens: int
    low_share: float
    weights: Weights


@attrs.frozen(kw_only=True)
class LeastRecentlyRecalled:
    """Evicts the least recently recalled entries of a contents page of over *max_tokens*, down to the *low_share* of them."""

    max_tokens: int
    low_share: float


Policy: TypeAlias = ZeroRecall | Stale | LeastRecentlyRecalled | LeastImportant


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
            order = sorted(loose, key=lambda entry: (_last_use(entry), page_number(entry.index)))
            return _excess(order, entries, max_tokens, low_share)
        case LeastImportant(max_tokens=max_tokens, low_share=low_share, weights=weights):
            order = sorted(loose, key=lambda entry: (importance(entry, turn, weights), page_number(entry.index)))
            return _excess(order, entries, max_tokens, low_share)
        case _:
            assert_never(policy)


def _excess(order: Iterable[Item], entries: Iterable[Item], max_tokens: int, low_share: float) -> list[str]:
    """Return which leave first, in an order, until a contents page that is too large has come down to a share."""
    total = sum(entry.contents_tokens for entry in entries)
    out: list[str] = []
    for entry in order:
        if total <= (low_share * max_tokens if out else max_tokens):
            break
        out.append(entry.index)
        total -= entry.contents_tokens
    return out


def _last_use(entry: Item) -> int:
    return entry.archived_turn if entry.last_recall_turn is None else entry.last_recall_turn
