"""The plain full-text search that baselines have: BM25 over pages, any word of the query."""

import sqlite3
from collections.abc import Iterable

from memci.archive.catalogue.snippet import snippet
from memci.archive.summarizers.words import STOPWORDS, words
from memci.messages import codec
from memci.quality.engines import FoundPage

_RANKED = "SELECT name, text FROM page WHERE page MATCH ? ORDER BY bm25(page), rowid LIMIT ?"


class FullTextSearch:
    """Pages in SQLite's FTS5 with its own ranking, in memory. A query is its content words, joined by OR.

    Words are cut as memci cuts them, Chinese into pairs of characters, as FTS5 by itself finds nothing in it; there is no
    stemming, no field, and no look at neighbours.

    Args:
        pages: Name and text of each page, oldest first.
    """

    def __init__(self, pages: Iterable[tuple[str, str]]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE page USING fts5(words, name UNINDEXED, text UNINDEXED)")
        rows = ((" ".join(words(text)), name, text) for name, text in pages)
        self._connection.executemany("INSERT INTO page VALUES (?, ?, ?)", rows)

    def search(self, query: str, limit: int) -> list[FoundPage]:
        """Return the best pages, best first: the name, and the best passage of at most 200 characters. O(matches)."""
        wanted = list(dict.fromkeys(word for word in words(query) if word not in STOPWORDS)) or words(query)
        if not wanted:
            return []
        match = " OR ".join(f'"{word}"' for word in wanted)
        weights = dict.fromkeys(wanted, 1.0)
        found = self._connection.execute(_RANKED, (match, limit))
        passages = [(name, snippet(text, weights)) for name, text in found]
        return [
            FoundPage(page=name, passage=passage, text=codec.encode({"index": name, "snippet": passage}).decode())
            for name, passage in passages
        ]
