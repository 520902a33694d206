"""One search in a page index: one full-text query for candidates, then a ranking of them and their neighbours."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memci.archive.catalogue.index_file import damaged
from memci.archive.catalogue.page_facts import PageState
from memci.archive.catalogue.page_filter import Filter
from memci.archive.catalogue.search import (
    LEAST_COSINE,
    NEIGHBOUR_TERMS,
    REACH,
    Candidate,
    ExtraPage,
    IndexHit,
    PageText,
    page_text,
    query_terms,
    rank,
    role_mark,
    weigh,
)
from memci.archive.catalogue.snippet import SNIPPET_CHARS, snippet

if TYPE_CHECKING:
    import sqlite3

    from memci.archive.catalogue.embedding import Embedder
    from memci.archive.catalogue.vectors import Likeness

_QUERY_TERMS = 64
_CANDIDATES = 30
_POSTINGS = 20_000
_PAGE_TERMS = 2_000
_ALL_TERMS = 400_000
_BATCH = 200
_BESIDE = 3  # entries on each side of one that a passage goes on to
_FEW = 3_000  # pages, all of which can be listed at less than what it saves

_ENDS = "SELECT role, substr(text, ?), substr(text, 1, ?) FROM entry WHERE page = ? ORDER BY position LIMIT ? OFFSET ?"
_FACTS = "SELECT id, name, state, turn FROM page WHERE id IN"
_COUNT_UP_TO = "SELECT count(*) FROM (SELECT 1 FROM search WHERE search MATCH ? LIMIT ?)"
_NAMES = "SELECT id, name FROM page WHERE id IN"
_PAGES = "SELECT id, page FROM text WHERE id IN"
_ROLES = "SELECT page.id, role FROM entry JOIN page ON page.name = entry.page WHERE page.id IN"
_MATCH = "SELECT search.rowid FROM search {join} WHERE search MATCH ? {conditions} ORDER BY bm25(search, {weights}) LIMIT ?"
_WEIGHTS = "2.0, 1.0, 1.0"  # the user's words count twice
_WEIGHTS_OF_USER = "1.0, 0.1, 0.0"  # beside them the words of the time
_WEIGHTS_OF_OTHERS = "-1.0, 1.0, 0.0"  # a page holds the user's words too
_JOIN = "CROSS JOIN page ON page.id = search.rowid"


class PageSearch:
    """A query, made ready: its terms and their weights.

    Args:
        connection: The index.
        query: Any text.
        extra: Pages to be searched that are not in the index as they are now.
        embedder: Tells what texts mean; ``None`` ranks by words alone.
    """

    def __init__(
        self, connection: "sqlite3.Connection", query: str, extra: Sequence[ExtraPage], embedder: "Embedder | None"
    ) -> None:
        self._connection = connection
        self._query = query
        self._embedder = embedder
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
        self._holders = self._all_holders()

    def hits(self, limit: int, only: Filter) -> list[IndexHit]:
        """Return the best pages that the filter admits, best first."""
        if limit < 1 or (only.roles is not None and not only.roles):
            return []
        likeness = self._likeness(only)
        if not self._weights and likeness is None:
            return []
        asked = max(_CANDIDATES, 2 * limit) + len(only.exclude)
        found = self._matching(asked, only)
        alike = [] if likeness is None else likeness.best(asked, LEAST_COSINE)
        hits = self._best(found, alike, likeness, limit, only)
        if len(hits) < limit and only.looks_closer and asked in {len(found), len(alike)}:
            # Too few of the best are admitted: look at all.
            alike = [] if likeness is None else self._admitted_by_index(likeness.best(self._pages, LEAST_COSINE), only)[:asked]
            hits = self._best(self._admitted(asked, only), alike, likeness, limit, only)
        return hits

    def _likeness(self, only: Filter) -> "Likeness | None":
        """Compare the query with the vectors of the pages; ``None`` for one without words, and where roles limit the search.

        The vector of a page is made of all its entries, and does not tell who said what.
        """
        if self._embedder is None or only.roles is not None or not query_terms(self._query):
            return None
        from memci.archive.catalogue.vectors import Likeness  # noqa: PLC0415 (for those who use vectors)

        extra = {place: [text for _, _, text in page.entries] for place, page in self._extra.items()}
        return Likeness(self._connection, self._embedder, self._query, only.turns, extra)

    def _best(
        self, found: Sequence[int], alike: Sequence[int], likeness: "Likeness | None", limit: int, only: Filter
    ) -> list[IndexHit]:
        """Rank the pages that were found by words or by meaning, with the neighbours of the former, and return the best."""
        near = {place + step for place in (*found, *self._extra) for step in range(-REACH, REACH + 1)}
        known = {*found, *self._extra}
        candidates = self._candidates([*found, *(place for place in alike if place not in known)], near, limit)
        cosines = {} if likeness is None else likeness.cosines([candidate.place for candidate in candidates])
        lines = {} if only.roles is None else self._limit_to(candidates, only.roles)
        hits: list[IndexHit] = []
        ranked = rank(candidates, self._weights, self._entry_terms, cosines)
        for start in range(0, len(ranked), 2 * limit):
            part = ranked[start : start + 2 * limit]
            facts = {row[0]: row[1:] for row in self._chosen(_FACTS, [candidate.place for _, candidate in part])}
            facts |= {place: (page.index, page.state.value, page.turn) for place, page in self._extra.items()}
            for score, candidate in part:
                said = lines.get(candidate.place) if only.roles is not None else [1]
                if said and candidate.place in facts and only.admits(facts[candidate.place][0], facts[candidate.place][2]):
                    index, state, _ = facts[candidate.place]
                    position, text = self._entry(candidate.best or said[0], candidate.place, index)
                    before, after = self._beside(candidate.best or said[0], candidate.place, index, only.roles)
                    passage = snippet(text, self._weights, before, after)
                    hits.append(IndexHit(index=index, entry=position, score=score, snippet=passage, state=PageState(state)))
                if len(hits) == limit:
                    return hits
        return hits

    def _limit_to(self, candidates: Sequence[Candidate], roles: frozenset[str]) -> dict[int, list[int]]:
        """Take out of the candidates what other roles said; return by place which lines are left, counted from 1."""
        left = self._lines([candidate.place for candidate in candidates], roles)
        for candidate in candidates:
            page = _limited(candidate.text.page, left[candidate.place])
            candidate.text = PageText(candidate.text.user if "user" in roles else " ", page, " ")
        return left

    def _lines(self, places: Sequence[int], roles: frozenset[str]) -> dict[int, list[int]]:
        """Return by place which lines of a page are what some roles said, counted from 1."""
        said: dict[int, list[str]] = {place: [] for place in places}
        said |= {place: [role for _, role, _ in page.entries] for place, page in self._extra.items()}
        stored = [place for place in places if place not in self._extra]
        for place, role in self._chosen(_ROLES, stored, order="ORDER BY page.id, position"):
            said[place].append(role)
        return {place: [line for line, role in enumerate(spoken, start=1) if role in roles] for place, spoken in said.items()}

    def _count(self, name: str) -> int:
        """Return how many stored pages hold a term; a tenth of the cost of scoring them."""
        return int(self._all("SELECT count(*) FROM search WHERE search MATCH ?", _quoted(name))[0][0])

    def _all_holders(self) -> set[int] | None:
        """Return the ids of all stored pages that hold a word of the query; ``None`` where they are many.

        Where these are few, no other page has to be read as a neighbour of one. Of a longer query ``None``, as it finds
        pages beside its words too.
        """
        if sum(self._stored_counts.values()) > _FEW or len(self._weights) >= NEIGHBOUR_TERMS:
            return None
        match = self._match()
        return {row[0] for row in self._all("SELECT rowid FROM search WHERE search MATCH ?", match)} if match else set()

    def _matching(self, most: int, only: Filter, *, closely: bool = False) -> list[int]:
        """Return the ids of stored pages that match best, by BM25 over their own words, best first; all for a *most* of -1.

        They are of the turns that the filter names. Looked at *closely*, all of them have an index that it admits, and one of
        its roles speaks in them; else only where it speaks in few pages. A lookup for each match costs half of scoring it.
        """
        match = self._match()
        if not match:
            return []
        if only.roles is not None:
            marks = " OR ".join(_quoted(role_mark(role)) for role in sorted(only.roles))
            if closely or self._all(_COUNT_UP_TO, marks, _FEW)[0][0] < _FEW:
                match = f"({match}) AND ({marks})"
        conditions = [] if only.turns is None else ["AND page.turn BETWEEN ? AND ?"]
        if closely and only.where is not None:
            conditions.append("AND admits(page.name)")
            self._connection.create_function("admits", 1, only.where)
        sql = _MATCH.format(join=_JOIN if conditions else "", conditions=" ".join(conditions), weights=_weights(only.roles))
        return [row[0] for row in self._all(sql, match, *(only.turns or ()), most)]

    def _admitted(self, most: int, only: Filter) -> list[int]:
        """Return the ids of the best matches that the filter admits, whatever stands before them; that may be all matches."""
        if only.roles is None:
            return self._matching(most, only, closely=True)
        needles = [f" {name} " for name in self._weights]
        matching = self._matching(-1, only, closely=True)
        found: list[int] = []
        for start in range(0, len(matching), _BATCH):
            part = matching[start : start + _BATCH]
            left = self._lines(part, only.roles)
            texts = {place: _limited(text, left[place]) for place, text in self._chosen(_PAGES, part)}
            found += [place for place in part if any(needle in texts[place] for needle in needles)]
            if len(found) >= most:
                break
        return found[:most]

    def _admitted_by_index(self, places: Sequence[int], only: Filter) -> list[int]:
        """Return those of some places whose index the filter admits, in order."""
        names = dict(self._chosen(_NAMES, places)) | {place: page.index for place, page in self._extra.items()}
        return [place for place in places if only.where is None or only.where(names[place])]

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
        neighbours = near.difference(found) if self._holders is None else near.intersection(self._holders).difference(found)
        stored += self._chosen(f"{columns} terms <= {_PAGE_TERMS} AND id IN", sorted(neighbours))
        if not all(isinstance(text, str) for _, *texts in stored for text in texts):
            message = "its texts are none"
            raise damaged(message)
        texts = {place: PageText(*text) for place, *text in stored} | self._texts
        return [Candidate(place, text) for place, text in sorted(texts.items())]

    def _entry(self, line: int, place: int, index: str) -> tuple[int, str]:
        """Return position and text of an entry of a page, by its place among them, from 1."""
        if place in self._extra:
            entries = self._extra[place].entries
            return (entries[line - 1][0], entries[line - 1][2]) if entries else (1, "")
        sql = "SELECT position, text FROM entry WHERE page = ? ORDER BY position LIMIT 1 OFFSET ?"
        rows = self._all(sql, index, line - 1)
        position, text = rows[0] if rows else (1, "")
        if type(position) is not int or not isinstance(text, str):
            message = "its texts are none"
            raise damaged(message)
        return position, text

    def _beside(self, line: int, place: int, index: str, roles: frozenset[str] | None) -> tuple[list[str], list[str]]:
        """Return how the entries before one end, and how those behind it begin, in order; only what some roles said."""
        first = max(line - 1 - _BESIDE, 0)
        number = line + _BESIDE - first
        if place in self._extra:
            rows = [
                (role, text[-SNIPPET_CHARS:], text[:SNIPPET_CHARS])
                for _, role, text in self._extra[place].entries[first : first + number]
            ]
        else:
            rows = self._all(_ENDS, -SNIPPET_CHARS, SNIPPET_CHARS, index, number, first)
        before, after = rows[: line - 1 - first], rows[line - first :]
        return (
            [end for role, end, _ in before if roles is None or role in roles],
            [beginning for role, _, beginning in after if roles is None or role in roles],
        )

    def _chosen(self, sql: str, values: Iterable[object], order: str = "") -> list[Any]:
        """Run a query that ends with ``IN``, for a list of values of any length; an order holds within 500 of them."""
        listed = list(values)
        rows = []
        for start in range(0, len(listed), 500):  # below the oldest limit on parameters, 999
            part = listed[start : start + 500]
            rows += self._all(f"{sql} ({', '.join('?' * len(part))}) {order}", *part)
        return rows

    def _all(self, sql: str, *values: object) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()


def _weights(roles: frozenset[str] | None) -> str:
    """Return what a word in each column counts, so that pages where one of the roles says it come first."""
    if roles is None or roles > {"user"}:
        return _WEIGHTS
    return _WEIGHTS_OF_USER if "user" in roles else _WEIGHTS_OF_OTHERS


def _quoted(name: str) -> str:
    return f'"{name}"'


def _limited(page: str, left: Sequence[int]) -> str:
    """Return the lines of a page's text with only its first and some others; the rest is empty."""
    kept = {0, *left}
    return "\n".join(line if number in kept else " " for number, line in enumerate(page.split("\n")))
