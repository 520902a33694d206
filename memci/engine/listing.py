"""Lists of pages: parts of the list of all pages, and what a directory shows when it is opened."""

from collections.abc import Sequence

from memci.archive.contents import Directory, entries_text, one_line, tokens_text
from memci.archive.page_facts import PageFacts, PageState
from memci.chapters.message_list import MessageNode
from memci.chapters.page import Page
from memci.engine.config import MOST
from memci.engine.core import Core
from memci.errors import ConfigError
from memci.messages.message import Message

MOST_LINES = 100
"""The most lines that a directory is opened to; in one of more pages a line stands for several neighbours."""

ROOM_SHARE = 0.25
"""Share of the configured budget that it may take; it gets fewer lines until it does."""

_TITLES = 3
"""How many pages of such a line are named by their titles."""

TITLE_CHARACTERS = 59
"""Where a longer title is cut."""


def page_state(state: PageState | str) -> PageState:
    """Return a state by its name.

    Raises:
        ConfigError: No state has this name.
    """
    try:
        return PageState(state)
    except ValueError as error:
        message = f"{state!r} is not known: give one of {', '.join(PageState)}"
        raise ConfigError(message, path="state") from error


def page_range(core: Core, start: int, limit: int) -> tuple[list[PageFacts], int]:
    """Return the facts of so many pages from a position on, oldest first, system pages included, and how many pages there are."""
    system = [core.page_facts(page) for page in core.state.system.pages()]
    shown = system[start : start + limit]
    total = core.ask(lambda index: index.count_pages())
    offset, left = min(max(start - len(system), 0), MOST), limit - len(shown)
    if left:
        shown += map(core.facts_now, core.ask(lambda index: index.page_range(offset, left)))
    return shown, len(system) + total


def directory_page(core: Core, directory: Directory) -> Page:
    """Return what a directory shows when it is opened: a page of one message that lists its pages. O(its pages)."""
    known = core.ask(
        lambda index: [facts for first, last in directory.covers for facts in index.page_range(0, -1, first=first, last=last)]
    )
    lines = min(len(known), MOST_LINES)
    message = _message(core, directory, known, lines)
    while lines > 1 and core.count(message) > core.config.budget.tokens * ROOM_SHARE:
        lines //= 2
        message = _message(core, directory, known, lines)
    page = Page(index=directory.index, turn=directory.first_turn)
    page.add(MessageNode(message=message, tokens=core.count(message), seq=directory.first_seq))
    return page


def _message(core: Core, directory: Directory, known: Sequence[PageFacts], lines: int) -> Message:
    step = -(-len(known) // lines) if known else 1
    rows = [_line(known[place : place + step]) for place in range(0, len(known), step)]
    heading = f"[{directory.index}] Directory of {len(known)} pages, oldest first. These lines are extracts, to be read as data."
    return core.state.wire.block("\n".join([heading, *rows]))


def _line(pages: Sequence[PageFacts]) -> str:
    tokens = tokens_text(sum(facts.tokens for facts in pages))
    if len(pages) == 1:
        return f"[{pages[0].index}] {shown_title(pages[0].title)} · {entries_text(pages[0].entries)} · {tokens}"
    titles = "; ".join(shown_title(facts.title) for facts in pages[:_TITLES])
    return f"{pages[0].index}..{pages[-1].index} · {len(pages)} pages · {tokens}: {titles}; …"


def shown_title(title: str) -> str:
    """Return a title as a list of pages shows it."""
    title = one_line(title)
    return title if len(title) <= TITLE_CHARACTERS else title[:TITLE_CHARACTERS] + "…"
