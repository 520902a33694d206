"""What names an earlier page: its index, a literal value that hardly any other page holds, or a file that calls touched."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.working_set import CUT, NAMED
from memci.chapters.address import is_range, page_number
from memci.engine.core.core import Core
from memci.engine.core.indexing import entry_text
from memci.engine.reading.searching import visible
from memci.messages.message import Message

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

RARE_SHARE = 0.01  # of the pages: a value that more of them hold names none
MOST_TOUCHED, _MOST_HOLDERS = 3, 16  # pages that a name touches, the newest; that are looked at for it
_MOST_CHARACTERS = 20_000  # of a message that are looked through
_MOST_VALUES = 32  # that are looked up for one command
_LEAST_CHARACTERS = 3


def values(text: str) -> list[str]:
    """Return the distinct literal values in the beginning of a text, in order, without quotation marks."""
    from memci.archive.summarizers.literals import literals  # noqa: PLC0415 (compiles many patterns)

    text = text[:_MOST_CHARACTERS]
    found = (text[each.start : each.end].strip("\"'`“”‘’「」『』《》【】«»„") for each in literals(text))
    return [each for each in dict.fromkeys(found) if len(each) >= _LEAST_CHARACTERS]


def is_rare(core: Core, value: str, *, hidden: int) -> bool:
    """Return whether at least *hidden* pages out of view hold a value, and fewer than one in a hundred beside them."""
    shown = visible(core.state)

    def found(index: "PageIndex") -> bool:
        least = RARE_SHARE * index.count_pages()
        held = index.pages_holding(value, limit=len(shown) + hidden + int(least) + 1)
        others = sum(page not in shown for page in held) - hidden
        return 0 <= others < least

    return core.ask(found)


def mentioned(core: Core, messages: Iterable[Message], turn: int) -> list[str]:
    """Return the recalled pages that new messages of a turn name, but for those that came or were named in this turn.

    Nothing is looked up where there are none. O(messages and recalled pages).
    """
    attached = core.state.recalled.attachments
    waiting = {page.index: page for page in core.state.recalled.pages() if attached[page.index].turn < turn}
    texts = [entry_text(message)[:_MOST_CHARACTERS] for message in messages] if waiting else []
    named = {index for index in waiting if any(re.search(rf"(?<![\w-]){re.escape(index)}(?!\d|\.\.\d)", text) for text in texts)}
    held = {
        index: "\n".join(entry_text(node.message) for node in page.nodes())
        for index, page in waiting.items()
        if index not in named and not is_range(index)
    }
    if held:
        for value in _held(texts, held.values()):
            if is_rare(core, value, hidden=0):
                named |= {index for index, text in held.items() if value in text}
    return [index for index in waiting if index in named]


def touched(core: Core, messages: Iterable[Message], turn: int) -> list[str]:
    """Return the pages of earlier turns that new messages of a turn touch and no message before them in it did; oldest first.

    A name in calls, or in what the user or the assistant says, touches the newest three pages that hold it. Up to 32 names are
    looked up in the search index. Evicted pages are not touched.
    """
    from memci.archive.contents.noting import notes_of, said_in  # noqa: PLC0415 (compiles many patterns)

    said = [message for message in messages if message.speaker in ("user", "assistant")]
    notes = notes_of((("", message) for message in said), 0)
    names = [note.text.removeprefix(CUT) for note in notes if note.kind in NAMED]
    names += [value for message in said for text in said_in(message) for value in values(text)]
    names = list(dict.fromkeys(names))[:_MOST_VALUES]
    state = core.state

    def may_be(index: str) -> bool:
        page = state.active.find_page(index)
        return page.turn < turn if page is not None else state.page_state(index) is not PageState.EVICTED

    holders = core.ask(lambda index: [index.pages_holding(name, limit=_MOST_HOLDERS) for name in names]) if names else []
    found = {index for pages in holders for index in islice(filter(may_be, pages), MOST_TOUCHED)}
    return sorted((index for index in found if state.touched.get(index) != turn), key=page_number)


def _held(texts: Iterable[str], pages: Iterable[str]) -> Iterator[str]:
    """Yield the first literal values of texts that a page holds."""
    said = dict.fromkeys(value for text in texts for value in values(text))
    found = [value for value in said if any(value in page for page in pages)]
    yield from found[:_MOST_VALUES]
