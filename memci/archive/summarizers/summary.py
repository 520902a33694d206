"""What a summariser makes of a page."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from memci.messages.message import Message


@attrs.frozen(kw_only=True)
class Summary:
    """The short form of one page, in the words of the page.

    Attributes:
        title: A few words that tell the page from its neighbours; one line.
        summary: A line or two on the whole page; one line of text, may be empty.
        lines: One line an entry, in the order of the entries, each with its role and no line break; an entry with
            nothing to say has no line.
        outcome: How the page ended; one line, may be empty.
        keywords: Rare words of the page, most telling first.
        spans: Short stretches of the page's text, most telling first, for a line that speaks of several pages.
        entities: Literal values of the page (paths, URLs, numbers with units, names in quotes), whole.
        state_changes: What the page changed outside the conversation, as the tool calls tell it.
        importance: How much the page holds that cannot be said again, 0 to 1.
    """

    title: str
    summary: str = ""
    lines: tuple[str, ...] = ()
    outcome: str = ""
    keywords: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    state_changes: tuple[str, ...] = ()
    importance: float = 0.0


class Summarizer(Protocol):
    """Makes the short form of a page."""

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary:
        """Summarise the messages of one page, oldest first. Cost: linear in the page.

        *max_tokens* is the room for the lines, by the summariser's own estimate; the title does not count.

        Raises:
            SummaryError: It cannot; extracts take its place.
        """
        ...
