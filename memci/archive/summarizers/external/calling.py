"""A call of a summariser that may be anybody's code, sync or async."""

import inspect
from collections.abc import Sequence
from typing import Any

from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.summary import Summarizer, Summary
from memci.messages.message import Message


def summarize(summarizer: Summarizer, messages: Sequence[Message], max_tokens: int, timeout_s: float) -> Summary:
    """Return what a summariser writes of a page, waited for where it is async: then it is cancelled after *timeout_s*.

    Raises what it raises, ``TimeoutError``, and ``SummaryError`` where it answers what is no summary. No event loop runs here.
    """
    answer: Any = summarizer.summarize(messages, max_tokens=max_tokens)
    if inspect.isawaitable(answer):
        import asyncio  # noqa: PLC0415 (46 ms, for async ones only)

        async def awaited() -> object:
            return await asyncio.wait_for(answer, timeout_s)

        answer = asyncio.run(awaited())
    return as_summary(answer)
