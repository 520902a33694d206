"""Memory: full-text search over all pages."""

from typing import TYPE_CHECKING

import attrs

from memci.archive.page_facts import PageState
from memci.engine.core import Core
from memci.engine.projection import entry_text
from memci.errors import ConfigError, shown

if TYPE_CHECKING:
    from memci.archive.search import ExtraPage


MOST_HITS = 10_000
"""The largest limit of one search."""


@attrs.frozen(kw_only=True)
class Hit:
    """A page that search found.

    Attributes:
        index: The page's index.
        entry: Address of its best entry, such as ``usr-12/3``.
        score: Higher is better; to compare within one answer only.
        snippet: The best passage, as it stands in the entry.
        state: Where the page is.
    """

    index: str
    entry: str
    score: float
    snippet: str
    state: PageState


def search(core: Core, query: object, *, limit: int, include_visible: bool) -> list[Hit]:
    """Return the best pages for some words, best first.

    Raises:
        ConfigError: The query is not text, or the limit not a number above 0.
    """
    if not isinstance(query, str):
        message = f"a query is text, not {type(query).__name__}"
        raise ConfigError(message, path="query")
    if type(limit) is not int or not 0 < limit <= MOST_HITS:
        message = f"{shown(limit)} is not a number from 1 to {MOST_HITS}"
        raise ConfigError(message, path="limit")
    state = core.state
    visible = {page.index for chapter in (state.active, state.system, state.recalled) for page in chapter.pages()}
    exclude = () if include_visible else visible
    extra = _open_page(core) if include_visible else ()
    hits = core.ask(lambda index: index.search(query, limit=limit, exclude=exclude, extra=extra))
    found = []
    for hit in hits:
        facts = core.facts(hit.index)
        if facts is not None:
            address = f"{hit.index}/{hit.entry}"
            found.append(Hit(index=hit.index, entry=address, score=hit.score, snippet=hit.snippet, state=facts.state))
    return found


def _open_page(core: Core) -> "list[ExtraPage]":
    """Return the open page, which is searchable for itself only once it is complete."""
    from memci.archive.search import ExtraPage  # noqa: PLC0415 (compiles many patterns)

    page = core.state.active.open_page
    if page is None or page.head is None:
        return []
    entries = [(number, node.message.speaker, entry_text(node.message)) for number, node in enumerate(page.nodes(), start=1)]
    return [ExtraPage(index=page.index, state=PageState.OPEN, entries=entries)]
