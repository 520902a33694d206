"""The engines that are measured, by name: memci, and what it is compared with."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import attrs

from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Budget, Config
from memci.engine.tools.recall_tools import shown_hit
from memci.messages import codec
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.quality.baselines import AppendedLeads, RewrittenLeads, SlidingMessages, SlidingPages, WholeHistory
from memci.quality.conversation import Conversation
from memci.quality.engines import ContextEngine, EngineSpec, FoundPage, HeldPage, pages_of
from memci.quality.playing import COUNTER

MEMCI = "memci"  # its name among the engines
_CODE = (
    *(f"{package}/**/*.{kind}" for package in ("archive", "chapters", "engine", "messages") for kind in ("py", "txt")),
    "errors.py",
    "quality/**/*.py",
)
_BASELINE_CODE = ("quality/**/*.py", "messages/**/*.py", "archive/summarizers/words.*", "archive/catalogue/search.py")
_SESSION = "quality"
_SOME_TIME = "2000-01-01T00:00:00+00:00"
_BASELINES: dict[str, Callable[[int, TokenCounter], ContextEngine]] = {
    "whole": WholeHistory,
    "sliding-messages": SlidingMessages,
    "sliding-pages": SlidingPages,
    "leads-appended": AppendedLeads,
    "leads-rewritten": RewrittenLeads,
}


def engines(config: Config) -> dict[str, EngineSpec]:
    """Return all engines by name: memci with these settings first, then what it is compared with."""
    baselines = (EngineSpec(name=name, open=partial(_baseline, make), code=_BASELINE_CODE) for name, make in _BASELINES.items())
    return {spec.name: spec for spec in (memci_spec(config), *baselines)}


def _baseline(
    make: Callable[[int, TokenCounter], ContextEngine], budget: int, conversation: Conversation
) -> AbstractContextManager[ContextEngine]:
    del conversation
    return nullcontext(make(budget, get_counter(COUNTER)))


def memci_spec(config: Config) -> EngineSpec:
    """Return memci with some settings, whose budget is replaced by the one that is measured."""
    settings = attrs.evolve(config, budget=Budget()).policy_mapping() | {"search": attrs.asdict(config.search)}
    return EngineSpec(name=MEMCI, open=partial(_memci, config), settings=settings, code=_CODE)


@contextmanager
def _memci(config: Config, budget: int, conversation: Conversation) -> "Iterator[MemciEngine]":
    recall = attrs.evolve(config.recall, protocol="none") if conversation.needs else config.recall
    settings = attrs.evolve(config, budget=Budget(window=budget, reserve=0), recall=recall)
    with Engine("memory:", settings) as engine, engine.session(_SESSION) as session:
        yield MemciEngine(session)


class MemciEngine:
    """A new session of memci, which the caller closes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers: dict[int, int] = {}
        self._last_at = _SOME_TIME

    def add(self, message: Mapping[str, Any], at: str | None = None) -> None:
        """Append a message. All messages without a time get the same one, so that every run gives the same figures."""
        self._last_at = _SOME_TIME if at is None else at
        entry = self._session.append(message, at=self._last_at)
        self._numbers[entry.node.seq] = len(self._numbers)

    def window(self) -> list[dict[str, Any]]:
        """Return the session's window."""
        return self._session.window().messages

    def asked(self, question: str) -> list[dict[str, Any]]:
        """Return the window of a draft that takes the question in."""
        with self._session.draft() as draft:
            draft.append({"role": "user", "content": question}, at=self._last_at)
            return draft.window().messages

    def pages(self) -> list[HeldPage]:
        """Return all pages of the session. Reads each of them."""
        return pages_of(self._session, self._numbers)

    def search(self, query: str, limit: int) -> list[FoundPage]:
        """Return the session's hits; the text is what the tool ``search_pages`` answers for each."""
        hits = self._session.search(query, limit, include_visible=True)
        return [FoundPage(page=hit.index, passage=hit.snippet, text=codec.encode(shown_hit(hit)).decode()) for hit in hits]

    def recall(self, page: str) -> list[dict[str, Any]]:
        """Return the messages of a page, those of one that is evicted too."""
        return self._session.page(page).messages
