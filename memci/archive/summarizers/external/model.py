"""Summaries by a language model: what it is asked of a page, in the language of that."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, TypeAlias

from memci.archive.summarizers.external.transcript import transcript
from memci.archive.summarizers.summary import Summary
from memci.archive.summarizers.words import CHINESE_PAIRS, words
from memci.errors import ArgumentError
from memci.messages.message import Message

Prompt: TypeAlias = list[dict[str, Any]]
"""Messages of OpenAI's chat format."""

PROMPT_VERSION = 1  # of the files in ``prompts``: part of the summariser's name

MOST_CHARACTERS = 24_000  # of a page; of a longer one the beginning and the end are shown
_WORDS_PER_TOKEN = 0.7
_GERMAN = frozenset(
    [
        "der",
        "die",
        "das",
        "und",
        "ich",
        "nicht",
        "ist",
        "ein",
        "eine",
        "mit",
        "für",
        "auf",
        "den",
        "sie",
        "wir",
        "es",
        "zu",
        "im",
        "von",
    ]
)
_GERMAN_SHARE, _CHINESE_SHARE = 0.08, 0.02  # of the words of a page


class ModelSummarizer:
    """Asks a model of each page.

    *ask* is given the messages of a request, in OpenAI's chat format, and returns what the model says, or can be awaited for it.
    *name* tells the model, and its settings where they matter; the journal holds it with the version of the prompt.
    """

    def __init__(self, ask: Callable[[Prompt], str | Summary | Awaitable[str | Summary]], *, name: str) -> None:
        if not callable(ask):
            raise ArgumentError(argument="ask", value=ask, wanted="a function of messages that returns what a model says")
        self._ask = ask
        self.name = f"{name} (prompt {PROMPT_VERSION})"

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str | Summary | Awaitable[str | Summary]:
        """Return what the model says of a page; see ``Summarizer``."""
        return self._ask(prompt(messages, max_tokens))


def prompt(messages: Sequence[Message], max_tokens: int) -> Prompt:
    """Return the request for the summary of a page in so many tokens. O(size of the page)."""
    said = transcript(messages)
    text = "\n\n".join(f"{speaker}: {each}" for speaker, each in said)
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        text = f"{text[:half]}\n\n[…]\n\n{text[-half:]}"
    task = _template(_language(" ".join(each for _, each in said))).substitute(words=round(_WORDS_PER_TOKEN * max_tokens))
    return [{"role": "system", "content": task}, {"role": "user", "content": f"<conversation>\n{text}\n</conversation>"}]


@cache
def _template(language: str) -> Template:
    return Template(
        files("memci.archive.summarizers.external").joinpath("prompts", f"page.{language}.md").read_text(encoding="utf-8")
    )


def _language(text: str) -> str:
    said = words(text[:MOST_CHARACTERS])
    if sum(map(frozenset(CHINESE_PAIRS).__contains__, said)) > _CHINESE_SHARE * len(said):
        return "zh"
    return "de" if sum(map(_GERMAN.__contains__, said)) > _GERMAN_SHARE * len(said) else "en"
