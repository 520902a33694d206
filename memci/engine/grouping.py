"""Directories of the contents page: how neighbouring pages are grouped in one line, and how such lines get shorter."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import attrs

from memci.archive.contents import Directory
from memci.archive.eviction import page_number
from memci.archive.summarizers.estimate import estimate
from memci.archive.words import STOPWORDS, words
from memci.engine.state import Item

MOST_PAGES = 32
"""How many pages are grouped at a time."""

ROOMS = (12.0, 9.0, 7.0, 5.0, 3.5, 2.5)
"""What a directory's words may take for each of its pages, in estimated tokens: first the most, then less and less."""

COUNTED_PAGES = 32
"""More pages than that give a directory no more words."""

MOST_GAPS = 16
"""Numbers of former directories that a directory keeps in mind until its ranges go on over them."""

_COMMON_SHARE = 0.15  # of the entries and directories of a contents page, in which a common word stands
_COMMON_ITEMS = 3
_SEPARATOR_TOKENS = 1.0


class Grouping:
    """Makes directories with new numbers, from the words of the pages themselves.

    Args:
        entries: The contents page, which tells how common words are.
        next_index: The index of the first new directory.
        count: Counts the tokens of a text.
    """

    def __init__(self, entries: Sequence[Item], next_index: str, count: Callable[[str], int]) -> None:
        self._segment, _, number = next_index.rpartition("-")
        self._next = int(number)
        self._count = count
        documents = [{word for span in spans(entry) for word in words(span)} for entry in entries]
        counts = Counter(word for document in documents for word in document)
        most = max(_COMMON_ITEMS, _COMMON_SHARE * len(documents))
        self._common = STOPWORDS | {word for word, items in counts.items() if items > most}
        known = [entry for entry in entries if isinstance(entry, Directory)]
        self._numbers = {number for entry in known for number in (page_number(entry.index), *entry.gaps)}

    def group(self, items: Sequence[Item], room: float = ROOMS[0]) -> Directory:
        """Make one directory of entries and directories, oldest first. O(their words).

        Args:
            items: What is grouped.
            room: What its words may take for each page, in estimated tokens.
        """
        covers: list[tuple[int, int]] = []
        gaps: set[int] = set()
        for item in items:
            number = page_number(item.index)
            if isinstance(item, Directory):
                covers += item.covers
                gaps |= {number, *item.gaps}
            else:
                covers.append((number, number))
        self._numbers |= gaps
        ranges = _joined(covers, self._numbers)
        recalls = [item.last_recall_turn for item in items if item.last_recall_turn is not None]
        firsts = [item.first_turn if isinstance(item, Directory) else item.turn for item in items]
        lasts = [item.last_turn if isinstance(item, Directory) else item.turn for item in items]
        directory = Directory(
            index=f"{self._segment}-{self._next}",
            keywords=self._words(items),
            covers=ranges,
            pages=sum(page_count(item) for item in items),
            first_turn=min(firsts),
            last_turn=max(lasts),
            first_seq=min(item.first_seq for item in items),
            archived_turn=max(item.archived_turn for item in items),
            last_recall_turn=max(recalls, default=None),
            gaps=tuple(sorted(gap for gap in gaps if not any(first <= gap <= last for first, last in ranges)))[-MOST_GAPS:],
        )
        self._numbers.add(self._next)
        self._next += 1
        return self.thinned(directory, room)

    def thinned(self, directory: Directory, room: float) -> Directory:
        """Return a directory with as many of its words as there is room for, the most telling ones. O(its words)."""
        left = room * min(directory.pages, COUNTED_PAGES)
        kept = []
        for span in directory.keywords:
            left -= estimate(span) + _SEPARATOR_TOKENS
            if left < 0:
                break
            kept.append(span)
        directory = attrs.evolve(directory, keywords=tuple(kept or directory.keywords[:1]))
        return attrs.evolve(directory, shown_tokens=self._count(directory.render()) + 1)

    def _words(self, items: Sequence[Item]) -> tuple[str, ...]:
        """Return the most telling span of each item, then the second of each, and so on; of directories in proportion to pages.

        What only holds words that are common in the contents page is left out, and what was there before.
        """
        found: dict[str, None] = {}
        seen: set[str] = set()
        ranked = sorted(
            (place / page_count(item), number, span)
            for number, item in enumerate(items)
            for place, span in enumerate(self._telling(item))
        )
        for _, _, span in ranked:
            new = set(words(span)) - self._common - seen
            if new or not words(span):
                found[span] = None
                seen |= new
        return tuple(found)

    def _telling(self, item: Item) -> list[str]:
        return [span for span in map(self._trimmed, spans(item)) if span]

    def _trimmed(self, span: str) -> str:
        """Return a span without the common words at both ends; empty where it holds no others."""
        pieces = span.split(" ")
        while pieces and self._says_nothing(pieces[0]):
            del pieces[0]
        while pieces and self._says_nothing(pieces[-1]):
            del pieces[-1]
        return " ".join(pieces)

    def _says_nothing(self, piece: str) -> bool:
        return set(words(piece)) <= self._common


def page_count(item: Item) -> int:
    """Return how many pages an item of the contents page stands for."""
    return item.pages if isinstance(item, Directory) else 1


def spans(item: Item) -> tuple[str, ...]:
    """Return the words by which an item is known in a directory, most telling first."""
    return item.keywords if isinstance(item, Directory) else item.spans or item.keywords


def _joined(covers: Iterable[tuple[int, int]], gaps: Collection[int]) -> tuple[tuple[int, int], ...]:
    """Join ranges that meet, or that only numbers without a page lie between."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(covers):
        if joined and all(number in gaps for number in range(joined[-1][1] + 1, first)):
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)
