"""A session with any number of pages to search, a thousand made in a second, and a plain full-text table of the same pages.

Words are as frequent as in a language (Zipf's law): the commonest ones are function words, then come 50,000 made-up ones. Every
fifth page is in Chinese characters.
"""

import itertools
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import attrs

from benchmarks import history
from memci.archive.catalogue.index_writer import IndexWriter
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.catalogue.terms import query_terms, term_line
from memci.archive.stores.file.store import FileStore
from memci.archive.summarizers.words import STOPWORDS
from memci.engine.engine import Engine
from memci.engine.session import Session

SESSION_TURNS = 100
CHINESE_EVERY = 5
TOOL_EVERY = 49

_SEED = 20_261_122
_FIRST_NUMBER = 1_000_000
_BATCH_PAGES = 1_000
_USER_WORDS = 30
_ASSISTANT_WORDS = 120
_FUNCTION_WORDS = sorted(word for word in STOPWORDS if word.isascii())
_SYLLABLES = [first + vowel for first in "bcdfghjklmnprstvwz" for vowel in "aeiou"]
_CHARACTERS = [chr(code) for code in range(0x5000, 0x5000 + 1_000)]
_CONTENT_WORDS = 50_000

Entry = tuple[str, str]
"""Role and text."""


def word(rank: int) -> str:
    """Return the content word that so many are more common than; it has three syllables."""
    return "".join(_SYLLABLES[rank // each % len(_SYLLABLES)] for each in (1, len(_SYLLABLES), len(_SYLLABLES) ** 2))


def chinese_word(rank: int) -> str:
    """Return the Chinese word that so many are more common than, of two characters."""
    return _CHARACTERS[rank * 7 % len(_CHARACTERS)] + _CHARACTERS[(rank * 13 + rank // len(_CHARACTERS)) % len(_CHARACTERS)]


_ENGLISH = [*_FUNCTION_WORDS, *map(word, range(_CONTENT_WORDS))]
_CHINESE = [chinese_word(rank) for rank in range(5_000)]


def pages(count: int) -> Iterator[list[Entry]]:
    """Yield the entries of so many pages: what a user and an assistant say, and seldom a tool."""
    english = list(itertools.accumulate(1 / rank for rank in range(1, len(_ENGLISH) + 1)))
    chinese = list(itertools.accumulate(1 / rank for rank in range(20, len(_CHINESE) + 20)))
    chance = random.Random(_SEED)  # noqa: S311 (words, not secrets)
    for number in range(count):
        roles = ("user", "assistant", "tool") if number % TOOL_EVERY == 0 else ("user", "assistant")
        page = []
        for role in roles:
            length = _USER_WORDS if role == "user" else _ASSISTANT_WORDS
            if number % CHINESE_EVERY:
                text = " ".join(chance.choices(_ENGLISH, cum_weights=english, k=length))
            else:
                text = "".join(chance.choices(_CHINESE, cum_weights=chinese, k=length))
            page.append((role, text))
        yield page


@attrs.frozen
class Haystack:
    """A session of any number of pages, open, beside the plain table.

    Attributes:
        session: Its window is full. It takes the made-up pages for evicted ones, which have neither page files nor journal
            records: search reads neither.
        table: One FTS5 table of one column, which holds the same terms as memci's index.
        turns: The first and the last turn of the made-up pages.
    """

    session: Session
    table: sqlite3.Connection
    turns: tuple[int, int]

    def ask_table(self, query: str, limit: int = 10) -> list[int]:
        """Return the pages that hold any of a query's terms, best first by BM25: one query, and nothing else."""
        terms = " OR ".join(f'"{name}"' for name in query_terms(query))
        sql = "SELECT rowid FROM page WHERE page MATCH ? ORDER BY rank LIMIT ?"
        return [row[0] for row in self.table.execute(sql, (terms, limit))]


@contextmanager
def opened(directory: Path, count: int) -> Iterator[Haystack]:
    """Open the haystack of so many pages in *directory*, made before where there is none."""
    root = directory / f"haystack-{count}"
    if not root.exists():
        _build(directory / "building", count)
        (directory / "building").rename(root)
    engine = Engine(FileStore(root / "store", "flush"), history.CONFIG)
    with engine, engine.session(history.SESSION_ID) as session, closing(_connect(root)) as table:
        yield Haystack(session, table, (_FIRST_NUMBER, _FIRST_NUMBER + count - 1))


def _build(root: Path, count: int) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    engine = Engine(FileStore(root / "store", "flush"), history.CONFIG)
    with engine, engine.session(history.SESSION_ID) as session, closing(_connect(root)) as table:
        session.extend(list(history.messages(SESSION_TURNS)))
        index = session._core.ask(lambda index: index)
        table.execute("CREATE VIRTUAL TABLE page USING fts5 (terms, tokenize = 'ascii')")
        numbered = enumerate(pages(count), start=_FIRST_NUMBER)
        while batch := list(itertools.islice(numbered, _BATCH_PAGES)):
            table.execute("BEGIN")
            with index.write() as writer:
                for number, page in batch:
                    _add(writer, number, page)
                    table.execute("INSERT INTO page VALUES (?)", ("".join(term_line(text) for _, text in page),))
            table.execute("COMMIT")


def _connect(root: Path) -> sqlite3.Connection:
    """Open the plain table, as memci opens its index."""
    connection = sqlite3.connect(root / "plain.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -2048")
    return connection


def _add(writer: IndexWriter, number: int, page: list[Entry]) -> None:
    name = f"usr-{number}"
    first = 10 * number
    facts = PageFacts(
        index=name,
        state=PageState.EVICTED,
        turn=number,
        entries=len(page),
        tokens=200,
        first_seq=first + 1,
        last_seq=first + len(page),
    )
    writer.put_page(facts)
    for position, (role, text) in enumerate(page, start=1):
        writer.add_entry(seq=first + position, page=name, position=position, role=role, text=text, at="")
    writer.index_page(name, entry=page[0][1])
