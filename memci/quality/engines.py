"""What an engine has to offer to be measured: six methods."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import attrs


@attrs.frozen(kw_only=True)
class HeldPage:
    """A page that an engine keeps.

    Attributes:
        page: The engine's name for it.
        messages: Which messages it holds, counted from 0 in the order in which they were added; in the order of the page.
        verbatim: Whether all of them stand in the window now, word for word.
        indexed: Whether the window's contents page lists the page by itself.
    """

    page: str
    messages: tuple[int, ...]
    verbatim: bool
    indexed: bool


@attrs.frozen(kw_only=True)
class FoundPage:
    """A page that a search found.

    Attributes:
        page: The engine's name for it.
        text: What the search returns to a model for it.
        passage: The words of the page in it.
    """

    page: str
    text: str
    passage: str


class ContextEngine(Protocol):
    """Takes in one conversation, and says what each call sends."""

    def add(self, message: Mapping[str, Any], at: str | None = None) -> None:
        """Take a message in. Messages come in their order, system messages too.

        Args:
            message: In OpenAI's chat format.
            at: When it was said, in ISO 8601; ``None`` where that is not known.
        """
        ...

    def window(self) -> Sequence[Mapping[str, Any]]:
        """Return what the next call sends, in OpenAI's chat format.

        Raises:
            BudgetError: No window fits.
        """
        ...

    def pages(self) -> Sequence[HeldPage]:
        """Return the pages that are kept, oldest first, as of the last window. What was dropped for good is in none."""
        ...

    def entry(self, page: str) -> str:
        """Return the text that stands for a page in the contents page; empty where nothing does.

        A page that is grouped with others is represented by the text of its group.
        """
        ...

    def search(self, query: str, limit: int) -> Sequence[FoundPage] | None:
        """Return the best pages of the whole conversation for a query, best first; ``None`` from an engine without a search."""
        ...

    def recall(self, page: str) -> Sequence[Mapping[str, Any]]:
        """Return the messages of a page, in the order of the page."""
        ...


@attrs.frozen(kw_only=True)
class EngineSpec:
    """An engine that can be measured.

    Attributes:
        name: What it is called in tables.
        open: Makes one for a budget in tokens, for one conversation; it is closed after that.
        code: The files that decide what it does, as patterns below the package.
        settings: What decides it beside its code and the budget; a JSON value.
    """

    name: str
    open: Callable[[int], AbstractContextManager[ContextEngine]]
    code: tuple[str, ...]
    settings: Any = None
