"""A call of a summariser that may be anybody's code, sync or async."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.external.extension import Part, split
from memci.archive.summarizers.summary import Continuer, GivenPage, SentWindow, Summarizer, Summary
from memci.errors import SummaryTimeoutError
from memci.messages.message import Message


def summarize(summarizer: Summarizer, messages: Sequence[Message], max_tokens: int, timeout_s: float) -> Summary:
    """Return what a summariser writes of a page, waited for where it is async: then it is cancelled after *timeout_s*.

    Raises what it raises, ``SummaryTimeoutError``, and ``SummaryError`` where it answers what is no summary. No event loop runs
    here.
    """
    return _awaited(summarizer.summarize(messages, max_tokens=max_tokens), timeout_s)


def summarize_parts(
    summarizer: Any,  # noqa: ANN401 (one that ``extends``)
    window: SentWindow,
    parts: Sequence[Part],
    timeout_s: float,
) -> tuple[Mapping[str, Summary], Mapping[str, float]]:
    """Return what a summariser that extends the last window writes of pages in it, by index, and the usage of that request.

    Those are missing of which it wrote nothing. Waits and raises as ``summarize`` does.
    """
    said = _awaited(summarizer.summarize_parts(window, parts), timeout_s)
    return split(said, [part.index for part in parts]), said.usage


def continuation(summarizer: Continuer, previous: str, pages: Sequence[GivenPage], max_tokens: int, timeout_s: float) -> Summary:
    """Return what a summariser writes of a session, as ``summarize`` does of a page: its lines are title and lines."""
    return _awaited(summarizer.continuation(previous, pages, max_tokens=max_tokens), timeout_s)


def _awaited(answer: Any, timeout_s: float) -> Summary:  # noqa: ANN401 (of anybody's code)
    if inspect.isawaitable(answer):
        import asyncio  # noqa: PLC0415 (46 ms, for async ones only)

        async def awaited() -> object:
            try:
                async with asyncio.timeout(timeout_s) as scope:
                    return await answer
            except TimeoutError as error:
                if not scope.expired():  # it is the summariser's own
                    raise
                message = f"it did not answer within {timeout_s:g} s"
                raise SummaryTimeoutError(message) from error

        answer = asyncio.run(awaited())
    return as_summary(answer)
