"""One search in a page index: one full-text query for candidates, then a ranking of them and their neighbours."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memci.archive.page_facts import PageState
from memci.archive.search import REACH, Candidate, ExtraPage, IndexHit, PageText, page_text, query_terms, rank, snippet, weigh

if TYPE_CHECKING:
    import sqlite3

_QUERY_TERMS = 64
_CANDIDATES = 30
_POSTINGS = 20_000
_PAGE_TERMS = 2_000
_ALL_TERMS = 400_000

# The user's words count twice.
_STATES = "SELECT id, name, state FROM page WHERE id IN"
_MATCH = "SELECT search.rowid FROM search {join} WHERE search MATCH ? {condition} ORDER BY bm25(search, 2.0, 1.0, 1.0) LIMIT ?"


class PageSearch:
    """A query, made ready: its terms and their weights.

    Args:
        connection: The index.
        query: Any text.
        extra: Pages to be searched that are not in the index as they are now.
    """

    def __init__(self, connection: "sqlite3.Connection", query: str, extra: Sequence[ExtraPage]) -> None:
        self._connection = connection
        youngest = self._all("SELECT coalesce(max(id), 0) FROM page")[0][0]
        known = dict(self._chosen("SELECT name, id FROM page WHERE name IN", [page.index for page in extra]))
        self._extra = {known.get(page.index, youngest + number): page for number, page in enumerate(extra, start=1)}
        self._texts = {
            place: page_text((role, text, "") for _, role, text in page.entries) for place, page in self._extra.items()
        }
        self._pages, entries, terms = self._all("SELECT pages, entries, terms FROM meta")[0]
        self._pages += len(extra)
        self._entry_terms = terms / entries if entries else 1.0
        self._stored_counts = {name: self._count(name) for name in query_terms(query)[:_QUERY_TERMS]}
        counts = {
            name: stored + sum(f" {name} " in text.page for text in self._texts.values())
            for name, stored in self._stored_counts.items()
        }
        self._weights = weigh(self._pages, {name: count for name, count in counts.items() if count})

    def hits(self, limit: int, states: Collection[PageState] | None, exclude: Collection[str]) -> list[IndexHit]:
        """Return the best pages in these states, best first."""
        if not self._weights or limit < 1:
            return []
        wanted = None if states is None else {state.value for state in states}
        unwanted = set(exclude)
        found = self._matching(limit, wanted, unwanted)
        near = {place + step for place in (*found, *self._extra) for step in range(-REACH, REACH + 1)}
        ranked = rank(self._candidates(found, near, limit), self._weights, self._entry_terms)
        hits: list[IndexHit] = []
        for start in range(0, len(ranked), 2 * limit):
            part = ranked[start : start + 2 * limit]
            facts = {row[0]: row[1:] for row in self._chosen(_STATES, [candidate.place for _, candidate in part])}
            facts |= {place: (page.index, page.state.value) for place, page in self._extra.items()}
            for score, candidate in part:
                index, state = facts.get(candidate.place, ("", ""))
                if index and index not in unwanted and (wanted is None or state in wanted):
                    position, text = self._entry(candidate, index)
                    passage = snippet(text, self._weights)
                    hits.append(IndexHit(index=index, entry=position, score=score, snippet=passage, state=PageState(state)))
                if len(hits) == limit:
                    return hits
        return hits

    def _count(self, name: str) -> int:
        """Return how many stored pages hold a term; a tenth of the cost of scoring them."""
        return int(self._all("SELECT count(*) FROM search WHERE search MATCH ?", _quoted(name))[0][0])

    def _matching(self, limit: int, wanted: Collection[str] | None, unwanted: Collection[str]) -> list[int]:
        """Return the ids of stored pages that match best, by BM25 over their own words, best first."""
        match = self._match()
        if not match:
            return []
        most = max(_CANDIDATES, 2 * limit)
        found = [row[0] for row in self._all(_MATCH.format(join="", condition=""), match, most + len(unwanted))]
        if wanted is None or len(found) < most + len(unwanted):
            return found
        states = self._chosen(_STATES, found)
        if sum(state in wanted for _, _, state in states) >= len(unwanted) + min(most, 2 * limit):
            return found
        # Too few of the best are in a state that is asked for: look each match up, at a tenth of the cost of scoring it.
        marks = ", ".join("?" * len(wanted))
        sql = _MATCH.format(join="CROSS JOIN page ON page.id = search.rowid", condition=f"AND page.state IN ({marks})")
        return [row[0] for row in self._all(sql, match, *wanted, most + len(unwanted))]

    def _match(self) -> str:
        """Return the query for the database: the rarest terms, quoted, any of which may match.

        Scoring costs what the terms' postings are; common terms, which hardly tell one page from another, are left to
        the ranking once there are enough postings.
        """
        chosen: list[str] = []
        postings = 0
        for name, count in sorted(self._stored_counts.items(), key=lambda pair: pair[1]):
            if count and (postings < _CANDIDATES or postings + count <= _POSTINGS):
                chosen.append(_quoted(name))
                postings += count
        return " OR ".join(chosen)

    def _candidates(self, found: Sequence[int], near: set[int], limit: int) -> list[Candidate]:
        """Read the pages that were found, up to a number of terms in all, and of their neighbours the short ones."""
        sizes = dict(self._chosen("SELECT id, terms FROM text WHERE id IN", found))
        room = _ALL_TERMS
        read = []
        for number, place in enumerate(found):
            room -= sizes.get(place, 0)
            if room >= 0 or number < limit:
                read.append(place)
        columns = "SELECT id, user, page, contents FROM text WHERE"
        stored = self._chosen(f"{columns} id IN", read)
        stored += self._chosen(f"{columns} terms <= {_PAGE_TERMS} AND id IN", sorted(near.difference(found)))
        texts = {place: PageText(*text) for place, *text in stored} | self._texts
        return [Candidate(place, text) for place, text in sorted(texts.items())]

    def _entry(self, candidate: Candidate, index: str) -> tuple[int, str]:
        """Return position and text of a page's best entry; its first where none holds a word of the query."""
        skipped = max(candidate.best, 1) - 1
        if candidate.place in self._extra:
            entries = self._extra[candidate.place].entries
            return (entries[skipped][0], entries[skipped][2]) if entries else (1, "")
        sql = "SELECT position, text FROM entry WHERE page = ? ORDER BY position LIMIT 1 OFFSET ?"
        rows = self._all(sql, index, skipped)
        return rows[0] if rows else (1, "")

    def _chosen(self, sql: str, values: Iterable[object]) -> list[Any]:
        """Run a query that ends with ``IN``, for a list of values of any length."""
        listed = list(values)
        rows = []
        for start in range(0, len(listed), 500):  # below the oldest limit on parameters, 999
            part = listed[start : start + 500]
            rows += self._all(f"{sql} ({', '.join('?' * len(part))})", *part)
        return rows

    def _all(self, sql: str, *values: object) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()


def _quoted(name: str) -> str:
    return f'"{name}"'
