"""The search for passages that are quoted unasked: its cost does not depend on how many pages there are."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memci.archive.catalogue import search
from memci.archive.catalogue.index_file import Database
from memci.archive.catalogue.page_search import PageSearch, Piece
from memci.archive.catalogue.search import Candidate, Entry, ExtraPage, Filter
from memci.messages.headline import MARK, parted

# With these bounds the first five pages hold as much of the evidence as those of a search by all words, within half a point, on
# LoCoMo, CrossWOZ and BEAM, whose conversations have 50 to 350 pages (``benchmarks/quality/bounded.py``).
_RARE_PAGES = 50  # at most, that hold a term by which pages are found
_RARE_TERMS = 8
_RARE_POSTINGS = 200  # of these terms together
_READ_PAGES = 10  # that are found first, and read with their neighbours for the terms that are not rare
_READ_TERMS = 20_000  # of all these
_COMMON_SHARE = 8  # a term that more than ``_RARE_PAGES`` hold is taken to be in every eighth page
_UNKNOWN = 0.5  # pages that a term counts as in which no page has: it lowers the score of all


class PassageSearch(PageSearch):
    """A query whose pages are found by its rarest terms alone, and the first of them ranked by all its terms.

    Scores are shares of what a page would have that holds the whole query: they compare with those of other queries.
    """

    _most_counted = _RARE_PAGES + 1

    def __init__(self, database: Database, query: str, extra: Sequence[ExtraPage], passage_characters: int) -> None:
        super().__init__(database, query, extra, passage_characters=passage_characters)
        pages, counts = self.counted.pages, self.counted.counts
        common = max(_RARE_PAGES + 1, pages // _COMMON_SHARE)
        likely = {name: count if count <= _RARE_PAGES else common for name, count in counts.items()}
        self._weights = search.weigh(pages, likely)
        self._total = sum(search.weigh(pages, {name: likely.get(name, _UNKNOWN) for name in self._terms}).values())
        self._counts = _rarest(self._counts)

    def _share(self, score: float, page: Candidate) -> float:
        return score / page.most_score

    def _candidates(self, found: Sequence[int], alike: Sequence[int], limit: int, only: Filter) -> list[Candidate]:
        """Return the pages that were found and their neighbours, the first with what they hold of all terms."""
        candidates = {page.place: page for page in super()._candidates(found, alike, limit, only)}
        excluded = {place for index, place in self._places(only.exclude).items() if index in only.exclude}
        first = [*self._extra, *(place for place in found if place not in excluded)][:_READ_PAGES]
        near = {place + step for place in first for step in range(-search.REACH, search.REACH + 1)}
        read, terms = dict[int, list[Any]](), 0
        for place in dict.fromkeys((*first, *sorted(near))):
            if place in self._stored and terms + sum(self._stored[place][2::2]) <= _READ_TERMS:
                read[place] = self._stored[place]
                terms += sum(read[place][2::2])
        candidates |= search.candidates_of_entries(read, self._entries(list(read)), self._weights)
        return [page for _, page in sorted(candidates.items())]

    def _lines(self, places: Collection[int]) -> dict[int, list[Any]]:
        """Return what it is asked for, and keep it."""
        self._stored = super()._lines(places)
        return self._stored

    def _passage(self, line: int, rows: Sequence[Entry], roles: frozenset[str] | None) -> tuple[Entry, list[Piece]]:
        """Return the entry on a line of a page, and its passage, without the names that texts begin with."""
        nameless = [row._replace(text=row.text.removeprefix(f"{row.name}: ")) if row.name else row for row in rows]
        return super()._passage(line, nameless, roles)

    def _entries(self, places: Sequence[int]) -> dict[int, list[Entry]]:
        """Return what is said in pages, by place, without headlines."""
        said = super()._entries(places)
        headed = {place for place in places if any(MARK in each.text for each in said[place])}
        return said | {place: list(map(_unheaded, said[place])) for place in headed}


def _unheaded(entry: Entry) -> Entry:
    return entry._replace(text=parted(entry.text)[0]) if entry.role == "assistant" else entry


def _rarest(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the terms by which pages are found, the rarest first to be taken."""
    rare, postings = dict[str, int](), 0
    for name, count in sorted(counts.items(), key=lambda pair: pair[1]):
        if 0 < count <= _RARE_PAGES and postings + count <= _RARE_POSTINGS and len(rare) < _RARE_TERMS:
            rare[name] = count
            postings += count
    return rare
