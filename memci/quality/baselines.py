"""Engines to compare with: the whole history, windows that slide over it, and first sentences in the place of older turns."""

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any
from weakref import finalize

from memci.archive.catalogue.snippets import snippet
from memci.archive.summarizers.words import STOPWORDS, words
from memci.messages import codec
from memci.messages.parts import text_of
from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from memci.quality.conversation import Turns, full_text
from memci.quality.engines import FoundPage, HeldPage
from memci.quality.scoring.contents import HEADING

CONTENTS_SHARE = 0.25  # how much of the budget the contents page may take
LOW_SHARE = 0.5  # what a batch leaves of the turns and of the contents page, where only batches leave
LEAD_CHARACTERS = 160  # the longest lead of a message in an append-only contents page
REWRITTEN_CHARACTERS = (480, 320, 240, 160, 120, 80, 60, 40)  # the longest in one that is rewritten: the first that fits

_HEADING = f"{HEADING}, by their first sentences:"
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")
_RANKED = "SELECT name, text FROM page WHERE page MATCH ? ORDER BY bm25(page), rowid LIMIT ?"


class WholeHistory:
    """Sends every message at every call, whether or not it fits. It has no search: there is nothing that it does not show."""

    def __init__(self, budget: int, counter: TokenCounter) -> None:
        self._room, self._counter = budget - REPLY_TOKENS, counter
        self._messages: list[dict[str, Any]] = []
        self._sums = [0]  # the tokens of the first messages: of none, of one, of two …
        self._turns = Turns()
        self._start = 0  # the first message that the window shows, the leading system messages aside

    def add(self, message: Mapping[str, Any], at: str | None = None) -> None:
        """Take a message in."""
        del at
        self._turns.add(len(self._messages), message)
        self._messages.append(dict(message))
        self._sums.append(self._sums[-1] + count_message(self._messages[-1], self._counter))

    def window(self) -> list[dict[str, Any]]:
        """Return the system messages, what stands for messages that left, and the last messages."""
        system = len(self._turns.system)
        self._start = max(self._start, system)
        self._make_room(self._room - self._sums[system])
        return [*self._messages[:system], *self._contents(), *self._messages[self._start :]]

    def asked(self, question: str) -> list[dict[str, Any]]:
        """Return the window of a copy that takes the question in."""
        other = copy(self)
        other._separate()  # noqa: SLF001 (of its own class)
        other.add({"role": "user", "content": question})
        return other.window()

    def _separate(self) -> None:
        """Have lists of its own, which others do not change."""
        self._messages, self._sums, self._turns = [*self._messages], [*self._sums], deepcopy(self._turns)

    def pages(self) -> list[HeldPage]:
        """Return the system messages as a page, and every turn."""
        held = [("system", self._turns.system)][: len(self._turns.system)]
        held += [(f"turn-{number}", page) for number, page in enumerate(self._turns.pages, start=1)]
        return [
            HeldPage(page=name, messages=tuple(page), verbatim=name == "system" or page[0] >= self._start) for name, page in held
        ]

    def search(self, query: str, limit: int) -> Sequence[FoundPage] | None:
        """Return that there is no search."""
        del query, limit
        return None

    def recall(self, page: str) -> list[dict[str, Any]]:
        """Return the messages of a page."""
        numbers = self._turns.system if page == "system" else self._turns.pages[int(page.removeprefix("turn-")) - 1]
        return [self._messages[number] for number in numbers]

    def _make_room(self, room: int) -> None:
        """Let messages leave the window, where they have to."""

    def _contents(self) -> list[dict[str, Any]]:
        return []

    def _verbatim(self) -> int:
        return self._sums[-1] - self._sums[self._start]


class SlidingMessages(WholeHistory):
    """Keeps the system messages and as many of the last messages as fit. What slides out is gone."""

    def pages(self) -> list[HeldPage]:
        """Return the system messages and the turns that are whole in the window."""
        return [page for page in super().pages() if page.verbatim]

    def _make_room(self, room: int) -> None:
        while self._start < len(self._messages) and self._verbatim() > room:
            self._start += 1


class SlidingPages(SlidingMessages):
    """Keeps the system messages and as many of the last turns as fit, the open one always. What slides out is gone."""

    def _make_room(self, room: float) -> None:
        for page in self._turns.pages:
            if self._verbatim() > room:
                self._start = max(self._start, page[0])


class FullTextSearch:
    """Pages in SQLite's FTS5, in memory: its own ranking, memci's cutting of words, no stemming, fields or neighbours."""

    def __init__(self, pages: Iterable[tuple[str, str]]) -> None:
        self._connection = sqlite3.connect(":memory:")
        finalize(self, self._connection.close)
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
        passages = {name: snippet(text, weights) for name, text in found}
        texts = {name: codec.encode({"index": name, "snippet": passage}).decode() for name, passage in passages.items()}
        return [FoundPage(page=name, passage=passages[name], text=text) for name, text in texts.items()]


def lead(text: str, characters: int) -> str:
    """Return as many of a text's first sentences as fit, or of a longer first one the beginning; on one line."""
    text = " ".join(text.split())
    if len(text) <= characters:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, characters)]
    return text[: ends[-1]] if ends else f"{text[:characters]}…"


class AppendedLeads(WholeHistory):
    """Recent turns, and an append-only contents page of lead sentences; a plain full-text search finds all turns.

    When the window is full, the oldest turns leave it at once, down to half of their room, so that most calls begin with all of
    the call before. For each a line is appended: the lead of the user's first message and that of the last answer. The contents
    page has a quarter of the budget; when it is full, its older half goes.
    """

    def __init__(self, budget: int, counter: TokenCounter) -> None:
        super().__init__(budget, counter)
        self._contents_room = int(budget * CONTENTS_SHARE)
        self._first = self._listed_from = 0  # the first turn in the window, and the first with a line
        self._characters = LEAD_CHARACTERS
        self._heading_tokens = count_message({"role": "user", "content": _HEADING}, counter)
        self._lines: dict[tuple[int, int], tuple[str, int]] = {}
        self._search: tuple[int, FullTextSearch] | None = None

    def search(self, query: str, limit: int) -> list[FoundPage]:
        """Return the turns that a plain full-text search finds. The index is made anew when messages came in."""
        if self._search is None or self._search[0] != len(self._messages):
            texts = (
                (f"turn-{number}", "\n".join(full_text(self._messages[place]) for place in page))
                for number, page in enumerate(self._turns.pages, start=1)
            )
            self._search = len(self._messages), FullTextSearch(texts)
        return self._search[1].search(query, limit)

    def _contents(self) -> list[dict[str, Any]]:
        lines = [self._line(number)[0] for number in range(self._listed_from, self._first)]
        return [{"role": "user", "content": "\n".join([_HEADING, *lines])}] if lines else []

    def _make_room(self, room: int) -> None:
        if self._verbatim() + self._listed() > room:
            self._drop_turns(LOW_SHARE * (room - self._contents_room))
            if self._listed() > self._contents_room:
                self._drop_lines(LOW_SHARE * self._contents_room)
            self._drop_lines(room - self._verbatim())

    def _drop_turns(self, room: float) -> None:
        while self._first < len(self._turns.pages) - 1 and self._verbatim() > room:
            self._first += 1
            self._start = self._turns.pages[self._first][0]

    def _drop_lines(self, room: float) -> None:
        while self._listed_from < self._first and self._listed() > room:
            self._listed_from += 1

    def _listed(self) -> int:
        """Return at most the size of the contents page: its lines are counted one by one, each once."""
        lines = range(self._listed_from, self._first)
        return self._heading_tokens + sum(self._line(number)[1] for number in lines) if lines else 0

    def _line(self, number: int) -> tuple[str, int]:
        """Return the line of a turn at the length that is in force, and its tokens with the line break."""
        key = number, self._characters
        if key not in self._lines:
            said = [self._messages[place] for place in self._turns.pages[number]]
            asked = [text_of(value) for value in said if value.get("role") == "user"][:1]
            answered = [text for value in said if value.get("role") == "assistant" and (text := text_of(value))][-1:]
            leads = " / ".join(lead(text, self._characters) for text in (*asked, *answered))
            line = f"[turn-{number + 1}] {leads}"
            self._lines[key] = line, self._counter.count(line) + 1
        return self._lines[key]


class RewrittenLeads(AppendedLeads):
    """The same with a window that holds what it can: turns leave one by one, and leads are as long as all of them have room."""

    def __init__(self, budget: int, counter: TokenCounter) -> None:
        super().__init__(budget, counter)
        self._shorter = list(REWRITTEN_CHARACTERS)
        self._characters = self._shorter.pop(0)

    def _make_room(self, room: int) -> None:
        if self._first or self._verbatim() > room:
            self._drop_turns(room - self._contents_room)
            self._shorter = [*self._shorter]  # its own, where it is a copy
            while self._shorter and self._listed() > self._contents_room:
                self._characters = self._shorter.pop(0)
            self._drop_lines(min(self._contents_room, room - self._verbatim()))
