"""Summaries by a language model: what it is asked of a page or of a session, in the language of that."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from memci.archive.summarizers.external.extension import Extension, Part, extension
from memci.archive.summarizers.external.task import WORDS_PER_TOKEN, task
from memci.archive.summarizers.external.transcript import transcript
from memci.archive.summarizers.summary import GivenPage, SentWindow, Summary
from memci.errors import ArgumentError
from memci.messages.message import Message

Prompt: TypeAlias = list[dict[str, Any]]
"""Messages of OpenAI's chat format."""

Answer: TypeAlias = str | Summary | Awaitable[str | Summary]
"""What a model says, or what can be awaited for it."""

PROMPT_VERSION = 1  # of the files in ``prompts``: part of the summariser's name

MOST_CHARACTERS = 24_000  # of a page; of a longer one the beginning and the end are shown
MOST_GIVEN = 60_000  # of all pages of a continuation, which have equal shares


class ModelSummarizer:
    """Asks a model of each page.

    *ask* is given the messages of a request, in OpenAI's chat format, and returns what the model says, or can be awaited for it.
    *name* tells the model, and its settings where they matter; the journal holds it with the version of the prompt. With *extend*
    pages in the last window are asked for together, where that costs less: it is given an ``Extension`` of that window.
    """

    def __init__(
        self, ask: Callable[[Prompt], Answer], *, name: str, extend: Callable[[Extension], Answer] | None = None
    ) -> None:
        for argument, given in (("ask", ask), ("extend", extend or ask)):
            if not callable(given):
                raise ArgumentError(argument=argument, value=given, wanted="a function that returns what a model says")
        self._ask, self._extend = ask, extend
        self.name = f"{name} (prompt {PROMPT_VERSION})"

    @property
    def extends(self) -> bool:
        """Whether it can be asked of several pages after the window that shows them."""
        return self._extend is not None

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Answer:
        """Return what the model says of a page; see ``Summarizer``."""
        return self._ask(prompt(messages, max_tokens))

    def summarize_parts(self, window: SentWindow, parts: Sequence[Part]) -> Answer:
        """Return what the model says of pages that a window shows: a line or two for each, after its index and a colon."""
        assert self._extend is not None
        return self._extend(extension(window, parts))

    def continuation(self, previous: str, pages: Sequence[GivenPage], *, max_tokens: int) -> Answer:
        """Return what the model says of a session; see ``Continuer``."""
        return self._ask(continuation_prompt(previous, pages, max_tokens))


def prompt(messages: Sequence[Message], max_tokens: int) -> Prompt:
    """Return the request for the summary of a page in so many tokens. O(size of the page)."""
    said = transcript(messages)
    text = _cut("\n\n".join(f"{speaker}: {each}" for speaker, each in said), MOST_CHARACTERS)
    return _request("page", " ".join(each for _, each in said), max_tokens, f"<conversation>\n{text}\n</conversation>")


def continuation_prompt(previous: str, pages: Sequence[GivenPage], max_tokens: int) -> Prompt:
    """Return the request for a continuation in so many tokens. O(size of the pages)."""
    share = MOST_GIVEN // max(len(pages), 1)
    texts = [page.entry or "\n\n".join(f"{speaker}: {each}" for speaker, each in transcript(page.messages)) for page in pages]
    shown = [f"{page.index}\n{_cut(text, share)}" for page, text in zip(pages, texts, strict=True)]
    before = [f"<summary>\n{previous}\n</summary>"] if previous else []
    given = "\n\n".join([*before, "<conversation>", *shown, "</conversation>"])
    return _request("continuation", " ".join([previous, *texts])[:MOST_GIVEN], max_tokens, given)


def _cut(text: str, most: int) -> str:
    """Return a text, or beginning and end of one that has more characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n\n[…]\n\n{text[-half:]}"


def _request(kind: str, said: str, max_tokens: int, given: str) -> Prompt:
    told = task(kind, said, words=round(WORDS_PER_TOKEN * max_tokens))
    return [{"role": "system", "content": told}, {"role": "user", "content": given}]
