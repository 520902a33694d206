"""Summaries without a model, in the page's own words."""

import re
from collections.abc import Sequence

from memci.archive.summarizers import headline, traits
from memci.archive.summarizers.entries import read_entries
from memci.archive.summarizers.selection import Passage, choose, shown
from memci.archive.summarizers.summary import Summary
from memci.archive.summarizers.worth import weigh
from memci.messages.message import Message

_FALLBACK_CHARACTERS = 60
_NO_TEXT = "no text"
_SPACES = re.compile(" +")
_BREAKING = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Marks that reorder or hide text: a line of the contents page must read as it stands.
_HIDDEN = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class ExtractiveSummarizer:
    """The default summariser: no model, no I/O, the same answer for the same page, any language.

    Lines are runs of at least two words as they stand in the source (literal values may stand alone), joined by `` … ``. Rare
    words and literal values are worth most; common words little; what was said before in the page, or in the title, a fraction.
    """

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary:
        """Summarise the messages of one page.

        Of an entry of more than 40,000 characters, rare words are looked for in both ends, literal values in the first
        250,000 characters and the end. Linear in the page.

        Args:
            messages: The whole page, oldest first.
            max_tokens: Room for the lines with their roles and line breaks, in estimated tokens. The title does not count.
        """
        entries = read_entries(messages)
        passages = [passage for entry in entries for passage in entry.passages]
        weigh(passages)
        keywords = tuple(filter(None, map(one_line, traits.keywords(passages))))
        entities = tuple(filter(None, map(one_line, traits.entities(passages))))
        spans = tuple(filter(None, map(one_line, traits.spans(passages))))
        changes = tuple(map(one_line, traits.state_changes(entries)))
        summary, outcome = headline.summary_and_outcome(passages)
        title = one_line(headline.title(passages)) or _fallback_title(passages)
        return Summary(
            title=title,
            summary=one_line(summary),
            lines=_lines(passages, max_tokens),
            outcome=one_line(outcome),
            keywords=keywords,
            spans=spans,
            entities=entities,
            state_changes=changes,
            importance=traits.importance(len(keywords), len(entities), len(changes)),
        )


def one_line(text: str) -> str:
    """Return a text as one line that shows what it holds: no line breaks, controls, hidden marks or halves of characters."""
    if text.isprintable():
        return _SPACES.sub(" ", text).strip() if "  " in text else text.strip()
    plain = _SURROGATE.sub("\ufffd", _HIDDEN.sub("", text))
    return _BREAKING.sub(" ", plain).strip()


def _lines(passages: Sequence[Passage], max_tokens: int) -> tuple[str, ...]:
    lines: dict[int, str] = {}
    for passage, runs in zip(passages, choose(passages, max_tokens), strict=True):
        if runs is None:
            continue
        text = one_line(shown(passage, runs))
        if not text and not passage.opening_worth:
            continue
        before = lines.get(passage.entry)
        opening = passage.opening if before is None else passage.following
        lines[passage.entry] = (before or "") + opening + text + passage.closing
    return tuple(line.strip() for line in lines.values())


def _fallback_title(passages: Sequence[Passage]) -> str:
    for passage in passages:
        text = one_line(passage.text[:_FALLBACK_CHARACTERS]) or passage.opening.strip(" :(→")
        if text:
            return text
    return _NO_TEXT
