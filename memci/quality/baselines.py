"""Engines to compare with: the whole history, and windows that slide over it."""

from collections.abc import Mapping, Sequence
from typing import Any

from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from memci.quality.conversation import Turns
from memci.quality.engines import FoundPage, HeldPage


class WholeHistory:
    """Sends every message at every call, whether or not it fits. It has no search: there is nothing that it does not show.

    Args:
        budget: Tokens that a window may hold.
        counter: Counts them.
    """

    def __init__(self, budget: int, counter: TokenCounter) -> None:
        self._room = budget - REPLY_TOKENS
        self._counter = counter
        self._messages: list[dict[str, Any]] = []
        self._tokens: list[int] = []
        self._turns = Turns()

    def add(self, message: Mapping[str, Any], at: str | None = None) -> None:
        """Take a message in."""
        del at
        self._turns.add(len(self._messages), message)
        self._messages.append(dict(message))
        self._tokens.append(count_message(self._messages[-1], self._counter))

    def window(self) -> list[dict[str, Any]]:
        """Return all messages."""
        return list(self._messages)

    def pages(self) -> list[HeldPage]:
        """Return the system messages as a page, and every turn."""
        system = [HeldPage(page="system", messages=tuple(self._turns.system), verbatim=True, indexed=False)]
        return [*(system if self._turns.system else []), *(self._held(number) for number in range(len(self._turns.pages)))]

    def entry(self, page: str) -> str:
        """Return nothing: there is no contents page."""
        del page
        return ""

    def search(self, query: str, limit: int) -> Sequence[FoundPage] | None:
        """Return that there is no search."""
        del query, limit
        return None

    def recall(self, page: str) -> list[dict[str, Any]]:
        """Return the messages of a page."""
        numbers = self._turns.system if page == "system" else self._turns.pages[int(page.removeprefix("turn-")) - 1]
        return [self._messages[number] for number in numbers]

    def _held(self, number: int) -> HeldPage:
        return HeldPage(page=f"turn-{number + 1}", messages=tuple(self._turns.pages[number]), verbatim=True, indexed=False)

    def _chosen(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        return [self._messages[number] for number in (*self._turns.system, *numbers)]

    def _sum(self, numbers: Sequence[int]) -> int:
        return sum(self._tokens[number] for number in numbers)


class SlidingMessages(WholeHistory):
    """Keeps the system messages and as many of the last messages as fit. What slides out is gone."""

    _first = 0

    def window(self) -> list[dict[str, Any]]:
        """Return system messages and last messages."""
        self._first = max(self._first, len(self._turns.system))
        room = self._room - self._sum(self._turns.system)
        while self._first < len(self._messages) and self._sum(range(self._first, len(self._messages))) > room:
            self._first += 1
        return self._chosen(range(self._first, len(self._messages)))

    def pages(self) -> list[HeldPage]:
        """Return the system messages and the turns that are whole in the window."""
        return [page for page in super().pages() if page.page == "system" or page.messages[0] >= self._first]


class SlidingPages(WholeHistory):
    """Keeps the system messages and as many of the last turns as fit, the open one always. What slides out is gone."""

    _first = 0

    def window(self) -> list[dict[str, Any]]:
        """Return system messages and last turns."""
        room = self._room - self._sum(self._turns.system)
        shown = [number for page in self._turns.pages[self._first :] for number in page]
        while self._first < len(self._turns.pages) - 1 and self._sum(shown) > room:
            shown = shown[len(self._turns.pages[self._first]) :]
            self._first += 1
        return self._chosen(shown)

    def pages(self) -> list[HeldPage]:
        """Return the system messages and the turns in the window."""
        pages = super().pages()
        system = len(pages) - len(self._turns.pages)
        return [*pages[:system], *pages[system + self._first :]]
