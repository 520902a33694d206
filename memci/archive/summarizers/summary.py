"""What a summariser makes of a page."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

import attrs

from memci.messages.message import Message

Word: TypeAlias = tuple[str, float, str]
"""What a row of the contents page may show of a page: a word or a literal value, whole; how much it tells (1: a rare word); and
what leads to it from the word before, as in the source where both are neighbours there."""

PASSAGE, OTHERS = ", ", " → "  # leads of words that begin another message, and what others than the user say


def plain_words(texts: Iterable[str]) -> tuple[Word, ...]:
    """Return texts, most telling first, as words of a row, for a page of which nothing better is known."""
    return tuple((text, 1.0, PASSAGE) for text in texts)


@attrs.frozen(kw_only=True)
class Summary:
    """The short form of one page, in the words of the page; each text is one line, and only the title may not be empty."""

    title: str  # a few words that tell the page from its neighbours
    summary: str = ""  # of the whole page
    lines: tuple[str, ...] = ()  # one an entry that has something to say, in their order, each with its role
    outcome: str = ""  # how the page ended
    keywords: tuple[str, ...] = ()  # rare words, most telling first
    words: tuple[Word, ...] = ()  # the telling ones, in the order of the page, for its row among others
    entities: tuple[str, ...] = ()  # literal values (paths, URLs, numbers with units, names in quotes), whole
    state_changes: tuple[str, ...] = ()  # what it changed outside the conversation, as the tool calls tell it
    importance: float = 0.0  # 0 to 1: how much it holds that cannot be said again
    # Of the requests for it, as far as it is known: ``prompt_tokens``, ``completion_tokens``, ``price``.
    usage: Mapping[str, float] = attrs.field(factory=dict)


class Summarizer(Protocol):
    """Writes the short form of pages, ahead of the folds that publish it: no call of a session waits for it.

    It may have a ``name``, by which the journal knows it, such as that of a model with the version of its prompt; else it is that
    of its class. It is called in threads, by several at once.
    """

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary | str | Awaitable[Summary | str]:
        """Summarise the messages of one page, oldest first, in one line or two; of a text the first line is the title.

        *max_tokens* is the room for all of it. What it writes is checked against the page and dropped where that does not say
        it; after an exception it is asked again, and then extracts stand in its place. Of a ``Summary`` title, summary, lines,
        outcome and usage are taken.
        """
        ...


def name_of(summarizer: Summarizer) -> str:
    """Return by what the journal knows a summariser."""
    return str(getattr(summarizer, "name", "") or type(summarizer).__name__)
