"""What a summariser makes of a page."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from memci.errors import MOST_NAMED, shortened
from memci.messages.message import Message

Word: TypeAlias = tuple[str, float, str]
"""What a row of the contents page may show of a page: a word or a literal value, whole; how much it tells (1: a rare word); and
what leads to it from the word before, as in the source where both are neighbours there."""

# Leads of words that begin another sentence, another message, what others than the user say, what the user says after that, and
# the result of the call before, and an answer to something else that the user said.
SENTENCE, PASSAGE, OTHERS, USER, RESULT, EXCHANGE = "; ", ", ", " → ", " | user: ", ":  ", " | "  # two spaces: a source has one
LEFT_OUT = " … "  # of more of the same sentence, after words that are left out
GIVEN = ",  "  # of what else a call was given: it is shown only after what the call is about
ALWAYS = 0.0  # worth of a word that a row has as long as it has any other, such as that of a refusal
NAME_WORTH = 20.0  # of a name that somebody gave the page, in a row: more than all other words there


def plain_words(texts: Iterable[str]) -> tuple[Word, ...]:
    """Return texts, most telling first, as words of a row, for a page of which nothing better is known."""
    return tuple((text, 1.0, PASSAGE) for text in texts)


def has_given_title(words: Sequence[Word]) -> bool:
    """Return whether somebody gave the page of these words its title: the application, as its name, or as that of a topic."""
    return bool(words) and words[0][1] == NAME_WORTH


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
    # Of the requests for it, where known: ``prompt_tokens`` (and of these ``cached_tokens``), ``completion_tokens``, ``price``.
    usage: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SentWindow:
    """A window as a call sent it, which the provider's cache holds from then on."""

    seq: int  # of the last event in it
    at: datetime  # when it was made
    format: str  # its wire format
    tokens: int
    raws: tuple[bytes, ...]  # its messages, each as JSON
    system: bytes  # the system prompt as JSON; null where it stands among the messages
    tools: bytes  # the schemas of the tools as a JSON list
    pages: Mapping[str, tuple[int, int]]  # that it shows whole, by index: how many entries, and the seq of the last


@attrs.frozen(kw_only=True)
class GivenPage:
    """A page that a continuation is made of: its messages, or what the contents page says of it where they are too many."""

    index: str  # such as usr-12; of several, which the contents page lists together, a range
    messages: tuple[Message, ...] = ()
    entry: str = ""


class Summarizer(Protocol):
    """Writes the short form of pages, ahead of the folds that publish it: no call of a session waits for it.

    It may have a method ``continuation`` too, see ``Continuer``.

    It may have a ``name``, by which the journal knows it, such as that of a model with the version of its prompt; else it is that
    of its class. It is called in threads, by several at once. One whose ``extends`` is true is asked of several pages after a
    window that shows them, where that costs less: by ``summarize_parts``, as of ``ModelSummarizer``.
    """

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary | str | Awaitable[Summary | str]:
        """Summarise the messages of one page, oldest first, in one line or two; of a text the first line is the title.

        *max_tokens* is the room for all of it. What it writes is checked against the page and dropped where that does not say
        it; after an exception it is asked again, and then extracts stand in its place. Of a ``Summary`` title, summary, lines,
        outcome and usage are taken.
        """
        ...


@runtime_checkable
class Continuer(Protocol):
    """Writes what a session is at: one text for all pages that left the window, in the place of the one before.

    It is asked where ``summary.continuation`` is set, as ``summarize`` is.
    """

    def continuation(
        self, previous: str, pages: Sequence[GivenPage], *, max_tokens: int
    ) -> Summary | str | Awaitable[Summary | str]:
        """Return goal, decisions, state and what is open, in lines, from the text before and the pages since, oldest first.

        *previous* is empty for the first, and where it is made from the pages alone. Lines with a value, a name or a quotation
        that neither the pages nor *previous* say are left out; without any, or above *max_tokens* by a quarter, all of it is.
        """
        ...


def name_of(summarizer: Summarizer) -> str:
    """Return by what the journal knows a summariser."""
    name = shortened(str(getattr(summarizer, "name", "") or type(summarizer).__name__))
    return " ".join(name.split())[:MOST_NAMED]
