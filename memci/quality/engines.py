"""What an engine has to offer to be measured: six methods."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.engine.session import Session
from memci.quality.conversation import Conversation

_VISIBLE = (PageState.OPEN, PageState.ACTIVE)


@attrs.frozen(kw_only=True)
class HeldPage:
    """A page that an engine keeps."""

    page: str  # the engine's name for it, such as usr-12, by which a contents page in its windows lists it
    messages: tuple[int, ...]  # those it holds, in its order, counted from 0 in the order in which they were added
    verbatim: bool  # whether all of them stand in the window now, word for word


def pages_of(session: Session, numbers: Mapping[int, int]) -> list[HeldPage]:
    """Return all pages of a session, with the *numbers* of its messages by their sequence numbers. Reads each page."""
    return [
        HeldPage(
            page=facts.index,
            messages=tuple(numbers[node.seq] for node in session.page(facts.index).nodes()),
            verbatim=facts.state in _VISIBLE,
        )
        for facts in session.pages()
    ]


@attrs.frozen(kw_only=True)
class FoundPage:
    """A page that a search found."""

    page: str  # the engine's name for it
    text: str  # what the search returns to a model for it
    passage: str  # the words of the page in it


class ContextEngine(Protocol):
    """Takes in one conversation, and says what each call sends."""

    def add(self, message: Mapping[str, Any], at: str | None = None) -> None:
        """Take a message in OpenAI's chat format in, said at a time in ISO 8601. They come in order, system messages too."""

    def window(self) -> Sequence[Mapping[str, Any]]:
        """Return what the next call sends, in OpenAI's chat format; ``BudgetError`` where no window fits."""

    def asked(self, question: str) -> Sequence[Mapping[str, Any]]:
        """Return what a call sends in which the user asks this next; nothing of it stays. ``BudgetError`` as for ``window``."""

    def pages(self) -> Sequence[HeldPage]:
        """Return the pages that are kept, oldest first, as of the last window. What was dropped for good is in none."""

    def search(self, query: str, limit: int) -> Sequence[FoundPage] | None:
        """Return the best pages of the whole conversation for a query, best first; ``None`` from an engine without a search."""

    def recall(self, page: str) -> Sequence[Mapping[str, Any]]:
        """Return the messages of a page, in the order of the page."""


@attrs.frozen(kw_only=True)
class EngineSpec:
    """An engine that can be measured."""

    name: str  # in tables
    open: Callable[[int, Conversation], AbstractContextManager[ContextEngine]]
    """Makes one for a budget in tokens, and a conversation; where that has needs, the model has no tools to recall pages."""
    code: tuple[str, ...]  # the files that decide what it does, as patterns below the package
    settings: Any = None  # what decides it beside its code and the budget; a JSON value
