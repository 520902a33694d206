"""One search in a page index: one full-text query for candidates, then a ranking of them and their neighbours."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import orjson

from memci.archive.catalogue import search
from memci.archive.catalogue.days import days_in
from memci.archive.catalogue.index_file import COLUMNS, FACTS, Database, checked, refuse_damaged, unpacked
from memci.archive.catalogue.search import Candidate, Candidates, Entry, ExtraPage, Filter
from memci.archive.catalogue.snippets import SNIPPET_CHARS, pieces, why
from memci.archive.catalogue.terms import query_terms, root
from memci.chapters.address import page_number

if TYPE_CHECKING:
    from memci.archive.catalogue.embedding import Embedder

_QUERY_TERMS = 64
_CANDIDATES = 30
_POSTINGS = 20_000
_PAGE_TERMS = 2_000
_ALL_TERMS = 400_000
_COMMON_TERMS = 8  # at most, of a query
_RARE_SHARE = 8  # of all postings that those of its rare terms are
_MANY_POSTINGS = 1_500  # for which it is worth to find pages by two terms first
_MOST_SHARE = 2.2  # k1 + 1 of FTS5's BM25
_BATCH = 200  # pages that are read at first to see who says a word; then ten times as many each time
_BESIDE = 3  # entries on each side of one that a passage goes on to

_LINES = "SELECT id, lines FROM said WHERE lines IS NOT NULL AND id IN"
# Pages are compared first: the table gives each row's word as a copy, twice.
_HELD = "SELECT term, doc, col, offset FROM term WHERE doc IN"
_BETWEEN = "AND term >= ? AND term < ?"
_FACTS = "SELECT name, turn, first_at, last_at, id FROM page WHERE id IN"
_ALL_FACTS = f"SELECT {COLUMNS}, page_sum, id FROM page WHERE id IN"  # noqa: S608 names of columns
_ENTRIES = "SELECT id, entries FROM said WHERE id IN"
_MATCH = """SELECT search.rowid, bm25(search, {weights}) AS score
FROM search {join} WHERE search MATCH ? {condition} ORDER BY score LIMIT ?"""
_WITHIN = "AND +search.rowid IN (SELECT rowid FROM search WHERE search MATCH ?)"  # with a plus it is no look-up for each page


class Piece(NamedTuple):
    """What a passage shows of an entry."""

    entry: Entry
    text: str

    @property
    def is_whole(self) -> bool:
        """Tell whether it is all the text that the entry has."""
        return self.text == self.entry.text.strip()


@attrs.frozen(kw_only=True)
class IndexHit:
    """A page that was found, and why: its best *entry*, and the passage: pieces of it and of its neighbours, in order.

    Scores compare within one answer.
    """

    index: str
    entry: Entry
    score: float
    pieces: Sequence[Piece]
    why: str

    @property
    def snippet(self) -> str:
        """The passage, each entry on a line of its own."""
        return "\n".join(piece.text for piece in self.pieces)


@attrs.frozen
class TermCounts:
    """How many pages there are, and how many of them hold each term of a query, in one session or in several."""

    pages: int = 0
    counts: Mapping[str, int] = attrs.field(factory=dict)

    def __add__(self, other: "TermCounts") -> "TermCounts":
        """Return those of both."""
        return TermCounts(self.pages + other.pages, Counter(self.counts) + Counter(other.counts))


class PageSearch:
    """A query, made ready for one answer: its terms and their weights; without an embedder it ranks by words alone.

    Terms weigh what they do in this session, or *among* the pages of several.
    """

    _most_counted = -1  # pages that hold a term, where they are counted
    _total: float | None = None  # weight of the whole query, where terms that no page has count too

    def __init__(  # noqa: PLR0913 (each narrows it in another way)
        self,
        database: Database,
        query: str,
        extra: Sequence[ExtraPage],
        embedder: "Embedder | None" = None,
        among: TermCounts | None = None,
        *,
        passage_characters: int = SNIPPET_CHARS,
    ) -> None:
        self._db = database
        self._query = query
        self._passage_characters = passage_characters
        self._terms = [*self._day_terms(query), *query_terms(query)][:_QUERY_TERMS]
        self._embedder = embedder
        self._known: dict[tuple[str, ...], str] = {}
        self._read: dict[int, list[Entry]] = {}
        self._extra = self._placed(extra) if extra else {}
        texts = {place: search.page_text(entry[1:4] for entry in page.entries) for place, page in self._extra.items()}
        self._beside = {place: Candidate.of_text(place, text, self._terms) for place, text in texts.items()}
        self._pages, entries, terms = database.one("SELECT pages, entries, terms FROM meta")
        self._entry_terms = terms / entries if entries else 1.0
        asked = "SELECT count(*) FROM (SELECT 1 FROM search WHERE search MATCH ? LIMIT ?)"
        self._counts: dict[str, int] = {name: database.one(asked, _matched(name), self._most_counted)[0] for name in self._terms}
        beside = [set().union(*page.held.values()) for page in self._beside.values()]
        counts = {name: stored + sum(name in held for held in beside) for name, stored in self._counts.items()}
        self.counted = TermCounts(self._pages + len(extra), {name: count for name, count in counts.items() if count})
        weighed = among or self.counted
        self._weights = search.weigh(weighed.pages, weighed.counts)

    def hits(self, limit: int, only: Filter, least: Callable[[float], float] | None = None) -> list[IndexHit]:
        """Return the best pages that the filter admits, best first; those with a score of at least *least* of the best one's."""
        if limit < 1 or (only.roles is not None and not only.roles):
            return []
        most = max(_CANDIDATES, 2 * limit) + len(only.exclude)
        cosines = self._cosines(only)
        alike = self._admitted([place for place, cosine in cosines.items() if cosine >= search.LEAST_COSINE], only)[:most]
        candidates = self._candidates(self._matching(most, only), alike, limit, only)
        for candidate in candidates if only.roles is not None else ():
            candidate.limit_to(only.roles or ())
        hits: list[IndexHit] = []
        ranked = search.rank(candidates, self._weights, self._entry_terms, cosines, self._total)
        left, least_score = limit, -math.inf
        for start in range(0, len(ranked), limit):
            part = ranked[start : start + limit]
            facts = self._facts([candidate.place for _, candidate in part if candidate.speaks(only.roles)])
            admitted = [pair for pair in part if pair[1].place in facts and only.admits(*facts[pair[1].place])]
            shared = [(self._share(score, page), page) for score, page in admitted[:left]]
            if least is not None and left == limit and shared:
                least_score = least(shared[0][0])
            chosen = [(score, page) for score, page in shared if score >= least_score]
            entries = self._entries([page.place for _, page in chosen])
            for score, page in chosen:
                index, line = facts[page.place][0], page.best or page.first_line(only.roles)
                entry, shown = self._passage(line, entries[page.place], only.roles)
                hits.append(IndexHit(index=index, entry=entry, score=score, pieces=shown, why=self._why(page, cosines)))
            left -= len(shared)
            if not left:
                break
        return hits

    def _share(self, score: float, _page: Candidate) -> float:
        """Return the score of a page as it is told."""
        return score

    def _day_terms(self, query: str) -> list[str]:
        """Return the terms of the days that a query names; without a year, of the last such day in the history."""
        if not any(map(str.isdecimal, query)):
            return []
        newest = self._db.one("SELECT last_at FROM page WHERE last_at <> '' ORDER BY id DESC LIMIT 1")
        return [search.day_mark(day) for day in days_in(query, newest[0])] if newest else []

    def _placed(self, extra: Sequence[ExtraPage]) -> dict[int, ExtraPage]:
        """Return extra pages by the places of their older selves, or after all others."""
        youngest = self._db.one("SELECT max(coalesce(max(id), 0), 0) FROM page")[0]
        known = self._places([page.index for page in extra])
        return {known.get(page.index, youngest + number): page for number, page in enumerate(extra, start=1)}

    def _places(self, indexes: Collection[str]) -> dict[str, int]:
        """Return the places of stored pages."""
        return dict(self._db.chosen("SELECT name, id FROM page WHERE number IN", [page_number(index) for index in indexes]))

    def _cosines(self, only: Filter) -> dict[int, float]:
        """Compare the query, if it has words, with the vectors of the pages; these do not tell who said what, as roles ask."""
        if self._embedder is None or only.roles is not None or not self._terms:
            return {}
        from memci.archive.catalogue.embedding import cosines  # noqa: PLC0415 (for those who use vectors)

        extra = {place: [entry.text for entry in page.entries] for place, page in self._extra.items()}
        return cosines(self._db, self._embedder, self._query, extra, search.UNLIKE_COSINE)

    def _why(self, candidate: search.Candidate, cosines: Mapping[int, float]) -> str:
        """Return the words of the query that the page holds, else those beside it, and whether it is alike in meaning."""
        said = self._told(tuple(candidate.counts))
        beside = "" if said else self._told(tuple(candidate.near))
        alike = "by meaning" if cosines.get(candidate.place, 0.0) >= search.LEAST_COSINE else ""
        return "; ".join(filter(None, (said, beside and f"beside: {beside}", alike)))

    def _told(self, names: tuple[str, ...]) -> str:
        """Return what of the query some of its terms are, which are the same for many pages."""
        if names not in self._known:
            self._known[names] = why(self._query, {name: self._weights[name] for name in names})
        return self._known[names]

    def _facts(self, places: Sequence[int]) -> dict[int, tuple[str, int, str, str]]:
        """Return index, turn and times of pages, by place, as far as they are there."""
        found = {}
        for *row, place in self._db.chosen(_ALL_FACTS, [place for place in places if place not in self._extra]):
            facts = dict(zip(FACTS, checked(row), strict=True))
            found[place] = facts["index"], facts["turn"], facts["first_at"], facts["last_at"]
        for place in self._extra.keys() & places:
            page = self._extra[place]
            times = [entry.at for entry in page.entries]
            found[place] = page.index, page.turn, min(times), max(times)
        return found

    def _entries(self, places: Sequence[int]) -> dict[int, list[Entry]]:
        """Return what is said in pages, by place; each is read once."""
        stored = [place for place in places if place not in self._extra and place not in self._read]
        for place, data in self._db.chosen(_ENTRIES, stored) if stored else ():
            said = enumerate(unpacked(data)[1], start=1)
            self._read[place] = [Entry(position, role, text, at, name) for position, (_, role, text, at, _, name, _) in said]
        if not self._read.keys() >= set(stored):
            refuse_damaged("what is said in a page is missing")
        return self._read | {place: list(page.entries) for place, page in self._extra.items()}

    def _admitted(self, places: Sequence[int], only: Filter) -> Sequence[int]:
        """Return those of some places that a filter admits by their facts, in order."""
        if not only.asks_facts:
            return places
        facts = {place: rest for *rest, place in self._db.chosen(_FACTS, places)}
        facts |= self._facts(list(self._extra))
        return [place for place in places if place in facts and only.admits(*facts[place])]

    def _matching(self, most: int, only: Filter) -> list[int]:
        """Return the ids of stored pages that the filter admits and that match best, by BM25 over their own words, best first."""
        chosen = self._chosen()
        if not chosen:
            return []
        match = " OR ".join(map(_matched, chosen))
        join = condition = ""
        if only.asks_facts:
            join, condition = "CROSS JOIN page ON page.id = search.rowid", "AND admits(name, turn, first_at, last_at)"
            self._db.add_function("admits", 4, only.admits)
        elif only.roles is None and (best := self._best(chosen, match, most)):
            return best
        sql = _MATCH.format(join=join, condition=condition, weights=_weights(only.roles))
        if only.roles is None:
            return [place for place, _ in self._db.run(sql, match, most)]
        marks = " OR ".join(f'"{search.role_mark(role)}"' for role in sorted(only.roles))
        matching = [place for place, _ in self._db.run(sql, f"({match}) AND ({marks})", -1)]
        found: list[int] = []
        start, size = 0, _BATCH
        while start < len(matching) and len(found) < most:
            part = matching[start : start + size]
            pages = self._noted(self._lines(part))
            for page in pages.values():
                page.limit_to(only.roles)
            found += [place for place in part if place in pages and pages[place].held]
            start, size = start + size, 10 * size
        return found[:most]

    def _best(self, chosen: Sequence[str], match: str, most: int) -> list[int]:
        """Return what ``_matching`` does, where it can be told without the pages that hold but one of the common terms.

        No page scores more for a term than its weight in FTS5's BM25 times 2.2, as if it said nothing else. Where those that
        hold a rare term, or two common ones, all score more than that, the others need no score, which is what costs most.
        """
        counts = [self._counts[name] for name in chosen]
        rare = max(1, len(chosen) - _COMMON_TERMS, sum(total <= sum(counts) // _RARE_SHARE for total in accumulate(counts)))
        names = [*map(_matched, chosen)]
        common = names[rare:]
        if sum(counts) < _MANY_POSTINGS or not common:
            return []
        pairs = [f"({name} AND ({' OR '.join(common[place:])}))" for place, name in enumerate(common[:-1], start=1)]
        sql = _MATCH.format(join="", condition=_WITHIN, weights=_weights(None))
        rows = self._db.run(sql, match, " OR ".join((*names[:rare], *pairs)), most)
        weight = math.log((self._pages + 0.5) / (counts[rare] + 0.5))  # a little more than FTS5's
        return [place for place, _ in rows] if len(rows) == most and -rows[-1][1] > _MOST_SHARE * weight else []

    def _lines(self, places: Collection[int]) -> dict[int, list[Any]]:
        """Return ``PageText.lines`` of the searchable ones of some pages, by place."""
        try:
            rows = self._db.chosen(_LINES, list(places))
            lines = orjson.loads(f"[{','.join(lines for _, lines in rows)}]")
            return {place: each for (place, _), each in zip(rows, lines, strict=True)}
        except (TypeError, ValueError) as error:
            refuse_damaged(error)

    def _noted(self, lines: Mapping[int, list[Any]]) -> dict[int, Candidate]:
        """Return those of some pages that hold a term of the query, with where: costs what the postings of the terms are."""
        pages = Candidates(lines)
        for name in [name for name, count in self._counts.items() if count] if lines else ():
            start = root(name)
            after = f"{start[:-1]}{chr(ord(start[-1]) + 1)}" if start else f"{name}\x01"
            try:
                search.hold(pages, name, self._db.chosen(_HELD, list(lines), _BETWEEN, start or name, after))
            except (KeyError, IndexError, TypeError) as error:
                refuse_damaged(error)
        return pages

    def _chosen(self) -> list[str]:
        """Return which terms are searched for, the rarest first: not all, as scoring costs what the postings of the terms are."""
        chosen: list[str] = []
        postings = 0
        for name, count in sorted(self._counts.items(), key=lambda pair: pair[1]):
            if count and (postings < _CANDIDATES or postings + count <= _POSTINGS):
                chosen.append(name)
                postings += count
        return chosen

    def _candidates(self, found: Sequence[int], alike: Sequence[int], limit: int, _only: Filter) -> list[search.Candidate]:
        """Read the pages found by words or by meaning, up to a number of terms in all, and the short neighbours of the former."""
        near = {place + step for place in (*found, *self._extra) for step in range(-search.REACH, search.REACH + 1)}
        asked = list(dict.fromkeys((*found, *(place for place in alike if place not in self._extra))))
        stored = self._lines(near.union(asked))
        sizes = {place: sum(lines[2::2]) for place, lines in stored.items()}
        sums = accumulate(sizes.get(place, 0) for place in asked)
        ranked = enumerate(zip(asked, sums, strict=True))
        read = {place for number, (place, terms) in ranked if number < limit or terms <= _ALL_TERMS}
        read |= {place for place in near.difference(asked) if sizes.get(place, 0) <= _PAGE_TERMS}
        read -= self._beside.keys()
        pages = self._noted({place: lines for place, lines in stored.items() if place in read})
        if alike or len(self._weights) >= search.NEIGHBOUR_TERMS:  # else a page without any of the words is no answer
            pages |= {place: Candidate.of_lines(place, stored[place]) for place in (read & stored.keys()).difference(pages)}
        return [page for _, page in sorted((pages | self._beside).items())]

    def _passage(self, line: int, rows: Sequence[Entry], roles: frozenset[str] | None) -> tuple[Entry, list[Piece]]:
        """Return the entry on a line of a page, and its passage, with what roles said beside it."""
        own, most = line - 1, self._passage_characters
        entry = rows[own] if own < len(rows) else Entry(1, "", "", "")
        beside = (rows[max(own - _BESIDE, 0) : own], rows[line : line + _BESIDE])
        before, after = ([each for each in part if roles is None or each.role in roles] for part in beside)
        texts = [each.text[-most:] for each in before], [each.text[:most] for each in after]
        said = [*before, entry, *after]
        shown = pieces(entry.text, self._weights, *texts, most)
        return entry, [Piece(said[len(before) + step], text) for step, text in shown]


def _matched(name: str) -> str:
    """Return the query for the database for a term, and the other forms of a long one."""
    start = root(name)
    return f'"{start}" *' if start else f'"{name}"'


def _weights(roles: frozenset[str] | None) -> str:
    """Return what a word in each column counts, so that pages where one of the roles says it come first."""
    if roles is None or roles > {"user"}:
        return "2.0, 1.0, 1.0"  # the user's words count twice
    return "1.0, 0.1, 0.0" if "user" in roles else "-1.0, 1.0, 0.0"  # the words of the time little; a page holds the user's too
