"""Directories of the contents page: how neighbouring pages are put under one heading, and how their lines get shorter."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import attrs

from memci.archive.contents.contents_page import Directory, Item
from memci.archive.summarizers.estimate import estimate
from memci.archive.summarizers.words import STOPWORDS, words
from memci.chapters.address import page_number, range_index, segment_of

MOST_PAGES = 32
"""How many pages are grouped at a time."""

ROOMS = (12.0, 9.0, 7.0, 5.0, 3.5, 2.5)
"""What a directory's lines may take for each of its pages, in estimated tokens: first the most, then less and less."""

SPAN_TOKENS = 4.0
"""Stretches of about so many estimated tokens go first: shorter ones tell little, longer ones leave no room for other pages."""

COUNTED_PAGES = 32
"""More pages than that give a directory no more words."""

_COMMON_SHARE = 0.15  # of the entries and directories of a contents page, in which a common word stands
_COMMON_ITEMS = 3
_SEPARATOR_TOKENS = 1.0
_NUMBER_TOKENS = 1.0


class Grouping:
    """Makes directories, from the words of the pages themselves; the contents page tells which of them are common."""

    def __init__(self, entries: Sequence[Item], count: Callable[[str], int], has_pages: Callable[[int, int], bool]) -> None:
        self._count = count
        self._has_pages = has_pages
        documents = [{word for _, span in spans(entry) for word in words(span)} for entry in entries]
        counts = Counter(word for document in documents for word in document)
        most = max(_COMMON_ITEMS, _COMMON_SHARE * len(documents))
        self._common = STOPWORDS | {word for word, items in counts.items() if items > most}

    def group(self, items: Sequence[Item], room: float = ROOMS[0]) -> Directory:
        """Make one directory of items, oldest first; its lines take *room* estimated tokens for each page. O(their words)."""
        covers = self._joined(each for item in items for each in _covers(item))
        recalls = [item.last_recall_turn for item in items if item.last_recall_turn is not None]
        directory = Directory(
            index=range_index(segment_of(items[0].index), covers[0][0], covers[-1][1]),
            spans=self._spans(items),
            covers=covers,
            pages=sum(map(page_count, items)),
            archived_turn=max(item.archived_turn for item in items),
            last_recall_turn=max(recalls, default=None),
        )
        return self.thinned(directory, room)

    def thinned(self, directory: Directory, room: float) -> Directory:
        """Return a directory with the most telling of its stretches, as many as there is room for, one where there is any."""
        left = room * min(directory.pages, COUNTED_PAGES)
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

    def _spans(self, items: Sequence[Item]) -> tuple[tuple[int, str], ...]:
        """Return the most telling span of each item, then the second of each, and so on; of directories in proportion to pages.

        Those of a few words come first each time, so that more pages are named. What only holds words that are common in the
        contents page is left out, and what was there before.
        """
        found: list[tuple[int, str]] = []
        seen: set[str] = set()
        ranked = sorted(
            (place / page_count(item), abs(estimate(span) - SPAN_TOKENS), number, span)
            for item in items
            for place, (number, span) in enumerate(self._telling(item))
        )
        for _, _, number, span in ranked:
            new = set(words(span)) - self._common - seen
            if new or not words(span):
                found.append((number, span))
                seen |= new
        return tuple(found)

    def _telling(self, item: Item) -> list[tuple[int, str]]:
        return [(number, trimmed) for number, span in spans(item) if (trimmed := self._trimmed(span))]

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

    def _joined(self, covers: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Join ranges that meet, or that only numbers without a page lie between."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted(covers):
            if joined and (joined[-1][1] + 1 >= first or not self._has_pages(joined[-1][1] + 1, first - 1)):
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return tuple(joined)


def page_count(item: Item) -> int:
    """Return how many pages an item of the contents page stands for."""
    return item.pages if isinstance(item, Directory) else 1


def spans(item: Item) -> tuple[tuple[int, str], ...]:
    """Return the words by which an item is known in a directory, each with the number of its page, most telling first."""
    if isinstance(item, Directory):
        return item.spans
    number = page_number(item.index)
    return tuple((number, span) for span in item.spans or item.keywords)


def _covers(item: Item) -> tuple[tuple[int, int], ...]:
    return item.covers if isinstance(item, Directory) else ((page_number(item.index),) * 2,)
