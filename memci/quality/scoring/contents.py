"""The contents page as a rendered window shows it: what it says of each page, and which line a reader would choose."""

import re
from collections import Counter
from collections.abc import Iterable

import attrs

from memci.archive.catalogue.search import weigh
from memci.archive.catalogue.terms import query_terms, term_line

HEADING = "Contents of earlier pages"  # in the first line of its message
_INDEXED = re.compile(r"\[([^\s\[\]]+)-(\d+)(?:\.\.(\d+))?\] ?(.*)")
_NUMBERED = re.compile(r"(\d+)(?: (.*))?")
_SATURATION, _LENGTH_SHARE = 1.2, 0.75  # k1 and b of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009)


@attrs.frozen
class Row:
    """A piece of the contents page that stands for pages: an entry with its lines, the heading of a range, or a row below one."""

    pages: frozenset[str]  # their indexes
    text: str  # without the index, or number, that it begins with
    heading: bool  # of a range; its pages may have rows of their own


class ShownContents:
    """The contents page of a window."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._rows = [row for text in texts for row in _rows(text)]
        self._terms = [Counter(term_line(row.text).split()) for row in self._rows]
        self.lines = {page: row.text for row in self._rows if not row.heading for page in row.pages}
        """What is said of each page by itself, by its index."""

    def headings(self, page: str, most: int) -> list[str]:
        """Return the headings of the ranges of at most so many pages that a page is in. O(rows)."""
        return [row.text for row in self._rows if row.heading and len(row.pages) <= most and page in row.pages]

    def search(self, query: str, limit: int) -> list[frozenset[str]]:
        """Return the pages of each of the rows that a query finds, best first: BM25, a row being a document. O(rows)."""
        wanted = query_terms(query)
        weights = weigh(len(self._terms), {term: sum(term in counts for counts in self._terms) for term in wanted})
        mean = sum(counts.total() for counts in self._terms) / max(len(self._terms), 1)
        scores = []
        for row, counts in zip(self._rows, self._terms, strict=True):
            length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * counts.total() / max(mean, 1)
            found = ((weights[term], counts[term]) for term in wanted if counts[term])
            score = sum(weight * count * (_SATURATION + 1) / (count + _SATURATION * length) for weight, count in found)
            scores.append((score, row.pages))
        best = sorted((pair for pair in scores if pair[0]), key=lambda pair: -pair[0])
        return [pages for _, pages in best[:limit]]


def _rows(text: str) -> list[Row]:
    """Return the rows of a message that is a contents page, in order; none of any other.

    A line that begins with an index is an entry, with the lines below it that are indented; one that begins with a range is a
    heading, and the lines below it that begin with a number are rows of its pages. Other lines are notes.
    """
    first, *lines = text.split("\n")
    rows: list[Row] = []
    segment, goes_on = "", False
    for line in lines if HEADING in first else ():
        indexed, numbered = _INDEXED.fullmatch(line), _NUMBERED.fullmatch(line)
        if line.startswith("  ") and goes_on:
            rows[-1] = attrs.evolve(rows[-1], text=f"{rows[-1].text}\n{line.strip()}")
            continue
        goes_on = indexed is not None
        if indexed is not None:
            segment, start, end = indexed[1], int(indexed[2]), int(indexed[3] or indexed[2])
            pages = frozenset(f"{segment}-{number}" for number in range(start, end + 1))
            rows.append(Row(pages, indexed[4], heading=indexed[3] is not None))
        elif numbered is not None and segment:
            rows.append(Row(frozenset({f"{segment}-{int(numbered[1])}"}), numbered[2] or "", heading=False))
    return rows
